//! The problem in dense form: built once, then only read, but for the memos and counts that a run moves on.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{HostPort, InstanceType, Pod, PodShape, Pool};
use crate::core::ids::{NodeName, PodUid};
use crate::core::labels;
use crate::core::resources::ResourceName;

use super::algebra::{Algebra, ProfileId, Source};
use super::attach::Attached;
use super::classes::{Class, group};
use super::demand::Demand;
use super::existing::Host;
use super::interner::{Collector, Domain, KeyId, Rest};
use super::masks::Mask;
use super::pools::PoolSite;
use super::problem::Problem;
use super::reason::Reason;
use super::shelf::{Amounts, Dimensions, Shelf};
use super::tolerance::Tolerance;
use super::topology::{CounterId, Counters, Filter, Targets, Topo};
use super::volumes::Needs;

/// A list of the catalog.
pub(super) type List = Arc<Vec<Arc<InstanceType>>>;

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
    /// Nodes that exist and NodeClaims that are under way, in the order in which they are tried.
    pub(super) hosts: Vec<Host>,
    pub(super) classes: Vec<Class>,
    /// Pods by creation and UID, so that the order of the input does not matter.
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) class_of: Vec<u32>,
    pub(super) demand: Demand,
    /// Domains by key and filter: many classes ask for the same.
    known_domains: FxHashMap<(KeyId, Filter), Mask>,
    /// What daemons take of nodes of one profile with the same taints.
    pub(super) daemons_on: FxHashMap<(ProfileId, u32), (Amounts, Vec<HostPort>)>,
    /// Volumes on nodes, there and planned.
    pub(super) attached: Attached,
}

impl<'p> World<'p> {
    pub(super) fn new(problem: &'p Problem<'p>) -> Self {
        let mut pods = problem.pods.to_vec();
        let arrival = |pod: &Pod| problem.snapshot.pending.get(&pod.uid).copied().unwrap_or_default();
        pods.sort_by_cached_key(|pod| (pod.created, arrival(pod), pod.uid.clone()));
        pods.dedup_by(|a, b| a.uid == b.uid);
        let (mut shapes, mut class_of) = group(&pods);
        let needs = super::volumes::split(problem.snapshot, &pods, &mut shapes, &mut class_of);
        let (ready, unusable) = usable_pools(problem);
        let open = problem.open_keys();
        let universe = collect(problem, &shapes, &needs, &ready, &open).finish(|key| open.contains(key));
        let dimensions = dimensions(problem, &shapes, &ready);

        let mut lists: Vec<List> = Vec::new();
        for (_, list) in &ready {
            if !lists.iter().any(|known| Arc::ptr_eq(known, list)) {
                lists.push(Arc::clone(list));
            }
        }
        let shelves = lists.iter().map(|list| Shelf::new(list, &universe, &dimensions)).collect();
        let mut world = Self {
            problem,
            dimensions,
            algebra: Algebra::new(universe, shelves),
            tolerance: Tolerance::default(),
            targets: Targets::default(),
            counters: Counters::default(),
            pools: Vec::new(),
            unusable,
            hosts: Vec::new(),
            classes: Vec::new(),
            pods,
            class_of,
            demand: Demand::default(),
            known_domains: FxHashMap::default(),
            daemons_on: FxHashMap::default(),
            attached: Attached::default(),
        };
        for (pool, list) in ready {
            let shelf = lists.iter().position(|known| Arc::ptr_eq(known, &list)).expect("every list was numbered");
            world.open_pool(&pool, shelf);
        }
        let batch: FxHashSet<PodUid> = world.pods.iter().map(|pod| pod.uid.clone()).collect();
        world.add_hosts(&batch);
        world.charge_limits();
        let classes = shapes.iter().zip(needs).map(|(shape, needs)| world.class(shape, needs)).collect();
        world.classes = classes;
        world.count_running(&batch);
        world.link();
        let (demand, entries) = Demand::new(&world);
        world.demand = demand;
        world.attached = Attached::of(&world, &batch);
        for (class, entry) in world.classes.iter_mut().zip(entries) {
            class.demand = entry;
        }
        world
    }

