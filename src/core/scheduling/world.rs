//! The problem in dense form: built once, then only read, but for the memos and counts that a run moves on.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{AffinityTerm, InstanceType, Owner, Pod, PodShape};
use crate::core::ids::NodeName;
use crate::core::requirements::Requirement;

use super::algebra::{Algebra, ProfileId};
use super::attach::Attached;
use super::classes::{Class, Spread, group};
use super::daemons::Grouped;
use super::demand::Demand;
use super::existing::{Host, OnNode};
use super::interner::KeyId;
use super::layout::{Layout, Left};
use super::masks::Mask;
use super::pools::PoolSite;
use super::problem::Problem;
use super::reason::Reason;
use super::rooms::{Kind, Rooms};
use super::shelf::{Amounts, Dimensions};
use super::tolerance::Tolerance;
use super::topology::{CounterId, Counters, Filter, FilterId, Target, Targets, Topo, Whom};
use super::volumes::Needs;

/// Up to so many classes each is asked whether a running pod keeps it away.
const FEW: usize = 64;

/// A list of the catalog.
pub(super) type List = Arc<Vec<Arc<InstanceType>>>;

/// A question in dense form.
pub(super) struct World<'p> {
    pub(super) problem: &'p Problem<'p>,
    pub(super) dimensions: Dimensions,
    pub(super) algebra: Algebra,
    pub(super) tolerance: Tolerance,
    pub(super) targets: Targets,
    pub(super) counters: Counters,
    /// Pools that may be used, in the order in which they are tried.
    pub(super) pools: Vec<PoolSite>,
    /// Why other pools may not be used.
    pub(super) unusable: Vec<Reason>,
    /// Nodes that exist and NodeClaims that are under way, in the order in which they are tried. Copied when written to.
    pub(super) hosts: Vec<Arc<Host>>,
    /// What they have left.
    pub(super) rooms: Rooms,
    /// The same hosts before this question, and where everything stands.
    pub(super) layout: Arc<Layout>,
    pub(super) classes: Vec<Class>,
    /// Pods by creation and UID, so that the order of the input does not matter.
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) class_of: Vec<u32>,
    pub(super) demand: Demand,
    /// Domains by key and filter: many classes ask for the same.
    pub(super) domains_of: FxHashMap<(KeyId, Filter), Mask>,
    /// Which nodes filters look at.
    pub(super) looks: FxHashMap<(FilterId, Kind), bool>,
    /// The daemons that belong on nodes of one profile with the same taints.
    pub(super) daemons_on: FxHashMap<(ProfileId, u32), Arc<OnNode>>,
    /// What they take of new nodes.
    pub(super) grouped: Grouped,
    /// Volumes on nodes, there and planned.
    pub(super) attached: Attached,
    /// How many more machines each reservation has room for.
    pub(super) left_reserved: Vec<u32>,
    /// Pods of the question that run on a node which goes, and their host. kube-scheduler counts them there until they have left, and perhaps
    /// they leave only when others have found a place: so each is counted there until it is its turn.
    pub(super) still_on: FxHashMap<usize, u32>,
}

/// The pods of a question, in an order of their own, by shape and by what their volumes ask for.
pub(super) struct Asked {
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) shapes: Vec<Arc<PodShape>>,
    /// What the volumes of each class ask for.
    pub(super) needs: Vec<Option<Arc<Needs>>>,
    pub(super) class_of: Vec<u32>,
}

impl Asked {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let mut pods = problem.pods.to_vec();
        pods.sort_by_cached_key(|pod| problem.age(pod));
        pods.dedup_by(|a, b| a.uid == b.uid);
        let (mut shapes, mut class_of) = group(&pods);
        let needs = super::volumes::split(problem.snapshot, &pods, &mut shapes, &mut class_of);
        Self { pods, shapes, needs, class_of }
    }

    /// All that volumes require of a node's labels.
    pub(super) fn of_volumes(&self) -> impl Iterator<Item = &Requirement> {
        self.needs.iter().flatten().flat_map(|needs| needs.alternatives.iter().flatten())
    }
}

impl<'p> World<'p> {
    /// A world without pods and hosts.
    pub(super) fn bare(problem: &'p Problem<'p>, dimensions: Dimensions, algebra: Algebra) -> Self {
        Self {
            problem,
            dimensions,
            algebra,
            tolerance: Tolerance::default(),
            targets: Targets::default(),
            counters: Counters::default(),
            pools: Vec::new(),
            unusable: Vec::new(),
            hosts: Vec::new(),
            rooms: Rooms::default(),
            layout: Arc::default(),
            classes: Vec::new(),
            pods: Vec::new(),
            class_of: Vec::new(),
            demand: Demand::default(),
            domains_of: FxHashMap::default(),
            looks: FxHashMap::default(),
            daemons_on: FxHashMap::default(),
            grouped: Grouped::default(),
            attached: Attached::default(),
            left_reserved: Vec::new(),
            still_on: FxHashMap::default(),
        }
    }

