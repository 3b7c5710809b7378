//! The actor itself: it looks, says what it found, and acts upon what is certain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::clouds::{Deletion, Listing, Notice};
use crate::core::audit::{Alarm, Evidence, Finding, History, Look, Rules, Verdict, audit};
use crate::core::consent::{self, ANNOTATION, Consent, Decision};
use crate::core::facts::{Claim, Machine, Snapshot};
use crate::core::ids::{NodeUid, ProviderId};
use crate::core::lifecycle::Denials;
use crate::core::promises::Looked;
use crate::core::record::Record;
use crate::core::steady::Leaps;
use crate::core::writes::Regarding;

use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::events;
use crate::telemetry::metrics::{self, OrphanKind};

use crate::actors::protocol::{AuditorMsg, Called, PoolsMsg, Written};
use crate::actors::runtime::{Behaviour, Cx, Kind, OpId, Outcome, Permits, Timeline, Timer, View};
use crate::actors::tree::Wiring;

/// Findings that are shown at most; a page that cannot be read helps nobody.
const SHOWN: usize = 1000;
/// Findings that are no more and are remembered all the same.
const CLOSED: usize = 100;
/// What an Event has room for, beside the reason: it may have 1024 bytes.
const LONGEST_REMEDY: usize = 600;
/// How many of its deeds the auditor can show.
const TIMELINE: usize = 50;

/// Compares.
#[derive(Debug)]
pub(in crate::actors) struct Auditor {
    pub(super) wiring: Arc<Wiring>,
    pub(super) history: History,
    pub(super) consent: Consent,
    /// Findings that are no more: when, what spoke for them.
    closed: VecDeque<(Timestamp, Finding, Evidence)>,
    /// Machines that were ordered down and that the cloud has not confirmed to be gone.
    ordered: BTreeSet<ProviderId>,
    /// Machines that are to go when their pods have left, and since when these leave.
    pub(super) draining: BTreeMap<ProviderId, Timestamp>,
    pub(super) leaps: Leaps,
    pub(super) drain: Option<Timer>,
    /// Machines on which nothing ran when their Nodes were closed a moment ago.
    pub(super) emptied: BTreeSet<ProviderId>,
    /// Nodes that nothing closes, as of the look with this number: an admission policy takes back what was granted, or has refused it for long.
    pub(super) kept_open: BTreeMap<NodeUid, u64>,
    /// Nodes that are to be closed, which was said, and since when no write of that succeeds.
    pub(super) unwritten: BTreeMap<NodeUid, Timestamp>,
    /// How the cloud has said that it has no such machine, of those that are to be finished for it.
    pub(super) denied: BTreeMap<Finding, Denials>,
    /// For the next question about them.
    pub(super) asking: Option<Timer>,
    /// What the cloud plans to do to machines.
    notices: Vec<Notice>,
    pub(super) said: Dedupe,
    last_op: OpId,
    /// When the listing of the look under way began; see [`Looked`].
    began: Duration,
    /// The machines of the look under way: the NodeClaims are read after them, so that a machine's NodeClaim cannot be missing for
    /// being newer than the list.
    machines: Option<Listing>,
    pub(super) verdict: Verdict,
    pub(super) looks: u64,
    last_look: Option<Timestamp>,
    trouble: Option<String>,
    tick: Option<Timer>,
    pub(super) timeline: Timeline,
    /// A look is under way since then.
    looking: Option<Timestamp>,
}

impl Auditor {
    fn begin(&mut self, cx: &Cx<AuditorMsg>) {
        self.tick = Some(cx.after(self.wiring.settings.audit_every, AuditorMsg::Tick));
        self.heed();
        if let Some(since) = self.looking {
            // Every call ends some time, and a look that is begun anew each time never would.
            self.trouble = Some(format!("the look that began at {since:.0} to end"));
            return;
        }
        if !cx.house.operations.may_write() {
            // Whoever acts meanwhile looks for himself, and may have written something else.
            self.verdict = Verdict::default();
            return self.raise(Alarm::Unknown);
        }
        self.last_op += 1;
        self.began = cx.house.promises.moment();
        self.looking = Some(cx.now());
        let (op, cloud) = (self.last_op, Arc::clone(&self.wiring.cloud));
        let call = async move { cloud.list().await };
        cx.start(Permits::ReadCloud, call, move |outcome| AuditorMsg::MachinesListed(op, outcome));
    }

