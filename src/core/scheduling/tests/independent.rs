//! What the checker sees in plans that are wrong, whoever made them.

use std::sync::Arc;

use super::super::{PlacedOn, Plan, Violation, check};
use super::build::*;
use crate::core::facts::{Claim, PodShape};
use crate::core::labels::{INSTANCE_TYPE, ZONE};

/// A plan that puts these pods on a NodeClaim that is under way.
fn on_claim(scene: &Scene) -> Plan {
    let existing = vec![PlacedOn { claim: Some("new".into()), node: None, pods: scene.pods.clone() }];
    Plan { existing, ..Plan::default() }
}

fn with_claim(own: Claim, cpu: i64) -> Scene {
    let small = instance_type("small", 2, 8, 0.1);
    Scene::default().with_pool(pool("default"), vec![small]).with_claim(own).with_pods(pods("web", 1, &shape(cpu, 64)))
}

fn small() -> Claim {
    claim("new", "default", vec![within(INSTANCE_TYPE, &["small"])], amounts(500, 64))
}

#[test]
fn a_nodeclaim_that_is_not_launched_is_not_filled_beyond_what_it_may_become() {
    let scene = with_claim(small(), 1500);
    assert_eq!(check(&scene.problem(), &on_claim(&scene)), []);
    let scene = with_claim(small(), 2500);
    let overfull = Violation::Overfull { place: "new".into(), instance_type: "small".into() };
    assert_eq!(check(&scene.problem(), &on_claim(&scene)), [overfull]);
}

#[test]
fn its_daemons_have_their_room_there() {
    let scene = with_claim(small(), 1500).with_daemon("agent", shape(600, 64));
    let overfull = Violation::Overfull { place: "new".into(), instance_type: "small".into() };
    assert_eq!(check(&scene.problem(), &on_claim(&scene)), [overfull]);
}

#[test]
fn a_nodeclaim_that_is_launched_and_has_no_node_yet_is_not_filled_beyond_its_room() {
    let launched = || Claim { allocatable: amounts(1900, 8192).with("pods", 110_000), ..small() };
    let scene = with_claim(launched(), 1900);
    assert_eq!(check(&scene.problem(), &on_claim(&scene)), []);
    let scene = with_claim(launched(), 1901);
    let overfull = Violation::Overfull { place: "new".into(), instance_type: "".into() };
    assert_eq!(check(&scene.problem(), &on_claim(&scene)), [overfull]);
}

/// A web pod that has to be near web pods, in a zone of its own choice.
fn together(cpu: i64, zone: &str) -> PodShape {
    let mut one = shape(cpu, 64);
    one.labels = labels(&[("app", "web")]);
    one.node_selector = labels(&[(ZONE, zone)]);
    one.affinity.push(term(ZONE, &[("app", "web")]));
    one
}

#[test]
fn only_one_of_all_that_mean_each_other_may_be_the_first() {
    let pods = |near: bool| {
        [("a", 500, "zone-a"), ("b", 600, "zone-b")].map(|(name, cpu, zone)| {
            let mut one = together(cpu, zone);
            if !near {
                one.affinity.clear();
            }
            pod(name, 0, &one)
        })
    };
    let mut plan = Scene::new().with_pods(pods(false).to_vec()).solve();
    let scene = Scene::new().with_pods(pods(true).to_vec());
    for one in plan.claims.iter_mut().flat_map(|claim| &mut claim.pods) {
        *one = Arc::clone(scene.pods.iter().find(|pod| pod.uid == one.uid).unwrap());
    }
    let wrong = check(&scene.problem(), &plan);
    assert!(matches!(wrong[..], [Violation::Lonely { .. }]), "{wrong:?}");
}
