//! What a step may look at: the observed objects, and the little that an actor remembers between looks.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{
    Claim, DeviceSlice, InstanceType, Machine, Node, NodeClass, Pod, Pool, Snapshot, Status, VolumeAttachment,
    find_condition,
};
use crate::core::ids::{ClaimUid, NodeName, ProviderId};
use crate::core::nomination;
use crate::core::time::later;

use super::doubt::DOUBT;
use super::drain::{Drain, drain};
use super::{
    CloudDrift, Deletion, Denials, Hold, Hooks, LAUNCH_TIMEOUT, Reboot, Repair, devices, launch, step, termination,
};

/// Everything about one NodeClaim at one moment.
#[derive(Clone, Debug)]
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
    /// Whether pods that wait are planned for this NodeClaim.
    pub expected: bool,
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
    /// For how long the cloud may say that there is no machine although there is one.
    pub may_deny_for: Duration,
    /// How long a launch may take before the NodeClaim is given up.
    pub launch_timeout: Duration,
    /// Whether the cloud has something to say before a Node opens.
    pub hooks: bool,
    /// Drivers that publish the Node's devices before it is initialized; none where nobody waits for them.
    pub drivers: Vec<&'a str>,
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
        Self::gather(claim, snapshot, memory, now, true)
    }

    /// The same, but what the NodeClaim says of its machine counts more than the machine's mark, and than the owner of the machine's Node: only to prove
    /// that the simulator sees what that costs.
    pub fn without_tokens(claim: &'a Claim, snapshot: &'a Snapshot, memory: &'a Memory, now: Timestamp) -> Self {
        Self::gather(claim, snapshot, memory, now, false)
    }

    fn gather(claim: &'a Claim, snapshot: &'a Snapshot, memory: &'a Memory, now: Timestamp, by_token: bool) -> Self {
        let marked = memory.marked_as(&claim.uid).filter(|_| by_token);
        let known = memory.machine().map(|machine| &machine.id);
        let id = marked.map(|machine| &machine.id).or(claim.provider_id.as_ref()).or(known);
        let nodes = nodes(claim, snapshot, id, marked.is_some() || !by_token);
        let pods: Vec<_> = nodes.iter().flat_map(|node| snapshot.pods_on(&node.name)).collect();
        let attachments =
            claim.deleting.and_then(|_| super::detach::pending(snapshot, &nodes, &memory.pods_there(&pods, now), now));
        let drain = claim.deleting.map(|_| drain(&pods, termination::deadline(claim), now));
        let expected = nomination::is_expected(snapshot, &claim.name);
        let pool = claim.pool().and_then(|pool| snapshot.pools.get(&pool)).map(|pool| &**pool);
        let class = snapshot.classes.get(&claim.class).map(|class| &**class);
        let pod_event = nodes.iter().filter_map(|node| snapshot.pod_events.get(&node.name)).max().copied();
        let (types, drift_every) = (None, None);
        Self {
            claim,
            nodes,
            pods,
            by_token,
            attachments,
            drain,
            expected,
            snapshot,
            repair: None,
            pool,
            class,
            types,
            may_deny_for: Duration::ZERO,
            launch_timeout: LAUNCH_TIMEOUT,
            hooks: false,
            drivers: Vec::new(),
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

    /// Adds for how long the cloud may be wrong about a machine that it does not show.
    #[must_use]
    pub fn with_denial(mut self, may_deny_for: Duration) -> Self {
        self.may_deny_for = may_deny_for;
        self
    }

    /// Adds how long the cloud takes for a launch at most.
    #[must_use]
    pub fn with_launch_timeout(mut self, timeout: Duration) -> Self {
        self.launch_timeout = timeout;
        self
    }

    /// Adds whether the cloud has something to say before a Node opens.
    #[must_use]
    pub fn with_hooks(mut self, hooks: bool) -> Self {
        self.hooks = hooks;
        self
    }

    /// Adds whether a Node waits for the drivers that its NodeClaim names.
    #[must_use]
    pub fn with_devices(mut self, waits: bool) -> Self {
        self.drivers = if waits { devices::drivers(self.claim) } else { Vec::new() };
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

    /// Whether a Node was registered, though somebody may have taken its label or its finalizer away.
    pub fn is_ours(&self, node: &Node) -> bool {
        node.is_owned_by(self.claim) || node.is_registered() || node.has_finalizer()
    }

    /// The Nodes that were registered.
    pub(super) fn own_nodes(&self) -> impl Iterator<Item = &'a Arc<Node>> {
        self.nodes.iter().copied().filter(|node| self.is_ours(node))
    }

    /// Since when a condition has had its status; the creation when it was never judged, or by a clock that was ahead.
    pub fn since(&self, kind: &str) -> Timestamp {
        let since = find_condition(&self.claim.conditions, kind).map(|condition| condition.since);
        since.filter(|since| *since <= self.now).unwrap_or(self.claim.created)
    }

    /// The NodePool that owns the NodeClaim, whatever its label says.
    pub(super) fn owner(&self) -> Option<&'a Pool> {
        let owner = self.claim.owner_pool.as_ref()?;
        self.snapshot.pools.values().find(|pool| pool.uid == *owner).map(|pool| &**pool)
    }

    /// How many pods have still to leave the nodes of a NodeClaim that is being deleted; none before the drain has begun.
    pub fn waiting(&self) -> usize {
        if self.memory.sight == Sight::Gone || !self.has("Drained", Status::Unknown) {
            return 0;
        }
        self.drain.as_ref().map_or(0, |drain| drain.waiting)
    }

    /// Whether the Node that is seen is the one that was changed last: what it is now is still to be seen.
    pub fn has_patched(&self, node: &Node) -> bool {
        self.memory.patched_node.as_ref() == Some(&node.version)
    }

    /// Whether a condition has a status.
    pub fn has(&self, kind: &str, status: Status) -> bool {
        find_condition(&self.claim.conditions, kind).is_some_and(|condition| condition.status == status)
    }
}

