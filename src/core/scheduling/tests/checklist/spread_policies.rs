//! Karpenter's suite of spread constraints: which nodes a constraint looks at (`nodeAffinityPolicy`, `nodeTaintsPolicy`), and
//! `matchLabelKeys`, which whoever reads the pod folds into the selector (`cluster/convert/tests.rs`).

use super::super::build::*;
use super::words::*;
use crate::core::facts::{PodShape, PolicyHonor, TopologySpread};
use crate::core::labels::{CAPACITY_TYPE, ON_DEMAND, SPOT, ZONE};
use crate::core::requirements::Operator::NotIn;

const RACK: &str = "example.com/rack";

fn by_rack(affinity: PolicyHonor, taints: PolicyHonor) -> PodShape {
    let spread = TopologySpread { node_affinity_policy: affinity, node_taints_policy: taints, ..even(RACK, 1) };
    web().spreading(spread)
}

/// Two racks on nodes that are full, and a pool of a third rack.
fn racks(change: impl Fn(crate::core::facts::Node) -> crate::core::facts::Node) -> Scene {
    let scene = Scene::default().with_pool(pool("default").labelled(RACK, "three"), types());
    let full = |rack: &str| change(node(rack, 1, 1, &[(RACK, rack)]).with_room(0));
    scene.with_node(full("one")).with_node(full("two"))
}

#[test]
fn tainted_nodes_are_domains_unless_taints_are_honoured() {
    let tainted = || racks(|node| node.tainted(taint("team")));
    let plan = tainted().with_pods(pods("web", 5, &by_rack(PolicyHonor::Honor, PolicyHonor::Ignore))).solve();
    assert_eq!((plan.placed(), plan.left()), (1, 4));
    let plan = tainted().with_pods(pods("web", 5, &by_rack(PolicyHonor::Honor, PolicyHonor::Honor))).solve();
    assert_eq!((plan.placed(), plan.left()), (5, 0));
}

#[test]
fn tainted_pools_are_domains_unless_taints_are_honoured() {
    let scene = || {
        let tainted = pool("tainted").labelled(RACK, "two").tainted(taint("team"));
        Scene::default().with_pool(pool("open").labelled(RACK, "one"), types()).with_pool(tainted, types())
    };
    let plan = scene().with_pods(pods("web", 2, &by_rack(PolicyHonor::Honor, PolicyHonor::Ignore))).solve();
    assert_eq!((plan.placed(), plan.left()), (1, 1));
    let plan = scene().with_pods(pods("web", 2, &by_rack(PolicyHonor::Honor, PolicyHonor::Honor))).solve();
    assert_eq!((plan.placed(), plan.left()), (2, 0));
}

#[test]
fn pools_that_share_a_domain_count_once() {
    let tainted = |name: &str, racks: &[&str], key: &str| pool(name).requiring(within(RACK, racks)).tainted(taint(key));
    let scene = Scene::default()
        .with_pool(tainted("a", &["one", "two"], "team-a"), types())
        .with_pool(tainted("b", &["two", "three"], "team-b"), types());
    let honest = by_rack(PolicyHonor::Honor, PolicyHonor::Honor).tolerating("team-a");
    assert_eq!(scene.round(pods("web", 4, &honest)).skew(RACK, "web"), [2, 2]);
}

#[test]
fn nodes_that_the_pod_may_not_use_are_domains_when_affinity_is_ignored() {
    let scene = || {
        racks(|mut node| {
            node.labels.insert("example.com/old".into(), "yes".into());
            node
        })
    };
    let want = |policy| by_rack(policy, PolicyHonor::Ignore).wanting(within(RACK, &["three"]));
    let plan = scene().with_pods(pods("web", 5, &want(PolicyHonor::Ignore))).solve();
    assert_eq!((plan.placed(), plan.left()), (1, 4));
    let plan = scene().with_pods(pods("web", 5, &want(PolicyHonor::Honor))).solve();
    assert_eq!((plan.placed(), plan.left()), (5, 0));
}

/// One pod runs on spot in zone-a.
fn one_runs_on_spot() -> Scene {
    let old = node("old", 1, 1, &[(CAPACITY_TYPE, SPOT), (ZONE, "zone-a")]).with_room(1);
    Scene::new().with_node(old).running("first", "old", &web().of(10, 10))
}

