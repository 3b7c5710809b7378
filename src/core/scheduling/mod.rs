//! Scheduling: which pods go where, and which NodeClaims are needed for them.

mod plan;
mod reason;

pub use plan::{PlacedOn, Plan, PlannedClaim, Refusal, Settings};
pub use reason::Reason;
