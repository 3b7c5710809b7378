//! The objects of the simulated API server, and its rules: versions, finalizers, UIDs, garbage collection, budgets.
//!
//! Plain and synchronous: no call waits, so a critical section is as short as the call. Who has to wait, and for how long, is decided
//! by [`super::SimCluster`].

mod objects;

mod claims;
mod nodes;
mod pools;

mod budgets;
mod features;
mod pods;
mod volumes;

pub(in crate::sim) use objects::is_current;
pub use objects::{Store, Written};
pub(in crate::sim) use pods::is_living;
pub use pods::{NewPod, PodRecord};

#[cfg(test)]
mod tests;
