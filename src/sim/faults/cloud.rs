//! The simulated cloud on its bad days: what stands between it and joiner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::denials::{Denials, MAY_DENY_FOR};
use super::kind::Fault;
use super::mishaps::{Mishaps, Order};
use super::plan::Mishap;
use crate::clouds::simulated::{Quirk, Simulated, SoldOutWindow};
use crate::clouds::{Cloud, Deletion, Error, LaunchRefused, LaunchSpec, Listing, RepairPolicy, Resolution, SoldOut};
use crate::core::facts::{Claim, InstanceType, Machine, NodeClass};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::core::labels;
use crate::sim::invariants::Invariants;

/// A simulated cloud whose calls meet faults, and whose dangerous ones are watched.
#[derive(Clone)]
pub struct HostileCloud {
    inner: Simulated,
    mishaps: Mishaps,
    invariants: Invariants,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Machines that listings do not show, and until when.
    hidden: BTreeMap<ProviderId, Instant>,
    /// Machines without their tags, and until when.
    untagged: BTreeMap<ProviderId, Instant>,
    /// Machines that no read shows, and until when.
    denied: Denials,
    /// Machines that orders to take them down do not reach, as if there were none, and until when.
    unreachable: Denials,
    /// Machines whose end is delayed, and until when.
    lingering: BTreeMap<ProviderId, Instant>,
    /// Instance types and zones that the catalogue has.
    types: Vec<Arc<str>>,
    zones: Vec<Arc<str>>,
}

