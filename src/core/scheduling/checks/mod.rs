//! Is a plan right? An independent look that knows nothing of how the plan came about: plain requirements, plain sums, plain counts.
//!
//! It runs on every plan before anything is bought, so its cost is about linear in pods, NodeClaims and listed types.

mod alone;
mod claims;
mod hosts;
mod meet;
mod reserved;
mod topology;
mod variety;
mod verify;
mod violation;
mod volumes;

pub use verify::{check, crowded, out_of_turn};
pub use violation::Violation;
