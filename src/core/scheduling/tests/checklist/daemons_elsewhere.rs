//! DaemonSets that come to some nodes of a NodePool: only the nodes that may be among those keep room for them, and where it pays a node is
//! kept from them. (Karpenter keeps the room on all nodes.)

use super::super::build::*;
use super::words::*;
use crate::core::facts::{PodShape, Pool};
use crate::core::labels::{CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE};
use crate::core::requirements::Operator::{Exists, Gt};
use crate::core::scheduling::Plan;

const RACK: &str = "example.com/rack";

/// A daemon of one core.
fn heavy() -> PodShape {
    shape(1000, 512)
}

fn in_zone(zone: &str) -> PodShape {
    heavy().selecting(ZONE, zone)
}

/// The cheapest type for such a pod of one core, beside a daemon of one core.
#[track_caller]
fn beside(pool: Pool, daemon: PodShape, pod: PodShape) -> String {
    let scene = Scene::default().with_pool(pool, ladder(8)).with_daemon("d", daemon);
    scene.place(&pod.of(1000, 512)).whole().cheapest()[0].to_owned()
}

/// Whether the only NodeClaim of a plan may become a node with this label.
#[track_caller]
fn may_have(plan: &Plan, key: &str, value: &str) -> bool {
    assert_eq!((plan.left(), plan.claims.len()), (0, 1), "{plan:#?}");
    plan.claims[0]
        .draft
        .requirements
        .iter()
        .filter(|line| &*line.key == key)
        .all(|line| crate::core::requirements::ValueSet::from_written(line).has(value))
}

#[test]
fn a_pod_of_one_zone_pays_for_the_daemons_of_that_zone() {
    let elsewhere = || in_zone("zone-a");
    assert_eq!(beside(pool("default"), elsewhere(), web().selecting(ZONE, "zone-b")), "fake-2");
    assert_eq!(beside(pool("default"), elsewhere(), web().selecting(ZONE, "zone-a")), "fake-3");
}

#[test]
fn a_pod_of_one_capacity_type_pays_for_the_daemons_of_that_one() {
    let spot = || heavy().selecting(CAPACITY_TYPE, SPOT);
    assert_eq!(beside(pool("default"), spot(), web().selecting(CAPACITY_TYPE, ON_DEMAND)), "fake-2");
    assert_eq!(beside(pool("default"), spot(), web().selecting(CAPACITY_TYPE, SPOT)), "fake-3");
}

/// What can be had on demand in one zone only brings no daemon of another, though spot machines of the type are there.
#[test]
fn a_capacity_type_that_a_zone_does_not_have_keeps_the_daemons_of_that_zone_away() {
    let mut types = ladder(8);
    for kind in &mut types {
        let kept = |kind: &str, zone: &str| [(SPOT, "zone-a"), (ON_DEMAND, "zone-b")].contains(&(kind, zone));
        kind.offerings.retain(|one| kept(one.capacity_type().unwrap(), one.zone().unwrap()));
    }
    let on_demand = pool("default").requiring(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let scene = |pool| Scene::default().with_pool(pool, types.clone()).with_daemon("d", in_zone("zone-a"));
    let pod = || web().of(7500, 512);
    assert_eq!(scene(on_demand).place(&pod()).whole().cheapest()[0], "fake-8");
    assert_eq!(
        scene(pool("default")).place(&pod().selecting(CAPACITY_TYPE, ON_DEMAND)).whole().cheapest()[0],
        "fake-8"
    );
    assert!(scene(pool("default")).place(&pod().selecting(CAPACITY_TYPE, SPOT)).left() == 1, "beside the daemon");
}

#[test]
fn a_pod_with_a_label_that_the_pool_leaves_open_pays_for_the_daemons_with_that_label() {
    let racks = || pool("default").requiring(within(RACK, &["r1", "r2"]));
    let daemon = || heavy().selecting(RACK, "r1");
    assert_eq!(beside(racks(), daemon(), web().selecting(RACK, "r2")), "fake-2");
    assert_eq!(beside(racks(), daemon(), web().selecting(RACK, "r1")), "fake-3");
}

#[test]
fn pods_that_spread_over_zones_pay_in_the_zone_of_the_daemon() {
    let shape = web().of(1000, 512).spreading(even(ZONE, 1));
    let plan = buying(ladder(8)).with_daemon("d", in_zone("zone-b")).with_pods(pods("web", 3, &shape)).solve();
    let kind = |at: usize| (pinned(&plan, at, ZONE).unwrap(), plan.claims[at].instance_types[0].as_str());
    let mut kinds: Vec<_> = (0..plan.claims.len()).map(kind).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [("zone-a", "fake-2"), ("zone-b", "fake-3"), ("zone-c", "fake-2")]);
}

