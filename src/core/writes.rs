//! What joiner writes, as values: small patches that name only what changes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{BufferStatus, Claim, Condition, Node, OwnerClaim, Taint, finalizers};
use crate::core::ids::{
    ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, PoolUid, ProviderId,
};
use crate::core::labels::{Labels, TERMINATION_FINALIZER, is_of_karpenter};
use crate::core::resources::{ResourceName, Resources};

/// What to do about a change of a Node that is granted and not kept.
pub const EXEMPT_NODES: &str = "exempt Nodes from the mutating admission policy or webhook that takes this back";

/// What is to be said of a change that was granted and is not there.
pub fn not_kept(missing: &[String], remedy: &str) -> String {
    format!("it was changed, and does not keep {}: {remedy}", missing.join(", "))
}

/// Labels or annotations that were to be set and are not.
fn unset<'a>(
    what: &str,
    wanted: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    there: &Labels,
) -> Vec<String> {
    let unset = wanted.into_iter().filter(|(key, value)| there.get(&**key) != Some(*value));
    unset.map(|(key, _)| format!("{what} {key}")).collect()
}

/// Labels or annotations that were to be taken off and are there.
fn still_set(what: &str, keys: &[Arc<str>], there: &Labels) -> Vec<String> {
    keys.iter().filter(|key| there.contains_key(*key)).map(|key| format!("the removal of {what} {key}")).collect()
}

/// Finalizers that were to be there and are not, and joiner's where it was to be taken off. What others add meanwhile is theirs.
fn finalizers_missing(wanted: &[Arc<str>], there: &[Arc<str>]) -> Vec<String> {
    let unset = wanted.iter().filter(|finalizer| !there.contains(finalizer));
    let mut missing: Vec<String> = unset.map(|finalizer| format!("finalizer {finalizer}")).collect();
    if !finalizers::is_held(wanted) && finalizers::is_held(there) {
        missing.push(format!("the removal of finalizer {TERMINATION_FINALIZER}"));
    }
    missing
}

/// A change of a NodeClaim's metadata.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClaimPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// Labels to set.
    pub labels: Labels,
    /// Annotations to set.
    pub annotations: Labels,
    /// Keys of annotations to take off.
    pub without_annotations: Vec<Arc<str>>,
    /// All finalizers that are to remain, when they change; needs `version`.
    pub finalizers: Option<Vec<Arc<str>>>,
}

impl ClaimPatch {
    /// What of this change a NodeClaim does not show that was answered to it: a mutating admission policy has taken it back.
    pub fn missing_from(&self, claim: &Claim) -> Vec<String> {
        let mut missing = unset("label", &self.labels, &claim.labels);
        missing.extend(unset("annotation", &self.annotations, &claim.annotations));
        missing.extend(still_set("annotation", &self.without_annotations, &claim.annotations));
        missing.extend(self.finalizers.iter().flat_map(|wanted| finalizers_missing(wanted, &claim.finalizers)));
        missing
    }
}

/// A change of a NodeClaim's status. What is nothing stays as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClaimStatusPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// `status.providerID`.
    pub provider_id: Option<ProviderId>,
    /// `status.nodeName`.
    pub node: Option<NodeName>,
    /// `status.imageID`.
    pub image: Option<Arc<str>>,
    /// `status.capacity`.
    pub capacity: Option<Resources>,
    /// `status.allocatable`.
    pub allocatable: Option<Resources>,
    /// `status.lastPodEventTime`.
    pub last_pod_event: Option<Timestamp>,
    /// All of `status.conditions`.
    pub conditions: Option<Vec<Condition>>,
}

impl ClaimStatusPatch {
    /// What of this change a NodeClaim does not show that was answered to it: its definition lacks the field, or a mutating admission policy has taken
    /// it back.
    pub fn missing_from(&self, claim: &Claim) -> Vec<String> {
        let fields = [
            ("status.providerID", self.provider_id.is_some() && self.provider_id != claim.provider_id),
            ("status.nodeName", self.node.is_some() && self.node != claim.node),
            ("status.imageID", self.image.is_some() && self.image != claim.image),
            ("status.lastPodEventTime", self.last_pod_event.is_some() && claim.last_pod_event.is_none()),
        ];
        let fields = fields.into_iter().filter(|(_, is_missing)| *is_missing).map(|(field, _)| field.to_owned());
        let is_missing = |wanted: &&Condition| {
            !claim.conditions.iter().any(|there| there.kind == wanted.kind && there.status == wanted.status)
        };
        let conditions = self.conditions.iter().flatten().filter(is_missing);
        fields.chain(conditions.map(|condition| format!("condition {}", condition.kind))).collect()
    }
}

/// A change of a Node's metadata and taints.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodePatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// Labels to set.
    pub labels: Labels,
    /// Keys of labels to take off.
    pub without_labels: Vec<Arc<str>>,
    /// Annotations to set.
    pub annotations: Labels,
    /// Keys of annotations to take off.
    pub without_annotations: Vec<Arc<str>>,
    /// All taints, when they change; needs `version`.
    pub taints: Option<Vec<Taint>>,
    /// All finalizers that are to remain, when they change; needs `version`.
    pub finalizers: Option<Vec<Arc<str>>>,
    /// The NodeClaim to add as an owner (`blockOwnerDeletion`, not the controller); needs `version`.
    pub owner: Option<OwnerClaim>,
    /// NodeClaims that are no owners any more, along with a new `owner`.
    pub disowned: Vec<OwnerClaim>,
}

