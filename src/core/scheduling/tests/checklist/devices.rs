//! Karpenter's suites of offerings with resources of their own, and of its gate for dynamic resources.
//!
//! joiner allocates no devices, whatever `--ignore-dra-requests` says: it does as Karpenter does by default. That any container's claim counts is a
//! matter of `spec.resourceClaims`: `cluster/convert/tests.rs`. Files with such offerings: `clouds/catalog/tests.rs`;
//! resources that only an overlay knows: `tests/features/overlays.rs`.

use super::super::build::*;
use super::words::*;
use crate::core::facts::{InstanceType, PodShape};
use crate::core::labels::INSTANCE_TYPE;
use crate::core::lifecycle::{Candidates, candidates};
use crate::core::scheduling::Reason;

const GPU: &str = "example.com/gpu-a";

fn asking_for_devices(shape: PodShape) -> PodShape {
    PodShape { dynamic_resources: true, ..shape }
}

#[test]
fn an_extended_resource_chooses_the_type_that_has_it() {
    assert_eq!(from(pool("default")).place(&web().asking(GPU, 1)).whole().types(), ["gpu-a"]);
}

#[test]
fn an_extended_resource_that_is_sold_out_cannot_be_had() {
    let mut types = fake();
    types[2] = types[2].clone().sold_out(|_| true);
    assert_eq!(buying(types).place(&web().asking(GPU, 1)).left(), 1);
}

/// A type whose machines in the third zone have a device, at another price: a list has it twice.
fn in_two_sizes() -> Vec<InstanceType> {
    let base = instance_type("plain", 4, 16, 0.2);
    let zone = |kind: &InstanceType, third: bool| {
        let mut kind = kind.clone();
        kind.offerings.retain(|offering| offering.zone().is_some_and(|zone| (&**zone == ZONES[2]) == third));
        kind
    };
    let mut other = zone(&base, true);
    other.capacity.set(GPU.into(), 1000);
    other.offerings.iter_mut().for_each(|offering| offering.price *= 1.5);
    vec![zone(&base, false), other]
}

#[test]
fn a_resource_that_only_some_offerings_of_a_type_have_is_bought_there() {
    let plan = buying(in_two_sizes()).place(&web().asking(GPU, 1)).whole();
    assert_eq!((plan.types(), plan.claims[0].price), (vec!["plain"], 0.2 * 0.66 * 1.5));
    // Who needs none of it takes the cheaper ones, and the type is named once.
    let plan = buying(in_two_sizes()).place(&web()).whole();
    assert_eq!((plan.types(), plan.claims[0].price), (vec!["plain"], 0.2 * 0.66));
    let names = plan.claims[0].draft.requirements.iter().find(|line| &*line.key == INSTANCE_TYPE).unwrap();
    assert_eq!(names.values.len(), 1);
}

#[test]
fn a_resource_of_offerings_that_are_sold_out_cannot_be_had() {
    let [base, other] = <[InstanceType; 2]>::try_from(in_two_sizes()).unwrap();
    let types = vec![base, other.sold_out(|_| true)];
    assert_eq!(buying(types).place(&web().asking(GPU, 1)).left(), 1);
}

#[test]
fn it_is_launched_as_it_was_planned() {
    let plan = buying(in_two_sizes()).place(&web().asking(GPU, 1)).whole();
    let draft = &plan.claims[0].draft;
    let claim = claim("c", "default", draft.requirements.to_vec(), draft.requests.clone());
    let types: Vec<_> = in_two_sizes().into_iter().map(std::sync::Arc::new).collect();
    let Candidates::Some(found) = candidates(&claim, &types) else { panic!("nothing can be launched") };
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].capacity.get(&GPU.into()), 1000);
}

#[test]
fn nothing_is_bought_for_a_pod_that_asks_for_devices() {
    let plan = from(pool("default")).place(&asking_for_devices(web()));
    assert_eq!((plan.claims.len(), plan.refused[0].reasons.as_slice()), (0, &[Reason::DynamicResources][..]));
}

#[test]
fn a_pod_that_asks_for_devices_is_put_on_no_node_that_is_there() {
    let scene = from(pool("default")).with_node(node("roomy", 16, 64, &[]));
    assert_eq!(scene.place(&asking_for_devices(web())).left(), 1);
}

#[test]
fn other_pods_of_the_batch_get_their_nodes() {
    let scene = from(pool("default")).with_pods(pods("devices", 1, &asking_for_devices(web()))).with_pods(pods(
        "plain",
        2,
        &web(),
    ));
    let plan = scene.solve();
    assert_eq!((plan.per_node(), plan.left()), (vec![2], 1));
}

#[test]
fn no_room_is_kept_on_new_nodes_for_daemons_that_ask_for_devices() {
    let beside = |daemon: PodShape| {
        let scene = buying(ladder(8)).with_daemon("d", daemon);
        scene.place(&web().of(1000, 512)).whole().cheapest()[0].to_owned()
    };
    assert_eq!(beside(shape(1000, 512)), "fake-3");
    assert_eq!(beside(asking_for_devices(shape(1000, 512))), "fake-2");
}

#[test]
fn no_room_is_kept_on_nodes_that_are_there_for_daemons_that_ask_for_devices() {
    let left = |daemon: PodShape| {
        let scene = Scene::default().with_node(node("old", 2, 4, &[])).with_daemon("d", daemon);
        scene.place(&web().of(1500, 512)).left()
    };
    assert_eq!((left(shape(1000, 512)), left(asking_for_devices(shape(1000, 512)))), (1, 0));
}
