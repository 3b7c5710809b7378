//! Edits: what a user, a kubelet or another controller changes of an object that is there.
//!
//! A field is a map of what changes: a value sets, `null` takes away, what is not named stays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::store::Store;
use crate::cluster::convert::do_not_disrupt;
use crate::core::consent;
use crate::core::facts::{Condition, Effect, OwnerClaim, PodPhase, Status, Taint};
use crate::core::ids::{ClaimName, NodeName, ObjectKey, PoolName};
use crate::core::labels::{self, Labels};
use crate::core::quantity::Quantity;
use crate::core::resources::Resources;

/// Kinds that can be edited.
const KINDS: [&str; 5] = ["Node", "NodeClaim", "NodePool", "Pod", "Lease"];
/// Fields of the status of a NodeClaim that can be edited, besides its conditions.
const STATUS: [&str; 2] = ["providerID", "nodeName"];

/// Keys and their new values; nothing takes the key away.
type Changes<T> = BTreeMap<String, Option<T>>;

/// A change of one object.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edit {
    /// Kind of the object: Node, NodeClaim, NodePool, Pod or Lease.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace, of a Pod or Lease.
    pub namespace: Option<String>,
    #[serde(default)]
    labels: Changes<String>,
    #[serde(default)]
    annotations: Changes<String>,
    #[serde(default)]
    finalizers: Changes<bool>,
    /// NodeClaims in the owner references of a Node: `null` takes one out.
    #[serde(default)]
    owners: Changes<bool>,
    /// Taints of a Node: key and effect.
    #[serde(default)]
    taints: Changes<OfEffect>,
    /// Conditions of a Node or NodeClaim: type and status, or status, reason and message.
    #[serde(default)]
    conditions: Changes<Judged>,
    /// `providerID` and `nodeName` of a NodeClaim's status.
    #[serde(default)]
    status: Changes<String>,
    /// Capacity of a Node, of which the kubelet offers as much.
    #[serde(default)]
    capacity: Changes<Milli>,
    /// Generation of a NodeClaim, as if somebody had changed what is wanted.
    generation: Option<i64>,
    /// How the containers of a Pod end: Succeeded or Failed.
    ended: Option<Ended>,
    /// For how long the containers of a Pod do not end although they should, in seconds.
    stuck_seconds: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct OfEffect(Effect);

#[derive(Clone, PartialEq, Debug)]
struct Judged {
    status: Status,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenJudgement {
    Status(String),
    Whole {
        status: String,
        reason: String,
        #[serde(default)]
        message: String,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Milli(i64);

#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
enum Ended {
    Succeeded,
    Failed,
}

impl<'de> Deserialize<'de> for OfEffect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let wrong =
            || D::Error::custom(format!("{word:?} is no effect; write NoSchedule, PreferNoSchedule or NoExecute"));
        Effect::parse(&word).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Judged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let (word, reason, message) = match serde_json::from_value(value.clone()) {
            Ok(WrittenJudgement::Status(word)) => (word, "Edited".to_owned(), String::new()),
            Ok(WrittenJudgement::Whole { status, reason, message }) => (status, reason, message),
            Err(_) => {
                let wrong = format!("{value} is no condition; write a status, or {{ status, reason, message }}");
                return Err(D::Error::custom(wrong));
            }
        };
        if ["True", "False", "Unknown"].contains(&&*word) {
            return Ok(Self { status: Status::parse(&word), reason, message });
        }
        Err(D::Error::custom(format!("{word:?} is no status; write \"True\", \"False\" or Unknown")))
    }
}

impl<'de> Deserialize<'de> for Milli {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let quantity = Quantity::parse(&text).map_err(|error| D::Error::custom(format!("{text:?}: {error}")))?;
        Ok(Self(quantity.milli_down()))
    }
}