#[test]
fn a_pod_that_fits_beside_no_daemon_of_a_zone_goes_to_another_zone() {
    let plan = buying(ladder(4)).with_daemon("d", in_zone("zone-a")).place(&web().of(3500, 512));
    assert!(!may_have(&plan, ZONE, "zone-a"));
    assert!(may_have(&plan, ZONE, "zone-b") && may_have(&plan, ZONE, "zone-c"), "the others stay open");
}

#[test]
fn a_pod_that_fits_beside_no_daemon_with_alternatives_goes_to_where_none_of_them_holds() {
    let daemon = heavy().wanting(within(ZONE, &["zone-a"])).or_wanting(within(CAPACITY_TYPE, &[SPOT]));
    let plan = buying(ladder(4)).with_daemon("d", daemon).place(&web().of(3500, 512));
    assert!(!may_have(&plan, ZONE, "zone-a") && !may_have(&plan, CAPACITY_TYPE, SPOT));
    assert!(may_have(&plan, ZONE, "zone-b") && may_have(&plan, ZONE, "zone-c"), "the others stay open");
}

#[test]
fn a_pod_goes_to_where_no_daemon_takes_its_port() {
    let daemon = |shape: PodShape| shape.on_port(80);
    let web = web().on_port(80);
    let plan = buying(ladder(4)).with_daemon("d", daemon(in_zone("zone-a"))).place(&web);
    assert!(!may_have(&plan, ZONE, "zone-a"));
    let spot = daemon(heavy().selecting(CAPACITY_TYPE, SPOT));
    let plan = buying(ladder(4)).with_daemon("d", spot).place(&web);
    assert!(!may_have(&plan, CAPACITY_TYPE, SPOT));
    let racks = Scene::default().with_pool(pool("default").requiring(within(RACK, &["r1", "r2"])), ladder(4));
    let plan = racks.with_daemon("d", daemon(heavy().selecting(RACK, "r1"))).place(&web);
    assert!(!may_have(&plan, RACK, "r1"));
}

#[test]
fn a_pod_stays_away_from_several_daemons_at_once() {
    let scene = buying(ladder(4)).with_daemon("a", in_zone("zone-a")).with_daemon("b", in_zone("zone-b").on_port(80));
    let plan = scene.with_daemon("s", heavy().selecting(CAPACITY_TYPE, SPOT)).place(&web().of(3500, 512).on_port(80));
    assert_eq!(ZONES.map(|zone| may_have(&plan, ZONE, zone)), [false, false, true]);
    assert_eq!([SPOT, ON_DEMAND].map(|kind| may_have(&plan, CAPACITY_TYPE, kind)), [false, true]);
}

#[test]
fn of_daemons_with_a_zone_each_a_node_carries_one() {
    let mut scene = buying(ladder(4));
    for (zone, cpu) in [("zone-a", 1900), ("zone-b", 900), ("zone-c", 1400)] {
        scene = scene.with_daemon(zone, shape(cpu, 100).selecting(ZONE, zone));
    }
    let plan = scene.place(&web().of(1000, 512));
    assert_eq!(plan.cheapest(), ["fake-2"]);
    assert_eq!(ZONES.map(|zone| may_have(&plan, ZONE, zone)), [false, true, false]);
}

