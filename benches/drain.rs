//! The end of many nodes at once on a real control plane: a NodePool is deleted whose nodes are full of pods. joiner is a process with the chart's
//! rights, the nodes are KWOK's.
//!
//! `cargo bench --bench drain -- 200 30` (nodes, pods on each) prints a row of a table, and the same as JSON. Not a criterion
//! benchmark: it measures a whole system. It fails when anything is left. `termination` does the same in the simulator.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/kwok/ground.rs"]
mod ground;
#[path = "common/outside.rs"]
mod outside;
#[path = "../tests/kwok/stage.rs"]
#[allow(dead_code, reason = "the benchmark needs a part of what scenarios stand on")]
mod stage;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use common::controlplane::eventually;
use common::joiner::Joiner;
use common::kube_api::{CLAIMS, NODES, POOLS};
use stage::{Stage, pool};

/// The namespace of the pods, and the name of the NodePool.
const FULL: &str = "full";
/// The only type that the NodePool allows: 4 cores.
const TYPE: &str = "m-4x-amd64-linux";
/// Thousandths of a core that a node has for pods.
const ROOM: usize = 3_900;
/// How many requests that create pods are under way at a time.
const AT_ONCE: usize = 16;
/// A step that has not ended after this long has failed.
const AT_MOST: Duration = Duration::from_mins(20);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    nodes: usize,
    pods: usize,
    /// From the deletion until no NodeClaim and no Node is left.
    seconds: f64,
    /// joiner's, in that time.
    cpu_seconds: f64,
    /// Of each part of the control plane, in that time.
    control_plane_cpu_seconds: BTreeMap<String, f64>,
    /// joiner's peak resident memory in MB, the filling of the nodes included.
    peak_memory: f64,
    /// joiner's, in that time, by verb and resource.
    requests: BTreeMap<String, f64>,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (nodes, each) = (numbers.first().copied().unwrap_or(200), numbers.get(1).copied().unwrap_or(30));
    let figures = run(nodes, each);
    println!("{}", serde_json::to_string(&figures).expect("figures are plain"));
    println!(
        "| nodes | pods | seconds | joiner's CPU s | control plane's CPU s | requests | peak RSS MB |\n|---|---|---|---|---|---|---|"
    );
    println!(
        "| {} | {} | {:.0} | {:.1} | {:.0} | {} | {:.0} |",
        figures.nodes,
        figures.pods,
        figures.seconds,
        figures.cpu_seconds,
        figures.control_plane_cpu_seconds.values().sum::<f64>(),
        figures.requests.values().sum::<f64>(),
        figures.peak_memory
    );
}

fn run(nodes: usize, each: usize) -> Figures {
    let stage = Stage::set(FULL);
    let only = json!({"template": {"spec": {"requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [TYPE]}]}}});
    stage.plane().apply(&pool(FULL, &only));
    let settings = [("KUBE_CLIENT_QPS", "1000"), ("KUBE_CLIENT_BURST", "2000")];
    let joiner = stage.joiner_with("joiner-drain", &settings);
    fill(&stage, nodes * each, each);
    stage.all_run_within(FULL, nodes * each, AT_MOST);
    let there = stage.settled().len();

    let before =
        (stage.plane().cpu_seconds(), outside::cpu_seconds(joiner.process()), outside::requests(&joiner.metrics()));
    let began = Instant::now();
    stage.api().delete(&format!("{POOLS}/{FULL}"));
    eventually("no NodeClaim and no Node is left", AT_MOST, || {
        [CLAIMS, NODES].iter().all(|collection| stage.api().list(collection).is_empty()).then_some(())
    });
    let seconds = began.elapsed().as_secs_f64();
    let figures = figures(&stage, &joiner, (there, nodes * each), seconds, &before);
    assert!(joiner.stop().success(), "joiner ends in order");
    figures
}

/// Creates pods that nobody replaces when they are evicted.
fn fill(stage: &Stage, pods: usize, each: usize) {
    // So much that one more than wanted does not fit.
    let cpu = format!("{}m", ROOM / each);
    let pod = |number: usize| -> Pod {
        let pod = json!({"metadata": {"name": format!("pod-{number}")}, "spec": {"terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.example/app",
                "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]}});
        serde_json::from_value(pod).expect("it is a pod")
    };
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    runtime.block_on(async {
        let api = Api::<Pod>::namespaced(stage.plane().client(&stage.plane().kubeconfig()).await, FULL);
        let made = stream::iter(0..pods).map(|number| {
            let (api, pod) = (api.clone(), pod(number));
            async move { api.create(&PostParams::default(), &pod).await.expect("the pod is created") }
        });
        made.buffer_unordered(AT_ONCE).count().await
    });
}

type Before = (BTreeMap<String, f64>, f64, BTreeMap<String, f64>);

fn figures(stage: &Stage, joiner: &Joiner, (nodes, pods): (usize, usize), seconds: f64, before: &Before) -> Figures {
    let (plane, cpu, requests) = before;
    let mut requests = outside::since(outside::requests(&joiner.metrics()), requests);
    requests.retain(|_, count| *count > 0.0);
    Figures {
        nodes,
        pods,
        seconds,
        cpu_seconds: outside::cpu_seconds(joiner.process()) - cpu,
        control_plane_cpu_seconds: outside::since(stage.plane().cpu_seconds(), plane),
        peak_memory: outside::peak_memory(joiner.process()),
        requests,
    }
}
