//! Pods that are the first of their kind, where others of the kind could be bound before them and elsewhere.
//!
//! A pod whose required affinity means itself may be alone as long as none that it means is anywhere. kube-scheduler does not know who was meant to
//! be first: one that the affinity means and does not bind is bound as soon as its own node takes it. If that is elsewhere, the pod on its new node
//! would never be let in. A plan is not to count on that order.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::core::facts::{AffinityTerm, Pod, PodShape};
use crate::core::ids::PodUid;

use super::plan::Plan;
use super::problem::Problem;
use super::topology::{Target, Targets};

/// When kube-scheduler comes to a pod: nodes that are there come before those that are not, then it goes by priority and age.
type Turn = (bool, Reverse<i32>, (Timestamp, u64, PodUid));

/// Where a pod is, in the eyes of each term of an affinity.
type Domains = SmallVec<[Option<Arc<str>>; 2]>;

/// Pods that some affinity means.
struct Kind<'p> {
    terms: &'p [AffinityTerm],
    targets: SmallVec<[u32; 2]>,
    /// Whether any of them needs nobody.
    has_free: bool,
}

/// What pods of a shape are to an affinity that means them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is their own.
    Bound,
    /// They need nobody: they have none, or one by which they may be the first themselves.
    Free,
    /// They wait for others.
    Follower,
}

/// The roles of pods of a shape, by kind.
type Roles = SmallVec<[(usize, Role); 1]>;

/// Those of a kind that a plan puts into one domain.
#[derive(Default)]
struct Party<'p> {
    /// Those that the affinity binds.
    bound: Vec<&'p Arc<Pod>>,
    /// The first of them.
    first: Option<Turn>,
    /// Whether one of them was promised its place before, and may well be bound by now.
    is_promised: bool,
    /// When the first of those comes who need nobody.
    free: Option<Turn>,
    /// Whether others are there, too, for whom they can wait.
    has_others: bool,
}

/// The pods of a plan that count on being bound before others of their kind, which nothing makes sure of.
pub(super) fn doomed(problem: &Problem<'_>, plan: &Plan) -> FxHashSet<PodUid> {
    let (kinds, roles) = kinds(problem);
    let mut doomed = FxHashSet::default();
    if roles.is_empty() {
        return doomed;
    }
    let standing = standing(problem, &kinds, &roles);
    let mut parties: BTreeMap<(usize, Domains), Party<'_>> = BTreeMap::new();
    for place in plan.placements() {
        for pod in place.pods() {
            for (kind, role) in roles.get(&Arc::as_ptr(&pod.shape)).into_iter().flatten() {
                if standing[*kind] {
                    continue;
                }
                let terms = kinds[*kind].terms.iter();
                let domains: Domains = terms.map(|term| place.domain(&term.key, problem.snapshot)).collect();
                // Where a node is in no domain of any term, nobody is seen.
                if domains.iter().all(Option::is_none) {
                    continue;
                }
                let party = parties.entry((*kind, domains)).or_default();
                let turn: Turn = (!place.is_there(), Reverse(pod.shape.priority), problem.age(pod));
                let earliest = match role {
                    Role::Bound => Some(&mut party.first),
                    Role::Free => Some(&mut party.free),
                    Role::Follower => None,
                };
                if let Some(earliest) = earliest.filter(|known| known.as_ref().is_none_or(|known| turn < *known)) {
                    *earliest = Some(turn);
                }
                if *role == Role::Bound {
                    party.bound.push(pod);
                    party.is_promised |= pod.nominated.is_some() || problem.snapshot.planned.contains_key(&pod.uid);
                } else {
                    party.has_others = true;
                }
            }
        }
    }
    for ((kind, domains), party) in &parties {
        if party.has_others || party.is_promised {
            continue;
        }
        let others = parties.range((*kind, Domains::new())..).take_while(|((other, _), _)| other == kind);
        let elsewhere = others.filter(|((_, other), _)| other != domains).filter_map(|(_, party)| party.free.as_ref());
        // On a node that is there, whoever has the first turn is bound first.
        let comes_late = |first: &Turn| elsewhere.min().is_some_and(|other| first.0 || other < first);
        if party.first.as_ref().is_some_and(comes_late) {
            doomed.extend(party.bound.iter().map(|pod| pod.uid.clone()));
        }
    }
    doomed
}

