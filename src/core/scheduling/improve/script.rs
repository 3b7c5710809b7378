//! Which pods are to share a new node: the fillings of the covering problem, in whole numbers.

use rustc_hash::FxHashSet;

use super::{cast, rough};
use crate::core::ids::PodUid;
use crate::core::scheduling::bound::{Effort, Mix, Share, mix};
use crate::core::scheduling::classes::Class;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::world::World;

/// How often the covering problem of what is left is solved again.
const ROUNDS: usize = 6;
/// The same where no two pods are alike: each round takes longer, and leaves less.
const ROUGH_ROUNDS: usize = 3;
/// A filling of which the mix has at least this part of a node is worth a whole node in the later rounds.
pub(super) const MOST_OF_IT: f64 = 0.5;
/// A node that would be filled with less than this part of its filling is left to the solver.
pub(super) const FULL: f64 = 0.9;

/// Which pods are put into the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// Those that no constraint between pods ties to others.
    Free,
    /// All; the solver then takes from the script what the constraints allow.
    All,
}

/// Pods that are to share a node, by node, as far as the effort goes.
pub(super) fn script(world: &mut World<'_>, plan: &Plan, scope: Scope, effort: &Effort) -> Vec<Vec<PodUid>> {
    if scope == Scope::All && !world.classes.iter().any(is_tied) {
        return Vec::new();
    }
    let bought: FxHashSet<&PodUid> = plan.claims.iter().flat_map(|claim| &claim.pods).map(|pod| &pod.uid).collect();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); world.classes.len()];
    for pod in (0..world.pods.len()).rev().filter(|pod| bought.contains(&world.pods[*pod].uid)) {
        let class = world.class_of[pod] as usize;
        if scope == Scope::All || !is_tied(&world.classes[class]) {
            waiting[class].push(pod);
        }
    }
    let mut groups: Vec<Vec<PodUid>> = Vec::new();
    for round in 0..ROUNDS {
        let counts: Vec<u32> = waiting.iter().map(|pods| u32::try_from(pods.len()).unwrap_or(u32::MAX)).collect();
        if effort.is_spent() {
            break;
        }
        let Some(mix) = mix(world, &counts, effort) else { break };
        let added = if mix.is_rough {
            rough::take(world, &mix, &mut waiting, round > 0, &mut groups)
        } else {
            cast::take(world, &mix, &mut waiting, round > 0, &mut groups)
        };
        if added == 0 || mix.is_rough && round + 1 == ROUGH_ROUNDS {
            break;
        }
    }
    groups
}

fn is_tied(class: &Class) -> bool {
    class.is_topological() || !class.shape.host_ports.is_empty() || !class.shunned.is_empty()
}

/// The fillings of which there are most nodes first.
pub(super) fn largest_first(mix: &Mix) -> Vec<&Share> {
    let mut fillings: Vec<&Share> = mix.fillings.iter().collect();
    fillings.sort_by(|a, b| b.nodes.total_cmp(&a.nodes));
    fillings
}

/// Whole nodes.
pub(super) fn whole(nodes: f64, round_up: bool) -> f64 {
    let whole = (nodes + 1e-6).floor();
    if round_up && nodes - whole >= MOST_OF_IT { whole + 1.0 } else { whole }
}
