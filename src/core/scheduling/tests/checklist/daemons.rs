//! Karpenter's provisioner suite: what DaemonSets take of a node, and of which nodes.
//!
//! Requests of a template (limits as requests, init containers): `cluster/convert/tests.rs`. Ports of daemons: `topology.rs`.

use super::super::super::{Violation, check};
use super::super::build::*;
use super::words::*;
use crate::core::facts::{DaemonSet, Effect, Fact, Fold, Owner, PodShape, Taint};
use crate::core::labels::{HOSTNAME, INSTANCE_TYPE, NODE_NAME_FIELD, ZONE};
use crate::core::requirements::Operator::{DoesNotExist, NotIn};

/// The cheapest type for a pod of one core beside a daemon.
#[track_caller]
fn beside(daemon: PodShape) -> String {
    buying(ladder(8)).with_daemon("d", daemon).place(&web().of(1000, 512)).whole().cheapest()[0].to_owned()
}

fn heavy() -> PodShape {
    shape(1000, 512)
}

#[test]
fn a_daemon_makes_the_node_larger() {
    assert_eq!(buying(ladder(8)).place(&web().of(1000, 512)).cheapest(), ["fake-2"]);
    assert_eq!(beside(heavy()), "fake-3");
}

#[test]
fn daemons_add_up() {
    let scene = buying(ladder(8)).with_daemon("a", heavy()).with_daemon("b", heavy());
    assert_eq!(scene.place(&web().of(1000, 512)).cheapest(), ["fake-4"]);
}

#[test]
fn a_daemon_too_large_for_every_type_leaves_no_node() {
    let scene = || buying(ladder(4)).with_daemon("d", shape(10_000, 512));
    assert!(scene().place(&web()).why().contains("cpu"));
    let both = buying(ladder(4)).with_daemon("a", shape(2000, 512)).with_daemon("b", shape(2000, 512));
    assert_eq!(both.place(&web()).left(), 1, "together they are too large");
}

#[test]
fn a_daemon_that_asks_for_nothing_takes_a_pods_place_only() {
    assert_eq!(beside(shape(0, 0)), "fake-2");
    let plan = buying(ladder(2)).with_daemon("d", shape(0, 0)).place(&web());
    assert_eq!(plan.claims[0].draft.requests.get(&"pods".into()), 2000);
}

#[test]
fn a_daemon_that_does_not_tolerate_the_pools_taint_is_not_counted() {
    let tainted = |daemon: PodShape| {
        let scene = Scene::default().with_pool(pool("default").tainted(taint("team")), ladder(8));
        scene.with_daemon("d", daemon).place(&web().of(1000, 512).tolerating("team")).cheapest()[0].to_owned()
    };
    assert_eq!(tainted(heavy()), "fake-2");
    assert_eq!(tainted(heavy().tolerating("team")), "fake-3");
}

#[test]
fn a_startup_taint_and_a_soft_one_keep_no_daemon_away() {
    let soft = Taint::new("slow", Effect::PreferNoSchedule);
    for pool in [pool("default").starting_with(taint("agent")), pool("default").tainted(soft)] {
        let scene = Scene::default().with_pool(pool, ladder(8)).with_daemon("d", heavy());
        assert_eq!(scene.place(&web().of(1000, 512)).cheapest(), ["fake-3"]);
    }
}

#[test]
fn a_daemon_that_no_node_of_the_pool_suits_is_not_counted() {
    for elsewhere in [
        heavy().selecting("example.com/team", "red"),
        heavy().selecting(INSTANCE_TYPE, "unknown"),
        heavy().wanting(within(ZONE, &["nowhere"])),
    ] {
        assert_eq!(beside(elsewhere), "fake-2");
    }
}

#[test]
fn a_daemon_that_names_the_pools_label_is_counted() {
    let scene = Scene::default().with_pool(pool("default").labelled("example.com/team", "red"), ladder(8));
    let scene = scene.with_daemon("d", heavy().selecting("example.com/team", "red"));
    assert_eq!(scene.place(&web().of(1000, 512)).cheapest(), ["fake-3"]);
}

#[test]
fn a_daemon_without_a_key_that_nobody_has_is_counted() {
    assert_eq!(beside(heavy().wanting(says("example.com/virtual", NotIn, &["yes"]))), "fake-3");
}

#[test]
fn a_daemon_for_some_types_is_counted_on_those() {
    // Two cores suffice on the type that the daemon avoids; the others need its core too.
    assert_eq!(beside(heavy().wanting(says("integer", NotIn, &["2"]))), "fake-2");
    assert_eq!(beside(heavy().wanting(within("integer", &["2"]))), "fake-3");
}

#[test]
fn each_size_may_have_a_daemon_of_its_own() {
    let mut scene = buying(ladder(4));
    for cores in ["2", "3", "4"] {
        scene = scene
            .with_daemon(cores, shape(cores.parse::<i64>().unwrap() * 400, 100).wanting(within("integer", &[cores])));
    }
    // Of two, three and four cores 1.1, 1.7 and 2.3 are left.
    assert_eq!(scene.place(&web().of(1500, 512)).types(), ["fake-3", "fake-4"]);
}

#[test]
fn one_of_a_daemons_alternatives_is_enough() {
    assert_eq!(beside(heavy().wanting(within(ZONE, &["nowhere"])).or_wanting(within(ZONE, &ZONES))), "fake-3");
}

#[test]
fn what_a_daemon_prefers_does_not_matter() {
    assert_eq!(beside(heavy().preferring(1, within(ZONE, &["nowhere"]))), "fake-3");
}

