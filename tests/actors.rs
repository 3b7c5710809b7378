//! Any actor may die at any message, and joiner as a whole at any moment: it comes back, rebuilds itself from the truth, and the work
//! goes on. Nothing is bought twice, nothing is left over.

#[path = "common/rehearsals.rs"]
mod rehearsals;
#[path = "common/shop.rs"]
mod shop;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use joiner::actors::runtime::{Clock, Kind, Permits, View};
use joiner::actors::{Joiner, Parts, Settings};
use joiner::api::classes::kwok::KwokNodeClass;
use joiner::clouds::catalog;
use joiner::clouds::simulated::{Call, Change, Refusal};
use joiner::cluster;
use joiner::command::{Rehearsal, mixed, rehearse};
use joiner::core::audit::{Alarm, Finding};
use joiner::core::consent;
use joiner::core::facts::{Broken, Claim, NodeClass, Snapshot, Status, find_condition};
use joiner::core::health::HEALTHY;
use joiner::core::ids::{ObjectKey, ProviderId};
use joiner::core::labels;
use joiner::core::writes::{ClaimPatch, PoolStatusPatch, Regarding};
use joiner::sim::progress::{Progress, When};
use joiner::sim::{Act, Gate, Verdict, summary};
use rehearsals::{
    assert_intact, assert_whole, burst, delete, first_claim, in_virtual_time, machines, play, rehearsal, settings,
    settled, truth,
};
use shop::Shop;
use tokio::time::{Instant, sleep};

/// Pods of a burst in which one actor is struck.
const PODS: usize = 60;

/// Tells the story of a burst of so many pods, at whose end all is well with the world and with the joiner that is left.
fn comes_out_well(pods: usize, seed: u64, story: &str, told: impl AsyncFnOnce(&Rehearsal, Clock) -> Joiner) {
    let scenario = burst(pods);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, seed, settings());
        let joiner = play(&rehearsal, &scenario, told(&rehearsal, clock)).await;
        assert_intact(&rehearsal, pods, story);
        assert_whole(&joiner, &rehearsal, story);
        joiner.kill();
    });
}

/// Strikes the actors of a kind while pods are pending, and looks whether it hurts.
fn strike(kind: Kind, after: u64, times: u64) {
    let story = format!("{kind} struck {times} times after {after} messages");
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        joiner.house().saboteur.strike(kind, after, times);
        play(&rehearsal, &scenario, async {
            settled(&rehearsal).await;
            // Actors that work by the clock are struck later.
            let patience = Instant::now() + Duration::from_mins(30);
            while !joiner.house().saboteur.is_done() && Instant::now() < patience {
                sleep(Duration::from_secs(20)).await;
            }
            // The last backoff may last some seconds.
            sleep(Duration::from_mins(1)).await;
            settled(&rehearsal).await;
        })
        .await;
        assert!(joiner.house().saboteur.is_done(), "{story}: sabotage happened");
        let figures = joiner.house().observations.figures();
        assert_eq!(figures[&kind].restarts, times, "{story}: restarts");
        assert_intact(&rehearsal, PODS, &story);
        assert_whole(&joiner, &rehearsal, &story);
        joiner.kill();
    });
}

/// Strikes at several moments, once and several times in a row.
fn strike_at(kind: Kind, moments: &[u64]) {
    for after in moments {
        strike(kind, *after, 1);
        strike(kind, *after, 5);
    }
}

#[test]
fn state_may_die() {
    strike_at(Kind::State, &[0, 1, 3, 10, 50, 200]);
}

#[test]
fn catalog_may_die() {
    strike_at(Kind::Catalog, &[0, 1, 3]);
}

#[test]
fn claims_may_die() {
    strike_at(Kind::Claims, &[0, 1, 3, 10, 50]);
}

#[test]
fn claim_may_die() {
    strike_at(Kind::Claim, &[0, 1, 3, 10, 50, 100]);
}

#[test]
fn batcher_may_die() {
    strike_at(Kind::Batcher, &[0, 1, 3]);
}

#[test]
fn provisioner_may_die() {
    strike_at(Kind::Provisioner, &[0, 1, 3, 10]);
}

#[test]
fn pools_may_die() {
    strike_at(Kind::Pools, &[0, 1, 3, 10]);
}

#[test]
fn auditor_may_die() {
    strike_at(Kind::Auditor, &[0, 1, 3, 10]);
}

/// Without an election the leader hears one message in its life, so it dies at that one only.
#[test]
fn leader_may_die() {
    strike_at(Kind::Leader, &[0]);
}

/// Pods leave only when nodes go: the evictor is struck while all nodes are emptied.
#[test]
fn evictor_may_die() {
    for (after, times) in [(0, 1), (1, 1), (3, 1), (10, 1), (50, 1), (0, 5), (3, 5)] {
        let story = format!("evictor struck {times} times after {after} messages");
        let scenario = burst(PODS);
        in_virtual_time(async {
            let rehearsal = rehearsal(&scenario, 7, settings());
            let joiner = rehearsal.joiner();
            play(&rehearsal, &scenario, async {
                settled(&rehearsal).await;
                joiner.house().saboteur.strike(Kind::Evictor, after, times);
                for claim in truth(&rehearsal).claims.values() {
                    delete(&rehearsal, "NodeClaim", claim.name.as_str());
                }
                settled(&rehearsal).await;
            })
            .await;
            assert!(joiner.house().saboteur.is_done(), "{story}: sabotage happened");
            assert_eq!(joiner.house().observations.figures()[&Kind::Evictor].restarts, times, "{story}: restarts");
            assert_intact(&rehearsal, PODS, &story);
            assert_whole(&joiner, &rehearsal, &story);
            joiner.kill();
        });
    }
}

/// Several actors at once, again and again.
#[test]
fn all_may_die() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            for _ in 0..20 {
                for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Supervisor) {
                    joiner.house().saboteur.strike(kind, 0, 1);
                }
                sleep(Duration::from_secs(7)).await;
            }
            sleep(Duration::from_mins(2)).await;
            settled(&rehearsal).await;
        })
        .await;
        assert_intact(&rehearsal, PODS, "all struck");
        assert_whole(&joiner, &rehearsal, "all struck");
        joiner.kill();
    });
}

/// How a joiner ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Stopped,
}

/// A moment of a burst, in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// From its start.
    Start(u64),
    /// From the first NodeClaim.
    Claim(u64),
    /// From the first Node.
    Node(u64),
}

