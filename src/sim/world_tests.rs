//! Worlds as a whole, with a hand that does what joiner's actors would do.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep};

use super::{World, WorldConfig};
use crate::clouds::Cloud;
use crate::clouds::catalog::generated;
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::cluster::{ClaimPatch, ClaimStatusPatch, Cluster, NodePatch};
use crate::core::facts::{Condition, DaemonSet, Effect, OwnerClaim, Status, Taint};
use crate::core::ids::{NodeName, ObjectKey};
use crate::core::labels;
use crate::manifests::Object;
use crate::manifests::{Workload, WorkloadKind};
use crate::sim::kubelet::node_name;
use crate::sim::props;
use crate::sim::scenario::{Act, End, Scenario, Step, read_scenario};

fn config(seed: u64, conduct: Conduct) -> WorldConfig {
    WorldConfig { conduct, catalogue: generated(), ..WorldConfig::usual(seed, props::clock()) }
}

/// A world in which everybody plays.
fn world(conduct: Conduct) -> World {
    let world = World::new(config(1, conduct));
    for (_, player) in world.stand_ins() {
        tokio::spawn(player);
    }
    world
}

/// Creates a NodeClaim and launches its machine, with a startup taint.
async fn launch(world: &World, name: &str, cpus: i64) -> NodeName {
    let mut draft = props::draft(name);
    draft.startup_taints.push(Taint::new("startup", Effect::NoSchedule));
    let claim = world.cluster.create_claim(&draft).await.unwrap();
    let machine = world.cloud.create(&props::launch(&claim, cpus)).await.unwrap();
    let status = ClaimStatusPatch { provider_id: Some(machine.id.clone()), ..Default::default() };
    world.cluster.patch_claim_status(&claim.name, &status).await.unwrap();
    node_name(&machine.id)
}

/// Waits for the node to be ready and does what registration and initialization do.
async fn admit(world: &World, claim: &str, node: &NodeName) {
    loop {
        sleep(Duration::from_secs(1)).await;
        let there = world.cluster.store().nodes.get(node).cloned();
        let Some(there) = there.filter(|node| node.is_ready()) else { continue };
        let claim = world.cluster.store().claims[&claim.into()].clone();
        let patch = NodePatch {
            version: Some(there.version.clone()),
            taints: Some(Vec::new()),
            owner: Some(OwnerClaim::of(&claim)),
            ..Default::default()
        };
        world.cluster.patch_node(node, &patch).await.unwrap();
        let done = Condition { kind: "Initialized".into(), ..props::ready() };
        let status = ClaimStatusPatch { conditions: Some(vec![done]), ..Default::default() };
        world.cluster.patch_claim_status(&claim.name, &status).await.unwrap();
        return;
    }
}

fn deployment(replicas: u64, cpu: i64) -> Object {
    Object::Workload(Workload {
        kind: WorkloadKind::Deployment,
        key: ObjectKey::new("default", "web"),
        replicas,
        shape: Arc::new(props::shape("web", cpu, 64)),
        runs_for: None,
        volumes: Vec::new(),
    })
}

fn phases(world: &World) -> (usize, usize) {
    let store = world.cluster.store();
    let running = store.pods.values().filter(|record| record.pod.started.is_some()).count();
    (store.pods.len(), running)
}

