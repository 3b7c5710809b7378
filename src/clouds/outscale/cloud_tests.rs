//! What the cloud does when things are not as they should be, against the stand-in for the API.

use super::super::oapi::wire::{CreateTags, Image, ResourceTag};
use super::super::oapi::{Access, Answer, Dialect, Post, Transport, Undelivered};
use super::super::tests::{
    SMALL, Scene, calls, claim, class_of, cloud_over, launch, ready, resolved, scene, spec, strip, tags,
};
use super::*;
use crate::api::classes::outscale::{ImageTerm, OutscaleNodeClassSpec, Placement, VmTypes};
use crate::core::ids::ClassRef;
use crate::core::repair::Policies;
use crate::core::resources::Resources;
use crate::sim::oapi::{Account, Fake, Scarce};

/// What a look at a class says of one thing.
async fn judged(cloud: &Outscale, spec: OutscaleNodeClassSpec, condition: &str) -> Judgement {
    let (_, resolution) = resolved(cloud, &class_of(spec)).await;
    let mut all = resolution.judgements.into_iter();
    all.find(|judgement| judgement.condition == condition).unwrap()
}

#[tokio::test(start_paused = true)]
async fn whose_machine_it_is_is_said_of_one_that_wears_no_marks() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    strip(&fake, &cloud, &[]).await;
    assert_eq!(
        cloud.get(&machine.id).await.unwrap().machine().unwrap().token,
        machine.token,
        "its token cannot be taken off"
    );
    // One that says nothing may be anybody's: the NodeClaim's word counts for all but its deletion.
    let vm_id = fake.vms()[0].vm_id.clone();
    fake.tamper(&vm_id, |vm| vm.client_token = None);
    assert_eq!(cloud.get(&machine.id).await.unwrap().machine().unwrap().token, None);
    fake.tamper(&vm_id, |vm| vm.client_token = Some("another.1".to_owned()));
    assert_eq!(cloud.get(&machine.id).await.unwrap().machine().unwrap().token, Some("another".into()));
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
        // Machines of other classes, in other subnets, may be had.
        assert!(sold_out.iter().all(|lost| lost.class.as_ref() == Some(&class.reference)), "{sold_out:?}");
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
async fn a_shortage_of_ones_own_hardware_is_nobody_elses() {
    let Scene { fake, cloud, .. } = scene();
    let lost = async |placement: Placement, number: usize| {
        let class = ready(&cloud, OutscaleNodeClassSpec { placement: Some(placement), ..spec() }).await;
        let error = cloud.create(&launch(&cloud, &class, number, &[SMALL]).await).await.unwrap_err();
        let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. }) = error else { panic!("{error}") };
        assert_eq!(sold_out.len(), 2);
        sold_out.iter().filter(|lost| lost.class.as_ref() == Some(&class.reference)).count()
    };
    fake.conduct(|conduct| conduct.sold_out = vec![Scarce::default()]);
    let dedicated = Placement { tenancy: Some("dedicated".to_owned()), ..Placement::default() };
    assert_eq!(lost(dedicated, 1).await, 2);
    assert_eq!(lost(Placement { attract_server: Some("x".to_owned()), ..Placement::default() }, 2).await, 2);
    // What one class cannot have is tried for another of another name, and what nobody can have is not tried for either.
    let before = calls(&fake, "CreateVms");
    let class = ready(&cloud, spec()).await;
    let other = ClassRef { name: "others".into(), ..class.reference.clone() };
    let other = NodeClass { reference: other, ..class };
    let wanted = launch(&cloud, &other, 3, &[SMALL]).await;
    let error = cloud.create(&wanted).await.unwrap_err();
    let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. }) = error else { panic!("{error}") };
    assert!(sold_out.len() == 2 && sold_out.iter().all(|lost| lost.class.is_none()), "{sold_out:?}");
    assert_eq!(calls(&fake, "CreateVms"), before + 3, "one dry run, one attempt for each zone");
    assert!(cloud.create(&wanted).await.is_err());
    assert_eq!(calls(&fake, "CreateVms"), before + 3);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_only_a_nodeclaim_calls_its_own_is_not_restarted() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let vm_id = fake.vms()[0].vm_id.clone();
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    cloud.reboot(&machine.id, "op").await.unwrap();
    assert_eq!(fake.reboots(&vm_id), Some(1));
    let told = fake.vms()[0].user_data.clone();
    strip(&fake, &cloud, &["team"]).await;
    fake.tamper(&vm_id, |vm| vm.user_data = None);
    let error = cloud.reboot(&machine.id, "op").await.unwrap_err();
    assert!(matches!(&error, Error::Invalid { field, .. } if field == "status.providerID"), "{error}");
    // By what it was told at its birth it is joiner's, unless somebody has given it to another cluster.
    fake.tamper(&vm_id, |vm| vm.user_data = told);
    cloud.reboot(&machine.id, "op").await.unwrap();
    let tags = vec![ResourceTag::new("karpenter.sh/managed-by", "production")];
    cloud.client.call(&CreateTags { resource_ids: vec![vm_id.clone()], tags }).await.unwrap();
    let error = cloud.reboot(&machine.id, "op").await.unwrap_err();
    assert!(error.to_string().contains("belongs to cluster production"), "{error}");
    assert_eq!(fake.reboots(&vm_id), Some(2));
    let gone = cloud.reboot(&ProviderId::from("aws:///eu-west-2a/i-0000ffff"), "op").await.unwrap_err();
    assert!(gone.to_string().contains("there is no machine"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_leaves_no_room_for_is_not_offered_and_the_rest_is() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    fake.account(|account| account.quotas.cores = 6);
    let lost = async |number: usize, types: &[&str]| {
        let error = cloud.create(&launch(&cloud, &class, number, types).await).await.unwrap_err();
        let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, message }) = error else { panic!("{error}") };
        assert!(sold_out.iter().all(|lost| lost.class.is_none()), "the account is the same for all classes");
        let types: std::collections::BTreeSet<String> =
            sold_out.iter().map(|lost| lost.instance_type.as_str().to_owned()).collect();
        (types, message)
    };
    let (types, message) = lost(1, &["tinav6.c8r16p2"]).await;
    assert!(message.contains("reached: core_limit (0 of 6 used, 8 needed); ask Outscale for more"), "{message}");
    let all = cloud.catalog(&class).await.unwrap().types;
    let more_than = |cores: u32| {
        let is_more = |kind: &&std::sync::Arc<InstanceType>| VmType::parse(kind.name.as_str()).unwrap().cores > cores;
        all.iter().filter(is_more).map(|kind| kind.name.as_str().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(types, more_than(6), "types of 4 vCores still fit");
    // For three minutes nothing that does not fit is tried; what fits is had at once.
    let before = calls(&fake, "CreateVms");
    lost(2, &["tinav6.c16r32p2"]).await;
    assert_eq!(calls(&fake, "CreateVms"), before);
    cloud.create(&launch(&cloud, &class, 3, &["tinav6.c4r8p2", "tinav6.c8r16p2"]).await).await.unwrap();
    // Of what was read half a minute ago nothing is kept.
    tokio::time::sleep(std::time::Duration::from_mins(4)).await;
    assert_eq!(lost(4, &["tinav6.c4r8p2"]).await.0, more_than(2));
    cloud.create(&launch(&cloud, &class, 5, &["tinav6.c2r4p2"]).await).await.unwrap();
    // Whoever may not read quotas knows of the type that was tried, and of all that are as large.
    tokio::time::sleep(std::time::Duration::from_mins(4)).await;
    fake.account(|account| account.denied.extend(["ReadQuotas".to_owned()]));
    let (types, message) = lost(6, &["tinav6.c2r8p2"]).await;
    assert!(message.contains("allow the action api:ReadQuotas"), "{message}");
    assert!(types.contains("tinav6.c2r16p2") && types.contains("tinav7.c4r8p2"), "{types:?}");
    assert!(!types.contains("tinav6.c2r4p2") && !types.contains("tinav6.c4r4p2"), "{types:?}");
}

#[tokio::test(start_paused = true)]
async fn types_that_have_no_price_are_named() {
    let Scene { fake, cloud, .. } = scene();
    let types = |families: &[&str]| OutscaleNodeClassSpec {
        vm_types: Some(VmTypes {
            families: Some(families.iter().map(|one| (*one).to_owned()).collect()),
            ..VmTypes::default()
        }),
        ..spec()
    };
    assert_eq!(judged(&cloud, types(&["tinav6", "tinav7"]), "TypesReady").await.message, "");
    fake.account(|account| {
        for name in ["g3.large", "g3.xlarge"] {
            let gpu = crate::clouds::outscale::oapi::wire::VmType {
                vm_type_name: name.to_owned(),
                vcore_count: Some(8),
                memory_size: Some(15.0),
                gpu: Some(1),
                ..Default::default()
            };
            account.vm_types.push(gpu);
        }
    });
    tokio::time::sleep(std::time::Duration::from_hours(13)).await;
    let mut named = types(&["tinav6", "g3"]);
    named.vm_types.as_mut().unwrap().names = Some(vec!["g3.xlarge".to_owned()]);
    let judgement = judged(&cloud, named, "TypesReady").await;
    assert_eq!(judgement.status, Status::True);
    assert!(judgement.message.contains(": g3.xlarge; give it with --outscale-prices"), "{judgement:?}");
    // A GPU is dear, and allocated to the account: nobody gets one by naming a family.
    assert!(judgement.message.contains("GPUs to the account: g3.large; not offered, as they"), "{judgement:?}");
    let judgement = judged(&cloud, types(&["g3"]), "TypesReady").await;
    assert_eq!((judgement.status, judgement.reason), (Status::False, "NoTypes"));
    assert!(
        judgement.message.starts_with("spec.vmTypes: not offered unless spec.vmTypes.names names"),
        "{judgement:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_the_accounts_prices_buys_at_public_ones() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| account.denied.extend(["ReadCatalog".to_owned()]));
    let (class, resolution) = resolved(&cloud, &class_of(spec())).await;
    assert!(resolution.judgements.iter().all(|judgement| judgement.status == Status::True), "{resolution:?}");
    let told = resolution.judgements.iter().find(|judgement| judgement.condition == "PermissionsReady").unwrap();
    let remark = "prices are the public ones, and not the account's own: ReadCatalog: ";
    assert!(told.message.starts_with(remark) && told.message.contains("api:ReadCatalog"), "{told:?}");
    assert_eq!(
        cloud.price_source().await,
        "public price list of http://127.0.0.1:1/api/v1, read on 2026-01-02",
        "the account's own list is not what these prices are of"
    );
    assert!(cloud.catalog(&class).await.unwrap().types.iter().any(|kind| kind.name.as_str() == SMALL));
    for _ in 0..10 {
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
        resolved(&cloud, &class_of(spec())).await;
    }
    // Each look at the class rehearses it. In earnest it was asked once.
    assert_eq!(fake.load()["ReadCatalog"].calls, 11 + 1);
}

#[tokio::test]
async fn its_repair_policies_are_valid() {
    Policies::new(scene().cloud.repair_policies()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_name_that_somebody_wrote_stays_until_the_node_itself_proves_it_wrong() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let id = fake.vms()[0].vm_id.clone();
    let right = tags(&fake.vms()[0])["OscK8sNodeName"].to_owned();
    let name = async |value: &str| {
        let tags = vec![ResourceTag::new("OscK8sNodeName", value)];
        let request = wire::CreateTags { resource_ids: vec![id.clone()], tags };
        cloud.client.call(&request).await.unwrap();
    };
    name("pet").await;
    for _ in 0..2 {
        cloud.list().await.unwrap();
        assert_eq!(tags(&fake.vms()[0])["OscK8sNodeName"], "pet", "nobody knows yet how the Node is called");
    }
    let capacity = Resources::new().with("memory", 1);
    cloud.learn(&Shown {
        machine: &machine.id,
        node: &right,
        instance_type: SMALL,
        image: Account::IMAGE,
        capacity: &capacity,
    });
    cloud.list().await.unwrap();
    assert_eq!(tags(&fake.vms()[0])["OscK8sNodeName"], right);
    let writes = calls(&fake, "CreateTags");
    cloud.list().await.unwrap();
    assert_eq!(calls(&fake, "CreateTags"), writes, "nothing is wrong, nothing is written");
    // A machine that was given away is not ours to mend.
    name("pet").await;
    fake.tamper(&id, |vm| vm.client_token = Some("ffff".to_owned()));
    cloud.list().await.unwrap();
    assert_eq!(tags(&fake.vms()[0])["OscK8sNodeName"], "pet");
}

/// The fake, and how the calls to it were signed.
struct Heard {
    fake: Fake,
    algorithms: Mutex<BTreeSet<String>>,
}

impl Transport for Heard {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        if let Some(signed) = post.headers.get(http::header::AUTHORIZATION) {
            let algorithm = signed.to_str().unwrap().split(' ').next().unwrap_or_default().to_owned();
            self.algorithms.lock().unwrap().insert(algorithm);
        }
        self.fake.post(post)
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_lives_and_ends_in_either_dialect() {
    for (dialect, algorithm) in [(Dialect::Aws4, "AWS4-HMAC-SHA256"), (Dialect::Osc4, "OSC4-HMAC-SHA256")] {
        let Scene { fake, secrets, .. } = scene();
        let heard = Arc::new(Heard { fake: fake.clone(), algorithms: Mutex::default() });
        let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
        let access = Access { dialect, ..access };
        let cloud = cloud_over(access, Arc::clone(&heard) as Arc<dyn Transport>, &secrets, false);
        let class = ready(&cloud, spec()).await;
        let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
        assert_eq!(cloud.list().await.unwrap().machines, std::slice::from_ref(&machine));
        assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::Gone);
        let algorithms: Vec<String> = heard.algorithms.lock().unwrap().iter().cloned().collect();
        assert_eq!(algorithms, [algorithm]);
    }
}

/// The fake, which refuses launches with a code.
struct Refuses {
    fake: Fake,
    code: Mutex<&'static str>,
    launches: Mutex<u32>,
}

impl Transport for Refuses {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        if !post.url.path().ends_with("/CreateVms") || String::from_utf8_lossy(&post.body).contains("DryRun") {
            return self.fake.post(post);
        }
        *self.launches.lock().unwrap() += 1;
        let code = *self.code.lock().unwrap();
        let body = format!(r#"{{"Errors":[{{"Code":"{code}","Type":"Refused","Details":"no"}}]}}"#);
        async move { Ok(Answer::of(400, &http::HeaderMap::new(), body.into())) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_refused_for_good_is_not_sent_again() {
    let Scene { fake, secrets, .. } = scene();
    let line = Arc::new(Refuses { fake: fake.clone(), code: Mutex::new(""), launches: Mutex::new(0) });
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    let cloud = cloud_over(access, Arc::clone(&line) as Arc<dyn Transport>, &secrets, false);
    let class = ready(&cloud, spec()).await;
    let refused = async |number: usize, code: &'static str| {
        *line.code.lock().unwrap() = code;
        let before = *line.launches.lock().unwrap();
        let error = cloud.create(&launch(&cloud, &class, number, &[SMALL]).await).await.unwrap_err();
        assert_eq!(*line.launches.lock().unwrap(), before + 1, "{code}: {error}");
        assert!(error.to_string().contains(&format!("{code} Refused no")), "{code}: {error}");
        error
    };
    // What the NodeClass means is not there any more: the class is looked at anew.
    for (number, (code, what)) in (1..).zip([
        ("5023", "images"),
        ("5057", "subnets"),
        ("5020", "security groups"),
        ("5022", "of another Net"),
        ("5071", "keypair"),
    ]) {
        let error = refused(number, code).await;
        assert!(matches!(&error, Error::Launch(LaunchRefused::ClassNotReady(why)) if why.contains(what)), "{error}");
    }
    // What the request says is wrong.
    for (number, code) in (11..).zip(["3001", "3002", "4047", "4104", "7000"]) {
        let error = refused(number, code).await;
        assert!(matches!(&error, Error::Invalid { field, .. } if field == "CreateVms"), "{error}");
        let remedy = format!(
            "tried was {SMALL} in eu-west-2a: if the API does not take that type, leave it out with spec.vmTypes"
        );
        assert!(error.to_string().contains(&remedy), "{error}");
    }
    assert_eq!(fake.vms(), []);
}

#[tokio::test(start_paused = true)]
async fn a_type_that_the_api_does_not_take_is_passed_over_and_not_tried_again_for_a_while() {
    let Scene { fake, cloud, .. } = scene();
    let (gone, other) = ("p6.large", "tinav7.c32r128p1");
    let names = vec![gone.to_owned(), other.to_owned()];
    let vm_types = Some(VmTypes { names: Some(names), ..VmTypes::default() });
    let class = ready(&cloud, OutscaleNodeClassSpec { vm_types, ..spec() }).await;
    fake.account(|account| account.vm_types.retain(|kind| kind.vm_type_name != gone));
    let machine = cloud.create(&launch(&cloud, &class, 1, &[gone, other]).await).await.unwrap();
    assert_eq!(machine.instance_type, Some(other.into()), "the dearer one, as the API does not take the other");
    let before = calls(&fake, "CreateVms");
    cloud.create(&launch(&cloud, &class, 2, &[gone, other]).await).await.unwrap();
    assert_eq!(calls(&fake, "CreateVms"), before + 1, "what the API does not take was tried again");
    tokio::time::sleep(Duration::from_mins(4)).await;
    let error = cloud.create(&launch(&cloud, &class, 3, &[gone]).await).await.unwrap_err();
    let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, message }) = &error else { panic!("{error}") };
    assert_eq!(sold_out.len(), 2);
    assert!(
        message.contains("the API does not take p6.large in eu-west-2b: leave it out with spec.vmTypes"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn launches_that_are_under_way_count_against_the_addresses_of_their_subnet() {
    let Scene { fake, cloud, .. } = scene();
    // Two subnets of one zone, each with room for eleven.
    fake.account(|account| {
        let mut third = account.subnets[0].clone();
        third.subnet_id = "subnet-00000003".to_owned();
        third.ip_range = Some("10.0.64.0/28".to_owned());
        account.subnets[0].ip_range = Some("10.0.0.0/28".to_owned());
        account.subnets.push(third);
    });
    let subnets = ["subnet-00000001", "subnet-00000003"].map(str::to_owned).to_vec();
    let class = ready(&cloud, OutscaleNodeClassSpec { subnet_ids: Some(subnets), ..spec() }).await;
    let mut specs = Vec::new();
    for number in 0..8 {
        specs.push(launch(&cloud, &class, number, &[SMALL]).await);
    }
    for made in futures::future::join_all(specs.iter().map(|spec| cloud.create(spec))).await {
        made.unwrap();
    }
    let vms = fake.vms();
    let of = |subnet: &str| vms.iter().filter(|vm| vm.subnet_id.as_deref() == Some(subnet)).count();
    assert_eq!((of("subnet-00000001"), of("subnet-00000003")), (4, 4));
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_once_whose_machine_it_would_delete() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _logged = tracing::subscriber::set_default(subscriber.finish());
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let Scene { fake, secrets, cloud: real } = scene();
    let class = ready(&real, spec()).await;
    let machine = real.create(&launch(&real, &class, 1, &[SMALL]).await).await.unwrap();
    let dry = super::super::tests::cloud(&fake, &secrets, true);
    for _ in 0..3 {
        assert_eq!(dry.delete(&machine.id).await.unwrap(), Deletion::InProgress);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let said: Vec<&str> = log.lines().filter(|line| line.contains("dry run: would delete the machine")).collect();
    let [said] = said.as_slice() else { panic!("{said:?}") };
    for part in ["default-00001", "nodepool=\"default\"", "as its NodeClaim is going or gone"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_machine_is_logged_without_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    let _logged = tracing::subscriber::set_default(subscriber.finish());
    // With a single subscriber, what other tests' threads do not log would be left out here, too.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    strip(&fake, &cloud, &["team"]).await;
    tokio::time::sleep(std::time::Duration::from_mins(3)).await;
    cloud.list().await.unwrap();
    fake.conduct(|conduct| conduct.fails = 1.0);
    cloud.list().await.unwrap_err();
    fake.conduct(|conduct| conduct.fails = 0.0);
    let told = serde_json::to_value(&fake.vms()[0].user_data).unwrap().to_string();
    cloud.delete(&machine.id).await.unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for said in ["created a machine", "written again", "answered", "2000 InternalError", "deleting a machine"] {
        assert!(log.contains(said), "{said} is not in what was logged: {log}");
    }
    let secrets = [
        Account::SECRET_KEY,
        "mmmmmm.0123456789abcdef",
        "cccccc.0123456789abcdef",
        "Signature=",
        told.get(9..69).unwrap(),
    ];
    for secret in secrets {
        assert!(!log.contains(secret), "{secret} is logged");
    }
}

/// The fake, without an answer to what lists types and prices.
struct NoLists(Fake);

impl Transport for NoLists {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        if ["/ReadVmTypes", "/ReadCatalog", "/ReadPublicCatalog"].iter().any(|list| post.url.path().ends_with(list)) {
            return std::future::pending().boxed();
        }
        self.0.post(post)
    }
}

#[tokio::test(start_paused = true)]
async fn machines_are_shown_and_taken_down_however_long_the_lists_of_types_and_prices_are_waited_for() {
    let Scene { fake, secrets, cloud } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    let cloud = cloud_over(access, Arc::new(NoLists(fake.clone())), &secrets, false);
    let began = Instant::now();
    let others = async {
        // The catalogue is asked for and waited for meanwhile.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let token = machine.token.clone().unwrap();
        assert_eq!(cloud.get(&machine.id).await.unwrap().machine().as_ref(), Some(&machine));
        assert_eq!(cloud.find(&token).await.unwrap(), std::slice::from_ref(&machine));
        assert_eq!(cloud.list().await.unwrap().machines, std::slice::from_ref(&machine));
        assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
        began.elapsed()
    };
    let (catalog, took) = tokio::join!(cloud.catalog(&class), others);
    // The catalogue comes after all, with the built-in prices.
    assert!(catalog.unwrap().types.iter().any(|kind| kind.name.as_str() == SMALL));
    assert!(began.elapsed() <= Duration::from_secs(45), "{:?}", began.elapsed());
    // The account's price list was the first call with these keys: the others waited for what would become of it.
    assert!(took <= Duration::from_secs(25), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn quotas_are_held_against_all_machines_of_a_dry_run_together() {
    let Scene { fake, secrets, .. } = scene();
    fake.account(|account| account.quotas.vms = 1);
    let dry = super::super::tests::cloud(&fake, &secrets, true);
    let class = ready(&dry, spec()).await;
    let wanted = [launch(&dry, &class, 1, &[SMALL]).await, launch(&dry, &class, 2, &[SMALL]).await];
    let made = futures::future::join_all(wanted.iter().map(|wanted| dry.create(wanted))).await;
    assert!(made.iter().all(Result::is_ok), "they are remarks: {made:?}");
    let why = dry.imagined_beyond_quotas().await.unwrap();
    assert!(
        why.starts_with("the account's quotas would refuse 1 of 2 machines: vm_limit (0 of 1 used, 2 needed);"),
        "{why}"
    );
    dry.delete(&made[0].as_ref().unwrap().id).await.unwrap();
    assert_eq!(dry.imagined_beyond_quotas().await, None);
}
