//! `/actors.json`: one page of the live tree.
//!
//! Ten thousand NodeClaims are ten thousand actors. The tree is known without asking any of them; only those on the page are asked
//! what they are doing. A filter by state, and counts by state, have to ask everybody and say so in the documentation of the parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;

use crate::actors::runtime::{House, Kind, View};

use super::tree::{Branch, ordered};

/// How long an actor has to say what it is doing. Handlers take milliseconds; one that takes longer is shown as silent.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long all of them together have when everybody is asked.
const PATIENCE_FOR_ALL: Duration = Duration::from_secs(5);
/// Actors on a page, unless asked otherwise.
const PER_PAGE: usize = 100;
/// Most actors on a page.
const MOST_PER_PAGE: usize = 1000;

/// What a request asks for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Wanted {
    /// Only this kind.
    kind: Option<Kind>,
    /// Only names that contain this, whatever the case.
    name: Option<String>,
    /// Only states that contain this, whatever the case. Asks every actor that the other filters leave.
    state: Option<String>,
    /// Only this actor and those below it.
    root: Option<u64>,
    /// Leave out what is below these actors.
    collapsed: BTreeSet<u64>,
    /// Count states, which asks every actor that the filters leave.
    states: bool,
    /// Which page, from 1.
    page: usize,
    /// How many actors on a page.
    per_page: usize,
}

impl Wanted {
    /// Reads `kind`, `name`, `state`, `id`, `collapse` (ids with commas), `states` (`true`), `page` and `per_page`.
    pub(super) fn read(query: &BTreeMap<String, String>) -> Result<Self, String> {
        let word = |key: &str| query.get(key).map(|value| value.trim()).filter(|value| !value.is_empty());
        let number = |key: &str, least: usize, most: usize, default: usize| match word(key) {
            None => Ok(default),
            Some(text) => text
                .parse::<usize>()
                .ok()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| format!("{key}={text} is not a number from {least} to {most}")),
        };
        let id = |key: &str, text: &str| text.parse::<u64>().map_err(|_| format!("{key}={text}: an id is a number"));
        let kind = match word("kind") {
            None => None,
            Some(text) => Some(Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
                let kinds = Kind::ALL.map(Kind::as_str).join(", ");
                format!("kind={text} is not a kind of actor; there are {kinds}")
            })?),
        };
        let collapsed = word("collapse").unwrap_or_default().split(',').filter(|text| !text.is_empty());
        Ok(Self {
            kind,
            name: word("name").map(str::to_lowercase),
            state: word("state").map(str::to_lowercase),
            root: word("id").map(|text| id("id", text)).transpose()?,
            collapsed: collapsed.map(|text| id("collapse", text)).collect::<Result<_, _>>()?,
            states: word("states") == Some("true"),
            page: number("page", 1, usize::MAX, 1)?,
            per_page: number("per_page", 1, MOST_PER_PAGE, PER_PAGE)?,
        })
    }
}

/// One page of the tree.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing {
    now: Timestamp,
    /// Whether this joiner may change anything: it holds the lease and is not shutting down.
    may_write: bool,
    /// Calls that have not ended.
    operations_under_way: u64,
    /// Live actors by kind, all of them.
    kinds: IndexMap<&'static str, usize>,
    /// Actors by kind and state, those that match; only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<BTreeMap<&'static str, BTreeMap<String, usize>>>,
    /// How many actors match.
    matching: usize,
    page: usize,
    pages: usize,
    per_page: usize,
    actors: Vec<Line>,
}

/// One actor.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: u64,
    parent: Option<u64>,
    depth: usize,
    children: usize,
    kind: &'static str,
    name: String,
    /// Whether it said in time what it is doing.
    answered: bool,
    state: String,
    waits_for: Option<String>,
    born: Timestamp,
    age_seconds: f64,
    mailbox_depth: u64,
    messages_handled: u64,
    messages_dropped: u64,
    busy_seconds: f64,
    restarts: u64,
    last_error: Option<Failure>,
    deadlines: Vec<Deadline>,
    timeline: Vec<Step>,
    details: IndexMap<String, String>,
}

