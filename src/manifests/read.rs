//! One manifest after another, as objects: strictly for worlds that are made of them, leniently for plans that go on without the broken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::admission::{Admission, pods_at};
use super::classes::{self, RESTRICTED_DOMAINS};
use super::nulls;
use super::object::{Found, Invalid, Object, Owned, Secret};
use super::refused;
use super::selector;
use super::unknown;
use super::volumes::{self, VolumeSource};
use super::workload::{Workload, WorkloadKind};
use crate::api::definition::plain;
use crate::api::validation::CloudLabels;
use crate::clouds::{kwok, outscale};
use crate::cluster::convert::{
    ClassKind, ShapeStore, UNREADABLE, Unreadable, are_requests_readable, condemn, read_attachment, read_buffer,
    read_claim, read_class, read_csi_node, read_daemon, read_group, read_namespace, read_node, read_overlay, read_pod,
    read_pool, read_slice, read_storage_class, read_template, read_volume, read_volume_claim,
};
use crate::core::facts::{Condition, Count, Effect, Kind, PodBudget, PodShape, Status};
use crate::core::ids::ObjectKey;
use crate::core::quantity::Quantity;
use crate::core::time::go_duration;

/// Most pods that Kubernetes supports in one cluster (kubernetes.io, "Considerations for large clusters"): a workload of more is a slip of the pen,
/// and would only fill the memory.
const MOST_PODS: u64 = 150_000;

/// Annotation on pods and templates: after how long the containers end by themselves, in Go's notation.
const RUN_FOR: &str = "sim.joiner.dev/run-for";
/// How long the pods of a Job run that does not say it.
const JOB_RUNS_FOR: Duration = Duration::from_mins(1);
/// Labels that users of the clouds may name.
const LABELS: CloudLabels<'static> =
    CloudLabels { restricted_domains: &RESTRICTED_DOMAINS, well_known: &classes::LABEL_KEYS };
/// Kinds that make pods, and that are not simulated.
const NOT_SIMULATED: [&str; 2] = ["CronJob", "ReplicationController"];

/// Reads one manifest strictly: whatever is wrong with it is an error. A `List` gives all of its items, a lone pod
/// something that keeps it unless it is on a node.
pub fn read_object(value: &Value, shapes: &ShapeStore, admission: &Admission) -> Result<Vec<Object>, Invalid> {
    let strict = |found: Result<Found, Invalid>| {
        let found = found?;
        match found.problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(match found.object {
                // What is on a node already is nobody's to place.
                bound @ Object::Pod { .. } if is_bound(&bound) => bound,
                other => other.kept(),
            }),
        }
    };
    examine(value, shapes, admission).into_iter().map(strict).collect()
}

fn is_bound(object: &Object) -> bool {
    matches!(object, Object::Pod { pod, .. } if pod.node.is_some())
}

/// Reads one manifest as far as possible: an object of which some part is wrong comes with its problems. A `List` gives all of its items.
pub fn examine(value: &Value, shapes: &ShapeStore, admission: &Admission) -> Vec<Result<Found, Invalid>> {
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind == "List" || (kind.ends_with("List") && value["items"].is_array()) {
        let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        return items.iter().flat_map(|item| examine(item, shapes, admission)).collect();
    }
    if let Some(foreign) = foreign(value) {
        return vec![Ok(Found::bare(Object::Irrelevant(foreign)))];
    }
    let value = &*nulls::settled(kind, value);
    let (refusals, unknown) = (refused::faults(kind, value), unknown::fields(kind, value));
    let admitted = admission.admit(kind, value);
    let (notices, more) = admitted.as_ref().map_or_else(Default::default, |all| (&all.notices[..], &all.refusals[..]));
    let refusals = [&refusals[..], more].concat();
    let value = admitted.as_ref().map_or(value, |admitted| &admitted.value);
    let mut reader = Reader { value, shapes, refusals, problems: Vec::new() };
    notices.iter().chain(&unknown).for_each(|notice| reader.note(Some(notice)));
    let found = reader.read(kind);
    // Those of objects without pods.
    for refusal in std::mem::take(&mut reader.refusals) {
        reader.note(Some(&refusal));
    }
    let found = found.map(|object| Found {
        unread: matches!(&object, Object::Pod { pod, .. } if pod.node.is_some() && pod.shape.broken.is_some())
            && !are_requests_readable(&value["spec"]),
        object,
        owners: owners(value),
        gates: gates(kind, value),
        group: group(kind).and_then(|kind| read_group(kind, value)),
        problems: reader.problems,
    });
    vec![found]
}

