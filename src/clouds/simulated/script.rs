//! Answers that somebody has laid down beforehand: the next so many calls of a kind are answered by the script and not by the cloud.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::clouds::{Error, LaunchRefused, SoldOut};

/// A call that can be answered by the script.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Call {
    /// Launch a machine.
    Create,
    /// Describe one machine.
    Get,
    /// Look for a machine by its token.
    Find,
    /// List all machines.
    List,
    /// Take a machine down.
    Delete,
    /// Restart a machine.
    Reboot,
    /// Say what is still to be done for a machine.
    Hooks,
}

/// How a call fails. Timelines write it as it is named here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum Refusal {
    /// None of the offerings can be had (of a launch).
    InsufficientCapacity,
    /// The NodeClass is not ready (of a launch).
    NodeClassNotReady,
    /// The account may have no more machines (of a launch).
    Quota,
    /// The cloud cannot do this at all (of a reboot).
    Unsupported,
    /// Fewer calls, please.
    Throttled,
    /// The cloud's own fault, without effect.
    Error,
    /// The call never arrives, and nobody knows it.
    Lost,
    /// Nothing is heard until the caller gives up (of a question for one machine).
    Silent,
    /// The call takes effect, and its answer gets lost.
    AnswerLost,
    /// There is no such machine, says the cloud, though it runs: no failure (of a question for machines, of a list of all, which is empty then, and of an
    /// order to take one down).
    NoSuchMachine,
}

impl Refusal {
    /// Whether a call that fails like this takes effect all the same.
    pub(super) fn has_effect(self) -> bool {
        self == Self::AnswerLost
    }

    /// What the caller is told; `sold_out` is what a launch could have been.
    pub(super) fn error(self, message: &str, sold_out: Vec<SoldOut>) -> Error {
        let message = message.to_owned();
        match self {
            Self::InsufficientCapacity => Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, message }),
            Self::NodeClassNotReady => Error::Launch(LaunchRefused::ClassNotReady(message)),
            Self::Quota => Error::Launch(LaunchRefused::Quota(message)),
            Self::Unsupported => Error::Unsupported("rebooting a machine"),
            Self::Throttled => Error::Throttled { said: String::new(), retry_after: None },
            Self::Error | Self::NoSuchMachine => Error::Temporary(message),
            Self::Lost | Self::Silent | Self::AnswerLost => Error::Unknown(message),
        }
    }
}

/// What is left of the script: by call, how it fails, what is said, and how often.
pub(super) type Script = BTreeMap<Call, (Refusal, String, u32)>;

/// Whether this is what the script says to a call: what is no failure.
pub(super) fn says(script: &mut Script, call: Call, answer: Refusal) -> bool {
    let said = script.get(&call).is_some_and(|(refusal, ..)| *refusal == answer);
    said && next(script, call).is_some()
}

/// What the script says to a call, if anything.
pub(super) fn next(script: &mut Script, call: Call) -> Option<(Refusal, String)> {
    let (refusal, message, left) = script.get_mut(&call)?;
    let answer = (*refusal, message.clone());
    *left = left.saturating_sub(1);
    if *left == 0 {
        script.remove(&call);
    }
    Some(answer)
}
