//! Single questions: where a pod goes or why nowhere, and why a NodeClaim is as it is.

use std::fmt;
use std::sync::Arc;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde::{Deserialize, Serialize};

use super::answer::types_of;
use super::limits::Limits;
use super::reach::Reach;
use crate::core::facts::{Catalog, InstanceType, Pod, Snapshot};
use crate::core::ids::ObjectKey;
use crate::core::requirements::Requirements;
use crate::core::resources::{ResourceName, Resources};
use crate::core::scheduling::{self, Datum, Plan, PlannedClaim, Problem, Reason, Settings};

/// Most instance types that are shown.
const SHOWN: usize = 8;

/// Nothing of that name was planned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unknown(pub String);

/// What was asked of the solver and what it said: an answer of `joiner plan`, or a decision of a running joiner.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// What could be bought.
    pub catalog: &'a Catalog,
    /// The pods that needed a place.
    pub pods: &'a [Arc<Pod>],
    /// Pods that wait for something else, and for what.
    pub set_aside: &'a [(ObjectKey, String)],
    /// How it was asked.
    pub settings: &'a Settings,
    /// Keys of the cloud that count as well-known.
    pub label_keys: &'a [&'static str],
    /// What the solver said.
    pub plan: &'a Plan,
}

/// An answer to a single question.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What was asked about: kind and name.
    pub subject: String,
    /// The answer in a sentence.
    pub verdict: String,
    /// What led to it, most helpful first.
    pub reasons: Vec<String>,
    /// The same as typed facts, where the solver gave them.
    pub facts: Vec<Ground>,
    /// What there was to choose from, and what each choice would have meant.
    pub choices: Vec<Choice>,
    /// What it waits for now; a running joiner knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When this was decided; a running joiner knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<jiff::Timestamp>,
}

/// A fact that kept a pod from being placed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ground {
    /// Its kind, such as `Taint` or `Limit`.
    pub kind: std::borrow::Cow<'static, str>,
    /// The NodePool that it is about.
    pub node_pool: Option<String>,
    /// The sentence.
    pub says: String,
    /// What the sentence is made of, such as `key`, `wanted` and `offered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<serde_json::Map<String, serde_json::Value>>,
}

impl From<&Reason> for Ground {
    fn from(reason: &Reason) -> Self {
        let facts: serde_json::Map<_, _> =
            reason.fields().into_iter().map(|(name, datum)| (name.to_owned(), value(&datum))).collect();
        Self {
            kind: reason.kind().into(),
            node_pool: reason.pool().map(ToString::to_string),
            says: reason.to_string(),
            facts: Some(facts).filter(|facts| !facts.is_empty()),
        }
    }
}

fn value(datum: &Datum) -> serde_json::Value {
    match datum {
        Datum::Text(text) => (**text).into(),
        Datum::Number(number) => (*number).into(),
        Datum::List(all) => {
            let object = |fields: &std::collections::BTreeMap<&'static str, Datum>| -> serde_json::Value {
                fields.iter().map(|(name, datum)| ((*name).to_owned(), value(datum))).collect()
            };
            all.iter().map(object).collect()
        }
        Datum::Counts(counts) => counts.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
    }
}

/// Something that could have been chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// NodePool or instance type.
    pub name: String,
    /// USD per hour, if it can be had.
    pub price: Option<f64>,
    /// What it would mean, or why it cannot be.
    pub outcome: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.subject, self.verdict)?;
        for reason in &self.reasons {
            writeln!(f, "  - {reason}")?;
        }
        if let Some(what) = &self.waits_for {
            writeln!(f, "  waits for {what}")?;
        }
        if let Some(at) = &self.decided {
            writeln!(f, "  decided at {}", at.strftime("%FT%TZ"))?;
        }
        if self.choices.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED).set_header(["choice", "$/h", "what of it"]);
        for choice in &self.choices {
            let price = choice.price.map_or_else(|| "–".to_owned(), |price| format!("{price:.4}"));
            table.add_row([choice.name.clone(), price, choice.outcome.clone()]);
        }
        write!(f, "{table}")
    }
}

