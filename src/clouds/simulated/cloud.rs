//! The trait [`Cloud`] over simulated machines.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::conduct::Conduct;
use super::machines::{Change, Machines, Quirk, SimMachine};
use super::script::{self, Call, Refusal};
use crate::api::classes::kwok::KwokNodeClass;
use crate::clouds::{
    Assortment, Cloud, Deletion, Error, Hooks, LaunchRefused, LaunchSpec, Listing, RepairAction, RepairPolicy, SoldOut,
    Whereabouts,
};
use crate::core::facts::{Claim, Effect, InstanceType, Machine, NodeClass, Offering, Status, Taint, find_condition};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Operator;

/// How long a node may be not ready before it counts as broken: Karpenter's KWOK provider says 10 minutes.
const NOT_READY: Duration = Duration::from_mins(10);

/// Label keys of the catalogue that users may require: those of Karpenter's KWOK provider.
pub const LABEL_KEYS: [&str; 4] = [
    "karpenter.kwok.sh/instance-size",
    "karpenter.kwok.sh/instance-family",
    "karpenter.kwok.sh/instance-cpu",
    "karpenter.kwok.sh/instance-memory",
];

/// The simulated cloud. Clones are handles to the same one.
#[derive(Clone)]
pub struct Simulated {
    shared: Arc<Shared>,
}

struct Shared {
    catalogue: Arc<Vec<Arc<InstanceType>>>,
    conduct: Conduct,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    started: Instant,
    machines: Mutex<Machines>,
}

impl Simulated {
    /// A cloud that sells `catalogue`. Sold-out windows count from now, on tokio's clock; chance comes from `rng` alone.
    pub fn new(
        catalogue: Vec<InstanceType>,
        conduct: Conduct,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        rng: Rng,
    ) -> Self {
        let machines = Mutex::new(Machines::new(rng));
        let catalogue = Arc::new(catalogue.into_iter().map(Arc::new).collect());
        Self { shared: Arc::new(Shared { catalogue, conduct, clock, started: Instant::now(), machines }) }
    }

    /// The machines there are now.
    pub fn machines(&self) -> Vec<Arc<SimMachine>> {
        self.settled().all().cloned().collect()
    }

    /// News of machines from now on, those that run already first.
    pub fn changes(&self) -> UnboundedReceiver<Change> {
        self.settled().subscribe()
    }

    /// Lets a machine vanish at once, as a cloud takes back a spot machine without a warning; false when there is none.
    pub fn vanish(&self, id: &ProviderId) -> bool {
        self.settled().end(id, Instant::now())
    }

    /// Takes from a machine the mark that says whose it is, as somebody does who edits its tags; false when there is none.
    pub fn unmark(&self, id: &ProviderId) -> bool {
        self.settled().unmark(id)
    }

    /// Lets something be wrong with the machine that is launched next; asked several times, with as many machines.
    pub fn next_machine(&self, quirk: Quirk) {
        self.settled().quirks.push_back(quirk);
    }

    /// Lays down how the next so many calls of a kind fail, and what is said then.
    pub fn refuse(&self, call: Call, refusal: Refusal, message: &str, times: u32) {
        self.settled().script.insert(call, (refusal, message.to_owned(), times));
    }

    /// The answer that was laid down for a call: the error, and whether the call takes effect all the same.
    fn scripted(&self, call: Call, sold_out: impl FnOnce() -> Vec<SoldOut>) -> Option<(Error, bool)> {
        let (refusal, message) = script::next(&mut self.settled().script, call)?;
        Some((refusal.error(&message, sold_out()), refusal.has_effect()))
    }

    /// Whether it was laid down that a call is answered as if there were no machine.
    fn denies(&self, call: Call) -> bool {
        script::says(&mut self.settled().script, call, Refusal::NoSuchMachine)
    }

