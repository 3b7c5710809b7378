//! The watch that is kept while a history is played.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::journal::Journal;
use super::reboots::Reboots;
use super::violation::{Invariant, Violation};
use crate::clouds::simulated::{Change, Simulated};
use crate::core::facts::{Claim, Fact, Node, Pod};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, PodUid, ProviderId};
use crate::core::labels;
use crate::core::lifecycle::is_waited_for;
use crate::sim::store::Store;
use crate::sim::{Clock, SimCluster};

/// How long a machine may run without a NodeClaim while things go wrong all around: the auditor needs three looks that agree over five
/// minutes, each of which a fault can spoil, and takes a share of all machines at a time.
const ORPHANED_AT_MOST: Duration = Duration::from_hours(2);
/// A volume that was attached no longer ago may not be known yet: the watch can be late.
const JUST_NOW: Duration = Duration::from_mins(5);
/// Earlier than this after its NodeClaim has gone no machine has an end in sight: so long the auditor's evidence takes.
const EVIDENCE: Duration = Duration::from_mins(5);
/// How often it is looked whether a bound has passed.
const LOOK: Duration = Duration::from_mins(10);
/// Most violations that are kept of one history: the first tell the story.
const MOST: usize = 20;

/// The watch on everything that must hold. Clones are handles to the same one.
#[derive(Clone)]
pub struct Invariants {
    pub(super) cluster: SimCluster,
    pub(super) cloud: Simulated,
    pub(super) clock: Clock,
    pub(super) journal: Journal,
    start: Instant,
    book: Arc<Mutex<Book>>,
    pub(super) reboots: Arc<Mutex<Reboots>>,
}

#[derive(Default)]
struct Book {
    machines: BTreeMap<ProviderId, Known>,
    by_claim: BTreeMap<ClaimName, BTreeSet<ProviderId>>,
    claims: BTreeMap<ClaimName, Arc<Claim>>,
    /// NodeClaims whose finalizers somebody else took off.
    stripped: BTreeSet<ClaimName>,
    /// Machines without a NodeClaim, and since when.
    unclaimed: BTreeMap<ProviderId, Instant>,
    violations: Vec<Violation>,
    peak: usize,
}

/// A machine that runs or is going.
struct Known {
    token: Option<ClaimUid>,
    claim: Option<ClaimName>,
    gone_at: Option<Instant>,
}

impl Known {
    fn is_going(&self) -> bool {
        self.gone_at.is_some()
    }

    fn is_gone(&self) -> bool {
        self.gone_at.is_some_and(|at| at <= Instant::now())
    }
}

impl Invariants {
    /// Begins to watch a world.
    ///
    /// `clock` is joiner's own: a deadline has come when it says so.
    pub fn new(cluster: SimCluster, cloud: Simulated, clock: Clock, journal: Journal) -> Self {
        Self { cluster, cloud, clock, journal, start: Instant::now(), book: Arc::default(), reboots: Arc::default() }
    }

