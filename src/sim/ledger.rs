//! What happened in a world: series, totals, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::agenda::Agenda;
use super::cluster::SimCluster;
use super::kubelet::node_name;
use super::outcome::{NodeRow, Outcome, Sample, Unplaced};
use crate::clouds::simulated::{Change, SimMachine, Simulated};
use crate::core::facts::{Fact, Kind, Node, Owner, OwnerClaim, Pod};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, PodUid, ProviderId};
use crate::core::labels;
use crate::core::resources::{ResourceName, Resources};

/// Most samples that are kept: when there are more, every second one goes and the interval doubles.
const SAMPLES: usize = 2_000;
/// The first interval between samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Most violations that are kept; the first ones tell the story.
const VIOLATIONS: usize = 100;
/// Seconds in an hour.
const HOUR: f64 = 3_600.0;

/// Says why a pod has no node: the solver's reasons, most helpful first.
pub type Reasons<'a> = &'a dyn Fn(&PodUid) -> Vec<String>;

/// The ledger of a world. Clones are handles to the same one.
#[derive(Clone)]
pub struct Ledger {
    cluster: SimCluster,
    cloud: Simulated,
    book: Arc<Mutex<Book>>,
}

/// Everything that was written down.
struct Book {
    start: Instant,
    interval: Duration,
    samples: Vec<Sample>,
    /// Pods that wait for their first node, with the time of their creation and their name.
    waiting: BTreeMap<PodUid, (Instant, String)>,
    /// Pods that were deleted before they had a node.
    withdrawn: Vec<Unplaced>,
    pods_total: u64,
    waits: Vec<f64>,
    unbound: BTreeSet<PodUid>,
    /// Node and shape's requests of the pods that use room.
    bound: BTreeMap<PodUid, (NodeName, Resources)>,
    used: BTreeMap<NodeName, Resources>,
    requested: Resources,
    nodes: BTreeMap<NodeName, Arc<Node>>,
    nodes_peak: u64,
    rows: Vec<NodeRow>,
    running: BTreeMap<ProviderId, (usize, f64)>,
    tokens: BTreeMap<ClaimUid, ProviderId>,
    owned: BTreeMap<ClaimName, BTreeSet<NodeName>>,
    price: f64,
    price_peak: f64,
    spent: f64,
    spent_until: Instant,
    violations: Vec<String>,
    changed: bool,
    /// Whether all nodes that were there at the start are known; until then absence means nothing.
    listed: bool,
}

impl Ledger {
    /// An empty ledger that starts now.
    pub fn new(cluster: SimCluster, cloud: Simulated) -> Self {
        Self { cluster, cloud, book: Arc::new(Mutex::new(Book::new())) }
    }

    /// Notes what must not happen and did.
    pub fn complain(&self, sentence: String) {
        self.book().complain(sentence);
    }

    /// What must not happen and did, so far.
    pub fn violations(&self) -> Vec<String> {
        self.book().violations.clone()
    }

    /// Writes down what happens, for as long as it is polled.
    pub async fn run(self) {
        let mut facts = self.cluster.prompt_facts();
        let mut news = self.cloud.changes();
        let mut ends = Agenda::new();
        let mut next = Instant::now();
        loop {
            // Nothing new, nothing to sample: a month in which nothing happens costs nothing.
            let changed = self.book().changed;
            tokio::select! {
                biased;
                change = news.next() => match change {
                    Some(Change::Going(id, at)) => ends.at(at, id),
                    Some(change) => self.book().machine(&change, &self.cluster),
                    None => return,
                },
                id = ends.next() => self.book().machine_gone(&id),
                fact = facts.next() => match fact {
                    Some(fact) => self.book().fact(&fact),
                    None => return,
                },
                () = sleep_until(next), if changed => {
                    let mut book = self.book();
                    book.sample();
                    next = Instant::now() + book.interval;
                }
            }
        }
    }

