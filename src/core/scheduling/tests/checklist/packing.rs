//! Karpenter's suite of bin packing: how pods fill nodes. Where Karpenter fills the type that it happens to hit first, joiner looks for
//! the least price: the tests say what every plan must have, and the price.
//!
//! How far plans are from the lower bound: `price.rs`. Requests of init containers, sidecars and overhead are summed in
//! `cluster/convert`; its tests have the cases.

use super::super::build::*;
use super::words::*;

#[test]
fn a_pod_gets_the_smallest_type_that_holds_it() {
    assert_eq!(from(pool("default")).place(&web().of(100, 100)).cheapest(), ["small"]);
    assert_eq!(from(pool("default")).place(&web().of(100, 1900)).cheapest(), ["small"]);
    assert_eq!(from(pool("default")).place(&web().of(100, 2000)).cheapest(), ["default"]);
    assert_eq!(from(pool("default")).place(&web().of(3000, 100)).cheapest(), ["default"]);
}

#[test]
fn tiny_pods_share_one_small_node() {
    let plan = from(pool("default")).with_pods(pods("web", 5, &web().of(10, 10))).solve();
    assert_eq!((plan.per_node(), plan.cheapest()), (vec![5], vec!["small"]));
}

#[test]
fn the_number_of_pods_is_a_resource_too() {
    let plan = from(pool("default")).with_pods(pods("web", 25, &web().of(10, 10))).solve().whole();
    assert_eq!((plan.per_node(), plan.cheapest()), (vec![5; 5], vec!["small"; 5]));
}

#[test]
fn small_pods_fill_what_large_ones_leave() {
    let large = from(pool("default")).with_pods(pods("large", 40, &web().of(10, 1800)));
    let price = large.solve().whole().price;
    let both = large.with_pods(pods("small", 20, &web().of(10, 100))).solve().whole();
    assert!((both.price - price).abs() < 1e-9, "{} instead of {price}", both.price);
}

#[test]
fn a_large_and_a_small_pod_cost_what_they_need() {
    let scene =
        buying(ladder(5)).with_pods(pods("a", 1, &web().of(4500, 512))).with_pods(pods("b", 1, &web().of(1000, 512)));
    let plan = scene.solve().whole();
    assert_eq!(plan.cheapest(), ["fake-2", "fake-5"]);
}

#[test]
fn a_request_for_nothing_of_an_unknown_resource_is_no_request() {
    from(pool("default")).place(&web().asking("example.com/unknown", 0)).whole();
}

#[test]
fn all_types_that_hold_the_pods_are_listed_cheapest_first() {
    let mut types = ladder(4);
    types[3].offerings.iter_mut().for_each(|offer| offer.price = 0.01);
    assert_eq!(buying(types).place(&web()).types(), ["fake-4", "fake-1", "fake-2", "fake-3"]);
}

#[test]
fn no_more_types_are_listed_than_a_nodeclaim_may_have() {
    let mut scene = buying(ladder(9));
    scene.settings.max_instance_types = 3;
    assert_eq!(scene.place(&web()).types(), ["fake-1", "fake-2", "fake-3"]);
}

#[test]
fn every_type_that_is_listed_really_holds_all_pods() {
    for (cpu, memory) in [100, 1500, 4000].into_iter().flat_map(|cpu| [100, 1500, 4000].map(|memory| (cpu, memory))) {
        let scene = buying(ladder(24)).with_pods(pods("web", 3, &web().of(cpu, memory)));
        let plan = scene.solve().whole();
        for claim in &plan.claims {
            let types = scene.catalog.pools.values().next().expect("the pool is there");
            for kind in types.iter().filter(|kind| claim.instance_types.contains(&kind.name)) {
                assert!(claim.draft.requests.fits(&kind.allocatable()), "{} for {:?}", kind.name, claim.draft.requests);
            }
        }
    }
}

#[test]
fn a_type_for_a_single_pod_makes_a_node_for_each() {
    let types = fake().into_iter().filter(|kind| kind.name.as_str() == "single-pod").collect();
    assert_eq!(buying(types).with_pods(pods("web", 3, &web())).solve().per_node(), [1, 1, 1]);
}

#[test]
fn more_of_a_resource_than_one_machine_has_makes_more_machines() {
    let plan = from(pool("default")).with_pods(pods("web", 3, &web().asking("example.com/gpu-a", 1))).solve();
    assert_eq!(plan.per_node(), [1, 2]);
}

#[test]
fn a_host_port_is_taken_once_on_each_node() {
    assert_eq!(Scene::new().with_pods(pods("web", 2, &web().on_port(80))).solve().per_node(), [1, 1]);
    let mixed = Scene::new().with_pods(pods("a", 1, &web().on_port(80))).with_pods(pods("b", 1, &web().on_port(81)));
    assert_eq!(mixed.solve().per_node(), [2]);
}

#[test]
fn host_ports_differ_by_protocol_and_by_address_unless_one_means_all() {
    let at = |ip: &str, protocol: &str| {
        let mut one = web().on_port(80);
        (one.host_ports[0].ip, one.host_ports[0].protocol) = (ip.into(), protocol.into());
        one
    };
    for (a, b, nodes) in [
        (at("10.0.0.1", "TCP"), at("10.0.0.1", "TCP"), 2),
        (at("10.0.0.1", "TCP"), at("10.0.0.2", "TCP"), 1),
        (at("10.0.0.1", "TCP"), at("10.0.0.1", "UDP"), 1),
        (at("0.0.0.0", "TCP"), at("10.0.0.1", "TCP"), 2),
        (at("::", "TCP"), at("10.0.0.1", "TCP"), 2),
        (at("", "TCP"), at("10.0.0.1", "TCP"), 2),
    ] {
        let scene = Scene::new().with_pods(pods("a", 1, &a)).with_pods(pods("b", 1, &b));
        assert_eq!(scene.solve().whole().claims.len(), nodes, "{:?} {:?}", a.host_ports, b.host_ports);
    }
}
