//! Pods.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodAffinityTerm;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

use crate::api::definition::plain;
use crate::core::facts::{AffinityTerm, DoNotDisrupt, HostPort, Owner, Pod, PodPhase, PodShape, Weighted};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels;

use super::affinity::{self, Own};
use super::requests;
use super::selector::{Fields, check_labels};
use super::shapes::ShapeStore;
use crate::cluster::convert::common;
use crate::cluster::convert::problems::{Problems, Unreadable, lenient};
use crate::cluster::convert::wire::{self, Container, PodSpec, PodStatus};
use crate::core::time::go_duration;

/// Reads a pod from a manifest or an answer of the API server. Whatever part of it cannot be read, the pod is there, with the reason
/// in its shape.
pub fn read_pod(value: &Value, shapes: &ShapeStore) -> Result<Pod, Unreadable> {
    let (mut wire, error) = match lenient("Pod", value) {
        Ok(read) => read,
        Err(unreadable) => without_extras(value, unreadable)?,
    };
    // One that is on a node is there, whatever form the rest of its spec has.
    if wire.spec.is_none() {
        let on = |node: &str| PodSpec { node_name: Some(node.to_owned()), ..PodSpec::default() };
        wire.spec = value["spec"]["nodeName"].as_str().map(on);
    }
    convert(&wire, error, shapes)
}

/// Metadata without which a pod is still there, and told apart from others.
const EXTRAS: [&str; 10] = [
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "labels",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// A pod of whose metadata some part cannot be read, without it: it waits all the same, and is told why it gets no place. A name that YAML took for a
/// number is a name.
fn without_extras(value: &Value, unreadable: Unreadable) -> Result<(wire::Pod, Option<String>), Unreadable> {
    let part = unreadable.message.strip_prefix("metadata.").and_then(|rest| rest.split(['.', '[', ':']).next());
    let mut rest = value.clone();
    match (part, &value["metadata"]["name"]) {
        (Some("name"), name @ (Value::Number(_) | Value::Bool(_))) => rest["metadata"]["name"] = plain(name).into(),
        (Some(part), _) if EXTRAS.contains(&part) => rest["metadata"][part] = Value::Null,
        _ => return Err(unreadable),
    }
    let (wire, more) = lenient("Pod", &rest).or_else(|next| without_extras(&rest, next))?;
    let message = unreadable.message;
    Ok((wire, Some(more.map_or_else(|| message.clone(), |more| format!("{message}; {more}")))))
}

/// Folds a pod into a fact.
pub fn pod(wire: &wire::Pod, shapes: &ShapeStore) -> Result<Pod, Unreadable> {
    convert(wire, None, shapes)
}

fn convert(wire: &wire::Pod, error: Option<String>, shapes: &ShapeStore) -> Result<Pod, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("Pod", meta)?;
    let mut problems = Problems::default();
    if let Some(error) = error {
        problems.note_whole(error);
    } else if wire.spec.is_none() {
        problems.note("spec", "is missing; write the pod's containers there");
    }
    let empty = PodSpec::default();
    let spec = wire.spec.as_ref().unwrap_or(&empty);
    let owner = owner(meta.owner_references.as_deref().unwrap_or_default());
    let fields = if owner == Owner::DaemonSet { Fields::Ignored } else { Fields::Refused };
    let shape = shape(meta, spec, wire.status.as_ref(), owner, fields, problems);
    let key = ObjectKey { namespace: Arc::clone(&shape.namespace), name };
    let owned_by = owner_path(meta, &shape.namespace).map(|path| shapes.share_text(&path));
    let volume_claims = volume_claims(&key.name, spec);
    let status = wire.status.as_ref();
    let node = |name: &String| (!name.is_empty()).then(|| NodeName::from(name.as_str()));
    Ok(Pod {
        key,
        uid: PodUid::from(common::uid(meta)),
        created: common::created(meta),
        shape: shapes.share(shape),
        phase: phase(status.and_then(|s| s.phase.as_deref())),
        node: spec.node_name.as_ref().and_then(node),
        nominated: status.and_then(|s| s.nominated_node_name.as_ref()).and_then(node),
        unschedulable: status.is_some_and(is_unschedulable),
        unjudged: !status.is_some_and(was_weighed),
        deleting: common::time(meta.deletion_timestamp.as_ref()),
        started: common::time(status.and_then(|s| s.start_time.as_ref())),
        scheduled: status.and_then(|s| since(s, "PodScheduled")),
        ready: status.and_then(|s| since(s, "Ready")),
        owned_by,
        volume_claims,
    })
}

