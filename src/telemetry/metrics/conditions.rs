//! Conditions of NodeClaims, NodePools and Nodes, and how long their ends take, as operatorpkg shows them: by kind, and for NodeClaims and
//! NodePools also under the deprecated names that all kinds share.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::facts::{Claim, Condition, Node, Snapshot};
use crate::core::ids::ClassRef;
use crate::core::labels;
use crate::telemetry::conditions::Transition;

use super::Samples;
use super::cluster::label;
use super::families::{self as f, Family};
use super::registry::{count_with, took_with};
use super::samples::identifier;

/// The API group of NodeClaims and NodePools.
const GROUP: &str = "karpenter.sh";

/// The families of one kind.
struct Families {
    /// Label `kind` of the deprecated families; Nodes are not in them.
    old: Option<&'static str>,
    transitions: Family<3>,
    transition_seconds: Family<3>,
    conditions: Family<5>,
    condition_seconds: Family<5>,
    terminating: Family<2>,
    terminated: Family<0>,
}

const CLAIMS: Families = Families {
    old: Some("NodeClaim"),
    transitions: f::NODECLAIM_TRANSITIONS,
    transition_seconds: f::NODECLAIM_TRANSITION_SECONDS,
    conditions: f::NODECLAIM_CONDITIONS,
    condition_seconds: f::NODECLAIM_CONDITION_SECONDS,
    terminating: f::NODECLAIM_TERMINATING,
    terminated: f::NODECLAIM_TERMINATED,
};

const POOLS: Families = Families {
    old: Some("NodePool"),
    transitions: f::NODEPOOL_TRANSITIONS,
    transition_seconds: f::NODEPOOL_TRANSITION_SECONDS,
    conditions: f::NODEPOOL_CONDITIONS,
    condition_seconds: f::NODEPOOL_CONDITION_SECONDS,
    terminating: f::NODEPOOL_TERMINATING,
    terminated: f::NODEPOOL_TERMINATED,
};

const NODES: Families = Families {
    old: None,
    transitions: f::NODE_TRANSITIONS,
    transition_seconds: f::NODE_TRANSITION_SECONDS,
    conditions: f::NODE_CONDITIONS,
    condition_seconds: f::NODE_CONDITION_SECONDS,
    terminating: f::NODE_TERMINATING,
    terminated: f::NODE_TERMINATED,
};

/// A condition of a NodeClaim has changed its status.
pub fn claim_condition_changed(claim: &Claim, transition: &Transition) {
    let class = class_label(&claim.class);
    CLAIMS.changed(&of_claim(claim, &class), transition);
}

/// A condition of a NodePool has changed its status.
pub fn pool_condition_changed(transition: &Transition) {
    POOLS.changed(&[], transition);
}

/// A condition of a Node has changed its status. The snapshot says which kinds of NodeClass there are.
pub fn node_condition_changed(snapshot: &Snapshot, node: &Node, transition: &Transition) {
    let classes = class_labels(snapshot);
    NODES.changed(&of_node(node, &classes), transition);
}

/// A NodeClaim is gone, `since_deletion` after it was deleted.
pub(super) fn claim_ended(claim: &Claim, since_deletion: Duration) {
    let class = class_label(&claim.class);
    CLAIMS.ended(&of_claim(claim, &class), since_deletion);
}

/// A NodePool is gone, `since_deletion` after it was deleted.
pub fn pool_terminated(since_deletion: Duration) {
    POOLS.ended(&[], since_deletion);
}

/// The Node of a NodeClaim is gone, `since_deletion` after it was deleted.
pub(super) fn node_ended(claim: &Claim, node: &Node, since_deletion: Duration) {
    let classes = [(claim.class.label(), class_label(&claim.class))];
    NODES.ended(&of_node(node, &classes), since_deletion);
}

/// Samples the conditions of NodeClaims, NodePools and nodes, and how long those that are being deleted have taken so far. Several series
/// per condition.
pub fn sample_conditions(samples: &mut Samples, snapshot: &Snapshot, now: Timestamp) {
    for claim in snapshot.claims.values() {
        let class = class_label(&claim.class);
        let object = Object { name: claim.name.as_str(), more: &of_claim(claim, &class), now };
        CLAIMS.sample(samples, &object, &claim.conditions, claim.deleting);
    }
    for pool in snapshot.pools.values() {
        let object = Object { name: pool.name.as_str(), more: &[], now };
        POOLS.sample(samples, &object, &pool.conditions, pool.deleting);
    }
    let classes = class_labels(snapshot);
    for node in snapshot.nodes.values() {
        let object = Object { name: node.name.as_str(), more: &of_node(node, &classes), now };
        NODES.sample(samples, &object, &node.conditions, node.deleting);
    }
}

