//! Whether machines can be made for a NodePool with a NodeClass at all, whatever pods ask for.

use std::collections::BTreeSet;

use crate::api::classes::outscale::OutscaleNodeClass;
use crate::core::facts::Pool;
use crate::core::ids::ClassRef;
use crate::core::labels;
use crate::core::requirements::Requirements;
use crate::core::scheduling::NAME_SUFFIX;

/// The most characters of one label of a DNS name (RFC 1035), and so of a host name.
const LONGEST_LABEL: usize = 63;

/// Why a NodeClaim's name cannot be a host name. Talos takes what stands before the first dot for the host and the rest for its domain, so that all
/// machines of a NodePool whose name has a dot would register as one Node; and it refuses what is longer than a label.
pub(super) fn no_host_name(name: &str, longest: usize) -> Option<String> {
    let what = if name.contains('.') {
        "has a dot, at which Talos ends the host name, so that several machines would register as one Node"
    } else if name.len() > longest {
        "is too long for a host name"
    } else {
        return None;
    };
    Some(format!(
        "{name} {what}: with spec.talos.nodeName NodeClaim in the NodeClass, take a name without dots and of at most {longest} characters, \
         or set spec.talos.nodeName to PrivateIp"
    ))
}

/// Why no machine can be made for a NodePool with this NodeClass.
pub(super) fn misfit(class: &OutscaleNodeClass, reference: &ClassRef, pool: &Pool) -> Option<String> {
    let by_name =
        class.spec.talos.named_by_claim().then(|| no_host_name(pool.name.as_str(), LONGEST_LABEL - NAME_SUFFIX));
    if let Some(why) = by_name.flatten() {
        return Some(format!("metadata.name: NodePool {why}"));
    }
    let subnets = class.status.iter().flat_map(|status| &status.subnets);
    let there: BTreeSet<&str> = subnets.map(|subnet| subnet.zone.as_str()).collect();
    let mut wanted = Requirements::from_labels(&pool.template.labels);
    wanted.add_all(&Requirements::from_written(&pool.template.requirements));
    let zones = wanted.get(labels::ZONE)?;
    if there.is_empty() || there.iter().any(|zone| zones.has(zone)) {
        return None;
    }
    let there: Vec<&str> = there.into_iter().collect();
    let wanted: Vec<String> = pool
        .template
        .requirements
        .iter()
        .filter(|requirement| &*requirement.key == labels::ZONE)
        .map(|requirement| format!("{requirement:?}"))
        .collect();
    Some(format!(
        "spec.template.spec.requirements: {} admits none of {}, where the subnets of {reference} are; add a subnet of the wanted subregion to the \
         NodeClass (spec.subnetIds or spec.subnetSelectorTerms), or admit one of these subregions",
        if wanted.is_empty() { labels::ZONE.to_owned() } else { wanted.join(", ") },
        there.join(", ")
    ))
}

/// Why the machine of a NodeClaim of this name cannot be called like it.
pub(super) fn no_node_name(claim: &str) -> Option<String> {
    no_host_name(claim, LONGEST_LABEL)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
