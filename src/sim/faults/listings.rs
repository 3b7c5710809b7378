//! What befalls listings: machines that they do not show, without saying so.

use std::time::Duration;

use tokio::time::Instant;

use super::cloud::HostileCloud;
use super::kind::Fault;
use super::plan::Mishap;
use crate::clouds::{Cloud, Error, Listing};
use crate::core::facts::Machine;
use crate::core::ids::ProviderId;

impl HostileCloud {
    /// All machines, but for those that are not shown.
    pub(super) async fn listing(&self) -> Result<Listing, Error> {
        self.refuse("the cloud").await?;
        let mut listing = self.inner.list().await?;
        let now = Instant::now();
        listing.machines.retain(|machine| !self.state().denied.has(&machine.id));
        self.untag(&listing.machines);
        listing.machines.retain(|machine| self.has_tags(&machine.id));
        if let Some(mishap) = self.mishaps.strikes(Fault::ListingBroken, "the cloud") {
            let pages = usize::try_from(mishap.pick).unwrap_or(0) % (listing.machines.len() + 1);
            listing.machines.truncate(pages);
            listing.complete = false;
        }
        if let Some((id, lasting)) = self.befalls_one(Fault::MachineHidden, &listing.machines) {
            self.state().hidden.insert(id, now + lasting);
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
        if let Some((id, lasting)) = self.befalls_one(Fault::MachineUntagged, machines) {
            let mut state = self.state();
            let until = state.untagged.entry(id.clone()).or_insert_with(Instant::now);
            *until = (*until).max(Instant::now() + lasting);
            drop(state);
            self.invariants.mark_taken_off(&id, lasting);
        }
    }

    /// Which of these machines something befalls now, and for how long; nothing where there is none, or nothing strikes.
    fn befalls_one(&self, fault: Fault, machines: &[Machine]) -> Option<(ProviderId, Duration)> {
        if machines.is_empty() {
            return None;
        }
        let one = |mishap: &Mishap| &machines[usize::try_from(mishap.pick >> 1).unwrap_or(0) % machines.len()].id;
        let mishap = self.mishaps.strikes_one(fault, one)?;
        Some((one(&mishap).clone(), mishap.lasting))
    }

    /// Whether a machine carries its tags.
    pub(super) fn has_tags(&self, id: &ProviderId) -> bool {
        self.state().untagged.get(id).is_none_or(|until| *until <= Instant::now())
    }
}
