//! The actor itself: when it plans, and what it does with a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::actors::decisions::{Decision, Question};
use crate::actors::protocol::{PoolsMsg, ProvisionerMsg, StateMsg, Written};
use crate::actors::runtime::{Behaviour, Cx, Kind, OpId, Outcome, Permits, Timeline, Timer, View};
use crate::actors::tree::Wiring;
use crate::cluster;
use crate::core::backoff::backoff;
use crate::core::buffers::{self, Placeholders, Rooms};
use crate::core::facts::{self, Claim, Pod, Snapshot, find_condition};
use crate::core::ids::{ClaimName, PodUid};
use crate::core::labels;
use crate::core::leaving::{self, Foreseen};
use crate::core::nomination::Doors;
use crate::core::restarts;
use crate::core::scheduling::{self, DefaultSpreads, Ground, PlacedOn, Plan, PlannedClaim, Problem, Settings};
use crate::core::vain::{Bought, drop_unwanted};
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::log::rounded;
use crate::telemetry::metrics::{self, CreatedFor};

/// Wait for the snapshot to show what was just created.
const CATCH_UP: Duration = Duration::from_millis(50);
/// What was created and is not seen after this long is not waited for any more: it was deleted at once, or the watch has a gap.
const CATCH_UP_AT_MOST: Duration = Duration::from_secs(10);
/// After its start joiner waits this long for NodePools to be judged and for the cloud to tell its instance types, before it says of pods
/// that nothing can be bought.
const SUPPLY_AT_MOST: Duration = Duration::from_secs(10);
/// Shortest pause between two solves that only try again what was refused (Karpenter reconsiders pods every 10 s).
pub(super) const RECONSIDER: Duration = Duration::from_secs(10);
/// A kube-scheduler that has bound none of the waiting pods for this long will not do so by itself: it tries each pod every 10 s at the
/// latest, and again whenever a pod is bound.
pub(super) const AT_WORK: Duration = Duration::from_secs(5);
/// While there are CapacityBuffers, the room that is left for them is looked at this often even if nothing happens (Karpenter: 30 s).
const BUFFERS: Duration = Duration::from_secs(30);
/// While pods are on nodes that go, it is looked this often whether some of them that could not leave before now can, and need a place.
pub(super) const LEAVERS: Duration = RECONSIDER;
/// First pause after NodeClaims could not be created, and the longest after several plans in a row: what is refused once may be refused for good.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = RECONSIDER;
/// How often a NodeClaim is tried to be written whose answer got lost. Its name is fixed, so that writing it twice makes one object.
const CREATE_ATTEMPTS: u32 = 3;
/// How many of its plans the provisioner can show.
const TIMELINE: usize = 20;

/// Solves and creates.
#[derive(Debug)]
pub(in crate::actors) struct Provisioner {
    pub(super) wiring: Arc<Wiring>,
    pub(super) doing: Doing,
    /// What the solver keeps from one snapshot to the next. Only one solve runs at a time.
    pub(super) ground: Arc<Mutex<Ground>>,
    spreads: DefaultSpreads,
    last_op: OpId,
    /// Asked for while busy.
    pub(super) again: bool,
    /// Created, and not yet in the snapshot.
    pub(super) awaited: BTreeMap<ClaimName, Instant>,
    pub(super) look: Option<Timer>,
    /// The placeholders in the plan that is being made.
    placeholders: Placeholders,
    /// The pods of nodes that go in the plan that is being made.
    leavers: BTreeSet<PodUid>,
    /// Where the latest plan has put such pods.
    pub(super) foreseen: Foreseen,
    /// For the next look at such pods.
    pub(super) foresee: Option<Timer>,
    /// For the next look at the room of CapacityBuffers.
    refill: Option<Timer>,
    /// Whether kube-scheduler brings in the pods whose nodes serve.
    pub(super) doors: Doors,
    /// Pods that kube-scheduler had not come to when that was last looked at.
    pub(super) overlooked: usize,
    /// Those of them for whom a plan was made, as far as they are still there.
    pub(super) left_over: usize,
    /// For the next look at them, and at the doors.
    pub(super) watching: Option<Timer>,
    /// For whom nodes were bought, so that none are without end.
    bought: Bought,
    /// Makes names differ from plan to plan.
    plans: u64,
    pub(super) refused: usize,
    pub(super) last: Option<String>,
    pub(super) timeline: Timeline,
    pub(super) said: Dedupe,
    /// What no plan can be made without, and joiner may not look at.
    barred: Vec<facts::Kind>,
    /// Why NodeClaims could not be created since one last could: each reason is said once.
    troubles: BTreeSet<String>,
    /// How many plans in a row could not be carried out as a whole, and until when no other is made for those who waited then (the epoch of the plan).
    failures: u32,
    paused: Option<(Instant, u64)>,
    born: Instant,
}

