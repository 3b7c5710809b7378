//! `minValues`, strict and as far as it goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::build::*;
use crate::core::facts::{InstanceType, PodShape, Pool};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::scheduling::{Plan, PlannedClaim, Reason, Settings, Violation, check};

/// A pool that asks for so many values of a label.
fn asking(key: &str, least: u32) -> Pool {
    let mut own = pool("default");
    own.template
        .requirements
        .push(Requirement { min_values: Some(least), ..Requirement::new(key, Operator::Exists, [""; 0]) });
    own
}

/// Types with a label of their own beside.
fn marked(key: &str, values: &[&str]) -> Vec<InstanceType> {
    let mark = |(at, value): (usize, &&str)| {
        let at = i64::try_from(at).unwrap() + 1;
        let mut one = instance_type(&format!("t-{at:02}"), 2 * at, 8 * at, 0.1 * at as f64);
        one.requirements.push(within(key, &[value]));
        one
    };
    values.iter().enumerate().map(mark).collect()
}

pub(super) fn least(claim: &PlannedClaim, key: &str) -> Option<u32> {
    claim.draft.requirements.iter().filter(|line| &*line.key == key).find_map(|line| line.min_values)
}

fn is_relaxed(claim: &PlannedClaim) -> bool {
    &*claim.draft.annotations[labels::MIN_VALUES_RELAXED] == "true"
}

pub(super) fn best_effort(mut scene: Scene) -> Plan {
    scene.settings = Settings { lower_min_values: true, ..scene.settings };
    scene.solve()
}

#[test]
fn pods_part_when_one_node_could_be_too_few_types() {
    // Together they would fit only the larger of two types.
    let types = vec![instance_type("a-small", 2, 8, 0.1), instance_type("b-large", 4, 16, 0.2)];
    let scene = Scene::default().with_pool(asking(labels::INSTANCE_TYPE, 2), types).with_pods(pods(
        "web",
        2,
        &shape(1500, 500),
    ));
    for plan in [scene.solve(), best_effort(scene)] {
        assert_eq!(plan.claims.len(), 2);
        for claim in &plan.claims {
            assert_eq!((claim.instance_types.len(), least(claim, labels::INSTANCE_TYPE)), (2, Some(2)));
            assert!(!is_relaxed(claim));
        }
    }
}

#[test]
fn what_cannot_be_met_is_refused_or_lowered() {
    let types = || marked("example.com/family", &["c", "c", "m"]);
    let scene = |least| {
        Scene::default().with_pool(asking("example.com/family", least), types()).with_pods(pods(
            "web",
            1,
            &shape(500, 500),
        ))
    };
    assert_eq!(least(&scene(2).solve().claims[0], "example.com/family"), Some(2));
    let refused = scene(3).solve();
    // No pod could be placed there: whoever wrote the NodePool is told, as of requirements that leave no type at all.
    assert!(matches!(&refused.unusable[..], [one] if one.filters_out_all() && one.to_string().contains("minValues")));
    assert!(matches!(&refused.refused[0].reasons[..], [Reason::MinValues { wanted: 3, found: 2, .. }]));
    let lowered = best_effort(scene(3));
    assert_eq!(lowered.unusable, []);
    assert_eq!(least(&lowered.claims[0], "example.com/family"), Some(2));
    assert!(is_relaxed(&lowered.claims[0]));
}

#[test]
fn pods_that_come_later_keep_what_is_left() {
    // The first pod fits two of three types; a second beside it would leave one.
    let types = vec![instance_type("a", 1, 4, 0.05), instance_type("b", 2, 8, 0.1), instance_type("c", 4, 16, 0.2)];
    let scene = Scene::default().with_pool(asking(labels::INSTANCE_TYPE, 3), types).with_pods(pods(
        "web",
        2,
        &shape(1500, 500),
    ));
    let plan = best_effort(scene);
    assert_eq!(plan.claims.len(), 2);
    assert!(plan.claims.iter().all(|claim| is_relaxed(claim) && least(claim, labels::INSTANCE_TYPE) == Some(2)));
}

#[test]
fn bounds_and_lists_on_one_key_ask_for_the_larger_number() {
    let key = "example.com/cores";
    let types = || marked(key, &["1", "2", "3", "4"]);
    let line = |operator, values: &[&str], least| Requirement {
        min_values: Some(least),
        ..Requirement::new(key, operator, values.iter().copied())
    };
    let scene = |lines: Vec<Requirement>| {
        let mut own = pool("default");
        own.template.requirements = lines;
        Scene::default().with_pool(own, types()).with_pods(pods("web", 1, &shape(500, 500)))
    };
    let met = scene(vec![line(Operator::Gt, &["1"], 1), line(Operator::Lt, &["5"], 3)]).solve();
    assert_eq!(least(&met.claims[0], key), Some(3));
    assert_eq!(met.claims[0].instance_types.len(), 3);
    let missed = scene(vec![line(Operator::Gt, &["2"], 1), line(Operator::Lt, &["5"], 3)]).solve();
    assert!(matches!(&missed.refused[0].reasons[..], [Reason::MinValues { wanted: 3, found: 2, .. }]));
    let both = scene(vec![line(Operator::In, &["1", "2", "3"], 1), line(Operator::NotIn, &["2"], 2)]).solve();
    assert_eq!((both.claims[0].instance_types.len(), least(&both.claims[0], key)), (2, Some(2)));
}

