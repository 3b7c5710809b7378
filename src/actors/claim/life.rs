//! The actor itself: it looks, does the next thing, and shows where it stands.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::clouds::Shown;
use crate::core::backoff::backoff;
use crate::core::facts;
use crate::core::ids::{ClaimName, NodeUid};
use crate::core::labels;
use crate::core::lifecycle::{DeleteReason, Hold, Memory, Situation, Step, step};
use crate::core::promises::{Broken, Invariant, is_silent};
use crate::core::resources::ResourceName;
use crate::core::time::later;

use crate::actors::protocol::{CatalogMsg, ClaimMsg};
use crate::actors::runtime::{Behaviour, Cx, Kind, OpId, Timeline, Timer, View};
use crate::actors::tree::Wiring;
use crate::telemetry::dedupe::Dedupe;

/// First wait after a failed act; doubles (Karpenter's NodeClaim lifecycle backs off from 1 s to 1 min).
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Longest wait after a failed act.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);
/// Longest wait for the lease to be renewed: whoever renews it has everybody look.
const BARRED: SignedDuration = SignedDuration::from_secs(10);
/// Wait after somebody else was faster: the watch needs a moment to show what they did.
const OVERTAKEN: SignedDuration = SignedDuration::from_millis(100);
/// Longest time between two looks at a NodeClaim with a deadline: moments are told by a clock that can be set, and sleeping is not.
const LONGEST_SLEEP: Duration = Duration::from_mins(10);
/// For so long it may be between two steps and not say what it waits for.
const MOMENT: Duration = Duration::from_secs(2);
/// How many steps of its life an actor can show.
const TIMELINE: usize = 32;

/// What a claim actor needs to be born.
#[derive(Clone, Debug)]
pub(in crate::actors) struct ClaimArgs {
    /// Its NodeClaim.
    pub name: ClaimName,
    /// Everything else.
    pub wiring: Arc<Wiring>,
}

/// The owner of one NodeClaim's machine.
#[derive(Debug)]
pub(in crate::actors) struct Claim {
    pub(super) args: ClaimArgs,
    pub(super) memory: Memory,
    /// The object as the last write returned it: the snapshot may lag behind.
    pub(super) written: Option<Arc<facts::Claim>>,
    /// What of the object could not be understood at the last look.
    pub(super) broken: Option<facts::Broken>,
    /// The object as it was last looked at: when it is gone, this is what is said of it.
    pub(super) known: Option<Arc<facts::Claim>>,
    /// Why its deletion was asked for, and how many pods its node had then; counted when it is granted.
    pub(super) doomed: Option<(DeleteReason, usize)>,
    under_way: Option<(OpId, &'static str)>,
    last_op: OpId,
    /// A question under way that nothing waits for.
    pub(super) aside: Option<OpId>,
    /// Something was heard while an act was under way.
    look_again: bool,
    last: Option<Step>,
    alarm: Option<Timer>,
    /// Since when it has not said what it waits for.
    silent: Option<Instant>,
    timeline: Timeline,
    pub(super) said: Dedupe,
    /// The Node that the cloud was shown.
    shown: Option<NodeUid>,
}

impl Claim {
    /// The NodeClaim as it is now; nothing when it is gone.
    pub(super) fn object(&self) -> Option<Arc<facts::Claim>> {
        let snapshot = self.args.wiring.boards.snapshot();
        let seen = snapshot.claims.get(&self.args.name)?;
        let version = |claim: &facts::Claim| claim.version.parse::<u64>().unwrap_or(0);
        Some(match &self.written {
            Some(written) if written.uid == seen.uid && version(written) > version(seen) => Arc::clone(written),
            _ => Arc::clone(seen),
        })
    }

