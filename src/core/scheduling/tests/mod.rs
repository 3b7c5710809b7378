//! Behaviour of the solver, one file per theme.

pub(in crate::core::scheduling) mod build;

mod basics;
mod checklist;
mod daemons_elsewhere;
mod defaults;
mod exhaustive;
mod independent;
mod kept;
pub(in crate::core::scheduling) mod laws;
mod likeness;
mod min_values;
mod price;
mod puzzles;
mod reserved;
mod sound;
mod topology;
mod volumes;
mod zones;
