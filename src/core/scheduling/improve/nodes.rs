//! The new nodes of a plan as a search sees them: pods that may move, in kinds, and pods that stay where they are.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::sharing::per_node;
use super::sites::{Site, site_of};
use crate::core::ids::PodUid;
use crate::core::scheduling::algebra::ProfileId;
use crate::core::scheduling::choose::Promises;
use crate::core::scheduling::draft::{Caps, Draft};
use crate::core::scheduling::finish::{Moulds, finished};
use crate::core::scheduling::interner::{Domain, KeyId};
use crate::core::scheduling::name::Names;
use crate::core::scheduling::place::Load;
use crate::core::scheduling::plan::{Plan, PlannedClaim};
use crate::core::scheduling::shelf::{Amounts, add};
use crate::core::scheduling::world::World;

/// Pods that need the same and may change places with each other: where they spread by domains, those of one domain.
pub(super) struct Kind {
    pub(super) need: Amounts,
    /// What one of them costs at least, in USD per hour.
    pub(super) worth: f64,
    /// Sites at which they may be, those that leave most open first.
    pub(super) sites: Vec<usize>,
    /// So many may share a node.
    pub(super) per_node: u32,
}

/// A new node.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) site: usize,
    /// USD per hour.
    pub(super) price: f64,
    /// Pods that stay, and what they need.
    pub(super) fixed: Vec<usize>,
    pub(super) base: Amounts,
    /// Pods that may move, by kind.
    pub(super) pods: BTreeMap<usize, Vec<usize>>,
    /// Its place in the plan; nothing for one that is to be bought instead of others.
    claim: Option<usize>,
}

/// All of a plan's new nodes whose pods a search may move.
#[derive(Default)]
pub(super) struct Nodes {
    pub(super) sites: Vec<Site>,
    pub(super) kinds: Vec<Kind>,
    /// Those that were given up are gone; what is bought instead comes last.
    pub(super) all: Vec<Option<Node>>,
    /// What they were in the plan.
    claims: FxHashSet<usize>,
}

/// What tells kinds apart: the class, the pool, the site of those that may not leave it, and the domains of the keys that constraints look at.
type Identity = (u32, usize, Option<usize>, Vec<(KeyId, Domain)>);

impl Node {
    /// A node that is bought instead of others.
    pub(super) fn bought(site: usize, price: f64, seed: Option<&Self>, zero: Amounts) -> Self {
        let (fixed, base) = seed.map_or((Vec::new(), zero), |seed| (seed.fixed.clone(), seed.base.clone()));
        Self { site, price, fixed, base, pods: BTreeMap::new(), claim: None }
    }
}

/// Reads a plan.
struct Reader<'w, 'p> {
    world: &'w mut World<'p>,
    nodes: Nodes,
    site_index: FxHashMap<(usize, ProfileId), usize>,
    kind_index: FxHashMap<Identity, usize>,
    /// Whether pods of a class may be at a site.
    suits: FxHashMap<(u32, usize), bool>,
    /// How many pods of a class may share a node; nothing where it matters with whom else they do.
    per_node: Vec<Option<u32>>,
}

impl Nodes {
    pub(super) fn of(world: &mut World<'_>, plan: &Plan) -> Self {
        let numbers: FxHashMap<_, usize> =
            world.pods.iter().enumerate().map(|(at, pod)| (pod.uid.clone(), at)).collect();
        let (site_index, kind_index, suits) = Default::default();
        let all: Vec<Vec<usize>> = plan.claims.iter().map(|claim| pods_of(claim, &numbers)).collect();
        let per_node = per_node(world, &all);
        let mut reader = Reader { world, nodes: Self::default(), site_index, kind_index, suits, per_node };
        for ((at, claim), pods) in plan.claims.iter().enumerate().zip(&all).filter(|(_, pods)| !pods.is_empty()) {
            if let Some((pool, profile)) = site_of(reader.world, claim) {
                reader.read(at, claim.price, (pool, profile), pods);
            }
        }
        reader.kinds()
    }