#[test]
fn a_zone_that_is_settled_counts_once() {
    let mut own = asking(labels::ZONE, 2);
    own.template.requirements.push(within(labels::CAPACITY_TYPE, &[labels::ON_DEMAND]));
    let mut one = shape(500, 500);
    one.node_selector = labels(&[(labels::ZONE, "zone-b")]);
    let scene = || Scene::default().with_pool(own.clone(), types()).with_pods(pods("web", 1, &one));
    assert!(matches!(&scene().solve().refused[0].reasons[..], [Reason::MinValues { wanted: 2, found: 1, .. }]));
    let lowered = best_effort(scene());
    assert_eq!((least(&lowered.claims[0], labels::ZONE), is_relaxed(&lowered.claims[0])), (Some(1), true));
}

#[test]
fn a_list_that_is_cut_short_keeps_its_variety() {
    // 1,344 types, of which the cheapest hundreds are of one family.
    let mut all = Vec::new();
    for at in 0..1344_i64 {
        let mut one = instance_type(&format!("t-{at:04}"), 1 + at % 64, 4 + at % 128, 0.01 + 0.001 * at as f64);
        one.requirements.push(within("example.com/family", &[&format!("f{}", at / 100)]));
        all.push(one);
    }
    for most in [60, 100] {
        let mut scene = Scene::default().with_pool(asking("example.com/family", 10), all.clone()).with_pods(pods(
            "web",
            3,
            &shape(200, 200),
        ));
        scene.settings.max_instance_types = most;
        let plan = scene.solve();
        assert!(plan.refused.is_empty());
        for claim in &plan.claims {
            assert_eq!(claim.instance_types.len(), most);
            let family = |name: &str| name.trim_start_matches("t-").parse::<i64>().unwrap() / 100;
            let families: BTreeSet<i64> = claim.instance_types.iter().map(|name| family(name.as_str())).collect();
            assert!(families.len() >= 10, "{families:?}");
            assert!(!is_relaxed(claim));
        }
    }
    let short =
        |least| {
            let mut scene = Scene::default()
                .with_pool(asking(labels::INSTANCE_TYPE, least), all.clone())
                .with_pods(pods("web", 1, &shape(200, 200)));
            scene.settings.max_instance_types = 1;
            scene
        };
    assert!(matches!(&short(2).solve().refused[0].reasons[..], [Reason::MinValues { wanted: 2, found: 1, .. }]));
    let lowered = best_effort(short(2));
    assert_eq!((least(&lowered.claims[0], labels::INSTANCE_TYPE), is_relaxed(&lowered.claims[0])), (Some(1), true));
}

#[test]
fn a_plan_that_breaks_its_word_is_found_out() {
    let scene = Scene::default().with_pool(asking(labels::INSTANCE_TYPE, 3), types()).with_pods(pods(
        "web",
        1,
        &shape(500, 500),
    ));
    let mut plan = scene.solve();
    for line in Arc::make_mut(&mut plan.claims[0].draft.requirements) {
        line.min_values = line.min_values.map(|_| 2);
    }
    let found = check(&scene.problem(), &plan);
    assert!(matches!(&found[..], [Violation::TooAlike { .. }]), "{found:?}");
}

#[test]
fn a_constraint_that_leaves_one_zone_names_the_minvalues_on_zones() {
    let mut even = shape(500, 500);
    even.labels = labels(&[("app", "web")]);
    even.spreads.push(spread(labels::ZONE, 1, &[("app", "web")]));
    let plan = Scene::default()
        .with_pool(asking(labels::ZONE, 2), vec![instance_type("small", 2, 8, 0.1)])
        .with_pods(pods("web", 1, &even))
        .solve();
    let expected = Reason::MinValues { pool: "default".into(), key: labels::ZONE.into(), wanted: 2, found: 1 };
    assert_eq!(plan.refused[0].reasons, [expected]);
    let said = plan.refused[0].reasons[0].to_string();
    for part in ["default", labels::ZONE, "2", "1"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_list_that_needs_variety_takes_no_more_of_the_limits_than_it_must() {
    // Two of the smallest types are variety enough: with the largest in the list, the first NodeClaim would use up the limit.
    let mut pool = asking(labels::INSTANCE_TYPE, 2);
    pool.limits.set("cpu".into(), 8000);
    let types = [2, 4, 16].map(|cpu| instance_type(&format!("c{cpu}"), cpu, 4 * cpu, cpu as f64 / 10.0)).to_vec();
    let plan = Scene::default().with_pool(pool, types).with_pods(pods("web", 2, &alone_on_a_node(1000))).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (2, 0));
    assert!(plan.claims.iter().all(|claim| claim.instance_types.len() == 2), "{plan:?}");
}

/// A pod that keeps apart from its like.
fn alone_on_a_node(cpu: i64) -> PodShape {
    let mut web = shape(cpu, 500);
    web.labels.insert("app".into(), "web".into());
    web.anti_affinity.push(term(labels::HOSTNAME, &[("app", "web")]));
    web
}
