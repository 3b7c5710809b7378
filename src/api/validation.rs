//! What the schemas cannot check: the rules a NodePool or NodeClaim is held to before it is used.
//!
//! Karpenter has no admission webhook; it reports these as the condition `ValidationSucceeded`. A rule here is a
//! rule there, except that all faults are told at once, each with its field and its remedy.

use std::collections::BTreeMap;
use std::fmt;

use crate::api::common::{Operator, Requirement, Taint, TaintEffect};
use crate::api::nodeclaim::NodeClaim;
use crate::api::nodeoverlay::NodeOverlay;
use crate::api::nodepool::NodePool;

/// The label that ties nodes to their NodePool; nobody may set it by hand.
const NODEPOOL_LABEL: &str = "karpenter.sh/nodepool";
/// The label that says how a machine is paid for.
const CAPACITY_TYPE_LABEL: &str = "karpenter.sh/capacity-type";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// The ways to pay for a machine.
const CAPACITY_TYPES: [&str; 3] = ["on-demand", "spot", "reserved"];
/// Labels that everybody knows, and that are allowed whatever their domain.
const WELL_KNOWN: [&str; 8] = [
    NODEPOOL_LABEL,
    CAPACITY_TYPE_LABEL,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/windows-build",
];
/// Old names of labels, and the names they are read as.
const RENAMED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];
/// Resources whose amounts the cloud knows, and an overlay may not claim to.
const CLOUD_RESOURCES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];
/// The longest label value, and the longest name in a qualified name; Kubernetes' limit.
const LONGEST_NAME: usize = 63;
/// The longest prefix of a qualified name; that of a DNS name.
const LONGEST_PREFIX: usize = 253;

/// One fault: where it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field from the object's root, such as `spec.template.spec.taints[1].key`.
    pub field: String,
    /// What is wrong and how to put it right.
    pub remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.remedy)
    }
}

/// The label domains that a cloud reserves, and the labels within them that it lets users set.
///
/// What core itself reserves, `karpenter.sh`, need not be named.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloudLabels<'a> {
    /// Domains whose labels, and those of their subdomains, users may not set.
    pub restricted_domains: &'a [&'a str],
    /// Labels that users may set all the same.
    pub well_known: &'a [&'a str],
}

/// The faults of a NodePool that its schema lets through; none if it may be used.
pub fn nodepool(pool: &NodePool, cloud: &CloudLabels<'_>) -> Vec<Fault> {
    let mut faults = Faults::default();
    let template = &pool.spec.template;
    for (key, value) in template.metadata.labels.iter().flatten() {
        let field = format!("spec.template.metadata.labels[{key}]");
        if key == NODEPOOL_LABEL {
            faults.add(&field, "the NodePool sets this label itself; remove it");
        }
        faults.check(&field, check_qualified_name(key));
        faults.check(&field, check_label_value(value));
        faults.check(&field, check_not_restricted(key, cloud));
    }
    let spec = &template.spec;
    faults.taints("spec.template.spec.taints", spec.taints.as_deref().unwrap_or_default());
    faults.taints("spec.template.spec.startupTaints", spec.startup_taints.as_deref().unwrap_or_default());
    for (index, requirement) in spec.requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{index}]");
        if requirement.key == NODEPOOL_LABEL {
            faults.add(&format!("{field}.key"), "the NodePool sets this label itself; remove the requirement");
        }
        faults.requirement(&field, requirement, cloud);
    }
    faults.duration(spec.termination_grace_period().err());
    faults.duration(spec.expire_after().err());
    faults.duration(pool.spec.disruption.consolidate_after().err());
    faults.found
}

