//! Small workloads cost what they must: never more than what Karpenter would buy for them.

use proptest::prelude::*;

use crate::core::facts::InstanceType;
use crate::core::labels;
use crate::core::scheduling::tests::build::*;
use crate::core::scheduling::{Ground, Plan, PlannedClaim, check};

/// The whole way to a plan, checked.
fn planned(scene: &Scene) -> Plan {
    let plan = Ground::default().plan(&scene.problem());
    let violations = check(&scene.problem(), &plan);
    assert!(violations.is_empty() && plan.refused.is_empty(), "{violations:#?} {:?}", plan.refused);
    plan
}

/// Deployments of so many pods, milli-cores and MiB each, some of which spread over zones.
fn deployments(types: Vec<InstanceType>, all: &[(usize, i64, i64, bool)]) -> Scene {
    let mut scene = Scene::default().with_pool(pool("default"), types);
    for (at, (count, cpu, memory, is_spread)) in all.iter().enumerate() {
        let name = format!("app-{at}");
        let mut one = shape(*cpu, *memory);
        one.labels = labels(&[("app", &name)]);
        if *is_spread {
            one.spreads.push(spread(labels::ZONE, 1, &[("app", &name)]));
        }
        scene = scene.with_pods(pods(&name, *count, &one));
    }
    scene
}

/// Three sizes, the larger the dearer for what they hold.
fn three() -> Vec<InstanceType> {
    vec![instance_type("t2", 2, 4, 0.1), instance_type("a4", 4, 8, 0.15), instance_type("m4", 4, 16, 0.2)]
}

/// The price and number of nodes of a plan for these deployments.
fn bought(types: Vec<InstanceType>, all: &[(usize, i64, i64, bool)]) -> (f64, usize) {
    let plan = planned(&deployments(types, all));
    (plan.price, plan.claims.len())
}

#[test]
fn the_pods_of_a_zone_share_one_node_where_that_is_cheaper() {
    // m-1x holds the two pods of each of three zones.
    let (price, nodes) = bought(kwok(), &[(6, 250, 2048, true)]);
    let one = kwok().iter().find(|kind| kind.name.as_str() == "m-1x").unwrap().offerings[0].price;
    assert!(nodes == 3 && price <= 3.0 * one + 1e-9, "{nodes} nodes for {price}, one costs {one}");
    // Seven pods of two cores in each zone: c-16x.
    let (price, nodes) = bought(kwok(), &[(21, 2000, 1024, true)]);
    let one = kwok().iter().find(|kind| kind.name.as_str() == "c-16x").unwrap().offerings[0].price;
    assert!(nodes == 3 && price <= 3.0 * one + 1e-9, "{nodes} nodes for {price}, one costs {one}");
}

#[test]
fn a_few_pods_share_the_one_node_that_holds_them_all_where_that_is_cheaper() {
    let (price, nodes) = bought(three(), &[(4, 900, 1024, false)]);
    assert!(nodes == 1 && (price - 0.66 * 0.15).abs() < 1e-9, "{nodes} nodes for {price}");
    let (price, _) = bought(kwok(), &[(13, 500, 512, false)]);
    let one = kwok().iter().find(|kind| kind.name.as_str() == "c-8x").unwrap().offerings[0].price;
    assert!(price <= one + 1e-9, "{price}, one node costs {one}");
}

#[test]
fn pods_that_others_keep_away_from_stay_where_they_are() {
    // Web keeps away from every database, whichever Deployment it is of: nodes are packed, and none has both.
    let mut web = shape(300, 512);
    web.anti_affinity.push(term(labels::HOSTNAME, &[("tier", "db")]));
    let mut db = shape(700, 900);
    db.labels = labels(&[("tier", "db")]);
    let scene =
        deployments(three(), &[(9, 400, 900, false)]).with_pods(pods("web", 5, &web)).with_pods(pods("db", 5, &db));
    let plan = planned(&scene);
    let has = |claim: &PlannedClaim, tier: &str| claim.pods.iter().any(|pod| pod.key.name.starts_with(tier));
    assert!(plan.claims.iter().all(|claim| !(has(claim, "web") && has(claim, "db"))));
}

