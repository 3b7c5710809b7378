//! Pods between their volumes and their spread.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::clouds::simulated::Conduct;
use crate::cluster::Cluster;
use crate::core::facts::samples::volume_claim;
use crate::core::facts::{ClaimDraft, Count, OwnerClaim, PodBudget, PodShape, Selector};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::labels;
use crate::core::requirements::Requirement;
use crate::sim::cluster::SimCluster;
use crate::sim::invariants::{Invariants, Journal, Violation};
use crate::sim::props;

/// What selects the pods of the set.
fn selector() -> Selector {
    Selector { labels: [("app".into(), "db".into())].into(), ..Selector::default() }
}

/// Pods of a set that spreads over zones, with one volume each.
fn set() -> Arc<PodShape> {
    let spread = TopologySpread {
        key: labels::ZONE.into(),
        max_skew: 1,
        min_domains: None,
        required: true,
        selector: Some(selector()),
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
            cluster.store().start_pod(&uid);
        }
    }
    cluster
}

/// One pod more, whose volume is in a zone.
fn one_more(cluster: &SimCluster, zone: Option<&str>) -> PodUid {
    let uid = props::add_pod(cluster, "more", &set());
    let mut store = cluster.store();
    let there = zone.map(|zone| vec![vec![Requirement::new(labels::ZONE, Operator::In, [Arc::from(zone)])]]);
    store.apply_volume(Volume {
        name: "disk".into(),
        deleting: false,
        driver: None,
        on_one_node: false,
        topologies: there,
    });
    store.apply_volume_claim(volume_claim("default", "data", Some("disk")));
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

/// How many promises are broken when the drain of zone a's node has lasted two hours: two pods of the set run there, one runs in b, and a fourth
/// waits, whose volume is in a zone; so many may be unavailable.
async fn broken_by_drain(zone: &str, unavailable: u64, grace: Option<Duration>) -> usize {
    broken_by_drain_of("one", Some("sim://a/m"), zone, unavailable, grace).await
}

/// The same where the node belongs to a NodeClaim, by its own word, and the status of the one that is drained names a machine.
async fn broken_by_drain_of(
    owner: &str,
    named: Option<&str>,
    zone: &str,
    unavailable: u64,
    grace: Option<Duration>,
) -> usize {
    let cluster = cluster([2, 1]);
    one_more(&cluster, Some(zone));
    let name = ClaimName::from("one");
    let draft = ClaimDraft { termination_grace: grace, ..props::draft(name.as_str()) };
    cluster.create_claim(&draft).await.unwrap();
    {
        let mut store = cluster.store();
        let uid = store.claims.get(&ClaimName::from(owner)).map_or_else(|| "gone".into(), |claim| claim.uid.clone());
        let owner = OwnerClaim { name: owner.into(), uid };
        store.update_node(&NodeName::from("a"), |node| {
            node.provider_id = Some("sim://a/m".into());
            node.owner_claims = vec![owner];
        });
        store.update_claim(&name, |claim| {
            claim.provider_id = named.map(Into::into);
            claim.finalizers.push(labels::TERMINATION_FINALIZER.into());
        });
        store.apply_budget(PodBudget {
            key: ObjectKey::new("default", "db"),
            selector: Some(selector()),
            min_available: None,
            max_unavailable: Some(Count::Pods(unavailable)),
            spares_unready: false,
        });
    }
    let uid = cluster.store().claims[&name].uid.clone();
    cluster.delete_claim(&name, &uid).await.unwrap();
    sleep(Duration::from_hours(2)).await;
    let invariants = Invariants::new(cluster, props::cloud(1, Conduct::default()), props::clock(), Journal::default());
    invariants.settled(&BTreeMap::new(), &BTreeMap::new());
    let settles = |broken: &&Violation| broken.objects.contains(&"one".to_owned());
    invariants.violations().iter().filter(settles).count()
}

#[tokio::test(start_paused = true)]
async fn a_drain_may_last_whose_budget_misses_pods_that_can_run_nowhere() {
    assert_eq!(broken_by_drain("a", 1, None).await, 0, "the fourth is torn, and there is no room for another");
    assert_eq!(broken_by_drain("b", 1, None).await, 1, "the fourth can run, then the next can go");
    assert_eq!(broken_by_drain("a", 2, None).await, 1, "the budget lets one more go");
    assert_eq!(broken_by_drain("a", 0, None).await, 1, "it is the budget itself that lets nobody go");
    assert_eq!(broken_by_drain("a", 1, Some(Duration::from_mins(10))).await, 1, "a deadline ends it");
}

#[tokio::test(start_paused = true)]
async fn whose_drain_it_is_does_not_depend_on_the_id_that_somebody_has_written() {
    for named in [None, Some("sim://nowhere/m-0"), Some("sim://a/m")] {
        assert_eq!(broken_by_drain_of("one", named, "a", 1, None).await, 0, "{named:?}");
    }
    assert_eq!(broken_by_drain_of("other", Some("sim://a/m"), "a", 1, None).await, 1, "another's pods hold up nobody");
}
