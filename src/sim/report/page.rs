//! The page: the verdict first, then charts, then tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::sim::figures::{count, counted, dollars, span};
use crate::sim::outcome::{Outcome, Sample};

use super::chart::{Fault, Frame, distribution, draw, filled, line, stacked};
use super::palette::{Colour, SERIES};
use super::{axis, gantt, series, tables};

/// The style sheet of all reports, which also gives the colours their values.
pub const STYLE: &str = include_str!("style.css");

/// A report that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A chart could not be drawn; as charts are drawn in memory, this is a defect.
    #[error("a chart of the report could not be drawn")]
    Draw(#[source] Fault),
    /// The file could not be written.
    #[error("the report {} could not be written; name a file in a directory that you may write to", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes the report of an outcome to a file.
pub fn write(path: &Path, outcome: &Outcome) -> Result<(), Error> {
    let page = render(outcome)?;
    std::fs::write(path, page).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// The report of an outcome as HTML, complete in itself.
pub fn render(outcome: &Outcome) -> Result<String, Error> {
    let charts = charts(outcome).map_err(Error::Draw)?;
    let groups = outcome.unplaced_by_reason();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "joiner: " (outcome.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.kicker { "joiner · report of a rehearsal" }
                    h1 { (outcome.title) }
                    dl.facts {
                        div { dt { "Simulated time" } dd { (span(outcome.simulated_seconds)) } }
                        @for (name, value) in &outcome.facts { div { dt { (name) } dd { (value) } } }
                        div { dt { "Seed" } dd { (outcome.seed) } }
                    }
                }
                main {
                    (verdict(outcome))
                    @if !groups.is_empty() {
                        section #unplaced {
                            h2 { "Pods without a node" }
                            (tables::unplaced(&groups))
                        }
                    }
                    (charts)
                    section #pools { h2 { "NodePools and NodeClaims" } (tables::shares(outcome)) (tables::claims(outcome)) }
                    section #summary { h2 { "Summary" } (tables::summary(outcome)) }
                }
                footer { "joiner " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    Ok(page.into_string())
}

/// What a reader came for.
fn verdict(outcome: &Outcome) -> Markup {
    let left = outcome.unplaced.len();
    let good = left == 0 && outcome.violations.is_empty();
    let sentence = match (outcome.pods_total, left) {
        (0, _) => "No pod wanted a node.".to_owned(),
        (1, 0) => "The only pod found a node.".to_owned(),
        (all, 0) => format!("All {} pods found a node.", count(all)),
        (all, left) => format!(
            "{} of {} found no node.",
            count(left as u64),
            counted(usize::try_from(all).unwrap_or(usize::MAX), "pod")
        ),
    };
    let waits = outcome.percentiles();
    let wait = |wait: Option<f64>| wait.map_or_else(|| "–".to_owned(), span);
    html! {
        section #verdict class=(if good { "good" } else { "bad" }) {
            p.sentence { (sentence) }
            @if !outcome.violations.is_empty() {
                p { (counted(outcome.violations.len(), "rule")) " that must always hold did not:" }
                ul { @for violation in &outcome.violations { li { (violation) } } }
            }
            div.cards {
                (card("pods bound", &count(outcome.pods_bound), &format!("of {}", count(outcome.pods_total))))
                (card("pods without a node", &count(left as u64), if left == 0 { "at the end" } else { "at the end; reasons below" }))
                (card("nodes launched", &count(outcome.nodes_launched() as u64),
                    &format!("{} at the peak, {} at the end", count(outcome.nodes_peak), count(outcome.nodes_final() as u64))))
                (card("cost", &dollars(outcome.price_total), &format!("at most {} per hour", dollars(outcome.price_peak_per_hour))))
                (card("time to bound, median", &wait(waits.p50), &format!("p90 {}, p99 {}", wait(waits.p90), wait(waits.p99))))
            }
        }
    }
}

fn card(name: &str, figure: &str, note: &str) -> Markup {
    html! { div.card { p.name { (name) } p.figure { (figure) } p.note { (note) } } }
}

/// All charts, in the order of the questions that a reader asks.
fn charts(outcome: &Outcome) -> Result<Markup, Fault> {
    let ranked = series::ranked_types(outcome);
    let bound = !outcome.seconds_to_bound.is_empty();
    Ok(html! {
        section #pods {
            h2 { "Pods" }
            div.pair {
                (figure("Pods waiting for a node", &[], &pending(outcome)?))
                @if bound {
                    div { (figure("How long pods waited", &[], &waits(outcome)?)) (tables::waits(outcome)) }
                }
            }
        }
        section #nodes {
            h2 { "Nodes" }
            (figure("Nodes by instance type", &legend(&ranked), &by_type(outcome, &ranked)?))
            (timeline(outcome, &ranked)?)
        }
        section #resources {
            h2 { "Requested against allocatable" }
            div.pair {
                (figure("CPU", &USE, &usage(outcome, "cores", |s| s.requested_cpu, |s| s.allocatable_cpu)?))
                (figure("Memory", &USE, &usage(outcome, "GiB", |s| s.requested_memory / GIB, |s| s.allocatable_memory / GIB)?))
            }
        }
        section #price {
            h2 { "Price" }
            div.pair {
                (figure("Price per hour", &[], &money(outcome, "USD per hour", |s| s.price_per_hour)?))
                (figure("Spent so far", &[], &money(outcome, "USD", |s| s.cumulative_price)?))
            }
        }
    })
}

