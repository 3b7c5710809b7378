//! What is kept between questions changes no answer.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Ground, Problem, solve};
use super::build::*;
use super::laws::{any_scene, any_shape, told};
use super::volumes::{DRIVER, mounting};
use crate::core::facts::{PodPhase, PodShape};
use crate::core::ids::NodeName;
use crate::core::labels::{CAPACITY_TYPE, ZONE};
use crate::core::requirements::{Operator, Requirement};

/// Something that happens between two questions.
#[derive(Clone)]
enum Step {
    /// A pod starts on a node.
    Starts(PodShape, usize),
    /// The first pod of a node ends, or is told to.
    Ends(usize, bool),
    /// Another node comes.
    Comes,
    /// A node goes, its pods with it.
    Goes(usize),
    /// The next questions do without a node.
    Without(usize),
    /// The pods of a node are asked about, besides the pending ones.
    Moves(usize),
    /// Others wait.
    Waits(PodShape, usize),
    /// Nobody waits any more.
    Leaves,
    /// A pod waits that mounts claims.
    Mounts(PodShape, Vec<usize>),
    /// A pod with claims starts on a node.
    Holds(PodShape, usize, Vec<usize>),
    /// A claim is bound to another volume, that some values of a label reach.
    Binds(usize, &'static str, Vec<&'static str>),
    /// A claim is unbound, of a class for these zones.
    Unbinds(usize, Vec<&'static str>),
    /// A node says how many volumes it can hold.
    Limits(usize, Option<u32>),
}

/// So many claims are told of.
const CLAIMS: usize = 5;
/// Zones that there are, and one that nobody else mentions.
const REACHED: [&str; 4] = ["zone-a", "zone-b", "zone-c", "zone-x"];

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Starts(shape, node) => write!(f, "{:?} {:?} starts on n{node}", shape.labels, shape.requests),
            Self::Ends(node, told) => write!(f, "one ends on n{node} {told}"),
            Self::Comes => write!(f, "a node comes"),
            Self::Goes(node) => write!(f, "n{node} goes"),
            Self::Without(node) => write!(f, "without n{node}"),
            Self::Moves(node) => write!(f, "the pods of n{node} move"),
            Self::Waits(shape, count) => write!(f, "{count} of {:?} {:?} wait", shape.labels, shape.requests),
            Self::Leaves => write!(f, "nobody waits"),
            Self::Mounts(shape, claims) => {
                write!(f, "{:?} {:?} waits with claims {claims:?}", shape.labels, shape.requests)
            }
            Self::Holds(shape, node, claims) => {
                write!(f, "{:?} runs on n{node} with claims {claims:?}", shape.requests)
            }
            Self::Binds(claim, key, values) => write!(f, "claim {claim} is bound to {key} {values:?}"),
            Self::Unbinds(claim, zones) => write!(f, "claim {claim} is unbound, of a class for {zones:?}"),
            Self::Limits(node, limit) => write!(f, "n{node} can hold {limit:?}"),
        }
    }
}

fn any_claims() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(0..CLAIMS, 1..3).prop_map(|claims| claims.into_iter().collect())
}

fn any_zones() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(&REACHED[..], 1..3)
}

/// Mostly few of them, so that pods of one shape have different volumes.
fn any_mounting_shape() -> impl Strategy<Value = PodShape> {
    prop_oneof![2 => Just(shape(100, 128)), 1 => any_shape()]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![any_pod_step(), any_volume_step()]
}

fn any_pod_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any_shape(), 0..4_usize).prop_map(|(shape, node)| Step::Starts(shape, node)),
        (0..4_usize, any::<bool>()).prop_map(|(node, told)| Step::Ends(node, told)),
        Just(Step::Comes),
        (0..4_usize).prop_map(Step::Goes),
        (0..4_usize).prop_map(Step::Without),
        (0..4_usize).prop_map(Step::Moves),
        (any_shape(), 1..4_usize).prop_map(|(shape, count)| Step::Waits(shape, count)),
    ]
}

