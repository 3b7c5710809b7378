//! Label selectors and node selector terms.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::common as written;
use crate::api::validation::{self, CloudLabels, Fault};
use crate::core::facts::Selector;
use crate::core::labels::{Labels, NODE_NAME_FIELD, normalized};
use crate::core::requirements::{Operator, Requirement};

use crate::cluster::convert::problems::Problems;

/// A label selector with `matchLabelKeys` (and `mismatchLabelKeys`) folded in: the pod's own value of each such key must (not) be
/// shared. The API server folds some of them itself; what is there already is not said twice.
pub(in crate::cluster::convert) fn label_selector(
    field: &str,
    selector: Option<&LabelSelector>,
    own: &Labels,
    matching: Option<&Vec<String>>,
    mismatching: Option<&Vec<String>>,
    problems: &mut Problems,
) -> Option<Selector> {
    let selector = selector?;
    let mut expressions = Vec::new();
    for (at, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let known = matches!(expression.operator.as_str(), "In" | "NotIn" | "Exists" | "DoesNotExist");
        let values = expression.values.as_ref().map_or(0, Vec::len);
        let said = match expression.operator.as_str() {
            "In" | "NotIn" if values == 0 => Some("is empty; name a value, or use Exists or DoesNotExist"),
            "Exists" | "DoesNotExist" if values > 0 => {
                Some("has to be empty beside this operator; remove it, or use In or NotIn")
            }
            _ => None,
        };
        if let Some(said) = said {
            problems.note(&format!("{field}.matchExpressions[{at}].values"), said);
        }
        match Operator::parse(&expression.operator).filter(|_| known) {
            Some(operator) => expressions.push(Requirement::new(
                expression.key.as_str(),
                operator,
                expression.values.iter().flatten().map(String::as_str),
            )),
            None => problems.note(
                &format!("{field}.matchExpressions[{at}].operator"),
                format!("{:?} is no operator; write In, NotIn, Exists or DoesNotExist", expression.operator),
            ),
        }
    }
    for (keys, operator) in [(matching, Operator::In), (mismatching, Operator::NotIn)] {
        for key in keys.into_iter().flatten() {
            let Some((key, value)) = own.get_key_value(key.as_str()) else { continue };
            let expression = Requirement::new(key.clone(), operator, [value.clone()]);
            if !expressions.contains(&expression) {
                expressions.push(expression);
            }
        }
    }
    let labels = shared(selector.match_labels.as_ref());
    Some(Selector { labels, expressions })
}

fn shared(map: Option<&BTreeMap<String, String>>) -> Labels {
    crate::cluster::convert::common::shared(map)
}

/// What `matchFields`, which tie pods to nodes by name, are to whoever reads a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster::convert) enum Fields {
    /// A slip of the pen: a pod that waits for a node.
    Refused,
    /// The controller's doing: a DaemonSet's pod.
    Ignored,
    /// Meant: the template of a DaemonSet, whose controller makes pods for the nodes that it names.
    Meant,
}

/// The requirements of a node selector term.
pub(super) fn node_term(
    field: &str,
    term: &NodeSelectorTerm,
    fields: Fields,
    problems: &mut Problems,
) -> Vec<Requirement> {
    let named = term.match_fields.iter().flatten();
    let mut all = match fields {
        Fields::Refused if named.clone().next().is_some() => {
            problems.note(
                &format!("{field}.matchFields"),
                "names nodes, by which no new node can be chosen; use matchExpressions on a label, as kubernetes.io/hostname",
            );
            Vec::new()
        }
        Fields::Refused | Fields::Ignored => Vec::new(),
        Fields::Meant => {
            let of = |(at, one)| node_name(&format!("{field}.matchFields[{at}]"), one, problems);
            named.enumerate().filter_map(of).collect()
        }
    };
    for (at, expression) in term.match_expressions.iter().flatten().enumerate() {
        let known = !matches!(expression.operator.as_str(), "Gte" | "Lte");
        match Operator::parse(&expression.operator).filter(|_| known) {
            Some(operator) => all.push(Requirement::new(
                normalized(&expression.key),
                operator,
                expression.values.iter().flatten().map(String::as_str),
            )),
            None => problems.note(
                &format!("{field}.matchExpressions[{at}].operator"),
                format!("{:?} is no operator; write In, NotIn, Exists, DoesNotExist, Gt or Lt", expression.operator),
            ),
        }
    }
    all
}

/// A line of `matchFields`: of all fields Kubernetes knows the name, with In or NotIn and one value.
fn node_name(field: &str, line: &NodeSelectorRequirement, problems: &mut Problems) -> Option<Requirement> {
    let operator = Operator::parse(&line.operator).filter(|known| matches!(known, Operator::In | Operator::NotIn));
    let values = line.values.as_deref().unwrap_or_default();
    let said = match (operator, values) {
        _ if line.key != "metadata.name" => ("key", "is no field of a node to match by; write metadata.name"),
        (Some(operator), [_]) => return Some(Requirement::new(NODE_NAME_FIELD, operator, values.iter().cloned())),
        (None, _) => ("operator", "is not known for fields; write In or NotIn"),
        (Some(_), _) => ("values", "has to be one value; write the name of a node"),
    };
    problems.note(&format!("{field}.{}", said.0), said.1);
    None
}

/// Notes what is wrong with a required term: a requirement that no label can meet, or that nobody can read, is a slip of the pen.
pub(super) fn check_term(field: &str, term: &NodeSelectorTerm, problems: &mut Problems) {
    for (at, expression) in term.match_expressions.iter().flatten().enumerate() {
        let values = expression.values.iter().flatten().cloned().collect();
        for fault in faults(&format!("{field}.matchExpressions[{at}]"), &expression.key, &expression.operator, values) {
            problems.note_whole(fault);
        }
    }
}

/// Notes what is wrong with `spec.nodeSelector`.
pub(super) fn check_labels(selector: Option<&BTreeMap<String, String>>, problems: &mut Problems) {
    for (key, value) in selector.into_iter().flatten() {
        let field = format!("spec.nodeSelector[{key}]");
        for fault in faults(&field, key, Operator::In.as_str(), vec![value.clone()]) {
            problems.note(&field, fault.remedy);
        }
    }
}

/// What the rules for requirements find. Nobody's labels are restricted here: unlike a NodePool, a pod may ask for those that only nodes which
/// are there have.
fn faults(field: &str, key: &str, operator: &str, values: Vec<String>) -> Vec<Fault> {
    let operator = match Operator::parse(operator) {
        Some(Operator::In) => written::Operator::In,
        Some(Operator::NotIn) => written::Operator::NotIn,
        Some(Operator::Exists) => written::Operator::Exists,
        Some(Operator::DoesNotExist) => written::Operator::DoesNotExist,
        Some(Operator::Gt) => written::Operator::Gt,
        Some(Operator::Lt) => written::Operator::Lt,
        // Said of the operator itself.
        Some(Operator::Gte | Operator::Lte) | None => return Vec::new(),
    };
    let cloud = CloudLabels { restricted_domains: &[], well_known: &[normalized(key)] };
    let wanted = written::Requirement { key: key.to_owned(), operator, values, min_values: None };
    validation::requirement(field, &wanted, &cloud)
}