impl Moment {
    async fn come(self, rehearsal: &Rehearsal) {
        let millis = match self {
            Self::Start(millis) => millis,
            Self::Claim(millis) => {
                first_claim(rehearsal).await;
                millis
            }
            Self::Node(millis) => {
                while truth(rehearsal).nodes.is_empty() {
                    sleep(Duration::from_millis(10)).await;
                }
                millis
            }
        };
        sleep(Duration::from_millis(millis)).await;
    }
}

/// Ends a joiner at a moment of a burst of 200 pods, and starts another in the same world.
fn replace(moment: Moment, end: End) {
    let story = format!("joiner {end:?} at {moment:?}");
    comes_out_well(200, 11, &story, async |rehearsal, _| {
        let first = rehearsal.joiner();
        moment.come(rehearsal).await;
        match end {
            End::Killed => first.kill(),
            End::Stopped => assert!(first.stop(Duration::from_secs(30)).await, "{story}: all writes had ended"),
        }
        let second = rehearsal.joiner();
        settled(rehearsal).await;
        // Time for the auditor to look twice.
        sleep(Duration::from_mins(1)).await;
        second
    });
}

#[test]
fn joiner_may_be_killed_before_it_has_bought() {
    for millis in [0, 4, 12, 40, 300, 1_000, 1_300] {
        replace(Moment::Start(millis), End::Killed);
    }
}

/// Creating and launching: what was asked for may or may not have happened.
#[test]
fn joiner_may_be_killed_while_it_buys() {
    for millis in [0, 2, 5, 10, 30, 300, 800, 1_200, 1_600] {
        replace(Moment::Claim(millis), End::Killed);
    }
}

/// Booting, registration, binding, rest.
#[test]
fn joiner_may_be_killed_while_nodes_come_up() {
    for millis in [5_000, 21_000, 24_000, 27_000, 31_000, 36_000, 41_000, 60_000, 90_000] {
        replace(Moment::Claim(millis), End::Killed);
    }
}

#[test]
fn joiner_may_be_stopped() {
    for moment in [Moment::Start(20), Moment::Claim(2), Moment::Claim(500), Moment::Claim(25_000)] {
        replace(moment, End::Stopped);
    }
}

/// Plays a burst; at a moment all objects of a kind are deleted; they are replaced, or all is gone.
fn after_deletion(moment: Moment, kind: &str, replaced: bool) {
    let story = &format!("each {kind} deleted at {moment:?}");
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 5, settings());
        let joiner = rehearsal.joiner();
        let before = play(&rehearsal, &scenario, async {
            moment.come(&rehearsal).await;
            let before = truth(&rehearsal);
            let names: Vec<String> = match kind {
                "NodeClaim" => before.claims.keys().map(ToString::to_string).collect(),
                "Node" => before.nodes.keys().map(ToString::to_string).collect(),
                _ => vec!["default".to_owned()],
            };
            assert!(!names.is_empty(), "{story}: there is something to delete");
            for name in &names {
                delete(&rehearsal, kind, name);
            }
            if replaced {
                settled(&rehearsal).await;
            } else {
                sleep(Duration::from_mins(15)).await;
            }
            before
        })
        .await;
        let now = truth(&rehearsal);
        if replaced {
            assert_intact(&rehearsal, PODS, story);
            assert_whole(&joiner, &rehearsal, story);
        } else {
            assert_eq!(machines(&rehearsal), Vec::new(), "{story}: machines");
            assert!(now.claims.is_empty() && now.nodes.is_empty(), "{story}: NodeClaims and Nodes");
            let pods = now.pods.values().filter(|pod| pod.node.is_none() && pod.deleting.is_none()).count();
            assert_eq!(pods, PODS, "{story}: pods wait for a NodePool");
        }
        // While Nodes come up, only those that are there can be deleted.
        let gone = |name| !now.claims.contains_key(name);
        let all_there = before.claims.len() == before.nodes.len();
        assert!(before.claims.keys().all(gone) || (kind == "Node" && !all_there), "{story}: old NodeClaims");
        joiner.kill();
    });
}

#[test]
fn deleted_nodeclaims_are_replaced() {
    for millis in [0, 10, 300, 800, 1_600, 31_000, 120_000] {
        after_deletion(Moment::Claim(millis), "NodeClaim", true);
    }
}

#[test]
fn deleted_nodes_are_replaced() {
    for millis in [0, 6_000, 11_000, 95_000] {
        after_deletion(Moment::Node(millis), "Node", true);
    }
}

#[test]
fn a_deleted_nodepool_takes_its_nodes_along() {
    for millis in [0, 10, 300, 800, 1_600, 31_000, 120_000] {
        after_deletion(Moment::Claim(millis), "NodePool", false);
    }
}

/// The summary of a burst, without what depends on this machine.
fn summary_of(seed: u64) -> serde_json::Value {
    let outcome = rehearse(&burst(PODS), catalog::generated(), seed, settings(), Progress::on_stderr(When::Never));
    let text = summary::json(&outcome.expect("the burst is rehearsed")).expect("a summary is JSON");
    let mut summary: serde_json::Value = serde_json::from_str(&text).expect("a summary is JSON");
    let fields = summary.as_object_mut().expect("a summary is an object");
    for own in ["wallSeconds", "peakMemoryBytes"] {
        assert!(fields.remove(own).is_some(), "{own} is told");
    }
    summary
}

#[test]
fn a_seed_is_a_history() {
    let first = summary_of(1);
    assert_eq!(first, summary_of(1));
    let mut second = summary_of(2);
    second["seed"] = first["seed"].clone();
    assert_ne!(first, second, "chance makes a difference beyond its name");
}

/// A joiner of its own name in a world in which the lease counts.
fn candidate(rehearsal: &Rehearsal, clock: Clock, identity: &str) -> Joiner {
    let identity = identity.to_owned();
    Joiner::start(Parts {
        cluster: Arc::new(rehearsal.world.cluster.clone()),
        cloud: Arc::new(rehearsal.world.cloud.clone()),
        settings: Settings { leader_election: true, identity, ..settings() },
        clock,
    })
}

/// How many requests that change something were sent.
fn writes(rehearsal: &Rehearsal) -> u64 {
    let requests = rehearsal.world.cluster.requests();
    requests.iter().filter(|((verb, kind), _)| *verb != "list" && *kind != "leases").map(|(_, count)| count).sum()
}

/// How often objects of a kind were patched.
fn patches(rehearsal: &Rehearsal, kind: &'static str) -> u64 {
    rehearsal.world.cluster.requests().get(&("patch", kind)).copied().unwrap_or(0)
}