/// The faults of a NodeClaim that its schema lets through; none if it may be launched.
pub fn nodeclaim(claim: &NodeClaim, cloud: &CloudLabels<'_>) -> Vec<Fault> {
    let mut faults = Faults::default();
    let spec = &claim.spec;
    faults.taints("spec.taints", &spec.taints);
    faults.taints("spec.startupTaints", &spec.startup_taints);
    for (index, requirement) in spec.requirements.iter().enumerate() {
        faults.requirement(&format!("spec.requirements[{index}]"), requirement, cloud);
    }
    faults.duration(spec.termination_grace_period().err());
    faults.duration(spec.expire_after().err());
    faults.found
}

/// The faults of a NodeOverlay that its schema lets through; none if it may be applied.
pub fn nodeoverlay(overlay: &NodeOverlay, cloud: &CloudLabels<'_>) -> Vec<Fault> {
    let mut faults = Faults::default();
    for (index, requirement) in overlay.spec.requirements.iter().enumerate() {
        let field = format!("spec.requirements[{index}]");
        if requirement.operator == Operator::NotIn && requirement.values.is_empty() {
            faults.add(&format!("{field}.values"), "operator NotIn needs at least one value");
        }
        faults.requirement(&field, requirement, cloud);
    }
    for resource in overlay.spec.capacity.iter().flat_map(BTreeMap::keys) {
        if CLOUD_RESOURCES.contains(&resource.as_str()) {
            let field = format!("spec.capacity[{resource}]");
            faults.add(&field, "the cloud knows this resource; only others can be added");
        }
    }
    faults.found
}

/// The faults of one requirement, wherever it stands; `field` is its path.
///
/// Also for what pods ask of nodes, which is held to the same rules.
pub fn requirement(field: &str, requirement: &Requirement, cloud: &CloudLabels<'_>) -> Vec<Fault> {
    let mut faults = Faults::default();
    faults.requirement(field, requirement, cloud);
    faults.found
}

#[derive(Default)]
struct Faults<'o> {
    found: Vec<Fault>,
    /// Where each key and effect was first seen, over both lists of taints.
    tainted: BTreeMap<(&'o str, &'o str), String>,
}

impl<'o> Faults<'o> {
    fn add(&mut self, field: &str, remedy: impl Into<String>) {
        self.found.push(Fault { field: field.to_owned(), remedy: remedy.into() });
    }

    fn check(&mut self, field: &str, verdict: Result<(), String>) {
        if let Err(remedy) = verdict {
            self.add(field, remedy);
        }
    }

    fn duration(&mut self, error: Option<crate::api::duration::DurationError>) {
        if let Some(error) = error {
            let remedy = error.remedy();
            self.found.push(Fault { field: error.field, remedy });
        }
    }

    fn taints(&mut self, list: &str, taints: &'o [Taint]) {
        for (index, taint) in taints.iter().enumerate() {
            let field = format!("{list}[{index}]");
            self.check(&format!("{field}.key"), check_qualified_name(&taint.key));
            // Kubernetes wants a label value here; Karpenter, a qualified name. The schemas say the same.
            if let Some(value) = taint.value.as_deref().filter(|value| !value.is_empty()) {
                self.check(&format!("{field}.value"), check_qualified_name(value));
            }
            match &taint.effect {
                TaintEffect::Other(effect) if !effect.is_empty() => {
                    let allowed = TaintEffect::NAMES.join(", ");
                    self.add(&format!("{field}.effect"), format!("{effect:?} is no effect; use one of {allowed}"));
                }
                _ => {}
            }
            let same = (taint.key.as_str(), taint.effect.as_str());
            if let Some(first) = self.tainted.get(&same) {
                let remedy = format!("{first} has the same key and effect; remove one of them");
                self.add(&field, remedy);
            } else {
                self.tainted.insert(same, field);
            }
        }
    }

