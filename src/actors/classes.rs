//! `classes`: has the cloud work out what NodeClasses come to, writes it into their status, and keeps those that NodeClaims use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::clouds::{Judgement, Resolution};
use crate::cluster::Error;
use crate::core::conditions::Conditions;
use crate::core::facts::{Claim, Condition, NodeClass, Snapshot, Status, finalizers, find_condition};
use crate::core::ids::{ClaimName, ClassRef};
use crate::core::time::later;
use crate::core::writes::{ClassPatch, ClassStatusPatch, Regarding};
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::events;

use super::protocol::{Called, ClassesMsg, Written};
use super::runtime::{Behaviour, Cx, Kind, Outcome, Permits, Timer, View};
use super::tree::Wiring;

/// How long a joiner without the lease waits before it looks whether it has it by now, and before a failed write is repeated.
const SOON: Duration = Duration::from_secs(5);

/// Wait after a write of finalizers, or when somebody else was faster: the watch needs a moment to show it.
const OVERTAKEN: Duration = Duration::from_secs(1);

/// Keeps the status of NodeClasses.
#[derive(Debug)]
pub(super) struct Classes {
    wiring: Arc<Wiring>,
    known: BTreeMap<ClassRef, Known>,
    tick: Option<Timer>,
    said: Dedupe,
}

/// What is known of a NodeClass.
#[derive(Debug, Default)]
struct Known {
    /// Generation that was asked for last.
    generation: Option<i64>,
    /// When to ask again.
    due: Option<Timestamp>,
    /// When it was last asked for.
    asked: Option<Timestamp>,
    asking: bool,
    writing: bool,
    /// When its finalizers are tried again after they could not be written.
    keep_at: Option<Timestamp>,
    failure: Option<String>,
}

impl Known {
    /// What was said before may be outdated: it is asked for again now, or soon where it has just been asked for. Many launches may be refused at
    /// once.
    fn doubt(&mut self, now: Timestamp) {
        let soonest = self.asked.map_or(now, |asked| later(asked, SOON).max(now));
        self.due = self.due.map(|due| due.min(soonest));
    }
}

impl Classes {
    /// Asks for what is new, edited, or due.
    fn look(&mut self, cx: &Cx<ClassesMsg>) {
        if self.wiring.cloud.class_conditions().is_empty() {
            return;
        }
        let snapshot = self.wiring.boards.snapshot();
        if !cx.house.operations.may_write() {
            // Whoever takes the lease over begins anew: what was asked before may be outdated.
            self.known.clear();
            self.tick = Some(cx.after(SOON, ClassesMsg::Look));
            return;
        }
        self.known.retain(|reference, _| snapshot.classes.contains_key(reference));
        let now = cx.now();
        for (reference, class) in &snapshot.classes {
            let known = self.known.entry(reference.clone()).or_default();
            let is_due = known.due.is_none_or(|due| due <= now) || known.generation != Some(class.generation);
            // What cannot be read says so itself, and nobody can look further.
            let unreadable =
                find_condition(&class.conditions, "Ready").is_some_and(|ready| &*ready.reason == "Unreadable");
            if unreadable || class.deleting.is_some() {
                // It is not asked about until it is edited, so nothing is due.
                known.due = None;
            }
            if known.asking || known.writing {
                continue;
            }
            if !is_due || unreadable || class.deleting.is_some() {
                let may_keep = known.keep_at.is_none_or(|at| at <= now);
                if let Some(finalizers) = Self::finalizers(&snapshot, class).filter(|_| may_keep) {
                    known.writing = true;
                    let patch = ClassPatch { version: Arc::clone(&class.version), finalizers };
                    let (cluster, class, told) =
                        (Arc::clone(&self.wiring.cluster), reference.clone(), reference.clone());
                    let call = async move { cluster.patch_class(&class, &patch).await };
                    cx.start(Permits::WriteCluster, call, move |outcome| ClassesMsg::Kept(told, outcome));
                }
                continue;
            }
            known.asking = true;
            known.asked = Some(now);
            known.generation = Some(class.generation);
            let (cloud, class, reference) = (Arc::clone(&self.wiring.cloud), Arc::clone(class), reference.clone());
            let generation = class.generation;
            cx.start(Permits::ReadCloud, async move { cloud.resolve(&class).await }, move |outcome| {
                ClassesMsg::Resolved(reference, generation, outcome)
            });
        }
        self.tell_of_users(&snapshot, cx);
        self.arm(cx);
    }