impl Edit {
    /// The object's namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref().unwrap_or("default"), self.name.as_str())
    }

    /// Which of its fields the object's kind does not have, if any.
    pub(super) fn misplaced(&self) -> Option<String> {
        if !KINDS.contains(&&*self.kind) {
            return Some(format!(
                "kind: {} cannot be edited; apply it anew, or edit a {}",
                self.kind,
                KINDS.join(", a ")
            ));
        }
        let others = self.annotations.keys().find(|key| **key != *labels::DO_NOT_DISRUPT);
        if let Some(key) = others.filter(|_| self.kind == "Pod") {
            return Some(format!(
                "annotations.{key}: means nothing here; of a Pod, {} can be edited",
                labels::DO_NOT_DISRUPT
            ));
        }
        if let Some(field) = self.status.keys().find(|field| !STATUS.contains(&field.as_str())) {
            return Some(format!("status.{field}: cannot be edited; what can is {}", STATUS.join(" and ")));
        }
        let fields = [
            ("labels", !self.labels.is_empty(), &["Node", "NodeClaim"][..]),
            ("annotations", !self.annotations.is_empty(), &["Node", "NodeClaim", "NodePool", "Pod", "Lease"]),
            ("finalizers", !self.finalizers.is_empty(), &["Node", "NodeClaim"]),
            ("owners", !self.owners.is_empty(), &["Node"]),
            ("status", !self.status.is_empty(), &["NodeClaim"]),
            ("taints", !self.taints.is_empty(), &["Node"]),
            ("conditions", !self.conditions.is_empty(), &["Node", "NodeClaim"]),
            ("capacity", !self.capacity.is_empty(), &["Node"]),
            ("generation", self.generation.is_some(), &["NodeClaim"]),
            ("ended", self.ended.is_some(), &["Pod"]),
            ("stuckSeconds", self.stuck_seconds.is_some(), &["Pod"]),
        ];
        let misplaced = fields.iter().find(|(_, given, kinds)| *given && !kinds.contains(&&*self.kind));
        misplaced
            .map(|(field, _, kinds)| format!("{field}: can be edited of {}, not of {}", kinds.join(", "), self.kind))
    }

    /// The NodeClaim of which a finalizer is taken off: what becomes of its machine then is not joiner's doing.
    pub fn strips(&self) -> Option<ClaimName> {
        let takes_off = self.kind == "NodeClaim" && self.finalizers.values().any(Option::is_none);
        takes_off.then(|| ClaimName::from(self.name.clone()))
    }

    /// Changes the object; false when it is not there.
    pub(super) fn perform(&self, store: &mut Store) -> bool {
        let now = store.now();
        match &*self.kind {
            "Node" => {
                let name = NodeName::from(self.name.as_str());
                let there = store.nodes.contains_key(&name);
                let uid =
                    |owner: &ClaimName| store.claims.get(owner).map_or_else(|| "".into(), |claim| claim.uid.clone());
                let owners: Vec<_> = self
                    .owners
                    .iter()
                    .map(|(name, wanted)| {
                        let name = ClaimName::from(name.as_str());
                        (OwnerClaim { uid: uid(&name), name }, *wanted == Some(true))
                    })
                    .collect();
                store.update_node(&name, |node| {
                    apply(&mut node.labels, &self.labels);
                    apply(&mut node.annotations, &self.annotations);
                    list(&mut node.finalizers, &self.finalizers);
                    for (owner, wanted) in owners {
                        node.owner_claims.retain(|there| there.name != owner.name);
                        node.owner_claims.extend(wanted.then_some(owner));
                    }
                    for (key, effect) in &self.taints {
                        node.taints.retain(|taint| *taint.key != **key);
                        node.taints.extend(effect.map(|effect| Taint::new(key.as_str(), effect.0)));
                    }
                    judge(&mut node.conditions, &self.conditions, 0, now);
                    amounts(&mut node.capacity, &self.capacity);
                    amounts(&mut node.allocatable, &self.capacity);
                });
                there
            }
            "NodeClaim" => store.update_claim(&ClaimName::from(self.name.as_str()), |claim| {
                apply(&mut claim.labels, &self.labels);
                apply(&mut claim.annotations, &self.annotations);
                list(&mut claim.finalizers, &self.finalizers);
                claim.generation = self.generation.unwrap_or(claim.generation);
                let status = |field: &str| self.status.get(field).map(Option::as_deref);
                if let Some(id) = status("providerID") {
                    claim.provider_id = id.map(Into::into);
                }
                if let Some(node) = status("nodeName") {
                    claim.node = node.map(Into::into);
                }
                judge(&mut claim.conditions, &self.conditions, claim.generation, now);
            }),
            "NodePool" => store.update_pool(&PoolName::from(self.name.as_str()), |pool| {
                apply(&mut pool.annotations, &self.annotations);
            }),
            "Lease" => {
                if let Some(said) = self.annotations.get(consent::ANNOTATION) {
                    store.annotate_lease(said.as_deref());
                }
                true
            }
            "Pod" => {
                let Some(uid) = store.pod_names.get(&self.key()).cloned() else { return false };
                if let Some(ended) = self.ended {
                    let failed = matches!(ended, Ended::Failed);
                    store.end_pod(&uid, if failed { PodPhase::Failed } else { PodPhase::Succeeded });
                }
                // Of a pod's annotations no other means anything here.
                if let Some(said) = self.annotations.get(labels::DO_NOT_DISRUPT) {
                    store.protect_pod(&uid, said.as_deref().map(do_not_disrupt).unwrap_or_default());
                }
                if let Some(seconds) = self.stuck_seconds {
                    store.stuck.insert(uid, tokio::time::Instant::now() + Duration::from_secs(seconds));
                }
                true
            }
            _ => false,
        }
    }
}

fn apply(map: &mut Labels, changes: &Changes<String>) {
    for (key, value) in changes {
        match value {
            Some(value) => map.insert(key.as_str().into(), value.as_str().into()),
            None => map.remove(key.as_str()),
        };
    }
}

fn list(names: &mut Vec<Arc<str>>, changes: &Changes<bool>) {
    for (name, wanted) in changes {
        names.retain(|there| **there != **name);
        if *wanted == Some(true) {
            names.push(name.as_str().into());
        }
    }
}

fn amounts(resources: &mut Resources, changes: &Changes<Milli>) {
    for (name, milli) in changes {
        resources.set(name.as_str().into(), milli.map_or(0, |milli| milli.0));
    }
}

fn judge(conditions: &mut Vec<Condition>, changes: &Changes<Judged>, generation: i64, now: Timestamp) {
    for (kind, judged) in changes {
        let Some(Judged { status, reason, message }) = judged else {
            conditions.retain(|condition| *condition.kind != **kind);
            continue;
        };
        let known = conditions.iter().position(|condition| *condition.kind == **kind);
        let since = known.map(|at| &conditions[at]).filter(|known| known.status == *status).map(|known| known.since);
        let judged = Condition {
            kind: kind.as_str().into(),
            status: *status,
            reason: reason.as_str().into(),
            message: message.as_str().into(),
            since: since.unwrap_or(now),
            generation,
        };
        match known {
            Some(at) => conditions[at] = judged,
            None => conditions.push(judged),
        }
    }
}
