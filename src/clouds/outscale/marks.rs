//! The marks of a machine: the tags by which joiner, the cloud controller manager and people know it.

use std::collections::BTreeMap;

use crate::api::classes::outscale::{HASH_VERSION, OutscaleNodeClassSpec};

use super::oapi::wire::{ResourceTag, Vm};

/// Whose machine it is: the name of the cluster. By this tag machines are listed.
pub const MANAGED_BY: &str = "karpenter.sh/managed-by";
/// Name of its NodeClaim.
pub const NODECLAIM: &str = "karpenter.sh/nodeclaim";
/// Name of its NodePool.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// UID of its NodeClaim: the same as its client token, which not every answer shows.
pub const NODECLAIM_UID: &str = "karpenter.outscale.com/nodeclaim-uid";
/// What its NodeClass said when it was launched: version and hash.
pub const CLASS_HASH: &str = "karpenter.outscale.com/class-hash";
/// Hash of the machine configuration that it was launched with.
pub const USER_DATA_HASH: &str = "karpenter.outscale.com/user-data-hash";
/// Name of its Node. The cloud controller manager finds the machine of a Node without a provider ID by it.
pub const NODE_NAME: &str = "OscK8sNodeName";
/// What people see.
pub const NAME: &str = "Name";
/// Family of the tag by which the cloud controller manager knows the cluster.
const CLUSTER_ID: &str = "OscK8sClusterID/";
/// Family of the tag by which the cloud controller manager knows what a machine is for.
const ROLE: &str = "OscK8sRole/";

/// What tags are made from.
#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    pub(super) cluster: &'a str,
    /// The cluster as the cloud controller manager knows it.
    pub(super) cluster_id: &'a str,
    pub(super) claim: &'a str,
    pub(super) uid: &'a str,
    pub(super) pool: Option<&'a str>,
    pub(super) spec: &'a OutscaleNodeClassSpec,
    pub(super) user_data_hash: &'a str,
}

impl Marked<'_> {
    /// The tags that can be written before there is a machine: with those that its name brings, ten are joiner's own, which is the least quota of
    /// tags per resource that was seen (terraform-provider-outscale, issue 68). `node` is the Node's name, where it is known that early.
    pub(super) fn at_birth(&self, node: Option<&str>) -> BTreeMap<String, String> {
        let mut all = self.spec.tags.clone();
        let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
        set(MANAGED_BY, self.cluster);
        set(NODECLAIM, self.claim);
        set(NODECLAIM_UID, self.uid);
        if let Some(pool) = self.pool {
            set(NODEPOOL, pool);
        }
        set(CLASS_HASH, &format!("{HASH_VERSION}-{}", self.spec.hash()));
        set(USER_DATA_HASH, self.user_data_hash);
        set(&cluster_id_tag(self.cluster_id), "owned");
        set(&format!("{ROLE}{}", self.spec.role()), "");
        if let Some(node) = node {
            set(NODE_NAME, node);
            set(NAME, &format!("{}-{node}", self.cluster));
        }
        all
    }
}

/// Whether a tag is joiner's to write.
pub(super) fn is_mark(key: &str) -> bool {
    let own = [MANAGED_BY, NODECLAIM, NODECLAIM_UID, NODEPOOL, CLASS_HASH, USER_DATA_HASH, NODE_NAME, NAME];
    own.contains(&key) || [CLUSTER_ID, ROLE].iter().any(|family| key.starts_with(family))
}

/// The tag that gives a machine to the cluster that the cloud controller manager knows under this name.
pub(super) fn cluster_id_tag(cluster_id: &str) -> String {
    format!("{CLUSTER_ID}{cluster_id}")
}

/// The UID of the NodeClaim that a machine was launched for, as its client token tells it: behind a dot stands which attempt it was.
pub(super) fn token(vm: &Vm) -> Option<&str> {
    vm.client_token.as_deref().and_then(|token| token.split('.').next()).filter(|token| !token.is_empty())
}

/// The value of a tag.
pub(super) fn tag<'a>(vm: &'a Vm, key: &str) -> Option<&'a str> {
    vm.tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str())
}

/// The tags that a machine lacks or has with another value.
pub(super) fn missing(vm: &Vm, wanted: &BTreeMap<String, String>) -> Vec<ResourceTag> {
    let lacking = wanted.iter().filter(|(key, value)| tag(vm, key) != Some(value.as_str()));
    lacking.map(|(key, value)| ResourceTag::new(key.as_str(), value.as_str())).collect()
}

/// The name of a machine's Node, as Talos on the `aws` platform gives it: the first label of the host name that the metadata service tells, or
/// all of it where the kubelet registers with it. Nothing when the machine has no address (yet).
pub(super) fn node_name(vm: &Vm, fqdn: bool) -> Option<String> {
    let dns = vm.private_dns_name.as_deref().filter(|name| !name.is_empty());
    if fqdn {
        return dns.map(str::to_owned);
    }
    let address: Option<std::net::Ipv4Addr> = vm.private_ip.as_deref().and_then(|address| address.parse().ok());
    let by_address = address.map(|address| {
        let [a, b, c, d] = address.octets();
        format!("ip-{a}-{b}-{c}-{d}")
    });
    by_address.or_else(|| dns.and_then(|name| name.split('.').next()).map(str::to_owned))
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