    /// The lease was lost: whoever acts meanwhile may have taken back what was begun here, and pods have been asked by nobody here. When it comes back
    /// everything begins as in a joiner that was just started.
    fn stand_by(&mut self) {
        // Answers to what is under way are another look's.
        self.last_op += 1;
        (self.machines, self.looking) = (None, None);
        (self.history, self.consent) = (History::new(), Consent::default());
        self.verdict = Verdict::default();
        self.raise(Alarm::Unknown);
        (self.draining, self.drain, self.emptied) = (BTreeMap::new(), None, BTreeSet::new());
        (self.kept_open, self.unwritten) = (BTreeMap::new(), BTreeMap::new());
        (self.denied, self.asking) = (BTreeMap::new(), None);
    }

    fn machines_listed(&mut self, outcome: Called<Listing>, cx: &Cx<AuditorMsg>) {
        match outcome.answer() {
            Ok(listing) => self.machines = Some(listing),
            Err(why) => return self.interrupted(format!("machines not listed: {why}"), cx),
        }
        self.last_op += 1;
        let (op, cluster) = (self.last_op, Arc::clone(&self.wiring.cluster));
        if !self.wiring.settings.protections.fresh_list {
            let watched = self.wiring.boards.snapshot().claims.values().cloned().collect();
            return cx.cast(AuditorMsg::ClaimsListed(op, Outcome::Done(watched)));
        }
        let call = async move { cluster.list_claims().await };
        cx.start(Permits::ReadCluster, call, move |outcome| AuditorMsg::ClaimsListed(op, outcome));
    }

    fn claims_listed(&mut self, outcome: Written<Vec<Arc<Claim>>>, cx: &Cx<AuditorMsg>) {
        let claims = match outcome.answer() {
            Ok(claims) => claims,
            Err(why) => return self.interrupted(format!("NodeClaims not listed: {why}"), cx),
        };
        self.looking = None;
        let Some(listing) = self.machines.take() else { return };
        let snapshot = self.wiring.boards.snapshot();
        self.tell_of_notices(listing.notices, &claims, &snapshot, cx);
        let protections = self.wiring.settings.protections;
        let mut rules = Rules::default();
        if !protections.evidence {
            (rules.looks, rules.grace) = (1, Duration::ZERO);
        }
        if !protections.breaker {
            rules.breaker = 100;
        }
        rules.drains = protections.evacuation;
        // A clock that was ahead may have dated them.
        self.draining.values_mut().for_each(|since| *since = (*since).min(cx.now()));
        let lease = self.wiring.boards.lease.borrow().clone();
        let said = lease.as_ref().and_then(|lease| lease.audit.clone());
        self.consent.resume(self.record().held);
        let look = Look {
            machines: &listing.machines,
            complete: listing.complete,
            settles_within: SignedDuration::try_from(listing.settles_within).unwrap_or(SignedDuration::MAX),
            claims: &claims,
            classes: &self.wiring.cloud.class_kinds(),
            snapshot: &snapshot,
            ordered: &self.ordered,
            draining: &self.draining,
            said: said.as_deref(),
            now: cx.now(),
            moment: cx.house.promises.moment(),
            rules,
        };
        let known = self.history.clone();
        self.verdict = audit(&look, &mut self.history, &mut self.consent);
        self.looks += 1;
        self.last_look = Some(cx.now());
        self.trouble = None;
        if listing.complete {
            self.watch_promises(&listing.machines, cx);
        }
        self.tell_of_findings(known, cx.now());
        self.tell_of_unmarked(cx);
        self.write_down_look(listing.complete, cx.now());
        self.tell_of_breaker(lease.as_ref().map(|lease| &lease.object), cx);
        self.choose_drains(&claims, cx);
        self.act(cx);
    }

    /// Looks whether promises were kept. What a person is to decide about waits for that, and what a person has dismissed stays.
    fn watch_promises(&self, machines: &[Machine], cx: &Cx<AuditorMsg>) {
        let is_counted = |finding: &Finding| match self.consent.about(finding) {
            Some(decision) => decision == Decision::Approve && self.consent.unread().is_none(),
            None => self.verdict.breaker.is_none(),
        };
        let orphans = self.history.keys().filter(|finding| is_counted(finding)).filter_map(|finding| match finding {
            Finding::OrphanMachine(id) => Some(id),
            _ => None,
        });
        cx.house.promises.look(&Looked {
            began: self.began,
            now: cx.house.promises.moment(),
            lag: self.wiring.may_deny_for(),
            machines,
            orphans: orphans.collect(),
        });
    }

