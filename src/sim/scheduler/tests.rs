//! The scheduler's stand-in under a paused clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Rhythm, Scheduler};
use crate::core::facts::{AffinityTerm, Effect, HostPort, PodShape, PolicyHonor, Selector, Taint, TopologySpread};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels;
use crate::sim::cluster::SimCluster;
use crate::sim::props::{add_pod, cluster, node, place_of, shape};
use crate::sim::seed::Seed;

/// A cluster whose scheduler runs.
fn world(nodes: usize) -> SimCluster {
    let cluster = cluster(1);
    for i in 0..nodes {
        let zone = ["a", "b", "c"][i % 3];
        cluster.store().create_node(node(&format!("n{i}"), zone, 4_000, 8_192)).unwrap();
    }
    tokio::spawn(Scheduler::new(cluster.clone(), Rhythm::default(), Seed(1)).run());
    cluster
}

async fn moment() {
    sleep(Duration::from_secs(2)).await;
}

fn add(cluster: &SimCluster, shape: PodShape, count: usize) -> Vec<PodUid> {
    let shape = Arc::new(shape);
    let app = shape.labels["app"].clone();
    (0..count).map(|i| add_pod(cluster, &format!("{app}-{i}"), &shape)).collect()
}

fn by_node(cluster: &SimCluster, pods: &[PodUid]) -> BTreeMap<NodeName, usize> {
    let mut counts = BTreeMap::new();
    for name in pods.iter().filter_map(|uid| place_of(cluster, uid)) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn unschedulable(cluster: &SimCluster, pods: &[PodUid]) -> usize {
    pods.iter().filter(|uid| cluster.store().pods[*uid].pod.unschedulable).count()
}

fn selector(app: &str) -> Selector {
    Selector { labels: [("app".into(), app.into())].into(), expressions: Vec::new() }
}

fn term(app: &str, key: &str) -> AffinityTerm {
    AffinityTerm {
        key: key.into(),
        selector: Some(selector(app)),
        namespaces: vec!["default".into()],
        namespace_selector: None,
    }
}

fn spread(app: &str, key: &str) -> TopologySpread {
    TopologySpread {
        key: key.into(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: Some(selector(app)),
        node_affinity_policy: PolicyHonor::Honor,
        node_taints_policy: PolicyHonor::Ignore,
    }
}

#[tokio::test(start_paused = true)]
async fn what_fits_is_bound_and_the_rest_is_marked_until_there_is_room() {
    let cluster = world(1);
    let pods = add(&cluster, shape("web", 1_000, 512), 6);
    moment().await;
    assert_eq!(by_node(&cluster, &pods).values().sum::<usize>(), 4);
    assert_eq!(unschedulable(&cluster, &pods), 2);
    cluster.store().create_node(node("late", "a", 1_000, 1_024)).unwrap();
    moment().await;
    assert_eq!(by_node(&cluster, &pods)[&NodeName::from("late")], 1);
    let gone = pods.iter().find(|uid| place_of(&cluster, uid) == Some(NodeName::from("n0"))).unwrap();
    cluster.store().remove_pod(gone);
    moment().await;
    assert_eq!(by_node(&cluster, &pods).values().sum::<usize>(), 5);
}

#[tokio::test(start_paused = true)]
async fn higher_priority_goes_first() {
    let cluster = cluster(1);
    let low = add(&cluster, shape("low", 3_000, 64), 1);
    let high = add(&cluster, PodShape { priority: 10, ..shape("high", 3_000, 64) }, 1);
    cluster.store().create_node(node("n", "a", 4_000, 8_192)).unwrap();
    tokio::spawn(Scheduler::new(cluster.clone(), Rhythm::default(), Seed(1)).run());
    moment().await;
    assert!(place_of(&cluster, &high[0]).is_some());
    assert!(place_of(&cluster, &low[0]).is_none());
}

#[tokio::test(start_paused = true)]
async fn taints_keep_pods_away_until_they_are_lifted() {
    let cluster = world(0);
    let mut tainted = node("n", "a", 4_000, 8_192);
    tainted.taints.push(Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute));
    cluster.store().create_node(tainted).unwrap();
    let pods = add(&cluster, shape("web", 100, 64), 3);
    moment().await;
    assert_eq!(unschedulable(&cluster, &pods), 3);
    cluster.store().update_node(&NodeName::from("n"), |node| node.taints.clear());
    moment().await;
    assert_eq!(by_node(&cluster, &pods)[&NodeName::from("n")], 3);
    cluster.store().update_node(&NodeName::from("n"), |node| node.cordoned = true);
    let more = add(&cluster, shape("more", 100, 64), 1);
    moment().await;
    assert_eq!(unschedulable(&cluster, &more), 1);
}

#[tokio::test(start_paused = true)]
async fn a_nomination_is_honoured_and_its_room_is_kept_from_equals() {
    let cluster = world(2);
    let own = NodeName::from("n1");
    cluster.store().update_node(&own, |node| node.cordoned = true);
    cluster.store().update_node(&NodeName::from("n0"), |node| node.cordoned = true);
    let planned = add(&cluster, shape("planned", 4_000, 64), 1);
    moment().await;
    cluster.store().nominate(&ObjectKey::new("default", "planned-0"), &planned[0], Some(&own)).unwrap();
    moment().await;
    // A greedy pod comes first in no queue, but must not take the room that is kept.
    cluster.store().update_node(&own, |node| {
        node.cordoned = false;
        node.taints.push(Taint::new("late", Effect::NoSchedule));
    });
    let greedy = PodShape {
        tolerations: vec![crate::core::facts::Toleration {
            key: "late".into(),
            operator: crate::core::facts::TolerationOperator::Exists,
            value: "".into(),
            effect: None,
            seconds: None,
        }],
        ..shape("greedy", 1_000, 64)
    };
    let equals = add(&cluster, greedy.clone(), 1);
    moment().await;
    assert!(place_of(&cluster, &equals[0]).is_none(), "the room is kept");
    cluster.store().update_node(&own, |node| node.taints.clear());
    moment().await;
    assert_eq!(place_of(&cluster, &planned[0]), Some(own.clone()));
    assert_eq!(cluster.store().pods[&planned[0]].pod.nominated, None, "bound, so no longer nominated");
}

#[tokio::test(start_paused = true)]
async fn kept_room_does_not_stop_higher_priority_and_is_given_up_with_the_nomination() {
    let cluster = world(0);
    let own = NodeName::from("n");
    let mut tainted = node("n", "a", 4_000, 8_192);
    tainted.taints.push(Taint::new("planned-only", Effect::NoSchedule));
    cluster.store().create_node(tainted).unwrap();
    let planned = add(&cluster, shape("planned", 4_000, 64), 1);
    let key = ObjectKey::new("default", "planned-0");
    cluster.store().nominate(&key, &planned[0], Some(&own)).unwrap();
    let anywhere = vec![crate::core::facts::Toleration {
        key: "".into(),
        operator: crate::core::facts::TolerationOperator::Exists,
        value: "".into(),
        effect: None,
        seconds: None,
    }];
    let equal = add(&cluster, PodShape { tolerations: anywhere.clone(), ..shape("equal", 1_000, 64) }, 1);
    let high = add(&cluster, PodShape { tolerations: anywhere, priority: 5, ..shape("high", 1_000, 64) }, 1);
    moment().await;
    assert_eq!(place_of(&cluster, &high[0]), Some(own.clone()));
    assert_eq!(place_of(&cluster, &equal[0]), None);
    cluster.store().nominate(&key, &planned[0], None).unwrap();
    moment().await;
    assert_eq!(place_of(&cluster, &equal[0]), Some(own));
}

#[tokio::test(start_paused = true)]
async fn spread_is_kept_at_every_step() {
    let cluster = world(6);
    let spreading = PodShape { spreads: vec![spread("web", labels::ZONE)], ..shape("web", 100, 64) };
    let pods = add(&cluster, spreading, 20);
    moment().await;
    let store = cluster.store();
    let mut zones: BTreeMap<&str, i32> = BTreeMap::new();
    for uid in &pods {
        let node = store.pods[uid].pod.node.as_ref().unwrap();
        *zones.entry(&store.nodes[node].labels[labels::ZONE]).or_default() += 1;
    }
    assert_eq!(zones.values().sum::<i32>(), 20);
    assert!(zones.values().max().unwrap() - zones.values().min().unwrap() <= 1, "{zones:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_domain_stops_a_spread_until_a_new_one_opens() {
    let cluster = world(0);
    cluster.store().create_node(node("a", "a", 200, 8_192)).unwrap();
    cluster.store().create_node(node("b", "b", 8_000, 8_192)).unwrap();
    let spreading = PodShape { spreads: vec![spread("web", labels::ZONE)], ..shape("web", 100, 64) };
    let pods = add(&cluster, spreading, 10);
    moment().await;
    assert_eq!(by_node(&cluster, &pods), BTreeMap::from([(NodeName::from("a"), 2), (NodeName::from("b"), 3)]));
    cluster.store().create_node(node("a2", "a", 8_000, 8_192)).unwrap();
    moment().await;
    assert_eq!(by_node(&cluster, &pods).values().sum::<usize>(), 10);
}

#[tokio::test(start_paused = true)]
async fn anti_affinity_holds_both_ways() {
    let cluster = world(3);
    let lonely = PodShape {
        anti_affinity: vec![term("lonely", labels::HOSTNAME), term("web", labels::HOSTNAME)],
        ..shape("lonely", 100, 64)
    };
    let alone = add(&cluster, lonely, 4);
    moment().await;
    assert_eq!(by_node(&cluster, &alone).into_values().collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(unschedulable(&cluster, &alone), 1);
    let web = add(&cluster, shape("web", 100, 64), 1);
    moment().await;
    assert_eq!(unschedulable(&cluster, &web), 1, "those who are there keep it away");
}

#[tokio::test(start_paused = true)]
async fn affinity_gathers_and_its_first_pod_may_choose() {
    let cluster = world(6);
    let group = PodShape { affinity: vec![term("group", labels::ZONE)], ..shape("group", 100, 64) };
    let pods = add(&cluster, group, 8);
    let follower = PodShape { affinity: vec![term("nobody", labels::ZONE)], ..shape("follower", 100, 64) };
    let lost = add(&cluster, follower, 1);
    moment().await;
    {
        let store = cluster.store();
        let zone = |uid: &PodUid| store.nodes[store.pods[uid].pod.node.as_ref().unwrap()].labels[labels::ZONE].clone();
        let first = zone(&pods[0]);
        assert!(pods.iter().all(|uid| zone(uid) == first));
    }
    assert_eq!(unschedulable(&cluster, &lost), 1);
    add(&cluster, shape("nobody", 100, 64), 1);
    moment().await;
    assert!(place_of(&cluster, &lost[0]).is_some(), "a companion has come");
}

#[tokio::test(start_paused = true)]
async fn a_host_port_is_taken_once_per_node() {
    let cluster = world(2);
    let port = HostPort { ip: "0.0.0.0".into(), port: 80, protocol: "TCP".into() };
    let pods = add(&cluster, PodShape { host_ports: vec![port], ..shape("web", 100, 64) }, 3);
    moment().await;
    assert_eq!(by_node(&cluster, &pods).into_values().collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_other_schedulers_are_left_alone_but_counted() {
    let cluster = world(1);
    let other = add(&cluster, PodShape { scheduler: Some("mine".into()), ..shape("other", 3_000, 64) }, 1);
    moment().await;
    assert_eq!(place_of(&cluster, &other[0]), None);
    assert_eq!(unschedulable(&cluster, &other), 0);
    cluster.store().bind(&other[0], &NodeName::from("n0"));
    let pods = add(&cluster, shape("web", 2_000, 64), 1);
    moment().await;
    assert_eq!(unschedulable(&cluster, &pods), 1);
}

#[tokio::test(start_paused = true)]
async fn many_pods_take_the_time_of_their_bindings() {
    let cluster = world(100);
    let mut pods = Vec::new();
    for app in 0..20 {
        pods.extend(add(&cluster, shape(&format!("app{app}"), 50 + app, 64), 100));
    }
    let started = Instant::now();
    while pods.iter().any(|uid| place_of(&cluster, uid).is_none()) {
        sleep(Duration::from_millis(100)).await;
        assert!(started.elapsed() < Duration::from_secs(10));
    }
    assert!(started.elapsed() >= Duration::from_secs(3), "2 ms a pod");
    let counts = by_node(&cluster, &pods);
    assert!(*counts.values().max().unwrap() <= 30, "{counts:?}");
}

/// Five thousand pods of fifty shapes, a third of them with topology rules, find their places among 250 nodes within the time that their
/// bindings take, while a thousand more find none.
#[tokio::test(start_paused = true)]
async fn thousands_of_pods_find_their_places_at_the_pace_of_bindings() {
    let cluster = world(250);
    cluster.store().update_node(&NodeName::from("n0"), |node| node.cordoned = true);
    for app in 0..50 {
        let name = format!("app{app}");
        let spreads = match app % 6 {
            0 => vec![spread(&name, labels::ZONE)],
            1 => vec![spread(&name, labels::HOSTNAME)],
            _ => Vec::new(),
        };
        add(&cluster, PodShape { spreads, ..shape(&name, 100 + app, 64) }, 100);
    }
    let big = add(&cluster, shape("big", 64_000, 64), 1_000);
    sleep(Duration::from_secs(12)).await;
    assert_eq!(unschedulable(&cluster, &big), 1_000);
    let bound: usize = cluster.store().bound.values().map(std::collections::BTreeSet::len).sum();
    assert_eq!(bound, 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_nominated_pod_is_tried_again_when_the_emptiest_domain_has_filled_up() {
    let cluster = world(0);
    cluster.store().create_node(node("a", "a", 8_000, 8_192)).unwrap();
    cluster.store().create_node(node("b", "b", 8_000, 8_192)).unwrap();
    let spreading = Arc::new(PodShape { spreads: vec![spread("web", labels::ZONE)], ..shape("web", 100, 64) });
    for (at, home) in ["a", "a", "a", "b", "b", "b"].into_iter().enumerate() {
        let name = format!("web-{at}");
        let uid = add_pod(&cluster, &name, &spreading);
        cluster.store().nominate(&ObjectKey::new("default", name.as_str()), &uid, Some(&NodeName::from(home))).unwrap();
    }
    cluster.store().update_node(&NodeName::from("b"), |node| node.cordoned = true);
    moment().await;
    assert_eq!(cluster.store().bound.len(), 1, "a alone may be one ahead");
    cluster.store().update_node(&NodeName::from("b"), |node| node.cordoned = false);
    moment().await;
    let counts: Vec<_> = cluster.store().bound.values().map(std::collections::BTreeSet::len).collect();
    assert_eq!(counts, [3, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_nominated_pod_gets_its_turn_when_another_pod_has_made_it_legal() {
    let cluster = world(2);
    let spreading = |cpu| PodShape { spreads: vec![spread("web", labels::ZONE)], ..shape("web", cpu, 64) };
    let filler = add(&cluster, shape("filler", 3_000, 64), 1);
    assert!(cluster.store().bind(&filler[0], &NodeName::from("n1")));
    let first = add(&cluster, spreading(500), 1);
    assert!(cluster.store().bind(&first[0], &NodeName::from("n0")));
    let planned = add_pod(&cluster, "planned", &Arc::new(spreading(3_000)));
    let own = NodeName::from("n0");
    cluster.store().nominate(&ObjectKey::new("default", "planned"), &planned, Some(&own)).unwrap();
    moment().await;
    assert_eq!(place_of(&cluster, &planned), None, "its zone is one ahead, and the other one has no room");
    let second = add_pod(&cluster, "second", &Arc::new(spreading(500)));
    moment().await;
    assert_eq!(place_of(&cluster, &second), Some(NodeName::from("n1")));
    assert_eq!(place_of(&cluster, &planned), Some(own));
}

#[tokio::test(start_paused = true)]
async fn a_nominated_pod_that_found_no_place_takes_the_first_that_becomes_free() {
    let cluster = world(2);
    let big = add(&cluster, shape("big", 4_000, 512), 2);
    moment().await;
    let waiting = add(&cluster, shape("web", 4_000, 512), 1)[0].clone();
    let node = place_of(&cluster, &big[0]).unwrap();
    let key = cluster.store().pods[&waiting].pod.key.clone();
    cluster.store().nominate(&key, &waiting, Some(&node)).unwrap();
    moment().await;
    assert_eq!(place_of(&cluster, &waiting), None);
    let other = place_of(&cluster, &big[1]).unwrap();
    cluster.store().remove_pod(&big[1]);
    moment().await;
    assert_eq!(place_of(&cluster, &waiting), Some(other));
}

#[tokio::test(start_paused = true)]
async fn room_whose_pod_goes_elsewhere_is_noticed_by_nobody_until_a_nomination_goes_or_five_minutes_are_over() {
    for shown_again in [true, false] {
        let cluster = world(2);
        let (here, there) = (NodeName::from("n0"), NodeName::from("n1"));
        let own = |name: &str| ObjectKey::new("default", name);
        let filler = add(&cluster, shape("filler", 3_000, 64), 1);
        assert!(cluster.store().bind(&filler[0], &there));
        cluster.store().update_node(&there, |node| node.cordoned = true);
        // It may not go to the node that keeps room for it, as somebody has said since.
        let picky = PodShape {
            node_selector: [(labels::HOSTNAME.into(), "n1".into())].into_iter().collect(),
            ..shape("kept", 1_000, 64)
        };
        let kept = add_pod(&cluster, "kept", &Arc::new(picky));
        cluster.store().nominate(&own("kept"), &kept, Some(&here)).unwrap();
        let waiting = add_pod(&cluster, "waiting", &Arc::new(shape("waiting", 3_500, 64)));
        moment().await;
        cluster.store().update_node(&there, |node| node.cordoned = false);
        moment().await;
        assert_eq!(place_of(&cluster, &kept), Some(there));
        assert_eq!(place_of(&cluster, &waiting), None, "there is room, and nobody has said so");
        if shown_again {
            cluster.store().nominate(&own("waiting"), &waiting, Some(&here)).unwrap();
            cluster.store().nominate(&own("waiting"), &waiting, None).unwrap();
            moment().await;
        } else {
            sleep(Duration::from_secs(299)).await;
        }
        assert_eq!(place_of(&cluster, &waiting), Some(here));
    }
}
