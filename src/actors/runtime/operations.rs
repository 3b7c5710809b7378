//! Calls that take time: they run beside the actors, under a deadline and a permit, and end in a message.
//!
//! An actor that dies does not take its calls with it: those that have been sent run on, and their answer finds nobody. The successor finds what they
//! did by looking. A change that still waited for its turn is not sent any more: whoever takes over decides anew.
//!
//! This is also the one place where a joiner that does not hold the lease is kept from writing (clients that let a write wait for its turn ask again
//! before they send it, see [`crate::licence`]), and where an API server that asks to be left alone for a while is.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::licence::{self, Licence};
use crate::{clouds, cluster};

/// Numbers the operations of one actor, so that an outdated outcome can be told from the current one.
pub type OpId = u64;

/// Most requests to the API server under way at once. The client has its own limit of requests a second; this one bounds memory.
const CLUSTER_PERMITS: usize = 256;
/// Most cloud calls of a kind under way at once: reads, launches, and other changes. Each kind has its own, because a cloud lets few launches a second
/// through: a thousand that wait for their turn must hold up neither deletions nor questions.
const CLOUD_PERMITS: usize = 128;
/// Most Events under way at once, and most that may wait: a burst of them holds up nothing else and fills no memory (client-go's queue holds 1,000 too).
const EVENT_PERMITS: usize = 16;
const WAITING_EVENTS: u64 = 1_000;
/// Longest wait for the API server; its own limit for a request is 60 s, and our client gives up at 30 s.
const CLUSTER_DEADLINE: Duration = Duration::from_secs(40);
/// Longest wait for a cloud.
const CLOUD_DEADLINE: Duration = Duration::from_mins(2);

/// Longest time for which the API server is left alone when it asks for that: nobody who acts waits longer before he tries again.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A failure that may say when to come back.
pub trait Refusal {
    /// Whether it is certain that nothing was changed.
    fn is_certain(&self) -> bool;

    /// How long to leave everybody behind the callee alone; nothing where it does not say, or means one object.
    fn pause(&self) -> Option<Duration>;
}

impl Refusal for cluster::Error {
    fn is_certain(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    fn pause(&self) -> Option<Duration> {
        if let Self::TooManyRequests { retry_after, .. } = self { *retry_after } else { None }
    }
}

impl Refusal for clouds::Error {
    fn is_certain(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// Each cloud holds its own calls back: what a cloud refuses is one kind of call, or one account's.
    fn pause(&self) -> Option<Duration> {
        None
    }
}

/// Whom a call goes to, and whether it changes anything there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permits {
    /// Reads from the API server.
    ReadCluster,
    /// Writes to the API server: only with the lease.
    WriteCluster,
    /// Tells an Event: only with the lease.
    Announce,
    /// Deletes a NodeClaim or a Node, which nothing takes back: only with the lease, and not when the API server wants to be left alone first.
    Delete,
    /// Reads from the cloud.
    ReadCloud,
    /// Launches a machine: only with the lease.
    Launch,
    /// Changes something else in the cloud: only with the lease.
    WriteCloud,
    /// The lease itself: needs no lease, and never waits, neither behind other calls nor because the API server has too much to do.
    Lease,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum Outcome<T, E> {
    /// It was answered.
    Done(T),
    /// It failed, as the callee says.
    Failed(E),
    /// No answer came in time, or the call panicked: it may or may not have taken effect.
    Lost,
    /// It was never sent, because this joiner does not hold the lease or is shutting down.
    NotLeader,
    /// It was never sent: the API server was left alone for a while, or whoever wanted it is no more, and what was decided before may be wrong by now.
    Late,
}

impl<T, E: std::fmt::Display> Outcome<T, E> {
    /// The answer, or what went wrong, in words.
    pub fn answer(self) -> Result<T, String> {
        match self {
            Self::Done(answer) => Ok(answer),
            Self::Failed(error) => Err(error.to_string()),
            Self::Lost => Err("no answer".to_owned()),
            Self::NotLeader => Err("this joiner does not hold the lease".to_owned()),
            Self::Late => Err("not sent, as it came too late".to_owned()),
        }
    }
}

/// Runs calls.
#[derive(Clone, Debug)]
pub struct Operations {
    leader_until: watch::Receiver<Option<Instant>>,
    closing: watch::Sender<bool>,
    /// Nothing more is sent, not even for the lease.
    ended: watch::Sender<bool>,
    abandoned: watch::Sender<bool>,
    cluster: Arc<Semaphore>,
    events: Arc<Semaphore>,
    announcing: Arc<AtomicU64>,
    cloud_reads: Arc<Semaphore>,
    launches: Arc<Semaphore>,
    cloud_writes: Arc<Semaphore>,
    /// Until when the API server has asked to be left alone.
    paused: Arc<Mutex<Option<Instant>>>,
    /// Renewals of the lease under way.
    renewing: watch::Sender<u64>,
    /// All other calls under way.
    under_way: watch::Sender<u64>,
}

impl Operations {
    /// `leader_until` says until when the lease is certainly ours; nothing when it is known not to be.
    pub fn new(leader_until: watch::Receiver<Option<Instant>>) -> Self {
        Self {
            leader_until,
            closing: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            abandoned: watch::Sender::new(false),
            cluster: Arc::new(Semaphore::new(CLUSTER_PERMITS)),
            events: Arc::new(Semaphore::new(EVENT_PERMITS)),
            announcing: Arc::default(),
            cloud_reads: Arc::new(Semaphore::new(CLOUD_PERMITS)),
            launches: Arc::new(Semaphore::new(CLOUD_PERMITS)),
            cloud_writes: Arc::new(Semaphore::new(CLOUD_PERMITS)),
            paused: Arc::default(),
            renewing: watch::Sender::new(0),
            under_way: watch::Sender::new(0),
        }
    }

