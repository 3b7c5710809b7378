//! The bound against everything that could be done, on worlds that are small enough to try it all.

use std::sync::Arc;

use proptest::prelude::*;

use super::lower_bound;
use crate::core::facts::InstanceType;
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::resources::Resources;
use crate::core::scheduling::tests::build::*;
use crate::core::scheduling::{Ground, improved};

/// No plan of a few pods is dearer than the best one by more than this factor.
const WORST: f64 = 2.0;

/// A pod in thousandths of a core and MiB; whether it must be on demand; whether it keeps apart from its like.
type Small = (i64, i64, bool, bool);
/// An instance type in cores, GiB and cents.
type Kind = (i64, i64, i64);

fn scene(pods: &[Small], kinds: &[Kind], node: Option<(i64, i64)>, daemon: Option<i64>) -> Scene {
    let types = kinds
        .iter()
        .enumerate()
        .map(|(at, (cpu, memory, cents))| instance_type(&format!("t{at}"), *cpu, *memory, *cents as f64 / 100.0));
    let mut scene = Scene::default().with_pool(pool("default"), types.collect());
    if let Some((cpu, memory)) = node {
        scene = scene.with_node(node_of(cpu, memory));
    }
    if let Some(cpu) = daemon {
        scene = scene.with_daemon("agent", shape(cpu, 10));
    }
    let made = pods.iter().enumerate().map(|(at, (cpu, memory, on_demand, apart))| {
        let mut one = shape(*cpu, *memory);
        if *on_demand {
            one.node_selector.insert(labels::CAPACITY_TYPE.into(), labels::ON_DEMAND.into());
        }
        if *apart {
            one.labels.insert("app".into(), "apart".into());
            one.anti_affinity.push(term(labels::HOSTNAME, &[("app", "apart")]));
        }
        pod(&format!("p{at}"), 0, &one)
    });
    scene.with_pods(made.collect())
}

fn node_of(cpu: i64, memory: i64) -> crate::core::facts::Node {
    node("there", cpu, memory, &[(labels::CAPACITY_TYPE, labels::SPOT)])
}

/// What the pods of one new node cost at least.
fn cheapest(group: &[&Small], types: &[Arc<InstanceType>], daemon: Option<i64>) -> f64 {
    let on_demand = group.iter().any(|pod| pod.2);
    if group.iter().filter(|pod| pod.3).count() > 1 {
        return f64::INFINITY;
    }
    let need = need(group, daemon);
    let holding = types.iter().filter(|kind| need.fits(&kind.allocatable()));
    let offered = holding.flat_map(|kind| &kind.offerings);
    let allowed = offered.filter(|o| !on_demand || o.capacity_type().is_some_and(|kind| &**kind == labels::ON_DEMAND));
    allowed.map(|offering| offering.price).fold(f64::INFINITY, f64::min)
}

fn need(group: &[&Small], daemon: Option<i64>) -> Resources {
    let pods = i64::try_from(group.len()).unwrap() + i64::from(daemon.is_some());
    let daemons = daemon.map_or((0, 0), |cpu| (cpu, 10));
    let cpu = group.iter().map(|pod| pod.0).sum::<i64>() + daemons.0;
    amounts(cpu, group.iter().map(|pod| pod.1).sum::<i64>() + daemons.1).with("pods", pods * 1000)
}

/// The least over all ways to divide the pods among the existing node and new ones. Group 0 is the existing node.
fn optimum(
    scene: &Scene,
    left: &[Small],
    groups: &mut Vec<Vec<Small>>,
    daemon: Option<i64>,
    node: Option<(i64, i64)>,
) -> f64 {
    let types = scene.catalog.pools.values().next().unwrap();
    let Some((first, rest)) = left.split_first() else {
        let mut price = 0.0;
        for (at, group) in groups.iter().enumerate().filter(|(_, group)| !group.is_empty()) {
            let group: Vec<&Small> = group.iter().collect();
            if at > 0 {
                price += cheapest(&group, types, daemon);
            } else {
                let (cpu, memory) = node.unwrap_or((0, 0));
                let room = amounts(cpu * 1000, memory * 1024).with("pods", 110_000);
                let apart = group.iter().filter(|pod| pod.3).count() > 1 || group.iter().any(|pod| pod.2);
                if apart || !need(&group, daemon).fits(&room) {
                    return f64::INFINITY;
                }
            }
        }
        return price;
    };
    let mut best = f64::INFINITY;
    for at in 0..groups.len() {
        groups[at].push(*first);
        best = best.min(optimum(scene, rest, groups, daemon, node));
        groups[at].pop();
    }
    groups.push(vec![*first]);
    best = best.min(optimum(scene, rest, groups, daemon, node));
    groups.pop();
    best
}

