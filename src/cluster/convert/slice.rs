//! ResourceSlices.

use serde_json::Value;

use crate::core::facts::DeviceSlice;

use super::problems::{Unreadable, strict};
use super::{common, wire_devices};

/// Reads a ResourceSlice from a manifest or an answer of the API server.
pub fn read_slice(value: &Value) -> Result<DeviceSlice, Unreadable> {
    strict::<wire_devices::ResourceSlice>("ResourceSlice", value).and_then(|wire| slice(&wire))
}

/// Folds a ResourceSlice into a fact.
pub fn slice(wire: &wire_devices::ResourceSlice) -> Result<DeviceSlice, Unreadable> {
    let spec = &wire.spec;
    let mut owners = wire.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == "Node").map(|owner| &owner.name);
    let node = spec.node_name.as_ref().filter(|name| !name.is_empty()).or(owner);
    Ok(DeviceSlice {
        name: common::name("ResourceSlice", &wire.metadata)?,
        node: node.map(|name| name.as_str().into()),
        driver: spec.driver.as_str().into(),
        pool: spec.pool.name.as_str().into(),
        generation: spec.pool.generation,
        of: spec.pool.resource_slice_count,
    })
}
