//! Volumes in zones where there is nothing: which one it is of a pod's, where it is, and where there is something.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::{Catalog, Pod, Snapshot, Topologies};
use crate::core::ids::ObjectKey;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::scheduling::Reason;

/// Most zones that are named.
const SHOWN: usize = 10;

/// Values of a label.
type Values = BTreeSet<Arc<str>>;

/// The zones and regions of all machines that are there or can be bought.
pub(super) struct Reach<'a> {
    snapshot: &'a Snapshot,
    catalog: &'a Catalog,
    places: OnceCell<[(&'static str, Values); 2]>,
}

impl<'a> Reach<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, catalog: &'a Catalog) -> Self {
        Self { snapshot, catalog, places: OnceCell::new() }
    }

    /// Why a pod has no place: first, the volumes that are where nothing is; then what the solver says.
    pub(super) fn reasons(&self, pod: &Pod, said: &[Reason]) -> Vec<String> {
        // One with which something is wrong has not been tried.
        let tried = !said.iter().any(Reason::is_invalid);
        let astray = pod.volume_claims.iter().filter(|_| tried).filter_map(|name| self.astray(pod, name));
        astray.chain(said.iter().map(ToString::to_string)).collect()
    }

    /// What is wrong with where a volume of the pod is, or may be.
    fn astray(&self, pod: &Pod, name: &Arc<str>) -> Option<String> {
        let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
        let claim = self.snapshot.volume_claims.get(&key)?;
        if let Some(volume) = claim.volume.as_ref().and_then(|name| self.snapshot.volumes.get(name)) {
            let (wanted, there) = self.nowhere(volume.topologies.as_ref()?)?;
            return Some(format!(
                "PersistentVolume {} of PersistentVolumeClaim {key} is in {wanted} (spec.nodeAffinity or labels), where there is neither a node nor an instance type, but in {there}; correct it, or move the volume",
                volume.name
            ));
        }
        let class = self.snapshot.storage_class_of(claim)?;
        let (wanted, there) = self.nowhere(&class.topologies)?;
        Some(format!(
            "StorageClass {} of PersistentVolumeClaim {key} makes volumes in {wanted} only (allowedTopologies), where there is neither a node nor an instance type, but in {there}; allow one of these",
            class.name
        ))
    }

    /// The places of which there are none, and those of which there are some; nothing where one of the alternatives can be had.
    fn nowhere(&self, terms: &Topologies) -> Option<(String, String)> {
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut there: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for term in terms {
            let (key, known, values) = term.iter().find_map(|one| self.missing(one))?;
            wanted.entry(key).or_default().extend(values.iter().map(|value| &**value));
            there.entry(key).or_default().extend(known.iter().map(|value| &**value));
        }
        there.values().any(|known| !known.is_empty()).then(|| (listed(&wanted), listed(&there)))
    }

    /// What a requirement asks for, where that is a zone or a region and no machine is in any of them.
    fn missing<'b>(&self, one: &'b Requirement) -> Option<(&'static str, &Values, &'b [Arc<str>])> {
        let places = self.places.get_or_init(|| [labels::ZONE, labels::REGION].map(|key| (key, self.all(key))));
        let (key, known) = places.iter().find(|(key, _)| *key == &*one.key)?;
        let is_there = one.operator != Operator::In || one.values.iter().any(|value| known.contains(value));
        (!is_there).then_some((*key, known, &one.values[..]))
    }

    /// All values of a label that a node has, or may have that could be bought.
    fn all(&self, key: &str) -> Values {
        let of_nodes = self.snapshot.nodes.values().filter_map(|node| node.labels.get(key).cloned());
        let types = self.catalog.pools.values().flat_map(|list| list.iter());
        let lines = types
            .flat_map(|kind| kind.requirements.iter().chain(kind.offerings.iter().flat_map(|one| &one.requirements)));
        let bought = lines
            .filter(|line| &*line.key == key && line.operator == Operator::In)
            .flat_map(|line| line.values.iter().cloned());
        of_nodes.chain(bought).collect()
    }
}

/// Labels with their values.
fn listed(all: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let one = |(key, values): (&&str, &BTreeSet<&str>)| {
        let shown: Vec<&str> = values.iter().take(SHOWN).copied().collect();
        match values.len().saturating_sub(SHOWN) {
            0 => format!("{key} {}", shown.join(", ")),
            more => format!("{key} {} and {more} others", shown.join(", ")),
        }
    };
    all.iter().map(one).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
