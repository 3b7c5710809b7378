//! Pods, split into what makes each one itself and what many have in common.
//!
//! A Deployment's hundred pods differ in name, UID and age only. Everything a placement depends on sits in a [`PodShape`], of
//! which equal pods share one: it is what keeps 100,000 pods small and lets the solver treat them as one class.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels::Labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::{ResourceName, Resources};

use super::Toleration;

/// `status.phase` of a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PodPhase {
    /// Not all containers were started yet, or the pod has no node.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, at least one badly.
    Failed,
}

/// What kind of object keeps a pod alive, as far as decisions care.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// A DaemonSet: it follows the node.
    DaemonSet,
    /// The node itself (mirror pod of a static pod).
    Node,
    /// A StatefulSet: the replacement waits until the old pod is gone.
    StatefulSet,
    /// Any other controller.
    Controller,
    /// Nobody: once evicted, it is gone.
    Nobody,
}

/// A pod as it was last seen. `Eq`, as one and the same [`Arc`] of it is compared by its address then: pictures are compared pod by pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: PodUid,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// All that a placement depends on.
    pub shape: Arc<PodShape>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// The node it is bound to.
    pub node: Option<NodeName>,
    /// `status.nominatedNodeName`.
    pub nominated: Option<NodeName>,
    /// Whether kube-scheduler said that it fits nowhere (condition PodScheduled with reason Unschedulable).
    pub unschedulable: bool,
    /// kube-scheduler has weighed no node for it: it has not looked at it, or there was none when it did. In the second case the pod is
    /// `unschedulable` too, and kube-scheduler tries it again by itself.
    pub unjudged: bool,
    /// `metadata.deletionTimestamp`: when its grace period ends.
    pub deleting: Option<Timestamp>,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
    /// Since when it is bound: when its condition `PodScheduled` became True.
    pub scheduled: Option<Timestamp>,
    /// Since when it is ready: when its condition `Ready` became True.
    pub ready: Option<Timestamp>,
    /// The first of `metadata.ownerReferences` as a path: `/apis/apps/v1/namespaces/shop/replicasets/web-5d4f`. Equal ones are shared.
    pub owned_by: Option<Arc<str>>,
    /// Names of the PersistentVolumeClaims that it mounts, those of ephemeral volumes (`<pod>-<volume>`) included; sorted.
    pub volume_claims: Vec<Arc<str>>,
}

