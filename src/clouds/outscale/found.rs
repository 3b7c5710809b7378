//! How the conditions of a NodeClass come out.

use crate::clouds::Judgement;
use crate::core::facts::Status;

use super::oapi::{Class, Error};

/// Why something is not ready: a reason for programs, a sentence for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Reason of a condition about which nothing was asked, as another one says.
pub const NOT_ASKED: &str = "NotAsked";

/// Reason of the condition that says that the keys are refused, whatever is asked.
pub const UNAUTHORIZED: &str = "Unauthorized";

/// How one condition came out: it holds, it does not, or nobody could say.
pub(super) enum Found<T> {
    /// It holds.
    Good(T),
    /// It does not.
    Bad(Fault),
    /// Nobody could say.
    Unanswered(String),
    /// Why nothing can be asked, such as keys that are refused, with the one condition that says more: not all of them do.
    NotAsked(&'static str),
}

impl<T> Found<T> {
    pub(super) fn of(judged: Result<T, Fault>) -> Self {
        judged.map_or_else(Self::Bad, Self::Good)
    }

    pub(super) fn failed(error: &Error) -> Self {
        match error.class {
            _ if error.unreachable => Self::NotAsked("the API cannot be reached; see PermissionsReady"),
            Class::Keys => Self::NotAsked("the keys were refused; see PermissionsReady"),
            Class::Denied => Self::Bad(Fault::new("Forbidden", error.stable())),
            Class::Invalid | Class::NotFound => Self::Bad(Fault::new("Refused", error.stable())),
            _ => Self::Unanswered(error.stable()),
        }
    }

    /// What is said of it, and its value when it is good.
    pub(super) fn told(self, condition: &'static str, into: &mut Vec<Judgement>) -> Option<T> {
        self.remarked(condition, into, |_| String::new())
    }

    /// The same with a remark on its value when it is good.
    pub(super) fn remarked(
        self,
        condition: &'static str,
        into: &mut Vec<Judgement>,
        remark: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let (status, reason, message, value) = match self {
            Self::Good(value) => (Status::True, condition, remark(&value), Some(value)),
            Self::Bad(fault) => (Status::False, fault.reason, fault.message, None),
            Self::Unanswered(why) => (Status::Unknown, "NoAnswer", why, None),
            Self::NotAsked(why) => (Status::Unknown, NOT_ASKED, format!("not asked, as {why}"), None),
        };
        into.push(Judgement { condition, status, reason, message });
        value
    }
}
