//! Constraints between pods, in the state that the plan leads to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{AffinityTerm, Pod, PodShape, PolicyHonor, Taint, TopologySpread};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirements;

use super::super::problem::Problem;
use super::super::topology::Target;
use super::verify::{Place, alternatives, tolerates};
use super::violation::Violation;

/// A shape and how many such pods are where; `planned` are those of the plan.
pub(super) struct Kind<'a> {
    pub(super) shape: &'a PodShape,
    sample: &'a Arc<Pod>,
    /// Place, planned pods, running pods.
    pub(super) at: Vec<(usize, usize, usize)>,
}

/// Which of the running pods are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    /// All, until they are gone.
    All,
    /// Those that are not being deleted.
    Staying,
}

pub(super) fn check(problem: &Problem<'_>, places: &[Place<'_>], found: &mut Vec<Violation>) {
    apart(problem, places, &kinds(places, Running::All), found);
    let kinds = kinds(places, Running::Staying);
    together(problem, places, &kinds, found);
    super::alone::check(problem, places, &kinds, found);
    spread(problem, places, &kinds, found);
}

fn kinds<'a>(places: &[Place<'a>], which: Running) -> Vec<Kind<'a>> {
    let mut index: FxHashMap<&'a PodShape, usize> = FxHashMap::default();
    let mut pointers: FxHashMap<*const PodShape, usize> = FxHashMap::default();
    let mut kinds: Vec<Kind<'a>> = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let planned = place.planned.iter().map(|pod| (*pod, true));
        let running = place.running.iter().filter(|pod| which == Running::All || pod.deleting.is_none());
        for (pod, planned) in planned.chain(running.map(|pod| (*pod, false))) {
            let kind = *pointers.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| {
                *index.entry(&pod.shape).or_insert_with(|| {
                    kinds.push(Kind { shape: &pod.shape, sample: pod, at: Vec::new() });
                    kinds.len() - 1
                })
            });
            let kind = &mut kinds[kind];
            if kind.at.last().is_none_or(|(last, ..)| *last != at) {
                kind.at.push((at, 0, 0));
            }
            if let Some((_, new, old)) = kind.at.last_mut() {
                *if planned { new } else { old } += 1;
            }
        }
    }
    kinds
}

/// The domain of a place; nothing where the label is absent or still open.
pub(super) fn domain(place: &Place<'_>, key: &str) -> Option<Arc<str>> {
    if key == labels::HOSTNAME {
        place.named.then(|| Arc::clone(&place.name))
    } else {
        place.labels.get(labels::normalized(key)).cloned()
    }
}

/// Pods by domain: (planned, running).
type Counts = BTreeMap<Arc<str>, (usize, usize)>;

fn count<'a, 'b: 'a>(places: &[Place<'_>], key: &str, kinds: impl Iterator<Item = &'a Kind<'b>>) -> Counts {
    let mut counts = Counts::new();
    for (at, new, old) in kinds.flat_map(|kind| &kind.at) {
        if let Some(domain) = domain(&places[*at], key) {
            let known = counts.entry(domain).or_default();
            *known = (known.0 + new, known.1 + old);
        }
    }
    counts
}

fn apart(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], found: &mut Vec<Violation>) {
    let mut terms: BTreeMap<&AffinityTerm, Vec<usize>> = BTreeMap::new();
    for (at, kind) in kinds.iter().enumerate() {
        for term in &kind.shape.anti_affinity {
            terms.entry(term).or_default().push(at);
        }
    }
    for (term, owners) in terms {
        let target = Target::of(term, problem.snapshot);
        let meant: Vec<bool> = kinds.iter().map(|kind| target.selects(kind.shape)).collect();
        let pick = |wanted: &dyn Fn(usize) -> bool| {
            let chosen: Vec<&Kind<'_>> = (0..kinds.len()).filter(|at| wanted(*at)).map(|at| &kinds[at]).collect();
            count(places, &term.key, chosen.into_iter())
        };
        let owns = |at: usize| owners.binary_search(&at).is_ok();
        let only_owners = pick(&|at| owns(at) && !meant[at]);
        let only_meant = pick(&|at| !owns(at) && meant[at]);
        let both = pick(&|at| owns(at) && meant[at]);
        let domains: std::collections::BTreeSet<&Arc<str>> =
            only_owners.keys().chain(only_meant.keys()).chain(both.keys()).collect();
        for domain in domains {
            let of = |counts: &Counts| counts.get(domain).copied().unwrap_or_default();
            let (owners, meant, both) = (of(&only_owners), of(&only_meant), of(&both));
            let all = |(new, old): (usize, usize)| new + old;
            // A pair counts when at least one of the two is planned here and now.
            let pair = |a: (usize, usize), b: (usize, usize)| all(a) > 0 && all(b) > 0 && a.0 + b.0 > 0;
            if pair(owners, meant) || pair(owners, both) || pair(both, meant) || (all(both) > 1 && both.0 > 0) {
                found.push(Violation::NotApart { key: Arc::clone(&term.key), domain: Arc::clone(domain) });
            }
        }
    }
}

