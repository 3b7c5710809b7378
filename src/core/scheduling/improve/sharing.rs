//! Who may share a node with whom: what a search must know that takes pods from one node to another.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::scheduling::classes::Class;
use crate::core::scheduling::topology::{CounterId, Topo};
use crate::core::scheduling::world::World;

/// How many pods of each class may share a node, as many as there are where they do not mind; nothing where it matters with whom else they do, or where
/// one of these groups of pods on a node has more of them than may always be there.
pub(super) fn per_node(world: &World<'_>, groups: &[Vec<usize>]) -> Vec<Option<u32>> {
    let mut minders: FxHashMap<CounterId, FxHashSet<usize>> = FxHashMap::default();
    for (at, class) in world.classes.iter().enumerate() {
        for id in counters(world, class) {
            minders.entry(id).or_default().insert(at);
        }
    }
    let is_own = |id: &CounterId| minders.get(id).is_some_and(|minders| minders.len() == 1);
    let mut caps: Vec<Option<u32>> = world
        .classes
        .iter()
        .map(|class| counters(world, class).all(|id| is_own(&id)).then(|| cap(class)).flatten())
        .collect();
    for group in groups {
        let mut there: FxHashMap<u32, u32> = FxHashMap::default();
        for pod in group {
            *there.entry(world.class_of[*pod]).or_default() += 1;
        }
        for (which, many) in there {
            let cap = &mut caps[which as usize];
            *cap = cap.filter(|cap| many <= *cap);
        }
    }
    caps
}

/// The counters per node that a class is counted in, or looks at.
fn counters<'a>(world: &'a World<'_>, class: &'a Class) -> impl Iterator<Item = CounterId> + 'a {
    let used = class.variants.iter().flat_map(|variant| {
        let affinities = variant.affinities.iter().flat_map(|one| &one.counters);
        let spreads = variant.spreads.iter().map(|spread| spread.counter);
        spreads.chain(variant.apart.iter().chain(affinities).map(|(_, id)| *id))
    });
    let repelled = class.repelled.iter().map(|(_, id)| *id);
    let all = class.touches.iter().copied().chain(used).chain(repelled);
    all.filter(|id| world.counters.get(*id).topo == Topo::Host)
}

/// How many pods of a class may always share a node, if nobody else minds them; nothing where that depends on more than their number.
fn cap(class: &Class) -> Option<u32> {
    if !class.shape.host_ports.is_empty() || !class.shunned.is_empty() {
        return None;
    }
    let mut cap = u32::MAX;
    for variant in &class.variants {
        if variant.affinities.iter().flat_map(|one| &one.counters).any(|(topo, _)| *topo == Topo::Host) {
            return None;
        }
        if variant.apart.iter().any(|(topo, _)| *topo == Topo::Host) {
            cap = 1;
        }
        // However few there are on other nodes, so many may be here.
        for spread in variant.spreads.iter().filter(|spread| spread.topo == Topo::Host && spread.own > 0) {
            cap = cap.min(spread.max_skew);
        }
    }
    Some(cap)
}