#[derive(Debug)]
pub(super) enum Doing {
    Nothing,
    Solving(OpId, Instant, String, Arc<Question>),
    Creating(Creating),
}

/// NodeClaims under way, with how often each was tried, and whether one of the plan could not be created.
#[derive(Debug)]
pub(super) struct Creating {
    pub(super) left: BTreeMap<ClaimName, (PlannedClaim, u32)>,
    failed: bool,
    /// The epoch of the snapshot that was planned for.
    epoch: u64,
}

impl Provisioner {
    /// Begins a plan, if there is anything to plan and nothing in the way.
    pub(super) fn begin(&mut self, cx: &Cx<ProvisionerMsg>) {
        if !matches!(self.doing, Doing::Nothing) {
            self.again = true;
            return;
        }
        let snapshot = self.wiring.boards.snapshot();
        if !cx.house.operations.may_write() || !snapshot.is_complete() {
            return;
        }
        let withheld = snapshot.withheld_from_plans();
        if !withheld.is_empty() {
            self.bar(withheld);
            return;
        }
        self.barred.clear();
        if let Some(wait) = self.wait(&snapshot) {
            self.again = true;
            self.look = Some(cx.after(wait, ProvisionerMsg::Look));
            return;
        }
        self.find_placeholders(&snapshot, cx);
        let leavers = leaving::leavers(&snapshot, cx.now());
        self.leavers = leavers.iter().map(|pod| pod.uid.clone()).collect();
        let nobody_waits = snapshot.pending.is_empty() && self.overlooked() == 0;
        if nobody_waits && self.placeholders.pods.is_empty() && leavers.is_empty() {
            self.foreseen = Foreseen::default();
            metrics::nothing_to_schedule(Kind::Provisioner.as_str());
            self.publish_refusals(&Plan::default(), snapshot.epoch);
            return;
        }
        // Who is there when others need nodes is planned along: kube-scheduler takes seconds to look at a burst, and what it has not looked at
        // would be a second plan.
        let waiting = snapshot.pending.keys().chain(snapshot.undecided.keys());
        let mut pods: Vec<Arc<Pod>> = waiting.filter_map(|uid| snapshot.pods.get(uid).cloned()).collect();
        let waiting = pods.len();
        pods.extend(leavers);
        let real = pods.len();
        let mut pods = self.spreads.apply(&snapshot, pods);
        pods.extend(self.placeholders.pods.iter().cloned());
        self.again = false;
        self.last_op += 1;
        let op = self.last_op;
        let catalog = self.wiring.boards.catalog();
        self.plans += 1;
        let salt = self
            .wiring
            .settings
            .name_salt
            .wrapping_add(snapshot.epoch)
            .wrapping_mul(1_000_003)
            .wrapping_add(self.plans);
        // Unlike the number of the plan, the salt differs from life to life.
        let id = format!("{salt:016x}");
        metrics::scheduling(Kind::Provisioner.as_str(), &id, real);
        let settings = Settings {
            name_salt: salt,
            respect_preferences: self.wiring.settings.respect_preferences,
            lower_min_values: self.wiring.settings.lower_min_values,
            wait_for_reserved: true,
            ..Settings::default()
        };
        let label_keys = self.wiring.cloud.label_keys();
        let snapshot = restarts::without_held(&snapshot, cx.now());
        let question = Arc::new(Question { at: cx.now(), snapshot, catalog, pods, settings, label_keys });
        self.doing = Doing::Solving(op, Instant::now(), id, Arc::clone(&question));
        let ground = Arc::clone(&self.ground);
        let work = move || {
            let problem = question.problem();
            // A solver that panicked has left nothing behind: it begins anew.
            let mut ground = ground.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = Problem { pods: &problem.pods[..waiting], ..problem };
            metrics::pods_by_zone(Kind::Provisioner.as_str(), &scheduling::effective_zones(&waiting));
            let (plan, violations) = scheduling::sound(&problem, |asked| ground.plan(asked));
            (plan, violations.iter().map(ToString::to_string).collect())
        };
        cx.compute(work, move |result| ProvisionerMsg::Solved(op, result.map(Box::new)));
    }

