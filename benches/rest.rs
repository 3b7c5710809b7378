//! Many NodeClaims at rest, in real time: each has its actor, machine and Node, and nothing happens. What they cost in memory, and in CPU a minute.
//!
//! `cargo bench --bench rest -- 10000 120` (NodeClaims, seconds of rest) prints a row of a table, and the same as JSON. World and joiner are
//! one process: what is measured holds the world, which rests too. A second run with 0 NodeClaims shows what it costs without any.

use std::time::Duration;

use anyhow::ensure;
use joiner::actors::Settings;
use joiner::actors::runtime::{Clock, Kind};
use joiner::clouds::catalog;
use joiner::command::{Rehearsal, scenario_of};
use joiner::sim::End;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

#[path = "common/process.rs"]
mod process;

/// Nodes that have not all come after this long are a failure.
const AT_MOST: Duration = Duration::from_mins(20);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    node_claims: usize,
    claim_actors: usize,
    /// From the first NodeClaim until the last was initialized.
    seconds_to_rest: f64,
    rest_seconds: f64,
    resident_bytes: u64,
    cpu_seconds_per_minute: f64,
}

fn main() -> anyhow::Result<()> {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (claims, rest) = (numbers.first().copied().unwrap_or(10_000), numbers.get(1).copied().unwrap_or(120));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let figures = runtime.block_on(at_rest(usize::try_from(claims)?, Duration::from_secs(rest)))?;
    #[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
    {
        println!("| NodeClaims | actors | s until all rest | resident MiB | CPU s a minute |\n|---|---|---|---|---|");
        println!(
            "| {} | {} | {:.0} | {} | {:.2} |",
            figures.node_claims,
            figures.claim_actors,
            figures.seconds_to_rest,
            figures.resident_bytes >> 20,
            figures.cpu_seconds_per_minute
        );
        println!("{}", serde_json::to_string(&figures)?);
    }
    Ok(())
}

/// A NodeClaim that a user has made.
fn claim(number: usize) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": format!("rest-{number:05}")},
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["c-2x-amd64-linux"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        ],
        "expireAfter": "720h",
    }})
}

async fn at_rest(claims: usize, rest: Duration) -> anyhow::Result<Figures> {
    let manifests: Vec<Value> = (0..claims).map(claim).collect();
    let scenario = scenario_of("rest", &manifests)?;
    let settings = Settings { leader_election: false, ..Settings::default() };
    let rehearsal = Rehearsal::new(&scenario, catalog::generated(), 1, Clock::machine(), settings);
    let joiner = rehearsal.joiner();
    let boards = joiner.boards().clone();
    for (_, player) in rehearsal.world.stand_ins() {
        tokio::spawn(player);
    }
    let began = Instant::now();
    rehearsal.world.play(&scenario.steps, End::At(Duration::ZERO)).await;
    loop {
        let snapshot = boards.snapshot();
        if snapshot.claims.len() == claims && snapshot.claims.values().all(|claim| claim.is("Initialized")) {
            break;
        }
        ensure!(began.elapsed() < AT_MOST, "not all NodeClaims are initialized after {AT_MOST:?}");
        sleep(Duration::from_secs(1)).await;
    }
    let seconds_to_rest = began.elapsed().as_secs_f64();
    // What was under way comes to its end.
    sleep(Duration::from_secs(15)).await;
    let (since, cpu) = (Instant::now(), process::cpu_seconds());
    sleep(rest).await;
    let (passed, used) = (since.elapsed().as_secs_f64(), process::cpu_seconds() - cpu);
    let actors = joiner.house().observations.count().get(&Kind::Claim).copied().unwrap_or(0);
    ensure!(actors == claims, "{actors} claim actors for {claims} NodeClaims");
    let figures = Figures {
        node_claims: claims,
        claim_actors: actors,
        seconds_to_rest,
        rest_seconds: passed,
        resident_bytes: process::resident_bytes(),
        cpu_seconds_per_minute: used * 60.0 / passed,
    };
    joiner.kill();
    Ok(figures)
}
