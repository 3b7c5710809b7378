//! One day of trouble: drawn from a seed, and played.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep_until};

use crate::actors;
use crate::actors::runtime::Clock;
use crate::clouds::catalog;
use crate::core::promises::Broken;
use crate::core::steady::TOLERANCE;
use crate::sim::faults::{
    CALM, Day, EMPTYING, END, Fault, HostileCloud, HostileCluster, Mishaps, Plan, Player, Profile,
};
use crate::sim::invariants::{Invariants, Journal, Violation};
use crate::sim::{End, Seed, World, WorldConfig};

use super::crew::Crew;
use super::oncall::OnCall;
use super::panics::Listener;

/// When histories begin, in seconds since 1970: 2026-01-01 00:00 UTC.
const BEGINNING: i64 = 1_767_225_600;
/// How often joiner is asked what it waits for.
const ASK: Duration = Duration::from_mins(15);
/// How often somebody reads what its auditor found: each so many times, and the next time where that was not true.
const CALLS: u32 = 2;
/// One history in so many has a lease, which can be lost, and every one whose faults are to be that. The others do without: renewing it every two seconds is most of the work of a quiet
/// day.
const WITH_LEASE: u64 = 8;

/// A day, and what goes wrong in it.
#[derive(Clone, Debug)]
pub struct History {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Which faults it was drawn with.
    pub profile: Profile,
    /// What users do.
    pub day: Day,
    /// What goes wrong.
    pub plan: Plan,
    /// Whether joiner holds a lease, which can be lost.
    pub lease: bool,
    /// Whether an actor that is made to panic says that this is on purpose. A test lets it be silent about that.
    pub candid: bool,
}

/// What came of a history.
#[derive(Clone, Default)]
pub struct Told {
    /// The promises that were broken.
    pub violations: Vec<Violation>,
    /// How often each fault struck.
    pub faults: BTreeMap<&'static str, u64>,
    /// How many joiners there were, one after the other.
    pub lives: u64,
    /// The promises that joiner itself saw broken.
    pub seen: Vec<Broken>,
    /// How much time passed in it.
    pub simulated: Duration,
    /// How often the person on call had to decide something.
    pub interventions: u64,
    /// Most machines at a time.
    pub peak: usize,
    /// What happened, if that was asked for.
    pub journal: Journal,
}

impl History {
    /// Draws a history.
    pub fn draw(seed: u64, profile: &Profile) -> Result<Self> {
        let day = Day::draw(Seed(seed))?;
        let plan = Plan::draw(Seed(seed), profile, &day.busy(), CALM);
        let lease = seed.is_multiple_of(WITH_LEASE) || profile.names(&[Fault::LeaseLost, Fault::LeaseLostMidWrite]);
        Ok(Self { seed, profile: profile.clone(), day, plan, lease, candid: true })
    }

    /// Plays it in a runtime of its own, whose clock stands still unless everybody sleeps.
    pub fn play(&self, settings: &actors::Settings, journal: bool) -> Result<Told> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .context("cannot start a runtime")?;
        runtime.block_on(self.tell(settings, journal))
    }

    async fn tell(&self, settings: &actors::Settings, journal: bool) -> Result<Told> {
        let clock = Clock::simulated(Timestamp::from_second(BEGINNING)?);
        let start = Instant::now();
        let journal = if journal { Journal::kept() } else { Journal::default() };
        let catalogue = Day::catalogue(catalog::generated());
        let panics = Listener::new(&journal);
        let world = World::new(WorldConfig {
            catalogue: catalogue.clone(),
            ..WorldConfig::usual(self.seed, Arc::new(move || clock.now()))
        });
        // Eight bytes each that stay: a clock is copied to wherever time is told.
        let wrong_by: &'static AtomicI64 = Box::leak(Box::default());
        let followed: &'static AtomicI64 = Box::leak(Box::default());
        // A clock that jumps ahead is not to be believed; only a joiner that began on one that was wrong cannot know, nor one whose clock went wrong in
        // small steps.
        let believed = move || {
            let [wrong, followed] =
                [wrong_by, followed].map(|by| SignedDuration::from_millis(by.load(Ordering::Relaxed)));
            clock.now() + wrong.min(followed.max(SignedDuration::ZERO) + TOLERANCE)
        };
        let invariants =
            Invariants::new(world.cluster.clone(), world.cloud.clone(), Arc::new(believed), journal.clone());
        let (mishaps, orders) = Mishaps::new(&self.plan, CALM, journal.clone());
        let player = Player::new(invariants.clone(), world.cloud.clone(), mishaps.clone(), &self.day.sweeps);
        // The ledger writes down what nobody reads here; the watch takes its place.
        let players = world.stand_ins().into_iter().filter(|(name, _)| *name != "ledger");
        tokio::spawn(invariants.clone().run());
        players.for_each(|(_, player)| drop(tokio::spawn(player)));
        tokio::spawn(player.run());
        let crew = Crew::new(
            Arc::new(HostileCluster::new(world.cluster.clone(), mishaps.clone(), invariants.clone())),
            Arc::new(HostileCloud::new(world.cloud.clone(), &catalogue, mishaps.clone(), invariants.clone())),
            actors::Settings { name_salt: self.seed, leader_election: self.lease, ..settings.clone() },
            clock,
            (wrong_by, followed),
            self.candid,
        );
        let on_call = OnCall {
            cluster: world.cluster.clone(),
            cloud: world.cloud.clone(),
            mishaps: mishaps.clone(),
            invariants: invariants.clone(),
            journal: journal.clone(),
            interventions: Cell::default(),
            doubts: Cell::default(),
        };
        crew.start();
        tokio::select! {
            biased;
            () = self.follow(start, &crew, &on_call, &invariants) => {}
            () = crew.run(orders) => {}
            () = world.play(&self.day.steps, End::At(END + ASK)) => {}
        }
        crew.kill();
        panics.report(&invariants);
        let seen = crew.broken.take();
        for Broken { promise, object, what } in &seen {
            // The journal knows objects by their names alone.
            let name = object.split_once(' ').map_or(object.as_str(), |(_, name)| name);
            invariants.broken(*promise, vec![name.to_owned()], format!("joiner itself saw: {what}"));
        }
        Ok(Told {
            lives: crew.lives.get(),
            seen,
            violations: invariants.violations(),
            faults: mishaps.counts(),
            interventions: on_call.interventions.get(),
            simulated: start.elapsed(),
            peak: invariants.peak(),
            journal,
        })
    }

    /// Looks at the moments at which something must hold.
    async fn follow(&self, start: Instant, crew: &Crew, on_call: &OnCall, invariants: &Invariants) {
        for round in (1..).take_while(|round| ASK * *round < EMPTYING) {
            sleep_until(start + ASK * round).await;
            crew.look_for_silence(invariants).await;
            if round.is_multiple_of(CALLS) || on_call.doubts.get() {
                crew.call(on_call).await;
            }
        }
        sleep_until(start + EMPTYING - Duration::from_secs(10)).await;
        crew.look_for_silence(invariants).await;
        invariants.settled(&crew.said().await, &crew.refused());
        sleep_until(start + END).await;
        invariants.emptied(crew.memory(&on_call.cluster).await, &crew.said().await);
    }
}
