//! What the provisioner says of its plans: to `state`, to pods and NodePools, to the log and to dashboards.

use std::sync::{Arc, PoisonError};

use crate::actors::decisions::Decision;
use crate::actors::protocol::{ProvisionerMsg, Refusals, StateMsg};
use crate::actors::runtime::{Cx, Kind};
use crate::core::facts::Pod;
use crate::core::ids::{ClaimName, PodUid};
use crate::core::pools;
use crate::core::scheduling::{self, Plan, Reason};
use crate::core::writes::Regarding;
use crate::telemetry::events;
use crate::telemetry::log::rounded;
use crate::telemetry::metrics;

use super::Provisioner;
use super::life::RECONSIDER;

impl Provisioner {
    pub(super) fn publish_refusals(&mut self, plan: &Plan, epoch: u64) {
        self.refused = plan.refused.len();
        let reasons = plan
            .refused
            .iter()
            .map(|refusal| (refusal.pod.clone(), refusal.reasons.iter().map(ToString::to_string).collect()))
            .collect();
        let board = &self.wiring.boards.refusals;
        let changed = board.borrow().reasons != reasons;
        if changed {
            board.send_replace(Arc::new(Refusals { epoch, reasons }));
        }
    }

    /// Tells pods where they are to go, or why nowhere.
    pub(super) fn tell_pods(&mut self, plan: &Plan, cx: &Cx<ProvisionerMsg>) {
        let mut events = Vec::new();
        for planned in &plan.claims {
            events
                .extend(planned.pods.iter().map(|pod| events::nominated(about(pod), Some(&planned.draft.name), None)));
        }
        for placed in &plan.existing {
            let (claim, node) = (placed.claim.as_ref(), placed.node.as_ref());
            events.extend(placed.pods.iter().map(|pod| events::nominated(about(pod), claim, node)));
        }
        let snapshot = self.wiring.boards.snapshot();
        // An Event is not repeated for minutes: "not judged yet" must not be the one that people read.
        let premature = snapshot.pools.values().any(|pool| pools::is_unjudged(pool, cx.now()));
        if premature && !plan.refused.is_empty() && self.look.is_none() {
            self.look = Some(cx.after(RECONSIDER, ProvisionerMsg::Look));
        }
        for refusal in plan.refused.iter().filter(|_| !premature) {
            if let Some(pod) = snapshot.pods.get(&refusal.pod) {
                let why: Vec<String> = refusal.reasons.iter().map(ToString::to_string).collect();
                events.push(events::failed_scheduling(about(pod), &why.join("; ")));
            }
        }
        for event in events {
            self.wiring.announce(&cx.house, &mut self.said, event);
        }
    }

    /// Tells pods that the cloud has no machine for the NodeClaim that was planned for them, as far as they still wait for one.
    pub(super) fn tell_pods_of_no_capacity(
        &mut self,
        claim: &ClaimName,
        pods: &[PodUid],
        why: &str,
        cx: &Cx<ProvisionerMsg>,
    ) {
        let snapshot = self.wiring.boards.snapshot();
        let waits = |uid: &&PodUid| snapshot.pending.contains_key(*uid) || snapshot.undecided.contains_key(*uid);
        for pod in pods.iter().filter(waits).filter_map(|uid| snapshot.pods.get(uid)) {
            let event = events::insufficient_capacity_for(about(pod), claim, why);
            self.wiring.announce(&cx.house, &mut self.said, event);
        }
    }

    /// Tells NodePools that they can be used for nobody as they are written.
    pub(super) fn tell_pools(&mut self, plan: &Plan, cx: &Cx<ProvisionerMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        for reason in plan.unusable.iter().filter(|reason| reason.filters_out_all()) {
            if let Some(pool) = reason.pool().and_then(|name| snapshot.pools.get(name)) {
                let about = Regarding::Pool(pool.name.clone(), pool.uid.clone());
                let event = events::no_compatible_types(about, &reason.to_string());
                self.wiring.announce(&cx.house, &mut self.said, event);
            }
        }
    }

    /// Tells `state` about which pods the plan has decided.
    pub(super) fn tell_state(&self, plan: &Plan) {
        let new = plan.claims.iter().flat_map(|planned| &planned.pods);
        let placed = new.chain(plan.existing.iter().flat_map(|placed| &placed.pods));
        let placed = placed.map(|pod| pod.uid.clone()).collect();
        let refused = plan.refused.iter().map(|refusal| refusal.pod.clone()).collect();
        self.wiring.slots.state.cast(StateMsg::Decided { placed, refused });
    }

    pub(super) fn report(&mut self, plan: &Plan, id: &str, cx: &Cx<ProvisionerMsg>) {
        let new: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
        let existing: usize = plan.existing.iter().map(|placed| placed.pods.len()).sum();
        let leaving = self.foreseen.placed();
        let mut text = format!(
            "{new} pods on {} new nodes at {:.4} $/h, {existing} on existing ones, {} refused",
            plan.claims.len(),
            plan.price,
            plan.refused.len()
        );
        if leaving > 0 {
            text = format!("{text}, {leaving} that are about to lose their nodes");
        }
        metrics::plan_made(plan.price, plan.claims.len(), [new, existing, plan.refused.len()]);
        let ignored = plan.refused.iter().filter(|refusal| refusal.reasons.iter().any(Reason::is_invalid)).count();
        metrics::scheduling_left(Kind::Provisioner.as_str(), id, plan.refused.len(), ignored);
        if self.last.as_ref() != Some(&text) {
            tracing::info!(
                new_pods = new,
                nodeclaims = plan.claims.len(),
                price = rounded(plan.price),
                existing_pods = existing,
                refused_pods = plan.refused.len(),
                leaving_pods = (leaving > 0).then_some(leaving),
                "computed plan"
            );
            self.timeline.note(cx.now(), text.clone());
        }
        self.last = Some(text);
    }

    /// Asks beside everything else what a plan that buys nodes costs at least. Nothing waits for the answer.
    pub(super) fn seek_bound(&self, decision: &Decision, cx: &Cx<ProvisionerMsg>) {
        if decision.plan.claims.is_empty() {
            return;
        }
        let (question, plan) = (Arc::clone(&decision.question), Arc::clone(&decision.plan));
        let price = plan.price;
        let ground = Arc::clone(&self.ground);
        let work = move || {
            let problem = question.problem();
            let bound = {
                let mut ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
                scheduling::quick_lower_bound(&mut ground, &problem, &plan)
            };
            bound()
        };
        cx.compute(work, move |bound| ProvisionerMsg::Bounded(price, bound.unwrap_or_default()));
    }

    /// Tells how close a plan is to the best possible.
    pub(super) fn tell_bound(&mut self, price: f64, bound: f64, cx: &Cx<ProvisionerMsg>) {
        metrics::plan_bounded(bound);
        if bound <= 0.0 {
            return;
        }
        let over = (100.0 * (price / bound - 1.0)).max(0.0);
        tracing::info!(
            price = rounded(price),
            lower_bound = rounded(bound),
            "no plan that places the same pods is cheaper than its lower bound"
        );
        self.timeline.note(cx.now(), format!("the plan for {price:.4} $/h is within {over:.1} % of the best possible"));
    }
}

fn about(pod: &Pod) -> Regarding {
    Regarding::Pod(pod.key.clone(), pod.uid.clone())
}
