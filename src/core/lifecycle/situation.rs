//! What a step may look at: the observed objects, and the little that an actor remembers between looks.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{
    Claim, InstanceType, Machine, Node, NodeClass, Pod, PodShape, Pool, Snapshot, Status, find_condition,
};
use crate::core::ids::{ClaimName, NodeName, PodUid, ProviderId};

use super::drain::{Drain, drain};
use super::opening::depends_on_others;
use super::{CloudDrift, Deletion, Reboot, Repair, termination};

/// A pod that has lost more nominations than this gets no further one: kube-scheduler has another opinion, and each costs a request.
const RENOMINATIONS: u32 = 1;

/// Everything about one NodeClaim at one moment.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations, not a state machine")]
pub struct Situation<'a> {
    /// The NodeClaim, at least as new as the actor's own last write.
    pub claim: &'a Claim,
    /// Nodes that carry its provider ID: none, one, or (a fault) several.
    pub nodes: Vec<&'a Arc<Node>>,
    /// Pods bound to those nodes.
    pub pods: Vec<&'a Arc<Pod>>,
    /// Whether a machine is known by its token; else by what the NodeClaim says.
    pub by_token: bool,
    /// While the NodeClaim is being deleted: names of the VolumeAttachments that must go first; nothing when joiner may not look at them.
    pub attachments: Option<Vec<Arc<str>>>,
    /// While the NodeClaim is being deleted: what the drain of its nodes still has to do.
    pub(super) drain: Option<Drain>,
    /// Whether a pod that was planned for this NodeClaim and is not bound yet has neither been nominated to the node nor been tried to be.
    pub unnominated: bool,
    /// Whether kube-scheduler has not looked yet at a pod that is planned, for whichever NodeClaim.
    pub unjudged: bool,
    /// Whether the place of a planned pod depends on other pods.
    pub contested: bool,
    /// Everything else.
    pub snapshot: &'a Snapshot,
    /// Whether and how nodes are repaired; nothing when they are not.
    pub repair: Option<&'a Repair>,
    /// Its NodePool.
    pub pool: Option<&'a Pool>,
    /// Its NodeClass.
    pub class: Option<&'a NodeClass>,
    /// Instance types of its NodeClass, those included that are sold out.
    pub types: Option<&'a [Arc<InstanceType>]>,
    /// How often the cloud is to be asked about drift though nothing has changed in the cluster; nothing means never.
    pub drift_every: Option<Duration>,
    /// When a pod was last bound to its node, ended there, or began to end there, as far as joiner saw it. Whole seconds.
    pub pod_event: Option<Timestamp>,
    /// How the NodeClaim differs from what it was made from, once that was asked.
    pub(super) difference: OnceCell<Option<&'static str>>,
    /// What the actor remembers.
    pub memory: &'a Memory,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Situation<'a> {
    /// Gathers from a snapshot what concerns a NodeClaim.
    pub fn of(claim: &'a Claim, snapshot: &'a Snapshot, memory: &'a Memory, now: Timestamp) -> Self {
        let nodes = nodes(claim, snapshot, memory);
        let pods: Vec<_> = nodes.iter().flat_map(|node| snapshot.pods_on(&node.name)).collect();
        let attachments = claim.deleting.and_then(|_| super::detach::pending(snapshot, &nodes, &pods, now));
        let drain = claim.deleting.map(|_| drain(&pods, termination::deadline(claim), now));
        let planned = snapshot.planned_for.get(&claim.name);
        let unnominated = match nodes.as_slice() {
            [node] => !unnominated(snapshot, claim, &node.name, memory).is_empty(),
            _ => false,
        };
        let mut planned = planned.into_iter().flatten().filter_map(|uid| snapshot.pods.get(uid));
        let contested = planned.any(|pod| depends_on_others(pod));
        let unjudged = !snapshot.unjudged.is_empty();
        let pool = claim.pool().and_then(|pool| snapshot.pools.get(&pool)).map(|pool| &**pool);
        let class = snapshot.classes.get(&claim.class).map(|class| &**class);
        let pod_event = nodes.iter().filter_map(|node| snapshot.pod_events.get(&node.name)).max().copied();
        let (types, drift_every) = (None, None);
        Self {
            claim,
            nodes,
            pods,
            by_token: true,
            attachments,
            drain,
            unnominated,
            unjudged,
            contested,
            snapshot,
            repair: None,
            pool,
            class,
            types,
            drift_every,
            pod_event,
            difference: OnceCell::new(),
            memory,
            now,
        }
    }

    /// Adds what the cloud sells for the NodeClass.
    #[must_use]
    pub fn with_types(mut self, types: Option<&'a [Arc<InstanceType>]>) -> Self {
        self.types = types;
        self
    }

    /// Adds whether and how nodes are repaired.
    #[must_use]
    pub fn with_repair(mut self, repair: Option<&'a Repair>) -> Self {
        self.repair = repair;
        self
    }

    /// Adds how often the cloud is to be asked about drift.
    #[must_use]
    pub fn with_drift_every(mut self, every: Option<Duration>) -> Self {
        self.drift_every = every;
        self
    }

    /// The node, when there is exactly one.
    pub fn node(&self) -> Option<&'a Node> {
        match self.nodes.as_slice() {
            [node] => Some(node),
            _ => None,
        }
    }

    /// The machine's identity, from the object or from what the cloud just said.
    pub fn provider_id(&self) -> Option<&ProviderId> {
        let known = self.memory.machine().map(|machine| &machine.id);
        if self.by_token {
            known.or(self.claim.provider_id.as_ref())
        } else {
            self.claim.provider_id.as_ref().or(known)
        }
    }

    /// Since when a condition has had its status; the creation when it was never judged, or by a clock that was ahead.
    pub fn since(&self, kind: &str) -> Timestamp {
        let since = find_condition(&self.claim.conditions, kind).map(|condition| condition.since);
        since.filter(|since| *since <= self.now).unwrap_or(self.claim.created)
    }

    /// How many pods have still to leave the nodes of a NodeClaim that is being deleted; none before the drain has begun.
    pub fn waiting(&self) -> usize {
        if self.memory.sight == Sight::Gone || !self.has("Drained", Status::Unknown) {
            return 0;
        }
        self.drain.as_ref().map_or(0, |drain| drain.waiting)
    }

    /// Whether a condition has a status.
    pub fn has(&self, kind: &str, status: Status) -> bool {
        find_condition(&self.claim.conditions, kind).is_some_and(|condition| condition.status == status)
    }
}

