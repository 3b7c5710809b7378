//! `evictor`: asks pods to leave, one queue for the cluster, and takes no for an answer until a deadline says otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster;
use crate::core::facts::{Node, Pod, Snapshot, Status, find_condition};
use crate::core::ids::{ClaimName, PodUid};
use crate::core::labels;
use crate::core::lifecycle::PodRef;
use crate::core::writes::Regarding;
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::{events, metrics};

use super::protocol::{EvictorMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View, backoff};
use super::tree::Wiring;

/// First wait before a refused eviction is asked for again (Karpenter: 100 ms, doubling); PodDisruptionBudgets change no faster.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Longest wait before a refused eviction is asked for again (Karpenter's value).
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// How long a pod that was granted to leave may take to show it, before it is asked again.
const GRANTED: Duration = Duration::from_secs(5);

/// Asks pods to leave.
#[derive(Debug)]
pub(super) struct Evictor {
    wiring: Arc<Wiring>,
    pods: BTreeMap<PodUid, Leaving>,
    retry: Option<Timer>,
    said: Dedupe,
}

/// A pod that is to leave.
#[derive(Debug)]
struct Leaving {
    pod: PodRef,
    /// Delete it with that much grace instead of asking.
    force: Option<i64>,
    asking: bool,
    refused: u32,
    again: Option<Instant>,
    since: Timestamp,
    answer: Option<String>,
}

impl Evictor {
    fn add(&mut self, pod: PodRef, force: Option<i64>, cx: &Cx<EvictorMsg>) {
        let uid = pod.uid.clone();
        let known = self.pods.entry(uid.clone()).or_insert_with(|| Leaving {
            pod,
            force: None,
            asking: false,
            refused: 0,
            again: None,
            since: cx.now(),
            answer: None,
        });
        // A deadline may tighten what was asked, never loosen it.
        if force.is_some() && known.force.is_none() {
            known.force = force;
            known.again = None;
        }
        self.ask(&uid, cx);
    }

    fn ask(&mut self, uid: &PodUid, cx: &Cx<EvictorMsg>) {
        let Some(leaving) = self.pods.get_mut(uid) else { return };
        if leaving.asking || leaving.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        leaving.asking = true;
        let impolite = (!self.wiring.settings.protections.budgets).then_some(1);
        let (cluster, pod, force) = (Arc::clone(&self.wiring.cluster), leaving.pod.clone(), leaving.force.or(impolite));
        let asked = pod.clone();
        if let Some(grace) = force {
            let about = Regarding::Pod(pod.key.clone(), pod.uid.clone());
            self.wiring.announce(&cx.house, &mut self.said, events::deleted_for_deadline(about, grace));
        }
        let call = async move {
            match force {
                Some(grace) => cluster.delete_pod(&asked.key, &asked.uid, grace).await,
                None => cluster.evict(&asked.key, &asked.uid).await,
            }
        };
        cx.start(Permits::WriteCluster, call, move |outcome| EvictorMsg::Evicted(pod, outcome));
    }

    fn evicted(&mut self, pod: &PodRef, outcome: Written<()>, cx: &Cx<EvictorMsg>) {
        let Some(leaving) = self.pods.get_mut(&pod.uid) else { return };
        leaving.asking = false;
        if leaving.force.is_none() {
            metrics::eviction_requested(code(&outcome));
        }
        let snapshot = self.wiring.boards.snapshot();
        let node = snapshot.pods.get(&pod.uid).and_then(|pod| snapshot.nodes.get(pod.node.as_ref()?));
        let about = || Regarding::Pod(pod.key.clone(), pod.uid.clone());
        let event = match (&outcome, leaving.force) {
            (Outcome::Done(()), Some(_)) => {
                metrics::pod_drained(FORCEFUL);
                None
            }
            (Outcome::Done(()), None) => {
                let reason = reason(&snapshot, node.map(|node| &**node));
                metrics::pod_drained(&reason);
                Some(events::evicted(about(), &reason))
            }
            // Budgets that refuse; the API server's own trouble is nobody's business.
            (Outcome::Failed(error), None) if error.is_of_budgets() => node.map(|node| {
                let node = Regarding::Node(node.name.clone(), node.uid.clone());
                events::failed_draining(node, &format!("{error} (Pod={})", pod.key))
            }),
            _ => None,
        };
        if let Some(event) = event {
            self.wiring.announce(&cx.house, &mut self.said, event);
        }
        let (answer, wait) = match outcome {
            Outcome::Done(()) => {
                // Until the watch shows that it leaves, it is named again and again, and need not be asked again.
                leaving.again = Some(Instant::now() + GRANTED);
                leaving.answer = None;
                return self.arm(cx);
            }
            Outcome::Failed(cluster::Error::NotFound(_) | cluster::Error::Conflict(_)) => {
                self.pods.remove(&pod.uid);
                return;
            }
            Outcome::Failed(cluster::Error::TooManyRequests { retry_after, message }) => (message, retry_after),
            Outcome::Failed(error) => (error.to_string(), None),
            Outcome::Lost => ("no answer".to_owned(), None),
            Outcome::NotLeader => ("this joiner does not hold the lease".to_owned(), None),
        };
        if leaving.answer.as_ref() != Some(&answer) {
            tracing::info!(pod = %pod.key, answer, "pod not evicted, asking again");
        }
        leaving.answer = Some(answer);
        leaving.refused += 1;
        let backoff = backoff(FIRST_BACKOFF, LONGEST_BACKOFF, leaving.refused);
        leaving.again = Some(Instant::now() + wait.unwrap_or(backoff).clamp(FIRST_BACKOFF, LONGEST_BACKOFF));
        self.arm(cx);
    }

