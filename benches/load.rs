//! A load on a real control plane: mixed pods in Deployments, joiner as a process with the chart's rights, KWOK nodes.
//!
//! `cargo bench --bench load -- 1000 3000 10000` prints a row of a table for each number of pods, and the same as JSON on a line. It
//! measures a whole system on two or more cores, so it is no criterion benchmark. It fails when pods are left, and judges no figure.
//! `JOINER_NOMINATE` is handed on to joiner.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/kwok/stage.rs"]
#[allow(dead_code, reason = "the load needs a part of what scenarios stand on")]
mod stage;

#[path = "common/outside.rs"]
mod outside;
#[path = "load/seen.rs"]
mod seen;

use std::collections::BTreeMap;
use std::time::Duration;

use joiner::command::mixed;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use common::joiner::Joiner;
use outside::series;
use seen::{Part, Seen, Step, Took};
use stage::{Stage, pool};

/// The namespace of the pods, and the name of the NodePool.
const LOAD: &str = "load";
/// A run that has not ended after this long has failed.
const AT_MOST: Duration = Duration::from_mins(30);

/// What one run has shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    pods: usize,
    /// Seconds from the first Deployment on.
    took: BTreeMap<Step, Took>,
    /// Plans that bought nodes.
    rounds: usize,
    /// Every plan, as joiner's log has it.
    plans: Vec<Value>,
    node_claims: usize,
    /// USD per hour.
    price: f64,
    /// Percent of the pods that were bound where they, or pods that equal them, were planned.
    bound_as_planned: f64,
    /// Percent that were bound in a place that was planned for a pod of another Deployment that requests the same.
    bound_exchanged: f64,
    /// What became of the pods of each part of the load.
    parts: BTreeMap<String, Part>,
    /// CPU seconds of joiner, and of each part of the control plane.
    cpu_seconds: f64,
    control_plane_cpu_seconds: BTreeMap<String, f64>,
    /// Peak resident memory of joiner in MB.
    peak_memory: f64,
    /// joiner's requests, by verb and resource.
    requests: BTreeMap<String, f64>,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1000] } else { sizes };
    let mut table = String::from(
        "| pods | seconds | 99 % after s | rounds | NodeClaims | $/h | bound as planned | in the place of an alike pod | joiner's CPU s | control plane's CPU s | peak RSS MB | requests |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for pods in sizes {
        let figures = run(pods);
        println!("{}", serde_json::to_string(&figures).expect("figures are plain"));
        table.push_str(&row(&figures));
    }
    println!("{table}");
}

fn row(figures: &Figures) -> String {
    let bound = figures.took.get(&Step::PodBound);
    format!(
        "| {} | {:.0} | {:.0} | {} | {} | {:.2} | {:.1} % | {:.1} % | {:.1} | {:.0} | {:.0} | {} |\n",
        figures.pods,
        bound.map_or(0.0, |took| took.last),
        bound.map_or(0.0, |took| took.most),
        figures.rounds,
        figures.node_claims,
        figures.price,
        figures.bound_as_planned,
        figures.bound_exchanged,
        figures.cpu_seconds,
        figures.control_plane_cpu_seconds.values().sum::<f64>(),
        figures.peak_memory,
        figures.requests.values().sum::<f64>(),
    )
}

fn run(pods: usize) -> Figures {
    let stage = Stage::set(LOAD);
    stage.plane().apply(&pool(LOAD, &json!({})));
    let nominate = std::env::var("JOINER_NOMINATE").unwrap_or_else(|_| "all".to_owned());
    let settings = [("KUBE_CLIENT_QPS", "1000"), ("KUBE_CLIENT_BURST", "2000"), ("JOINER_NOMINATE", &*nominate)];
    let joiner = stage.joiner_with("joiner-load", &settings);
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    let client = runtime.block_on(stage.plane().client(&stage.plane().kubeconfig()));
    let before = stage.plane().cpu_seconds();
    let watch = Seen::watch(&client, LOAD);
    let began = Instant::now();
    let deployments: Vec<String> = mixed(pods).into_iter().map(in_load).collect();
    stage.plane().apply(&deployments.join("\n---\n"));
    let seen = runtime.block_on(async {
        tokio::time::timeout(AT_MOST, watch.until_bound(pods)).await.expect("every pod is bound in time")
    });
    let metrics = joiner.metrics();
    let figures = figures(pods, began, &seen, &stage, &joiner, &metrics, &before);
    assert!(joiner.stop().success(), "joiner ends in order");
    figures
}

fn in_load(mut deployment: Value) -> String {
    deployment["metadata"]["namespace"] = json!(LOAD);
    deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    deployment.to_string()
}

fn figures(
    pods: usize,
    began: Instant,
    seen: &Seen,
    stage: &Stage,
    joiner: &Joiner,
    metrics: &str,
    before: &BTreeMap<String, f64>,
) -> Figures {
    let landed = |place: &str| -> f64 {
        let label = format!("place=\"{place}\"");
        let pods_there: f64 = series(metrics, "joiner_pods_bound_total")
            .filter(|(labels, _)| *labels == label)
            // Not `sum`, which says -0 of nothing.
            .fold(0.0, |sum, (_, value)| sum + value);
        100.0 * pods_there / pods as f64
    };
    let plans = joiner.said("computed plan");
    Figures {
        pods,
        took: seen.took(began),
        rounds: plans.iter().filter(|line| line["nodeclaims"] != 0).count(),
        plans,
        node_claims: seen.claims.len(),
        price: series(metrics, "karpenter_nodepools_cost_total").map(|(_, value)| value).sum(),
        bound_as_planned: landed("planned"),
        bound_exchanged: landed("exchanged"),
        parts: seen.parts(),
        cpu_seconds: outside::cpu_seconds(joiner),
        control_plane_cpu_seconds: outside::since(stage.plane().cpu_seconds(), before),
        peak_memory: outside::peak_memory(joiner),
        requests: outside::requests(metrics),
    }
}
