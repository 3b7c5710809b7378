//! The tables of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use maud::{Markup, html};

use crate::sim::figures::{bytes, count, counted, dollars, percent, span};
use crate::sim::outcome::{NodeRow, Outcome, Unhappy};

/// Most NodeClaims that are listed one by one.
const LISTED: usize = 400;
/// Most pods that are named for a reason.
const NAMED: usize = 20;
/// Most reasons that are listed.
const REASONS: usize = 50;

/// The figures of the summary.
pub(super) fn summary(outcome: &Outcome) -> Markup {
    let used = |requested: f64, allocatable: f64| percent(requested, allocatable);
    let mean = |value: fn(&crate::sim::outcome::Sample) -> f64| -> f64 {
        let pairs = outcome.samples.windows(2);
        pairs.map(|pair| value(&pair[0]) * (pair[1].at_seconds - pair[0].at_seconds)).sum()
    };
    let cpu = used(mean(|s| s.requested_cpu), mean(|s| s.allocatable_cpu));
    let memory = used(mean(|s| s.requested_memory), mean(|s| s.allocatable_memory));
    let hours = outcome.nodes.iter().map(|node| node.hours(outcome.simulated_seconds)).sum::<f64>();
    let rows = [
        ("Simulated time", span(outcome.simulated_seconds)),
        ("Pods that wanted a node", count(outcome.pods_total)),
        ("Pods bound", count(outcome.pods_bound)),
        ("Pods without a node", count(outcome.unplaced.len() as u64)),
        ("Nodes launched", count(outcome.nodes_launched() as u64)),
        ("Nodes at the peak", count(outcome.nodes_peak)),
        ("Nodes at the end", count(outcome.nodes_final() as u64)),
        ("Node-hours", format!("{hours:.1}")),
        ("Cost", dollars(outcome.price_total)),
        ("Highest price per hour", dollars(outcome.price_peak_per_hour)),
        ("CPU requested, of what was paid for", cpu),
        ("Memory requested, of what was paid for", memory),
        ("Seed", outcome.seed.to_string()),
        ("The rehearsal took", format!("{}, {}", span(outcome.wall_seconds), bytes(outcome.peak_memory_bytes as f64))),
    ];
    html! {
        table {
            tbody { @for (name, value) in rows { tr { th scope="row" { (name) } td.number { (value) } } } }
        }
    }
}

/// How long pods waited.
pub(super) fn waits(outcome: &Outcome) -> Markup {
    let waits = outcome.percentiles();
    let rows = [("p50", waits.p50), ("p90", waits.p90), ("p99", waits.p99), ("longest", waits.max)];
    html! {
        table {
            thead { tr { th { "share of pods" } @for (name, _) in rows { th.number { (name) } } } }
            tbody { tr {
                th scope="row" { "waited at most" }
                @for (_, wait) in rows { td.number { (wait.map_or_else(|| "–".to_owned(), span)) } }
            } }
        }
    }
}

/// Pods without a node, by reason.
pub(super) fn unplaced(groups: &[Unhappy<'_>]) -> Markup {
    let (groups, more) = groups.split_at(groups.len().min(REASONS));
    let left = more.iter().map(|group| group.pods.len()).sum::<usize>();
    html! {
        table {
            thead { tr { th.number { "pods" } th { "why" } th { "which" } } }
            tbody {
                @for group in groups {
                    tr {
                        td.number { (count(group.pods.len() as u64)) }
                        td { @match group.reasons {
                            [] => { "no reason was given" }
                            [reason] => { (reason) }
                            reasons => { ul { @for reason in reasons { li { (reason) } } } }
                        } }
                        td { (which(&group.pods)) }
                    }
                }
            }
        }
        @if left > 0 { p { "… and " (counted(left, "more pod")) " for " (counted(more.len(), "other reason")) } }
    }
}

fn which(pods: &[&str]) -> Markup {
    let more = pods.len().saturating_sub(NAMED);
    html! {
        @if let [pod] = pods { code { (pod) } } @else {
            details {
                summary { code { (pods.first().copied().unwrap_or_default()) } " and " (count(pods.len() as u64 - 1)) " more" }
                @for pod in pods.iter().skip(1).take(NAMED) { code { (pod) } " " }
                @if more > 1 { "…" }
            }
        }
    }
}

/// What groups of nodes came to.
#[derive(Default)]
struct Share<'o> {
    launched: usize,
    at_end: usize,
    hours: f64,
    cost: f64,
    types: BTreeSet<&'o str>,
}