    /// Tells each class which counters touch it, now that all counters are known.
    fn link(&mut self) {
        let mut classes = std::mem::take(&mut self.classes);
        for class in &mut classes {
            let (counted, repelled) = self.counters.touching(&class.shape, &self.targets);
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
            let mut pins: Vec<KeyId> = all
                .chain(own)
                .filter_map(|id| match self.counters.get(id).topo {
                    Topo::Key(key) => Some(key),
                    Topo::Host => None,
                })
                .collect();
            pins.sort_unstable();
            pins.dedup();
            class.pins = pins;
        }
        self.classes = classes;
    }

    /// Counts the pods that run on nodes and are not part of the question.
    fn count_running(&mut self, batch: &FxHashSet<PodUid>) {
        let by_name: FxHashMap<NodeName, usize> =
            self.hosts.iter().enumerate().filter_map(|(at, host)| host.node.clone().map(|name| (name, at))).collect();
        let snapshot = self.problem.snapshot;
        let running: Vec<(&Arc<Pod>, usize)> = snapshot
            .bound
            .iter()
            .filter_map(|(name, uids)| by_name.get(name).map(|at| (uids, *at)))
            .flat_map(|(uids, at)| uids.iter().filter(|uid| !batch.contains(*uid)).map(move |uid| (uid, at)))
            .filter_map(|(uid, at)| snapshot.pods.get(uid).map(|pod| (pod, at)))
            .filter(|(pod, _)| pod.is_active_on_node())
            .collect();
        // The anti-affinity of running pods makes counters too, so those come first.
        let mut owned: FxHashMap<*const PodShape, Vec<CounterId>> = FxHashMap::default();
        for (pod, _) in running.iter().filter(|(pod, _)| !pod.shape.anti_affinity.is_empty()) {
            owned
                .entry(Arc::as_ptr(&pod.shape))
                .or_insert_with(|| pod.shape.anti_affinity.iter().map(|term| self.owners(term).1).collect());
        }
        if self.counters.all.is_empty() {
            return;
        }
        let mut counted: FxHashMap<*const PodShape, Vec<CounterId>> = FxHashMap::default();
        for (pod, at) in running {
            let shape = Arc::as_ptr(&pod.shape);
            let profile = self.hosts[at].profile;
            let taints = self.hosts[at].taints;
            let host = super::interner::number(at);
            if pod.deleting.is_none() {
                let touched =
                    counted.entry(shape).or_insert_with(|| self.counters.touching(&pod.shape, &self.targets).0).clone();
                for id in touched {
                    self.count(id, host, profile, taints);
                }
            }
            for id in owned.get(&shape).cloned().unwrap_or_default() {
                self.count(id, host, profile, taints);
            }
        }
    }

    /// Counts one pod on a candidate.
    pub(super) fn count(&mut self, id: CounterId, host: u32, profile: ProfileId, taints: u32) {
        let counter = self.counters.get(id);
        let (topo, filter) = (counter.topo, counter.filter);
        if let Some(filter) = filter {
            let filter = self.counters.filter_of(filter).clone();
            if !self.looks_at(&filter, profile, taints) {
                return;
            }
        }
        match topo {
            Topo::Host => self.counters.get_mut(id).add_host(host),
            Topo::Key(key) => {
                let domain = self.algebra.domain(profile, key).into_owned();
                if let Some(value) = domain.bits.first().filter(|_| domain.is_settled()) {
                    self.counters.get_mut(id).add_value(value);
                }
            }
        }
    }