    /// Asks a question of the hosts and pools that are there.
    pub(super) fn ask(&mut self, asked: Asked, best_buys: &[(Amounts, f64)]) {
        self.hosts.clone_from(&self.layout.hosts);
        self.rooms = self.layout.rooms.clone();
        let layout = Arc::clone(&self.layout);
        for site in &mut self.pools {
            if let Some((used, nodes)) = layout.used.get(&site.fact.name) {
                site.room.charge(used, *nodes);
            }
        }
        self.leave_out();
        self.left_reserved = self.algebra.reservations.left(self.problem.snapshot, &self.algebra.universe);
        self.pods = asked.pods;
        self.class_of = asked.class_of;
        let left = self.leave_nodes();
        if self.problem.new_nodes_only {
            self.fill_up();
        }
        let classes = asked.shapes.iter().zip(asked.needs).map(|(shape, needs)| self.class(shape, needs)).collect();
        self.classes = classes;
        self.count_running(&left);
        self.link();
        let (demand, entries) = Demand::new(self, best_buys);
        self.demand = demand;
        self.attached = Attached::of(self);
        for (class, entry) in self.classes.iter_mut().zip(entries) {
            class.demand = entry;
        }
    }

    /// Closes what the question excludes, and gives its share of the limits back.
    fn leave_out(&mut self) {
        let excluded = self.problem.excluded;
        let nodes = excluded.nodes.iter().filter_map(|name| self.layout.by_node.get(name));
        let claims = excluded.claims.iter().filter_map(|name| self.layout.by_claim.get(name));
        let out: BTreeSet<u32> = nodes.chain(claims).copied().collect();
        for at in out.into_iter().map(|at| at as usize).filter(|at| self.layout.hosts[*at].usable) {
            let host = Arc::make_mut(&mut self.hosts[at]);
            host.usable = false;
            self.rooms.close(at);
            if let Some(site) = self.pools.iter_mut().find(|site| Some(&site.fact.name) == host.pool.as_ref()) {
                site.room.release(&host.capacity, 1);
            }
        }
    }

    /// Leaves no room on what exists: every pod asks for at least one place among `pods`.
    fn fill_up(&mut self) {
        let none = self.zero();
        for (at, host) in self.hosts.iter_mut().enumerate() {
            Arc::make_mut(host).free.clone_from(&none);
            self.rooms.set_free(at, &none);
        }
    }

    /// Takes the pods of the question from the nodes on which they run; the answer is which shapes left which host, and how often.
    fn leave_nodes(&mut self) -> Left {
        let mut left = Left::default();
        for (number, pod) in self.pods.iter().enumerate() {
            let Some(seen) = self.problem.snapshot.pods.get(&pod.uid).filter(|seen| seen.is_active_on_node()) else {
                continue;
            };
            let bound =
                |name: &&NodeName| self.problem.snapshot.bound.get(*name).is_some_and(|there| there.contains(&pod.uid));
            let node = seen.node.as_ref().filter(bound);
            let Some((name, at)) = node.and_then(|name| Some((name, self.layout.by_node.get(name)?))) else { continue };
            let is_leaving = !self.layout.hosts[*at as usize].usable && !self.problem.excluded.nodes.contains(name);
            if is_leaving && seen.deleting.is_none() {
                self.still_on.insert(number, *at);
                continue;
            }
            let gone = left.entry((Arc::as_ptr(&seen.shape), *at)).or_default();
            gone.active += 1;
            gone.staying += u32::from(seen.deleting.is_none());
            let at = *at as usize;
            // The room of a daemon that leaves is kept for the one that comes.
            if self.hosts[at].usable && seen.shape.owner != Owner::DaemonSet {
                let host = Arc::make_mut(&mut self.hosts[at]);
                super::shelf::add(&mut host.free, &self.dimensions.amounts(&seen.shape.requests));
                for port in &seen.shape.host_ports {
                    if let Some(taken) = host.ports.iter().position(|other| other == port) {
                        host.ports.remove(taken);
                    }
                }
                self.rooms.set_free(at, &host.free);
            }
        }
        left
    }