#[tokio::test(start_paused = true)]
async fn a_machine_becomes_a_node_and_carries_daemons_and_pods() {
    let world = world(Conduct::default());
    let daemon =
        DaemonSet { key: ObjectKey::new("kube-system", "agent"), shape: Arc::new(props::shape("agent", 50, 32)) };
    world.apply(Object::Daemon(daemon));
    world.apply(deployment(3, 500));
    let node = launch(&world, "one", 4).await;
    sleep(Duration::from_secs(15)).await;
    assert!(world.cluster.store().nodes.is_empty(), "it boots");
    sleep(Duration::from_secs(25)).await;
    {
        let there = Arc::clone(&world.cluster.store().nodes[&node]);
        let has = |key: &str| there.taints.iter().any(|taint| &*taint.key == key);
        assert!(has(labels::UNREGISTERED_TAINT) && has("startup"));
        assert_eq!(&*there.labels[labels::HOSTNAME], node.as_str());
        assert_eq!(there.provider_id, world.cluster.store().claims[&"one".into()].provider_id);
        assert_eq!(phases(&world), (3, 0), "tainted: neither daemons nor pods");
    }
    admit(&world, "one", &node).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(phases(&world), (4, 4));
    let outcome = world.ledger.close(1, &|_| Vec::new());
    assert_eq!(
        (outcome.pods_total, outcome.pods_bound, outcome.nodes_peak),
        (3, 3, 1),
        "daemons do not wait for nodes"
    );
    assert_eq!(outcome.violations, Vec::<String>::new());
    let row = &outcome.nodes[0];
    assert_eq!((&*row.name, &*row.pool, row.gone), ("one", "pool", None));
    assert!(row.ready.unwrap() > row.launched + 20.0);
    let hours = row.hours(outcome.simulated_seconds);
    assert!((outcome.price_total - hours * row.price_per_hour).abs() < 1e-9);
    let last = outcome.samples.last().unwrap();
    assert_eq!((last.pending, last.bound, last.nodes_by_type.values().sum::<u64>()), (0, 4, 1));
    assert!((last.requested_cpu - 1.55).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_vanished_machine_takes_its_node_and_its_pods_are_made_anew() {
    let world = world(Conduct::default());
    world.apply(deployment(2, 500));
    let node = launch(&world, "one", 4).await;
    admit(&world, "one", &node).await;
    sleep(Duration::from_secs(10)).await;
    let before: Vec<_> = world.cluster.store().pods.keys().cloned().collect();
    assert!(world.cloud.vanish(&world.cloud.machines()[0].machine.id.clone()));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.cluster.store().nodes[&node].conditions[0].status, Status::Unknown);
    assert_eq!(phases(&world), (2, 2), "nobody knows yet");
    sleep(Duration::from_secs(35)).await;
    let store = world.cluster.store();
    assert!(store.nodes.is_empty());
    assert!(store.pods.keys().all(|uid| !before.contains(uid)));
    assert!(store.pods.values().all(|record| record.pod.unschedulable));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_the_node_of_a_machine_that_is_gone() {
    let world = world(Conduct::default());
    let node = launch(&world, "one", 4).await;
    admit(&world, "one", &node).await;
    let version = world.cluster.store().nodes[&node].version.clone();
    let hold = |names: &[&str], version| NodePatch {
        version: Some(version),
        finalizers: Some(names.iter().map(|name| Arc::from(*name)).collect()),
        ..Default::default()
    };
    world.cluster.patch_node(&node, &hold(&[labels::TERMINATION_FINALIZER], version)).await.unwrap();
    world.cloud.delete(&world.cloud.machines()[0].machine.id.clone()).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    let there = Arc::clone(&world.cluster.store().nodes[&node]);
    assert!(there.deleting.is_some());
    world.cluster.patch_node(&node, &hold(&[], there.version.clone())).await.unwrap();
    assert!(world.cluster.store().nodes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_machine_never_becomes_a_node() {
    let world = world(Conduct { never_register: 1.0, ..Conduct::default() });
    launch(&world, "one", 4).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!((world.cloud.machines().len(), world.cluster.store().nodes.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_rebooting_node_is_gone_for_a_while_and_comes_back() {
    let world = world(Conduct::default());
    let node = launch(&world, "one", 4).await;
    admit(&world, "one", &node).await;
    world.cloud.reboot(&world.cloud.machines()[0].machine.id.clone(), "op").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(!world.cluster.store().nodes[&node].is_ready());
    sleep(Duration::from_mins(1)).await;
    let there = Arc::clone(&world.cluster.store().nodes[&node]);
    assert!(there.is_ready() && there.taints.is_empty());
}

#[tokio::test(start_paused = true)]
async fn devices_come_after_the_node_is_ready() {
    let mut config = config(1, Conduct::default());
    config.pace.equip = (Duration::from_secs(20), Duration::from_secs(20));
    let world = World::new(config);
    for (_, player) in world.stand_ins() {
        tokio::spawn(player);
    }
    let claim = world.cluster.create_claim(&props::draft("gpu")).await.unwrap();
    let mut spec = props::launch(&claim, 4);
    let mut kind = (*spec.candidates[0]).clone();
    kind.capacity.set("nvidia.com/gpu".into(), 1_000);
    spec.candidates = vec![Arc::new(kind)];
    let node = node_name(&world.cloud.create(&spec).await.unwrap().id);
    admit(&world, "gpu", &node).await;
    let gpus = || world.cluster.store().nodes[&node].allocatable.get(&"nvidia.com/gpu".into());
    assert_eq!(gpus(), 0);
    sleep(Duration::from_secs(25)).await;
    assert_eq!(gpus(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_world_settles_when_all_is_done_and_gives_up_on_the_hopeless() {
    let world = World::new(config(1, Conduct::default()));
    let started = Instant::now();
    let steps = [Step { at: Duration::from_secs(30), act: Act::Apply(vec![deployment(2, 500)]) }];
    let hand = async {
        let node = launch(&world, "one", 4).await;
        admit(&world, "one", &node).await;
    };
    tokio::join!(world.run(&steps, End::Settled), hand);
    assert!(started.elapsed() < Duration::from_mins(5), "{:?}", started.elapsed());
    let hopeless = World::new(config(1, Conduct::default()));
    let started = Instant::now();
    hopeless.run(&steps, End::Settled).await;
    assert!(started.elapsed() > Duration::from_mins(15) && started.elapsed() < Duration::from_mins(20));
    let outcome = hopeless.ledger.close(1, &|_| vec!["no NodePool".to_owned()]);
    assert_eq!(outcome.unplaced.len(), 2);
    assert_eq!(outcome.unplaced[0].reasons, ["no NodePool"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_timeline_cannot_do_is_a_violation() {
    let world = World::new(config(1, Conduct::default()));
    let act = Act::Scale { kind: "Deployment".to_owned(), key: ObjectKey::new("default", "nobody"), replicas: 2 };
    world.run(&[Step { at: Duration::from_secs(5), act }], End::At(Duration::from_secs(10))).await;
    assert_eq!(
        world.ledger.violations(),
        ["timeline at 5 s: Deployment default/nobody: is not there; apply it before"]
    );
}

const SCRIPT: &str = r"
manifests:
  - {kind: Deployment, metadata: {name: web}, spec: {replicas: 40, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c,
     resources: {requests: {cpu: 300m, memory: 256Mi}}}], topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, maxSkew: 1,
     whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}]}}}}
  - {kind: DaemonSet, metadata: {name: agent}, spec: {template: {spec: {containers: [{name: c}]}}}}
timeline:
  - {at: 2m, scale: {deployment: default/web, replicas: 10}}
  - {at: 3m, scale: {deployment: default/web, replicas: 30}}
until: 10m
";

fn script() -> Scenario {
    let open = |_: &Path| Ok(SCRIPT.to_owned());
    read_scenario(Path::new("script.yaml"), &ShapeStore::new(), &open).unwrap()
}

/// Everything that a watcher sees, with times.
async fn story(seed: u64) -> String {
    let scenario = script();
    let world = World::new(config(seed, Conduct { lost_answers: 0.0, ..Conduct::default() }));
    let story = Arc::new(Mutex::new(String::new()));
    let started = Instant::now();
    let mut facts = world.cluster.facts();
    let watching = async {
        while let Some(fact) = facts.next().await {
            writeln!(story.lock().unwrap(), "{:?} {fact:?}", started.elapsed()).unwrap();
        }
    };
    let hand = async {
        for (name, cpus) in [("a", 4), ("b", 8), ("c", 4)] {
            let node = launch(&world, name, cpus).await;
            admit(&world, name, &node).await;
        }
        let name = "b".into();
        let hold = ClaimPatch::default();
        world.cluster.patch_claim(&name, &hold).await.unwrap();
        world.cloud.vanish(&world.cluster.store().claims[&name].provider_id.clone().unwrap());
    };
    let run = async { tokio::join!(world.run(&scenario.steps, scenario.end), hand) };
    tokio::select! {
        _ = run => {}
        () = watching => {}
    }
    story.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_tells_the_same_story() {
    let (one, other) = (story(7).await, story(7).await);
    assert!(one.lines().count() > 300, "{}", one.lines().count());
    let first = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(first, None);
    assert_eq!(one.len(), other.len());
    assert_ne!(story(8).await, one);
}
