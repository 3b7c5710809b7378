//! The parts of Kubernetes objects that joiner reads, as they travel. What is not named here is skipped while parsing and never
//! allocated: an object of 8 KB of JSON leaves a few hundred bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Affinity, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::{ApiResource, ClusterResourceScope, DynamicResourceScope, NamespaceResourceScope};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

pub use super::wire_groups::*;
pub use super::wire_volumes::*;

/// Metadata without the parts that nobody reads (`managedFields` is often half of an object).
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "a map with name and namespace")]
    struct Lean {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        finalizers: Option<Vec<String>>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let lean = Lean::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: lean.name,
        namespace: lean.namespace,
        uid: lean.uid,
        resource_version: lean.resource_version,
        generation: lean.generation,
        creation_timestamp: lean.creation_timestamp,
        deletion_timestamp: lean.deletion_timestamp,
        labels: lean.labels,
        annotations: lean.annotations,
        finalizers: lean.finalizers,
        owner_references: lean.owner_references,
        ..ObjectMeta::default()
    })
}

/// A quantity as it was written: text, or a number that a manifest left unquoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as \"500m\", \"1Gi\" or 2")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Amounts by resource, as written.
pub type Amounts = BTreeMap<String, Amount>;

/// Requests and limits.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ResourceRequirements {
    /// What is asked for.
    pub requests: Option<Amounts>,
    /// What may be used at most; stands for a request that is absent.
    pub limits: Option<Amounts>,
}

/// A Pod.
#[derive(Clone, Debug, Deserialize)]
pub struct Pod {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: Option<PodSpec>,
    /// What became of it.
    pub status: Option<PodStatus>,
}

/// `spec` of a pod or of a pod template.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// The node it is bound to.
    pub node_name: Option<String>,
    /// Labels that its node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Node and pod affinity.
    pub affinity: Option<Affinity>,
    /// Which taints it bears.
    pub tolerations: Option<Vec<Toleration>>,
    /// How it is spread.
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Containers.
    pub containers: Option<Vec<Container>>,
    /// Init containers and sidecars.
    pub init_containers: Option<Vec<Container>>,
    /// What the runtime class adds.
    pub overhead: Option<Amounts>,
    /// Resources of the pod as a whole.
    pub resources: Option<ResourceRequirements>,
    /// Devices that it asks for; only whether there are any matters.
    pub resource_claims: Option<Vec<de::IgnoredAny>>,
    /// Priority.
    pub priority: Option<i32>,
    /// Name of its priority class.
    pub priority_class_name: Option<String>,
    /// How long it may take to stop, in seconds.
    pub termination_grace_period_seconds: Option<i64>,
    /// Which scheduler places it.
    pub scheduler_name: Option<String>,
    /// Whether its containers' ports are the node's.
    pub host_network: Option<bool>,
    /// Its volumes.
    pub volumes: Option<Vec<PodVolume>>,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Its name, to find its status.
    #[serde(default)]
    pub name: String,
    /// What it asks for.
    pub resources: Option<ResourceRequirements>,
    /// Its ports.
    pub ports: Option<Vec<Port>>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
}

/// A container's port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Port in the pod.
    pub container_port: Option<i32>,
    /// Port of the node.
    pub host_port: Option<i32>,
    /// Address of the node.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// `TCP` unless said otherwise.
    pub protocol: Option<String>,
}

/// `status` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Phase.
    pub phase: Option<String>,
    /// Conditions.
    pub conditions: Option<Vec<Condition>>,
    /// When the kubelet took it on.
    pub start_time: Option<Time>,
    /// The node that it was nominated to.
    pub nominated_node_name: Option<String>,
    /// Containers as they run.
    pub container_statuses: Option<Vec<ContainerStatus>>,
    /// Init containers as they run.
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    /// What the node has set aside for the pod as a whole.
    pub allocated_resources: Option<Amounts>,
    /// What is in force for the pod as a whole.
    pub resources: Option<ResourceRequirements>,
}