    fn settled(&self) -> MutexGuard<'_, Machines> {
        // A panic of one caller leaves the machines as they are between two calls.
        let mut machines = self.shared.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.settle();
        machines
    }

    fn draw(&self, bounds: (Duration, Duration)) -> Duration {
        between(&mut self.settled().rng, bounds)
    }

    /// The ordinary latency of a call.
    async fn wait(&self) {
        sleep(self.draw(self.shared.conduct.call)).await;
    }

    /// Makes the machine, or says why not; nothing in here waits, so a launch happens or does not.
    fn launch(&self, spec: &LaunchSpec) -> Result<(Machine, bool), Error> {
        let conduct = &self.shared.conduct;
        let mut machines = self.settled();
        if let Some(machine) = machines.with_token(&spec.token).into_iter().next() {
            return Ok((machine, false));
        }
        if conduct.quota.is_some_and(|quota| machines.count() >= quota) {
            let message = format!("{} machines run and the account may have no more", machines.count());
            return Err(Error::Launch(LaunchRefused::Quota(message)));
        }
        let (instance_type, offering) = self.choose(spec)?;
        let machine = self.build(&mut machines, spec, instance_type, offering)?;
        let lost = machines.rng.f64() < conduct.lost_answers;
        Ok((machines.add(machine), lost))
    }

    /// The cheapest candidate that is not sold out.
    fn choose<'a>(&self, spec: &'a LaunchSpec) -> Result<(&'a InstanceType, &'a Offering), Error> {
        let elapsed = self.shared.started.elapsed();
        let mut offered: Vec<_> = spec
            .candidates
            .iter()
            .flat_map(|kind| kind.offerings.iter().map(move |offering| (&**kind, offering)))
            .collect();
        offered.sort_by(|(_, one), (_, other)| one.price.total_cmp(&other.price));
        let sold_out = |(kind, offering): &(&InstanceType, &Offering)| {
            self.shared.conduct.sold_out.iter().any(|window| window.covers(kind, offering, elapsed))
        };
        if let Some(found) = offered.iter().find(|offer| !sold_out(offer)) {
            return Ok(*found);
        }
        let missing = offerings(spec);
        let message = format!("all {} requested offerings are sold out", missing.len());
        Err(Error::Launch(LaunchRefused::InsufficientCapacity { sold_out: missing, message }))
    }

    fn build(
        &self,
        machines: &mut Machines,
        spec: &LaunchSpec,
        instance_type: &InstanceType,
        offering: &Offering,
    ) -> Result<SimMachine, Error> {
        let conduct = &self.shared.conduct;
        let delay = registration_delay(&spec.class)?;
        let name = if conduct.named_after_claims { machines.id_after(&spec.claim.name) } else { machines.next_id() };
        let zone = offering.zone().map_or("any", |zone| &**zone);
        let launched = Instant::now();
        let quirk = machines.quirks.pop_front();
        let silent = machines.rng.f64() < conduct.never_register || quirk == Some(Quirk::Silent);
        let boot = between(&mut machines.rng, conduct.boot) + delay;
        let lag = between(&mut machines.rng, (Duration::ZERO, conduct.settles_within));
        let unregistered = Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute);
        let machine = Machine {
            id: ProviderId::from(format!("sim://{zone}/{name}")),
            token: Some(spec.token.clone()),
            claim: Some(spec.claim.name.clone()),
            created: Some((self.shared.clock)()),
            deleting: false,
            instance_type: Some(instance_type.name.clone()),
            labels: resolve(&spec.claim, instance_type, offering),
            annotations: Labels::new(),
            image: Some("sim-image".into()),
            capacity: instance_type.capacity.clone(),
            allocatable: instance_type.allocatable(),
        };
        Ok(SimMachine {
            machine,
            price: offering.price,
            launched,
            listed_from: launched + lag,
            reports: (!silent).then(|| launched + boot),
            gone_at: None,
            taints: [unregistered]
                .iter()
                .chain(&spec.claim.taints)
                .chain(&spec.claim.startup_taints)
                .cloned()
                .collect(),
            class_generation: spec.class.generation,
            quirk,
        })
    }
}

