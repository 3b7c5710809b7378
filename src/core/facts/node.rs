//! Nodes as they were last seen.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClaimUid, NodeName, NodeUid, PoolName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

use super::{Claim, Condition, Status, Taint, condition, finalizers};

/// A NodeClaim among the owners of a Node. One that was made anew under the same name owns nothing of its predecessor's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerClaim {
    /// Its name.
    pub name: ClaimName,
    /// Its UID.
    pub uid: ClaimUid,
}

impl OwnerClaim {
    /// A NodeClaim as an owner.
    pub fn of(claim: &Claim) -> Self {
        Self { name: claim.name.clone(), uid: claim.uid.clone() }
    }

    /// Whether this is it.
    pub fn is(&self, claim: &Claim) -> bool {
        self.uid == claim.uid && self.name == claim.name
    }
}

/// A Node object.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// `metadata.name`.
    pub name: NodeName,
    /// `metadata.uid`.
    pub uid: NodeUid,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Timestamp>,
    /// `metadata.resourceVersion`, for writes that must not overwrite somebody else's.
    pub version: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations` in Karpenter's domains.
    pub annotations: Labels,
    /// `metadata.finalizers`, all of them.
    pub finalizers: Vec<Arc<str>>,
    /// The NodeClaims in `metadata.ownerReferences`.
    pub owner_claims: Vec<OwnerClaim>,
    /// `spec.providerID`; nothing until somebody has set it.
    pub provider_id: Option<ProviderId>,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`: cordoned.
    pub cordoned: bool,
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`.
    pub allocatable: Resources,
    /// `status.nodeInfo.bootID`: another one after each boot; nothing when the kubelet has not told it.
    pub boot_id: Option<Arc<str>>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
}

impl Node {
    /// The NodePool named by its label.
    pub fn pool(&self) -> Option<PoolName> {
        self.labels.get(labels::NODEPOOL).map(|name| PoolName::from(Arc::clone(name)))
    }

    /// Whether its Ready condition is True.
    pub fn is_ready(&self) -> bool {
        condition::find(&self.conditions, "Ready").is_some_and(|ready| ready.status == Status::True)
    }

    /// Whether a NodeClaim is among its owners.
    pub fn is_owned_by(&self, claim: &Claim) -> bool {
        self.owner_claims.iter().any(|owner| owner.is(claim))
    }

    /// Whether its NodeClaim has been matched with it.
    pub fn is_registered(&self) -> bool {
        self.labels.get(labels::REGISTERED).is_some_and(|value| &**value == "true")
    }

    /// Whether it has been registered before, whatever somebody has taken off it since.
    pub fn was_registered(&self) -> bool {
        self.has_finalizer() || !self.owner_claims.is_empty() || self.is_registered() || self.is_initialized()
    }

    /// Whether it stays until joiner lets it go.
    pub fn has_finalizer(&self) -> bool {
        finalizers::is_held(&self.finalizers)
    }

    /// Whether it says until when its pods have to leave, because its machine belongs to no NodeClaim.
    pub fn is_being_evacuated(&self) -> bool {
        self.annotations.contains_key(labels::ORPHAN_TERMINATION_TIMESTAMP)
    }

    /// Whether it was once ready for its pods.
    pub fn is_initialized(&self) -> bool {
        self.labels.get(labels::INITIALIZED).is_some_and(|value| &**value == "true")
    }
}