/// The Nodes of a NodeClaim: those with its provider ID that no other NodeClaim owns, and the one that its status names and that names it as
/// its owner. A provider ID that was edited by hand must not lead to somebody else's Node.
fn nodes<'a>(claim: &Claim, snapshot: &'a Snapshot, memory: &Memory) -> Vec<&'a Arc<Node>> {
    let id = claim.provider_id.as_ref().or_else(|| memory.machine().map(|machine| &machine.id));
    let names = id.and_then(|id| snapshot.nodes_of.get(id)).into_iter().flatten();
    let owned = |node: &Node| node.is_owned_by(&claim.name);
    let free = |node: &Node| {
        let mut owners = node.owner_claims.iter().filter_map(|owner| snapshot.claims.get(&ClaimName::from(&**owner)));
        !owners.any(|owner| owner.uid != claim.uid)
    };
    let by_id = names.filter_map(|name| snapshot.nodes.get(name)).filter(|node| owned(node) || free(node));
    let mut nodes: Vec<_> = by_id.collect();
    let named = claim.node.as_ref().and_then(|name| snapshot.nodes.get(name)).filter(|node| owned(node));
    nodes.extend(named.filter(|named| !nodes.iter().any(|node| node.name == named.name)));
    nodes
}

/// What an actor remembers between looks. Losing it costs a question to the cloud, never a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Since when this actor looks after the NodeClaim.
    pub since: Option<Timestamp>,
    /// What the cloud last said of the machine.
    pub sight: Sight,
    /// Until when a launch that nobody here heard the end of (a lost answer, an earlier life) may still make a machine.
    pub doubt_until: Option<Timestamp>,
    /// When the cloud was last asked whether the machine exists, whatever became of the question.
    pub asked: Option<Timestamp>,
    /// When the cloud last said which machines were launched with the token.
    pub looked: Option<Timestamp>,
    /// Since when it has said that there is none.
    pub absent_since: Option<Timestamp>,
    /// The last failed launch.
    pub launch_failure: Option<LaunchFailure>,
    /// A launch was refused for good: the NodeClaim is to go.
    pub refused: Option<super::DeleteReason>,
    /// The deletion that was last asked for: the next look may not show it yet.
    pub deletion: Option<Deletion>,
    /// Pods that have been nominated to the node, or were tried to be, and how often each had lost a nomination by then. One attempt each, until
    /// kube-scheduler takes it away: a node that stays closed hurts more than a pod that goes elsewhere.
    pub nominated: BTreeMap<PodUid, u32>,
    /// Since when the node waits for the others of its plan to open with it.
    pub assembled: Option<Timestamp>,
    /// The node may open.
    pub may_open: bool,
    /// When the cloud was last asked to take the machine down.
    pub delete_asked: Option<Timestamp>,
    /// `resourceVersion` of the Node that was last patched: until another is seen, the patch is on its way here.
    pub patched_node: Option<Arc<str>>,
    /// What the cloud said of drift.
    pub drift: CloudDrift,
    /// What became of the last order to restart the machine.
    pub reboot: Reboot,
    /// No act before this moment: the last one failed.
    pub hold_until: Option<Timestamp>,
    /// What the last failed act was, and how it failed.
    pub trouble: Option<String>,
    /// Failures in a row.
    pub failures: u32,
}

