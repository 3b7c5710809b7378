//! The simulated cloud keeps the bargain of the trait, and takes its liberties.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::time::sleep;

use super::{Change, Conduct, Simulated, SoldOutWindow};
use crate::clouds::catalog::generated;
use crate::clouds::{Cloud, Deletion, Error, LaunchRefused, LaunchSpec};
use crate::core::facts::{Claim, NodeClass, samples};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::repair::Policies;
use crate::core::resources::Resources;

fn cloud(conduct: Conduct) -> Simulated {
    Simulated::new(generated(), conduct, Arc::new(|| Timestamp::UNIX_EPOCH), Rng::with_seed(7))
}

fn spec(token: &str) -> LaunchSpec {
    let class = ClassRef { group: "karpenter.kwok.sh".into(), kind: "KWOKNodeClass".into(), name: "default".into() };
    let claim = Claim {
        name: ClaimName::from(token),
        uid: ClaimUid::from(token),
        labels: Labels::new(),
        requirements: Vec::new(),
        requests: Resources::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        class: class.clone(),
        ..samples::claim()
    };
    let class = NodeClass { reference: class, ..samples::class() };
    let candidates = generated().into_iter().filter(|kind| kind.name.as_str() == "c-2x-amd64-linux").map(Arc::new);
    LaunchSpec {
        token: claim.uid.clone(),
        claim: Arc::new(claim),
        class: Arc::new(class),
        candidates: candidates.collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_makes_one_machine() {
    let cloud = cloud(Conduct::default());
    let machine = cloud.create(&spec("t")).await.unwrap();
    assert_eq!(cloud.create(&spec("t")).await.unwrap(), machine);
    assert_eq!(cloud.find(&ClaimUid::from("t")).await.unwrap(), std::slice::from_ref(&machine));
    assert_eq!(cloud.get(&machine.id).await.unwrap().machine(), Some(machine.clone()));
    let zone = machine.labels[labels::ZONE].to_string();
    assert!(machine.id.as_str().starts_with(&format!("sim://{zone}/")));
    assert_eq!(&*machine.labels[labels::CAPACITY_TYPE], labels::SPOT, "the cheapest offering is taken");
    assert_eq!(machine.allocatable.get(&"cpu".into()), 1_900);
}

#[tokio::test(start_paused = true)]
async fn sold_out_offerings_are_found_out_by_trying() {
    let window = SoldOutWindow { until: Some(Duration::from_mins(1)), ..SoldOutWindow::default() };
    let zone_a = SoldOutWindow { zone: Some("test-zone-a".into()), ..SoldOutWindow::default() };
    let cloud = cloud(Conduct { sold_out: vec![window, zone_a], ..Conduct::default() });
    let refused = cloud.create(&spec("t")).await;
    let Err(Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(sold_out.len(), 8, "four zones, two capacity types");
    assert!(cloud.machines().is_empty());
    sleep(Duration::from_mins(1)).await;
    let machine = cloud.create(&spec("t")).await.unwrap();
    assert_ne!(&*machine.labels[labels::ZONE], "test-zone-a");
}

#[tokio::test(start_paused = true)]
async fn the_quota_counts_machines_that_are_there() {
    let cloud = cloud(Conduct { quota: Some(1), ..Conduct::default() });
    let machine = cloud.create(&spec("one")).await.unwrap();
    assert!(matches!(cloud.create(&spec("two")).await, Err(Error::Launch(LaunchRefused::Quota(_)))));
    cloud.delete(&machine.id).await.unwrap();
    sleep(Duration::from_secs(20)).await;
    cloud.create(&spec("two")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deletion_takes_its_time_and_may_be_repeated() {
    let cloud = cloud(Conduct::default());
    let machine = cloud.create(&spec("t")).await.unwrap();
    let mut news = cloud.changes();
    assert!(matches!(news.next().await, Some(Change::Launched(_))));
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert!(cloud.get(&machine.id).await.unwrap().machine().unwrap().deleting);
    assert!(matches!(news.next().await, Some(Change::Going(id, _)) if id == machine.id));
    assert!(news.next().now_or_never().is_none(), "one end is told once");
    sleep(Duration::from_secs(15)).await;
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::Gone);
    assert_eq!(cloud.get(&machine.id).await.unwrap().machine(), None);
    assert_eq!(cloud.delete(&ProviderId::from("sim://any/never")).await.unwrap(), Deletion::Missing);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_a_machine_that_can_be_found() {
    let cloud = cloud(Conduct { lost_answers: 1.0, ..Conduct::default() });
    assert!(matches!(cloud.create(&spec("t")).await, Err(Error::Unknown(_))));
    let found = cloud.find(&ClaimUid::from("t")).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(cloud.create(&spec("t")).await.unwrap(), found[0]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_dropped_on_the_way_there_makes_nothing() {
    let cloud = cloud(Conduct::default());
    let spec = spec("t");
    let dropped = tokio::time::timeout(Duration::from_millis(1), cloud.create(&spec)).await;
    assert!(dropped.is_err());
    sleep(Duration::from_secs(5)).await;
    assert!(cloud.machines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_listing_lags_behind_and_says_by_how_much() {
    let lag = Duration::from_secs(100);
    let cloud = cloud(Conduct { settles_within: lag, ..Conduct::default() });
    for token in 0..20 {
        cloud.create(&spec(&token.to_string())).await.unwrap();
    }
    let listing = cloud.list().await.unwrap();
    assert!(listing.complete && listing.machines.len() < 20);
    assert_eq!(listing.settles_within, lag);
    sleep(lag).await;
    assert_eq!(cloud.list().await.unwrap().machines.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_broken_listing_says_so() {
    let cloud = cloud(Conduct { broken_listings: 1.0, ..Conduct::default() });
    assert!(!cloud.list().await.unwrap().complete);
}

#[tokio::test(start_paused = true)]
async fn a_changed_class_is_drift() {
    let cloud = cloud(Conduct::default());
    let spec = spec("t");
    let machine = cloud.create(&spec).await.unwrap();
    let claim = Claim { provider_id: Some(machine.id), ..(*spec.claim).clone() };
    assert_eq!(cloud.drift(&claim, &spec.class).await.unwrap(), None);
    let changed = NodeClass { generation: 2, ..(*spec.class).clone() };
    assert_eq!(cloud.drift(&claim, &changed).await.unwrap().as_deref(), Some("NodeClassDrift"));
}

#[tokio::test(start_paused = true)]
async fn a_reboot_happens_once_per_operation() {
    let cloud = cloud(Conduct::default());
    let machine = cloud.create(&spec("t")).await.unwrap();
    let mut news = cloud.changes();
    for _ in 0..2 {
        cloud.reboot(&machine.id, "repair-1").await.unwrap();
    }
    let told: Vec<_> = std::iter::from_fn(|| news.next().now_or_never().flatten()).collect();
    assert_eq!(told.iter().filter(|change| matches!(change, Change::Rebooting(..))).count(), 1);
    assert!(matches!(cloud.reboot(&ProviderId::from("x"), "y").await, Err(Error::Missing(_))));
}

#[test]
fn its_repair_policies_are_valid() {
    Policies::new(cloud(Conduct::default()).repair_policies()).unwrap();
}