    /// Each finding is said and counted once, when it is made; one that is no more is kept for a while.
    fn tell_of_findings(&mut self, known: History, now: Timestamp) {
        for (finding, evidence) in self.history.iter().filter(|(finding, _)| !known.contains_key(*finding)) {
            let kind = match finding {
                Finding::OrphanMachine(_) | Finding::UnmarkedMachine(_) => Some(OrphanKind::Machine),
                Finding::SurplusMachine(_) => Some(OrphanKind::Duplicate),
                Finding::LostMachine(..) => Some(OrphanKind::Claim),
                Finding::LeftNode(..) => Some(OrphanKind::Node),
                // It has all that it needs.
                Finding::HiddenMachine(..) => None,
            };
            if let Some(kind) = kind {
                metrics::orphan_found(kind);
            }
            tracing::warn!(%finding, evidence = %evidence.seen, "audit finding");
        }
        for (finding, evidence) in known {
            if !self.history.contains_key(&finding) {
                self.closed.push_front((now, finding, evidence));
            }
        }
        self.closed.truncate(CLOSED);
    }

    /// Says of NodeClaims and their Nodes what the cloud plans to do to their machines, again and again until it is over.
    fn tell_of_notices(
        &mut self,
        notices: Vec<Notice>,
        claims: &[Arc<Claim>],
        snapshot: &Snapshot,
        cx: &Cx<AuditorMsg>,
    ) {
        self.notices = notices;
        self.notices.retain(|notice| notice.until.is_none_or(|until| until > cx.now()));
        for notice in &self.notices {
            let Some(claim) = claims.iter().find(|claim| claim.provider_id.as_ref() == Some(&notice.machine)) else {
                continue;
            };
            let plan = notice.to_string();
            let node = snapshot.node_of(claim).map(|node| Regarding::Node(node.name.clone(), node.uid.clone()));
            for about in node.into_iter().chain([Regarding::Claim(claim.name.clone(), claim.uid.clone())]) {
                let event = events::maintenance_planned(about, &claim.name, &plan);
                self.wiring.announce(&cx.house, &mut self.said, event);
            }
        }
    }

    /// Says that the breaker is open and what a person can do about it, and that a person has decided.
    fn tell_of_breaker(&mut self, lease: Option<&Regarding>, cx: &Cx<AuditorMsg>) {
        let event = if let Some(breaker) = &self.verdict.breaker {
            let remedy = self.remedy();
            tracing::error!(reason = %breaker, remedy, "audit breaker open, nothing is removed");
            let remedy = self.short_remedy();
            lease.cloned().map(|lease| events::audit_breaker_open(lease, &breaker.reason, &remedy))
        } else {
            None
        };
        let mut said: Vec<_> = event.into_iter().collect();
        for (decision, findings) in self.verdict.decided.clone() {
            tracing::warn!(%decision, findings, "a person has decided about audit findings");
            self.timeline.note(cx.now(), format!("a person said {decision} about {findings} findings"));
            said.extend(lease.cloned().map(|lease| events::audit_decided(lease, &decision.to_string(), findings)));
        }
        for event in said {
            self.wiring.announce(&cx.house, &mut self.said, event);
        }
        self.raise(match &self.verdict.breaker {
            Some(breaker) => Alarm::Open {
                cause: breaker.cause,
                message: format!("Nothing is removed: {breaker}. {}", self.short_remedy()),
            },
            None => Alarm::Closed,
        });
    }

    /// NodePools and a metric say whether the breaker is open.
    fn raise(&self, alarm: Alarm) {
        metrics::audit_breaker(matches!(alarm, Alarm::Open { .. }));
        if *self.wiring.boards.alarm.borrow() != alarm {
            self.wiring.boards.alarm.send_replace(alarm);
            self.wiring.slots.pools.cast(PoolsMsg::Look);
        }
    }

    /// What a person can do about the open breaker, and what each ID in it is about.
    fn remedy(&self) -> String {
        let question = self.verdict.breaker.as_ref().and_then(|breaker| breaker.question.as_ref());
        let about = question.into_iter().flat_map(|question| &question.about);
        let named: Vec<_> = about.map(|(id, finding)| format!("{id}: {finding}")).collect();
        if named.is_empty() { self.command() } else { format!("{}; {}", self.command(), named.join("; ")) }
    }

    /// The same where there is not much room, as in an Event.
    fn short_remedy(&self) -> String {
        let remedy = self.command();
        if remedy.len() <= LONGEST_REMEDY {
            return remedy;
        }
        "What was found, and the command that decides about it, is too long for this place: it is on /actors (auditor, what to do) and in joiner's log"
            .to_owned()
    }

