//! Who plays the parts of the script: pods of the right size, chosen such that what they ask of each other lets them share a node.
//!
//! A filling says how many pods of which size go together, and most sizes are those of several classes. Of a class that spreads or keeps
//! apart, one node takes only a few, and two classes that spread over zones seldom want the same zone: so the classes take turns.

use std::cmp::Reverse;

use super::script::{FULL, largest_first, whole};
use crate::core::ids::PodUid;
use crate::core::scheduling::bound::{Mix, Share};
use crate::core::scheduling::classes::Class;
use crate::core::scheduling::topology::Topo;
use crate::core::scheduling::world::World;

/// What the pods of a class ask of each other.
#[derive(Clone, Copy)]
struct Manners {
    /// So many on one node.
    per_node: usize,
    /// Whether they are divided over domains that several nodes share.
    divided: bool,
}

impl Manners {
    fn of(class: &Class) -> Self {
        let mut manners = Self { per_node: usize::MAX, divided: false };
        let Some(wishes) = class.variants.first() else { return manners };
        if !class.shape.host_ports.is_empty() || class.away_from_its_like(wishes).next().is_some() {
            manners.per_node = 1;
        }
        for spread in wishes.spreads.iter().filter(|spread| spread.own > 0) {
            manners.per_node = manners.per_node.min(spread.max_skew as usize);
            manners.divided |= spread.topo != Topo::Host;
        }
        manners
    }
}

/// The pods that are to be cast.
struct Cast<'w, 'p> {
    world: &'w World<'p>,
    mix: &'w Mix,
    manners: Vec<Manners>,
    waiting: &'w mut [Vec<usize>],
}

/// Fills nodes by the mix, as long as there are pods for them; says how many.
pub(super) fn take(
    world: &World<'_>,
    mix: &Mix,
    waiting: &mut [Vec<usize>],
    round_up: bool,
    groups: &mut Vec<Vec<PodUid>>,
) -> usize {
    let before = groups.len();
    let manners = world.classes.iter().map(Manners::of).collect();
    let mut cast = Cast { world, mix, manners, waiting };
    for share in largest_first(mix) {
        let mut left = whole(share.nodes, round_up);
        while left >= 1.0 && cast.is_worth_it(share) {
            left -= 1.0;
            groups.push(cast.node(share));
        }
    }
    groups.len() - before
}

impl Cast<'_, '_> {
    /// Whether enough pods wait to fill a node by this filling.
    fn is_worth_it(&self, share: &Share) -> bool {
        let there =
            |want: usize| self.mix.classes[want].iter().map(|class| self.waiting[*class].len()).sum::<usize>() as f64;
        let (asked, found) = share.amounts.iter().fold((0.0, 0.0), |(asked, found), (want, many)| {
            let worth = self.mix.worth[*want];
            (asked + worth * many, found + worth * many.min(there(*want)))
        });
        found > 0.0 && found >= asked * FULL
    }

    /// The pods of one node.
    fn node(&mut self, share: &Share) -> Vec<PodUid> {
        let mut group = Vec::new();
        let mut used: Vec<(usize, usize)> = Vec::new();
        for (want, many) in &share.amounts {
            let mut many = *many;
            while many >= 1.0 {
                let Some(class) = self.next(*want, &used) else { break };
                let Some(pod) = self.waiting[class].pop() else { break };
                group.push(self.world.pods[pod].uid.clone());
                many -= 1.0;
                match used.iter_mut().find(|(known, _)| *known == class) {
                    Some((_, times)) => *times += 1,
                    None => used.push((class, 1)),
                }
            }
        }
        group
    }

    /// The class whose turn it is: those that are hardest to place first, as long as a node with these classes suits them.
    fn next(&self, want: usize, used: &[(usize, usize)]) -> Option<usize> {
        let is_divided = used.iter().any(|(class, _)| self.manners[*class].divided);
        let waiting = self.mix.classes[want].iter().copied().filter(|class| !self.waiting[*class].is_empty());
        waiting.max_by_key(|class| {
            let Manners { per_node, divided } = self.manners[*class];
            let times = used.iter().find(|(known, _)| known == class).map_or(0, |(_, times)| *times);
            let suits = times < per_node && (times > 0 || !divided || !is_divided);
            (suits, per_node < usize::MAX, self.waiting[*class].len(), Reverse(*class))
        })
    }
}
