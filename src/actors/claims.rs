//! `claims`: the parent of the claim actors. A map and nothing that can panic, because its death ends all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::core::ids::ClaimName;

use super::claim::{Claim, ClaimArgs};
use super::protocol::{ClaimMsg, ClaimsMsg};
use super::runtime::{Behaviour, Cx, Ended, Kind, Slot, Timer, View, backoff};
use super::tree::Wiring;

/// First wait before a failed claim actor is started again; doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Longest wait: a NodeClaim whose actor fails at every look is as good as quarantined, and the rest goes on.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
/// An actor that has lived this long is healthy: its next failure counts as its first.
const HEALTHY_AFTER: Duration = Duration::from_mins(1);

/// Parent of the claim actors.
#[derive(Debug)]
pub(super) struct Claims {
    wiring: Arc<Wiring>,
    places: BTreeMap<ClaimName, Place>,
    names: BTreeMap<u64, ClaimName>,
}

/// Where a NodeClaim's actor is, or will be.
#[derive(Debug)]
struct Place {
    slot: Slot<ClaimMsg>,
    alive: Option<u64>,
    born: Instant,
    failures: u32,
    revive: Option<Timer>,
}

impl Claims {
    fn look(&mut self, names: Vec<ClaimName>, cx: &Cx<ClaimsMsg>) {
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
        });
        if place.alive.is_some() {
            return;
        }
        let args = ClaimArgs { name: name.clone(), wiring: Arc::clone(&self.wiring) };
        place.revive = None;
        place.born = Instant::now();
        place.alive = cx.spawn::<Claim>(name.as_str(), args, &place.slot);
        if let Some(id) = place.alive {
            self.names.insert(id, name.clone());
        }
    }
}

impl Behaviour for Claims {
    type Msg = ClaimsMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Claims;

    fn born(wiring: &Self::Args, cx: &Cx<ClaimsMsg>) -> Self {
        cx.cast(ClaimsMsg::Look(wiring.boards.snapshot().claims.keys().cloned().collect()));
        Self { wiring: Arc::clone(wiring), places: BTreeMap::new(), names: BTreeMap::new() }
    }

    fn handle(&mut self, message: ClaimsMsg, cx: &Cx<ClaimsMsg>) {
        match message {
            ClaimsMsg::Look(names) => self.look(names, cx),
            ClaimsMsg::Revive(name) => self.start(&name, cx),
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
            cx.cast(ClaimsMsg::Look(vec![name]));
            return;
        };
        place.slot.meter().restarted(cx.now(), error);
        place.failures = if place.born.elapsed() >= HEALTHY_AFTER { 1 } else { place.failures + 1 };
        let backoff = backoff(FIRST_BACKOFF, LONGEST_BACKOFF, place.failures);
        tracing::error!(nodeclaim = %name, error, in_a_row = place.failures, "claim actor failed, starting it again");
        place.revive = Some(cx.after(backoff, ClaimsMsg::Revive(name)));
    }

    fn observe(&self, _: Timestamp) -> View {
        let failing = self.places.values().filter(|place| place.alive.is_none()).count();
        View {
            state: format!("{} NodeClaims", self.places.len()),
            waits_for: (failing > 0).then(|| format!("backoff of {failing} failed claim actors")),
            ..View::default()
        }
    }
}
