//! KWOK: nodes without machines, for tests and rehearsals. A machine is the Node object itself.
//!
//! Its cloud API is the cluster, so this room has a client of its own (the exception to the wall around `clouds`). What a token is
//! worth: a Node's name is made of its NodeClaim's name and UID, so that creating twice makes one Node, and the UID is its label
//! [`NODECLAIM_UID`], by which it is found. A Node that is being deleted counts as gone.
//!
//! A machine takes `nodeRegistrationDelay` to boot. The task that waits for it is the machine, not a call: it belongs to the [`Kwok`] that
//! launched it and ends with it, and the machine is seen by every other call meanwhile.

mod boot;
mod cloud;
mod machine;
mod node;

pub use cloud::{CLASS_GROUP, CLASS_KIND, Kwok};
pub use node::{NODECLAIM_NAME, NODECLAIM_UID};

#[cfg(test)]
mod tests;
