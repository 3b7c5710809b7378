//! Decisions: what was planned, and from what, so that somebody can ask why later on.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Catalog, Pod, Snapshot};
use crate::core::ids::{ClaimName, PodUid};
use crate::core::scheduling::{Plan, Problem, Settings};

/// Most plans with new NodeClaims that are remembered.
const PLANS: usize = 32;
/// Most pods in them. A plan of more is remembered all the same, alone.
const PODS: usize = 100_000;

/// What the solver was asked, complete: asked again, it answers the same.
#[derive(Clone, Debug)]
pub struct Question {
    /// When.
    pub at: Timestamp,
    /// The cluster. It shares its structure with later ones: keeping it costs what has changed since.
    pub snapshot: Arc<Snapshot>,
    /// What could be bought.
    pub catalog: Arc<Catalog>,
    /// The pods that needed a place.
    pub pods: Vec<Arc<Pod>>,
    /// How to solve.
    pub settings: Settings,
    /// Keys of the cloud that count as well-known.
    pub label_keys: Vec<&'static str>,
}

impl Question {
    /// The same, as the solver takes it.
    pub fn problem(&self) -> Problem<'_> {
        let mut problem = Problem::new(&self.snapshot, &self.catalog, &self.pods, &self.settings);
        problem.label_keys = &self.label_keys;
        problem
    }
}

/// A question and what was decided.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What was asked.
    pub question: Arc<Question>,
    /// What is to be done.
    pub plan: Arc<Plan>,
}

/// The latest decision, and those with which NodeClaims were created, as far back as memory allows: at most 32 of them with 100,000 pods.
/// Copying it copies a few pointers.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    latest: Option<Decision>,
    /// The latest first.
    buying: Vec<Decision>,
}

impl Decisions {
    /// A further decision.
    #[must_use]
    pub fn and(&self, decision: Decision) -> Self {
        let mut buying = self.buying.clone();
        if !decision.plan.claims.is_empty() {
            buying.insert(0, decision.clone());
            let mut pods = 0_usize;
            let mut few = |decision: &Decision| {
                pods = pods.saturating_add(decision.question.pods.len());
                pods <= PODS
            };
            let kept = buying.iter().take(PLANS).take_while(|decision| few(decision)).count();
            buying.truncate(kept.max(1));
        }
        Self { latest: Some(decision), buying }
    }

    /// The latest decision about a pod.
    pub fn about_pod(&self, pod: &PodUid) -> Option<&Decision> {
        let asked = |decision: &&Decision| decision.question.pods.iter().any(|one| one.uid == *pod);
        self.latest.iter().chain(&self.buying).find(asked)
    }

    /// The decision to create a NodeClaim.
    pub fn about_claim(&self, name: &ClaimName) -> Option<&Decision> {
        self.buying.iter().find(|decision| decision.plan.claims.iter().any(|planned| planned.draft.name == *name))
    }
}

#[cfg(test)]
#[path = "decisions_tests.rs"]
mod tests;