/// Bytes in a GiB.
const GIB: f64 = 1_073_741_824.0;

/// What the colours of a use chart mean.
const USE: [(Colour, &str); 2] = [(Colour::Series(0), "requested"), (Colour::Series(5), "allocatable")];

fn figure(title: &str, legend: &[(Colour, &str)], svg: &str) -> Markup {
    html! {
        figure {
            figcaption { (title) }
            @if !legend.is_empty() {
                ul.legend {
                    @for (colour, name) in legend {
                        li { span.swatch style=(format!("background:{}", colour.variable())) {} (name) }
                    }
                }
            }
            (PreEscaped(svg))
        }
    }
}

fn highest(corners: &[(f64, f64)]) -> f64 {
    corners.iter().map(|corner| corner.1).fold(0.0, f64::max)
}

fn pending(outcome: &Outcome) -> Result<String, Fault> {
    let corners = series::course(outcome, |sample| sample.pending as f64);
    let frame = Frame::half(axis::time(outcome.simulated_seconds), axis::counts(highest(&corners), "pods"));
    draw(&frame, "pending pods over time", |plot| filled(plot, &corners, Colour::Series(5)))
}

fn waits(outcome: &Outcome) -> Result<String, Fault> {
    let percentiles = outcome.percentiles();
    let marked = [("p50", 50.0, percentiles.p50), ("p90", 90.0, percentiles.p90), ("p99", 99.0, percentiles.p99)];
    let marked = marked.into_iter().filter_map(|(name, share, wait)| Some((name, share, wait?))).collect::<Vec<_>>();
    distribution(&outcome.waits(), &marked)
}

/// The colours of instance types, the lump of the rest last.
fn legend(ranked: &[Arc<str>]) -> Vec<(Colour, &str)> {
    let mut legend =
        ranked.iter().take(SERIES).enumerate().map(|(rank, name)| (Colour::of(rank), &**name)).collect::<Vec<_>>();
    if ranked.len() > SERIES {
        legend.push((Colour::Other, "other"));
    }
    legend
}

fn by_type(outcome: &Outcome, ranked: &[Arc<str>]) -> Result<String, Fault> {
    let layers = series::layers(outcome, ranked);
    let most = layers.last().map_or(0.0, |top| highest(&top.upper));
    let frame = Frame::wide(axis::time(outcome.simulated_seconds), axis::counts(most, "nodes"));
    draw(&frame, "nodes by instance type over time", |plot| stacked(plot, &layers))
}

fn timeline(outcome: &Outcome, ranked: &[Arc<str>]) -> Result<Markup, Fault> {
    let rank = |node: &crate::sim::outcome::NodeRow| {
        ranked.iter().position(|name| *name == node.instance_type).unwrap_or(SERIES)
    };
    let timeline = gantt::timeline(outcome, rank)?;
    let title = if timeline.nodes_in_row > 1 {
        format!(
            "When nodes were there: each row stands for {}, the stronger the more of them",
            counted(timeline.nodes_in_row, "node")
        )
    } else {
        "When each node was there: pale from launch to ready, colours as above".to_owned()
    };
    Ok(figure(&title, &[], &timeline.svg))
}

fn usage(
    outcome: &Outcome,
    unit: &str,
    requested: impl Fn(&Sample) -> f64,
    allocatable: impl Fn(&Sample) -> f64,
) -> Result<String, Fault> {
    let (requested, allocatable) = (series::course(outcome, requested), series::course(outcome, allocatable));
    let most = highest(&requested).max(highest(&allocatable));
    let frame = Frame::half(axis::time(outcome.simulated_seconds), axis::decimals(most, unit));
    draw(&frame, &format!("requested and allocatable {unit} over time"), |plot| {
        filled(plot, &requested, Colour::Series(0))?;
        line(plot, &allocatable, Colour::Series(5))
    })
}

fn money(outcome: &Outcome, unit: &str, price: impl Fn(&Sample) -> f64) -> Result<String, Fault> {
    let corners = series::course(outcome, price);
    let frame = Frame::half(axis::time(outcome.simulated_seconds), axis::decimals(highest(&corners), unit));
    draw(&frame, &format!("{unit} over time"), |plot| filled(plot, &corners, Colour::Series(2)))
}
