//! Services, controllers and PodDisruptionBudgets as they travel, as far as joiner reads them; a further part of [`super::wire`].

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;

use super::wire::metadata;

/// `spec` of a Service or a ReplicationController.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ServiceSpec {
    /// Labels that its pods have.
    pub selector: Option<BTreeMap<String, String>>,
}

/// `spec` of a ReplicaSet or a StatefulSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ControllerSpec {
    /// Which pods it keeps.
    pub selector: Option<LabelSelector>,
}

/// `spec` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisruptionBudgetSpec {
    /// Which pods it protects.
    pub selector: Option<LabelSelector>,
    /// How many must stay.
    pub min_available: Option<IntOrString>,
    /// How many may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// Whether it also protects pods that are not ready.
    pub unhealthy_pod_eviction_policy: Option<String>,
}

macro_rules! groups {
    ($($(#[$doc:meta])* $name:ident $spec:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize)]
        pub struct $name {
            /// Metadata.
            #[serde(default, deserialize_with = "metadata")]
            pub metadata: ObjectMeta,
            /// What is wanted.
            pub spec: Option<$spec>,
        }
    )*};
}

groups! {
    /// A Service.
    Service ServiceSpec;
    /// A ReplicationController.
    ReplicationController ServiceSpec;
    /// A ReplicaSet.
    ReplicaSet ControllerSpec;
    /// A StatefulSet.
    StatefulSet ControllerSpec;
    /// A PodDisruptionBudget.
    PodDisruptionBudget PodDisruptionBudgetSpec;
}
