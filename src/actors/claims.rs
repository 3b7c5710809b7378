//! `claims`: the parent of the claim actors. A map and nothing that can panic, because its death ends all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::core::backoff::backoff;
use crate::core::ids::ClaimName;
use crate::core::lifecycle::{HEALTHY_AFTER, quarantine};
use crate::core::time::later;
use crate::core::writes::Regarding;
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::events;

use super::claim::{Claim, ClaimArgs};
use super::protocol::{ClaimMsg, ClaimsMsg, Written};
use super::runtime::{Behaviour, Cx, Ended, Kind, Outcome, Permits, Slot, Timer, View};
use super::tree::Wiring;

/// First wait before a failed claim actor is started again; doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Longest wait.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
/// From so many failures in a row on a NodeClaim is quarantined, and says so: a quarter of a minute after the first. What hurts once or twice heals
/// before anybody could read of it.
const QUARANTINED_FROM: u32 = 8;
/// Pause before a NodeClaim is told again that it is quarantined.
const TELL_AGAIN: Duration = Duration::from_secs(5);

/// Parent of the claim actors.
#[derive(Debug)]
pub(super) struct Claims {
    wiring: Arc<Wiring>,
    places: BTreeMap<ClaimName, Place>,
    names: BTreeMap<u64, ClaimName>,
    said: Dedupe,
}

/// Where a NodeClaim's actor is, or will be.
#[derive(Debug)]
struct Place {
    slot: Slot<ClaimMsg>,
    alive: Option<u64>,
    born: Instant,
    failures: u32,
    revive: Option<Timer>,
    /// Why the NodeClaim is quarantined, while it is.
    quarantine: Option<String>,
    tell: Option<Timer>,
}

impl Claims {
    fn look(&mut self, cx: &Cx<ClaimsMsg>) {
        let names = self.wiring.boards.stirred.send_replace(BTreeSet::new());
        if !cx.house.operations.leads() {
            // Standing by: whoever leads owns the machines. Claim actors that are left over end; the lease brings them back.
            for place in self.places.values() {
                place.slot.stop();
            }
            return;
        }
        let snapshot = self.wiring.boards.snapshot();
        for name in names {
            match self.places.get(&name) {
                Some(place) => place.slot.cast(ClaimMsg::Look),
                None if snapshot.claims.contains_key(&name) => self.start(&name, cx),
                None => {}
            }
        }
    }

    fn start(&mut self, name: &ClaimName, cx: &Cx<ClaimsMsg>) {
        let place = self.places.entry(name.clone()).or_insert_with(|| Place {
            slot: Slot::empty(),
            alive: None,
            born: Instant::now(),
            failures: 0,
            revive: None,
            quarantine: None,
            tell: None,
        });
        if place.alive.is_some() {
            return;
        }
        let args = ClaimArgs { name: name.clone(), wiring: Arc::clone(&self.wiring) };
        (place.revive, place.quarantine, place.tell) = (None, None, None);
        place.born = Instant::now();
        place.alive = cx.spawn::<Claim>(name.as_str(), args, &place.slot);
        if let Some(id) = place.alive {
            self.names.insert(id, name.clone());
        }
    }

    /// Has the NodeClaim say that it is quarantined: its actor cannot.
    fn tell(&mut self, name: &ClaimName, cx: &Cx<ClaimsMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let (Some(place), Some(claim)) = (self.places.get(name), snapshot.claims.get(name)) else { return };
        let Some(why) = &place.quarantine else { return };
        let about = Regarding::Claim(claim.name.clone(), claim.uid.clone());
        self.wiring.announce(&cx.house, &mut self.said, events::quarantined(about, why));
        let Some(patch) = quarantine(claim, why, cx.now()) else { return };
        let (cluster, name) = (Arc::clone(&self.wiring.cluster), name.clone());
        let told = name.clone();
        let call = async move { cluster.patch_claim_status(&name, &patch).await.map(drop) };
        cx.start(Permits::WriteCluster, call, move |outcome| ClaimsMsg::Told(told, outcome));
    }

