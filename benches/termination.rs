//! The end of many nodes at once, in the simulator: a NodePool is deleted whose nodes are full of pods. How long it takes in the world's time and in
//! ours, how many requests it costs, and how much memory.
//!
//! `cargo bench --bench termination -- 1000 30` (nodes, pods on each) prints a row of a table, and the same as JSON. Not a criterion
//! benchmark: it measures a process. It fails when anything is left.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use joiner::actors::Settings;
use joiner::actors::runtime::Clock;
use joiner::clouds::catalog;
use joiner::command::{Rehearsal, peak_memory, scenario_of};
use joiner::core::facts::InstanceType;
use joiner::sim::{Act, End, Requests};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

#[path = "common/process.rs"]
mod process;

/// The only type that is sold: 4 cores.
const TYPE: &str = "m-4x-amd64-linux";
/// Thousandths of a core that a node has for pods.
const ROOM: usize = 3_900;
/// A step that has not ended after this long in the world's time has failed.
const AT_MOST: Duration = Duration::from_hours(6);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    nodes: usize,
    pods: usize,
    /// From the deletion until no NodeClaim and no machine is left, in the world's time.
    simulated_seconds: f64,
    /// The same in ours, the world's work included.
    wall_seconds: f64,
    cpu_seconds: f64,
    peak_memory_bytes: u64,
    requests: u64,
    requests_by_kind: BTreeMap<String, u64>,
}

fn main() -> anyhow::Result<()> {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (nodes, each) = (numbers.first().copied().unwrap_or(1_000), numbers.get(1).copied().unwrap_or(30));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let figures = runtime.block_on(terminate(nodes, each))?;
    #[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
    {
        println!(
            "| nodes | pods | simulated s | wall s | CPU s | requests | peak MiB |\n|---|---|---|---|---|---|---|"
        );
        println!(
            "| {} | {} | {:.0} | {:.1} | {:.1} | {} | {} |",
            figures.nodes,
            figures.pods,
            figures.simulated_seconds,
            figures.wall_seconds,
            figures.cpu_seconds,
            figures.requests,
            figures.peak_memory_bytes >> 20
        );
        println!("{}", serde_json::to_string(&figures)?);
    }
    Ok(())
}

/// A pod that nobody replaces when it is evicted.
fn pod(number: usize, each: usize) -> Value {
    // So much that one more than wanted does not fit.
    let cpu = format!("{}m", ROOM / each);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{number}"), "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [
            {"name": "main", "image": "registry.example/app", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]}})
}

async fn terminate(nodes: usize, each: usize) -> anyhow::Result<Figures> {
    let pods: Vec<Value> = (0..nodes * each).map(|number| pod(number, each)).collect();
    let scenario = scenario_of("termination", &pods)?;
    let types: Vec<InstanceType> = catalog::generated().into_iter().filter(|kind| kind.name.as_str() == TYPE).collect();
    ensure!(!types.is_empty(), "there is no instance type {TYPE}");
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let settings = Settings { leader_election: false, ..Settings::default() };
    let rehearsal = Rehearsal::new(&scenario, types, 1, clock, settings);
    let joiner = rehearsal.joiner();
    let world = &rehearsal.world;
    for (_, player) in world.stand_ins() {
        tokio::spawn(player);
    }
    world.play(&scenario.steps, End::At(Duration::ZERO)).await;
    let boards = joiner.boards().clone();
    let all = nodes * each;
    until("all pods are bound", || boards.snapshot().pods.values().filter(|pod| pod.node.is_some()).count() == all)
        .await?;
    sleep(Duration::from_mins(2)).await;
    let (there, bound) = (boards.snapshot().nodes.len(), boards.snapshot().pods.len());
    let before = world.cluster.requests();
    let (began, stopwatch, cpu) = (Instant::now(), process::Stopwatch::start(), process::cpu_seconds());
    let key = joiner::core::ids::ObjectKey::new("", "default");
    world.perform(&Act::Delete { kind: "NodePool".to_owned(), key }).context("the NodePool is there")?;
    until("nothing is left", || boards.snapshot().claims.is_empty() && world.cloud.machines().is_empty()).await?;
    let (simulated_seconds, requests) = (began.elapsed().as_secs_f64(), since(&before, &world.cluster.requests()));
    let figures = Figures {
        nodes: there,
        pods: bound,
        simulated_seconds,
        wall_seconds: stopwatch.seconds(),
        cpu_seconds: process::cpu_seconds() - cpu,
        peak_memory_bytes: peak_memory(),
        requests: requests.values().sum(),
        requests_by_kind: requests,
    };
    joiner.kill();
    Ok(figures)
}

/// Waits, in the world's time, until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !is_so() {
        ensure!(began.elapsed() < AT_MOST, "not so after {} h: {what}", AT_MOST.as_secs() / 3600);
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// The requests of one span of time.
fn since(before: &Requests, after: &Requests) -> BTreeMap<String, u64> {
    let new = |((verb, resource), count): (&(&'static str, &'static str), &u64)| {
        let earlier = before.get(&(*verb, *resource)).copied().unwrap_or_default();
        (format!("{verb} {resource}"), *count - earlier)
    };
    after.iter().map(new).filter(|(_, count)| *count > 0).collect()
}
