//! The order of placement.
//!
//! Priority first, as kube-scheduler takes pods. Within a priority the largest first, because that packs best; but pods that are counted
//! by one required spread constraint stay together and in the order in which kube-scheduler takes them, so that each of them finds a legal
//! state whatever has been bound so far. Pods that still run somewhere come after all that wait.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::core::resources::ResourceName;

use super::shelf::Amounts;
use super::topology::{CounterId, Topo};
use super::world::World;

/// Numbers of the pods in the order in which they are placed.
pub(super) fn order(world: &World<'_>) -> Vec<usize> {
    let block = blocks(world);
    let cpu = world.dimensions.at(&ResourceName::Cpu).expect("cpu is always a dimension");
    let memory = world.dimensions.at(&ResourceName::Memory).expect("memory is always a dimension");
    let size = |requests: &Amounts| (requests[cpu], requests[memory]);
    // The largest pod and the first number of each block within a priority: pods are numbered by creation.
    let mut largest: FxHashMap<(i32, usize), ((i64, i64), usize)> = FxHashMap::default();
    for pod in 0..world.pods.len() {
        let class = world.class_at(pod);
        if let Some(block) = block[world.class_of[pod] as usize] {
            let known = largest.entry((class.shape.priority, block)).or_insert(((0, 0), pod));
            known.0 = known.0.max(size(&class.requests));
        }
    }
    let mut order: Vec<usize> = (0..world.pods.len()).collect();
    order.sort_by_cached_key(|pod| {
        let class = world.class_at(*pod);
        let priority = class.shape.priority;
        let (size, first) = match block[world.class_of[*pod] as usize] {
            Some(block) => largest[&(priority, block)],
            None => (size(&class.requests), *pod),
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
    let hard = |class: &super::classes::Class| -> Vec<CounterId> {
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
