//! Reserved capacity of a plan: no more NodeClaims than a reservation has room for, whichever way they are launched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::Offering;
use crate::core::requirements::{Operator, Requirements};

use super::super::plan::{Plan, PlannedClaim};
use super::super::problem::Problem;
use super::violation::Violation;

/// A reservation: its label and its name.
type Name = (Arc<str>, Arc<str>);

fn name(offering: &Offering) -> Option<Name> {
    offering.reservation().map(|(key, id)| (Arc::clone(key), Arc::clone(id)))
}

pub(super) fn check(problem: &Problem<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let lists = || problem.catalog.pools.values();
    let mut left: BTreeMap<Name, i64> = BTreeMap::new();
    for offering in lists().flat_map(|list| list.iter()).flat_map(|kind| &kind.offerings) {
        if let Some(name) = name(offering) {
            let size = i64::from(offering.reservation_capacity.unwrap_or(0));
            let known = left.entry(name).or_insert(size);
            *known = size.min(*known);
        }
    }
    if left.is_empty() {
        return;
    }
    for claim in problem.snapshot.claims.values() {
        for ((key, id), left) in &mut left {
            let requires = || {
                let mut lines = claim.requirements.iter().filter(|line| line.key == *key);
                lines.any(|line| line.operator == Operator::In && line.values.contains(id))
            };
            if claim.labels.get(key).map_or_else(requires, |own| own == id) {
                *left -= 1;
            }
        }
    }
    // Those that are used beyond their size already are none of the plan's doing, unless it takes from them too.
    let mut taken: BTreeSet<Name> = BTreeSet::new();
    for claim in &plan.claims {
        for name in possible(problem, claim) {
            if let Some(left) = left.get_mut(&name) {
                *left -= 1;
            }
            taken.insert(name);
        }
    }
    for name in taken.into_iter().filter(|name| left.get(name).is_some_and(|left| *left < 0)) {
        found.push(Violation::OverReserved { reservation: name.1 });
    }
}

/// The reservations into which a NodeClaim may be launched.
fn possible(problem: &Problem<'_>, claim: &PlannedClaim) -> BTreeSet<Name> {
    let requirements = Requirements::from_written(&*claim.draft.requirements);
    let list = problem.catalog.pools.get(&claim.draft.pool).into_iter().flat_map(|list| list.iter());
    let listed: BTreeSet<_> = claim.instance_types.iter().collect();
    let offered = list.filter(|kind| listed.contains(&kind.name)).flat_map(|kind| &kind.offerings);
    let fits = |offering: &&Offering| {
        offering.available && requirements.intersects(&Requirements::from_written(&offering.requirements)).is_ok()
    };
    offered.filter(fits).filter_map(name).collect()
}
