//! `leader`: takes the lease and keeps it, or says that nobody here may write.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::protocol::{ClaimsMsg, LeaderMsg, PoolsMsg, ProvisionerMsg};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// Pause between two attempts (client-go's retry period).
const RETRY: Duration = Duration::from_secs(2);
/// A lease that was not renewed for this long is no longer trusted (client-go's renew deadline; the lease itself lasts 15 s).
const TRUSTED: Duration = Duration::from_secs(10);

/// Holds the lease.
#[derive(Debug)]
pub(super) struct Leader {
    wiring: Arc<Wiring>,
    /// When the request under way was sent: trust counts from there, not from its answer.
    sent: Option<Instant>,
    holder: Option<String>,
    leading: bool,
    next: Option<Timer>,
    since: Timestamp,
}

impl Leader {
    fn renew(&mut self, cx: &Cx<LeaderMsg>) {
        self.sent = Some(Instant::now());
        let (cluster, identity) = (Arc::clone(&self.wiring.cluster), self.wiring.settings.identity.clone());
        cx.start(Permits::Lease, async move { cluster.renew_lease(&identity).await }, LeaderMsg::Renewed);
    }

    fn heard(&mut self, holder: &str, cx: &Cx<LeaderMsg>) {
        let ours = holder == self.wiring.settings.identity;
        if self.holder.as_deref() != Some(holder) {
            tracing::info!(holder, ours, "lease");
            self.holder = Some(holder.to_owned());
        }
        let until = if ours { self.sent.map(|sent| sent + TRUSTED) } else { None };
        self.wiring.boards.leader_until.send_replace(until);
        self.turn(ours, cx);
    }

    /// Tells those who write that they now may, or no longer.
    fn turn(&mut self, leading: bool, cx: &Cx<LeaderMsg>) {
        if self.leading == leading {
            return;
        }
        self.leading = leading;
        self.since = cx.now();
        let slots = &self.wiring.slots;
        let names = self.wiring.boards.snapshot().claims.keys().cloned().collect();
        slots.claims.cast(ClaimsMsg::Look(names));
        slots.provisioner.cast(ProvisionerMsg::Look);
        slots.pools.cast(PoolsMsg::Look);
    }
}

impl Behaviour for Leader {
    type Msg = LeaderMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Leader;

    fn born(wiring: &Self::Args, cx: &Cx<LeaderMsg>) -> Self {
        let mut leader =
            Self { wiring: Arc::clone(wiring), sent: None, holder: None, leading: false, next: None, since: cx.now() };
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
            LeaderMsg::Renewed(outcome) => {
                match outcome {
                    Outcome::Done(lease) => self.heard(&lease.holder, cx),
                    Outcome::Failed(error) => tracing::error!(%error, "lease not renewed"),
                    Outcome::Lost | Outcome::NotLeader => tracing::error!("lease not renewed: no answer"),
                }
                let trusted = self.wiring.boards.leader_until.borrow().is_some_and(|until| Instant::now() < until);
                self.turn(trusted, cx);
                self.next = Some(cx.after(RETRY, LeaderMsg::Renew));
            }
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        View {
            state: if self.leading { "leading" } else { "standing by" }.to_owned(),
            waits_for: (!self.leading)
                .then(|| format!("the lease, held by {}", self.holder.as_deref().unwrap_or("nobody known"))),
            timeline: vec![(self.since, if self.leading { "took the lease" } else { "stood by" }.to_owned())],
            ..View::default()
        }
    }
}
