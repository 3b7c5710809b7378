//! The Node object that stands for a machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use kube::core::ObjectMeta;

use crate::clouds::LaunchSpec;
use crate::core::facts::{InstanceType, Offering};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

/// Label with the UID of the NodeClaim: the machine's mark.
pub const NODECLAIM_UID: &str = "karpenter.kwok.sh/nodeclaim-uid";
/// Annotation with the name of the NodeClaim, which may be too long for a label.
pub const NODECLAIM_NAME: &str = "karpenter.kwok.sh/nodeclaim-name";
/// Label and annotation by which KWOK's own controller finds its nodes.
pub(super) const KWOK_NODE: &str = "kwok.x-k8s.io/node";
/// Its value.
pub(super) const FAKE: &str = "fake";
/// Label by which several KWOK controllers would share the nodes; there is one partition.
const PARTITION: &str = "kwok-partition";
/// Label that eks-node-viewer reads prices from.
const PRICE: &str = "eks-node-viewer/instance-price";
/// What provider IDs begin with.
pub(super) const PREFIX: &str = "kwok://";
/// A name has at most 253 characters; this much of the NodeClaim's name leaves room for the rest.
const LONGEST_CLAIM_NAME: usize = 230;

/// The cheapest offering among the candidates; of equals, the first.
pub(super) fn cheapest(candidates: &[Arc<InstanceType>]) -> Option<(&Arc<InstanceType>, &Offering)> {
    candidates
        .iter()
        .flat_map(|candidate| candidate.offerings.iter().map(move |offering| (candidate, offering)))
        .filter(|(_, offering)| offering.available)
        .min_by(|(_, one), (_, other)| one.price.total_cmp(&other.price))
}

/// The name of a NodeClaim's Node: the same whenever it is asked for.
pub(super) fn name(spec: &LaunchSpec) -> String {
    // FNV-1a: the name must not change with the compiler or the platform.
    let hash = spec
        .token
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let claim: String = spec.claim.name.as_str().chars().take(LONGEST_CLAIM_NAME).collect();
    format!("kwok-{claim}-{:08x}", hash & 0xffff_ffff)
}

/// The Node of a NodeClaim on an instance type and offering, as Karpenter's KWOK provider makes it.
pub(super) fn node(spec: &LaunchSpec, instance_type: &InstanceType, offering: &Offering) -> Node {
    let claim = &spec.claim;
    let name = name(spec);
    let mut annotations = text(&claim.annotations);
    annotations.insert(KWOK_NODE.to_owned(), FAKE.to_owned());
    annotations.insert(NODECLAIM_NAME.to_owned(), claim.name.as_str().to_owned());
    let mut allocatable = claim.requests.clone();
    for (resource, milli) in instance_type.allocatable().iter() {
        allocatable.set(resource.clone(), milli);
    }
    Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(node_labels(spec, instance_type, offering)),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(format!("{PREFIX}{name}")),
            taints: Some(vec![Taint {
                key: labels::UNREGISTERED_TAINT.to_owned(),
                effect: "NoExecute".to_owned(),
                ..Taint::default()
            }]),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            // As upstream has it: what was asked for, not what the type has. NodePool limits under KWOK count requests.
            capacity: Some(written(&claim.requests)),
            allocatable: Some(written(&allocatable)),
            phase: Some("Pending".to_owned()),
            ..NodeStatus::default()
        }),
    }
}

fn node_labels(spec: &LaunchSpec, instance_type: &InstanceType, offering: &Offering) -> BTreeMap<String, String> {
    let claim = &spec.claim;
    let mut all = text(&claim.labels);
    for requirement in claim.requirements.iter().chain(&instance_type.requirements).chain(&offering.requirements) {
        if let (Operator::In, [value]) = (requirement.operator, requirement.values.as_slice()) {
            all.insert(requirement.key.to_string(), value.to_string());
        }
    }
    // A type may run several architectures and systems; a Node has one.
    for (key, usual) in [(labels::OS, "linux"), (labels::ARCH, "amd64")] {
        if !all.contains_key(key)
            && let Some(value) = one_of(key, usual, instance_type, &claim.requirements)
        {
            all.insert(key.to_owned(), value.to_string());
        }
    }
    let price = format!("{:.6}", offering.price);
    let fixed = [
        (PRICE, price.as_str()),
        (PARTITION, "a"),
        (labels::HOSTNAME, claim.name.as_str()),
        (KWOK_NODE, FAKE),
        (NODECLAIM_UID, spec.token.as_str()),
    ];
    all.extend(fixed.map(|(key, value)| (key.to_owned(), value.to_owned())));
    all
}

/// The value of a key that the type offers and the NodeClaim admits; the usual one if it is among them.
fn one_of<'a>(key: &str, usual: &str, offered: &'a InstanceType, wanted: &[Requirement]) -> Option<&'a Arc<str>> {
    let values = &offered.requirements.iter().find(|requirement| &*requirement.key == key)?.values;
    let admits = |value: &Arc<str>| {
        wanted.iter().filter(|requirement| &*requirement.key == key).all(|requirement| match requirement.operator {
            Operator::In => requirement.values.contains(value),
            Operator::NotIn => !requirement.values.contains(value),
            _ => true,
        })
    };
    values
        .iter()
        .find(|value| &***value == usual && admits(value))
        .or_else(|| values.iter().find(|value| admits(value)))
}

fn text(map: &labels::Labels) -> BTreeMap<String, String> {
    map.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn written(resources: &Resources) -> BTreeMap<String, Written> {
    resources.iter().map(|(name, milli)| (name.as_str().to_owned(), Written(name.written(milli).to_string()))).collect()
}
