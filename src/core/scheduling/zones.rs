//! Which zone pending pods are confined to before anything is planned for them: what a lost zone would mean.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{AffinityTerm, PodShape, PolicyHonor, TopologySpread};
use crate::core::labels;
use crate::core::requirements::{Requirement, Requirements, ValueSet};

use super::Problem;
use super::classes::group;
use super::topology::Target;
use super::volumes::{self, Needs};

/// The word for pods that may go to several zones.
const FLEXIBLE: &str = "flexible";
/// The word for pods that may go to no zone.
const NONE: &str = "none";

/// Zones by name.
type Zones = BTreeSet<Arc<str>>;
/// Pods by shape, found by address: equal pods share one. Only sums are taken of it, so that its order does not matter.
type Tally = FxHashMap<*const PodShape, (Arc<PodShape>, u32)>;

/// How many of the pods that need a place are confined to each zone by their node selector, their required node affinity, the zones of their volumes, and what zonal
/// spread and affinity constraints leave open as pods stand now; those with several zones left are under `flexible`, those with none
/// under `none` (Karpenter's words).
pub fn effective_zones(problem: &Problem<'_>) -> BTreeMap<Arc<str>, usize> {
    let (mut shapes, mut classes) = group(problem.pods);
    let needs = volumes::split(problem.snapshot, problem.pods, &mut shapes, &mut classes);
    let mut pods: Vec<usize> = vec![0; shapes.len()];
    for class in classes {
        pods[class as usize] += 1;
    }
    let standing = OnceCell::new();
    let standing = || standing.get_or_init(|| Standing::of(problem));
    let mut zones: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    // Shapes all of whose pods have volumes are classes without pods.
    for ((shape, needs), pods) in shapes.iter().zip(&needs).zip(pods).filter(|(_, pods)| *pods > 0) {
        let left = confined(shape, needs.as_deref(), standing, problem);
        let word = match left.as_ref().map(|zones| (zones.len(), zones.first())) {
            Some((0, _) | (_, None)) => NONE.into(),
            Some((1, Some(zone))) => Arc::clone(zone),
            None | Some(_) => FLEXIBLE.into(),
        };
        *zones.entry(word).or_default() += pods;
    }
    zones
}

/// The zones that a shape is confined to; nothing when it is not confined.
fn confined<'a>(
    shape: &PodShape,
    needs: Option<&Needs>,
    standing: impl Fn() -> &'a Standing,
    problem: &Problem<'_>,
) -> Option<Zones> {
    let anywhere = [Vec::new()];
    let reachable = needs.map_or(&anywhere[..], |needs| &needs.alternatives);
    let written = written(shape, reachable);
    let mut left: Option<Zones> =
        written.as_ref().filter(|set| !set.is_complement()).map(|set| set.values().iter().cloned().collect());
    let allows = |zone: &str| written.as_ref().is_none_or(|set| set.has(zone));
    let mut restrict = |mut to: Zones| {
        to.retain(|zone| allows(zone));
        left = Some(match &left {
            None => to,
            Some(zones) => zones & &to,
        });
    };
    for spread in shape.spreads.iter().filter(|spread| spread.required && &*spread.key == labels::ZONE) {
        restrict(standing().spread(shape, spread, allows));
    }
    for term in shape.affinity.iter().filter(|term| &*term.key == labels::ZONE) {
        if let Some(zones) = standing().near(shape, term, problem) {
            restrict(zones);
        }
    }
    for term in shape.anti_affinity.iter().filter(|term| &*term.key == labels::ZONE) {
        restrict(standing().away(term, problem));
    }
    left
}

