//! `minValues` of a plan: what a NodeClaim promises its types keep, and it promises what its NodePool asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::facts::InstanceType;
use crate::core::labels;
use crate::core::requirements::{Requirement, Requirements, ValueSet};

use super::super::plan::{Plan, PlannedClaim};
use super::super::problem::Problem;
use super::violation::Violation;

pub(super) fn check(problem: &Problem<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    for claim in &plan.claims {
        let Some(pool) = problem.snapshot.pools.get(&claim.draft.pool) else { continue };
        let lines = || claim.draft.requirements.iter().chain(&pool.template.requirements);
        let asked: BTreeSet<&str> = lines().filter(|line| line.min_values.is_some()).map(key).collect();
        if asked.is_empty() {
            continue;
        }
        let relaxed = claim.draft.annotations.get(labels::MIN_VALUES_RELAXED).is_some_and(|word| &**word == "true");
        for asked in asked {
            let least = |lines: &[Requirement]| {
                lines.iter().filter(|line| key(line) == asked).filter_map(|line| line.min_values).max().unwrap_or(0)
            };
            let (promised, wanted) = (least(&claim.draft.requirements), least(&pool.template.requirements));
            let lowered = promised < wanted && !(relaxed && problem.settings.lower_min_values);
            if lowered || values(problem, claim, asked) < promised as usize {
                found.push(Violation::TooAlike { place: claim.draft.name.as_str().into(), key: asked.into() });
            }
        }
    }
}

fn key(line: &Requirement) -> &str {
    labels::normalized(&line.key)
}

/// How many values of a key the listed types have that the NodeClaim allows.
fn values(problem: &Problem<'_>, claim: &PlannedClaim, key: &str) -> usize {
    let requirements = Requirements::from_written(&*claim.draft.requirements);
    let list = problem.catalog.pools.get(&claim.draft.pool).into_iter().flat_map(|list| list.iter());
    let listed = list.filter(|kind| claim.instance_types.contains(&kind.name));
    let says = |kind: &Arc<InstanceType>| Requirements::from_written(&kind.requirements).get(key).cloned();
    let all: BTreeSet<Arc<str>> = listed.filter_map(says).flat_map(|set| set.values().to_vec()).collect();
    let allowed = |value: &&Arc<str>| requirements.get(key).is_none_or(|set: &ValueSet| set.has(value));
    all.iter().filter(allowed).count()
}
