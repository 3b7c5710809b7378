//! NodePool: what nodes may be made, how many, and when they may be taken away.
#![expect(
    clippy::duplicated_attributes,
    reason = "the lint takes the columns of one resource for repeats of each other"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::common::{Condition, NodeClassRef, Requirement, ResourceList, Taint, open_enum};
use crate::api::duration::{self, DurationError};
use crate::api::schema;

/// How long a node lives when nothing is said: 30 days, Karpenter's default.
pub const DEFAULT_EXPIRE_AFTER: &str = "720h";

open_enum! {
    /// Which nodes consolidation may touch.
    ConsolidationPolicy {
        /// Empty nodes only.
        WhenEmpty,
        /// Empty nodes, and nodes whose pods fit elsewhere or on cheaper nodes. The default.
        WhenEmptyOrUnderutilized,
        /// As above, when what is saved outweighs what is disturbed.
        Balanced,
    }
}

open_enum! {
    /// Why a node is taken away; a budget may be for some reasons only.
    DisruptionReason {
        /// Its pods fit elsewhere, or on a cheaper node.
        Underutilized,
        /// It runs no pods worth counting.
        Empty,
        /// It no longer matches its NodePool or NodeClass.
        Drifted,
        /// It is to be repaired by replacement.
        Unhealthy,
    }
}

/// What a NodePool wants.
///
/// A NodePool turns pending pods into NodeClaims made after its template, and keeps the nodes within its limits
/// and its disruption budgets.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    doc = "A kind of node that may be made for pending pods, with limits and rules for taking nodes away.",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::rule(
        "a NodePool stays static (with replicas) or dynamic (without); make another NodePool",
        "has(self.replicas) == has(oldSelf.replicas)"
    ),
    schema::rule(
        "with replicas, limits may name 'nodes' only",
        "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))"
    ),
    schema::rule("with replicas, weight must be left out", "!has(self.replicas) || !has(self.weight)"),
]))]
pub struct NodePoolSpec {
    /// What the NodeClaims of this NodePool look like.
    pub template: NodeClaimTemplate,
    /// When and how fast nodes may be taken away.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// The most this NodePool may hold, by resource; `nodes` counts nodes. With replicas, `nodes` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
    /// Which NodePool is asked first: the higher weight. Without one, 0. Not with replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// How many nodes to hold, whatever the pods; makes the NodePool static. Alpha. Consolidation settings have
    /// no effect then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What the NodeClaims of a NodePool look like; a NodeClaim is often narrower than its template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the NodeClaims, and so of their nodes.
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_absent")]
    #[schemars(extend("default" = null))]
    pub metadata: TemplateMetadata,
    /// What the NodeClaims ask for.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of a template.
///
/// An empty map and none at all are told apart, because the NodePool hash does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels for the NodeClaims and their nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::template_labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations for the NodeClaims and their nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl TemplateMetadata {
    /// Whether nothing was written at all.
    pub fn is_absent(&self) -> bool {
        self.labels.is_none() && self.annotations.is_none()
    }
}

/// What the NodeClaims of a NodePool ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints of the nodes; only pods that tolerate them count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else is expected to remove soon after start. Pods need not tolerate them; the node
    /// counts as initialized once they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the labels of the nodes must satisfy. May be empty.
    #[schemars(schema_with = "schema::nodepool_requirements")]
    pub requirements: Vec<Requirement>,
    /// The NodeClass that says how machines are made. Its group and kind cannot change.
    #[schemars(schema_with = "schema::nodepool_class_ref")]
    pub node_class_ref: NodeClassRef,
    /// How long a node that is being deleted may wait for its pods before they are deleted by force, against
    /// their budgets and do-not-disrupt annotations. Without one, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub termination_grace_period: Option<String>,
    /// How long a node may live before it is replaced, or `Never`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = schema::NILLABLE_DURATION))]
    pub expire_after: String,
}

impl NodeClaimTemplateSpec {
    /// [`Self::termination_grace_period`] as a duration; `None` when there is none.
    pub fn termination_grace_period(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_optional("spec.template.spec.terminationGracePeriod", self.termination_grace_period.as_deref())
    }

    /// [`Self::expire_after`] as a duration; `None` for `Never`.
    pub fn expire_after(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_nillable("spec.template.spec.expireAfter", &self.expire_after)
    }
}

/// When and how fast nodes may be taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have been quiet before consolidation looks at it, or `Never`. No effect with replicas.
    #[serde(default = "default_consolidate_after")]
    #[schemars(regex(pattern = schema::NILLABLE_DURATION))]
    pub consolidate_after: String,
    /// Which nodes consolidation may touch. No effect with replicas.
    #[serde(default = "default_consolidation_policy")]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be on their way out at once; of several active budgets the smallest counts, and an
    /// empty list sets no bound.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50), extend(
        "x-kubernetes-list-type" = "atomic",
        "x-kubernetes-validations" = [schema::rule(
            "a budget has both schedule and duration, or neither",
            "self.all(x, has(x.schedule) == has(x.duration))"
        )]
    ))]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: default_consolidate_after(),
            consolidation_policy: default_consolidation_policy(),
            budgets: default_budgets(),
        }
    }
}

impl Disruption {
    /// [`Self::consolidate_after`] as a duration; `None` for `Never`.
    pub fn consolidate_after(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_nillable("spec.disruption.consolidateAfter", &self.consolidate_after)
    }
}

/// How many nodes of a NodePool may be on their way out at once, perhaps only at some hours or for some reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
// Required and defaulted at once: the API server fills defaults in before it validates.
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// A count such as `5`, or a share of the nodes such as `10%`, rounded up.
    #[serde(default = "default_budget_nodes")]
    #[schemars(regex(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// The reasons this budget is for; without any, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget becomes active, as a cron line in UTC; without one, it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget stays active after each hit of its schedule, in hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<String>,
}

impl Budget {
    /// [`Self::duration`] as a duration; `None` when there is none.
    pub fn duration(&self) -> Result<Option<Duration>, DurationError> {
        duration::parse_optional("spec.disruption.budgets[].duration", self.duration.as_deref())
    }
}

/// What was found of a NodePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What its nodes hold together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceList>,
    /// How many nodes it has.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the NodeClass last seen; a new one makes the health of registrations unknown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What holds of the NodePool; see `conditions.rs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

pub(super) fn default_expire_after() -> String {
    DEFAULT_EXPIRE_AFTER.to_owned()
}

fn default_consolidate_after() -> String {
    "0s".to_owned()
}

fn default_consolidation_policy() -> ConsolidationPolicy {
    ConsolidationPolicy::WhenEmptyOrUnderutilized
}

fn default_budget_nodes() -> String {
    "10%".to_owned()
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget { nodes: default_budget_nodes(), reasons: None, schedule: None, duration: None }]
}
