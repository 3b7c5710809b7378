//! What every actor stands on: the adapter to ractor, addresses, detached operations, supervision, observation and the clock.
//!
//! An actor here is a plain value with a plain function ([`Behaviour::handle`]): it awaits nothing, so it can be read, tested and killed at
//! any line. What takes time is an operation that runs beside it and answers with a message.

mod behaviour;
mod clock;
mod house;
mod instance;
mod kind;
mod meter;
mod observation;
mod operations;
mod promises;
mod saboteur;
mod shell;
mod slot;
mod supervisor;

pub use behaviour::{Behaviour, Cx, Ended, Mailbox, Timer};
pub use clock::Clock;
pub use house::House;
pub use instance::Message;
pub use kind::Kind;
pub use meter::Meter;
pub use observation::{Observation, Observations, Timeline, View};
pub use operations::{OpId, Operations, Outcome, Permits, Refusal};
pub use promises::Promises;
pub use saboteur::Saboteur;
pub use shell::Envelope;
pub use slot::Slot;
pub use supervisor::{Post, RootMsg, Supervisor};
