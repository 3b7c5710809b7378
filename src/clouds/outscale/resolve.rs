//! What a NodeClass' selectors find, judged: pure functions from the API's answers to what the status says.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::api::classes::outscale::{
    ImageTerm, OutscaleNodeClassSpec, ROOT_DEVICE, ResolvedImage, ResolvedSecurityGroup, ResolvedSubnet,
    SecurityGroupTerm, SubnetTerm,
};

use super::found::Fault;
use super::oapi::wire::{self, ResourceTag};

type Tags = BTreeMap<String, String>;

/// Whether a resource has all tags of a selector; `*` stands for any value.
fn has_tags(tags: &[ResourceTag], wanted: Option<&Tags>) -> bool {
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| tags.iter().any(|tag| tag.key == *key && (value == "*" || tag.value == *value)))
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// How a selector is called in messages.
fn told(tags: Option<&Tags>) -> String {
    let all: Vec<String> = tags.into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
    format!("tags {}", all.join(", "))
}

/// The filter that finds at least what has these tags: the API's lists mean any of their items, so the rest is seen to here.
fn tag_filter(tags: Option<&Tags>) -> (Vec<String>, Vec<String>) {
    match tags.into_iter().flatten().find(|(_, value)| *value != "*") {
        Some((key, value)) => (vec![format!("{key}={value}")], Vec::new()),
        None => (Vec::new(), tags.into_iter().flatten().take(1).map(|(key, _)| key.clone()).collect()),
    }
}

/// The request that finds what a term may mean.
pub(super) fn images_of(term: &ImageTerm) -> wire::ReadImages {
    let (tags, tag_keys) = tag_filter(term.tags.as_ref());
    // IDs of accounts are numbers, their aliases are words.
    let (ids, aliases) = term.owner.iter().cloned().partition(|owner| owner.bytes().all(|byte| byte.is_ascii_digit()));
    let filters = wire::ImageFilters {
        account_ids: ids,
        account_aliases: aliases,
        image_ids: term.id.iter().cloned().collect(),
        image_names: term.name.iter().cloned().collect(),
        tags,
        tag_keys,
        ..wire::ImageFilters::default()
    };
    wire::ReadImages { filters: Some(filters), ..wire::ReadImages::default() }
}

/// The request that finds what a term may mean.
pub(super) fn subnets_of(term: &SubnetTerm) -> wire::ReadSubnets {
    let (tags, tag_keys) = tag_filter(term.tags.as_ref());
    let filters = wire::SubnetFilters {
        subnet_ids: term.id.iter().cloned().collect(),
        tags,
        tag_keys,
        ..wire::SubnetFilters::default()
    };
    wire::ReadSubnets { filters: Some(filters), ..wire::ReadSubnets::default() }
}

/// The request that finds what a term may mean.
pub(super) fn groups_of(term: &SecurityGroupTerm) -> wire::ReadSecurityGroups {
    let (tags, tag_keys) = tag_filter(term.tags.as_ref());
    let filters = wire::SecurityGroupFilters {
        security_group_ids: term.id.iter().cloned().collect(),
        security_group_names: term.name.iter().cloned().collect(),
        tags,
        tag_keys,
        ..wire::SecurityGroupFilters::default()
    };
    wire::ReadSecurityGroups { filters: Some(filters), ..wire::ReadSecurityGroups::default() }
}

fn is_meant_image(term: &ImageTerm, image: &wire::Image) -> bool {
    let is = |wanted: &Option<String>, there: &str| wanted.as_ref().is_none_or(|wanted| wanted == there);
    let owner = term
        .owner
        .as_ref()
        .is_none_or(|owner| image.account_id.as_ref() == Some(owner) || image.account_alias.as_ref() == Some(owner));
    is(&term.id, &image.image_id)
        && owner
        && term.name.as_ref().is_none_or(|name| fits(name, image.image_name.as_deref().unwrap_or_default()))
        && has_tags(&image.tags, term.tags.as_ref())
}

