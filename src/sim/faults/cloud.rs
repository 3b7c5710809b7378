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
use crate::clouds::simulated::Simulated;
use crate::clouds::{
    Assortment, Cloud, Deletion, Error, Hooks, LaunchSpec, Listing, RepairPolicy, Resolution, Whereabouts,
};
use crate::core::facts::{Claim, InstanceType, Machine, NodeClass};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::sim::invariants::Invariants;

/// A simulated cloud whose calls meet faults, and whose dangerous ones are watched.
#[derive(Clone)]
pub struct HostileCloud {
    pub(super) inner: Simulated,
    pub(super) mishaps: Mishaps,
    pub(super) invariants: Invariants,
    state: Arc<Mutex<State>>,
}

/// What is wrong with which machine at the moment.
#[derive(Default)]
pub(super) struct State {
    /// Machines that listings do not show, and until when.
    pub(super) hidden: BTreeMap<ProviderId, Instant>,
    /// Machines without their tags, and until when.
    pub(super) untagged: BTreeMap<ProviderId, Instant>,
    /// Machines that no read shows, and until when.
    pub(super) denied: Denials,
    /// Machines that orders to take them down do not reach, as if there were none, and until when.
    unreachable: Denials,
    /// Machines that have ended and of which nothing is known any more.
    forgotten: BTreeSet<ProviderId>,
    /// Machines whose end is delayed, and until when.
    lingering: BTreeMap<ProviderId, Instant>,
    /// Instance types and zones that the catalogue has.
    pub(super) types: Vec<Arc<str>>,
    pub(super) zones: Vec<Arc<str>>,
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

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What befalls a call of any kind, if anything.
    pub(super) async fn refuse(&self, object: &str) -> Result<(), Error> {
        if let Some(mishap) = self.mishaps.holds(Fault::CloudThrottled) {
            let retry_after = mishap.pick.is_multiple_of(2).then_some(Duration::from_secs(mishap.pick % 20));
            return Err(Error::Throttled { said: String::new(), retry_after });
        }
        if self.mishaps.strikes(Fault::CloudError, object).is_some() {
            return Err(Error::Temporary("internal error, try again".to_owned()));
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::CloudLost, object) {
            sleep(mishap.lasting).await;
            return Err(Error::Unknown("no answer".to_owned()));
        }
        Ok(())
    }

    /// joiner is killed with a call in its hands.
    pub(super) async fn killed<T>(&self, mishap: Mishap, call: impl Future<Output = T>) -> T {
        if mishap.pick.is_multiple_of(2) {
            // Whoever asked will not hear the answer.
            drop(call.await);
        }
        self.mishaps.order(Order::Kill(mishap.lasting));
        std::future::pending().await
    }

    /// Whether no read shows a machine that there is, and no order reaches it.
    fn is_denied(&self, id: &ProviderId) -> bool {
        if !self.state().denied.has(id)
            && let Some(mishap) = self.mishaps.strikes(Fault::MachineDenied, id)
        {
            self.state().denied.begin(id, mishap.lasting);
        }
        self.state().denied.has(id)
    }

    async fn take_down(&self, id: &ProviderId) -> Result<Deletion, Error> {
        self.refuse(id.as_str()).await?;
        let now = Instant::now();
        if self.state().lingering.get(id).is_some_and(|until| *until > now) {
            return Ok(Deletion::InProgress);
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall, id) {
            return self.killed(mishap, self.order_down(id)).await;
        }
        let found = self.inner.get(id).await?;
        if found.is_there() && self.is_denied(id) {
            return Ok(Deletion::Missing);
        }
        let has_ended = matches!(found, Whereabouts::Ended);
        let there = found.machine().is_some_and(|machine| !machine.deleting);
        if there && let Some(mishap) = self.mishaps.strikes(Fault::DeleteDenied, id) {
            self.state().unreachable.begin(id, mishap.lasting);
        }
        if there && self.state().unreachable.has(id) {
            return Ok(Deletion::Missing);
        }
        if there && self.mishaps.strikes(Fault::DeleteForgotten, id).is_some() {
            self.invariants.order_arrived(id);
            return Ok(Deletion::InProgress);
        }
        if there && let Some(mishap) = self.mishaps.strikes(Fault::DeleteSlow, id) {
            self.invariants.order_arrived(id);
            self.state().lingering.insert(id.clone(), now + mishap.lasting);
            let (cloud, id) = (self.inner.clone(), id.clone());
            tokio::spawn(async move {
                sleep(mishap.lasting).await;
                drop(cloud.delete(&id).await);
            });
            return Ok(Deletion::InProgress);
        }
        if there && let Some(mishap) = self.mishaps.strikes(Fault::OrderLate, id) {
            let (cloud, id) = (self.clone(), id.clone());
            return Err(later(mishap, async move { cloud.order_down(&id).await.map(drop) }).await);
        }
        if has_ended && self.is_forgotten(id) {
            return Ok(Deletion::Missing);
        }
        self.unheard(id, self.order_down(id)).await
    }