    fn look(&mut self, cx: &Cx<ClaimMsg>) {
        if self.under_way.is_some() {
            self.look_again = true;
            return;
        }
        self.look_again = false;
        if cx.house.operations.may_write() {
            self.memory.cluster.unbar();
            self.memory.cloud.unbar();
        }
        let Some(claim) = self.object() else {
            self.tell_of_end(cx);
            self.note(cx.now(), "gone");
            cx.stop();
            return;
        };
        if self.known.as_ref().is_some_and(|known| known.uid != claim.uid) {
            // A namesake took its place between two looks: what is remembered is about another machine.
            self.tell_of_end(cx);
            self.memory = Memory::born(cx.now());
            (self.written, self.doomed, self.aside) = (None, None, None);
            self.note(cx.now(), "another NodeClaim of the same name");
        }
        if claim.deleting.is_some() && self.known.as_ref().is_some_and(|known| known.deleting.is_none()) {
            // What failed while it lived says nothing about its end.
            (self.memory.cluster, self.memory.cloud) = (Hold::default(), Hold::default());
        }
        self.known = Some(Arc::clone(&claim));
        let snapshot = self.args.wiring.boards.snapshot();
        let catalog = self.args.wiring.boards.catalog();
        let protections = self.args.wiring.settings.protections;
        if protections.clock {
            self.memory.mend(cx.now());
        }
        let gather = if protections.ownership { Situation::of } else { Situation::without_tokens };
        let mut situation = gather(&claim, &snapshot, &self.memory, cx.now())
            .with_types(catalog.whole(&claim.class))
            .with_repair(self.args.wiring.repair.as_ref())
            .with_denial(self.args.wiring.may_deny_for())
            .with_launch_timeout(self.args.wiring.cloud.launch_timeout())
            .with_hooks(self.args.wiring.cloud.has_hooks())
            .with_devices(self.args.wiring.settings.features.dynamic_resources)
            .with_drift_every(self.args.wiring.cloud.drift_every());
        if !protections.detachment {
            situation.attachments = None;
        }
        let mut next = step(&situation);
        let (nodes, waiting): (Vec<_>, _) = (situation.nodes.iter().copied().cloned().collect(), situation.waiting());
        if claim.deleting.is_some() {
            self.warn_of_drain(&claim, &nodes, waiting, cx);
        }
        if let [node] = nodes.as_slice() {
            self.show(&claim, node);
        }
        if self.last.as_ref().is_none_or(|last| last.phase != next.phase) {
            self.note(cx.now(), next.phase.as_str());
        }
        self.tell_of_quarantine(&claim, cx);
        self.tell_of_mistakes(&claim, &next.mistakes, cx);
        if let Some(what) = &next.overdue {
            self.tell_of_overdue(&claim, what, cx);
        }
        if let Some(why) = &next.blocked {
            self.tell_of_blocked_repair(&claim, &snapshot, why, cx);
        }
        self.alarm = next.look_at.map(|at| {
            // A moment that has just passed must not make it spin, and a clock that jumps must not put it to sleep.
            let longest = if protections.clock { LONGEST_SLEEP } else { Duration::MAX };
            cx.after(cx.house.clock.until(at).clamp(Duration::from_millis(10), longest), ClaimMsg::Look)
        });
        let act = next.act.take();
        self.last = Some(next);
        if let Some(act) = act {
            self.perform(act, &claim, &snapshot, cx);
        }
        self.watch_silence(cx);
    }

    /// What it waits for, in words.
    fn waits_for(&self) -> Option<String> {
        let doing = self.under_way.map(|(_, what)| format!("{what} to end"));
        doing.or_else(|| self.last.as_ref().and_then(|step| step.waits_for.clone()))
    }

    /// A NodeClaim that waits says what for. Between two steps it may owe that for a moment; whoever does not say it then looks again.
    fn watch_silence(&mut self, cx: &Cx<ClaimMsg>) {
        let state = self.last.as_ref().map_or("New", |step| step.phase.as_str());
        let said = || self.last.as_ref().and_then(|step| step.waits_for.as_deref());
        if !is_silent(state, self.under_way.map(|(_, what)| what).or_else(said)) {
            self.silent = None;
            return;
        }
        let since = *self.silent.get_or_insert_with(Instant::now);
        if since.elapsed() >= MOMENT {
            let object = format!("NodeClaim {}", self.args.name);
            let what = format!("{object} is {state} and does not say what it waits for");
            cx.house.promises.broken(Broken { promise: Invariant::WaitsHaveReasons, object, what });
        } else if self.alarm.is_none() {
            self.alarm = Some(cx.after(MOMENT, ClaimMsg::Look));
        }
    }

    /// Shows the cloud, once, what its machine turned out to have. When that is news, what it sells looks different from now on.
    fn show(&mut self, claim: &facts::Claim, node: &facts::Node) {
        if !claim.is("Registered") || self.shown.as_ref() == Some(&node.uid) {
            return;
        }
        let (Some(kind), Some(image), Some(machine)) =
            (claim.labels.get(labels::INSTANCE_TYPE), &claim.image, &claim.provider_id)
        else {
            return;
        };
        // A kubelet registers before it says what there is.
        if node.capacity.get(&ResourceName::Memory) <= 0 {
            return;
        }
        self.shown = Some(node.uid.clone());
        let shown = Shown { machine, node: node.name.as_str(), instance_type: kind, image, capacity: &node.capacity };
        if self.args.wiring.cloud.learn(&shown) {
            self.args.wiring.slots.catalog.cast(CatalogMsg::Learnt);
        }
    }

    /// Begins an act: its outcome must come back with this number.
    pub(super) fn begin(&mut self, what: &'static str) -> OpId {
        self.last_op += 1;
        self.under_way = Some((self.last_op, what));
        self.last_op
    }

    /// Begins a question that nothing waits for; the answer to an earlier one no longer counts.
    pub(super) fn begin_aside(&mut self) -> OpId {
        self.last_op += 1;
        self.aside = Some(self.last_op);
        self.last_op
    }

    /// Whether an outcome is that of the act under way; if so, the act is over.
    pub(super) fn ends(&mut self, op: OpId) -> bool {
        let current = self.under_way.is_some_and(|(current, _)| current == op);
        if current {
            self.under_way = None;
        }
        current
    }

    /// Whether an outcome is that of the question under way that nothing waits for; if so, the question is answered.
    pub(super) fn ends_aside(&mut self, op: OpId) -> bool {
        self.aside.take_if(|current| *current == op).is_some()
    }

