//! `evictor`: asks pods to leave, one queue for the cluster, and takes no for an answer until a deadline says otherwise.
//!
//! Who is asked when is [`crate::core::eviction`]'s to say, and how, [`way_out`]'s.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::cluster;
use crate::core::eviction::{Emptied, Moment, Queue, Refusal, Trouble};
use crate::core::facts::{Node, Snapshot, Status, find_condition};
use crate::core::ids::PodUid;
use crate::core::lifecycle::{PodRef, Way, way_off, way_out};
use crate::core::orphan::drained_by;
use crate::core::promises::judge_deletion;
use crate::core::steady::Leaps;
use crate::core::time::rfc3339;
use crate::core::writes::Regarding;
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::{events, metrics};

use super::protocol::{EvictorMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// How often pods that have left are forgotten, and the metrics of those that cannot are written.
const SWEEP: Duration = Duration::from_secs(5);

/// Asks pods to leave.
#[derive(Debug)]
pub(super) struct Evictor {
    wiring: Arc<Wiring>,
    queue: Queue,
    born: Instant,
    leaps: Leaps,
    /// When pods that have left are forgotten next, while there are pods.
    sweep_at: Option<Moment>,
    /// When to look again.
    alarm: Option<(Moment, Timer)>,
    said: Dedupe,
}

impl Evictor {
    fn moment(&self) -> Moment {
        self.born.elapsed()
    }

    /// Asks those whose turn it is.
    fn ask(&mut self, cx: &Cx<EvictorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let (moment, now) = (self.moment(), cx.now());
        // From before the clock was set ahead is what the auditor is about to put off.
        let valid_from = drained_by(self.leaps.look(moment, now));
        let way = |from: &Emptied, pod: &PodUid| match from {
            Emptied::Claim(claim) => way_out(snapshot.claims.get(claim)?, &snapshot, pod, now),
            Emptied::Node(_, deadline) if *deadline < valid_from => None,
            Emptied::Node(node, deadline) => way_off(snapshot.nodes.get(node)?, &snapshot, *deadline, pod, now),
        };
        while let Some((pod, way)) = self.queue.next(moment, way) {
            self.start(pod, way, cx);
        }
        self.arm(moment, cx);
    }

    fn start(&mut self, pod: PodRef, way: Way, cx: &Cx<EvictorMsg>) {
        let (cluster, asked) = (Arc::clone(&self.wiring.cluster), pod.clone());
        let grace = match way {
            Way::Delete(grace) => Some(grace),
            Way::Evict => (!self.wiring.settings.protections.budgets).then_some(1),
        };
        if let Some(grace) = grace {
            self.judge(&pod, cx);
            let about = Regarding::Pod(pod.key.clone(), pod.uid.clone());
            self.wiring.announce(&cx.house, &mut self.said, events::deleted_for_deadline(about, grace));
        }
        let call = async move {
            match grace {
                Some(grace) => cluster.delete_pod(&asked.key, &asked.uid, grace).await,
                None => cluster.evict(&asked.key, &asked.uid).await,
            }
        };
        cx.start(Permits::WriteCluster, call, move |outcome| EvictorMsg::Evicted(pod, way, outcome));
    }

    /// A pod is about to be deleted past its budgets.
    fn judge(&self, pod: &PodRef, cx: &Cx<EvictorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let Some(seen) = snapshot.pods.get(&pod.uid) else { return };
        let claims = node(&snapshot, pod).into_iter().flat_map(|node| snapshot.owners_of(node)).map(|claim| &**claim);
        let budgets = snapshot.pod_budgets.values().map(|budget| &**budget);
        if let Some(broken) = judge_deletion(seen, claims, budgets, cx.now()) {
            cx.house.promises.broken(broken);
        }
    }

    fn evicted(&mut self, pod: &PodRef, way: Way, outcome: Written<()>, cx: &Cx<EvictorMsg>) {
        let moment = self.moment();
        if way == Way::Evict {
            code(&outcome).into_iter().for_each(metrics::eviction_requested);
        }
        let refusal = match outcome {
            Outcome::Failed(cluster::Error::NotFound(_) | cluster::Error::Conflict(_)) => {
                return self.queue.gone(&pod.uid, moment);
            }
            Outcome::Failed(cluster::Error::Budget { budget, retry_after: wait, message, .. }) => {
                let (budget, answer) = self.whose(pod, budget, message);
                Refusal { answer, budget: Some(budget), wait }
            }
            Outcome::Failed(cluster::Error::TooManyRequests { retry_after: wait, message }) => {
                Refusal { answer: message, budget: None, wait }
            }
            outcome => match outcome.answer() {
                Ok(()) => {
                    if self.queue.granted(&pod.uid, way, moment) {
                        self.tell_of_leaving(pod, way, cx);
                    }
                    return;
                }
                Err(answer) => Refusal { answer, budget: None, wait: None },
            },
        };
        let is_of_budget = refusal.budget.is_some();
        let Some((trouble, news)) = self.queue.refused(&pod.uid, way, refusal, moment) else { return };
        if news {
            tracing::info!(pod = %pod.key, budget = trouble.budget.as_deref(), answer = trouble.answer, "pod not evicted, asking again");
        }
        // The API server's own trouble is nobody's business.
        if is_of_budget {
            self.tell_of_budget(pod, &trouble, cx);
        }
    }

    /// The budgets that keep a pod, and what is said of them: with their names, where the API server does not say them.
    fn whose(&self, pod: &PodRef, named: Option<String>, message: String) -> (Arc<str>, String) {
        if let Some(named) = named {
            return (named.into(), message);
        }
        let snapshot = self.wiring.boards.snapshot();
        let Some(pod) = snapshot.pods.get(&pod.uid) else { return ("".into(), message) };
        let protecting = snapshot.pod_budgets.values().filter(|budget| budget.protects(pod));
        let names: Vec<&str> = protecting.map(|budget| &*budget.key.name).collect();
        let answer = match names.as_slice() {
            [] => message,
            names => format!("{}: {}", message.trim_end_matches('.'), names.join(", ")),
        };
        (names.join("/").into(), answer)
    }

    fn tell_of_leaving(&mut self, pod: &PodRef, way: Way, cx: &Cx<EvictorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let reason = reason(&snapshot, node(&snapshot, pod));
        metrics::pod_drained(&reason);
        if way != Way::Evict {
            return;
        }
        let about = Regarding::Pod(pod.key.clone(), pod.uid.clone());
        self.wiring.announce(&cx.house, &mut self.said, events::evicted(about, &reason));
    }

    fn tell_of_budget(&mut self, pod: &PodRef, trouble: &Trouble, cx: &Cx<EvictorMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let Some(node) = node(&snapshot, pod) else { return };
        let about = Regarding::Node(node.name.clone(), node.uid.clone());
        let since = rfc3339(self.time_of(trouble.since, cx.now()));
        let event = events::eviction_blocked(about, &pod.key, &trouble.answer, &since);
        self.wiring.announce(&cx.house, &mut self.said, event);
    }

    fn time_of(&self, moment: Moment, now: Timestamp) -> Timestamp {
        let ago = SignedDuration::try_from(self.moment().saturating_sub(moment)).unwrap_or(SignedDuration::MAX);
        now.saturating_sub(ago).unwrap_or(Timestamp::MIN)
    }

    fn sweep(&mut self) {
        let moment = self.moment();
        if self.sweep_at.is_none_or(|at| moment < at) {
            return;
        }
        let snapshot = self.wiring.boards.snapshot();
        self.queue.sweep(moment, |uid| snapshot.pods.get(uid).is_some_and(|pod| !pod.is_terminal()));
        let blocked = self.queue.blocked();
        metrics::evictions_blocked(blocked.iter().map(|((namespace, budget), blocked)| {
            (&**namespace, &**budget, blocked.pods, moment.saturating_sub(blocked.since))
        }));
        self.sweep_at = None;
    }

    fn arm(&mut self, moment: Moment, cx: &Cx<EvictorMsg>) {
        if self.sweep_at.is_none() && !self.queue.is_empty() {
            self.sweep_at = Some(moment + SWEEP);
        }
        let Some(at) = self.sweep_at.into_iter().chain(self.queue.wake()).min() else { return };
        if self.alarm.as_ref().is_none_or(|(armed, _)| at < *armed) {
            let delay = at.saturating_sub(moment).max(Duration::from_millis(10));
            self.alarm = Some((at, cx.after(delay, EvictorMsg::Retry)));
        }
    }
}

/// The node of a pod.
fn node<'a>(snapshot: &'a Snapshot, pod: &PodRef) -> Option<&'a Node> {
    snapshot.nodes.get(snapshot.pods.get(&pod.uid)?.node.as_ref()?).map(|node| &**node)
}

