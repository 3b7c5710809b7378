//! OutscaleNodeClass: how machines on 3DS OUTSCALE are made, with Talos Linux on them.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::common::{Condition, Quantity};
use crate::api::schema;

/// Conditions on which `Ready` depends, in the order in which they are worked out.
pub const DEPENDENTS: [&str; 8] = [
    "ImagesReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "KeypairReady",
    "VolumesReady",
    "UserDataReady",
    "TypesReady",
    "PermissionsReady",
];
/// Annotation on NodeClaims: the hash of what their NodeClass said when they were launched, see [`OutscaleNodeClassSpec::hash`].
pub const HASH: &str = "karpenter.outscale.com/outscalenodeclass-hash";
/// Annotation on NodeClaims: the version of the recipe of [`HASH`].
pub const HASH_VERSION_KEY: &str = "karpenter.outscale.com/outscalenodeclass-hash-version";
/// The recipe of today.
pub const HASH_VERSION: &str = "v1";
/// Annotation on NodeClaims: the hash of the machine configuration without what is the machine's own.
pub const USER_DATA_HASH: &str = "karpenter.outscale.com/user-data-hash";
/// Device of the root volume on Outscale.
pub const ROOT_DEVICE: &str = "/dev/sda1";
/// GiB of a root volume of which nothing is said.
const ROOT_GIB: u32 = 50;

/// How machines on Outscale are made.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.outscale.com",
    version = "v1alpha1",
    kind = "OutscaleNodeClass",
    plural = "outscalenodeclasses",
    singular = "outscalenodeclass",
    shortname = "osc",
    shortname = "oscnc",
    category = "karpenter",
    status = "OutscaleNodeClassStatus",
    derive = "PartialEq",
    doc = "How machines on 3DS OUTSCALE are made, with Talos Linux on them.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::rule("give either imageId or imageSelectorTerms", "has(self.imageId) != has(self.imageSelectorTerms)"),
    schema::rule("give either subnetIds or subnetSelectorTerms", "has(self.subnetIds) != has(self.subnetSelectorTerms)"),
    schema::rule(
        "give either securityGroupIds or securityGroupSelectorTerms",
        "has(self.securityGroupIds) != has(self.securityGroupSelectorTerms)",
    ),
]))]
pub struct OutscaleNodeClassSpec {
    /// The image (OMI) of the machines. For images that are renewed, use `imageSelectorTerms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^ami-[0-9a-f]{8}$"))]
    pub image_id: Option<String>,
    /// Which images may be used; terms are alternatives. Of all that match, the newest is taken; machines with another one have drifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30), extend("x-kubernetes-validations" = [
        schema::rule("every term needs id, name or tags", "self.all(x, has(x.id) || has(x.name) || has(x.tags))"),
        schema::rule("a term with id takes nothing else", "!self.exists(x, has(x.id) && (has(x.name) || has(x.tags) || has(x.owner)))"),
    ]))]
    pub image_selector_terms: Option<Vec<ImageTerm>>,
    /// The subnets of the machines: their subregions are the zones that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30), inner(regex(pattern = "^subnet-[0-9a-f]{8}$")))]
    pub subnet_ids: Option<Vec<String>>,
    /// Which subnets may be used; terms are alternatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30), extend("x-kubernetes-validations" = [
        schema::rule("every term needs either id or tags", "self.all(x, has(x.id) != has(x.tags))"),
    ]))]
    pub subnet_selector_terms: Option<Vec<SubnetTerm>>,
    /// The security groups of the machines, all of the subnets' Net.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30), inner(regex(pattern = "^sg-[0-9a-f]{8}$")))]
    pub security_group_ids: Option<Vec<String>>,
    /// Which security groups the machines get: all that match any of these terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30), extend("x-kubernetes-validations" = [
        schema::rule("every term needs id, name or tags", "self.all(x, has(x.id) || has(x.name) || has(x.tags))"),
        schema::rule("a term with id takes nothing else", "!self.exists(x, has(x.id) && (has(x.name) || has(x.tags)))"),
    ]))]
    pub security_group_selector_terms: Option<Vec<SecurityGroupTerm>>,
    /// Which VM types may be used. Default: custom types of the generations 6 and 7 with high performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_types: Option<VmTypes>,
    /// The volumes that a machine begins with. Default: a root volume of 50 GiB, gp2, that goes with the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-validations" = [
        schema::rule("every deviceName is given once", "self.all(x, self.exists_one(y, y.deviceName == x.deviceName))"),
    ]))]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// Name of a keypair. Talos has no use for it; other systems on the same account may demand one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub keypair_name: Option<String>,
    /// Tags of the machines, besides those that joiner and the cloud controller manager need.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags_schema")]
    pub tags: BTreeMap<String, String>,
    /// Where machines are put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What the cloud controller manager takes the nodes for: tag `OscK8sRole/<role>`. Default: worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["worker", "service", "service.internal"]))]
    pub node_role: Option<String>,
    /// What the kubelet keeps and takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Kubelet>,
    /// The machine configuration of Talos.
    pub talos: Talos,
}

