//! Behaviour of the solver, one file per theme.

pub(in crate::core::scheduling) mod build;

mod basics;
mod checklist;
mod kept;
mod laws;
mod likeness;
mod price;
mod topology;
mod volumes;
mod zones;