#[test]
fn pods_that_keep_their_node_to_themselves_are_joined_by_those_that_go_anywhere() {
    // Three nodes there must be; the others need no fourth.
    let mut lonely = shape(300, 512);
    lonely.labels = labels(&[("app", "db")]);
    lonely.anti_affinity.push(term(labels::HOSTNAME, &[("app", "db")]));
    let scene = deployments(three(), &[(9, 400, 900, false)]).with_pods(pods("db", 3, &lonely));
    let plan = planned(&scene);
    assert!(
        plan.claims.len() == 3 && plan.price <= 0.66 * 0.3 + 1e-9,
        "{} nodes for {}",
        plan.claims.len(),
        plan.price
    );
}

/// A node of Karpenter's.
#[derive(Default)]
struct Filled {
    cpu: i64,
    memory: i64,
    pods: usize,
    zone: Option<usize>,
}

/// What Karpenter would pay: pods by size, each onto the planned node with the fewest pods (of those the oldest, where Karpenter's own order is
/// left to chance) of which some type still holds it, in a zone that its constraint allows; the cheapest type that holds what came.
fn karpenter(types: &[InstanceType], all: &[(usize, i64, i64, bool)]) -> f64 {
    let holds = |kind: &InstanceType, node: &Filled| {
        let room = kind.allocatable();
        room.get(&"cpu".into()) >= node.cpu
            && room.get(&"memory".into()) >= node.memory * MIB
            && room.get(&"pods".into()) >= 1000 * i64::try_from(node.pods).unwrap()
    };
    let mut queue: Vec<usize> = all.iter().enumerate().flat_map(|(at, (count, ..))| vec![at; *count]).collect();
    queue.sort_by_key(|at| std::cmp::Reverse((all[*at].1, all[*at].2)));
    let mut counts = vec![[0_u32; ZONES.len()]; all.len()];
    let mut nodes: Vec<Filled> = Vec::new();
    for app in queue {
        let (_, cpu, memory, is_spread) = all[app];
        let zone = |node: &Filled, counts: &[[u32; ZONES.len()]]| {
            let least = counts[app].iter().min().copied().unwrap_or_default();
            let open = (0..ZONES.len()).filter(|zone| node.zone.is_none_or(|own| own == *zone));
            open.filter(|zone| counts[app][*zone] == least).min()
        };
        let with = |node: &Filled| Filled {
            cpu: node.cpu + cpu,
            memory: node.memory + memory,
            pods: node.pods + 1,
            zone: None,
        };
        let fits = |node: &Filled| {
            types.iter().any(|kind| holds(kind, &with(node))) && (!is_spread || zone(node, &counts).is_some())
        };
        let known = (0..nodes.len()).filter(|at| fits(&nodes[*at])).min_by_key(|at| nodes[*at].pods);
        let at = known.unwrap_or_else(|| {
            nodes.push(Filled::default());
            nodes.len() - 1
        });
        let node = &mut nodes[at];
        if is_spread {
            let zone = zone(node, &counts).unwrap();
            node.zone = Some(zone);
            counts[app][zone] += 1;
        }
        *node = Filled { zone: node.zone, ..with(node) };
    }
    let price = |node: &Filled| {
        let fitting = types.iter().filter(|kind| holds(kind, node));
        fitting.flat_map(|kind| &kind.offerings).map(|offer| offer.price).fold(f64::INFINITY, f64::min)
    };
    nodes.iter().map(price).sum()
}

