//! A world in a box: a cluster in memory, machines, pods and time, so that joiner can be rehearsed and tested without a socket.
//!
//! [`SimCluster`] stands behind the trait [`crate::cluster::Cluster`], [`crate::clouds::simulated::Simulated`] behind
//! [`crate::clouds::Cloud`]; stand-ins play kubelet, kube-scheduler and the workload controllers between them. Everything waits on
//! tokio's clock: in a runtime whose clock is paused a day passes in milliseconds, in any other it passes as days do. Everything random
//! comes from one [`Seed`], nothing depends on the order of a hash map, and so the same seed gives the same world.
//!
//! Not simulated: preemption, eviction by NoExecute taints, attach limits of volumes, CronJobs, and requests of Kubernetes' own components that fail.
//!
//! ```text
//! scenario, trace ──▶ World ──▶ Workloads ──pods──▶ SimCluster ◀──facts, requests──▶ joiner
//!                                                     ▲  ▲  ▲                          │
//!                            Scheduler, Daemons ──────┘  │  └── Ledger ──▶ Outcome     │
//!                            Kubelet, Containers ────────┘                             │
//!                                     ▲                                                ▼
//!                                     └─────────── machines ─────────────────── Simulated
//! ```

mod seed;

mod admission;
mod cluster;
mod matching;
mod store;

mod agenda;
mod attacher;
mod collector;
mod containers;
mod daemons;
mod kubelet;
mod scheduler;

mod workload;

mod edit;
mod verbs;

mod scenario;
mod trace;

mod ledger;
mod world;

pub mod faults;
pub mod invariants;

pub mod outcome;

pub mod figures;

pub mod oapi;

pub mod progress;
pub mod report;
pub mod summary;

use std::sync::Arc;

use jiff::Timestamp;

pub use admission::{Gate, Open, Requests, Verdict};
pub use cluster::{Latency, SimCluster};
pub use containers::Containers;
pub use daemons::Daemons;
pub use edit::Edit;
pub use kubelet::{Kubelet, Pace};
pub use ledger::{Ledger, Reasons};
pub use scenario::{Act, Behaviour, End, Scenario, ScenarioError, Step, read_scenario};
pub use scheduler::{Rhythm, Scheduler};
pub use seed::Seed;
pub use store::{NewPod, PodRecord, Store, Written};
pub use trace::read_openb;
pub use verbs::{Answers, Fate, Feature, Narration, Topic};
pub use workload::Workloads;
pub use world::{World, WorldConfig};

/// The wall clock of a world.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[cfg(test)]
mod props;
