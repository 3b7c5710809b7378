//! `joiner simulate --faults`: one day of trouble told in full, or many counted.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use crate::config::{Faults, Output, Progress, Simulate};
use crate::sim::faults::Profile;

use super::rehearsal;
use super::trial::{History, Shortest, Trial, shrink, trial};

/// How many lines of the journal of a shortened history are printed.
const LINES: usize = 120;

/// Plays the days, and prints what came of them. The answer says whether all was well.
pub(super) fn simulate(simulate: &Simulate, faults: &Faults) -> Result<bool> {
    let profile = Profile::parse(&faults.profile).context("--faults")?;
    let settings = rehearsal::settings(&simulate.settings);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let one = simulate.seed.unwrap_or(1);
    let (first, last) = faults.seeds.unwrap_or((one, one));
    let total = last - first + 1;
    let progress = match simulate.progress {
        Progress::Always => true,
        Progress::Never => false,
        Progress::Auto => std::io::stderr().is_terminal(),
    };
    let tell = |done: u64| {
        if progress && (done.is_multiple_of(total.div_ceil(20)) || done == total) {
            // Progress that nobody can see is no failure.
            let _ = writeln!(std::io::stderr(), "{done} of {total} histories");
        }
    };
    let verdict = trial(&Trial { profile, seeds: first..=last, settings: settings.clone(), threads }, &tell)?;
    let mut text = match simulate.output {
        Output::Table => verdict.text(),
        Output::Json => verdict.json()?,
    };
    if let (None, Output::Table, Some(broken)) = (faults.seeds, simulate.output, verdict.violations.first()) {
        let shortest = shrink(&History::draw(one, profile)?, broken.invariant, &settings)?;
        text = format!("{text}\n\n{}", told(&shortest));
    }
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other.context("cannot print the verdict")?,
    }
    Ok(verdict.violations.is_empty())
}

/// A shortened history: what still goes wrong in it, and how it ends.
fn told(shortest: &Shortest) -> String {
    let Shortest { history, told, attempts } = shortest;
    let plan = &history.plan.0;
    let mut text =
        format!("the shortest history that still fails has {} faults (found in {attempts} attempts):\n", plan.len());
    // Writing to a string does not fail.
    for mishap in plan {
        let _ = writeln!(
            text,
            "    {:>6} s {} ({} s, passes over {}, pick {})",
            mishap.at.as_secs(),
            mishap.fault.as_str(),
            mishap.lasting.as_secs(),
            mishap.pass_over,
            mishap.pick
        );
    }
    for violation in &told.violations {
        let _ = writeln!(text, "\n{}: {}", violation.invariant.as_str(), violation.what);
        for line in told.journal.trace(&violation.objects, violation.at, LINES) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}