#[test]
fn a_node_is_kept_from_a_daemon_only_where_that_pays() {
    // Spot with the daemon's core costs two thirds of three cores, which is less than two cores on demand.
    let plan = buying(ladder(4)).with_daemon("d", heavy().selecting(CAPACITY_TYPE, SPOT)).place(&web().of(1000, 512));
    assert!(may_have(&plan, CAPACITY_TYPE, SPOT));
    // Half a core is there beside the pod anyway.
    let plan = buying(ladder(4)).with_daemon("d", shape(100, 100).selecting(ZONE, "zone-a")).place(&web());
    assert!(may_have(&plan, ZONE, "zone-a"));
    // A core more would be bought for it.
    let plan = buying(ladder(4)).with_daemon("d", in_zone("zone-a")).place(&web().of(1000, 512));
    assert!(!may_have(&plan, ZONE, "zone-a"));
    assert_eq!(plan.cheapest(), ["fake-2"]);
}

#[test]
fn a_zone_that_is_sold_out_now_may_be_had_when_the_machine_is_launched() {
    let kinds =
        || ladder(4).into_iter().map(|kind| kind.sold_out(|o| o.zone().is_some_and(|zone| &**zone == "zone-a")));
    let plan = buying(kinds().collect()).with_daemon("d", in_zone("zone-a")).place(&web().of(1000, 512));
    assert_eq!(plan.cheapest(), ["fake-2"]);
    assert!(!may_have(&plan, ZONE, "zone-a"));
}

#[test]
fn a_planned_node_is_kept_from_a_daemon_for_the_sake_of_a_later_pod() {
    // One node only: the second pod can be nowhere else.
    let one = Scene::default().with_pool(pool("default").limited("nodes", 1), ladder(4));
    let scene = one.with_daemon("d", shape(100, 100).selecting(ZONE, "zone-a").on_port(80));
    let plan = scene.with_pods(pods("a", 1, &web())).with_pods(pods("b", 1, &web().of(200, 100).on_port(80))).solve();
    assert!(!may_have(&plan, ZONE, "zone-a"));
}

#[test]
fn the_label_of_a_node_that_is_kept_from_a_daemon_is_not_the_daemons() {
    let newer = || pool("default").requiring(says("example.com/generation", Gt, &["5"]));
    let scene = |daemon: PodShape| Scene::default().with_pool(newer(), ladder(4)).with_daemon("d", daemon);
    let plan = scene(heavy().selecting("example.com/generation", "6")).place(&web().of(3500, 512)).whole();
    assert_eq!(&*plan.claims[0].draft.labels["example.com/generation"], "7");
    let plan = scene(heavy().wanting(says("example.com/generation", Exists, &[]))).place(&web().of(3500, 512));
    assert_eq!(plan.left(), 1, "that one comes to every node");
}

#[test]
fn where_even_a_node_without_the_daemon_is_too_small_the_pod_hears_of_that_node() {
    let plan = buying(ladder(4)).with_daemon("d", in_zone("zone-a")).place(&web().of(3950, 512));
    let why = plan.why();
    assert!(why.contains("need 3.95 cpu, the most there is is 3.9"), "{why}");
    let every = buying(ladder(4)).with_daemon("d", heavy().on_port(80)).place(&web().on_port(80)).why();
    assert!(every.contains("host port 80"), "{every}");
}

#[test]
fn a_nodeclaim_under_way_keeps_room_for_daemons_of_where_it_may_come_to_be() {
    let scene = buying(ladder(4)).with_daemon("d", shape(100, 100).selecting(ZONE, "zone-a"));
    let scene = scene.with_pods(pods("a", 1, &web()));
    let plan = scene.solve();
    assert!(may_have(&plan, ZONE, "zone-a"));
    let scene = scene.written(&plan);
    let mut small = scene.asking_for([pods("a", 1, &web()), pods("b", 1, &web().of(250, 100))].concat());
    assert_eq!(small.solve().whole().claims.len(), 0, "0.9 cores hold 0.75 of pods and 0.1 of a daemon");
    small.pods = [pods("a", 1, &web()), pods("b", 1, &web().of(350, 100))].concat();
    assert_eq!(small.solve().whole().claims.len(), 1, "0.9 cores hold 0.85 of pods and no 0.1 of a daemon");
}