    /// The outcome so far. `reasons` says why pods have no node; title, settings and our own time are left to the caller.
    pub fn close(&self, seed: u64, reasons: Reasons<'_>) -> Outcome {
        let mut book = self.book();
        book.changed = true;
        book.sample();
        let store = self.cluster.store();
        let mut unplaced: Vec<_> = book
            .unbound
            .iter()
            .filter_map(|uid| store.pods.get(uid))
            .map(|record| Unplaced { pod: record.pod.key.to_string(), reasons: reasons(&record.pod.uid) })
            .chain(book.withdrawn.iter().cloned())
            .collect();
        unplaced.sort_by(|one, other| one.pod.cmp(&other.pod));
        let claims: BTreeSet<&ClaimUid> = store.claims.values().map(|claim| &claim.uid).collect();
        let mut violations = book.violations.clone();
        for machine in self.cloud.machines() {
            let claimed = machine.machine.token.as_ref().is_some_and(|token| claims.contains(token));
            if !claimed && machine.gone_at.is_none() {
                violations.push(format!("machine {} runs at the end and belongs to no NodeClaim", machine.machine.id));
            }
        }
        Outcome {
            seed,
            simulated_seconds: book.start.elapsed().as_secs_f64(),
            pods_total: book.pods_total,
            pods_bound: book.waits.len() as u64,
            unplaced,
            seconds_to_bound: book.waits.clone(),
            nodes_peak: book.nodes_peak,
            price_total: book.spent,
            price_peak_per_hour: book.price_peak,
            samples: book.samples.clone(),
            nodes: book.rows.clone(),
            violations,
            ..Outcome::default()
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            start: now,
            interval: INTERVAL,
            samples: Vec::new(),
            waiting: BTreeMap::new(),
            withdrawn: Vec::new(),
            pods_total: 0,
            waits: Vec::new(),
            unbound: BTreeSet::new(),
            bound: BTreeMap::new(),
            used: BTreeMap::new(),
            requested: Resources::new(),
            nodes: BTreeMap::new(),
            nodes_peak: 0,
            rows: Vec::new(),
            running: BTreeMap::new(),
            tokens: BTreeMap::new(),
            owned: BTreeMap::new(),
            price: 0.0,
            price_peak: 0.0,
            spent: 0.0,
            spent_until: now,
            violations: Vec::new(),
            changed: true,
            listed: false,
        }
    }

