//! Volumes: what pods claim, what the claims are bound to, the classes that volumes are made by, and how many of them a node can hold.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use jiff::Timestamp;

use crate::core::ids::{NodeName, ObjectKey};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};

use super::Node;

/// Where a volume can be reached, as alternatives: lists of requirements on the node's labels, each of which must hold as a whole.
pub type Topologies = Vec<Vec<Requirement>>;

/// A PersistentVolumeClaim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Whether it has a `metadata.deletionTimestamp`.
    pub deleting: bool,
    /// Whether its `status.phase` is `Lost`: the volume that it was bound to is no more.
    pub lost: bool,
    /// `spec.storageClassName`: nothing when it is not written, the empty text when no class is wanted.
    pub class: Option<Arc<str>>,
    /// `spec.volumeName`: the PersistentVolume that it is, or is about to be, bound to.
    pub volume: Option<Arc<str>>,
    /// Whether the binding is complete (annotation `pv.kubernetes.io/bind-completed`).
    pub bound: bool,
    /// Who may use it at a time.
    pub access: Access,
}

/// Who may use a volume at a time, as `spec.accessModes` of a claim say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// One pod (`ReadWriteOncePod`).
    OnePod,
    /// The pods of one node.
    OneNode,
    /// Pods of many nodes (`ReadWriteMany`, `ReadOnlyMany`).
    ManyNodes,
}

/// A PersistentVolume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Whether it has a `metadata.deletionTimestamp`.
    pub deleting: bool,
    /// The CSI driver that attaches it, that of a migrated in-tree plugin included; nothing for what is not attached (NFS, local).
    pub driver: Option<Arc<str>>,
    /// Whether it lives on one node (`local`, `hostPath`).
    pub on_one_node: bool,
    /// `spec.nodeAffinity.required`, within the zones and regions that its labels name; nothing when it can be reached from everywhere.
    pub topologies: Option<Topologies>,
}

impl Volume {
    /// From where it can be reached while the cluster has these nodes; nothing when from everywhere. A volume that lives on one node (`local`,
    /// `hostPath`) is gone with it: alternatives that name hosts none of which is there are left out, and where all are, it can be reached from nowhere.
    pub fn reached_from(&self, nodes: &OrdMap<NodeName, Arc<Node>>) -> Option<Cow<'_, Topologies>> {
        let all = self.topologies.as_ref()?;
        let is_gone = |term: &Vec<Requirement>| {
            let mut hosts = term.iter().filter(|one| &*one.key == labels::HOSTNAME && one.operator == Operator::In);
            hosts.any(|one| !one.values.iter().any(|host| is_there(nodes, host)))
        };
        if !self.on_one_node || !all.iter().any(is_gone) {
            return Some(Cow::Borrowed(all));
        }
        Some(Cow::Owned(all.iter().filter(|term| !is_gone(term)).cloned().collect()))
    }

    /// The hosts that its node affinity names.
    pub fn hosts(&self) -> Vec<Arc<str>> {
        let lines = self.topologies.iter().flatten().flatten();
        let named = lines.filter(|one| &*one.key == labels::HOSTNAME && one.operator == Operator::In);
        named.flat_map(|one| &one.values).cloned().collect()
    }
}

/// Whether a node has this host name. As a rule it is the node's name.
fn is_there(nodes: &OrdMap<NodeName, Arc<Node>>, host: &str) -> bool {
    let bears = |node: &Node| node.labels.get(labels::HOSTNAME).map_or(node.name.as_str(), |label| label) == host;
    nodes.get(&NodeName::from(host)).is_some_and(|node| bears(node)) || nodes.values().any(|node| bears(node))
}

/// A StorageClass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageClass {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// The CSI driver that attaches its volumes, as of [`Volume::driver`]; nothing for `kubernetes.io/no-provisioner`.
    pub driver: Option<Arc<str>>,
    /// Whether `volumeBindingMode` is `Immediate`: volumes are made before pods have a node.
    pub immediate: bool,
    /// `allowedTopologies`; empty when all are allowed.
    pub topologies: Topologies,
    /// Whether it stands for the class that a claim does not name.
    pub is_default: bool,
    /// `metadata.creationTimestamp`: of several defaults the youngest counts.
    pub created: Timestamp,
}

/// A CSINode: the CSI drivers of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsiNode {
    /// The node, whose name it bears.
    pub node: NodeName,
    /// How many volumes of each driver the node can hold; nothing where the driver sets no limit.
    pub limits: BTreeMap<Arc<str>, Option<u32>>,
}

/// A VolumeAttachment: a volume that is, or should be, attached to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeAttachment {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.nodeName`.
    pub node: NodeName,
    /// `spec.source.persistentVolumeName`; nothing for an inline volume.
    pub volume: Option<Arc<str>>,
}
