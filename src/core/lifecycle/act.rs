//! The acts that a life consists of: a closed list, each one request or one handful of them.

use std::sync::Arc;

use crate::core::facts::Pod;
use crate::core::ids::{ClaimUid, NodeName, NodeUid, ObjectKey, PodUid, ProviderId};
use crate::core::writes::{ClaimPatch, ClaimStatusPatch, NodePatch};

/// The next thing to do for a NodeClaim. At most one is under way at a time, so that each step sees what the last one did.
#[derive(Clone, PartialEq, Debug)]
pub enum Act {
    /// Change metadata of the NodeClaim (finalizer, labels, annotations).
    PatchClaim(ClaimPatch),
    /// Change status of the NodeClaim.
    PatchStatus(ClaimStatusPatch),
    /// Ask the cloud which machines were launched with this token.
    Find(ClaimUid),
    /// Ask the cloud whether this machine exists.
    Get(ProviderId),
    /// The same, while everything else goes on: a cloud that does not answer holds nothing up.
    GetAside(ProviderId),
    /// Ask the cloud whether the machine still matches its NodeClass.
    AskDrift,
    /// Ask the cloud what it has still to do before the Node opens.
    AskHooks,
    /// Launch the machine.
    Launch,
    /// Ask for the deletion of the NodeClaim.
    DeleteClaim(DeleteReason),
    /// Ask the API server itself how the NodeClaim is now.
    GetClaim,
    /// Ask the API server itself whether there is a Node of this name.
    GetNode(NodeName),
    /// Ask the API server itself whether there is a Node with this provider ID.
    FindNode(ProviderId),
    /// Ask the API server itself which pods are on these Nodes.
    ListPods(Vec<NodeName>),
    /// Ask the API server itself which volumes are attached to these Nodes.
    ListAttachments(Vec<NodeName>),
    /// Ask the API server itself which ResourceSlices this Node has.
    ListSlices(NodeName),
    /// Change labels, taints, finalizers or owners of a Node.
    PatchNode(NodeName, NodeUid, NodePatch),
    /// Ask for the deletion of a Node.
    DeleteNode(NodeName, NodeUid),
    /// Have these pods evicted, and those whose time is up deleted.
    Drain {
        /// To be evicted, which a budget may forbid for a while.
        evict: Vec<PodRef>,
        /// To be deleted with this many seconds of grace, because the deadline allows no waiting.
        force: Vec<(PodRef, i64)>,
    },
    /// Restart the machine in place; the operation makes repeats harmless.
    Reboot(ProviderId, Arc<str>),
    /// Take the machine down, or learn that it is gone.
    DeleteMachine(ProviderId),
}

impl Act {
    /// Whether it is the cloud that is asked, and not the API server.
    pub fn is_for_cloud(&self) -> bool {
        match self {
            Self::Find(_)
            | Self::Get(_)
            | Self::GetAside(_)
            | Self::AskDrift
            | Self::AskHooks
            | Self::Launch
            | Self::Reboot(..)
            | Self::DeleteMachine(_) => true,
            Self::PatchClaim(_)
            | Self::PatchStatus(_)
            | Self::DeleteClaim(_)
            | Self::GetClaim
            | Self::GetNode(_)
            | Self::FindNode(_)
            | Self::ListPods(_)
            | Self::ListAttachments(_)
            | Self::ListSlices(_)
            | Self::PatchNode(..)
            | Self::DeleteNode(..)
            | Self::Drain { .. } => false,
        }
    }
}

/// A pod to be evicted or deleted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PodRef {
    /// Namespace and name.
    pub key: ObjectKey,
    /// UID: a namesake is not meant.
    pub uid: PodUid,
}

impl PodRef {
    /// Names a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone() }
    }
}

/// Why joiner deletes a NodeClaim by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeleteReason {
    /// The cloud has none of the offerings: what it said.
    InsufficientCapacity(String),
    /// The NodeClass is missing or not ready: which, and why.
    ClassNotReady(String),
    /// Not launched within the launch timeout.
    LaunchTimeout,
    /// Not registered within the registration timeout.
    RegistrationTimeout,
    /// Older than `spec.expireAfter`.
    Expired,
    /// Its Node was deleted.
    NodeDeleted,
    /// Its Node has been broken for too long: which condition says so.
    Unhealthy(Arc<str>),
    /// Its machine is gone, as the auditor or the cloud found.
    MachineGone,
    /// Its machine was to be restarted, and could not be: why.
    RebootRefused(String),
    /// Its machine was restarted, and its Node did not come back in time: how long that was.
    RebootTimeout(String),
}

impl DeleteReason {
    /// Whether there never was a machine.
    pub fn is_of_launch(&self) -> bool {
        matches!(self, Self::InsufficientCapacity(_) | Self::ClassNotReady(_) | Self::LaunchTimeout)
    }

    /// The word in metrics (`karpenter_nodeclaims_disrupted_total{reason}`).
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InsufficientCapacity(_) => "insufficient_capacity",
            Self::ClassNotReady(_) => "nodeclass_not_ready",
            Self::LaunchTimeout => "launch_timeout",
            Self::RegistrationTimeout => "registration_timeout",
            Self::Expired => "expired",
            Self::NodeDeleted => "node_deleted",
            Self::Unhealthy(_) => "unhealthy",
            Self::MachineGone => "garbage_collected",
            Self::RebootRefused(_) => "reboot_refused",
            Self::RebootTimeout(_) => "reboot_timeout",
        }
    }
}
