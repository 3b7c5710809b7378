//! In which state a VM is.

use serde::{Deserialize, Serialize};

use super::shapes::Field;

/// The state of a VM.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is being made.
    Pending,
    /// It runs.
    Running,
    /// It is being deleted.
    ShuttingDown,
    /// It is gone; it can be read for some minutes more, without tags, addresses and interfaces.
    Terminated,
    /// It is being stopped.
    Stopping,
    /// It is stopped, and costs as long as it has volumes.
    Stopped,
    /// The cloud has locked it up.
    Quarantine,
    /// One that joiner does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl State {
    /// The states of VMs that are not gone.
    pub const STANDING: [Self; 6] =
        [Self::Pending, Self::Running, Self::ShuttingDown, Self::Stopping, Self::Stopped, Self::Quarantine];

    /// Whether the VM is gone for good.
    pub fn is_gone(self) -> bool {
        self == Self::Terminated
    }

    /// Whether the VM is on its way out, or gone.
    pub fn is_leaving(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Quarantine => "quarantine",
            Self::Unknown => "unknown",
        }
    }
}

impl Field for State {
    fn is_unset(&self) -> bool {
        false
    }
}
