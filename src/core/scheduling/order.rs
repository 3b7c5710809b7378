//! The order of placement.
//!
//! Priority first, as kube-scheduler takes pods. Within a priority the largest first, because that packs best (improvement also tries the
//! dearest first, for whom room that is there saves most); but pods that are counted
//! by one required spread constraint stay together and in the order in which kube-scheduler takes them, so that each of them finds a legal
//! state whatever has been bound so far. Pods that still run somewhere come after all that wait.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::core::resources::ResourceName;

use super::classes::Class;
use super::place::Load;
use super::topology::{CounterId, Topo};
use super::world::World;

/// What decides among classes of one priority: the greater comes first.
pub(super) type Size = (i64, i64);

/// The CPU of each class, then its memory.
pub(super) fn by_size(world: &World<'_>) -> Vec<Size> {
    let cpu = world.dimensions.at(&ResourceName::Cpu).expect("cpu is always a dimension");
    let memory = world.dimensions.at(&ResourceName::Memory).expect("memory is always a dimension");
    world.classes.iter().map(|class| (class.requests[cpu], class.requests[memory])).collect()
}

/// What the cheapest new node for a pod of each class costs, then the share of it that it needs.
pub(super) fn by_price(world: &mut World<'_>) -> Vec<Size> {
    let alone = all_alone(world);
    // What is not negative is ordered as its bits are.
    let number = |price: f64| price.to_bits().cast_signed();
    let size = |(class, alone): (&Class, Option<(i32, f64)>)| {
        // Where there is none to buy, only what is there can be its place.
        let price = alone.map_or(f64::INFINITY, |(_, price)| price);
        (number(price), number(world.demand.entries[class.demand].worth))
    };
    world.classes.iter().zip(alone).map(size).collect()
}

/// For one pod of each class: the weight of the heaviest pools that can make a node for it, limits aside, and the price of their cheapest.
pub(super) fn all_alone(world: &mut World<'_>) -> Vec<Option<(i32, f64)>> {
    let classes = std::mem::take(&mut world.classes);
    let all = classes.iter().map(|class| alone(world, class)).collect();
    world.classes = classes;
    all
}

fn alone(world: &mut World<'_>, class: &Class) -> Option<(i32, f64)> {
    let mut least: Option<(i32, f64)> = None;
    for pool in 0..world.pools.len() {
        let (base, taints, weight) = (world.pools[pool].base, world.pools[pool].taints, world.pools[pool].fact.weight);
        if least.is_some_and(|(known, _)| known != weight) {
            break;
        }
        for variant in &class.variants {
            if !world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints) {
                continue;
            }
            let Some(joined) = world.algebra.join(base, variant.term) else { continue };
            let profile = world.algebra.profile(joined);
            let holding = world.holding_at_best(pool, joined, &profile.types, Load::of_pod(class));
            for price in holding.bits().map(|at| profile.prices[at]) {
                least = Some((weight, least.map_or(price, |(_, known)| known.min(price))));
            }
        }
    }
    least
}

/// Numbers of the pods in the order in which they are placed.
pub(super) fn order(world: &World<'_>, sizes: &[Size]) -> Vec<usize> {
    let block = blocks(world);
    let size = |pod: usize| sizes[world.class_of[pod] as usize];
    // The largest pod and the first number of each block within a priority: pods are numbered by creation.
    let mut largest: FxHashMap<(i32, usize), (Size, usize)> = FxHashMap::default();
    for pod in 0..world.pods.len() {
        let class = world.class_at(pod);
        if let Some(block) = block[world.class_of[pod] as usize] {
            let known = largest.entry((class.shape.priority, block)).or_insert(((0, 0), pod));
            known.0 = known.0.max(size(pod));
        }
    }
    let mut order: Vec<usize> = (0..world.pods.len()).collect();
    order.sort_by_cached_key(|pod| {
        let class = world.class_at(*pod);
        let priority = class.shape.priority;
        let (size, first) = match block[world.class_of[*pod] as usize] {
            Some(block) => largest[&(priority, block)],
            None => (size(*pod), *pod),
        };
        (world.still_on.contains_key(pod), Reverse(priority), Reverse(size), first, *pod)
    });
    order
}

/// Classes that one required zonal spread constraint counts or binds belong together; nothing for classes that none does.
fn blocks(world: &World<'_>) -> Vec<Option<usize>> {
    let mut parent: Vec<usize> = (0..world.classes.len()).collect();
    let mut bound = vec![false; world.classes.len()];
    let mut spreading: FxHashMap<CounterId, Option<usize>> = FxHashMap::default();
    let hard = |class: &Class| -> Vec<CounterId> {
        let bare = class.variants.last();
        bare.iter().flat_map(|v| &v.spreads).filter(|s| s.topo != Topo::Host).map(|s| s.counter).collect()
    };
    for class in &world.classes {
        spreading.extend(hard(class).into_iter().map(|id| (id, None)));
    }
    for (at, class) in world.classes.iter().enumerate() {
        for id in hard(class).iter().chain(&class.touches) {
            let Some(first) = spreading.get_mut(id) else { continue };
            bound[at] = true;
            match first {
                Some(first) => {
                    let (a, b) = (root(&mut parent, *first), root(&mut parent, at));
                    parent[a.max(b)] = a.min(b);
                }
                None => *first = Some(at),
            }
        }
    }
    (0..bound.len()).map(|at| bound[at].then(|| root(&mut parent, at))).collect()
}

fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}
