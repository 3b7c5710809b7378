//! Pods that mind each other, of which none can be placed first without a look at the others.

use std::sync::Arc;

use super::super::{Ground, Plan, Reason, check};
use super::build::*;
use crate::core::facts::{Effect, Pod, PodShape, Pool, Taint, Toleration, TolerationOperator};
use crate::core::labels::{ARCH, HOSTNAME, ZONE};
use crate::core::resources::Resources;

fn of_app(app: &str, cpu: i64) -> PodShape {
    let mut one = shape(cpu, 64);
    one.labels = labels(&[("app", app)]);
    one
}

/// The database has to be in zone-a, near a web pod. Two web pods stay together; a third, the largest, keeps away from databases. Placed by size, it
/// comes first, and then no web pod may be the first in zone-a.
fn entangled() -> Vec<Arc<Pod>> {
    let near_web = || term(ZONE, &[("app", "web")]);
    let mut db = of_app("db", 1600);
    db.node_selector = labels(&[(ZONE, "zone-a")]);
    db.affinity.push(near_web());
    let mut web = of_app("web", 900);
    web.affinity.push(near_web());
    let mut large = of_app("web", 1800);
    large.anti_affinity.push(term(ZONE, &[("app", "db")]));
    vec![pod("db", 0, &db), pod("web-0", 1, &web), pod("web-1", 2, &web), pod("large", 3, &large)]
}

/// The node on which the two web pods can be bound at once: before the third, whose node is bought, so that one of them is surely the first.
fn in_zone_a() -> Scene {
    Scene::new().with_node(node("old", 5, 64, &[(ZONE, "zone-a")]))
}

fn planned(pods: Vec<Arc<Pod>>) -> Plan {
    let scene = in_zone_a().with_pods(pods);
    let plan = Ground::default().plan(&scene.problem());
    assert_eq!(check(&scene.problem(), &plan), []);
    plan
}

fn zone_of(plan: &Plan, name: &str) -> String {
    match plan.claims.iter().position(|claim| claim.pods.iter().any(|pod| &*pod.key.name == name)) {
        Some(at) => pinned(plan, at, ZONE).unwrap().to_owned(),
        None => "zone-a".to_owned(),
    }
}

#[test]
fn one_after_the_other_they_cannot_be_placed() {
    assert!(!in_zone_a().with_pods(entangled()).solve().refused.is_empty());
}

#[test]
fn their_zones_are_chosen_together() {
    let plan = planned(entangled());
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    for name in ["db", "web-0", "web-1"] {
        assert_eq!(zone_of(&plan, name), "zone-a", "{name}");
    }
    assert_ne!(zone_of(&plan, "large"), "zone-a");
}

#[test]
fn others_are_placed_beside_them() {
    let mut pods = entangled();
    pods.extend(super::build::pods("other", 50, &of_app("other", 500)));
    let plan = planned(pods);
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
}

#[test]
fn one_that_has_no_place_in_any_way_is_refused_alone() {
    let mut pods = entangled();
    let mut lonely = of_app("lonely", 100);
    lonely.node_selector = labels(&[(ZONE, "zone-a")]);
    lonely.anti_affinity.push(term(ZONE, &[("app", "db")]));
    pods.push(pod("lonely", 4, &lonely));
    let plan = planned(pods);
    let [refusal] = &plan.refused[..] else { panic!("{:?}", plan.refused) };
    assert!(
        matches!(refusal.reasons[0], Reason::AntiAffinity { .. } | Reason::Repelled { .. }),
        "{:?}",
        refusal.reasons
    );
}

#[test]
fn who_is_waited_for_on_a_node_comes_to_one_with_room_for_both() {
    let mut cache = of_app("cache", 900);
    cache.priority = 1;
    let mut web = of_app("web", 900);
    web.affinity.push(term(HOSTNAME, &[("app", "cache")]));
    // The cache alone would go to the node that is there, where the web pod has no room.
    let scene = Scene::new()
        .with_node(node("old", 1, 8192, &[(ZONE, "zone-a")]))
        .with_pods(vec![pod("cache", 0, &cache), pod("web", 1, &web)]);
    let plan = Ground::default().plan(&scene.problem());
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    assert_eq!((plan.claims.len(), plan.claims[0].pods.len()), (1, 2));
}

/// The cache may go to either NodePool, and `first` comes first; whoever has to be beside it may not go there.
fn of_two_pools(first: Pool, web: &PodShape) -> Scene {
    let mut first = first;
    first.weight = 10;
    let mut cache = of_app("cache", 900);
    cache.priority = 1;
    cache.tolerations.push(Toleration {
        key: "team".into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
        seconds: None,
    });
    let mut all = vec![pod("cache", 0, &cache)];
    all.extend(pods("web", 3, web));
    Scene::default().with_pool(first, types()).with_pool(pool("second"), types()).with_pods(all)
}

fn beside_the_cache() -> PodShape {
    let mut web = of_app("web", 900);
    web.affinity.push(term(HOSTNAME, &[("app", "cache")]));
    web
}

