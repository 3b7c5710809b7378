//! Scheduling: which pods go where, and which NodeClaims are needed for them.
//!
//! [`solve()`] reads a [`Problem`] and returns a [`Plan`]. In between, labels become small numbers (`interner`), instance types become bits
//! and thresholds (`shelf`), what candidates may still become is a shared profile (`algebra`), pods of one shape are one class
//! (`classes`), topology counts are kept, not recounted (`topology`), and candidates are found by the room that they have (`rooms`).
//!
//! What is compiled outlives the question in a [`Ground`], so that the next question costs what it changes.

mod masks;

mod interner;

mod reserved;
mod shelf;

mod algebra;

mod tolerance;

mod ports;

mod fault;

mod volumes;

mod attach;

mod topology;

mod domains;
mod layout;
mod mentions;
mod problem;
mod world;

mod pools;

mod daemons;
mod shunned;

mod existing;

mod classes;

mod order;

mod alternatives;
mod company;
mod cursor;
mod draft;
mod draws;
mod founders;
mod place;
mod puzzle;
mod rooms;
mod seats;
mod seniors;

mod choose;
mod fill;

mod least;
mod modest;

mod open;

mod demand;

mod confined;
mod solve;
mod there;

mod anew;
mod ground;
mod heirs;

mod name;

mod finish;

mod between;
mod defaults;
mod explain;
mod obstacles;
mod partners;

mod facts;
mod fields;
mod zones;

mod bound;
mod improve;
mod mingle;
mod turns;

mod checks;
mod plan;
mod reason;
mod sound;
mod words;

pub use anew::solve;
pub use bound::{lower_bound, quick_lower_bound};
pub use checks::{Violation, check, crowded, out_of_turn};
pub use defaults::DefaultSpreads;
pub use fault::VolumeFault;
pub use fields::Datum;
pub use ground::Ground;
pub use improve::improved;
pub use mingle::mingled;
pub use name::{NAME_SUFFIX, Names};
pub use plan::{PlacedOn, Plan, PlannedClaim, Refusal, Settings};
pub use problem::{Exclusions, NOTHING_EXCLUDED, Problem};
pub use reason::{Blame, Lack, Partner, Reason};
pub use sound::sound;
pub use words::amount_text;
pub use zones::effective_zones;

#[cfg(test)]
mod tests;