/// What node selector, required node affinity and volumes say of the zone; nothing when one of the alternatives says nothing. Volumes that
/// can be reached from nowhere leave no zone.
fn written(shape: &PodShape, reachable: &[Vec<Requirement>]) -> Option<ValueSet> {
    let selector = Requirements::from_labels(&shape.node_selector);
    let of = |(term, volumes): (&[Requirement], &[Requirement])| {
        let mut all = selector.clone();
        all.add_all(&Requirements::from_written(term));
        all.add_all(&Requirements::from_written(volumes));
        all.get(labels::ZONE).cloned()
    };
    let anything = [Vec::new()];
    let required = if shape.node_affinity.required.is_empty() { &anything[..] } else { &shape.node_affinity.required };
    let mut terms = required.iter().flat_map(|term| reachable.iter().map(|volumes| (&term[..], &volumes[..])));
    let Some(first) = terms.next() else { return Some(ValueSet::of::<Arc<str>>([])) };
    // Alternatives with exclusions are rare and say little: only lists of zones are put together.
    let mut zones = of(first)?;
    for both in terms {
        let other = of(both)?;
        if zones.is_complement() || other.is_complement() {
            return None;
        }
        zones = ValueSet::of(zones.values().iter().chain(other.values()).cloned());
    }
    Some(zones)
}

/// How many pods of which shape stand in each zone that there is or could be.
struct Standing(BTreeMap<Arc<str>, Vec<(Arc<PodShape>, u32)>>);

impl Standing {
    fn of(problem: &Problem<'_>) -> Self {
        let mut zones: BTreeMap<Arc<str>, Tally> = BTreeMap::new();
        for kind in problem.catalog.pools.values().flat_map(|list| list.iter()) {
            for zone in kind.offerings.iter().filter_map(|offering| offering.zone()) {
                if !zones.contains_key(&**zone) {
                    zones.insert(Arc::clone(zone), Tally::default());
                }
            }
        }
        for node in problem.snapshot.nodes.values() {
            let Some(zone) = node.labels.get(labels::ZONE) else { continue };
            let pods = zones.entry(Arc::clone(zone)).or_default();
            for pod in problem.snapshot.pods_on(&node.name).filter(|pod| pod.is_active_on_node()) {
                pods.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| (Arc::clone(&pod.shape), 0)).1 += 1;
            }
        }
        Self(zones.into_iter().map(|(zone, pods)| (zone, pods.into_values().collect())).collect())
    }

    /// How many of the pods that are meant stand in each zone.
    fn count(&self, target: &Target) -> BTreeMap<Arc<str>, u32> {
        let count = |pods: &[(Arc<PodShape>, u32)]| {
            pods.iter().filter(|(shape, _)| target.selects(shape)).map(|(_, pods)| pods).sum()
        };
        self.0.iter().map(|(zone, pods)| (Arc::clone(zone), count(pods))).collect()
    }

    /// Zones that one more pod may go to without exceeding the skew.
    fn spread(&self, shape: &PodShape, spread: &TopologySpread, allows: impl Fn(&str) -> bool) -> Zones {
        let target = Target::within(&shape.namespace, spread.selector.as_ref());
        let mut counts = self.count(&target);
        if spread.node_affinity_policy == PolicyHonor::Honor {
            counts.retain(|zone, _| allows(zone));
        }
        let too_few = spread.min_domains.is_some_and(|least| usize::try_from(least).is_ok_and(|n| counts.len() < n));
        let lowest = if too_few { 0 } else { counts.values().min().copied().unwrap_or(0) };
        let most = lowest.saturating_add(u32::try_from(spread.max_skew).unwrap_or(1));
        let own = u32::from(target.selects(shape));
        counts.into_iter().filter(|(_, pods)| pods + own <= most).map(|(zone, _)| zone).collect()
    }

    /// Zones with a pod that is meant; nothing when there is none and the pod may be the first.
    fn near(&self, shape: &PodShape, term: &AffinityTerm, problem: &Problem<'_>) -> Option<Zones> {
        let target = Target::of(term, problem.snapshot);
        let zones: Zones =
            self.count(&target).into_iter().filter(|(_, pods)| *pods > 0).map(|(zone, _)| zone).collect();
        (!zones.is_empty() || !target.selects(shape)).then_some(zones)
    }

    /// Zones without a pod that is meant.
    fn away(&self, term: &AffinityTerm, problem: &Problem<'_>) -> Zones {
        let counts = self.count(&Target::of(term, problem.snapshot));
        counts.into_iter().filter(|(_, pods)| *pods == 0).map(|(zone, _)| zone).collect()
    }
}
