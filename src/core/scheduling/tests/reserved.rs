//! Reserved capacity: used first, never beyond what there is.

use std::sync::Arc;

use proptest::prelude::*;

use super::build::*;
use crate::core::facts::{InstanceType, Offering, Pool};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::scheduling::{Plan, PlannedClaim, Reason, Settings, Violation, check, lower_bound, solve};

pub(super) const ID: &str = "karpenter.test.sh/reservation-id";

/// A type with reserved capacity in the first zone besides.
pub(super) fn reserved(mut kind: InstanceType, reservations: &[(&str, u32)]) -> InstanceType {
    for (id, size) in reservations {
        kind.offerings.push(Offering {
            requirements: vec![
                within(labels::ZONE, &[ZONES[0]]),
                within(labels::CAPACITY_TYPE, &[labels::RESERVED]),
                within(ID, &[id]),
            ],
            price: kind.offerings[0].price / 1e7,
            available: true,
            reservation_capacity: Some(*size),
        });
        let one = kind.requirements.iter_mut().find(|r| &*r.key == labels::CAPACITY_TYPE).unwrap();
        if !one.values.iter().any(|v| &**v == labels::RESERVED) {
            one.values.push(labels::RESERVED.into());
        }
    }
    kind
}

pub(super) fn small_and_medium() -> Vec<InstanceType> {
    vec![
        reserved(instance_type("a-small", 2, 8, 0.1), &[("r-small", 1)]),
        reserved(instance_type("b-medium", 4, 16, 0.2), &[("r-medium", 1)]),
        instance_type("c-large", 8, 32, 0.4),
    ]
}

/// A pod that shares its node with none of its kind.
pub(super) fn alone(cpu: i64) -> crate::core::facts::PodShape {
    let mut one = shape(cpu, 500);
    one.labels.insert("app".into(), "alone".into());
    one.anti_affinity.push(term(labels::HOSTNAME, &[("app", "alone")]));
    one
}

fn values<'a>(claim: &'a PlannedClaim, key: &str) -> Vec<&'a str> {
    let lines = claim.draft.requirements.iter().filter(|r| &*r.key == key && r.operator == Operator::In);
    lines.flat_map(|r| r.values.iter().map(|v| &**v)).collect()
}

/// The reservation of each NodeClaim; nothing for one that is paid by the hour.
pub(super) fn held(plan: &Plan) -> Vec<Option<&str>> {
    let of = |claim| {
        let (ids, kinds) = (values(claim, ID), values(claim, labels::CAPACITY_TYPE));
        assert_eq!(kinds == [labels::RESERVED], !ids.is_empty(), "{kinds:?} {ids:?}");
        assert!(ids.len() <= 1 && !kinds.is_empty());
        ids.first().copied()
    };
    let mut all: Vec<_> = plan.claims.iter().map(of).collect();
    all.sort_unstable();
    all
}

pub(super) fn waiting(mut scene: Scene) -> Scene {
    scene.settings = Settings { wait_for_reserved: true, ..scene.settings };
    scene
}

#[test]
fn each_reservation_is_used_once_and_then_capacity_is_bought() {
    let scene = Scene::default().with_pool(pool("default"), small_and_medium()).with_pods(pods("web", 3, &alone(500)));
    let plan = scene.solve();
    assert_eq!(held(&plan), [None, Some("r-medium"), Some("r-small")]);
    let bought = plan.claims.iter().find(|claim| values(claim, ID).is_empty()).unwrap();
    assert_eq!(values(bought, labels::CAPACITY_TYPE), [labels::ON_DEMAND, labels::SPOT]);
    let small = plan.claims.iter().find(|claim| values(claim, ID) == ["r-small"]).unwrap();
    assert_eq!(values(small, labels::INSTANCE_TYPE), ["a-small"]);
}

#[test]
fn two_reservations_of_one_type_hold_what_they_hold() {
    let types = vec![reserved(instance_type("a", 2, 8, 0.1), &[("r-1", 1), ("r-2", 2)])];
    let scene = Scene::default().with_pool(pool("default"), types).with_pods(pods("web", 4, &alone(500)));
    assert_eq!(held(&scene.solve()), [None, Some("r-1"), Some("r-2"), Some("r-2")]);
}

#[test]
fn pools_share_a_reservation_and_the_smaller_size_counts() {
    let types = |size| vec![reserved(instance_type("a", 2, 8, 0.1), &[("r", size)])];
    let mut heavy = pool("heavy");
    heavy.weight = 10;
    heavy.template.taints.push(crate::core::facts::Taint::new("team", crate::core::facts::Effect::NoSchedule));
    let mut tolerant = alone(500);
    tolerant.tolerations.push(crate::core::facts::Toleration {
        key: "team".into(),
        operator: crate::core::facts::TolerationOperator::Exists,
        value: "".into(),
        effect: None,
        seconds: None,
    });
    let scene = Scene::default()
        .with_pool(heavy, types(1))
        .with_pool(pool("light"), types(5))
        .with_pods(pods("own", 1, &tolerant))
        .with_pods(pods("web", 1, &alone(600)));
    assert_eq!(held(&scene.solve()), [None, Some("r")]);
}

