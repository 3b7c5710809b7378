//! Whoever is planned as the first of its kind, away from others, must surely be bound before those.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{AffinityTerm, Pod, PodShape};
use crate::core::ids::{NodeName, PodUid};

use super::super::problem::Problem;
use super::super::topology::Target;
use super::topology::{Kind, domain};
use super::verify::Place;
use super::violation::Violation;

/// When kube-scheduler binds a pod: on a node that is there sooner than on one that is not, then by priority and age.
type Turn = (bool, Reverse<i32>, (Timestamp, u64, PodUid));

/// Where a pod is, in the eyes of each term of an affinity.
type Domains = Vec<Option<Arc<str>>>;

pub(super) fn check(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], found: &mut Vec<Violation>) {
    let mut affinities: BTreeMap<&[AffinityTerm], Vec<&PodShape>> = BTreeMap::new();
    let is_planned = |kind: &&Kind<'_>| kind.at.iter().any(|(_, new, _)| *new > 0);
    for shape in kinds.iter().filter(is_planned).map(|kind| kind.shape).filter(|shape| !shape.affinity.is_empty()) {
        affinities.entry(&shape.affinity).or_default().push(shape);
    }
    for (terms, bound) in affinities {
        let targets: Vec<Target> = terms.iter().map(|term| Target::of(term, problem.snapshot)).collect();
        let means = |shape: &PodShape| targets.iter().all(|target| target.selects(shape));
        // Only whoever is meant itself may be the first.
        if !bound.into_iter().any(means) {
            continue;
        }
        let meant: Vec<&Kind<'_>> = kinds.iter().filter(|kind| means(kind.shape)).collect();
        // On a node that is in no domain of any term nobody is seen.
        let is_seen = |at: usize| terms.iter().any(|term| domain(&places[at], &term.key).is_some());
        let is_running = meant.iter().any(|kind| kind.at.iter().any(|(at, _, old)| *old > 0 && is_seen(*at)));
        if !is_running && meant.iter().any(|kind| kind.shape.affinity != terms) {
            check_affinity(problem, places, kinds, (terms, &targets), found);
        }
    }
}

/// Whether pods of a kind on a place are bound sooner or later without pods that have this affinity: who waits for nobody, who may be the first, and
/// whoever waits for one who runs, or for one of these, in its domains.
fn is_free(
    problem: &Problem<'_>,
    places: &[Place<'_>],
    kinds: &[Kind<'_>],
    start: (usize, usize),
    terms: &[AffinityTerm],
) -> bool {
    let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut next = vec![start];
    while let Some((which, at)) = next.pop() {
        let own = &kinds[which].shape.affinity[..];
        if own == terms || !seen.insert((which, at)) {
            continue;
        }
        let targets: Vec<Target> = own.iter().map(|term| Target::of(term, problem.snapshot)).collect();
        let means = |other: &PodShape| targets.iter().all(|target| target.selects(other));
        if means(kinds[which].shape) {
            return true;
        }
        for (other, kind) in kinds.iter().enumerate().filter(|(_, kind)| means(kind.shape)) {
            for (there, _, running) in &kind.at {
                let share = |term: &AffinityTerm| {
                    let here = domain(&places[at], &term.key);
                    here.is_some() && here == domain(&places[*there], &term.key)
                };
                if own.iter().all(share) {
                    if *running > 0 {
                        return true;
                    }
                    next.push((other, *there));
                }
            }
        }
    }
    false
}

fn check_affinity(
    problem: &Problem<'_>,
    places: &[Place<'_>],
    kinds: &[Kind<'_>],
    (terms, targets): (&[AffinityTerm], &[Target]),
    found: &mut Vec<Violation>,
) {
    // By what the terms see of where they are: those that the affinity binds, and when the first of those comes whom it means and does not bind, if
    // one of them does not wait for them.
    let mut bound: BTreeMap<Domains, Vec<(Turn, &Arc<Pod>)>> = BTreeMap::new();
    let mut others: BTreeMap<Domains, Option<Turn>> = BTreeMap::new();
    let meant = |kind: &Kind<'_>| targets.iter().all(|target| target.selects(kind.shape));
    for (which, kind) in kinds.iter().enumerate().filter(|(_, kind)| meant(kind)) {
        for (at, ..) in &kind.at {
            let place = &places[*at];
            let here: Domains = terms.iter().map(|term| domain(place, &term.key)).collect();
            if here.iter().all(Option::is_none) {
                continue;
            }
            let is_there =
                place.open.is_none() && problem.snapshot.nodes.contains_key(&NodeName::from(Arc::clone(&place.name)));
            let planned = place.planned.iter().filter(|pod| *pod.shape == *kind.shape);
            let turns = planned.map(|pod| ((!is_there, Reverse(pod.shape.priority), problem.age(pod)), *pod));
            if kind.shape.affinity == terms {
                bound.entry(here).or_default().extend(turns);
            } else {
                let first = others.entry(here).or_default();
                if is_free(problem, places, kinds, (which, *at), terms) {
                    *first = turns.map(|(turn, _)| turn).chain(first.take()).min();
                }
            }
        }
    }
    let is_promised =
        |(_, pod): &(Turn, &Arc<Pod>)| pod.nominated.is_some() || problem.snapshot.planned.contains_key(&pod.uid);
    let Some(elsewhere) = others.values().flatten().min() else { return };
    for (here, pods) in &bound {
        let first = pods.iter().map(|(turn, _)| turn).min();
        let comes_first = first.is_some_and(|first| !first.0 && first < elsewhere);
        if !others.contains_key(here) && !comes_first && !pods.iter().any(is_promised) {
            found.extend(pods.iter().map(|(_, pod)| Violation::Lonely { pod: pod.uid.clone() }));
        }
    }
}
