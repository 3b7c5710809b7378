//! What the cloud does when things are not as they should be, against the stand-in for the API.

use super::super::oapi::wire::{CreateTags, DeleteTags, Image, ResourceTag};
use super::super::tests::{SMALL, Scene, calls, claim, class_of, launch, ready, resolved, scene, spec, strip};
use super::*;
use crate::api::classes::outscale::{ImageTerm, OutscaleNodeClassSpec};
use crate::clouds::Judgement;
use crate::sim::oapi::Account;

/// What a look at a class says of one thing.
async fn judged(cloud: &Outscale, spec: OutscaleNodeClassSpec, condition: &str) -> Judgement {
    let (_, resolution) = resolved(cloud, &class_of(spec)).await;
    let mut all = resolution.judgements.into_iter();
    all.find(|judgement| judgement.condition == condition).unwrap()
}

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
