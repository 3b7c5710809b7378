//! What a trial found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::history::Told;
use super::shrink::{LINES, Shortest};
use crate::sim::invariants::Invariant;

/// What a trial found.
#[derive(Clone, Default)]
pub struct Verdict {
    /// How many histories were played.
    pub seeds: u64,
    /// How much time passed in all of them.
    pub simulated: Duration,
    /// Most machines at a time in any of them.
    pub nodes_peak: usize,
    /// How often each fault struck.
    pub faults: BTreeMap<&'static str, u64>,
    /// What was broken, in order of seeds.
    pub violations: Vec<Broken>,
    /// The shortest history found that breaks the first of them.
    pub shortest: Option<Shortest>,
    /// How long it took in our time.
    pub wall_seconds: f64,
}

/// A promise that was broken in one history.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The seed of the history.
    pub seed: u64,
    /// Which promise.
    pub invariant: Invariant,
    /// When, from the start.
    pub at: Duration,
    /// The objects concerned.
    pub objects: Vec<String>,
    /// One sentence.
    pub what: String,
    /// The last things that happened to those objects.
    pub trace: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'v> {
    seeds: u64,
    simulated_seconds: f64,
    nodes_peak: usize,
    faults: &'v BTreeMap<&'static str, u64>,
    violations: Vec<JsonBroken<'v>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortest: Option<JsonShortest>,
    wall_seconds: f64,
    seeds_per_second: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonBroken<'v> {
    seed: u64,
    invariant: &'static str,
    at_seconds: f64,
    objects: &'v [String],
    what: &'v str,
    trace: &'v [String],
}

/// A shortened history.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonShortest {
    seed: u64,
    attempts: usize,
    cut_off: bool,
    faults: Vec<JsonMishap>,
    what: Vec<String>,
    trace: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonMishap {
    at_seconds: u64,
    fault: &'static str,
    lasting_seconds: u64,
    pass_over: u64,
    pick: u64,
}

impl JsonShortest {
    fn of(shortest: &Shortest) -> Self {
        let faults = shortest.history.plan.0.iter().map(|mishap| JsonMishap {
            at_seconds: mishap.at.as_secs(),
            fault: mishap.fault.as_str(),
            lasting_seconds: mishap.lasting.as_secs(),
            pass_over: mishap.pass_over,
            pick: mishap.pick,
        });
        Self {
            seed: shortest.history.seed,
            attempts: shortest.attempts,
            cut_off: shortest.cut_off,
            faults: faults.collect(),
            what: shortest.told.violations.iter().map(|violation| violation.what.clone()).collect(),
            trace: shortest.trace(LINES),
        }
    }
}

impl<'v> JsonBroken<'v> {
    fn of(broken: &'v Broken) -> Self {
        let Broken { seed, invariant, at, objects, what, trace } = broken;
        Self { seed: *seed, invariant: invariant.as_str(), at_seconds: at.as_secs_f64(), objects, what, trace }
    }
}

impl Verdict {
    /// Adds a history.
    pub(super) fn count(&mut self, told: &Told) {
        self.seeds += 1;
        self.simulated += told.simulated;
        self.nodes_peak = self.nodes_peak.max(told.peak);
        for (fault, number) in &told.faults {
            *self.faults.entry(fault).or_default() += number;
        }
    }

    /// Histories a second.
    pub fn seeds_per_second(&self) -> f64 {
        if self.wall_seconds > 0.0 { self.seeds as f64 / self.wall_seconds } else { 0.0 }
    }

    /// As indented JSON with a fixed order of keys. The last two say how it went on this machine; all before them is the same for the
    /// same seeds.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&Json {
            seeds: self.seeds,
            simulated_seconds: self.simulated.as_secs_f64(),
            nodes_peak: self.nodes_peak,
            faults: &self.faults,
            violations: self.violations.iter().map(JsonBroken::of).collect(),
            shortest: self.shortest.as_ref().map(JsonShortest::of),
            wall_seconds: self.wall_seconds,
            seeds_per_second: self.seeds_per_second(),
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} histories, {:.0} simulated hours, at most {} machines, {:.1} s ({:.2} histories a second)\n",
            self.seeds,
            self.simulated.as_secs_f64() / 3600.0,
            self.nodes_peak,
            self.wall_seconds,
            self.seeds_per_second()
        );
        // Writing to a string does not fail.
        for (fault, number) in &self.faults {
            let _ = writeln!(text, "{number:>8} {fault}");
        }
        for broken in &self.violations {
            let _ = writeln!(text, "\nseed {}: {}: {}", broken.seed, broken.invariant.as_str(), broken.what);
            for line in &broken.trace {
                let _ = writeln!(text, "    {line}");
            }
        }
        let _ = write!(text, "{} violations", self.violations.len());
        if let Some(shortest) = &self.shortest {
            let _ = write!(text, "\n\n{}", shortest.text());
        }
        text
    }
}