/// Two joiners, one lease; the one that has it ends at a moment of the burst.
fn succeed(moment: Moment, end: End) {
    let story = format!("leader {end:?} at {moment:?}");
    comes_out_well(PODS, 3, &story, async |rehearsal, clock| {
        let (first, second) = (candidate(rehearsal, clock, "one"), candidate(rehearsal, clock, "two"));
        moment.come(rehearsal).await;
        assert!(first.house().operations.may_write(), "{story}: the first one leads");
        assert!(!second.house().operations.may_write(), "{story}: the second one stands by");
        let claims = |joiner: &Joiner| joiner.house().observations.count().get(&Kind::Claim).copied().unwrap_or(0);
        assert_eq!(claims(&second), 0, "{story}: who stands by owns no machine");
        match end {
            End::Killed => first.kill(),
            End::Stopped => assert!(first.stop(Duration::from_secs(30)).await, "{story}: all writes had ended"),
        }
        let (ended, written) = (Instant::now(), writes(rehearsal));
        while !second.house().operations.may_write() {
            assert!(ended.elapsed() < Duration::from_secs(17), "{story}: taken over in time");
            assert_eq!(writes(rehearsal), written, "{story}: nobody writes without the lease");
            sleep(Duration::from_millis(50)).await;
        }
        if let End::Stopped = end {
            assert!(ended.elapsed() < Duration::from_secs(3), "{story}: a lease that is given back is free");
        }
        settled(rehearsal).await;
        sleep(Duration::from_mins(1)).await;
        second
    });
}

#[test]
fn the_next_one_takes_over() {
    succeed(Moment::Start(500), End::Killed);
    for millis in [0, 5, 500, 1_600, 30_000, 70_000] {
        succeed(Moment::Claim(millis), End::Killed);
    }
    for millis in [0, 500, 30_000] {
        succeed(Moment::Claim(millis), End::Stopped);
    }
}

/// Who stood by knows nothing of the launches meanwhile: what is written of them stays.
#[test]
fn a_verdict_on_launches_is_not_carried_over_a_time_without_the_lease() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, 3, settings());
        let health = || {
            let pools = truth(&rehearsal).pools;
            let pool = pools.values().next().expect("there is a NodePool").clone();
            let healthy = find_condition(&pool.conditions, HEALTHY).expect("it is judged").clone();
            (pool, healthy)
        };
        play(&rehearsal, &scenario, async {
            let joiner = leader(&rehearsal, clock).await;
            let (pool, mut healthy) = health();
            assert_eq!(healthy.status, Status::True, "its launches came out well");
            give_lease_away(&rehearsal, Duration::from_mins(1));
            sleep(Duration::from_secs(30)).await;
            healthy.status = Status::False;
            let others = pool.conditions.iter().filter(|condition| &*condition.kind != HEALTHY).cloned();
            let conditions = Some(others.chain([healthy]).collect());
            let patch = PoolStatusPatch { conditions, ..PoolStatusPatch::default() };
            rehearsal.world.cluster.store().patch_pool_status(&pool.name, &patch).expect("the NodePool is there");
            sleep(Duration::from_mins(2)).await;
            assert!(joiner.house().operations.may_write(), "the lease is its own again");
            assert_eq!(health().1.status, Status::False, "what the other has found stands");
            joiner.kill();
        })
        .await;
    });
}

/// Requests for the lease take their time.
#[derive(Debug)]
struct SlowLease(Duration);

impl Gate for SlowLease {
    fn judge(&mut self, _: &'static str, resource: &'static str) -> Verdict {
        if resource == "leases" { Verdict::Delay(self.0) } else { Verdict::Pass }
    }
}

/// A renewal that is late stops writes until its answer is there, and nothing for good: nobody ends, and what was heard meanwhile is not lost.
#[test]
fn a_lease_that_is_renewed_late_loses_nothing() {
    for seconds in [1.5, 2.9, 3.6, 4.5] {
        let story = format!("renewals take two requests of {seconds} s");
        comes_out_well(PODS, 3, &story, async |rehearsal, clock| {
            rehearsal.world.cluster.set_gate(Box::new(SlowLease(Duration::from_secs_f64(seconds))));
            let joiner = candidate(rehearsal, clock, "slow");
            settled(rehearsal).await;
            joiner
        });
    }
}

/// Some requests for the lease are not answered before their client has given them up.
#[derive(Debug)]
struct SilentLease(Arc<AtomicUsize>);

impl Gate for SilentLease {
    fn judge(&mut self, _: &'static str, resource: &'static str) -> Verdict {
        let is_left = |left: usize| left.checked_sub(1);
        let is_silent = resource == "leases" && self.0.fetch_update(Relaxed, Relaxed, is_left).is_ok();
        if is_silent { Verdict::Delay(Duration::from_secs(30)) } else { Verdict::Pass }
    }
}

/// A renewal without an answer is followed by another one before trust in the lease has ended; only with three lost in a row do writes stop for a while.
#[test]
fn a_renewal_that_is_lost_does_not_cost_the_lease() {
    for (lost, costs) in [(1, false), (2, false), (3, true)] {
        let story = format!("{lost} renewals are not answered");
        comes_out_well(PODS, 3, &story, async |rehearsal, clock| {
            let joiner = leader(rehearsal, clock).await;
            let silent = Arc::new(AtomicUsize::new(lost));
            rehearsal.world.cluster.set_gate(Box::new(SilentLease(Arc::clone(&silent))));
            let (began, mut may_always) = (Instant::now(), true);
            while began.elapsed() < Duration::from_mins(1) {
                sleep(Duration::from_millis(50)).await;
                may_always &= joiner.house().operations.may_write();
            }
            assert_eq!((silent.load(Relaxed), may_always), (0, !costs), "{story}");
            assert!(joiner.house().operations.may_write(), "{story}: and all is well again");
            joiner
        });
    }
}

/// The record waits for no answer that does not come: the renewal after that carries it.
#[test]
fn a_renewal_that_is_lost_does_not_hold_up_the_record() {
    let story = "a renewal that carries the record is not answered";
    comes_out_well(PODS, 3, story, async |rehearsal, clock| {
        let joiner = leader(rehearsal, clock).await;
        let silent = Arc::new(AtomicUsize::new(1));
        rehearsal.world.cluster.set_gate(Box::new(SilentLease(Arc::clone(&silent))));
        joiner.boards().record.send_replace(Some("1970-01-01T00:00:00Z takes it down: it is nobody's\n".into()));
        sleep(Duration::from_secs(10)).await;
        let written =
            joiner.boards().lease.borrow().as_ref().and_then(|lease| lease.record.clone()).unwrap_or_default();
        assert!(silent.load(Relaxed) == 0 && written.contains("it is nobody's"), "{story}: {written}");
        joiner
    });
}

