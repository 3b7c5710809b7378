//! The catalogue that Karpenter's KWOK provider ships, made by its recipe: 144 types of three families (2, 4 and 8 GiB a core), twelve
//! sizes, two architectures and two operating systems, in four zones, on demand and spot.

use crate::core::facts::{InstanceType, Offering};
use crate::core::labels;
use crate::core::resources::Resources;

use super::build::{Words, instance_type};

/// Cores of each size.
const CORES: [u16; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
/// Family and its GiB of memory a core.
const FAMILIES: [(&str, u16); 3] = [("c", 2), ("s", 4), ("m", 8)];
/// Zones.
const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
/// USD per core and hour.
const CORE_PRICE: f64 = 0.025;
/// USD per GB (not GiB) of memory and hour.
const MEMORY_PRICE: f64 = 0.001;
/// What spot costs of the on-demand price.
const SPOT_SHARE: f64 = 0.7;
/// Pods per core, and at most.
const PODS_PER_CORE: i64 = 16;
const MOST_PODS: i64 = 1024;
/// Bytes in a GiB.
const GIB: i64 = 1 << 30;

/// The default catalogue.
pub fn generated() -> Vec<InstanceType> {
    let mut words = Words::default();
    let mut all = Vec::new();
    for cores in CORES {
        for (family, gib_per_core) in FAMILIES {
            for system in ["linux", "windows"] {
                for architecture in ["amd64", "arm64"] {
                    let name = format!("{family}-{cores}x-{architecture}-{system}");
                    let memory = i64::from(cores) * i64::from(gib_per_core) * GIB;
                    let capacity = Resources::new()
                        .with("cpu", i64::from(cores) * 1000)
                        .with("memory", memory * 1000)
                        .with("pods", (i64::from(cores) * PODS_PER_CORE).min(MOST_PODS) * 1000)
                        .with("ephemeral-storage", 20 * GIB * 1000);
                    let price = CORE_PRICE * f64::from(cores) + MEMORY_PRICE * memory as f64 / 1e9;
                    let offerings = offerings(price, &mut words);
                    all.push(instance_type(&name, architecture, &[system], capacity, offerings, &mut words));
                }
            }
        }
    }
    all
}

fn offerings(price: f64, words: &mut Words) -> Vec<Offering> {
    let kinds = [(labels::SPOT, price * SPOT_SHARE), (labels::ON_DEMAND, price)];
    ZONES
        .iter()
        .flat_map(|zone| kinds.map(|(kind, price)| (zone, kind, price)))
        .map(|(zone, kind, price)| Offering {
            requirements: vec![words.is_in(labels::CAPACITY_TYPE, [kind]), words.is_in(labels::ZONE, [*zone])],
            price,
            available: true,
            reservation_capacity: None,
        })
        .collect()
}
