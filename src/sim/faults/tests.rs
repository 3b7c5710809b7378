//! The list of faults: drawn once, the same every time, over at a set moment, and struck only when there is an occasion.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::past::Past;
use super::stream::hostile;
use super::*;
use crate::clouds::catalog::generated;
use crate::clouds::simulated::Conduct;
use crate::clouds::{self, Cloud, Deletion, Whereabouts};
use crate::cluster::{ClassPatch, Cluster, Error, OverlayStatusPatch};
use crate::core::facts::{Fact, Fold, Kind, NodeClass, Overlay, Pool, samples};
use crate::core::ids::ProviderId;
use crate::core::labels::TERMINATION_FINALIZER;
use crate::core::resources::Resources;
use crate::sim::invariants::{Invariants, Journal};
use crate::sim::{Seed, SimCluster, props};

fn mishap(at: u64, fault: Fault, lasting: u64, pass_over: u64) -> Mishap {
    Mishap { at: Duration::from_secs(at), fault, lasting: Duration::from_secs(lasting), pass_over, pick: 0 }
}

#[test]
fn a_seed_draws_one_plan_and_it_ends_when_it_should() {
    let busy = [Duration::from_hours(3)];
    let draw = |seed| Plan::draw(Seed(seed), &Profile::Mixed, &busy, CALM);
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    for seed in 0..50 {
        let Plan(plan) = draw(seed);
        assert!(plan.is_sorted_by_key(|mishap| mishap.at));
        assert!(plan.iter().all(|mishap| mishap.at + mishap.lasting <= CALM));
    }
    assert_eq!(Plan::draw(Seed(1), &Profile::None, &busy, CALM), Plan::default());
}