/// Pods that are planned for a NodeClaim and are to be nominated to its node now, in the order in which they came.
///
/// Of pods that spread, only so many are nominated at a time as the spread allows: when kube-scheduler weighs a node, it counts the pods that are
/// nominated to it as if they were there, and of two pods with `maxSkew: 1` neither would be let in.
pub fn unnominated<'a>(snapshot: &'a Snapshot, claim: &Claim, node: &NodeName, memory: &Memory) -> Vec<&'a Arc<Pod>> {
    let planned = snapshot.planned_for.get(&claim.name).into_iter().flatten();
    let mut pods: Vec<&Arc<Pod>> =
        planned.filter_map(|uid| snapshot.pods.get(uid)).filter(|pod| pod.node.is_none()).collect();
    pods.sort_by_cached_key(|pod| snapshot.arrival(&pod.uid));
    let mut nominated: BTreeMap<&PodShape, usize> = BTreeMap::new();
    let (there, mut open): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.nominated.as_ref() == Some(node));
    for pod in there {
        *nominated.entry(&pod.shape).or_default() += 1;
    }
    open.retain(|pod| {
        let lost = lost_nominations(snapshot, pod);
        let tried = memory.nominated.get(&pod.uid).is_some_and(|then| *then >= lost);
        let before = nominated.entry(&pod.shape).or_default();
        let wanted = !tried && lost <= RENOMINATIONS && *before < at_a_time(&pod.shape);
        // One that was tried shows its nomination soon.
        *before += usize::from(wanted || tried);
        wanted
    });
    open
}

/// How many pods of this shape may be nominated to one node at a time.
fn at_a_time(shape: &PodShape) -> usize {
    let skews = shape.spreads.iter().filter(|spread| spread.required).map(|spread| spread.max_skew);
    skews.min().map_or(usize::MAX, |skew| usize::try_from(skew).unwrap_or(usize::MAX).max(1))
}

/// How often a pod's nomination was taken away.
pub fn lost_nominations(snapshot: &Snapshot, pod: &Pod) -> u32 {
    snapshot.denominated.get(&pod.uid).copied().unwrap_or_default()
}

/// Longest time for which an act is held back after failures, or a launch whose end nobody heard is waited for.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(2);

impl Memory {
    /// Forgets what a clock that was ahead has left: moments that lie further in the future than they can.
    pub fn mend(&mut self, now: Timestamp) {
        let latest = now.saturating_add(LONGEST_WAIT).unwrap_or(Timestamp::MAX);
        let past =
            [&mut self.since, &mut self.asked, &mut self.assembled, &mut self.delete_asked, &mut self.drift.asked];
        for past in past {
            *past = past.map(|then| then.min(now));
        }
        if let Some((_, first)) = &mut self.reboot.first {
            *first = (*first).min(now);
        }
        self.looked = self.looked.filter(|then| *then <= now);
        if let Some(deletion) = &mut self.deletion {
            deletion.mend(now);
        }
        self.hold_until.take_if(|until| *until > latest);
        self.doubt_until = self.doubt_until.map(|until| until.min(latest));
        if let Some(failure) = &mut self.launch_failure
            && failure.retry_at > latest
        {
            failure.retry_at = now;
        }
    }

    /// The machine, as far as it is known to exist.
    pub fn machine(&self) -> Option<&Arc<Machine>> {
        match &self.sight {
            Sight::Present(machine) => Some(machine),
            Sight::Unasked | Sight::Uncertain | Sight::Absent | Sight::Missing | Sight::Gone => None,
        }
    }
}

/// What is known of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sight {
    /// This instance of the actor has not asked.
    #[default]
    Unasked,
    /// A launch went out and no answer came back: there may be a machine.
    Uncertain,
    /// The cloud says that nothing was ever launched with this token.
    Absent,
    /// The cloud knows no machine with the ID in the object. Whether there is one with its mark is another question.
    Missing,
    /// There is a machine.
    Present(Arc<Machine>),
    /// The cloud is certain that the machine is no more.
    Gone,
}

/// A launch that failed, and may be tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFailure {
    /// What the cloud said.
    pub message: String,
    /// Failures in a row.
    pub attempts: u32,
    /// When to try again.
    pub retry_at: Timestamp,
}

#[cfg(test)]
#[path = "situation_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "situation_mended_tests.rs"]
mod mended_tests;
