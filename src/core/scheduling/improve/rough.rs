//! Nodes for pods of which no two are alike: a filling says how many of about which size go together, and real pods are chosen such that
//! they fit and leave little room.

use super::script::{FULL, largest_first, whole};
use crate::core::ids::PodUid;
use crate::core::scheduling::bound::{Mix, Share};
use crate::core::scheduling::shelf::{Amounts, fits, subtract};
use crate::core::scheduling::world::World;

/// A pod that waits, and what it is worth.
#[derive(Clone, Copy)]
struct Waiting {
    pod: usize,
    class: usize,
    worth: f64,
}

/// The pods that each want of a mix speaks for, least worth first.
struct Parts<'w, 'p> {
    world: &'w World<'p>,
    parts: Vec<Vec<Waiting>>,
}

/// A node while it is being filled.
struct Node {
    room: Amounts,
    pods: Vec<(usize, Waiting)>,
}

/// Fills nodes by the mix, as long as there are pods for them.
pub(super) fn take(
    world: &World<'_>,
    mix: &Mix,
    waiting: &mut [Vec<usize>],
    round_up: bool,
    groups: &mut Vec<Vec<PodUid>>,
) -> usize {
    let before = groups.len();
    let mut parts = Parts::new(world, mix, waiting);
    for share in largest_first(mix) {
        let asked: f64 = share.amounts.iter().map(|(want, many)| mix.worth[*want] * many).sum();
        let mut left = whole(share.nodes, round_up);
        while left >= 1.0 {
            left -= 1.0;
            let node = parts.fill(share);
            let found: f64 = node.pods.iter().map(|(part, _)| mix.worth[*part]).sum();
            if node.pods.is_empty() || found < asked * FULL {
                parts.give_back(node);
                break;
            }
            groups.push(node.pods.iter().map(|(_, chosen)| world.pods[chosen.pod].uid.clone()).collect());
        }
    }
    parts.leave(waiting);
    groups.len() - before
}

impl<'w, 'p> Parts<'w, 'p> {
    /// Takes all pods that wait.
    fn new(world: &'w World<'p>, mix: &Mix, waiting: &mut [Vec<usize>]) -> Self {
        let of_class = |class: usize, pods: Vec<usize>| {
            let worth = world.demand.entries[world.classes[class].demand].worth;
            pods.into_iter().map(move |pod| Waiting { pod, class, worth })
        };
        let mut part = |classes: &Vec<usize>| {
            let mut all: Vec<Waiting> =
                classes.iter().flat_map(|class| of_class(*class, std::mem::take(&mut waiting[*class]))).collect();
            all.sort_by(|a, b| a.worth.total_cmp(&b.worth).then_with(|| b.pod.cmp(&a.pod)));
            all
        };
        let parts = mix.classes.iter().map(&mut part).collect();
        Self { world, parts }
    }

    /// Gives the pods back that are left.
    fn leave(self, waiting: &mut [Vec<usize>]) {
        for left in self.parts.into_iter().flatten() {
            waiting[left.class].push(left.pod);
        }
        for pods in waiting {
            pods.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    fn requests(&self, one: Waiting) -> &Amounts {
        &self.world.classes[one.class].requests
    }

    /// A node of a filling: as many pods of each part as it says, as far as they fit, and then whatever fits best.
    fn fill(&mut self, share: &Share) -> Node {
        let mut node = Node { room: share.room.clone(), pods: Vec::new() };
        for (part, many) in &share.amounts {
            let mut many = (many + 1e-6).floor();
            while many >= 1.0 {
                many -= 1.0;
                // Those in the middle are as the filling has them.
                let middle = self.parts[*part].len() / 2;
                let Some(at) = self.fitting(*part, [middle, 0], &node) else { break };
                self.put(*part, at, &mut node);
            }
        }
        while let Some((part, at)) = self.largest(&node) {
            self.put(part, at, &mut node);
        }
        node
    }

    /// The first of these places of a part whose pod fits.
    fn fitting(&self, part: usize, places: impl IntoIterator<Item = usize>, node: &Node) -> Option<usize> {
        let pods = &self.parts[part];
        places.into_iter().find(|at| pods.get(*at).is_some_and(|one| fits(self.requests(*one), &node.room)))
    }

    /// The pod that is worth most of those looked at that fit: of each part the largest, the middle and the smallest.
    fn largest(&self, node: &Node) -> Option<(usize, usize)> {
        let mut best: Option<(f64, usize, usize)> = None;
        for (part, pods) in self.parts.iter().enumerate() {
            let last = pods.len().saturating_sub(1);
            if pods.get(last).is_none_or(|one| best.is_some_and(|(worth, ..)| one.worth <= worth)) {
                continue;
            }
            if let Some(at) = self.fitting(part, [last, last / 2, 0], node)
                && best.is_none_or(|(worth, ..)| pods[at].worth > worth)
            {
                best = Some((pods[at].worth, part, at));
            }
        }
        best.map(|(_, part, at)| (part, at))
    }

    fn put(&mut self, part: usize, at: usize, node: &mut Node) {
        let one = self.parts[part].remove(at);
        subtract(&mut node.room, self.requests(one));
        node.pods.push((part, one));
    }

    fn give_back(&mut self, node: Node) {
        for (part, one) in node.pods {
            let pods = &mut self.parts[part];
            let at = pods.partition_point(|other| other.worth < one.worth);
            pods.insert(at, one);
        }
    }
}
