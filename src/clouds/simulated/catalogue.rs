//! A catalogue for worlds that bring none: the sizes, zones and prices of Karpenter's KWOK provider, Linux on amd64 and arm64.

use crate::core::facts::{InstanceType, Offering};
use crate::core::ids::InstanceTypeName;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::{ResourceName, Resources};

/// Cores of the instance types.
const CPUS: [i64; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// Families, with GiB of memory per core.
const FAMILIES: [(&str, i64); 3] = [("c", 2), ("s", 4), ("m", 8)];
/// Zones.
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
/// What spot costs, as a share of the on-demand price.
const SPOT: f64 = 0.7;
/// Bytes in a GiB.
const GIB: i64 = 1 << 30;

/// The catalogue. Prices are 0.025 USD per core and 0.001 USD per 10⁹ bytes and hour, spot 30 % off.
pub fn catalogue() -> Vec<InstanceType> {
    let archs = ["amd64", "arm64"];
    let sizes = FAMILIES.iter().flat_map(|family| CPUS.iter().map(move |cpus| (family, *cpus)));
    sizes
        .flat_map(|((family, factor), cpus)| archs.map(|arch| instance_type(family, cpus, cpus * factor * GIB, arch)))
        .collect()
}

fn instance_type(family: &str, cpus: i64, memory: i64, arch: &str) -> InstanceType {
    let name = format!("{family}-{cpus}x-{arch}-linux");
    let is = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    let price = 0.025 * cpus as f64 + memory as f64 / 1e12;
    let offering = |zone: &str, (kind, share): (&str, f64)| Offering {
        requirements: vec![is(labels::ZONE, zone), is(labels::CAPACITY_TYPE, kind)],
        price: price * share,
        available: true,
        reservation_capacity: None,
    };
    let kinds = [(labels::SPOT, SPOT), (labels::ON_DEMAND, 1.0)];
    InstanceType {
        requirements: vec![
            is(labels::INSTANCE_TYPE, &name),
            is(labels::ARCH, arch),
            is(labels::OS, "linux"),
            Requirement::new(labels::ZONE, Operator::In, ZONES),
            Requirement::new(labels::CAPACITY_TYPE, Operator::In, [labels::SPOT, labels::ON_DEMAND]),
            is("karpenter.kwok.sh/instance-size", &format!("{cpus}x")),
            is("karpenter.kwok.sh/instance-family", family),
            is("karpenter.kwok.sh/instance-cpu", &cpus.to_string()),
            is("karpenter.kwok.sh/instance-memory", &(memory >> 20).to_string()),
        ],
        name: InstanceTypeName::from(name),
        capacity: Resources::new()
            .with(ResourceName::Cpu.as_str(), cpus * 1_000)
            .with(ResourceName::Memory.as_str(), memory * 1_000)
            .with(ResourceName::Pods.as_str(), (16 * cpus).min(1_024) * 1_000)
            .with(ResourceName::EphemeralStorage.as_str(), 20 * GIB * 1_000),
        // What KWOK's provider sets aside for the kubelet.
        overhead: Resources::new().with("cpu", 100).with("memory", (10 << 20) * 1_000),
        offerings: ZONES.iter().flat_map(|zone| kinds.map(|kind| offering(zone, kind))).collect(),
    }
}
