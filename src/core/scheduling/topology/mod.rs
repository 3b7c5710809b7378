//! Topology: which pods are counted where, and which domains a pod may therefore go to.
//!
//! Law: a count is exact. A planned node whose zone is open is pinned to one zone the moment that a zonal constraint counts a pod on
//! it, so that no pod is ever "somewhere".

mod counters;
mod select;

pub(super) use counters::{CounterId, Counters, Filter, FilterId, Topo, Whom};
pub(super) use select::{Target, Targets};