/// A container as it runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container's name.
    #[serde(default)]
    pub name: String,
    /// What the node has set aside for it.
    pub allocated_resources: Option<Amounts>,
    /// What is in force.
    pub resources: Option<ResourceRequirements>,
}

/// A status condition of any kind of object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which one.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// One word.
    pub reason: Option<String>,
    /// A sentence.
    pub message: Option<String>,
    /// When the status changed.
    pub last_transition_time: Option<Time>,
    /// Which generation was judged.
    pub observed_generation: Option<i64>,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Taint {
    /// Key.
    #[serde(default)]
    pub key: String,
    /// Value.
    pub value: Option<String>,
    /// Effect.
    #[serde(default)]
    pub effect: String,
}

/// A Node.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: Option<NodeSpec>,
    /// What it is.
    pub status: Option<NodeStatus>,
}

/// `spec` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The cloud's identity of its machine.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Taints.
    pub taints: Option<Vec<Taint>>,
    /// Whether it is cordoned.
    pub unschedulable: Option<bool>,
}

/// `status` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// What it has.
    pub capacity: Option<Amounts>,
    /// What pods may use.
    pub allocatable: Option<Amounts>,
    /// Conditions.
    pub conditions: Option<Vec<Condition>>,
    /// What runs on it.
    pub node_info: Option<NodeInfo>,
}

/// `status.nodeInfo` of a node.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeInfo {
    /// Another one after each boot.
    #[serde(rename = "bootID")]
    pub boot_id: Option<String>,
}

/// A DaemonSet.
#[derive(Clone, Debug, Deserialize)]
pub struct DaemonSet {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: Option<DaemonSetSpec>,
}

/// `spec` of a DaemonSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DaemonSetSpec {
    /// What its pods look like.
    pub template: Option<PodTemplate>,
}

/// A PodTemplate.
#[derive(Clone, Debug, Deserialize)]
pub struct PodTemplateObject {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What pods made from it look like.
    pub template: Option<PodTemplate>,
}

/// `spec` of a workload that can be scaled.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ScalableSpec {
    /// How many pods there ought to be; 1 when absent.
    pub replicas: Option<i64>,
    /// What its pods look like.
    pub template: Option<PodTemplate>,
}

/// A pod template.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PodTemplate {
    /// Labels and annotations.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: Option<PodSpec>,
}

/// A Namespace.
#[derive(Clone, Debug, Deserialize)]
pub struct Namespace {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
}

/// A custom resource: metadata read, the rest as it came, so that one object that breaks the schema spoils no list.
#[derive(Clone, Debug, Deserialize)]
pub struct Custom {
    /// Metadata.
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// `spec`, unread.
    #[serde(default)]
    pub spec: Value,
    /// `status`, unread.
    #[serde(default)]
    pub status: Value,
}

/// Says what a wire type is to the API library.
macro_rules! resources {
    ($($name:ident: $scope:ty, $group:literal, $plural:literal;)*) => {$(
        impl Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($name).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    )*};
}

resources! {
    Pod: NamespaceResourceScope, "", "pods";
    Node: ClusterResourceScope, "", "nodes";
    Namespace: ClusterResourceScope, "", "namespaces";
    DaemonSet: NamespaceResourceScope, "apps", "daemonsets";
    Service: NamespaceResourceScope, "", "services";
    ReplicationController: NamespaceResourceScope, "", "replicationcontrollers";
    ReplicaSet: NamespaceResourceScope, "apps", "replicasets";
    StatefulSet: NamespaceResourceScope, "apps", "statefulsets";
    PersistentVolumeClaim: NamespaceResourceScope, "", "persistentvolumeclaims";
    PersistentVolume: ClusterResourceScope, "", "persistentvolumes";
    StorageClass: ClusterResourceScope, "storage.k8s.io", "storageclasses";
    CSINode: ClusterResourceScope, "storage.k8s.io", "csinodes";
    VolumeAttachment: ClusterResourceScope, "storage.k8s.io", "volumeattachments";
    PodTemplateObject: NamespaceResourceScope, "", "podtemplates";
    PodDisruptionBudget: NamespaceResourceScope, "policy", "poddisruptionbudgets";
}

impl Resource for Custom {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
