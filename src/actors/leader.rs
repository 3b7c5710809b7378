//! `leader`: takes the lease and keeps it, or says that nobody here may write.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::cluster;
use crate::core::promises::LEASE_TRUSTED;
use crate::core::writes::Lease;
use crate::telemetry::metrics;

use super::protocol::{AuditorMsg, LeaderMsg, NominatorMsg, PoolsMsg, ProvisionerMsg, StaticsMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// Pause between two attempts (client-go's retry period).
const RETRY: Duration = Duration::from_secs(2);
/// An attempt that is not answered for so long is left to itself, and another one begins: the lease is trusted for ten seconds, and answers that are
/// lost must not cost it. Two may be.
const PATIENCE: Duration = Duration::from_secs(3);

/// Holds the lease.
#[derive(Debug)]
pub(super) struct Leader {
    wiring: Arc<Wiring>,
    /// When the last attempt was sent. Trust counts from when the one that is answered was, not from its answer.
    sent: Option<Instant>,
    /// When the last attempt was sent that has been answered: answers to those before it are outdated.
    answered: Option<Instant>,
    holder: Option<String>,
    leading: bool,
    /// Why the last attempt failed.
    trouble: Option<String>,
    next: Option<Timer>,
    since: Timestamp,
}

impl Leader {
    fn renew(&mut self, cx: &Cx<LeaderMsg>) {
        let sent = Instant::now();
        self.sent = Some(sent);
        let (cluster, identity) = (Arc::clone(&self.wiring.cluster), self.wiring.settings.identity.clone());
        let record = self.wiring.boards.record.clone();
        let call = async move { cluster.renew_lease(&identity, &|| record.borrow().clone()).await };
        cx.start(Permits::Lease, call, move |outcome| LeaderMsg::Renewed(sent, outcome));
        self.next = Some(cx.after(PATIENCE, LeaderMsg::Renew));
    }

    /// An attempt ended, perhaps not the last one.
    fn renewed(&mut self, sent: Instant, outcome: Written<Lease>, cx: &Cx<LeaderMsg>) {
        if self.answered.is_some_and(|answered| sent < answered) {
            return;
        }
        // One whose renewal came in between, most likely this joiner's own: a later attempt is on its way, and sees it.
        if self.sent != Some(sent) && matches!(outcome, Outcome::Failed(cluster::Error::Conflict(_))) {
            return;
        }
        let trouble = match outcome.answer() {
            Ok(lease) => {
                self.answered = Some(sent);
                self.heard(lease, sent);
                None
            }
            Err(trouble) => Some(trouble),
        };
        self.troubled(trouble);
        let trusted = self.wiring.boards.leader_until.borrow().is_some_and(|until| Instant::now() < until);
        if self.leading && !trusted && self.trouble.is_some() {
            tracing::error!("lease lost: nothing is written until it is renewed");
        }
        if !trusted {
            self.wiring.boards.leader_until.send_replace(None);
        }
        self.turn(trusted, cx);
        if self.sent == Some(sent) {
            self.next = Some(cx.after(RETRY, LeaderMsg::Renew));
        }
    }

    fn heard(&mut self, lease: Lease, sent: Instant) {
        let boards = &self.wiring.boards;
        let (holder, said, written) = (lease.holder.clone(), lease.audit.clone(), lease.record.clone());
        let settings = &self.wiring.settings;
        let ours = holder == settings.identity || !settings.protections.lease;
        let before = boards.lease.send_replace(Some(lease));
        // What stands there need not be written again; what another has written since is not to be overwritten.
        boards.record.send_if_modified(|record| {
            let is_over = record.is_some() && (!ours || *record == written);
            record.take_if(|_| is_over);
            is_over
        });
        self.trust(&holder, ours.then_some(sent));
        if before.is_some_and(|before| before.audit != said) {
            self.wiring.slots.auditor.cast(AuditorMsg::Tick);
        }
    }

    /// Knows who holds the lease, and, if that is us, until when it certainly is.
    fn trust(&mut self, holder: &str, since: Option<Instant>) {
        if self.holder.as_deref() != Some(holder) {
            tracing::info!(holder, ours = since.is_some(), "lease");
            self.holder = Some(holder.to_owned());
        }
        let until = since.map(|since| since + LEASE_TRUSTED);
        let before = self.wiring.boards.leader_until.send_replace(until);
        let now = Instant::now();
        if self.leading && before.is_some_and(|before| before <= now) && until.is_some_and(|until| now < until) {
            tracing::warn!("the lease was renewed late: what was not written meanwhile is looked at again");
            self.nudge();
        }
    }

    /// An attempt ended: trouble is said once, and so is its end.
    fn troubled(&mut self, trouble: Option<String>) {
        match &trouble {
            Some(error) if self.trouble != trouble => tracing::warn!(error, "lease not renewed, trying again"),
            None if self.trouble.is_some() => tracing::info!("lease renewed again"),
            _ => {}
        }
        self.trouble = trouble;
    }

    /// Tells those who write that they now may, or no longer.
    fn turn(&mut self, leading: bool, cx: &Cx<LeaderMsg>) {
        if self.leading == leading {
            return;
        }
        self.leading = leading;
        metrics::leading(&self.wiring.settings.lease_name, leading);
        self.since = cx.now();
        if !leading {
            self.wiring.slots.auditor.cast(AuditorMsg::StandBy);
        }
        self.nudge();
    }

    /// Has all those look who act for the cluster: what they were to write while nobody could is not asked for again.
    fn nudge(&self) {
        let slots = &self.wiring.slots;
        self.wiring.stir(self.wiring.boards.snapshot().claims.keys().cloned());
        slots.provisioner.cast(ProvisionerMsg::Look);
        slots.pools.cast(PoolsMsg::Look);
        slots.statics.cast(StaticsMsg::Look);
        slots.nominator.cast(NominatorMsg::Look);
    }
}

impl Behaviour for Leader {
    type Msg = LeaderMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Leader;

    fn born(wiring: &Self::Args, cx: &Cx<LeaderMsg>) -> Self {
        let mut leader = Self {
            wiring: Arc::clone(wiring),
            sent: None,
            answered: None,
            holder: None,
            leading: false,
            trouble: None,
            next: None,
            since: cx.now(),
        };
        cx.cast(LeaderMsg::Renew);
        if !wiring.settings.leader_election {
            // Far enough for any process; `Instant` cannot hold much more.
            wiring.boards.leader_until.send_replace(Some(Instant::now() + Duration::from_hours(24 * 365 * 30)));
            leader.holder = Some(wiring.settings.identity.clone());
        }
        leader
    }

    fn handle(&mut self, message: LeaderMsg, cx: &Cx<LeaderMsg>) {
        match message {
            LeaderMsg::Renew if !self.wiring.settings.leader_election => self.turn(true, cx),
            LeaderMsg::Renew => self.renew(cx),
            LeaderMsg::Renewed(sent, outcome) => self.renewed(sent, outcome, cx),
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        View {
            state: if self.leading { "leading" } else { "standing by" }.to_owned(),
            waits_for: self.trouble.clone().or_else(|| {
                let holder = self.holder.as_deref().unwrap_or("nobody known");
                (!self.leading).then(|| format!("the lease, held by {holder}"))
            }),
            timeline: vec![(self.since, if self.leading { "took the lease" } else { "stood by" }.to_owned())],
            ..View::default()
        }
    }
}
