//! Dynamic resources, as much of them as joiner reads.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::wire::metadata;

/// A ResourceSlice.
#[derive(Clone, Debug, Deserialize)]
pub struct ResourceSlice {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is published, and where.
    pub spec: ResourceSliceSpec,
}

/// `spec` of a ResourceSlice.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// Who publishes it.
    pub driver: String,
    /// The node that has the devices, if it is one.
    pub node_name: Option<String>,
    /// What it is a part of.
    pub pool: ResourcePool,
}

/// `pool` of a ResourceSlice.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePool {
    /// Its name.
    pub name: String,
    /// How often it was published anew.
    #[serde(default)]
    pub generation: i64,
    /// Of how many slices it consists.
    pub resource_slice_count: i64,
}
