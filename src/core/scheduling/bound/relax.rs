//! What of a problem the bound looks at: kinds of pods, kinds of nodes, and the room that costs nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::ids::PodUid;
use crate::core::scheduling::algebra::TermId;
use crate::core::scheduling::classes::Class;
use crate::core::scheduling::daemons::DaemonGroup;
use crate::core::scheduling::masks::Mask;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::shelf::{Amounts, subtract};
use crate::core::scheduling::topology::Topo;
use crate::core::scheduling::world::World;

/// From so many kinds of pods on, fillings are not counted in whole pods any more, which would take too long.
pub(super) const WHOLE: usize = 200;

/// Pods that ask for the same and may go to the same nodes.
#[derive(Clone, Debug)]
pub(super) struct Want {
    /// What one of them takes, per resource, as a share of the largest room there is.
    pub(super) need: Vec<f64>,
    /// How many they are.
    pub(super) count: f64,
}

/// A kind of node.
#[derive(Clone, Debug)]
pub(super) struct Bin {
    /// USD per hour; nothing for room that is there already.
    pub(super) price: f64,
    /// Room beside daemons, per resource, in the unit of the wants.
    pub(super) room: Vec<f64>,
    /// Which wants may go here, and how many of each fit at most.
    pub(super) takes: Vec<(usize, f64)>,
}

/// The covering problem.
#[derive(Clone, Debug, Default)]
pub(super) struct Relaxed {
    /// The largest room there is, per resource, in thousandths: what needs and rooms are shares of.
    pub(super) unit: Vec<f64>,
    /// What all needs of a resource are multiples of; nothing where that is not known.
    pub(super) grains: Vec<f64>,
    pub(super) wants: Vec<Want>,
    /// What can be bought, any number of each.
    pub(super) bins: Vec<Bin>,
    /// What exists, each once.
    pub(super) free: Vec<Bin>,
}

/// Pods that may go to the same nodes: their alternatives, and what they tolerate.
type Identity = (Vec<(TermId, bool)>, u32);

/// Where pods of a kind may go.
struct Kind {
    variants: Vec<(TermId, bool)>,
    tolerations: u32,
    /// By pool and type: the cheapest offering that they may use.
    prices: Vec<Vec<f64>>,
}

/// Wants before they are scaled.
struct Raw {
    kind: usize,
    requests: Amounts,
    count: u32,
    /// For pods that keep apart from their like: of how many classes they are. So many fit on one node.
    apart: Option<u32>,
    /// The classes.
    classes: Vec<usize>,
}

/// A kind of node before it is scaled.
struct Candidate {
    price: f64,
    room: Amounts,
    kinds: Mask,
}

/// Relaxes the problem of placing the pods that a plan places.
pub(super) fn relax(world: &mut World<'_>, plan: &Plan) -> Relaxed {
    let refused: FxHashSet<&PodUid> = plan.refused.iter().map(|refusal| &refusal.pod).collect();
    let mut counts = vec![0_u32; world.classes.len()];
    for (pod, class) in world.pods.iter().zip(&world.class_of) {
        counts[*class as usize] += u32::from(!refused.contains(&pod.uid));
    }
    let (kinds, raws) = wants(world, &counts);
    let kinds: Vec<Kind> = kinds.into_iter().map(|identity| kind(world, identity)).collect();
    // A daemon that comes to some nodes of a type only takes no room from the others.
    let candidates = candidates(world, &kinds, |group| &group.surely);
    let mut hosts = hosts(world, &kinds, &raws);
    hosts.extend(reserved(world, &kinds, &raws));
    scaled(&raws, &candidates, &hosts)
}

/// Relaxes the problem of buying new nodes for so many pods of each class, each from the heaviest pools that take such pods; also says which
/// classes stand behind each want.
pub(super) fn to_buy(world: &mut World<'_>, counts: &[u32]) -> (Relaxed, Vec<Vec<usize>>) {
    let (kinds, raws) = wants(world, counts);
    let mut kinds: Vec<Kind> = kinds.into_iter().map(|identity| kind(world, identity)).collect();
    for kind in &mut kinds {
        let weight = |pool: usize| world.pools[pool].fact.weight;
        let first = kind.prices.iter().position(|prices| prices.iter().any(|price| price.is_finite()));
        for (pool, prices) in kind.prices.iter_mut().enumerate() {
            if first.is_none_or(|first| weight(pool) != weight(first)) {
                prices.fill(f64::INFINITY);
            }
        }
    }
    let candidates = candidates(world, &kinds, |group| &group.overhead);
    let relaxed = scaled(&raws, &candidates, &[]);
    (relaxed, raws.into_iter().map(|raw| raw.classes).collect())
}

