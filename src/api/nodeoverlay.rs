//! NodeOverlay: corrections to the prices and capacities of instance types. Alpha.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::common::{Condition, Requirement, ResourceList};
use crate::api::schema;

/// What a NodeOverlay corrects, and where.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    doc = "A correction to the price or the capacity of the instance types it selects.",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::rule("give 'price' or 'priceAdjustment', not both", "!has(self.price) || !has(self.priceAdjustment)")
]))]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings are meant.
    #[schemars(schema_with = "schema::nodeoverlay_requirements")]
    pub requirements: Vec<Requirement>,
    /// The price per hour, such as `0.42`, instead of the cloud's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// A change to the cloud's price: an amount per hour such as `+0.05`, or a share such as `-10%`. The sign is
    /// required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"))]
    pub price_adjustment: Option<String>,
    /// Resources that the nodes have beyond what the cloud says; not cpu, memory, ephemeral-storage or pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [schema::rule(
        "capacity cannot name cpu, memory, ephemeral-storage or pods, which the cloud knows",
        "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))"
    )]))]
    pub capacity: Option<ResourceList>,
    /// Which overlay wins where several select the same: the higher weight. Without one, 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// What was found of a NodeOverlay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// What holds of the NodeOverlay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