    /// For how long a plan has to wait, if it has to: until the last one is seen, for a while when that could not be created, and at the start until there is
    /// something to buy.
    fn wait(&mut self, snapshot: &Snapshot) -> Option<Duration> {
        self.awaited.retain(|name, since| !snapshot.claims.contains_key(name) && since.elapsed() < CATCH_UP_AT_MOST);
        self.paused.take_if(|(until, _)| *until <= Instant::now());
        if !self.awaited.is_empty() {
            return Some(CATCH_UP);
        }
        // Whoever has come since is not held up by others whose NodeClaims are refused.
        let is_new = |epoch: u64| snapshot.pending.values().any(|arrival| *arrival > epoch);
        if let Some((until, _)) = self.paused.filter(|(_, epoch)| !is_new(*epoch)) {
            return Some(until.duration_since(Instant::now()));
        }
        (self.born.elapsed() < SUPPLY_AT_MOST && self.is_supply_on_its_way()).then_some(CATCH_UP)
    }

    /// No plan is made without seeing these. It is said once, and shown.
    fn bar(&mut self, withheld: Vec<facts::Kind>) {
        if self.barred != withheld {
            tracing::error!(kinds = names(&withheld), "no nodes are bought before joiner may list and watch these");
            self.barred = withheld;
        }
    }

    /// Finds the placeholders of CapacityBuffers, which come after all other pods.
    fn find_placeholders(&mut self, snapshot: &Snapshot, cx: &Cx<ProvisionerMsg>) {
        if !self.has_buffers(snapshot) {
            self.placeholders = Placeholders::default();
            self.refill = None;
            return;
        }
        self.refill = Some(cx.after(BUFFERS, ProvisionerMsg::BatchReady));
        self.placeholders = buffers::placeholders(snapshot);
    }

    fn has_buffers(&self, snapshot: &Snapshot) -> bool {
        self.wiring.settings.features.capacity_buffer && !snapshot.buffers.is_empty()
    }

    fn publish_rooms(&self, rooms: Rooms) {
        let board = &self.wiring.boards.rooms;
        if **board.borrow() != rooms {
            board.send_replace(Arc::new(rooms));
            self.wiring.slots.pools.cast(PoolsMsg::Look);
        }
    }

    /// Begins a plan if there is anybody whom the last one does not serve (what was asked for while it was being made may be in it), or if
    /// there is room to keep free.
    fn begin_for_who_is_left(&mut self, cx: &Cx<ProvisionerMsg>) {
        let buffers = self.has_buffers(&self.wiring.boards.snapshot());
        if !buffers {
            // Nothing keeps room free that nobody asks for any more.
            self.publish_rooms(Rooms::default());
        }
        if buffers || self.is_anybody_left(cx.now()) {
            self.begin(cx);
            return;
        }
        self.again = false;
        // Everybody has a place in a plan. Whether they also get it is seen later.
        self.watching.get_or_insert_with(|| cx.after(AT_WORK, ProvisionerMsg::Watch));
    }