impl NodePatch {
    /// What of this change a Node does not show that was answered to it: a mutating admission policy has taken it back.
    pub fn missing_from(&self, node: &Node) -> Vec<String> {
        let mut missing = unset("label", &self.labels, &node.labels);
        // What is known of a Node has no others.
        let own = self.annotations.iter().filter(|(key, _)| is_of_karpenter(key));
        missing.extend(unset("annotation", own, &node.annotations));
        missing.extend(still_set("label", &self.without_labels, &node.labels));
        missing.extend(still_set("annotation", &self.without_annotations, &node.annotations));
        if let Some(taints) = &self.taints {
            let has =
                |all: &[Taint], taint: &Taint| all.iter().any(|one| one.key == taint.key && one.effect == taint.effect);
            let unset = taints.iter().filter(|taint| !has(&node.taints, taint));
            missing.extend(unset.map(|taint| format!("taint {}", taint.key)));
            let left = node.taints.iter().filter(|taint| !has(taints, taint));
            missing.extend(left.map(|taint| format!("the removal of taint {}", taint.key)));
        }
        missing.extend(self.finalizers.iter().flat_map(|wanted| finalizers_missing(wanted, &node.finalizers)));
        let owner = self.owner.iter().filter(|owner| !node.owner_claims.contains(owner));
        missing.extend(owner.map(|owner| format!("owner NodeClaim {}", owner.name)));
        missing
    }

    /// A change of a Node as it was seen, for `..`: refused when it is another by now, and the version says until when it is not yet seen.
    pub fn of(node: &Node) -> Self {
        Self { version: Some(Arc::clone(&node.version)), ..Self::default() }
    }
}

/// A change of a NodePool's annotations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PoolPatch {
    /// Annotations to set.
    pub annotations: Labels,
}

/// A change of a NodePool's status. What is nothing stays as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PoolStatusPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// `status.nodes`.
    pub nodes: Option<i64>,
    /// What of `status.resources`, `nodes` included, is to be there.
    pub resources: Option<Resources>,
    /// What of `status.resources` goes: the API server keeps what a change does not name.
    pub without_resources: Vec<ResourceName>,
    /// `status.nodeClassObservedGeneration`.
    pub class_generation: Option<i64>,
    /// All of `status.conditions`.
    pub conditions: Option<Vec<Condition>>,
}

impl PoolStatusPatch {
    /// What `status.resources` is afterwards.
    pub fn resources_after(&self, before: &Resources) -> Resources {
        let named = self.resources.iter().flat_map(Resources::iter);
        let stays = before.iter().filter(|(name, _)| !self.without_resources.contains(name));
        stays.chain(named).fold(Resources::new(), |all, (name, amount)| all.with(name.clone(), amount))
    }
}

/// A change of a NodeClass' metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Arc<str>,
    /// All finalizers that are to remain.
    pub finalizers: Vec<Arc<str>>,
}

/// A change of a NodeClass' status. What is nothing stays as it is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClassStatusPatch {
    /// All of `status.conditions`.
    pub conditions: Option<Vec<Condition>>,
    /// Other fields of the status as a JSON object, each replaced as a whole; what is in them is between the cloud and its NodeClasses.
    pub details: Option<Arc<str>>,
}

/// A change of a NodeOverlay's status.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OverlayStatusPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// All of `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// A change of a CapacityBuffer's status: all of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BufferStatusPatch {
    /// Refuse when the object has another `resourceVersion` by now.
    pub version: Option<Arc<str>>,
    /// All but the conditions; what is nothing is removed.
    pub status: BufferStatus,
    /// All of `status.conditions`.
    pub conditions: Vec<Condition>,
}

/// The object that an Event is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Regarding {
    /// A pod.
    Pod(ObjectKey, PodUid),
    /// A node.
    Node(NodeName, NodeUid),
    /// A NodeClaim.
    Claim(ClaimName, ClaimUid),
    /// A NodePool.
    Pool(PoolName, PoolUid),
    /// A NodeClass, with its UID.
    Class(ClassRef, Arc<str>),
    /// joiner's lease, with its UID.
    Lease(ObjectKey, Arc<str>),
}

/// An Event to write.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Announcement {
    /// What it is about.
    pub regarding: Regarding,
    /// Whether people should worry (type Warning instead of Normal).
    pub warning: bool,
    /// One word, as Karpenter uses it.
    pub reason: &'static str,
    /// One sentence, at most 1,024 characters.
    pub message: String,
}

/// The leader lease after an attempt to take it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Who holds it.
    pub holder: String,
    /// For how long from now, if it is not renewed.
    pub remaining: Duration,
    /// The object itself, for Events about it.
    pub object: Regarding,
    /// What a person has written into its annotation for the auditor.
    pub audit: Option<Arc<str>>,
    /// What the auditor has written down there; see [`crate::core::record`].
    pub record: Option<Arc<str>>,
}
