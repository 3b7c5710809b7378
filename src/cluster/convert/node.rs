//! Nodes.

use std::sync::Arc;

use serde_json::Value;

use crate::core::facts::{Effect, Node, OwnerClaim, Taint};
use crate::core::ids::{NodeName, NodeUid, ProviderId};

use super::problems::{Unreadable, lenient};
use super::wire;
use super::{amounts, common};

/// Reads a node from a manifest or an answer of the API server.
pub fn read_node(value: &Value) -> Result<Node, Unreadable> {
    let (wire, error): (wire::Node, _) = lenient("Node", value)?;
    match error {
        None => node(&wire),
        // A node's fact has no place for problems, and a node without its taints would invite pods: refuse it.
        Some(message) => Err(Unreadable { kind: "Node".to_owned(), name: super::problems::name_of(value), message }),
    }
}

/// Folds a node into a fact. A capacity that cannot be read counts as absent, an unknown taint effect as `NoSchedule`: both keep pods
/// away.
pub fn node(wire: &wire::Node) -> Result<Node, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("Node", meta)?;
    let spec = wire.spec.as_ref();
    let status = wire.status.as_ref();
    Ok(Node {
        name: NodeName::from(name),
        uid: NodeUid::from(common::uid(meta)),
        created: common::created(meta),
        deleting: common::time(meta.deletion_timestamp.as_ref()),
        version: common::version(meta),
        labels: common::shared(meta.labels.as_ref()),
        annotations: common::own_annotations(meta),
        finalizers: common::finalizers(meta),
        owner_claims: meta
            .owner_references
            .iter()
            .flatten()
            .filter(|r| r.kind == "NodeClaim" && r.api_version.starts_with("karpenter.sh/"))
            .map(|r| OwnerClaim { name: r.name.as_str().into(), uid: r.uid.as_str().into() })
            .collect(),
        provider_id: spec.and_then(|s| s.provider_id.as_deref()).filter(|id| !id.is_empty()).map(provider_id),
        taints: spec.and_then(|s| s.taints.as_ref()).into_iter().flatten().map(taint).collect(),
        cordoned: spec.and_then(|s| s.unschedulable).unwrap_or(false),
        capacity: amounts::capacity(status.and_then(|s| s.capacity.as_ref())),
        allocatable: amounts::capacity(status.and_then(|s| s.allocatable.as_ref())),
        boot_id: status
            .and_then(|s| s.node_info.as_ref()?.boot_id.as_deref())
            .filter(|id| !id.is_empty())
            .map(Arc::from),
        conditions: common::conditions(status.and_then(|s| s.conditions.as_ref()), meta),
    })
}

/// A machine's identity as joiner writes it. Outscale's cloud controller manager has two spellings, `osc:///zone/id` in its documents and
/// `aws:///zone/id` in its code, and takes the last two parts of either: here both are one, so that a Node is matched to its machine whichever it has.
fn provider_id(written: &str) -> ProviderId {
    let outscale = written.strip_prefix("osc://").and_then(|rest| {
        let (place, id) = rest.rsplit_once('/')?;
        let zone = place.rsplit('/').next().unwrap_or_default();
        Some(ProviderId::from(format!("aws:///{zone}/{id}")))
    });
    outscale.unwrap_or_else(|| ProviderId::from(written))
}

fn taint(taint: &wire::Taint) -> Taint {
    Taint {
        key: taint.key.as_str().into(),
        value: taint.value.as_deref().unwrap_or_default().into(),
        effect: Effect::parse(&taint.effect).unwrap_or(Effect::NoSchedule),
    }
}
