//! What can be bought, and what is being paid, sampled from the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::facts::{Catalog, InstanceType, Snapshot};
use crate::core::labels;
use crate::core::resources::ResourceName;

use super::Samples;
use super::cluster::whole;
use super::families as f;

/// Samples instance types and offerings; what several NodePools share comes once. Where NodePools see different prices (overlays), the
/// first NodePool by name speaks.
pub fn sample_catalog(samples: &mut Samples, catalog: &Catalog) {
    let mut types: BTreeMap<&str, &InstanceType> = BTreeMap::new();
    for list in catalog.pools.values() {
        for instance_type in list.iter() {
            types.entry(instance_type.name.as_str()).or_insert(instance_type);
        }
    }
    for (name, instance_type) in types {
        samples.add(&f::CLOUD_CPU, &[name], whole(instance_type.capacity.get(&ResourceName::Cpu)));
        samples.add(&f::CLOUD_MEMORY, &[name], whole(instance_type.capacity.get(&ResourceName::Memory)));
        // Reserved capacity can come in several offerings of one zone: available if any is, at the lowest price.
        let mut offerings: BTreeMap<(&str, &str), (bool, f64)> = BTreeMap::new();
        for offering in &instance_type.offerings {
            let capacity_type = offering.capacity_type().map_or("", |value| value);
            let zone = offering.zone().map_or("", |value| value);
            let seen = offerings.entry((capacity_type, zone)).or_insert((false, f64::INFINITY));
            *seen = (seen.0 || offering.available, seen.1.min(offering.price));
        }
        for ((capacity_type, zone), (available, price)) in offerings {
            samples.add(&f::CLOUD_AVAILABLE, &[name, capacity_type, zone], if available { 1.0 } else { 0.0 });
            samples.add(&f::CLOUD_PRICE, &[name, capacity_type, zone], price);
        }
    }
}

/// Samples what the machines of each NodePool cost, by the labels of its NodeClaims. A machine whose offering is no longer in the catalog
/// counts nothing.
pub fn sample_costs(samples: &mut Samples, snapshot: &Snapshot, catalog: &Catalog) {
    let mut costs: BTreeMap<_, f64> = snapshot.pools.keys().map(|pool| (pool.clone(), 0.0)).collect();
    let mut indexes: BTreeMap<*const Vec<Arc<InstanceType>>, BTreeMap<&str, &InstanceType>> = BTreeMap::new();
    for claim in snapshot.claims.values().filter(|claim| claim.provider_id.is_some()) {
        let Some(pool) = claim.pool() else { continue };
        let Some(list) = catalog.pools.get(&pool) else { continue };
        let index = indexes
            .entry(Arc::as_ptr(list))
            .or_insert_with(|| list.iter().map(|entry| (entry.name.as_str(), &**entry)).collect());
        let label = |key: &str| claim.labels.get(key);
        let price = label(labels::INSTANCE_TYPE).and_then(|name| index.get(&**name)).and_then(|instance_type| {
            let matching = instance_type.offerings.iter().filter(|offering| {
                offering.zone() == label(labels::ZONE) && offering.capacity_type() == label(labels::CAPACITY_TYPE)
            });
            matching.map(|offering| offering.price).reduce(f64::min)
        });
        *costs.entry(pool).or_default() += price.unwrap_or_default();
    }
    for (pool, cost) in costs {
        samples.add(&f::NODEPOOLS_COST, &[pool.as_str()], cost);
    }
}
