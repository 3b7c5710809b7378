//! Tags: setting, taking off, listing.

use std::collections::BTreeSet;

use super::filters::{numbered, page, passes};
use super::refusal::Refusal;
use super::world::World;
use crate::clouds::outscale::oapi::wire::{CreateTags, DeleteTags, Done, ReadTags, ResourceTag, Tag, TheTags};

/// The most characters of a key and of a value.
const LONGEST: usize = 255;

pub(super) fn create(world: &mut World, request: &CreateTags) -> Result<Done, Refusal> {
    check(&request.resource_ids, &request.tags)?;
    // All or none.
    let most = world.account.quotas.tags;
    for id in &request.resource_ids {
        let there = world.tags_of(id)?.iter().map(|tag| tag.key.as_str());
        let all: BTreeSet<&str> = there.chain(request.tags.iter().map(|tag| tag.key.as_str())).collect();
        if u32::try_from(all.len()).unwrap_or(u32::MAX) > most {
            return Err(Refusal::quota(format!("{id} may have {most} tags")));
        }
    }
    for id in &request.resource_ids {
        let there = world.tags_of(id)?;
        for tag in &request.tags {
            there.retain(|other| other.key != tag.key);
            there.push(tag.clone());
        }
    }
    Ok(Done::default())
}

pub(super) fn delete(world: &mut World, request: &DeleteTags) -> Result<Done, Refusal> {
    check(&request.resource_ids, &request.tags)?;
    for id in &request.resource_ids {
        world.tags_of(id)?;
    }
    for id in &request.resource_ids {
        world.tags_of(id)?.retain(|tag| !request.tags.contains(tag));
    }
    Ok(Done::default())
}

fn check(ids: &[String], tags: &[ResourceTag]) -> Result<(), Refusal> {
    if ids.is_empty() {
        return Err(Refusal::required("ResourceIds"));
    }
    if tags.is_empty() {
        return Err(Refusal::required("Tags"));
    }
    for tag in tags {
        if tag.key.is_empty() || tag.key.chars().count() > LONGEST {
            let details = format!("the key {:?} of a tag has not 1 to {LONGEST} characters", tag.key);
            return Err(Refusal::new(400, "4069", "InvalidParameterValue", details));
        }
        if tag.value.chars().count() > LONGEST {
            return Err(Refusal::value(format!("the value of tag {} has more than {LONGEST} characters", tag.key)));
        }
    }
    Ok(())
}

pub(super) fn read(world: &mut World, request: &ReadTags) -> Result<TheTags, Refusal> {
    let filters = request.filters.clone().unwrap_or_default();
    let now = world.now;
    let vms = world.machines.listed(now).into_iter().map(|machine| ("vm", &machine.vm.vm_id, &machine.vm.tags));
    let subnets = world.account.subnets.iter().map(|subnet| ("subnet", &subnet.subnet_id, &subnet.tags));
    let groups = &world.account.security_groups;
    let groups = groups.iter().map(|group| ("security-group", &group.security_group_id, &group.tags));
    let images = world.account.images.iter().map(|image| ("image", &image.image_id, &image.tags));
    let all = vms.chain(subnets).chain(groups).chain(images);
    let tags = all.flat_map(|(kind, id, tags)| {
        tags.iter().map(move |tag| Tag {
            key: tag.key.clone(),
            resource_id: id.clone(),
            resource_type: kind.to_owned(),
            value: Some(tag.value.clone()),
        })
    });
    let wanted = tags.filter(|tag| {
        passes(&filters.keys, Some(&tag.key))
            && passes(&filters.values, tag.value.as_deref())
            && passes(&filters.resource_ids, Some(&tag.resource_id))
            && passes(&filters.resource_types, Some(&tag.resource_type))
    });
    let (tags, next) = page(numbered(wanted), request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheTags { tags, next_page_token: next, ..TheTags::default() })
}
