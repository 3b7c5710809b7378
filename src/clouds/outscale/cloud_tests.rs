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

fn by_name(owner: Option<&str>) -> OutscaleNodeClassSpec {
    let term = ImageTerm { name: Some("Talos-*".to_owned()), owner: owner.map(str::to_owned), ..ImageTerm::default() };
    OutscaleNodeClassSpec { image_id: None, image_selector_terms: Some(vec![term]), ..spec() }
}

/// An image as in the sample, but for ID and day.
fn image(id: &str, day: u32) -> Image {
    Image {
        image_id: id.to_owned(),
        creation_date: format!("2026-01-{day:02}T00:00:00Z").parse().ok(),
        ..Account::sample().images[0].clone()
    }
}

fn images(class: &NodeClass) -> Vec<String> {
    let body = class.body.downcast_ref::<OutscaleNodeClass>().unwrap();
    body.status.iter().flat_map(|status| &status.images).map(|image| image.id.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_image_that_a_stranger_has_published_is_not_taken_for_ones_own() {
    let Scene { fake, cloud, .. } = scene();
    let strange = Image { account_id: Some("000000000666".to_owned()), ..image("ami-00000666", 30) };
    fake.account(|account| account.images.push(strange));
    assert_eq!(images(&ready(&cloud, by_name(None)).await), [Account::IMAGE]);
    ready(&cloud, by_name(None)).await;
    assert_eq!(calls(&fake, "ReadQuotas"), 1, "whose keys they are is asked once");
    // Whoever names an owner means that one's.
    assert_eq!(images(&ready(&cloud, by_name(Some("000000000666"))).await), ["ami-00000666"]);
    // By its ID, an image is meant whosever it is.
    let by_id = OutscaleNodeClassSpec { image_id: Some("ami-00000666".to_owned()), ..spec() };
    assert_eq!(images(&ready(&cloud, by_id).await), ["ami-00000666"]);
    fake.account(|account| account.images.retain(|image| image.image_id == "ami-00000666"));
    let judgement = judged(&cloud, by_name(None), "ImagesReady").await;
    assert!(judgement.message.contains("no image matches name Talos-* of 000000000001"), "{judgement:?}");
}

#[tokio::test(start_paused = true)]
async fn whose_images_are_meant_must_be_known() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| account.denied.extend(["ReadQuotas".to_owned()]));
    let judgement = judged(&cloud, by_name(None), "ImagesReady").await;
    assert_eq!((judgement.status, judgement.reason), (Status::False, "Forbidden"));
    assert!(judgement.message.starts_with("spec.imageSelectorTerms: a term without owner"), "{judgement:?}");
    assert!(judgement.message.contains("api:ReadQuotas"), "{judgement:?}");
    ready(&cloud, by_name(Some("000000000001"))).await;
    fake.account(|account| {
        account.denied.clear();
        account.id = String::new();
    });
    let judgement = judged(&cloud, by_name(None), "ImagesReady").await;
    assert_eq!((judgement.status, judgement.reason), (Status::False, "OwnerUnknown"));
}

#[tokio::test(start_paused = true)]
async fn a_newer_image_makes_machines_drift() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, by_name(None)).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let machine = cloud.create(&wanted).await.unwrap();
    let mut claim = Claim { provider_id: Some(machine.id.clone()), annotations: machine.annotations, ..claim(1) };
    claim.labels.extend(machine.labels);
    assert_eq!(cloud.drift(&claim, &class).await.unwrap(), None);
    fake.account(|account| account.images.push(image("ami-00000002", 2)));
    let class = ready(&cloud, by_name(None)).await;
    assert_eq!(images(&class), ["ami-00000002", Account::IMAGE]);
    assert_eq!(cloud.drift(&claim, &class).await.unwrap().as_deref(), Some("ImageDrift"));
    // The newer one is withdrawn.
    fake.account(|account| account.images.retain(|image| image.image_id == Account::IMAGE));
    let class = ready(&cloud, by_name(None)).await;
    assert_eq!(cloud.drift(&claim, &class).await.unwrap(), None);
}
