//! Karpenter's provisioner suite: which pool, by weight, selection, limits and readiness.
//!
//! Weight before taints, soft taints, limits within a pass, pools that are not ready: `basics.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::facts::{Claim, Effect, InstanceType, Pool, Taint};
use crate::core::labels::{CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, ZONE};
use crate::core::resources::Resources;
use crate::core::scheduling::{Plan, Violation, check};

#[track_caller]
fn chosen(scene: Scene, shape: &crate::core::facts::PodShape) -> String {
    let plan = scene.place(shape).whole();
    plan.claims[0].draft.pool.to_string()
}

fn three() -> Scene {
    Scene::new().with_pool(pool("light").weighing(20), types()).with_pool(pool("heavy").weighing(100), types())
}

#[test]
fn the_heaviest_pool_is_taken_every_time() {
    let scene = three().with_pods(pods("web", 5, &web().on_port(80)));
    let plan = scene.solve().whole();
    assert!(plan.claims.iter().all(|claim| claim.draft.pool.as_str() == "heavy"));
}

#[test]
fn a_pod_that_names_a_pool_gets_it_whatever_its_weight() {
    assert_eq!(chosen(three(), &web().selecting(NODEPOOL, "light")), "light");
    assert_eq!(three().place(&web().selecting(NODEPOOL, "absent")).left(), 1);
}

#[test]
fn a_pod_that_names_a_label_of_a_pool_gets_it_whatever_its_weight() {
    let scene = three().with_pool(pool("blue").labelled("example.com/team", "blue"), types());
    assert_eq!(chosen(scene, &web().selecting("example.com/team", "blue")), "blue");
}

#[test]
fn pools_of_one_weight_and_one_price_are_taken_in_one_order() {
    // Karpenter: by name, descending.
    let scene = || Scene::default().with_pool(pool("a"), types()).with_pool(pool("b"), types());
    let first = chosen(scene(), &web());
    assert!((0..3).all(|_| chosen(scene(), &web()) == first));
    assert_eq!(first, "b");
}

/// The same machines at two prices; the dear NodePool comes first by name.
fn dear_and_cheap() -> [(Pool, Vec<InstanceType>); 2] {
    let at = |price: f64| vec![instance_type("small", 2, 8, price), instance_type("large", 4, 16, price * 1.9)];
    [(pool("z-gpu"), at(1.0)), (pool("general"), at(0.1))]
}

#[test]
fn of_pools_of_one_weight_the_cheaper_is_taken() {
    let [(dear, its), (cheap, own)] = dear_and_cheap();
    let scene = Scene::default().with_pool(dear, its).with_pool(cheap, own).with_pods(pods("web", 30, &web()));
    for plan in [scene.solve(), scene.plan()] {
        let plan = plan.whole();
        assert!(plan.claims.iter().all(|claim| claim.draft.pool.as_str() == "general"), "{:?}", plan.claims);
    }
}

#[test]
fn a_heavier_pool_is_taken_at_any_price() {
    let [(dear, its), (cheap, own)] = dear_and_cheap();
    let scene = Scene::default().with_pool(dear.weighing(1), its).with_pool(cheap, own);
    let plan = scene.with_pods(pods("web", 30, &web())).plan().whole();
    assert!(plan.claims.iter().all(|claim| claim.draft.pool.as_str() == "z-gpu"), "{:?}", plan.claims);
}

#[test]
fn the_dearer_of_two_pools_of_one_weight_is_taken_where_the_cheaper_may_make_no_more_nodes() {
    let [(dear, its), (cheap, own)] = dear_and_cheap();
    let scene = Scene::default().with_pool(dear, its).with_pool(cheap.limited("nodes", 1), own);
    let plan = scene.with_pods(pods("web", 2, &web().on_port(80))).plan().whole();
    let mut pools: Vec<_> = plan.claims.iter().map(|claim| claim.draft.pool.as_str()).collect();
    pools.sort_unstable();
    assert_eq!(pools, ["general", "z-gpu"]);
}

#[test]
fn a_pool_with_a_soft_taint_is_avoided_whatever_its_weight() {
    let soft = pool("soft").weighing(100).tainted(Taint::new("slow", Effect::PreferNoSchedule));
    assert_eq!(chosen(Scene::new().with_pool(soft, types()), &web()), "default");
}

