//! joiner in a real cluster, end to end: a process of its own, with the rights that the chart gives by default and nothing more, on KWOK nodes.
//!
//! One control plane serves all scenarios, one after another: there is one lease. Each begins with an empty cluster.

mod common;

#[path = "kwok/burst.rs"]
mod burst;
#[path = "kwok/claims.rs"]
mod claims;
#[path = "kwok/disruption.rs"]
mod disruption;
#[path = "kwok/edits.rs"]
mod edits;
#[path = "kwok/ending.rs"]
mod ending;
#[path = "kwok/features.rs"]
mod features;
#[path = "kwok/ground.rs"]
mod ground;
#[path = "kwok/mishaps.rs"]
mod mishaps;
#[path = "kwok/outages.rs"]
mod outages;
#[path = "kwok/placement.rs"]
mod placement;
#[path = "kwok/pools.rs"]
mod pools;
#[path = "kwok/stage.rs"]
mod stage;
#[path = "kwok/volumes.rs"]
mod volumes;
