//! What a NodeClass offers: its VM types in its zones, with prices and with what pods may use of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::classes::outscale::{OutscaleNodeClassSpec, OutscaleNodeClassStatus, VmTypes};
use crate::core::facts::{InstanceType, Offering};
use crate::core::ids::InstanceTypeName;
use crate::core::labels::{self, Labels};
use crate::core::quantity::Quantity;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::{ResourceName, Resources};

use super::learnt::Learnt;
use super::oapi::wire;
use super::prices::Prices;
use super::quotas::Size;
use super::vm_type::{Performance, VmType, custom_family};

/// Family of a VM type: what stands before the dot.
pub const INSTANCE_FAMILY: &str = "karpenter.outscale.com/instance-family";
/// vCores of a VM type.
pub const INSTANCE_CPU: &str = "karpenter.outscale.com/instance-cpu";
/// Memory of a VM type in MiB.
pub const INSTANCE_MEMORY: &str = "karpenter.outscale.com/instance-memory";
/// Processor generation of a VM type, where it is known.
pub const INSTANCE_GENERATION: &str = "karpenter.outscale.com/instance-generation";
/// Performance of a VM type: `highest`, `high` or `medium`.
pub const INSTANCE_PERFORMANCE: &str = "karpenter.outscale.com/instance-performance";
/// GPUs of a VM type.
pub const INSTANCE_GPUS: &str = "karpenter.outscale.com/instance-gpu-count";
/// All of them.
pub const LABEL_KEYS: [&str; 6] =
    [INSTANCE_FAMILY, INSTANCE_CPU, INSTANCE_MEMORY, INSTANCE_GENERATION, INSTANCE_PERFORMANCE, INSTANCE_GPUS];

/// vCores of custom types that are offered by family. Any number may be asked for by name.
const CORES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// GiB of memory for each core of custom types that are offered by family.
const GIB_PER_CORE: [u32; 4] = [1, 2, 4, 8];
/// Families of a class that names none.
const USUAL_FAMILIES: [&str; 2] = ["tinav6", "tinav7"];
/// Pods on a node, as the kubelet has it.
const PODS: u32 = 110;
/// CPU that Talos keeps for the system, in thousandths (its `KubeletSystemReservedCPU`).
const TALOS_CPU: i64 = 50;
/// Memory that Talos keeps on workers, in MiB (its `KubeletSystemReservedMemoryWorker`).
const TALOS_MEMORY_MIB: i64 = 384;
/// Disk that Talos keeps, in MiB (its `KubeletSystemReservedEphemeralStorage`).
const TALOS_DISK_MIB: i64 = 256;
/// Memory below which the kubelet evicts pods, in MiB (its default).
const EVICTION_MIB: i64 = 100;
/// Of the disk, the kubelet evicts pods below a tenth (its default).
const EVICTION_DISK: i64 = 10;
/// What Talos' own partitions take of the root volume, in MiB.
const TALOS_PARTITIONS_MIB: i64 = 3 * 1024;
const MIB: i64 = 1 << 20;

/// What a catalogue is made from.
pub(super) struct Wanted<'a> {
    pub(super) spec: &'a OutscaleNodeClassSpec,
    pub(super) status: &'a OutscaleNodeClassStatus,
    pub(super) listed: &'a [wire::VmType],
    pub(super) prices: &'a Prices,
    /// What machines were seen to have.
    pub(super) learnt: &'a Learnt,
    /// What a hypervisor keeps of a machine's memory, in thousandths of it.
    pub(super) memory_overhead: i64,
}

/// What a class says of VM types, with what is meant where it says nothing.
pub(super) struct Selection {
    pub(super) names: Vec<String>,
    pub(super) families: Vec<String>,
    pub(super) performances: Vec<String>,
    /// Whether it says nothing of families and performances.
    pub(super) is_usual: bool,
}

impl Selection {
    pub(super) fn of(spec: &OutscaleNodeClassSpec) -> Self {
        let VmTypes { families, names, performances } = spec.vm_types.clone().unwrap_or_default();
        let names = names.unwrap_or_default();
        let usual = || if names.is_empty() { USUAL_FAMILIES.map(str::to_owned).to_vec() } else { Vec::new() };
        Self {
            is_usual: families.is_none() && performances.is_none(),
            families: families.unwrap_or_else(usual),
            performances: performances.unwrap_or_else(|| vec![Performance::High.as_str().to_owned()]),
            names,
        }
    }
}