    /// What a person can do about the open breaker, without further words.
    fn command(&self) -> String {
        let Some(question) = self.verdict.breaker.as_ref().and_then(|breaker| breaker.question.as_ref()) else {
            return "nothing to be done: it closes with the next listing that is complete".to_owned();
        };
        let lease = self.wiring.boards.lease_object();
        let Some(Regarding::Lease(key, _)) = lease else {
            return "joiner holds no lease to write a decision into; start it with leader election".to_owned();
        };
        let (namespace, name) = (&key.namespace, &key.name);
        let annotate = format!("kubectl -n {namespace} annotate lease {name}");
        let (approve, dismiss) = (&question.approve, &question.dismiss);
        let command = if approve.is_empty() {
            format!("{annotate} {ANNOTATION}-")
        } else if approve == dismiss {
            format!("{annotate} --overwrite {ANNOTATION}='{approve}'")
        } else {
            format!("{annotate} --overwrite {ANNOTATION}='{approve}' (or '{dismiss}')")
        };
        match self.consent.misunderstood().filter(|_| self.consent.unread().is_none()) {
            Some(misunderstood) => format!("{command}; {misunderstood}"),
            None => command,
        }
    }

    fn act(&mut self, cx: &Cx<AuditorMsg>) {
        for id in self.verdict.again.clone() {
            self.order_down(id, cx);
        }
        self.reap(cx);
        self.ask_for_lost(cx);
    }

    /// A look that could not be finished says nothing, and breaks no row of looks.
    fn interrupted(&mut self, why: String, cx: &Cx<AuditorMsg>) {
        tracing::warn!(error = %why, "audit not finished");
        cx.slot().meter().failed(cx.now(), &why);
        self.trouble = Some(why);
        (self.machines, self.looking) = (None, None);
    }

    /// What a person has just dismissed, or written so that nobody knows what it forbids, is left alone from now on, were the next look to fail.
    fn heed(&mut self) {
        let said = self.wiring.boards.lease.borrow().as_ref().and_then(|lease| lease.audit.clone());
        self.consent.hear(said.as_deref());
        let (consent, is_unread) = (&self.consent, self.consent.unread().is_some());
        let may = |finding: &Finding| !is_unread && consent.about(finding) != Some(Decision::Dismiss);
        let may_go = |id: &ProviderId| Finding::of_machine(id).iter().all(may);
        self.verdict.finish.retain(may);
        self.verdict.reap.retain(may_go);
        self.emptied.retain(may_go);
        self.draining.retain(|id, _| may_go(id));
    }

    /// What was to be done was refused: it is said where it was written down that it is done, once while it is refused for the same reason.
    pub(super) fn not_done(&mut self, what: &str, why: &str, cx: &Cx<AuditorMsg>) {
        cx.slot().meter().failed(cx.now(), &format!("{what}: {why}"));
        if !self.record().has(what, why) {
            tracing::warn!(error = why, "{what}");
            self.timeline.note(cx.now(), what.to_owned());
            self.write_down(what, why, cx);
        }
    }
}

impl Behaviour for Auditor {
    type Msg = AuditorMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Auditor;

    fn born(wiring: &Self::Args, cx: &Cx<AuditorMsg>) -> Self {
        Self {
            wiring: Arc::clone(wiring),
            history: History::new(),
            consent: Consent::default(),
            closed: VecDeque::new(),
            ordered: BTreeSet::new(),
            draining: BTreeMap::new(),
            leaps: Leaps::default(),
            drain: None,
            emptied: BTreeSet::new(),
            kept_open: BTreeMap::new(),
            unwritten: BTreeMap::new(),
            denied: BTreeMap::new(),
            asking: None,
            notices: Vec::new(),
            said: Dedupe::new(),
            last_op: 0,
            began: Duration::ZERO,
            machines: None,
            verdict: Verdict::default(),
            looks: 0,
            last_look: None,
            trouble: None,
            tick: Some(cx.after(wiring.settings.audit_every, AuditorMsg::Tick)),
            timeline: Timeline::new(TIMELINE),
            looking: None,
        }
    }