impl Cloud for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        // KWOK's, so that manifests written for it run unchanged.
        vec![("karpenter.kwok.sh", "KWOKNodeClass")]
    }

    fn label_keys(&self) -> Vec<&'static str> {
        LABEL_KEYS.to_vec()
    }

    fn catalog<'a>(&'a self, _class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        Box::pin(async {
            self.wait().await;
            Ok(Arc::clone(&self.shared.catalogue).into())
        })
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        Box::pin(async move {
            let way = self.draw(self.shared.conduct.launch) / 2;
            sleep(way).await;
            let scripted = self.scripted(Call::Create, || offerings(spec));
            if let Some((error, false)) = scripted {
                sleep(way).await;
                return Err(error);
            }
            let launched = check_class(&spec.class).and_then(|()| self.launch(spec));
            sleep(way).await;
            if let Some((error, _)) = scripted {
                return Err(error);
            }
            match launched? {
                (_, true) => Err(Error::Unknown("connection lost while the machine was launched".to_owned())),
                (machine, false) => Ok(machine),
            }
        })
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        Box::pin(async move {
            self.wait().await;
            if self.denies(Call::Get) {
                return Ok(Whereabouts::Unknown);
            }
            if script::says(&mut self.settled().script, Call::Get, Refusal::Silent) {
                std::future::pending::<()>().await;
            }
            if let Some((error, _)) = self.scripted(Call::Get, Vec::new) {
                return Err(error);
            }
            let machines = self.settled();
            if machines.has_ended(id) {
                return Ok(Whereabouts::Ended);
            }
            Ok(machines.get(id).map(|machine| machine.machine.clone()).into())
        })
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        Box::pin(async move {
            self.wait().await;
            if self.denies(Call::Find) {
                return Ok(Vec::new());
            }
            if let Some((error, _)) = self.scripted(Call::Find, Vec::new) {
                return Err(error);
            }
            Ok(self.settled().with_token(token))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async move {
            self.wait().await;
            let denied = self.denies(Call::List);
            // A denial is the call's one answer of the script.
            if !denied && let Some((error, _)) = self.scripted(Call::List, Vec::new) {
                return Err(error);
            }
            let now = Instant::now();
            let mut machines = self.settled();
            let mut listed: Vec<Machine> = machines
                .all()
                .filter(|machine| machine.listed_from <= now && !denied)
                .map(|machine| machine.machine.clone())
                .collect();
            let complete = machines.rng.f64() >= self.shared.conduct.broken_listings;
            if !complete {
                let pages = machines.rng.usize(..=listed.len());
                listed.truncate(pages);
            }
            Ok(Listing {
                machines: listed,
                complete,
                settles_within: self.shared.conduct.settles_within,
                notices: Vec::new(),
            })
        })
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        Box::pin(async move {
            self.wait().await;
            if self.denies(Call::Delete) {
                return Ok(Deletion::Missing);
            }
            let scripted = self.scripted(Call::Delete, Vec::new);
            if let Some((error, false)) = scripted {
                return Err(error);
            }
            let at = Instant::now() + self.draw(self.shared.conduct.shutdown);
            let there = self.settled().end(id, at);
            if let Some((error, _)) = scripted {
                return Err(error);
            }
            Ok(match there {
                true => Deletion::InProgress,
                false if self.settled().has_ended(id) => Deletion::Gone,
                false => Deletion::Missing,
            })
        })
    }

    fn launch_timeout(&self) -> Duration {
        self.shared.conduct.launch_timeout
    }

    fn has_hooks(&self) -> bool {
        !self.shared.conduct.hooks.is_empty()
    }

    fn hooks<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Hooks, Error>> {
        Box::pin(async move {
            self.wait().await;
            if let Some((error, _)) = self.scripted(Call::Hooks, Vec::new) {
                return Err(error);
            }
            let machines = self.settled();
            let machine = claim.provider_id.as_ref().and_then(|id| machines.get(id));
            let age = machine.map_or(Duration::ZERO, |machine| machine.launched.elapsed());
            let (done, pending): (Vec<_>, Vec<_>) =
                self.shared.conduct.hooks.iter().partition(|hook| hook.takes <= age);
            Ok(Hooks {
                pending: pending.iter().map(|hook| Arc::clone(&hook.name)).collect(),
                again: pending.iter().map(|hook| hook.takes.saturating_sub(age)).min().unwrap_or_default(),
                labels: done.iter().flat_map(|hook| hook.labels.clone()).collect(),
            })
        })
    }

    fn may_deny_for(&self) -> Duration {
        self.shared.conduct.may_deny_for
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.wait().await;
            if self.denies(Call::Reboot) {
                return Err(Error::Missing(id.clone()));
            }
            let scripted = self.scripted(Call::Reboot, Vec::new);
            if let Some((error, false)) = scripted {
                return Err(error);
            }
            let back = Instant::now() + self.draw(self.shared.conduct.reboot.unwrap_or(self.shared.conduct.boot));
            let there = self.settled().reboot(id, operation, back);
            if let Some((error, _)) = scripted {
                return Err(error);
            }
            if there {
                return Ok(());
            }
            Err(Error::Missing(id.clone()))
        })
    }

    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        Box::pin(async move {
            // No chance is drawn: that somebody asks changes nothing else of a day.
            sleep(self.shared.conduct.call.0).await;
            let machines = self.settled();
            let machine = claim.provider_id.as_ref().and_then(|id| machines.get(id));
            let drifted = machine.is_some_and(|machine| machine.class_generation != class.generation);
            Ok(drifted.then(|| "NodeClassDrift".to_owned()))
        })
    }

    fn drift_every(&self) -> Option<Duration> {
        None
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |status, reason| RepairPolicy {
            condition: "Ready",
            status,
            toleration: NOT_READY,
            action: RepairAction::Replace,
            termination_grace: None,
            priority: 50,
            reason,
        };
        vec![policy(Status::False, None), policy(Status::Unknown, Some(".*"))]
    }
}

