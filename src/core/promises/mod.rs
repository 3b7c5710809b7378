//! What joiner promises, and how it sees by itself that it has not kept its word.
//!
//! The simulator watches every promise with the truth of its world in hand. What can be judged from what a running joiner holds anyway is judged
//! here, for both: each judgement goes by facts and not by how the decision came about.

mod deadline;
mod invariant;
mod judge;
mod lease;
mod vigil;

pub use deadline::{granted, is_deadline_near};
pub use invariant::{Broken, Invariant, SABOTAGE};
pub use judge::{is_silent, judge_deletion, judge_node_deletion, judge_order};
pub use lease::LEASE_TRUSTED;
pub use vigil::{Looked, ORPHANED_AT_MOST, Released, Vigil};
