//! A stand-in for the 3DS OUTSCALE API: stateful, as strict as the real one, and bad-tempered when told to be.
//!
//! It verifies signatures, refuses what it does not know, boots and ends VMs as time passes, and on demand throttles, runs out of machines,
//! lists late and loses answers whose effect stays. [`Fake`] is the server itself and a [`Transport`](crate::clouds::outscale::oapi::Transport)
//! of the client at once, so that a day of it passes in simulated time; [`serve()`] puts it on a port.
//!
//! Where nobody outside knows what the real API does, the places say so; the error codes are those of recorded traffic and of Outscale's
//! public tests.

mod account;
mod addresses;
mod conduct;
mod dispatch;
mod fake;
mod filters;
mod gate;
mod gpus;
mod lists;
mod load;
mod machines;
mod refusal;
mod section;
mod serve;
mod sizes;
mod tags;
mod vms;
mod world;

pub use account::{Account, Quotas};
pub use conduct::{Conduct, Scarce};
pub use dispatch::signed_actions;
pub use fake::{Fake, Reply};
pub use load::{Fault, Load};
pub use serve::serve;

#[cfg(test)]
mod tests;
