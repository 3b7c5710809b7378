//! NodeClaims: as they were last seen, and as they are about to be written.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, PoolName, PoolUid, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirement;
use crate::core::resources::Resources;

use super::{Condition, Status, Taint, condition, finalizers};

/// A NodeClaim object.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// `metadata.name`.
    pub name: ClaimName,
    /// `metadata.uid`.
    pub uid: ClaimUid,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.resourceVersion`, for writes that must not overwrite somebody else's.
    pub version: Arc<str>,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Timestamp>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// `metadata.finalizers`, all of them.
    pub finalizers: Vec<Arc<str>>,
    /// UID of the NodePool in `metadata.ownerReferences`.
    pub owner_pool: Option<PoolUid>,
    /// `spec.requirements`.
    pub requirements: Vec<Requirement>,
    /// `spec.resources.requests`: what its pods and daemons need at least.
    pub requests: Resources,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.startupTaints`.
    pub startup_taints: Vec<Taint>,
    /// `spec.nodeClassRef`.
    pub class: ClassRef,
    /// `spec.terminationGracePeriod`.
    pub termination_grace: Option<Duration>,
    /// `spec.expireAfter`; nothing means never.
    pub expire_after: Option<Duration>,
    /// `status.providerID`.
    pub provider_id: Option<ProviderId>,
    /// `status.nodeName`.
    pub node: Option<NodeName>,
    /// `status.imageID`.
    pub image: Option<Arc<str>>,
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`.
    pub allocatable: Resources,
    /// `status.lastPodEventTime`.
    pub last_pod_event: Option<Timestamp>,
    /// `status.conditions`.
    pub conditions: Vec<Condition>,
    /// What of the object could not be understood; its actor keeps its hands off.
    pub broken: Option<Broken>,
}

/// What of a NodeClaim could not be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Field and remedy, in one sentence.
    pub problem: Arc<str>,
    /// Whether `status.conditions` is among it: then `conditions` is not all that is there, and must not be written.
    pub conditions: bool,
}

impl Claim {
    /// The NodePool named by its label; stand-alone NodeClaims have none.
    pub fn pool(&self) -> Option<PoolName> {
        self.labels.get(labels::NODEPOOL).map(|name| PoolName::from(Arc::clone(name)))
    }

    /// Whether a condition is True.
    pub fn is(&self, kind: &str) -> bool {
        condition::find(&self.conditions, kind).is_some_and(|condition| condition.status == Status::True)
    }

    /// Whether its node is going: pods there will have to go elsewhere, and nobody else should come.
    pub fn is_leaving(&self) -> bool {
        self.deleting.is_some() || self.is("InstanceTerminating")
    }

    /// Whether somebody has asked for its machine to be restarted, and that is not over: its pods leave and come back to the same node.
    pub fn is_rebooting(&self) -> bool {
        self.is("Rebooting")
    }

    /// Whether a taint of its node goes away by itself while that starts.
    pub fn goes_at_start(&self, taint: &Taint) -> bool {
        taint.is_ephemeral() || self.startup_taints.iter().any(|own| own.matches(taint))
    }

    /// Whether joiner's finalizer is still on it.
    pub fn has_finalizer(&self) -> bool {
        finalizers::is_held(&self.finalizers)
    }
}

/// A NodeClaim that is complete but not yet written: whoever writes it has no choice left. Those of one plan share what they have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimDraft {
    /// `metadata.name`, chosen before the write, so that writing it twice makes one object.
    pub name: ClaimName,
    /// NodePool that it is made from.
    pub pool: PoolName,
    /// UID of that NodePool, for the owner reference.
    pub pool_uid: PoolUid,
    /// `metadata.labels`.
    pub labels: Arc<Labels>,
    /// `metadata.annotations`.
    pub annotations: Arc<Labels>,
    /// `spec.requirements`.
    pub requirements: Arc<[Requirement]>,
    /// `spec.resources.requests`.
    pub requests: Resources,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.startupTaints`.
    pub startup_taints: Vec<Taint>,
    /// `spec.nodeClassRef`.
    pub class: ClassRef,
    /// `spec.terminationGracePeriod`.
    pub termination_grace: Option<Duration>,
    /// `spec.expireAfter`; nothing means never.
    pub expire_after: Option<Duration>,
}

impl ClaimDraft {
    /// The object that writing the draft makes, as an API server would show it.
    pub fn claim(&self, uid: ClaimUid, version: Arc<str>, created: Timestamp) -> Claim {
        Claim {
            name: self.name.clone(),
            uid,
            generation: 1,
            version,
            created,
            deleting: None,
            labels: (*self.labels).clone(),
            annotations: (*self.annotations).clone(),
            finalizers: Vec::new(),
            owner_pool: Some(self.pool_uid.clone()),
            requirements: self.requirements.to_vec(),
            requests: self.requests.clone(),
            taints: self.taints.clone(),
            startup_taints: self.startup_taints.clone(),
            class: self.class.clone(),
            termination_grace: self.termination_grace,
            expire_after: self.expire_after,
            provider_id: None,
            node: None,
            image: None,
            capacity: Resources::new(),
            allocatable: Resources::new(),
            last_pod_event: None,
            conditions: Vec::new(),
            broken: None,
        }
    }
}