/// Whether plan, bound and improvement are right about a small world, or what is wrong.
fn judged(pods: &[Small], kinds: &[Kind], node: Option<(i64, i64)>, daemon: Option<i64>) -> Result<(), String> {
    let scene = scene(pods, kinds, node, daemon);
    let plan = scene.solve();
    let (placed, left): (Vec<_>, Vec<_>) = pods.iter().enumerate().partition(|(at, _)| {
        let uid = PodUid::from(format!("uid-p{at}"));
        plan.refused.iter().all(|refusal| refusal.pod != uid)
    });
    let [placed, left] = [placed, left].map(|all| all.into_iter().map(|(_, pod)| *pod).collect::<Vec<Small>>());
    let best = |pods: &[Small]| optimum(&scene, pods, &mut vec![Vec::new()], daemon, node);
    // A pod is left out only if there is no way to place it with the others.
    for pod in &left {
        let more: Vec<Small> = placed.iter().chain([pod]).copied().collect();
        let best = best(&more);
        if best.is_finite() {
            return Err(format!("{pod:?} could be placed with the others at {best}"));
        }
    }
    let (bound, best, price) = (lower_bound(&scene.problem(), &plan), best(&placed), plan.price);
    if bound > best + 1e-12 {
        return Err(format!("bound {bound}, optimum {best}, plan {price}"));
    }
    if best > price + 1e-9 {
        return Err(format!("optimum {best}, plan {price}"));
    }
    let better = improved(&mut Ground::default(), &scene.problem(), plan);
    if better.price > best * WORST + 1e-9 {
        return Err(format!("optimum {best}, improved {}", better.price));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_way_to_place_the_pods_is_cheaper_than_the_bound(
        pods in prop::collection::vec((1_i64..40, 1_i64..40, prop::bool::weighted(0.3), prop::bool::weighted(0.2)), 1..6),
        kinds in prop::collection::vec((1_i64..9, 1_i64..17, 5_i64..60), 1..4),
        node in prop::option::weighted(0.3, (1_i64..5, 1_i64..9)),
        daemon in prop::option::weighted(0.3, 50_i64..400),
    ) {
        let pods: Vec<Small> = pods.into_iter().map(|(cpu, memory, a, b)| (cpu * 100, memory * 128, a, b)).collect();
        let judged = judged(&pods, &kinds, node, daemon);
        prop_assert!(judged.is_ok(), "{}", judged.unwrap_err());
    }
}

#[test]
fn the_node_that_is_there_is_for_the_pod_whose_own_would_be_dearer() {
    // The pod with more CPU comes first, and would take the node; the other needs memory, which costs more than twice as much.
    let plain = |cpu: i64, memory: i64| (cpu * 100, memory * 128, false, false);
    let worlds = [
        (vec![plain(11, 8), plain(18, 1)], [(3, 1, 5), (2, 2, 11)], (2, 2), None),
        (vec![plain(23, 1), plain(6, 24)], [(3, 1, 5), (1, 4, 11)], (3, 4), Some(101)),
        (vec![plain(31, 1), plain(10, 8)], [(4, 1, 5), (2, 2, 11)], (4, 1), None),
        (vec![plain(7, 8), plain(24, 1)], [(3, 1, 5), (1, 2, 11)], (3, 1), None),
        // Much more of the dearer node would be left.
        (vec![plain(7, 8), plain(24, 1)], [(3, 1, 5), (7, 9, 11)], (3, 1), None),
        // For the last there is no node to buy, and the dearest of the others has room beside it.
        (vec![plain(4, 1), plain(7, 1), plain(6, 8), plain(30, 8)], [(1, 2, 38), (1, 1, 5)], (4, 2), None),
        // The last has no place beside the one before it, whatever comes first.
        (
            vec![plain(4, 1), plain(7, 1), plain(6, 8), plain(30, 8), plain(11, 9)],
            [(1, 2, 38), (3, 1, 5)],
            (4, 2),
            None,
        ),
    ];
    for (pods, kinds, node, daemon) in worlds {
        assert_eq!(judged(&pods, &kinds, Some(node), daemon), Ok(()), "{pods:?}");
    }
}

fn bound_of(scene: &Scene) -> (f64, f64) {
    let plan = scene.solve();
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    (lower_bound(&scene.problem(), &plan), plan.price)
}

#[test]
fn a_lone_pod_costs_a_whole_node() {
    let (bound, price) = bound_of(&Scene::new().with_pods(pods("web", 1, &shape(500, 512))));
    assert!(price - bound < 1e-6, "{bound} of {price}");
}

#[test]
fn equal_pods_are_bounded_by_whole_pods_on_whole_nodes() {
    // Three of them fit on the larger type, two on the smaller; a third of a core is lost on each.
    let types = vec![instance_type("a", 2, 64, 0.2), instance_type("b", 3, 64, 0.31)];
    let scene = Scene::default().with_pool(pool("default"), types).with_pods(pods("web", 600, &shape(930, 512)));
    let (bound, price) = bound_of(&scene);
    let best = 600.0 / 2.0 * 0.2 * 0.66;
    assert!(bound <= best + 1e-9 && bound > best * 0.999, "{bound} of {best}");
    assert!(price >= best - 1e-9);
}

#[test]
fn room_that_is_there_costs_nothing() {
    let full = Scene::new().with_pods(pods("web", 40, &shape(500, 512)));
    let (without, _) = bound_of(&full);
    let (with, price) = bound_of(&full.with_node(node("there", 10, 64, &[])));
    assert!(with < without * 0.6 && with > 0.0 && with <= price, "{with} of {price}, {without} without the node");
}

#[test]
fn many_kinds_of_pods_are_bounded_closely_too() {
    let kinds = (0..600).flat_map(|at| pods(&format!("p{at}"), 3, &shape(100 + at * 7 % 900, 200 + at * 13 % 3000)));
    let (bound, price) = bound_of(&Scene::new().with_pods(kinds.collect()));
    assert!(bound <= price && bound > price * 0.9, "{bound} of {price}");
}
