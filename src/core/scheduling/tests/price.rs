//! What plans cost, on KWOK's own list of instance types.

use std::sync::Arc;

use super::super::lower_bound;
use super::build::*;
use crate::core::facts::InstanceType;
use crate::core::labels;

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

#[test]
fn the_bound_leaves_out_daemons_that_come_to_some_nodes_only() {
    let mut heavy = shape(30_000, 64);
    heavy.node_selector = labels(&[(labels::ZONE, "zone-a")]);
    let mut narrow = pool("default");
    narrow.template.requirements.push(within(labels::ZONE, &["zone-b", "zone-c"]));
    let scene = |pool| {
        let scene = Scene::default().with_pool(pool, types()).with_daemon("heavy", heavy.clone());
        scene.with_pods(pods("web", 1, &shape(500, 512)))
    };
    let elsewhere = scene(narrow).solve().price;
    let anywhere = scene(pool("default"));
    let bound = lower_bound(&anywhere.problem(), &anywhere.solve());
    assert!(bound <= elsewhere + 1e-9, "a plan of a narrower NodePool costs {elsewhere}, the bound is {bound}");
    let mut everywhere = shape(30_000, 64);
    everywhere.node_selector = labels(&[(labels::OS, "linux")]);
    let all = Scene::new().with_daemon("heavy", everywhere).with_pods(pods("web", 1, &shape(500, 512)));
    assert!(lower_bound(&all.problem(), &all.solve()) > elsewhere, "a daemon of every node counts");
}
