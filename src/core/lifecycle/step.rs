//! One look at a NodeClaim: which phase its machine is in, what to do next, what it waits for, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Claim, Node, Status, finalizers};
use crate::core::writes::{ClaimPatch, NodePatch};

use super::{Act, DeleteReason, Sight, Situation};
use super::{
    consolidation, drift, hydration, initialization, launch, liveness, mistakes, quarantine, reboot, registration,
    repair, status, termination,
};

/// Where in its life a NodeClaim's machine is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// The NodeClaim was seen, and is not yet protected by the finalizer.
    Pending,
    /// The machine is being launched.
    Launching,
    /// There is a machine; its Node has not been matched.
    Registering,
    /// There is a Node; it is not yet ready for its pods.
    Initializing,
    /// The Node serves.
    Ready,
    /// The machine is being restarted in place.
    Rebooting,
    /// Pods are leaving.
    Draining,
    /// The machine is being taken down.
    Terminating,
    /// Nothing is left but the object, if that.
    Gone,
    /// The object could not be understood; hands off.
    Quarantined,
}

impl Phase {
    /// The word on the actor page and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Launching => "Launching",
            Self::Registering => "Registering",
            Self::Initializing => "Initializing",
            Self::Ready => "Ready",
            Self::Rebooting => "Rebooting",
            Self::Draining => "Draining",
            Self::Terminating => "Terminating",
            Self::Gone => "Gone",
            Self::Quarantined => "Quarantined",
        }
    }
}

/// The outcome of a look.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Where in its life the machine is.
    pub phase: Phase,
    /// What to do now; nothing when it is somebody else's turn.
    pub act: Option<Act>,
    /// What is waited for, in words.
    pub waits_for: Option<String>,
    /// When to look again though nothing was heard.
    pub look_at: Option<Timestamp>,
    /// Deadlines that are running: what happens, and when.
    pub deadlines: Vec<(&'static str, Timestamp)>,
    /// What somebody should mend: field and remedy of each.
    pub mistakes: Vec<String>,
    /// What initialization, or the end of the machine, still waits for past its time.
    pub overdue: Option<String>,
    /// Why a repair that is due does not happen.
    pub blocked: Option<String>,
}

impl Step {
    /// Something is to be done now.
    pub(super) fn act(phase: Phase, act: Act) -> Self {
        Self { act: Some(act), ..Self::rest(phase) }
    }

    /// Nothing is to be done until something is heard.
    pub(super) fn wait(phase: Phase, waits_for: impl Into<String>) -> Self {
        Self { waits_for: Some(waits_for.into()), ..Self::rest(phase) }
    }

    /// A change of a Node, unless the Node that is seen is the one that was changed last: then that is to be seen first.
    pub(super) fn patch_node(
        situation: &Situation<'_>,
        phase: Phase,
        node: &Node,
        patch: NodePatch,
        waits_for: &str,
    ) -> Self {
        if situation.has_patched(node) {
            return Self::wait(phase, waits_for);
        }
        Self::act(phase, Act::PatchNode(node.name.clone(), node.uid.clone(), patch))
    }

    /// Nothing to do and nothing to wait for.
    pub(super) fn rest(phase: Phase) -> Self {
        Self {
            phase,
            act: None,
            waits_for: None,
            look_at: None,
            deadlines: Vec::new(),
            mistakes: Vec::new(),
            overdue: None,
            blocked: None,
        }
    }

    /// Look again at a moment at the latest.
    #[must_use]
    pub(super) fn look_at(mut self, moment: Timestamp) -> Self {
        self.look_at = Some(self.look_at.map_or(moment, |earlier| earlier.min(moment)));
        self
    }
}