fn all_on_one_node_of(scene: &Scene, pool: &str) {
    let plan = scene.solve();
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    let [claim] = &plan.claims[..] else { panic!("{:?}", plan.claims) };
    assert_eq!((claim.draft.pool.as_str(), claim.pods.len()), (pool, scene.pods.len()));
}

#[test]
fn who_is_waited_for_goes_to_a_pool_whose_taints_all_tolerate() {
    let mut first = pool("first");
    first.template.taints.push(Taint::new("team", Effect::NoSchedule));
    all_on_one_node_of(&of_two_pools(first, &beside_the_cache()), "second");
}

#[test]
fn who_is_waited_for_goes_to_a_pool_whose_labels_all_ask_for() {
    let mut first = pool("first");
    first.template.requirements.push(within(ARCH, &["arm64"]));
    let mut arm = types();
    for kind in &mut arm {
        kind.requirements.retain(|one| &*one.key != ARCH);
        kind.requirements.push(within(ARCH, &["arm64"]));
    }
    let mut web = beside_the_cache();
    web.node_selector = labels(&[(ARCH, "amd64")]);
    let mut scene = of_two_pools(first.clone(), &web);
    first.weight = 10;
    scene = scene.with_pool(first, arm);
    all_on_one_node_of(&scene, "second");
}

#[test]
fn who_is_waited_for_goes_to_a_pool_whose_limits_have_room_for_all() {
    let mut first = pool("first");
    first.limits = Resources::new().with("cpu", 2000);
    all_on_one_node_of(&of_two_pools(first, &beside_the_cache()), "second");
}

fn tolerant(mut one: PodShape) -> PodShape {
    let (key, operator) = ("team".into(), TolerationOperator::Exists);
    one.tolerations.push(Toleration { key, operator, value: "".into(), effect: None, seconds: None });
    one
}

/// Nodes for those who tolerate it, and one node of a core for all.
fn of_a_team() -> Scene {
    let mut own = pool("team");
    own.template.taints.push(Taint::new("team", Effect::NoSchedule));
    Scene::default().with_pool(own, types()).with_node(node("old", 1, 64, &[(ZONE, "zone-a")]))
}

#[track_caller]
fn all_are_seated(scene: &Scene) -> Plan {
    let plan = Ground::default().plan(&scene.problem());
    assert_eq!(check(&scene.problem(), &plan), []);
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    plan
}

#[test]
fn who_can_go_elsewhere_leaves_the_zone_of_the_only_node_to_who_cannot() {
    // The first comes to zone-a by its size and keeps away from the second, which may go to no other node than the old one, in zone-a.
    let mut large = tolerant(of_app("web", 1600));
    large.anti_affinity.push(term(ZONE, &[("app", "web")]));
    let plan =
        all_are_seated(&of_a_team().with_pods(vec![pod("large", 0, &large), pod("web", 1, &of_app("web", 400))]));
    assert_ne!(zone_of(&plan, "large"), "zone-a");
}

#[test]
fn who_spreads_and_can_go_elsewhere_leaves_the_zone_of_the_only_node_to_who_cannot() {
    let even = |mut one: PodShape| {
        one.spreads.push(spread(ZONE, 1, &[("app", "web")]));
        one
    };
    let (large, small) = (even(tolerant(of_app("web", 1600))), even(of_app("web", 400)));
    all_are_seated(&of_a_team().with_pods(vec![pod("large", 0, &large), pod("small", 1, &small)]));
}

#[test]
fn the_only_node_of_a_pool_is_made_where_all_can_be() {
    // The larger comes first and may be in any zone.
    let mut own = pool("default");
    own.limits = Resources::new().with("nodes", 1000);
    let mut large = of_app("db", 1600);
    large.spreads.push(spread(ZONE, 1, &[("app", "db")]));
    let mut small = of_app("web", 400);
    small.node_selector = labels(&[(ZONE, "zone-b")]);
    let pods = vec![pod("large", 0, &large), pod("small", 1, &small)];
    let plan = all_are_seated(&Scene::default().with_pool(own, types()).with_pods(pods));
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn what_a_limit_leaves_is_for_who_can_go_to_no_other_pool() {
    // The larger comes first, and to the first NodePool, of which the limit leaves one small node.
    let mut gold = pool("gold");
    gold.weight = 10;
    gold.template.labels = labels(&[("example.com/tier", "gold")]);
    gold.limits = Resources::new().with("cpu", 2000);
    let mut own = of_app("web", 400);
    own.node_selector = labels(&[("example.com/tier", "gold")]);
    let mut large = of_app("web", 1600);
    large.affinity.push(term(ZONE, &[("app", "web")]));
    let sizes = || vec![instance_type("small", 2, 64, 0.1), instance_type("large", 4, 64, 0.19)];
    let scene = Scene::default().with_pool(gold, sizes()).with_pool(pool("other"), sizes());
    let plan = all_are_seated(&scene.with_pods(vec![pod("own", 0, &own), pod("large", 1, &large)]));
    let mut pools: Vec<&str> = plan.claims.iter().map(|claim| claim.draft.pool.as_str()).collect();
    pools.sort_unstable();
    assert_eq!(pools, ["gold", "other"]);
}