/// The Nodes of a NodeClaim: those with its provider ID that no other NodeClaim owns, and those that name it as their owner. A provider ID that was
/// edited by hand must not lead to somebody else's Node. Where the machine is `marked` as this NodeClaim's, so are its Nodes, whoever has taken them,
/// and no others.
pub(super) fn nodes<'a>(
    claim: &Claim,
    snapshot: &'a Snapshot,
    id: Option<&ProviderId>,
    marked: bool,
) -> Vec<&'a Arc<Node>> {
    let owned = |node: &Node| node.is_owned_by(claim);
    let free = |node: &Node| snapshot.owners_of(node).all(|owner| owner.uid == claim.uid);
    let by_id = id.into_iter().flat_map(|id| snapshot.nodes_with(id));
    let by_id = by_id.filter(|node| marked || owned(node) || free(node));
    let mut nodes: Vec<_> = by_id.collect();
    // Whoever edits the status of a NodeClaim takes neither its machine's Node off it nor the pods there. Where the mark says which machine is its own,
    // a Node of another is not, though this NodeClaim took it when somebody had written that one's ID into it.
    let of_another = |node: &Node| marked && node.provider_id.as_ref().is_some_and(|theirs| Some(theirs) != id);
    for node in snapshot.nodes_owned_by(claim).filter(|node| !of_another(node)) {
        if !nodes.iter().any(|known| known.name == node.name) {
            nodes.push(node);
        }
    }
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
    /// Whether a launch may have begun while that one was under way, so that there may be two machines: this actor's, or that of one before it.
    pub launched_beside: bool,
    /// When the cloud was last asked whether the machine exists, whatever became of the question.
    pub asked: Option<Timestamp>,
    /// It has said something to that, or failed to, at least once, or has taken its time.
    pub heard: bool,
    /// Provider IDs about which the cloud was asked, and under which it has no machine with this NodeClaim's mark.
    pub tried: BTreeSet<ProviderId>,
    /// The provider ID under which it last showed a machine with another NodeClaim's mark.
    pub anothers: Option<ProviderId>,
    /// When the cloud last said which machines were launched with the token.
    pub looked: Option<Timestamp>,
    /// Since when it has said that there is none.
    pub absent_since: Option<Timestamp>,
    /// How it has said so since it last showed the machine, by every name that the machine has.
    pub denials: Denials,
    /// The last failed launch.
    pub launch_failure: Option<LaunchFailure>,
    /// A launch was refused for good: the NodeClaim is to go.
    pub refused: Option<super::DeleteReason>,
    /// The deletion that was last asked for: the next look may not show it yet.
    pub deletion: Option<Deletion>,
    /// The node may open: its pods are nominated.
    pub may_open: bool,
    /// When the cloud was last asked to take the machine down.
    pub delete_asked: Option<Timestamp>,
    /// When the cloud last answered the order to take the machine down with "no such machine".
    pub order_denied: Option<Timestamp>,
    /// `resourceVersion` of the NodeClaim that somebody is known to have changed since: it is neither written nor deleted before a newer one is seen.
    pub outdated: Option<Arc<str>>,
    /// The Node of which the API server itself has said that there is none.
    pub gone_node: Option<NodeName>,
    /// When the API server itself was last asked which Node carries which provider ID, and what it said.
    pub roll: Option<(Timestamp, ProviderId, Option<Arc<Node>>)>,
    /// When the API server itself was last asked which pods are on the nodes to be emptied, and those that it named.
    pub listed_pods: Option<(Timestamp, Vec<Arc<Pod>>)>,
    /// When the API server itself was last asked which volumes are attached to the nodes to be emptied, and those that it named.
    pub attached: Option<(Timestamp, Vec<Arc<VolumeAttachment>>)>,
    /// `resourceVersion` of the Node that was last patched: until another is seen, the patch is on its way here.
    pub patched_node: Option<Arc<str>>,
    /// When the cloud was last asked what it has still to do before the Node opens, and what it said.
    pub hooks: Option<(Timestamp, Hooks)>,
    /// When the API server itself was last asked which ResourceSlices the Node has, and those that it named.
    pub slices: Option<(Timestamp, Vec<Arc<DeviceSlice>>)>,
    /// What the cloud said of drift.
    pub drift: CloudDrift,
    /// What became of the last order to restart the machine.
    pub reboot: Reboot,
    /// How the API server has failed of late.
    pub cluster: Hold,
    /// How the cloud has, but for launches.
    pub cloud: Hold,
}

