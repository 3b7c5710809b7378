//! The plan for people.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::answer::Answer;
use crate::sim::figures::{count, counted, dollars, span};

/// Most lines of a table; the rest is counted.
const LINES: usize = 40;
/// Up to so many NodeClaims each has a line of its own.
const SINGLE: usize = 20;

/// The answer as tables.
pub fn table(answer: &Answer) -> String {
    let mut parts = Vec::new();
    if !answer.plan.claims.is_empty() {
        parts.push(claims(answer).to_string());
    }
    if !answer.plan.existing.is_empty() {
        parts.push(existing(answer).to_string());
    }
    if !answer.unplaced().is_empty() {
        parts.push(unplaced(answer).to_string());
    }
    parts.push(summary(answer).to_string());
    parts.join("\n")
}

fn framed<const N: usize>(header: [&str; N], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    for at in right {
        if let Some(column) = table.column_mut(*at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn claims(answer: &Answer) -> Table {
    let single = answer.plan.claims.len() <= SINGLE;
    let first = if single { "NodeClaim" } else { "nodes" };
    let header = [first, "NodePool", "instance type", "zone", "capacity type", "pods", "$/h"];
    let mut table = framed(header, if single { &[5, 6] } else { &[0, 5, 6] });
    // Lines by what they say, with how many NodeClaims, pods and dollars are behind each.
    let mut lines: BTreeMap<[String; 5], (usize, usize, f64)> = BTreeMap::new();
    for claim in &answer.plan.claims {
        let (zones, capacity_types) = answer.places(claim);
        let kind = claim.instance_types.first().map(ToString::to_string).unwrap_or_default();
        let kind = match claim.instance_types.len() {
            0 | 1 => kind,
            more => format!("{kind} (+{})", more - 1),
        };
        let name = if single { claim.draft.name.to_string() } else { String::new() };
        let key = [name, claim.draft.pool.to_string(), kind, zones.join(", "), capacity_types.join(", ")];
        let line = lines.entry(key).or_default();
        *line = (line.0 + 1, line.1 + claim.pods.len(), line.2 + claim.price);
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by(|(a, one), (b, other)| other.2.total_cmp(&one.2).then_with(|| a.cmp(b)));
    for ([name, pool, kind, zone, capacity_type], (nodes, pods, price)) in lines.iter().take(LINES) {
        let first = if single { name.clone() } else { count(*nodes as u64) };
        let price = format!("{price:.4}");
        table.add_row([&first, pool, kind, zone, capacity_type, &count(*pods as u64), &price]);
    }
    if let Some(rest @ [_, ..]) = lines.get(LINES..) {
        let sum = rest.iter().fold((0, 0, 0.0), |sum, (_, line)| (sum.0 + line.0, sum.1 + line.1, sum.2 + line.2));
        let more = format!("… {}", counted(rest.len(), "other kind"));
        let price = format!("{:.4}", sum.2);
        table.add_row([&count(sum.0 as u64), "", &more, "", "", &count(sum.1 as u64), &price]);
    }
    table
}

fn existing(answer: &Answer) -> Table {
    let mut table = framed(["existing node", "pods"], &[1]);
    for placed in answer.plan.existing.iter().take(LINES) {
        let claim = || placed.claim.as_ref().map(|claim| format!("{claim} (on its way)"));
        let name = answer.registered(placed).map(ToString::to_string).or_else(claim).unwrap_or_default();
        table.add_row([name, count(placed.pods.len() as u64)]);
    }
    if let Some(rest @ [_, ..]) = answer.plan.existing.get(LINES..) {
        let pods: usize = rest.iter().map(|placed| placed.pods.len()).sum();
        table.add_row([format!("… {} more", count(rest.len() as u64)), count(pods as u64)]);
    }
    table
}

fn unplaced(answer: &Answer) -> Table {
    let mut table = framed(["pods", "have no place because"], &[0]);
    let mut groups: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (pod, reasons) in answer.unplaced() {
        groups.entry(reasons).or_default().push(pod.to_string());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a, one), (b, other)| other.len().cmp(&one.len()).then_with(|| a.cmp(b)));
    for (reasons, pods) in groups.iter().take(LINES) {
        let example = pods.first().map_or_else(String::new, |pod| format!("\n(such as {pod})"));
        table.add_row([count(pods.len() as u64), reasons.join("\n") + &example]);
    }
    if let Some(rest @ [_, ..]) = groups.get(LINES..) {
        let pods: usize = rest.iter().map(|(_, pods)| pods.len()).sum();
        table.add_row([count(pods as u64), format!("… {}", counted(rest.len(), "other reason"))]);
    }
    table
}

fn summary(answer: &Answer) -> Table {
    let (new, old, left) = (answer.on_new(), answer.on_existing(), answer.unplaced().len());
    let mut table = framed(["plan", ""], &[]);
    table.add_row(["pods".to_owned(), count((new + old + left) as u64)]);
    table.add_row(["  on new nodes".to_owned(), count(new as u64)]);
    table.add_row(["  on existing nodes".to_owned(), count(old as u64)]);
    table.add_row(["  without a place".to_owned(), count(left as u64)]);
    table.add_row(["new nodes".to_owned(), count(answer.plan.claims.len() as u64)]);
    table.add_row(["price".to_owned(), format!("{} per hour", dollars(answer.plan.price))]);
    let bound = match answer.over_bound() {
        Some(over) => format!("{} per hour; the plan is within {over:.1} % of it", dollars(answer.lower_bound)),
        None if answer.plan.claims.is_empty() => "nothing has to be bought".to_owned(),
        None => "none is known".to_owned(),
    };
    table.add_row(["lower bound".to_owned(), bound]);
    table.add_row(["took".to_owned(), span(answer.seconds)]);
    table
}
