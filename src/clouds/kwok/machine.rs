//! A Node read as a machine.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::core::facts::Machine;
use crate::core::ids::{ClaimName, ClaimUid, InstanceTypeName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::quantity::Quantity;
use crate::core::resources::Resources;

use super::node::{FAKE, KWOK_NODE, NODECLAIM_NAME, NODECLAIM_UID, PREFIX};

/// The machine that a Node stands for; nothing when it is none of KWOK's.
pub(super) fn machine(node: &Node) -> Option<Machine> {
    let id = node.spec.as_ref()?.provider_id.as_deref().filter(|id| id.starts_with(PREFIX))?;
    let meta = &node.metadata;
    let node_labels: Labels =
        meta.labels.iter().flatten().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect();
    // Nodes that Karpenter made have no mark of ours; once registered, they name their NodeClaim as owner.
    let owner = meta
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == "NodeClaim" && owner.api_version.starts_with("karpenter.sh/"));
    let token = node_labels.get(NODECLAIM_UID).cloned().map(ClaimUid::from);
    let claim = meta.annotations.as_ref().and_then(|all| all.get(NODECLAIM_NAME));
    let status = node.status.as_ref();
    let own = |key: &str| key != labels::HOSTNAME && key != NODECLAIM_UID;
    Some(Machine {
        id: ProviderId::from(id),
        token: token.or_else(|| owner.map(|owner| ClaimUid::from(owner.uid.as_str()))),
        claim: claim.or_else(|| owner.map(|owner| &owner.name)).map(|name| ClaimName::from(name.as_str())),
        created: meta.creation_timestamp.as_ref().map(|time| time.0),
        deleting: meta.deletion_timestamp.is_some(),
        instance_type: node_labels.get(labels::INSTANCE_TYPE).cloned().map(InstanceTypeName::from),
        labels: node_labels.into_iter().filter(|(key, _)| own(key)).collect(),
        annotations: [(KWOK_NODE.into(), FAKE.into())].into(),
        image: None,
        capacity: read(status.and_then(|status| status.capacity.as_ref())),
        allocatable: read(status.and_then(|status| status.allocatable.as_ref())),
    })
}

fn read(amounts: Option<&BTreeMap<String, Written>>) -> Resources {
    amounts
        .into_iter()
        .flatten()
        .filter_map(|(name, amount)| Some((name.as_str().into(), Quantity::parse(&amount.0).ok()?.milli_down())))
        .collect()
}
