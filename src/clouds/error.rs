//! How a cloud call fails, in the classes on which callers act.

use std::sync::Arc;
use std::time::Duration;

use crate::api::duration::DurationError;
use crate::core::ids::{ClassRef, InstanceTypeName, ProviderId};

/// A failed call. Everything but [`Error::Unknown`] is certain: nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The machine was not launched, for a reason that concerns what was asked for.
    #[error("launch refused: {0}")]
    Launch(LaunchRefused),
    /// The cloud asks for fewer calls.
    #[error("throttled{said}{}", .retry_after.map_or_else(String::new, |after| format!(", retry in {} s", after.as_secs())))]
    Throttled {
        /// What was called and what the cloud said, behind a colon; or nothing.
        said: String,
        /// When to come back, if the cloud says so.
        retry_after: Option<Duration>,
    },
    /// The account may not do this, or its credentials are not accepted.
    #[error("not authorized to {action}: {message}")]
    Unauthorized {
        /// The call.
        action: &'static str,
        /// What the cloud said.
        message: String,
    },
    /// The request is wrong and will stay wrong until somebody changes an object.
    #[error("invalid {field}: {message}")]
    Invalid {
        /// The field to change.
        field: String,
        /// What is wrong with it, and how to mend it.
        message: String,
    },
    /// The cloud knows no such machine, perhaps for a while only; see [`super::Cloud::may_deny_for`].
    #[error("there is no machine {0}")]
    Missing(ProviderId),
    /// The cloud cannot do this at all.
    #[error("{0} is not supported by this cloud")]
    Unsupported(&'static str),
    /// Failed on the cloud's side, certainly without effect; worth another try.
    #[error("{0}")]
    Temporary(String),
    /// No answer, or one that leaves open whether the call took effect. Never retried blindly.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

impl Error {
    /// A NodeClass has a duration that cannot be read.
    pub(super) fn unreadable(class: &ClassRef, error: &DurationError) -> Self {
        Self::Invalid { field: format!("{class} {}", error.field), message: error.remedy() }
    }

    /// The class in one word, as the reason of a condition.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Launch(LaunchRefused::Quota(_)) => "QuotaExceeded",
            Self::Throttled { .. } => "Throttled",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::Invalid { .. } | Self::Missing(_) => "InvalidRequest",
            Self::Unsupported(_) => "Unsupported",
            // Karpenter's word for whatever its clouds give no word for.
            Self::Launch(_) | Self::Temporary(_) | Self::Unknown(_) => "LaunchFailed",
        }
    }
}

/// Why a machine was not launched. Each is certain: there is no machine.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaunchRefused {
    /// None of the offerings could be had.
    #[error("insufficient capacity, {message}")]
    InsufficientCapacity {
        /// Offerings that are sold out, for the catalog to remember.
        sold_out: Vec<SoldOut>,
        /// What the cloud said.
        message: String,
    },
    /// The NodeClass does not exist or is not ready.
    #[error("NodeClassRef not ready, {0}")]
    ClassNotReady(String),
    /// The account's quota is used up.
    #[error("quota exceeded, {0}")]
    Quota(String),
}

/// An offering that could not be had, whoever asks for it or with one NodeClass.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SoldOut {
    /// The NodeClass with which it cannot be had, where others may have it: the shortage is of its own subnets or its own hardware.
    pub class: Option<ClassRef>,
    /// Instance type.
    pub instance_type: InstanceTypeName,
    /// Zone, if the cloud has zones.
    pub zone: Option<Arc<str>>,
    /// Capacity type.
    pub capacity_type: Arc<str>,
}