/// What a manifest is of another API that happens to have a kind of this name; nothing where it is of ours. Where no API is named, the usual one is meant.
pub(super) fn foreign(value: &Value) -> Option<String> {
    let version = value["apiVersion"].as_str().filter(|version| !version.is_empty())?;
    let kind = value["kind"].as_str().unwrap_or_default();
    let own = match kind {
        "NodePool" | "NodeClaim" | "NodeOverlay" => "karpenter.sh",
        "KWOKNodeClass" => kwok::CLASS_GROUP,
        "OutscaleNodeClass" => outscale::CLASS_GROUP,
        "CapacityBuffer" => "autoscaling.x-k8s.io",
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => "apps",
        "Job" => "batch",
        "PodDisruptionBudget" => "policy",
        "PriorityClass" => "scheduling.k8s.io",
        "StorageClass" | "CSINode" | "VolumeAttachment" => "storage.k8s.io",
        "ResourceSlice" => "resource.k8s.io",
        "Pod"
        | "Node"
        | "Namespace"
        | "PersistentVolume"
        | "PersistentVolumeClaim"
        | "PodTemplate"
        | "Secret"
        | "Service"
        | "LimitRange" => "",
        _ => return None,
    };
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    (group != own).then(|| format!("{kind} of {version}"))
}

/// As what the pods of a kind are spread together by default.
fn group(kind: &str) -> Option<Kind> {
    match kind {
        "Service" => Some(Kind::Service),
        "Deployment" | "ReplicaSet" => Some(Kind::ReplicaSet),
        "StatefulSet" => Some(Kind::StatefulSet),
        _ => None,
    }
}

fn owners(value: &Value) -> Vec<Owned> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let references = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references.map(|one| Owned { kind: text(&one["kind"]), name: text(&one["name"]) }).collect()
}

/// The scheduling gates of a pod, or of those that are made by a template.
fn gates(kind: &str, value: &Value) -> Vec<String> {
    let spec = pods_at(kind).and_then(|at| value.pointer(&format!("{at}/spec"))).unwrap_or(&Value::Null);
    let all = spec["schedulingGates"].as_array().into_iter().flatten();
    all.filter_map(|gate| gate["name"].as_str()).map(str::to_owned).collect()
}

struct Reader<'a> {
    value: &'a Value,
    shapes: &'a ShapeStore,
    /// Why the API server would not keep the object, or none of its pods.
    refusals: Vec<String>,
    problems: Vec<Invalid>,
}