/// The images that terms mean and that can be booted, newest first. Each term comes with what the API found for it.
pub(super) fn images(
    found: &[(ImageTerm, Vec<wire::Image>)],
    spec: &OutscaleNodeClassSpec,
) -> Result<Vec<ResolvedImage>, Fault> {
    let mut all: BTreeMap<&str, &wire::Image> = BTreeMap::new();
    let mut unfit = Vec::new();
    let field = if spec.image_id.is_some() { "spec.imageId" } else { "spec.imageSelectorTerms" };
    for (term, images) in found {
        let meant: Vec<&wire::Image> = images.iter().filter(|image| is_meant_image(term, image)).collect();
        if let (Some(id), true) = (&term.id, meant.is_empty()) {
            let message =
                format!("{field}: the account sees no image {id}; name one of its region that it owns or may use");
            return Err(Fault::new("ImageNotFound", message));
        }
        for image in meant {
            match problem_of(image, spec) {
                None => drop(all.insert(&image.image_id, image)),
                Some(problem) => unfit.push(format!("{field}: image {} {problem}", image.image_id)),
            }
        }
    }
    let mut all: Vec<&wire::Image> = all.into_values().collect();
    if all.is_empty() {
        let terms: Vec<String> = found.iter().map(|(term, _)| name_of(term)).collect();
        return Err(match unfit.into_iter().next() {
            Some(problem) => Fault::new("ImageUnfit", problem),
            None => Fault::new(
                "ImageNotFound",
                format!("{field}: no image matches {}; correct the terms, or make such an image", terms.join(" or ")),
            ),
        });
    }
    let age = |image: &wire::Image| image.creation_date.unwrap_or(Timestamp::UNIX_EPOCH);
    all.sort_by(|one, other| age(other).cmp(&age(one)).then_with(|| one.image_id.cmp(&other.image_id)));
    let resolved = |image: &wire::Image| ResolvedImage {
        id: image.image_id.clone(),
        name: image.image_name.clone().unwrap_or_default(),
        architecture: "amd64".to_owned(),
    };
    Ok(all.into_iter().map(resolved).collect())
}

fn name_of(term: &ImageTerm) -> String {
    let by_name = term.name.as_ref().map(|name| format!("name {name}"));
    let owner = term.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
    let tags = term.tags.as_ref().map(|tags| told(Some(tags)));
    let parts: Vec<String> = by_name.into_iter().chain(tags).collect();
    format!("{}{owner}", parts.join(" with "))
}

/// Why machines cannot be booted from an image.
fn problem_of(image: &wire::Image, spec: &OutscaleNodeClassSpec) -> Option<String> {
    if image.state.as_deref().is_some_and(|state| state != "available") {
        return Some(format!("is {}; wait, or name another", image.state.as_deref().unwrap_or_default()));
    }
    if image.architecture.as_deref().is_some_and(|architecture| architecture != "x86_64") {
        return Some("is not for x86_64; name another".to_owned());
    }
    if image.tpm_mandatory == Some(true) {
        return Some("demands a virtual TPM, which joiner gives no machine; name another".to_owned());
    }
    let root = image.root_device_name.as_deref().unwrap_or(ROOT_DEVICE);
    let device = image.block_device_mappings.iter().find(|device| device.device_name.as_deref() == Some(root));
    let needed = device.and_then(|device| device.bsu.as_ref()).and_then(|bsu| bsu.volume_size).unwrap_or(0);
    let given = spec.root_gib();
    (needed > given).then(|| {
        format!("needs a root volume of {needed} GiB; raise spec.blockDeviceMappings[{ROOT_DEVICE}].bsu.volumeSize from {given}")
    })
}

