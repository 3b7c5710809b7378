//! Termination: taint, drain, volumes detached, machine gone (confirmed), finalizers off, in this order and never another.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Effect, Machine, Node, Status, Taint, finalizers};
use crate::core::ids::{NodeName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::time::{later, rfc3339};
use crate::core::writes::{ClaimPatch, NodePatch};

use super::drain::{Drain, is_waited_for};
use super::status::TERMINATING;
use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation, detach, doubt, liveness, mistakes, whereabouts};

/// How often the cloud is asked whether a machine is gone (Karpenter's value).
const ASK_AGAIN: i64 = 5;
/// Minutes after which a machine that was ordered down ought to be gone; a shutdown takes a minute or two.
const LINGERS: i64 = 5;
/// An order that was accepted and then refused so often in a row is refused steadily.
const REFUSED: u32 = 3;
/// How often a drain is looked at though no pod was heard of: deadlines and stuck pods need the clock.
const LOOK_AGAIN: i64 = 10;
/// Seconds for which the API server's word that a node is empty is good.
pub(super) const GOOD_FOR: i64 = 60;
/// Seconds after the deadline for which pods may end that were deleted on a Node that cannot be closed.
const GIVEN_UP: i64 = 60;
/// Shortest drain: kube-scheduler needs a moment to see the taint (Karpenter's `MinDrainTime`).
const SHORTEST_DRAIN: SignedDuration = SignedDuration::from_secs(5);

/// What is next for a NodeClaim that is being deleted.
pub(super) fn next(situation: &Situation<'_>) -> Step {
    let claim = situation.claim;
    if claim.finalizers.is_empty() {
        return Step::rest(Phase::Gone);
    }
    if let Some(patch) = announce_deadline(claim) {
        return Step::act(Phase::Draining, Act::PatchClaim(patch));
    }
    // Whose machine and Node it is comes before everything that is done to them. A cloud that does not answer holds nothing up.
    if situation.memory.sight != Sight::Gone
        && situation.memory.delete_asked.is_none()
        && situation.memory.cloud.lasts_until(situation.now).is_none()
        && let Some(step) = mistakes::look_up(situation, Phase::Draining).or_else(|| look_for_order(situation))
    {
        return step;
    }
    if let Some(step) = delete_nodes(situation) {
        return step;
    }
    if let Some(step) = empty_nodes(situation) {
        return step;
    }
    if let Some(step) = detach::next(situation) {
        return step;
    }
    if let Some(name) = unseen(situation) {
        return Step::act(Phase::Draining, Act::GetNode(name.clone()));
    }
    if let Some(step) = prove_empty_still(situation) {
        return step;
    }
    if let Some(step) = take_down(situation) {
        return step;
    }
    if let Some(node) = situation.nodes.iter().find(|node| node.has_finalizer()) {
        return Step::patch_node(situation, Phase::Terminating, node, without_finalizer(node), "the Node to vanish");
    }
    // Somebody else's finalizer may keep a Node; the NodeClaim goes last, so that whoever looks after the Node finds it.
    if let Some(node) = situation.own_nodes().next() {
        return kept(situation, Step::wait(Phase::Terminating, format!("Node {} to vanish", node.name)));
    }
    // Whoever took joiner's finalizer off while another one stayed has not ended the machine: that was done all the same.
    if !claim.has_finalizer() {
        let others = claim.finalizers.join(", ");
        let wait = format!("others to take their finalizers off the NodeClaim: {others}");
        return kept(situation, Step::wait(Phase::Gone, wait));
    }
    let version = Some(Arc::clone(&claim.version));
    let finalizers = Some(finalizers::released(&claim.finalizers));
    Step::act(Phase::Terminating, Act::PatchClaim(ClaimPatch { version, finalizers, ..ClaimPatch::default() }))
}

/// Every Node is told to go first: its finalizer keeps it until the machine is confirmed gone, and is put back before that, where somebody has taken it
/// off. Without its Node nobody knows which pods are still to leave.
fn delete_nodes(situation: &Situation<'_>) -> Option<Step> {
    let node = situation.own_nodes().find(|node| node.deleting.is_none())?;
    if situation.memory.sight != Sight::Gone && !node.has_finalizer() {
        let patch = NodePatch { finalizers: Some(finalizers::held(&node.finalizers)), ..NodePatch::of(node) };
        return Some(Step::patch_node(situation, Phase::Draining, node, patch, "the Node to show its finalizer"));
    }
    Some(Step::act(Phase::Draining, Act::DeleteNode(node.name.clone(), node.uid.clone())))
}

