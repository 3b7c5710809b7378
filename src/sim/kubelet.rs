//! The kubelets' and the node controllers' stand-in: machines become Nodes, get ready, and are taken away after their machines.
//!
//! ```text
//! machine launched ──boot──▶ Node, not ready ──ready──▶ Ready, taint off ──equip──▶ extended resources
//! machine gone ──▶ Ready=Unknown, unreachable ──40 s──▶ Node deleted (its finalizers decide when it goes)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::StreamExt;

use super::agenda::Agenda;
use super::cluster::SimCluster;
use super::seed::{self, Seed};
use crate::clouds::simulated::{Change, Quirk, SimMachine, Simulated};
use crate::core::facts::{Condition, Effect, Node, Status, Taint};
use crate::core::ids::{NodeName, NodeUid, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::resources::{ResourceName, Resources};

/// Taint of a node whose kubelet is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a node whose kubelet is silent.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// How fast nodes and pods come and go. Pairs are lower and upper bounds between which the seed decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// From a node's first report until it is ready.
    pub ready: (Duration, Duration),
    /// From then until its extended resources are there (device plugins start as pods do).
    pub equip: (Duration, Duration),
    /// From the binding of a pod until its containers run.
    pub pod_start: (Duration, Duration),
    /// From the request to end until the containers of a pod have ended, if its grace period is not over before.
    pub pod_stop: (Duration, Duration),
    /// From the end of the last pod that uses a volume on a node until the volume is detached.
    pub detach: (Duration, Duration),
    /// From the end of a machine until its Node is deleted. The cloud controllers' default monitor grace is 40 s.
    pub lost: Duration,
    /// From the end of a Node until its pods are collected.
    pub orphans: (Duration, Duration),
}

impl Default for Pace {
    fn default() -> Self {
        let millis = |low, high| (Duration::from_millis(low), Duration::from_millis(high));
        Self {
            ready: millis(3_000, 8_000),
            equip: millis(1_000, 3_000),
            pod_start: millis(800, 1_500),
            pod_stop: millis(1_000, 3_000),
            detach: millis(2_000, 10_000),
            lost: Duration::from_secs(40),
            orphans: millis(1_000, 20_000),
        }
    }
}

/// The kubelets and node controllers.
pub struct Kubelet {
    cluster: SimCluster,
    cloud: Simulated,
    pace: Pace,
    rng: Rng,
    machines: BTreeMap<ProviderId, Arc<SimMachine>>,
    /// How often a machine was restarted.
    restarts: BTreeMap<ProviderId, u32>,
    agenda: Agenda<Act>,
}

/// What is to be done for a machine.
#[derive(Clone, Debug)]
enum Act {
    Register(ProviderId),
    BecomeReady(ProviderId),
    Equip(ProviderId),
    Die(ProviderId),
    Delete(ProviderId),
}

impl Kubelet {
    /// Kubelets for the machines of a cloud, in a cluster.
    pub fn new(cluster: SimCluster, cloud: Simulated, pace: Pace, seed: Seed) -> Self {
        let rng = seed.stream("kubelet");
        Self { cluster, cloud, pace, rng, machines: BTreeMap::new(), restarts: BTreeMap::new(), agenda: Agenda::new() }
    }

