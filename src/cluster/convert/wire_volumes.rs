//! The parts of storage objects that joiner reads, as they travel; the second half of [`super::wire`].

use k8s_openapi::api::core::v1::VolumeNodeAffinity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::wire::metadata;

/// A volume of a pod; of most kinds nothing is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodVolume {
    /// Its name in the pod.
    #[serde(default)]
    pub name: String,
    /// A claim that is there by itself.
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A claim that lives and dies with the pod.
    pub ephemeral: Option<IgnoredAny>,
}

/// `persistentVolumeClaim` of a pod's volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// The claim's name, in the pod's namespace.
    #[serde(default)]
    pub claim_name: String,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Deserialize)]
pub struct PersistentVolumeClaim {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: Option<PersistentVolumeClaimSpec>,
    /// What became of it.
    pub status: Option<PersistentVolumeClaimStatus>,
}

/// `spec` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeClaimSpec {
    /// Its class.
    pub storage_class_name: Option<String>,
    /// What it is bound to.
    pub volume_name: Option<String>,
    /// Who may use it at a time.
    pub access_modes: Option<Vec<String>>,
}

/// `status` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PersistentVolumeClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Option<String>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Deserialize)]
pub struct PersistentVolume {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: Option<PersistentVolumeSpec>,
}

/// `spec` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// From where it can be reached.
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// What is behind it.
    #[serde(flatten)]
    pub source: PersistentVolumeSource,
}

/// What is behind a PersistentVolume: of most plugins only that it is they.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeSource {
    /// A CSI driver.
    pub csi: Option<CsiSource>,
    /// A disk of one node.
    pub local: Option<IgnoredAny>,
    /// A folder of one node.
    pub host_path: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    #[serde(rename = "awsElasticBlockStore")]
    pub aws_elastic_block_store: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub gce_persistent_disk: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub cinder: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub azure_disk: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub azure_file: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub vsphere_volume: Option<IgnoredAny>,
    /// In-tree plugin, migrated.
    pub portworx_volume: Option<IgnoredAny>,
}

/// `csi` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CsiSource {
    /// The driver.
    #[serde(default)]
    pub driver: String,
}

/// A StorageClass.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Who makes its volumes.
    pub provisioner: Option<String>,
    /// `Immediate` (the default) or `WaitForFirstConsumer`.
    pub volume_binding_mode: Option<String>,
    /// Where its volumes may be made.
    pub allowed_topologies: Option<Vec<TopologyTerm>>,
}

/// One of `allowedTopologies`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyTerm {
    /// Labels and the values that they may have.
    pub match_label_expressions: Option<Vec<TopologyLabel>>,
}

/// A label and the values that it may have.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TopologyLabel {
    /// Label key.
    #[serde(default)]
    pub key: String,
    /// Values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A CSINode.
#[derive(Clone, Debug, Deserialize)]
pub struct CSINode {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Its drivers.
    pub spec: Option<CsiNodeSpec>,
}

/// `spec` of a CSINode.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CsiNodeSpec {
    /// The drivers that run on the node.
    pub drivers: Option<Vec<CsiDriver>>,
}

/// A driver of a CSINode.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CsiDriver {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// What it can hold.
    pub allocatable: Option<VolumeNodeResources>,
}

/// What a driver can hold on a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VolumeNodeResources {
    /// How many volumes.
    pub count: Option<i32>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, Deserialize)]
pub struct VolumeAttachment {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is attached where.
    pub spec: Option<VolumeAttachmentSpec>,
}

/// `spec` of a VolumeAttachment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// The node.
    #[serde(default)]
    pub node_name: String,
    /// What is attached.
    pub source: Option<AttachmentSource>,
}

/// `source` of a VolumeAttachment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentSource {
    /// The PersistentVolume; nothing for an inline volume.
    pub persistent_volume_name: Option<String>,
}
