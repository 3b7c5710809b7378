//! Volumes: claims, PersistentVolumes, StorageClasses, CSINodes and VolumeAttachments.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use serde_json::Value;

use crate::core::facts::{Access, CsiNode, StorageClass, Topologies, Volume, VolumeAttachment, VolumeClaim};
use crate::core::ids::ObjectKey;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement, Requirements};

use super::common;
use super::problems::{Unreadable, strict};
use super::wire::{self, PersistentVolumeSource as Source};

/// The volume controller's word for a complete binding.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// A StorageClass with this annotation stands for those that are not named.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The access mode of a claim that one pod at a time may use, and those of claims that pods of many nodes may.
const ONE_POD: &str = "ReadWriteOncePod";
const MANY_NODES: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];

/// In-tree plugins and the CSI drivers that have taken over for them (Kubernetes' CSI migration).
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// Reads a PersistentVolumeClaim from a manifest or an answer of the API server.
pub fn read_volume_claim(value: &Value) -> Result<VolumeClaim, Unreadable> {
    strict::<wire::PersistentVolumeClaim>("PersistentVolumeClaim", value).and_then(|wire| volume_claim(&wire))
}

/// Folds a PersistentVolumeClaim into a fact.
pub fn volume_claim(wire: &wire::PersistentVolumeClaim) -> Result<VolumeClaim, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("PersistentVolumeClaim", meta)?;
    let spec = wire.spec.as_ref();
    let is_bound = meta.annotations.as_ref().is_some_and(|all| all.contains_key(BIND_COMPLETED));
    // Older objects name the class in an annotation.
    let old = meta.annotations.as_ref().and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    Ok(VolumeClaim {
        key: ObjectKey { namespace: meta.namespace.as_deref().unwrap_or("default").into(), name },
        deleting: meta.deletion_timestamp.is_some(),
        lost: wire.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Lost")),
        class: old.or_else(|| spec?.storage_class_name.as_ref()).map(|class| class.as_str().into()),
        volume: spec.and_then(|s| s.volume_name.as_deref()).filter(|name| !name.is_empty()).map(Arc::from),
        bound: is_bound,
        access: access(spec.and_then(|s| s.access_modes.as_deref()).unwrap_or_default()),
    })
}

fn access(modes: &[String]) -> Access {
    if modes.iter().any(|mode| mode == ONE_POD) {
        Access::OnePod
    } else if modes.iter().any(|mode| MANY_NODES.contains(&mode.as_str())) {
        Access::ManyNodes
    } else {
        Access::OneNode
    }
}

/// Reads a PersistentVolume from a manifest or an answer of the API server.
pub fn read_volume(value: &Value) -> Result<Volume, Unreadable> {
    strict::<wire::PersistentVolume>("PersistentVolume", value).and_then(|wire| volume(&wire))
}

/// Folds a PersistentVolume into a fact.
pub fn volume(wire: &wire::PersistentVolume) -> Result<Volume, Unreadable> {
    let name = common::name("PersistentVolume", &wire.metadata)?;
    let spec = wire.spec.clone().unwrap_or_default();
    let on_one_node = spec.source.local.is_some() || spec.source.host_path.is_some();
    let required = spec.node_affinity.and_then(|affinity| affinity.required);
    let terms = required.map(|required| {
        let readable = required.node_selector_terms.iter().filter_map(|term| {
            // Fields of a node (its name) are known of no node that is yet to come.
            let fields = term.match_fields.as_ref().is_some_and(|fields| !fields.is_empty());
            requirements(term.match_expressions.iter().flatten()).filter(|one| !one.is_empty() || fields)
        });
        readable.collect()
    });
    let topologies = within(terms, &labelled(wire.metadata.labels.as_ref()));
    let deleting = wire.metadata.deletion_timestamp.is_some();
    Ok(Volume { name, deleting, driver: driver_of(&spec.source), on_one_node, topologies })
}

/// Zones and regions that the labels of a volume name, several with `__` between them. kube-scheduler keeps pods of the volume on nodes with these labels
/// whatever the node affinity says (its plugin VolumeZone); it passes over a label with an empty name among them, as this does.
fn labelled(labels: Option<&BTreeMap<String, String>>) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        let key = labels::normalized(key);
        let names: Vec<&str> = value.split("__").map(str::trim).collect();
        if [labels::ZONE, labels::REGION].contains(&key) && names.iter().all(|name| !name.is_empty()) {
            all.push(Requirement::new(key, Operator::In, names));
        }
    }
    all
}

/// Terms of node affinity, each with the labels besides; those that contradict the labels hold nowhere and are left out.
fn within(terms: Option<Topologies>, labels: &[Requirement]) -> Option<Topologies> {
    if labels.is_empty() {
        return terms;
    }
    let here = Requirements::from_written(labels);
    let mut terms = terms.unwrap_or_else(|| vec![Vec::new()]);
    terms.retain(|term| here.intersects(&Requirements::from_written(term)).is_ok());
    for term in &mut terms {
        let new = labels.iter().filter(|label| !term.contains(label)).cloned().collect::<Vec<_>>();
        term.extend(new);
    }
    Some(terms)
}