#[test]
fn pods_of_other_kinds_do_not_count_for_capacity_types() {
    let old = node("old", 1, 1, &[(CAPACITY_TYPE, SPOT)]).with_room(1);
    let scene = Scene::new().with_node(old).running("other", "old", &app("db").of(10, 10));
    let scene = scene.round(pods("web", 5, &web().spreading(even(CAPACITY_TYPE, 1))));
    assert_eq!(scene.skew(CAPACITY_TYPE, "web"), [2, 3]);
}

#[test]
fn affinity_that_leaves_one_domain_leaves_one_domain() {
    let bound = web().spreading(even(CAPACITY_TYPE, 1)).wanting(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let scene = one_runs_on_spot().round(pods("web", 5, &bound));
    assert_eq!(scene.skew(CAPACITY_TYPE, "web"), [1, 5]);
}

#[test]
fn affinity_to_another_key_leaves_out_nodes_that_do_not_meet_it() {
    // The pod on spot stands in a zone that the new pods may not use: it does not count for them.
    let bound = web().spreading(even(CAPACITY_TYPE, 1)).wanting(within(ZONE, &["zone-b"]));
    let scene = one_runs_on_spot().asking_for(pods("web", 4, &bound));
    let plan = scene.solve().whole();
    let spot: usize = (0..plan.claims.len())
        .filter(|at| pinned(&plan, *at, CAPACITY_TYPE) == Some(SPOT))
        .map(|at| plan.claims[at].pods.len())
        .sum();
    assert_eq!(spot, 2);
}

#[test]
fn revisions_that_differ_in_a_label_spread_for_themselves() {
    // What `matchLabelKeys: [revision]` comes to.
    let of = |revision: &str| {
        let mut one = web().of(100, 100);
        one.labels.insert("revision".into(), revision.into());
        one.spreading(spread(crate::core::labels::HOSTNAME, 1, &[("app", "web"), ("revision", revision)]))
    };
    let scene = Scene::new().with_pods(pods("a", 2, &of("1"))).with_pods(pods("b", 2, &of("2")));
    assert_eq!(scene.solve().whole().per_node(), [2, 2]);
}

#[test]
fn a_node_counts_for_a_constraint_only_where_it_is_in_a_domain_of_all() {
    // The nodes of the first two racks are full. Where they are in no zone, kube-scheduler does not see them, and the third rack is the only one.
    let both = by_rack(PolicyHonor::Honor, PolicyHonor::Ignore).spreading(even(ZONE, 1));
    let zoned = |zone: Option<&str>| {
        let scene = racks(|mut node| {
            node.labels.extend(zone.map(|zone| (ZONE.into(), zone.into())));
            node
        });
        scene.with_pods(pods("web", 6, &both)).solve()
    };
    assert_eq!((zoned(Some("zone-a")).placed(), zoned(None).placed()), (1, 6));
}

#[test]
fn pods_on_nodes_without_one_of_the_labels_count_for_none_of_the_constraints() {
    let both = by_rack(PolicyHonor::Honor, PolicyHonor::Ignore).spreading(even(ZONE, 1));
    let plan = |zone: &[(&str, &str)]| {
        let labels: Vec<(&str, &str)> = zone.iter().copied().chain([(RACK, "one")]).collect();
        let scene = Scene::default().with_pool(pool("default").requiring(within(RACK, &["one", "two"])), types());
        let scene = scene.with_node(node("there", 8, 16, &labels).with_room(2));
        let scene = scene.running("a", "there", &web()).running("b", "there", &web());
        let scene = scene.with_pods(pods("web", 4, &both));
        let plan = scene.solve().whole();
        scene.after(&plan).skew(RACK, "web")
    };
    // Two are in rack one already: four more make it three and three, or two more each where those are not seen.
    assert_eq!((plan(&[(ZONE, "zone-a")]), plan(&[])), (vec![3, 3], vec![2, 4]));
}

/// Nodes of the pool that excludes their family are no domain to the picky pods, so that all of them may be in the one zone that they have.
#[test]
fn nodes_of_a_pool_that_excludes_what_a_pod_selects_are_no_domains_to_it() {
    let family = |name: &str| instance_type(name, 8, 32, 0.4).labelled("family", &[name]);
    let types = || vec![family("s"), family("c"), family("m")];
    let scene = Scene::default()
        .with_pool(pool("one-zone").requiring(within(ZONE, &[ZONES[0]])), types())
        .with_pool(pool("others").requiring(says("family", NotIn, &["s"])), types())
        .with_pods(pods("web", 3, &web().spreading(even(ZONE, 1))))
        .with_pods(pods(
            "picky",
            9,
            &app("picky").selecting("family", "s").spreading(spread(ZONE, 3, &[("app", "picky")])),
        ));
    scene.plan().whole();
}
