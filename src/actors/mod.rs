//! Who acts, and when: the supervision tree.
//!
//! ```text
//! supervisor ─┬─ leader       holds the lease, or nobody writes
//!             ├─ state        folds facts, publishes snapshots, nudges whom they concern
//!             ├─ catalog      instance types, prices, what is sold out
//!             ├─ claims ──────── claim × n      each owns one NodeClaim's machine, from launch to gone
//!             ├─ evictor      asks pods to leave, honestly
//!             ├─ nominator    nominates planned pods, and lets their nodes open
//!             ├─ batcher      gathers pending pods
//!             ├─ provisioner  solves, checks, creates NodeClaims
//!             ├─ pools        status of NodePools, NodeOverlays and CapacityBuffers
//!             ├─ statics      gives static NodePools their number of NodeClaims
//!             ├─ auditor      compares machines, NodeClaims and Nodes
//!             └─ classes      has the cloud work out what NodeClasses come to
//! ```
//!
//! Law: whoever acts does not decide. An actor turns facts into snapshots, snapshots into plans (in `core`), plans into operations. It
//! may die at any message; its successor rebuilds what it needs from the snapshot, the API server and the cloud.

pub mod protocol;
pub mod runtime;

mod auditor;
mod batcher;
mod boards;
mod catalog;
mod claim;
mod claims;
mod classes;
mod decisions;
mod evictor;
mod leader;
mod nominator;
mod pools;
mod provisioner;
mod settings;
mod state;
mod statics;
mod tree;
mod witness;

pub use boards::Boards;
pub use decisions::{Decision, Decisions, Question};
pub use settings::{Features, NodeRepair, Nominate, Protections, Settings};
pub use tree::{Joiner, Parts};
