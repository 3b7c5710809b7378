//! Behaviour of the solver, one file per theme.

mod build;

mod basics;
mod laws;
mod price;
mod topology;
mod volumes;
mod zones;
