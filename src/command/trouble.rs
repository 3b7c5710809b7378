//! `joiner simulate --faults`: one day of trouble told in full, or many counted.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

use crate::config::{Faults, Output, Progress, Simulate};
use crate::sim::faults::Profile;

use super::rehearsal;
use super::trial::{Broken, Trial, shorten, trial};

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
    let tell = |done: u64, broken: &[Broken]| {
        // Not at the end only: there may be hours until then.
        broken.iter().take(1).for_each(say);
        if progress && (done.is_multiple_of(total.div_ceil(20)) || done == total) {
            // Progress that nobody can see is no failure.
            let _ = writeln!(std::io::stderr(), "{done} of {total} histories");
        }
    };
    let days = Trial { profile, seeds: first..=last, settings, threads };
    let mut verdict = trial(&days, &tell);
    if let Some(broken) = verdict.to_be_shortened() {
        let _ = writeln!(
            std::io::stderr(),
            "looking for the shortest history of seed {} that does so too ...",
            broken.seed
        );
        verdict.shortest = Some(shorten(&days, broken));
    }
    let text = match simulate.output {
        Output::Table => verdict.text(),
        Output::Json => verdict.json()?,
    };
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other.context("cannot print the verdict")?,
    }
    Ok(verdict.is_well())
}

/// Says what was found as soon as it is.
fn say(broken: &Broken) {
    let Broken { seed, invariant, at, what, .. } = broken;
    // It comes again on standard output.
    let seconds = at.as_secs_f64();
    let _ = writeln!(std::io::stderr(), "seed {seed} breaks {} after {seconds:.0} s: {what}", invariant.as_str());
}
