//! Nodes that lack the label `kubernetes.io/hostname`, which a kubelet always sets and people may take off: to kube-scheduler such a node is in no
//! domain of it. Karpenter's suites do not ask.

use super::super::super::{Violation, check};
use super::super::build::*;
use super::words::*;
use crate::core::facts::{Node, PodShape};
use crate::core::labels::{HOSTNAME, ZONE};

fn nameless(name: &str, cpu: i64, pairs: &[(&str, &str)]) -> Node {
    let mut node = node(name, cpu, 64, pairs);
    node.labels.remove(HOSTNAME);
    node
}

/// A node without the label beside a pool: who runs on the node, and how many pods go there and to new nodes.
fn beside(running: &[PodShape], pods_of: &PodShape) -> (usize, usize) {
    let mut scene = Scene::new().with_node(nameless("old", 64, &[(ZONE, "zone-a")]));
    for (at, shape) in running.iter().enumerate() {
        scene = scene.running(&format!("there-{at}"), "old", shape);
    }
    let plan = scene.with_pods(pods("web", 2, pods_of)).plan().whole();
    let there: usize = plan.existing.iter().map(|placed| placed.pods.len()).sum();
    (there, plan.placed() - there)
}

#[test]
fn nobody_is_spread_onto_a_node_without_a_host_name() {
    assert_eq!(beside(&[], &web().spreading(even(HOSTNAME, 1))), (0, 2));
    assert_eq!(beside(&[], &web().spreading(rather_even(HOSTNAME, 1))), (0, 2), "the wish is kept where it can be");
    let scene = Scene::default().with_node(nameless("old", 64, &[]));
    assert_eq!(scene.place(&web().spreading(even(HOSTNAME, 1))).left(), 1);
}

#[test]
fn pods_on_a_node_without_a_host_name_are_nobodys_neighbours() {
    let near = app("near").near(those_of("web", HOSTNAME));
    let scene = |node: Node| Scene::default().with_node(node).running("there", "old", &web());
    assert_eq!(scene(node("old", 64, 64, &[])).place(&near).left(), 0);
    assert_eq!(scene(nameless("old", 64, &[])).place(&near).left(), 1);
    // Whoever may be the first of its kind has to be in a domain, too.
    let own = web().near(those_of("web", HOSTNAME));
    assert_eq!(beside(&[web()], &own), (0, 2));
}

#[test]
fn nothing_keeps_pods_apart_on_a_node_without_a_host_name() {
    let apart = web().far(those_of("web", HOSTNAME));
    assert_eq!(beside(&[], &apart), (2, 0));
    assert_eq!(beside(&[web()], &apart), (2, 0));
    assert_eq!(beside(std::slice::from_ref(&apart), &web()), (2, 0));
}

#[test]
fn a_daemon_that_comes_to_a_node_without_a_host_name_is_in_nobodys_way() {
    let shy = web().far(those_of("agent", HOSTNAME));
    let left = |node: Node| {
        let scene = Scene::default().with_node(node).with_daemon("agent", app("agent").of(100, 100));
        scene.place(&shy).left()
    };
    assert_eq!((left(node("old", 8, 64, &[])), left(nameless("old", 8, &[]))), (1, 0));
}

/// kube-scheduler counts a node for a constraint if it is in a domain of each that the pod requires.
#[test]
fn a_node_without_a_host_name_counts_in_no_zone_for_pods_that_spread_over_hosts_too() {
    let of_hosts = web().spreading(even(HOSTNAME, 9));
    let zones = |spread: &PodShape, node: Node| {
        let scene = Scene::default().with_pool(pool("default").requiring(within(ZONE, &["zone-a", "zone-b"])), types());
        let scene = scene.with_node(node).running("a", "old", &web()).running("b", "old", &web());
        let scene = scene.with_pods(pods("web", 4, spread));
        let plan = scene.plan().whole();
        scene.after(&plan).skew(ZONE, "web")
    };
    let both = of_hosts.spreading(even(ZONE, 1));
    let full = |node: Node| node.with_room(2);
    assert_eq!(zones(&both, full(node("old", 8, 64, &[(ZONE, "zone-a")]))), [3, 3]);
    assert_eq!(zones(&both, full(nameless("old", 8, &[(ZONE, "zone-a")]))), [2, 4]);
    assert_eq!(zones(&web().spreading(even(ZONE, 1)), full(nameless("old", 8, &[(ZONE, "zone-a")]))), [3, 3]);
}

#[test]
fn the_checker_sees_who_was_spread_onto_a_node_without_a_host_name() {
    let of =
        |node: Node| Scene::default().with_node(node).with_pods(pods("web", 1, &web().spreading(even(HOSTNAME, 1))));
    let plan = of(node("old", 8, 64, &[])).solve().whole();
    let (pod, place, key) = ("uid-web-00000".into(), "old".into(), HOSTNAME.into());
    assert_eq!(check(&of(nameless("old", 8, &[])).problem(), &plan), [Violation::NoDomain { pod, place, key }]);
}