    /// Plays for as long as it is polled.
    pub async fn run(mut self) {
        let mut news = self.cloud.changes();
        loop {
            tokio::select! {
                biased;
                change = news.next() => match change {
                    Some(change) => self.note(change),
                    None => return,
                },
                act = self.agenda.next() => self.act(act),
            }
        }
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Launched(machine) => {
                let id = machine.machine.id.clone();
                if let Some(at) = machine.reports {
                    self.agenda.at(at, Act::Register(id.clone()));
                }
                self.machines.insert(id, machine);
            }
            Change::Going(id, at) => self.agenda.at(at, Act::Die(id)),
            Change::Rebooting(id, back) => {
                self.silence(&id, "the machine restarts");
                *self.restarts.entry(id.clone()).or_default() += 1;
                self.agenda.at(back, Act::BecomeReady(id));
            }
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Register(id) => self.register(&id),
            Act::BecomeReady(id) => self.become_ready(&id),
            Act::Equip(id) => self.equip(&id),
            Act::Die(id) => {
                self.silence(&id, "the machine is gone");
                self.machines.remove(&id);
                self.restarts.remove(&id);
                self.agenda.after(self.pace.lost, Act::Delete(id));
            }
            Act::Delete(id) => {
                // Somebody else may have been faster.
                self.cluster.store().delete_node(&node_name(&id), None).ok();
            }
        }
    }

    fn register(&mut self, id: &ProviderId) {
        let Some(machine) = self.machines.get(id) else { return };
        let name = node_name(id);
        let mut store = self.cluster.store();
        let now = store.now();
        let mut labels = machine.machine.labels.clone();
        labels.insert(labels::HOSTNAME.into(), name.as_str().into());
        let not_ready = [Effect::NoSchedule, Effect::NoExecute].map(|effect| Taint::new(NOT_READY, effect));
        let condition = Condition {
            kind: "Ready".into(),
            status: Status::False,
            reason: "KubeletNotReady".into(),
            message: "the kubelet has just started".into(),
            since: now,
            generation: 0,
        };
        let node = Node {
            name,
            uid: NodeUid::from(""),
            created: now,
            deleting: None,
            version: "".into(),
            labels,
            annotations: Labels::new(),
            finalizers: Vec::new(),
            owner_claims: Vec::new(),
            provider_id: Some(match machine.quirk {
                Some(Quirk::Stranger) => ProviderId::from(format!("{id}-stranger")),
                Some(Quirk::Silent) | None => id.clone(),
            }),
            taints: machine.taints.iter().cloned().chain(not_ready).collect(),
            cordoned: false,
            capacity: ordinary(&machine.machine.capacity),
            allocatable: ordinary(&machine.machine.allocatable),
            boot_id: Some(self.boot(id)),
            conditions: vec![condition],
        };
        if store.create_node(node).is_ok() {
            let wait = seed::between(&mut self.rng, self.pace.ready);
            self.agenda.after(wait, Act::BecomeReady(id.clone()));
        }
    }

    /// The boot ID of a machine: it counts its boots.
    fn boot(&self, id: &ProviderId) -> Arc<str> {
        let restarts = self.restarts.get(id).copied().unwrap_or_default();
        format!("{}-boot-{}", node_name(id), restarts + 1).into()
    }

    fn become_ready(&mut self, id: &ProviderId) {
        let Some(machine) = self.machines.get(id) else { return };
        let boot = self.boot(id);
        let mut store = self.cluster.store();
        let now = store.now();
        store.update_node(&node_name(id), |node| {
            node.boot_id = Some(boot);
            set_ready(node, Status::True, "KubeletReady", "the kubelet is ready", now);
            node.taints.retain(|taint| &*taint.key != NOT_READY && &*taint.key != UNREACHABLE);
        });
        if ordinary(&machine.machine.capacity) != machine.machine.capacity {
            let wait = seed::between(&mut self.rng, self.pace.equip);
            self.agenda.after(wait, Act::Equip(id.clone()));
        }
    }

    fn equip(&self, id: &ProviderId) {
        let Some(machine) = self.machines.get(id) else { return };
        self.cluster.store().update_node(&node_name(id), |node| {
            node.capacity = machine.machine.capacity.clone();
            node.allocatable = machine.machine.allocatable.clone();
        });
    }

    fn silence(&self, id: &ProviderId, why: &str) {
        let mut store = self.cluster.store();
        let now = store.now();
        store.update_node(&node_name(id), |node| {
            set_ready(node, Status::Unknown, "NodeStatusUnknown", why, now);
            for effect in [Effect::NoSchedule, Effect::NoExecute] {
                let taint = Taint::new(UNREACHABLE, effect);
                if !node.taints.iter().any(|there| there.matches(&taint)) {
                    node.taints.push(taint);
                }
            }
        });
    }
}

/// The name of a machine's Node: the last part of its provider ID.
pub(super) fn node_name(id: &ProviderId) -> NodeName {
    NodeName::from(id.as_str().rsplit('/').next().unwrap_or_default())
}

/// What a kubelet knows of by itself; the rest waits for device plugins.
fn ordinary(all: &Resources) -> Resources {
    let known = |name: &ResourceName| !matches!(name, ResourceName::Other(name) if name.contains('/'));
    all.iter().filter(|(name, _)| known(name)).map(|(name, milli)| (name.clone(), milli)).collect()
}

fn set_ready(node: &mut Node, status: Status, reason: &str, message: &str, now: jiff::Timestamp) {
    for condition in node.conditions.iter_mut().filter(|condition| &*condition.kind == "Ready") {
        if condition.status != status {
            condition.since = now;
        }
        condition.status = status;
        condition.reason = reason.into();
        condition.message = message.into();
    }
}