/// The kinds of pods of which some need nobody, and which shapes belong to which.
fn kinds<'p>(problem: &Problem<'p>) -> (Vec<Kind<'p>>, FxHashMap<*const PodShape, Roles>) {
    let shapes: FxHashMap<*const PodShape, &PodShape> =
        problem.pods.iter().map(|pod| (Arc::as_ptr(&pod.shape), &*pod.shape)).collect();
    let mut terms: Vec<&[AffinityTerm]> =
        shapes.values().map(|shape| &shape.affinity[..]).filter(|terms| !terms.is_empty()).collect();
    terms.sort_unstable();
    terms.dedup();
    let mut roles: FxHashMap<*const PodShape, Roles> = FxHashMap::default();
    if terms.is_empty() {
        return (Vec::new(), roles);
    }
    let mut targets = Targets::default();
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    let mut by_target: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for terms in terms {
        let mut own: SmallVec<[u32; 2]> =
            terms.iter().map(|term| targets.add(Target::of(term, problem.snapshot))).collect();
        own.sort_unstable();
        by_target.entry(own[0]).or_default().push(kinds.len());
        kinds.push(Kind { terms, targets: own, has_free: false });
    }
    for (pointer, shape) in shapes {
        let meaning = targets.meaning(shape);
        let known = meaning.iter().filter_map(|target| by_target.get(target)).flatten().copied();
        let is_meant = |kind: &usize| kinds[*kind].targets.iter().all(|one| meaning.binary_search(one).is_ok());
        let means_itself = || shape.affinity.iter().all(|term| Target::of(term, problem.snapshot).selects(shape));
        let role = |kind: usize| match &shape.affinity[..] {
            terms if terms == kinds[kind].terms => Role::Bound,
            [] => Role::Free,
            _ if means_itself() => Role::Free,
            _ => Role::Follower,
        };
        let own: Roles = known.filter(is_meant).map(|kind| (kind, role(kind))).collect();
        for (kind, _) in own.iter().filter(|(_, role)| *role == Role::Free) {
            kinds[*kind].has_free = true;
        }
        roles.insert(pointer, own);
    }
    roles.retain(|_, own| {
        own.retain(|(kind, _)| kinds[*kind].has_free);
        !own.is_empty()
    });
    (kinds, roles)
}

/// Of which kinds a pod is on a node already: none of these can be the first.
fn standing(problem: &Problem<'_>, kinds: &[Kind<'_>], roles: &FxHashMap<*const PodShape, Roles>) -> Vec<bool> {
    let snapshot = problem.snapshot;
    let mut standing = vec![false; kinds.len()];
    let mut known: FxHashSet<*const PodShape> = FxHashSet::default();
    let moving: FxHashSet<&PodUid> = problem.pods.iter().filter(|pod| pod.node.is_some()).map(|pod| &pod.uid).collect();
    let bound = snapshot.bound.values().flatten().filter(|uid| !moving.contains(uid));
    let bound = bound.filter_map(|uid| snapshot.pods.get(uid));
    for pod in bound.filter(|pod| pod.is_active_on_node() && pod.deleting.is_none()) {
        if !known.insert(Arc::as_ptr(&pod.shape)) {
            continue;
        }
        let of_shape = roles.get(&Arc::as_ptr(&pod.shape));
        for kind in of_shape.into_iter().flatten().map(|(kind, _)| *kind) {
            standing[kind] = true;
        }
        for (kind, standing) in kinds.iter().zip(&mut standing).filter(|(kind, known)| kind.has_free && !**known) {
            let means = |term: &AffinityTerm| Target::of(term, snapshot).selects(&pod.shape);
            *standing = kind.terms.iter().all(means);
        }
    }
    standing
}
