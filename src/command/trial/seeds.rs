//! Many histories on all cores.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::actors;
use crate::command::stopwatch::Stopwatch;
use crate::sim::faults::{Fault, Profile};
use crate::sim::invariants::{Invariant, Violation, time_of_day};

use super::history::{History, Told};
use super::shrink::{Shortest, shrink};
use super::verdict::{Broken, Verdict};

/// How many failed histories are told with a trace; the others by name.
const TRACED: usize = 10;
/// How many lines a trace has.
const TRACE: usize = 40;
/// In so many histories each kind of fault must strike: one that never does tries nothing, whatever the day's verdict.
const ENOUGH: u64 = 1000;

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
pub fn trial(trial: &Trial, tell: &(dyn Fn(u64, &[Broken]) + Sync)) -> Verdict {
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
                    let broken = broken(seed, &one);
                    told.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, one);
                    tell(done.fetch_add(1, Ordering::Relaxed) + 1, &broken);
                }
            });
        }
    });
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut verdict = judge(told, |seed| play(trial, seed, true));
    verdict.never_struck = never_struck(trial, &verdict.faults);
    verdict.wall_seconds = stopwatch.elapsed().as_secs_f64();
    verdict
}

/// The kinds that a trial long enough for all has not seen.
fn never_struck(trial: &Trial, struck: &BTreeMap<&'static str, u64>) -> Vec<&'static str> {
    let (first, last) = trial.seeds.clone().into_inner();
    let kinds = if last.saturating_sub(first) + 1 < ENOUGH { Vec::new() } else { trial.profile.kinds() };
    kinds.into_iter().map(Fault::as_str).filter(|kind| !struck.contains_key(kind)).collect()
}

/// Looks for the shortest history that breaks the same promise. That none can be found, whatever the reason, takes nothing back of what was broken.
pub(in crate::command) fn shorten(trial: &Trial, broken: &Broken) -> Result<Shortest, String> {
    let search = || shrink(&History::draw(broken.seed, &trial.profile)?, broken.invariant, &trial.settings);
    guarded(search).map_err(|error| format!("{error:#}"))
}

/// Counts histories. The first that failed are played `again`, the same once more, this time with a journal.
fn judge(told: BTreeMap<u64, Result<Told>>, again: impl Fn(u64) -> Result<Told>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut failed = 0;
    for (seed, one) in told {
        let mut broken = broken(seed, &one);
        if let Ok(one) = &one {
            verdict.count(one);
            if !broken.is_empty() {
                failed += 1;
                if failed <= TRACED {
                    broken = with_traces(seed, broken, &again(seed));
                }
            }
        }
        verdict.violations.extend(broken);
    }
    verdict
}

/// What was broken, with the traces of the second playing. One that went otherwise takes nothing back: that the seed is not one history is said as well.
fn with_traces(seed: u64, first: Vec<Broken>, again: &Result<Told>) -> Vec<Broken> {
    let second = broken(seed, again);
    let all = |broken: &[Broken]| {
        let each =
            broken.iter().map(|one| format!("{} at {} ({})", one.invariant.as_str(), time_of_day(one.at), one.what));
        if broken.is_empty() { "nothing".to_owned() } else { each.collect::<Vec<_>>().join(", ") }
    };
    let (one, other) = (all(&first), all(&second));
    if one == other {
        return second;
    }
    let what = format!("seed {seed} is not one history: the first time it broke {one}, the second time {other}");
    first.into_iter().chain([unplayed(seed, what)]).collect()
}

/// What was broken in a history, each with its trace if there is a journal, or why there is no history.
fn broken(seed: u64, told: &Result<Told>) -> Vec<Broken> {
    let told = match told {
        Ok(told) => told,
        Err(error) => return vec![unplayed(seed, format!("seed {seed} cannot be played: {error:#}"))],
    };
    let one = |violation: &Violation| Broken {
        seed,
        invariant: violation.invariant,
        at: violation.at,
        objects: violation.objects.clone(),
        what: violation.what.clone(),
        trace: told.journal.trace(&violation.objects, violation.at, TRACE),
    };
    told.violations.iter().map(one).collect()
}

/// A seed does not stand for a history.
fn unplayed(seed: u64, what: String) -> Broken {
    Broken { seed, invariant: Invariant::OneHistory, at: Duration::ZERO, objects: vec![], what, trace: vec![] }
}

fn play(trial: &Trial, seed: u64, journal: bool) -> Result<Told> {
    guarded(|| History::draw(seed, &trial.profile)?.play(&trial.settings, journal))
}

/// A panic of the simulator is an error like others.
fn guarded<T>(play: impl FnOnce() -> Result<T>) -> Result<T> {
    let played = catch_unwind(AssertUnwindSafe(play));
    played.unwrap_or_else(|_| Err(anyhow!("the simulator panicked; the message is above")))
}

#[cfg(test)]
#[path = "seeds_tests.rs"]
mod tests;