#[test]
fn nodeclaims_that_are_there_use_what_they_name() {
    let types = vec![reserved(instance_type("a", 2, 8, 0.1), &[("r", 2)])];
    let mut under_way = claim("old", "default", vec![within(ID, &["r"])], amounts(1900, 7000));
    let mut settled = claim("older", "default", vec![within(ID, &["r", "other"])], amounts(1900, 7000));
    settled.labels.insert(ID.into(), "other".into());
    for one in [&mut under_way, &mut settled] {
        one.taints.push(crate::core::facts::Taint::new("taken", crate::core::facts::Effect::NoSchedule));
    }
    let scene = Scene::default()
        .with_pool(pool("default"), types)
        .with_claim(under_way)
        .with_claim(settled)
        .with_pods(pods("web", 2, &alone(1900)));
    assert_eq!(held(&scene.solve()), [None, Some("r")]);
}

#[test]
fn pods_that_belong_together_share_a_reserved_node() {
    let mut near = shape(500, 500);
    near.labels.insert("app".into(), "pair".into());
    near.affinity.push(term(labels::HOSTNAME, &[("app", "pair")]));
    let scene = Scene::default().with_pool(pool("default"), small_and_medium()).with_pods(pods("pair", 2, &near));
    let plan = scene.solve();
    assert_eq!(held(&plan), [Some("r-small")]);
    assert_eq!(plan.claims[0].pods.len(), 2);
}

/// A pool of reserved capacity only, and a lighter one of any.
fn reserved_first(size: u32) -> Scene {
    let mut heavy = pool("heavy");
    heavy.weight = 10;
    heavy.template.requirements.push(within(labels::CAPACITY_TYPE, &[labels::RESERVED]));
    let types = || vec![reserved(instance_type("a", 2, 8, 0.1), &[("r", size)])];
    Scene::default().with_pool(heavy, types()).with_pool(pool("light"), vec![instance_type("b", 2, 8, 0.1)])
}

#[test]
fn when_all_is_in_use_pods_wait_or_go_to_a_lighter_pool() {
    let scene = || reserved_first(1).with_pods(pods("web", 2, &alone(500)));
    let plan = waiting(scene()).solve();
    assert_eq!(held(&plan), [Some("r")]);
    let reasons = &plan.refused[0].reasons;
    let behind = Reason::AfterReserved { pool: "light".into(), first: "heavy".into() };
    assert_eq!(*reasons, [Reason::ReservedInUse { pool: "heavy".into() }, behind]);
    let plan = scene().solve();
    assert_eq!(held(&plan), [None, Some("r")]);
    assert!(plan.refused.is_empty());
}

#[test]
fn pods_that_keep_apart_wait_like_others() {
    for many in 3..7 {
        let mut web = alone(500);
        web.anti_affinity.push(term(labels::HOSTNAME, &[("app", "web")]));
        web.labels.insert("app".into(), "web".into());
        let plan = waiting(reserved_first(2).with_pods(pods("web", many, &web))).solve();
        assert_eq!((held(&plan), plan.refused.len()), (vec![Some("r"), Some("r")], many - 2), "{many}");
    }
}

#[test]
fn a_pod_that_fits_no_reserved_machine_does_not_wait() {
    let plan = waiting(reserved_first(1).with_pods(pods("web", 1, &shape(1900, 9000)))).solve();
    assert_eq!((plan.refused.len(), plan.claims.len()), (1, 0));
    let mut scene = reserved_first(1);
    let large = vec![instance_type("b", 16, 64, 0.8)];
    scene = scene.with_pool(pool("light"), large).with_pods(pods("web", 1, &shape(8000, 9000)));
    assert_eq!(held(&waiting(scene).solve()), [None]);
}

#[test]
fn who_asks_for_reserved_capacity_waits_and_who_prefers_it_does_not() {
    let mut wishing = alone(500);
    let wish = Requirement::new(labels::CAPACITY_TYPE, Operator::In, [labels::RESERVED]);
    wishing.node_affinity.preferred.push(crate::core::facts::Weighted { weight: 10, term: vec![wish] });
    let scene = Scene::default().with_pool(pool("default"), small_and_medium()).with_pods(pods("web", 3, &wishing));
    assert_eq!(held(&waiting(scene).solve()), [None, Some("r-medium"), Some("r-small")]);
    let mut asking = alone(500);
    asking.node_selector.insert(labels::CAPACITY_TYPE.into(), labels::RESERVED.into());
    let scene = Scene::default().with_pool(pool("default"), small_and_medium()).with_pods(pods("web", 3, &asking));
    let plan = waiting(scene).solve();
    assert_eq!(held(&plan), [Some("r-medium"), Some("r-small")]);
    assert_eq!(plan.refused[0].reasons, [Reason::ReservedInUse { pool: "default".into() }]);
}