fn any_volume_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Leaves),
        3 => (any_mounting_shape(), any_claims()).prop_map(|(shape, claims)| Step::Mounts(shape, claims)),
        1 => (any_shape(), 0..4_usize, any_claims()).prop_map(|(shape, node, claims)| Step::Holds(shape, node, claims)),
        1 => (0..CLAIMS, any_zones()).prop_map(|(claim, zones)| Step::Binds(claim, ZONE, zones)),
        1 => (0..CLAIMS, proptest::sample::subsequence(vec!["r1", "r9", "7"], 1..3))
            .prop_map(|(claim, racks)| Step::Binds(claim, "example.com/rack", racks)),
        1 => (0..CLAIMS).prop_map(|claim| Step::Binds(claim, "example.com/shelf", vec!["top"])),
        1 => (0..CLAIMS, any_zones()).prop_map(|(claim, zones)| Step::Unbinds(claim, zones)),
        1 => (0..4_usize, prop::option::of(0..3_u32)).prop_map(|(node, limit)| Step::Limits(node, limit)),
    ]
}

fn named(at: usize) -> NodeName {
    format!("n{at}").into()
}

fn claim_named(at: usize) -> String {
    format!("c{at}")
}

fn first_on(scene: &Scene, node: &NodeName) -> Option<Arc<crate::core::facts::Pod>> {
    scene.snapshot.pods_on(node).next().cloned()
}