/// A plan of thousands of pods takes seconds: for those that go meanwhile nothing is bought.
#[test]
fn nothing_is_bought_for_pods_that_go_while_the_plan_is_made() {
    let (mut before, mut then) = (false, false);
    for after in 18..32 {
        let story = format!("the provisioner stands still after {after} messages, and all pods go");
        let scenario = burst(PODS);
        in_virtual_time(async {
            let rehearsal = rehearsal(&scenario, 3, settings());
            play(&rehearsal, &scenario, async {
                let joiner = rehearsal.joiner();
                joiner.house().saboteur.stall(Kind::Provisioner, after, Duration::from_mins(1));
                while !joiner.house().saboteur.is_done() {
                    sleep(Duration::from_millis(1)).await;
                }
                for deployment in mixed(PODS) {
                    let name = deployment["metadata"]["name"].as_str().expect("it has a name").into();
                    let key = ObjectKey { namespace: "default".into(), name };
                    let act = Act::Scale { kind: "Deployment".to_owned(), key, replicas: 0 };
                    rehearsal.world.perform(&act).expect("the Deployment is there");
                }
                sleep(Duration::from_secs(30)).await;
                let bought = |now: &Snapshot| now.claims.keys().cloned().collect::<Vec<_>>();
                let now = truth(&rehearsal);
                assert!(now.pods.is_empty(), "{story}");
                before |= now.claims.is_empty();
                then |= !now.claims.is_empty();
                sleep(Duration::from_mins(10)).await;
                assert_eq!(bought(&truth(&rehearsal)), bought(&now), "{story}");
                joiner.kill();
            })
            .await;
        });
    }
    assert!(before && then, "the plan is carried out somewhere in between");
}

/// What is granted and not kept is not written again at once, says what takes it back, and is there soon after the policy is gone.
#[test]
fn a_policy_that_strips_nodeclaims_is_told_and_not_fought() {
    for (key, waits_in) in [(labels::ZONE, "Launching"), (labels::TERMINATION_FINALIZER, "Pending")] {
        let story = format!("a policy strips {key}");
        comes_out_well(PODS, 3, &story, async |rehearsal, _| {
            rehearsal.world.cluster.store().strip(&[key]);
            let joiner = rehearsal.joiner();
            first_claim(rehearsal).await;
            let patches = || patches(rehearsal, "nodeclaims");
            sleep(Duration::from_mins(4)).await;
            let before = patches();
            sleep(Duration::from_mins(10)).await;
            let claims = u64::try_from(truth(rehearsal).claims.len()).expect("a few");
            let written = patches() - before;
            // Each is given up after five minutes, before which it tries ten times.
            assert!((claims..=30 * claims).contains(&written), "{story}: {written} writes to {claims} NodeClaims");
            let views = joiner.house().observations.read(Duration::from_secs(1), |one| one.kind == Kind::Claim).await;
            for view in views.into_iter().filter_map(|one| one.view) {
                let why = view.waits_for.unwrap_or_default();
                assert!(why.contains(key) && why.contains("exempt NodeClaims"), "{story}: {} {why}", view.state);
                assert_eq!(view.state, waits_in, "{story}");
            }
            rehearsal.world.cluster.store().strip(&[]);
            settled(rehearsal).await;
            joiner
        });
    }
}

/// A Node that cannot be closed is not drained politely, and says why; when the time of its pods is up they go all the same.
#[test]
fn a_policy_that_strips_nodes_holds_up_no_deadline() {
    for deadline in [None, Some(Duration::from_mins(6))] {
        let story = format!("a policy strips the taint of a node with the deadline {deadline:?}");
        comes_out_well(PODS, 3, &story, async |rehearsal, clock| {
            let joiner = rehearsal.joiner();
            settled(rehearsal).await;
            rehearsal.world.cluster.store().strip(&[labels::DISRUPTED_TAINT]);
            let claim = truth(rehearsal).claims.values().next().cloned().expect("there are some");
            if let Some(deadline) = deadline {
                let at = (clock.now() + deadline).to_string();
                let annotations = [(labels::TERMINATION_TIMESTAMP.into(), at.into())].into();
                let patch = ClaimPatch { annotations, ..ClaimPatch::default() };
                rehearsal.world.cluster.store().patch_claim(&claim.name, &patch).expect("it is there");
            }
            rehearsal.world.cluster.store().delete_claim(&claim.name).expect("it is there");
            sleep(Duration::from_mins(4)).await;
            let views = joiner.house().observations.read(Duration::from_secs(1), |one| one.name == claim.name.as_str());
            let waits = views.await.into_iter().find_map(|one| one.view?.waits_for).unwrap_or_default();
            let told = format!("does not keep taint {}: exempt Nodes", labels::DISRUPTED_TAINT);
            assert!(waits.contains(&told), "{story}: {waits}");
            let before = patches(rehearsal, "nodes");
            sleep(Duration::from_mins(10)).await;
            let written = patches(rehearsal, "nodes") - before;
            assert!(written <= 40, "{story}: {written} writes in ten minutes");
            assert_eq!(truth(rehearsal).claims.contains_key(&claim.name), deadline.is_none(), "{story}");
            rehearsal.world.cluster.store().strip(&[]);
            settled(rehearsal).await;
            joiner
        });
    }
}

/// The Node of a machine of nobody that cannot be closed is told once with what takes the taint back, is not fought, and keeps no machine.
#[test]
fn a_policy_that_strips_nodes_keeps_no_orphan() {
    let story = "a policy strips the taint of an orphan's Node";
    comes_out_well(200, 5, story, async |rehearsal, clock| {
        let joiner = leader(rehearsal, clock).await;
        rehearsal.world.cluster.store().strip(&[labels::DISRUPTED_TAINT]);
        let orphans = orphan_some(rehearsal, 1);
        let before = patches(rehearsal, "nodes");
        sleep(Duration::from_mins(25)).await;
        let left = machines(rehearsal).iter().filter(|one| orphans.contains(&one.machine.id)).count();
        let view = auditor(&joiner).await;
        assert_eq!(left, 0, "{story}: {view:?}");
        let kept =
            |(what, why): &&(String, String)| what.starts_with("done at") && why.contains("was not changed as asked");
        let told: Vec<_> = view.details.iter().filter(kept).collect();
        let wanted = format!("does not keep taint {}: exempt Nodes", labels::DISRUPTED_TAINT);
        assert!(told.len() == 1 && told[0].1.contains(&wanted), "{story}: {view:?}");
        let noted = view.timeline.iter().filter(|(_, what)| what.contains("was not changed as asked")).count();
        assert_eq!(noted, 1, "{story}: {view:?}");
        let written = patches(rehearsal, "nodes") - before;
        // Ten minutes have thirty looks, and sixty times at which pods are asked to leave.
        assert!(written < 45, "{story}: {written} writes");
        rehearsal.world.cluster.store().strip(&[]);
        settled(rehearsal).await;
        joiner
    });
}

