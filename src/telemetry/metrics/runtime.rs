//! joiner itself: its actors, its calls, its lease, its build.

use std::time::Duration;

use super::Samples;
use super::families::{self as f, Family};
use super::labels::{ApiVerb, CloudCall, CloudFailure, ObjectKind, OrphanKind};
use super::registry::{count, set, start, took};
use crate::telemetry::conditions::Transition;

/// Figures of all live actors of a kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ActorFigures {
    /// How many are alive.
    pub alive: usize,
    /// Messages handled.
    pub handled: u64,
    /// Messages that had nobody to go to.
    pub dropped: u64,
    /// Time spent in handlers.
    pub busy: Duration,
    /// Messages waiting, in all mailboxes together.
    pub waiting: u64,
    /// Messages waiting in the fullest mailbox.
    pub fullest: u64,
    /// Instances that failed and were replaced.
    pub restarts: u64,
}

/// What was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BuildInfo {
    /// joiner's version.
    pub version: &'static str,
    /// The compiler's version.
    pub compiler: &'static str,
    /// Commit, or empty when unknown.
    pub commit: &'static str,
}

impl Samples {
    /// Figures of the actors of a kind.
    pub fn actors(&mut self, kind: &str, figures: &ActorFigures) {
        let mut add = |family: &Family<1>, value: f64| self.add(family, &[kind], value);
        add(&f::ACTORS, figures.alive as f64);
        add(&f::ACTOR_MESSAGES, figures.handled as f64);
        add(&f::ACTOR_DROPPED, figures.dropped as f64);
        add(&f::ACTOR_BUSY, figures.busy.as_secs_f64());
        add(&f::ACTOR_MAILBOX, figures.waiting as f64);
        add(&f::ACTOR_MAILBOX_MAX, figures.fullest as f64);
        add(&f::ACTOR_RESTARTS, figures.restarts as f64);
    }

    /// Calls that have not ended.
    pub fn operations_under_way(&mut self, calls: u64) {
        self.add(&f::OPERATIONS, &[], calls as f64);
    }

    /// What was built.
    pub fn build_info(&mut self, build: &BuildInfo) {
        let labels = [build.version, build.compiler, std::env::consts::ARCH, build.commit];
        self.add(&f::BUILD, &labels, 1.0);
    }
}

/// A request to the API server was answered with a status code, or not at all (0, shown as `<error>` like upstream's).
pub fn api_request(verb: ApiVerb, resource: &'static str, code: u16, duration: Duration) {
    count(&f::API_REQUESTS, &[verb.as_str(), resource], 1);
    let code = if code == 0 { "<error>".to_owned() } else { code.to_string() };
    count(&f::CLIENT_TOTAL, &[&code, verb.method()], 1);
    took(&f::CLIENT_DURATION, &[verb.as_str(), resource], duration);
}

/// A call to the cloud has ended. `controller` is the actor's kind, `pool` the NodePool it was for, empty when for none.
pub fn cloud_called(
    controller: &'static str,
    call: CloudCall,
    provider: &'static str,
    pool: &str,
    duration: Duration,
    failure: Option<CloudFailure>,
) {
    took(&f::CLOUD_DURATION, &[controller, call.as_str(), provider], duration);
    if let Some(failure) = failure {
        count(&f::CLOUD_ERRORS, &[controller, call.as_str(), provider, failure.as_str(), pool], 1);
    }
}

/// Nobody knows whether a call to the cloud took effect.
pub fn cloud_outcome_unknown(call: CloudCall) {
    count(&f::OUTCOMES_UNKNOWN, &[call.as_str()], 1);
}

/// The auditor found something without its counterpart.
pub fn orphan_found(kind: OrphanKind) {
    count(&f::ORPHANS, &[kind.as_str()], 1);
}

/// Whether this process holds the lease of this name.
pub fn leading(lease: &str, leads: bool) {
    set(&f::LEADER, &[lease], if leads { 1.0 } else { 0.0 });
}

/// Whether every kind of object has been listed. Call it when that changes, the first time with `false` at the start.
pub fn cluster_synced(synced: bool) {
    set(&f::STATE_SYNCED, &[], if synced { 1.0 } else { 0.0 });
    if synced {
        set(&f::STATE_UNSYNCED, &[], 0.0);
    } else {
        start(&f::STATE_UNSYNCED, &[]);
    }
}

/// A condition of an object has changed its status.
pub fn condition_changed(kind: ObjectKind, transition: &Transition) {
    let (seconds, total) = match kind {
        ObjectKind::NodeClaim => (f::NODECLAIM_TRANSITION_SECONDS, f::NODECLAIM_TRANSITIONS),
        ObjectKind::NodePool => (f::NODEPOOL_TRANSITION_SECONDS, f::NODEPOOL_TRANSITIONS),
        ObjectKind::Node => (f::NODE_TRANSITION_SECONDS, f::NODE_TRANSITIONS),
    };
    count(&total, &[&transition.kind, transition.to.as_str(), &transition.reason], 1);
    if let Some((from, lasted)) = transition.from {
        took(&seconds, &[&transition.kind, from.as_str(), transition.to.as_str()], lasted);
    }
}

/// A NodePool that was being deleted is gone, so long after its deletion. NodeClaims and nodes report with their own functions.
pub fn pool_terminated(since_deletion: Duration) {
    took(&f::NODEPOOL_TERMINATED, &[], since_deletion);
}
