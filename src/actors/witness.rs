//! What passes through `state` and is told by nobody else: how long pods wait, and how the conditions of NodePools and Nodes change.
//!
//! Durations are recorded, and Events said, by the replica that leads, or every standby would do it again.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Condition, Fact, Kind, Snapshot, Waits};
use crate::core::ids::PodUid;
use crate::core::{lifecycle, pools};
use crate::telemetry::conditions::{Transition, transitions};
use crate::telemetry::events::{self, About, Event};
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

    /// A fact is about to be folded into this snapshot. Answers what is to be said of it.
    pub(super) fn see(&mut self, fact: &Fact, snapshot: &Snapshot, leads: bool, now: Timestamp) -> Vec<Event> {
        match fact {
            Fact::PodSeen(pod) => {
                let reached = self.waits.see(pod, now);
                if leads {
                    metrics::pod_reached(pod, &reached);
                }
                Vec::new()
            }
            Fact::PodGone(uid) => {
                self.waits.gone(uid);
                Vec::new()
            }
            _ if leads => conditions(fact, snapshot, now),
            _ => Vec::new(),
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

/// Counts how the conditions of an object change and how long its end took, and says it. What becomes of a NodeClaim its own actor says.
fn conditions(fact: &Fact, snapshot: &Snapshot, now: Timestamp) -> Vec<Event> {
    match fact {
        Fact::ClaimSeen(claim) => {
            if !snapshot.claims.contains_key(&claim.name) && !snapshot.departed.has(&claim.uid) {
                let new = changes(None, &lifecycle::conditions_of(claim), snapshot, Kind::NodeClaim);
                for transition in &new {
                    metrics::claim_condition_changed(claim, transition);
                }
            }
            Vec::new()
        }
        Fact::PoolSeen(pool) => {
            let known = snapshot.pools.get(&pool.name).map(|known| pools::conditions_of(known));
            let changes = changes(known.as_deref(), &pools::conditions_of(pool), snapshot, Kind::NodePool);
            changes.iter().for_each(metrics::pool_condition_changed);
            let about = || About::Pool(pool.name.clone(), pool.uid.clone());
            changes.iter().filter_map(|transition| events::condition_changed(about(), transition)).collect()
        }
        Fact::NodeSeen(node) => {
            let known = snapshot.nodes.get(&node.name).map(|known| known.conditions.as_slice());
            let changes = changes(known, &node.conditions, snapshot, Kind::Node);
            for transition in &changes {
                metrics::node_condition_changed(snapshot, node, transition);
            }
            let about = || About::Node(node.name.clone(), node.uid.clone());
            let told = changes.iter().filter(|_| node.was_registered());
            told.filter_map(|transition| events::condition_changed(about(), transition)).collect()
        }
        Fact::PoolGone(name) => {
            let ended = snapshot.pools.get(name).and_then(|pool| Some((pool, pool.deleting?)));
            let told = ended.map(|(pool, deleting)| {
                metrics::pool_terminated(Duration::try_from(now.duration_since(deleting)).unwrap_or_default());
                events::finalized(About::Pool(name.clone(), pool.uid.clone()))
            });
            told.into_iter().collect()
        }
        Fact::NodeGone(name) => {
            let ended = snapshot.nodes.get(name).filter(|node| node.deleting.is_some() && node.was_registered());
            ended.map(|node| events::finalized(About::Node(name.clone(), node.uid.clone()))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// What has changed in the conditions of an object. What the first list brings is no change: it was so before joiner looked.
fn changes(known: Option<&[Condition]>, now: &[Condition], snapshot: &Snapshot, kind: Kind) -> Vec<Transition> {
    if known.is_none() && !snapshot.listed.contains(&kind) {
        return Vec::new();
    }
    transitions(known.unwrap_or_default(), now)
}

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;
