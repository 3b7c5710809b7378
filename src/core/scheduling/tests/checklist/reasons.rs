//! What is said of a pod without a place: the smallest set of facts that explains it. Not in Karpenter's suites.

use super::super::super::Reason;
use super::super::build::*;
use super::words::*;
use crate::core::facts::PodShape;
use crate::core::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, SPOT, ZONE};

/// The kinds of the reasons that the first pod without a place is given.
fn kinds(scene: &Scene) -> Vec<&'static str> {
    let plan = scene.solve();
    assert!(plan.left() > 0, "{:#?}", plan.claims);
    plan.refused[0].reasons.iter().map(Reason::kind).collect()
}

#[test]
fn a_spread_that_can_be_kept_is_not_named_beside_an_affinity_to_nobody() {
    let pod = web().spreading(even(ZONE, 1)).near(those_of("absent", ZONE));
    let scene = Scene::new().with_pods(pods("web", 2, &pod));
    assert_eq!(kinds(&scene), ["Affinity"]);
    assert!(scene.solve().why().contains("would fit beside such a pod"), "{}", scene.solve().why());
}

#[test]
fn what_a_new_node_would_mend_is_not_named() {
    // One pod per node is no matter: nodes can be bought. One per zone is.
    let pod = web().far(those_of("web", HOSTNAME)).far(those_of("web", ZONE));
    let scene = Scene::new().with_pods(pods("web", 4, &pod));
    let said = scene.solve().refused[0].reasons.clone();
    assert_eq!(said, [Reason::AntiAffinity { key: ZONE.into() }]);
    // The same of those who keep it away, on a node that has room.
    let hermit = app("hermit").far(those_of("web", HOSTNAME));
    let scene = Scene::new()
        .with_node(node("old", 8, 8, &[(ZONE, "zone-a")]))
        .running("hermit", "old", &hermit)
        .with_pods(pods("web", 1, &web().near(those_of("absent", ZONE))));
    assert_eq!(kinds(&scene), ["Affinity"]);
}

#[test]
fn each_constraint_that_would_be_enough_to_give_up_is_named() {
    // The emptiest zone is the one that a database is in, and the pod does not want to be near it.
    let mut scene = Scene::new();
    for (zone, app) in ZONES.into_iter().zip(["web", "web", "db"]) {
        scene = scene.with_node(node(zone, 1, 1, &[(ZONE, zone)]).with_room(1)).running(zone, zone, &self::app(app));
    }
    let pod = web().spreading(even(ZONE, 1)).spreading(even(HOSTNAME, 1)).far(those_of("db", ZONE));
    assert_eq!(kinds(&scene.with_pods(pods("web", 1, &pod))), ["Spread", "AntiAffinity"]);
}

#[test]
fn where_no_constraint_alone_is_in_the_way_those_are_named_that_are_together() {
    let mut scene = Scene::new();
    for zone in ZONES {
        scene = scene.with_node(node(zone, 1, 1, &[(ZONE, zone)]).with_room(1)).running(zone, zone, &app("db"));
    }
    let pod = web().spreading(even(ZONE, 1)).near(those_of("absent", ZONE)).far(those_of("db", ZONE));
    assert_eq!(kinds(&scene.with_pods(pods("web", 1, &pod))), ["Affinity", "AntiAffinity"]);
}

#[test]
fn a_host_that_the_pod_wants_to_share_and_cannot_is_named() {
    let scene = Scene::new()
        .with_node(node("old", 1, 1, &[(ZONE, "zone-a")]).with_room(1))
        .running("db", "old", &app("db"))
        .with_pods(pods("web", 1, &web().spreading(even(ZONE, 1)).near(those_of("db", HOSTNAME))));
    assert_eq!(kinds(&scene), ["Affinity"]);
}

#[test]
fn where_nothing_can_be_bought_the_nodes_that_are_there_are_asked() {
    // The pool of the only zone is tainted. The old node has room, and holds one of the pods already: the spread lets another follow.
    let only = pool("default").tainted(taint("team")).requiring(within(ZONE, &["zone-a"]));
    let scene = Scene::default().with_pool(only, types());
    let scene = scene.with_node(node("old", 8, 8, &[(ZONE, "zone-a")])).running("first", "old", &web());
    let pod = web().spreading(even(ZONE, 1)).far(those_of("web", ZONE));
    assert_eq!(kinds(&scene.with_pods(pods("web", 1, &pod))), ["Several", "AntiAffinity"]);
}

/// Why a pool of that kind can be used for nobody.
fn of_pool(pool: crate::core::facts::Pool, types: Vec<crate::core::facts::InstanceType>) -> String {
    Scene::default().with_pool(pool, types).with_pods(pods("web", 1, &web())).solve().why()
}

