//! The ledger counts right, stays small, and sees what must not happen.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Ledger, SAMPLES};
use crate::clouds::Cloud;
use crate::clouds::simulated::{Conduct, Simulated};
use crate::cluster::{Cluster, NodePatch};
use crate::core::facts::OwnerClaim;
use crate::core::ids::NodeName;
use crate::sim::cluster::SimCluster;
use crate::sim::props;

fn ledger() -> (SimCluster, Simulated, Ledger) {
    let cluster = props::cluster(1);
    let cloud = props::cloud(1, Conduct::default());
    let ledger = Ledger::new(cluster.clone(), cloud.clone());
    tokio::spawn(ledger.clone().run());
    (cluster, cloud, ledger)
}

async fn moment() {
    sleep(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_needs_a_node_with_room() {
    let (cluster, _, ledger) = ledger();
    cluster.store().create_node(props::node("n", "a", 1_000, 1_024)).unwrap();
    let shape = Arc::new(props::shape("web", 600, 64));
    let (one, two) = (props::add_pod(&cluster, "one", &shape), props::add_pod(&cluster, "two", &shape));
    cluster.store().bind(&one, &NodeName::from("n"));
    moment().await;
    assert_eq!(ledger.violations(), Vec::<String>::new());
    cluster.store().bind(&two, &NodeName::from("n"));
    moment().await;
    assert_eq!(ledger.violations(), ["pod default/two was bound to node n, which has no room for it"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_has_one_node_and_a_machine_has_a_claim() {
    let (cluster, cloud, ledger) = ledger();
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    for name in ["a", "b"] {
        let node = cluster.store().create_node(props::node(name, "a", 1_000, 1_024)).unwrap();
        let own = NodePatch {
            version: Some(node.version.clone()),
            owner: Some(OwnerClaim::of(&claim)),
            ..Default::default()
        };
        cluster.patch_node(&node.name, &own).await.unwrap();
    }
    moment().await;
    assert_eq!(ledger.violations(), ["NodeClaim one has 2 nodes"]);
    cloud.create(&props::launch(&claim, 4)).await.unwrap();
    assert_eq!(ledger.close(1, &|_| Vec::new()).violations.len(), 1);
    cluster.delete_claim(&claim.name, &claim.uid).await.unwrap();
    let outcome = ledger.close(1, &|_| Vec::new());
    assert!(outcome.violations[1].contains("runs at the end and belongs to no NodeClaim"), "{:?}", outcome.violations);
}

#[tokio::test(start_paused = true)]
async fn money_is_counted_from_launch_to_end() {
    let (cluster, cloud, ledger) = ledger();
    let claim = cluster.create_claim(&props::draft("one")).await.unwrap();
    let machine = cloud.create(&props::launch(&claim, 4)).await.unwrap();
    let price = cloud.machines()[0].price;
    sleep(Duration::from_hours(2)).await;
    cloud.delete(&machine.id).await.unwrap();
    sleep(Duration::from_hours(3)).await;
    let outcome = ledger.close(1, &|_| Vec::new());
    assert!((outcome.price_total / price - 2.0).abs() < 0.01, "{} at {price}", outcome.price_total);
    assert!((outcome.price_peak_per_hour - price).abs() < 1e-9);
    assert!(outcome.nodes[0].gone.is_some());
    assert!(outcome.samples.last().unwrap().price_per_hour.abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_long_history_stays_small_and_keeps_its_ends() {
    let (cluster, _, ledger) = ledger();
    let shape = Arc::new(props::shape("web", 600, 64));
    for i in 0..6_000 {
        let uid = props::add_pod(&cluster, &format!("pod-{i}"), &shape);
        sleep(Duration::from_secs(30)).await;
        cluster.store().remove_pod(&uid);
        sleep(Duration::from_secs(30)).await;
    }
    let outcome = ledger.close(1, &|_| Vec::new());
    assert!(outcome.samples.len() <= SAMPLES && outcome.samples.len() > SAMPLES / 4, "{}", outcome.samples.len());
    assert!(outcome.samples[0].at_seconds < 60.0);
    assert!(outcome.samples.last().unwrap().at_seconds > 5_990.0 * 60.0);
    assert!(outcome.samples.windows(2).all(|pair| pair[0].at_seconds <= pair[1].at_seconds));
    assert_eq!((outcome.pods_total, outcome.pods_bound), (6_000, 0));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_month_does_not_vanish_because_of_a_busy_day() {
    let (cluster, _, ledger) = ledger();
    let shape = Arc::new(props::shape("web", 100, 64));
    for day in 0..30 {
        props::add_pod(&cluster, &format!("quiet-{day}"), &shape);
        sleep(Duration::from_hours(24)).await;
    }
    for second in 0..20_000 {
        props::add_pod(&cluster, &format!("busy-{second}"), &shape);
        sleep(Duration::from_secs(5)).await;
    }
    let outcome = ledger.close(1, &|_| Vec::new());
    assert!(outcome.samples.len() <= SAMPLES, "{}", outcome.samples.len());
    let quiet = outcome.samples.iter().filter(|sample| sample.at_seconds < 30.0 * 86_400.0).count();
    assert!(quiet >= 30, "{quiet} samples of thirty quiet days");
}
