//! joiner gives a Kubernetes cluster the nodes that its pending pods need and looks after each until its machine is gone. It speaks
//! Karpenter's API, so that manifests, dashboards and habits carry over.
//!
//! # Laws
//!
//! 1. [`core`] decides and touches nothing: no async, no clock, no client, no log, no randomness, no dependence on hash order.
//! 2. Whoever acts does not decide. Actors turn facts into snapshots, snapshots into plans, plans into operations. They communicate only
//!    by messages, all of them on one page: [`actors::protocol`].
//! 3. The API server and the cloud hold the truth. Any actor may die at any line and be rebuilt from them.
//! 4. A NodeClaim's actor is born of a NodeClaim that was *seen*, never of the wish to have one: creating and restarting take the same path.
//! 5. Every refusal and every act has a reason that is a value, is kept, and can be asked for.
//! 6. The plan is what happens: a planned pod is nominated to its node before that node opens to the scheduler.
//!
//! # The river
//!
//! ```text
//! pod pending ─► batch ─► solve(snapshot, catalog) ─► check ─► NodeClaims created ─► NodeClaim seen ─► its actor launches the machine
//! ─► Node registered ─► its pods nominated, then the unregistered taint lifted ─► initialized ─► lives
//! ─► deleted (by a user, a deadline, or because the machine is gone) ─► drain ─► machine gone, confirmed ─► finalizer off ─► gone
//! ```
//!
//! # The rooms
//!
//! ```text
//! api/         what users write: the custom resources
//! core/        what we decide: requirements, facts, scheduling, nomination, lifecycle, audit   (pure)
//! actors/      who acts, and when: the supervision tree
//! clouds/      where machines come from: the trait Cloud, and its members
//! cluster/     how we see and touch Kubernetes: the trait Cluster, and the real client
//! admin/       how we are seen: probes, metrics, the actor tree
//! manifests/   what is written in files, as objects
//! plan/        what would be bought: from manifests or a cluster to a plan that people and programs read
//! sim/         a world in a box: an in-memory cluster, kubelets, a scheduler, workloads
//! telemetry/   how we speak: metrics, log lines, events
//! command/     what the subcommands do: wiring, nothing else
//! config/      every flag and variable, documented once
//! licence.rs   whether a write may still be sent: what actors tell the clients of clusters and clouds
//! ```
//!
//! `core`, `api` and `licence` name nobody. `clouds` and `cluster` name these. `actors` name core and the two traits. `admin` reads the actors'
//! protocol and observations. `manifests` name core, api, clouds and
//! cluster; `plan` and `sim` name those. The binary wires. A test reads the sources and holds these walls.
//!
//! A reading path: `core/facts`, [`actors::protocol`], `core/scheduling/solve.rs`, `core/lifecycle/step.rs`, one cloud.

pub mod actors;
pub mod admin;
pub mod api;
pub mod clouds;
pub mod cluster;
pub mod command;
pub mod config;
pub mod core;
pub mod licence;
pub mod manifests;
pub mod plan;
pub mod sim;
pub mod telemetry;

#[cfg(test)]
#[path = "../tests/common/shared.rs"]
mod shared_data;