#[derive(Serialize, Debug)]
struct Failure {
    at: Timestamp,
    error: String,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Deadline {
    what: String,
    at: Timestamp,
    in_seconds: f64,
}

#[derive(Serialize, Debug)]
struct Step {
    at: Timestamp,
    what: String,
    /// Until the next step; for the last one, until now.
    seconds: f64,
    /// Whether it is the last one so far.
    ongoing: bool,
}

/// Reads one page.
pub(super) async fn page(house: &House, wanted: &Wanted) -> Listing {
    let now = house.clock.now();
    let outline = house.observations.outline();
    let mut kinds = IndexMap::new();
    for kind in Kind::ALL {
        kinds.insert(kind.as_str(), 0);
    }
    for actor in &outline {
        *kinds.entry(actor.kind.as_str()).or_default() += 1;
    }
    kinds.retain(|_, count| *count > 0);
    let mut lines = ordered(outline, wanted.root, &wanted.collapsed);
    lines.retain(|line| {
        wanted.kind.is_none_or(|kind| line.actor.kind == kind)
            && wanted.name.as_ref().is_none_or(|part| line.actor.name.to_lowercase().contains(part))
    });
    let mut views = BTreeMap::new();
    let asks_all = wanted.state.is_some() || wanted.states;
    if asks_all {
        let ids: Vec<u64> = lines.iter().map(|line| line.actor.id).collect();
        views = house.observations.ask(PATIENCE_FOR_ALL, &ids).await;
    }
    if let Some(part) = &wanted.state {
        lines.retain(|line| state(views.get(&line.actor.id)).to_lowercase().contains(part));
    }
    let states = wanted.states.then(|| count_states(&lines, &views));
    let matching = lines.len();
    let pages = matching.div_ceil(wanted.per_page).max(1);
    // Past the end, the last page is more use than none: actors come and go between two requests.
    let at = wanted.page.min(pages);
    let shown: Vec<Branch> = lines.into_iter().skip((at - 1) * wanted.per_page).take(wanted.per_page).collect();
    if !asks_all {
        let ids: Vec<u64> = shown.iter().map(|line| line.actor.id).collect();
        views = house.observations.ask(PATIENCE, &ids).await;
    }
    Listing {
        now,
        may_write: house.operations.may_write(),
        operations_under_way: house.operations.under_way(),
        kinds,
        states,
        matching,
        page: at,
        pages,
        per_page: wanted.per_page,
        actors: shown.into_iter().map(|branch| Line::new(branch, &mut views, now)).collect(),
    }
}

fn state(view: Option<&View>) -> &str {
    view.map_or("silent", |view| &view.state)
}

fn count_states(lines: &[Branch], views: &BTreeMap<u64, View>) -> BTreeMap<&'static str, BTreeMap<String, usize>> {
    let mut counts: BTreeMap<&'static str, BTreeMap<String, usize>> = BTreeMap::new();
    for line in lines {
        let of_kind = counts.entry(line.actor.kind.as_str()).or_default();
        *of_kind.entry(state(views.get(&line.actor.id)).to_owned()).or_default() += 1;
    }
    counts
}

impl Line {
    fn new(branch: Branch, views: &mut BTreeMap<u64, View>, now: Timestamp) -> Self {
        let Branch { actor, depth, children } = branch;
        let view = views.remove(&actor.id);
        let answered = view.is_some();
        let view = view.unwrap_or_else(|| View { state: state(None).to_owned(), ..View::default() });
        let meter = &actor.meter;
        Self {
            id: actor.id,
            parent: actor.parent,
            depth,
            children,
            kind: actor.kind.as_str(),
            name: actor.name,
            answered,
            state: view.state,
            waits_for: view.waits_for,
            born: actor.born,
            age_seconds: seconds(actor.born, now),
            mailbox_depth: meter.depth(),
            messages_handled: meter.handled_total(),
            messages_dropped: meter.dropped_total(),
            busy_seconds: meter.busy().as_secs_f64(),
            restarts: meter.restarts(),
            last_error: meter.last_error().map(|(at, error)| Failure { at, error }),
            deadlines: deadlines(view.deadlines, now),
            timeline: timeline(view.timeline, now),
            details: details(view.details),
        }
    }
}

/// What there is more than once under a name is there with a number behind the name: nothing is left out.
fn details(pairs: Vec<(String, String)>) -> IndexMap<String, String> {
    let mut details = IndexMap::new();
    for (name, text) in pairs {
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|free| !details.contains_key(free));
        details.extend(free.map(|free| (free, text)));
    }
    details
}

/// The next deadline first.
fn deadlines(mut deadlines: Vec<(String, Timestamp)>, now: Timestamp) -> Vec<Deadline> {
    deadlines.sort_by_key(|(_, at)| *at);
    deadlines.into_iter().map(|(what, at)| Deadline { what, at, in_seconds: seconds(now, at) }).collect()
}

fn timeline(steps: Vec<(Timestamp, String)>, now: Timestamp) -> Vec<Step> {
    let ends: Vec<Timestamp> = steps.iter().skip(1).map(|(at, _)| *at).chain([now]).collect();
    let last = steps.len().saturating_sub(1);
    let entries = steps.into_iter().zip(ends).enumerate();
    entries
        .map(|(index, ((at, what), end))| Step { at, what, seconds: seconds(at, end), ongoing: index == last })
        .collect()
}

/// Seconds from one moment to another, exact to the millisecond.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_millis() as f64 / 1000.0
}
