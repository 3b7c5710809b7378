//! The person on call: reads what the auditor found and does not dare to act upon, looks for oneself, and does something about it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::actors::runtime::View;
use crate::clouds::simulated::Simulated;
use crate::core::audit::Finding;
use crate::core::facts::finalizers;
use crate::core::ids::NodeName;
use crate::core::promises::Invariant;
use crate::core::writes::NodePatch;
use crate::sim::SimCluster;
use crate::sim::faults::Mishaps;
use crate::sim::invariants::{Invariants, Journal};

/// How an auditor begins whose breaker is open; why it is follows.
const OPEN: &str = "breaker open: ";

/// Somebody who can look at the world itself.
pub(super) struct OnCall {
    pub(super) cluster: SimCluster,
    pub(super) cloud: Simulated,
    pub(super) mishaps: Mishaps,
    pub(super) invariants: Invariants,
    pub(super) journal: Journal,
    /// How often something had to be decided.
    pub(super) interventions: Cell<u64>,
    /// Whether something that was read last was not true, so that it is read again soon.
    pub(super) doubts: Cell<bool>,
}

impl OnCall {
    /// Reads the auditor's page. What it names while its breaker is open, and is true, is approved; a joiner without a lease has nowhere to read an
    /// approval, so there it is taken away by hand. For what is not true nobody lifts a hand: the auditor will see that, and what it says then is read
    /// soon. As long as nothing has gone wrong there is nothing to read.
    pub(super) fn read(&self, auditor: &View) {
        self.doubts.set(false);
        let Some(why) = auditor.state.strip_prefix(OPEN) else { return };
        if self.mishaps.counts().is_empty() {
            let what = format!("somebody is asked to decide though nothing has gone wrong: {why}");
            self.invariants.broken(Invariant::NobodyIsAsked, vec![String::new()], what);
        }
        let true_ones = self.look();
        let (mut right, mut wrong) = (Vec::new(), BTreeSet::new());
        for (finding, evidence) in auditor.details.iter().filter(|(finding, _)| !is_harmless(finding)) {
            let Some(id) = evidence.strip_prefix("ID ").and_then(|rest| rest.split(',').next()) else { continue };
            match true_ones.get(finding) {
                Some(finding) => right.push(finding),
                None => drop(wrong.insert(id)),
            }
        }
        self.doubts.set(!wrong.is_empty());
        let remedy = auditor.details.iter().find(|(what, _)| what == "what to do");
        let approval = remedy.and_then(|(_, remedy)| remedy.split('\'').find(|part| part.starts_with("approve ")));
        if let Some(approval) = approval {
            let approval = without(approval, &wrong);
            if approval.starts_with("approve ") && self.cluster.store().annotate_lease(Some(&approval)) {
                self.intervene(why, &approval);
            }
            return;
        }
        if !right.is_empty() {
            self.intervene(why, "takes it away by hand");
        }
        for finding in right {
            match finding {
                Finding::OrphanMachine(id) | Finding::SurplusMachine(id) => drop(self.cloud.vanish(id)),
                // Somebody may have been faster.
                Finding::LostMachine(name, _) => drop(self.cluster.store().delete_claim(name)),
                Finding::LeftNode(name, _) => self.let_go(name),
                Finding::HiddenMachine(..) | Finding::UnmarkedMachine(_) => {}
            }
        }
    }

    /// Each time is told, and counted: who has to be called often has a breaker that opens too readily.
    fn intervene(&self, why: &str, how: &str) {
        self.interventions.set(self.interventions.get() + 1);
        self.journal.note("", || format!("PERSON {how} ({why})"));
    }

    /// What does not add up in the world itself, by its words.
    fn look(&self) -> BTreeMap<String, Finding> {
        let store = self.cluster.store();
        let machines = self.cloud.machines();
        let machines: Vec<_> = machines.iter().filter(|one| one.gone_at.is_none()).map(|one| &one.machine).collect();
        let mut found = Vec::new();
        for machine in &machines {
            let claim = store.claims().find(|claim| Some(&claim.uid) == machine.token.as_ref());
            if store.claims().any(|claim| claim.provider_id.as_ref() == Some(&machine.id)) {
                continue;
            }
            match claim {
                None => found.push(Finding::OrphanMachine(machine.id.clone())),
                Some(claim) if claim.provider_id.is_some() => found.push(Finding::SurplusMachine(machine.id.clone())),
                Some(_) => {}
            }
        }
        for claim in store.claims() {
            if claim.provider_id.as_ref().is_some_and(|id| !machines.iter().any(|machine| machine.id == *id)) {
                found.push(Finding::LostMachine(claim.name.clone(), claim.uid.clone()));
            }
        }
        for node in store.nodes().filter(|node| node.deleting.is_some() && node.has_finalizer()) {
            let claimed = store.claims().any(|claim| {
                node.is_owned_by(claim) || claim.provider_id.is_some() && claim.provider_id == node.provider_id
            });
            if !claimed && !machines.iter().any(|machine| Some(&machine.id) == node.provider_id.as_ref()) {
                found.push(Finding::LeftNode(node.name.clone(), node.uid.clone()));
            }
        }
        found.into_iter().map(|finding| (finding.to_string(), finding)).collect()
    }

    /// Takes joiner's finalizer off a Node.
    fn let_go(&self, name: &NodeName) {
        let mut store = self.cluster.store();
        let Some(node) = store.nodes().find(|node| node.name == *name).cloned() else { return };
        let patch = NodePatch { finalizers: Some(finalizers::released(&node.finalizers)), ..NodePatch::of(&node) };
        drop(store.patch_node(name, &patch));
    }
}

/// Decisions, as the auditor says them, without the approval of what is not true.
fn without(decisions: &str, wrong: &BTreeSet<&str>) -> String {
    let words: Vec<_> = decisions.split_whitespace().collect();
    let kept = words.chunks(2).filter_map(|said| {
        let [decision, ids] = said else { return None };
        let ids: Vec<_> = ids.split(',').filter(|id| *decision != "approve" || !wrong.contains(id)).collect();
        (!ids.is_empty()).then(|| format!("{decision} {}", ids.join(",")))
    });
    kept.collect::<Vec<_>>().join(" ")
}

/// Whether nothing is removed for a finding.
fn is_harmless(finding: &str) -> bool {
    finding.ends_with("it is left alone")
}

#[cfg(test)]
#[path = "oncall_tests.rs"]
mod tests;