/// Why a pod is placed where it is, or nowhere. `name` may be `NAMESPACE/NAME`.
pub fn pod(case: &Case<'_>, namespace: Option<&str>, name: &str) -> Result<Explanation, Unknown> {
    let (namespace, name) = name.split_once('/').map_or((namespace, name), |(namespace, name)| (Some(namespace), name));
    let is_meant =
        |key: &ObjectKey| &*key.name == name && namespace.is_none_or(|namespace| &*key.namespace == namespace);
    if let Some((key, why)) = case.set_aside.iter().find(|(key, _)| is_meant(key)) {
        let (subject, verdict) = (format!("pod {key}"), "is not planned".to_owned());
        return Ok(Explanation { subject, verdict, reasons: vec![why.clone()], ..Explanation::default() });
    }
    let found: Vec<&Arc<Pod>> = case.pods.iter().filter(|pod| is_meant(&pod.key)).collect();
    let pod = match &found[..] {
        [pod] => *pod,
        [] => return Err(unknown_pod(case, name, &is_meant)),
        [one, ..] => {
            let (count, namespace) = (found.len(), &one.key.namespace);
            return Err(Unknown(format!(
                "{count} pods are named {name}; say which with --namespace, such as {namespace}"
            )));
        }
    };
    let (verdict, reasons) = verdict(case, pod);
    let refusal = case.plan.refused.iter().find(|refusal| refusal.pod == pod.uid);
    let facts = refusal.into_iter().flat_map(|refusal| &refusal.reasons).map(Ground::from);
    let (facts, choices) = (facts.collect(), pools_for(case, pod));
    let subject = format!("pod {}", pod.key);
    Ok(Explanation { subject, verdict, reasons, facts, choices, ..Explanation::default() })
}

fn unknown_pod(case: &Case<'_>, name: &str, is_meant: &dyn Fn(&ObjectKey) -> bool) -> Unknown {
    let bound = case.snapshot.pods.values().find(|pod| is_meant(&pod.key));
    Unknown(match bound.and_then(|pod| Some((&pod.key, pod.node.as_ref()?))) {
        Some((key, node)) => format!("pod {key} is bound to node {node}; only pods that wait are planned"),
        None => format!("no pod that waits is named {name}; see `joiner plan -o json` for those that are"),
    })
}

fn verdict(case: &Case<'_>, pod: &Arc<Pod>) -> (String, Vec<String>) {
    let holds = |pods: &[Arc<Pod>]| pods.iter().any(|other| other.uid == pod.uid);
    if let Some(claim) = case.plan.claims.iter().find(|claim| holds(&claim.pods)) {
        let kind = claim.instance_types.first().map(ToString::to_string).unwrap_or_default();
        let (name, pool, others) = (&claim.draft.name, &claim.draft.pool, claim.pods.len() - 1);
        let verdict = format!(
            "goes to a new node of NodePool {pool}: NodeClaim {name}, {kind} or larger, with {others} other pods"
        );
        let existing = case.snapshot.nodes.len() + case.snapshot.claims.len();
        let reason = match existing {
            0 => "there is no node that it could use instead".to_owned(),
            _ => "no existing node had room for it, or its constraints exclude those that had".to_owned(),
        };
        return (verdict, vec![reason]);
    }
    if let Some(placed) = case.plan.existing.iter().find(|placed| holds(&placed.pods)) {
        let node = placed.node.as_ref().map(|node| format!("node {node}"));
        let claim = placed.claim.as_ref().map(|claim| format!("the node of NodeClaim {claim}, which is on its way"));
        let place = node.or(claim).unwrap_or_default();
        return (format!("goes to {place}"), vec!["what exists is used before anything is bought".to_owned()]);
    }
    let refusal = case.plan.refused.iter().find(|refusal| refusal.pod == pod.uid);
    let reach = Reach::of(case.snapshot, case.catalog);
    let reasons = refusal.map(|refusal| reach.reasons(pod, &refusal.reasons)).unwrap_or_default();
    ("has no place".to_owned(), reasons)
}