    /// The finalizers that a NodeClass is to have, where it has others: one that NodeClaims use is kept, so that what their machines were made
    /// from can be looked up as long as they live.
    fn finalizers(snapshot: &Snapshot, class: &NodeClass) -> Option<Vec<Arc<str>>> {
        match (class.deleting.is_some(), class.has_finalizer()) {
            (false, false) => Some(finalizers::held(&class.finalizers)),
            (true, true) if users(snapshot, &class.reference).next().is_none() => {
                Some(finalizers::released(&class.finalizers))
            }
            _ => None,
        }
    }

    /// Says whom a NodeClass that is being deleted waits for.
    fn tell_of_users(&mut self, snapshot: &Snapshot, cx: &Cx<ClassesMsg>) {
        for class in held(snapshot) {
            let claims: Vec<&ClaimName> = users(snapshot, &class.reference).map(|claim| &claim.name).collect();
            if !claims.is_empty() {
                let about = Regarding::Class(class.reference.clone(), Arc::clone(&class.uid));
                self.wiring.announce(&cx.house, &mut self.said, events::waiting_on_claims(about, &claims));
            }
        }
    }

    /// Sets the timer for the next class that is due.
    fn arm(&mut self, cx: &Cx<ClassesMsg>) {
        let now = cx.now();
        let next = |known: &Known| known.due.into_iter().chain(known.keep_at.filter(|at| *at > now)).min();
        let due = self.known.values().filter(|known| !known.asking && !known.writing).filter_map(next);
        // Nobody says when the last NodeClaim of a class has gone.
        let is_waiting = held(&self.wiring.boards.snapshot()).next().is_some();
        let due = due.chain(is_waiting.then(|| later(now, SOON))).min();
        self.tick = due.map(|due| cx.after(cx.house.clock.until(due), ClassesMsg::Look));
    }

    fn resolved(&mut self, reference: &ClassRef, generation: i64, outcome: Called<Resolution>, cx: &Cx<ClassesMsg>) {
        let Some(known) = self.known.get_mut(reference) else { return };
        known.asking = false;
        let snapshot = self.wiring.boards.snapshot();
        let Some(class) = snapshot.classes.get(reference) else { return };
        if class.generation != generation {
            // Edited meanwhile: what was found is not what is asked for now.
            cx.cast(ClassesMsg::Look);
            return;
        }
        let resolution = outcome.answer().unwrap_or_else(|why| unanswered(self.wiring.cloud.class_conditions(), &why));
        let conditions = judged(class, self.wiring.cloud.class_conditions(), &resolution, cx.now());
        let ready = is_ready(&conditions);
        let settings = &self.wiring.settings;
        known.due = Some(later(cx.now(), if ready { settings.class_refresh } else { settings.class_retry }));
        if conditions == class.conditions && resolution.details.is_none() {
            self.arm(cx);
            return;
        }
        tell(class, &conditions, &resolution);
        known.writing = true;
        let patch = ClassStatusPatch { conditions: Some(conditions), details: resolution.details };
        let (cluster, class, told) = (Arc::clone(&self.wiring.cluster), reference.clone(), reference.clone());
        let call = async move { cluster.patch_class_status(&class, &patch).await };
        cx.start(Permits::WriteCluster, call, move |outcome| ClassesMsg::Written(told, outcome));
    }

    fn written(&mut self, reference: &ClassRef, outcome: Written<()>, cx: &Cx<ClassesMsg>) {
        let Some(known) = self.known.get_mut(reference) else { return };
        known.writing = false;
        if let Err(failure) = outcome.answer() {
            if known.failure.as_ref() != Some(&failure) {
                tracing::warn!(class = %reference, error = %failure, "status of NodeClass not written, trying again");
            }
            known.failure = Some(failure);
            known.due = Some(later(cx.now(), SOON));
        } else {
            known.failure = None;
        }
        // It may have been edited while its status was being written.
        cx.cast(ClassesMsg::Look);
    }

    /// A class whose finalizers cannot be written is used all the same.
    fn kept(&mut self, reference: &ClassRef, outcome: Written<()>, cx: &Cx<ClassesMsg>) {
        let Some(known) = self.known.get_mut(reference) else { return };
        known.writing = false;
        let overtaken = matches!(outcome, Outcome::Failed(Error::Conflict(_) | Error::NotFound(_)));
        let wait = match outcome.answer() {
            Err(failure) if !overtaken => {
                tracing::warn!(class = %reference, error = %failure, "finalizer of NodeClass not written, trying again");
                self.wiring.settings.class_retry
            }
            _ => OVERTAKEN,
        };
        known.keep_at = Some(later(cx.now(), wait));
        self.arm(cx);
    }
}

