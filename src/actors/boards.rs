//! Boards: where `state`, `catalog`, `leader` and `provisioner` publish their latest value, and everybody reads it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::core::audit::Alarm;
use crate::core::buffers::Rooms;
use crate::core::facts::{Catalog, Snapshot, Waits};
use crate::core::ids::ClaimName;
use crate::core::writes::{Lease, Regarding};

use super::decisions::Decisions;
use super::protocol::Refusals;

/// The latest values. They outlive the actors that publish them: while one is being restarted, others read what it last said.
#[derive(Clone, Debug)]
pub struct Boards {
    /// The cluster, by `state`.
    pub snapshot: watch::Sender<Arc<Snapshot>>,
    /// NodeClaims about which there is news that `claims` has not taken yet, by all who have such news; see [`super::protocol::ClaimsMsg::Look`].
    pub stirred: watch::Sender<BTreeSet<ClaimName>>,
    /// How long pods have waited, by `state`.
    pub waits: watch::Sender<Arc<Waits>>,
    /// What can be bought, by `catalog`.
    pub catalog: watch::Sender<Arc<Catalog>>,
    /// Until when the lease is certainly ours, by `leader`.
    pub leader_until: watch::Sender<Option<Instant>>,
    /// Which pods the last solve refused, and why, by `provisioner`.
    pub refusals: watch::Sender<Arc<Refusals>>,
    /// The lease as last seen, by `leader`.
    pub lease: watch::Sender<Option<Lease>>,
    /// What is to be written into the lease with its next renewal, by `auditor`; taken away by `leader` when it stands there. Without a lease it stays here.
    pub record: watch::Sender<Option<Arc<str>>>,
    /// Whether the circuit breaker is open, by `auditor`.
    pub alarm: watch::Sender<Alarm>,
    /// What was planned and from what, by `provisioner`.
    pub decisions: watch::Sender<Arc<Decisions>>,
    /// How the placeholders of CapacityBuffers fared in the last plan, by `provisioner`.
    pub rooms: watch::Sender<Arc<Rooms>>,
}

impl Boards {
    /// Empty boards.
    pub fn new() -> Self {
        Self {
            snapshot: watch::Sender::new(Arc::default()),
            stirred: watch::Sender::default(),
            waits: watch::Sender::new(Arc::default()),
            catalog: watch::Sender::new(Arc::default()),
            leader_until: watch::Sender::new(None),
            refusals: watch::Sender::new(Arc::default()),
            lease: watch::Sender::new(None),
            record: watch::Sender::new(None),
            alarm: watch::Sender::new(Alarm::default()),
            decisions: watch::Sender::new(Arc::default()),
            rooms: watch::Sender::new(Arc::default()),
        }
    }

    /// The object that the lease is, as last seen: Events that are about nothing else are about it.
    pub fn lease_object(&self) -> Option<Regarding> {
        self.lease.borrow().as_ref().map(|lease| lease.object.clone())
    }

    /// The cluster as last published.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// How long pods have waited, as last published.
    pub fn waits(&self) -> Arc<Waits> {
        Arc::clone(&self.waits.borrow())
    }

    /// What was planned and from what, as last published.
    pub fn decisions(&self) -> Arc<Decisions> {
        Arc::clone(&self.decisions.borrow())
    }

    /// How the placeholders of CapacityBuffers fared, as last published.
    pub fn rooms(&self) -> Arc<Rooms> {
        Arc::clone(&self.rooms.borrow())
    }

    /// What can be bought, as last published.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }
}

impl Default for Boards {
    fn default() -> Self {
        Self::new()
    }
}
