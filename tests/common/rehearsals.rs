//! Worlds in a box for tests: virtual time, a joiner that can be hurt, and what must hold when the dust has settled.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use joiner::actors::runtime::{Clock, Kind};
use joiner::actors::{Joiner, Settings};
use joiner::clouds::catalog;
use joiner::clouds::simulated::SimMachine;
use joiner::cluster::Cluster;
use joiner::command::{Rehearsal, mixed, scenario_of};
use joiner::core::facts::{Fold, Snapshot};
use joiner::core::ids::{ClaimUid, ObjectKey};
use joiner::sim::{Act, End, Scenario};
use tokio::time::{Instant, sleep};

/// Longest time that any of these stories takes in its world.
pub(crate) const STORY: Duration = Duration::from_hours(6);
/// Nothing has changed for this long: whatever was to happen has happened.
pub(crate) const QUIET: Duration = Duration::from_mins(1);

/// Runs a story in a runtime of its own, whose clock moves only when everybody sleeps.
pub(crate) fn in_virtual_time<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime starts").block_on(story)
}

/// Settings of a joiner that is alone and looks for orphans often, so that stories need not be long.
pub(crate) fn settings() -> Settings {
    Settings { leader_election: false, audit_every: Duration::from_secs(20), ..Settings::default() }
}

/// So many mixed pods at the start.
pub(crate) fn burst(pods: usize) -> Scenario {
    scenario_of("burst", &mixed(pods)).expect("the load is well-formed")
}

/// A world for a scenario, and what joiners in it are made of.
pub(crate) fn rehearsal(scenario: &Scenario, seed: u64, settings: Settings) -> Rehearsal {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    Rehearsal::new(scenario, catalog::generated(), seed, clock, settings)
}

/// Plays the scenario for as long as the story goes on.
pub(crate) async fn play<T>(rehearsal: &Rehearsal, scenario: &Scenario, story: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        () = rehearsal.world.run(&scenario.steps, End::At(STORY)) => panic!("the story did not end"),
        told = story => told,
    }
}

/// The truth, as the API server has it.
pub(crate) fn truth(rehearsal: &Rehearsal) -> Snapshot {
    let (mut facts, mut fold) = (rehearsal.world.cluster.prompt_facts(), Fold::default());
    while let Some(Some(fact)) = facts.next().now_or_never() {
        fold.fold(fact);
    }
    fold.snapshot().clone()
}

/// Machines that nobody has ordered down.
pub(crate) fn machines(rehearsal: &Rehearsal) -> Vec<std::sync::Arc<SimMachine>> {
    let mut machines = rehearsal.world.cloud.machines();
    machines.retain(|machine| machine.gone_at.is_none());
    machines
}

/// Waits for the first NodeClaim.
pub(crate) async fn first_claim(rehearsal: &Rehearsal) {
    while rehearsal.world.cluster.list_claims().await.is_ok_and(|claims| claims.is_empty()) {}
}

/// Waits until nothing is pending or under way and nothing has changed for a while; gives up after two hours.
pub(crate) async fn settled(rehearsal: &Rehearsal) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_hours(2) {
        sleep(Duration::from_secs(5)).await;
        let quiet = rehearsal.world.cluster.store().last_change().elapsed().min(began.elapsed());
        if quiet < QUIET {
            continue;
        }
        let now = truth(rehearsal);
        let busy = now.claims.values().any(|claim| claim.deleting.is_some() || !claim.is("Initialized"))
            || now.nodes.values().any(|node| node.deleting.is_some())
            || now.pods.values().any(|pod| pod.deleting.is_some() || pod.node.is_none());
        if !busy {
            return;
        }
    }
}

/// Deletes an object, as a user does.
pub(crate) fn delete(rehearsal: &Rehearsal, kind: &str, name: &str) {
    let key = ObjectKey { namespace: "".into(), name: name.into() };
    rehearsal.world.perform(&Act::Delete { kind: kind.to_owned(), key }).expect("what is deleted is there");
}

/// All is well: every pod has a node, every node a NodeClaim, every NodeClaim one machine, and nothing happened that must not.
pub(crate) fn assert_intact(rehearsal: &Rehearsal, pods: usize, story: &str) {
    let now = truth(rehearsal);
    let unbound: Vec<_> = now.pods.values().filter(|pod| pod.node.is_none()).map(|pod| pod.key.to_string()).collect();
    assert_eq!(unbound, Vec::<String>::new(), "{story}: pods without a node");
    assert_eq!(now.pods.len(), pods, "{story}: pods");
    let reasons = |_: &_| Vec::new();
    assert_eq!(rehearsal.world.ledger.close(0, &reasons).violations, Vec::<String>::new(), "{story}: violations");
    let machines = machines(rehearsal);
    let mut by_claim: BTreeMap<ClaimUid, usize> = BTreeMap::new();
    for machine in &machines {
        let token = machine.machine.token.clone().expect("joiner marks its machines");
        *by_claim.entry(token).or_default() += 1;
    }
    for claim in now.claims.values() {
        assert_eq!(by_claim.remove(&claim.uid), Some(1), "{story}: machines of NodeClaim {}", claim.name);
        assert!(claim.is("Ready") && claim.is("Initialized"), "{story}: NodeClaim {} is ready", claim.name);
        assert!(claim.has_finalizer(), "{story}: NodeClaim {} is protected", claim.name);
        assert!(now.node_of(claim).is_some_and(|node| node.is_initialized()), "{story}: node of {}", claim.name);
    }
    assert_eq!(by_claim, BTreeMap::new(), "{story}: machines without a NodeClaim");
    assert_eq!(now.nodes.len(), machines.len(), "{story}: nodes");
}

/// The tree stands: every actor is there once, and every NodeClaim has its own.
pub(crate) fn assert_whole(joiner: &Joiner, rehearsal: &Rehearsal, story: &str) {
    let (counts, claims) = (joiner.house().observations.count(), truth(rehearsal).claims.len());
    for kind in Kind::ALL {
        let wanted = if kind == Kind::Claim { claims } else { 1 };
        assert_eq!(counts.get(&kind).copied().unwrap_or(0), wanted, "{story}: live actors of kind {kind}");
    }
}