impl Pod {
    /// Whether all its containers have ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether a new node could help it: kube-scheduler found no place for it, and it is not tied to a node.
    ///
    /// Unlike Karpenter, a pod that carries a nomination still counts, because nominations are ours (design, section 4): a
    /// restarted joiner assigns such pods again to the nodes that are under way.
    pub fn is_provisionable(&self) -> bool {
        self.unschedulable
            && self.node.is_none()
            && self.deleting.is_none()
            && !self.is_terminal()
            && !matches!(self.shape.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it may turn out to need a node any moment: kube-scheduler has not looked at it.
    pub fn is_undecided(&self) -> bool {
        self.unjudged
            && !self.unschedulable
            && self.shape.scheduler.is_none()
            && self.node.is_none()
            && self.deleting.is_none()
            && !self.is_terminal()
            && !matches!(self.shape.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it would have to go elsewhere if its node went: neither its node's own, nor leaving or at its end already.
    pub fn is_reschedulable(&self) -> bool {
        self.deleting.is_none()
            && self.is_active_on_node()
            && !matches!(self.shape.owner, Owner::DaemonSet | Owner::Node)
    }

    /// Whether it uses room on its node.
    pub fn is_active_on_node(&self) -> bool {
        self.node.is_some() && !self.is_terminal()
    }
}

/// Everything that a pod's placement and eviction depend on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PodShape {
    /// `metadata.namespace`: selectors of other pods look at it.
    pub namespace: Arc<str>,
    /// `metadata.labels`: selectors of other pods look at them.
    pub labels: Labels,
    /// What kube-scheduler counts: containers, init containers, sidecars, overhead; and one pod.
    pub requests: Resources,
    /// What its containers may use at most, summed like the requests; and one pod. No placement depends on it.
    pub limits: Resources,
    /// Whether it asks for devices (`spec.resourceClaims`).
    pub dynamic_resources: bool,
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// `spec.affinity.nodeAffinity`.
    pub node_affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// `spec.topologySpreadConstraints`.
    pub spreads: Vec<TopologySpread>,
    /// Required terms of `spec.affinity.podAffinity`.
    pub affinity: Vec<AffinityTerm>,
    /// Required terms of `spec.affinity.podAntiAffinity`.
    pub anti_affinity: Vec<AffinityTerm>,
    /// Preferred terms of `spec.affinity.podAffinity`.
    pub preferred_affinity: Vec<Weighted<AffinityTerm>>,
    /// Preferred terms of `spec.affinity.podAntiAffinity`.
    pub preferred_anti_affinity: Vec<Weighted<AffinityTerm>>,
    /// Ports of the node that its containers take.
    pub host_ports: Vec<HostPort>,
    /// `spec.priority`.
    pub priority: i32,
    /// Whether its priority class is `system-cluster-critical` or `system-node-critical`: it is drained last.
    pub critical: bool,
    /// `spec.terminationGracePeriodSeconds`.
    pub grace_seconds: i64,
    /// Who keeps it alive.
    pub owner: Owner,
    /// `spec.schedulerName`, when it is not `default-scheduler`.
    pub scheduler: Option<Arc<str>>,
    /// Annotation `karpenter.sh/do-not-disrupt`.
    pub do_not_disrupt: DoNotDisrupt,
    /// What of the pod could not be understood, field and remedy, in one sentence; such a pod is refused with it.
    pub broken: Option<Arc<str>>,
}

/// Whether a pod asks to be left where it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum DoNotDisrupt {
    /// It does not.
    #[default]
    Unsaid,
    /// For ever.
    Always,
    /// For this long after its start.
    For(Duration),
    /// It says something that means nothing, and protects nothing.
    Meaningless(Arc<str>),
}

impl PodShape {
    /// Whether its place depends on where other pods are.
    pub fn is_topological(&self) -> bool {
        !self.spreads.is_empty() || self.has_affinity()
    }

    /// Whether it has a term of pod affinity or anti-affinity, required or preferred.
    pub fn has_affinity(&self) -> bool {
        !self.affinity.is_empty()
            || !self.anti_affinity.is_empty()
            || !self.preferred_affinity.is_empty()
            || !self.preferred_anti_affinity.is_empty()
    }

    /// A shape that asks for `requests` and nothing else, in namespace `default`.
    pub fn plain(requests: Resources) -> Self {
        Self {
            namespace: "default".into(),
            labels: Labels::new(),
            requests: requests.with(ResourceName::Pods.as_str(), 1000),
            limits: Resources::new().with(ResourceName::Pods.as_str(), 1000),
            dynamic_resources: false,
            node_selector: Labels::new(),
            node_affinity: NodeAffinity::default(),
            tolerations: Vec::new(),
            spreads: Vec::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            preferred_affinity: Vec::new(),
            preferred_anti_affinity: Vec::new(),
            host_ports: Vec::new(),
            priority: 0,
            critical: false,
            grace_seconds: 30,
            owner: Owner::Controller,
            scheduler: None,
            do_not_disrupt: DoNotDisrupt::Unsaid,
            broken: None,
        }
    }
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeAffinity {
    /// Required terms: at least one must hold, each being a list of requirements that must all hold. Empty: no requirement.
    pub required: Vec<Vec<Requirement>>,
    /// Preferred terms.
    pub preferred: Vec<Preference>,
}

/// A preferred node affinity term.
pub type Preference = Weighted<Vec<Requirement>>;

/// Something with a weight of 1 to 100.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weighted<T> {
    /// 1 to 100.
    pub weight: i32,
    /// What is weighed.
    pub term: T,
}

/// A label selector. `None` of its Kubernetes form (no selector at all) matches nothing and is not a [`Selector`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Selector {
    /// Labels that must be equal.
    pub labels: Labels,
    /// Expressions that must hold (`In`, `NotIn`, `Exists`, `DoesNotExist`).
    pub expressions: Vec<Requirement>,
}

impl Selector {
    /// Whether it matches labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|wanted| {
                let value = labels.get(&wanted.key);
                match wanted.operator {
                    Operator::In => value.is_some_and(|v| wanted.values.contains(v)),
                    Operator::NotIn => value.is_none_or(|v| !wanted.values.contains(v)),
                    Operator::Exists => value.is_some(),
                    Operator::DoesNotExist => value.is_none(),
                    // Label selectors know four operators; the parser lets no other pass.
                    Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => false,
                }
            })
    }
}

/// Whether a spread constraint counts nodes that a pod could not use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PolicyHonor {
    /// Nodes that do not match are left out.
    Honor,
    /// All nodes count.
    Ignore,
}

/// One of `spec.topologySpreadConstraints`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopologySpread {
    /// Node label whose values are the domains.
    pub key: Arc<str>,
    /// How much fuller than the emptiest domain a domain may be.
    pub max_skew: i32,
    /// Fewer domains than this count as an empty one.
    pub min_domains: Option<i32>,
    /// `DoNotSchedule` (true) or `ScheduleAnyway` (false).
    pub required: bool,
    /// Which pods are counted, `matchLabelKeys` already folded in; nothing matches no pod.
    pub selector: Option<Selector>,
    /// Default `Honor`.
    pub node_affinity_policy: PolicyHonor,
    /// Default `Ignore`.
    pub node_taints_policy: PolicyHonor,
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AffinityTerm {
    /// Node label whose values are the domains.
    pub key: Arc<str>,
    /// Which pods are meant, `matchLabelKeys` and `mismatchLabelKeys` already folded in; nothing matches no pod.
    pub selector: Option<Selector>,
    /// Namespaces by name. When this and `namespace_selector` are both empty, the parser has put the pod's own here.
    pub namespaces: Vec<Arc<str>>,
    /// Namespaces by label, in addition; an empty selector means all.
    pub namespace_selector: Option<Selector>,
}

/// A port of the node that a container takes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPort {
    /// Address; `0.0.0.0` and `::` stand for all.
    pub ip: Arc<str>,
    /// Port number.
    pub port: i32,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Arc<str>,
}