    /// The plan with these nodes.
    pub(super) fn write(self, world: &World<'_>, plan: &Plan) -> Option<Plan> {
        let kept: FxHashSet<usize> = self.all.iter().flatten().filter_map(|node| node.claim).collect();
        let mut names = Names::new(world.problem.snapshot, world.problem.settings.name_salt);
        let mut moulds = Moulds::default();
        let is_there = |at: &usize| kept.contains(at) || !self.claims.contains(at);
        let untouched = plan.claims.iter().enumerate().filter(|(at, _)| is_there(at));
        let mut claims: Vec<_> = untouched.map(|(_, claim)| claim.clone()).collect();
        for node in self.all.iter().flatten().filter(|node| node.claim.is_none()) {
            let draft = draft(world, &self.sites[node.site], node)?;
            claims.push(finished(world, &draft, &mut moulds, &mut names).ok()?);
        }
        let mut names = Names::new(world.problem.snapshot, world.problem.settings.name_salt);
        for claim in &mut claims {
            claim.draft.name = names.name(&claim.draft.pool);
        }
        let price = claims.iter().map(|claim| claim.price).fold(0.0, |sum, price| sum + price);
        let (existing, refused, unusable) = (plan.existing.clone(), plan.refused.clone(), plan.unusable.clone());
        Some(Plan { claims, existing, refused, unusable, price })
    }
}

/// The pods of a NodeClaim; none when not all of them are of the problem.
fn pods_of(claim: &PlannedClaim, numbers: &FxHashMap<PodUid, usize>) -> Vec<usize> {
    let pods: Option<Vec<usize>> = claim.pods.iter().map(|pod| numbers.get(&pod.uid).copied()).collect();
    pods.unwrap_or_default()
}

fn draft(world: &World<'_>, site: &Site, node: &Node) -> Option<Draft> {
    let mut pods: Vec<usize> = node.fixed.iter().chain(node.pods.values().flatten()).copied().collect();
    pods.sort_by_key(|pod| (Reverse(world.class_at(*pod).shape.priority), *pod));
    let mut requests = world.zero();
    let (mut ports, mut shunned) = (Vec::new(), Vec::new());
    for pod in &pods {
        let class = world.class_at(*pod);
        add(&mut requests, &class.requests);
        ports.extend(class.shape.host_ports.iter().cloned());
        shunned.extend(&class.shunned);
    }
    let load = Load { shunned: &shunned, ..Load::of(&requests, &ports) };
    let (pool, profile) = (site.pool, site.profile);
    let least = Arc::clone(&world.pools[pool].least);
    let holding = world.holding(pool, profile, &world.algebra.profile(profile).types, load);
    let types = world.modest(pool, profile, world.within_limits(pool, &holding), &requests, &least);
    if types.is_empty() || world.variety(world.pools[pool].shelf, profile, &types, &least).is_err() {
        return None;
    }
    let (aim, promises, reserved, charged) = (requests.clone(), Promises::new(), world.zero(), world.zero());
    let caps = Caps::new();
    Some(Draft { pool, profile, requests, aim, promises, reserved, types, least, ports, shunned, caps, charged, pods })
}

impl Reader<'_, '_> {
    /// Reads a node; leaves it out where volumes are attached, where the pool asks for variety, or where more is at work than is read here.
    fn read(&mut self, claim: usize, price: f64, place: (usize, ProfileId), pods: &[usize]) {
        let next = self.nodes.sites.len();
        let site = *self.site_index.entry(place).or_insert(next);
        if site == next {
            self.nodes.sites.push(Site::new(self.world, place.0, place.1));
        }
        let mut node = Node::bought(site, price, None, self.world.zero());
        node.claim = Some(claim);
        let mut load = self.world.zero();
        for pod in pods {
            let which = self.world.class_of[*pod];
            if self.world.class_at(*pod).needs.is_some() || !self.suits(which, site) {
                return;
            }
            add(&mut load, &self.world.class_at(*pod).requests);
            if let Some(identity) = self.identity(which, site) {
                let next = self.kind_index.len();
                let kind = *self.kind_index.entry(identity).or_insert(next);
                node.pods.entry(kind).or_default().push(*pod);
            } else {
                add(&mut node.base, &self.world.class_at(*pod).requests);
                node.fixed.push(*pod);
            }
        }
        let is_known = self.nodes.sites[site].price(&load).is_some_and(|known| (known - price).abs() < 1e-9);
        if is_known && self.world.pools[place.0].least.is_empty() {
            self.nodes.all.push(Some(node));
            self.nodes.claims.insert(claim);
        }
    }

