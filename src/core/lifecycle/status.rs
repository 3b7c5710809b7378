//! The status that a NodeClaim ought to have, worked out from what is observed.

use jiff::Timestamp;

use crate::core::conditions::Conditions;
use crate::core::facts::{Broken, Claim, Condition, Machine, Status};
use crate::core::labels;
use crate::core::resources::Resources;
use crate::core::writes::ClaimStatusPatch;

use super::drift::{self, Judgement};
use super::{
    Sight, Situation, consistency, consolidation, detach, doubt, holdup, hooks, initialization, mistakes, quarantine,
    reboot, registration, step, termination,
};

/// Dependents of a NodeClaim's `Ready`.
const DEPENDENTS: [&str; 3] = ["Launched", "Registered", "Initialized"];
/// A condition of those NodeClaims only that cannot be understood (False) or could not be once (True). Karpenter has it on NodePools; a
/// broken NodeClaim keeps it from reading any. `Launched` and the others keep what they say: a machine may well be there.
pub(super) const VALID: &str = "ValidationSucceeded";
/// Its reason while it is False.
const NOT_VALID: &str = "NodeClaimValidationFailed";
/// The same while a NodeClaim cannot be understood: `Ready` follows from that, too.
const DEPENDENTS_OF_BROKEN: [&str; 4] = ["Launched", "Registered", "Initialized", VALID];
/// Says that the cloud takes the machine down, or why it does not.
pub(super) const TERMINATING: &str = "InstanceTerminating";
/// Longest message of a condition (Karpenter cuts launch failures here, the three dots included).
const LONGEST_MESSAGE: usize = 1024;

/// The change that brings the status up to date; nothing when it is.
pub(super) fn wanted(situation: &Situation<'_>) -> Option<ClaimStatusPatch> {
    let claim = situation.claim;
    if let Some(broken) = claim.broken.as_ref().filter(|_| step::is_quarantined(claim)) {
        return quarantined(situation, broken);
    }
    let mut patch = ClaimStatusPatch::default();
    if let Some(machine) = situation.memory.machine().filter(|machine| mistakes::is_own(situation, machine)) {
        hydrate(&mut patch, situation, machine);
    }
    if let Some(node) = situation.node().filter(|node| node.is_registered())
        && claim.node.as_ref() != Some(&node.name)
    {
        patch.node = Some(node.name.clone());
    }
    patch.last_pod_event = consolidation::event_to_write(situation);
    let conditions = conditions(situation);
    if conditions != claim.conditions {
        patch.conditions = Some(conditions);
    }
    if patch == ClaimStatusPatch::default() {
        return None;
    }
    patch.version = Some(claim.version.clone());
    Some(patch)
}

/// A NodeClaim that cannot be understood says so, and nothing else of it is touched. Conditions are written as a whole list: where not all
/// of them could be read, none are written.
fn quarantined(situation: &Situation<'_>, broken: &Broken) -> Option<ClaimStatusPatch> {
    let claim = situation.claim;
    if broken.conditions {
        return None;
    }
    let mut conditions = begin(claim, situation.now);
    quarantine::judge(situation, &mut conditions);
    conditions.set(VALID, Status::False, NOT_VALID, &cut(&broken.problem));
    let conditions = conditions.finish();
    (conditions != claim.conditions).then(|| ClaimStatusPatch {
        version: Some(claim.version.clone()),
        conditions: Some(conditions),
        ..ClaimStatusPatch::default()
    })
}

fn hydrate(patch: &mut ClaimStatusPatch, situation: &Situation<'_>, machine: &Machine) {
    let claim = situation.claim;
    let differs = |ours: &Resources, theirs: &Resources| (ours != theirs && !theirs.is_empty()).then(|| theirs.clone());
    if claim.provider_id.as_ref() != Some(&machine.id) {
        patch.provider_id = Some(machine.id.clone());
    }
    if machine.image.is_some() && claim.image != machine.image {
        patch.image.clone_from(&machine.image);
    }
    // Capacity is the cloud's estimate at launch; it is written once.
    if claim.capacity.is_empty() {
        patch.capacity = differs(&claim.capacity, &machine.capacity);
        patch.allocatable = differs(&claim.allocatable, &machine.allocatable);
    }
}

/// The conditions of a NodeClaim, to be rewritten.
pub(super) fn begin(claim: &Claim, now: Timestamp) -> Conditions<'static> {
    // One that cannot be understood and is being deleted does not become Ready for it.
    let dependents: &[&str] = if claim.broken.is_some() { &DEPENDENTS_OF_BROKEN } else { &DEPENDENTS };
    Conditions::of(&claim.conditions, dependents, claim.generation, claim.created, now)
}

/// The conditions of a NodeClaim, and those that nobody has written yet as what they are then: Unknown since its creation.
pub fn conditions_of(claim: &Claim) -> Vec<Condition> {
    begin(claim, claim.created).as_they_are()
}

fn conditions(situation: &Situation<'_>) -> Vec<Condition> {
    let claim = situation.claim;
    let mut conditions = begin(claim, situation.now);
    quarantine::judge(situation, &mut conditions);
    let mistakes = mistakes::found(situation);
    if !mistakes.is_empty() {
        conditions.set(VALID, Status::False, NOT_VALID, &cut(&mistakes.join("; ")));
    } else if conditions.get(VALID).is_some() {
        conditions.set_true(VALID);
    }
    launched(situation, &mut conditions);
    registered(situation, &mut conditions);
    initialized(situation, &mut conditions);
    reboot::judge(situation, &mut conditions);
    if claim.deleting.is_some() {
        // The mark of deletion raises the generation; nobody judges anew whether it has drifted.
        conditions.confirm();
        terminating(situation, &mut conditions);
    } else {
        // What only a deletion brings is not believed of one that lives: it would be taken down with pods and volumes that nobody asked to leave.
        for kind in ["Drained", detach::DETACHED, TERMINATING] {
            conditions.clear(kind);
        }
        disruptable(situation, &mut conditions);
    }
    conditions.finish()
}

