//! Requirements: what a NodePool, a pod or an instance type says of labels, and the algebra on it.
//!
//! [`Requirement`] is a line as somebody wrote it; [`ValueSet`] is what may be said of one key; [`Requirements`] is the map of both.

mod map;
mod set;
mod written;

pub use map::{Incompatible, Requirements};
pub use set::ValueSet;
pub use written::{Operator, Requirement};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod table_tests;
