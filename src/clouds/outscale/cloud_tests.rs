//! What the cloud does when things are not as they should be, against the stand-in for the API.

use super::super::oapi::wire::{CreateTags, DeleteTags, Image, ResourceTag};
use super::super::tests::{SMALL, Scene, calls, claim, class_of, launch, ready, resolved, scene, spec, strip};
use super::*;
use crate::api::classes::outscale::{BlockDeviceMapping, Bsu, ImageTerm, OutscaleNodeClassSpec};
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

#[tokio::test(start_paused = true)]
async fn whose_machine_it_is_is_said_of_one_that_wears_no_marks() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    strip(&fake, &cloud, &[]).await;
    assert_eq!(cloud.get(&machine.id).await.unwrap().unwrap().token, machine.token, "its token cannot be taken off");
    // One that says nothing may be anybody's: the NodeClaim's word counts for all but its deletion.
    let vm_id = fake.vms()[0].vm_id.clone();
    fake.tamper(&vm_id, |vm| vm.client_token = None);
    assert_eq!(cloud.get(&machine.id).await.unwrap().unwrap().token, None);
    fake.tamper(&vm_id, |vm| vm.client_token = Some("another.1".to_owned()));
    assert_eq!(cloud.get(&machine.id).await.unwrap().unwrap().token, Some("another".into()));
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

fn zone(machine: &Machine) -> &str {
    machine.labels.get(crate::core::labels::ZONE).map_or("", |zone| zone)
}

#[tokio::test(start_paused = true)]
async fn a_full_subnet_is_passed_over_until_it_is_counted_anew() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| {
        let mut third = account.subnets[0].clone();
        third.subnet_id = "subnet-00000003".to_owned();
        third.ip_range = Some("10.0.64.0/24".to_owned());
        account.subnets.push(third);
    });
    let subnets = ["subnet-00000001", "subnet-00000002", "subnet-00000003"].map(str::to_owned).to_vec();
    let class = ready(&cloud, OutscaleNodeClassSpec { subnet_ids: Some(subnets), ..spec() }).await;
    let full =
        |number: usize| fake.account(|account| account.subnets[number].ip_range = Some("10.0.0.0/30".to_owned()));
    let subnet = |at: usize| fake.vms()[at].subnet_id.clone().unwrap_or_default();
    // The roomiest has filled up since it was counted: the other one of its zone is taken, and it is not tried again.
    full(0);
    let first = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    assert_eq!((zone(&first), subnet(0).as_str(), calls(&fake, "CreateVms")), ("eu-west-2a", "subnet-00000003", 3));
    cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    assert_eq!((subnet(1).as_str(), calls(&fake, "CreateVms")), ("subnet-00000003", 4));
    // The whole zone is full: the next one is taken.
    full(2);
    let third = cloud.create(&launch(&cloud, &class, 3, &[SMALL]).await).await.unwrap();
    assert_eq!((zone(&third), calls(&fake, "CreateVms")), ("eu-west-2b", 6));
    // All are: every offering is said to be lost, so that it is not offered on.
    full(1);
    let wanted = launch(&cloud, &class, 4, &[SMALL]).await;
    for _ in 0..2 {
        let error = cloud.create(&wanted).await.unwrap_err();
        let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. }) = &error else { panic!("{error}") };
        let zones: Vec<&str> = sold_out.iter().filter_map(|lost| lost.zone.as_deref()).collect();
        assert_eq!(zones, ["eu-west-2a", "eu-west-2b"]);
        assert!(error.to_string().contains("no subnet of the NodeClass has a free address"), "{error}");
        assert_eq!(calls(&fake, "CreateVms"), 7);
    }
    // A look that could not read them counts nothing.
    fake.account(|account| account.subnets.clone_from(&Account::sample().subnets));
    fake.account(|account| account.denied.extend(["ReadSubnets".to_owned()]));
    cloud.resolve(&class).await.unwrap();
    assert!(cloud.create(&wanted).await.is_err());
    // Nor does one at other subnets.
    fake.account(|account| account.denied.clear());
    let elsewhere = OutscaleNodeClassSpec { subnet_ids: Some(vec!["subnet-00000002".to_owned()]), ..spec() };
    ready(&cloud, elsewhere).await;
    assert_eq!(zone(&cloud.create(&wanted).await.unwrap()), "eu-west-2b");
    assert_eq!(subnet(3), "subnet-00000002");
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
