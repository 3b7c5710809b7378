//! The summary at the end of a rehearsal: as a table for people, as JSON for programs.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::figures;
use super::outcome::Outcome;

/// Most reasons that the table lists; JSON has them all.
const REASONS: usize = 12;

/// The JSON form. The last two fields say how the rehearsal went on this machine; all before them is the same for the same seed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'o> {
    title: &'o str,
    pods: Pods<'o>,
    nodes: Nodes,
    price: Price,
    time_to_bound_seconds: Waits,
    simulated_seconds: f64,
    seed: u64,
    violations: &'o [String],
    wall_seconds: f64,
    peak_memory_bytes: u64,
}

#[derive(Serialize)]
struct Pods<'o> {
    total: u64,
    bound: u64,
    unplaced: Vec<Unplaced<'o>>,
}

#[derive(Serialize)]
struct Unplaced<'o> {
    pod: &'o str,
    reasons: &'o [String],
}

#[derive(Serialize)]
struct Nodes {
    launched: usize,
    peak: u64,
    #[serde(rename = "final")]
    at_end: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Price {
    total: f64,
    peak_per_hour: f64,
}

#[derive(Serialize)]
struct Waits {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
}

/// The summary as indented JSON with a fixed order of keys. Percentiles are null when no pod was bound.
pub fn json(outcome: &Outcome) -> Result<String, serde_json::Error> {
    let waits = outcome.percentiles();
    serde_json::to_string_pretty(&Summary {
        title: &outcome.title,
        pods: Pods {
            total: outcome.pods_total,
            bound: outcome.pods_bound,
            unplaced: outcome.unplaced.iter().map(|u| Unplaced { pod: &u.pod, reasons: &u.reasons }).collect(),
        },
        nodes: Nodes { launched: outcome.nodes_launched(), peak: outcome.nodes_peak, at_end: outcome.nodes_final() },
        price: Price { total: money(outcome.price_total), peak_per_hour: money(outcome.price_peak_per_hour) },
        time_to_bound_seconds: Waits { p50: waits.p50, p90: waits.p90, p99: waits.p99 },
        simulated_seconds: outcome.simulated_seconds,
        seed: outcome.seed,
        violations: &outcome.violations,
        wall_seconds: outcome.wall_seconds,
        peak_memory_bytes: outcome.peak_memory_bytes,
    })
}

/// A price to a millionth of a dollar: what is beyond is the dust of floating point.
fn money(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}

/// The summary as a table, with the pods that have no node below it.
pub fn table(outcome: &Outcome) -> String {
    let waits = outcome.percentiles();
    let wait = |wait: Option<f64>| wait.map_or_else(|| "–".to_owned(), figures::span);
    let pods = |number: u64| figures::count(number);
    let rows = [
        ("simulated", format!("{} (seed {})", figures::span(outcome.simulated_seconds), outcome.seed)),
        ("pods", pods(outcome.pods_total)),
        ("  bound", pods(outcome.pods_bound)),
        ("  unplaced", pods(outcome.unplaced.len() as u64)),
        ("time to bound", format!("p50 {}, p90 {}, p99 {}", wait(waits.p50), wait(waits.p90), wait(waits.p99))),
        (
            "nodes",
            format!(
                "{} launched, {} at most, {} at the end",
                pods(outcome.nodes_launched() as u64),
                pods(outcome.nodes_peak),
                pods(outcome.nodes_final() as u64)
            ),
        ),
        (
            "price",
            format!(
                "{}, at most {} per hour",
                figures::dollars(outcome.price_total),
                figures::dollars(outcome.price_peak_per_hour)
            ),
        ),
        (
            "took",
            format!("{}, {}", figures::span(outcome.wall_seconds), figures::bytes(outcome.peak_memory_bytes as f64)),
        ),
    ];
    let mut table = framed([outcome.title.as_str(), ""]);
    for (name, value) in rows {
        table.add_row([name, &value]);
    }
    let mut text = table.to_string();
    if !outcome.unplaced.is_empty() {
        let mut table = framed(["pods", "have no node because"]);
        if let Some(column) = table.column_mut(0) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let groups = outcome.unplaced_by_reason();
        for group in groups.iter().take(REASONS) {
            let example = group.pods.first().map_or_else(String::new, |pod| format!("\n(such as {pod})"));
            table.add_row([pods(group.pods.len() as u64), group.reasons.join("\n") + &example]);
        }
        if let Some(more @ [_, ..]) = groups.get(REASONS..) {
            let left = more.iter().map(|group| group.pods.len() as u64).sum();
            table.add_row([pods(left), format!("… {}", figures::counted(more.len(), "other reason"))]);
        }
        text = format!("{text}\n{table}");
    }
    for violation in &outcome.violations {
        text = format!("{text}\nviolation: {violation}");
    }
    text
}

fn framed(header: [&str; 2]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    table
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