fn any_deployments() -> impl Strategy<Value = Vec<(usize, i64, i64, bool)>> {
    let cpu = proptest::sample::select(&[100_i64, 250, 500, 1000, 1500][..]);
    let memory = proptest::sample::select(&[128_i64, 512, 1024, 2048][..]);
    prop::collection::vec((1_usize..30, cpu, memory, prop::bool::weighted(0.7)), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_small_plan_is_dearer_than_karpenters(all in any_deployments(), has_three in any::<bool>()) {
        let types = if has_three { three() } else { kwok() };
        let greedy = karpenter(&types, &all);
        let (price, nodes) = bought(types, &all);
        prop_assert!(price <= greedy * (1.0 + 1e-9), "{price} for {nodes} nodes, Karpenter {greedy}");
    }

    /// Of pods that are all alike the cheapest nodes are found by trying every number of pods on the last of them.
    #[test]
    fn equal_pods_cost_what_they_must(count in 1_usize..40, cpu in 1_i64..16, memory in 1_i64..40, has_three in any::<bool>()) {
        let types = if has_three { three() } else { kwok() };
        let (cpu, memory) = (cpu * 100, memory * 100);
        let least = least(&types, count, (cpu, memory), usize::MAX);
        let (price, _) = bought(types, &[(count, cpu, memory, false)]);
        prop_assert!(price <= least * 1.05, "{price}, the best is {least}");
    }

    /// Replicas that keep apart from their like, or spread over nodes, are dealt out one after the other: so many nodes as there must be hold them in
    /// any numbers, as long as each has no more of one Deployment than it may.
    #[test]
    fn equal_pods_that_keep_apart_cost_what_they_must(
        apps in 1_usize..12, replicas in 1_usize..6, cpu in 1_i64..16, memory in 1_i64..40, skew in 0_i32..3, has_three in any::<bool>(),
    ) {
        let types = if has_three { three() } else { kwok() };
        let (price, least) = apart(&types, apps, replicas, (cpu * 100, memory * 100), skew);
        prop_assert!(price <= least * 1.1, "{price}, the best is {least}");
    }
}

#[test]
fn of_each_of_some_deployments_half_is_on_each_of_two_nodes() {
    // Three replicas of four Deployments: two and one, one and two, or a node more.
    let (price, least) = apart(&three(), 4, 3, (100, 600), 2);
    assert!(price <= least * (1.0 + 1e-9), "{price}, the best is {least}");
}

/// What Deployments of so many replicas cost that keep apart from their like, or spread over nodes with a skew, and what they must.
fn apart(types: &[InstanceType], apps: usize, replicas: usize, (cpu, memory): (i64, i64), skew: i32) -> (f64, f64) {
    let mut scene = Scene::default().with_pool(pool("default"), types.to_vec());
    for at in 0..apps {
        let name = format!("app-{at}");
        let mut one = shape(cpu, memory);
        one.labels = labels(&[("app", &name)]);
        match skew {
            0 => one.anti_affinity.push(term(labels::HOSTNAME, &[("app", &name)])),
            _ => one.spreads.push(spread(labels::HOSTNAME, skew, &[("app", &name)])),
        }
        scene = scene.with_pods(pods(&name, replicas, &one));
    }
    let per_node = apps * usize::try_from(skew.max(1)).unwrap();
    let least = least(types, apps * replicas, (cpu, memory), per_node);
    (planned(&scene).price, least)
}

/// The least that so many pods of one size cost, if a node holds no more than `per_node` of them.
fn least(types: &[InstanceType], count: usize, (cpu, memory): (i64, i64), per_node: usize) -> f64 {
    let each = |kind: &InstanceType| {
        let room = kind.allocatable();
        let by = |name: &str, need: i64| room.get(&name.into()) / need;
        let many = by("cpu", cpu).min(by("memory", memory * MIB)).min(by("pods", 1000));
        let price = kind.offerings.iter().map(|offer| offer.price).fold(f64::INFINITY, f64::min);
        (usize::try_from(many).unwrap().min(per_node), price)
    };
    let kinds: Vec<(usize, f64)> = types.iter().map(each).filter(|(many, _)| *many > 0).collect();
    let mut least = vec![0.0_f64];
    for pods in 1..=count {
        let with = |(many, price): &(usize, f64)| price + least[pods.saturating_sub(*many)];
        least.push(kinds.iter().map(with).fold(f64::INFINITY, f64::min));
    }
    least[count]
}
