//! What there is to read besides VMs and tags.

use super::filters::{check_ids, numbered, page, passes, tags_pass};
use super::refusal::Refusal;
use super::world::World;
use super::{addresses, sizes};
use crate::clouds::outscale::oapi::wire::{
    Quota, QuotasOfType, ReadCatalog, ReadFlexibleGpuCatalog, ReadImages, ReadKeypairs, ReadPublicCatalog, ReadQuotas,
    ReadSecurityGroups, ReadSnapshots, ReadSubnets, ReadSubregions, ReadUnitPrice, ReadVmTypes, Subnet, TheCatalog,
    TheFlexibleGpuCatalog, TheImages, TheKeypairs, TheQuotas, TheSecurityGroups, TheSnapshots, TheSubnets,
    TheSubregions, TheUnitPrice, TheVmTypes, UnitPriceEntry,
};

pub(super) fn images(world: &mut World, request: &ReadImages) -> Result<TheImages, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.image_ids, "ami-")?;
    let wanted = world.account.images.iter().filter(|image| {
        passes(&by.image_ids, Some(&image.image_id))
            && passes(&by.image_names, image.image_name.as_deref())
            && passes(&by.account_ids, image.account_id.as_deref())
            && passes(&by.account_aliases, image.account_alias.as_deref())
            && passes(&by.architectures, image.architecture.as_deref())
            && passes(&by.states, image.state.as_deref())
            && tags_pass((&by.tag_keys, &by.tag_values, &by.tags), &image.tags)
    });
    let wanted = numbered(wanted.cloned());
    let (images, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheImages { images, next_page_token: next, ..TheImages::default() })
}

pub(super) fn snapshots(world: &mut World, request: &ReadSnapshots) -> Result<TheSnapshots, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.snapshot_ids, "snap-")?;
    let wanted =
        world.account.snapshots.iter().filter(|snapshot| passes(&by.snapshot_ids, Some(&snapshot.snapshot_id)));
    let wanted = numbered(wanted.cloned());
    let (snapshots, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheSnapshots { snapshots, next_page_token: next, ..TheSnapshots::default() })
}

pub(super) fn subnets(world: &mut World, request: &ReadSubnets) -> Result<TheSubnets, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.subnet_ids, "subnet-")?;
    let wanted = world.account.subnets.iter().filter(|subnet| {
        passes(&by.subnet_ids, Some(&subnet.subnet_id))
            && passes(&by.net_ids, subnet.net_id.as_deref())
            && passes(&by.states, subnet.state.as_deref())
            && passes(&by.subregion_names, subnet.subregion_name.as_deref())
            && tags_pass((&by.tag_keys, &by.tag_values, &by.tags), &subnet.tags)
    });
    let counted = wanted.map(|subnet| {
        let taken = u32::try_from(world.machines.addresses(&subnet.subnet_id).len()).unwrap_or(u32::MAX);
        let free = addresses::count(subnet.ip_range.as_deref().unwrap_or_default()).saturating_sub(taken);
        Subnet { available_ips_count: Some(free), ..subnet.clone() }
    });
    let (subnets, next) = page(numbered(counted), request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheSubnets { subnets, next_page_token: next, ..TheSubnets::default() })
}

pub(super) fn groups(world: &mut World, request: &ReadSecurityGroups) -> Result<TheSecurityGroups, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.security_group_ids, "sg-")?;
    let wanted = world.account.security_groups.iter().filter(|group| {
        passes(&by.security_group_ids, Some(&group.security_group_id))
            && passes(&by.security_group_names, group.security_group_name.as_deref())
            && passes(&by.net_ids, group.net_id.as_deref())
            && tags_pass((&by.tag_keys, &by.tag_values, &by.tags), &group.tags)
    });
    let wanted = numbered(wanted.cloned());
    let (security_groups, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheSecurityGroups { security_groups, next_page_token: next, ..TheSecurityGroups::default() })
}

pub(super) fn subregions(world: &mut World, request: &ReadSubregions) -> Result<TheSubregions, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    let wanted = world.account.subregions.iter().filter(|subregion| {
        passes(&by.subregion_names, Some(&subregion.subregion_name))
            && passes(&by.region_names, subregion.region_name.as_deref())
            && passes(&by.states, subregion.state.as_deref())
    });
    let wanted = numbered(wanted.cloned());
    let (subregions, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheSubregions { subregions, next_page_token: next, ..TheSubregions::default() })
}

pub(super) fn keypairs(world: &mut World, request: &ReadKeypairs) -> Result<TheKeypairs, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    let wanted = world.account.keypairs.iter().filter(|keypair| {
        passes(&by.keypair_names, Some(&keypair.keypair_name))
            && passes(&by.keypair_fingerprints, keypair.keypair_fingerprint.as_deref())
    });
    let wanted = numbered(wanted.cloned());
    let (keypairs, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheKeypairs { keypairs, next_page_token: next, ..TheKeypairs::default() })
}

