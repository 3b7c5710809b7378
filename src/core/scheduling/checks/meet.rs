//! DaemonSet pods that will come to a node on which the plan puts pods that may not be with them.

use std::sync::Arc;

use crate::core::facts::{Pod, PodShape};
use crate::core::labels;

use super::super::problem::Problem;
use super::super::topology::Target;
use super::verify::shapes;
use super::violation::Violation;

/// Whether required anti-affinity per node of one means the other.
fn bars(problem: &Problem<'_>, one: &PodShape, other: &PodShape) -> bool {
    let mut per_node = one.anti_affinity.iter().filter(|term| &*term.key == labels::HOSTNAME);
    per_node.any(|term| Target::of(term, problem.snapshot).selects(other))
}

/// Whether a daemon cannot come to a node for the pods that run there.
pub(super) fn is_kept_out(problem: &Problem<'_>, running: &[&Arc<Pod>], daemon: &PodShape) -> bool {
    shapes(running).iter().any(|pod| bars(problem, &pod.shape, daemon) || bars(problem, daemon, &pod.shape))
}

/// Pods on a node and the daemons that come to it.
pub(super) fn check<'a>(
    problem: &Problem<'_>,
    place: &Arc<str>,
    pods: &[&Arc<Pod>],
    daemons: impl Iterator<Item = &'a PodShape>,
    found: &mut Vec<Violation>,
) {
    let pods = shapes(pods);
    for daemon in daemons {
        if pods.iter().any(|pod| bars(problem, &pod.shape, daemon) || bars(problem, daemon, &pod.shape)) {
            found.push(Violation::NotApart { key: labels::HOSTNAME.into(), domain: Arc::clone(place) });
        }
    }
}