/// Everything that a launch could have been, as what is not to be had.
fn offerings(spec: &LaunchSpec) -> Vec<SoldOut> {
    let of = |kind: &InstanceType, offering: &Offering| SoldOut {
        class: None,
        instance_type: kind.name.clone(),
        zone: offering.zone().cloned(),
        capacity_type: offering.capacity_type().cloned().unwrap_or_else(|| labels::ON_DEMAND.into()),
    };
    let all = spec.candidates.iter().flat_map(|kind| kind.offerings.iter().map(move |offering| of(kind, offering)));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn check_class(class: &NodeClass) -> Result<(), Error> {
    let ready = find_condition(&class.conditions, "Ready");
    let problem = match ready {
        _ if class.deleting.is_some() => format!("{} is being deleted", class.reference),
        Some(ready) if ready.status != Status::True => format!("{}: {}", class.reference, ready.message),
        // A KWOKNodeClass is born ready; the API server writes the condition itself.
        _ => return Ok(()),
    };
    Err(Error::Launch(LaunchRefused::ClassNotReady(problem)))
}

fn registration_delay(class: &NodeClass) -> Result<Duration, Error> {
    let Some(typed) = class.body.downcast_ref::<KwokNodeClass>() else { return Ok(Duration::ZERO) };
    typed.spec.spec.node_registration_delay().map_err(|error| Error::unreadable(&class.reference, &error))
}

/// The labels that the cloud decides: one value for each key of the instance type, then those of the offering.
fn resolve(claim: &Claim, instance_type: &InstanceType, offering: &Offering) -> Labels {
    let wanted = |key: &str, value: &Arc<str>| {
        claim
            .requirements
            .iter()
            .filter(|requirement| &*requirement.key == key && requirement.operator == Operator::In)
            .all(|requirement| requirement.values.contains(value))
    };
    let mut labels = Labels::new();
    for requirement in instance_type.requirements.iter().filter(|r| r.operator == Operator::In) {
        let value = requirement.values.iter().find(|value| wanted(&requirement.key, value));
        if let Some(value) = value.or_else(|| requirement.values.first()) {
            labels.insert(requirement.key.clone(), value.clone());
        }
    }
    for requirement in &offering.requirements {
        if let Some(value) = offering.value(&requirement.key) {
            labels.insert(requirement.key.clone(), value.clone());
        }
    }
    labels.insert(labels::INSTANCE_TYPE.into(), instance_type.name.as_str().into());
    labels
}

fn between(rng: &mut Rng, (one, other): (Duration, Duration)) -> Duration {
    let (low, high) = (one.min(other), one.max(other));
    let span = u64::try_from(high.saturating_sub(low).as_micros()).unwrap_or(u64::MAX - 1);
    low + Duration::from_micros(rng.u64(0..=span))
}