/// An API server that takes one kind of request no more until then, as an admission webhook would refuse it.
#[derive(Debug)]
struct Fixed(&'static str, &'static str, Instant);

impl Gate for Fixed {
    fn judge(&mut self, verb: &'static str, resource: &'static str) -> Verdict {
        if (verb, resource) != (self.0, self.1) || self.2 <= Instant::now() {
            return Verdict::Pass;
        }
        let message = format!("{resource} are fixed");
        Verdict::Refuse(cluster::Error::Invalid { object: resource.to_owned(), message })
    }
}

/// The Node of a machine of nobody that a webhook keeps from being closed is told once with what the webhook says, and keeps no machine for ever.
#[test]
fn a_webhook_that_refuses_changes_of_nodes_keeps_no_orphan() {
    let story = "a webhook refuses to close an orphan's Node";
    comes_out_well(200, 5, story, async |rehearsal, clock| {
        let joiner = leader(rehearsal, clock).await;
        let fixed = Fixed("patch", "nodes", Instant::now() + Duration::from_mins(40));
        rehearsal.world.cluster.set_gate(Box::new(fixed));
        let orphans = orphan_some(rehearsal, 1);
        let left = || machines(rehearsal).iter().filter(|one| orphans.contains(&one.machine.id)).count();
        sleep(Duration::from_mins(20)).await;
        assert_eq!(left(), 1, "{story}: its pods have their time: {:?}", auditor(&joiner).await);
        sleep(Duration::from_mins(20)).await;
        let view = auditor(&joiner).await;
        assert_eq!(left(), 0, "{story}: {view:?}");
        let of = |what: &'static str| view.timeline.iter().filter(move |(_, noted)| noted.contains(what)).count();
        assert_eq!((of("moves the pods of"), of("was not changed as asked")), (1, 1), "{story}: {view:?}");
        let told = |(what, why): &(String, String)| what.starts_with("done at") && why.contains("nodes are fixed");
        assert_eq!(view.details.iter().filter(|one| told(one)).count(), 1, "{story}: {view:?}");
        settled(rehearsal).await;
        joiner
    });
}

/// What is to take five minutes, or ten, takes as long when a clock that was five hours behind is set right meanwhile.
#[test]
fn a_clock_that_is_set_right_hurries_no_orphan() {
    let story = "a clock is set right while an orphan is looked at, and again while its pods leave";
    comes_out_well(200, 5, story, async |rehearsal, clock| {
        let behind = -5 * 60 * 60 * 1000;
        let wrong_by: &'static AtomicI64 = Box::leak(Box::default());
        let joiner = leader(rehearsal, clock.that_jumps(wrong_by)).await;
        let hour = Duration::from_hours(1);
        rehearsal.world.cluster.set_gate(Box::new(Fixed("create", "pods/eviction", Instant::now() + hour)));
        wrong_by.store(behind, Relaxed);
        let (orphans, began) = (orphan_some(rehearsal, 1), Instant::now());
        let leaves = async || auditor(&joiner).await.details.iter().any(|(what, _)| what.starts_with("pods leave"));
        sleep(Duration::from_mins(3)).await;
        wrong_by.store(0, Relaxed);
        while !leaves().await {
            assert!(began.elapsed() < Duration::from_mins(8), "{story}: it is drained");
            sleep(Duration::from_secs(1)).await;
        }
        assert!(began.elapsed() >= Duration::from_mins(5), "{story}: evidence of {:?}", began.elapsed());
        wrong_by.store(behind, Relaxed);
        sleep(Duration::from_mins(2)).await;
        wrong_by.store(0, Relaxed);
        let set_right = Instant::now();
        while machines(rehearsal).iter().any(|one| orphans.contains(&one.machine.id)) {
            assert!(set_right.elapsed() < Duration::from_mins(15), "{story}: its time is over some day");
            sleep(Duration::from_secs(1)).await;
        }
        assert!(set_right.elapsed() >= Duration::from_mins(10), "{story}: pods had {:?}", set_right.elapsed());
        settled(rehearsal).await;
        joiner
    });
}

/// A machine that was ordered down is ordered down again at each look until the cloud confirms that it is gone. That this fails is said once.
#[test]
fn an_order_that_fails_again_and_again_is_told_once() {
    let story = "the cloud refuses to be told again";
    comes_out_well(200, 5, story, async |rehearsal, clock| {
        let joiner = leader(rehearsal, clock).await;
        orphan_some(rehearsal, 1);
        let noted =
            async |what: &str| auditor(&joiner).await.timeline.iter().filter(|(_, it)| it.ends_with(what)).count();
        let began = Instant::now();
        while noted("is going").await == 0 {
            assert!(began.elapsed() < Duration::from_mins(30), "{story}: it is ordered down");
            sleep(Duration::from_secs(1)).await;
        }
        rehearsal.world.cloud.refuse(Call::Delete, Refusal::Error, "not now", 4);
        sleep(Duration::from_secs(70)).await;
        assert_eq!((noted("was not taken down").await, noted("is gone").await), (1, 0), "{story}");
        sleep(Duration::from_mins(1)).await;
        assert_eq!((noted("was not taken down").await, noted("is gone").await), (1, 1), "{story}");
        settled(rehearsal).await;
        joiner
    });
}

/// A joiner that buys from a shop.
fn customer(rehearsal: &Rehearsal, clock: Clock, shop: &Arc<Shop>) -> Joiner {
    Joiner::start(Parts {
        cluster: Arc::new(rehearsal.world.cluster.clone()),
        cloud: Arc::clone(shop) as _,
        settings: Settings { catalog_refresh: Duration::from_mins(10), ..settings() },
        clock,
    })
}