fn together(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], found: &mut Vec<Violation>) {
    let mut known: BTreeMap<&[AffinityTerm], Vec<Counts>> = BTreeMap::new();
    // The terms for which somebody was allowed to be alone: whoever it was, it was only one.
    let mut begun: BTreeSet<&[AffinityTerm]> = BTreeSet::new();
    for kind in
        kinds.iter().filter(|kind| !kind.shape.affinity.is_empty() && kind.at.iter().any(|(_, new, _)| *new > 0))
    {
        let terms = kind.shape.affinity.as_slice();
        let targets: Vec<Target> = terms.iter().map(|term| Target::of(term, problem.snapshot)).collect();
        let means = |shape: &PodShape| targets.iter().all(|target| target.selects(shape));
        let counts = known.entry(terms).or_insert_with(|| {
            let keys = terms.iter().map(|term| &term.key);
            keys.map(|key| count(places, key, kinds.iter().filter(|kind| means(kind.shape)))).collect()
        });
        let own = usize::from(means(kind.shape));
        // The very first of its kind was allowed to be alone, and others may since have gone elsewhere.
        let first = own == 1 && counts.iter().all(|counts| counts.values().all(|(_, old)| *old == 0));
        for (place, ..) in kind.at.iter().filter(|(_, new, _)| *new > 0) {
            let here: Vec<Option<usize>> = terms
                .iter()
                .zip(counts.iter())
                .map(|(term, counts)| {
                    let domain = domain(&places[*place], &term.key)?;
                    counts.get(&domain).map(|(new, old)| new + old)
                })
                .collect();
            if here.iter().all(|many| many.is_some_and(|many| many > own)) {
                continue;
            }
            // kube-scheduler would have taken those of a higher priority before, and counted them wherever they are.
            let is_senior = |other: &Kind<'_>| {
                other.shape.priority > kind.shape.priority
                    && means(other.shape)
                    && other.at.iter().any(|(at, new, _)| {
                        *new > 0 && terms.iter().any(|term| domain(&places[*at], &term.key).is_some())
                    })
            };
            // Whoever was promised the place before those came may well be bound by then.
            let is_promised = |pod: &&Arc<Pod>| {
                pod.shape == kind.sample.shape
                    && (pod.nominated.is_some() || problem.snapshot.planned.contains_key(&pod.uid))
            };
            let has_turn = places[*place].planned.iter().any(is_promised) || !kinds.iter().any(is_senior);
            if first && here.iter().all(Option::is_some) && begun.insert(terms) && has_turn {
                continue;
            }
            found.push(Violation::Lonely { pod: kind.sample.uid.clone() });
        }
    }
}

/// In whatever order the pods came: the last owner that was placed in a domain found it within the skew of the emptiest.
fn spread(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], found: &mut Vec<Violation>) {
    for (kind, key) in kinds.iter().flat_map(|kind| hard_keys(kind.shape).map(move |key| (kind, key))) {
        let nowhere = kind.at.iter().filter(|(at, new, _)| *new > 0 && domain(&places[*at], key).is_none());
        found.extend(nowhere.map(|(at, ..)| Violation::NoDomain {
            pod: kind.sample.uid.clone(),
            place: Arc::clone(&places[*at].name),
            key: Arc::clone(key),
        }));
    }
    each_spread(problem, places, kinds, &mut |share| {
        // A pod that does not count itself may come when the domain is already full to the skew.
        if share.all.saturating_sub(share.free) > share.most {
            found.push(Violation::Skewed { key: Arc::clone(share.key), domain: share.domain });
        }
    });
}