/// One way to select images. Everything in it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageTerm {
    /// The image itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^ami-[0-9a-f]{8}$"))]
    pub id: Option<String>,
    /// Name of the image; `*` stands for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Account ID or alias of the image's owner. Default: the account that joiner's keys are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub owner: Option<String>,
    /// Tags of the image; a value of `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_schema")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// One way to select subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubnetTerm {
    /// The subnet itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^subnet-[0-9a-f]{8}$"))]
    pub id: Option<String>,
    /// Tags of the subnet; a value of `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_schema")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// One way to select security groups. Everything in it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroupTerm {
    /// The security group itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^sg-[0-9a-f]{8}$"))]
    pub id: Option<String>,
    /// Name of the security group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Tags of the security group; a value of `*` stands for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_schema")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// Which VM types may be used. NodePools choose among them by requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VmTypes {
    /// Families: `tinav6`, `tinav7`, ... (all usual sizes of custom types), or of the fixed types (`c5`, `m5`, `p3`, ...). Default:
    /// `tinav6` and `tinav7`, unless `names` says what is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(max = 63), regex(pattern = "^[a-zA-Z0-9-]+$")))]
    pub families: Option<Vec<String>>,
    /// Types by name, besides those of the families: sizes that are not usual, such as `tinav7.c6r10p1`, and types with GPUs, which families do not
    /// bring along, as their machines allocate flexible GPUs to the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), inner(length(max = 63), regex(pattern = "^[a-zA-Z0-9.-]+$")))]
    pub names: Option<Vec<String>>,
    /// Performance of custom types that come from `families`. Default: high.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 3), inner(regex(pattern = "^(highest|high|medium)$")))]
    pub performances: Option<Vec<String>>,
}

/// A volume that a machine begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// Device: `/dev/sda1` is the root, `/dev/xvdb` and the following are further volumes.
    #[schemars(length(max = 32), regex(pattern = "^/dev/(sda1|sd[b-z]|xvd[b-z])$"))]
    pub device_name: String,
    /// The volume.
    #[serde(default)]
    pub bsu: Bsu,
}

/// A volume of Outscale's block storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::rule("iops goes with volumeType io1, and io1 needs it", "(has(self.volumeType) && self.volumeType == 'io1') == has(self.iops)"),
]))]
pub struct Bsu {
    /// Size in GiB. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4, max = 14901), extend("format" = "int32"))]
    pub volume_size: Option<u32>,
    /// Kind of volume. Default: gp2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["standard", "gp2", "io1"]))]
    pub volume_type: Option<String>,
    /// I/O operations a second of a volume of type io1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 13000), extend("format" = "int32"))]
    pub iops: Option<u32>,
    /// Snapshot to fill the volume from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^snap-[0-9a-f]{8}$"))]
    pub snapshot_id: Option<String>,
    /// Whether the volume goes with the machine. Default: true; what is left behind is paid for until somebody deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_vm_deletion: Option<bool>,
}