    fn suits(&mut self, which: u32, site: usize) -> bool {
        if let Some(known) = self.suits.get(&(which, site)) {
            return *known;
        }
        let World { classes, algebra, tolerance, pools, .. } = &mut *self.world;
        let class = &classes[which as usize];
        let Site { pool, profile, .. } = self.nodes.sites[site];
        let answer = class.variants.iter().any(|variant| {
            tolerance.tolerates(class.tolerations, pools[pool].taints, variant.ignore_soft_taints)
                && algebra.join(profile, variant.term) == Some(profile)
        });
        self.suits.insert((which, site), answer);
        answer
    }

    /// The kind of a pod at a site; nothing where it is to stay, because nodes matter to it or to others on its account.
    fn identity(&self, which: u32, site: usize) -> Option<Identity> {
        let class = &self.world.classes[which as usize];
        self.per_node[which as usize]?;
        let Site { pool, profile, .. } = self.nodes.sites[site];
        let has_wishes = class.with_all_wishes().count() < class.variants.len();
        let is_watched = class.touches.iter().any(|id| self.world.counters.get(*id).filter.is_some());
        let own = (has_wishes || is_watched).then_some(site);
        let domain = |key: &KeyId| (*key, self.world.algebra.domain(profile, *key).into_owned());
        Some((which, pool, own, class.pins.iter().map(domain).collect()))
    }

    /// The nodes, with what is known of each kind. To a search it is all one of which class pods are that need the same and may be at the same sites: a
    /// hundred Deployments are often few kinds.
    fn kinds(mut self) -> Nodes {
        let mut known: FxHashMap<(Amounts, Vec<usize>, Option<u32>), usize> = FxHashMap::default();
        let mut kind_of: Vec<usize> = Vec::new();
        let mut identities: Vec<(usize, Identity)> = self.kind_index.drain().map(|(one, at)| (at, one)).collect();
        identities.sort_unstable_by_key(|(at, _)| *at);
        for (_, identity) in identities {
            let mut sites: Vec<usize> = (0..self.nodes.sites.len()).collect();
            sites.retain(|site| self.may_be_at(&identity, *site));
            sites.sort_by_key(|site| (self.nodes.sites[*site].narrowed, *site));
            let class = &self.world.classes[identity.0 as usize];
            let worth = self.world.demand.entries[class.demand].worth;
            let need = class.requests.clone();
            let per_node = self.per_node[identity.0 as usize].unwrap_or(1);
            let own = (per_node < u32::MAX).then_some(identity.0);
            let kinds = &mut self.nodes.kinds;
            let kind = *known.entry((need.clone(), sites.clone(), own)).or_insert(kinds.len());
            match kinds.get_mut(kind) {
                Some(kind) => kind.worth = kind.worth.max(worth),
                None => kinds.push(Kind { need, worth, sites, per_node }),
            }
            kind_of.push(kind);
        }
        for node in self.nodes.all.iter_mut().flatten() {
            for (identity, pods) in std::mem::take(&mut node.pods) {
                node.pods.entry(kind_of[identity]).or_default().extend(pods);
            }
        }
        self.nodes
    }

    /// Whether pods of one pool may go to another: to those of the same weight that ask for nothing which is not counted here.
    fn may_change(&self, from: usize, to: usize) -> bool {
        let (from, to) = (&self.world.pools[from], &self.world.pools[to]);
        let is_free = !to.room.is_limited() && to.room.nodes.is_none() && to.least.is_empty();
        from.fact.name == to.fact.name || from.fact.weight == to.fact.weight && is_free
    }

    fn may_be_at(&mut self, (which, pool, own, domains): &Identity, site: usize) -> bool {
        let Site { pool: its, profile, .. } = self.nodes.sites[site];
        self.may_change(*pool, its)
            && own.is_none_or(|own| own == site)
            && domains.iter().all(|(key, domain)| *self.world.algebra.domain(profile, *key) == *domain)
            && self.suits(*which, site)
    }
}