/// The list that is on its way is of the NodeClass as it was.
#[test]
fn a_nodeclass_that_is_edited_while_its_list_is_fetched_has_it_fetched_again() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, 3, settings());
        let shop = Arc::new(Shop::new(rehearsal.world.cloud.clone()));
        *shop.takes.lock().unwrap() = Duration::from_secs(20);
        play(&rehearsal, &scenario, async {
            let joiner = customer(&rehearsal, clock, &shop);
            while shop.asked.lock().unwrap().is_empty() {
                sleep(Duration::from_secs(1)).await;
            }
            let class = truth(&rehearsal).classes.values().next().cloned().expect("there is a NodeClass");
            let mut body = class.body.downcast_ref::<KwokNodeClass>().expect("it is KWOK's").clone();
            body.spec.spec.node_registration_delay = Some("7s".to_owned());
            let edited = NodeClass { body: Arc::new(body), ..NodeClass::clone(&class) };
            rehearsal.world.cluster.store().apply_class(edited);
            sleep(Duration::from_mins(5)).await;
            assert_eq!(*shop.asked.lock().unwrap(), [1, 2], "once for each state of it");
            joiner.kill();
        })
        .await;
    });
}

/// A look is not begun anew as long as one is under way: it would never end.
#[test]
fn a_listing_that_takes_longer_than_looks_are_apart_is_waited_for() {
    let scenario = burst(200);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, 5, settings());
        let shop = Arc::new(Shop::new(rehearsal.world.cloud.clone()));
        *shop.lists_in.lock().expect("no test has panicked") = Duration::from_secs(90);
        play(&rehearsal, &scenario, async {
            let joiner = customer(&rehearsal, clock, &shop);
            settled(&rehearsal).await;
            let orphans = orphan_some(&rehearsal, 1);
            sleep(Duration::from_mins(45)).await;
            let left = machines(&rehearsal).iter().filter(|one| orphans.contains(&one.machine.id)).count();
            assert_eq!(left, 0, "{}", auditor(&joiner).await.state);
            joiner.kill();
        })
        .await;
    });
}

/// Of a list for which something could not be read, nobody knows what is missing; of a whole one, what is missing is no longer sold.
#[test]
fn what_is_missing_from_a_list_that_is_not_whole_makes_nothing_drift() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, 3, settings());
        let shop = Arc::new(Shop::new(rehearsal.world.cloud.clone()));
        play(&rehearsal, &scenario, async {
            let joiner = customer(&rehearsal, clock, &shop);
            settled(&rehearsal).await;
            // A NodeClaim is compared with the list when it is an hour old.
            sleep(Duration::from_hours(1)).await;
            let drifted = || truth(&rehearsal).claims.values().filter(|claim| claim.is("Drifted")).count();
            let kind_of = |claim: &Arc<Claim>| claim.labels[labels::INSTANCE_TYPE].to_string();
            let kinds: BTreeSet<String> = truth(&rehearsal).claims.values().map(kind_of).collect();
            let others = catalog::generated().into_iter().filter(|kind| !kinds.contains(kind.name.as_str()));
            let others: shop::Types = Arc::new(others.map(Arc::new).collect());
            *shop.list.lock().unwrap() = (Some(Arc::clone(&others)), Some(Duration::from_mins(1)));
            sleep(Duration::from_mins(30)).await;
            assert_eq!(drifted(), 0, "the list may lack what is sold");
            *shop.list.lock().unwrap() = (Some(others), None);
            sleep(Duration::from_mins(12)).await;
            assert_eq!(drifted(), truth(&rehearsal).claims.len(), "the same list, and it is whole");
            *shop.list.lock().unwrap() = (None, None);
            sleep(Duration::from_mins(12)).await;
            assert_eq!(drifted(), 0, "they are sold again");
            joiner.kill();
        })
        .await;
    });
}

/// Ends joiner so long after somebody has approved a part of what its auditor asks about, and begins another.
fn approve(after: Duration) {
    let story = format!("joiner killed {after:?} after the approval");
    comes_out_well(200, 5, &story, async |rehearsal, clock| {
        let first = leader(rehearsal, clock).await;
        let before: Vec<ProviderId> = machines(rehearsal).iter().map(|one| one.machine.id.clone()).collect();
        let orphans = orphan_some(rehearsal, before.len() - 2);
        let asked = Instant::now();
        while !auditor(&first).await.state.starts_with("breaker open") {
            assert!(asked.elapsed() < Duration::from_mins(2), "{story}: so many are asked about");
            sleep(Duration::from_secs(5)).await;
        }
        let (approved, left_out) = orphans.split_at(orphans.len() - 1);
        let word = |ids: &[ProviderId]| {
            let ids = ids.iter().map(|id| consent::id(&Finding::OrphanMachine(id.clone())));
            format!("approve {}", ids.collect::<Vec<_>>().join(","))
        };
        let ends = rehearsal.world.cloud.changes();
        rehearsal.world.cluster.store().annotate_lease(Some(&word(approved)));
        sleep(after).await;
        first.kill();
        let second = candidate(rehearsal, clock, "two");
        sleep(Duration::from_mins(45)).await;
        // Each went once, and nothing went with them.
        let mut gone = ends_of(ends);
        gone.sort();
        assert_eq!(gone, approved, "{story}: exactly what was approved has gone");
        let view = auditor(&second).await;
        assert!(view.state.contains("nothing was decided about 1"), "{story}: {}", view.state);
        for id in approved {
            let told = |(what, why): &(String, String)| {
                what.starts_with("done at") && why.starts_with(&format!("takes orphaned machine {id} down: "))
            };
            assert!(view.details.iter().any(told), "{story}: why {id} went is told by whoever acts now");
        }
        rehearsal.world.cluster.store().annotate_lease(Some(&word(left_out)));
        sleep(Duration::from_mins(30)).await;
        settled(rehearsal).await;
        second
    });
}

/// The joiner that leads once a burst has settled.
async fn leader(rehearsal: &Rehearsal, clock: Clock) -> Joiner {
    let joiner = candidate(rehearsal, clock, "one");
    settled(rehearsal).await;
    joiner
}

/// Another joiner has the lease of the first from now on, for so long.
fn give_lease_away(rehearsal: &Rehearsal, lasting: Duration) {
    rehearsal.world.cluster.store().release_lease("one");
    rehearsal.world.cluster.store().renew_lease("another", lasting);
}

/// Another joiner has had the lease for so long.
async fn lose_lease(rehearsal: &Rehearsal, lasting: Duration) {
    give_lease_away(rehearsal, lasting);
    sleep(lasting).await;
}