    fn requirement(&mut self, field: &str, requirement: &Requirement, cloud: &CloudLabels<'_>) {
        let key_field = format!("{field}.key");
        let values_field = format!("{field}.values");
        let key = renamed(&requirement.key);
        let values = &requirement.values;
        self.check(&key_field, check_not_restricted(key, cloud));
        self.check(&key_field, check_qualified_name(key));
        for value in values {
            self.check(&values_field, check_label_value(value));
        }
        match &requirement.operator {
            Operator::In if values.is_empty() => self.add(&values_field, "operator In needs at least one value"),
            Operator::In => self.enough_values(&values_field, requirement, key),
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
                let bound = match values.as_slice() {
                    [value] => value.parse::<i64>().ok().filter(|bound| *bound >= 0),
                    _ => None,
                };
                if bound.is_none() {
                    let operator = &requirement.operator;
                    let remedy = format!("operator {operator} needs exactly one value, an integer of at least 0");
                    self.add(&values_field, remedy);
                }
            }
            Operator::Other(operator) => {
                let allowed = Operator::NAMES.join(", ");
                self.add(&format!("{field}.operator"), format!("{operator:?} is no operator; use one of {allowed}"));
            }
            Operator::NotIn | Operator::Exists | Operator::DoesNotExist => {}
        }
    }

    fn enough_values(&mut self, values_field: &str, requirement: &Requirement, key: &str) {
        let values = &requirement.values;
        let wanted = requirement.min_values.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(0);
        if values.len() < wanted {
            let listed = values.len();
            let remedy =
                format!("minValues asks for {wanted} values and {listed} are listed; list more or ask for less");
            self.add(values_field, remedy);
        }
        if key != CAPACITY_TYPE_LABEL {
            return;
        }
        let known = values.iter().filter(|value| CAPACITY_TYPES.contains(&value.as_str())).count();
        // A list that is only partly wrong still selects something, and is let through as in Karpenter.
        if known == 0 || known < wanted {
            let allowed = CAPACITY_TYPES.join(", ");
            let needed = wanted.max(1);
            let remedy = format!("at least {needed} of the values must be among {allowed}; {known} are");
            self.add(values_field, remedy);
        }
    }
}

/// The name a label key is read as today.
fn renamed(key: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

fn check_not_restricted(key: &str, cloud: &CloudLabels<'_>) -> Result<(), String> {
    if WELL_KNOWN.contains(&key) || cloud.well_known.contains(&key) {
        return Ok(());
    }
    if key == HOSTNAME_LABEL {
        return Err(format!("label {key} is set by each node itself; use another label"));
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let restricted = std::iter::once(&"karpenter.sh").chain(cloud.restricted_domains).find(|restricted| {
        domain.strip_suffix(**restricted).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    match restricted {
        None => Ok(()),
        Some(restricted) => Err(format!(
            "label {key:?} is in the reserved domain {restricted}; use a well-known label or another domain"
        )),
    }
}

/// Checks a qualified name: an optional DNS subdomain and a slash, then a name of up to 63 characters.
pub(crate) fn check_qualified_name(text: &str) -> Result<(), String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let remedy = if name.is_empty() || !is_name(name) {
        "the name must start and end with a letter or a digit, with only letters, digits, '-', '_' and '.' between"
    } else if name.len() > LONGEST_NAME {
        "the name may have 63 characters at most"
    } else if prefix.is_some_and(|prefix| prefix.len() > LONGEST_PREFIX) {
        "the part before the slash may have 253 characters at most"
    } else if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        "the part before the slash must be a DNS name in lower case"
    } else {
        return Ok(());
    };
    Err(format!("{text:?} is not a qualified name: {remedy}"))
}

/// Checks a label's value: a name of up to 63 characters, or nothing.
pub(crate) fn check_label_value(text: &str) -> Result<(), String> {
    if text.is_empty() || (text.len() <= LONGEST_NAME && is_name(text)) {
        return Ok(());
    }
    Err(format!(
        "{text:?} is not a label value: use at most 63 letters, digits, '-', '_' and '.', with a letter or a digit first and last"
    ))
}

fn is_name(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    let lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(lower)
            && bytes.last().is_some_and(lower)
            && bytes.iter().all(|byte| lower(byte) || *byte == b'-')
    })
}

#[cfg(test)]
#[path = "validation_tests.rs"]
mod tests;
