//! What each NodePool lacks for a pod: all of it, with keys and values, and no remedy that would not be enough. Not in Karpenter's suites.

use super::super::super::{Datum, Partner, Reason};
use super::super::build::*;
use super::words::*;
use crate::core::facts::Pool;
use crate::core::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE};
use crate::core::requirements::Operator;

/// The sentences about the only pod.
fn said(scene: Scene, shape: &crate::core::facts::PodShape) -> Vec<String> {
    let plan = scene.place(shape);
    assert_eq!(plan.left(), 1, "{:#?}", plan.claims);
    plan.refused[0].reasons.iter().map(ToString::to_string).collect()
}

#[test]
fn a_label_that_no_type_has_is_named_with_what_there_is() {
    let says_all = said(buying(fake()), &web().selecting(ARCH, "s390x"));
    assert_eq!(
        says_all,
        [
            "NodePool default has no instance type with kubernetes.io/arch In [s390x] (there is kubernetes.io/arch In [amd64 arm64]); would fit if others were asked for, or the NodePool had more types"
        ]
    );
}

#[test]
fn labels_that_no_type_has_together_are_named_together() {
    let both = web().selecting(ARCH, "arm64").selecting(INSTANCE_TYPE, "small").selecting(ZONE, "zone-a");
    let says_all = said(buying(fake()), &both);
    let wanted = "has no instance type with kubernetes.io/arch In [arm64] and node.kubernetes.io/instance-type In [small] at once";
    let there = "(there is kubernetes.io/arch In [amd64] or node.kubernetes.io/instance-type In [arm])";
    assert_eq!(says_all.len(), 1, "{says_all:?}");
    assert!(says_all[0].contains(&format!("{wanted} {there}")), "{says_all:?}");
}

#[test]
fn labels_of_which_none_can_stay_are_all_named() {
    let lost = web().selecting(ARCH, "s390x").selecting(ZONE, "zone-z");
    let plan = buying(fake()).place(&lost);
    let fields = plan.refused[0].reasons[0].fields();
    assert_eq!(fields["blame"], Datum::Text("Each".into()));
    let Datum::List(labels) = &fields["labels"] else { panic!("{fields:?}") };
    let keys: Vec<&Datum> = labels.iter().map(|label| &label["key"]).collect();
    assert_eq!(keys, [&Datum::Text(ARCH.into()), &Datum::Text(ZONE.into())]);
}

#[test]
fn a_pool_says_all_that_it_lacks_and_no_remedy_that_is_not_enough() {
    let zoned = || from(pool("default").tainted(taint("team")).requiring(within(ZONE, &["zone-b"])));
    let all = said(zoned(), &web().of(100_000, 512).selecting(ZONE, "zone-c"));
    assert_eq!(all.len(), 1, "{all:?}");
    for part in [
        "has the taint team=",
        "; and it offers topology.kubernetes.io/zone In [zone-b]",
        "need 100 cpu",
        "all of this has to change",
    ] {
        assert!(all[0].contains(part), "{part}: {all:?}");
    }
    assert!(!all[0].contains("would fit"), "{all:?}");
    let one = said(zoned(), &web().selecting(ZONE, "zone-b"));
    assert!(one[0].ends_with("would fit with a toleration"), "{one:?}");
    // The same as data, one entry for each.
    let plan = zoned().place(&web().selecting(ZONE, "zone-c"));
    let Datum::List(parts) = &plan.refused[0].reasons[0].fields()["all"] else { panic!("{:?}", plan.refused) };
    let kinds: Vec<&Datum> = parts.iter().map(|part| &part["kind"]).collect();
    assert_eq!(kinds, [&Datum::Text("Taint".into()), &Datum::Text("Requirement".into())]);
}

#[test]
fn a_spread_is_not_blamed_for_a_label_that_no_node_has() {
    let all = said(buying(fake()), &web().selecting("example.com/team", "c").spreading(even(CAPACITY_TYPE, 1)));
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].contains("example.com/team"), "{all:?}");
    let all = said(buying(fake()), &web().selecting(ZONE, "zone-z").spreading(even(ZONE, 1)));
    assert_eq!(all.len(), 1, "{all:?}");
    // But of a key that nobody has it is said, together with what else is in the way.
    let all = said(buying(fake()), &web().of(100_000, 512).spreading(even("example.com/none", 1)));
    assert!(all[0].contains("100 cpu") && all[0].contains("topology key example.com/none"), "{all:?}");
    assert!(!all[0].contains("would fit"), "{all:?}");
}