/// What kube-scheduler says of a pod when the cluster has no node at all (`ErrNoNodesAvailable`). It takes that for an error of its own and not for
/// a verdict on the pod.
const NO_NODES: &str = "no nodes available to schedule pods";

/// Whether kube-scheduler has held the pod against nodes.
fn was_weighed(status: &PodStatus) -> bool {
    let condition = status.conditions.iter().flatten().find(|condition| condition.kind == "PodScheduled");
    condition.is_some_and(|condition| condition.message.as_deref() != Some(NO_NODES))
}

/// Names of the claims that a pod mounts; that of an ephemeral volume is made of the pod's name and its own.
fn volume_claims(pod: &str, spec: &PodSpec) -> Vec<Arc<str>> {
    let volumes = spec.volumes.iter().flatten();
    let mut claims: Vec<Arc<str>> = volumes
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.as_str().into()),
            (None, Some(_)) => Some(format!("{pod}-{}", volume.name).into()),
            (None, None) => None,
        })
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// The shape of a pod, or of a template's pods.
pub(in crate::cluster::convert) fn shape(
    meta: &ObjectMeta,
    spec: &PodSpec,
    status: Option<&PodStatus>,
    owner: Owner,
    fields: Fields,
    mut problems: Problems,
) -> PodShape {
    let namespace: Arc<str> = meta.namespace.as_deref().unwrap_or("default").into();
    let own_labels = common::shared(meta.labels.as_ref());
    let own = Own { namespace: &namespace, labels: &own_labels, fields };
    let affinity = spec.affinity.as_ref();
    let pods = affinity.and_then(|a| a.pod_affinity.as_ref());
    let anti = affinity.and_then(|a| a.pod_anti_affinity.as_ref());
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let mut terms = |kind: &str, list: Option<&Vec<PodAffinityTerm>>| -> Vec<AffinityTerm> {
        affinity::terms(&format!("spec.affinity.{kind}.{required}"), list, &own, &mut problems)
    };
    let required_pods =
        terms("podAffinity", pods.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref()));
    let required_anti =
        terms("podAntiAffinity", anti.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref()));
    let mut weighted = |kind: &str, list| -> Vec<Weighted<AffinityTerm>> {
        affinity::weighted(&format!("spec.affinity.{kind}.{preferred}"), list, &own, &mut problems)
    };
    let preferred_pods =
        weighted("podAffinity", pods.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()));
    let preferred_anti =
        weighted("podAntiAffinity", anti.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()));
    check_labels(spec.node_selector.as_ref(), &mut problems);
    check_ports(spec, &mut problems);
    let node_affinity = affinity::node(affinity.and_then(|a| a.node_affinity.as_ref()), &own, &mut problems);
    let spreads = affinity::spreads(spec.topology_spread_constraints.as_ref(), &own, &mut problems);
    let tolerations = affinity::tolerations(spec.tolerations.as_ref(), &mut problems);
    let requests = requests::of_pod(spec, status, &mut problems);
    let limits = requests::limits_of_pod(spec, &mut problems);
    requests::check_limits(spec, &mut problems);
    PodShape {
        requests,
        limits,
        dynamic_resources: spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()),
        node_selector: node_selector(spec),
        node_affinity,
        tolerations,
        spreads,
        affinity: required_pods,
        anti_affinity: required_anti,
        preferred_affinity: preferred_pods,
        preferred_anti_affinity: preferred_anti,
        host_ports: host_ports(spec),
        priority: spec.priority.unwrap_or(0),
        critical: matches!(
            spec.priority_class_name.as_deref(),
            Some("system-cluster-critical" | "system-node-critical")
        ),
        // The API server's default, for objects that never went through it.
        grace_seconds: spec.termination_grace_period_seconds.unwrap_or(30),
        owner,
        scheduler: spec
            .scheduler_name
            .as_deref()
            .filter(|name| !matches!(*name, "" | "default-scheduler"))
            .map(Arc::from),
        do_not_disrupt: meta
            .annotations
            .as_ref()
            .and_then(|a| a.get(labels::DO_NOT_DISRUPT))
            .map_or(DoNotDisrupt::Unsaid, |value| do_not_disrupt(value)),
        broken: problems.sentence(),
        namespace,
        labels: own_labels,
    }
}

