//! Volumes of a plan: each can be reached from where its pod goes, and no node is to hold more than it can.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::{InstanceType, Pod, Snapshot, StorageClass, Topologies, VolumeClaim};
use crate::core::ids::{NodeName, ObjectKey};
use crate::core::requirements::{Requirements, ValueSet};

use super::verify::Place;
use super::violation::Violation;

/// Volumes by driver, each by a name of its own.
type ByDriver = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// Whether all volumes of a pod can be reached wherever labels are as `always` says.
pub(super) fn reachable(snapshot: &Snapshot, pod: &Pod, always: &dyn Fn(&Arc<str>, &ValueSet) -> bool) -> bool {
    pod.volume_claims.iter().all(|name| {
        let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
        let Some(claim) = snapshot.volume_claims.get(&key) else { return false };
        let anywhere = vec![vec![]];
        let terms: Option<&Topologies> = if let Some(volume) = &claim.volume {
            snapshot.volumes.get(volume).map(|volume| volume.topologies.as_ref().unwrap_or(&anywhere))
        } else {
            let class = class_of(snapshot, claim);
            class.map(|class| if class.topologies.is_empty() { &anywhere } else { &class.topologies })
        };
        let Some(terms) = terms else { return false };
        let mut either: Vec<Requirements> = Vec::new();
        for term in terms {
            let mut one = Requirements::from_written(term);
            while let Some(at) = either.iter().position(|known| known.or_on_one_key(&one).is_some()) {
                one = either.swap_remove(at).or_on_one_key(&one).unwrap_or(one);
            }
            either.push(one);
        }
        either.iter().any(|term| term.iter().all(|(key, wish)| always(key, wish)))
    })
}

fn class_of<'a>(snapshot: &'a Snapshot, claim: &VolumeClaim) -> Option<&'a Arc<StorageClass>> {
    claim.class.as_ref().map_or_else(|| snapshot.default_storage_class(), |name| snapshot.storage_classes.get(name))
}

/// Volumes of these pods that drivers attach.
fn attached<'a>(snapshot: &Snapshot, pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> ByDriver {
    let mut all = ByDriver::new();
    for pod in pods {
        for name in &pod.volume_claims {
            let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            let Some(claim) = snapshot.volume_claims.get(&key) else { continue };
            let volume = claim.volume.as_ref().and_then(|name| snapshot.volumes.get(name));
            let class = class_of(snapshot, claim);
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

/// Whether a listed type could not hold the volumes of a NodeClaim's pods.
pub(super) fn check_type(
    snapshot: &Snapshot,
    place: &Arc<str>,
    pods: &[Arc<Pod>],
    kinds: &[&Arc<InstanceType>],
    found: &mut Vec<Violation>,
) {
    for (driver, volumes) in attached(snapshot, pods) {
        let limits = kinds.iter().filter_map(|kind| kind.attach_limits.get(&driver));
        if limits.into_iter().any(|limit| usize::try_from(*limit).is_ok_and(|limit| volumes.len() > limit)) {
            found.push(Violation::TooManyVolumes { place: Arc::clone(place), driver });
        }
    }
}