/// The VM types that a class admits, whether they have a price or not.
pub(super) fn admitted(spec: &OutscaleNodeClassSpec, listed: &[wire::VmType], prices: &Prices) -> Vec<VmType> {
    let Selection { names, families, performances, .. } = Selection::of(spec);
    let mut all = Vec::new();
    for (generation, performance) in prices.generations() {
        let offered = families.contains(&custom_family(generation));
        if !offered || !performances.iter().any(|word| word == performance.as_str()) {
            continue;
        }
        for cores in CORES {
            all.extend(GIB_PER_CORE.map(|gib| VmType::custom(generation, cores, cores * gib, performance)));
        }
    }
    let dedicated = is_dedicated(spec);
    let is_offered = |kind: &VmType| match kind.gpus {
        0 => names.contains(&kind.name) || families.contains(&kind.family),
        _ => names.contains(&kind.name) && !dedicated,
    };
    all.extend(listed.iter().filter_map(VmType::fixed).filter(is_offered));
    all.extend(names.iter().filter_map(|name| VmType::parse(name)));
    let mut seen = BTreeSet::new();
    all.retain(|kind| seen.insert(kind.name.clone()));
    all
}

/// Whether a class' machines have hardware of their own.
fn is_dedicated(spec: &OutscaleNodeClassSpec) -> bool {
    spec.placement.as_ref().is_some_and(|placement| placement.tenancy.as_deref() == Some("dedicated"))
}

/// The types with GPUs that a class names and does not offer: Outscale attaches none to machines that have hardware of their own.
pub(super) fn dedicated_gpus(spec: &OutscaleNodeClassSpec, listed: &[wire::VmType]) -> Vec<VmType> {
    let names = if is_dedicated(spec) { Selection::of(spec).names } else { Vec::new() };
    listed.iter().filter_map(VmType::fixed).filter(|kind| kind.gpus > 0 && names.contains(&kind.name)).collect()
}

/// The types of a class' families that have GPUs and that it does not name. They are not offered: such a machine allocates GPUs to the account, which
/// are dear and outlive it unless they are tied to it, so somebody has to mean the very type.
pub(super) fn unnamed_gpus(spec: &OutscaleNodeClassSpec, listed: &[wire::VmType]) -> Vec<VmType> {
    let Selection { names, families, .. } = Selection::of(spec);
    let is_unnamed = |kind: &VmType| kind.gpus > 0 && families.contains(&kind.family) && !names.contains(&kind.name);
    listed.iter().filter_map(VmType::fixed).filter(is_unnamed).collect()
}

/// The instance types of a class, cheapest first. Types without a price are left out: nobody could say when they are worth it.
pub(super) fn instance_types(wanted: &Wanted<'_>) -> Vec<InstanceType> {
    let zones: BTreeSet<&str> = wanted.status.subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    let has_room =
        |zone: &str| wanted.status.subnets.iter().any(|subnet| subnet.zone == zone && subnet.available_ips > 0);
    let dedicated = is_dedicated(wanted.spec);
    let mut all: Vec<(f64, InstanceType)> = Vec::new();
    for kind in admitted(wanted.spec, wanted.listed, wanted.prices) {
        let Some(price) = wanted.prices.of(&kind, dedicated) else { continue };
        let offerings: Vec<Offering> = zones
            .iter()
            .map(|zone| Offering {
                requirements: vec![is_in(labels::CAPACITY_TYPE, [labels::ON_DEMAND]), is_in(labels::ZONE, [*zone])],
                price,
                available: has_room(zone),
                reservation_capacity: None,
            })
            .collect();
        let made = instance_type(&kind, &zones, offerings, wanted);
        // A machine whose system leaves nothing for pods is no node.
        let room = made.allocatable();
        if room.get(&ResourceName::Cpu) > 0 && room.get(&ResourceName::Memory) > 0 {
            all.push((price, made));
        }
    }
    all.sort_by(|(one, a), (other, b)| one.total_cmp(other).then_with(|| a.name.cmp(&b.name)));
    all.into_iter().map(|(_, kind)| kind).collect()
}

fn is_in<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Requirement {
    Requirement {
        key: key.into(),
        operator: Operator::In,
        values: values.into_iter().map(Arc::from).collect(),
        min_values: None,
    }
}

fn instance_type(kind: &VmType, zones: &BTreeSet<&str>, offerings: Vec<Offering>, wanted: &Wanted<'_>) -> InstanceType {
    let regions: BTreeSet<&str> = zones.iter().map(|zone| region(zone)).collect();
    let mut requirements = vec![
        is_in(labels::INSTANCE_TYPE, [kind.name.as_str()]),
        is_in(labels::ARCH, ["amd64"]),
        is_in(labels::OS, ["linux"]),
        is_in(labels::ZONE, zones.iter().copied()),
        is_in(labels::REGION, regions),
        is_in(labels::CAPACITY_TYPE, [labels::ON_DEMAND]),
    ];
    requirements.extend(own_labels(kind).into_iter().map(|(key, value)| is_in(key, [value.as_str()])));
    // Machines are launched with the first image.
    let seen = wanted.status.images.first().and_then(|image| wanted.learnt.memory(kind, &image.id));
    InstanceType {
        name: InstanceTypeName::from(kind.name.as_str()),
        requirements,
        capacity: capacity(kind, wanted.spec, seen, wanted.memory_overhead),
        overhead: overhead(kind, wanted.spec),
        // Each node's CSINode says it.
        attach_limits: std::collections::BTreeMap::new(),
        offerings,
    }
}