/// Looks at a NodeClaim once.
pub fn step(situation: &Situation<'_>) -> Step {
    let mut step = next(situation);
    step.mistakes = mistakes::found(situation);
    step.deadlines = liveness::deadlines(situation);
    step.overdue = termination::lingers(situation);
    aside(situation, &mut step);
    let earliest = step.deadlines.iter().map(|(_, at)| *at).filter(|at| *at > situation.now).min();
    if let Some(earliest) = earliest {
        step = step.look_at(earliest);
    }
    if let Some(ends) = quarantine::ends(situation).filter(|ends| *ends > situation.now) {
        step = step.look_at(ends);
    }
    if let Some(deletion) = &situation.memory.deletion {
        deletion.hold(&mut step, situation.now);
    }
    // Somebody else has changed it, and the watch does not show that yet: the API server itself is asked.
    if situation.memory.outdated.as_ref() == Some(&situation.claim.version)
        && matches!(step.act, Some(Act::PatchClaim(_) | Act::PatchStatus(_) | Act::DeleteClaim(_)))
    {
        step.act = Some(Act::GetClaim);
    }
    // Who just failed is left alone for a while, whatever is to be asked: the phase goes on saying what it is about. The evictor has pauses of its own.
    if let Some(act) = step.act.as_ref().filter(|act| !matches!(act, Act::DeleteClaim(_) | Act::Drain { .. }))
        && let hold = situation.memory.hold(act.is_for_cloud())
        && let Some(until) = hold.lasts_until(situation.now)
    {
        step.act = None;
        step.waits_for = Some(hold.why().unwrap_or_else(|| "backoff".to_owned()));
        step = step.look_at(until);
    }
    step
}

fn next(situation: &Situation<'_>) -> Step {
    let claim = situation.claim;
    if let Some(broken) = claim.broken.as_ref().filter(|_| is_quarantined(claim)) {
        let wait = Step::wait(Phase::Quarantined, format!("somebody to mend the NodeClaim: {}", broken.problem));
        return tell_then_wait(situation, wait);
    }
    if claim.deleting.is_some() {
        return termination::next(situation);
    }
    if !claim.has_finalizer() {
        return protect(situation);
    }
    let phase = phase(situation);
    if let Some(step) = mistakes::look_up(situation, phase) {
        return step;
    }
    // A NodeClaim that was mended says so before anything else: its deadlines begin anew with that.
    if situation.has(status::VALID, Status::False)
        && let Some(step) = write_status(situation, phase)
    {
        return step;
    }
    if let Some(reason) = &situation.memory.refused {
        return Step::act(phase, Act::DeleteClaim(reason.clone()));
    }
    if let Some(reason) = liveness::due(situation) {
        return liveness::give_up(situation, phase, reason);
    }
    if situation.own_nodes().any(|node| node.deleting.is_some()) {
        return Step::act(phase, Act::DeleteClaim(DeleteReason::NodeDeleted));
    }
    if let Some(step) = repair::next(situation, phase).or_else(|| repair::tidy(situation, phase)) {
        return step;
    }
    if let Some(step) = launch::next(situation) {
        return step;
    }
    if let Some(step) = registration::next(situation) {
        return step;
    }
    if let Some(step) = reboot::next(situation) {
        return step;
    }
    if let Some(step) = initialization::next(situation) {
        return step;
    }
    write_status(situation, phase).unwrap_or_else(|| Step::rest(phase))
}

/// Puts the finalizer on, before which nothing is launched. Where that cannot be done, it is said, and the NodeClaim is given up in time: its pods wait
/// for it. What may have a machine is never given up like this, as nothing would hold it until that is gone.
fn protect(situation: &Situation<'_>) -> Step {
    let (claim, phase) = (situation.claim, Phase::Pending);
    // The deadlines of one that was mended begin anew when it says so.
    let said_broken = situation.has(status::VALID, Status::False);
    if !said_broken && liveness::due(situation) == Some(DeleteReason::LaunchTimeout) {
        match situation.memory.sight {
            Sight::Absent => return Step::act(phase, Act::DeleteClaim(DeleteReason::LaunchTimeout)),
            Sight::Unasked | Sight::Uncertain => return Step::act(phase, Act::Find(claim.uid.clone())),
            Sight::Missing | Sight::Present(_) | Sight::Gone => {}
        }
    }
    let failed = situation.memory.cluster.failures > 0;
    failed.then(|| tell(situation, phase)).flatten().unwrap_or_else(|| {
        let version = Some(claim.version.clone());
        let finalizers = Some(finalizers::held(&claim.finalizers));
        Step::act(phase, Act::PatchClaim(ClaimPatch { version, finalizers, ..ClaimPatch::default() }))
    })
}

