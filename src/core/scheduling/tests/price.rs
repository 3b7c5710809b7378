//! What plans cost, on KWOK's own list of instance types.

use std::sync::Arc;

use super::build::*;
use crate::core::facts::InstanceType;
use crate::core::labels;

/// KWOK's default types for Linux on amd64 and arm64: 1 to 256 cores with 2, 4 or 8 GiB each, 25 milli-USD per core and 1 per 10⁹ bytes.
fn kwok() -> Vec<InstanceType> {
    let mut all = Vec::new();
    for (family, factor) in [("c", 2), ("s", 4), ("m", 8)] {
        for cpu in [1_i64, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
            let bytes = (cpu * factor) << 30;
            let price = 0.025 * cpu as f64 + 0.001 * bytes as f64 / 1e9;
            let mut one = instance_type(&format!("{family}-{cpu}x"), cpu, cpu * factor, price);
            for offering in one.offerings.iter_mut().filter(|o| o.capacity_type().is_some_and(|c| &**c == labels::SPOT))
            {
                offering.price = price * 0.7;
            }
            all.push(one);
        }
    }
    all
}

#[test]
fn equal_pods_cost_little_more_than_the_bound() {
    for (cpu, memory) in [(1000, 1024), (500, 512), (250, 2048), (1500, 4096), (100, 128), (700, 900)] {
        let plan = Scene::default()
            .with_pool(pool("default"), kwok())
            .with_pods(pods("web", 5000, &shape(cpu, memory)))
            .solve();
        assert!(plan.refused.is_empty());
        // No plan can be cheaper than each pod's share of the type that suits it best.
        let share = |kind: &InstanceType| {
            let room = kind.allocatable();
            let cpu = cpu as f64 / room.get(&"cpu".into()) as f64;
            let memory = (memory * MIB) as f64 / room.get(&"memory".into()) as f64;
            cpu.max(memory).max(1000.0 / room.get(&"pods".into()) as f64) * kind.offerings[0].price
        };
        let bound = 5000.0 * kwok().iter().map(share).fold(f64::INFINITY, f64::min);
        println!(
            "{cpu}m {memory}Mi: {:.2} $/h, bound {bound:.2}, {:.2} %, {} nodes",
            plan.price,
            (plan.price / bound - 1.0) * 100.0,
            plan.claims.len()
        );
        assert!(plan.price <= bound * 1.024, "{cpu}m {memory}Mi: {} against {bound}", plan.price);
    }
}

#[test]
fn mixed_pods_cost_little_more_than_the_bound() {
    let mut all: Vec<Arc<crate::core::facts::Pod>> = Vec::new();
    let mut bound = 0.0;
    for (at, (cpu, memory)) in [(100, 128), (250, 8192), (1500, 512), (500, 4096), (1000, 256)].into_iter().enumerate()
    {
        all.extend(pods(&format!("p{at}"), 200, &shape(cpu, memory)));
        bound += 200.0 * (cpu as f64 * 0.025 / 1000.0 + (memory << 20) as f64 * 0.001 / 1e9) * 0.7;
    }
    let plan = Scene::default().with_pool(pool("default"), kwok()).with_pods(all).solve();
    println!("mixed: {:.2} $/h, bound {bound:.2}, {} nodes", plan.price, plan.claims.len());
    assert!(plan.refused.is_empty());
    assert!(plan.price <= bound * 1.03, "{} against {bound}", plan.price);
}