    /// The last act failed: whoever failed it is asked nothing more before a while has passed.
    pub(super) fn failed(&mut self, what: &str, why: &str, by_cloud: bool, cx: &Cx<ClaimMsg>) {
        let trouble = format!("{what}: {why}");
        cx.slot().meter().failed(cx.now(), &trouble);
        let now = cx.now();
        if self.memory.hold_mut(by_cloud).failed(trouble.clone(), |failures| wait_until(now, failures)) {
            self.warn(&trouble);
        }
    }

    /// The last act was not begun, as the lease is not certainly joiner's. That is nobody's failure, and over as soon as it is again.
    pub(super) fn barred(&mut self, by_cloud: bool, cx: &Cx<ClaimMsg>) {
        let until = cx.now().saturating_add(BARRED).unwrap_or(Timestamp::MAX);
        self.memory.hold_mut(by_cloud).bar(until);
    }

    /// Says that an act failed; for each trouble once.
    pub(super) fn warn(&self, trouble: &str) {
        tracing::warn!(nodeclaim = %self.args.name, error = trouble, "act failed, trying again later");
    }

    /// Somebody else changed or removed what the last act was about. That is no failure: the next look sees what they did.
    pub(super) fn overtaken(&mut self, cx: &Cx<ClaimMsg>) {
        self.memory.cluster.until = Some(cx.now().saturating_add(OVERTAKEN).unwrap_or(Timestamp::MAX));
    }

    /// What was last seen to be waited for past its time.
    pub(super) fn last_overdue(&self) -> Option<&str> {
        self.last.as_ref().and_then(|step| step.overdue.as_deref())
    }

    /// What was to be mended at the last look.
    pub(super) fn last_mistakes(&self) -> &[String] {
        self.last.as_ref().map_or(&[], |step| &step.mistakes)
    }

    pub(super) fn note(&mut self, at: Timestamp, what: &str) {
        self.timeline.note(at, what.to_owned());
    }
}

/// When an act may be tried again that has failed so often in a row.
pub(super) fn wait_until(now: Timestamp, failures: u32) -> Timestamp {
    later(now, backoff(FIRST_BACKOFF, LONGEST_BACKOFF, failures))
}

impl Behaviour for Claim {
    type Msg = ClaimMsg;
    type Args = ClaimArgs;
    const KIND: Kind = Kind::Claim;

    fn born(args: &Self::Args, cx: &Cx<ClaimMsg>) -> Self {
        cx.cast(ClaimMsg::Look);
        Self {
            args: args.clone(),
            memory: Memory::born(cx.now()),
            written: None,
            broken: None,
            known: None,
            doomed: None,
            under_way: None,
            last_op: 0,
            aside: None,
            look_again: false,
            last: None,
            alarm: None,
            silent: None,
            timeline: Timeline::new(TIMELINE),
            said: Dedupe::new(),
            shown: None,
        }
    }

    fn handle(&mut self, message: ClaimMsg, cx: &Cx<ClaimMsg>) {
        if !matches!(message, ClaimMsg::Look) {
            self.outcome(message, cx);
        }
        self.look(cx);
    }

    fn observe(&self, _: Timestamp) -> View {
        let last = self.last.as_ref();
        let mut details = Vec::new();
        if let Some(claim) = self.object() {
            details.extend(claim.broken.as_ref().map(|b| ("cannot be understood".to_owned(), b.problem.to_string())));
            let mistakes = last.iter().flat_map(|step| &step.mistakes);
            details.extend(mistakes.map(|mistake| ("to be mended".to_owned(), mistake.clone())));
            details.extend(last.and_then(|step| step.blocked.clone()).map(|why| ("not repaired".to_owned(), why)));
            details.extend(claim.pool().map(|pool| ("NodePool".to_owned(), pool.to_string())));
            details.extend(claim.node.as_ref().map(|node| ("Node".to_owned(), node.to_string())));
            details.extend(claim.provider_id.as_ref().map(|id| ("machine".to_owned(), id.to_string())));
            for key in [labels::INSTANCE_TYPE, labels::ZONE, labels::CAPACITY_TYPE] {
                details.extend(claim.labels.get(key).map(|value| (key.to_owned(), value.to_string())));
            }
            let shown = |kind: &str| claim.conditions.iter().find(|condition| &*condition.kind == kind).cloned();
            for condition in
                ["Rebooting", "Drifted", "Consolidatable", "ConsistentStateFound"].into_iter().filter_map(shown)
            {
                let text = if condition.message.is_empty() { &condition.reason } else { &condition.message };
                let since = condition.since;
                details.push((
                    condition.kind.to_string(),
                    format!("{} since {since:.0}: {text}", condition.status.as_str()),
                ));
            }
        }
        View {
            state: last.map_or("New", |step| step.phase.as_str()).to_owned(),
            waits_for: self.waits_for(),
            deadlines: last
                .map(|step| &step.deadlines)
                .into_iter()
                .flatten()
                .map(|(what, at)| ((*what).to_owned(), *at))
                .collect(),
            timeline: self.timeline.noted(),
            details,
        }
    }
}
