//! What we decide: plain functions on plain values.
//!
//! Law: nothing in here is async, reads a clock, talks to anybody, logs, draws a random number or depends on hash order. An
//! immutable [`facts::Snapshot`] goes in; a complete plan, or the next step of a machine's life, comes out, with a reason for
//! every refusal.

pub mod audit;
pub mod backoff;
pub mod budgets;
pub mod buffers;
pub mod conditions;
pub mod consent;
pub mod eviction;
pub mod health;
pub mod ids;
pub mod labels;
pub mod leaving;
pub mod nomination;
pub mod orphan;
pub mod overlays;
pub mod pools;
pub mod promises;
pub mod quantity;
pub mod record;
pub mod repair;
pub mod resources;
pub mod restarts;
pub mod statics;
pub mod steady;
pub mod time;
pub mod writes;

pub mod requirements;

pub mod facts;

pub mod scheduling;

pub mod lifecycle;
pub mod vain;