    fn handle(&mut self, message: AuditorMsg, cx: &Cx<AuditorMsg>) {
        let leapt = self.leaps.look(cx.house.promises.moment(), cx.now());
        self.draining.values_mut().for_each(|begun| *begun = leapt.max(*begun));
        match message {
            AuditorMsg::Tick => self.begin(cx),
            AuditorMsg::MachinesListed(op, outcome) if op == self.last_op => self.machines_listed(outcome, cx),
            AuditorMsg::ClaimsListed(op, outcome) if op == self.last_op => self.claims_listed(outcome, cx),
            AuditorMsg::MachinesListed(..) | AuditorMsg::ClaimsListed(..) => {}
            AuditorMsg::StandBy => self.stand_by(),
            AuditorMsg::Drain => {
                self.drain(cx);
                self.reap_emptied(cx);
            }
            AuditorMsg::NodeWritten(name, uid, outcome) => self.node_written(&name, uid, outcome, cx),
            AuditorMsg::Inhabited(id, outcome) => self.told_of_pods(id, outcome, cx),
            AuditorMsg::Reaped(id, outcome) => match outcome {
                Outcome::Done(Deletion::InProgress) => {
                    if self.ordered.insert(id.clone()) {
                        self.timeline.note(cx.now(), format!("{id} is going"));
                    }
                }
                // One that is there all the same is listed, and found again.
                Outcome::Done(Deletion::Gone | Deletion::Missing) => {
                    self.ordered.remove(&id);
                    self.timeline.note(cx.now(), format!("{id} is gone"));
                }
                Outcome::Failed(error) => {
                    self.not_done(&format!("machine {id} was not taken down"), &error.to_string(), cx);
                }
                Outcome::Lost | Outcome::NotLeader | Outcome::Late => {}
            },
            AuditorMsg::AskForLost if cx.house.operations.may_write() => self.ask_for_lost(cx),
            // The next look asks.
            AuditorMsg::AskForLost => {}
            AuditorMsg::MachineAsked(finding, outcome) => self.machine_asked(&finding, outcome, cx),
            AuditorMsg::ClaimDeleted(name, outcome) => match outcome {
                Outcome::Done(()) => self.count(&name),
                Outcome::Failed(error) => {
                    self.not_done(&format!("NodeClaim {name} was not deleted"), &error.to_string(), cx);
                }
                Outcome::Lost | Outcome::NotLeader | Outcome::Late => {}
            },
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let findings = self.history.iter().map(|(finding, evidence)| {
            let decided = self.consent.about(finding).map(|decision| format!(" (a person said: {decision})"));
            let named = format!("ID {}, {evidence}{}", consent::id(finding), decided.unwrap_or_default());
            (finding.to_string(), named)
        });
        let closed = self
            .closed
            .iter()
            .map(|(at, finding, evidence)| (format!("no more since {at:.0}: {finding}"), evidence.to_string()));
        let mut details = vec![("looks".to_owned(), self.looks.to_string())];
        if self.verdict.breaker.is_some() {
            details.push(("what to do".to_owned(), self.remedy()));
        }
        let misunderstood = self.consent.misunderstood();
        details.extend(misunderstood.map(|why| (format!("about the annotation {ANNOTATION}"), why.to_owned())));
        details.extend(self.consent.describe().map(|said| ("decided by a person".to_owned(), said.to_owned())));
        details
            .extend(self.draining.iter().map(|(id, since)| (format!("pods leave {id}"), format!("since {since:.0}"))));
        let planned = self.notices.iter().take(SHOWN);
        details.extend(planned.map(|notice| (format!("the cloud plans for {}", notice.machine), notice.to_string())));
        details.extend(findings.take(SHOWN));
        if let Some(more) = self.history.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            details.push(("further findings".to_owned(), more.to_string()));
        }
        details.extend(closed);
        let Record { deeds, findings: written, .. } = self.record();
        details.extend(deeds.into_iter().map(|(at, deed)| (format!("done at {at:.0}"), deed)));
        let shown = || self.history.keys().chain(self.closed.iter().map(|(_, finding, _)| finding));
        let is_shown = |text: &str| shown().any(|finding| text.starts_with(&format!("{finding}: ")));
        // By those before this one.
        let earlier = written.into_iter().filter(|(_, text)| !is_shown(text));
        details.extend(earlier.map(|(at, text)| (format!("found at {at:.0}"), text)));
        let state = match (&self.verdict.breaker, self.history.len()) {
            (Some(breaker), _) => format!("breaker open: {breaker}"),
            (None, 0) => "nothing found".to_owned(),
            (None, findings) => format!("{findings} findings"),
        };
        View { state, waits_for: self.trouble.clone(), timeline: self.timeline.noted(), details, ..View::default() }
    }
}