/// Waits for others to take their finalizers off, and says so when they take their time.
fn kept(situation: &Situation<'_>, wait: Step) -> Step {
    match mistakes::kept_from(situation) {
        Some(from) if from > situation.now => wait.look_at(from),
        Some(_) => step::tell_then_wait(situation, wait),
        None => wait,
    }
}

/// When the drain must be over, if there is a deadline. One that cannot be read is the one that would have been written; where there is none
/// either, the drain goes on politely: nothing is deleted by mistake, and nothing stands still.
pub fn deadline(claim: &Claim) -> Option<Timestamp> {
    let text = claim.annotations.get(labels::TERMINATION_TIMESTAMP)?;
    text.parse().ok().or_else(|| granted(claim))
}

/// The end of the termination grace period.
fn granted(claim: &Claim) -> Option<Timestamp> {
    Some(later(claim.deleting?, claim.termination_grace?))
}

/// The Node that the NodeClaim has and that is not to be seen. A watch that began anew with an old list shows none; its pods and volumes are there
/// all the same. Only the API server can say that it is gone, before its machine goes.
fn unseen<'a>(situation: &Situation<'a>) -> Option<&'a NodeName> {
    let memory = situation.memory;
    if memory.sight == Sight::Gone || memory.delete_asked.is_some() {
        return None;
    }
    let name = situation.claim.node.as_ref().filter(|name| memory.gone_node.as_ref() != Some(name))?;
    (!situation.snapshot.nodes.contains_key(name)).then_some(name)
}

/// Whether the drain must be over.
pub(super) fn is_overdue(situation: &Situation<'_>) -> bool {
    deadline(situation.claim).is_some_and(|deadline| deadline <= situation.now)
}

/// The annotation that fixes the deadline of a NodeClaim with a termination grace period. Written once, and never moved.
fn announce_deadline(claim: &Claim) -> Option<ClaimPatch> {
    if claim.annotations.contains_key(labels::TERMINATION_TIMESTAMP) {
        return None;
    }
    Some(with_deadline(claim, granted(claim)?))
}

/// The write that says when the drain must be over.
pub(super) fn with_deadline(claim: &Claim, deadline: Timestamp) -> ClaimPatch {
    let annotations = Labels::from([(labels::TERMINATION_TIMESTAMP.into(), rfc3339(deadline).into())]);
    ClaimPatch { version: Some(Arc::clone(&claim.version)), annotations, ..ClaimPatch::default() }
}

/// Taints the nodes and lets their pods leave; nothing once they are empty.
fn empty_nodes(situation: &Situation<'_>) -> Option<Step> {
    // A machine that is gone has no pods to wait for.
    if situation.memory.sight == Sight::Gone {
        return None;
    }
    if situation.has("Drained", Status::True) && !is_drained_in_vain(situation) {
        return None;
    }
    let nodes: Vec<&Arc<Node>> = situation.own_nodes().collect();
    if nodes.is_empty() {
        return None;
    }
    if let Some(step) = look_for_machine(situation, &nodes) {
        return Some(step);
    }
    let look = step::after(situation.now, LOOK_AGAIN);
    if let Some((node, patch)) = nodes.iter().find_map(|node| Some((node, close(node)?))) {
        let drain = situation.drain.as_ref();
        if situation.memory.cluster.failures > 0 {
            // A taint that is refused or taken back each time holds up no deadline: pods whose time is up go, and in the end so does the machine, on which there
            // are always new ones.
            if deadline(situation.claim).is_some_and(|at| step::after(at, GIVEN_UP) <= situation.now) {
                return None;
            }
            if let Some(act) = drain.filter(|drain| !drain.force.is_empty()).and_then(ask_to_leave) {
                let mut step = Step::act(Phase::Draining, act);
                step.waits_for = Some("pods to leave a Node that cannot be closed".to_owned());
                return Some(step.look_at(look));
            }
        }
        let step = Step::patch_node(situation, Phase::Draining, node, patch, "the Node to show its taint");
        return Some(match drain.and_then(|drain| drain.force_at) {
            Some(force_at) => step.look_at(force_at),
            None => step,
        });
    }
    let drain = situation.drain.as_ref()?;
    // First say that the drain has begun; when nobody is left for a while, that it is over.
    let begun = situation.has("Drained", Status::Unknown);
    if begun && drain.waiting == 0 {
        let over = end_of_shortest_drain(situation);
        if situation.now < over {
            return Some(Step::wait(Phase::Draining, "the shortest time of a drain to pass").look_at(over));
        }
        if let Some(step) = prove_empty(situation, over) {
            return Some(step);
        }
        // Asked at once, so that where there are none one write says both.
        if let Some(act) = detach::ask(situation) {
            return Some(Step::act(Phase::Draining, act));
        }
    }
    if !begun || drain.waiting == 0 {
        // That nothing is to be written does not mean that the nodes are empty.
        let wait = || Step::wait(Phase::Draining, "the drain to be written down").look_at(look);
        return Some(step::write_status(situation, Phase::Draining).unwrap_or_else(wait));
    }
    // What is to be said meanwhile is said before pods are asked again, unless it cannot be written: that holds up no drain. Nor does it shorten the grace of
    // those whose time is up.
    if drain.force.is_empty()
        && let Some(step) = step::tell(situation, Phase::Draining)
    {
        return Some(step);
    }
    let look = drain.force_at.map_or(look, |force_at| look.min(force_at));
    if let Some(act) = ask_to_leave(drain) {
        let mut step = Step::act(Phase::Draining, act);
        step.waits_for = Some(format!("{} pods to leave", drain.waiting));
        return Some(step.look_at(look));
    }
    let mut wait = format!("{} pods to leave", drain.waiting);
    if !drain.protected.is_empty() {
        wait = format!("{wait}; {} must not be disrupted (karpenter.sh/do-not-disrupt)", drain.protected.join(", "));
    }
    let step = Step::wait(Phase::Draining, wait);
    Some(step.look_at(look))
}

