//! Cuts a history that fails down to the shortest that still does.

use std::fmt::Write;

use anyhow::Result;

use crate::actors;
use crate::sim::faults::{Fault, Plan};
use crate::sim::invariants::{Invariant, Violation, time_of_day};

use super::history::{History, Told};

/// Most histories that are played in search of a shorter one.
const ATTEMPTS: usize = 120;

/// The shortest history found that still breaks a promise.
#[derive(Clone)]
pub struct Shortest {
    /// The promise that it was sought for.
    pub invariant: Invariant,
    /// The history.
    pub history: History,
    /// What comes of it, with its journal.
    pub told: Told,
    /// How many histories were played to find it.
    pub attempts: usize,
    /// Whether the search ended before all was tried: a shorter one may be there.
    pub cut_off: bool,
}

/// How many lines of the journal of a shortened history are printed.
pub(super) const LINES: usize = 120;

impl Shortest {
    /// How it breaks its promise, for the first time. It may break others before.
    fn broken(&self) -> Option<&Violation> {
        self.told.violations.iter().find(|broken| broken.invariant == self.invariant)
    }

    /// What happened in it to the objects of the promise that it breaks, up to that moment.
    pub(super) fn trace(&self, lines: usize) -> Vec<String> {
        self.broken().map_or_else(Vec::new, |broken| self.told.journal.trace(&broken.objects, broken.at, lines))
    }

    /// For people: its faults, what still goes wrong in it, and how that came.
    pub fn text(&self) -> String {
        let plan = &self.history.plan.0;
        let mut text = format!(
            "the shortest history of seed {} that still fails has {} faults (found in {} attempts{}):\n",
            self.history.seed,
            plan.len(),
            self.attempts,
            if self.cut_off { ", and the search was cut off there: a shorter one may be found by hand" } else { "" }
        );
        // Writing to a string does not fail.
        for mishap in plan {
            let _ = writeln!(
                text,
                "    from {} on: {} (for {} s; the {}. occasion; pick {})",
                time_of_day(mishap.at),
                mishap.fault.as_str(),
                mishap.lasting.as_secs(),
                mishap.pass_over.saturating_add(1),
                mishap.pick
            );
        }
        if let Some(broken) = self.broken() {
            let at = time_of_day(broken.at);
            let _ = writeln!(text, "\nwhat it breaks: {} at {at}: {}", broken.invariant.as_str(), broken.what);
        }
        for line in self.trace(LINES) {
            let _ = writeln!(text, "    {line}");
        }
        let History { seed, profile, .. } = &self.history;
        let _ = write!(text, "play its whole day again: joiner simulate --faults {profile} --seed {seed}");
        text
    }
}

struct Search<'a> {
    settings: &'a actors::Settings,
    invariant: Invariant,
    best: History,
    attempts: usize,
    cut_off: bool,
}

/// Leaves out whole kinds of faults, then parts of what is left, as long as the same promise is still broken.
pub fn shrink(history: &History, invariant: Invariant, settings: &actors::Settings) -> Result<Shortest> {
    let mut search = Search { settings, invariant, best: history.clone(), attempts: 0, cut_off: false };
    for fault in Fault::ALL {
        let plan = search.best.plan.keep(|_, mishap| mishap.fault != *fault);
        search.attempt(plan)?;
    }
    let mut part = search.best.plan.0.len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < search.best.plan.0.len() {
            let plan = search.best.plan.keep(|at, _| at < from || at >= from + part);
            if !search.attempt(plan)? {
                from += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    let told = search.best.play(settings, true)?;
    Ok(Shortest { invariant, history: search.best, told, attempts: search.attempts, cut_off: search.cut_off })
}

impl Search<'_> {
    /// Plays the history with a shorter plan, and keeps that if it still fails.
    fn attempt(&mut self, plan: Plan) -> Result<bool> {
        if plan == self.best.plan {
            return Ok(false);
        }
        if self.attempts == ATTEMPTS {
            self.cut_off = true;
            return Ok(false);
        }
        self.attempts += 1;
        let shorter = History { plan, ..self.best.clone() };
        let fails = shorter.play(self.settings, false)?.violations.iter().any(|v| v.invariant == self.invariant);
        if fails {
            self.best = shorter;
        }
        Ok(fails)
    }
}

#[cfg(test)]
#[path = "shrink_tests.rs"]
mod tests;