/// Labels of Outscale's own that a machine of a type has.
pub(super) fn own_labels(kind: &VmType) -> Vec<(&'static str, String)> {
    let mut all = vec![
        (INSTANCE_FAMILY, kind.family.clone()),
        (INSTANCE_CPU, kind.cores.to_string()),
        (INSTANCE_MEMORY, kind.memory_mib.to_string()),
        (INSTANCE_PERFORMANCE, kind.performance.as_str().to_owned()),
        (INSTANCE_GPUS, kind.gpus.to_string()),
    ];
    all.extend(kind.generation.map(|generation| (INSTANCE_GENERATION, generation.to_string())));
    all
}

/// What quotas count of an instance type of this catalogue.
pub(super) fn size(kind: &InstanceType) -> Size {
    let amount = |key: &str| {
        let requirement = kind.requirements.iter().find(|requirement| &*requirement.key == key)?;
        requirement.values.first()?.parse::<i64>().ok()
    };
    sized(amount)
}

/// What quotas count of a machine with these labels.
pub(super) fn size_by(set: &Labels) -> Size {
    sized(|key| set.get(key)?.parse().ok())
}

/// Every type that is offered says both.
fn sized(amount: impl Fn(&str) -> Option<i64>) -> Size {
    let (cores, mib) = (amount(INSTANCE_CPU).unwrap_or(1), amount(INSTANCE_MEMORY).unwrap_or(1));
    Size { cores, gib: (mib + 1023) / 1024 }
}

/// The region of a subregion: its name without the last letter, as the cloud controller manager has it.
pub(super) fn region(zone: &str) -> &str {
    zone.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(zone)
}

/// What a node of a type will show as its capacity: with the memory (thousandths of a byte) that others of its kind were seen to have, else with
/// what is left of it by estimate.
pub(super) fn capacity(
    kind: &VmType,
    spec: &OutscaleNodeClassSpec,
    seen: Option<i64>,
    memory_overhead: i64,
) -> Resources {
    let kept = kind.memory_mib * memory_overhead / 1000;
    let disk = (i64::from(spec.root_gib()) * 1024 - TALOS_PARTITIONS_MIB).max(0);
    let pods = spec.kubelet.as_ref().and_then(|kubelet| kubelet.max_pods).unwrap_or(PODS);
    let mut all = Resources::new()
        .with("cpu", i64::from(kind.cores) * 1000)
        .with("memory", seen.unwrap_or((kind.memory_mib - kept) * MIB * 1000))
        .with("ephemeral-storage", disk * MIB * 1000)
        .with("pods", i64::from(pods) * 1000);
    if kind.gpus > 0 {
        all.set(ResourceName::from("nvidia.com/gpu"), i64::from(kind.gpus) * 1000);
    }
    all
}

/// What kubelet and system keep of it.
pub(super) fn overhead(kind: &VmType, spec: &OutscaleNodeClassSpec) -> Resources {
    let disk = capacity(kind, spec, None, 0).get(&ResourceName::EphemeralStorage);
    let mut kept =
        Resources::new().with("memory", EVICTION_MIB * MIB * 1000).with("ephemeral-storage", disk / EVICTION_DISK);
    let kubelet = spec.kubelet.clone().unwrap_or_default();
    match &kubelet.system_reserved {
        Some(reserved) => kept.add(&amounts(reserved)),
        None => kept.add(
            &Resources::new()
                .with("cpu", TALOS_CPU)
                .with("memory", TALOS_MEMORY_MIB * MIB * 1000)
                .with("ephemeral-storage", TALOS_DISK_MIB * MIB * 1000),
        ),
    }
    if let Some(reserved) = &kubelet.kube_reserved {
        kept.add(&amounts(reserved));
    }
    kept
}

/// Amounts that a kubelet keeps; process IDs are nothing that pods ask for. What cannot be read is judged where the class is resolved.
fn amounts(written: &std::collections::BTreeMap<String, crate::api::common::Quantity>) -> Resources {
    let read = |(name, amount): (&String, &crate::api::common::Quantity)| {
        Some((ResourceName::from(name.as_str()), Quantity::parse(amount.as_str()).ok()?.milli_up()))
    };
    written.iter().filter(|(name, _)| *name != "pid").filter_map(read).collect()
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
