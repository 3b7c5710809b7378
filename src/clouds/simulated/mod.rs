//! A cloud without machines: latency, quotas, sold-out zones and lies, all from one stream of chance.
//!
//! It keeps the bargain of [`super::Cloud`] and takes every liberty that the bargain allows: launches take a while, listings lag
//! behind, offerings are sold out although the catalogue has them, answers get lost, kubelets never report. A token is worth what it
//! is in the best of clouds: asked twice, [`Simulated`] answers with the same machine.

mod conduct;
mod machines;
mod script;

mod cloud;

pub use cloud::{LABEL_KEYS, Simulated};
pub use conduct::{Conduct, Hook, SoldOutWindow};
pub use machines::{Change, Quirk, SimMachine};
pub use script::{Call, Refusal};

#[cfg(test)]
mod tests;