impl HostileCloud {
    /// Puts faults in front of a cloud.
    pub fn new(inner: Simulated, catalogue: &[InstanceType], mishaps: Mishaps, invariants: Invariants) -> Self {
        let zones = catalogue.iter().flat_map(|kind| &kind.offerings).filter_map(|offering| offering.zone().cloned());
        let state = State {
            types: catalogue.iter().map(|kind| kind.name.as_str().into()).collect(),
            zones: zones.collect::<BTreeSet<_>>().into_iter().collect(),
            ..State::default()
        };
        Self { inner, mishaps, invariants, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What befalls a call of any kind, if anything.
    async fn refuse(&self) -> Result<(), Error> {
        if let Some(mishap) = self.mishaps.holds(Fault::CloudThrottled) {
            let retry_after = mishap.pick.is_multiple_of(2).then_some(Duration::from_secs(mishap.pick % 20));
            return Err(Error::Throttled { said: String::new(), retry_after });
        }
        if self.mishaps.strikes(Fault::CloudError).is_some() {
            return Err(Error::Temporary("internal error, try again".to_owned()));
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::CloudLost) {
            sleep(mishap.lasting).await;
            return Err(Error::Unknown("no answer".to_owned()));
        }
        Ok(())
    }

    /// joiner is killed with a call in its hands.
    async fn killed<T>(&self, mishap: Mishap, call: impl Future<Output = T>) -> T {
        if mishap.pick.is_multiple_of(2) {
            // Whoever asked will not hear the answer.
            drop(call.await);
        }
        self.mishaps.order(Order::Kill(mishap.lasting));
        std::future::pending().await
    }

    /// A user deletes a NodeClaim while its machine is being launched.
    fn user_interferes(&self, spec: &LaunchSpec) {
        let Some(mishap) = self.mishaps.strikes(Fault::UserDeletesNewClaim) else { return };
        let (cluster, name) = (self.invariants.cluster().clone(), spec.claim.name.clone());
        tokio::spawn(async move {
            sleep(Duration::from_millis(mishap.pick % 2_000)).await;
            // It may have gone in between.
            cluster.store().delete_claim(&name).ok();
        });
    }

    async fn launch(&self, spec: &LaunchSpec) -> Result<Machine, Error> {
        self.user_interferes(spec);
        self.refuse().await?;
        if self.mishaps.holds(Fault::Quota).is_some() {
            let message = "the account may have no more machines for now".to_owned();
            return Err(Error::Launch(LaunchRefused::Quota(message)));
        }
        let spec = &self.sell(spec)?;
        for (fault, quirk) in [(Fault::NeverRegisters, Quirk::Silent), (Fault::WrongProviderId, Quirk::Stranger)] {
            if self.mishaps.strikes(fault).is_some() {
                self.inner.next_machine(quirk);
            }
        }
        let unknown = || Error::Unknown("connection lost while the machine was launched".to_owned());
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall) {
            return self.killed(mishap, self.inner.create(spec)).await;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostBefore) {
            sleep(mishap.lasting).await;
            return Err(unknown());
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostAfter) {
            // What became of it stays unsaid.
            drop(self.inner.create(spec).await);
            sleep(mishap.lasting).await;
            return Err(unknown());
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLate) {
            let (cloud, spec) = (self.inner.clone(), spec.clone());
            tokio::spawn(async move {
                sleep(mishap.lasting).await;
                drop(cloud.create(&spec).await);
            });
            sleep(Duration::from_millis(mishap.pick % 5_000)).await;
            return Err(unknown());
        }
        let made = self.inner.create(spec).await?;
        if let Some(mishap) = self.mishaps.strikes(Fault::MachineLate) {
            self.state().denied.begin(&made.id, mishap.lasting);
        }
        Ok(made)
    }

    /// Whether no read shows a machine that there is, and no order reaches it.
    fn is_denied(&self, id: &ProviderId) -> bool {
        if !self.state().denied.has(id)
            && let Some(mishap) = self.mishaps.strikes(Fault::MachineDenied)
            && self.state().denied.begin(id, mishap.lasting)
        {
            self.mishaps.note(id.as_str(), || format!("it is denied for {} s", mishap.lasting.as_secs()));
        }
        self.state().denied.has(id)
    }

    /// Leaves out what is sold out; refuses when nothing is left.
    fn sell(&self, spec: &LaunchSpec) -> Result<LaunchSpec, Error> {
        let Some(mishap) = self.mishaps.holds(Fault::SoldOut) else { return Ok(spec.clone()) };
        let window = self.window(mishap);
        let covers = |kind: &InstanceType, offering: &_| window.covers(kind, offering, Duration::ZERO);
        let mut missing = Vec::new();
        let mut left = spec.clone();
        left.candidates = Vec::new();
        for kind in &spec.candidates {
            let mut kind = InstanceType::clone(kind);
            for offering in kind.offerings.iter().filter(|offering| covers(&kind, offering)) {
                missing.push(SoldOut {
                    class: None,
                    instance_type: kind.name.clone(),
                    zone: offering.zone().cloned(),
                    capacity_type: offering.capacity_type().cloned().unwrap_or_else(|| labels::ON_DEMAND.into()),
                });
            }
            let offerings = std::mem::take(&mut kind.offerings);
            kind.offerings = offerings.into_iter().filter(|offering| !covers(&kind, offering)).collect();
            if !kind.offerings.is_empty() {
                left.candidates.push(Arc::new(kind));
            }
        }
        if left.candidates.is_empty() {
            let message = format!("all {} requested offerings are sold out", missing.len());
            return Err(Error::Launch(LaunchRefused::InsufficientCapacity { sold_out: missing, message }));
        }
        Ok(left)
    }

    fn window(&self, mishap: Mishap) -> SoldOutWindow {
        let state = self.state();
        let pick = |all: &[Arc<str>], by: u64| all.get(usize::try_from(by).unwrap_or(0) % all.len().max(1)).cloned();
        let (zone, kind) = (pick(&state.zones, mishap.pick >> 8), pick(&state.types, mishap.pick >> 16));
        let mut window = SoldOutWindow::default();
        match mishap.pick % 4 {
            0 => window.zone = zone,
            1 => window.instance_type = kind,
            2 => window.capacity_type = Some(labels::SPOT.into()),
            _ => (window.zone, window.instance_type) = (zone, kind),
        }
        window
    }

    async fn listing(&self) -> Result<Listing, Error> {
        self.refuse().await?;
        let mut listing = self.inner.list().await?;
        let now = Instant::now();
        listing.machines.retain(|machine| !self.state().denied.has(&machine.id));
        self.untag(&listing.machines);
        listing.machines.retain(|machine| self.has_tags(&machine.id));
        if let Some(mishap) = self.mishaps.strikes(Fault::ListingBroken) {
            let pages = usize::try_from(mishap.pick).unwrap_or(0) % (listing.machines.len() + 1);
            listing.machines.truncate(pages);
            listing.complete = false;
        }
        if !listing.machines.is_empty()
            && let Some(mishap) = self.mishaps.strikes(Fault::MachineHidden)
        {
            let one = usize::try_from(mishap.pick >> 1).unwrap_or(0) % listing.machines.len();
            self.state().hidden.insert(listing.machines[one].id.clone(), now + mishap.lasting);
        }
        let mut state = self.state();
        state.hidden.retain(|_, until| *until > now);
        listing.machines.retain(|machine| !state.hidden.contains_key(&machine.id));
        if let Some(mishap) = self.mishaps.holds(Fault::ListingShrunken) {
            // From a tenth of the machines to all of them; which ones stays the same from one listing to the next.
            let tenths = mishap.pick % 10 + 1;
            listing.machines.retain(|machine| {
                let sum: u64 = machine.id.as_str().bytes().map(u64::from).sum();
                sum.wrapping_add(mishap.pick >> 8) % 10 >= tenths
            });
        }
        Ok(listing)
    }

    /// A user takes the tags off one of these machines. Nothing that goes by tags shows it from then on, until they are back.
    fn untag(&self, machines: &[Machine]) {
        if machines.is_empty() {
            return;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::MachineUntagged) {
            let one = usize::try_from(mishap.pick >> 1).unwrap_or(0) % machines.len();
            let id = &machines[one].id;
            self.mishaps.note(id.as_str(), || format!("its tags are gone for {} s", mishap.lasting.as_secs()));
            self.state().untagged.insert(id.clone(), Instant::now() + mishap.lasting);
        }
    }

    fn has_tags(&self, id: &ProviderId) -> bool {
        self.state().untagged.get(id).is_none_or(|until| *until <= Instant::now())
    }

    async fn take_down(&self, id: &ProviderId) -> Result<Deletion, Error> {
        self.refuse().await?;
        let now = Instant::now();
        if self.state().lingering.get(id).is_some_and(|until| *until > now) {
            return Ok(Deletion::InProgress);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall) {
            return self.killed(mishap, self.inner.delete(id)).await;
        }
        let found = self.inner.get(id).await?;
        if found.is_some() && self.is_denied(id) {
            return Ok(Deletion::Missing);
        }
        let there = found.is_some_and(|machine| !machine.deleting);
        if there && let Some(mishap) = self.mishaps.strikes(Fault::DeleteDenied) {
            self.state().unreachable.begin(id, mishap.lasting);
        }
        if there && self.state().unreachable.has(id) {
            return Ok(Deletion::Missing);
        }
        if there && self.mishaps.strikes(Fault::DeleteForgotten).is_some() {
            return Ok(Deletion::InProgress);
        }
        if there && let Some(mishap) = self.mishaps.strikes(Fault::DeleteSlow) {
            self.state().lingering.insert(id.clone(), now + mishap.lasting);
            let (cloud, id) = (self.inner.clone(), id.clone());
            tokio::spawn(async move {
                sleep(mishap.lasting).await;
                drop(cloud.delete(&id).await);
            });
            return Ok(Deletion::InProgress);
        }
        self.inner.delete(id).await
    }

    fn note<T>(&self, object: &str, call: &str, answer: &Result<T, Error>, told: impl FnOnce(&T) -> String) {
        self.mishaps.note(object, || match answer {
            Ok(answer) => format!("cloud {call}: {}", told(answer)),
            Err(error) => format!("cloud {call}: {error}"),
        });
    }
}

impl Cloud for HostileCloud {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.inner.class_kinds()
    }

