//! joiner itself: its actors, its calls, its lease, its build.

use std::time::Duration;

use crate::core::promises::Invariant;

use super::Samples;
use super::families::{self as f, Family};
use super::labels::{CloudCall, CloudFailure, OrphanKind};
use super::registry::{count, set, start, took};

/// Figures of all live actors of a kind.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ActorFigures {
    /// How many are alive.
    pub alive: usize,
    /// Messages handled.
    pub handled: u64,
    /// Messages that had nobody to go to.
    pub dropped: u64,
    /// Nudges that said what another said that waited already.
    pub folded: u64,
    /// Time spent in handlers.
    pub busy: Duration,
    /// Messages waiting, in all mailboxes together.
    pub waiting: u64,
    /// Messages waiting in the fullest mailbox.
    pub fullest: u64,
    /// Instances that failed and were replaced.
    pub restarts: u64,
}

impl Samples {
    /// Figures of the actors of a kind.
    pub fn actors(&mut self, kind: &str, figures: &ActorFigures) {
        let mut add = |family: &Family<1>, value: f64| self.add(family, &[kind], value);
        add(&f::ACTORS, figures.alive as f64);
        add(&f::ACTOR_MESSAGES, figures.handled as f64);
        add(&f::ACTOR_DROPPED, figures.dropped as f64);
        add(&f::ACTOR_FOLDED, figures.folded as f64);
        add(&f::ACTOR_BUSY, figures.busy.as_secs_f64());
        add(&f::ACTOR_MAILBOX, figures.waiting as f64);
        add(&f::ACTOR_MAILBOX_MAX, figures.fullest as f64);
        add(&f::ACTOR_RESTARTS, figures.restarts as f64);
    }

    /// Calls that have not ended.
    pub fn operations_under_way(&mut self, calls: u64) {
        self.add(&f::OPERATIONS, &[], calls as f64);
    }

    /// What was built: the version, and the commit if it is known.
    pub fn build_info(&mut self, version: &str, commit: &str) {
        self.add(&f::BUILD, &[version, "rust", std::env::consts::ARCH, commit], 1.0);
    }

    /// How often joiner has seen that it did not keep a promise.
    pub fn promise_broken(&mut self, promise: Invariant, times: u64) {
        self.add(&f::PROMISES_BROKEN, &[promise.as_str()], times as f64);
    }

    /// Requests that were sent to the API server so far, by verb and resource.
    pub fn api_requests(&mut self, verb: &str, resource: &str, requests: u64) {
        self.add(&f::API_REQUESTS, &[verb, resource], requests as f64);
    }
}

/// A call to the cloud has ended. `controller` is the kind of actor that makes such calls, `pool` the NodePool it was for, empty when for none.
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

/// Whether the auditor's circuit breaker is open.
pub fn audit_breaker(open: bool) {
    set(&f::AUDIT_BREAKER, &[], if open { 1.0 } else { 0.0 });
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
