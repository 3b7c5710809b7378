//! The watch that is kept while a history is played: which machines there are, and whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::journal::Journal;
use super::lease::Candidate;
use super::nodes::UNKNOWN_FOR;
use super::reboots::Reboots;
use super::violation::Violation;
use crate::clouds::simulated::{Change, Simulated};
use crate::core::facts::{Claim, Fact, Machine, Node};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, ProviderId};
use crate::core::promises::{Invariant, ORPHANED_AT_MOST};
use crate::sim::kubelet::node_name;
use crate::sim::{Clock, SimCluster};

/// How often it is looked whether a bound has passed.
const LOOK: Duration = Duration::from_mins(10);
/// For so long is a machine that has gone known: its Node may be held by somebody's finalizer for as long.
const KEPT: Duration = Duration::from_hours(2);
/// Most violations of one promise that are kept of one history: the first tell the story. Those of another are not hidden by them.
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
    pub(super) candidate: Arc<Mutex<Candidate>>,
}

#[derive(Default)]
pub(super) struct Book {
    machines: BTreeMap<ProviderId, Known>,
    /// The machines that were made for the NodeClaim of a UID. One that is made anew under its name has machines of its own.
    by_claim: BTreeMap<ClaimUid, BTreeSet<ProviderId>>,
    pub(super) claims: BTreeMap<ClaimName, Arc<Claim>>,
    /// NodeClaims whose finalizers somebody else took off.
    stripped: BTreeSet<ClaimName>,
    /// NodeClaims that are gone, as they were, and since when.
    ended: BTreeMap<ClaimUid, (Instant, Arc<Claim>)>,
    /// Deadlines that joiner had to set, as it wrote them, and those that NodeClaims were made with.
    pub(super) hurried: BTreeMap<ClaimUid, Arc<str>>,
    /// When the pods of Nodes must have left whose machines have no NodeClaim, by the earlier of two clocks.
    pub(super) evacuated: BTreeMap<NodeName, Timestamp>,
    /// Nodes that joiner's finalizer holds, or held, and since when it does no more.
    held: BTreeMap<NodeName, Option<Instant>>,
    /// Machines without a NodeClaim.
    unclaimed: BTreeMap<ProviderId, Orphan>,
    /// Machines whose mark somebody has taken off, and until when.
    unmarked: BTreeMap<ProviderId, Instant>,
    violations: Vec<Violation>,
    peak: usize,
}

/// A machine that runs or is going.
struct Known {
    token: Option<ClaimUid>,
    claim: Option<ClaimName>,
    gone_at: Option<Instant>,
    /// Whether the cloud has got an order to take it down.
    ordered: bool,
}

/// A machine without a NodeClaim.
struct Orphan {
    since: Instant,
    /// From when on its time counts. Nothing but its mark says that it is joiner's, so the time without one is left out.
    counts_from: Instant,
}

impl Book {
    /// The UID of the NodeClaim that a machine was made for: the token in its mark, or who has its name now when nobody ever had that UID.
    fn made_for(&self, machine: &Machine) -> Option<ClaimUid> {
        let token = machine.token.as_ref()?;
        let named = machine.claim.as_ref().and_then(|name| self.claims.get(name));
        let known = self.ended.contains_key(token) || self.claims.values().any(|claim| claim.uid == *token);
        Some(named.filter(|_| !known).map_or(token, |claim| &claim.uid).clone())
    }

    /// A machine has no NodeClaim from now on.
    fn orphaned(&mut self, id: ProviderId) {
        let now = Instant::now();
        let counts_from = self.unmarked.get(&id).map_or(now, |until| now.max(*until));
        self.unclaimed.insert(id, Orphan { since: now, counts_from });
    }

    /// Machines that have had no NodeClaim for too long, and for how long.
    fn overdue(&self) -> Vec<(ProviderId, Duration)> {
        let late = |orphan: &Orphan| orphan.counts_from.elapsed() > ORPHANED_AT_MOST;
        let overdue = self.unclaimed.iter().filter(|(_, orphan)| late(orphan));
        overdue.map(|(id, orphan)| (id.clone(), orphan.since.elapsed())).collect()
    }

    /// A Node is as it is from now on.
    fn node_seen(&mut self, node: &Node) {
        if node.has_finalizer() {
            self.held.insert(node.name.clone(), None);
        } else if let Some(lost) = self.held.get_mut(&node.name) {
            lost.get_or_insert_with(Instant::now);
        }
    }