    /// Whether a NodePool has not been judged yet, or a NodeClass is there whose instance types the cloud has not yet told.
    fn is_supply_on_its_way(&self) -> bool {
        let (snapshot, catalog) = (self.wiring.boards.snapshot(), self.wiring.boards.catalog());
        snapshot.pools.values().any(|pool| {
            let class = &pool.template.class;
            let judged = find_condition(&pool.conditions, "Ready").is_some();
            !judged || snapshot.classes.contains_key(class) && !catalog.classes.contains_key(class)
        })
    }

    fn solved(&mut self, result: Result<Box<(Plan, Vec<String>)>, String>, cx: &Cx<ProvisionerMsg>) {
        let Doing::Solving(_, began, id, question) = std::mem::replace(&mut self.doing, Doing::Nothing) else { return };
        metrics::scheduled(Kind::Provisioner.as_str(), began.elapsed());
        let placeholders = std::mem::take(&mut self.placeholders);
        let (mut plan, violations) = match result {
            Ok(solved) => *solved,
            Err(panic) => {
                tracing::error!(error = panic, "the solver failed");
                cx.slot().meter().failed(cx.now(), &panic);
                return;
            }
        };
        if let Some(first) = violations.first() {
            // What breaks a rule is not carried out: the pods that it is about stay pending and are told, and somebody must see this.
            let text = format!("a plan was refused by its check: {first} ({} violations)", violations.len());
            tracing::error!(error = %text, "planned again without the pods that are concerned");
            cx.slot().meter().failed(cx.now(), &text);
        }
        let snapshot = self.wiring.boards.snapshot();
        self.bought.forget(&snapshot);
        self.bought.withhold(&mut plan, &snapshot);
        let (epoch, planned_for) = (snapshot.epoch, question.snapshot.epoch);
        // What is remembered is what the solver said, all of it.
        let decision = Decision { question, plan: Arc::new(plan.clone()) };
        self.seek_bound(&decision, cx);
        self.wiring.boards.decisions.send_modify(|known| *known = Arc::new(known.and(decision)));
        let stays = |uid: &PodUid| self.leavers.contains(uid) && snapshot.pods.contains_key(uid);
        drop_unwanted(&mut plan, |uid| snapshot.arrival(uid).is_some() || stays(uid) || placeholders.has(uid));
        self.publish_rooms(placeholders.take_out(&mut plan));
        self.foreseen = Foreseen::take_out(&self.leavers, &mut plan);
        leave_to_scheduler(&mut plan, &snapshot);
        self.publish_refusals(&plan, epoch);
        self.report(&plan, &id, cx);
        self.tell_state(&plan);
        self.tell_pods(&plan, cx);
        self.tell_pools(&plan, cx);
        for placed in &plan.existing {
            if let Some(claim) = &placed.claim {
                let pods = placed.pods.iter().map(|pod| pod.uid.clone()).collect();
                self.wiring.slots.state.cast(StateMsg::Planned(claim.clone(), pods));
            }
        }
        let mut creating = BTreeMap::new();
        for planned in plan.claims {
            let pods = planned.pods.iter().map(|pod| pod.uid.clone()).collect();
            self.wiring.slots.state.cast(StateMsg::Planned(planned.draft.name.clone(), pods));
            self.bought.note(&planned.draft.name, &planned.pods);
            self.create(&planned, cx);
            creating.insert(planned.draft.name.clone(), (planned, 1));
        }
        if creating.is_empty() {
            self.failures = 0;
        } else {
            self.doing = Doing::Creating(Creating { left: creating, failed: false, epoch: planned_for });
        }
    }

    fn create(&self, planned: &PlannedClaim, cx: &Cx<ProvisionerMsg>) {
        let (cluster, draft, name) =
            (Arc::clone(&self.wiring.cluster), planned.draft.clone(), planned.draft.name.clone());
        let call = async move { cluster.create_claim(&draft).await };
        cx.start(Permits::WriteCluster, call, move |outcome| ProvisionerMsg::Created(name, outcome));
    }