#[test]
fn the_next_pool_is_taken_when_the_heaviest_has_no_room_left() {
    let scene = Scene::new().with_pool(pool("heavy").weighing(10).limited("nodes", 1), types());
    let plan = scene.with_pods(pods("web", 2, &web().on_port(80))).solve().whole();
    let mut pools: Vec<_> = plan.claims.iter().map(|claim| claim.draft.pool.as_str()).collect();
    pools.sort_unstable();
    assert_eq!(pools, ["default", "heavy"]);
}

#[test]
fn a_pool_that_is_being_deleted_is_not_used() {
    let going = Pool { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..pool("default") };
    assert_eq!(from(going).place(&web()).left(), 1);
}

#[test]
fn a_static_pool_is_never_used() {
    let fixed = Pool { replicas: Some(3), ..pool("static") };
    assert_eq!(Scene::default().with_pool(fixed.clone(), types()).place(&web()).left(), 1);
    assert_eq!(chosen(Scene::new().with_pool(fixed.weighing(100), types()), &web()), "default");
}

/// A pool of which a machine with four cores is there.
fn used(limit: i64) -> Scene {
    Scene::default().with_pool(pool("default").limited("cpu", limit), ladder(4)).with_both(owned("old", 4, 1, &[]))
}

#[test]
fn limits_that_nodes_have_used_up_stop_a_pool() {
    let big = web().of(500, 2000);
    for limit in [3, 4] {
        let plan = used(limit).place(&big);
        assert!(plan.why().contains("limit"), "{}", plan.why());
    }
    assert_eq!(used(8).place(&big).left(), 0);
}

#[test]
fn types_that_would_exceed_the_limit_are_left_out() {
    assert_eq!(used(6).place(&web().of(500, 2000)).types(), ["fake-2"]);
    assert_eq!(used(6).place(&web().of(2500, 2000)).left(), 1);
}

#[test]
fn a_limit_places_as_many_pods_as_it_can() {
    let scene = Scene::default().with_pool(pool("default").limited("cpu", 3), ladder(4));
    let plan = scene.with_pods(pods("web", 2, &web().of(2500, 512))).solve();
    assert_eq!((plan.placed(), plan.left()), (1, 1));
}

#[test]
fn any_resource_can_be_limited() {
    let gpus = from(pool("default").limited("example.com/gpu-a", 2)).with_pods(pods(
        "web",
        4,
        &web().asking("example.com/gpu-a", 1),
    ));
    let plan = gpus.solve();
    assert_eq!((plan.placed(), plan.left()), (2, 2));
}

#[test]
fn a_limit_of_nothing_stops_a_pool() {
    assert_eq!(from(pool("default").limited("cpu", 0)).place(&web()).left(), 1);
    assert_eq!(from(pool("default").limited("nodes", 0)).place(&web()).left(), 1);
}

#[test]
fn a_limit_on_what_a_type_does_not_have_does_not_concern_it() {
    // Karpenter closes the whole pool once any limited resource is overdrawn.
    let scene = from(pool("default").limited("example.com/gpu-a", 0));
    assert!(!scene.place(&web()).types().contains(&"gpu-a"));
}

#[test]
fn limits_on_nodes_hold_from_round_to_round() {
    let one = web().on_port(80);
    let scene = from(pool("default").limited("nodes", 2)).round(pods("a", 1, &one)).round(pods("b", 1, &one));
    assert_eq!(scene.size(), 2);
    assert_eq!(scene.asking_for(pods("c", 1, &one)).solve().left(), 1);
}

#[test]
fn machines_that_are_on_their_way_count_for_limits() {
    let one = web().on_port(80);
    let scene = from(pool("default").limited("nodes", 1)).asking_for(pods("a", 1, &one));
    let plan = scene.solve().whole();
    let mut both = scene.pods.clone();
    both.extend(pods("b", 1, &one));
    let later = scene.written(&plan).asking_for(both).solve();
    assert_eq!((later.placed(), later.left()), (1, 1));
}

#[test]
fn machines_that_are_going_do_not_count_for_limits() {
    let (node, claim) = owned("old", 4, 1, &[]);
    let going = Claim { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..claim };
    let scene = Scene::default().with_pool(pool("default").limited("cpu", 4), ladder(4)).with_both((node, going));
    scene.place(&web()).whole();
}