    /// A Node is gone.
    fn node_gone(&mut self, name: &NodeName) {
        self.held.remove(name);
        self.evacuated.remove(name);
    }

    /// A machine carries no mark from now on, for a while.
    fn lost_mark(&mut self, id: &ProviderId, lasting: Duration) {
        let now = Instant::now();
        self.unmarked.retain(|_, until| *until > now);
        let until = self.unmarked.entry(id.clone()).or_insert(now);
        let more = (now + lasting).saturating_duration_since(*until);
        *until += more;
        if let Some(orphan) = self.unclaimed.get_mut(id) {
            orphan.counts_from += more;
        }
    }
}

impl Known {
    fn is_going(&self) -> bool {
        self.gone_at.is_some()
    }

    /// Whether it runs, as far as joiner can know.
    fn stands(&self) -> bool {
        self.gone_at.is_none_or(|at| at.elapsed() < UNKNOWN_FOR)
    }

    fn is_gone(&self) -> bool {
        self.gone_at.is_some_and(|at| at <= Instant::now())
    }

    /// Whether it went so long ago that nothing is left of it.
    fn is_forgotten(&self) -> bool {
        self.gone_at.is_some_and(|at| at.elapsed() > KEPT)
    }
}

impl Invariants {
    /// Begins to watch a world.
    ///
    /// `clock` is as far ahead as joiner's own can be believed: a deadline has come when it says so.
    pub fn new(cluster: SimCluster, cloud: Simulated, clock: Clock, journal: Journal) -> Self {
        Self {
            cluster,
            cloud,
            clock,
            journal,
            start: Instant::now(),
            book: Arc::default(),
            reboots: Arc::default(),
            candidate: Arc::default(),
        }
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
        self.note_broken(Violation { invariant, at, objects, what });
    }