/// Where machines are put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Shared or own hardware. Default: default (shared).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["default", "dedicated"]))]
    pub tenancy: Option<String>,
    /// Machines with the same value are put on different servers, as far as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub repulse_server: Option<String>,
    /// Machines with the same value are put on different clusters of servers, as far as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub repulse_cluster: Option<String>,
    /// Machines with the same value are put on one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub attract_server: Option<String>,
    /// Machines with the same value are put on one cluster of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub attract_cluster: Option<String>,
}

/// What the kubelet keeps for the system and how many pods it takes. Written into the machine configuration, and taken off what pods may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kubelet {
    /// Most pods on a node. Default: 110.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("format" = "int32"))]
    pub max_pods: Option<u32>,
    /// Kept for the system. Default: as Talos keeps it (50m CPU, 384Mi memory, 256Mi ephemeral storage).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "reserved_schema")]
    pub system_reserved: Option<BTreeMap<String, Quantity>>,
    /// Kept for Kubernetes' own processes. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "reserved_schema")]
    pub kube_reserved: Option<BTreeMap<String, Quantity>>,
}

/// The machine configuration of Talos, and what is different from node to node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Talos {
    /// The Secret with the configuration of a worker, in the namespace that joiner runs in.
    pub secret_ref: SecretRef,
    /// YAML or JSON merge patches (RFC 7386) of the configuration, applied in this order. One with a `kind` goes into the document of that kind and
    /// name, or becomes a further one (`$patch: delete` takes it out); one without is for the machine's own. No secrets belong here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 65536)))]
    pub patches: Vec<String>,
    /// URL of the cluster's API server, in place of the one in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = "^https://[^/]+/?$"))]
    pub cluster_endpoint: Option<String>,
    /// What nodes are called: `PrivateIp` as Outscale names machines (`ip-10-0-1-88`), `NodeClaim` like their NodeClaim. Default: PrivateIp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["PrivateIp", "NodeClaim"]))]
    pub node_name: Option<String>,
}

/// An entry of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it. Default: worker.yaml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// What an OutscaleNodeClass has come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutscaleNodeClassStatus {
    /// The images that match, newest first; machines are launched with the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ResolvedImage>,
    /// The subnets that match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<ResolvedSubnet>,
    /// The security groups that match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<ResolvedSecurityGroup>,
    /// Hash of the machine configuration without what is a machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_hash: Option<String>,
    /// What holds: `ImagesReady`, `SubnetsReady`, `SecurityGroupsReady`, `KeypairReady`, `VolumesReady`, `UserDataReady`,
    /// `TypesReady`, `PermissionsReady`, `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// An image that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedImage {
    /// Its ID.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its architecture in Kubernetes' words: `amd64`.
    #[serde(default)]
    pub architecture: String,
}

/// A subnet that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedSubnet {
    /// Its ID.
    pub id: String,
    /// Its subregion.
    #[serde(default)]
    pub zone: String,
    /// Its Net.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub net_id: String,
    /// Addresses that were free at the last look.
    #[serde(default)]
    pub available_ips: i64,
}

/// A security group that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedSecurityGroup {
    /// Its ID.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

impl OutscaleNodeClassSpec {
    /// Which images may be used, whichever way it is written.
    pub fn image_terms(&self) -> Vec<ImageTerm> {
        let by_id = self.image_id.iter().map(|id| ImageTerm { id: Some(id.clone()), ..ImageTerm::default() });
        by_id.chain(self.image_selector_terms.iter().flatten().cloned()).collect()
    }

    /// Which subnets may be used, whichever way it is written.
    pub fn subnet_terms(&self) -> Vec<SubnetTerm> {
        let ids = self.subnet_ids.iter().flatten();
        let by_id = ids.map(|id| SubnetTerm { id: Some(id.clone()), tags: None });
        by_id.chain(self.subnet_selector_terms.iter().flatten().cloned()).collect()
    }

    /// Which security groups machines get, whichever way it is written.
    pub fn security_group_terms(&self) -> Vec<SecurityGroupTerm> {
        let ids = self.security_group_ids.iter().flatten();
        let by_id = ids.map(|id| SecurityGroupTerm { id: Some(id.clone()), ..SecurityGroupTerm::default() });
        by_id.chain(self.security_group_selector_terms.iter().flatten().cloned()).collect()
    }

