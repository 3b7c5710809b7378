//! What stays from one question to the next.
//!
//! Compiling instance types, labels and five thousand nodes takes far longer than finding a place for twenty pods. A [`Ground`] keeps all
//! of it and follows the cluster by comparing pointers: what is shared with the last snapshot is not looked at. A question then costs what
//! it changes; the provisioner asks one now and then, a disruption planner thousands of the same snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{Claim, InstanceType, Node, PodShape, Pool, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PoolName};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirement;

use super::algebra::{Algebra, ProfileId};
use super::choose::best_buys;
use super::daemons::Grouped;
use super::existing::{Host, OnNode};
use super::interner::{Collector, KeyId, Rest};
use super::layout::Layout;
use super::mentions::{collect, collect_claim, collect_labels, collect_shape, dimensions, usable_pools};
use super::pools::PoolSite;
use super::problem::Problem;
use super::reason::Reason;
use super::reserved::Reservations;
use super::shelf::{Amounts, Dimensions, Shelf};
use super::tolerance::Tolerance;
use super::world::{Asked, List, World};

/// A memo that has grown by so many entries is thrown away: it remembers labels of clusters that are no more.
const TOO_MUCH: usize = 200_000;

/// So many shapes of pods that are gone are remembered at most.
const SPARE: usize = 10_000;

impl<'p> World<'p> {
    /// The world of a question that is asked once.
    pub(super) fn new(problem: &'p Problem<'p>) -> Self {
        let asked = Asked::new(problem);
        let (ready, unready) = usable_pools(problem);
        Kept::new(problem, &ready, &asked).lend(problem, asked, unready).0
    }
}

/// What a caller keeps between questions; it may be thrown away at any time, and then only costs the time to build it again.
#[derive(Default)]
pub struct Ground {
    kept: Option<Kept>,
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts = self.kept.as_ref().map_or(0, |kept| kept.layout.hosts.len());
        f.debug_struct("Ground").field("hosts", &hosts).finish()
    }
}

impl Ground {
    /// Lends the world of a question out, and keeps what is given back.
    pub(super) fn with<'p, T>(
        &mut self,
        problem: &'p Problem<'p>,
        work: impl FnOnce(World<'p>) -> (T, World<'p>),
    ) -> T {
        let asked = Asked::new(problem);
        let (ready, unready) = usable_pools(problem);
        let kept = self.kept.take().and_then(|kept| kept.follow(problem, &ready, &asked));
        let kept = kept.unwrap_or_else(|| Kept::new(problem, &ready, &asked));
        let (world, stock) = kept.lend(problem, asked, unready);
        let (answer, world) = work(world);
        self.kept = Some(stock.take_back(world));
        answer
    }
}

/// What tells shapes apart that are held: pods share them.
fn address(shape: &Arc<PodShape>) -> usize {
    Arc::as_ptr(shape).addr()
}

/// Whether nothing has changed of a pool that nodes of it or plans for it depend on.
fn same_pool((a, list): &(Arc<Pool>, List), (b, other): &(Arc<Pool>, List)) -> bool {
    Arc::ptr_eq(list, other)
        && (Arc::ptr_eq(a, b) || a.name == b.name && a.template == b.template && a.limits == b.limits)
}

/// The labels of a pool of which instance types could say something, and not all do.
fn own_labels(pool: &Pool, list: &List, open: &BTreeSet<&str>) -> Labels {
    let tells = |said: &[Requirement], key: &str| said.iter().any(|one| labels::normalized(&one.key) == key);
    let told = |key: &str| {
        let by_type = |kind: &InstanceType| {
            tells(&kind.requirements, key) || kind.offerings.iter().all(|offer| tells(&offer.requirements, key))
        };
        list.iter().all(|kind| by_type(kind))
    };
    let own = pool.template.labels.iter().map(|(key, value)| (labels::normalized(key), value));
    let own = own.filter(|(key, _)| open.contains(key) && !told(key));
    own.map(|(key, value)| (key.into(), Arc::clone(value))).collect()
}