/// What was found before another joiner had the lease is nothing to act upon after it, nor is the time over that pods had to leave.
#[test]
fn an_auditor_that_has_lost_the_lease_begins_anew() {
    let story = "the lease is another's for a while";
    comes_out_well(200, 5, story, async |rehearsal, clock| {
        let joiner = leader(rehearsal, clock).await;
        orphan_some(rehearsal, 1);
        let leaves = |view: View| view.details.iter().any(|(what, _)| what.starts_with("pods leave"));
        let began = Instant::now();
        while !leaves(auditor(&joiner).await) {
            assert!(began.elapsed() < Duration::from_mins(12), "{story}: it is drained");
            sleep(Duration::from_secs(1)).await;
        }
        let ends = rehearsal.world.cloud.changes();
        lose_lease(rehearsal, Duration::from_mins(15)).await;
        let view = auditor(&joiner).await;
        assert_eq!(view.state, "nothing found", "{story}");
        assert!(!leaves(view), "{story}");
        sleep(Duration::from_mins(5)).await;
        assert_eq!(ends_of(ends), [], "{story}: there is no evidence yet");
        sleep(Duration::from_mins(20)).await;
        settled(rehearsal).await;
        joiner
    });
}

/// Whoever does not lead any more asks nobody anything: that is for the one who does.
#[test]
fn the_breaker_of_an_auditor_that_has_lost_the_lease_is_not_open() {
    let asks = |view: &View| {
        let named = view.details.iter().any(|(what, _)| what == "what to do");
        (view.state.starts_with("breaker open"), named)
    };
    let scenario = burst(200);
    in_virtual_time(async {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        let rehearsal = rehearsal(&scenario, 5, settings());
        let joiner = play(&rehearsal, &scenario, async {
            let joiner = leader(&rehearsal, clock).await;
            orphan_some(&rehearsal, machines(&rehearsal).len() - 2);
            sleep(Duration::from_mins(3)).await;
            assert_eq!(asks(&auditor(&joiner).await), (true, true));
            lose_lease(&rehearsal, Duration::from_mins(3)).await;
            assert_eq!(asks(&auditor(&joiner).await), (false, false));
            assert_eq!(*joiner.boards().alarm.borrow(), Alarm::Unknown);
            joiner
        })
        .await;
        joiner.kill();
    });
}

/// Takes so many NodeClaims away from their machines, as users do who take finalizers off; says which machines these are. Their pods get other machines at
/// once, so that it takes most of them to be more than a fifth of all in the end.
fn orphan_some(rehearsal: &Rehearsal, number: usize) -> Vec<ProviderId> {
    let mut orphans = Vec::new();
    for claim in truth(rehearsal).claims.values().take(number) {
        let mut store = rehearsal.world.cluster.store();
        let version = Some(Arc::clone(&claim.version));
        let bare = ClaimPatch { version, finalizers: Some(Vec::new()), ..ClaimPatch::default() };
        store.patch_claim(&claim.name, &bare).expect("it is there");
        store.delete_claim(&claim.name).expect("it is there");
        orphans.extend(claim.provider_id.clone());
    }
    orphans.sort();
    orphans
}

/// The auditor's page.
async fn auditor(joiner: &Joiner) -> View {
    let observations = joiner.house().observations.clone();
    let found = observations.read(Duration::from_secs(1), |one| one.kind == Kind::Auditor).await;
    found.into_iter().find_map(|one| one.view).expect("it answers")
}

/// The machines that have been ordered down since these changes were asked for.
fn ends_of(mut changes: impl Stream<Item = Change> + Unpin) -> Vec<ProviderId> {
    let mut ends = Vec::new();
    while let Some(Some(change)) = changes.next().now_or_never() {
        if let Change::Going(id, _) = change {
            ends.push(id);
        }
    }
    ends
}

/// Between a person's approval and the end of what was approved: before the auditor has heard it, while there is not evidence enough, while pods leave,
/// when a machine was just ordered down, and when all is over.
#[test]
fn what_was_approved_goes_once_and_nothing_else_though_joiner_is_killed() {
    for seconds in [0, 3, 200, 310, 330, 500, 915, 925, 1_500] {
        approve(Duration::from_secs(seconds));
    }
}

/// A deletion that is decided while the API server wants to be left alone is decided anew before it is sent: a clock that was wrong meanwhile deletes nothing.
#[test]
fn a_deletion_that_has_to_wait_is_decided_again() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let wrong_by: &'static AtomicI64 = Box::leak(Box::default());
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH).that_jumps(wrong_by);
        let rehearsal = rehearsal(&scenario, 3, settings());
        let joiner = play(&rehearsal, &scenario, async {
            let joiner = leader(&rehearsal, clock).await;
            let busy = cluster::Error::TooManyRequests {
                retry_after: Some(Duration::from_secs(50)),
                message: "busy".to_owned(),
            };
            joiner.house().operations.start(Permits::ReadCluster, || true, async { Err::<(), _>(busy) }, drop);
            sleep(Duration::from_secs(1)).await;
            let years: Duration = Duration::from_hours(10 * 365 * 24);
            wrong_by.store(i64::try_from(years.as_millis()).expect("it is a number"), Relaxed);
            let names = || truth(&rehearsal).claims.keys().cloned().collect::<Vec<_>>();
            let before = names();
            for name in &before {
                let annotations = [("example.com/seen".into(), "today".into())].into();
                let touch = ClaimPatch { annotations, ..ClaimPatch::default() };
                rehearsal.world.cluster.store().patch_claim(name, &touch).expect("it is there");
            }
            sleep(Duration::from_secs(10)).await;
            wrong_by.store(0, Relaxed);
            sleep(Duration::from_mins(2)).await;
            assert_eq!(names(), before);
            joiner
        })
        .await;
        assert_intact(&rehearsal, PODS, "left alone");
        joiner.kill();
    });
}

/// An API server that takes no NodeClaims for a while, as an admission policy would, and the seconds at which it was asked to.
#[derive(Debug)]
struct Strict {
    began: Instant,
    lasting: Duration,
    asked: Arc<Mutex<BTreeSet<u64>>>,
}

impl Gate for Strict {
    fn judge(&mut self, verb: &'static str, resource: &'static str) -> Verdict {
        let since = self.began.elapsed();
        if (verb, resource) != ("create", "nodeclaims") || since > self.lasting {
            return Verdict::Pass;
        }
        self.asked.lock().expect("nobody panics").insert(since.as_secs());
        Verdict::Refuse(cluster::Error::Invalid { object: "NodeClaim".to_owned(), message: "not here".to_owned() })
    }
}

/// NodeClaims that the API server refuses are not asked for every second without end, and everything goes on when it takes them.
#[test]
fn nodeclaims_that_are_refused_are_asked_for_less_and_less_often() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 5, settings());
        let asked = Arc::<Mutex<BTreeSet<u64>>>::default();
        let lasting = Duration::from_mins(10);
        let gate = Strict { began: Instant::now(), lasting, asked: Arc::clone(&asked) };
        rehearsal.world.cluster.set_gate(Box::new(gate));
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            sleep(lasting).await;
            let plans = asked.lock().expect("nobody panics").len();
            assert!((40..80).contains(&plans), "one every ten seconds at most, but for the first: {plans}");
            settled(&rehearsal).await;
        })
        .await;
        assert_intact(&rehearsal, PODS, "refused for a while");
        joiner.kill();
    });
}