/// Nodes and cost by NodePool, and by instance type.
pub(super) fn shares(outcome: &Outcome) -> Markup {
    let pool = |node: &NodeRow| if node.pool.is_empty() { "(none)".into() } else { Arc::clone(&node.pool) };
    html! {
        h3 { "By NodePool" }
        (share(outcome, "NodePool", pool))
        h3 { "By instance type and capacity type" }
        (share(outcome, "instance type", |node| format!("{}, {}", node.instance_type, node.capacity_type).into()))
    }
}

fn share(outcome: &Outcome, name: &str, key: impl Fn(&NodeRow) -> Arc<str>) -> Markup {
    let mut shares = BTreeMap::<Arc<str>, Share<'_>>::new();
    for node in &outcome.nodes {
        let share = shares.entry(key(node)).or_default();
        let hours = node.hours(outcome.simulated_seconds);
        share.launched += 1;
        share.at_end += usize::from(node.gone.is_none());
        share.hours += hours;
        share.cost += hours * node.price_per_hour;
        share.types.insert(&node.instance_type);
    }
    let mut shares = shares.into_iter().collect::<Vec<_>>();
    shares.sort_by(|one, other| other.1.cost.total_cmp(&one.1.cost));
    let all = shares.iter().map(|(_, share)| share.cost).sum::<f64>();
    let types = shares.iter().any(|(_, share)| share.types.len() > 1);
    html! {
        table {
            thead { tr {
                th { (name) } th.number { "NodeClaims" } th.number { "at the end" } th.number { "node-hours" }
                th.number { "cost" } th.number { "share of cost" }
                @if types { th.number { "instance types" } }
            } }
            tbody {
                @for (name, share) in &shares {
                    tr {
                        th scope="row" { (name) }
                        td.number { (count(share.launched as u64)) }
                        td.number { (count(share.at_end as u64)) }
                        td.number { (format!("{:.1}", share.hours)) }
                        td.number { (dollars(share.cost)) }
                        td.number { (percent(share.cost, all)) }
                        @if types { td.number { (count(share.types.len() as u64)) } }
                    }
                }
            }
        }
    }
}

/// NodeClaims one by one.
pub(super) fn claims(outcome: &Outcome) -> Markup {
    let end = outcome.simulated_seconds;
    html! {
        details {
            summary {
                (counted(outcome.nodes.len(), "NodeClaim"))
                @if outcome.nodes.len() > LISTED { ", of which the first " (LISTED) " are listed" }
            }
            table {
                thead { tr {
                    th { "NodeClaim" } th { "NodePool" } th { "instance type" } th { "zone" } th { "capacity type" }
                    th.number { "launched at" } th.number { "ready after" } th.number { "gone at" } th.number { "cost" }
                } }
                tbody {
                    @for node in outcome.nodes.iter().take(LISTED) {
                        tr {
                            th scope="row" { (node.name) }
                            td { (node.pool) } td { (node.instance_type) } td { (node.zone) } td { (node.capacity_type) }
                            td.number { (span(node.launched)) }
                            td.number { (node.ready.map_or_else(|| "never".to_owned(), |at| span(at - node.launched))) }
                            td.number { (node.gone.map_or_else(|| "–".to_owned(), span)) }
                            td.number { (dollars(node.hours(end) * node.price_per_hour)) }
                        }
                    }
                }
            }
        }
    }
}
