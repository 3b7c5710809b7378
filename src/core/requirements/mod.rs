//! Requirements: what a NodePool, a pod or an instance type says of labels, and the algebra on it.

mod written;

pub use written::{Operator, Requirement};
