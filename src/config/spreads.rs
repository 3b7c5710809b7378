//! `SCHEDULER_CONFIG`: the spread constraints that kube-scheduler gives to pods without any.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::validation::check_qualified_name;
use crate::core::facts::{PolicyHonor, TopologySpread};

use super::flags::Constraints;

/// The document. Strict: a field that is not listed is an error, not a wish that is overlooked.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Document {
    pod_topology_spread: Spread,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Spread {
    default_constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Constraint {
    #[serde(default)]
    max_skew: i32,
    #[serde(default)]
    topology_key: String,
    #[serde(default)]
    when_unsatisfiable: String,
    min_domains: Option<i32>,
    node_affinity_policy: Option<Honor>,
    node_taints_policy: Option<Honor>,
    label_selector: Option<IgnoredAny>,
    match_label_keys: Option<Vec<String>>,
}

#[derive(Deserialize, Clone, Copy)]
enum Honor {
    Honor,
    Ignore,
}

impl From<Honor> for PolicyHonor {
    fn from(honor: Honor) -> Self {
        match honor {
            Honor::Honor => Self::Honor,
            Honor::Ignore => Self::Ignore,
        }
    }
}

/// Reads the document; nothing but white space means no constraints.
pub(super) fn parse(text: &str) -> Result<Constraints, String> {
    if text.trim().is_empty() {
        return Ok(Constraints::default());
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let document: Document = serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    let mut spreads = Vec::new();
    for (at, constraint) in document.pod_topology_spread.default_constraints.into_iter().enumerate() {
        let spread =
            checked(constraint).map_err(|fault| format!("podTopologySpread.defaultConstraints[{at}].{fault}"))?;
        if !seen.insert((spread.key.clone(), spread.required)) {
            return Err(format!(
                "podTopologySpread.defaultConstraints[{at}] repeats topologyKey {} with the same whenUnsatisfiable; remove one",
                spread.key
            ));
        }
        spreads.push(spread);
    }
    Ok(Constraints(spreads))
}

/// A constraint as the solver takes it, or the field that is wrong and what it may be. The selector stays open: it follows from each
/// pod's Services and owner.
fn checked(constraint: Constraint) -> Result<TopologySpread, String> {
    let required = match constraint.when_unsatisfiable.as_str() {
        "DoNotSchedule" => true,
        "ScheduleAnyway" => false,
        other => return Err(format!("whenUnsatisfiable is {other:?}; write DoNotSchedule or ScheduleAnyway")),
    };
    if constraint.max_skew < 1 {
        return Err(format!("maxSkew is {}; write a whole number of at least 1", constraint.max_skew));
    }
    check_qualified_name(&constraint.topology_key).map_err(|remedy| format!("topologyKey: {remedy}"))?;
    if constraint.label_selector.is_some() {
        return Err("labelSelector is not allowed: it follows from each pod's Services and owner; remove it".to_owned());
    }
    if constraint.match_label_keys.is_some_and(|keys| !keys.is_empty()) {
        return Err("matchLabelKeys is not allowed in default constraints; remove it".to_owned());
    }
    Ok(TopologySpread {
        key: constraint.topology_key.into(),
        max_skew: constraint.max_skew,
        // kube-scheduler takes any, here, and looks at it only where the constraint is required.
        min_domains: constraint.min_domains.filter(|domains| required && *domains >= 1),
        required,
        selector: None,
        node_affinity_policy: constraint.node_affinity_policy.map_or(PolicyHonor::Honor, Into::into),
        node_taints_policy: constraint.node_taints_policy.map_or(PolicyHonor::Ignore, Into::into),
    })
}
