//! NodeClaim: one node asked for, from the wish to the machine's end.
#![expect(
    clippy::duplicated_attributes,
    reason = "the lint takes the columns of one resource for repeats of each other"
)]

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::common::{Condition, NodeClassRef, Requirement, ResourceList, Taint};
use crate::api::duration::{self, DurationError};
use crate::api::nodepool::default_expire_after;
use crate::api::schema;

/// What a NodeClaim wants. Never changes once written.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    doc = "One node that was asked for: what it must be, and how far it has come.",
    printcolumn(name = "Type", type_ = "string", json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"),
    printcolumn(name = "Capacity", type_ = "string", json_path = r".metadata.labels.karpenter\.sh/capacity-type"),
    printcolumn(name = "Zone", type_ = "string", json_path = r".metadata.labels.topology\.kubernetes\.io/zone"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.nodeClassRef.name", priority = 1),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::rule("the spec of a NodeClaim cannot change; delete it to have another made", "self == oldSelf")
]))]
pub struct NodeClaimSpec {
    /// Taints of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// Taints that something else is expected to remove soon after start; the node counts as initialized once
    /// they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// What the labels of the node must satisfy. May be empty.
    #[schemars(schema_with = "schema::nodeclaim_requirements")]
    pub requirements: Vec<Requirement>,
    /// What the node must offer.
    #[serde(default, skip_serializing_if = "ResourceRequirements::is_absent")]
    #[schemars(extend("default" = null))]
    pub resources: ResourceRequirements,
    /// The NodeClass that says how the machine is made.
    pub node_class_ref: NodeClassRef,
    /// How long the node, once being deleted, may wait for its pods before they are deleted by force, against
    /// their budgets and do-not-disrupt annotations. Without one, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub termination_grace_period: Option<String>,
    /// How long the node may live, from the creation of the NodeClaim, before it is replaced; or `Never`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = schema::NILLABLE_DURATION))]
    pub expire_after: String,
}

impl Default for NodeClaimSpec {
    fn default() -> Self {
        Self {
            taints: Vec::new(),
            startup_taints: Vec::new(),
            requirements: Vec::new(),
            resources: ResourceRequirements::default(),
            node_class_ref: NodeClassRef::default(),
            termination_grace_period: None,
            expire_after: default_expire_after(),
        }
    }
}

impl NodeClaimSpec {
    /// [`Self::termination_grace_period`] as a duration; `None` when there is none.
    pub fn termination_grace_period(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_optional("spec.terminationGracePeriod", self.termination_grace_period.as_deref())
    }

    /// [`Self::expire_after`] as a duration; `None` for `Never`.
    pub fn expire_after(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_nillable("spec.expireAfter", &self.expire_after)
    }
}

/// What a node must offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequirements {
    /// The least of each resource: what the planned pods and the daemons ask for together.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub requests: ResourceList,
}

impl ResourceRequirements {
    /// Whether nothing is asked for.
    pub fn is_absent(&self) -> bool {
        self.requests.is_empty()
    }
}

/// How far a NodeClaim has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The Node, once it has registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The machine, once it was launched.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// The image the machine was started from.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "imageID")]
    pub image_id: Option<String>,
    /// What the machine holds, by the cloud's estimate.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub capacity: ResourceList,
    /// What pods may use of it, by the cloud's estimate.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub allocatable: ResourceList,
    /// When a pod last came to the node or left it; consolidation waits from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub last_pod_event_time: Option<Time>,
    /// What holds of the NodeClaim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::nodeclaim_conditions")]
    pub conditions: Vec<Condition>,
}
