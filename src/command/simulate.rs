//! `joiner simulate`: the same actors in virtual time, with a summary and a report at the end.

use std::cell::Cell;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;

use crate::actors::runtime::Clock;
use crate::actors::{self, Boards};
use crate::config::{self, Output, Simulate};
use crate::core::facts::InstanceType;
use crate::sim::outcome::Outcome;
use crate::sim::progress::{Progress, Standing, When};
use crate::sim::{End, Scenario, report, summary};

use super::rehearsal::{self, Rehearsal};
use super::stopwatch::{Stopwatch, peak_memory};
use super::trouble;

/// When simulated worlds begin, in seconds since 1970: 2026-01-01 00:00 UTC.
const BEGINNING: i64 = 1_767_225_600;
/// How often, in our own time, the progress bar is told where things stand.
const TELL: Duration = Duration::from_millis(100);
/// How often, in simulated time, it is looked whether that time has come.
const LOOK: Duration = Duration::from_secs(20);

/// Rehearses, and prints what came of it. The answer says whether anything happened that must not.
pub fn simulate(simulate: &Simulate) -> Result<bool> {
    if let Some(faults) = &simulate.faults {
        return trouble::simulate(simulate, faults);
    }
    let stopwatch = Stopwatch::start();
    let mut scenario = rehearsal::read(simulate.scenario.as_deref(), simulate.trace.as_ref())?;
    if let Some(until) = simulate.until {
        scenario.end = End::At(until);
    }
    let types = rehearsal::instance_types(&simulate.settings)?;
    let sold = types.len();
    let seed = simulate.seed.or(scenario.seed).unwrap_or(1);
    let when = match simulate.progress {
        config::Progress::Auto => When::Auto,
        config::Progress::Always => When::Always,
        config::Progress::Never => When::Never,
    };
    let mut outcome =
        rehearse(&scenario, types, seed, rehearsal::settings(&simulate.settings), Progress::on_stderr(when))?;
    outcome.facts.push((
        "Instance types".to_owned(),
        match &simulate.settings.instance_types {
            Some(path) => format!("{sold} from {}", path.display()),
            None => format!("{sold}, KWOK's default catalogue"),
        },
    ));
    outcome.wall_seconds = stopwatch.elapsed().as_secs_f64();
    if let Some(path) = &simulate.report {
        report::write(path, &outcome)?;
    }
    let text = match simulate.output {
        Output::Table => summary::table(&outcome),
        Output::Json => summary::json(&outcome)?,
    };
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other.context("cannot print the summary")?,
    }
    Ok(outcome.violations.is_empty())
}

/// Plays a scenario to its end in a runtime of its own, whose clock stands still unless everybody sleeps.
pub fn rehearse(
    scenario: &Scenario,
    types: Vec<InstanceType>,
    seed: u64,
    settings: actors::Settings,
    mut progress: Progress,
) -> Result<Outcome> {
    let stopwatch = Stopwatch::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("cannot start a runtime")?;
    let outcome = runtime.block_on(async {
        let clock = Clock::simulated(Timestamp::from_second(BEGINNING)?);
        let settings = rehearsal::with_features(settings, &scenario.features);
        let rehearsal = Rehearsal::new(scenario, types, seed, clock, settings);
        let invariants = rehearsal.watch(scenario);
        let joiner = rehearsal.watched_joiner(&invariants);
        let boards = joiner.boards().clone();
        tokio::select! {
            biased;
            () = invariants.clone().run() => {}
            () = rehearsal.world.run(&scenario.steps, scenario.end) => {}
            () = tell(&mut progress, scenario, &boards, clock) => {}
        }
        let refusals = boards.refusals.borrow().clone();
        let reasons =
            |pod: &_| refusals.reasons.get(pod).cloned().unwrap_or_else(|| vec!["not decided yet".to_owned()]);
        let mut outcome = rehearsal.world.ledger.close(seed, &reasons);
        outcome.violations.extend(invariants.violations().iter().map(|broken| {
            format!("{} s after the start, {}: {}", broken.at.as_secs(), broken.invariant.as_str(), broken.what)
        }));
        outcome.title.clone_from(&scenario.name);
        outcome.wall_seconds = stopwatch.elapsed().as_secs_f64();
        outcome.peak_memory_bytes = peak_memory();
        joiner.kill();
        anyhow::Ok(outcome)
    });
    progress.finish();
    outcome
}

/// Tells the progress bar where things stand, as often as our own time wants it.
async fn tell(progress: &mut Progress, scenario: &Scenario, boards: &Boards, clock: Clock) {
    let (began, told) = (clock.now(), Cell::new(Duration::ZERO));
    let stopwatch = Stopwatch::start();
    let last = scenario.steps.last().map(|step| step.at);
    loop {
        tokio::time::sleep(LOOK).await;
        if stopwatch.elapsed() < told.get() + TELL {
            continue;
        }
        told.set(stopwatch.elapsed());
        let (snapshot, catalog) = (boards.snapshot(), boards.catalog());
        progress.update(&Standing {
            at: Duration::try_from(clock.now().duration_since(began)).unwrap_or_default(),
            until: match scenario.end {
                End::At(end) => Some(end),
                End::Settled => last.filter(|last| !last.is_zero()),
            },
            bound: count(snapshot.pods.values().filter(|pod| pod.node.is_some()).count()),
            pods: count(snapshot.pods.len()),
            nodes: count(snapshot.nodes.len()),
            price_per_hour: crate::core::pools::costs(&snapshot, &catalog).values().sum(),
        });
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