#[test]
fn profiles_are_named_and_an_unknown_one_says_which_there_are() {
    assert_eq!(Profile::parse("mixed"), Ok(Profile::Mixed));
    let Plan(only) = Plan::draw(Seed(3), &Profile::parse("machine-dies").unwrap(), &[], CALM);
    assert!(!only.is_empty() && only.iter().all(|mishap| mishap.fault == Fault::MachineDies));
    let these = vec![(Fault::SoldOut, 2.5), (Fault::WatchStale, 300.0)];
    assert_eq!(Profile::parse("sold-out=2.5,watch-stale=300"), Ok(Profile::These(these.into())));
    for words in ["none", "mixed", "sold-out=2.5,watch-stale=300"] {
        assert_eq!(Profile::parse(words).unwrap().to_string(), words);
    }
    for unknown in ["everything", "", "mixed=2", "sold-out,everything"] {
        let message = Profile::parse(unknown).unwrap_err().to_string();
        assert!(message.contains("mixed") && message.contains("kubelet-silent"), "{message}");
    }
    let twice = Profile::parse("sold-out=2,watch-stale,sold-out=300").unwrap_err().to_string();
    assert_eq!(twice, "sold-out is there twice; write it once");
    for number in ["", "often", "-1", "NaN", "inf", "1e9"] {
        let message = Profile::parse(&format!("sold-out={number}")).unwrap_err().to_string();
        assert!(message.contains("sold-out=300"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_waits_for_its_time_and_its_occasion_and_strikes_once() {
    let plan = Plan(vec![mishap(10, Fault::ApiError, 0, 1)]);
    let (mishaps, _orders) = Mishaps::new(&plan, CALM, Journal::default());
    assert_eq!(mishaps.strikes(Fault::ApiError, "one"), None);
    sleep_until(Instant::now() + Duration::from_secs(10)).await;
    assert_eq!(mishaps.strikes(Fault::ApiSlow, "one"), None);
    assert_eq!(mishaps.strikes(Fault::ApiError, "one"), None, "the first occasion passes");
    assert!(mishaps.strikes(Fault::ApiError, "one").is_some());
    assert_eq!(mishaps.strikes(Fault::ApiError, "one"), None);
    assert_eq!(mishaps.counts(), [("api-error", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_lasts_is_counted_once_and_ends() {
    let plan = Plan(vec![mishap(10, Fault::ApiOutage, 20, 3)]);
    let (mishaps, _orders) = Mishaps::new(&plan, CALM, Journal::default());
    let start = Instant::now();
    for (at, holds) in [(9, false), (10, true), (29, true), (30, false)] {
        sleep_until(start + Duration::from_secs(at)).await;
        assert_eq!(mishaps.holds(Fault::ApiOutage).is_some(), holds, "at {at} s");
    }
    assert_eq!(mishaps.counts(), [("api-outage", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn nothing_strikes_any_more_when_faults_have_stopped() {
    let plan = Plan(vec![mishap(10, Fault::ApiError, 0, 0)]);
    let (mishaps, _orders) = Mishaps::new(&plan, Duration::from_mins(1), Journal::default());
    sleep_until(Instant::now() + Duration::from_mins(1)).await;
    assert_eq!(mishaps.strikes(Fault::ApiError, "one"), None);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_not_told_as_a_whole_one() {
    let cluster = props::cluster(1);
    let nodes = ["a", "b", "c"].map(|name| props::node(name, "zone", 1_000, 1_024));
    for node in nodes {
        cluster.store().create_node(node).unwrap();
    }
    let nodes = cluster.store().all(Kind::Node);
    let facts: Vec<_> =
        [Fact::Relisting(Kind::Node)].into_iter().chain(nodes).chain([Fact::Relisted(Kind::Node)]).collect();
    // The watch of Nodes, as `pick` has it, breaks after the second.
    let plan = Plan(vec![Mishap { pick: 1, ..mishap(0, Fault::WatchDropped, 30, 1) }]);
    let (mishaps, _orders) = Mishaps::new(&plan, CALM, Journal::default());
    let past = Past::of(&cluster, &mishaps);
    let mut told = hostile(cluster, stream::iter(facts).chain(stream::pending()).boxed(), mishaps, past);
    let (mut fold, start) = (Fold::default(), Instant::now());
    while !fold.snapshot().listed.contains(&Kind::Node) {
        fold.fold(told.next().await.unwrap());
    }
    assert_eq!(fold.snapshot().nodes.len(), 3);
    assert!(start.elapsed() >= Duration::from_secs(30), "{:?}", start.elapsed());
}

/// The next list of a kind that a watch tells to its end.
async fn next_list(told: &mut (impl futures::Stream<Item = Fact> + Unpin), kind: Kind) -> Vec<Fact> {
    let mut list = None;
    loop {
        match told.next().await.unwrap() {
            Fact::Relisting(began) if began == kind => list = Some(Vec::new()),
            Fact::Relisted(ended) if ended == kind => return list.unwrap_or_default(),
            fact => list.iter_mut().for_each(|list: &mut Vec<Fact>| list.push(fact.clone())),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_shows_what_there_was_then_as_it_was_then() {
    // Of NodePools, as `pick` has it.
    let stale = Mishap { pick: 3, ..mishap(0, Fault::WatchStale, 60, 0) };
    let (mishaps, _orders) = Mishaps::new(&Plan(vec![stale]), CALM, Journal::default());
    let cluster = props::cluster(1);
    cluster.store().apply_pool(props::pool("edited"));
    cluster.store().apply_pool(props::pool("deleted"));
    let hostile = HostileCluster::new(
        cluster.clone(),
        mishaps,
        Invariants::new(cluster.clone(), props::cloud(1, Conduct::default()), props::clock(), Journal::default()),
    );
    sleep(Duration::from_secs(61)).await;
    {
        let mut store = cluster.store();
        store.apply_pool(Pool { weight: 7, ..props::pool("edited") });
        store.delete_pool(&"deleted".into()).unwrap();
        store.apply_pool(props::pool("young"));
    }
    sleep(Duration::from_secs(30)).await;
    let mut told = hostile.facts();
    // The first fact brings the fault: the list that it is in is broken off, and the stale one begins.
    assert_eq!(weights(&next_list(&mut told, Kind::NodePool).await), [("deleted", 0), ("edited", 0)]);
    assert_eq!(weights(&next_list(&mut told, Kind::NodePool).await), [("edited", 7), ("young", 0)]);
}

fn weights(pools: &[Fact]) -> Vec<(&str, i32)> {
    let pools = pools.iter().filter_map(|fact| if let Fact::PoolSeen(pool) = fact { Some(pool) } else { None });
    pools.map(|pool| (pool.name.as_str(), pool.weight)).collect()
}

#[tokio::test(start_paused = true)]
async fn each_guarded_write_can_meet_somebody_who_was_faster() {
    let plan = Plan(vec![mishap(0, Fault::ApiConflict, 0, 0); 2]);
    let (mishaps, _orders) = Mishaps::new(&plan, CALM, Journal::default());
    let cluster = props::cluster(1);
    let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let invariants = Invariants::new(cluster.clone(), props::cloud(1, Conduct::default()), clock, Journal::default());
    let hostile = HostileCluster::new(cluster.clone(), mishaps.clone(), invariants);
    cluster.store().apply_class(NodeClass { reference: props::class_ref(), ..samples::class() });
    let version = cluster.store().classes().next().unwrap().version.clone();
    let answer = hostile.patch_class(&props::class_ref(), &ClassPatch { version, finalizers: vec![] }).await;
    assert!(matches!(answer, Err(Error::Conflict(_))), "{answer:?}");
    cluster.store().apply_overlay(overlay("cheap"));
    let version = cluster.store().overlay("cheap").map(|overlay| overlay.version);
    let patch = OverlayStatusPatch { version, conditions: vec![] };
    let answer = hostile.patch_overlay_status("cheap", &patch).await;
    assert!(matches!(answer, Err(Error::Conflict(_))), "{answer:?}");
    assert_eq!(mishaps.counts(), [("api-conflict", 2)].into());
}

fn overlay(name: &str) -> Overlay {
    Overlay {
        name: name.into(),
        uid: "".into(),
        generation: 0,
        version: "".into(),
        created: Timestamp::UNIX_EPOCH,
        weight: 0,
        requirements: vec![],
        price: None,
        capacity: Resources::new(),
        errors: vec![],
        conditions: vec![],
    }
}

#[tokio::test(start_paused = true)]
async fn each_fault_that_strikes_stands_in_the_journal_with_what_it_befalls() {
    let plan = Plan(vec![mishap(0, Fault::ApiError, 0, 0), mishap(0, Fault::ApiOutage, 20, 0)]);
    let journal = Journal::kept();
    let (mishaps, _orders) = Mishaps::new(&plan, CALM, journal.clone());
    mishaps.strikes(Fault::ApiError, "web-1");
    mishaps.strikes(Fault::ApiError, "web-2");
    mishaps.holds(Fault::ApiOutage);
    mishaps.holds(Fault::ApiOutage);
    assert_eq!(journal.lines(), ["00:00:00.000 web-1: FAULT api-error", "00:00:00.000 FAULT api-outage"]);
}

/// Faults that strike at once, in front of a cluster with a NodeClaim and of a cloud with a machine.
async fn trouble(faults: &[Fault]) -> (HostileCluster, HostileCloud, SimCluster, ProviderId) {
    let (cluster, cloud) = (props::cluster(1), props::cloud(1, Conduct::default()));
    let claim = cluster.store().create_claim(&props::draft("one")).unwrap();
    let id = cloud.create(&props::launch(&claim, 2)).await.unwrap().id;
    let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let invariants = Invariants::new(cluster.clone(), cloud.clone(), clock, Journal::default());
    let plan = Plan(faults.iter().map(|fault| mishap(0, *fault, 30, 0)).collect());
    let (mishaps, _) = Mishaps::new(&plan, CALM, Journal::default());
    let hostile = HostileCluster::new(cluster.clone(), mishaps.clone(), invariants.clone());
    (hostile, HostileCloud::new(cloud, &generated(), mishaps, invariants), cluster, id)
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_late_takes_effect_when_nobody_waits_for_it_any_more() {
    let (hostile, _, cluster, _) = trouble(&[Fault::ApiLate]).await;
    let claim = cluster.store().claims().next().cloned().unwrap();
    let deleted = || cluster.store().claims().next().is_none_or(|claim| claim.deleting.is_some());
    let answer = hostile.delete_claim(&claim.name, &claim.uid).await;
    assert!(matches!(answer, Err(Error::Unknown(_))) && !deleted(), "{answer:?}");
    drop(hostile);
    sleep(Duration::from_secs(31)).await;
    assert!(deleted());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_comes_late_takes_a_machine_down_and_then_it_is_forgotten() {
    let (_, hostile, _, id) = trouble(&[Fault::OrderLate, Fault::MachineForgotten]).await;
    let answer = hostile.delete(&id).await;
    assert!(matches!(answer, Err(clouds::Error::Unknown(_))), "{answer:?}");
    assert!(hostile.get(&id).await.unwrap().is_there());
    sleep(Duration::from_mins(1)).await;
    for _ in 0..2 {
        assert_eq!(hostile.get(&id).await.unwrap(), Whereabouts::Unknown, "and not that it has ended");
        assert_eq!(hostile.delete(&id).await.unwrap(), Deletion::Missing);
    }
}

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_is_made_anew_under_its_name_when_its_predecessor_is_gone_and_counts_then() {
    for (stripped, calm) in [(true, CALM), (false, CALM), (false, Duration::from_mins(1))] {
        let (cluster, cloud) = (props::cluster(1), props::cloud(1, Conduct::default()));
        let old = cluster.store().create_claim(&props::draft("one")).unwrap();
        cluster.store().update_claim(&old.name, |claim| claim.finalizers = vec![TERMINATION_FINALIZER.into()]);
        let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
        let invariants = Invariants::new(cluster.clone(), cloud.clone(), clock, Journal::default());
        // Of `pick`, the lowest bit of the second byte says whether the finalizers are left on.
        let remade = Mishap { pick: u64::from(!stripped) << 8, ..mishap(1, Fault::UserRemakesClaim, 60, 0) };
        let (mishaps, _orders) = Mishaps::new(&Plan(vec![remade]), calm, Journal::default());
        tokio::spawn(Player::new(invariants, cloud, mishaps.clone(), &[]).run());
        sleep(Duration::from_mins(2)).await;
        let now = || cluster.store().claims.get(&old.name).cloned();
        let anew = || now().is_some_and(|claim| claim.uid != old.uid && claim.deleting.is_none());
        assert_eq!(anew(), stripped);
        cluster.store().update_claim(&old.name, |claim| claim.finalizers.clear());
        sleep(Duration::from_secs(2)).await;
        assert_eq!((anew(), now().is_some()), (calm == CALM, calm == CALM), "what is calm stays calm");
        assert_eq!(mishaps.counts().contains_key("user-remakes-nodeclaim"), calm == CALM);
    }
}

#[test]
fn days_differ_and_need_between_50_and_500_nodes() {
    let peaks: Vec<u64> = (0..200).map(|seed| Day::draw(Seed(seed)).unwrap().peak).collect();
    assert!(peaks.iter().all(|peak| (50..=500).contains(peak)));
    assert!(peaks.iter().any(|peak| *peak < 80) && peaks.iter().any(|peak| *peak > 400));
    assert_eq!(Day::catalogue(generated()).len(), 6);
}