/// A NodeClaim that vanishes while nobody watches leaves no actor behind: the lists that are read anew do not have it.
#[test]
fn a_nodeclaim_that_vanishes_while_nobody_watches_leaves_no_actor() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            settled(&rehearsal).await;
            let name = truth(&rehearsal).claims.keys().next().cloned().expect("there are NodeClaims");
            joiner.house().saboteur.strike(Kind::State, 0, 1);
            delete(&rehearsal, "NodeClaim", name.as_str());
            let version = Some(truth(&rehearsal).claims[&name].version.clone());
            let stripped = ClaimPatch { version, finalizers: Some(Vec::new()), ..ClaimPatch::default() };
            rehearsal.world.cluster.store().patch_claim(&name, &stripped).expect("it is there");
            sleep(Duration::from_mins(1)).await;
            assert!(!truth(&rehearsal).claims.contains_key(&name), "it is gone");
            let actors = joiner.house().observations.outline();
            assert!(joiner.house().saboteur.is_done() && actors.iter().all(|actor| actor.name != name.as_str()));
        })
        .await;
        joiner.kill();
    });
}

/// NodeClaims that cannot be understood say so and are left alone; the rest goes on; once mended they are as good as any.
#[test]
fn a_nodeclaim_that_cannot_be_understood_is_quarantined_until_it_is_mended() {
    let scenario = burst(PODS);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            settled(&rehearsal).await;
            let serving = truth(&rehearsal).claims.values().next().expect("there are NodeClaims").as_ref().clone();
            let of_hand = Claim {
                name: "of-hand".into(),
                provider_id: None,
                node: None,
                conditions: Vec::new(),
                finalizers: Vec::new(),
                labels: serving.labels.iter().filter(|(k, _)| &***k == labels::NODEPOOL).map(clone_pair).collect(),
                ..serving.clone()
            };
            let problem = "spec.expireAfter: \"1d\" is no duration; write 24h";
            let broken = Some(Broken { problem: problem.into(), conditions: false });
            let names = [serving.name.clone(), of_hand.name.clone()];
            let machines_before = machines(&rehearsal).len();
            for claim in [&serving, &of_hand] {
                let claim = Claim { broken: broken.clone(), ..claim.clone() };
                rehearsal.world.cluster.store().apply_claim(claim);
            }
            // Longer than every deadline of a NodeClaim.
            sleep(Duration::from_mins(30)).await;
            let now = truth(&rehearsal);
            for name in &names {
                let claim = &now.claims[name];
                let condition = |kind| find_condition(&claim.conditions, kind).expect("there is the condition");
                assert_eq!(condition("ValidationSucceeded").status, Status::False, "{name}");
                assert_eq!(&*condition("ValidationSucceeded").message, problem, "{name}");
                assert_eq!(condition("Ready").status, Status::False, "{name}");
                let about = Regarding::Claim(name.clone(), claim.uid.clone());
                let mut events = rehearsal.world.cluster.events();
                events.retain(|(_, event)| event.regarding == about && event.warning);
                let said: Vec<_> =
                    events.iter().map(|(_, event)| (event.reason, event.message.contains(problem))).collect();
                assert_eq!(said, [("FailedValidation", true)], "{name}");
            }
            assert_eq!(machines(&rehearsal).len(), machines_before, "no machine more, none less");
            for name in &names {
                let claim = now.claims[name].as_ref().clone();
                rehearsal.world.cluster.store().apply_claim(Claim { broken: None, ..claim });
            }
            settled(&rehearsal).await;
            assert_eq!(machines(&rehearsal).len(), machines_before + 1, "the one that was made by hand is launched");
        })
        .await;
        assert_intact(&rehearsal, PODS, "mended");
        assert_whole(&joiner, &rehearsal, "mended");
        joiner.kill();
    });
}

/// An actor that fails at every look: its NodeClaim says so, until when and what to do; the rest goes on. When it gets on, nothing of that is left.
#[test]
fn a_nodeclaim_at_which_joiner_fails_is_quarantined_and_says_so() {
    let scenario = burst(1);
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            settled(&rehearsal).await;
            let only = || truth(&rehearsal).claims.values().next().cloned().expect("there is a NodeClaim");
            // Ten failures take 51 s, and the last backoff is as long again.
            joiner.house().saboteur.strike(Kind::Claim, 0, 10);
            let (name, labels) = (only().name.clone(), [("team".into(), "a".into())].into_iter().collect());
            let edit = ClaimPatch { labels, ..ClaimPatch::default() };
            rehearsal.world.cluster.store().patch_claim(&name, &edit).expect("it is there");
            sleep(Duration::from_secs(80)).await;
            let claim = only();
            let said = find_condition(&claim.conditions, "Quarantined").expect("it says so");
            assert_eq!((said.status, &*said.reason), (Status::True, "ActorFails"));
            let text = &said.message;
            assert!(
                text.contains("10 times in a row at this NodeClaim: sabotage of claim. Its machine is left"),
                "{text}"
            );
            assert!(text.contains("until ") && text.contains("report it with joiner's log"), "{text}");
            assert!(claim.is("Ready"), "it serves all the same");
            let about = Regarding::Claim(claim.name.clone(), claim.uid.clone());
            let events = rehearsal.world.cluster.events();
            let warned = events.iter().filter(|(_, event)| event.regarding == about && event.reason == "Quarantined");
            assert_eq!(warned.count(), 1);
            let observations = &joiner.house().observations;
            let parents = observations.read(Duration::from_secs(1), |actor| actor.kind == Kind::Claims).await;
            let view = parents[0].view.as_ref().expect("the parent lives");
            assert!(view.details.iter().any(|(what, _)| what.ends_with("is quarantined")), "{view:?}");
            sleep(Duration::from_secs(30)).await;
            assert!(find_condition(&only().conditions, "Quarantined").is_some(), "nobody knows yet whether it gets on");
            sleep(Duration::from_mins(2)).await;
            assert!(find_condition(&only().conditions, "Quarantined").is_none());
        })
        .await;
        assert_intact(&rehearsal, 1, "quarantined");
        assert_whole(&joiner, &rehearsal, "quarantined");
        joiner.kill();
    });
}

fn clone_pair((key, value): (&Arc<str>, &Arc<str>)) -> (Arc<str>, Arc<str>) {
    (Arc::clone(key), Arc::clone(value))
}
