//! KWOKNodeClass: nodes without machines, for tests and rehearsals.

use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::common::Condition;
use crate::api::duration::{self, DurationError};
use crate::api::schema;

/// A KWOKNodeClass without its metadata and status.
///
/// The spec may be missing altogether, which a generated root object cannot say; so the derive lays this
/// struct flat into the root, and the spec proper is [`Self::spec`].
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    root = "KwokNodeClass",
    no_spec,
    plural = "kwoknodeclasses",
    singular = "kwoknodeclass",
    shortname = "kwoknc",
    shortname = "kwokncs",
    category = "karpenter",
    status = "KwokNodeClassStatus",
    derive = "PartialEq",
    doc = "How nodes without machines are made."
)]
pub struct KwokNodeClassBody {
    /// How the nodes behave.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub spec: KwokNodeClassSpec,
}

/// How nodes without machines behave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassSpec {
    /// How long a node takes to appear after its launch, as a real machine would to start. Without one, no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub node_registration_delay: Option<String>,
}

impl KwokNodeClassSpec {
    /// [`Self::node_registration_delay`] as a duration; zero when there is none.
    pub fn node_registration_delay(&self) -> Result<Duration, DurationError> {
        let delay = duration::parse_optional("spec.nodeRegistrationDelay", self.node_registration_delay.as_deref())?;
        Ok(delay.unwrap_or_default())
    }
}

/// What holds of a KWOKNodeClass. The API server itself writes it Ready, so nobody needs to reconcile it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("default" = json!({ "conditions": [{
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2024-01-01T01:01:01Z",
}] })))]
pub struct KwokNodeClassStatus {
    /// Whether the class can be used: `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::unkeyed_conditions")]
    pub conditions: Vec<Condition>,
}
