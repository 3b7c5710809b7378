//! Karpenter's suite of instance type compatibility: what pods and pools leave of the catalogue.

use super::super::build::*;
use super::words::*;
use crate::core::facts::InstanceType;
use crate::core::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE};
use crate::core::requirements::Operator::{DoesNotExist, Exists, NotIn};

#[test]
fn a_pod_larger_than_every_type_is_refused() {
    assert!(Scene::new().place(&web().of(512_000, 512)).why().contains("cpu"));
    assert!(Scene::new().place(&web().of(500, 2 << 20)).why().contains("memory"));
}

#[test]
fn pods_of_different_architecture_get_nodes_of_their_own() {
    let scene = from(pool("default")).with_pods(pods("a", 1, &web().selecting(ARCH, "amd64"))).with_pods(pods(
        "b",
        1,
        &web().selecting(ARCH, "arm64"),
    ));
    assert_eq!(scene.solve().whole().cheapest(), ["arm", "small"]);
}

#[test]
fn pods_of_different_systems_get_nodes_of_their_own() {
    let types = fake().into_iter().map(|kind| kind.labelled(OS, &["linux", "windows"])).collect();
    let scene = buying(types).with_pods(pods("a", 1, &web().selecting(OS, "linux"))).with_pods(pods(
        "b",
        1,
        &web().selecting(OS, "windows"),
    ));
    assert_eq!(scene.solve().whole().claims.len(), 2);
}

#[test]
fn pods_that_name_different_types_get_nodes_of_their_own() {
    let scene = from(pool("default"))
        .with_pods(pods("a", 1, &web().selecting("beta.kubernetes.io/instance-type", "small")))
        .with_pods(pods("b", 1, &web().selecting(INSTANCE_TYPE, "default")));
    assert_eq!(scene.solve().whole().cheapest(), ["default", "small"]);
}

#[test]
fn pods_that_name_different_zones_get_nodes_of_their_own() {
    let scene = Scene::new().with_pods(pods("a", 1, &web().selecting(ZONE, "zone-a"))).with_pods(pods(
        "b",
        1,
        &web().selecting(ZONE, "zone-b"),
    ));
    assert_eq!(scene.solve().whole().claims.len(), 2);
}

#[test]
fn a_pool_of_one_architecture_leaves_the_types_of_others_out() {
    let scene = || from(pool("default").requiring(within(ARCH, &["amd64"])));
    assert!(!scene().place(&web()).types().contains(&"arm"));
    assert_eq!(scene().place(&web().selecting(INSTANCE_TYPE, "arm")).left(), 1);
    assert!(scene().place(&web().of(14_000, 512)).why().contains("cpu"), "only the arm type has so many cores");
}

#[test]
fn a_system_that_only_another_architecture_has_is_refused() {
    let mut types = fake();
    types[4] = types[4].clone().labelled(OS, &["linux", "ios"]);
    let scene = Scene::default().with_pool(pool("default").requiring(within(ARCH, &["amd64"])), types);
    assert_eq!(scene.place(&web().selecting(OS, "ios")).left(), 1);
}

#[test]
fn accelerators_choose_their_types() {
    let scene = from(pool("default")).with_pods(pods("a", 1, &web().asking("example.com/gpu-a", 1))).with_pods(pods(
        "b",
        1,
        &web().asking("example.com/gpu-b", 1),
    ));
    assert_eq!(scene.solve().whole().cheapest(), ["gpu-a", "gpu-b"]);
}

#[test]
fn accelerators_that_no_type_has_together_are_refused() {
    let greedy = web().asking("example.com/gpu-a", 1).asking("example.com/gpu-b", 1);
    assert_eq!(from(pool("default")).place(&greedy).left(), 1);
}

#[test]
fn a_resource_that_nobody_has_is_refused_by_name() {
    assert!(from(pool("default")).place(&web().asking("example.com/tpu", 1)).why().contains("example.com/tpu"));
}

