//! The client of Outscale's API and the stand-in for that API, both held to the published specification and to recorded traffic.
//!
//! Neither is in this repository: tests that need them skip aloud where they are not. What becomes of joiner over the stand-in, actors and all, needs
//! neither.

#![expect(clippy::unwrap_used, clippy::unwrap_in_result, clippy::panic, reason = "helpers of tests fail loudly")]

mod conformance;
mod days;
mod gpus;
mod joiner;
mod judge;
mod lives;
mod recordings;
mod served;
#[path = "../common/shared.rs"]
mod shared;
mod spec;
mod stage;
mod world;
