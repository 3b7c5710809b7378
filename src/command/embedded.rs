//! `joiner run --cluster simulated`: the whole thing in real time on the embedded world, for a first look; it needs nothing.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::actors::Boards;
use crate::actors::runtime::Clock;
use crate::config::{Settings, World};
use crate::core::pools;
use crate::sim::{End, Scenario};
use crate::telemetry::metrics::Exporter;

use super::rehearsal::{self, Rehearsal, scenario_of};
use super::run::{open, serve, sources};
use super::{load, stopwatch};

/// Pods of a world that was told nothing.
const PODS: u32 = 100;
/// How often it is said where things stand.
const TELL: Duration = Duration::from_secs(5);

/// Runs until a signal comes.
pub(super) async fn run(
    settings: &Settings,
    world: &World,
    exporter: Exporter,
    clock: Clock,
    live_bytes: fn() -> u64,
) -> Result<()> {
    let scenario = if let Some(path) = &world.scenario {
        rehearsal::read(Some(path), None)?
    } else {
        let pods = world.pods.unwrap_or(PODS);
        scenario_of(&format!("{pods} mixed pods"), &load::mixed(usize::try_from(pods)?))?
    };
    let seed = scenario.seed.unwrap_or(1);
    let types = rehearsal::instance_types(settings)?;
    let ports = open(settings).await?;
    let rehearsal = Rehearsal::new(&scenario, types, seed, clock, rehearsal::settings(settings));
    let joiner = rehearsal.joiner();
    let boards = joiner.boards().clone();
    let sources = sources(settings, &joiner, exporter, live_bytes);
    tracing::info!(scenario = scenario.name, "a world in a box; nothing outside this process is touched");
    let players = rehearsal.world.stand_ins();
    for (_, player) in players {
        tokio::spawn(player);
    }
    // The world stays when its timeline is exhausted: somebody may want to look around in it.
    let play = async {
        let end = match scenario.end {
            End::At(end) => End::At(end),
            End::Settled => End::At(scenario.steps.last().map_or(Duration::ZERO, |step| step.at)),
        };
        rehearsal.world.play(&scenario.steps, end).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = serve(joiner, sources, ports) => ended,
        () = play => Ok(()),
        () = tell(&scenario, &boards) => Ok(()),
    }
}

/// Says now and then where things stand, and once how long the first plan took to be carried out.
async fn tell(scenario: &Scenario, boards: &Boards) {
    let mut told = (usize::MAX, 0, 0);
    let mut snapshots = boards.snapshot.subscribe();
    let (mut first_pod, mut settled) = (None, false);
    let mut next = Instant::now() + TELL;
    loop {
        tokio::select! {
            biased;
            changed = snapshots.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(next) => {}
        }
        let snapshot = boards.snapshot();
        let bound = snapshot.pods.values().filter(|pod| pod.node.is_some()).count();
        if !snapshot.pending.is_empty() && first_pod.is_none() {
            first_pod = Some(Instant::now());
        }
        if let Some(first) = first_pod
            && !settled
            && bound == snapshot.pods.len()
        {
            settled = true;
            let nodes = snapshot.nodes.len();
            let seconds = (first.elapsed().as_secs_f64() * 10.0).round() / 10.0;
            let memory = stopwatch::peak_memory() / (1 << 20);
            tracing::info!(
                scenario = scenario.name,
                pods = bound,
                nodes,
                seconds,
                peak_memory_mib = memory,
                "all pods are bound"
            );
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + TELL;
        let standing = (snapshot.pods.len() - bound, bound, snapshot.nodes.len());
        if standing != told {
            told = standing;
            let price: f64 = pools::costs(&snapshot, &boards.catalog()).values().sum();
            tracing::info!(
                pending = standing.0,
                bound = standing.1,
                nodes = standing.2,
                price_per_hour = (price * 1e4).round() / 1e4,
                "standing"
            );
        }
    }
}
