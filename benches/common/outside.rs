//! What can be read from outside of a process that runs beside the benchmark.
#![allow(dead_code, reason = "each benchmark needs a part of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Peak resident memory in MB; 0 where the system does not tell.
pub(crate) fn peak_memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(proc(process).join("status")).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    peak.unwrap_or_default() * 1024.0 / 1e6
}

/// CPU time so far, in seconds.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    crate::common::controlplane::cpu_seconds(&proc(process).join("stat"))
}

/// Requests to the API server so far, by verb and resource.
pub(crate) fn requests(metrics: &str) -> BTreeMap<String, f64> {
    series(metrics, "joiner_api_requests_total").map(|(labels, value)| (spoken(labels), value)).collect()
}

/// What has come since, part by part.
pub(crate) fn since(mut after: BTreeMap<String, f64>, before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    for (name, value) in &mut after {
        *value -= before.get(name).copied().unwrap_or_default();
    }
    after
}

/// The series of a family: what stands between the braces, and the value.
pub(crate) fn series<'a>(metrics: &'a str, family: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    metrics.lines().filter_map(move |line| {
        let (labels, value) = line.strip_prefix(family)?.strip_prefix('{')?.split_once("} ")?;
        Some((labels, value.parse().ok()?))
    })
}

fn proc(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}"))
}

/// `verb="patch",resource="pods"` as `patch pods`.
fn spoken(labels: &str) -> String {
    let values: Vec<&str> = labels.split(',').filter_map(|label| label.split('"').nth(1)).collect();
    values.join(" ")
}
