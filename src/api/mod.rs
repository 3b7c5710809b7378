//! What users write: the custom resources of Karpenter's API, as typed values with their schemas.
//!
//! Everything here is plain data and pure functions: no client, no async, no clock. The types read what a
//! cluster of today holds (unknown fields are ignored, a status may be absent) and write no nulls. The
//! schemas are held equal to Karpenter 1.15's by `tests/crds.rs`.

pub mod capacitybuffer;
pub mod classes;
pub mod common;
pub mod crds;
pub mod definition;
pub mod duration;
pub mod hash;
pub mod nodeclaim;
pub mod nodeoverlay;
pub mod nodepool;
mod schema;
pub mod validation;

#[cfg(test)]
mod types_tests;
