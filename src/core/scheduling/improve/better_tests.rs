//! Improved plans are legal, place the same pods, and are never dearer.

use proptest::prelude::*;

use super::{improved, within};
use crate::core::facts::Weighted;
use crate::core::labels;
use crate::core::scheduling::bound::Effort;
use crate::core::scheduling::tests::build::*;
use crate::core::scheduling::{Ground, check, lower_bound};

/// Two large pods leave room that only small ones fill, and a third of the types is bad value.
fn large_and_small() -> Scene {
    let types =
        vec![instance_type("a", 4, 16, 0.2), instance_type("b", 10, 40, 0.47), instance_type("c", 16, 32, 0.71)];
    let all = pods("large", 90, &shape(1900, 3000)).into_iter().chain(pods("small", 300, &shape(350, 1500)));
    Scene::default().with_pool(pool("default"), types).with_pods(all.collect())
}

#[test]
fn pods_of_two_kinds_share_nodes_as_the_cheapest_mix_has_them() {
    let scene = large_and_small();
    let plan = scene.solve();
    let before = plan.price;
    let better = improved(&mut Ground::default(), &scene.problem(), plan);
    let bound = lower_bound(&scene.problem(), &better);
    assert!(check(&scene.problem(), &better).is_empty() && better.refused.is_empty());
    assert!(better.price <= before && better.price <= bound * 1.03, "{before} became {}, bound {bound}", better.price);
}

/// Small nodes are best value, so few pods share one, and many of them spread over zones or keep apart from their like.
#[test]
fn classes_that_spread_and_keep_apart_take_turns() {
    let types = vec![instance_type("small", 2, 4, 0.05), instance_type("large", 16, 32, 0.6)];
    let mut scene = Scene::default().with_pool(pool("default"), types);
    for at in 0..40 {
        let name = format!("app-{at}");
        let (cpu, memory) = if at % 2 == 0 { (500, 1700) } else { (900, 400) };
        let mut one = shape(cpu, memory);
        one.labels.insert("app".into(), name.as_str().into());
        match at % 10 {
            0..=2 => one.spreads.push(spread(labels::ZONE, 1, &[("app", &name)])),
            3 => one.anti_affinity.push(term(labels::HOSTNAME, &[("app", &name)])),
            _ => {}
        }
        scene = scene.with_pods(pods(&name, 20, &one));
    }
    let better = improved(&mut Ground::default(), &scene.problem(), scene.solve());
    let bound = lower_bound(&scene.problem(), &better);
    assert!(check(&scene.problem(), &better).is_empty() && better.refused.is_empty());
    assert!(better.price <= bound * 1.03, "{}, bound {bound}", better.price);
}