/// Whether the value of some label is taken from what happens to be mentioned: a custom label that a pool leaves open.
fn is_open_ended(world: &World<'_>) -> bool {
    let universe = &world.algebra.universe;
    let sets = |site: &PoolSite| &world.algebra.profile(site.base).sets;
    let settled = |site: &PoolSite, key: KeyId| {
        sets(site).iter().any(|(known, domain)| *known == key && domain.rest == Rest::Nothing)
    };
    world.pools.iter().any(|site| {
        let custom = |key: &KeyId| sets(site).iter().any(|(known, _)| known == key) && !universe.key(*key).open;
        universe.ids().any(|key| custom(&key) && !settled(site, key))
    })
}

/// A host and what it was compiled from.
struct Stand {
    node: Option<Arc<Node>>,
    claim: Option<Arc<Claim>>,
    host: Arc<Host>,
}

/// What hosts were compiled from, and what else tells whether it is still good.
struct Stock {
    snapshot: Snapshot,
    label_keys: Vec<&'static str>,
    /// Whether pools that cannot keep their `minValues` are used all the same.
    lower_min_values: bool,
    /// The whole catalog.
    lists: Vec<(PoolName, List)>,
    /// Shapes whose labels and resources are known, by address. Holding them keeps their addresses their own.
    shapes: FxHashMap<usize, Arc<PodShape>>,
    /// Pools before anything is charged to their limits.
    pools: Vec<PoolSite>,
    /// Pools that are ready, whether or not they turned out to be usable.
    ready: Vec<(Arc<Pool>, List)>,
    /// Why some of those are not.
    unusable: Vec<Reason>,
    best_buys: Arc<[(Amounts, f64)]>,
    /// Whether some label is left so open that its value is the first of those that anybody mentions. Then nothing may be remembered that
    /// nobody mentions any more.
    open_ended: bool,
    /// Whether shapes are known of pods that were only asked about, or what volumes of such pods mention.
    strangers: bool,
    nodes: FxHashMap<NodeName, Stand>,
    claims: FxHashMap<ClaimName, Stand>,
}

/// The dense form of a cluster and a catalog.
struct Kept {
    stock: Stock,
    dimensions: Dimensions,
    algebra: Algebra,
    tolerance: Tolerance,
    daemons_on: FxHashMap<(ProfileId, u32), Arc<OnNode>>,
    grouped: Grouped,
    layout: Arc<Layout>,
}

impl Stock {
    fn take_back(self, world: World<'_>) -> Kept {
        let World { dimensions, algebra, tolerance, daemons_on, grouped, layout, .. } = world;
        Kept { stock: self, dimensions, algebra, tolerance, daemons_on, grouped, layout }
    }
}

impl Kept {
    /// Compiles everything.
    fn new(problem: &Problem<'_>, ready: &[(Arc<Pool>, List)], asked: &Asked) -> Self {
        let mut shapes: FxHashMap<usize, Arc<PodShape>> = FxHashMap::default();
        for shape in problem.snapshot.pods.values().map(|pod| &pod.shape) {
            shapes.entry(address(shape)).or_insert_with(|| Arc::clone(shape));
        }
        let strangers = asked.of_volumes().next().is_some()
            || asked.shapes.iter().any(|shape| !shapes.contains_key(&address(shape)));
        for shape in &asked.shapes {
            shapes.entry(address(shape)).or_insert_with(|| Arc::clone(shape));
        }
        let open = problem.open_keys();
        let universe =
            collect(problem, shapes.values(), asked.of_volumes(), ready, &open).finish(|key| open.contains(key));
        let dimensions = dimensions(problem, shapes.values(), ready);
        let mut lists: Vec<(List, Labels)> = Vec::new();
        let mut shelf_of: Vec<usize> = Vec::new();
        for (pool, list) in ready {
            let labels = own_labels(pool, list, &open);
            let known = lists.iter().position(|(known, of)| Arc::ptr_eq(known, list) && *of == labels);
            shelf_of.push(known.unwrap_or(lists.len()));
            if known.is_none() {
                lists.push((Arc::clone(list), labels));
            }
        }
        let reservations = Reservations::new(lists.iter().map(|(list, _)| list), &universe);
        let shelf = |(list, labels): &(List, Labels)| Shelf::new(list, labels, &universe, &dimensions, &reservations);
        let shelves = lists.iter().map(shelf).collect();
        let mut world = World::bare(problem, dimensions, Algebra::new(universe, shelves, reservations));
        for ((pool, _), shelf) in ready.iter().zip(shelf_of) {
            world.open_pool(pool, shelf);
        }
        let stock = Stock {
            snapshot: problem.snapshot.clone(),
            label_keys: problem.label_keys.to_vec(),
            lower_min_values: problem.settings.lower_min_values,
            lists: problem.catalog.pools.iter().map(|(name, list)| (name.clone(), Arc::clone(list))).collect(),
            shapes,
            ready: ready.to_vec(),
            best_buys: best_buys(&world).into(),
            open_ended: is_open_ended(&world),
            strangers,
            pools: std::mem::take(&mut world.pools),
            unusable: std::mem::take(&mut world.unusable),
            nodes: FxHashMap::default(),
            claims: FxHashMap::default(),
        };
        let mut kept = stock.take_back(world);
        kept.settle(problem, &FxHashSet::default());
        kept
    }