/// The kubelet of a node that is not Ready may never confirm that pods have ended or volumes are detached: asks the cloud whether there is a machine at
/// all, now and again. A cloud that does not answer holds nothing up: everything else goes on meanwhile.
pub(super) fn look_for_machine(situation: &Situation<'_>, nodes: &[&Arc<Node>]) -> Option<Step> {
    if nodes.iter().any(|node| node.is_ready()) {
        return None;
    }
    // Not under the ID that the object has: whether it is there under its mark is known at once.
    if situation.memory.sight == Sight::Missing {
        let pauses = whereabouts::pause(situation).is_some();
        return (!pauses).then(|| whereabouts::seek(situation, Phase::Draining));
    }
    let wait = Step::wait(Phase::Draining, "the cloud to say whether the machine exists");
    let again = situation.memory.asked.map(|asked| step::after(asked, LOOK_AGAIN));
    if let Some(again) = again.filter(|again| situation.now < *again) {
        // The first answer is worth a moment: where there is no machine, nobody need be asked to leave.
        return (!situation.memory.heard).then(|| wait.look_at(again));
    }
    let id = situation.provider_id().filter(|_| situation.memory.cloud.lasts_until(situation.now).is_none())?;
    Some(Step { act: Some(Act::GetAside(id.clone())), ..wait })
}

/// Asks those to leave who can be asked now; nothing when there are none.
fn ask_to_leave(drain: &Drain) -> Option<Act> {
    let anybody = !drain.evict.is_empty() || !drain.force.is_empty();
    anybody.then(|| Act::Drain { evict: drain.evict.clone(), force: drain.force.clone() })
}

fn end_of_shortest_drain(situation: &Situation<'_>) -> Timestamp {
    situation.since("Drained").saturating_add(SHORTEST_DRAIN).unwrap_or(Timestamp::MAX)
}

/// Whether nobody has to leave any more, as far as is seen and as the API server itself says.
pub(super) fn is_drained(situation: &Situation<'_>) -> bool {
    let empty = situation.drain.as_ref().is_none_or(|drain| drain.waiting == 0);
    let over = end_of_shortest_drain(situation);
    let begun = situation.has("Drained", Status::Unknown);
    empty && begun && situation.now >= over && prove_empty(situation, over).is_none()
}

/// Whether pods that have to leave are on a node that was said to be drained, and can still leave before its machine goes.
pub(super) fn is_drained_in_vain(situation: &Situation<'_>) -> bool {
    let waiting = situation.drain.as_ref().is_some_and(|drain| drain.waiting > 0);
    waiting && !is_ordered_down(situation)
}

/// Whether the cloud was asked to take the machine down: by this actor, or, as the cloud itself shows, by one before it. What the NodeClaim says of it may be
/// somebody's edit.
pub(super) fn is_ordered_down(situation: &Situation<'_>) -> bool {
    situation.memory.delete_asked.is_some() || own_machine(situation).is_some_and(|machine| machine.deleting)
}

