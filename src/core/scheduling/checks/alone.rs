//! Whoever is planned as the first of its kind, away from others, must surely be bound before those.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use crate::core::facts::{AffinityTerm, Pod, PodShape};
use crate::core::ids::{NodeName, PodUid};

use super::super::problem::Problem;
use super::super::topology::Target;
use super::topology::{Kind, domain};
use super::verify::Place;
use super::violation::Violation;

/// When kube-scheduler binds a pod: on a node that is there sooner than on one that is not, then by priority and age.
type Turn = (bool, Reverse<i32>, (Timestamp, u64, PodUid));

pub(super) fn check(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], found: &mut Vec<Violation>) {
    let is_planned = |kind: &&Kind<'_>| kind.at.iter().any(|(_, new, _)| *new > 0);
    let affinities: BTreeSet<&[AffinityTerm]> = kinds
        .iter()
        .filter(is_planned)
        .map(|kind| &kind.shape.affinity[..])
        .filter(|terms| !terms.is_empty())
        .collect();
    for terms in affinities {
        let targets: Vec<Target> = terms.iter().map(|term| Target::of(term, problem.snapshot)).collect();
        let meant: Vec<&Kind<'_>> =
            kinds.iter().filter(|kind| targets.iter().all(|target| target.selects(kind.shape))).collect();
        let is_running = meant.iter().any(|kind| kind.at.iter().any(|(_, _, old)| *old > 0));
        if !is_running && meant.iter().any(|kind| kind.shape.affinity != terms) {
            check_affinity(problem, places, (terms, &targets), found);
        }
    }
}

fn check_affinity(
    problem: &Problem<'_>,
    places: &[Place<'_>],
    (terms, targets): (&[AffinityTerm], &[Target]),
    found: &mut Vec<Violation>,
) {
    // Whether they are meant, whether the affinity is their own, and whether they need nobody.
    let mut known: FxHashMap<*const PodShape, (bool, bool, bool)> = FxHashMap::default();
    let mut role = |pod: &Pod| {
        let is_meant = || targets.iter().all(|target| target.selects(&pod.shape));
        let own = &pod.shape.affinity;
        let is_free = || own.iter().all(|term| Target::of(term, problem.snapshot).selects(&pod.shape));
        *known.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| (is_meant(), *own == terms, is_free()))
    };
    // By what the terms see of where they are: those that the affinity binds, and when the first of those comes whom it means and does not bind, if
    // one of them needs nobody.
    let mut bound: BTreeMap<Vec<Option<Arc<str>>>, Vec<&Arc<Pod>>> = BTreeMap::new();
    let mut others: BTreeMap<Vec<Option<Arc<str>>>, Option<Turn>> = BTreeMap::new();
    let mut turns: BTreeMap<&PodUid, Turn> = BTreeMap::new();
    for place in places {
        let is_there =
            place.open.is_none() && problem.snapshot.nodes.contains_key(&NodeName::from(Arc::clone(&place.name)));
        for pod in &place.planned {
            let (true, is_bound, is_free) = role(pod) else { continue };
            let here: Vec<Option<Arc<str>>> = terms.iter().map(|term| domain(place, &term.key)).collect();
            if here.iter().all(Option::is_none) {
                continue;
            }
            let turn = (!is_there, Reverse(pod.shape.priority), problem.age(pod));
            if is_bound {
                bound.entry(here).or_default().push(pod);
                turns.insert(&pod.uid, turn);
            } else {
                let first = others.entry(here).or_default();
                if is_free && first.as_ref().is_none_or(|known| turn < *known) {
                    *first = Some(turn);
                }
            }
        }
    }
    let is_promised = |pod: &&Arc<Pod>| pod.nominated.is_some() || problem.snapshot.planned.contains_key(&pod.uid);
    let Some(elsewhere) = others.values().flatten().min() else { return };
    for (here, pods) in &bound {
        let first = pods.iter().filter_map(|pod| turns.get(&pod.uid)).min();
        let comes_first = first.is_some_and(|first| !first.0 && first < elsewhere);
        if !others.contains_key(here) && !comes_first && !pods.iter().any(is_promised) {
            found.extend(pods.iter().map(|pod| Violation::Lonely { pod: pod.uid.clone() }));
        }
    }
}