fn wants(world: &World<'_>, counts: &[u32]) -> (Vec<Identity>, Vec<Raw>) {
    let mut kinds: Vec<Identity> = Vec::new();
    let mut kind_of: FxHashMap<Identity, usize> = FxHashMap::default();
    let mut raws: Vec<Raw> = Vec::new();
    let mut known: FxHashMap<(usize, Amounts, bool), usize> = FxHashMap::default();
    for (number, (class, count)) in world.classes.iter().zip(counts).enumerate().filter(|(_, (_, count))| **count > 0) {
        let mut variants: Vec<_> = class.variants.iter().map(|v| (v.term, v.ignore_soft_taints)).collect();
        variants.dedup();
        let identity = (variants, class.tolerations);
        let kind = *kind_of.entry(identity.clone()).or_insert_with(|| {
            kinds.push(identity);
            kinds.len() - 1
        });
        let apart = keeps_apart(class);
        let want = *known.entry((kind, class.requests.clone(), apart)).or_insert_with(|| {
            let apart = apart.then_some(0);
            raws.push(Raw { kind, requests: class.requests.clone(), count: 0, apart, classes: Vec::new() });
            raws.len() - 1
        });
        raws[want].count += count;
        raws[want].classes.push(number);
        raws[want].apart = raws[want].apart.map(|classes| classes + 1);
    }
    (kinds, raws)
}

/// Whether no two pods of a class can share a node, whatever else happens: the same host port, or anti-affinity against their like.
fn keeps_apart(class: &Class) -> bool {
    let mut apart = class.variants.last().into_iter().flat_map(|bare| class.away_from_its_like(bare));
    !class.shape.host_ports.is_empty() || apart.any(|(topo, _)| topo == Topo::Host)
}

fn kind(world: &mut World<'_>, (variants, tolerations): Identity) -> Kind {
    let mut prices = Vec::with_capacity(world.pools.len());
    for pool in 0..world.pools.len() {
        let (base, taints, shelf) = (world.pools[pool].base, world.pools[pool].taints, world.pools[pool].shelf);
        let mut best = vec![f64::INFINITY; world.algebra.shelves[shelf].types.len()];
        for (term, ignore_soft) in &variants {
            if !world.tolerance.tolerates(tolerations, taints, *ignore_soft) {
                continue;
            }
            let Some(joined) = world.algebra.join(base, *term) else { continue };
            let profile = world.algebra.profile(joined);
            for at in profile.types.bits() {
                best[at] = best[at].min(profile.prices[at]);
            }
        }
        prices.push(best);
    }
    Kind { variants, tolerations, prices }
}

/// Every type of every pool at every price at which some pods may have it, but for those that others surpass in all respects; less what its daemons take.
fn candidates(world: &World<'_>, kinds: &[Kind], taken: impl Fn(&DaemonGroup) -> &Amounts) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (pool, site) in world.pools.iter().enumerate() {
        for (at, entry) in world.algebra.shelves[site.shelf].types.iter().enumerate() {
            let Some(group) = site.daemons.groups.iter().find(|group| group.types.has(at)) else { continue };
            let mut levels: Vec<f64> =
                kinds.iter().map(|kind| kind.prices[pool][at]).filter(|price| price.is_finite()).collect();
            levels.sort_by(f64::total_cmp);
            levels.dedup();
            let mut room = entry.allocatable.clone();
            subtract(&mut room, taken(group));
            for price in levels {
                let mut members = Mask::empty(kinds.len());
                (0..kinds.len())
                    .filter(|kind| kinds[*kind].prices[pool][at] <= price)
                    .for_each(|kind| members.set(kind));
                all.push(Candidate { price, room: room.clone(), kinds: members });
            }
        }
    }
    // Cheapest first, and of equals the roomiest, so that whoever is surpassed comes after who surpasses it.
    all.sort_by(|a, b| a.price.total_cmp(&b.price).then_with(|| b.room.cmp(&a.room)));
    let mut best: Vec<Candidate> = Vec::new();
    for one in all {
        let surpassed = best.iter().any(|other| {
            let kinds = || {
                let mut both = one.kinds.clone();
                both.and(&other.kinds);
                both == one.kinds
            };
            other.room.iter().zip(&one.room).all(|(other, own)| other >= own) && kinds()
        });
        if !surpassed {
            best.push(one);
        }
    }
    best
}

/// Room that is there, with what accepts the same pods taken together; and how many of each want fit.
fn hosts(world: &mut World<'_>, kinds: &[Kind], raws: &[Raw]) -> Vec<(Candidate, Vec<f64>)> {
    let mut accepted: FxHashMap<(u32, u32), Mask> = FxHashMap::default();
    let mut groups: Vec<(Candidate, Vec<f64>)> = Vec::new();
    for at in 0..world.hosts.len() {
        let (profile, taints, usable) = (world.hosts[at].profile, world.hosts[at].taints, world.hosts[at].usable);
        if !usable {
            continue;
        }
        let members = accepted.entry((profile.0, taints)).or_insert_with(|| {
            let mut members = Mask::empty(kinds.len());
            for (number, kind) in kinds.iter().enumerate() {
                let accepts = kind.variants.iter().any(|(term, soft)| {
                    world.tolerance.tolerates(kind.tolerations, taints, *soft)
                        && world.algebra.join(profile, *term).is_some()
                });
                if accepts {
                    members.set(number);
                }
            }
            members
        });
        if members.is_empty() {
            continue;
        }
        let free: Amounts = world.hosts[at].free.iter().map(|amount| (*amount).max(0)).collect();
        let group = groups.iter().position(|(group, _)| group.kinds == *members).unwrap_or_else(|| {
            let empty = Candidate { price: 0.0, room: free.iter().map(|_| 0).collect(), kinds: members.clone() };
            groups.push((empty, vec![0.0; raws.len()]));
            groups.len() - 1
        });
        let (group, fits) = &mut groups[group];
        for (total, amount) in group.room.iter_mut().zip(&free) {
            *total = total.saturating_add(*amount);
        }
        for (fit, raw) in fits.iter_mut().zip(raws).filter(|(_, raw)| group.kinds.has(raw.kind)) {
            *fit += how_many(raw, &free);
        }
    }
    groups
}