/// How many planned pods kube-scheduler would not put again where they are, once all are there: those that are bound by a constraint, in
/// domains that others, whom it counts and does not bind, have made fuller than the skew.
pub(super) fn crowded(problem: &Problem<'_>, places: &[Place<'_>]) -> usize {
    let mut crowded = 0;
    each_spread(problem, places, &kinds(places, Running::Staying), &mut |share| {
        crowded += if share.all > share.most { share.owners } else { 0 };
    });
    crowded
}

/// How many planned pods find their domain full when their turn comes.
pub(super) fn out_of_turn(problem: &Problem<'_>, places: &[Place<'_>]) -> usize {
    let mut planned: Vec<(usize, &Arc<Pod>)> =
        places.iter().enumerate().flat_map(|(at, place)| place.planned.iter().map(move |pod| (at, *pod))).collect();
    planned.sort_by_cached_key(|(_, pod)| (Reverse(pod.shape.priority), problem.age(pod)));
    let mut late = 0;
    let mut constraints: BTreeMap<(&TopologySpread, &Arc<str>), &PodShape> = BTreeMap::new();
    for (_, pod) in &planned {
        for constraint in pod.shape.spreads.iter().filter(|s| s.required && &*s.key != labels::HOSTNAME) {
            constraints.entry((constraint, &pod.shape.namespace)).or_insert(&pod.shape);
        }
    }
    for ((constraint, namespace), shape) in constraints {
        let target = Target::within(namespace, constraint.selector.as_ref());
        let seen = seen(problem, places, constraint, shape);
        let mut counts: BTreeMap<&Arc<str>, usize> = seen.iter().flatten().map(|domain| (domain, 0)).collect();
        for (place, domain) in places.iter().zip(&seen).filter_map(|(place, seen)| Some((place, seen.as_ref()?))) {
            let running = place.running.iter().filter(|pod| pod.deleting.is_none() && target.selects(&pod.shape));
            *counts.entry(domain).or_default() += running.count();
        }
        let skew = usize::try_from(constraint.max_skew).unwrap_or(1);
        let few = constraint.min_domains.is_some_and(|least| counts.len() < usize::try_from(least).unwrap_or(0));
        let mut selected: FxHashMap<*const PodShape, (bool, bool)> = FxHashMap::default();
        for (at, pod) in &planned {
            let Some(domain) = &seen[*at] else { continue };
            let (counted, bound) = *selected.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| {
                let bound = pod.shape.namespace == *namespace && pod.shape.spreads.contains(constraint);
                (target.selects(&pod.shape), bound)
            });
            let least = if few { 0 } else { counts.values().min().copied().unwrap_or(0) };
            let here = counts.entry(domain).or_default();
            late += usize::from(bound && *here + usize::from(counted) > least + skew);
            *here += usize::from(counted);
        }
    }
    late
}

/// What one domain has of a spread constraint.
struct Share<'a> {
    key: &'a Arc<str>,
    domain: Arc<str>,
    /// Planned pods that the constraint binds.
    owners: usize,
    /// All that it counts, and those of them that are planned and that it does not bind.
    all: usize,
    free: usize,
    /// As many as the domain may have: the fewest in any, and the skew.
    most: usize,
}

/// Tells the domains of all required constraints to which pods are planned that these bind.
fn each_spread(problem: &Problem<'_>, places: &[Place<'_>], kinds: &[Kind<'_>], tell: &mut impl FnMut(Share<'_>)) {
    let mut constraints: BTreeMap<(&TopologySpread, &Arc<str>), Vec<usize>> = BTreeMap::new();
    for (at, kind) in kinds.iter().enumerate().filter(|(_, kind)| kind.at.iter().any(|(_, new, _)| *new > 0)) {
        for constraint in kind.shape.spreads.iter().filter(|s| s.required) {
            constraints.entry((constraint, &kind.shape.namespace)).or_default().push(at);
        }
    }
    for ((constraint, namespace), owners) in constraints {
        let target = Target::within(namespace, constraint.selector.as_ref());
        let mut groups: Vec<Vec<usize>> = Vec::new();
        // Owners that look at different nodes are judged apart.
        for owner in owners {
            let same = |group: &Vec<usize>| {
                let (a, b) = (kinds[group[0]].shape, kinds[owner].shape);
                a.node_selector == b.node_selector
                    && a.node_affinity.required == b.node_affinity.required
                    && a.tolerations == b.tolerations
                    && hard_keys(a).eq(hard_keys(b))
            };
            match groups.iter_mut().find(|group| same(group)) {
                Some(group) => group.push(owner),
                None => groups.push(vec![owner]),
            }
        }
        for group in groups {
            spread_of(problem, places, kinds, constraint, &target, &group, tell);
        }
    }
}

