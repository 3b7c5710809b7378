//! What is kept between questions changes no answer.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Ground, Problem, solve};
use super::build::*;
use super::laws::{any_scene, any_shape, told};
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
}

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
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
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

fn named(at: usize) -> NodeName {
    format!("n{at}").into()
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
        Step::Starts(..) => scene,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_kept_ground_answers_as_a_new_one(
        scene in any_scene(),
        steps in prop::collection::vec(any_step(), 1..12),
        open in any::<bool>(),
    ) {
        let mut ground = Ground::default();
        let mut scene = scene;
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
