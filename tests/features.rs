//! Optional features in whole worlds: static NodePools, NodeOverlays and CapacityBuffers, each from the object that a user writes to the
//! nodes that come of it.

#[path = "common/rehearsals.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod rehearsals;

#[path = "features/statics.rs"]
mod statics;