    /// Notes that a promise was broken a while ago, of which the journal knows.
    pub fn note_broken(&self, broken: Violation) {
        let mut book = self.book();
        let is_same = |known: &&Violation| known.invariant == broken.invariant && known.objects == broken.objects;
        let of_its_kind = book.violations.iter().filter(|known| known.invariant == broken.invariant).count();
        if !book.violations.iter().any(|known| is_same(&known)) && of_its_kind < MOST {
            book.violations.push(broken);
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

    /// A user took the mark off a machine, and puts it back after a while.
    pub(in crate::sim) fn mark_taken_off(&self, id: &ProviderId, lasting: Duration) {
        self.book().lost_mark(id, lasting);
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
                    Some(Fact::ClaimGone(name, _)) => self.claim_gone(&name),
                    Some(Fact::NodeSeen(node)) => self.book().node_seen(&node),
                    Some(Fact::NodeGone(name)) => self.book().node_gone(&name),
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
                    let (token, claim) = (machine.token.clone(), machine.claim.clone());
                    let known = Known { token, claim, gone_at: launched.gone_at, ordered: false };
                    book.machines.retain(|_, known| !known.is_forgotten());
                    book.machines.insert(machine.id.clone(), known);
                    book.peak = book.peak.max(book.machines.values().filter(|known| !known.is_gone()).count());
                    if let Some(uid) = book.made_for(machine) {
                        let Book { by_claim, machines, claims, .. } = &mut *book;
                        let wanted = claims.values().any(|claim| claim.uid == uid);
                        let ids = by_claim.entry(uid).or_default();
                        ids.retain(|id| machines.get(id).is_some_and(|known| !known.is_gone()));
                        twins = ids.iter().filter(|id| !machines[*id].is_going()).cloned().collect();
                        ids.insert(machine.id.clone());
                        if !wanted {
                            book.orphaned(machine.id.clone());
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
        self.reboot_seen(&claim);
        self.deadline_brought(&claim);
        self.book().claims.insert(claim.name.clone(), claim);
    }

    fn claim_gone(&self, name: &ClaimName) {
        self.journal.note(name.as_str(), || "is gone".to_owned());
        let mut left = Vec::new();
        {
            let mut book = self.book();
            let book = &mut *book;
            let Some(claim) = book.claims.remove(name) else { return };
            let uid = claim.uid.clone();
            book.ended.insert(uid.clone(), (Instant::now(), claim));
            let stripped = book.stripped.remove(name);
            for id in book.by_claim.remove(&uid).unwrap_or_default() {
                let Some(known) = book.machines.get(&id).filter(|known| !known.is_gone()) else { continue };
                if !known.is_going() {
                    book.orphaned(id.clone());
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
        let overdue = self.book().overdue();
        for (id, time) in overdue {
            let what = format!("machine {id} has had no NodeClaim for {} minutes", time.as_secs() / 60);
            self.broken(Invariant::NoOrphan, self.objects_of(&id), what);
        }
    }

    /// The NodeClaim and the token in the mark of a machine that nobody has ordered down.
    pub(super) fn mark_of(&self, id: &ProviderId) -> Option<(Option<ClaimName>, Option<ClaimUid>)> {
        let book = self.book();
        book.machines.get(id).filter(|known| !known.is_going()).map(|known| (known.claim.clone(), known.token.clone()))
    }

    /// Whether the cloud has got an order to take a machine down.
    pub(super) fn was_ordered_down(&self, id: &ProviderId) -> bool {
        self.book().machines.get(id).is_some_and(|known| known.ordered)
    }

    /// The cloud has got joiner's order to take a machine down, whatever it makes of it, and whether or not joiner hears of that.
    pub(in crate::sim) fn order_arrived(&self, id: &ProviderId) {
        if let Some(known) = self.book().machines.get_mut(id) {
            known.ordered = true;
        }
    }

    /// Whether a machine that was made for a NodeClaim is not gone.
    pub(super) fn runs(&self, id: &ProviderId) -> bool {
        self.book().machines.get(id).is_some_and(|known| !known.is_gone() && known.token.is_some())
    }

    /// The machine that a Node is of, as its kubelet named it or else by the ID that it carries, and the NodeClaim and the token in that machine's mark.
    /// Machines that have gone are known for a while.
    pub(super) fn machine_of(&self, node: &Node) -> Option<(ProviderId, ClaimName, ClaimUid)> {
        let book = self.book();
        let named = book.machines.iter().find(|(id, _)| node_name(id) == node.name);
        let (id, known) = named.or_else(|| book.machines.get_key_value(node.provider_id.as_ref()?))?;
        Some((id.clone(), known.claim.clone()?, known.token.clone()?))
    }

    /// For how long a NodeClaim has been gone; nothing while it is there, and when that has just happened.
    pub(super) fn gone_for(&self, uid: &ClaimUid) -> Option<Duration> {
        self.book().ended.get(uid).map(|(since, _)| since.elapsed())
    }

    /// NodeClaims that went no longer ago than this, as they were.
    pub(super) fn gone_within(&self, time: Duration) -> Vec<Arc<Claim>> {
        let book = self.book();
        let lately = book.ended.values().filter(|(since, _)| since.elapsed() <= time);
        lately.map(|(_, claim)| Arc::clone(claim)).collect()
    }

    /// Whether joiner's finalizer was on a Node no longer ago than this.
    pub(super) fn was_held_within(&self, name: &NodeName, time: Duration) -> bool {
        self.book().held.get(name).is_some_and(|lost| lost.is_none_or(|at| at.elapsed() <= time))
    }

    /// For how long a machine has had no NodeClaim; nothing while it has one.
    pub(super) fn unclaimed_for(&self, id: &ProviderId) -> Option<Duration> {
        self.book().unclaimed.get(id).map(|orphan| orphan.since.elapsed())
    }

    /// Whether a NodeClaim that did not get this machine's name has another with the same token.
    pub(super) fn is_twin(&self, id: &ProviderId, token: &ClaimUid, claimed: Option<&ProviderId>) -> bool {
        let book = self.book();
        let other = claimed.filter(|claimed| *claimed != id).and_then(|claimed| book.machines.get(claimed));
        other.is_some_and(|other| other.token.as_ref() == Some(token) && other.stands())
    }

    /// The machines that were launched for a NodeClaim and run.
    pub(super) fn machines_of(&self, claim: &Claim) -> Vec<ProviderId> {
        self.machines_where(claim, |known| !known.is_going())
    }

    /// The machines that were launched for a NodeClaim and are not gone.
    pub(super) fn machines_left(&self, claim: &Claim) -> Vec<ProviderId> {
        self.machines_where(claim, |known| !known.is_gone())
    }

    fn machines_where(&self, claim: &Claim, wanted: impl Fn(&Known) -> bool) -> Vec<ProviderId> {
        let book = self.book();
        let ids = book.by_claim.get(&claim.uid).into_iter().flatten();
        ids.filter(|id| book.machines.get(id).is_some_and(&wanted)).cloned().collect()
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

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