    /// Whether a spread constraint with this filter looks at such a node.
    pub(super) fn looks_at(&mut self, filter: &Filter, profile: ProfileId, taints: u32) -> bool {
        filter.tolerations.is_none_or(|t| self.tolerance.tolerates(t, taints, true))
            && filter
                .terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| self.algebra.join(profile, *term) == Some(profile)))
    }

    /// The domains of a key that exist on nodes or could be made from pools, as far as a filter looks at them.
    pub(super) fn domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        if let Some(known) = self.known_domains.get(&(key, filter.clone())) {
            return known.clone();
        }
        let all = self.find_domains(key, filter);
        self.known_domains.insert((key, filter.clone()), all.clone());
        all
    }

    fn find_domains(&mut self, key: KeyId, filter: &Filter) -> Mask {
        let mut all = Mask::empty(self.algebra.universe.key(key).values.len());
        for at in 0..self.pools.len() {
            let (base, taints) = (self.pools[at].base, self.pools[at].taints);
            if filter.tolerations.is_some_and(|t| !self.tolerance.tolerates(t, taints, true)) {
                continue;
            }
            let profiles: Vec<ProfileId> = match &filter.terms {
                None => vec![base],
                Some(terms) => terms.iter().filter_map(|term| self.algebra.join(base, *term)).collect(),
            };
            for profile in profiles {
                all.or(&self.offered(profile, key));
            }
        }
        for at in 0..self.hosts.len() {
            let (profile, taints, usable) = (self.hosts[at].profile, self.hosts[at].taints, self.hosts[at].usable);
            if usable && self.looks_at(filter, profile, taints) {
                let domain = self.algebra.domain(profile, key).into_owned();
                if domain.is_settled() {
                    all.or(&domain.bits);
                }
            }
        }
        all
    }

    /// The values that a planned node of this profile could have, whether or not they can be bought at the moment.
    fn offered(&self, profile: ProfileId, key: KeyId) -> Mask {
        let domain = self.algebra.domain(profile, key);
        let Source::Shelf(shelf) = self.algebra.profile(profile).source else { return domain.bits.clone() };
        let find = |sets: &[(KeyId, Domain)]| sets.iter().find(|(k, _)| *k == key).map(|(_, d)| d.bits.clone());
        let mut all = Mask::empty(self.algebra.universe.key(key).values.len());
        let mut carried = false;
        for kind in &self.algebra.shelves[shelf as usize].types {
            for offer in &kind.offerings {
                let values = match (find(&kind.sets), find(&offer.sets)) {
                    (Some(mut a), Some(b)) => {
                        a.and(&b);
                        Some(a)
                    }
                    (a, b) => a.or(b),
                };
                if let Some(values) = values {
                    carried = true;
                    all.or(&values);
                }
            }
        }
        if carried {
            all.and(&domain.bits);
        } else if domain.rest == Rest::Nothing {
            all.or(&domain.bits);
        } else if let Some(first) = domain.bits.first() {
            all.set(first);
        }
        all
    }

    pub(super) fn class_at(&self, pod: usize) -> &Class {
        &self.classes[self.class_of[pod] as usize]
    }

    pub(super) fn zero(&self) -> Amounts {
        self.dimensions.zero()
    }
}

/// Pools that may be used, heaviest first and then by name descending, and why the others may not.
fn usable_pools(problem: &Problem<'_>) -> (Vec<(Arc<Pool>, List)>, Vec<Reason>) {
    let mut usable = Vec::new();
    let mut unusable = Vec::new();
    for pool in problem.snapshot.pools.values().filter(|pool| pool.replicas.is_none() && pool.deleting.is_none()) {
        match problem.catalog.pools.get(&pool.name) {
            _ if !pool.is_ready() => {
                let why = crate::core::pools::why_not_ready(pool).into();
                unusable.push(Reason::PoolNotReady { pool: pool.name.clone(), why });
            }
            Some(list) if !list.is_empty() => usable.push((Arc::clone(pool), Arc::clone(list))),
            _ => unusable.push(Reason::NoCatalog { pool: pool.name.clone() }),
        }
    }
    usable.sort_by(|(a, _), (b, _)| (b.weight, &b.name).cmp(&(a.weight, &a.name)));
    (usable, unusable)
}

