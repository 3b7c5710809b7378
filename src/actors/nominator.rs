//! `nominator`: nominates planned pods to their nodes, in the order in which kube-scheduler takes them, and lets nodes open when they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster;
use crate::core::facts::{Pod, Snapshot};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::nomination::{Nomination, Nominations, Opening, heard_after, is_contested, left_aside};
use crate::telemetry::metrics::{self, NominationResult};

use super::protocol::{ClaimsMsg, NominatorMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::settings::Nominate;
use super::tree::Wiring;

/// Snapshots follow each other by milliseconds in a burst; it is looked this often whose turn is next.
const PAUSE: Duration = Duration::from_millis(50);
/// It is looked this soon whether nodes that were let open may, and whether somebody's turn has come since the order was worked out.
const WAITING: Duration = Duration::from_millis(250);
/// While nodes wait for others of their plan, it is looked this often at the latest whether those have been given up: a clock may jump.
const PATIENT: Duration = Duration::from_secs(5);
/// A node opens after this long though nominations are still being written: an API server that is busy takes 50 a second, one that is not many hundreds.
const AT_MOST: Duration = Duration::from_mins(1);
/// So many of the pods that kube-scheduler is shown again are named in the log.
const NAMED: usize = 10;
/// How many nominations are under way at a time: about a half of what the API server's flow control lets a service account have.
const SIDE_BY_SIDE: usize = 128;

/// Nominates.
#[derive(Debug)]
pub(super) struct Nominator {
    wiring: Arc<Wiring>,
    opening: Opening,
    released: Released,
    nominations: Nominations,
    /// Nominations that are being written.
    under_way: usize,
    looked: Option<Instant>,
    /// Set for the end of the pause.
    soon: Option<Timer>,
    /// Set while somebody is waited for.
    later: Option<Timer>,
    /// Nominations that were written, and those that could not be, since this instance was born.
    written: u64,
    refused: u64,
    /// Pods that kube-scheduler was shown again, since this instance was born.
    shown_again: u64,
}

/// Nodes that open when their pods are nominated, and kube-scheduler has heard of it.
#[derive(Debug, Default)]
struct Released {
    claims: BTreeSet<ClaimName>,
    /// Since when the first of them waits.
    since: Option<Instant>,
    /// How many nominations to closed nodes were written since then.
    written: usize,
    /// When there was none left to write for the first time. kube-scheduler takes some away as long as nodes are closed: these are written again, but it is not
    /// waited again until it has heard.
    complete: Option<Instant>,
}

impl Released {
    fn add(&mut self, claims: Vec<ClaimName>) {
        self.claims.extend(claims);
        self.since.get_or_insert_with(Instant::now);
        self.complete = None;
    }

    /// A nomination to a closed node was written.
    fn wrote(&mut self) {
        // Who was nominated again is not waited for.
        self.written += usize::from(self.complete.is_none());
    }

    /// Nothing is left to be written at this moment.
    fn all_written(&mut self) {
        if !self.claims.is_empty() {
            self.complete.get_or_insert_with(Instant::now);
        }
    }

    /// How long it takes until kube-scheduler is thought to know of all nominations; nothing while some are being written.
    fn unheard_for(&self) -> Option<Duration> {
        Some(heard_after(self.written).saturating_sub(self.complete?.elapsed()))
    }

    fn may_open(&self, all_written: bool) -> bool {
        let heard = all_written && self.unheard_for().is_some_and(|unheard| unheard.is_zero());
        !self.claims.is_empty() && (heard || self.since.is_some_and(|since| since.elapsed() >= AT_MOST))
    }
}

impl Nominator {
    /// Looks now, or when a moment has passed since it was last looked.
    fn look_soon(&mut self, cx: &Cx<NominatorMsg>) {
        let since = self.looked.map_or(PAUSE, |looked| looked.elapsed());
        if since >= PAUSE {
            self.look(cx);
        } else if self.soon.is_none() {
            self.soon = Some(cx.after(PAUSE.saturating_sub(since), NominatorMsg::Due));
        }
    }

    fn look(&mut self, cx: &Cx<NominatorMsg>) {
        self.looked = Some(Instant::now());
        (self.soon, self.later) = (None, None);
        if !cx.house.operations.may_write() {
            return;
        }
        let (snapshot, now) = (self.wiring.boards.snapshot(), cx.now());
        let released = self.opening.look(&snapshot, now);
        if !released.is_empty() {
            self.released.add(released);
            self.nominations.reorder();
        }
        let policy = self.wiring.settings.nominate;
        let wanted = |pod: &Pod, node: &NodeName| is_wanted(policy, pod, node, &snapshot);
        let most = SIDE_BY_SIDE.saturating_sub(self.under_way);
        for next in self.nominations.next(&snapshot, &self.released.claims, wanted, most, now) {
            self.nominate(next, cx);
        }
        let all_written = self.under_way + self.nominations.left() == 0;
        if all_written {
            self.released.all_written();
        }
        if self.released.may_open(all_written) {
            let claims = std::mem::take(&mut self.released).claims;
            self.wiring.slots.claims.cast(ClaimsMsg::Open(claims.into_iter().collect()));
        }
        let outdated = !snapshot.planned.is_empty() && self.nominations.is_outdated(now);
        let wait = if outdated || !self.released.claims.is_empty() {
            let unheard = self.released.unheard_for().filter(|unheard| !unheard.is_zero());
            Some(unheard.map_or(WAITING, |unheard| WAITING.min(unheard)))
        } else {
            self.opening.look_at().map(|at| {
                let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                wait.clamp(WAITING, PATIENT)
            })
        };
        self.later = wait.map(|wait| cx.after(wait, NominatorMsg::Due));
    }

    fn nominate(&mut self, Nomination { pod, node }: Nomination, cx: &Cx<NominatorMsg>) {
        self.under_way += 1;
        let (cluster, uid) = (Arc::clone(&self.wiring.cluster), pod.uid.clone());
        let to = node.clone();
        let call = async move { cluster.nominate(&pod.key, &pod.uid, Some(&node)).await };
        cx.start(Permits::WriteCluster, call, move |outcome| NominatorMsg::Nominated(uid, to, outcome));
    }

    fn nominated(&mut self, pod: &PodUid, node: &NodeName, outcome: &Written<()>) {
        self.under_way = self.under_way.saturating_sub(1);
        let done = matches!(outcome, Outcome::Done(()));
        metrics::nominated(if done { NominationResult::Written } else { NominationResult::Refused });
        match outcome {
            Outcome::Done(()) => {
                self.written += 1;
                if self.wiring.boards.snapshot().nodes.get(node).is_some_and(|node| !node.is_registered()) {
                    self.released.wrote();
                }
            }
            Outcome::Failed(cluster::Error::TooManyRequests { .. }) => self.nominations.forget(pod),
            // It is bound, or gone. For whatever other reason: it may still come to its node.
            _ => self.refused += 1,
        }
    }

    /// Shows pods that kube-scheduler has left aside to it again: it tries a pod, and those that lack what the pod asks for, when its nomination goes.
    fn wake(&self, cx: &Cx<NominatorMsg>) {
        if self.wiring.settings.nominate == Nominate::None || !cx.house.operations.may_write() {
            return;
        }
        let asleep = left_aside(&self.wiring.boards.snapshot());
        if asleep.is_empty() {
            return;
        }
        let pods: Vec<String> = asleep.iter().take(NAMED).map(|asleep| asleep.pod.key.to_string()).collect();
        tracing::info!(
            number = asleep.len(),
            pods = pods.join(", "),
            "kube-scheduler leaves pods aside whose nodes serve: it is shown them again"
        );
        for Nomination { pod, node } in asleep {
            let (cluster, operations) = (Arc::clone(&self.wiring.cluster), cx.house.operations.clone());
            let call = async move {
                if pod.nominated.is_none() {
                    cluster.nominate(&pod.key, &pod.uid, Some(&node)).await?;
                    // That may have taken longer than the lease. Whoever leads then finds a pod that is left aside with a nomination, and takes it away.
                    if !operations.may_write() {
                        return Ok(());
                    }
                }
                cluster.nominate(&pod.key, &pod.uid, None).await
            };
            cx.start(Permits::WriteCluster, call, NominatorMsg::Woken);
        }
    }
}

/// Whether a pod is one of those that are nominated.
fn is_wanted(policy: Nominate, pod: &Pod, node: &NodeName, snapshot: &Snapshot) -> bool {
    match policy {
        Nominate::All => true,
        Nominate::Contested => snapshot.nodes.get(node).is_some_and(|node| is_contested(pod, &node.allocatable)),
        Nominate::None => false,
    }
}

impl Behaviour for Nominator {
    type Msg = NominatorMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Nominator;

    fn born(wiring: &Self::Args, cx: &Cx<NominatorMsg>) -> Self {
        cx.cast(NominatorMsg::Look);
        Self {
            wiring: Arc::clone(wiring),
            opening: Opening::default(),
            released: Released::default(),
            nominations: Nominations::default(),
            under_way: 0,
            looked: None,
            soon: None,
            later: None,
            written: 0,
            refused: 0,
            shown_again: 0,
        }
    }

    fn handle(&mut self, message: NominatorMsg, cx: &Cx<NominatorMsg>) {
        match message {
            NominatorMsg::Look => self.look_soon(cx),
            NominatorMsg::Due => self.look(cx),
            NominatorMsg::Nominated(pod, node, outcome) => {
                self.nominated(&pod, &node, &outcome);
                self.look_soon(cx);
            }
            NominatorMsg::Wake => self.wake(cx),
            NominatorMsg::Woken(outcome) => {
                // Whoever it could not be written to is bound, gone, or shown again later.
                if matches!(outcome, Outcome::Done(())) {
                    metrics::nominated(NominationResult::Withdrawn);
                    self.shown_again += 1;
                }
            }
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let waiting = self.opening.waiting();
        let waits_for = if self.under_way > 0 {
            Some("nominations to be written".to_owned())
        } else {
            (waiting > 0).then(|| "nodes of the same plan to appear".to_owned())
        };
        View {
            state: if waits_for.is_some() { "at work" } else { "idle" }.to_owned(),
            waits_for,
            details: vec![
                ("nodes that wait to open".to_owned(), (waiting + self.released.claims.len()).to_string()),
                ("pods nominated and not bound".to_owned(), self.nominations.standing().to_string()),
                ("nominations written".to_owned(), self.written.to_string()),
                ("nominations refused".to_owned(), self.refused.to_string()),
                ("pods shown again".to_owned(), self.shown_again.to_string()),
            ],
            ..View::default()
        }
    }
}

#[cfg(test)]
#[path = "nominator_tests.rs"]
mod tests;