    async fn order_down(&self, id: &ProviderId) -> Result<Deletion, Error> {
        self.invariants.order_arrived(id);
        self.inner.delete(id).await
    }

    /// Whether nothing is known any more of a machine that has ended.
    fn is_forgotten(&self, id: &ProviderId) -> bool {
        let mut state = self.state();
        if !state.forgotten.contains(id) && self.mishaps.strikes(Fault::MachineForgotten, id).is_some() {
            state.forgotten.insert(id.clone());
        }
        state.forgotten.contains(id)
    }

    /// An order takes effect, and its answer may get lost.
    async fn unheard<T>(&self, id: &ProviderId, order: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let answer = order.await?;
        if let Some(mishap) = self.mishaps.strikes(Fault::OrderLostAfter, id) {
            sleep(mishap.lasting).await;
            return Err(Error::Unknown("connection lost after the order was given".to_owned()));
        }
        Ok(answer)
    }

    fn note<T>(&self, object: &str, call: &str, answer: &Result<T, Error>, told: impl FnOnce(&T) -> String) {
        self.mishaps.note(object, || match answer {
            Ok(answer) => format!("cloud {call}: {}", told(answer)),
            Err(error) => format!("cloud {call}: {error}"),
        });
    }
}

/// An order that takes effect after a while, whatever has become of joiner; what joiner hears of it.
async fn later(mishap: Mishap, order: impl Future<Output = Result<(), Error>> + Send + 'static) -> Error {
    tokio::spawn(async move {
        sleep(mishap.lasting).await;
        // The machine may have gone in between.
        drop(order.await);
    });
    sleep(Duration::from_millis(mishap.pick % 5_000)).await;
    Error::Unknown("no answer to the order".to_owned())
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
            self.refuse(&class.reference.name).await?;
            self.inner.resolve(class).await
        })
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        Box::pin(async move {
            self.refuse(&class.reference.name).await?;
            self.inner.catalog(class).await
        })
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        Box::pin(async move {
            self.invariants.change_begins("launch", "a machine for", spec.claim.name.as_str());
            let answer = self.launch(spec).await;
            self.note(spec.claim.name.as_str(), "launch", &answer, |machine| machine.id.to_string());
            answer
        })
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        Box::pin(async move {
            self.refuse(id.as_str()).await?;
            let mut answer = self.inner.get(id).await;
            let denied = match &answer {
                Ok(Whereabouts::There(_)) => self.is_denied(id),
                Ok(Whereabouts::Ended) => self.is_forgotten(id),
                Ok(Whereabouts::Unknown) | Err(_) => false,
            };
            if denied {
                answer = Ok(Whereabouts::Unknown);
            }
            if let Ok(Whereabouts::There(machine)) = &mut answer
                && !self.has_tags(id)
            {
                (machine.token, machine.claim) = (None, None);
            }
            self.note(id.as_str(), "get", &answer, |found| {
                let told = match found {
                    Whereabouts::There(_) => "there",
                    Whereabouts::Ended => "ended",
                    Whereabouts::Unknown => "not there",
                };
                told.to_owned()
            });
            answer
        })
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        Box::pin(async move {
            self.refuse(token.as_str()).await?;
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
            self.invariants.change_begins("delete", "machine", id.as_str());
            self.invariants.machine_to_be_deleted(id);
            let answer = self.take_down(id).await;
            self.note(id.as_str(), "delete", &answer, |deletion| format!("{deletion:?}"));
            answer
        })
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.invariants.change_begins("restart", "machine", id.as_str());
            self.invariants.reboot_begins(id, operation);
            self.refuse(id.as_str()).await?;
            if self.inner.get(id).await?.is_there() && self.is_denied(id) {
                return Err(Error::Missing(id.clone()));
            }
            if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall, id) {
                return self.killed(mishap, self.inner.reboot(id, operation)).await;
            }
            if let Some(mishap) = self.mishaps.strikes(Fault::OrderLate, id) {
                let (cloud, id, operation) = (self.inner.clone(), id.clone(), operation.to_owned());
                return Err(later(mishap, async move { cloud.reboot(&id, &operation).await }).await);
            }
            let answer = self.unheard(id, self.inner.reboot(id, operation)).await;
            self.invariants.reboot_ends(id, &answer);
            answer
        })
    }

    fn launch_timeout(&self) -> Duration {
        self.inner.launch_timeout()
    }

    fn has_hooks(&self) -> bool {
        self.inner.has_hooks()
    }

    fn hooks<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Hooks, Error>> {
        Box::pin(async move {
            self.refuse(claim.name.as_str()).await?;
            self.inner.hooks(claim).await
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