/// A cluster-scoped object whose conditions are sampled.
struct Object<'a> {
    name: &'a str,
    more: &'a [(&'a str, &'a str)],
    now: Timestamp,
}

impl Families {
    fn changed(&self, more: &[(&str, &str)], transition: &Transition) {
        let (kind, reason) = (&*transition.kind, &*transition.reason);
        let to = transition.to.as_str();
        count_with(&self.transitions, &[kind, to, reason], more, 1);
        if let Some(old) = self.old {
            count_with(&f::OLD_TRANSITIONS, &[kind, to, reason, GROUP, old], &[], 1);
        }
        let Some((from, lasted)) = transition.from else { return };
        took_with(&self.transition_seconds, &[kind, from.as_str(), to], more, lasted);
        if let Some(old) = self.old {
            took_with(&f::OLD_TRANSITION_SECONDS, &[kind, from.as_str(), to, GROUP, old], &[], lasted);
        }
    }

    fn ended(&self, more: &[(&str, &str)], since_deletion: Duration) {
        took_with(&self.terminated, &[], more, since_deletion);
        if let Some(old) = self.old {
            took_with(&f::OLD_TERMINATED, &[GROUP, old], &[], since_deletion);
        }
    }

    fn sample(
        &self,
        samples: &mut Samples,
        object: &Object<'_>,
        conditions: &[Condition],
        deleting: Option<Timestamp>,
    ) {
        let seconds = |since: Timestamp| object.now.duration_since(since).as_secs_f64();
        for condition in conditions {
            let (kind, status, reason) = (&*condition.kind, condition.status.as_str(), &*condition.reason);
            let values = ["", object.name, kind, status, reason];
            samples.add_with(&self.conditions, &values, object.more, 1.0);
            samples.add_with(&self.condition_seconds, &values, object.more, seconds(condition.since));
            if let Some(old) = self.old {
                let values = ["", object.name, kind, status, reason, GROUP, old];
                samples.add(&f::OLD_CONDITIONS, &values, 1.0);
                samples.add(&f::OLD_CONDITION_SECONDS, &values, seconds(condition.since));
            }
        }
        let Some(deleting) = deleting else { return };
        samples.add_with(&self.terminating, &["", object.name], object.more, seconds(deleting));
        if let Some(old) = self.old {
            samples.add(&f::OLD_TERMINATING, &["", object.name, GROUP, old], seconds(deleting));
        }
    }
}

/// Labels that series of a NodeClaim carry besides those of their family.
fn of_claim<'a>(claim: &'a Claim, class: &'a str) -> [(&'a str, &'a str); 2] {
    [(class, &*claim.class.name), ("karpenter_sh_nodepool", label(&claim.labels, labels::NODEPOOL))]
}

/// Labels that series of a Node carry besides those of their family.
fn of_node<'a>(node: &'a Node, classes: &'a [(String, String)]) -> Vec<(&'a str, &'a str)> {
    let mut more: Vec<(&str, &str)> =
        classes.iter().map(|(key, name)| (name.as_str(), label(&node.labels, key))).collect();
    more.push(("karpenter_sh_nodepool", label(&node.labels, labels::NODEPOOL)));
    more.push(("karpenter_sh_initialized", label(&node.labels, labels::INITIALIZED)));
    more
}

/// The node labels of the kinds of NodeClass that there are, as labels and as metrics write them.
fn class_labels(snapshot: &Snapshot) -> Vec<(String, String)> {
    let kinds: BTreeSet<_> = snapshot.classes.keys().map(ClassRef::label).collect();
    kinds.into_iter().map(|key| (key.clone(), identifier(&key))).collect()
}

/// `karpenter.kwok.sh/kwoknodeclass` as `karpenter_kwok_sh_kwoknodeclass`.
fn class_label(class: &ClassRef) -> String {
    identifier(&class.label())
}
