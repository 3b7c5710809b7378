//! What holds of every plan, tried on random small worlds.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Ground, Plan, check, improved, mingled, solve};
use super::build::*;
use crate::core::facts::{
    Effect, HostPort, Pod, PodShape, PolicyHonor, Taint, Toleration, TolerationOperator, Weighted,
};
use crate::core::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, NODEPOOL, ZONE};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

const APPS: [&str; 3] = ["web", "cache", "db"];
const KEYS: [&str; 5] = [ZONE, HOSTNAME, CAPACITY_TYPE, "example.com/rack", ARCH];

fn any_requirement() -> impl Strategy<Value = Requirement> {
    prop_oneof![
        proptest::sample::subsequence(&ZONES[..], 1..3).prop_map(|zones| within(ZONE, &zones)),
        proptest::sample::select(&ZONES[..]).prop_map(|zone| Requirement::new(ZONE, Operator::NotIn, [zone])),
        Just(Requirement::new("example.com/rack", Operator::Exists, [""; 0])),
        Just(Requirement::new("example.com/rack", Operator::NotIn, ["r1"])),
        Just(within("example.com/rack", &["r1", "r2"])),
        Just(Requirement::new("example.com/none", Operator::DoesNotExist, [""; 0])),
        Just(within(CAPACITY_TYPE, &["spot"])),
        Just(within(ARCH, &["arm64"])),
    ]
}

fn any_app() -> impl Strategy<Value = [(&'static str, &'static str); 1]> {
    proptest::sample::select(&APPS[..]).prop_map(|app| [("app", app)])
}

fn any_spread() -> impl Strategy<Value = crate::core::facts::TopologySpread> {
    let honor = || prop_oneof![Just(PolicyHonor::Honor), Just(PolicyHonor::Ignore)];
    (proptest::sample::select(&KEYS[..4]), 1..3, any_app(), prop::option::of(1..4), any::<bool>(), honor(), honor())
        .prop_map(|(key, skew, app, least, required, affinity, taints)| crate::core::facts::TopologySpread {
            min_domains: least,
            required,
            node_affinity_policy: affinity,
            node_taints_policy: taints,
            ..spread(key, skew, &app)
        })
}

fn any_term() -> impl Strategy<Value = crate::core::facts::AffinityTerm> {
    (proptest::sample::select(&KEYS[..]), any_app()).prop_map(|(key, app)| term(key, &app))
}

/// Mostly nothing, sometimes a few.
fn few<S: Strategy + 'static>(one: S) -> impl Strategy<Value = Vec<S::Value>>
where
    S::Value: Clone + 'static,
{
    prop_oneof![4 => Just(Vec::new()).boxed(), 2 => prop::collection::vec(one, 1..3).boxed()]
}

pub(super) fn any_shape() -> impl Strategy<Value = PodShape> {
    let size = (
        proptest::sample::select(&[100_i64, 500, 1500, 4000][..]),
        proptest::sample::select(&[128_i64, 1024, 6000][..]),
    );
    let nodes = (few(prop::collection::vec(any_requirement(), 1..3)), few(any_requirement()));
    (
        size,
        any_app(),
        nodes,
        few(any_spread()),
        few(any_term()),
        few(any_term()),
        few(any_term()),
        0..4_u8,
        -1..2_i32,
        any::<bool>(),
    )
        .prop_map(
            |((cpu, memory), app, (required, preferred), spreads, near, far, softly, port, priority, tolerant)| {
                let mut one = shape(cpu, memory);
                one.labels = labels(&app);
                one.node_affinity.required = required;
                one.node_affinity.preferred =
                    preferred.into_iter().map(|r| Weighted { weight: 5, term: vec![r] }).collect();
                one.spreads = spreads;
                // Affinity to others fails more often than not; one in two tries is enough.
                one.affinity = if port % 2 == 0 { near } else { Vec::new() };
                one.anti_affinity = far;
                one.preferred_anti_affinity = softly.into_iter().map(|term| Weighted { weight: 1, term }).collect();
                one.priority = priority;
                if port == 3 {
                    one.host_ports.push(HostPort { ip: "0.0.0.0".into(), port: 80, protocol: "TCP".into() });
                }
                if tolerant {
                    one.tolerations.push(Toleration {
                        key: "team".into(),
                        operator: TolerationOperator::Exists,
                        value: "".into(),
                        effect: None,
                        seconds: None,
                    });
                }
                one
            },
        )
}

