//! Actors that panic or stand still on purpose: tests and the simulator prove with it that any actor may die, or hang, at any message.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Kind;
use crate::core::promises::SABOTAGE;

/// Makes actors panic or stand still. Does nothing unless it is told to; production never tells it.
#[derive(Clone, Default, Debug)]
pub struct Saboteur {
    plans: Arc<Mutex<BTreeMap<Kind, Plan>>>,
    /// Whether its panics do not say that they are on purpose.
    silent: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Plan {
    /// Messages to let pass first.
    after: u64,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// So many panics from then on.
    Panics(u64),
    /// The next message takes so long, and those behind it wait.
    Stall(Duration),
}

impl Saboteur {
    /// Makes the actors of a kind panic `times` times, after `after` more messages of that kind were handled.
    pub fn strike(&self, kind: Kind, after: u64, times: u64) {
        self.plan(kind, Plan { after, deed: Deed::Panics(times) });
    }

    /// Makes an actor of a kind stand still for so long, after `after` more messages of that kind were handled.
    pub fn stall(&self, kind: Kind, after: u64, lasting: Duration) {
        self.plan(kind, Plan { after, deed: Deed::Stall(lasting) });
    }

    /// Lets panics look from now on as if the fault were in the actor's own code.
    pub fn keep_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    fn plan(&self, kind: Kind, plan: Plan) {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, plan);
    }

    /// Whether everything that was asked for has been done.
    pub fn is_done(&self) -> bool {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Called before each message: says for how long the actor is to stand still first.
    pub(super) fn visit(&self, kind: Kind) -> Option<Duration> {
        let deed = {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            let plan = plans.get_mut(&kind)?;
            if plan.after > 0 {
                plan.after -= 1;
                return None;
            }
            let deed = plan.deed;
            match &mut plan.deed {
                Deed::Panics(times) if *times > 1 => *times -= 1,
                Deed::Panics(_) | Deed::Stall(_) => drop(plans.remove(&kind)),
            }
            deed
        };
        let stall = if let Deed::Stall(lasting) = deed { Some(lasting) } else { None };
        let words = if self.silent.load(Ordering::Relaxed) { "a defect of" } else { SABOTAGE };
        assert!(stall.is_some(), "{words} {kind}");
        stall
    }
}
