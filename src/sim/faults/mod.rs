//! What goes wrong in a world, and when: a list drawn from the seed before the first moment is played.
//!
//! A fault waits from its time on for an occasion: the next request, call or object that it can befall. Because the list is there
//! beforehand, a history can be played again with a part of it left out, and that is how the shortest one that still fails is found.
//! [`HostileCluster`] and [`HostileCloud`] stand between joiner and the simulated ones ([`HostileLine`] between the client of a real cloud's API
//! and the stand-in for it); [`Player`] does what happens by itself (machines die, nodes fall silent, users delete things). What befalls joiner
//! itself is handed on as [`Order`]s to whoever runs it.

mod kind;
mod mishaps;
mod plan;

mod cloud;
mod cluster;
mod denials;
mod launches;
mod line;
mod listings;
mod past;
mod stream;

mod day;
mod player;
mod users;

pub use cloud::HostileCloud;
pub use cluster::HostileCluster;
pub use day::{CALM, Day, EMPTYING, END};
pub use kind::Fault;
pub use line::HostileLine;
pub use mishaps::{Mishaps, Order};
pub use plan::{Mishap, Plan, Profile, UnknownProfile};
pub use player::Player;

#[cfg(test)]
mod tests;