#[test]
fn a_daemon_for_one_host_by_name_is_for_no_new_node() {
    // A DaemonSet's template names no host; the affinity that its pods carry is dropped where they are read.
    assert_eq!(beside(heavy().wanting(within(HOSTNAME, &["old"]))), "fake-2");
}

/// Differs: Karpenter does not look at `matchFields`, and has such a daemon on every node.
#[test]
fn a_daemon_that_is_tied_to_nodes_by_name_is_counted_on_those() {
    let for_old = heavy().wanting(within(NODE_NAME_FIELD, &["old"]));
    assert_eq!(beside(for_old.clone()), "fake-2", "no new node has that name");
    assert_eq!(beside(heavy().wanting(says(NODE_NAME_FIELD, NotIn, &["old"]))), "fake-3");
    let takes = |name: &str| {
        let scene = Scene::default().with_node(node(name, 2, 4, &[])).with_daemon("d", for_old.clone());
        scene.place(&web().of(1500, 512)).placed()
    };
    assert_eq!((takes("old"), takes("other")), (0, 1));
}

#[test]
fn a_daemons_port_closes_only_the_types_that_it_runs_on() {
    let daemon = shape(100, 100).on_port(80).wanting(within("integer", &["1", "2", "3"]));
    let scene = || buying(ladder(4)).with_daemon("d", daemon.clone());
    assert_eq!(scene().place(&web().on_port(80)).types(), ["fake-4"]);
    assert_eq!(scene().place(&web().on_port(81)).types().len(), 4);
}

#[test]
fn the_nodeclaim_asks_for_each_daemon_once() {
    let plan = buying(ladder(8)).with_daemon("d", heavy()).with_pods(pods("web", 3, &web())).solve();
    assert_eq!(plan.claims[0].draft.requests, amounts(2500, 2048).with("pods", 4000));
}

#[test]
fn a_live_pod_beats_the_template() {
    // A webhook or a LimitRange has made the pods larger than the DaemonSet says.
    let template = PodShape { owner: Owner::DaemonSet, ..heavy() };
    let mut live = (*pod("agent-x", 0, &PodShape { owner: Owner::DaemonSet, ..shape(3000, 512) })).clone();
    live.owned_by = Some("/apis/apps/v1/namespaces/default/daemonsets/agent".into());
    let key = crate::core::ids::ObjectKey::new("default", "agent");
    let mut fold = Fold::default();
    fold.fold(Fact::DaemonSeen(DaemonSet { key, shape: template.into() }.into()));
    let mut scene = buying(ladder(8));
    scene.snapshot.daemons = fold.snapshot().daemons.clone();
    assert_eq!(scene.place(&web().of(1000, 512)).whole().cheapest(), ["fake-3"]);
    fold.fold(Fact::PodSeen(live.into()));
    let mut scene = buying(ladder(8));
    scene.snapshot.daemons = fold.snapshot().daemons.clone();
    assert_eq!(scene.place(&web().of(1000, 512)).whole().cheapest(), ["fake-5"]);
}

/// A DaemonSet that comes to the nodes of NodePool `default`, and another NodePool, which is dearer and to whose nodes it does not come.
fn watched(agent: PodShape) -> Scene {
    let dear = vec![instance_type("dear", 4, 16, 9.0)];
    let quiet = pool("quiet").labelled("example.com/quiet", "yes");
    let agent = agent.wanting(says("example.com/quiet", DoesNotExist, &[]));
    from(pool("default").weighing(1)).with_pool(quiet, dear).with_daemon("agent", agent.of(100, 100))
}

#[test]
fn a_pod_that_keeps_away_from_a_daemon_gets_a_node_to_which_it_does_not_come() {
    let shy = web().far(those_of("agent", HOSTNAME));
    let plan = watched(app("agent")).place(&shy);
    assert_eq!(plan.claims[0].draft.pool.as_str(), "quiet");
    // Others do not mind.
    assert_eq!(watched(app("agent")).place(&web()).claims[0].draft.pool.as_str(), "default");
}

#[test]
fn a_pod_that_a_daemon_keeps_away_from_gets_a_node_to_which_it_does_not_come() {
    let plan = watched(app("agent").far(those_of("web", HOSTNAME))).place(&web());
    assert_eq!(plan.claims[0].draft.pool.as_str(), "quiet");
}

#[test]
fn a_pod_that_keeps_away_from_a_daemon_of_every_node_is_told_so() {
    let shy = web().far(those_of("agent", HOSTNAME));
    let scene = Scene::new().with_daemon("agent", app("agent")).with_node(node("old", 4, 16, &[]));
    let why = scene.place(&shy).why();
    assert!(why.contains("default has a pod of DaemonSet kube-system/agent on every node"), "{why}");
}

#[test]
fn a_plan_that_puts_a_pod_where_a_daemon_comes_that_it_keeps_away_from_is_wrong() {
    let scene = Scene::new().with_pods(pods("web", 1, &web().far(those_of("agent", HOSTNAME))));
    let plan = scene.solve();
    let scene = scene.with_daemon("agent", app("agent").of(1, 1));
    let wrong = check(&scene.problem(), &plan);
    assert!(matches!(wrong[..], [Violation::NotApart { .. }]), "{wrong:?}");
}

#[test]
fn a_daemon_that_somebody_who_runs_there_keeps_out_is_in_nobodys_way() {
    let shy = app("agent").of(100, 100).far(those_of("web", HOSTNAME));
    let scene = || Scene::default().with_node(node("old", 8, 64, &[])).with_daemon("agent", shy.clone());
    assert_eq!(scene().place(&web()).left(), 1, "it is on its way");
    assert_eq!(scene().running("there", "old", &web()).place(&web()).left(), 0);
}
