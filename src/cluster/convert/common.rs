//! What all kinds share: labels, times, conditions, taints, requirements.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::api::common as api;
use crate::core::facts::{Condition, Effect, Status, Taint};
use crate::core::ids::ClassRef;
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Operator, Requirement};

use super::problems::{Problems, Unreadable};
use super::wire;

/// Shares the text of a map.
pub(super) fn shared(map: Option<&BTreeMap<String, String>>) -> Labels {
    map.into_iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

/// Those annotations whose domain is one of Karpenter's.
pub(super) fn own_annotations(meta: &ObjectMeta) -> Labels {
    meta.annotations
        .iter()
        .flatten()
        .filter(|(key, _)| labels::is_of_karpenter(key))
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect()
}

/// `metadata.name`, without which an object is nothing.
pub(super) fn name(kind: &str, meta: &ObjectMeta) -> Result<Arc<str>, Unreadable> {
    meta.name.as_deref().filter(|name| !name.is_empty()).map(Arc::from).ok_or_else(|| Unreadable {
        kind: kind.to_owned(),
        name: "without a name".to_owned(),
        message: "metadata.name: is missing; give the object a name".to_owned(),
    })
}

/// `metadata.uid`. An object that was never stored has none: its namespace and name stand for it then.
pub(super) fn uid(meta: &ObjectMeta) -> Arc<str> {
    match (&meta.uid, &meta.namespace, &meta.name) {
        (Some(uid), _, _) => uid.as_str().into(),
        (None, Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
        (None, _, name) => name.as_deref().unwrap_or_default().into(),
    }
}

/// `metadata.creationTimestamp`; the beginning of time for an object that was never stored.
pub(super) fn created(meta: &ObjectMeta) -> Timestamp {
    meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// A time that may be absent.
pub(super) fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// `metadata.finalizers`.
pub(super) fn finalizers(meta: &ObjectMeta) -> Vec<Arc<str>> {
    meta.finalizers.iter().flatten().map(|name| name.as_str().into()).collect()
}

/// `metadata.resourceVersion`.
pub(super) fn version(meta: &ObjectMeta) -> Arc<str> {
    meta.resource_version.as_deref().unwrap_or_default().into()
}

/// Conditions; one without a transition time counts from the object's creation.
pub(super) fn conditions(conditions: Option<&Vec<wire::Condition>>, meta: &ObjectMeta) -> Vec<Condition> {
    conditions
        .into_iter()
        .flatten()
        .map(|c| Condition {
            kind: c.kind.as_str().into(),
            status: Status::parse(&c.status),
            reason: c.reason.as_deref().unwrap_or_default().into(),
            message: c.message.as_deref().unwrap_or_default().into(),
            since: c.last_transition_time.as_ref().map_or_else(|| created(meta), |time| time.0),
            generation: c.observed_generation.unwrap_or(0),
        })
        .collect()
}

/// Taints; one with an unknown effect is noted and left out.
pub(super) fn taints(field: &str, taints: Option<&Vec<api::Taint>>, problems: &mut Problems) -> Vec<Taint> {
    let mut all = Vec::new();
    for (at, taint) in taints.into_iter().flatten().enumerate() {
        match Effect::parse(taint.effect.as_str()) {
            Some(effect) => all.push(Taint {
                key: taint.key.as_str().into(),
                value: taint.value.as_deref().unwrap_or_default().into(),
                effect,
            }),
            None => problems.note(
                &format!("{field}[{at}].effect"),
                format!("{:?} is no effect; write NoSchedule, PreferNoSchedule or NoExecute", taint.effect.as_str()),
            ),
        }
    }
    all
}

/// Requirements of a NodePool or NodeClaim, keys in their stable form; one with an unknown operator is noted and left out.
pub(super) fn requirements(
    field: &str,
    requirements: &[api::Requirement],
    problems: &mut Problems,
) -> Vec<Requirement> {
    let mut all = Vec::with_capacity(requirements.len());
    for (at, requirement) in requirements.iter().enumerate() {
        let Some(operator) = Operator::parse(requirement.operator.as_str()) else {
            problems.note(
                &format!("{field}[{at}].operator"),
                format!(
                    "{:?} is no operator; write In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte",
                    requirement.operator.as_str()
                ),
            );
            continue;
        };
        all.push(Requirement {
            key: labels::normalized(&requirement.key).into(),
            operator,
            values: requirement.values.iter().map(|value| value.as_str().into()).collect(),
            min_values: requirement.min_values.and_then(|least| u32::try_from(least).ok()),
        });
    }
    all
}

/// Notes a number that the schema does not allow.
pub(super) fn within(
    field: &str,
    number: Option<impl Into<i64>>,
    range: std::ops::RangeInclusive<i64>,
    problems: &mut Problems,
) {
    let Some(number) = number.map(Into::into).filter(|number| !range.contains(number)) else { return };
    let (least, most) = range.into_inner();
    let allowed = if most == i64::MAX { format!("at least {least}") } else { format!("from {least} to {most}") };
    problems.note(field, format!("{number} is not {allowed}; write such a number, or leave it out"));
}

/// A reference to a NodeClass.
pub(super) fn class_ref(reference: &api::NodeClassRef) -> ClassRef {
    ClassRef {
        group: reference.group.as_str().into(),
        kind: reference.kind.as_str().into(),
        name: reference.name.as_str().into(),
    }
}

/// A list of resources of a custom resource, as the wire types have them.
pub(super) fn amounts(list: &api::ResourceList) -> wire::Amounts {
    list.iter().map(|(name, quantity)| (name.clone(), wire::Amount(quantity.as_str().to_owned()))).collect()
}
