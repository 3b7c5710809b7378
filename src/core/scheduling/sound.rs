//! A plan that the independent check accepts. Where the check finds fault with a plan, solver or check is wrong, and nobody can say which: the pods
//! that are concerned get no place and hear why, and all others are planned without them. One defect must not keep a cluster from getting nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::core::facts::Pod;
use crate::core::ids::PodUid;

use super::checks::{Violation, check};
use super::plan::{Placement, Plan, Refusal};
use super::problem::Problem;
use super::reason::Reason;

/// So often is planned anew without those that the check has complained of; after that nobody is left to be planned.
const ATTEMPTS: usize = 4;

/// A plan by `solve` that breaks no rule, and what was wrong with those before it: nothing, unless there is a defect.
pub fn sound(problem: &Problem<'_>, mut solve: impl FnMut(&Problem<'_>) -> Plan) -> (Plan, Vec<Violation>) {
    let mut plan = solve(problem);
    let mut found = check(problem, &plan);
    if found.is_empty() {
        return (plan, found);
    }
    let mut all = Vec::new();
    let mut refused: BTreeMap<PodUid, Arc<str>> = BTreeMap::new();
    let mut pods = problem.pods.to_vec();
    for attempt in 1.. {
        let asked = Problem { pods: &pods, ..*problem };
        let mut concerned = concerned(&asked, &plan, &found);
        if concerned.is_empty() || attempt == ATTEMPTS {
            let why: Arc<str> = found.first().map_or_else(String::new, ToString::to_string).into();
            concerned = pods.iter().map(|pod| (pod.uid.clone(), Arc::clone(&why))).collect();
        }
        all.append(&mut found);
        pods.retain(|pod| !concerned.contains_key(&pod.uid));
        refused.append(&mut concerned);
        let asked = Problem { pods: &pods, ..*problem };
        plan = solve(&asked);
        found = check(&asked, &plan);
        if found.is_empty() || pods.is_empty() {
            break;
        }
    }
    let distrusted = |(pod, why)| Refusal { pod, reasons: vec![Reason::Distrusted(why)] };
    plan.refused.extend(refused.into_iter().map(distrusted));
    (plan, all)
}

/// The pods that violations are about, each with what is said of it.
fn concerned(problem: &Problem<'_>, plan: &Plan, found: &[Violation]) -> BTreeMap<PodUid, Arc<str>> {
    let places: Vec<Placement<'_>> = plan.placements().collect();
    let mut concerned = BTreeMap::new();
    for violation in found {
        let pods: Vec<&Arc<Pod>> = match violation {
            Violation::Missing(pod)
            | Violation::Surplus(pod)
            | Violation::Untolerated { pod, .. }
            | Violation::Unmet { pod, .. }
            | Violation::VolumeUnreachable { pod, .. }
            | Violation::NoDomain { pod, .. }
            | Violation::Lonely { pod } => alike(problem, pod),
            Violation::UnknownType { place, .. }
            | Violation::UnfitType { place, .. }
            | Violation::Overfull { place, .. }
            | Violation::TooManyVolumes { place, .. }
            | Violation::PortTaken { place, .. }
            | Violation::NotUsable { place }
            | Violation::TooAlike { place, .. } => {
                places.iter().filter(|known| *known.name() == **place).flat_map(Placement::pods).collect()
            }
            Violation::VolumeShared { claim } | Violation::VolumeTorn { claim } => {
                let uses =
                    |pod: &&Arc<Pod>| pod.key.namespace == claim.namespace && pod.volume_claims.contains(&claim.name);
                problem.pods.iter().filter(uses).collect()
            }
            Violation::Skewed { key, domain } | Violation::NotApart { key, domain } => {
                let is_there =
                    |place: &&Placement<'_>| place.domain(key, problem.snapshot).is_some_and(|known| known == *domain);
                let there: Vec<_> = places.iter().filter(is_there).flat_map(Placement::pods).collect();
                let bound = there.iter().copied().filter(|pod| is_bound_by(pod, key)).collect::<Vec<_>>();
                if bound.is_empty() { there } else { bound }
            }
            Violation::BeyondLimits(pool) => {
                plan.claims.iter().filter(|claim| claim.draft.pool == *pool).flat_map(|claim| &claim.pods).collect()
            }
            Violation::OverReserved { .. } => plan.claims.iter().flat_map(|claim| &claim.pods).collect(),
        };
        let why: Arc<str> = violation.to_string().into();
        concerned.extend(pods.into_iter().map(|pod| (pod.uid.clone(), Arc::clone(&why))));
    }
    concerned
}

/// A pod, and those that equal it: what is said of one may be meant of any.
fn alike<'a>(problem: &Problem<'a>, uid: &PodUid) -> Vec<&'a Arc<Pod>> {
    let shapes: FxHashSet<_> = problem.pods.iter().filter(|pod| pod.uid == *uid).map(|pod| &pod.shape).collect();
    problem.pods.iter().filter(|pod| shapes.contains(&pod.shape)).collect()
}

/// Whether the pod has a constraint with this topology key on where others are.
fn is_bound_by(pod: &Pod, key: &str) -> bool {
    let shape = &pod.shape;
    shape.spreads.iter().any(|spread| *spread.key == *key) || shape.anti_affinity.iter().any(|term| *term.key == *key)
}