fn spread_of(
    problem: &Problem<'_>,
    places: &[Place<'_>],
    kinds: &[Kind<'_>],
    constraint: &TopologySpread,
    target: &Target,
    owners: &[usize],
    tell: &mut impl FnMut(Share<'_>),
) {
    let shape = kinds[owners[0]].shape;
    let seen = seen(problem, places, constraint, shape);
    // Per domain: all that are counted, and those of them that are planned and bear no such constraint.
    let mut counts: BTreeMap<Arc<str>, (usize, usize)> =
        seen.iter().flatten().map(|d| (Arc::clone(d), (0, 0))).collect();
    let mut received: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for (at, kind) in kinds.iter().enumerate() {
        let owns = owners.contains(&at);
        let counted = target.selects(kind.shape);
        for (place, new, old) in &kind.at {
            let Some(domain) = &seen[*place] else { continue };
            if counted {
                let known = counts.entry(Arc::clone(domain)).or_default();
                *known = (known.0 + new + old, known.1 + if owns { 0 } else { *new });
            }
            if owns && *new > 0 {
                *received.entry(Arc::clone(domain)).or_default() += new;
            }
        }
    }
    let missing = constraint.min_domains.is_some_and(|least| counts.len() < usize::try_from(least).unwrap_or(0));
    let least = if missing { 0 } else { counts.values().map(|(all, _)| *all).min().unwrap_or(0) };
    let skew = usize::try_from(constraint.max_skew).unwrap_or(1);
    for (domain, owners) in received {
        let (all, free) = counts[&domain];
        tell(Share { key: &constraint.key, domain, owners, all, free, most: least + skew });
    }
}

/// The keys of what a shape requires to be spread over.
fn hard_keys(shape: &PodShape) -> impl Iterator<Item = &Arc<str>> {
    shape.spreads.iter().filter(|spread| spread.required).map(|spread| &spread.key)
}

/// The domains that a constraint of pods of a shape sees, by place: those of nodes that are in a domain of each of its constraints.
fn seen<'p>(
    problem: &Problem<'_>,
    places: &'p [Place<'_>],
    constraint: &TopologySpread,
    shape: &PodShape,
) -> Vec<Option<Arc<str>>> {
    let open = problem.open_keys();
    let terms = alternatives(shape);
    let looks_at = |place: &Place<'_>| {
        let could_be = |own: &Requirements| {
            terms.iter().any(|term| own.compatible(term, |key| place.open.is_some() && open.contains(key)).is_ok())
        };
        let matching = constraint.node_affinity_policy == PolicyHonor::Ignore
            || place
                .open
                .as_ref()
                .map_or_else(|| could_be(&Requirements::from_labels(&place.labels)), |own| could_be(own));
        let everywhere = hard_keys(shape).all(|key| domain(place, key).is_some());
        matching
            && everywhere
            && (constraint.node_taints_policy == PolicyHonor::Ignore || tolerates(shape, &place.taints))
    };
    // NodeClaims that say the same are many: but for the host name, what holds for one of them holds for all with its taints.
    let mut known: FxHashMap<*const Labels, (&[Taint], Option<Arc<str>>)> = FxHashMap::default();
    let mut of_place = |place: &'p Place<'_>| {
        let shared = Arc::as_ptr(&place.labels);
        if let Some((_, seen)) = known.get(&shared).filter(|(taints, _)| **taints == place.taints) {
            return seen.clone();
        }
        let seen = domain(place, &constraint.key).filter(|_| looks_at(place));
        if Arc::strong_count(&place.labels) > 1 {
            known.insert(shared, (&place.taints, seen.clone()));
        }
        seen
    };
    let is_host = &*constraint.key == labels::HOSTNAME;
    let own =
        |place: &Place<'_>, seen: Option<Arc<str>>| if is_host { seen.map(|_| Arc::clone(&place.name)) } else { seen };
    places.iter().map(|place| own(place, of_place(place))).collect()
}
