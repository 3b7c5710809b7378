//! Whether machines can be made for a NodePool with a NodeClass at all, whatever pods ask for.

use std::collections::BTreeSet;

use crate::api::classes::outscale::{OutscaleNodeClass, ResolvedSubnet};
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
    let subnets = class.status.as_ref().map_or(&[][..], |status| &status.subnets);
    if subnets.is_empty() {
        return None;
    }
    let mut wanted = Requirements::from_labels(&pool.template.labels);
    wanted.add_all(&Requirements::from_written(&pool.template.requirements));
    let is_near = |subnet: &&ResolvedSubnet| wanted.get(labels::ZONE).is_none_or(|zones| zones.has(&subnet.zone));
    let near: Vec<&ResolvedSubnet> = subnets.iter().filter(is_near).collect();
    if near.is_empty() { Some(elsewhere(subnets, reference, pool)) } else { crowded(&near, reference) }
}

/// What is said where all subnets of a NodePool's subregions are full.
fn crowded(subnets: &[&ResolvedSubnet], reference: &ClassRef) -> Option<String> {
    if subnets.iter().any(|subnet| subnet.available_ips > 0) {
        return None;
    }
    let full: Vec<String> = subnets.iter().map(|subnet| format!("{} ({})", subnet.id, subnet.zone)).collect();
    Some(format!(
        "{reference} has no free address for machines of this NodePool: {} {} full; add a subnet to the NodeClass (spec.subnetIds or \
         spec.subnetSelectorTerms), or free addresses, which are counted again every five minutes",
        full.join(", "),
        if full.len() == 1 { "is" } else { "are" }
    ))
}

/// What is said where no subnet is in a subregion of the NodePool.
fn elsewhere(subnets: &[ResolvedSubnet], reference: &ClassRef, pool: &Pool) -> String {
    let there: BTreeSet<&str> = subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    let there: Vec<&str> = there.into_iter().collect();
    let wanted: Vec<String> = pool
        .template
        .requirements
        .iter()
        .filter(|requirement| &*requirement.key == labels::ZONE)
        .map(|requirement| format!("{requirement:?}"))
        .collect();
    format!(
        "spec.template.spec.requirements: {} admits none of {}, where the subnets of {reference} are; add a subnet of the wanted subregion to the \
         NodeClass (spec.subnetIds or spec.subnetSelectorTerms), or admit one of these subregions",
        if wanted.is_empty() { labels::ZONE.to_owned() } else { wanted.join(", ") },
        there.join(", ")
    )
}

/// Why the machine of a NodeClaim of this name cannot be called like it.
pub(super) fn no_node_name(claim: &str) -> Option<String> {
    no_host_name(claim, LONGEST_LABEL)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
