//! A load on a real control plane: mixed pods in Deployments, joiner as a process with the chart's rights, KWOK nodes.
//!
//! `cargo bench --bench load -- 1000 3000 10000` prints a row of a table for each number of pods, and the same as JSON on a line. It
//! measures a whole system on two or more cores, so it is no criterion benchmark. It fails when pods are left, and judges no figure.
//! `JOINER_NOMINATE` is handed on to joiner. `KARPENTER=PATH` names a binary of Karpenter with its KWOK provider: each load is put to it after joiner, on the
//! same control plane.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/kwok/ground.rs"]
mod ground;
#[path = "../tests/kwok/stage.rs"]
#[allow(dead_code, reason = "the load needs a part of what scenarios stand on")]
mod stage;

#[path = "load/karpenter.rs"]
mod karpenter;
#[path = "common/outside.rs"]
mod outside;
#[path = "load/seen.rs"]
mod seen;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use joiner::command::mixed;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use common::joiner::Joiner;
use karpenter::Karpenter;
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
    program: &'static str,
    pods: usize,
    /// Seconds from the first Deployment on.
    took: BTreeMap<Step, Took>,
    /// Plans that bought nodes.
    rounds: usize,
    /// Those plans, as the log has them.
    plans: Vec<Value>,
    node_claims: usize,
    /// USD per hour, and what no plan for these pods is cheaper than.
    price: f64,
    lower_bound: f64,
    /// Percent of the pods that were bound where they, or pods that equal them, were planned.
    bound_as_planned: f64,
    /// Percent that were bound in a place that was planned for a pod of another Deployment that requests the same.
    bound_exchanged: f64,
    /// What became of the pods of each part of the load.
    parts: BTreeMap<String, Part>,
    /// CPU seconds of the program, and of each part of the control plane.
    cpu_seconds: f64,
    control_plane_cpu_seconds: BTreeMap<String, f64>,
    /// Its peak resident memory in MB.
    peak_memory: f64,
    /// joiner's requests, by verb and resource.
    requests: BTreeMap<String, f64>,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1000] } else { sizes };
    let mut table = String::from(
        "| program | pods | seconds | 99 % after s | rounds | NodeClaims | $/h | lower bound | bound as planned | in the place of an alike pod | CPU s | control plane's CPU s | peak RSS MB | requests |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let karpenter = std::env::var_os("KARPENTER").map(PathBuf::from);
    for pods in sizes {
        for other in std::iter::once(None).chain(karpenter.as_deref().map(Some)) {
            let figures = run(pods, other);
            println!("{}", serde_json::to_string(&figures).expect("figures are plain"));
            table.push_str(&row(&figures));
        }
    }
    println!("{table}");
}

fn row(figures: &Figures) -> String {
    let bound = figures.took.get(&Step::PodBound);
    format!(
        "| {} | {} | {:.0} | {:.0} | {} | {} | {:.2} | {:.2} | {:.1} % | {:.1} % | {:.1} | {:.0} | {:.0} | {} |\n",
        figures.program,
        figures.pods,
        bound.map_or(0.0, |took| took.last),
        bound.map_or(0.0, |took| took.most),
        figures.rounds,
        figures.node_claims,
        figures.price,
        figures.lower_bound,
        figures.bound_as_planned,
        figures.bound_exchanged,
        figures.cpu_seconds,
        figures.control_plane_cpu_seconds.values().sum::<f64>(),
        figures.peak_memory,
        figures.requests.values().sum::<f64>(),
    )
}

/// Who is put to the load.
enum Program {
    Joiner(Joiner),
    Karpenter(Karpenter),
}

impl Program {
    fn start(stage: &Stage, other: Option<&Path>) -> Self {
        let client = [("KUBE_CLIENT_QPS", "1000"), ("KUBE_CLIENT_BURST", "2000")];
        if let Some(program) = other {
            let plane = stage.plane();
            return Self::Karpenter(Karpenter::start(program, &plane.kubeconfig(), plane.dir(), &client));
        }
        let nominate = std::env::var("JOINER_NOMINATE").unwrap_or_else(|_| "all".to_owned());
        let settings = [client[0], client[1], ("JOINER_NOMINATE", &nominate)];
        Self::Joiner(stage.joiner_with("joiner-load", &settings))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Joiner(_) => "joiner",
            Self::Karpenter(_) => "Karpenter",
        }
    }

    fn process(&self) -> u32 {
        match self {
            Self::Joiner(joiner) => joiner.process(),
            Self::Karpenter(karpenter) => karpenter.process(),
        }
    }

    fn metrics(&self) -> String {
        match self {
            Self::Joiner(joiner) => joiner.metrics(),
            Self::Karpenter(karpenter) => karpenter.metrics(),
        }
    }

    /// The plans that bought nodes.
    fn plans(&self) -> Vec<Value> {
        match self {
            Self::Joiner(joiner) => {
                joiner.said("computed plan").into_iter().filter(|line| line["nodeclaims"] != 0).collect()
            }
            Self::Karpenter(karpenter) => karpenter.said("computed new nodeclaim(s) to fit pod(s)"),
        }
    }

    fn stop(self) {
        if let Self::Joiner(joiner) = self {
            assert!(joiner.stop().success(), "joiner ends in order");
        }
    }
}

fn run(pods: usize, other: Option<&Path>) -> Figures {
    let stage = Stage::set(LOAD);
    stage.plane().apply(&pool(LOAD, &json!({})));
    let program = Program::start(&stage, other);
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
    let mut figures = figures(pods, began, &seen, &stage, &program, &before);
    program.stop();
    figures.lower_bound = lower_bound(&stage, &deployments);
    figures
}

/// What `joiner plan` says of the same pods, NodePool and instance types: no plan that places them all is cheaper.
fn lower_bound(stage: &Stage, deployments: &[String]) -> f64 {
    let manifests = stage.plane().dir().join("load.yaml");
    let all = [pool(LOAD, &json!({})), deployments.join("\n---\n")].join("\n---\n");
    std::fs::write(&manifests, all).expect("there is room for the load");
    let plan = Command::new(stage.program()).args(["plan", "-o", "json", "-f"]).arg(&manifests).output();
    let plan: Value = serde_json::from_slice(&plan.expect("joiner is there").stdout).expect("it says what it plans");
    plan["lowerBound"].as_f64().expect("every plan has a bound")
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
    program: &Program,
    before: &BTreeMap<String, f64>,
) -> Figures {
    let metrics = &program.metrics();
    let landed = |place: &str| -> f64 {
        let label = format!("place=\"{place}\"");
        let pods_there: f64 = series(metrics, "joiner_pods_bound_total")
            .filter(|(labels, _)| *labels == label)
            // Not `sum`, which says -0 of nothing.
            .fold(0.0, |sum, (_, value)| sum + value);
        100.0 * pods_there / pods as f64
    };
    let plans = program.plans();
    Figures {
        program: program.name(),
        pods,
        took: seen.took(began),
        rounds: plans.len(),
        plans,
        node_claims: seen.claims.len(),
        price: series(metrics, "karpenter_nodepools_cost_total").map(|(_, value)| value).sum(),
        lower_bound: 0.0,
        bound_as_planned: landed("planned"),
        bound_exchanged: landed("exchanged"),
        parts: seen.parts(),
        cpu_seconds: outside::cpu_seconds(program.process()),
        control_plane_cpu_seconds: outside::since(stage.plane().cpu_seconds(), before),
        peak_memory: outside::peak_memory(program.process()),
        requests: outside::requests(metrics),
    }
}
