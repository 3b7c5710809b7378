//! The gate that every request of joiner passes: requests are counted here, and faults come in here.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::Error;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is carried out and answered.
    Pass,
    /// It is carried out later than usual by this much.
    Delay(Duration),
    /// It is refused, certainly without effect.
    Refuse(Error),
    /// It is carried out, but its answer is lost: the caller gets [`Error::Unknown`].
    LoseAnswer,
}

/// Decides over requests. Faults are written against this.
pub trait Gate: Send {
    /// What happens to the next request.
    fn judge(&mut self, verb: &'static str, resource: &'static str) -> Verdict;
}

/// A gate that lets everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn judge(&mut self, _verb: &'static str, _resource: &'static str) -> Verdict {
        Verdict::Pass
    }
}

/// Requests so far, by verb and resource.
pub type Requests = BTreeMap<(&'static str, &'static str), u64>;