/// What each NodePool alone would do for the pod alone, on a new node beside all that is there.
fn pools_for(case: &Case<'_>, pod: &Arc<Pod>) -> Vec<Choice> {
    let only = [Arc::clone(pod)];
    let mut choices = Vec::new();
    for pool in case.snapshot.pools.values() {
        let mut snapshot = case.snapshot.clone();
        snapshot.pools = std::iter::once((pool.name.clone(), Arc::clone(pool))).collect();
        let mut problem = Problem::new(&snapshot, case.catalog, &only, case.settings);
        problem.label_keys = case.label_keys;
        problem.new_nodes_only = true;
        let plan = scheduling::solve(&problem);
        let (price, outcome) = match (plan.claims.first(), plan.refused.first()) {
            (Some(claim), _) => {
                let kind = claim.instance_types.first().map(ToString::to_string).unwrap_or_default();
                let others = claim.instance_types.len().saturating_sub(1);
                (Some(claim.price), format!("would take it alone on {kind} (or {others} other types)"))
            }
            (None, Some(refusal)) => {
                let reasons: Vec<String> = refusal.reasons.iter().map(ToString::to_string).collect();
                (None, reasons.join("; "))
            }
            (None, None) => (None, "is static: pods are not planned on new nodes of it".to_owned()),
        };
        choices.push(Choice { name: format!("NodePool {} (weight {})", pool.name, pool.weight), price, outcome });
    }
    choices
}

/// Why a planned NodeClaim is of this pool, this size and these types.
pub fn nodeclaim(case: &Case<'_>, name: &str) -> Result<Explanation, Unknown> {
    let claim = case.plan.claims.iter().find(|claim| claim.draft.name.as_str() == name);
    let claim = claim.ok_or_else(|| {
        let known: Vec<&str> = case.plan.claims.iter().take(5).map(|claim| claim.draft.name.as_str()).collect();
        let known =
            if known.is_empty() { "none is".to_owned() } else { format!("planned are {}, …", known.join(", ")) };
        Unknown(format!("no NodeClaim named {name} is planned; {known}"))
    })?;
    let (draft, types) = (&claim.draft, types_of(case.catalog, claim).cloned().collect::<Vec<_>>());
    let first = claim.instance_types.first().map(ToString::to_string).unwrap_or_default();
    let verdict =
        format!("{first} at {:.4} $/h for {} pods, from NodePool {}", claim.price, claim.pods.len(), draft.pool);
    let mut reasons = vec![why_pool(case, claim)];
    reasons.push(format!("its pods and the daemons of its node need {}", amounts(&draft.requests)));
    if let Some(kind) = types.first() {
        reasons.push(format!(
            "the cheapest type that holds them, {first}, has {} for them",
            amounts(&only(&kind.allocatable(), &draft.requests))
        ));
    }
    let all = case.catalog.pools.get(&draft.pool).map_or(0, |list| list.len());
    reasons.push(format!("{} of the pool's {all} instance types hold them and can be had; the cloud may choose any of them, cheapest first", types.len()));
    let limits = Limits::of(case, claim);
    if let Some(limits) = &limits {
        let list = case.catalog.pools.get(&draft.pool).into_iter().flat_map(|list| list.iter());
        let would_do = |kind: &&Arc<InstanceType>| {
            !claim.instance_types.contains(&kind.name)
                && draft.requests.fits(&kind.allocatable())
                && price(kind, claim).is_some()
        };
        reasons.push(limits.sentence(list.filter(would_do)));
    }
    let mut choices: Vec<Choice> = cheaper(case, claim, limits.as_ref());
    choices.extend(types.iter().take(SHOWN).map(|kind| Choice {
        name: kind.name.to_string(),
        price: price(kind, claim),
        outcome: format!("holds them; {} full", fullest(&draft.requests, &kind.allocatable())),
    }));
    let subject = format!("NodeClaim {name}");
    Ok(Explanation { subject, verdict, reasons, choices, ..Explanation::default() })
}