    /// The volumes that a machine begins with: there is always a root.
    pub fn volumes(&self) -> Vec<BlockDeviceMapping> {
        let mut all = self.block_device_mappings.clone().unwrap_or_default();
        if all.iter().all(|volume| volume.device_name != ROOT_DEVICE) {
            all.insert(0, BlockDeviceMapping { device_name: ROOT_DEVICE.to_owned(), bsu: Bsu::default() });
        }
        all
    }

    /// GiB of the root volume.
    pub fn root_gib(&self) -> u32 {
        let volumes = self.volumes();
        volumes.iter().find(|volume| volume.device_name == ROOT_DEVICE).map_or(ROOT_GIB, |root| root.bsu.size())
    }

    /// What the cloud controller manager takes the nodes for.
    pub fn role(&self) -> &str {
        self.node_role.as_deref().unwrap_or("worker")
    }

    /// Hash of what machines cannot take over while they run: everything but selectors (what they find is compared itself) and the machine
    /// configuration (which has a hash of its own). 16 hexadecimal digits.
    pub fn hash(&self) -> String {
        let fixed = Self {
            image_id: None,
            image_selector_terms: None,
            subnet_ids: None,
            subnet_selector_terms: None,
            security_group_ids: None,
            security_group_selector_terms: None,
            // What may be bought from now on says nothing of what was bought.
            vm_types: None,
            talos: Talos::default(),
            ..self.clone()
        };
        let text = serde_json::to_string(&fixed).expect("all keys are texts");
        fnv(text.as_bytes())
    }
}

/// FNV-1a as 16 hexadecimal digits: it must not change with the compiler or the platform.
pub fn fnv(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, step))
}

impl Bsu {
    /// Size in GiB.
    pub fn size(&self) -> u32 {
        self.volume_size.unwrap_or(ROOT_GIB)
    }

    /// Kind of volume.
    pub fn kind(&self) -> &str {
        self.volume_type.as_deref().unwrap_or("gp2")
    }
}

impl SecretRef {
    /// Key in the Secret.
    pub fn key(&self) -> &str {
        self.key.as_deref().unwrap_or("worker.yaml")
    }
}

impl Placement {
    /// Whether it asks for more than any server of the subregion, so that a shortage may be its own.
    pub fn is_particular(&self) -> bool {
        let groups = [&self.repulse_server, &self.repulse_cluster, &self.attract_server, &self.attract_cluster];
        self.tenancy.as_deref().is_some_and(|tenancy| tenancy != "default")
            || groups.iter().any(|group| group.is_some())
    }
}

impl Talos {
    /// Whether nodes are called like their NodeClaims.
    pub fn named_by_claim(&self) -> bool {
        self.node_name.as_deref() == Some("NodeClaim")
    }
}

/// Tags that users give to machines. Keys that joiner and the cloud controller manager write are not theirs to give.
fn tags_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 40,
        "additionalProperties": { "type": "string", "maxLength": 255 },
        "x-kubernetes-validations": [
            schema::rule("a tag's key has 1 to 255 characters", "self.all(x, size(x) > 0 && size(x) <= 255)"),
            schema::rule(
                "tags of the domains karpenter.sh and karpenter.outscale.com, OscK8s... and Name are joiner's own; choose other keys",
                "self.all(x, !x.startsWith('karpenter.sh/') && !x.startsWith('karpenter.outscale.com/') && !x.startsWith('OscK8s') && x != 'Name')",
            ),
        ],
    })
}

/// Tags to select by.
fn selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 20,
        "additionalProperties": { "type": "string", "maxLength": 255 },
        "x-kubernetes-validations": [schema::rule("a tag's key is not empty", "self.all(x, size(x) > 0)")],
    })
}

/// Resources that a kubelet can keep.
fn reserved_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 4,
        "additionalProperties": { "x-kubernetes-int-or-string": true, "pattern": schema::QUANTITY, "maxLength": 32 },
        "x-kubernetes-validations": [schema::rule(
            "cpu, memory, ephemeral-storage and pid can be kept",
            "self.all(x, x in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",
        )],
    })
}
