//! Claims for one pod at a time (`ReadWriteOncePod`): the first of those that wait for one has it. If that one has no place, the next has it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::Pod;
use crate::core::ids::{ObjectKey, PodUid};

use super::anew::refused;
use super::fault::VolumeFault;
use super::plan::{Plan, Refusal};
use super::problem::Problem;
use super::reason::Reason;

/// So often claims are passed on.
const HEIRS: usize = 3;

/// A plan by `solve` in which nobody is refused for the sake of a pod that has no place either.
pub(super) fn served(problem: &Problem<'_>, mut solve: impl FnMut(&Problem<'_>) -> Plan) -> Plan {
    let mut plan = solve(problem);
    let mut pods = Vec::new();
    let mut without: Vec<Refusal> = Vec::new();
    for _ in 0..HEIRS {
        let hopeless = hopeless(problem, &plan);
        if hopeless.is_empty() {
            break;
        }
        if without.is_empty() {
            pods = problem.pods.to_vec();
        }
        pods.retain(|pod| !hopeless.contains(&pod.uid));
        without.extend(plan.refused.into_iter().filter(|refusal| hopeless.contains(&refusal.pod)));
        plan = solve(&Problem { pods: &pods, ..*problem });
    }
    if !without.is_empty() {
        plan.refused.append(&mut without);
        let order: FxHashMap<&PodUid, usize> =
            problem.pods.iter().enumerate().map(|(at, pod)| (&pod.uid, at)).collect();
        plan.refused.sort_by_key(|refusal| order.get(&refusal.pod).copied());
    }
    plan
}

/// The pods that are refused and for whose sake others are, with those that ask for the same.
fn hopeless(problem: &Problem<'_>, plan: &Plan) -> FxHashSet<PodUid> {
    let holders: BTreeSet<&ObjectKey> =
        plan.refused.iter().flat_map(|refusal| &refusal.reasons).filter_map(holder).collect();
    if holders.is_empty() {
        return FxHashSet::default();
    }
    let refused = refused(plan);
    let refused: Vec<&Arc<Pod>> = problem.pods.iter().filter(|pod| refused.contains(&pod.uid)).collect();
    // Shapes tell namespaces apart.
    let first = refused.iter().filter(|pod| holders.contains(&pod.key));
    let hopeless: BTreeSet<_> = first.map(|pod| (&pod.shape, &pod.volume_claims)).collect();
    let is_hopeless = |pod: &&&Arc<Pod>| hopeless.contains(&(&pod.shape, &pod.volume_claims));
    refused.iter().filter(is_hopeless).map(|pod| pod.uid.clone()).collect()
}

/// The pod for whose sake a pod is refused, where its claim is for one pod at a time.
fn holder(reason: &Reason) -> Option<&ObjectKey> {
    match reason {
        Reason::Volume(VolumeFault::InUse { pod, .. }) => Some(pod),
        _ => None,
    }
}
