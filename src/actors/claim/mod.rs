//! `claim`: owns one NodeClaim's machine, from launch to confirmed gone.
//!
//! It decides nothing: it looks (at the snapshot, and at what the cloud last told it), asks [`crate::core::lifecycle::step`] what is next, and
//! does that one thing. What it remembers is worth a question to the cloud, no more.

mod life;

mod acts;
mod outcomes;
mod reads;
mod tell;
mod warnings;

pub(super) use life::{Claim, ClaimArgs};