    /// What was broken so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.book().violations.clone()
    }

    /// Most machines that ran at a time.
    pub fn peak(&self) -> usize {
        self.book().peak
    }

    /// Notes that a promise was broken; once for the same objects.
    pub fn broken(&self, invariant: Invariant, objects: Vec<String>, what: String) {
        let at = self.start.elapsed();
        self.journal
            .note(objects.first().map_or("", String::as_str), || format!("VIOLATION {}: {what}", invariant.as_str()));
        let mut book = self.book();
        let known = book.violations.iter().any(|known| known.invariant == invariant && known.objects == objects);
        if !known && book.violations.len() < MOST {
            book.violations.push(Violation { invariant, at, objects, what });
        }
    }

    /// The cluster that is watched.
    pub(in crate::sim) fn cluster(&self) -> &SimCluster {
        &self.cluster
    }

    /// A user took the finalizers off a NodeClaim: what follows is not joiner's doing.
    pub fn finalizers_stripped(&self, name: &ClaimName) {
        self.book().stripped.insert(name.clone());
    }

    /// Watches for as long as it is polled.
    pub async fn run(self) {
        let mut facts = self.cluster.prompt_facts();
        let mut news = self.cloud.changes();
        let mut look = Box::pin(sleep(LOOK));
        loop {
            tokio::select! {
                biased;
                change = news.next() => match change {
                    Some(change) => self.machine(change),
                    None => return,
                },
                fact = facts.next() => match fact {
                    Some(Fact::ClaimSeen(claim)) => self.claim_seen(claim),
                    Some(Fact::ClaimGone(name)) => self.claim_gone(&name),
                    Some(_) => {}
                    None => return,
                },
                () = &mut look => {
                    self.look();
                    look = Box::pin(sleep(LOOK));
                }
            }
        }
    }

    fn machine(&self, change: Change) {
        match change {
            Change::Launched(launched) => {
                let machine = &launched.machine;
                let object = machine.claim.as_ref().map_or("", ClaimName::as_str);
                self.journal.note(object, || format!("machine {} is made", machine.id));
                let mut twins = Vec::new();
                {
                    let mut book = self.book();
                    let known =
                        Known { token: machine.token.clone(), claim: machine.claim.clone(), gone_at: launched.gone_at };
                    book.machines.retain(|_, known| !known.is_gone());
                    book.machines.insert(machine.id.clone(), known);
                    book.peak = book.peak.max(book.machines.len());
                    if let Some(claim) = &machine.claim {
                        let Book { by_claim, machines, .. } = &mut *book;
                        let ids = by_claim.entry(claim.clone()).or_default();
                        ids.retain(|id| machines.get(id).is_some_and(|known| !known.is_going()));
                        twins = ids.iter().cloned().collect();
                        ids.insert(machine.id.clone());
                        if !book.claims.contains_key(claim) {
                            book.unclaimed.insert(machine.id.clone(), Instant::now());
                        }
                    }
                }
                for twin in twins {
                    let objects = vec![object.to_owned(), machine.id.to_string(), twin.to_string()];
                    let what = format!("NodeClaim {object} has the machines {twin} and {}", machine.id);
                    self.broken(Invariant::OneMachine, objects, what);
                }
            }
            Change::Going(id, at) => {
                self.journal.note(id.as_str(), || "is going".to_owned());
                let mut book = self.book();
                book.unclaimed.remove(&id);
                if let Some(known) = book.machines.get_mut(&id) {
                    known.gone_at = Some(at);
                }
            }
            Change::Rebooting(..) => {}
        }
    }

    fn claim_seen(&self, claim: Arc<Claim>) {
        if self.journal.is_kept() {
            let conditions = claim.conditions.iter().map(|c| format!("{}={}({})", c.kind, c.status.as_str(), c.reason));
            let conditions: Vec<_> = conditions.collect();
            let deleting = if claim.deleting.is_some() { ", deleting" } else { "" };
            self.journal.note(claim.name.as_str(), || {
                let id = claim.provider_id.as_ref().map_or("no machine", ProviderId::as_str);
                format!("is {id}{deleting}, finalizers {:?}, {}", claim.finalizers, conditions.join(" "))
            });
        }
        self.book().claims.insert(claim.name.clone(), claim);
    }

    fn claim_gone(&self, name: &ClaimName) {
        self.journal.note(name.as_str(), || "is gone".to_owned());
        let mut left = Vec::new();
        {
            let mut book = self.book();
            let book = &mut *book;
            book.claims.remove(name);
            let stripped = book.stripped.remove(name);
            for id in book.by_claim.remove(name).unwrap_or_default() {
                let Some(known) = book.machines.get(&id).filter(|known| !known.is_gone()) else { continue };
                if !known.is_going() {
                    book.unclaimed.insert(id.clone(), Instant::now());
                }
                if !stripped {
                    left.push(id);
                }
            }
        }
        for id in left {
            let what = format!("NodeClaim {name} is gone, and its machine {id} still runs");
            self.broken(Invariant::FinalizerLast, vec![name.to_string(), id.to_string()], what);
        }
    }

    fn look(&self) {
        let overdue: Vec<_> = {
            let book = self.book();
            let late = |since: &Instant| since.elapsed() > ORPHANED_AT_MOST;
            book.unclaimed
                .iter()
                .filter(|(_, since)| late(since))
                .map(|(id, since)| (id.clone(), since.elapsed()))
                .collect()
        };
        for (id, time) in overdue {
            let what = format!("machine {id} has had no NodeClaim for {} minutes", time.as_secs() / 60);
            self.broken(Invariant::NoOrphan, self.objects_of(&id), what);
        }
    }

    /// joiner is about to order a machine down.
    pub(in crate::sim) fn machine_to_be_deleted(&self, id: &ProviderId) {
        let (claim, token) = {
            let book = self.book();
            let Some(known) = book.machines.get(id).filter(|known| !known.is_going()) else { return };
            (known.claim.clone(), known.token.clone())
        };
        let (Some(name), Some(token)) = (claim, token) else {
            let what = format!("machine {id} carries no mark and is ordered down");
            return self.broken(Invariant::NoClaimedMachineDeleted, self.objects_of(id), what);
        };
        let claimed = self.cluster.store().claims.get(&name).is_some_and(|claim| {
            claim.uid == token && claim.deleting.is_none() && !self.is_twin(id, &token, claim.provider_id.as_ref())
        });
        self.node_to_be_left(id, &name);
        self.orphan_to_be_left(id, &name);
        if claimed {
            let what =
                format!("machine {id} is ordered down, and NodeClaim {name}, which nobody has deleted, claims it");
            self.broken(Invariant::NoClaimedMachineDeleted, self.objects_of(id), what);
        }
    }

    /// Whether a NodeClaim that did not get this machine's name has another with the same token.
    fn is_twin(&self, id: &ProviderId, token: &ClaimUid, claimed: Option<&ProviderId>) -> bool {
        let book = self.book();
        let other = claimed.filter(|claimed| *claimed != id).and_then(|claimed| book.machines.get(claimed));
        other.is_some_and(|other| other.token.as_ref() == Some(token))
    }

    /// A machine is about to be ordered down: the pods of its node must have left it, and their volumes must have gone. What came a moment ago does
    /// not count, nor volumes that came after it was said that all have gone.
    fn node_to_be_left(&self, id: &ProviderId, name: &ClaimName) {
        let (pods, volumes) = {
            let store = self.cluster.store();
            let Some(claim) = store.claims.get(name).filter(|claim| claim.deleting.is_some()) else { return };
            let now = store.now().max((self.clock)());
            if deadline(claim).is_some_and(|deadline| deadline <= now) {
                return;
            }
            // An order that was given is not taken back for the pods that came after it; but they are asked to leave.
            let is_given = claim.is("InstanceTerminating");
            let nodes = ready_nodes(&store, id).filter(|node| !is_given || !is_disrupted(node));
            let nodes: Vec<_> = nodes.map(|node| &node.name).collect();
            let old = |since: &Instant| since.elapsed() > JUST_NOW;
            let all = store.volumes.attachments.values().filter(|one| nodes.contains(&&one.node));
            let volumes = all.filter(|one| store.volumes.since.get(&one.name).is_some_and(old));
            let volumes: Vec<_> = volumes.map(|one| one.name.to_string()).collect();
            let pods: Vec<_> = nodes.iter().flat_map(|node| settled_pods(&store, node, now)).collect();
            (pods, if claim.is("VolumesDetached") { vec![] } else { volumes })
        };
        for (invariant, left, how) in
            [(Invariant::PodsFirst, pods, "running on"), (Invariant::VolumesFirst, volumes, "attached to")]
        {
            if !left.is_empty() {
                let what = format!("machine {id} is ordered down with {} {how} its node", left.join(", "));
                let objects = [name.to_string(), id.to_string()].into_iter().chain(left).collect();
                self.broken(invariant, objects, what);
            }
        }
    }

    /// The same of a machine that no NodeClaim is deleted for: its pods may be taken past their time, but not without having been asked to leave.
    fn orphan_to_be_left(&self, id: &ProviderId, name: &ClaimName) {
        let pods: Vec<_> = {
            let store = self.cluster.store();
            if store.claims.get(name).is_some_and(|claim| claim.deleting.is_some()) {
                return;
            }
            let now = store.now().max((self.clock)());
            let open = ready_nodes(&store, id).filter(|node| !is_disrupted(node));
            open.flat_map(|node| settled_pods(&store, &node.name, now)).collect()
        };
        if !pods.is_empty() {
            let what =
                format!("machine {id}, an orphan, is ordered down, and nobody has asked {} to leave", pods.join(", "));
            let objects = [id.to_string()].into_iter().chain(pods).collect();
            self.broken(Invariant::PodsFirst, objects, what);
        }
    }

    /// joiner is about to delete a NodeClaim.
    pub(in crate::sim) fn nodeclaim_to_be_deleted(&self, name: &ClaimName) {
        let serving = {
            let store = self.cluster.store();
            let Some(claim) = store.claims.get(name).filter(|claim| claim.deleting.is_none()) else { return };
            // The machine that was launched for it, whatever ID somebody has written into it.
            self.machines_of(claim).into_iter().find(|id| {
                let registered = |node: &Arc<Node>| node.provider_id.as_ref() == Some(id) && node.is_registered();
                (claim.is("Registered") || store.nodes.values().any(registered))
                    && !is_expired(claim, store.now().max((self.clock)()))
                    // A reboot that fails ends like this, and says so.
                    && !(claim.is_rebooting() && self.reboot_has_failed(id))
                    && is_wanted(&store, id)
            })
        };
        if let Some(id) = serving {
            let what =
                format!("joiner deletes NodeClaim {name}, whose machine {id} runs and whose Node nobody has deleted");
            self.broken(Invariant::NoServingClaimDeleted, vec![name.to_string(), id.to_string()], what);
        }
    }

    /// joiner is about to delete a pod without asking its budget.
    pub(in crate::sim) fn pod_to_be_deleted(&self, uid: &PodUid) {
        let forbidden = {
            let store = self.cluster.store();
            let Some(record) = store.pods.get(uid) else { return };
            let pod = &record.pod;
            let now = store.now().max((self.clock)());
            let allowed = is_deadline_near(&store, pod, now) || self.is_on_orphan(&store, pod);
            (store.forbids(pod) && !allowed).then(|| pod.key.to_string())
        };
        if let Some(pod) = forbidden {
            let what = format!("pod {pod} is deleted, which its budget forbids and no deadline allows");
            self.broken(Invariant::BudgetsHold, vec![pod], what);
        }
    }

    /// Whether a pod's machine has had no NodeClaim for so long that the auditor may take it down: then the pod must leave it in time.
    fn is_on_orphan(&self, store: &Store, pod: &Pod) -> bool {
        let node = pod.node.as_ref().and_then(|name| store.nodes.get(name));
        let Some(id) = node.and_then(|node| node.provider_id.as_ref()) else { return false };
        self.book().unclaimed.get(id).is_some_and(|since| since.elapsed() >= EVIDENCE)
    }

    /// The machines that were launched for a NodeClaim and run.
    fn machines_of(&self, claim: &Claim) -> Vec<ProviderId> {
        let book = self.book();
        let own = |id: &ProviderId| {
            book.machines.get(id).is_some_and(|known| !known.is_going() && known.token.as_ref() == Some(&claim.uid))
        };
        let ids = book.by_claim.get(&claim.name).into_iter().flatten();
        ids.filter(|id| own(id)).cloned().collect()
    }

    /// The names under which the journal knows what concerns a machine.
    pub(super) fn objects_of(&self, id: &ProviderId) -> Vec<String> {
        let book = self.book();
        let known = book.machines.get(id);
        let mut objects = vec![id.to_string()];
        objects.extend(known.and_then(|known| known.claim.as_ref()).map(ToString::to_string));
        objects.extend(known.and_then(|known| known.token.as_ref()).map(ToString::to_string));
        objects
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready_nodes<'a>(store: &'a Store, id: &'a ProviderId) -> impl Iterator<Item = &'a Arc<Node>> {
    store.nodes.values().filter(move |node| node.provider_id.as_ref() == Some(id) && node.is_ready())
}

/// Pods that run on a node since more than a moment, and that a drain of it would wait for, by joiner's own clock.
fn settled_pods(store: &Store, node: &NodeName, now: Timestamp) -> Vec<String> {
    let pods = store.bound.get(node).into_iter().flatten().filter_map(|uid| store.pods.get(uid));
    let settled = pods.map(|record| &record.pod).filter(|pod| {
        let started = pod.started.is_some_and(|at| store.now().duration_since(at).unsigned_abs() > JUST_NOW);
        started && pod.deleting.is_none() && is_waited_for(pod, now)
    });
    settled.map(|pod| pod.key.to_string()).collect()
}

fn is_expired(claim: &Claim, now: Timestamp) -> bool {
    let age = claim.expire_after.and_then(|age| SignedDuration::try_from(age).ok());
    age.is_some_and(|age| claim.created.saturating_add(age).is_ok_and(|end| end <= now))
}

/// Whether a machine has its Node, and nobody wants that to go: neither by deleting it nor by a disruption command's taint.
fn is_wanted(store: &Store, id: &ProviderId) -> bool {
    let mut nodes = store.nodes.values().filter(|node| node.provider_id.as_ref() == Some(id)).peekable();
    nodes.peek().is_some() && nodes.all(|node| node.deleting.is_none() && !is_disrupted(node))
}

fn is_disrupted(node: &Node) -> bool {
    node.taints.iter().any(|taint| &*taint.key == labels::DISRUPTED_TAINT)
}

/// When the drain of a NodeClaim's node must be over. Where somebody has written nonsense, the end of the grace period counts.
fn deadline(claim: &Claim) -> Option<Timestamp> {
    let granted = || {
        let grace = SignedDuration::try_from(claim.termination_grace?).ok()?;
        claim.deleting?.saturating_add(grace).ok()
    };
    claim.annotations.get(labels::TERMINATION_TIMESTAMP)?.parse().ok().or_else(granted)
}

/// Whether the deadline of a pod's node lets it be deleted now, so that it has its grace period before it.
fn is_deadline_near(store: &Store, pod: &Pod, now: Timestamp) -> bool {
    let Some(node) = pod.node.as_ref().and_then(|name| store.nodes.get(name)) else { return false };
    // By provider ID too: a user may have taken the owner off the Node. By owner too: a user may have changed the provider ID.
    let is_of = |claim: &Claim| claim.provider_id.is_some() && claim.provider_id == node.provider_id;
    let mut claims = store.claims.values().filter(|claim| is_of(claim) || node.is_owned_by(&claim.name));
    claims.any(|claim| {
        let deadline = deadline(claim);
        let grace = SignedDuration::from_secs(pod.shape.grace_seconds + 1);
        deadline.is_some_and(|deadline| deadline.saturating_sub(grace).is_ok_and(|from| from <= now))
    })
}