/// Longest time for which an act is held back after failures, or a launch whose end nobody heard is waited for.
const LONGEST_WAIT: Duration = DOUBT;

impl Memory {
    /// What whoever begins to look after a NodeClaim knows of it: nothing. A predecessor may have died with a launch in its hands.
    pub fn born(now: Timestamp) -> Self {
        Self { since: Some(now), doubt_until: Some(later(now, DOUBT)), launched_beside: true, ..Self::default() }
    }

    /// The finalizer was put on the NodeClaim. Nobody launches before it is there, so that nobody has: unless somebody had taken it off.
    pub fn finalizer_added(&mut self, claim: &Claim) {
        let has_launched = self.sight != Sight::Unasked || self.launch_failure.is_some();
        if !has_launched && !launch::was_launched(claim) {
            (self.doubt_until, self.launched_beside) = (None, false);
        }
    }

    /// A launch begins. What the cloud said before is outdated from now on: whatever comes of this, before the NodeClaim goes it is asked again. And
    /// another, the end of which nobody heard, may be under way beside it.
    pub fn launching(&mut self) {
        self.launched_beside |= self.doubt_until.is_some();
        if self.sight == Sight::Absent {
            self.sight = Sight::Unasked;
        }
    }

    /// A launch went out, and no answer came back.
    pub fn unanswered(&mut self, now: Timestamp) {
        self.sight = Sight::Uncertain;
        self.doubt_until = Some(later(now, DOUBT));
    }