fn happen(mut scene: Scene, at: usize, step: Step) -> Scene {
    match step {
        Step::Starts(shape, node) if scene.snapshot.nodes.contains_key(&named(node)) => {
            scene.running(&format!("s{at}"), named(node).as_str(), &shape)
        }
        Step::Ends(node, told) => {
            if let Some(pod) = first_on(&scene, &named(node)) {
                let mut pod = (*pod).clone();
                if told {
                    pod.deleting = Some(pod.created);
                } else {
                    pod.phase = PodPhase::Succeeded;
                }
                scene.snapshot.pods.insert(pod.uid.clone(), Arc::new(pod));
            }
            scene
        }
        Step::Comes => scene.with_node(node("n3", 8, 32, &[(ZONE, "zone-c"), (CAPACITY_TYPE, "on-demand")])),
        Step::Goes(node) => {
            scene.snapshot.nodes.remove(&named(node));
            for uid in scene.snapshot.bound.remove(&named(node)).into_iter().flatten() {
                scene.snapshot.pods.remove(&uid);
            }
            scene
        }
        Step::Without(node) => {
            scene.excluded.nodes.insert(named(node));
            scene
        }
        Step::Moves(node) => {
            let moved: Vec<_> = scene.snapshot.pods_on(&named(node)).cloned().collect();
            scene.with_pods(moved)
        }
        Step::Waits(shape, count) => scene.with_pods(pods(&format!("w{at}"), count, &shape)),
        Step::Leaves => {
            scene.pods.clear();
            scene
        }
        Step::Mounts(shape, claims) => {
            let claims = claims.into_iter().map(claim_named).collect::<Vec<_>>();
            let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
            let pods = (0..2).map(|which| mounting(&format!("m{at}-{which}"), &shape, &claims)).collect();
            scene.with_pods(pods)
        }
        Step::Holds(shape, node, claims) if scene.snapshot.nodes.contains_key(&named(node)) => {
            let claims = claims.into_iter().map(claim_named).collect::<Vec<_>>();
            let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
            scene.running_with(&format!("h{at}"), named(node).as_str(), &shape, &claims)
        }
        Step::Binds(claim, key, values) => {
            let volume = format!("pv-{at}");
            let terms = values.iter().map(|value| vec![within(key, &[value])]).collect();
            scene.with_volume(&volume, Some(terms)).with_volume_claim(&claim_named(claim), None, Some(&volume))
        }
        Step::Unbinds(claim, zones) => {
            let class = format!("class-{at}");
            scene.with_storage_class(&class, &zones, false).with_volume_claim(&claim_named(claim), Some(&class), None)
        }
        Step::Limits(node, limit) => scene.with_limit(named(node).as_str(), limit),
        Step::Starts(..) | Step::Holds(..) => scene,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_kept_ground_answers_as_a_new_one(
        scene in any_scene(),
        steps in prop::collection::vec(any_step(), 1..16),
        open in any::<bool>(),
        most in prop::option::of(0..3_u32),
    ) {
        let mut ground = Ground::default();
        let mut scene = scene;
        for claim in 0..CLAIMS {
            scene = scene.bound_in(&claim_named(claim), &[ZONES[claim % ZONES.len()]]);
        }
        if let Some(most) = most {
            for list in scene.catalog.pools.values_mut() {
                for kind in Arc::make_mut(list) {
                    Arc::make_mut(kind).attach_limits.insert(DRIVER.into(), most);
                }
            }
        }
        if open {
            // Its nodes get the first rack that anybody mentions.
            let mut third = pool("anywhere");
            third.weight = 9;
            third.template.requirements.push(Requirement::new("example.com/rack", Operator::Exists, [""; 0]));
            scene = scene.with_pool(third, types());
        }
        prop_assert_eq!(told(&ground.solve(&scene.problem())), told(&solve(&scene.problem())));
        for (at, step) in steps.into_iter().enumerate() {
            scene = happen(scene, at, step);
            // The pods of a removal are asked about as they are; others may have ended meanwhile.
            let problem = Problem { pods: &scene.pods, ..scene.problem() };
            prop_assert_eq!(told(&ground.solve(&problem)), told(&solve(&problem)), "after step {}", at);
        }
    }
}

#[test]
fn a_value_that_nobody_mentions_any_more_is_forgotten() {
    let mut open = pool("anywhere");
    open.template.requirements.push(Requirement::new("example.com/rack", Operator::Gt, ["4"]));
    let mut picky = shape(500, 512);
    picky.node_selector = labels(&[("example.com/rack", "10")]);
    let scene = Scene::default().with_pool(open, types());
    let (first, second) = (pods("picky", 1, &picky), pods("plain", 1, &shape(500, 512)));
    let mut ground = Ground::default();
    let plan = ground.solve(&Problem { pods: &first, ..scene.problem() });
    assert_eq!(plan.claims[0].draft.labels.get("example.com/rack").map(|rack| &**rack), Some("10"));
    let problem = Problem { pods: &second, ..scene.problem() };
    assert_eq!(told(&ground.solve(&problem)), told(&solve(&problem)));
}

#[test]
fn a_value_that_only_volumes_mentioned_is_forgotten_with_them() {
    let mut open = pool("anywhere");
    open.template.requirements.push(Requirement::new("example.com/rack", Operator::Gt, ["4"]));
    let on_rack = vec![vec![within("example.com/rack", &["10"])]];
    let scene = Scene::default().with_pool(open, types()).with_volume("disk", Some(on_rack));
    let mut scene = scene.with_volume_claim("data", None, Some("disk"));
    let plain = shape(500, 512);
    let (mounting, without) = (vec![mounting("db", &plain, &["data"])], pods("plain", 1, &plain));
    // Both wait in the cluster: their shapes are nothing new, and only the volume makes the difference.
    for pod in mounting.iter().chain(&without) {
        scene.snapshot.pods.insert(pod.uid.clone(), Arc::clone(pod));
    }
    let mut ground = Ground::default();
    for pods in [&without, &mounting, &without] {
        let problem = Problem { pods, ..scene.problem() };
        let plan = ground.solve(&problem);
        assert_eq!(plan.claims.len(), 1, "{plan:#?}");
        assert_eq!(told(&plan), told(&solve(&problem)));
    }
}

#[test]
fn volumes_that_change_between_questions_count_as_they_are_now() {
    let scene = Scene::new().bound_in("data", &["zone-a"]).with_pods(vec![mounting("db", &shape(500, 512), &["data"])]);
    let mut ground = Ground::default();
    assert_eq!(pinned(&ground.solve(&scene.problem()), 0, ZONE), Some("zone-a"));
    let scene = scene.bound_in("data", &["zone-b"]);
    assert_eq!(pinned(&ground.solve(&scene.problem()), 0, ZONE), Some("zone-b"));
    let scene = scene.with_node(node("n", 8, 32, &[(ZONE, "zone-b")]));
    assert_eq!(ground.solve(&scene.problem()).existing.len(), 1);
    let scene = scene.with_limit("n", Some(0));
    assert!(ground.solve(&scene.problem()).existing.is_empty(), "its slots are all taken");
}
