//! Volumes of a plan: each can be reached from where its pod goes, and no node is to hold more than it can.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::{Access, AttachLimits, InstanceType, Pod, Snapshot, Topologies};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels;
use crate::core::requirements::{Requirements, ValueSet};

use super::super::plan::Plan;
use super::verify::Place;
use super::violation::Violation;

/// Volumes by driver, each by a name of its own.
type ByDriver = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// Whether all volumes of a pod can be reached wherever labels are as `always` says.
pub(super) fn reachable(snapshot: &Snapshot, pod: &Pod, always: &dyn Fn(&Arc<str>, &ValueSet) -> bool) -> bool {
    pod.volume_claims.iter().all(|name| {
        let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
        let Some(claim) = snapshot.volume_claims.get(&key) else { return false };
        let anywhere = || Cow::Owned(vec![vec![]]);
        let terms: Option<Cow<'_, Topologies>> = if let Some(volume) = &claim.volume {
            snapshot.volumes.get(volume).map(|volume| volume.reached_from(&snapshot.nodes).unwrap_or_else(anywhere))
        } else {
            let class = snapshot.storage_class_of(claim);
            class.map(|class| if class.topologies.is_empty() { anywhere() } else { Cow::Borrowed(&class.topologies) })
        };
        let Some(terms) = terms else { return false };
        let mut either: Vec<Requirements> = Vec::new();
        for term in terms.iter() {
            let mut one = Requirements::from_written(term);
            while let Some(at) = either.iter().position(|known| known.or_on_one_key(&one).is_some()) {
                one = either.swap_remove(at).or_on_one_key(&one).unwrap_or(one);
            }
            either.push(one);
        }
        either.iter().any(|term| term.iter().all(|(key, wish)| always(key, wish)))
    })
}

/// Volumes of these pods that drivers attach.
fn attached<'a>(snapshot: &Snapshot, pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> ByDriver {
    let mut all = ByDriver::new();
    for pod in pods {
        for name in &pod.volume_claims {
            let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            let Some(claim) = snapshot.volume_claims.get(&key) else { continue };
            let volume = claim.volume.as_ref().and_then(|name| snapshot.volumes.get(name));
            let class = snapshot.storage_class_of(claim);
            let (driver, id) = match volume {
                Some(volume) => (volume.driver.as_ref(), Arc::clone(&volume.name)),
                None => (class.and_then(|class| class.driver.as_ref()), format!("{key} unbound").into()),
            };
            if let Some(driver) = driver {
                all.entry(Arc::clone(driver)).or_default().insert(id);
            }
        }
    }
    all
}

/// Claims for one pod at a time that a pod of the plan shares with another of it, or with one that runs.
pub(super) fn check_shared(snapshot: &Snapshot, plan: &Plan, found: &mut Vec<Violation>) {
    let claims = |pod: &Arc<Pod>| {
        let namespace = Arc::clone(&pod.key.namespace);
        let key = move |name: &Arc<str>| ObjectKey { namespace: Arc::clone(&namespace), name: Arc::clone(name) };
        let for_one =
            |key: &ObjectKey| snapshot.volume_claims.get(key).is_some_and(|claim| claim.access == Access::OnePod);
        pod.volume_claims.iter().map(key).filter(for_one).collect::<Vec<_>>()
    };
    let new = plan.claims.iter().flat_map(|claim| &claim.pods);
    let planned: Vec<&Arc<Pod>> = new.chain(plan.existing.iter().flat_map(|placed| &placed.pods)).collect();
    let mut users: BTreeMap<ObjectKey, BTreeSet<&PodUid>> = BTreeMap::new();
    for pod in planned {
        for claim in claims(pod) {
            users.entry(claim).or_default().insert(&pod.uid);
        }
    }
    if users.is_empty() {
        return;
    }
    for pod in snapshot.pods.values().filter(|pod| pod.is_active_on_node()) {
        for claim in claims(pod) {
            if let Some(users) = users.get_mut(&claim) {
                users.insert(&pod.uid);
            }
        }
    }
    let shared = users.into_iter().filter(|(_, users)| users.len() > 1);
    found.extend(shared.map(|(claim, _)| Violation::VolumeShared { claim }));
}

/// Claims for pods of one node, with volumes yet to come, whose pods the plan puts into several zones: the volume will be in one.
pub(super) fn check_zones(snapshot: &Snapshot, plan: &Plan, found: &mut Vec<Violation>) {
    if snapshot.volume_claims.is_empty() {
        return;
    }
    let comes = |key: &ObjectKey| {
        snapshot.volume_claims.get(key).is_some_and(|claim| {
            let driver = snapshot.storage_class_of(claim).and_then(|class| class.driver.as_ref());
            claim.access == Access::OneNode && claim.volume.is_none() && driver.is_some()
        })
    };
    let mut zones: BTreeMap<ObjectKey, BTreeSet<Option<Arc<str>>>> = BTreeMap::new();
    for place in plan.placements() {
        for pod in place.pods() {
            for name in &pod.volume_claims {
                let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
                if comes(&key) {
                    zones.entry(key).or_default().insert(place.domain(labels::ZONE, snapshot));
                }
            }
        }
    }
    let torn = zones.into_iter().filter(|(_, zones)| zones.len() > 1);
    found.extend(torn.map(|(claim, _)| Violation::VolumeTorn { claim }));
}

/// Whether a node that exists gets more volumes of a driver than it can hold.
pub(super) fn check_node(snapshot: &Snapshot, place: &Place<'_>, found: &mut Vec<Violation>) {
    let Some(csi) = snapshot.csi_nodes.get(&NodeName::from(Arc::clone(&place.name))) else { return };
    let there = attached(snapshot, place.running.iter().copied());
    let with = attached(snapshot, place.running.iter().chain(&place.planned).copied());
    for (driver, volumes) in with {
        let before = there.get(&driver).map_or(0, BTreeSet::len);
        let limit = csi.limits.get(&driver).copied().flatten().and_then(|limit| usize::try_from(limit).ok());
        if volumes.len() > before && limit.is_some_and(|limit| volumes.len() > limit) {
            found.push(Violation::TooManyVolumes { place: Arc::clone(&place.name), driver });
        }
    }
}

/// Whether a listed type could not hold the volumes of a NodeClaim's pods, as far as is known or `shown`.
pub(super) fn check_type(
    snapshot: &Snapshot,
    place: &Arc<str>,
    pods: &[Arc<Pod>],
    (kinds, shown): (&[&Arc<InstanceType>], &AttachLimits),
    found: &mut Vec<Violation>,
) {
    for (driver, volumes) in attached(snapshot, pods) {
        let mut limits = kinds.iter().filter_map(|kind| shown.of(kind, &driver));
        if limits.any(|limit| usize::try_from(limit).is_ok_and(|limit| volumes.len() > limit)) {
            found.push(Violation::TooManyVolumes { place: Arc::clone(place), driver });
        }
    }
}
