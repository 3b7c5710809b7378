//! What must come out alike when the question changes in a way that does not matter, or only grows. (The order of pods: `laws.rs`.)

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Ground, Plan, improved, solve};
use super::build::*;
use super::laws::any_scene;
use crate::core::facts::{AffinityTerm, Effect, Pod, PodShape, Selector, Taint};
use crate::core::labels::Labels;

/// Which pods share which kind of place, and which have none: without names that a plan makes up.
type Outcome = (BTreeMap<(String, Vec<String>), usize>, BTreeSet<String>, String);

fn outcome(plan: &Plan) -> Outcome {
    let names = |pods: &[Arc<Pod>]| {
        let mut names: Vec<String> = pods.iter().map(|pod| pod.key.to_string()).collect();
        names.sort_unstable();
        names
    };
    let mut places: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    for claim in &plan.claims {
        let kind = format!("{} {}", claim.draft.pool, claim.instance_types[0]);
        *places.entry((kind, names(&claim.pods))).or_default() += 1;
    }
    for placed in &plan.existing {
        *places.entry((format!("{:?} {:?}", placed.node, placed.claim), names(&placed.pods))).or_default() += 1;
    }
    let refused = plan.refused.iter().map(|refusal| refusal.pod.to_string()).collect();
    (places, refused, format!("{:.6}", plan.price))
}

/// The same pods with other words for what they are: `app` becomes `zoo`, and each value its mirror image.
fn renamed(shape: &PodShape) -> PodShape {
    let words = |labels: &Labels| -> Labels {
        let other = |value: &str| value.chars().rev().collect::<String>();
        labels
            .iter()
            .map(|(key, value)| (if &**key == "app" { "zoo".into() } else { key.clone() }, other(value).into()))
            .collect()
    };
    let selector = |selector: &mut Option<Selector>| {
        if let Some(selector) = selector {
            selector.labels = words(&selector.labels);
        }
    };
    let mut shape = PodShape { labels: words(&shape.labels), ..shape.clone() };
    shape.spreads.iter_mut().for_each(|spread| selector(&mut spread.selector));
    let soft = shape.preferred_affinity.iter_mut().chain(&mut shape.preferred_anti_affinity).map(|wish| &mut wish.term);
    let terms: Vec<&mut AffinityTerm> = shape.affinity.iter_mut().chain(&mut shape.anti_affinity).chain(soft).collect();
    for term in terms {
        selector(&mut term.selector);
    }
    shape
}

fn with_shapes(pod: &Arc<Pod>, change: impl Fn(&PodShape) -> PodShape) -> Arc<Pod> {
    Arc::new(Pod { shape: Arc::new(change(&pod.shape)), ..(**pod).clone() })
}

fn any_plain() -> impl Strategy<Value = Vec<(i64, i64, usize)>> {
    let size = proptest::sample::select(&[50_i64, 100, 250, 500, 900, 1500, 2000, 3900][..]);
    let memory = proptest::sample::select(&[64_i64, 128, 512, 1024, 3000, 6000, 12_000][..]);
    prop::collection::vec((size, memory, 1..30_usize), 1..6)
}

/// The price of so many times this workload.
fn price(sizes: &[(i64, i64, usize)], times: usize) -> f64 {
    let mut scene = Scene::new();
    for (at, (cpu, memory, count)) in sizes.iter().enumerate() {
        scene = scene.with_pods(pods(&format!("p{at}"), count * times, &shape(*cpu, *memory)));
    }
    let mut ground = Ground::default();
    let plan = ground.solve(&scene.problem());
    let plan = improved(&mut ground, &scene.problem(), plan);
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    plan.price
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_names_of_labels_do_not_matter(scene in any_scene()) {
        let before = outcome(&solve(&scene.problem()));
        let mut scene = scene;
        scene.pods = scene.pods.iter().map(|pod| with_shapes(pod, renamed)).collect();
        let running: Vec<_> = scene.snapshot.pods.iter().map(|(uid, pod)| (uid.clone(), with_shapes(pod, renamed))).collect();
        scene.snapshot.pods.extend(running);
        prop_assert_eq!(before, outcome(&solve(&scene.problem())));
    }

    /// A pool that nobody may use, whatever its weight, and whose nodes would be where those of others are.
    #[test]
    fn a_pool_that_nobody_tolerates_does_not_matter(scene in any_scene(), weight in 0..100_i32) {
        let before = outcome(&solve(&scene.problem()));
        let mut closed = pool("closed");
        closed.weight = weight;
        closed.template.taints.push(Taint::new("nobody", Effect::NoSchedule));
        let scene = scene.with_pool(closed, types());
        prop_assert_eq!(before, outcome(&solve(&scene.problem())));
    }

    #[test]
    fn more_work_never_costs_less_than_its_bound(sizes in any_plain()) {
        // Each part alone is part of the whole: the whole costs at least what the dearest part costs at least.
        let whole = price(&sizes, 1);
        for one in &sizes {
            let mut scene = Scene::new();
            scene = scene.with_pods(pods("p", one.2, &shape(one.0, one.1)));
            let plan = scene.solve();
            prop_assert!(super::super::lower_bound(&scene.problem(), &plan) <= whole + 1e-9);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Or a little more: plans are good, not perfect, and two halves may happen to be luckier than the whole (by 1.6 % was seen).
    #[test]
    fn twice_the_work_costs_at_most_twice_as_much(sizes in any_plain()) {
        let (once, twice) = (price(&sizes, 1), price(&sizes, 2));
        prop_assert!(twice <= 2.0 * once * 1.05, "{} and {} for twice as much", once, twice);
    }
}