    /// Moves on to the problem's snapshot, or gives up when what is known does not suffice.
    fn follow(mut self, problem: &Problem<'_>, ready: &[(Arc<Pool>, List)], asked: &Asked) -> Option<Self> {
        let stock = &mut self.stock;
        let new = problem.snapshot;
        let same_list = |(name, list): &(PoolName, List)| {
            problem.catalog.pools.get(name).is_some_and(|other| Arc::ptr_eq(list, other))
        };
        if stock.label_keys != problem.label_keys
            || stock.lower_min_values != problem.settings.lower_min_values
            || stock.lists.len() != problem.catalog.pools.len()
            || !stock.lists.iter().all(same_list)
            || stock.ready.len() != ready.len()
            || !stock.ready.iter().zip(ready).all(|(old, new)| same_pool(old, new))
            || !(stock.snapshot.daemons.ptr_eq(&new.daemons) || stock.snapshot.daemons == new.daemons)
            || self.algebra.size() > TOO_MUCH
            || stock.shapes.len() > new.pods.len() + asked.shapes.len() + SPARE
        {
            return None;
        }
        for site in &mut stock.pools {
            if let Some((fact, _)) = ready.iter().find(|(pool, _)| pool.name == site.fact.name) {
                site.fact = Arc::clone(fact);
            }
        }
        stock.ready = ready.to_vec();
        let old = &stock.snapshot;
        let same = old.nodes.ptr_eq(&new.nodes) && old.claims.ptr_eq(&new.claims) && old.nodes_of.ptr_eq(&new.nodes_of);
        if stock.open_ended && (stock.strangers || !same || !old.pods.ptr_eq(&new.pods)) {
            return None;
        }
        let mut mentioned = Collector::default();
        asked.of_volumes().for_each(|requirement| mentioned.requirement(requirement));
        if !self.algebra.universe.covers(&mentioned) {
            return None;
        }
        let mut touched: FxHashSet<NodeName> = FxHashSet::default();
        let mut shapes: Vec<&Arc<PodShape>> = asked.shapes.iter().collect();
        if !stock.snapshot.pods.ptr_eq(&new.pods) {
            let old = stock.snapshot.pods.clone();
            for change in old.diff(&new.pods) {
                let (before, after) = match change {
                    DiffItem::Add(_, pod) => (None, Some(pod)),
                    DiffItem::Update { old: (_, before), new: (_, after) } => (Some(before), Some(after)),
                    DiffItem::Remove(_, pod) => (Some(pod), None),
                };
                touched.extend(before.iter().chain(&after).filter_map(|pod| pod.node.clone()));
                shapes.extend(after.map(|pod| &pod.shape));
            }
        }
        for shape in shapes {
            if stock.shapes.contains_key(&address(shape)) {
                continue;
            }
            let mut mentioned = Collector::default();
            collect_shape(&mut mentioned, shape);
            let counted = shape.requests.iter().all(|(name, _)| self.dimensions.at(name).is_some());
            if !counted || !self.algebra.universe.covers(&mentioned) {
                return None;
            }
            stock.shapes.insert(address(shape), Arc::clone(shape));
            // Whether it is of the cluster does not matter here: a second look costs one more compilation at most.
            stock.strangers = true;
        }
        if same && touched.is_empty() {
            stock.snapshot = new.clone();
            return Some(self);
        }
        if !self.covers_hosts(new) {
            return None;
        }
        self.stock.snapshot = new.clone();
        self.settle(problem, &touched);
        Some(self)
    }

