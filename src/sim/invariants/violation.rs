//! What it looks like when a promise is broken.

use std::time::Duration;

use crate::core::promises::Invariant;

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// When, from the start.
    pub at: Duration,
    /// Names of the objects concerned.
    pub objects: Vec<String>,
    /// One sentence.
    pub what: String,
}
