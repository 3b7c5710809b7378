//! A burst of pending pods in the embedded world, in real time: time from the first pod to the last NodeClaim, CPU seconds and peak memory.
//!
//! `cargo bench --bench burst -- 10000`; the last argument is the number of pods. Not a criterion benchmark: one run takes a minute, and what it
//! measures is a process, not a function.

use std::sync::Arc;
use std::time::Duration;

use joiner::actors::runtime::Clock;
use joiner::actors::{Boards, Settings};
use joiner::clouds::catalog;
use joiner::command::{Rehearsal, mixed, peak_memory, scenario_of};
use joiner::core::pools;
use joiner::sim::End;
use tokio::time::Instant;

#[path = "common/process.rs"]
mod process;

/// A run that has not ended after this long has failed.
const AT_MOST: Duration = Duration::from_mins(15);

/// What is measured.
#[derive(Default)]
struct Figures {
    first_pod: Option<Instant>,
    planned: Option<Duration>,
    last_claim: Option<Duration>,
    bound: Option<Duration>,
    claims: usize,
    nodes: usize,
    price: f64,
}

fn main() -> anyhow::Result<()> {
    let pods = std::env::args().filter_map(|argument| argument.parse().ok()).next_back().unwrap_or(10_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let figures = runtime.block_on(burst(pods))?;
    let seconds =
        |duration: Option<Duration>| duration.map_or_else(|| "-".to_owned(), |d| format!("{:.1}", d.as_secs_f64()));
    #[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
    {
        println!(
            "| pods | first pod to plan s | to last NodeClaim s | to last pod bound s | NodeClaims | nodes | $/h | CPU s | peak MiB |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        println!(
            "| {pods} | {} | {} | {} | {} | {} | {:.2} | {:.1} | {} |",
            seconds(figures.planned),
            seconds(figures.last_claim),
            seconds(figures.bound),
            figures.claims,
            figures.nodes,
            figures.price,
            process::cpu_seconds(),
            peak_memory() / (1 << 20),
        );
    }
    Ok(())
}

async fn burst(pods: usize) -> anyhow::Result<Figures> {
    let scenario = scenario_of("burst", &mixed(pods))?;
    let settings = Settings { leader_election: false, ..Settings::default() };
    let rehearsal = Rehearsal::new(&scenario, catalog::generated(), 1, Clock::machine(), settings);
    let joiner = rehearsal.joiner();
    let boards = joiner.boards().clone();
    for (_, player) in rehearsal.world.stand_ins() {
        tokio::spawn(player);
    }
    rehearsal.world.play(&scenario.steps, End::At(Duration::ZERO)).await;
    let figures = tokio::time::timeout(AT_MOST, watch(&boards, pods)).await?;
    joiner.stop(Duration::from_secs(10)).await;
    Ok(figures)
}

/// Reads the snapshots until every pod is bound.
async fn watch(boards: &Boards, pods: usize) -> Figures {
    let mut figures = Figures::default();
    let mut snapshots = boards.snapshot.subscribe();
    loop {
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        if !snapshot.pending.is_empty() && figures.first_pod.is_none() {
            figures.first_pod = Some(Instant::now());
        }
        if let Some(first) = figures.first_pod {
            let since = first.elapsed();
            if !snapshot.planned.is_empty() && figures.planned.is_none() {
                figures.planned = Some(since);
            }
            if snapshot.claims.len() > figures.claims {
                figures.claims = snapshot.claims.len();
                figures.last_claim = Some(since);
            }
            let bound = snapshot.bound.values().map(imbl::OrdSet::len).sum::<usize>();
            if bound == pods {
                figures.bound = Some(since);
                figures.nodes = snapshot.nodes.len();
                figures.price = pools::costs(&snapshot, &boards.catalog()).values().sum();
                return figures;
            }
        }
        if snapshots.changed().await.is_err() {
            return figures;
        }
    }
}
