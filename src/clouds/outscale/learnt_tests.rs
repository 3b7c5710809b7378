//! What is believed of what Nodes show.

use std::sync::Arc;

use super::super::tests::{LARGE, SMALL, Scene, launch, ready, scene, spec};
use super::*;
use crate::clouds::{Cloud, Shown};
use crate::core::facts::InstanceType;
use crate::core::resources::{ResourceName, Resources};
use crate::sim::oapi::Account;

const IMAGE: &str = "ami-00000001";

const KIND: &str = "tinav6.c2r4p2";

fn kind() -> VmType {
    VmType::parse(KIND).unwrap()
}

/// Thousandths of a byte.
fn mib(mib: i64) -> i64 {
    mib * MIB * 1000
}

#[test]
fn the_least_that_machines_of_a_type_and_image_show_counts() {
    let learnt = Learnt::default();
    assert_eq!(learnt.memory(&kind(), IMAGE), None);
    assert!(learnt.learn(KIND, IMAGE, mib(3900)));
    assert!(!learnt.learn(KIND, IMAGE, mib(3900)), "known");
    assert!(!learnt.learn(KIND, IMAGE, mib(3950)), "a larger one does not help the smaller");
    assert!(learnt.learn(KIND, IMAGE, mib(3890)));
    assert_eq!((learnt.memory(&kind(), IMAGE), learnt.epoch()), (Some(mib(3890)), 2));
    assert_eq!(learnt.memory(&kind(), "ami-00000002"), None, "another kernel keeps another part");
    assert_eq!(learnt.memory(&VmType::parse("tinav6.c2r8p2").unwrap(), IMAGE), None);
}

#[test]
fn what_cannot_be_such_a_machine_is_not_believed() {
    let learnt = Learnt::default();
    for strange in [0, mib(1), mib(2040), mib(4097), i64::MAX, -1] {
        assert!(!learnt.learn(KIND, IMAGE, strange), "{strange}");
    }
    assert!(!learnt.learn(KIND, "", mib(3900)), "nobody knows of which image");
    assert_eq!((learnt.memory(&kind(), IMAGE), learnt.epoch()), (None, 0));
    assert!(learnt.learn(KIND, IMAGE, mib(4096)), "all of it");
    // What a fixed type has is known when the API's list is.
    assert!(learnt.learn("c5.large", IMAGE, mib(900)));
    let listed = |gib: i64| VmType { name: "c5.large".to_owned(), memory_mib: gib * 1024, ..kind() };
    assert_eq!((learnt.memory(&listed(4), IMAGE), learnt.memory(&listed(1), IMAGE)), (None, Some(mib(900))));
}

#[tokio::test(start_paused = true)]
async fn what_a_node_shows_takes_the_place_of_the_estimate() {
    let Scene { cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let room = |types: &[Arc<InstanceType>], name: &str| {
        let kind = types.iter().find(|kind| kind.name.as_str() == name).unwrap();
        kind.capacity.get(&ResourceName::Memory)
    };
    let before = cloud.catalog(&class).await.unwrap().types;
    let seen = Resources::new().with("memory", room(&before, SMALL) + 20_000_000_000);
    let shown = Shown {
        machine: &"aws:///eu-west-2a/i-00000001".into(),
        node: "ip-10-0-0-4",
        instance_type: SMALL,
        image: Account::IMAGE,
        capacity: &seen,
    };
    assert!(cloud.learn(&shown));
    assert!(!cloud.learn(&shown), "no news");
    let after = cloud.catalog(&class).await.unwrap().types;
    assert_eq!(room(&after, SMALL), seen.get(&ResourceName::Memory));
    assert_eq!(room(&after, LARGE), room(&before, LARGE));
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    assert_eq!(machine.capacity.get(&ResourceName::Memory), seen.get(&ResourceName::Memory));
    // Machines are launched with the class's image, of which this says nothing.
    let less = Resources::new().with("memory", room(&before, SMALL) - 20_000_000_000);
    assert!(cloud.learn(&Shown { image: "ami-0000ffff", capacity: &less, ..shown }));
    assert_eq!(room(&cloud.catalog(&class).await.unwrap().types, SMALL), room(&after, SMALL));
    assert!(!cloud.learn(&Shown { capacity: &Resources::new(), ..shown }), "a kubelet that has said nothing yet");
}
