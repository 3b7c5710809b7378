//! `joiner simulate --faults`: days full of trouble, one for each seed, and what must hold in all of them.
//!
//! [`History`] is one day: drawn from a seed, played in virtual time on one thread, the same every time. [`Trial`] plays many of them on all
//! cores; what it finds is told in order of seeds. A history that fails is cut down to the shortest that still does.

mod crew;
mod history;
mod oncall;
mod panics;
mod seeds;
mod shrink;
mod verdict;

pub use history::{History, Told};
pub(in crate::command) use seeds::shorten;
pub use seeds::{Trial, trial};
pub use shrink::{Shortest, shrink};
pub use verdict::{Broken, Verdict};