#[test]
fn a_pool_that_has_no_compatible_type_leaves_the_pod_to_the_next() {
    let gpu = pool("gpu").weighing(10).requiring(within(INSTANCE_TYPE, &["gpu-a"]));
    let scene = from(pool("default")).with_pool(gpu, fake());
    assert_eq!(chosen(scene, &web().selecting(INSTANCE_TYPE, "small")), "default");
}

#[test]
fn a_nodeclaim_that_is_not_launched_counts_for_limits_as_the_largest_that_it_may_become() {
    // The cloud may make it four cores, and two are left of six; a pod that comes to it must fit into the two that it has at least.
    let limited = pool("default").limited("cpu", 6);
    let ordered = claim("ordered", "default", vec![within(INSTANCE_TYPE, &["m-2x", "m-4x"])], Resources::new());
    let scene = || Scene::default().with_pool(limited.clone(), types()).with_claim(ordered.clone());
    let plan = |cpu| scene().with_pods(pods("web", 1, &web().of(cpu, 100))).solve();
    assert_eq!((plan(1500).existing.len(), plan(3000).left()), (1, 1));
    let none = Scene::default().with_pool(limited.clone(), types()).place(&web().of(3000, 100));
    assert_eq!(none.claims.len(), 1);
    // The checker agrees: both together could be eight cores.
    let scene = scene().with_pods(pods("web", 1, &web().of(3000, 100)));
    let violations = check(&scene.problem(), &Plan { claims: none.claims, ..Plan::default() });
    assert!(violations.iter().any(|found| matches!(found, Violation::BeyondLimits(_))), "{violations:?}");
}

/// Without an aim for its size the first node would be charged with all that the limit leaves, and the others be cheaper elsewhere.
#[test]
fn nobody_leaves_a_heavier_pool_for_a_lower_price() {
    let on_demand = pool("heavy").weighing(100).limited("cpu", 64).requiring(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let scene = Scene::new().with_pool(on_demand, types());
    let apart = app("apart").of(750, 100).far(those_of("apart", HOSTNAME));
    let scene = scene.with_pods(pods("one", 1, &web().of(1500, 100))).with_pods(pods("apart", 2, &apart));
    let plan = scene.plan().whole();
    assert!(plan.claims.iter().all(|claim| claim.draft.pool.as_str() == "heavy"), "{:?}", plan.claims);
}

/// The first nodes aim at more than comes to them: what they do not use of the limit is there for others in the end.
#[test]
fn what_planned_nodes_do_not_use_of_a_limit_is_left_to_others() {
    let even = app("door").of(0, 0).spreading(spread(ZONE, 1, &[("app", "door")]));
    let scene = Scene::default()
        .with_pool(pool("default").limited("memory", 186 << 30), kwok())
        .with_pods(pods("roomy", 8, &app("roomy").of(0, 4096)))
        .with_pods(pods("busy", 15, &app("busy").of(4000, 0)))
        .with_pods(pods("even", 1, &even))
        .with_pods(pods("door", 28, &app("door").of(0, 0).on_port(80)));
    assert_eq!((scene.solve().left(), scene.plan().left()), (4, 0));
}

/// Whoever found room beside others in a lighter pool does not get a node of its own there when plans are improved.
#[test]
fn a_new_node_of_a_lighter_pool_is_for_somebody_who_needs_it() {
    let even = app("even").of(2000, 0).spreading(spread(ZONE, 3, &[("app", "even")]));
    let (small, tolerant) = (app("small").of(0, 0), app("tolerant").of(1000, 0).tolerating("ded"));
    let is_needless = |claim: &crate::core::scheduling::PlannedClaim| {
        claim.draft.pool.as_str() == "light" && claim.pods.iter().all(|pod| pod.key.name.starts_with("tolerant"))
    };
    for (many, others) in (8..11).flat_map(|many| (5..8).map(move |others| (many, others))) {
        let scene = Scene::default()
            .with_pool(pool("light"), kwok())
            .with_pool(pool("heavy").weighing(50).tainted(taint("ded")), kwok())
            .with_pods(pods("small", 9, &small))
            .with_pods(pods("tolerant", others, &tolerant))
            .with_pods(pods("even", many, &even));
        let plan = scene.plan().whole();
        assert!(!plan.claims.iter().any(is_needless), "{many} {others}: {:?}", plan.claims);
    }
}
