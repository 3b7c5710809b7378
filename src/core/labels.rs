//! Label, annotation, taint and finalizer keys, and what Karpenter's API says of them (well-known, restricted, normalised).

use std::collections::BTreeMap;
use std::sync::Arc;

/// Labels, annotations and node selectors: ordered, with shared text.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// NodePool of a NodeClaim or Node.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// `spot`, `on-demand` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// `"true"` on a Node whose NodeClaim has been matched.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// `"true"` on a Node that is ready for its pods.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// `"true"` on a Node keeps registration from copying the NodeClaim's taints.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Zone of a node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region of a node.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Instance type of a node.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// CPU architecture.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system.
pub const OS: &str = "kubernetes.io/os";
/// Windows build.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// The name of a namespace, which the API server gives each of them as a label.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// Host name: one topology domain per node; not allowed in NodePools.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The name of a Node, of which `matchFields` of node affinity speak. It is a field and no label, and no label can have such a key.
pub const NODE_NAME_FIELD: &str = ":metadata.name";
/// Takes a draining node out of load balancers.
pub const EXCLUDE_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Blocks disruption: `true`, and on pods also a duration.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Hash of a NodePool's template (decimal u64).
pub const NODEPOOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Version of the hash recipe; [`HASH_VERSION`] is ours.
pub const NODEPOOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// On NodeClaims: the drivers whose devices its pods ask for, separated by commas.
pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
/// Karpenter 1.15's recipe.
pub const HASH_VERSION: &str = "v3";
/// RFC 3339 deadline of a drain.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// RFC 3339 deadline of the drain of a Node whose machine belongs to no NodeClaim; joiner's own.
pub const ORPHAN_TERMINATION_TIMESTAMP: &str = "karpenter.sh/orphan-termination-timestamp";
/// How long pods may take to leave before a reboot, in Go's notation; `0s` lets them ride along, without it they are waited for.
pub const REBOOT_GRACE: &str = "karpenter.sh/reboot-termination-grace-period";
/// The Node's boot ID before its machine was restarted: another one proves that it was.
pub const PRE_BOOT_ID: &str = "karpenter.sh/reboot-pre-boot-id";
/// `"true"` when a NodeClaim was created with lowered minValues.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// `"true"` on a NodeClaim for which a NodeOverlay changed the price of an instance type.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// `"true"` on a NodeClaim for which a NodeOverlay changed the capacity of an instance type.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";

/// Taint (NoSchedule) of a node that is being removed.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Taint (NoExecute) that a node carries until its NodeClaim has been matched.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
/// Taint (NoSchedule) of a node whose machine is being restarted.
pub const REBOOTING_TAINT: &str = "karpenter.sh/rebooting";
/// Finalizer on NodeClaims and Nodes.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";

/// Capacity type that is paid by the hour and stays.
pub const ON_DEMAND: &str = "on-demand";
/// Capacity type that the cloud may take back.
pub const SPOT: &str = "spot";
/// Capacity type that was paid for beforehand.
pub const RESERVED: &str = "reserved";

/// Whether a label names a reservation of capacity. Each cloud has a key of its own (AWS: `karpenter.k8s.aws/capacity-reservation-id`, the
/// tests of Karpenter: `karpenter.test.sh/reservation-id`); their names all end alike.
pub fn is_reservation_id(key: &str) -> bool {
    key.ends_with("reservation-id")
}

/// Keys whose values every cloud can state; a NodeClaim that does not mention one leaves it open.
pub const WELL_KNOWN: [&str; 8] = [NODEPOOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD];

/// Whether the solver may treat a key that a NodeClaim does not mention as open. `provider_keys` are the keys that a cloud's
/// instance types and offerings carry: they count as well-known too.
pub fn is_well_known(key: &str) -> bool {
    WELL_KNOWN.contains(&key)
}

/// The well-known key that was probably meant by a key that nobody defines: one of which it is a part, or that has the same name in another
/// domain.
pub fn meant_by(key: &str) -> Option<&'static str> {
    // Less than this is part of anything.
    const PART: usize = 4;
    let name = key.rsplit('/').next().filter(|name| !name.is_empty())?;
    let same_name = |known: &str| known.rsplit('/').next() == Some(name);
    let part = |known: &str| key.len() >= PART && known.contains(key);
    WELL_KNOWN.into_iter().find(|known| *known != key && (part(known) || same_name(known)))
}

/// The stable form of a deprecated key, or the key itself.
pub fn normalized(key: &str) -> &str {
    match key {
        "failure-domain.beta.kubernetes.io/zone" => ZONE,
        "failure-domain.beta.kubernetes.io/region" => REGION,
        "beta.kubernetes.io/arch" => ARCH,
        "beta.kubernetes.io/os" => OS,
        "beta.kubernetes.io/instance-type" => INSTANCE_TYPE,
        other => other,
    }
}

/// The value of a label by the stable form of its key; a label that carries the deprecated one counts as well.
pub fn value<'a>(labels: &'a Labels, key: &str) -> Option<&'a Arc<str>> {
    let deprecated = || labels.iter().find(|(other, _)| normalized(other) == key).map(|(_, value)| value);
    labels.get(key).or_else(deprecated)
}

/// Whether the domain of a label or annotation is one of Karpenter's, as `karpenter.sh` and `karpenter.outscale.com` are. Of a Node's annotations no others
/// are kept in mind.
pub fn is_of_karpenter(key: &str) -> bool {
    domain(key).split('.').any(|part| part == "karpenter")
}

/// Domain of a label key: what stands before the first `/`, or nothing.
pub fn domain(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

/// Whether users may not ask for this label: the host name, or a key in Karpenter's own domain that is not well-known.
/// `provider_domains` are the cloud's own (KWOK: `karpenter.kwok.sh`), `provider_keys` those that it opens to users.
pub fn is_restricted(key: &str, provider_domains: &[&str], provider_keys: &[&str]) -> bool {
    if is_well_known(key) || provider_keys.contains(&key) {
        return false;
    }
    let domain = domain(key);
    key == HOSTNAME
        || std::iter::once(&"karpenter.sh").chain(provider_domains).any(|restricted| {
            domain == *restricted || domain.strip_suffix(restricted).is_some_and(|d| d.ends_with('.'))
        })
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;
