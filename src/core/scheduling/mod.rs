//! Scheduling: which pods go where, and which NodeClaims are needed for them.
//!
//! [`solve()`] reads a [`Problem`] and returns a [`Plan`]. In between, labels become small numbers (`interner`), instance types become bits
//! and thresholds (`shelf`), what candidates may still become is a shared profile (`algebra`), pods of one shape are one class
//! (`classes`), and topology counts are kept, not recounted (`topology`).

mod masks;

mod interner;

mod shelf;

mod algebra;

mod tolerance;

mod ports;

mod fault;

mod volumes;

mod attach;

mod topology;

mod problem;
mod world;

mod pools;

mod existing;

mod classes;

mod order;

mod draft;
mod place;

mod choose;

mod demand;

mod solve;

mod name;

mod finish;

mod explain;

mod zones;

mod checks;
mod plan;
mod reason;

pub use checks::{Violation, check};
pub use fault::VolumeFault;
pub use plan::{PlacedOn, Plan, PlannedClaim, Refusal, Settings};
pub use problem::{Exclusions, NOTHING_EXCLUDED, Problem};
pub use reason::Reason;
pub use solve::solve;
pub use zones::effective_zones;

#[cfg(test)]
mod tests;