/// Reserved capacity as if it cost nothing: each reservation as many times as it has machines left, in the largest type that it has.
fn reserved(world: &mut World<'_>, kinds: &[Kind], raws: &[Raw]) -> Vec<(Candidate, Vec<f64>)> {
    let mut groups = Vec::new();
    for id in 0..world.left_reserved.len() {
        let left = i64::from(world.left_reserved[id]);
        let mut members = Mask::empty(kinds.len());
        let mut room = world.zero();
        for pool in 0..world.pools.len() {
            let (base, taints, shelf) = (world.pools[pool].base, world.pools[pool].taints, world.pools[pool].shelf);
            for (number, kind) in kinds.iter().enumerate() {
                for (term, soft) in &kind.variants {
                    if !world.tolerance.tolerates(kind.tolerations, taints, *soft) {
                        continue;
                    }
                    let Some(joined) = world.algebra.join(base, *term) else { continue };
                    let offered = &world.algebra.profile(joined).reserved;
                    for (at, _) in offered.iter().filter(|(_, reservation)| *reservation as usize == id) {
                        members.set(number);
                        let has = &world.algebra.shelves[shelf].types[*at as usize].allocatable;
                        room.iter_mut().zip(has).for_each(|(room, has)| *room = (*room).max(*has));
                    }
                }
            }
        }
        if left == 0 || members.is_empty() {
            continue;
        }
        let fit = |raw: &Raw| if members.has(raw.kind) { how_many(raw, &room) * left as f64 } else { 0.0 };
        let fits = raws.iter().map(fit).collect();
        let room = room.iter().map(|room| room.saturating_mul(left)).collect();
        groups.push((Candidate { price: 0.0, room, kinds: members }, fits));
    }
    groups
}

/// How many pods of a want fit into a room, at most all of them.
fn how_many(raw: &Raw, room: &[i64]) -> f64 {
    let needed = raw.requests.iter().zip(room).filter(|(need, _)| **need > 0);
    let fit = needed.map(|(need, room)| (*room).max(0) / need).min().unwrap_or(i64::MAX);
    let most = i64::from(raw.apart.unwrap_or(u32::MAX).min(raw.count));
    fit.min(most) as f64
}

fn scaled(raws: &[Raw], candidates: &[Candidate], hosts: &[(Candidate, Vec<f64>)]) -> Relaxed {
    let dimensions = raws.first().map_or(0, |raw| raw.requests.len());
    let rooms = || candidates.iter().chain(hosts.iter().map(|(group, _)| group)).map(|one| &one.room);
    let unit: Vec<f64> =
        (0..dimensions).map(|d| rooms().map(|room| room[d]).max().unwrap_or(1).max(1) as f64).collect();
    let share = |amounts: &[i64]| -> Vec<f64> {
        amounts.iter().zip(&unit).map(|(amount, unit)| (*amount).max(0) as f64 / unit).collect()
    };
    let wants: Vec<Want> =
        raws.iter().map(|raw| Want { need: share(&raw.requests), count: f64::from(raw.count) }).collect();
    let bins = candidates.iter().map(|one| {
        let members = raws.iter().enumerate().filter(|(_, raw)| one.kinds.has(raw.kind));
        let takes = members.map(|(at, raw)| (at, how_many(raw, &one.room))).filter(|(_, fit)| *fit > 0.0).collect();
        Bin { price: one.price, room: share(&one.room), takes }
    });
    let free = hosts.iter().map(|(group, fits)| {
        let takes = fits.iter().copied().enumerate().filter(|(_, fit)| *fit > 0.0).collect();
        Bin { price: 0.0, room: share(&group.room), takes }
    });
    let grain = |dimension: usize| raws.iter().fold(0, |grain, raw| common(grain, raw.requests[dimension].max(0)));
    let grains = unit.iter().enumerate().map(|(dimension, unit)| grain(dimension) as f64 / unit).collect();
    let some = |bin: &Bin| !bin.takes.is_empty();
    let (bins, free) = (bins.filter(some).collect(), free.filter(some).collect());
    Relaxed { unit, grains, wants, bins, free }
}

/// The greatest common divisor.
fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common(b, a % b) }
}