    /// Whether this joiner is the one that acts, as far as it has heard. A renewal of the lease that is late does not change that: until its answer
    /// comes nothing is written, and nobody goes.
    pub fn leads(&self) -> bool {
        !*self.closing.borrow() && self.leader_until.borrow().is_some()
    }

    /// Whether writes are allowed at this moment.
    pub fn may_write(&self) -> bool {
        !*self.closing.borrow() && self.is_trusted()
    }

    /// Whether the lease is certainly ours.
    fn is_trusted(&self) -> bool {
        self.leader_until.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// What clients ask before they send a write, once it has waited for its turn; `withheld` says afterwards whether it was refused. Calls that read
    /// have one, too: a cloud may write the marks that a machine lacks when it looks for it. What was under way when joiner began to end may go on.
    fn licence(&self, withheld: Arc<AtomicBool>) -> Licence {
        let operations = self.clone();
        Arc::new(move || {
            let holds = !*operations.ended.borrow() && operations.is_trusted();
            withheld.fetch_or(!holds, Relaxed);
            holds
        })
    }

    /// Whether an Event can be told now; what cannot is said again when it is news again.
    pub fn may_announce(&self) -> bool {
        self.announcing.load(Relaxed) < WAITING_EVENTS
    }

    /// Calls that have been started and have not ended.
    pub fn under_way(&self) -> u64 {
        *self.under_way.borrow()
    }

    /// Waits for as long as the API server has asked for, and says whether it has.
    async fn pause(&self) -> bool {
        let paused = || *self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waited = false;
        while let Some(until) = paused().filter(|until| Instant::now() < *until) {
            tokio::time::sleep_until(until).await;
            waited = true;
        }
        waited
    }

    fn pause_for(&self, wait: Duration) {
        let until = Instant::now() + wait.min(LONGEST_PAUSE);
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        if paused.is_none_or(|paused| paused < Instant::now()) {
            tracing::warn!(seconds = wait.as_secs(), "the API server has too much to do; it is left alone for a while");
        }
        *paused = (*paused).max(Some(until));
    }

    /// Runs a call and hands its outcome to `then`. A change is made only if it `is_wanted` still when its turn comes.
    pub fn start<T, E>(
        &self,
        permits: Permits,
        is_wanted: impl Fn() -> bool + Send + Sync + 'static,
        call: impl Future<Output = Result<T, E>> + Send + 'static,
        then: impl FnOnce(Outcome<T, E>) + Send + 'static,
    ) where
        T: Send + 'static,
        E: Refusal + Send + 'static,
    {
        let (gate, deadline) = match permits {
            Permits::ReadCluster | Permits::WriteCluster | Permits::Delete => {
                (Some(Arc::clone(&self.cluster)), CLUSTER_DEADLINE)
            }
            Permits::Announce => (Some(Arc::clone(&self.events)), CLUSTER_DEADLINE),
            Permits::ReadCloud => (Some(Arc::clone(&self.cloud_reads)), CLOUD_DEADLINE),
            Permits::Launch => (Some(Arc::clone(&self.launches)), CLOUD_DEADLINE),
            Permits::WriteCloud => (Some(Arc::clone(&self.cloud_writes)), CLOUD_DEADLINE),
            Permits::Lease => (None, CLUSTER_DEADLINE),
        };
        let writes = !matches!(permits, Permits::ReadCluster | Permits::ReadCloud | Permits::Lease);
        let to_cluster =
            matches!(permits, Permits::ReadCluster | Permits::WriteCluster | Permits::Announce | Permits::Delete);
        let operations = self.clone();
        if permits == Permits::Lease && *self.ended.borrow() {
            return;
        }
        // Nobody waits for a renewal of the lease, which may be followed by the next before it ends.
        let count = if permits == Permits::Lease { &self.renewing } else { &self.under_way }.clone();
        count.send_modify(|calls| *calls += 1);
        let announces = u64::from(permits == Permits::Announce);
        self.announcing.fetch_add(announces, Relaxed);
        let mut abandoned = self.abandoned.subscribe();
        tokio::spawn(async move {
            let run = async {
                let _permit = match &gate {
                    Some(gate) => gate.acquire().await.ok(),
                    None => None,
                };
                if to_cluster && operations.pause().await && permits == Permits::Delete {
                    return Outcome::Late;
                }
                if writes && !is_wanted() {
                    return Outcome::Late;
                }
                if writes && !operations.may_write() {
                    return Outcome::NotLeader;
                }
                // A panic ends the call and not its caller, who hears that nobody knows what became of it.
                let withheld = Arc::new(AtomicBool::new(false));
                let call = licence::under(operations.licence(Arc::clone(&withheld)), call);
                let call = AssertUnwindSafe(call).catch_unwind();
                match tokio::time::timeout(deadline, call).await {
                    Ok(Ok(Ok(answer))) => Outcome::Done(answer),
                    Ok(Ok(Err(error))) if withheld.load(Relaxed) && error.is_certain() => Outcome::NotLeader,
                    Ok(Ok(Err(error))) => {
                        if let Some(wait) = error.pause().filter(|_| to_cluster) {
                            operations.pause_for(wait);
                        }
                        Outcome::Failed(error)
                    }
                    Ok(Err(_)) => {
                        tracing::error!(to = ?permits, "a call failed in its own code");
                        Outcome::Lost
                    }
                    Err(_) => Outcome::Lost,
                }
            };
            tokio::select! {
                biased;
                _ = abandoned.wait_for(|abandoned| *abandoned) => return,
                outcome = run => then(outcome),
            }
            operations.announcing.fetch_sub(announces, Relaxed);
            count.send_modify(|calls| *calls -= 1);
        });
    }

    /// Waits for a renewal of the lease that is under way, at most for so long: it would take the lease again that is given back meanwhile.
    pub async fn lease_rests(&self, patience: Duration) {
        // Who waits longer is late for the end itself.
        none_left(&self.renewing, patience).await;
    }

    /// Lets nothing begin and nothing end any more, as if the process were killed: calls under way are dropped where they stand.
    pub fn abandon(&self) {
        self.closing.send_replace(true);
        self.ended.send_replace(true);
        self.abandoned.send_replace(true);
    }

    /// Lets no new write begin, and waits until those under way have ended, at most for `patience`. Says whether all did. What still waits for its turn
    /// then is not sent any more.
    pub async fn close(&self, patience: Duration) -> bool {
        self.closing.send_replace(true);
        let in_time = none_left(&self.under_way, patience).await;
        self.ended.send_replace(true);
        in_time
    }
}

/// Waits until none of these calls is under way, at most for `patience`. Says whether none is.
async fn none_left(calls: &watch::Sender<u64>, patience: Duration) -> bool {
    tokio::time::timeout(patience, calls.subscribe().wait_for(|calls| *calls == 0)).await.is_ok()
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
