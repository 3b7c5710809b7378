//! 3DS OUTSCALE: machines by its API (OAPI), with Talos Linux on them.
//!
//! What a token is worth: a machine's client token is its NodeClaim's UID, so that a launch whose answer was lost is found and not repeated. The
//! marks ([`marks`]) are tags. The API takes none in the call that makes a machine, so they are written twice: into the section of the user data
//! that Outscale reads itself, and with a second call, which also knows the node's name. A launch is done when both are; a machine that cannot
//! be marked is taken down again. What was lost of the marks since is written again (`mend`), and a machine that never got any is found by its
//! user data.
//!
//! What NodeClasses come to is worked out by [`Outscale`] when the actor `classes` asks, stands in their status, and is taken from there.

mod absence;
mod birth;
mod catalogue;
mod class;
mod cloud;
mod deletion;
mod documents;
mod drift;
mod fit;
mod found;
mod gpus;
mod launch;
mod learnt;
mod listing;
mod machine;
mod maintenance;
mod market;
mod marking;
pub mod marks;
mod mend;
pub mod oapi;
mod permissions;
mod prices;
mod questions;
mod quotas;
mod resolve;
mod secrets;
mod talos;
mod types;
mod unmarkable;
mod vm_type;
mod volumes;
mod worker;
mod yaml;

pub use catalogue::{
    INSTANCE_CPU, INSTANCE_FAMILY, INSTANCE_GENERATION, INSTANCE_GPUS, INSTANCE_MEMORY, INSTANCE_PERFORMANCE,
    LABEL_KEYS,
};
pub use cloud::{CLASS_GROUP, CLASS_KIND, CLASS_PLURAL, CLASS_VERSION, Outscale, Settings};
pub use found::{NOT_ASKED, UNAUTHORIZED};
pub use prices::{PriceError, Prices};
pub use secrets::{GivenSecrets, KubeSecrets, NoSecrets, SecretError, Secrets};
pub use vm_type::{Performance, VmType};

#[cfg(test)]
mod tests;