    fn created(&mut self, name: &ClaimName, outcome: Written<Arc<Claim>>, cx: &Cx<ProvisionerMsg>) {
        let Doing::Creating(creating) = &mut self.doing else { return };
        let Some((planned, attempts)) = creating.left.remove(name) else { return };
        let failure = match outcome {
            Outcome::Done(claim) => {
                let did = if self.wiring.cluster.only_says() { "would create" } else { "created" };
                tracing::info!(nodeclaim = %name, nodepool = %planned.draft.pool, pods = planned.pods.len(), price = rounded(planned.price), "{did} nodeclaim");
                let relaxed =
                    planned.draft.annotations.get(labels::MIN_VALUES_RELAXED).is_some_and(|word| &**word == "true");
                metrics::claim_created(CreatedFor::Provisioned, &planned.draft.pool, relaxed);
                self.wiring.slots.state.cast(StateMsg::Seen(crate::core::facts::Fact::ClaimSeen(claim)));
                self.awaited.insert(name.clone(), Instant::now());
                None
            }
            // An earlier attempt whose answer got lost.
            Outcome::Failed(cluster::Error::Exists(_)) => {
                self.awaited.insert(name.clone(), Instant::now());
                None
            }
            Outcome::Lost | Outcome::Failed(cluster::Error::Unknown(_)) if attempts < CREATE_ATTEMPTS => {
                creating.left.insert(name.clone(), (planned.clone(), attempts + 1));
                self.create(&planned, cx);
                return;
            }
            outcome => outcome.answer().err(),
        };
        if failure.is_none() {
            self.troubles.clear();
        }
        if let Some(failure) = failure {
            creating.failed = true;
            // A plan may be hundreds of NodeClaims that fail for one reason, again and again.
            if self.troubles.insert(failure.replace(name.as_str(), "")) {
                tracing::error!(nodeclaim = %name, error = %failure, "nodeclaim not created");
            }
            cx.slot().meter().failed(cx.now(), &format!("{name}: {failure}"));
            self.wiring.slots.state.cast(StateMsg::Unplanned(name.clone()));
        }
        if let Doing::Creating(Creating { left, failed, epoch }) = &self.doing
            && left.is_empty()
        {
            self.failures = if *failed { self.failures + 1 } else { 0 };
            let pause = failed.then(|| backoff(FIRST_PAUSE, LONGEST_PAUSE, self.failures));
            self.paused = pause.map(|pause| (Instant::now() + pause, *epoch));
            self.doing = Doing::Nothing;
            if self.again {
                self.begin_for_who_is_left(cx);
            }
        }
    }
}

/// Takes out of a plan what kube-scheduler will decide by itself: pods that it has not looked at, and for which nothing is to be bought.
fn leave_to_scheduler(plan: &mut Plan, snapshot: &Snapshot) {
    let decided = |uid: &PodUid| !snapshot.undecided.contains_key(uid);
    let is_open = |placed: &PlacedOn| {
        placed.node.as_ref().and_then(|name| snapshot.nodes.get(name)).is_some_and(|node| node.is_registered())
    };
    for placed in plan.existing.iter_mut().filter(|placed| is_open(placed)) {
        placed.pods.retain(|pod| decided(&pod.uid));
    }
    plan.existing.retain(|placed| !placed.pods.is_empty());
    plan.refused.retain(|refusal| decided(&refusal.pod));
}