    /// Asks again all whose time has come, and forgets those that have left, or whose node is emptied no more: a machine was restarted with them.
    fn retry(&mut self, cx: &Cx<EvictorMsg>) {
        self.retry = None;
        let snapshot = self.wiring.boards.snapshot();
        self.pods.retain(|uid, leaving| {
            let is_leaving = |pod: &Pod| {
                let node = pod.node.as_ref().and_then(|node| snapshot.nodes.get(node));
                pod.deleting.is_none() && !pod.is_terminal() && node.is_none_or(|node| is_emptied(node))
            };
            leaving.asking || snapshot.pods.get(uid).is_some_and(|pod| is_leaving(pod))
        });
        let due: Vec<PodUid> = self.pods.keys().cloned().collect();
        for uid in due {
            self.ask(&uid, cx);
        }
        self.arm(cx);
    }

    fn arm(&mut self, cx: &Cx<EvictorMsg>) {
        let next = self.pods.values().filter(|leaving| !leaving.asking).filter_map(|leaving| leaving.again).min();
        let delay = next.map(|next| next.saturating_duration_since(Instant::now()).max(Duration::from_millis(10)));
        self.retry = delay.map(|delay| cx.after(delay, EvictorMsg::Retry));
    }
}

/// Whether a node carries one of the taints of those that pods have to leave.
fn is_emptied(node: &Node) -> bool {
    let keys = [labels::DISRUPTED_TAINT, labels::REBOOTING_TAINT];
    node.taints.iter().any(|taint| keys.contains(&&*taint.key))
}

/// Why pods leave a node that nobody gave a reason for (Karpenter's word).
const FORCEFUL: &str = "Forceful Termination";

/// Why pods leave a node: the reason of its NodeClaim's condition `DisruptionReason`; nothing when there is no NodeClaim.
fn reason(snapshot: &Snapshot, node: Option<&Node>) -> String {
    let claim = node.and_then(|node| {
        node.owner_claims.iter().find_map(|name| snapshot.claims.get(&ClaimName::from(Arc::clone(name))))
    });
    let Some(claim) = claim else { return String::new() };
    let disrupted = find_condition(&claim.conditions, "DisruptionReason");
    let disrupted = disrupted.filter(|condition| condition.status == Status::True);
    disrupted.map_or_else(|| FORCEFUL.to_owned(), |condition| condition.reason.to_string())
}

/// The status code behind an answer; 0 when there was none.
fn code(outcome: &Written<()>) -> u16 {
    match outcome {
        Outcome::Done(()) => 200,
        Outcome::Failed(error) => match error {
            cluster::Error::NotFound(_) => 404,
            cluster::Error::Exists(_) | cluster::Error::Conflict(_) => 409,
            cluster::Error::TooManyRequests { .. } => 429,
            cluster::Error::Forbidden { .. } => 403,
            cluster::Error::Invalid { .. } => 422,
            cluster::Error::Temporary(_) => 503,
            cluster::Error::Unknown(_) => 0,
        },
        Outcome::Lost | Outcome::NotLeader => 0,
    }
}

impl Behaviour for Evictor {
    type Msg = EvictorMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Evictor;

    fn born(wiring: &Self::Args, _: &Cx<EvictorMsg>) -> Self {
        // Claim actors look at their drains every few seconds, and name their pods again.
        Self { wiring: Arc::clone(wiring), pods: BTreeMap::new(), retry: None, said: Dedupe::new() }
    }

    fn handle(&mut self, message: EvictorMsg, cx: &Cx<EvictorMsg>) {
        match message {
            EvictorMsg::Evict(pods) => pods.into_iter().for_each(|pod| self.add(pod, None, cx)),
            EvictorMsg::Force(pods) => pods.into_iter().for_each(|(pod, grace)| self.add(pod, Some(grace), cx)),
            EvictorMsg::Evicted(pod, outcome) => self.evicted(&pod, outcome, cx),
            EvictorMsg::Retry => self.retry(cx),
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let refused = self.pods.values().filter_map(|leaving| {
            let answer = leaving.answer.as_ref()?;
            Some((leaving.pod.key.to_string(), format!("since {:.0}: {answer}", leaving.since)))
        });
        View {
            state: format!("{} pods", self.pods.len()),
            waits_for: (!self.pods.is_empty()).then(|| "pods to leave".to_owned()),
            details: refused.take(100).collect(),
            ..View::default()
        }
    }
}
