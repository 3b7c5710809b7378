//! The part of the kubelets' stand-in that runs pods, and the collector of pods whose node is no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use futures::StreamExt;
use jiff::Timestamp;
use std::time::Duration;

use tokio::time::Instant;

use super::agenda::Agenda;
use super::cluster::SimCluster;
use super::kubelet::Pace;
use super::seed::{self, Seed};
use crate::core::facts::{Fact, Pod, PodPhase, Status, find_condition};
use crate::core::ids::{NodeName, PodUid};

/// How long a pod waits before its kubelet looks again whether the node is ready.
const AGAIN: Duration = Duration::from_secs(1);
/// How long it takes until a kubelet that was silent is asked again whether a pod has ended.
const SILENCE: Duration = Duration::from_secs(10);

/// Starts, ends and stops the pods that are bound to nodes.
pub struct Containers {
    cluster: SimCluster,
    pace: Pace,
    rng: Rng,
    /// What was arranged for each pod.
    known: BTreeMap<PodUid, Arranged>,
    agenda: Agenda<Act>,
}

/// What was arranged for a pod.
#[derive(Clone, Copy, Default, Debug)]
struct Arranged {
    start: bool,
    stop: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum Act {
    Start(PodUid),
    End(PodUid),
    Stop(PodUid),
    Collect(NodeName),
}

impl Containers {
    /// The container runtimes of a cluster's nodes.
    pub fn new(cluster: SimCluster, pace: Pace, seed: Seed) -> Self {
        let rng = seed.stream("containers");
        Self { cluster, pace, rng, known: BTreeMap::new(), agenda: Agenda::new() }
    }

    /// Plays for as long as it is polled.
    pub async fn run(mut self) {
        let mut facts = self.cluster.prompt_facts();
        loop {
            tokio::select! {
                biased;
                fact = facts.next() => match fact {
                    Some(fact) => self.note(fact),
                    None => return,
                },
                act = self.agenda.next() => self.act(act),
            }
        }
    }

    fn note(&mut self, fact: Fact) {
        match fact {
            Fact::PodSeen(pod) if pod.node.is_some() => self.arrange(&pod),
            Fact::PodGone(uid) => {
                self.known.remove(&uid);
            }
            Fact::NodeGone(name) => {
                let wait = seed::between(&mut self.rng, self.pace.orphans);
                self.agenda.after(wait, Act::Collect(name));
            }
            _ => {}
        }
    }

    fn arrange(&mut self, pod: &Arc<Pod>) {
        let arranged = self.known.entry(pod.uid.clone()).or_default();
        if let Some(end) = pod.deleting {
            // An earlier end than the one arranged comes from a second, harder deletion.
            if arranged.stop.is_none_or(|earlier| end < earlier) {
                arranged.stop = Some(end);
                let left = Duration::try_from(end.duration_since(self.cluster.store().now())).unwrap_or_default();
                let wait = seed::between(&mut self.rng, self.pace.pod_stop).min(left);
                self.agenda.after(wait, Act::Stop(pod.uid.clone()));
            }
        } else if !arranged.start && pod.phase == PodPhase::Pending {
            arranged.start = true;
            let wait = seed::between(&mut self.rng, self.pace.pod_start);
            self.agenda.after(wait, Act::Start(pod.uid.clone()));
        }
    }

    fn act(&mut self, act: Act) {
        let cluster = self.cluster.clone();
        let mut store = cluster.store();
        match act {
            Act::Start(uid) => {
                let Some(record) = store.pods.get(&uid) else { return };
                let Some(node) = record.pod.node.as_ref().and_then(|name| store.nodes.get(name)) else { return };
                if record.pod.deleting.is_some() {
                    return;
                }
                if !node.is_ready() {
                    self.agenda.after(AGAIN, Act::Start(uid));
                    return;
                }
                if let Some(life) = record.runs_for {
                    self.agenda.after(life, Act::End(uid.clone()));
                }
                store.start_pod(&uid);
            }
            Act::End(uid) => {
                if store.pods.get(&uid).is_some_and(|record| record.pod.phase == PodPhase::Running) {
                    store.end_pod(&uid, PodPhase::Succeeded);
                }
            }
            Act::Stop(uid) => {
                let Some(record) = store.pods.get(&uid) else { return };
                if let Some(until) = store.stuck.get(&uid).copied().filter(|until| *until > Instant::now()) {
                    store.bitten.insert(uid.to_string());
                    self.agenda.at(until, Act::Stop(uid));
                    return;
                }
                let node = record.pod.node.as_ref().and_then(|name| store.nodes.get(name));
                let ready = node.and_then(|node| find_condition(&node.conditions, "Ready"));
                // A silent kubelet confirms nothing; the pod goes with its Node, or when it is heard again.
                match ready.map(|ready| ready.status) {
                    Some(Status::True | Status::False) => store.remove_pod(&uid),
                    Some(Status::Unknown) => self.agenda.after(SILENCE, Act::Stop(uid)),
                    None => {}
                }
            }
            Act::Collect(name) => {
                if !store.nodes.contains_key(&name) {
                    for uid in store.bound.get(&name).cloned().unwrap_or_default() {
                        store.remove_pod(&uid);
                    }
                }
            }
        }
    }
}
