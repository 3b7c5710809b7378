//! Behaviour of the solver, one file per theme.

pub(in crate::core::scheduling) mod build;

mod basics;
mod defaults;
mod kept;
mod laws;
mod min_values;
mod price;
mod reserved;
mod topology;
mod volumes;
mod zones;