    /// Whether all labels of nodes and NodeClaims that are new are known.
    fn covers_hosts(&self, new: &Snapshot) -> bool {
        let old = &self.stock.snapshot;
        let mut mentioned = self.algebra.universe.keys_only();
        for node in new.nodes.values() {
            if old.nodes.get(&node.name).is_none_or(|known| !Arc::ptr_eq(known, node)) {
                collect_labels(&mut mentioned, &node.labels);
            }
        }
        for claim in new.claims.values() {
            if old.claims.get(&claim.name).is_none_or(|known| !Arc::ptr_eq(known, claim)) {
                collect_claim(&mut mentioned, claim);
            }
        }
        self.algebra.universe.covers(&mentioned)
    }

    /// Compiles the hosts that are new, or on which pods have come and gone, and lays all of them out.
    fn settle(&mut self, problem: &Problem<'_>, touched: &FxHashSet<NodeName>) {
        let plain = Problem { excluded: &super::problem::NOTHING_EXCLUDED, ..*problem };
        let dimensions = std::mem::take(&mut self.dimensions);
        let algebra = std::mem::take(&mut self.algebra);
        let mut world = World::bare(&plain, dimensions, algebra);
        world.tolerance = std::mem::take(&mut self.tolerance);
        world.daemons_on = std::mem::take(&mut self.daemons_on);
        world.grouped = std::mem::take(&mut self.grouped);
        world.pools = std::mem::take(&mut self.stock.pools);
        let snapshot = problem.snapshot;
        let mut owner: FxHashMap<&NodeName, &Arc<Claim>> = FxHashMap::default();
        let mut waiting: Vec<&Arc<Claim>> = Vec::new();
        for claim in snapshot.claims.values() {
            match snapshot.node_of(claim) {
                Some(node) => {
                    owner.insert(&node.name, claim);
                }
                None => waiting.push(claim),
            }
        }
        let same = |a: Option<&Arc<Claim>>, b: Option<&Arc<Claim>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let mut known = std::mem::take(&mut self.stock.nodes);
        for node in snapshot.nodes.values() {
            let claim = owner.get(&node.name).copied();
            let stand = known.remove(&node.name).filter(|stand| {
                stand.node.as_ref().is_some_and(|old| Arc::ptr_eq(old, node))
                    && same(stand.claim.as_ref(), claim)
                    && !touched.contains(&node.name)
            });
            let stand = stand.unwrap_or_else(|| Stand {
                node: Some(Arc::clone(node)),
                claim: claim.cloned(),
                host: Arc::new(world.host_on(node, claim.map(Arc::as_ref))),
            });
            self.stock.nodes.insert(node.name.clone(), stand);
        }
        let mut known = std::mem::take(&mut self.stock.claims);
        for claim in waiting.into_iter().filter(|claim| claim.broken.is_none()) {
            let stand = known.remove(&claim.name).filter(|stand| same(stand.claim.as_ref(), Some(claim)));
            let stand = stand.unwrap_or_else(|| Stand {
                node: None,
                claim: Some(Arc::clone(claim)),
                host: Arc::new(world.host_to_come(claim)),
            });
            self.stock.claims.insert(claim.name.clone(), stand);
        }
        let stands = self.stock.nodes.values().chain(self.stock.claims.values());
        let hosts = stands.map(|stand| Arc::clone(&stand.host)).collect();
        let World { dimensions, algebra, tolerance, daemons_on, grouped, pools, .. } = world;
        self.stock.pools = pools;
        self.grouped = grouped;
        self.layout = Arc::new(Layout::new(hosts, dimensions.0.len()));
        self.dimensions = dimensions;
        self.algebra = algebra;
        self.tolerance = tolerance;
        self.daemons_on = daemons_on;
    }

    /// The world of one question; what remains is taken back to it.
    fn lend<'p>(self, problem: &'p Problem<'p>, asked: Asked, unready: Vec<Reason>) -> (World<'p>, Stock) {
        let Self { stock, dimensions, algebra, tolerance, daemons_on, grouped, layout } = self;
        let mut world = World::bare(problem, dimensions, algebra);
        world.tolerance = tolerance;
        world.daemons_on = daemons_on;
        world.grouped = grouped;
        world.layout = layout;
        world.pools.clone_from(&stock.pools);
        world.unusable = unready;
        world.unusable.extend(stock.unusable.iter().cloned());
        world.ask(asked, &stock.best_buys);
        (world, stock)
    }
}