/// The NodeClasses that are being deleted and that joiner still keeps.
fn held(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<NodeClass>> {
    snapshot.classes.values().filter(|class| class.deleting.is_some() && class.has_finalizer())
}

/// The NodeClaims that a NodeClass is kept for.
fn users<'a>(snapshot: &'a Snapshot, class: &'a ClassRef) -> impl Iterator<Item = &'a Arc<Claim>> {
    snapshot.claims.values().filter(move |claim| claim.class == *class)
}

/// What can be said when the cloud said nothing.
fn unanswered(conditions: &[&'static str], why: &str) -> Resolution {
    let judgement = |condition: &&'static str| Judgement {
        condition,
        status: Status::Unknown,
        reason: "NoAnswer",
        message: why.to_owned(),
    };
    Resolution { judgements: conditions.iter().map(judgement).collect(), details: None }
}

/// The conditions of a NodeClass after a look. What the cloud did not answer does not take back what it has said of this generation before.
fn judged(class: &NodeClass, dependents: &[&str], resolution: &Resolution, now: Timestamp) -> Vec<Condition> {
    let mut conditions = Conditions::of(&class.conditions, dependents, class.generation, now, now);
    for Judgement { condition, status, reason, message } in &resolution.judgements {
        let stands = *status == Status::Unknown
            && conditions
                .get(condition)
                .is_some_and(|known| known.generation == class.generation && known.status != Status::Unknown);
        if !stands {
            conditions.set(condition, *status, reason, message);
        }
    }
    conditions.finish()
}

/// Says what is new of a NodeClass. Of one that is ready, too: a dry run writes no status that would say it.
fn tell(class: &NodeClass, conditions: &[Condition], resolution: &Resolution) {
    let (ready, name) = (is_ready(conditions), &class.reference);
    if ready && !is_ready(&class.conditions) {
        tracing::info!(class = %name, "NodeClass is ready");
    }
    if !ready && conditions != class.conditions {
        for (conditions, Judgement { reason, message, .. }) in wrong(resolution) {
            // A field called `message` would take the text's place.
            tracing::warn!(class = %name, condition = conditions.join(", "), reason, why = message, "NodeClass is not ready");
        }
    }
    for Judgement { condition, message, .. } in remarks(class, resolution) {
        tracing::info!(class = %name, condition, remark = message, "worth knowing of a NodeClass");
    }
}

/// What does not hold; conditions of which one and the same thing is said, together.
fn wrong(resolution: &Resolution) -> Vec<(Vec<&'static str>, &Judgement)> {
    let mut all: Vec<(Vec<&'static str>, &Judgement)> = Vec::new();
    for judgement in resolution.judgements.iter().filter(|judgement| judgement.status != Status::True) {
        let is_same = |(_, other): &&mut (_, &Judgement)| {
            (other.status, other.reason, &other.message) == (judgement.status, judgement.reason, &judgement.message)
        };
        match all.iter_mut().find(is_same) {
            Some((conditions, _)) => conditions.push(judgement.condition),
            None => all.push((vec![judgement.condition], judgement)),
        }
    }
    all
}

fn is_ready(conditions: &[Condition]) -> bool {
    find_condition(conditions, "Ready").is_some_and(|ready| ready.status == Status::True)
}

/// What the cloud remarks on what is fine, and has not said before.
fn remarks<'a>(class: &NodeClass, resolution: &'a Resolution) -> Vec<&'a Judgement> {
    let is_news = |judgement: &&Judgement| {
        let known = find_condition(&class.conditions, judgement.condition);
        known.is_none_or(|known| *known.message != *judgement.message)
    };
    let fine = resolution.judgements.iter().filter(|judgement| judgement.status == Status::True);
    fine.filter(|judgement| !judgement.message.is_empty()).filter(is_news).collect()
}

impl Behaviour for Classes {
    type Msg = ClassesMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Classes;

    fn born(wiring: &Self::Args, cx: &Cx<ClassesMsg>) -> Self {
        cx.cast(ClassesMsg::Look);
        Self { wiring: Arc::clone(wiring), known: BTreeMap::new(), tick: None, said: Dedupe::new() }
    }

