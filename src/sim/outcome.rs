//! What came of a rehearsal: totals and series, from which summary and report are made.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The outcome of a rehearsal. Times are seconds from its start, prices USD.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// What was simulated, as a heading: `day.yaml`, `openb, 8,152 pods`.
    pub title: String,
    /// What else a reader should know of it, as name and value: the instance types, the settings that are not defaults.
    pub facts: Vec<(String, String)>,
    /// Seed of all chance.
    pub seed: u64,
    /// How much time passed in the world.
    pub simulated_seconds: f64,
    /// Pods that wanted a node.
    pub pods_total: u64,
    /// Those of them that were bound to one at least once.
    pub pods_bound: u64,
    /// Those of them that never had one, or had none at the end, in order of name.
    pub unplaced: Vec<Unplaced>,
    /// For each pod that was bound: how long it waited, from its creation to its first binding. In any order.
    pub seconds_to_bound: Vec<f64>,
    /// Most nodes at a time.
    pub nodes_peak: u64,
    /// What all machines cost, from launch to end.
    pub price_total: f64,
    /// Highest price per hour at a time.
    pub price_peak_per_hour: f64,
    /// The course of things, in order of time. A sample holds until the next one.
    pub samples: Vec<Sample>,
    /// Every node that was launched, in order of launch.
    pub nodes: Vec<NodeRow>,
    /// What must not happen and did, one sentence each; empty if all is well.
    pub violations: Vec<String>,
    /// How long the rehearsal took in our time.
    pub wall_seconds: f64,
    /// Most memory that it took.
    pub peak_memory_bytes: u64,
}

/// A pod without a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unplaced {
    /// Namespace and name.
    pub pod: String,
    /// Why, most helpful first.
    pub reasons: Vec<String>,
}

/// The state of the world at a time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample {
    /// When, in seconds from the start.
    pub at_seconds: f64,
    /// Pods without a node.
    pub pending: u64,
    /// Pods that are bound to a node and have not ended.
    pub bound: u64,
    /// Nodes by instance type.
    pub nodes_by_type: BTreeMap<Arc<str>, u64>,
    /// Requests of the bound pods and of the nodes' daemons, in cores.
    pub requested_cpu: f64,
    /// What the nodes have for pods, in cores.
    pub allocatable_cpu: f64,
    /// Requests of the bound pods and of the nodes' daemons, in bytes.
    pub requested_memory: f64,
    /// What the nodes have for pods, in bytes.
    pub allocatable_memory: f64,
    /// Price of all machines now.
    pub price_per_hour: f64,
    /// What was spent so far.
    pub cumulative_price: f64,
}

/// One node's life.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeRow {
    /// Name of its NodeClaim, or of the node if it has none.
    pub name: Arc<str>,
    /// Its NodePool; empty if it has none.
    pub pool: Arc<str>,
    /// Its instance type.
    pub instance_type: Arc<str>,
    /// Its zone; empty in a cloud without zones.
    pub zone: Arc<str>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Arc<str>,
    /// Its price.
    pub price_per_hour: f64,
    /// When its machine was launched.
    pub launched: f64,
    /// When it was ready for pods.
    pub ready: Option<f64>,
    /// When its machine was gone; nothing if it was there at the end.
    pub gone: Option<f64>,
}

impl NodeRow {
    /// For how many hours its machine was there, in a rehearsal that ended at `end`.
    pub fn hours(&self, end: f64) -> f64 {
        (self.gone.unwrap_or(end) - self.launched).max(0.0) / 3600.0
    }
}

/// How long pods waited, in seconds. Nothing if no pod was bound.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Percentiles {
    /// Half of the pods waited at most this long.
    pub p50: Option<f64>,
    /// Nine in ten.
    pub p90: Option<f64>,
    /// Ninety-nine in a hundred.
    pub p99: Option<f64>,
    /// The one that waited longest.
    pub max: Option<f64>,
}

/// Pods that have no node for the same reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unhappy<'o> {
    /// The reasons, most helpful first.
    pub reasons: &'o [String],
    /// The pods.
    pub pods: Vec<&'o str>,
}

impl Outcome {
    /// Nodes that were launched.
    pub fn nodes_launched(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes that were there at the end.
    pub fn nodes_final(&self) -> usize {
        self.nodes.iter().filter(|node| node.gone.is_none()).count()
    }

    /// Waiting times, shortest first.
    pub fn waits(&self) -> Vec<f64> {
        let mut waits = self.seconds_to_bound.clone();
        waits.sort_by(f64::total_cmp);
        waits
    }

    /// How long pods waited, by nearest rank: each figure is the wait of a pod that there was.
    pub fn percentiles(&self) -> Percentiles {
        let waits = self.waits();
        let rank = |percent: usize| {
            let rank = (waits.len() * percent).div_ceil(100);
            waits.get(rank.saturating_sub(1)).copied()
        };
        Percentiles { p50: rank(50), p90: rank(90), p99: rank(99), max: waits.last().copied() }
    }

    /// Pods without a node by their reasons, most pods first.
    pub fn unplaced_by_reason(&self) -> Vec<Unhappy<'_>> {
        let mut groups = BTreeMap::<&[String], Vec<&str>>::new();
        for unplaced in &self.unplaced {
            groups.entry(&unplaced.reasons).or_default().push(&unplaced.pod);
        }
        let mut groups = groups.into_iter().map(|(reasons, pods)| Unhappy { reasons, pods }).collect::<Vec<_>>();
        groups.sort_by_key(|group| std::cmp::Reverse(group.pods.len()));
        groups
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
pub(super) mod tests;
