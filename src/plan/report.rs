//! The plan as a page: one self-contained HTML file in the style of a rehearsal's report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::answer::Answer;
use crate::core::facts::{InstanceType, Pod, PodShape};
use crate::core::resources::ResourceName;
use crate::core::scheduling::PlannedClaim;
use crate::sim::figures::{count, counted, dollars, percent};
use crate::sim::report::STYLE;

/// Most nodes that are drawn one by one.
const DRAWN: usize = 400;
/// Most rows of a table.
const ROWS: usize = 50;
/// Colours that pods of one shape share, as the style sheet names them.
const COLOURS: usize = 8;
/// What this page has beyond the others.
const OWN: &str = include_str!("report.css");

/// A page that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the report {} could not be written; name a file in a directory that you may write to", path.display())]
pub struct Unwritten {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes the page of an answer to a file.
pub fn write(path: &Path, answer: &Answer) -> Result<(), Unwritten> {
    std::fs::write(path, render(answer)).map_err(|source| Unwritten { path: path.to_owned(), source })
}

/// The page of an answer as HTML, complete in itself.
pub fn render(answer: &Answer) -> String {
    let unplaced = answer.unplaced();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "joiner: plan" }
                style { (PreEscaped(STYLE)) (PreEscaped(OWN)) }
            }
            body {
                header { p.kicker { "joiner · plan" } h1 { "What would be bought" } }
                main {
                    (verdict(answer, unplaced.len()))
                    section #price { h2 { "Price against the bound" } (price(answer)) }
                    @if !unplaced.is_empty() { section #unplaced { h2 { "Pods without a place" } (refusals(unplaced)) } }
                    @if !answer.input.notices.is_empty() { section #notices { h2 { "Worth knowing" } (notices(answer)) } }
                    @if !answer.plan.claims.is_empty() { section #nodes { h2 { "New nodes and their pods" } (nodes(answer)) } }
                    @if !answer.plan.existing.is_empty() { section #existing { h2 { "Existing nodes" } (existing(answer)) } }
                }
                footer { "joiner " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string()
}

fn verdict(answer: &Answer, left: usize) -> Markup {
    let placed = answer.on_new() + answer.on_existing();
    let sentence = match (placed, left) {
        (0, 0) => "No pod waits for a place.".to_owned(),
        (_, 0) => format!("All {} have a place.", counted(placed, "pod")),
        _ => format!("{} of {} have no place.", count(left as u64), counted(placed + left, "pod")),
    };
    let bound = match answer.over_bound() {
        Some(over) => format!("within {over:.1} % of the best possible"),
        None if answer.plan.claims.is_empty() => "nothing to buy".to_owned(),
        None => "no lower bound is known".to_owned(),
    };
    html! {
        section #verdict class=(if left == 0 { "good" } else { "bad" }) {
            p.sentence { (sentence) }
            div.cards {
                (card("new nodes", &count(answer.plan.claims.len() as u64), &counted(answer.on_new(), "pod")))
                (card("existing nodes used", &count(answer.plan.existing.len() as u64), &counted(answer.on_existing(), "pod")))
                (card("price per hour", &dollars(answer.plan.price), &bound))
                (card("lower bound", &dollars(answer.lower_bound), "no plan for these pods is cheaper"))
            }
        }
    }
}

fn card(name: &str, figure: &str, note: &str) -> Markup {
    html! { div.card { p.name { (name) } p.figure { (figure) } p.note { (note) } } }
}

fn price(answer: &Answer) -> Markup {
    let share = if answer.plan.price > 0.0 { 100.0 * (answer.lower_bound / answer.plan.price).min(1.0) } else { 100.0 };
    html! {
        div.bar title="price; the part that no plan can do without" { span style=(format!("width:{share:.2}%;background:var(--s3)")) {} }
        p.note { (dollars(answer.lower_bound)) " of " (dollars(answer.plan.price)) " per hour are certain: no plan that places the same pods costs less." }
    }
}

fn refusals(unplaced: Vec<(crate::core::ids::ObjectKey, Vec<String>)>) -> Markup {
    let mut groups: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (pod, reasons) in unplaced {
        groups.entry(reasons).or_default().push(pod.to_string());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a, one), (b, other)| other.len().cmp(&one.len()).then_with(|| a.cmp(b)));
    let more = groups.len().saturating_sub(ROWS);
    html! {
        table {
            thead { tr { th.number { "pods" } th { "why" } th { "which" } } }
            tbody {
                @for (reasons, pods) in groups.iter().take(ROWS) {
                    tr {
                        td.number { (count(pods.len() as u64)) }
                        td { ul { @for reason in reasons { li { (reason) } } } }
                        td { (names(pods)) }
                    }
                }
            }
        }
        @if more > 0 { p.note { "… " (counted(more, "other reason")) } }
    }
}

/// What is wrong with the input, and what in it has no effect.
fn notices(answer: &Answer) -> Markup {
    let more = answer.input.notices.len().saturating_sub(ROWS);
    html! {
        ul { @for notice in answer.input.notices.iter().take(ROWS) { li { (notice) } } }
        @if more > 0 { p.note { "… and " (count(more as u64)) " more" } }
    }
}

fn names(pods: &[String]) -> Markup {
    html! {
        @if let [pod] = pods { code { (pod) } } @else {
            details {
                summary { code { (pods.first().cloned().unwrap_or_default()) } " and " (count(pods.len() as u64 - 1)) " more" }
                @for pod in pods.iter().skip(1).take(ROWS) { code { (pod) } " " }
            }
        }
    }
}

fn nodes(answer: &Answer) -> Markup {
    let mut claims: Vec<&PlannedClaim> = answer.plan.claims.iter().collect();
    claims.sort_by(|a, b| b.price.total_cmp(&a.price).then_with(|| a.draft.name.cmp(&b.draft.name)));
    let colours = colours(&claims);
    let more = claims.len().saturating_sub(DRAWN);
    html! {
        div.nodes {
            @for claim in claims.iter().take(DRAWN) { (node(answer, claim, &colours)) }
        }
        @if more > 0 { p.note { "… and " (counted(more, "cheaper node")) " that are not drawn" } }
    }
}

/// A colour for each of the shapes that occur most often.
fn colours(claims: &[&PlannedClaim]) -> BTreeMap<Arc<PodShape>, usize> {
    let mut counts: BTreeMap<&Arc<PodShape>, usize> = BTreeMap::new();
    for pod in claims.iter().flat_map(|claim| &claim.pods) {
        *counts.entry(&pod.shape).or_default() += 1;
    }
    let mut shapes: Vec<_> = counts.into_iter().collect();
    shapes.sort_by(|(a, one), (b, other)| other.cmp(one).then_with(|| a.cmp(b)));
    shapes.into_iter().take(COLOURS).enumerate().map(|(rank, (shape, _))| (Arc::clone(shape), rank + 1)).collect()
}

fn node(answer: &Answer, claim: &PlannedClaim, colours: &BTreeMap<Arc<PodShape>, usize>) -> Markup {
    let (zones, capacity_types) = answer.places(claim);
    let kind = answer.types(claim).next().cloned();
    let name = kind.as_ref().map(|kind| kind.name.to_string()).unwrap_or_default();
    let others = claim.instance_types.len().saturating_sub(1);
    html! {
        div.node {
            p.title { strong { (name) } " " span.note { "$" (format!("{:.4}", claim.price)) "/h" } }
            p.note { (claim.draft.name) " · " (zones.join(", ")) " · " (capacity_types.join(", ")) @if others > 0 { " · or " (counted(others, "other type")) } }
            @if let Some(kind) = kind {
                @for resource in shown(&kind, claim) { (bar(&resource, &kind, claim, colours)) }
            }
            p.note { (counted(claim.pods.len(), "pod")) }
        }
    }
}

/// CPU and memory, and whatever else the pods ask for but their own number.
fn shown(kind: &InstanceType, claim: &PlannedClaim) -> Vec<ResourceName> {
    let asked = |name: &ResourceName| claim.pods.iter().any(|pod| pod.shape.requests.get(name) > 0);
    let all = kind.allocatable();
    all.iter().map(|(name, _)| name.clone()).filter(|name| *name != ResourceName::Pods && asked(name)).collect()
}

fn bar(
    resource: &ResourceName,
    kind: &InstanceType,
    claim: &PlannedClaim,
    colours: &BTreeMap<Arc<PodShape>, usize>,
) -> Markup {
    let room = kind.allocatable().get(resource).max(1) as f64;
    // Equal pods side by side are one stripe with their number.
    let mut stripes: BTreeMap<(usize, &Arc<PodShape>), Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in &claim.pods {
        let colour = colours.get(&pod.shape).copied().unwrap_or(COLOURS + 1);
        stripes.entry((colour, &pod.shape)).or_default().push(pod);
    }
    let used: i64 = claim.pods.iter().map(|pod| pod.shape.requests.get(resource)).sum();
    html! {
        div.line {
            span.note { (resource) " " (percent(used as f64, room)) }
            div.bar {
                @for ((colour, shape), pods) in &stripes {
                    @let width = 100.0 * (shape.requests.get(resource) * i64::try_from(pods.len()).unwrap_or(i64::MAX)) as f64 / room;
                    @if width > 0.0 {
                        span title=(title(pods)) style=(format!("width:{width:.2}%;background:{}", paint(*colour))) {}
                    }
                }
            }
        }
    }
}

fn paint(colour: usize) -> String {
    if colour > COLOURS { "var(--other)".to_owned() } else { format!("var(--s{colour})") }
}

fn title(pods: &[&Arc<Pod>]) -> String {
    let first = pods.first().map(|pod| pod.key.to_string()).unwrap_or_default();
    if pods.len() > 1 { format!("{first} and {} like it", pods.len() - 1) } else { first }
}

fn existing(answer: &Answer) -> Markup {
    let more = answer.plan.existing.len().saturating_sub(ROWS);
    html! {
        table {
            thead { tr { th { "node" } th.number { "pods" } th { "which" } } }
            tbody {
                @for placed in answer.plan.existing.iter().take(ROWS) {
                    @let pods: Vec<String> = placed.pods.iter().map(|pod| pod.key.to_string()).collect();
                    tr {
                        td { (answer.registered(placed).map(ToString::to_string).or_else(|| placed.claim.as_ref().map(ToString::to_string)).unwrap_or_default()) }
                        td.number { (count(pods.len() as u64)) }
                        td { (names(&pods)) }
                    }
                }
            }
        }
        @if more > 0 { p.note { "… and " (counted(more, "other node")) } }
    }
}
