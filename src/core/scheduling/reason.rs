//! Why a pod found no place: typed, so that it can be counted, and readable, so that a person can act on it.

use std::fmt;
use std::sync::Arc;

/// One fact that kept a pod from being placed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The pod itself could not be understood: what, and how to mend it.
    Invalid(Arc<str>),
    /// There is no NodePool that could be used.
    NoPools,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "{what}"),
            Self::NoPools => write!(f, "no NodePool is ready; create one, or see the conditions of those that exist"),
        }
    }
}
