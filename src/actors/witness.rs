//! What passes through `state` and is told by nobody else: how long pods wait, and how the conditions of NodePools and Nodes change.
//!
//! Durations are recorded by the replica that leads, or every standby would count them again.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Condition, Fact, Kind, Snapshot, Waits};
use crate::core::ids::PodUid;
use crate::telemetry::conditions::{Transition, transitions};
use crate::telemetry::metrics;

/// Looks on, and keeps how long pods wait.
#[derive(Debug, Default)]
pub(super) struct Witness {
    waits: Waits,
}

impl Witness {
    /// Goes on with what a predecessor has seen.
    pub(super) fn after(waits: &Waits) -> Self {
        Self { waits: waits.clone() }
    }

    /// How long pods wait.
    pub(super) fn waits(&self) -> &Waits {
        &self.waits
    }

    /// A fact is about to be folded into this snapshot.
    pub(super) fn see(&mut self, fact: &Fact, snapshot: &Snapshot, leads: bool, now: Timestamp) {
        match fact {
            Fact::PodSeen(pod) => {
                let reached = self.waits.see(pod, now);
                if leads {
                    metrics::pod_reached(pod, &reached);
                }
            }
            Fact::PodGone(uid) => self.waits.gone(uid),
            Fact::PoolSeen(pool) if leads => {
                let known = snapshot.pools.get(&pool.name).map(|known| known.conditions.as_slice());
                changes(known, &pool.conditions, snapshot, Kind::NodePool)
                    .iter()
                    .for_each(metrics::pool_condition_changed);
            }
            Fact::NodeSeen(node) if leads => {
                let known = snapshot.nodes.get(&node.name).map(|known| known.conditions.as_slice());
                for transition in changes(known, &node.conditions, snapshot, Kind::Node) {
                    metrics::node_condition_changed(snapshot, node, &transition);
                }
            }
            Fact::PoolGone(name) if leads => {
                if let Some(deleting) = snapshot.pools.get(name).and_then(|pool| pool.deleting) {
                    metrics::pool_terminated(Duration::try_from(now.duration_since(deleting)).unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    /// A kind has been listed anew, and the snapshot holds what is left of it.
    pub(super) fn relisted(&mut self, kind: Kind, snapshot: &Snapshot) {
        if kind == Kind::Pod {
            self.waits.retain(|uid| snapshot.pods.contains_key(uid));
        }
    }

    /// A plan has places for some pods and refuses others.
    pub(super) fn decided(&mut self, placed: &[PodUid], refused: &[PodUid], now: Timestamp) {
        self.waits.decided(placed, refused, now).into_iter().for_each(metrics::pod_decided);
    }
}

/// What has changed in the conditions of an object. What the first list brings is no change: it was so before joiner looked.
fn changes(known: Option<&[Condition]>, now: &[Condition], snapshot: &Snapshot, kind: Kind) -> Vec<Transition> {
    if known.is_none() && !snapshot.listed.contains(&kind) {
        return Vec::new();
    }
    transitions(known.unwrap_or_default(), now)
}
