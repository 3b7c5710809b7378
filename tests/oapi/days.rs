//! Days of trouble on the wire: joiner's own actors over the stand-in for Outscale's API, with the fault simulator's faults of the cloud on
//! the line between them. When they are over, every pod runs, every NodeClaim has one machine, and in the end nothing is left.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};

use joiner::clouds::outscale::oapi::wire::Vm;
use joiner::sim::Seed;
use joiner::sim::faults::{Fault, HostileLine, Mishap, Mishaps, Order, Plan, Profile};
use joiner::sim::invariants::Journal;

use super::stage::{Scene, scene, script};

/// What goes wrong, and how often a day on average.
const FAULTS: Profile = Profile::These(Cow::Borrowed(&[
    (Fault::SoldOut, 24.0),
    (Fault::Quota, 8.0),
    (Fault::CloudThrottled, 60.0),
    (Fault::CloudError, 180.0),
    (Fault::CloudLost, 120.0),
    (Fault::LaunchLostAfter, 180.0),
    (Fault::LaunchLostBefore, 120.0),
    (Fault::LaunchLate, 120.0),
    (Fault::MachineHidden, 60.0),
    (Fault::ListingBroken, 120.0),
    (Fault::ListingShrunken, 12.0),
    (Fault::DeleteSlow, 120.0),
    (Fault::DeleteForgotten, 120.0),
    (Fault::MachineDies, 60.0),
    (Fault::JoinerKilledMidCall, 60.0),
]));

/// When faults stop.
const CALM: Duration = Duration::from_hours(3);
/// When what is left of them has settled: the auditor takes its time before it takes a machine down.
const SETTLED: Duration = Duration::from_hours(5);
/// When everything is deleted.
const EMPTYING: Duration = Duration::from_mins(310);
/// When nothing may be left.
const END: Duration = Duration::from_hours(8);
/// How many pods want a place of their own, and from which minute on.
const DEMAND: [(u64, u64); 4] = [(0, 10), (30, 40), (80, 10), (120, 60)];

/// Plays one day. Returns how often which fault struck.
async fn day(seed: u64) -> BTreeMap<&'static str, u64> {
    let scene = scene(seed);
    let start = Instant::now();
    let busy: Vec<Duration> = DEMAND.iter().map(|(minute, _)| Duration::from_mins(*minute)).collect();
    let plan = Plan::draw(Seed(seed), &FAULTS, &busy, CALM);
    let (mishaps, mut orders) = Mishaps::new(&plan, CALM, Journal::default());
    let line = HostileLine::new(scene.fake.clone(), mishaps.clone());
    let (lives, deaths) = (RefCell::new(0), Cell::new(0));
    let begin = || {
        *lives.borrow_mut() += 1;
        scene.joiner_over(Arc::new(line.clone()), *lives.borrow())
    };
    let joiner = RefCell::new(Some(begin()));
    let crew = async {
        while let Some(order) = orders.next().await {
            let Order::Kill(pause) = order else { continue };
            joiner.borrow_mut().take().unwrap().kill();
            sleep(pause.max(Duration::from_millis(200))).await;
            *joiner.borrow_mut() = Some(begin());
        }
        std::future::pending::<()>().await;
    };
    let watch = async {
        sleep_until(start + SETTLED).await;
        settled(&scene, seed);
        sleep_until(start + END).await;
    };
    let steps = DEMAND
        .map(|(minute, pods)| format!("  - {{at: {minute}m, scale: {{deployment: default/web, replicas: {pods}}}}}\n"));
    let last = EMPTYING.as_secs();
    let rest = format!(
        "timeline:\n{}  - {{at: {last}s, delete: {{kind: Deployment, name: web}}}}\n  - {{at: {last}s, delete: {{kind: NodePool, name: general}}}}\nuntil: 9h",
        steps.concat()
    );
    let script = script("{names: [tinav6.c1r2p2, tinav6.c2r4p2]}", 20, "600m", &rest);
    tokio::select! {
        biased;
        () = watch => {}
        () = crew => {}
        () = death(&scene, &plan, start, &deaths) => {}
        () = scene.play(&script) => {}
    }
    joiner.borrow_mut().take().unwrap().kill();
    assert_eq!(scene.alive(), [], "seed {seed}");
    let store = scene.world.cluster.store();
    assert_eq!((store.claims().count(), store.nodes().count()), (0, 0), "seed {seed}");
    let mut struck = mishaps.counts();
    if deaths.get() > 0 {
        struck.insert(Fault::MachineDies.as_str(), deaths.get());
    }
    struck
}

/// Every pod runs, and every NodeClaim has its one machine.
fn settled(scene: &Scene, seed: u64) {
    let store = scene.world.cluster.store();
    let waiting: Vec<_> = store.pods().filter(|record| record.pod.node.is_none()).collect();
    assert!(waiting.is_empty(), "seed {seed}: {} pods have no node", waiting.len());
    let alive = scene.alive();
    for claim in store.claims() {
        let own = |vm: &&Vm| vm.client_token.as_ref().is_some_and(|token| token.starts_with(claim.uid.as_str()));
        let said: Vec<_> = claim
            .conditions
            .iter()
            .map(|one| format!("{}={:?} {} {}", one.kind, one.status, one.reason, one.message))
            .collect();
        let all: Vec<_> = scene.fake.vms().into_iter().filter(|vm| own(&vm)).map(|vm| (vm.vm_id, vm.state)).collect();
        assert_eq!(
            alive.iter().filter(own).count(),
            1,
            "seed {seed}: NodeClaim {} has the machines {all:?}; provider ID {:?}, Node {:?} ({}), created {}, being deleted since {:?}: {said:#?}",
            claim.name,
            claim.provider_id,
            claim.node,
            claim.node.as_ref().is_some_and(|node| store.nodes().any(|there| there.name == *node)),
            claim.created,
            claim.deleting,
        );
    }
    drop(store);
    assert!(scene.check_pairs() > 0, "seed {seed}");
}

/// Machines die by themselves; they are counted.
async fn death(scene: &Scene, plan: &Plan, start: Instant, deaths: &Cell<u64>) {
    for Mishap { at, pick, .. } in plan.0.iter().filter(|mishap| mishap.fault == Fault::MachineDies) {
        sleep_until(start + *at).await;
        let alive = scene.alive();
        if let Some(one) = pick.checked_rem(alive.len() as u64).and_then(|one| usize::try_from(one).ok()) {
            deaths.set(deaths.get() + u64::from(scene.fake.shut_down(&alive[one].vm_id)));
        }
    }
    std::future::pending::<()>().await;
}

#[tokio::test(start_paused = true)]
async fn days_of_trouble_on_the_wire_end_with_one_machine_a_nodeclaim_and_then_none() {
    let mut struck = BTreeMap::new();
    for seed in 1..=3 {
        for (fault, times) in day(seed).await {
            *struck.entry(fault).or_insert(0) += times;
        }
    }
    let Profile::These(meant) = FAULTS else { unreachable!("it lists them") };
    let missed: Vec<&str> =
        meant.iter().map(|(fault, _)| fault.as_str()).filter(|fault| !struck.contains_key(fault)).collect();
    assert_eq!(missed, [""; 0], "{struck:?}");
    assert!(struck.values().sum::<u64>() > 50, "{struck:?}");
}
