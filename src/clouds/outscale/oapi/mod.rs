//! The wire to the 3DS OUTSCALE API: what is said ([`wire`]), who says it ([`Access`]), how it is signed, how often, and what the answers
//! mean ([`Error`]).
//!
//! [`Client::call`] is the whole surface. A call waits for its turn among calls of its own action only, is repeated only where that is
//! harmless, and ends in an answer or in an error that says whether anything can have happened.

mod access;
mod action;
mod client;
mod codes;
mod endpoint;
mod error;
mod limits;
mod pem;
mod profile;
mod proxy;
mod renewal;
mod sign;
mod standing;
mod tls;
mod transport;
pub mod wire;

pub use access::{Access, AccessError, Keys, SecretKey};
#[cfg(test)]
pub(super) use action::ACTIONS;
pub use action::{Action, Effect, Paged};
pub use client::{Client, Options};
pub use codes::Class;
pub use endpoint::Endpoint;
pub use error::Error;
pub use limits::{Limits, Rate};
pub use pem::Pem;
pub use proxy::Proxy;
pub use renewal::Reread;
pub use sign::Dialect;
pub use transport::{Answer, Network, Post, Transport, Undelivered};

#[cfg(test)]
mod tests;