    fn told(&mut self, name: ClaimName, outcome: &Written<()>, cx: &Cx<ClaimsMsg>) {
        if let Some(place) = self.places.get_mut(&name).filter(|place| place.quarantine.is_some()) {
            let again = matches!(outcome, Outcome::Failed(_) | Outcome::Lost);
            place.tell = again.then(|| cx.after(TELL_AGAIN, ClaimsMsg::Tell(name)));
        }
    }
}

/// What people should know of a NodeClaim at which joiner fails.
fn why(error: &str, failures: u32, until: Timestamp) -> String {
    let error: String = error.chars().take(300).collect();
    format!(
        "joiner failed {failures} times in a row at this NodeClaim: {error}. Its machine is left alone until {until:.0}, when joiner tries again; \
         all others are looked after. If somebody has edited the NodeClaim or its Node before, take that back; otherwise please report it with \
         joiner's log"
    )
}

impl Behaviour for Claims {
    type Msg = ClaimsMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Claims;

    fn born(wiring: &Self::Args, cx: &Cx<ClaimsMsg>) -> Self {
        let names = wiring.boards.snapshot().claims.keys().cloned().collect();
        wiring.boards.stirred.send_replace(names);
        cx.cast(ClaimsMsg::Look);
        Self { wiring: Arc::clone(wiring), places: BTreeMap::new(), names: BTreeMap::new(), said: Dedupe::new() }
    }

    fn handle(&mut self, message: ClaimsMsg, cx: &Cx<ClaimsMsg>) {
        match message {
            ClaimsMsg::Look => self.look(cx),
            ClaimsMsg::Revive(name) => self.start(&name, cx),
            ClaimsMsg::Tell(name) => self.tell(&name, cx),
            ClaimsMsg::Told(name, outcome) => self.told(name, &outcome, cx),
            ClaimsMsg::Open(names) => {
                for place in names.iter().filter_map(|name| self.places.get(name)) {
                    place.slot.cast(ClaimMsg::Open);
                }
            }
        }
    }

    fn child_ended(&mut self, ended: &Ended, cx: &Cx<ClaimsMsg>) {
        let Some(name) = self.names.remove(&ended.id) else { return };
        let Some(place) = self.places.get_mut(&name) else { return };
        place.alive = None;
        place.slot.vacate();
        let Some(error) = &ended.failure else {
            self.places.remove(&name);
            // Between its last look and its end something may have been heard: a NodeClaim that is (again) there gets a new actor.
            self.wiring.stir([name]);
            return;
        };
        if !self.wiring.settings.protections.revival {
            return;
        }
        place.slot.meter().restarted(cx.now(), error);
        let healthy = place.born.elapsed() >= HEALTHY_AFTER.unsigned_abs();
        place.failures = if healthy { 1 } else { place.failures + 1 };
        let backoff = backoff(FIRST_BACKOFF, LONGEST_BACKOFF, place.failures);
        tracing::error!(nodeclaim = %name, error, in_a_row = place.failures, "claim actor failed, starting it again");
        place.revive = Some(cx.after(backoff, ClaimsMsg::Revive(name.clone())));
        if place.failures >= QUARANTINED_FROM {
            let until = later(cx.now(), backoff);
            place.quarantine = Some(why(error, place.failures, until));
            self.tell(&name, cx);
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        let failing = self.places.values().filter(|place| place.alive.is_none()).count();
        let quarantined = self
            .places
            .iter()
            .filter_map(|(name, place)| Some((format!("NodeClaim {name} is quarantined"), place.quarantine.clone()?)));
        View {
            state: format!("{} NodeClaims", self.places.len()),
            waits_for: (failing > 0).then(|| format!("backoff of {failing} failed claim actors")),
            details: quarantined.collect(),
            ..View::default()
        }
    }
}