fn names(kinds: &[facts::Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    names.join(", ")
}

impl Behaviour for Provisioner {
    type Msg = ProvisionerMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Provisioner;

    fn born(wiring: &Self::Args, cx: &Cx<ProvisionerMsg>) -> Self {
        // A predecessor may have died in the middle of creating: what it did not create is planned again, once the snapshot shows what it did.
        let look = Some(cx.after(RECONSIDER.min(Duration::from_secs(1)), ProvisionerMsg::BatchReady));
        let spreads = DefaultSpreads::new(wiring.settings.default_spreads.clone());
        Self {
            wiring: Arc::clone(wiring),
            doing: Doing::Nothing,
            ground: Arc::default(),
            spreads,
            last_op: 0,
            again: false,
            awaited: BTreeMap::new(),
            look,
            placeholders: Placeholders::default(),
            leavers: BTreeSet::new(),
            foreseen: Foreseen::default(),
            foresee: None,
            refill: None,
            doors: Doors::default(),
            overlooked: 0,
            left_over: 0,
            watching: None,
            bought: Bought::default(),
            plans: 0,
            refused: 0,
            last: None,
            timeline: Timeline::new(TIMELINE),
            said: Dedupe::new(),
            barred: Vec::new(),
            troubles: BTreeSet::new(),
            failures: 0,
            paused: None,
            born: Instant::now(),
        }
    }

    fn handle(&mut self, message: ProvisionerMsg, cx: &Cx<ProvisionerMsg>) {
        match message {
            ProvisionerMsg::BatchReady => {
                self.look = None;
                self.begin_for_who_is_left(cx);
                self.look_after_leavers(cx);
            }
            ProvisionerMsg::Foresee => {
                self.foresee = None;
                if self.is_anybody_unforeseen(cx.now()) {
                    self.begin(cx);
                }
                self.look_after_leavers(cx);
            }
            ProvisionerMsg::Solved(op, result) => {
                if matches!(self.doing, Doing::Solving(current, ..) if current == op) {
                    self.solved(result, cx);
                    if matches!(self.doing, Doing::Nothing) && self.again {
                        self.begin_for_who_is_left(cx);
                    }
                    self.watching.get_or_insert_with(|| cx.after(AT_WORK, ProvisionerMsg::Watch));
                }
            }
            ProvisionerMsg::Watch => self.watch(cx),
            ProvisionerMsg::Bounded(price, bound) => self.tell_bound(price, bound, cx),
            ProvisionerMsg::Created(name, outcome) => self.created(&name, outcome, cx),
            ProvisionerMsg::SoldOut(claim, pods, why) => self.tell_pods_of_no_capacity(&claim, &pods, &why, cx),
            ProvisionerMsg::SupplyChanged => {
                let snapshot = self.wiring.boards.snapshot();
                if self.look.is_none()
                    && (self.refused + self.foreseen.refused() > 0
                        || !snapshot.pending.is_empty()
                        || self.has_buffers(&snapshot))
                {
                    self.look = Some(cx.after(RECONSIDER, ProvisionerMsg::Look));
                }
            }
            ProvisionerMsg::Look => {
                self.look = None;
                if self.is_anybody_left(cx.now()) || self.has_buffers(&self.wiring.boards.snapshot()) {
                    self.begin(cx);
                }
            }
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let (state, waits_for) = match &self.doing {
            Doing::Nothing if !self.barred.is_empty() => {
                ("barred".to_owned(), Some(format!("joiner to be allowed to list and watch {}", names(&self.barred))))
            }
            Doing::Nothing if self.paused.is_some_and(|(until, _)| until > Instant::now()) => {
                ("pausing".to_owned(), Some("a while to pass, as NodeClaims could not be created".to_owned()))
            }
            Doing::Nothing if self.awaited.is_empty() => ("idle".to_owned(), None),
            Doing::Nothing => {
                ("catching up".to_owned(), Some(format!("{} new NodeClaims to be seen", self.awaited.len())))
            }
            Doing::Solving(..) => ("solving".to_owned(), Some("the plan".to_owned())),
            Doing::Creating(creating) => {
                ("creating".to_owned(), Some(format!("{} NodeClaims to be written", creating.left.len())))
            }
        };
        let refusals = self.wiring.boards.refusals.borrow().clone();
        let details =
            refusals.reasons.iter().take(100).map(|(pod, reasons)| (pod.to_string(), reasons.join("; "))).collect();
        View { state, waits_for, timeline: self.timeline.noted(), details, ..View::default() }
    }
}
