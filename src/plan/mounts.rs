//! The claims of the pods of files: those that controllers would make, and why a pod cannot have one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::facts::{Pod, PodShape, Snapshot, VolumeClaim};
use crate::core::ids::ObjectKey;
use crate::manifests::{Owned, Unread, VolumeSource};

/// Claims by name, and what could not be read of those and of what is behind them.
#[derive(Default)]
pub(super) struct Mounts {
    /// Owners of the claims that are there.
    owners: BTreeMap<ObjectKey, Vec<Owned>>,
    /// Claims that controllers would make, and the pod for which one alone is.
    made: BTreeMap<ObjectKey, (VolumeClaim, Option<ObjectKey>)>,
    /// What is wrong with objects that could not be read, by kind, namespace (empty where it has none) and name.
    unread: BTreeMap<(String, String, String), String>,
}

impl Mounts {
    pub(super) fn new(unread: Vec<Unread>) -> Self {
        let unread = unread.into_iter().map(|one| ((one.kind, one.namespace, one.name), one.problem)).collect();
        Self { unread, ..Self::default() }
    }

    /// Takes note of a claim that is there.
    pub(super) fn see(&mut self, claim: &ObjectKey, owners: Vec<Owned>) {
        self.owners.insert(claim.clone(), owners);
    }

    /// The pod with the claims that are made for it, or refused, if it cannot have one of its volumes. All claims that are there have been seen.
    pub(super) fn mount(&mut self, pod: &Arc<Pod>, volumes: &[VolumeSource], snapshot: &Snapshot) -> Arc<Pod> {
        let made: Vec<String> = volumes.iter().filter_map(|volume| self.make(&pod.key, volume)).collect();
        let unread = pod.volume_claims.iter().filter_map(|name| self.unreadable(&pod.key.namespace, name, snapshot));
        let problems: Vec<String> =
            pod.shape.broken.iter().map(ToString::to_string).chain(made).chain(unread).collect();
        if problems.len() == usize::from(pod.shape.broken.is_some()) {
            return Arc::clone(pod);
        }
        let shape = PodShape { broken: Some(problems.join("; ").into()), ..(*pod.shape).clone() };
        Arc::new(Pod { shape: Arc::new(shape), ..(**pod).clone() })
    }

    /// Makes the claim of a volume where that is a controller's to make. The pod of an ephemeral volume has to have a claim of its own, as kube-scheduler
    /// has it; the answer is what is wrong.
    fn make(&mut self, pod: &ObjectKey, volume: &VolumeSource) -> Option<String> {
        let claim = volume.made_for(pod)?;
        let VolumeSource::Ephemeral { name, .. } = volume else {
            if !self.owners.contains_key(&claim.key) {
                self.made.entry(claim.key.clone()).or_insert((claim, None));
            }
            return None;
        };
        let is_own = if let Some(owners) = self.owners.get(&claim.key) {
            owners.iter().any(|owner| owner.kind == "Pod" && *owner.name == *pod.name)
        } else {
            let made = self.made.entry(claim.key.clone()).or_insert_with(|| (claim.clone(), Some(pod.clone())));
            made.1.as_ref() == Some(pod)
        };
        (!is_own).then(|| {
            format!(
                "spec.volumes: PersistentVolumeClaim {}, which the ephemeral volume {name} would have, is not the pod's own; rename the pod or the volume, or delete the claim",
                claim.key
            )
        })
    }

    /// What cannot be read of a claim, or of the volume or the class that it names.
    fn unreadable(&self, namespace: &Arc<str>, name: &Arc<str>, snapshot: &Snapshot) -> Option<String> {
        if self.unread.is_empty() {
            return None;
        }
        let of = |kind: &str, namespace: &str, name: &str| {
            self.unread.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
        };
        let key = ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) };
        let claim = snapshot.volume_claims.get(&key).map(|claim| &**claim);
        let claim = claim.or_else(|| self.made.get(&key).map(|(claim, _)| claim));
        let behind = || match claim? {
            VolumeClaim { volume: Some(volume), .. } => of("PersistentVolume", "", volume),
            VolumeClaim { class: Some(class), .. } => of("StorageClass", "", class),
            _ => None,
        };
        let problem = of("PersistentVolumeClaim", namespace, name).or_else(behind)?;
        Some(format!("spec.volumes: what is behind claim {name} cannot be read: {problem}"))
    }

    /// The claims that controllers would make.
    pub(super) fn made(self) -> impl Iterator<Item = VolumeClaim> {
        self.made.into_values().map(|(claim, _)| claim)
    }
}