/// The subnets that terms mean: all of one Net, each in its subregion.
pub(super) fn subnets(found: &[(SubnetTerm, Vec<wire::Subnet>)]) -> Result<Vec<ResolvedSubnet>, Fault> {
    let mut all: BTreeMap<&str, ResolvedSubnet> = BTreeMap::new();
    for (term, subnets) in found {
        let meant = |subnet: &&wire::Subnet| {
            term.id.as_ref().is_none_or(|id| *id == subnet.subnet_id) && has_tags(&subnet.tags, term.tags.as_ref())
        };
        let mut any = false;
        for subnet in subnets.iter().filter(meant) {
            if subnet.state.as_deref().is_some_and(|state| state != "available") {
                continue;
            }
            let Some(zone) = subnet.subregion_name.clone().filter(|zone| !zone.is_empty()) else { continue };
            any = true;
            let resolved = ResolvedSubnet {
                id: subnet.subnet_id.clone(),
                zone,
                net_id: subnet.net_id.clone().unwrap_or_default(),
                available_ips: subnet.available_ips_count.map_or(0, i64::from),
            };
            all.insert(&subnet.subnet_id, resolved);
        }
        if !any {
            let what = term.id.clone().unwrap_or_else(|| told(term.tags.as_ref()));
            let message = format!(
                "spec.subnet{}: the account has no available subnet for {what}; correct it, or make such a subnet",
                if term.id.is_some() { "Ids" } else { "SelectorTerms" }
            );
            return Err(Fault::new("SubnetNotFound", message));
        }
    }
    let nets: BTreeSet<&str> = all.values().map(|subnet| subnet.net_id.as_str()).collect();
    if nets.len() > 1 {
        let nets: Vec<&str> = nets.into_iter().collect();
        let message = format!(
            "spec.subnetIds, spec.subnetSelectorTerms: the subnets are of several Nets ({}); nodes of one NodeClass must reach each other, \
             make a NodeClass for each Net",
            nets.join(", ")
        );
        return Err(Fault::new("SubnetsOfSeveralNets", message));
    }
    Ok(all.into_values().collect())
}

/// What is said of subnets without a free address; nothing when all have some.
pub(super) fn full(subnets: &[ResolvedSubnet]) -> String {
    let full: Vec<String> = subnets
        .iter()
        .filter(|subnet| subnet.available_ips <= 0)
        .map(|subnet| format!("{} ({})", subnet.id, subnet.zone))
        .collect();
    if full.is_empty() {
        return String::new();
    }
    let meanwhile = if full.len() == subnets.len() {
        "no machine is launched"
    } else {
        "machines are launched into the others alone"
    };
    format!(
        "no address is free in {}: until one is, {meanwhile}; add a subnet (spec.subnetIds or spec.subnetSelectorTerms), or free addresses",
        full.join(", ")
    )
}

/// The security groups that terms mean, all of the subnets' Net.
pub(super) fn groups(
    found: &[(SecurityGroupTerm, Vec<wire::SecurityGroup>)],
    net: Option<&str>,
) -> Result<Vec<ResolvedSecurityGroup>, Fault> {
    let mut all: BTreeMap<&str, ResolvedSecurityGroup> = BTreeMap::new();
    for (term, groups) in found {
        let meant = |group: &&wire::SecurityGroup| {
            let is = |wanted: &Option<String>, there: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| Some(wanted) == there)
            };
            is(&term.id, Some(&group.security_group_id))
                && is(&term.name, group.security_group_name.as_deref())
                && has_tags(&group.tags, term.tags.as_ref())
        };
        let what = || match (&term.id, &term.name) {
            (Some(id), _) => id.clone(),
            (None, Some(name)) => format!("name {name}"),
            (None, None) => told(term.tags.as_ref()),
        };
        let field = if term.id.is_some() { "spec.securityGroupIds" } else { "spec.securityGroupSelectorTerms" };
        let meant: Vec<&wire::SecurityGroup> = groups.iter().filter(meant).collect();
        if meant.is_empty() {
            let message =
                format!("{field}: the account has no security group for {}; correct it, or make such a group", what());
            return Err(Fault::new("SecurityGroupNotFound", message));
        }
        let is_near =
            |group: &&&wire::SecurityGroup| net.is_none_or(|net| group.net_id.as_deref().unwrap_or_default() == net);
        let near: Vec<&&wire::SecurityGroup> = meant.iter().filter(is_near).collect();
        if near.is_empty() {
            let message = format!(
                "{field}: {} is not of the subnets' Net {}; name groups of that Net",
                what(),
                net.filter(|net| !net.is_empty()).unwrap_or("(none)")
            );
            return Err(Fault::new("SecurityGroupOfAnotherNet", message));
        }
        for group in near {
            let name = group.security_group_name.clone().unwrap_or_default();
            all.insert(&group.security_group_id, ResolvedSecurityGroup { id: group.security_group_id.clone(), name });
        }
    }
    Ok(all.into_values().collect())
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