/// What disruption goes by, and what people should know of the Node.
fn disruptable(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    match drift::judge(situation) {
        Judgement::Drifted(reason) => conditions.set(drift::DRIFTED, Status::True, &reason, &reason),
        Judgement::Fine => conditions.clear(drift::DRIFTED),
        Judgement::Open => {}
    }
    match consolidation::wanted(situation) {
        Some(true) => conditions.set_true(consolidation::CONSOLIDATABLE),
        Some(false) => conditions.clear(consolidation::CONSOLIDATABLE),
        None => {}
    }
    let initialized = conditions.get("Initialized").is_some_and(|condition| condition.status == Status::True);
    if initialized && let Some((status, reason, message)) = consistency::wanted(situation) {
        conditions.set(consistency::CONSISTENT, status, reason, &cut(&message));
    }
}

fn launched(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    if situation.has("Launched", Status::True) || situation.memory.machine().is_some() {
        match doubt::told(situation) {
            Some((reason, message)) => conditions.set("Launched", Status::True, reason, message),
            None => conditions.set_true("Launched"),
        }
    } else if let Some(failure) = &situation.memory.launch_failure {
        conditions.set("Launched", Status::Unknown, failure.cause, &cut(&failure.message));
    } else if let Some(trouble) = situation.memory.cluster.trouble.as_ref().filter(|_| !situation.claim.has_finalizer())
    {
        let message = format!(
            "metadata.finalizers: {} could not be added, and nothing is launched before it is there ({trouble}); see that admission webhooks and RBAC \
             let joiner write NodeClaims",
            labels::TERMINATION_FINALIZER
        );
        conditions.set("Launched", Status::Unknown, "FinalizerMissing", &cut(&message));
    }
}

fn registered(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    if situation.has("Registered", Status::True) {
        conditions.set_true("Registered");
        return;
    }
    if conditions.get("Launched").is_none_or(|launched| launched.status != Status::True) {
        return;
    }
    match situation.nodes.as_slice() {
        [] => {
            let unrecognised = registration::unrecognised(situation).map(|why| format!("; {why}"));
            let message = format!("Node not registered with cluster{}", unrecognised.unwrap_or_default());
            conditions.set("Registered", Status::Unknown, "NodeNotFound", &cut(&message));
        }
        [node] if node.is_registered() => conditions.set_true("Registered"),
        [_] if let Some(pending) = hooks::pending(situation) => {
            conditions.set("Registered", Status::Unknown, "RegistrationHookPending", &cut(&pending));
        }
        [node] => {
            if let Some(why) = registration::delayed(situation, node) {
                conditions.set("Registered", Status::Unknown, "NodeNotRegistered", &cut(&why));
            }
        }
        several => {
            let names: Vec<_> = several.iter().map(|node| node.name.as_str()).collect();
            let message = format!("Nodes {} carry the same provider ID", names.join(" "));
            conditions.set("Registered", Status::False, "MultipleNodesFound", &message);
        }
    }
}

fn initialized(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    if situation.has("Initialized", Status::True) {
        conditions.set_true("Initialized");
        return;
    }
    if reboot::is_rebooting(situation.claim) {
        return;
    }
    if conditions.get("Registered").is_none_or(|registered| registered.status != Status::True) {
        return;
    }
    match initialization::blocker(situation) {
        Some((reason, blocker)) => {
            let message = initialization::overdue(situation).unwrap_or_else(|| format!("waiting for {blocker}"));
            conditions.set("Initialized", Status::Unknown, reason, &cut(&message));
        }
        None if situation.node().is_some_and(crate::core::facts::Node::is_initialized) => {
            conditions.set_true("Initialized");
        }
        None => {}
    }
}

fn terminating(situation: &Situation<'_>, conditions: &mut Conditions<'_>) {
    // By the Nodes and not by what the status says of them, which somebody may have edited: pods may be there.
    let had_node = situation.own_nodes().next().is_some();
    let said = situation.has("Drained", Status::True);
    if had_node && situation.memory.sight != Sight::Gone && (!said || termination::is_drained_in_vain(situation)) {
        if !said && termination::is_drained(situation) {
            conditions.set_true("Drained");
        } else {
            conditions.set("Drained", Status::Unknown, "Draining", &cut(&holdup::of(situation)));
            conditions.clear(detach::DETACHED);
        }
    }
    let drained = conditions.get("Drained").is_some_and(|drained| drained.status == Status::True);
    if had_node
        && drained
        && situation.memory.sight != Sight::Gone
        && let Some((status, reason, message)) = detach::wanted(situation)
    {
        conditions.set(detach::DETACHED, status, reason, &cut(&message));
    }
    if situation.memory.delete_asked.is_some() || situation.memory.sight == Sight::Gone {
        let message = termination::lingers(situation).unwrap_or_default();
        conditions.set(TERMINATING, Status::True, TERMINATING, &cut(&message));
    } else if let Some(trouble) = &situation.memory.cloud.trouble
        && (drained || !had_node)
    {
        conditions.set(TERMINATING, Status::Unknown, "TerminationFailed", &cut(trouble));
    } else if conditions.get(TERMINATING).is_some_and(|condition| condition.status == Status::Unknown)
        || termination::is_left_running(situation)
    {
        conditions.clear(TERMINATING);
    }
}

/// At most [`LONGEST_MESSAGE`] characters.
pub(super) fn cut(message: &str) -> String {
    if message.chars().count() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    message.chars().take(LONGEST_MESSAGE - 3).chain("...".chars()).collect()
}