pub(super) fn vm_types(world: &mut World, request: &ReadVmTypes) -> Result<TheVmTypes, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    let wanted = world.account.vm_types.iter().filter(|kind| {
        passes(&by.vm_type_names, Some(&kind.vm_type_name))
            && (by.vcore_counts.is_empty() || kind.vcore_count.is_some_and(|count| by.vcore_counts.contains(&count)))
            && (by.gpus.is_empty() || by.gpus.contains(&kind.gpu.unwrap_or(0)))
            && (by.memory_sizes.is_empty() || kind.memory_size.is_some_and(|size| by.memory_sizes.contains(&size)))
    });
    let wanted = numbered(wanted.cloned());
    let (vm_types, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheVmTypes { vm_types, next_page_token: next, ..TheVmTypes::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "all actions have one shape")]
pub(super) fn gpus(world: &mut World, _: &ReadFlexibleGpuCatalog) -> Result<TheFlexibleGpuCatalog, Refusal> {
    Ok(TheFlexibleGpuCatalog { flexible_gpu_catalog: world.account.gpus.clone(), ..TheFlexibleGpuCatalog::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "all actions have one shape")]
pub(super) fn catalog(world: &mut World, _: &ReadCatalog) -> Result<TheCatalog, Refusal> {
    let account = &world.account;
    let catalog = account.own_catalog.as_ref().unwrap_or(&account.catalog).clone();
    Ok(TheCatalog { catalog, ..TheCatalog::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "all actions have one shape")]
pub(super) fn public_catalog(world: &mut World, _: &ReadPublicCatalog) -> Result<TheCatalog, Refusal> {
    Ok(TheCatalog { catalog: world.account.catalog.clone(), ..TheCatalog::default() })
}

/// The price of one type of VM, as the documentation's example asks for it: `BoxUsage:` and its name.
pub(super) fn unit_price(world: &mut World, request: &ReadUnitPrice) -> Result<TheUnitPrice, Refusal> {
    for (name, value) in [("Operation", &request.operation), ("Service", &request.service), ("Type", &request.kind)] {
        if value.is_empty() {
            return Err(Refusal::required(name));
        }
    }
    let no_row = || Refusal::value(format!("there is no price of {}", request.kind));
    let vm_type = request.kind.strip_prefix("BoxUsage:").ok_or_else(no_row)?;
    let size = sizes::size(vm_type, &[]).ok_or_else(no_row)?;
    let (generation, rest) = vm_type.trim_start_matches("tina").split_once('.').ok_or_else(no_row)?;
    let core = format!("CustomCore:{generation}-p{}", rest.split_once('p').map_or("2", |(_, performance)| performance));
    let price = |kind: &str| {
        let row = world.account.catalog.entries.iter().find(|entry| entry.kind.as_deref() == Some(kind));
        row.and_then(|row| row.unit_price).ok_or_else(no_row)
    };
    let total = f64::from(size.cores) * price(&core)? + size.memory * price("CustomRam")?;
    let entry = UnitPriceEntry {
        currency: Some("EUR".to_owned()),
        operation: Some(request.operation.clone()),
        service: Some(request.service.clone()),
        kind: Some(request.kind.clone()),
        unit: Some("PER_HOUR".to_owned()),
        unit_price: Some(total),
    };
    Ok(TheUnitPrice { unit_price_entry: Some(entry), ..TheUnitPrice::default() })
}

pub(super) fn quotas(world: &mut World, request: &ReadQuotas) -> Result<TheQuotas, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    let (vms, size) = world.machines.used();
    let limits = world.account.quotas;
    #[expect(clippy::cast_possible_truncation, reason = "GiB of a rehearsal's VMs")]
    let memory = size.memory.ceil() as i64;
    let rows = [
        ("vm_limit", "VM Limit", limits.vms, i64::from(vms)),
        ("core_limit", "Core Limit", limits.cores, i64::from(size.cores)),
        ("memory_limit", "Memory Limit", limits.memory, memory),
    ];
    let quota = |(name, short, most, used): (&str, &str, u32, i64)| Quota {
        account_id: Some(world.account.id.clone()),
        description: Some(format!("{short} of the account")),
        max_value: Some(i64::from(most)),
        name: name.to_owned(),
        quota_collection: Some("Compute".to_owned()),
        short_description: Some(short.to_owned()),
        used_value: Some(used),
    };
    let wanted = rows.map(quota).into_iter().filter(|quota| {
        passes(&by.quota_names, Some(&quota.name))
            && passes(&by.collections, quota.quota_collection.as_deref())
            && passes(&by.short_descriptions, quota.short_description.as_deref())
    });
    let global = QuotasOfType { quota_type: "global".to_owned(), quotas: wanted.collect() };
    let kinds = [global].into_iter().filter(|kind| passes(&by.quota_types, Some(&kind.quota_type)));
    let (quota_types, next) = page(numbered(kinds), request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheQuotas { quota_types, next_page_token: next, ..TheQuotas::default() })
}