/// Why pods leave a node that nobody gave a reason for (Karpenter's word).
const FORCEFUL: &str = "Forceful Termination";

/// Why pods leave a node: the reason of its NodeClaim's condition `DisruptionReason`; nothing when there is no NodeClaim.
fn reason(snapshot: &Snapshot, node: Option<&Node>) -> String {
    let claim = node.and_then(|node| snapshot.owners_of(node).next());
    let Some(claim) = claim else { return String::new() };
    let disrupted = find_condition(&claim.conditions, "DisruptionReason");
    let disrupted = disrupted.filter(|condition| condition.status == Status::True);
    disrupted.map_or_else(|| FORCEFUL.to_owned(), |condition| condition.reason.to_string())
}

/// The status code behind an answer; nothing when there was none.
fn code(outcome: &Written<()>) -> Option<u16> {
    let error = match outcome {
        Outcome::Done(()) => return Some(200),
        Outcome::Failed(error) => error,
        Outcome::Lost | Outcome::NotLeader | Outcome::Late => return None,
    };
    Some(match error {
        cluster::Error::NotFound(_) => 404,
        cluster::Error::Exists(_) | cluster::Error::Conflict(_) => 409,
        cluster::Error::Budget { code, .. } => *code,
        cluster::Error::TooManyRequests { .. } => 429,
        cluster::Error::Forbidden { .. } => 403,
        cluster::Error::Invalid { .. } => 422,
        cluster::Error::Temporary(_) => 503,
        cluster::Error::Unknown(_) => return None,
    })
}

