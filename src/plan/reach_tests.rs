//! A volume where nothing is names itself, its place, and the places that there are.

use std::sync::Arc;

use super::Reach;
use crate::core::facts::samples::{node, pod, volume_claim};
use crate::core::facts::{Catalog, Pod, Snapshot, StorageClass, Topologies, Volume, VolumeClaim};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};

fn within(zones: &[&str]) -> Topologies {
    vec![vec![Requirement::new(labels::ZONE, Operator::In, zones.iter().copied())]]
}

fn reasons(of_volume: Option<&[&str]>, of_class: &[&str]) -> Vec<String> {
    let mut snapshot = Snapshot::default();
    let mut there = node();
    there.labels.insert(labels::ZONE.into(), "here".into());
    snapshot.nodes.insert(there.name.clone(), Arc::new(there));
    let class = Some("class".into());
    let claim = VolumeClaim { class, bound: true, ..volume_claim("default", "data", of_volume.map(|_| "disk")) };
    snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    if let Some(zones) = of_volume {
        let topologies = Some(within(zones));
        let disk = Volume { name: "disk".into(), deleting: false, driver: None, on_one_node: false, topologies };
        snapshot.volumes.insert("disk".into(), Arc::new(disk));
    }
    let class = StorageClass {
        name: "class".into(),
        driver: None,
        immediate: false,
        topologies: within(of_class),
        is_default: false,
        created: jiff::Timestamp::UNIX_EPOCH,
    };
    snapshot.storage_classes.insert("class".into(), Arc::new(class));
    let pod = Pod { volume_claims: vec!["data".into()], ..pod("p", None) };
    Reach::of(&snapshot, &Catalog::default()).reasons(&pod, &[])
}

#[test]
fn what_is_where_nothing_is_is_named() {
    let zone = "topology.kubernetes.io/zone";
    assert_eq!(
        reasons(Some(&["mars"]), &["here"]),
        [format!(
            "PersistentVolume disk of PersistentVolumeClaim default/data is in {zone} mars (spec.nodeAffinity or labels), where there is neither a node nor an instance type, but in {zone} here; correct it, or move the volume"
        )]
    );
    assert_eq!(
        reasons(None, &["mars", "moon"]),
        [format!(
            "StorageClass class of PersistentVolumeClaim default/data makes volumes in {zone} mars, moon only (allowedTopologies), where there is neither a node nor an instance type, but in {zone} here; allow one of these"
        )]
    );
    assert!(reasons(Some(&["mars", "here"]), &["mars"]).is_empty(), "a volume that is there needs no class");
    assert!(reasons(None, &["mars", "here"]).is_empty());
}
