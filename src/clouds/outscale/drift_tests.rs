//! What makes machines drift, against the stand-in for the API.

use super::super::oapi::wire::{CreateTags, ResourceTag};
use super::super::tests::{SMALL, Scene, WORKER, class_of, launch, ready, resolved, scene, spec};
use crate::api::classes::outscale::OutscaleNodeClassSpec;
use crate::clouds::Cloud;
use crate::core::facts::{Claim, Machine};
use crate::sim::oapi::Account;

#[tokio::test(start_paused = true)]
async fn drift_is_seen_in_what_a_class_finds_and_says() {
    let Scene { fake, secrets, cloud } = scene();
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let machine = cloud.create(&wanted).await.unwrap();
    let Machine { id, labels: given, annotations, .. } = machine;
    let mut claim = Claim { provider_id: Some(id), annotations, ..(*wanted.claim).clone() };
    claim.labels.extend(given);
    let drift = async |spec: OutscaleNodeClassSpec| {
        let (class, _) = resolved(&cloud, &class_of(spec)).await;
        cloud.drift(&claim, &class).await.unwrap().unwrap_or_default()
    };
    assert_eq!(drift(spec()).await, "");
    let mut image = Account::sample().images[0].clone();
    image.image_id = "ami-00000002".to_owned();
    fake.account(|account| account.images.push(image));
    assert_eq!(
        drift(OutscaleNodeClassSpec { image_id: Some("ami-00000002".to_owned()), ..spec() }).await,
        "ImageDrift"
    );
    let elsewhere = OutscaleNodeClassSpec { subnet_ids: Some(vec!["subnet-00000002".to_owned()]), ..spec() };
    assert_eq!(drift(elsewhere).await, "SubnetDrift");
    let mut group = Account::sample().security_groups[0].clone();
    group.security_group_id = "sg-00000002".to_owned();
    fake.account(|account| account.security_groups.push(group));
    let groups = Some(vec![Account::GROUP.to_owned(), "sg-00000002".to_owned()]);
    assert_eq!(drift(OutscaleNodeClassSpec { security_group_ids: groups, ..spec() }).await, "SecurityGroupDrift");
    let tagged = OutscaleNodeClassSpec { tags: [("team".to_owned(), "db".to_owned())].into(), ..spec() };
    assert_eq!(drift(tagged).await, "NodeClassDrift");
    // An image that is gone makes a class not ready, and no node drifted.
    fake.account(|account| account.images.retain(|image| image.image_id != Account::IMAGE));
    assert_eq!(drift(spec()).await, "");
    fake.account(|account| account.images = Account::sample().images);
    secrets.put("talos", "worker.yaml", &WORKER.replace("10.0.0.2", "10.0.0.3"));
    assert_eq!(drift(spec()).await, "UserDataDrift");
    claim.annotations.clear();
    secrets.put("talos", "worker.yaml", WORKER);
    let id = fake.vms()[0].vm_id.clone();
    let change = CreateTags { resource_ids: vec![id], tags: vec![ResourceTag::new("team", "other")] };
    cloud.client.call(&change).await.unwrap();
    let (class, _) = resolved(&cloud, &class_of(spec())).await;
    assert_eq!(cloud.drift(&claim, &class).await.unwrap().as_deref(), Some("TagDrift"));
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_another_type_than_it_was_launched_with_has_drifted() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let Machine { id, labels: given, annotations, .. } = cloud.create(&wanted).await.unwrap();
    let mut claim = Claim { provider_id: Some(id), annotations, ..(*wanted.claim).clone() };
    claim.labels.extend(given);
    let vm_id = fake.vms()[0].vm_id.clone();
    // A performance that is left out is the one that the name says; somebody who stops a machine can give it another type.
    for (vm_type, told) in [(SMALL, None), ("tinav6.c2r4", None), ("tinav6.c4r4p2", Some("VmTypeDrift"))] {
        fake.tamper(&vm_id, |vm| vm.vm_type = Some(vm_type.to_owned()));
        assert_eq!(cloud.drift(&claim, &class).await.unwrap().as_deref(), told, "{vm_type}");
    }
}