fn collect_shape(all: &mut Collector, shape: &PodShape) {
    for (key, value) in &shape.node_selector {
        all.value(key, value);
    }
    let preferred = shape.node_affinity.preferred.iter().map(|w| &w.term);
    for requirement in shape.node_affinity.required.iter().chain(preferred).flatten() {
        all.requirement(requirement);
    }
    let wished = shape.preferred_affinity.iter().chain(&shape.preferred_anti_affinity).map(|w| &w.term);
    let terms = shape.affinity.iter().chain(&shape.anti_affinity).chain(wished).map(|term| &term.key);
    for key in terms.chain(shape.spreads.iter().map(|s| &s.key)).filter(|key| &***key != labels::HOSTNAME) {
        all.key(key);
    }
}

fn collect(
    problem: &Problem<'_>,
    shapes: &[Arc<PodShape>],
    needs: &[Option<Arc<Needs>>],
    pools: &[(Arc<Pool>, List)],
    open: &BTreeSet<&str>,
) -> Collector {
    let mut all = Collector::default();
    for requirement in needs.iter().flatten().flat_map(|needs| needs.alternatives.iter().flatten()) {
        all.requirement(requirement);
    }
    let snapshot = problem.snapshot;
    for shape in shapes.iter().chain(snapshot.daemons.values().map(|daemon| &daemon.shape)) {
        collect_shape(&mut all, shape);
    }
    for pod in snapshot.pods.values().filter(|pod| pod.node.is_some()) {
        for term in pod.shape.anti_affinity.iter().filter(|term| &*term.key != labels::HOSTNAME) {
            all.key(&term.key);
        }
    }
    let mut seen: Vec<*const Vec<Arc<InstanceType>>> = Vec::new();
    for (pool, list) in pools {
        for (key, values) in super::pools::template(pool).iter() {
            for value in values.values() {
                all.value(key, value);
            }
            // A custom label that the pool leaves open gets this value, so it must be known as one.
            if let Some(value) = values.concrete().filter(|_| !open.contains(&**key)) {
                all.value(key, &value);
            }
            all.key(key);
        }
        if seen.contains(&Arc::as_ptr(list)) {
            continue;
        }
        seen.push(Arc::as_ptr(list));
        for kind in list.iter() {
            let offered = kind.offerings.iter().flat_map(|offering| &offering.requirements);
            kind.requirements.iter().chain(offered).for_each(|requirement| all.requirement(requirement));
        }
    }
    for claim in snapshot.claims.values() {
        claim
            .requirements
            .iter()
            .filter(|r| all.knows(&r.key))
            .cloned()
            .collect::<Vec<_>>()
            .iter()
            .for_each(|r| all.requirement(r));
    }
    let labelled = snapshot.nodes.values().map(|n| &n.labels).chain(snapshot.claims.values().map(|c| &c.labels));
    for (key, value) in labelled.flatten().filter(|(key, _)| &***key != labels::HOSTNAME) {
        if all.knows(key) {
            all.value(key, value);
        }
    }
    all
}

fn dimensions(problem: &Problem<'_>, shapes: &[Arc<PodShape>], pools: &[(Arc<Pool>, List)]) -> Dimensions {
    let mut names: BTreeSet<ResourceName> = [ResourceName::Cpu, ResourceName::Memory, ResourceName::Pods].into();
    let daemons = problem.snapshot.daemons.values().map(|daemon| &daemon.shape);
    for (name, _) in shapes.iter().chain(daemons).flat_map(|shape| shape.requests.iter()) {
        if !names.contains(name) {
            names.insert(name.clone());
        }
    }
    for (name, _) in
        pools.iter().flat_map(|(pool, _)| pool.limits.iter()).filter(|(name, _)| **name != ResourceName::nodes())
    {
        names.insert(name.clone());
    }
    Dimensions(names.into_iter().collect())
}
