//! What must never happen, whatever goes wrong, and the watch that is kept on it.
//!
//! [`Invariants`] sees every change of the store and of the cloud, and is asked before each request of joiner that could do harm. It knows
//! the truth of the world and nothing of joiner's actors: what those say of themselves is handed in by whoever runs them.

mod journal;
mod violation;

mod claims;
mod deadlines;
mod drains;
mod ends;
mod lease;
mod nodes;
mod pods;
mod possible;
mod reboots;
mod requests;
mod watch;

pub use crate::core::promises::Invariant;
pub use ends::Memory;
pub use journal::{Entry, Journal, time_of_day};
pub use violation::Violation;
pub use watch::Invariants;

#[cfg(test)]
mod stage;