/// Whether the cloud has shown the machine, and that nobody has asked it to take that down.
pub(super) fn is_left_running(situation: &Situation<'_>) -> bool {
    own_machine(situation).is_some() && !is_ordered_down(situation)
}

fn own_machine<'a>(situation: &Situation<'a>) -> Option<&'a Arc<Machine>> {
    situation.memory.machine().filter(|machine| mistakes::is_own(situation, machine))
}

/// Asks the cloud whether the machine goes, as the NodeClaim says: an actor before this one may have ordered that.
fn look_for_order(situation: &Situation<'_>) -> Option<Step> {
    let said = situation.has(TERMINATING, Status::True) && situation.memory.sight == Sight::Unasked;
    let id = situation.provider_id().filter(|_| said)?;
    Some(Step::act(Phase::Draining, Act::Get(id.clone())))
}

/// Asks the API server itself, after `earliest`, which pods are on nodes that look empty, and waits for those that no watch shows; nothing when
/// nobody has to leave, or the time to do so is over. A watch that began anew with an old list shows a node without the pods that came since: its
/// machine would be taken down under them.
fn prove_empty(situation: &Situation<'_>, earliest: Timestamp) -> Option<Step> {
    if is_overdue(situation) {
        return None;
    }
    let told = situation.memory.listed_pods.as_ref().map(|(asked, pods)| {
        let left = pods.iter().filter(|pod| is_waited_for(pod, situation.now)).map(|pod| &pod.key);
        (*asked, left.collect::<Vec<_>>())
    });
    let told = told.filter(|(asked, left)| {
        let good_for = if left.is_empty() { GOOD_FOR } else { LOOK_AGAIN };
        *asked >= earliest && situation.now < step::after(*asked, good_for)
    });
    let Some((asked, left)) = told else {
        let nodes = situation.nodes.iter().map(|node| node.name.clone()).collect();
        return Some(Step::act(Phase::Draining, Act::ListPods(nodes)));
    };
    let wait = format!("the watch to show {} pods that are still on the node: {}", left.len(), detach::first(&left));
    (!left.is_empty()).then(|| Step::wait(Phase::Draining, wait).look_at(step::after(asked, LOOK_AGAIN)))
}

/// The same right before the machine goes: volumes may have taken their time since the node was drained, and taints may have been taken off.
fn prove_empty_still(situation: &Situation<'_>) -> Option<Step> {
    let drained = situation.has("Drained", Status::True) && !situation.nodes.is_empty();
    if !drained || is_ordered_down(situation) || situation.memory.sight == Sight::Gone {
        return None;
    }
    prove_empty(situation, Timestamp::MIN)
}

/// When a machine that was ordered down ought to be gone.
pub(super) fn gone_by(situation: &Situation<'_>) -> Option<Timestamp> {
    let ordered =
        situation.claim.deleting.is_some() && situation.has(TERMINATING, Status::True) && is_ordered_down(situation);
    (ordered && situation.memory.sight != Sight::Gone).then(|| step::after(situation.since(TERMINATING), 60 * LINGERS))
}

/// What is to be said of a machine that was ordered down and is still there: for how long, and what the cloud answers. How long is said in steps that
/// grow up to an hour, so that a condition that says it is seldom written.
pub(super) fn lingers(situation: &Situation<'_>) -> Option<String> {
    let late = situation.now >= gone_by(situation)?;
    if !late && situation.memory.cloud.failures < REFUSED {
        return None;
    }
    let minutes = situation.now.duration_since(situation.since(TERMINATING)).as_mins();
    let trouble = situation.memory.cloud.trouble.as_deref();
    let doubled =
        || std::iter::successors(Some(LINGERS), |last| Some(last * 2)).take_while(|step| *step <= minutes).last();
    let age =
        if minutes >= 60 { Some(format!("{} h", minutes / 60)) } else { doubled().map(|age| format!("{age} min")) };
    let age = age.map(|age| format!(" for more than {age}")).unwrap_or_default();
    let machine = situation.provider_id().map_or("the machine", ProviderId::as_str);
    Some(format!(
        "{machine} was ordered down at {}, and is still there{age}; the cloud's last answer: {}; see what keeps it there, and end it by hand if need be",
        rfc3339(situation.since(TERMINATING)),
        trouble.unwrap_or("it is going")
    ))
}

fn is_closed(node: &Node) -> bool {
    let taint = Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule);
    node.taints.iter().any(|present| present.matches(&taint)) && node.labels.contains_key(labels::EXCLUDE_BALANCERS)
}