/// What is done while nothing else is: labels written back, the cloud asked about drift, conditions that change with time.
fn aside(situation: &Situation<'_>, step: &mut Step) {
    let claim = situation.claim;
    if claim.broken.is_some() || claim.deleting.is_some() {
        return;
    }
    let ask = drift::ask_at(situation);
    if step.act.is_none() {
        let asks = ask.is_some_and(|at| situation.now >= at);
        step.act = if asks { Some(Act::AskDrift) } else { hydration::next(situation) };
    }
    step.deadlines.extend(reboot::deadlines(situation));
    step.deadlines.extend(initialization::deadline(situation).map(|at| ("initialization is overdue", at)));
    step.overdue = initialization::overdue(situation);
    step.blocked = repair::blocked(situation);
    let diagnosis = repair::diagnosis(situation);
    step.deadlines.extend(diagnosis.map(|diagnosis| ("repair is due", diagnosis.due)));
    let consolidation = consolidation::from(situation).filter(|at| *at > situation.now);
    step.deadlines.extend(consolidation.map(|at| ("may be consolidated", at)));
    let moments = [
        repair::look_at(situation),
        termination::deadline(claim),
        ask,
        consolidation::write_at(situation),
        drift::catalog_at(situation),
    ];
    if let Some(at) = moments.into_iter().flatten().filter(|at| *at > situation.now).min() {
        step.look_at = Some(step.look_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Whether a NodeClaim is left alone because it cannot be understood. Its spec cannot be mended, only deleted: when somebody does, what can be
/// read of it is enough to take its machine down, unless its conditions cannot be read, which is where a drain is written down.
pub(super) fn is_quarantined(claim: &Claim) -> bool {
    claim.broken.as_ref().is_some_and(|broken| claim.deleting.is_none() || broken.conditions)
}

/// A status that says what was found, when the object does not say it yet.
pub(super) fn write_status(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    let patch = status::wanted(situation)?;
    Some(Step::act(phase, Act::PatchStatus(patch)))
}

/// The same where it comes before something that must not wait for it: nothing while the API server is left alone, nor for the last pod event alone,
/// which a drain would have written again and again.
pub(super) fn tell(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    if situation.memory.cluster.lasts_until(situation.now).is_some() {
        return None;
    }
    let patch = status::wanted(situation)?;
    let says_more = patch.conditions.is_some() || patch.provider_id.is_some() || patch.node.is_some();
    says_more.then(|| Step::act(phase, Act::PatchStatus(patch)))
}

/// The status first, if it is out of date; else the wait.
pub(super) fn tell_then_wait(situation: &Situation<'_>, wait: Step) -> Step {
    write_status(situation, wait.phase).unwrap_or(wait)
}

/// The phase of a NodeClaim that is not being deleted, by its conditions.
fn phase(situation: &Situation<'_>) -> Phase {
    if !situation.has("Launched", Status::True) {
        Phase::Launching
    } else if !situation.has("Registered", Status::True) {
        Phase::Registering
    } else if !situation.has("Initialized", Status::True) {
        Phase::Initializing
    } else {
        Phase::Ready
    }
}

/// A moment some seconds after another.
pub(super) fn after(moment: Timestamp, seconds: i64) -> Timestamp {
    moment.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
