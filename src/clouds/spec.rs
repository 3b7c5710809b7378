//! What goes into a cloud's calls and what comes out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Claim, InstanceType, Machine, NodeClass, Status};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::core::resources::Resources;

/// All that a cloud needs to launch one machine. The choice among `candidates` is the cloud's: the cheapest that it can get.
#[derive(Clone, Debug)]
pub struct LaunchSpec {
    /// UID of the NodeClaim: the idempotency token, and part of the machine's mark.
    pub token: ClaimUid,
    /// The NodeClaim.
    pub claim: Arc<Claim>,
    /// Its NodeClass.
    pub class: Arc<NodeClass>,
    /// Instance types that meet the NodeClaim's requirements, cheapest first, each with only those offerings that are available
    /// and compatible with them, cheapest first. Never empty, and no list of offerings in it is.
    pub candidates: Vec<Arc<InstanceType>>,
}

/// The instance types of a NodeClass, as one reading shows them.
#[derive(Clone, Debug, Default)]
pub struct Assortment {
    /// The types with all offerings, those that cannot be had now included.
    pub types: Arc<Vec<Arc<InstanceType>>>,
    /// How soon they are to be asked for again, as something that they depend on could not be read; nothing when all was.
    pub lacks: Option<Duration>,
}

impl From<Arc<Vec<Arc<InstanceType>>>> for Assortment {
    fn from(types: Arc<Vec<Arc<InstanceType>>>) -> Self {
        Self { types, lacks: None }
    }
}

/// What became of a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// The cloud has taken the order; the machine is still there.
    InProgress,
    /// The machine has ended: the cloud shows it as ended, or never shows a machine that runs as one that is not there.
    Gone,
    /// The cloud knows no such machine. It may be gone, or not be shown for a while; see [`super::Cloud::may_deny_for`].
    Missing,
}

/// What a cloud shows under a provider ID.
#[derive(Clone, PartialEq, Debug)]
pub enum Whereabouts {
    /// The machine.
    There(Box<Machine>),
    /// A machine that has ended, which the cloud goes on showing for a while.
    Ended,
    /// None. It may have ended long ago, or not be shown for a while; see [`super::Cloud::may_deny_for`].
    Unknown,
}

impl Whereabouts {
    /// The machine, if there is one.
    pub fn machine(self) -> Option<Machine> {
        match self {
            Self::There(machine) => Some(*machine),
            Self::Ended | Self::Unknown => None,
        }
    }

    /// Whether there is a machine.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::There(_))
    }
}

impl From<Option<Machine>> for Whereabouts {
    fn from(shown: Option<Machine>) -> Self {
        shown.map_or(Self::Unknown, |machine| Self::There(Box::new(machine)))
    }
}

/// Every machine with this cluster's mark.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The machines.
    pub machines: Vec<Machine>,
    /// Whether the cloud vouches that all pages were read without an error in between.
    pub complete: bool,
    /// Machines younger than this may be missing (eventual consistency).
    pub settles_within: Duration,
    /// What the cloud plans to do to them, as far as it says so. A list of machines is complete without it.
    pub notices: Vec<Notice>,
}

/// What a cloud plans to do to a machine of its own accord: a restart, maintenance of what is beneath it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The machine.
    pub machine: ProviderId,
    /// What is planned, in the cloud's words.
    pub what: String,
    /// The earliest beginning.
    pub from: Option<Timestamp>,
    /// The latest end.
    pub until: Option<Timestamp>,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(from) = self.from {
            write!(f, ", not before {from:.0}")?;
        }
        if let Some(until) = self.until {
            write!(f, ", over by {until:.0}")?;
        }
        Ok(())
    }
}

/// What a Node shows of the machine that it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Whose Node it is.
    pub machine: &'a ProviderId,
    /// The Node's name.
    pub node: &'a str,
    /// What the machine was launched as.
    pub instance_type: &'a str,
    /// What it was booted from.
    pub image: &'a str,
    /// The Node's `status.capacity`.
    pub capacity: &'a Resources,
}

/// What a NodeClass has come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolution {
    /// What is said of its conditions; those that are not mentioned stay as they are.
    pub judgements: Vec<Judgement>,
    /// The other fields of its status as a JSON object, if they are to change.
    pub details: Option<Arc<str>>,
}

/// What is said of one condition of a NodeClass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The condition.
    pub condition: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, and what to do about it: field and remedy.
    pub message: String,
}
