//! Ordinary Kubernetes manifests, as objects of the simulated cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::selector;
use super::store::{Budget, Count, VolumeSource};
use super::workload::{Workload, WorkloadKind};
use crate::api::classes::kwok::KwokNodeClass;
use crate::api::validation::CloudLabels;
use crate::clouds::simulated::LABEL_KEYS;
use crate::cluster::convert::{
    ClassKind, ShapeStore, Unreadable, go_duration, read_claim, read_class, read_csi_node, read_daemon, read_namespace,
    read_pod, read_pool, read_storage_class, read_volume, read_volume_claim,
};
use crate::core::facts::{
    Claim, Condition, CsiNode, DaemonSet, NodeClass, PodShape, Pool, Status, StorageClass, Volume, VolumeClaim,
};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;

/// Annotation on pods and templates: after how long the containers end by themselves, in Go's notation.
const RUN_FOR: &str = "sim.joiner.dev/run-for";
/// How long the pods of a Job run that does not say it.
const JOB_RUNS_FOR: Duration = Duration::from_mins(1);
/// Kinds that make pods, and that are not simulated.
const NOT_SIMULATED: [&str; 2] = ["CronJob", "ReplicationController"];

/// A manifest that cannot be applied.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct Invalid {
    /// Kind, namespace and name, as far as they are known.
    pub object: String,
    /// Field, what is wrong, and the remedy.
    pub problem: String,
}

/// Values of PriorityClasses by name.
pub type Priorities = BTreeMap<String, i64>;

/// An object to put into the cluster.
#[derive(Clone, Debug)]
pub enum Object {
    /// A NodePool.
    Pool(Box<Pool>),
    /// A NodeClass.
    Class(NodeClass),
    /// A NodeClaim of its own.
    Claim(Box<Claim>),
    /// A DaemonSet.
    Daemon(DaemonSet),
    /// A namespace and its labels.
    Namespace(Arc<str>, Labels),
    /// A PodDisruptionBudget.
    Budget(Budget),
    /// A PriorityClass and its value.
    Priority(String, i64),
    /// A PersistentVolumeClaim.
    VolumeClaim(VolumeClaim),
    /// A PersistentVolume.
    Volume(Volume),
    /// A StorageClass.
    StorageClass(StorageClass),
    /// A CSINode.
    CsiNode(CsiNode),
    /// Something that keeps pods.
    Workload(Workload),
    /// A kind without which the world is the same.
    Irrelevant(String),
}

/// Reads one manifest; a `List` gives all of its items.
pub fn read_object(value: &Value, shapes: &ShapeStore, priorities: &Priorities) -> Result<Vec<Object>, Invalid> {
    let reader = Reader { value, shapes, priorities };
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind == "List" || (kind.ends_with("List") && value["items"].is_array()) {
        let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let objects = items.iter().map(|item| read_object(item, shapes, priorities));
        return Ok(objects.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect());
    }
    reader.read(kind).map(|object| vec![object])
}

struct Reader<'a> {
    value: &'a Value,
    shapes: &'a ShapeStore,
    priorities: &'a Priorities,
}

