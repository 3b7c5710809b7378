//! `auditor`: compares machines, NodeClaims and Nodes, reports what does not add up, and removes what is certainly orphaned.

mod drains;
mod life;
mod lost;
mod reaping;
mod record;

pub(super) use life::Auditor;
