//! Pods between their volumes and their spread.

use super::*;
use crate::core::facts::{PodShape, Selector, VolumeClaim};
use crate::core::ids::{NodeName, PodUid};
use crate::core::labels;
use crate::core::requirements::Requirement;
use crate::sim::cluster::SimCluster;
use crate::sim::props;

/// Pods of a set that spreads over zones, with one volume each.
fn set() -> Arc<PodShape> {
    let selector = Selector { labels: [("app".into(), "db".into())].into(), ..Selector::default() };
    let spread = TopologySpread {
        key: labels::ZONE.into(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: Some(selector),
        node_affinity_policy: PolicyHonor::Honor,
        node_taints_policy: PolicyHonor::Ignore,
    };
    Arc::new(PodShape { spreads: vec![spread], ..props::shape("db", 100, 128) })
}

/// Zones a and b, a node in each, and so many pods of the set there.
fn cluster(pods: [usize; 2]) -> SimCluster {
    let cluster = props::cluster(1);
    for (zone, pods) in ["a", "b"].into_iter().zip(pods) {
        cluster.store().create_node(props::node(zone, zone, 10_000, 10_240)).unwrap();
        for number in 0..pods {
            let uid = props::add_pod(&cluster, &format!("{zone}-{number}"), &set());
            cluster.store().bind(&uid, &NodeName::from(zone));
        }
    }
    cluster
}

/// One pod more, whose volume is in a zone.
fn one_more(cluster: &SimCluster, zone: Option<&str>) -> PodUid {
    let uid = props::add_pod(cluster, "more", &set());
    let key = ObjectKey::new("default", "data");
    let mut store = cluster.store();
    let there = zone.map(|zone| vec![vec![Requirement::new(labels::ZONE, Operator::In, [Arc::from(zone)])]]);
    store.apply_volume(Volume { name: "disk".into(), deleting: false, driver: None, topologies: there });
    let volume = Some("disk".into());
    store.apply_volume_claim(VolumeClaim { key, deleting: false, lost: false, class: None, volume, bound: true });
    let mut pod = Pod::clone(&store.pods[&uid].pod);
    pod.volume_claims = vec!["data".into()];
    store.pods.get_mut(&uid).unwrap().pod = Arc::new(pod);
    uid
}

fn is_torn_between(pods: [usize; 2], zone: Option<&str>) -> bool {
    let cluster = cluster(pods);
    let uid = one_more(&cluster, zone);
    let store = cluster.store();
    is_torn(&store, &store.pods[&uid].pod)
}

#[test]
fn a_pod_is_torn_when_its_volume_is_where_the_spread_lets_nobody_in() {
    assert!(is_torn_between([2, 1], Some("a")));
    assert!(!is_torn_between([2, 1], Some("b")), "it would even things out");
    assert!(!is_torn_between([1, 1], Some("a")), "one more is legal");
    assert!(!is_torn_between([2, 1], None), "it can go anywhere");
    assert!(!is_torn_between([2, 1], Some("c")), "a node there would be the first");
}