impl Reader<'_> {
    fn read(&self, kind: &str) -> Result<Object, Invalid> {
        let wrong = |error: &dyn std::fmt::Display| Invalid { object: self.object(), problem: error.to_string() };
        if kind.is_empty() {
            return Err(self.invalid("kind: is missing; write the kind of the object, for instance Deployment"));
        }
        if NOT_SIMULATED.contains(&kind) {
            return Err(self.invalid(format!("kind: a {kind} is not simulated; write Jobs or Deployments instead")));
        }
        match kind {
            "NodePool" => self.pool(),
            "KWOKNodeClass" => self.class(),
            "NodeClaim" => {
                let claim = read_claim(self.value).map_err(|error| wrong(&error))?;
                match &claim.broken {
                    Some(broken) => Err(self.invalid(&broken.problem)),
                    None => Ok(Object::Claim(Box::new(claim))),
                }
            }
            "DaemonSet" => {
                let daemon = read_daemon(self.value, self.shapes).map_err(|error| wrong(&error))?;
                self.check(&daemon.shape).map(|()| Object::Daemon(daemon))
            }
            "Namespace" => {
                let (name, labels) = read_namespace(self.value).map_err(|error| wrong(&error))?;
                Ok(Object::Namespace(name, (*labels).clone()))
            }
            "PodDisruptionBudget" => self.budget().map(Object::Budget),
            "PriorityClass" => {
                let value = self.value["value"].as_i64();
                let value = value.ok_or_else(|| self.invalid("value: is missing; write a whole number"))?;
                Ok(Object::Priority(self.name()?.to_owned(), value))
            }
            "PersistentVolumeClaim" => self.storage(read_volume_claim, Object::VolumeClaim),
            "PersistentVolume" => self.storage(read_volume, Object::Volume),
            "StorageClass" => self.storage(read_storage_class, Object::StorageClass),
            "CSINode" => self.storage(read_csi_node, Object::CsiNode),
            "Deployment" => self.workload(WorkloadKind::Deployment, "replicas"),
            "ReplicaSet" => self.workload(WorkloadKind::ReplicaSet, "replicas"),
            "StatefulSet" => {
                let ordered = self.value["spec"]["podManagementPolicy"] != json!("Parallel");
                self.workload(WorkloadKind::StatefulSet { ordered }, "replicas")
            }
            "Job" => self.job(),
            "Pod" => self.pod(),
            other => Ok(Object::Irrelevant(other.to_owned())),
        }
    }

    fn storage<T>(
        &self,
        read: impl Fn(&Value) -> Result<T, Unreadable>,
        object: impl Fn(T) -> Object,
    ) -> Result<Object, Invalid> {
        read(self.value).map(object).map_err(|error| self.invalid(error.message))
    }

    /// The volumes of a pod's spec, and those that a StatefulSet makes for its pods, as far as there are claims behind them.
    fn volumes(&self, spec: &Value) -> Vec<VolumeSource> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(Arc::<str>::from);
        let templates = list(&self.value["spec"]["volumeClaimTemplates"]);
        let template = |template: &Value| {
            let class = text(template, "/spec/storageClassName");
            text(template, "/metadata/name").map(|name| VolumeSource::Template { name, class })
        };
        let mut all: Vec<VolumeSource> = templates.iter().filter_map(template).collect();
        for volume in list(&spec["volumes"]) {
            if let Some(claim) = text(&volume, "/persistentVolumeClaim/claimName") {
                all.push(VolumeSource::Claim(claim));
            } else if let Some(name) = text(&volume, "/name").filter(|_| volume["ephemeral"].is_object()) {
                let class = text(&volume, "/ephemeral/volumeClaimTemplate/spec/storageClassName");
                all.push(VolumeSource::Ephemeral { name, class });
            }
        }
        all
    }

    fn pool(&self) -> Result<Object, Invalid> {
        let labels = CloudLabels { restricted_domains: &["karpenter.kwok.sh"], well_known: &LABEL_KEYS };
        let pool = read_pool(self.value, &labels).map_err(|error| self.invalid(error))?;
        match pool.errors.first() {
            Some(problem) => Err(self.invalid(problem)),
            None => Ok(Object::Pool(Box::new(pool))),
        }
    }

    fn class(&self) -> Result<Object, Invalid> {
        let kind = ClassKind::of::<KwokNodeClass>("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses");
        let mut class = read_class(self.value, &kind).map_err(|error| self.invalid(error))?;
        if let Some(bad) = class.conditions.iter().find(|condition| &*condition.reason == "Unreadable") {
            return Err(self.invalid(&bad.message));
        }
        if class.conditions.is_empty() {
            // The API server writes it by the schema's default, with this very time.
            class.conditions.push(Condition {
                kind: "Ready".into(),
                status: Status::True,
                reason: "Ready".into(),
                message: "".into(),
                since: "2024-01-01T01:01:01Z".parse().unwrap_or_default(),
                generation: 0,
            });
        }
        Ok(Object::Class(class))
    }

    fn budget(&self) -> Result<Budget, Invalid> {
        let spec = &self.value["spec"];
        let count = |field: &str| match &spec[field] {
            Value::Null => Ok(None),
            Value::Number(number) => number.as_u64().map(|pods| Some(Count::Pods(pods))).ok_or(()),
            Value::String(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
                percent.map(|percent| Some(Count::Percent(percent))).ok_or(())
            }
            _ => Err(()),
        };
        let read = |field: &str| {
            let remedy =
                || self.invalid(format!("spec.{field}: {} is no number of pods; write 3 or \"50%\"", spec[field]));
            count(field).map_err(|()| remedy())
        };
        Ok(Budget {
            key: self.key()?,
            selector: selector::read("spec.selector", &spec["selector"]).map_err(|problem| self.invalid(problem))?,
            min_available: read("minAvailable")?,
            max_unavailable: read("maxUnavailable")?,
        })
    }

    fn workload(&self, kind: WorkloadKind, field: &str) -> Result<Object, Invalid> {
        let replicas = self.whole(field)?.unwrap_or(1);
        let (shape, runs_for) = self.template(kind.pod_owner())?;
        // Containers of these kinds are started again when they end.
        let runs_for = runs_for.filter(|_| matches!(kind, WorkloadKind::Job { .. }));
        let volumes = self.volumes(&self.value["spec"]["template"]["spec"]);
        Ok(Object::Workload(Workload { kind, key: self.key()?, replicas, shape, runs_for, volumes }))
    }

    fn job(&self) -> Result<Object, Invalid> {
        let parallelism = self.whole("parallelism")?.unwrap_or(1);
        let completions = self.whole("completions")?.unwrap_or(parallelism);
        let (shape, runs_for) = self.template(Some(("batch/v1", "Job")))?;
        let runs_for = Some(runs_for.unwrap_or(JOB_RUNS_FOR));
        let kind = WorkloadKind::Job { completions };
        let volumes = self.volumes(&self.value["spec"]["template"]["spec"]);
        Ok(Object::Workload(Workload { kind, key: self.key()?, replicas: parallelism, shape, runs_for, volumes }))
    }

    fn pod(&self) -> Result<Object, Invalid> {
        let (shape, runs_for) = self.shape(&self.value["metadata"], &self.value["spec"], None, "spec")?;
        let (key, volumes) = (self.key()?, self.volumes(&self.value["spec"]));
        Ok(Object::Workload(Workload { kind: WorkloadKind::Pod, key, replicas: 1, shape, runs_for, volumes }))
    }

    /// The shape of a workload's pods, and how long they run.
    fn template(&self, owner: Option<(&str, &str)>) -> Result<(Arc<PodShape>, Option<Duration>), Invalid> {
        let template = &self.value["spec"]["template"];
        if !template["spec"].is_object() {
            return Err(self.invalid("spec.template.spec: is missing; write the pods' containers there"));
        }
        self.shape(&template["metadata"], &template["spec"], owner, "spec.template.spec")
    }

    fn shape(
        &self,
        metadata: &Value,
        spec: &Value,
        owner: Option<(&str, &str)>,
        at: &str,
    ) -> Result<(Arc<PodShape>, Option<Duration>), Invalid> {
        let mut spec = spec.clone();
        if let (Some(name), true) = (spec["priorityClassName"].as_str(), spec["priority"].is_null()) {
            let value = match name {
                "system-cluster-critical" => 2_000_000_000,
                "system-node-critical" => 2_000_001_000,
                other => *self.priorities.get(other).ok_or_else(|| {
                    self.invalid(format!("{at}.priorityClassName: there is no PriorityClass {other}; apply it before"))
                })?,
            };
            spec["priority"] = json!(value);
        }
        let key = self.key()?;
        let owners = owner.map(|(version, kind)| {
            json!([{ "apiVersion": version, "kind": kind, "name": &*key.name, "uid": "owner", "controller": true }])
        });
        let whole = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": &*key.name,
                "namespace": &*key.namespace,
                "labels": metadata["labels"],
                "annotations": metadata["annotations"],
                "ownerReferences": owners,
            },
            "spec": spec,
        });
        let pod = read_pod(&whole, self.shapes).map_err(|error| self.invalid(error))?;
        self.check(&pod.shape)?;
        let runs_for = match metadata["annotations"][RUN_FOR].as_str() {
            None => None,
            Some(text) => Some(go_duration(text).ok_or_else(|| {
                self.invalid(format!("annotation {RUN_FOR}: {text:?} is no duration; write for instance 90s or 1h30m"))
            })?),
        };
        Ok((pod.shape, runs_for))
    }

    fn check(&self, shape: &PodShape) -> Result<(), Invalid> {
        shape.broken.as_ref().map_or(Ok(()), |problem| Err(self.invalid(problem)))
    }

    /// A whole number in the spec, if it is there.
    fn whole(&self, field: &str) -> Result<Option<u64>, Invalid> {
        match &self.value["spec"][field] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| {
                self.invalid(format!("spec.{field}: {value} is no number of pods; write a whole number from 0"))
            }),
        }
    }

    fn name(&self) -> Result<&str, Invalid> {
        let name = self.value["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        name.ok_or_else(|| self.invalid("metadata.name: is missing; give the object a name"))
    }

    fn key(&self) -> Result<ObjectKey, Invalid> {
        let namespace = self.value["metadata"]["namespace"].as_str().unwrap_or("default");
        Ok(ObjectKey::new(namespace, self.name()?))
    }

    fn object(&self) -> String {
        let part = |value: &Value, absent: &str| value.as_str().unwrap_or(absent).to_owned();
        let metadata = &self.value["metadata"];
        let name = part(&metadata["name"], "without a name");
        let namespace = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{name}", part(&self.value["kind"], "object"))
    }

    fn invalid(&self, problem: impl std::fmt::Display) -> Invalid {
        Invalid { object: self.object(), problem: problem.to_string() }
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