impl Reader<'_> {
    fn read(&mut self, kind: &str) -> Result<Object, Invalid> {
        let object = self.object();
        let wrong = |error: &Unreadable| Invalid { object: object.clone(), problem: error.message.clone() };
        if kind.is_empty() {
            return Err(self.invalid("kind: is missing; write the kind of the object, for instance Deployment"));
        }
        if NOT_SIMULATED.contains(&kind) {
            return Err(
                self.invalid(format!("kind: pods of a {kind} are not thought of; write Jobs or Deployments instead"))
            );
        }
        match kind {
            "NodePool" => self.pool(),
            "KWOKNodeClass" => self.class(&classes::kwok_class()),
            "OutscaleNodeClass" => self.class(&classes::outscale_class()),
            "NodeClaim" => {
                let claim = read_claim(self.value).map_err(|error| wrong(&error))?;
                self.note(claim.broken.as_ref().map(|broken| &*broken.problem));
                self.note_amounts();
                Ok(Object::Claim(Box::new(claim)))
            }
            "Node" => {
                let node = read_node(self.value).map_err(|error| wrong(&error))?;
                self.note_amounts();
                self.note_taints();
                Ok(Object::Node(Box::new(node)))
            }
            "DaemonSet" => {
                let mut daemon = read_daemon(self.value, self.shapes).map_err(|error| wrong(&error))?;
                daemon.shape = self.checked(daemon.shape);
                Ok(Object::Daemon(daemon))
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
            "VolumeAttachment" => self.storage(read_attachment, Object::Attachment),
            "ResourceSlice" => self.storage(read_slice, Object::Slice),
            "NodeOverlay" => self.overlay(),
            "CapacityBuffer" => self.buffer(),
            "PodTemplate" => {
                let mut template = read_template(self.value, self.shapes).map_err(|error| wrong(&error))?;
                template.shape = self.checked(template.shape);
                Ok(Object::Template(template))
            }
            "Deployment" => self.workload(WorkloadKind::Deployment, "replicas"),
            "ReplicaSet" => self.workload(WorkloadKind::ReplicaSet, "replicas"),
            "StatefulSet" => {
                let ordered = self.value["spec"]["podManagementPolicy"] != json!("Parallel");
                self.workload(WorkloadKind::StatefulSet { ordered }, "replicas")
            }
            "Job" => self.job(),
            "Pod" => self.pod(),
            "Secret" => self.secret(),
            other => Ok(Object::Irrelevant(other.to_owned())),
        }
    }

    /// One that holds no base64 is encrypted, and somebody else's to read.
    fn secret(&self) -> Result<Object, Invalid> {
        let Ok(read) = serde_json::from_value::<k8s_openapi::api::core::v1::Secret>(self.value.clone()) else {
            return Ok(Object::Irrelevant("Secret".to_owned()));
        };
        let mut data: BTreeMap<String, Vec<u8>> =
            read.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        data.extend(read.string_data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes())));
        Ok(Object::Secret(Secret { name: self.name()?.to_owned(), data }))
    }

    fn storage<T>(
        &self,
        read: impl Fn(&Value) -> Result<T, Unreadable>,
        object: impl Fn(T) -> Object,
    ) -> Result<Object, Invalid> {
        read(self.value).map(object).map_err(|error| self.invalid(error.message))
    }

    fn overlay(&mut self) -> Result<Object, Invalid> {
        let mut overlay = read_overlay(self.value, &LABELS).map_err(|error| self.invalid(error.message))?;
        self.refused_by_definition("NodeOverlay", &mut overlay.errors);
        for problem in &overlay.errors {
            self.note(Some(problem));
        }
        Ok(Object::Overlay(Box::new(overlay)))
    }

    /// What its definition refuses, of an object in which nothing else is wrong.
    fn refused_by_definition(&self, kind: &str, errors: &mut Vec<Arc<str>>) {
        if errors.is_empty() {
            errors.extend(classes::faults(kind, self.value).iter().map(|fault| Arc::from(fault.to_string())));
        }
    }

    fn buffer(&mut self) -> Result<Object, Invalid> {
        let mut buffer = read_buffer(self.value).map_err(|error| self.invalid(error.message))?;
        self.refused_by_definition("CapacityBuffer", &mut buffer.errors);
        for problem in &buffer.errors {
            self.note(Some(problem));
        }
        Ok(Object::Buffer(Box::new(buffer)))
    }

    fn pool(&mut self) -> Result<Object, Invalid> {
        let mut pool = read_pool(self.value, &LABELS).map_err(|error| self.invalid(error.message))?;
        // There will be no such NodePool.
        pool.errors.extend(std::mem::take(&mut self.refusals).into_iter().map(Arc::from));
        for problem in &pool.errors {
            self.note(Some(problem));
        }
        Ok(Object::Pool(Box::new(pool)))
    }

    fn class(&mut self, kind: &ClassKind) -> Result<Object, Invalid> {
        let mut class = read_class(self.value, kind).map_err(|error| self.invalid(error.message))?;
        let faults: Vec<String> = classes::faults(kind.kind, self.value).iter().map(ToString::to_string).collect();
        if !faults.is_empty() {
            // There will be no such class, whatever the file says of it.
            let at = (Timestamp::UNIX_EPOCH, class.generation);
            condemn(&mut class.conditions, faults.join("; ").into(), at);
            for fault in &faults {
                self.note(Some(fault));
            }
        } else if let Some(bad) = class.conditions.iter().find(|condition| &*condition.reason == UNREADABLE) {
            let message = Arc::clone(&bad.message);
            self.note(Some(&message));
        }
        if class.conditions.is_empty() && kind.status.is_none() {
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

    fn budget(&self) -> Result<PodBudget, Invalid> {
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
        Ok(PodBudget {
            key: self.key()?,
            selector: selector::read("spec.selector", &spec["selector"]).map_err(|problem| self.invalid(problem))?,
            min_available: read("minAvailable")?,
            max_unavailable: read("maxUnavailable")?,
            spares_unready: spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow",
        })
    }

    fn workload(&mut self, kind: WorkloadKind, field: &str) -> Result<Object, Invalid> {
        let replicas = self.at_once(field)?.unwrap_or(1);
        // A Deployment's ReplicaSets, and so their pods, are told apart by what the template says. A ReplicaSet's own has the label where one made it.
        let hash = template_hash(&self.value["spec"]["template"]);
        let added = if kind == WorkloadKind::Deployment { vec![("pod-template-hash", hash)] } else { Vec::new() };
        let (shape, runs_for) = self.template(kind.pod_owner(), &added)?;
        // Containers of these kinds are started again when they end.
        let runs_for = runs_for.filter(|_| matches!(kind, WorkloadKind::Job { .. }));
        let volumes = self.volumes();
        Ok(Object::Workload(Workload { kind, key: self.key()?, replicas, shape, runs_for, volumes }))
    }

    fn job(&mut self) -> Result<Object, Invalid> {
        let parallelism = self.at_once("parallelism")?.unwrap_or(1);
        let completions = self.whole("completions")?;
        let succeeded = self.value["status"]["succeeded"].as_u64().unwrap_or(0);
        // Without a number of completions, the first success is that of the whole, and what runs then is the last.
        let is_over = self.is_over() || completions.is_none() && succeeded > 0;
        let completions = completions.unwrap_or(parallelism);
        let parallelism = if is_over { 0 } else { parallelism };
        let name = self.name()?.to_owned();
        // No two Jobs of a namespace share a name, as no two share a UID.
        let added =
            ["batch.kubernetes.io/job-name", "job-name", "batch.kubernetes.io/controller-uid", "controller-uid"];
        let added = added.map(|key| (key, name.clone()));
        let (shape, runs_for) = self.template(Some(("batch/v1", "Job")), &added)?;
        let runs_for = Some(runs_for.unwrap_or(JOB_RUNS_FOR));
        let kind = WorkloadKind::Job { completions, succeeded };
        let volumes = self.volumes();
        Ok(Object::Workload(Workload { kind, key: self.key()?, replicas: parallelism, shape, runs_for, volumes }))
    }

    /// The volumes of a workload's pods.
    fn volumes(&self) -> Vec<VolumeSource> {
        let spec = &self.value["spec"];
        volumes::sources(&spec["template"]["spec"], &spec["volumeClaimTemplates"])
    }

    /// Whether a Job makes no more pods.
    fn is_over(&self) -> bool {
        let conditions = self.value["status"]["conditions"].as_array().into_iter().flatten();
        let ended =
            |c: &Value| matches!(c["type"].as_str(), Some("Complete" | "Failed")) && c["status"] == json!("True");
        self.value["spec"]["suspend"] == json!(true) || conditions.into_iter().any(ended)
    }

    fn pod(&mut self) -> Result<Object, Invalid> {
        let mut pod = read_pod(self.value, self.shapes).map_err(|error| self.invalid(error.message))?;
        pod.shape = self.checked(pod.shape);
        let runs_for = self.runs_for(&self.value["metadata"]);
        Ok(Object::Pod { pod: Box::new(pod), runs_for, volumes: volumes::sources(&self.value["spec"], &Value::Null) })
    }

    /// The shape of a workload's pods, with the labels that its controller adds, and how long they run.
    fn template(
        &mut self,
        owner: Option<(&str, &str)>,
        added: &[(&str, String)],
    ) -> Result<(Arc<PodShape>, Option<Duration>), Invalid> {
        let template = &self.value["spec"]["template"];
        if !template["spec"].is_object() {
            return Err(self.invalid("spec.template.spec: is missing; write the pods' containers there"));
        }
        let mut metadata = template["metadata"].clone();
        // What is no map is left as it is, to be named as what is wrong.
        let is_map = |value: &Value| value.is_null() || value.is_object();
        if is_map(&metadata) && is_map(&metadata["labels"]) {
            for (key, value) in added.iter().filter(|(key, _)| template["metadata"]["labels"][*key].is_null()) {
                metadata["labels"][*key] = json!(value);
            }
        }
        self.shape(&metadata, &template["spec"], owner)
    }

    fn shape(
        &mut self,
        metadata: &Value,
        spec: &Value,
        owner: Option<(&str, &str)>,
    ) -> Result<(Arc<PodShape>, Option<Duration>), Invalid> {
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
        let pod = read_pod(&whole, self.shapes).map_err(|error| self.invalid(error.message))?;
        let shape = self.checked(pod.shape);
        Ok((shape, self.runs_for(metadata)))
    }

    /// After how long containers end by themselves. What cannot be read is noted, and they run on.
    fn runs_for(&mut self, metadata: &Value) -> Option<Duration> {
        let text = metadata["annotations"][RUN_FOR].as_str()?;
        let read = go_duration(text);
        if read.is_none() {
            self.note(Some(&format!("annotation {RUN_FOR}: {text:?} is no duration; write for instance 90s or 1h30m")));
        }
        read
    }

    /// Notes what is wrong with a shape. One that the API server would not keep is broken, too.
    fn checked(&mut self, mut shape: Arc<PodShape>) -> Arc<PodShape> {
        let known = shape.broken.clone();
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.retain(|refusal| !known.as_ref().is_some_and(|known| is_said(refusal, known)));
        if !refusals.is_empty() {
            let all: Vec<&str> = known.as_deref().into_iter().chain(refusals.iter().map(String::as_str)).collect();
            shape = self.shapes.share(PodShape { broken: Some(all.join("; ").into()), ..(*shape).clone() });
        }
        self.note(shape.broken.as_deref());
        shape
    }

    /// Notes what cannot be read of what a Node or a NodeClaim has. It counts as absent: nothing is planned on it.
    fn note_amounts(&mut self) {
        for field in ["capacity", "allocatable"] {
            let amounts = self.value["status"][field].as_object().into_iter().flatten();
            let problems: Vec<String> = amounts
                .filter_map(|(name, amount)| {
                    let error = Quantity::parse(&plain(amount)).err()?;
                    Some(format!("status.{field}.{name}: {error}; it counts as if there were none"))
                })
                .collect();
            for problem in &problems {
                self.note(Some(problem));
            }
        }
    }

    /// Notes taints of a Node whose effect is none. They count as `NoSchedule`.
    fn note_taints(&mut self) {
        let taints = self.value["spec"]["taints"].as_array().into_iter().flatten().enumerate();
        let effect = |taint: &Value| taint["effect"].as_str().unwrap_or_default().to_owned();
        let unknown =
            taints.map(|(at, taint)| (at, effect(taint))).filter(|(_, effect)| Effect::parse(effect).is_none());
        let problems: Vec<String> = unknown
            .map(|(at, effect)| {
                format!("spec.taints[{at}].effect: {effect:?} is no effect, and counts as NoSchedule; write NoSchedule, PreferNoSchedule or NoExecute")
            })
            .collect();
        for problem in &problems {
            self.note(Some(problem));
        }
    }

    fn note(&mut self, problem: Option<&str>) {
        if let Some(problem) = problem {
            let invalid = self.invalid(problem);
            self.problems.push(invalid);
        }
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

    /// How many pods there are to be at once, if it is said.
    fn at_once(&self, field: &str) -> Result<Option<u64>, Invalid> {
        match self.whole(field)? {
            Some(pods) if pods > MOST_PODS => Err(self.invalid(format!(
                "spec.{field}: {pods} are more pods than a cluster can hold; write a whole number up to {MOST_PODS}"
            ))),
            pods => Ok(pods),
        }
    }

    fn name(&self) -> Result<&str, Invalid> {
        let name = &self.value["metadata"]["name"];
        name.as_str().filter(|name| !name.is_empty()).ok_or_else(|| {
            self.invalid(match name {
                Value::Null | Value::String(_) => "metadata.name: is missing; give the object a name",
                _ => "metadata.name: is no text; write the name in quotes",
            })
        })
    }

    fn key(&self) -> Result<ObjectKey, Invalid> {
        let namespace = self.value["metadata"]["namespace"].as_str().unwrap_or("default");
        Ok(ObjectKey::new(namespace, self.name()?))
    }

    fn object(&self) -> String {
        let part = |value: &Value, absent: &str| value.as_str().unwrap_or(absent).to_owned();
        let metadata = &self.value["metadata"];
        let name = match &metadata["name"] {
            // YAML took it for something else than text.
            name @ (Value::Number(_) | Value::Bool(_)) => plain(name),
            name => part(name, "without a name"),
        };
        let namespace = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{name}", part(&self.value["kind"], "object"))
    }

    fn invalid(&self, problem: impl std::fmt::Display) -> Invalid {
        Invalid { object: self.object(), problem: problem.to_string() }
    }
}

/// Whether something is said of the field of a refusal already. Shapes call fields by their path in the pod.
fn is_said(refusal: &str, known: &str) -> bool {
    let field = refusal.split(": ").next().unwrap_or_default();
    let field = field.rfind("spec.").and_then(|at| field.get(at..)).unwrap_or(field);
    known.contains(&format!("{field}: "))
}

/// What tells the revisions of a Deployment apart: equal for equal templates, and of letters and digits. It is not the number that the Deployment
/// controller would come to, and need not be.
fn template_hash(template: &Value) -> String {
    // FNV-1a, 32 bits (Fowler, Noll and Vo).
    let hash = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", template.to_string().bytes().fold(0x811c_9dc5, hash))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
