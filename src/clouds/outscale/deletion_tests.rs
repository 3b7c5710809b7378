//! Which machines go, and how, against the stand-in for the API.

use super::super::oapi::wire::{CreateTags, DeleteTags, ResourceTag};
use super::super::tests::{SMALL, Scene, calls, launch, ready, scene, spec, strip};
use super::*;
use crate::api::classes::outscale::{BlockDeviceMapping, Bsu, OutscaleNodeClassSpec};
use crate::clouds::Cloud;

#[tokio::test(start_paused = true)]
async fn a_machine_that_only_a_nodeclaim_calls_its_own_is_left_alone() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let vm_id = fake.vms()[0].vm_id.clone();
    strip(&fake, &cloud, &["team"]).await;
    let told = fake.vms()[0].user_data.clone();
    fake.tamper(&vm_id, |vm| vm.user_data = None);
    let error = cloud.delete(&machine.id).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid { field, .. } if field == "status.providerID"), "{error}");
    assert!(
        error.to_string().contains("give it the tags karpenter.sh/managed-by=demo and OscK8sClusterID/demo-id=owned"),
        "{error}"
    );
    // One tag that anybody can write is not enough.
    let tag = |key: &str, value: &str| CreateTags {
        resource_ids: vec![vm_id.clone()],
        tags: vec![ResourceTag::new(key, value)],
    };
    cloud.client.call(&tag("karpenter.sh/managed-by", "demo")).await.unwrap();
    assert!(cloud.delete(&machine.id).await.is_err());
    assert!(!fake.vms()[0].state.is_leaving());
    // What it was told at its birth is, with its token; and so are both tags.
    let untag = DeleteTags {
        resource_ids: vec![vm_id.clone()],
        tags: vec![ResourceTag::new("karpenter.sh/managed-by", "demo")],
    };
    cloud.client.call(&untag).await.unwrap();
    fake.tamper(&vm_id, |vm| vm.user_data = told);
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert!(fake.vms()[0].state.is_leaving());
    // One that is going already is waited for.
    fake.tamper(&vm_id, |vm| vm.user_data = None);
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    let other = cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    let other_id = fake.vms()[1].vm_id.clone();
    fake.tamper(&other_id, |vm| vm.user_data = None);
    assert_eq!(cloud.delete(&other.id).await.unwrap(), Deletion::InProgress);
}

#[tokio::test(start_paused = true)]
async fn volumes_that_stay_behind_are_known_before_their_machine_goes() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    assert_eq!(volumes_left(&fake.vms()[0]), Vec::<&str>::new());
    let kept = BlockDeviceMapping {
        device_name: "/dev/xvdb".to_owned(),
        bsu: Bsu { volume_size: Some(20), delete_on_vm_deletion: Some(false), ..Bsu::default() },
    };
    let class = ready(&cloud, OutscaleNodeClassSpec { block_device_mappings: Some(vec![kept]), ..spec() }).await;
    cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    let vms = fake.vms();
    let left = volumes_left(&vms[1]);
    assert!(matches!(left[..], [id] if id.starts_with("vol-")), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_does_not_go_down_is_stopped_by_force() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let stuck = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let vm_id = fake.vms()[0].vm_id.clone();
    // Looking at the class has rehearsed it.
    let rehearsed = calls(&fake, "StopVms");
    let stopped = || calls(&fake, "StopVms") - rehearsed;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    // Its guest is stopping it, for ever.
    fake.tamper(&vm_id, |vm| vm.state = State::Stopping);
    assert_eq!(cloud.delete(&stuck.id).await.unwrap(), Deletion::InProgress);
    assert_eq!((stopped(), fake.vms()[0].state), (1, State::ShuttingDown));
    // One that shuts down in time is left to it, and one that does not is helped along every five minutes.
    let slow = cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    fake.conduct(|conduct| conduct.ends_within = std::time::Duration::from_hours(1));
    for (minutes, stops) in [(0, 1), (4, 1), (2, 2), (4, 2), (2, 3)] {
        tokio::time::sleep(std::time::Duration::from_mins(minutes)).await;
        assert_eq!(cloud.delete(&slow.id).await.unwrap(), Deletion::InProgress);
        assert_eq!(stopped(), stops, "after {minutes} minutes more");
    }
}