    /// Tells each class which counters touch it, now that all counters are known.
    fn link(&mut self) {
        let mut classes = std::mem::take(&mut self.classes);
        let mut binding: FxHashMap<CounterId, Spread> = FxHashMap::default();
        for spread in classes.iter().filter_map(|class| class.variants.last()).flat_map(|bare| &bare.spreads) {
            if spread.topo != Topo::Host {
                let known = binding.entry(spread.counter).or_insert_with(|| Spread { own: 1, ..spread.clone() });
                known.max_skew = known.max_skew.min(spread.max_skew);
            }
        }
        for class in &mut classes {
            let (counted, repelled) = self.counters.touching(&class.shape, &self.targets);
            let bare = class.variants.last();
            let is_bound = |id: &CounterId| bare.is_some_and(|bare| bare.spreads.iter().any(|own| own.counter == *id));
            class.courtesies =
                counted.iter().filter(|id| !is_bound(id)).filter_map(|id| binding.get(id).cloned()).collect();
            class.touches.extend(counted);
            class.touches.sort_unstable();
            class.touches.dedup();
            class.repelled = repelled.iter().map(|id| (self.counters.get(*id).topo, *id)).collect();
            let all = class.touches.iter().chain(&repelled).copied();
            let own = class.variants.iter().flat_map(|v| {
                let spreads = v.spreads.iter().map(|s| s.counter);
                let affinities = v.affinities.iter().flat_map(|a| a.counters.iter().map(|(_, id)| *id));
                spreads.chain(affinities).chain(v.apart.iter().map(|(_, id)| *id))
            });
            let mut pins: Vec<KeyId> = Vec::new();
            for id in all.chain(own) {
                let counter = self.counters.get(id);
                pins.extend(counter.topo.key());
                // Whether a constraint looks at a node may depend on further labels.
                pins.extend(counter.filter.iter().flat_map(|filter| &self.counters.filter_of(*filter).keys));
            }
            pins.sort_unstable();
            pins.dedup();
            class.pins = pins;
        }
        self.classes = classes;
    }

    /// Counts the pods that run on nodes and are not part of the question.
    fn count_running(&mut self, left: &Left) {
        let layout = Arc::clone(&self.layout);
        // The anti-affinity of running pods makes counters too, so those come first.
        let mut owned: FxHashMap<usize, Vec<CounterId>> = FxHashMap::default();
        for which in &layout.running.avoiding {
            let shape = &layout.running.all[*which].shape;
            let mattering: Vec<_> = shape.anti_affinity.iter().filter(|term| self.matters(term)).collect();
            let ids: Vec<CounterId> = mattering.into_iter().map(|term| self.owners(term).1).collect();
            owned.insert(*which, ids);
        }
        if self.counters.all.is_empty() {
            return;
        }
        for (which, runs) in layout.running.all.iter().enumerate() {
            let counted = self.counters.touching(&runs.shape, &self.targets).0;
            let owned = owned.get(&which).map_or(&[][..], Vec::as_slice);
            if counted.is_empty() && owned.is_empty() {
                continue;
            }
            for (host, many) in &runs.on {
                let less = left.get(&(Arc::as_ptr(&runs.shape), *host)).copied().unwrap_or_default();
                let kind = layout.hosts[*host as usize].kind();
                for id in &counted {
                    let more = match self.counters.get(*id).whom {
                        Whom::Staying => difference(many.staying, less.staying),
                        Whom::Present | Whom::Bearers => difference(many.active, less.active),
                    };
                    self.count(*id, *host, kind, more);
                }
                for id in owned {
                    self.count(*id, *host, kind, difference(many.active, less.active));
                }
            }
        }
    }

    /// Whether a term of a running pod keeps any pod of the question away. With many classes it is cheaper to count than to ask.
    fn matters(&self, term: &AffinityTerm) -> bool {
        if self.classes.len() > FEW {
            return true;
        }
        let target = Target::of(term, self.problem.snapshot);
        self.classes.iter().any(|class| target.selects(&class.shape))
    }

    /// Counts pods on a candidate; less than nothing when they leave it.
    pub(super) fn count(&mut self, id: CounterId, host: u32, kind: Kind, many: i32) {
        if many == 0 {
            return;
        }
        let counter = self.counters.get(id);
        let (topo, filter) = (counter.topo, counter.filter);
        if filter.is_some_and(|filter| !self.looks_at_by(filter, kind)) {
            return;
        }
        match topo {
            Topo::Host if kind.named => self.counters.get_mut(id).add_host(host, many),
            Topo::Host => {}
            Topo::Key(key) => {
                let domain = self.algebra.domain(kind.profile, key);
                let value = domain.bits.first().filter(|_| domain.is_settled());
                if let Some(value) = value {
                    self.counters.get_mut(id).add_value(value, many);
                }
            }
        }
    }

    pub(super) fn class_at(&self, pod: usize) -> &Class {
        &self.classes[self.class_of[pod] as usize]
    }

    pub(super) fn zero(&self) -> Amounts {
        self.dimensions.zero()
    }
}

/// How many pods of a host stay.
fn difference(all: u32, less: u32) -> i32 {
    i32::try_from(all.saturating_sub(less)).unwrap_or(i32::MAX)
}
