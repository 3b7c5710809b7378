//! Many histories on all cores.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

use crate::actors;
use crate::command::stopwatch::Stopwatch;
use crate::sim::faults::Profile;

use super::history::{History, Told};
use super::verdict::{Broken, Verdict};

/// How many failed histories are told with a trace; the others by name.
const TRACED: usize = 10;
/// How many lines a trace has.
const TRACE: usize = 40;

/// What to play.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which faults there are.
    pub profile: Profile,
    /// The seeds, both ends included.
    pub seeds: RangeInclusive<u64>,
    /// How the actors behave.
    pub settings: actors::Settings,
    /// How many histories are played at a time.
    pub threads: usize,
}

/// Plays all histories of a trial. `tell` hears, whenever one has been played, how many have, and what was broken in it, without traces.
pub fn trial(trial: &Trial, tell: &(dyn Fn(u64, &[Broken]) + Sync)) -> Result<Verdict> {
    let stopwatch = Stopwatch::start();
    let next = AtomicU64::new(*trial.seeds.start());
    let (told, done) = (Mutex::new(BTreeMap::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..trial.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !trial.seeds.contains(&seed) {
                        return;
                    }
                    let one = play(trial, seed, false);
                    let broken = one.as_ref().map(|one| broken(seed, one)).unwrap_or_default();
                    told.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, one);
                    tell(done.fetch_add(1, Ordering::Relaxed) + 1, &broken);
                }
            });
        }
    });
    let mut verdict = Verdict::default();
    let mut failed = 0;
    for (seed, one) in told.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let mut one = one?;
        verdict.count(&one);
        if !one.violations.is_empty() {
            failed += 1;
            if failed <= TRACED {
                // The same history once more, this time with a journal.
                one = play(trial, seed, true)?;
            }
        }
        verdict.violations.extend(broken(seed, &one));
    }
    verdict.wall_seconds = stopwatch.elapsed().as_secs_f64();
    Ok(verdict)
}

/// What was broken in a history, each with its trace if there is a journal.
pub(super) fn broken(seed: u64, told: &Told) -> Vec<Broken> {
    let one = |violation: &crate::sim::invariants::Violation| Broken {
        seed,
        invariant: violation.invariant,
        at: violation.at,
        objects: violation.objects.clone(),
        what: violation.what.clone(),
        trace: told.journal.trace(&violation.objects, violation.at, TRACE),
    };
    told.violations.iter().map(one).collect()
}

fn play(trial: &Trial, seed: u64, journal: bool) -> Result<Told> {
    let played = catch_unwind(AssertUnwindSafe(|| History::draw(seed, &trial.profile)?.play(&trial.settings, journal)));
    played.unwrap_or_else(|_| Err(anyhow!("seed {seed}: the simulator panicked; the message is above")))
}