#[test]
fn a_cheaper_plan_gives_no_preference_up() {
    // One large node would be cheaper than eight small ones, and have all eight side by side.
    let types = vec![instance_type("small", 1, 4, 0.1), instance_type("large", 16, 64, 0.5)];
    let mut lonely = shape(500, 512);
    lonely.labels.insert("app".into(), "web".into());
    lonely.preferred_anti_affinity.push(Weighted { weight: 1, term: term(labels::HOSTNAME, &[("app", "web")]) });
    let mut scene = Scene::default().with_pool(pool("default"), types).with_pods(pods("web", 8, &lonely));
    scene.settings.respect_preferences = true;
    let plan = scene.solve();
    assert_eq!(plan.claims.len(), 8);
    assert_eq!(improved(&mut Ground::default(), &scene.problem(), plan).claims.len(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_improved_plan_is_legal_and_no_dearer(
        kinds in prop::collection::vec((1_i64..30, 1_i64..40, 1_usize..30, 0_usize..5), 1..6),
        types in prop::collection::vec((1_i64..17, 2_i64..65, 5_i64..90), 1..5),
        limit in prop::option::weighted(0.2, 4_i64..40),
    ) {
        let types = types.iter().enumerate().map(|(at, (cpu, memory, cents))| {
            instance_type(&format!("t{at}"), *cpu, *memory, *cents as f64 / 100.0)
        });
        let mut own = pool("default");
        if let Some(cores) = limit {
            own.limits.set("cpu".into(), cores * 1000);
        }
        let mut scene = Scene::default().with_pool(own, types.collect());
        for (at, (cpu, memory, count, constraint)) in kinds.iter().enumerate() {
            let name = format!("k{at}");
            let mut one = shape(cpu * 100, memory * 100);
            one.labels.insert("app".into(), name.as_str().into());
            match constraint {
                0 => one.spreads.push(spread(labels::ZONE, 1, &[("app", &name)])),
                1 => one.anti_affinity.push(term(labels::HOSTNAME, &[("app", &name)])),
                _ => {}
            }
            scene = scene.with_pods(pods(&name, *count, &one));
        }
        let plan = scene.solve();
        let (price, refused) = (plan.price, plan.refused.len());
        let better = improved(&mut Ground::default(), &scene.problem(), plan);
        prop_assert!(better.refused.len() < refused || better.refused.len() == refused && better.price <= price + 1e-12);
        let violations = check(&scene.problem(), &better);
        prop_assert!(violations.is_empty(), "{violations:?}");
        let bound = lower_bound(&scene.problem(), &better);
        prop_assert!(bound <= better.price + 1e-9, "{bound} {}", better.price);
    }
}

/// Pods of which hardly two are alike, from a fixed sequence.
fn different(count: u64) -> Vec<std::sync::Arc<crate::core::facts::Pod>> {
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((state >> 33) % below).unwrap()
    };
    (0..count)
        .flat_map(|at| {
            let (cpu, memory) = (50 + draw(2_000), 64 + draw(7_000));
            pods(&format!("p{at}"), 1, &shape(cpu, memory))
        })
        .collect()
}

#[test]
fn pods_of_which_no_two_are_alike_are_planned_close_to_their_bound() {
    let scene = Scene::new().with_pods(different(600));
    let plan = scene.solve();
    let before = plan.price;
    let better = improved(&mut Ground::default(), &scene.problem(), plan);
    let bound = lower_bound(&scene.problem(), &better);
    println!("{before:.3} became {:.3}, bound {bound:.3}: {:.2} %", better.price, 100.0 * (better.price / bound - 1.0));
    assert!(check(&scene.problem(), &better).is_empty() && better.refused.is_empty());
    assert!(better.price <= before && better.price <= bound * 1.04, "{before} became {}, bound {bound}", better.price);
}

#[test]
fn large_pods_of_which_no_two_are_alike_are_bounded_in_whole_pods() {
    // Two of them never share the largest node that there is: fractions of pods would.
    let types = vec![instance_type("a", 8, 32, 0.4), instance_type("b", 16, 64, 0.8)];
    let large = (0..400).flat_map(|at| pods(&format!("p{at}"), 1, &shape(9_000 + at, 30_000 + 7 * at)));
    let scene = Scene::default().with_pool(pool("default"), types).with_pods(large.collect());
    let plan = scene.solve();
    let bound = lower_bound(&scene.problem(), &plan);
    assert_eq!(plan.claims.len(), 400);
    assert!(bound > plan.price * 0.999 && bound <= plan.price + 1e-9, "{bound} of {}", plan.price);
}

#[test]
fn a_search_ends_when_its_effort_is_spent_and_keeps_what_it_has() {
    let types: Vec<_> = [(4, 16, 0.21), (8, 32, 0.4), (16, 64, 0.82), (16, 32, 0.6)]
        .into_iter()
        .enumerate()
        .map(|(at, (cpu, memory, price))| instance_type(&format!("t{at}"), cpu, memory, price))
        .collect();
    let kinds = (1..9).flat_map(|at| pods(&format!("k{at}"), 40, &shape(at * 370, 5000 - at * 430)));
    let scene = Scene::default().with_pool(pool("default"), types).with_pods(kinds.collect());
    let plan = scene.solve();
    let with = |cells: u64| {
        let effort = Effort::of(cells);
        let better = within(&mut Ground::default(), &scene.problem(), plan.clone(), &effort);
        assert!(check(&scene.problem(), &better).is_empty() && better.refused.is_empty());
        (better.price, effort.is_spent())
    };
    let ((none, _), (little, ended), (most, had_to)) = (with(0), with(1), with(u64::MAX));
    println!("{none} for nothing, {little} for little, {most} for all");
    assert!(ended && !had_to);
    assert!(none.total_cmp(&plan.price).is_eq() && little <= none && most < none);
}
