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
    /// Kinds of fault that never did, though there were enough histories for all.
    pub never_struck: Vec<&'static str>,
    /// How often the person on call had to decide something.
    pub interventions: u64,
    /// What was broken, in order of seeds.
    pub violations: Vec<Broken>,
    /// The shortest history found that breaks the first of them, or why none was found.
    pub shortest: Option<Result<Shortest, String>>,
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
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    never_struck: &'v [&'static str],
    interventions: u64,
    violations: Vec<JsonBroken<'v>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortest: Option<JsonShortest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_shortened: Option<&'v str>,
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
        self.interventions += told.interventions;
        for (fault, number) in &told.faults {
            *self.faults.entry(fault).or_default() += number;
        }
    }

    /// Whether nothing was broken, and everything was tried that was to be.
    pub fn is_well(&self) -> bool {
        self.violations.is_empty() && self.never_struck.is_empty()
    }

    /// The first violation. What is no history has no shorter one.
    pub fn to_be_shortened(&self) -> Option<&Broken> {
        self.violations.iter().find(|broken| broken.invariant != Invariant::OneHistory)
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
            never_struck: &self.never_struck,
            interventions: self.interventions,
            violations: self.violations.iter().map(JsonBroken::of).collect(),
            shortest: self.shortest.as_ref().and_then(|found| found.as_ref().ok()).map(JsonShortest::of),
            not_shortened: self.shortest.as_ref().and_then(|found| found.as_ref().err()).map(String::as_str),
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
        let _ = writeln!(text, "{:>8} interventions of the person on call", self.interventions);
        if !self.never_struck.is_empty() {
            let kinds = self.never_struck.join(", ");
            let _ = writeln!(
                text,
                "\nin {} histories these faults never struck, which says nothing of them: {kinds}",
                self.seeds
            );
        }
        for broken in &self.violations {
            let _ = writeln!(text, "\nseed {}: {}: {}", broken.seed, broken.invariant.as_str(), broken.what);
            for line in &broken.trace {
                let _ = writeln!(text, "    {line}");
            }
        }
        let _ = write!(text, "{} violations", self.violations.len());
        match &self.shortest {
            Some(Ok(shortest)) => drop(write!(text, "\n\n{}", shortest.text())),
            Some(Err(why)) => drop(write!(text, "\n\nno shorter history was found: {why}")),
            None => {}
        }
        text
    }
}