impl Behaviour for Evictor {
    type Msg = EvictorMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Evictor;

    fn born(wiring: &Self::Args, _: &Cx<EvictorMsg>) -> Self {
        // Claim actors look at their drains every few seconds, and name their pods again.
        metrics::evictions_blocked([]);
        Self {
            wiring: Arc::clone(wiring),
            queue: Queue::default(),
            born: Instant::now(),
            leaps: Leaps::default(),
            sweep_at: None,
            alarm: None,
            said: Dedupe::new(),
        }
    }

    fn handle(&mut self, message: EvictorMsg, cx: &Cx<EvictorMsg>) {
        match message {
            EvictorMsg::Drain { from, evict, force } => {
                let moment = self.moment();
                let pods = evict.into_iter().map(|pod| (pod, false)).chain(force.into_iter().map(|pod| (pod, true)));
                for (pod, forced) in pods {
                    self.queue.name(&from, pod, forced, moment);
                }
            }
            EvictorMsg::Evicted(pod, way, outcome) => self.evicted(&pod, way, outcome, cx),
            EvictorMsg::Retry => {
                self.alarm = None;
                self.sweep();
            }
        }
        self.ask(cx);
    }

    fn observe(&self, now: Timestamp) -> View {
        let troubles = self.queue.troubles().map(|(pod, trouble)| {
            let since = self.time_of(trouble.since, now);
            (pod.key.to_string(), format!("since {since:.0}: {}", trouble.answer))
        });
        View {
            state: format!("{} pods", self.queue.len()),
            waits_for: (!self.queue.is_empty()).then(|| "pods to leave".to_owned()),
            details: troubles.take(100).collect(),
            ..View::default()
        }
    }
}
