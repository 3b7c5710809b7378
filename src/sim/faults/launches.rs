//! What befalls launches: what is wanted is not sold, the answer is lost, the machine comes late or is not what it should be.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::cloud::HostileCloud;
use super::kind::Fault;
use super::plan::Mishap;
use crate::clouds::simulated::{Quirk, SoldOutWindow};
use crate::clouds::{Cloud, Error, LaunchRefused, LaunchSpec, SoldOut};
use crate::core::facts::{InstanceType, Machine};
use crate::core::labels;

impl HostileCloud {
    /// A user deletes a NodeClaim while its machine is being launched.
    fn user_interferes(&self, spec: &LaunchSpec) {
        let Some(mishap) = self.mishaps.strikes(Fault::UserDeletesNewClaim, &spec.claim.name) else { return };
        let (cluster, name) = (self.invariants.cluster().clone(), spec.claim.name.clone());
        tokio::spawn(async move {
            sleep(Duration::from_millis(mishap.pick % 2_000)).await;
            // It may have gone in between.
            cluster.store().delete_claim(&name).ok();
        });
    }

    /// Launches a machine, or does not, or does not say.
    pub(super) async fn launch(&self, spec: &LaunchSpec) -> Result<Machine, Error> {
        self.user_interferes(spec);
        let name = &spec.claim.name;
        self.refuse(name.as_str()).await?;
        if self.mishaps.holds(Fault::Quota).is_some() {
            let message = "the account may have no more machines for now".to_owned();
            return Err(Error::Launch(LaunchRefused::Quota(message)));
        }
        let spec = &self.sell(spec)?;
        for (fault, quirk) in [(Fault::NeverRegisters, Quirk::Silent), (Fault::WrongProviderId, Quirk::Stranger)] {
            if self.mishaps.strikes(fault, name).is_some() {
                self.inner.next_machine(quirk);
            }
        }
        let unknown = || Error::Unknown("connection lost while the machine was launched".to_owned());
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall, name) {
            return self.killed(mishap, self.inner.create(spec)).await;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostBefore, name) {
            sleep(mishap.lasting).await;
            return Err(unknown());
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostAfter, name) {
            // What became of it stays unsaid.
            drop(self.inner.create(spec).await);
            sleep(mishap.lasting).await;
            return Err(unknown());
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLate, name) {
            let (cloud, spec) = (self.inner.clone(), spec.clone());
            tokio::spawn(async move {
                sleep(mishap.lasting).await;
                drop(cloud.create(&spec).await);
            });
            sleep(Duration::from_millis(mishap.pick % 5_000)).await;
            return Err(unknown());
        }
        let made = self.inner.create(spec).await?;
        if let Some(mishap) = self.mishaps.strikes(Fault::MachineLate, &made.id) {
            self.state().denied.begin(&made.id, mishap.lasting);
        }
        Ok(made)
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
}