    fn handle(&mut self, message: ClassesMsg, cx: &Cx<ClassesMsg>) {
        match message {
            ClassesMsg::Look => self.look(cx),
            ClassesMsg::Doubted(reference) => {
                if let Some(known) = self.known.get_mut(&reference) {
                    known.doubt(cx.now());
                }
                self.look(cx);
            }
            ClassesMsg::Resolved(reference, generation, outcome) => self.resolved(&reference, generation, outcome, cx),
            ClassesMsg::Written(reference, outcome) => self.written(&reference, outcome, cx),
            ClassesMsg::Kept(reference, outcome) => self.kept(&reference, outcome, cx),
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let snapshot = self.wiring.boards.snapshot();
        let asked = self.known.values().filter(|known| known.asking).count();
        let details = self.known.iter().map(|(reference, known)| {
            let ready = snapshot.classes.get(reference).and_then(|class| find_condition(&class.conditions, "Ready"));
            let text = match (&known.failure, ready) {
                (Some(failure), _) => failure.clone(),
                (None, Some(ready)) if ready.status == Status::True => "ready".to_owned(),
                (None, Some(ready)) => format!("not ready: {} {}", ready.reason, ready.message),
                (None, None) => "not judged yet".to_owned(),
            };
            (reference.to_string(), text)
        });
        View {
            state: if asked == 0 { "up to date" } else { "asking" }.to_owned(),
            waits_for: (asked > 0).then(|| "the cloud to answer".to_owned()),
            deadlines: self
                .known
                .values()
                .filter_map(|known| known.due)
                .min()
                .map(|due| ("the cloud is asked again".to_owned(), due))
                .into_iter()
                .collect(),
            details: details.collect(),
            ..View::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::core::facts::samples;

    #[test]
    fn what_is_worth_knowing_of_a_class_that_is_fine_is_said_once() {
        let judgement = |condition, status, message: &str| Judgement {
            condition,
            status,
            reason: condition,
            message: message.to_owned(),
        };
        let judgements = vec![
            judgement("ImagesReady", Status::True, ""),
            judgement("SubnetsReady", Status::True, "no address is free in subnet-1"),
            judgement("TypesReady", Status::False, "there is no such family"),
        ];
        let dependents = ["ImagesReady", "SubnetsReady", "TypesReady"];
        let resolution = Resolution { judgements, details: None };
        let mut class = samples::class();
        let said: Vec<&str> = remarks(&class, &resolution).iter().map(|one| one.condition).collect();
        assert_eq!(said, ["SubnetsReady"]);
        class.conditions = judged(&class, &dependents, &resolution, Timestamp::UNIX_EPOCH);
        assert_eq!(remarks(&class, &resolution).len(), 0, "it has been said");
        let other = judgement("SubnetsReady", Status::True, "no address is free in subnet-1, subnet-2");
        assert_eq!(remarks(&class, &Resolution { judgements: vec![other], details: None }).len(), 1);
    }

    #[test]
    fn what_one_cause_keeps_from_being_known_is_said_in_one_line() {
        let judgement = |condition, status, reason, message: &str| Judgement {
            condition,
            status,
            reason,
            message: message.to_owned(),
        };
        let judgements = vec![
            judgement("ImagesReady", Status::Unknown, "NotAsked", "not asked, as the keys were refused"),
            judgement("UserDataReady", Status::True, "UserDataReady", ""),
            judgement("PermissionsReady", Status::False, "Unauthorized", "the API refuses the keys"),
            judgement("SubnetsReady", Status::Unknown, "NotAsked", "not asked, as the keys were refused"),
        ];
        let resolution = Resolution { judgements, details: None };
        let lines: Vec<_> = wrong(&resolution).into_iter().map(|(all, one)| (all.join(", "), one.reason)).collect();
        let expected =
            [("ImagesReady, SubnetsReady".to_owned(), "NotAsked"), ("PermissionsReady".to_owned(), "Unauthorized")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_class_that_is_doubted_is_asked_for_now_and_not_by_every_launch_that_is_refused() {
        let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let mut known = Known { due: Some(at(300)), asked: Some(at(0)), ..Known::default() };
        known.doubt(at(100));
        assert_eq!(known.due, Some(at(100)));
        known = Known { due: Some(at(400)), asked: Some(at(100)), ..Known::default() };
        known.doubt(at(101));
        assert_eq!(known.due, Some(at(105)), "it has just been asked for");
        known.doubt(at(102));
        assert_eq!(known.due, Some(at(105)));
        // What was never asked for is due anyway.
        known = Known::default();
        known.doubt(at(1));
        assert_eq!(known.due, None);
    }
}