fn why_pool(case: &Case<'_>, claim: &PlannedClaim) -> String {
    let pools = &case.snapshot.pools;
    let own = pools.get(&claim.draft.pool).map_or(0, |pool| pool.weight);
    let rivals = |is: fn(&i32, &i32) -> bool| {
        let others = pools.values().filter(|pool| pool.name != claim.draft.pool && is(&pool.weight, &own));
        others.map(|pool| format!("{} (weight {})", pool.name, pool.weight)).collect::<Vec<_>>().join(", ")
    };
    let (heavier, equal) = (rivals(i32::gt), rivals(i32::eq));
    let pool = &claim.draft.pool;
    let mut why = if heavier.is_empty() {
        format!("NodePool {pool} has the highest weight ({own}) of the pools that could be used")
    } else {
        format!(
            "NodePool {pool} (weight {own}) takes its first pod, and {heavier} would come before it: `joiner explain pod` says what is refused"
        )
    };
    if !equal.is_empty() {
        why.push_str(", and no node for these pods is cheaper, or none is to be had, in ");
        why.push_str(&equal);
    }
    why
}

/// The types that cost less than the cheapest of the NodeClaim, and why they are not listed.
fn cheaper(case: &Case<'_>, claim: &PlannedClaim, limits: Option<&Limits>) -> Vec<Choice> {
    let list = case.catalog.pools.get(&claim.draft.pool);
    let mut all: Vec<(f64, &Arc<InstanceType>)> = list
        .into_iter()
        .flat_map(|list| list.iter())
        .filter(|kind| !claim.instance_types.contains(&kind.name))
        .filter_map(|kind| Some((price(kind, claim)?, kind)))
        .filter(|(price, _)| *price < claim.price)
        .collect();
    // Those that come closest are of interest.
    all.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name.cmp(&other.name)));
    let choice = |(price, kind): &(f64, &Arc<InstanceType>)| {
        let room = kind.allocatable();
        let short = claim.draft.requests.iter().find(|(name, need)| *need > room.get(name));
        let outcome = match short {
            Some((name, need)) => {
                let (need, has) =
                    (Resources::new().with(name.as_str(), need), Resources::new().with(name.as_str(), room.get(name)));
                format!("too small: {} needed, {} there", amounts(&need), amounts(&has))
            }
            None => limits
                .and_then(|limits| limits.exclude(kind))
                .unwrap_or_else(|| "the NodeClaim's requirements exclude it, or its daemons need more".to_owned()),
        };
        Choice { name: kind.name.to_string(), price: Some(*price), outcome }
    };
    all.iter().take(SHOWN / 2).rev().map(choice).collect()
}

/// The cheapest offering that the NodeClaim allows.
fn price(kind: &InstanceType, claim: &PlannedClaim) -> Option<f64> {
    let mut requirements = Requirements::from_written(&*claim.draft.requirements);
    requirements.remove(crate::core::labels::INSTANCE_TYPE);
    let fits = |offering: &&crate::core::facts::Offering| {
        offering.available && requirements.intersects(&Requirements::from_written(&offering.requirements)).is_ok()
    };
    kind.offerings.iter().filter(fits).map(|offering| offering.price).reduce(f64::min)
}

fn only(room: &Resources, asked: &Resources) -> Resources {
    asked.iter().filter(|(_, milli)| *milli > 0).map(|(name, _)| (name.clone(), room.get(name))).collect()
}

/// The largest share of any resource, in percent.
fn fullest(need: &Resources, room: &Resources) -> String {
    let shares = need.iter().filter(|(_, milli)| *milli > 0);
    let share =
        |(name, milli): (&ResourceName, i64)| (100.0 * milli as f64 / room.get(name).max(1) as f64, name.to_string());
    let most = shares.map(share).max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or_else(|| "not at all".to_owned(), |(share, name)| format!("{share:.0} % ({name})"))
}

fn amounts(all: &Resources) -> String {
    let one = |(name, milli): (&ResourceName, i64)| scheduling::amount_text(name, milli);
    all.iter().filter(|(_, milli)| *milli > 0).map(one).collect::<Vec<_>>().join(", ")
}