    /// The cloud has launched the machine, or shown it: what it said before of a machine that it does not know counts no more.
    pub fn shown(&mut self, machine: Machine) {
        self.absent_since = None;
        self.undenied();
        self.tried.remove(&machine.id);
        self.anothers.take_if(|id| *id == machine.id);
        self.sight = Sight::Present(Arc::new(machine));
    }

    /// The cloud has shown the machine by one of its names: what it said before counts no more.
    pub fn undenied(&mut self) {
        self.denials = Denials::default();
    }

    /// The pods on the nodes to be emptied that are still there: as the watch shows them, which may be late, but for those that the API server itself knows
    /// no more, while its word is good.
    pub(super) fn pods_there<'a>(&self, watched: &[&'a Arc<Pod>], now: Timestamp) -> Vec<&'a Arc<Pod>> {
        let listed = self.listed_pods.as_ref().filter(|(asked, _)| now < step::after(*asked, termination::GOOD_FOR));
        let is_there = |pod: &Pod| listed.is_none_or(|(_, pods)| pods.iter().any(|listed| listed.uid == pod.uid));
        watched.iter().copied().filter(|pod| is_there(pod)).collect()
    }

    /// Forgets what a clock that was ahead has left: moments that lie further in the future than they can.
    pub fn mend(&mut self, now: Timestamp) {
        let latest = later(now, LONGEST_WAIT);
        let Self { since, asked, delete_asked, order_denied, drift, .. } = self;
        let past = [since, asked, delete_asked, order_denied, &mut drift.asked];
        for past in past {
            *past = past.map(|then| then.min(now));
        }
        if let Some((_, first)) = &mut self.reboot.first {
            *first = (*first).min(now);
        }
        self.looked = self.looked.filter(|then| *then <= now);
        self.roll.take_if(|(then, ..)| *then > now);
        self.listed_pods.take_if(|(then, _)| *then > now);
        self.attached.take_if(|(then, _)| *then > now);
        self.slices.take_if(|(then, _)| *then > now);
        if let Some(deletion) = &mut self.deletion {
            deletion.mend(now);
        }
        for hold in [&mut self.cluster, &mut self.cloud] {
            hold.until.take_if(|until| *until > latest);
        }
        self.doubt_until = self.doubt_until.map(|until| until.min(latest));
        if let Some(failure) = &mut self.launch_failure
            && failure.retry_at > latest
        {
            failure.retry_at = now;
        }
    }

    /// How the one that an act is for has failed of late: the cloud, or the API server.
    pub fn hold(&self, for_cloud: bool) -> &Hold {
        if for_cloud { &self.cloud } else { &self.cluster }
    }

    /// The same, to be changed.
    pub fn hold_mut(&mut self, for_cloud: bool) -> &mut Hold {
        if for_cloud { &mut self.cloud } else { &mut self.cluster }
    }

    /// The machine, as far as it is known to exist.
    pub fn machine(&self) -> Option<&Arc<Machine>> {
        match &self.sight {
            Sight::Present(machine) => Some(machine),
            Sight::Unasked | Sight::Uncertain | Sight::Absent | Sight::Missing | Sight::Gone => None,
        }
    }

    /// Whether the cloud was asked for the machine with an ID and has shown none that may be this NodeClaim's: there is none, or it carries another's mark.
    pub(super) fn is_disproved(&self, id: &ProviderId) -> bool {
        let unmarked = |machine: &Arc<Machine>| machine.id == *id && machine.token.is_none();
        self.tried.contains(id) && !self.machine().is_some_and(unmarked)
    }

    /// The machine, where it carries the mark of this NodeClaim.
    pub(super) fn marked_as(&self, claim: &ClaimUid) -> Option<&Arc<Machine>> {
        self.machine().filter(|machine| machine.token.as_ref() == Some(claim))
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
    /// The kind of failure in one word.
    pub cause: &'static str,
    /// What the cloud said.
    pub message: String,
    /// Failures in a row.
    pub attempts: u32,
    /// When to try again.
    pub retry_at: Timestamp,
}

#[cfg(test)]
#[path = "situation_mended_tests.rs"]
mod mended_tests;
