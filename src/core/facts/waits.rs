//! How long pods wait: for a decision, for a node, until they are ready.
//!
//! Kept beside the snapshot and not in it: these are moments by joiner's own clock, which no list brings back. A pod is in here from the
//! moment that it is first seen pending until it is ready, has ended or is gone.

use std::time::Duration;

use imbl::OrdMap;
use jiff::Timestamp;

use crate::core::ids::PodUid;

use super::{Pod, PodPhase};

/// What is remembered of a pod that is not ready yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wait {
    /// When it was first seen that a new node could help it.
    pub acked: Option<Timestamp>,
    /// When a plan first decided about it: gave it a place, or refused it.
    pub decided: Option<Timestamp>,
    /// Since when plans have a place for it.
    pub planned: Option<Timestamp>,
    /// Whether its binding was reported.
    bound: bool,
}

/// How long something took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Took {
    /// From the creation of the pod.
    pub since_created: Duration,
    /// From the first of the plans that have a place for it; nothing when there is none.
    pub since_planned: Option<Duration>,
}

/// What a pod has reached since it was last seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reached {
    /// It was bound to a node.
    pub bound: Option<Took>,
    /// It became ready.
    pub started: Option<Took>,
}

/// All pods that wait. Copying it copies a pointer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Waits(OrdMap<PodUid, Wait>);

impl Waits {
    /// What is remembered of a pod.
    pub fn get(&self, uid: &PodUid) -> Option<&Wait> {
        self.0.get(uid)
    }

    /// How many pods wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no pod waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A pod was seen; answers what it has reached. Pods that were never seen pending reach nothing: nobody knows what they waited for.
    pub fn see(&mut self, pod: &Pod, now: Timestamp) -> Reached {
        let known = self.0.get(&pod.uid).copied();
        let mut wait = match known {
            Some(wait) => wait,
            None if pod.phase == PodPhase::Pending => Wait::default(),
            None => return Reached::default(),
        };
        if pod.is_provisionable() {
            wait.acked.get_or_insert(now);
        }
        let took = |at: Timestamp| Took {
            since_created: between(pod.created, at),
            since_planned: wait.planned.map(|planned| between(planned, at)),
        };
        let bound = pod.scheduled.filter(|_| !wait.bound).map(took);
        let started = pod.ready.filter(|_| pod.phase == PodPhase::Running).map(took);
        wait.bound |= bound.is_some();
        if started.is_some() || pod.is_terminal() {
            self.0.remove(&pod.uid);
        } else if known != Some(wait) {
            self.0.insert(pod.uid.clone(), wait);
        }
        Reached { bound, started }
    }

    /// A plan has a place for some pods and refuses others. Answers how long those had waited about whom nobody had decided before.
    pub fn decided(&mut self, placed: &[PodUid], refused: &[PodUid], now: Timestamp) -> Vec<Duration> {
        let mut first = Vec::new();
        let all = placed.iter().map(|uid| (uid, true)).chain(refused.iter().map(|uid| (uid, false)));
        for (uid, has_place) in all {
            let Some(known) = self.0.get(uid).filter(|wait| !wait.bound) else { continue };
            let mut wait = *known;
            wait.planned = if has_place { wait.planned.or(Some(now)) } else { None };
            if let (None, Some(acked)) = (wait.decided, wait.acked) {
                first.push(between(acked, now));
            }
            wait.decided.get_or_insert(now);
            if wait != *known {
                self.0.insert(uid.clone(), wait);
            }
        }
        first
    }

    /// A pod is no more.
    pub fn gone(&mut self, uid: &PodUid) {
        self.0.remove(uid);
    }

    /// Forgets the pods for which this is false.
    pub fn retain(&mut self, is_there: impl Fn(&PodUid) -> bool) {
        let lost: Vec<PodUid> = self.0.keys().filter(|uid| !is_there(uid)).cloned().collect();
        for uid in lost {
            self.0.remove(&uid);
        }
    }
}

/// The time from one moment to another; none when the second came first, as moments of different clocks may.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