/// Keeps new pods and load balancers away from a Node that is to be emptied; nothing when that is done.
pub fn close(node: &Node) -> Option<NodePatch> {
    if is_closed(node) {
        return None;
    }
    let taint = Taint::new(labels::DISRUPTED_TAINT, Effect::NoSchedule);
    let mut taints: Vec<Taint> = node.taints.iter().filter(|present| present.key != taint.key).cloned().collect();
    taints.push(taint);
    Some(NodePatch {
        taints: Some(taints),
        labels: Labels::from([(labels::EXCLUDE_BALANCERS.into(), "karpenter".into())]),
        ..NodePatch::of(node)
    })
}

/// Takes back what [`close`] did to a Node that is to stay after all.
pub fn open(node: &Node) -> NodePatch {
    let taints = node.taints.iter().filter(|present| &*present.key != labels::DISRUPTED_TAINT).cloned().collect();
    let without_labels = vec![labels::EXCLUDE_BALANCERS.into()];
    NodePatch { taints: Some(taints), without_labels, ..NodePatch::of(node) }
}

fn without_finalizer(node: &Node) -> NodePatch {
    NodePatch { finalizers: Some(finalizers::released(&node.finalizers)), ..NodePatch::of(node) }
}

/// What is done while the cloud takes its time. Until the machine is gone its node takes pods, if somebody takes the taint off: it is put back, and
/// whoever came meanwhile is asked to leave. The order itself stands.
fn guard(situation: &Situation<'_>, phase: Phase) -> Step {
    let wait = "the cloud to confirm that the machine is gone";
    if let Some((node, patch)) = situation.own_nodes().find_map(|node| Some((node, close(node)?))) {
        return Step::patch_node(situation, phase, node, patch, wait);
    }
    Step { act: situation.drain.as_ref().and_then(ask_to_leave), ..Step::wait(phase, wait) }
}

/// Takes the machine down; nothing once the cloud is certain that there is none.
fn take_down(situation: &Situation<'_>) -> Option<Step> {
    let phase = Phase::Terminating;
    // What the cloud refuses is written down before it is asked again, and that it takes its time while it does.
    let fails = situation.memory.cloud.failures > 0 && situation.memory.sight != Sight::Gone;
    if let Some(step) = fails.then(|| step::tell(situation, phase)).flatten() {
        return Some(step);
    }
    match &situation.memory.sight {
        Sight::Gone => {
            let late = || if doubt::may_have_launched_twice(situation) { doubt::wait(situation) } else { None };
            step::write_status(situation, phase).or_else(late)
        }
        // A list by token may lag behind; whoever is asked for the one machine knows better.
        Sight::Absent => match whereabouts::unasked(situation) {
            Some(id) => Some(Step::act(phase, Act::Get(id.clone()))),
            None => doubt::wait(situation),
        },
        // The ID in the object is somebody's word. Before a machine is taken down it is looked at: it may be another NodeClaim's.
        Sight::Unasked => match situation.provider_id() {
            Some(id) => Some(Step::act(phase, Act::Get(id.clone()))),
            // Nothing says that there ever was a machine. Only the cloud can: an answer may have been lost with a predecessor.
            None => Some(whereabouts::seek(situation, phase)),
        },
        Sight::Uncertain => Some(Step::act(phase, Act::Find(situation.claim.uid.clone()))),
        Sight::Missing => Some(whereabouts::seek(situation, phase)),
        Sight::Present(machine) if !mistakes::is_own(situation, machine) => Some(whereabouts::seek(situation, phase)),
        Sight::Present(machine) => {
            let id = &machine.id;
            let asked = situation.memory.delete_asked;
            if asked.is_some()
                && let Some(step) = step::write_status(situation, phase)
            {
                return Some(step);
            }
            // It shows the machine, and knows none when it is to be taken down.
            let denied = situation.memory.order_denied.map(|denied| step::after(denied, ASK_AGAIN));
            if let Some(again) = denied.filter(|again| situation.now < *again) {
                return Some(guard(situation, phase).look_at(again));
            }
            // A Node may have registered unseen, and pods may run there. Past the deadline nobody would wait for them.
            if !is_ordered_down(situation)
                && !is_overdue(situation)
                && let Some(step) = liveness::prove_nodeless(situation, phase, id)
            {
                return Some(step);
            }
            match asked.map(|asked| step::after(asked, ASK_AGAIN)) {
                Some(again) if situation.now < again => Some(guard(situation, phase).look_at(again)),
                _ => Some(Step::act(phase, Act::DeleteMachine(id.clone()))),
            }
        }
    }
}