#[test]
fn a_pool_without_types_names_the_requirement_that_is_to_blame() {
    let picky = pool("default").requiring(within(ARCH, &["riscv64"])).requiring(within(ZONE, &["zone-a"]));
    let said = of_pool(picky, types());
    assert!(said.ends_with("there would be 7 without `kubernetes.io/arch In [riscv64]`"), "{said}");
    // A label is as good as a requirement, and either of two may be given up.
    let either = pool("default").labelled(ARCH, "arm64").requiring(within(INSTANCE_TYPE, &["small"]));
    let said = of_pool(either, fake());
    assert!(
        said.ends_with(
            "there would be 1 without `kubernetes.io/arch In [arm64]` or 1 without `node.kubernetes.io/instance-type In [small]`"
        ),
        "{said}"
    );
}

#[test]
fn where_it_takes_several_requirements_all_of_them_are_named() {
    let lost = pool("default").requiring(within(ARCH, &["riscv64"])).requiring(within(ZONE, &["nowhere"]));
    let said = of_pool(lost.requiring(within(CAPACITY_TYPE, &[SPOT, ON_DEMAND])), types());
    let all = "`kubernetes.io/arch In [riscv64]` and `topology.kubernetes.io/zone In [nowhere]`";
    assert!(said.ends_with(&format!("there would be some if {all} were all relaxed")), "{said}");
    let gone = types().into_iter().map(|kind| kind.sold_out(|_| true)).collect();
    let said = of_pool(pool("default").requiring(within(ZONE, &["zone-a"])), gone);
    assert!(said.contains("none of its NodeClass's instance types can be had"), "{said}");
}

#[test]
fn a_plan_says_which_pools_are_of_no_use_even_if_all_pods_have_a_place() {
    let lost = pool("lost").requiring(within(ARCH, &["riscv64"]));
    let plan = Scene::new().with_pool(lost, types()).with_pods(pods("web", 1, &web())).solve().whole();
    assert!(
        matches!(&plan.unusable[..], [Reason::NoTypes { pool, .. }] if pool.as_str() == "lost"),
        "{:?}",
        plan.unusable
    );
    assert!(plan.unusable[0].filters_out_all());
}

#[test]
fn a_daemon_that_is_too_large_is_named() {
    let told = |daemon: i64, pod: i64| {
        let scene = Scene::new().with_daemon("small", shape(100, 10)).with_daemon("big", shape(daemon, 10));
        let plan = scene.with_pods(pods("web", 1, &shape(pod, 512))).solve();
        let [one] = &plan.refused[0].reasons[..] else { panic!("{:?}", plan.refused) };
        one.to_string()
    };
    // It fits no node even without the pod.
    let alone = told(500_000, 100);
    assert!(alone.contains("need 500.2 cpu (DaemonSet kube-system/big 500), the most there is is 63.9"), "{alone}");
    let beside = told(60_000, 8_000);
    assert!(beside.contains("(DaemonSet kube-system/big 60)"), "{beside}");
    // The pod is too large for itself.
    let pod = told(1_000, 100_000);
    assert!(!pod.contains("DaemonSet"), "{pod}");
}

#[test]
fn whoever_names_a_pool_hears_of_that_pool_only() {
    let nowhere = || {
        let mut broken = pool("broken");
        broken.template.requirements.push(within(ZONE, &["nowhere"]));
        let mut tainted = pool("tainted");
        tainted.template.taints.push(taint("gpu"));
        Scene::default().with_pool(broken, types()).with_pool(tainted, types())
    };
    let told = |shape: &PodShape| {
        let plan = nowhere().with_pods(pods("web", 1, shape)).solve();
        plan.refused[0].reasons.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut choosy = shape(100, 100);
    assert_eq!(told(&choosy).len(), 2);
    choosy.node_selector = labels(&[(NODEPOOL, "broken")]);
    let [only] = &told(&choosy)[..] else { panic!("{:?}", told(&choosy)) };
    assert!(only.starts_with("NodePool broken has requirements that leave no instance type"), "{only}");
    // There is none of that name: what the others offer is all that can be said.
    choosy.node_selector = labels(&[(NODEPOOL, "missing")]);
    assert_eq!(told(&choosy).len(), 2);
}

#[test]
fn without_a_pool_the_constraint_that_keeps_a_pod_from_the_nodes_that_are_there_is_named_too() {
    let mut web = shape(500, 512);
    web.labels = labels(&[("app", "web")]);
    web.spreads.push(spread(ZONE, 1, &[("app", "web")]));
    let full = node("full", 0, 0, &[(ZONE, "zone-b")]);
    let scene = Scene::default().with_node(node("n", 4, 16, &[(ZONE, "zone-a")])).with_node(full);
    let plan = scene.running("web-0", "n", &web).with_pods(pods("web", 1, &web)).solve();
    let reasons = &plan.refused[0].reasons;
    assert!(matches!(&reasons[..], [Reason::NoPools, Reason::Spread { .. }]), "{reasons:?}");
}