fn node_selector(spec: &PodSpec) -> labels::Labels {
    spec.node_selector
        .iter()
        .flatten()
        .map(|(key, value)| (labels::normalized(key).into(), value.as_str().into()))
        .collect()
}

/// Annotation `karpenter.sh/do-not-disrupt`: `true`, or a positive duration. Anything else protects nothing, as Karpenter has it.
pub fn do_not_disrupt(value: &str) -> DoNotDisrupt {
    match value {
        "true" => DoNotDisrupt::Always,
        "false" => DoNotDisrupt::Unsaid,
        text => match go_duration(text).filter(|duration| !duration.is_zero()) {
            Some(duration) => DoNotDisrupt::For(duration),
            None => DoNotDisrupt::Meaningless(text.into()),
        },
    }
}

/// Notes host ports that are none.
fn check_ports(spec: &PodSpec, problems: &mut Problems) {
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    for (list, containers) in lists {
        for (at, container) in containers.iter().flatten().enumerate() {
            let ports = container.ports.iter().flatten().enumerate();
            for (number, port) in ports.filter_map(|(number, port)| Some((number, port.host_port?))) {
                if !(0..=65_535).contains(&port) {
                    let field = format!("spec.{list}[{at}].ports[{number}].hostPort");
                    problems.note(&field, format!("{port} is not from 1 to 65535; write such a number"));
                }
            }
        }
    }
}

/// Ports of the node that containers and sidecars take; with `hostNetwork`, every port is one.
fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let on_host = spec.host_network.unwrap_or(false);
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let mut ports: Vec<HostPort> = spec
        .containers
        .iter()
        .flatten()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|n| *n != 0).or_else(|| port.container_port.filter(|_| on_host))?;
            Some(HostPort {
                ip: port.host_ip.as_deref().filter(|ip| !ip.is_empty()).unwrap_or("0.0.0.0").into(),
                port: number,
                protocol: port.protocol.as_deref().filter(|p| !p.is_empty()).unwrap_or("TCP").into(),
            })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

fn owner(references: &[OwnerReference]) -> Owner {
    let has = |group: &str, kind: &str| {
        references.iter().any(|r| r.kind == kind && r.api_version.split('/').next() == Some(group))
    };
    if has("apps", "DaemonSet") {
        Owner::DaemonSet
    } else if has("v1", "Node") {
        Owner::Node
    } else if has("apps", "StatefulSet") {
        Owner::StatefulSet
    } else if references.is_empty() {
        Owner::Nobody
    } else {
        Owner::Controller
    }
}

/// The first owner as Karpenter's metrics name it: like the path of a resource, the plural being the kind with an s.
fn owner_path(meta: &ObjectMeta, namespace: &str) -> Option<String> {
    let owner = meta.owner_references.as_ref()?.first()?;
    let kind = owner.kind.to_lowercase();
    Some(format!("/apis/{}/namespaces/{namespace}/{kind}s/{}", owner.api_version, owner.name))
}

/// Since when a condition of a pod is True; nothing while it is not, and when nobody says since when.
fn since(status: &PodStatus, kind: &str) -> Option<jiff::Timestamp> {
    let condition = status.conditions.iter().flatten().find(|c| c.kind == kind && c.status == "True")?;
    common::time(condition.last_transition_time.as_ref())
}

fn phase(word: Option<&str>) -> PodPhase {
    match word {
        // A pod whose node is lost may still run: it is not over.
        Some("Running" | "Unknown") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        _ => PodPhase::Pending,
    }
}

fn is_unschedulable(status: &PodStatus) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.kind == "PodScheduled" && c.status == "False" && c.reason.as_deref() == Some("Unschedulable"))
}
