//! One look at a NodeClaim: which phase its machine is in, what to do next, what it waits for, and when to look again.

use jiff::{SignedDuration, Timestamp};

use crate::core::facts::Status;
use crate::core::labels;
use crate::core::writes::ClaimPatch;

use super::{Act, DeleteReason, Situation, initialization, launch, liveness, registration, status, termination};

/// Seconds after which a deletion that does not show is asked for again.
const ASK_AGAIN: i64 = 5;

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
}

impl Step {
    /// Something is to be done now.
    pub(super) fn act(phase: Phase, act: Act) -> Self {
        Self { phase, act: Some(act), waits_for: None, look_at: None, deadlines: Vec::new() }
    }

    /// Nothing is to be done until something is heard.
    pub(super) fn wait(phase: Phase, waits_for: impl Into<String>) -> Self {
        Self { phase, act: None, waits_for: Some(waits_for.into()), look_at: None, deadlines: Vec::new() }
    }

    /// Nothing to do and nothing to wait for.
    pub(super) fn rest(phase: Phase) -> Self {
        Self { phase, act: None, waits_for: None, look_at: None, deadlines: Vec::new() }
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
    if situation.memory.deleted && matches!(step.act, Some(Act::DeleteClaim(_))) {
        step = Step::wait(step.phase, "the NodeClaim to show its deletion");
    }
    step.deadlines = liveness::deadlines(situation);
    let earliest = step.deadlines.iter().map(|(_, at)| *at).filter(|at| *at > situation.now).min();
    if let Some(earliest) = earliest {
        step = step.look_at(earliest);
    }
    if let Some(again) = asked_for(situation, step.act.as_ref()).map(|asked| after(asked, ASK_AGAIN))
        && situation.now < again
    {
        step.act = None;
        step.waits_for = Some("a deletion that was asked for to show".to_owned());
        step = step.look_at(again);
    }
    // An act that just failed waits for its turn, whatever it is: the phase goes on saying what it is about.
    if let (Some(hold), Some(act)) = (situation.memory.hold_until, &step.act)
        && situation.now < hold
        && !matches!(act, Act::DeleteClaim(_))
    {
        step.act = None;
        step.waits_for = Some(situation.memory.trouble.clone().unwrap_or_else(|| "backoff".to_owned()));
        step = step.look_at(hold);
    }
    step
}

/// When a deletion was asked for already. The watch shows soon that it was granted, or takes its time; asking on and on until then would be
/// a storm of requests.
fn asked_for(situation: &Situation<'_>, act: Option<&Act>) -> Option<Timestamp> {
    match act? {
        Act::DeleteClaim(_) => situation.memory.claim_deleted,
        Act::DeleteNode(_, uid) => {
            situation.memory.node_deleted.as_ref().filter(|(asked, _)| asked == uid).map(|(_, at)| *at)
        }
        _ => None,
    }
}

fn next(situation: &Situation<'_>) -> Step {
    let claim = situation.claim;
    if let Some(broken) = &claim.broken {
        let wait = Step::wait(Phase::Quarantined, format!("somebody to mend the NodeClaim: {}", broken.problem));
        return tell_then_wait(situation, wait);
    }
    // Whose machine it is that the object names is asked before anything is done to it.
    if situation.misnamed && situation.by_token && claim.has_finalizer() {
        let phase = if claim.deleting.is_some() { Phase::Draining } else { phase(situation) };
        return Step::act(phase, Act::Find(claim.uid.clone()));
    }
    if claim.deleting.is_some() {
        return termination::next(situation);
    }
    if !claim.has_finalizer() {
        let mut finalizers = claim.finalizers.clone();
        finalizers.push(labels::TERMINATION_FINALIZER.into());
        let version = Some(claim.version.clone());
        return Step::act(
            Phase::Pending,
            Act::PatchClaim(ClaimPatch { version, finalizers: Some(finalizers), ..ClaimPatch::default() }),
        );
    }
    let phase = phase(situation);
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
        return Step::act(phase, Act::DeleteClaim(reason));
    }
    if situation.nodes.iter().any(|node| node.deleting.is_some()) {
        return Step::act(phase, Act::DeleteClaim(DeleteReason::NodeDeleted));
    }
    if let Some(step) = launch::next(situation) {
        return step;
    }
    if let Some(step) = registration::next(situation) {
        return step;
    }
    // A plan changes while it is carried out: pods change places, and later plans use the room that is left.
    if let Some(node) = situation.node().filter(|_| situation.unnominated) {
        return Step::act(phase, Act::Nominate(node.name.clone()));
    }
    if let Some(step) = initialization::next(situation) {
        return step;
    }
    write_status(situation, phase).unwrap_or_else(|| Step::rest(phase))
}

/// A status that says what was found, when the object does not say it yet.
pub(super) fn write_status(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    let patch = status::wanted(situation)?;
    Some(Step::act(phase, Act::PatchStatus(patch)))
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
