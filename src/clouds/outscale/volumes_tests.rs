//! What is wrong with volumes is said with field and remedy, and the stand-in for the API refuses the same.

use super::super::tests::{SMALL, Scene, class_of, launch, ready, resolved, scene, spec};
use super::*;
use crate::api::classes::outscale::{Bsu, OutscaleNodeClass};
use crate::clouds::Cloud;
use crate::clouds::outscale::oapi::wire;
use crate::core::facts::{Status, find_condition};

fn with(bsu: Bsu) -> OutscaleNodeClassSpec {
    let volume = BlockDeviceMapping { device_name: "/dev/xvdb".to_owned(), bsu };
    OutscaleNodeClassSpec { block_device_mappings: Some(vec![volume]), ..spec() }
}

fn io1(size: u32, iops: u32) -> Bsu {
    Bsu { volume_size: Some(size), volume_type: Some("io1".to_owned()), iops: Some(iops), ..Bsu::default() }
}

fn from(snapshot: &str, size: Option<u32>) -> Bsu {
    Bsu { snapshot_id: Some(snapshot.to_owned()), volume_size: size, ..Bsu::default() }
}

fn scene_with_snapshots() -> Scene {
    let scene = scene();
    scene.fake.account(|account| {
        let snapshot = |id: &str, state: &str, size| wire::Snapshot {
            snapshot_id: id.to_owned(),
            state: Some(state.to_owned()),
            volume_size: Some(size),
        };
        account
            .snapshots
            .extend([snapshot("snap-0000000a", "completed", 60), snapshot("snap-0000000b", "pending", 10)]);
    });
    scene
}

#[tokio::test(start_paused = true)]
async fn volumes_that_the_api_would_not_make_are_told_before_it_is_asked_to() {
    let Scene { fake, cloud, .. } = scene_with_snapshots();
    let good = ready(&cloud, with(io1(4, 1200))).await;
    for (bsu, reason, message) in [
        (
            io1(4, 1201),
            "TooManyIops",
            "iops: 1201 are more than 300 for each GiB of 4; lower it to 1200, or raise volumeSize to 5",
        ),
        (
            from("snap-0000ffff", None),
            "SnapshotNotFound",
            "snapshotId: the account sees no snapshot snap-0000ffff; name one",
        ),
        (from("snap-0000000b", None), "SnapshotNotReady", "snapshotId: snapshot snap-0000000b is pending; wait until"),
        (
            from("snap-0000000a", None),
            "VolumeTooSmall",
            "volumeSize: snapshot snap-0000000a needs a volume of 60 GiB; raise it from 50",
        ),
    ] {
        let (class, resolution) = resolved(&cloud, &class_of(with(bsu.clone()))).await;
        let bad: Vec<_> = resolution.judgements.iter().filter(|judgement| judgement.status != Status::True).collect();
        let [judgement] = bad.as_slice() else { panic!("{bad:?}") };
        assert_eq!((judgement.condition, judgement.reason), ("VolumesReady", reason));
        assert!(
            judgement.message.starts_with(&format!("spec.blockDeviceMappings[/dev/xvdb].bsu.{message}")),
            "{judgement:?}"
        );
        assert_eq!(find_condition(&class.conditions, "Ready").unwrap().status, Status::False);
        // The API would refuse it, too.
        let mut wanted = launch(&cloud, &good, 1, &[SMALL]).await;
        let status = good.body.downcast_ref::<OutscaleNodeClass>().unwrap().status.clone();
        let body = OutscaleNodeClass { status, ..OutscaleNodeClass::new("workers", with(bsu)) };
        wanted.class =
            std::sync::Arc::new(crate::core::facts::NodeClass { body: std::sync::Arc::new(body), ..good.clone() });
        cloud.create(&wanted).await.unwrap_err();
    }
    assert_eq!(fake.vms().len(), 0);
    let class = ready(&cloud, with(from("snap-0000000a", Some(60)))).await;
    cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_names_no_snapshot_needs_no_permission_to_read_them() {
    let Scene { fake, cloud, .. } = scene_with_snapshots();
    fake.account(|account| account.denied.extend(["ReadSnapshots".to_owned()]));
    ready(&cloud, spec()).await;
    let (class, _) = resolved(&cloud, &class_of(with(from("snap-0000000a", Some(60))))).await;
    let volumes = find_condition(&class.conditions, "VolumesReady").unwrap();
    assert_eq!((volumes.status, &*volumes.reason), (Status::False, "Forbidden"));
    assert!(volumes.message.contains("allow the action api:ReadSnapshots in an EIM policy"), "{}", volumes.message);
}