pub(in crate::core::scheduling) fn any_scene() -> impl Strategy<Value = Scene> {
    let running = prop::collection::vec((any_shape(), 0..3_usize), 0..4);
    let batch = prop::collection::vec((any_shape(), 1..6_usize), 1..6);
    (batch, running, prop::option::of(2..40_i64), 0..4_u8, any::<bool>()).prop_map(
        |(batch, running, limit, extra, daemon)| {
            let mut first = pool("default");
            if let Some(limit) = limit {
                first.limits = Resources::new().with("cpu", limit * 1000).with("nodes", 3000);
            }
            let mut second = pool("racks");
            second.weight = i32::from(extra);
            second.template.requirements.push(within("example.com/rack", &["r1", "r2", "r3"]));
            if extra % 2 == 0 {
                second.template.taints.push(Taint::new("team", Effect::NoSchedule));
            }
            if extra == 3 {
                second.template.taints.push(Taint::new("soft", Effect::PreferNoSchedule));
            }
            let mut scene = Scene::default().with_pool(first, types()).with_pool(second, types());
            scene = scene
                .with_node(node("n0", 4, 16, &[(ZONE, "zone-a"), (CAPACITY_TYPE, "spot"), (NODEPOOL, "default")]))
                .with_node(node("n1", 8, 8, &[(ZONE, "zone-b"), ("example.com/rack", "r1")]))
                .with_node(node("n2", 2, 8, &[]));
            let pinned = vec![within(ZONE, &["zone-c"]), within("node.kubernetes.io/instance-type", &["m-4x", "m-8x"])];
            scene = scene.with_claim(claim("default-aaaaa", "default", pinned, amounts(100, 100)));
            if daemon {
                let mut log = shape(200, 100);
                log.host_ports.push(HostPort { ip: "".into(), port: 80, protocol: "TCP".into() });
                scene = scene.with_daemon("log", log);
            }
            for (at, (shape, host)) in running.into_iter().enumerate() {
                scene = scene.running(&format!("r{at}"), &format!("n{host}"), &shape);
            }
            for (at, (shape, count)) in batch.into_iter().enumerate() {
                scene = scene.with_pods(pods(&format!("p{at}"), count, &shape));
            }
            scene
        },
    )
}

/// A plan in words: equal words, equal plan.
pub(super) fn told(plan: &Plan) -> String {
    format!("{plan:#?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_breaks_a_rule(scene in any_scene()) {
        let plan = solve(&scene.problem());
        let violations = check(&scene.problem(), &plan);
        prop_assert!(violations.is_empty(), "{:#?}", violations);
        prop_assert!(plan.refused.iter().all(|refusal| !refusal.reasons.is_empty()), "{:?}", plan.refused);
        for refusal in &plan.refused {
            prop_assert!(refusal.reasons.iter().all(|reason| !reason.to_string().is_empty()));
        }
    }

    #[test]
    fn the_order_of_the_pods_does_not_matter(scene in any_scene(), turn in 0..20_usize) {
        let first = told(&solve(&scene.problem()));
        let mut turned = scene.pods.clone();
        turned.reverse();
        let by = turn % turned.len();
        turned.rotate_left(by);
        let problem = super::super::Problem { pods: &turned, ..scene.problem() };
        prop_assert_eq!(first, told(&solve(&problem)));
    }

    /// Pods of several sizes under one spread: each is legal when kube-scheduler takes them by priority and age.
    #[test]
    fn every_intermediate_state_is_legal(sizes in prop::collection::vec((0..4_usize, 0..2_i32), 1..40), skew in 1..3_i32) {
        let mut all: Vec<Arc<Pod>> = Vec::new();
        for (at, (size, priority)) in sizes.into_iter().enumerate() {
            let mut one = shape([100, 700, 1500, 3000][size], 256);
            one.labels = labels(&[("app", "web")]);
            one.priority = priority;
            one.spreads.push(spread(ZONE, skew, &[("app", "web")]));
            all.push(pod(&format!("p{at:03}"), i64::try_from(at).unwrap(), &one));
        }
        let scene = Scene::new().with_pods(all.clone());
        all.sort_by_key(|one| (std::cmp::Reverse(one.shape.priority), one.created));
        let found = scene.solve();
        let better = improved(&mut Ground::default(), &scene.problem(), found.clone());
        let mixed = mingled(&scene.problem(), better.clone());
        for (plan, step) in [(found, "solved"), (better, "improved"), (mixed, "mingled")] {
            prop_assert!(plan.refused.is_empty());
            let mut zone_of = BTreeMap::new();
            for at in 0..plan.claims.len() {
                for one in &plan.claims[at].pods {
                    zone_of.insert(one.uid.clone(), pinned(&plan, at, ZONE).expect("a spread pins the zone").to_owned());
                }
            }
            let mut counts: BTreeMap<&str, i32> = ZONES.iter().map(|zone| (*zone, 0)).collect();
            for one in &all {
                let zone = zone_of[&one.uid].as_str();
                let least = *counts.values().min().unwrap();
                let here = counts.get_mut(zone).unwrap();
                prop_assert!(*here + 1 - least <= skew, "{step}: {} goes to {zone}", one.key);
                *here += 1;
            }
        }
    }
}