#[test]
fn pools_that_are_static_or_on_their_way_out_say_so() {
    let fixed = Pool { replicas: Some(3), ..pool("fixed") };
    let gone = Pool { deleting: Some(jiff::Timestamp::UNIX_EPOCH), ..pool("gone") };
    let all = said(Scene::default().with_pool(fixed, fake()).with_pool(gone, fake()), &web());
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].starts_with("NodePool fixed is static") && all[1].starts_with("NodePool gone is being deleted"));
}

/// The partner of the first pod without a place.
fn partners(scene: &Scene) -> Vec<Partner> {
    let plan = scene.solve();
    let partner = |reason: &Reason| match reason {
        Reason::Affinity { partner, .. } => Some(partner.clone()),
        _ => None,
    };
    plan.refused.iter().filter_map(|refusal| refusal.reasons.iter().find_map(partner)).collect()
}

#[test]
fn pods_that_wait_for_each_other_are_named_in_their_cycle() {
    let waits = |own: &str, other: &str| app(own).near(those_of(other, HOSTNAME));
    let scene = Scene::new()
        .with_pods(pods("a", 1, &waits("a", "b")))
        .with_pods(pods("b", 1, &waits("b", "c")))
        .with_pods(pods("c", 1, &waits("c", "a")))
        .with_pods(pods("d", 1, &waits("d", "a")));
    let cycle = |names: [&str; 3]| Partner::Cycle(names.map(Into::into).to_vec());
    let (a, b, c) = ("default/a-00000", "default/b-00000", "default/c-00000");
    assert_eq!(partners(&scene), [cycle([a, b, c]), cycle([b, c, a]), cycle([c, a, b]), Partner::Waiting(a.into())]);
    let first = scene.solve().why();
    assert!(first.contains("(app=b) waits for itself: default/a-00000 waits for default/b-00000, which waits for default/c-00000, which waits for default/a-00000"), "{first}");
}

#[test]
fn an_affinity_to_nobody_says_whom_it_means_and_one_to_others_where_they_are() {
    let scene = Scene::new().with_pods(pods("web", 1, &web().near(those_of("absent", ZONE))));
    assert_eq!(partners(&scene), [Partner::Nobody]);
    assert!(scene.solve().why().contains("(app=absent)"), "{}", scene.solve().why());
    let nokey = Scene::new().with_pods(pods("web", 1, &web().near(those_of("web", "nobody/has"))));
    assert_eq!(partners(&nokey), [Partner::NoKey]);
    let away = from(pool("default").requiring(says(ZONE, Operator::In, &["zone-a"])))
        .with_node(node("old", 1, 1, &[(ZONE, "zone-b")]).with_room(1))
        .running("db", "old", &app("db"))
        .with_pods(pods("web", 1, &web().near(those_of("db", ZONE))));
    assert_eq!(partners(&away), [Partner::Elsewhere(vec!["topology.kubernetes.io/zone zone-b".into()])]);
}

#[test]
fn two_that_need_each_other_in_different_zones_are_both_named() {
    let scene = Scene::new()
        .with_pods(pods("a", 1, &app("a").selecting(ZONE, "zone-a").near(those_of("b", ZONE))))
        .with_pods(pods("b", 1, &app("b").selecting(ZONE, "zone-b").near(those_of("a", ZONE))));
    let why = scene.solve().why();
    let said = "waits for itself: default/a-00000 waits for default/b-00000, which waits for default/a-00000";
    assert!(why.contains(said), "{why}");
}

#[test]
fn nobody_is_said_to_be_there_only_where_nobody_runs_or_waits() {
    let near = web().near(those_of("db", ZONE));
    // One that is not for joiner to place now.
    let mut gated = Scene::new().with_pods(pods("web", 1, &near));
    let other = pod("db", 0, &app("db"));
    gated.snapshot.pods.insert(other.uid.clone(), other);
    assert_eq!(partners(&gated), [Partner::Unplanned("default/db".into())]);
    assert!(gated.solve().why().contains("such as default/db"), "{}", gated.solve().why());
    // One that the same plan places, on a node that is in no zone.
    let placed = Scene::new()
        .with_node(node("old", 1, 1, &[]))
        .with_pods(pods("db", 1, &app("db").of(100, 100).selecting(HOSTNAME, "old")))
        .with_pods(pods("web", 1, &near));
    assert_eq!(partners(&placed), [Partner::Elsewhere(vec![])]);
    assert!(placed.solve().why().contains("are where this pod cannot go"), "{}", placed.solve().why());
    // One that has no place itself.
    let refused = Scene::new().with_pods(pods("db", 1, &app("db").of(1_000_000, 100))).with_pods(pods("web", 1, &near));
    assert_eq!(partners(&refused), [Partner::Waiting("default/db-00000".into())]);
}