#[test]
fn labels_of_the_cloud_filter_types() {
    let types = |size| from(pool("default")).place(&web().selecting("size", size)).types().join(" ");
    assert_eq!(types("small"), "small");
    assert_eq!(types("large"), "default single-pod gpu-a gpu-b arm");
    let torn = web().selecting("size", "small").selecting(INSTANCE_TYPE, "default");
    assert_eq!(from(pool("default")).place(&torn).left(), 1);
}

#[test]
fn a_label_that_some_types_carry_can_be_wanted_present_or_absent() {
    // A cloud says of each type which of its labels it lacks.
    let special =
        |(at, kind): (usize, InstanceType)| kind.labelled("special", if at == 4 { &["optional"] } else { &[] });
    let all: Vec<InstanceType> = ladder(5).into_iter().enumerate().map(special).collect();
    let types = |operator| buying(all.clone()).place(&web().wanting(says("special", operator, &[]))).types().join(" ");
    assert_eq!(types(Exists), "fake-5");
    assert_eq!(types(DoesNotExist), "fake-1 fake-2 fake-3 fake-4");
}

#[test]
fn a_pool_that_leaves_no_type_is_said_to_leave_none() {
    for requirement in [
        within(INSTANCE_TYPE, &["unknown"]),
        within(ARCH, &["mips"]),
        within(ZONE, &["nowhere"]),
        says(ZONE, NotIn, &ZONES),
        within("integer", &["77"]),
    ] {
        let plan = from(pool("default").requiring(requirement.clone())).with_pods(pods("web", 2, &web())).solve();
        assert_eq!(plan.left(), 2);
        assert!(plan.why().contains("leave no instance type"), "{requirement:?}: {}", plan.why());
    }
}

#[test]
fn a_pool_that_contradicts_itself_says_on_which_key() {
    let torn = pool("default").requiring(within(ARCH, &["amd64"])).requiring(within(ARCH, &["arm64"]));
    assert!(from(torn).place(&web()).why().contains("exclude each other on kubernetes.io/arch"));
}

#[test]
fn the_price_is_that_of_offerings_that_the_pool_allows() {
    // The second type is cheaper as spot only.
    let mut types = ladder(2);
    types[1]
        .offerings
        .iter_mut()
        .filter(|o| o.capacity_type().is_some_and(|c| &**c == SPOT))
        .for_each(|o| o.price = 0.001);
    let on_demand = pool("default").requiring(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let plan = Scene::default().with_pool(on_demand, types.clone()).place(&web());
    assert_eq!(plan.types(), ["fake-1", "fake-2"]);
    assert!((plan.price - 0.1).abs() < 1e-9, "{}", plan.price);
    assert_eq!(buying(types).place(&web()).types(), ["fake-2", "fake-1"]);
}

#[test]
fn what_is_sold_out_is_not_planned() {
    let mut types = ladder(2);
    types[0] = types[0].clone().sold_out(|_| true);
    assert_eq!(buying(types.clone()).place(&web()).types(), ["fake-2"]);
    types[1] = types[1].clone().sold_out(|o| o.zone().is_some_and(|zone| &**zone != "zone-c"));
    assert_eq!(buying(types.clone()).place(&web().selecting(ZONE, "zone-c")).types(), ["fake-2"]);
    assert!(buying(types).place(&web().selecting(ZONE, "zone-a")).why().contains("none can be had"));
}

#[test]
fn pods_and_pools_choose_together() {
    // Every pair of a pool's and a pod's wish: each type that is listed meets both.
    let wishes = [
        within(ZONE, &["zone-b"]),
        within(CAPACITY_TYPE, &[ON_DEMAND]),
        within(ARCH, &["amd64"]),
        within("integer", &["3", "4"]),
    ];
    for (of_pool, of_pod) in wishes.iter().flat_map(|a| wishes.iter().map(move |b| (a, b))) {
        let scene = Scene::default().with_pool(pool("default").requiring(of_pool.clone()), ladder(5));
        let plan = scene.place(&web().wanting(of_pod.clone())).whole();
        for wish in [of_pool, of_pod] {
            assert_eq!(plan.only(&wish.key), wish.values.join("|"));
        }
        let integer = [of_pool, of_pod].iter().any(|wish| &*wish.key == "integer");
        assert_eq!(plan.types().len(), if integer { 2 } else { 5 });
    }
}