    fn complain(&mut self, sentence: String) {
        if self.violations.len() < VIOLATIONS && !self.violations.contains(&sentence) {
            self.violations.push(sentence);
        }
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::PodSeen(pod) => self.pod(pod),
            Fact::PodGone(uid) => {
                if let Some((since, pod)) = self.waiting.remove(uid) {
                    let waited = since.elapsed().as_secs();
                    let reason = format!("it was deleted {waited} s after its creation, before it had a node");
                    self.withdrawn.push(Unplaced { pod, reasons: vec![reason] });
                }
                self.unbound.remove(uid);
                self.release(uid);
            }
            Fact::NodeSeen(node) => self.node(node),
            Fact::NodeGone(name) => {
                self.nodes.remove(name);
            }
            Fact::Relisted(Kind::Node) if !self.listed => {
                self.listed = true;
                let found: BTreeSet<NodeName> = self.used.keys().cloned().collect();
                for node in &found {
                    self.judge(node, "some pod");
                }
            }
            _ => return,
        }
        self.changed = true;
    }

    fn pod(&mut self, pod: &Arc<Pod>) {
        let daemon = matches!(pod.shape.owner, Owner::DaemonSet | Owner::Node);
        if !pod.is_active_on_node() {
            self.release(&pod.uid);
        }
        if pod.node.is_none() {
            if !daemon && !pod.is_terminal() && self.unbound.insert(pod.uid.clone()) {
                self.waiting.insert(pod.uid.clone(), (Instant::now(), pod.key.to_string()));
                self.pods_total += 1;
            }
            return;
        }
        self.unbound.remove(&pod.uid);
        if let Some((since, _)) = self.waiting.remove(&pod.uid) {
            self.waits.push(since.elapsed().as_secs_f64());
        }
        if let Some(node) = pod.node.as_ref().filter(|_| pod.is_active_on_node())
            && !self.bound.contains_key(&pod.uid)
        {
            self.occupy(pod, node);
        }
    }

    fn occupy(&mut self, pod: &Pod, node: &NodeName) {
        let requests = &pod.shape.requests;
        self.requested.add(requests);
        let used = self.used.entry(node.clone()).or_default();
        used.add(requests);
        self.bound.insert(pod.uid.clone(), (node.clone(), requests.clone()));
        if self.listed {
            self.judge(node, &format!("pod {}", pod.key));
        }
    }

    /// Whether a node to which a pod was just bound is there and has the room.
    fn judge(&mut self, node: &NodeName, pod: &str) {
        let full = match (self.nodes.get(node), self.used.get(node)) {
            (None, _) => format!("{pod} was bound to node {node}, which does not exist"),
            (Some(there), Some(used)) if !used.fits(&there.allocatable) => {
                format!("{pod} was bound to node {node}, which has no room for it")
            }
            _ => return,
        };
        self.complain(full);
    }

    fn release(&mut self, uid: &PodUid) {
        let Some((node, requests)) = self.bound.remove(uid) else { return };
        self.requested.subtract(&requests);
        if let Some(used) = self.used.get_mut(&node) {
            used.subtract(&requests);
        }
    }

    fn node(&mut self, node: &Arc<Node>) {
        let ready = node.is_ready();
        let seconds = self.seconds();
        if let Some((row, _)) = node.provider_id.as_ref().and_then(|id| self.running.get(id))
            && ready
        {
            self.rows[*row].ready.get_or_insert(seconds);
        }
        for OwnerClaim { name: claim, .. } in &node.owner_claims {
            let nodes = self.owned.entry(claim.clone()).or_default();
            if nodes.insert(node.name.clone()) && nodes.len() > 1 {
                let sentence = format!("NodeClaim {claim} has {} nodes", nodes.len());
                self.complain(sentence);
            }
        }
        self.nodes.insert(node.name.clone(), Arc::clone(node));
        self.nodes_peak = self.nodes_peak.max(self.nodes.len() as u64);
    }

    fn machine(&mut self, change: &Change, cluster: &SimCluster) {
        let Change::Launched(machine) = change else { return };
        self.settle_price();
        let id = machine.machine.id.clone();
        let row = self.row(machine, cluster);
        self.rows.push(row);
        self.running.insert(id.clone(), (self.rows.len() - 1, machine.price));
        self.price += machine.price;
        self.price_peak = self.price_peak.max(self.price);
        self.changed = true;
        if let Some(token) = &machine.machine.token
            && let Some(other) = self.tokens.insert(token.clone(), id.clone())
            && self.running.contains_key(&other)
        {
            self.complain(format!("machines {other} and {id} run for the same NodeClaim (UID {token})"));
        }
    }

    fn row(&self, machine: &SimMachine, cluster: &SimCluster) -> NodeRow {
        let label = |key: &str| machine.machine.labels.get(key).cloned().unwrap_or_else(|| "".into());
        let claim = machine.machine.claim.as_ref();
        let pool = claim.and_then(|name| cluster.store().claims.get(name).and_then(|claim| claim.pool()));
        let name = claim.map_or_else(|| node_name(&machine.machine.id).as_str().into(), |claim| claim.as_str().into());
        NodeRow {
            name,
            pool: pool.map_or_else(|| "".into(), |pool| pool.as_str().into()),
            instance_type: label(labels::INSTANCE_TYPE),
            zone: label(labels::ZONE),
            capacity_type: label(labels::CAPACITY_TYPE),
            price_per_hour: machine.price,
            launched: self.seconds(),
            ready: None,
            gone: None,
        }
    }

    fn machine_gone(&mut self, id: &ProviderId) {
        self.settle_price();
        let Some((row, price)) = self.running.remove(id) else { return };
        self.rows[row].gone = Some(self.seconds());
        // Sums of prices leave dust behind; nothing running costs nothing.
        self.price = if self.running.is_empty() { 0.0 } else { self.price - price };
        self.changed = true;
    }

    /// Adds up what was spent since the price changed last.
    fn settle_price(&mut self) {
        self.spent += self.price * self.spent_until.elapsed().as_secs_f64() / HOUR;
        self.spent_until = Instant::now();
    }

    fn sample(&mut self) {
        self.settle_price();
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let mut nodes_by_type = BTreeMap::<Arc<str>, u64>::new();
        let mut allocatable = Resources::new();
        for node in self.nodes.values() {
            let kind = node.labels.get(labels::INSTANCE_TYPE).cloned().unwrap_or_else(|| "unknown".into());
            *nodes_by_type.entry(kind).or_default() += 1;
            allocatable.add(&node.allocatable);
        }
        let unit = |of: &Resources, name| of.get(&name) as f64 / 1_000.0;
        self.samples.push(Sample {
            at_seconds: self.seconds(),
            pending: self.unbound.len() as u64,
            bound: self.bound.len() as u64,
            nodes_by_type,
            requested_cpu: unit(&self.requested, ResourceName::Cpu),
            allocatable_cpu: unit(&allocatable, ResourceName::Cpu),
            requested_memory: unit(&self.requested, ResourceName::Memory),
            allocatable_memory: unit(&allocatable, ResourceName::Memory),
            price_per_hour: self.price,
            cumulative_price: self.spent,
        });
        self.thin_out();
    }

    /// Makes room when there are too many samples. Those go that stand closest to the one before them: a quiet month must not vanish because
    /// of a busy day.
    fn thin_out(&mut self) {
        if self.samples.len() < SAMPLES {
            return;
        }
        while self.samples.len() > SAMPLES / 2 {
            self.interval *= 2;
            let apart = self.interval.as_secs_f64();
            let mut last = f64::NEG_INFINITY;
            self.samples.retain(|sample| {
                let keep = sample.at_seconds - last >= apart;
                if keep {
                    last = sample.at_seconds;
                }
                keep
            });
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