    fn label_keys(&self) -> Vec<&'static str> {
        self.inner.label_keys()
    }

    fn class_conditions(&self) -> &'static [&'static str] {
        self.inner.class_conditions()
    }

    fn resolve<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Resolution, Error>> {
        Box::pin(async move {
            self.refuse().await?;
            self.inner.resolve(class).await
        })
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Arc<Vec<Arc<InstanceType>>>, Error>> {
        Box::pin(async move {
            self.refuse().await?;
            self.inner.catalog(class).await
        })
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        Box::pin(async move {
            let answer = self.launch(spec).await;
            self.note(spec.claim.name.as_str(), "launch", &answer, |machine| machine.id.to_string());
            answer
        })
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Machine>, Error>> {
        Box::pin(async move {
            self.refuse().await?;
            let mut answer = self.inner.get(id).await;
            if matches!(answer, Ok(Some(_))) && self.is_denied(id) {
                answer = Ok(None);
            }
            if let Ok(Some(machine)) = &mut answer
                && !self.has_tags(id)
            {
                (machine.token, machine.claim) = (None, None);
            }
            self.note(id.as_str(), "get", &answer, |found| {
                if found.is_some() { "there" } else { "not there" }.to_owned()
            });
            answer
        })
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        Box::pin(async move {
            self.refuse().await?;
            let mut answer = self.inner.find(token).await;
            if let Ok(machines) = &mut answer {
                machines.retain(|machine| self.has_tags(&machine.id) && !self.is_denied(&machine.id));
            }
            self.note(token.as_str(), "find", &answer, |found| format!("{} machines", found.len()));
            answer
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async move {
            let answer = self.listing().await;
            self.note("the cloud", "list", &answer, |listing| {
                format!(
                    "{} machines, {}",
                    listing.machines.len(),
                    if listing.complete { "complete" } else { "broken off" }
                )
            });
            answer
        })
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        Box::pin(async move {
            self.invariants.machine_to_be_deleted(id);
            let answer = self.take_down(id).await;
            self.note(id.as_str(), "delete", &answer, |deletion| format!("{deletion:?}"));
            answer
        })
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.invariants.reboot_begins(id, operation);
            self.refuse().await?;
            if self.inner.get(id).await?.is_some() && self.is_denied(id) {
                return Err(Error::Missing(id.clone()));
            }
            let answer = self.inner.reboot(id, operation).await;
            self.invariants.reboot_ends(id, &answer);
            answer
        })
    }

    fn may_deny_for(&self) -> Duration {
        MAY_DENY_FOR
    }

    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.inner.drift(claim, class)
    }

    fn drift_every(&self) -> Option<Duration> {
        self.inner.drift_every()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }
}