/// Reads a StorageClass from a manifest or an answer of the API server.
pub fn read_storage_class(value: &Value) -> Result<StorageClass, Unreadable> {
    strict::<wire::StorageClass>("StorageClass", value).and_then(|wire| storage_class(&wire))
}

/// Folds a StorageClass into a fact.
pub fn storage_class(wire: &wire::StorageClass) -> Result<StorageClass, Unreadable> {
    let meta = &wire.metadata;
    let provisioner = wire.provisioner.as_deref().unwrap_or_default();
    let annotation = meta.annotations.as_ref().and_then(|all| all.get(IS_DEFAULT));
    let terms = wire.allowed_topologies.iter().flatten().map(|term| {
        let one = term.match_label_expressions.iter().flatten();
        one.map(|line| requirement(&line.key, Operator::In, &line.values)).collect::<Vec<_>>()
    });
    Ok(StorageClass {
        name: common::name("StorageClass", meta)?,
        driver: (provisioner != NO_PROVISIONER).then(|| driver(provisioner)),
        immediate: wire.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"),
        topologies: terms.filter(|term| !term.is_empty()).collect(),
        is_default: annotation.is_some_and(|value| value == "true"),
        created: common::created(meta),
    })
}

/// Reads a CSINode from a manifest or an answer of the API server.
pub fn read_csi_node(value: &Value) -> Result<CsiNode, Unreadable> {
    strict::<wire::CSINode>("CSINode", value).and_then(|wire| csi_node(&wire))
}

/// Folds a CSINode into a fact.
pub fn csi_node(wire: &wire::CSINode) -> Result<CsiNode, Unreadable> {
    let node = common::name("CSINode", &wire.metadata)?;
    let drivers = wire.spec.iter().flat_map(|spec| spec.drivers.iter().flatten());
    let limit = |driver: &wire::CsiDriver| {
        let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
        count.and_then(|count| u32::try_from(count).ok())
    };
    Ok(CsiNode { node: node.into(), limits: drivers.map(|one| (one.name.as_str().into(), limit(one))).collect() })
}

/// Reads a VolumeAttachment from a manifest or an answer of the API server.
pub fn read_attachment(value: &Value) -> Result<VolumeAttachment, Unreadable> {
    strict::<wire::VolumeAttachment>("VolumeAttachment", value).and_then(|wire| attachment(&wire))
}

/// Folds a VolumeAttachment into a fact.
pub fn attachment(wire: &wire::VolumeAttachment) -> Result<VolumeAttachment, Unreadable> {
    let name = common::name("VolumeAttachment", &wire.metadata)?;
    let spec = wire.spec.clone().unwrap_or_default();
    let volume = spec.source.and_then(|source| source.persistent_volume_name).map(Arc::from);
    Ok(VolumeAttachment { name, node: spec.node_name.as_str().into(), volume })
}

/// A term of a volume's node affinity; nothing when it has an operator that nobody knows, and so holds nowhere.
fn requirements<'a>(lines: impl Iterator<Item = &'a NodeSelectorRequirement>) -> Option<Vec<Requirement>> {
    let read = |line: &NodeSelectorRequirement| {
        let values = line.values.as_deref().unwrap_or_default();
        Some(requirement(&line.key, Operator::parse(&line.operator)?, values))
    };
    lines.map(read).collect()
}

fn requirement(key: &str, operator: Operator, values: &[String]) -> Requirement {
    Requirement::new(stable(key), operator, values.iter().map(String::as_str))
}

/// CSI drivers label nodes with zone keys of their own (`topology.ebs.csi.aws.com/zone`). They say what the well-known label says, and only
/// that one is known of a node that is yet to come.
fn stable(key: &str) -> &str {
    let domain = labels::domain(key);
    let of_a_driver = domain.starts_with("topology.") && (domain.contains(".csi.") || domain == "topology.gke.io");
    if of_a_driver && key.ends_with("/zone") { labels::ZONE } else { labels::normalized(key) }
}

fn driver(provisioner: &str) -> Arc<str> {
    MIGRATED.iter().find(|(plugin, _)| *plugin == provisioner).map_or(provisioner, |(_, driver)| driver).into()
}

fn driver_of(source: &Source) -> Option<Arc<str>> {
    if let Some(csi) = &source.csi {
        return Some(csi.driver.as_str().into());
    }
    let in_tree = [
        (&source.aws_elastic_block_store, "kubernetes.io/aws-ebs"),
        (&source.gce_persistent_disk, "kubernetes.io/gce-pd"),
        (&source.cinder, "kubernetes.io/cinder"),
        (&source.azure_disk, "kubernetes.io/azure-disk"),
        (&source.azure_file, "kubernetes.io/azure-file"),
        (&source.vsphere_volume, "kubernetes.io/vsphere-volume"),
        (&source.portworx_volume, "kubernetes.io/portworx-volume"),
    ];
    in_tree.into_iter().find(|(there, _)| there.is_some()).map(|(_, plugin)| driver(plugin))
}

#[cfg(test)]
#[path = "volume_tests.rs"]
mod tests;
