//! Panics on purpose: tests and the simulator prove with it that any actor may die at any message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Kind;

/// Makes actors panic. Does nothing unless it is told to; production never tells it.
#[derive(Clone, Default, Debug)]
pub struct Saboteur(Arc<Mutex<BTreeMap<Kind, Plan>>>);

#[derive(Debug)]
struct Plan {
    /// Messages to let pass first.
    after: u64,
    /// How many panics to cause from then on.
    times: u64,
}

impl Saboteur {
    /// Makes the actors of a kind panic `times` times, after `after` more messages of that kind were handled.
    pub fn strike(&self, kind: Kind, after: u64, times: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, Plan { after, times });
    }

    /// Whether everything that was asked for has been done.
    pub fn is_done(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Called before each message.
    pub(super) fn visit(&self, kind: Kind) {
        let strikes = {
            let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match plans.get_mut(&kind) {
                None => false,
                Some(plan) if plan.after > 0 => {
                    plan.after -= 1;
                    false
                }
                Some(plan) => {
                    plan.times = plan.times.saturating_sub(1);
                    if plan.times == 0 {
                        plans.remove(&kind);
                    }
                    true
                }
            }
        };
        assert!(!strikes, "sabotage of {kind}");
    }
}