#[test]
fn pods_of_other_zones_do_not_take_a_reservation() {
    let mut there = shape(500, 500);
    there.node_selector.insert(labels::ZONE.into(), ZONES[1].into());
    let scene = Scene::default()
        .with_pool(pool("default"), small_and_medium())
        .with_pods(pods("there", 1, &there))
        .with_pods(pods("here", 1, &alone(500)));
    let plan = scene.solve();
    assert_eq!(held(&plan), [None, Some("r-small")]);
}

#[test]
fn capacity_that_nobody_can_count_is_not_used() {
    let mut kind = reserved(instance_type("a", 2, 8, 0.1), &[("r", 1)]);
    kind.offerings.last_mut().unwrap().requirements.retain(|r| &*r.key != ID);
    let scene = Scene::default().with_pool(pool("default"), vec![kind]).with_pods(pods("web", 1, &alone(500)));
    assert_eq!(held(&scene.solve()), [None]);
}

#[test]
fn a_plan_that_takes_too_much_is_found_out() {
    let scene = Scene::default().with_pool(pool("default"), small_and_medium()).with_pods(pods("web", 3, &alone(500)));
    let mut plan = scene.solve();
    let small = plan.claims.iter().find(|claim| values(claim, ID) == ["r-small"]).unwrap().clone();
    let bought = plan.claims.iter_mut().find(|claim| values(claim, ID).is_empty()).unwrap();
    bought.draft.requirements = small.draft.requirements;
    bought.instance_types = small.instance_types;
    let found = check(&scene.problem(), &plan);
    assert!(found.contains(&Violation::OverReserved { reservation: "r-small".into() }), "{found:?}");
    // The same when a NodeClaim is left free to go there.
    let mut open = scene.solve();
    let bought = open.claims.iter_mut().find(|claim| values(claim, ID).is_empty()).unwrap();
    bought.draft.requirements =
        bought.draft.requirements.iter().filter(|r| &*r.key != labels::CAPACITY_TYPE).cloned().collect();
    assert!(check(&scene.problem(), &open).iter().any(|v| matches!(v, Violation::OverReserved { .. })));
}

#[test]
fn what_is_reserved_costs_the_bound_nothing() {
    let types = vec![reserved(instance_type("a", 4, 16, 0.2), &[("r", 3)])];
    let scene = Scene::default().with_pool(pool("default"), types).with_pods(pods("web", 60, &shape(900, 1000)));
    let plan = scene.solve();
    let free = held(&plan).iter().filter(|id| id.is_some()).count();
    let bound = lower_bound(&scene.problem(), &plan);
    assert_eq!((free, plan.claims.len()), (3, 15));
    assert!(bound > 0.9 * plan.price && bound <= plan.price, "{bound} {}", plan.price);
}

#[test]
fn a_reservation_that_is_named_is_asked_for() {
    let mut own: Pool = pool("default");
    own.template.requirements.push(within(labels::CAPACITY_TYPE, &[labels::RESERVED, labels::ON_DEMAND]));
    let mut named = shape(500, 500);
    named.node_selector.insert(ID.into(), "r-medium".into());
    let scene = Scene::default().with_pool(own, small_and_medium()).with_pods(pods("web", 1, &named));
    assert_eq!(held(&scene.solve()), [Some("r-medium")]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_takes_more_than_there_is_or_promises_what_it_does_not_keep(
        scene in super::laws::any_scene(),
        sizes in (0..3_u32, 0..3_u32),
        least in prop::option::of(1..6_u32),
        waits in any::<bool>(),
        lowers in any::<bool>(),
    ) {
        let mut scene = scene;
        let kinds = types().into_iter().enumerate().map(|(at, kind)| match at {
            1 => reserved(kind, &[("r-1", sizes.0)]),
            3 => reserved(kind, &[("r-1", sizes.0), ("r-2", sizes.1)]),
            _ => kind,
        });
        let list = Arc::new(kinds.map(Arc::new).collect::<Vec<_>>());
        scene.catalog.pools.values_mut().for_each(|known| *known = Arc::clone(&list));
        for own in scene.snapshot.pools.clone().values() {
            let mut own = (**own).clone();
            let line = Requirement::new(labels::INSTANCE_TYPE, Operator::Exists, [""; 0]);
            own.template.requirements.push(Requirement { min_values: least, ..line });
            scene.snapshot.pools.insert(own.name.clone(), Arc::new(own));
        }
        scene.settings = Settings { wait_for_reserved: waits, lower_min_values: lowers, ..scene.settings };
        let plan = solve(&scene.problem());
        let violations = check(&scene.problem(), &plan);
        prop_assert!(violations.is_empty(), "{:#?}", violations);
        prop_assert!(held(&plan).into_iter().flatten().count() <= (sizes.0 + sizes.1) as usize);
        let bound = lower_bound(&scene.problem(), &plan);
        prop_assert!(bound <= plan.price + 1e-9, "{bound} {}", plan.price);
    }
}
