//! The fake, through the client that it was made for.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::gate::{Gate, Signed};
use super::*;
use crate::clouds::outscale::oapi::wire::{
    BsuToCreate, CreateTags, CreateVms, DeleteTags, DeleteVms, DeviceToCreate, ReadImages, ReadKeypairs, ReadQuotas,
    ReadSubnets, ReadTags, ReadUnitPrice, ReadVmTypes, ReadVms, ReadVmsState, RebootVms, ResourceTag, State, StopVms,
    UpdateVm, UserData, Vm, VmFilters,
};
use crate::clouds::outscale::oapi::{Action, Class, Client, Dialect, Error, Options, SecretKey, Transport};
use crate::sim::{Clock, Seed};

/// A clock that moves with tokio's, and is so many seconds ahead.
fn clock(ahead: i64) -> Clock {
    let start = Instant::now();
    let base: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    Arc::new(move || base + SignedDuration::from_secs(ahead) + SignedDuration::try_from(start.elapsed()).unwrap())
}

fn world() -> (Fake, Client) {
    world_with(0, |_| {})
}

/// A fake, and a client whose clock is so many seconds ahead.
fn world_with(ahead: i64, change: impl FnOnce(&mut crate::clouds::outscale::oapi::Access)) -> (Fake, Client) {
    let fake = Fake::new(Account::sample(), clock(0), Seed(1));
    let mut access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    change(&mut access);
    let client = Client::new(access, Arc::new(fake.clone()) as Arc<dyn Transport>, Options::new(clock(ahead)));
    (fake, client)
}

fn launch(token: &str) -> CreateVms {
    CreateVms {
        image_id: Account::IMAGE.to_owned(),
        vm_type: Some("tinav6.c4r8p2".to_owned()),
        subnet_id: Some("subnet-00000001".to_owned()),
        security_group_ids: vec![Account::GROUP.to_owned()],
        client_token: Some(token.to_owned()),
        block_device_mappings: vec![DeviceToCreate {
            bsu: Some(BsuToCreate {
                volume_size: Some(50),
                volume_type: Some("gp2".to_owned()),
                ..BsuToCreate::default()
            }),
            device_name: Some("/dev/sda1".to_owned()),
            ..DeviceToCreate::default()
        }],
        ..CreateVms::default()
    }
}

async fn launched(client: &Client, request: &CreateVms) -> Vm {
    client.call(request).await.unwrap().vms.remove(0)
}

async fn by(client: &Client, filters: VmFilters) -> Vec<Vm> {
    client.all(&ReadVms { filters: Some(filters), ..ReadVms::default() }).await.unwrap()
}

async fn by_id(client: &Client, id: &str) -> Option<Vm> {
    by(client, VmFilters { vm_ids: vec![id.to_owned()], ..VmFilters::default() }).await.pop()
}

async fn refused<A: Action>(client: &Client, request: &A) -> Error {
    match client.call(request).await {
        Ok(_) => panic!("{} was not refused", A::NAME),
        Err(error) => error,
    }
}

/// A refusal by its code.
async fn code<A: Action>(client: &Client, request: &A) -> String {
    refused(client, request).await.code().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_vm_boots_lives_and_ends() {
    let (_, client) = world();
    let vm = launched(&client, &launch("t")).await;
    assert_eq!((vm.state, vm.private_ip.as_deref()), (State::Pending, Some("10.0.0.4")));
    assert_eq!(vm.private_dns_name.as_deref(), Some("ip-10-0-0-4.eu-west-2.compute.internal"));
    assert_eq!(vm.block_device_mappings.len(), 1);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(by_id(&client, &vm.vm_id).await.unwrap().state, State::Running);
    let ended = client.call(&DeleteVms { vm_ids: vec![vm.vm_id.clone()] }).await.unwrap();
    assert_eq!((ended.vms[0].previous_state, ended.vms[0].current_state), (State::Running, State::ShuttingDown));
    sleep(Duration::from_secs(11)).await;
    let gone = by_id(&client, &vm.vm_id).await.unwrap();
    assert_eq!((gone.state, gone.private_ip, gone.tags.len(), gone.nics.len()), (State::Terminated, None, 0, 0));
    let again = client.call(&DeleteVms { vm_ids: vec![vm.vm_id.clone()] }).await.unwrap();
    assert_eq!((again.vms[0].previous_state, again.vms[0].current_state), (State::Terminated, State::Terminated));
    sleep(Duration::from_secs(601)).await;
    assert!(by_id(&client, &vm.vm_id).await.is_none());
    assert_eq!(code(&client, &DeleteVms { vm_ids: vec![vm.vm_id] }).await, "5063");
}

#[tokio::test(start_paused = true)]
async fn a_token_makes_one_vm() {
    let (fake, client) = world();
    let (one, other) = (launched(&client, &launch("t")).await, launched(&client, &launch("t")).await);
    assert_eq!((&one.vm_id, fake.vms().len()), (&other.vm_id, 1));
    fake.conduct(|conduct| conduct.honours_tokens = false);
    assert_ne!(launched(&client, &launch("t")).await.vm_id, one.vm_id);
    let found = by(&client, VmFilters { client_tokens: vec!["t".to_owned()], ..VmFilters::default() }).await;
    assert_eq!(found.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tags_in_the_user_data_are_there_at_once_if_the_api_reads_them() {
    let (fake, client) = world();
    let text = "-----BEGIN OUTSCALE SECTION-----\nfilter_private_section=true\ntags.karpenter.sh/managed-by=demo\n\
                -----END OUTSCALE SECTION-----\nversion: v1alpha1\ntags.not=this\n";
    let request = CreateVms { user_data: Some(UserData::of(text.as_bytes())), ..launch("t") };
    assert_eq!(launched(&client, &request).await.tags, [ResourceTag::new("karpenter.sh/managed-by", "demo")]);
    fake.conduct(|conduct| conduct.reads_section = false);
    let request = CreateVms { client_token: Some("u".to_owned()), ..request };
    assert!(launched(&client, &request).await.tags.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tags_are_overwritten_filtered_and_taken_off() {
    let (fake, client) = world();
    let vm = launched(&client, &launch("t")).await;
    let tag = |key: &str, value: &str| CreateTags {
        resource_ids: vec![vm.vm_id.clone(), "subnet-00000001".to_owned()],
        tags: vec![ResourceTag::new(key, value)],
    };
    client.call(&tag("k", "1")).await.unwrap();
    client.call(&tag("k", "2")).await.unwrap();
    client.call(&tag("OscK8sClusterID/x", "")).await.unwrap();
    let filter = |tags: &[&str], keys: &[&str]| VmFilters {
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        tag_keys: keys.iter().map(|&key| key.to_owned()).collect(),
        ..VmFilters::default()
    };
    assert_eq!(by(&client, filter(&["k=2"], &[])).await.len(), 1);
    assert_eq!(by(&client, filter(&["k=1"], &[])).await.len(), 0);
    assert_eq!(by(&client, filter(&["k=1", "k=2"], &["OscK8sClusterID/x"])).await.len(), 1);
    assert_eq!(by(&client, filter(&[], &["OscK8sClusterID/y"])).await.len(), 0);
    let read = client.all(&ReadTags::default()).await.unwrap();
    assert_eq!(read.len(), 4);
    assert_eq!(code(&client, &tag("", "x")).await, "4069");
    assert_eq!(code(&client, &CreateTags { resource_ids: vec![], ..tag("k", "v") }).await, "7000");
    let unknown = CreateTags { resource_ids: vec![vm.vm_id.clone(), "i-ffffffff".to_owned()], ..tag("all", "or none") };
    assert_eq!(code(&client, &unknown).await, "5063");
    assert!(fake.vms()[0].tags.iter().all(|tag| tag.key != "all"));
    let off = DeleteTags { resource_ids: vec![vm.vm_id.clone()], tags: vec![ResourceTag::new("k", "2")] };
    client.call(&off).await.unwrap();
    assert_eq!(fake.vms()[0].tags, [ResourceTag::new("OscK8sClusterID/x", "")]);
    fake.conduct(|conduct| conduct.fails_first = vec!["CreateTags".to_owned(); 2]);
    client.call(&tag("k", "3")).await.unwrap();
    let load = &fake.load()["CreateTags"];
    assert_eq!((load.calls, load.struck(Fault::Failed)), (3 + 3 + 3, 2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_launched_is_refused_by_its_code() {
    let (fake, client) = world();
    fake.account(|account| {
        let mut stranger = account.security_groups[0].clone();
        stranger.security_group_id = "sg-0000000f".to_owned();
        stranger.net_id = Some("vpc-0000000f".to_owned());
        account.security_groups.push(stranger);
        account.quotas.vms = 2;
    });
    let text = |text: &str| Some(text.to_owned());
    let too_long = UserData::of(&vec![b'x'; UserData::LONGEST]);
    let placed = |place: &str| {
        let placement = crate::clouds::outscale::oapi::wire::Placement { subregion_name: text(place), tenancy: None };
        Some(placement)
    };
    for (expected, request) in [
        ("5023", CreateVms { image_id: "ami-ffffffff".to_owned(), ..launch("a") }),
        ("7000", CreateVms { image_id: String::new(), ..launch("a") }),
        ("5057", CreateVms { subnet_id: text("subnet-ffffffff"), ..launch("a") }),
        ("5020", CreateVms { security_group_ids: vec!["sg-ffffffff".to_owned()], ..launch("a") }),
        ("5022", CreateVms { security_group_ids: vec!["sg-0000000f".to_owned()], ..launch("a") }),
        ("5071", CreateVms { keypair_name: text("nobody's"), ..launch("a") }),
        ("4047", CreateVms { vm_type: text("tina.c4r8"), ..launch("a") }),
        ("4047", CreateVms { user_data: Some(too_long), ..launch("a") }),
        ("3002", CreateVms { placement: placed("eu-west-2b"), ..launch("a") }),
    ] {
        assert_eq!(code(&client, &request).await, expected);
    }
    fake.conduct(|conduct| {
        conduct.sold_out = vec![Scarce { vm_type: text("tinav6"), subregion: text("eu-west-2a") }];
    });
    let error = refused(&client, &launch("a")).await;
    assert_eq!((error.class, error.code()), (Class::SoldOut, Some("10001")));
    let elsewhere = CreateVms { subnet_id: text("subnet-00000002"), ..launch("a") };
    launched(&client, &elsewhere).await;
    launched(&client, &CreateVms { vm_type: text("t2.medium"), ..launch("b") }).await;
    assert_eq!(refused(&client, &CreateVms { vm_type: text("t2.medium"), ..launch("c") }).await.class, Class::Quota);
    let quotas = client.all(&ReadQuotas::default()).await.unwrap();
    let counted = |name: &str| quotas[0].quotas.iter().find(|quota| quota.name == name).unwrap().used_value;
    assert_eq!((counted("vm_limit"), counted("core_limit"), counted("memory_limit")), (Some(2), Some(6), Some(12)));
}

#[tokio::test(start_paused = true)]
async fn subnets_run_out_of_addresses() {
    let (fake, client) = world();
    fake.account(|account| account.subnets[0].ip_range = Some("10.0.0.0/29".to_owned()));
    for token in ["a", "b", "c"] {
        launched(&client, &launch(token)).await;
    }
    let subnets = client.all(&ReadSubnets::default()).await.unwrap();
    assert_eq!(subnets[0].available_ips_count, Some(0));
    let error = refused(&client, &launch("d")).await;
    assert!(error.class == Class::SoldOut && error.is_subnet_full(), "{error}");
    assert_eq!(fake.vms().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn deletions_of_several_are_all_or_none_and_protection_holds() {
    let (fake, client) = world();
    let vm = launched(&client, &launch("t")).await;
    let with = |id: &str| DeleteVms { vm_ids: vec![vm.vm_id.clone(), id.to_owned()] };
    assert_eq!(code(&client, &with("i-ffffffff")).await, "5063");
    assert_eq!(code(&client, &with("vm-ffffffff")).await, "4104");
    assert_eq!(code(&client, &with("i-xyz")).await, "4105");
    assert_eq!(code(&client, &DeleteVms::default()).await, "7000");
    assert_eq!(fake.vms()[0].state, State::Pending);
    let protect = |on| UpdateVm { vm_id: vm.vm_id.clone(), deletion_protection: Some(on), ..UpdateVm::default() };
    client.call(&protect(true)).await.unwrap();
    let delete = DeleteVms { vm_ids: vec![vm.vm_id.clone()] };
    let error = refused(&client, &delete).await;
    assert!(error.has_code("8018") && error.class == Class::Conflict, "{error}");
    client.call(&protect(false)).await.unwrap();
    client.call(&delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn vms_are_stopped_and_restarted() {
    let (fake, client) = world();
    let vm = launched(&client, &launch("t")).await;
    let ids = vec![vm.vm_id.clone()];
    assert_eq!(refused(&client, &RebootVms { vm_ids: ids.clone() }).await.class, Class::Conflict);
    sleep(Duration::from_secs(31)).await;
    client.call(&RebootVms { vm_ids: ids.clone() }).await.unwrap();
    assert_eq!(fake.reboots(&vm.vm_id), Some(1));
    let states = client.all(&ReadVmsState::default()).await.unwrap();
    assert_eq!(states[0].vm_state, State::Running);
    client.call(&StopVms { vm_ids: ids, force_stop: Some(true) }).await.unwrap();
    sleep(Duration::from_secs(11)).await;
    assert_eq!(fake.vms()[0].state, State::Stopped);
    assert!(client.all(&ReadVmsState::default()).await.unwrap().is_empty());
    let all = ReadVmsState { all_vms: Some(true), ..ReadVmsState::default() };
    assert_eq!(client.all(&all).await.unwrap()[0].vm_state, State::Stopped);
}

#[tokio::test(start_paused = true)]
async fn new_vms_are_listed_late_and_can_be_acted_on_before() {
    let (fake, client) = world();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(2));
    let vm = launched(&client, &launch("t")).await;
    assert!(by_id(&client, &vm.vm_id).await.is_none());
    assert_eq!(fake.struck(Fault::ListedLate), 1);
    let tags = CreateTags { resource_ids: vec![vm.vm_id.clone()], tags: vec![ResourceTag::new("k", "v")] };
    client.call(&tags).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(by_id(&client, &vm.vm_id).await.unwrap().tags, tags.tags);
    assert_eq!(fake.struck(Fault::ListedLate), 1, "it is listed now");
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages() {
    let (fake, client) = world();
    let many = CreateVms { min_vms_count: Some(1), max_vms_count: Some(450), ..launch("t") };
    assert_eq!(client.call(&many).await.unwrap().vms.len(), 450);
    let listed = by(&client, VmFilters::default()).await;
    assert_eq!(listed, fake.vms());
    assert_eq!(fake.load()["ReadVms"].calls, 3);
}

#[tokio::test(start_paused = true)]
async fn lists_know_what_the_account_has() {
    let (_, client) = world();
    let images = client.all(&ReadImages::default()).await.unwrap();
    assert_eq!((images[0].image_id.as_str(), images[0].state.as_deref()), (Account::IMAGE, Some("available")));
    let named = |pattern: &str| ReadImages {
        filters: Some(crate::clouds::outscale::oapi::wire::ImageFilters {
            image_names: vec![pattern.to_owned()],
            ..crate::clouds::outscale::oapi::wire::ImageFilters::default()
        }),
        ..ReadImages::default()
    };
    assert_eq!(client.all(&named("Talos-v1.11.*")).await.unwrap().len(), 1);
    assert_eq!(client.all(&named("Talos-v1.12.*")).await.unwrap().len(), 0);
    assert_eq!(client.all(&ReadKeypairs::default()).await.unwrap()[0].keypair_name, Account::KEYPAIR);
    assert!(!client.all(&ReadVmTypes::default()).await.unwrap().is_empty());
    let price = ReadUnitPrice {
        operation: "RunInstances-OD".to_owned(),
        service: "TinaOS-FCU".to_owned(),
        kind: "BoxUsage:tinav6.c4r8p2".to_owned(),
    };
    let price = client.call(&price).await.unwrap().unit_price_entry.unwrap().unit_price.unwrap();
    assert!((price - 0.18).abs() < 1e-9, "{price}");
}

#[tokio::test(start_paused = true)]
async fn both_dialects_are_verified() {
    for dialect in [Dialect::Aws4, Dialect::Osc4] {
        let (_, client) = world_with(0, |access| access.dialect = dialect);
        client.call(&ReadVms::default()).await.unwrap();
    }
    let vectors = [
        (
            "x-osc-date",
            "OSC4-HMAC-SHA256 Credential=AKEXAMPLE0123456789/20260102/eu-west-2/api/osc4_request, SignedHeaders=content-type;host;x-osc-date, Signature=ada9adcfc8d2fb8b3b20f84f94a2f8971d14c511aa925794762eb4504ef1138d",
        ),
        (
            "x-osc-date",
            "OSC4-HMAC-SHA256 Credential=AKEXAMPLE0123456789/20260102/eu-west-2/api/osc4_request, SignedHeaders=host;x-osc-date, Signature=1e7d46d67603f518e8697e902aec2412ef6dc7b7ce6729812289aa9485355d68",
        ),
        (
            "x-amz-date",
            "AWS4-HMAC-SHA256 Credential=AKEXAMPLE0123456789/20260102/eu-west-2/oapi/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=011f157013794b1ec031820971eb6eab28f68e9c44268e6b3c97bb2df8008e61",
        ),
    ];
    let keys = [("AKEXAMPLE0123456789".to_owned(), SecretKey::new("SKEXAMPLE0123456789SKEXAMPLE0123456789AB"))].into();
    for (date, authorization) in vectors {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json; charset=utf-8".parse().unwrap());
        headers.insert("host", "api.eu-west-2.outscale.com".parse().unwrap());
        headers.insert(date, "20260102T030405Z".parse().unwrap());
        headers.insert("authorization", authorization.parse().unwrap());
        let body = br#"{"Filters":{"Tags":["karpenter.sh/managed-by=demo"]}}"#;
        let check = |body: &[u8], region: &str, at: &str| {
            let request = Signed { path: "/api/v1/ReadVms", headers: &headers, body };
            Gate::default().admit(&request, &keys, (region, at.parse().unwrap()))
        };
        check(body, "eu-west-2", "2026-01-02T03:04:05Z").unwrap();
        check(body, "eu-west-2", "2026-01-02T03:17:05Z").unwrap();
        check(body, "eu-west-2", "2026-01-02T03:04:03Z").unwrap();
        for (body, region, at) in [
            (&b"{}"[..], "eu-west-2", "2026-01-02T03:04:05Z"),
            (body, "us-east-2", "2026-01-02T03:04:05Z"),
            (body, "eu-west-2", "2026-01-02T03:04:01Z"),
            (body, "eu-west-2", "2026-01-03T03:04:05Z"),
        ] {
            let refusal = check(body, region, at).unwrap_err();
            assert_eq!((refusal.status, refusal.code), (401, "1"), "{region} {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_is_set_by_the_first_answer() {
    for ahead in [5, 90, -7_200] {
        let (fake, client) = world_with(ahead, |_| {});
        client.call(&ReadVms::default()).await.unwrap();
        client.call(&ReadVms::default()).await.unwrap();
        assert_eq!(fake.load()["ReadVms"].calls, 3, "{ahead}");
        let off = client.skew().as_secs() + ahead;
        assert!(off.abs() <= 1, "{ahead}: {:?}", client.skew());
    }
}

/// While the first signed call is on its way, the answer to one that needs no keys shows how late it is.
#[tokio::test(start_paused = true)]
async fn a_clock_that_another_answer_has_set_meanwhile_is_no_matter_of_keys() {
    for ahead in [5, 3_600] {
        let (fake, client) = world_with(ahead, |_| {});
        let latency = |millis| (Duration::from_millis(millis), Duration::from_millis(millis));
        fake.conduct(|conduct| conduct.latency = latency(100));
        let quick = async {
            sleep(Duration::from_millis(10)).await;
            fake.conduct(|conduct| conduct.latency = latency(10));
            client.call(&ReadVmTypes::default()).await
        };
        let request = ReadVms::default();
        let (signed, free) = tokio::join!(client.call(&request), quick);
        free.unwrap();
        signed.unwrap();
        assert_eq!(fake.load()["ReadVms"].calls, 2, "{ahead}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_keys_are_tried_once_and_then_left_alone() {
    let (fake, client) = world_with(0, |access| access.keys.secret_key = SecretKey::new("wrong"));
    let request = ReadVms::default();
    let all = futures::future::join_all((0..100).map(|_| client.call(&request))).await;
    for error in all.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.class, Class::Keys, "{error}");
        assert!(error.to_string().contains("secret key"), "{error}");
    }
    assert_eq!(fake.load()["ReadVms"].calls, 1);
    // What needs no keys goes on.
    client.call(&ReadVmTypes::default()).await.unwrap();
    for minutes in [1, 2, 3] {
        sleep(Duration::from_mins(minutes) + Duration::from_secs(1)).await;
        refused(&client, &request).await;
        refused(&client, &request).await;
        assert_eq!(fake.load()["ReadVms"].calls, 1 + minutes);
    }
    // Somebody mends the keys; the fourth refusal had them locked out for a minute.
    fake.account(|account| drop(account.keys.insert(Account::ACCESS_KEY.to_owned(), SecretKey::new("wrong"))));
    sleep(Duration::from_mins(4) + Duration::from_secs(1)).await;
    client.call(&request).await.unwrap();
    client.call(&request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_locked_out_is_told_so() {
    let (fake, mut client) = world_with(0, |access| access.keys.secret_key = SecretKey::new("wrong"));
    for code in ["1", "1", "1", "1", "13"] {
        let error = refused(&client, &ReadVms::default()).await;
        assert_eq!((error.class, error.code()), (Class::Keys, Some(code)));
        // Somebody who knows nothing of what the one before was told.
        let mut access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
        access.keys.secret_key = SecretKey::new("wrong");
        client = Client::new(access, Arc::new(fake.clone()) as Arc<dyn Transport>, Options::new(clock(0)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_names_the_action_and_stops_nothing_else() {
    let (fake, client) = world();
    fake.account(|account| account.denied = ["CreateVms".to_owned()].into());
    let error = refused(&client, &launch("t")).await;
    assert_eq!((error.class, error.code()), (Class::Denied, Some("4")));
    assert!(error.to_string().contains("api:CreateVms in an EIM policy"), "{error}");
    let error = client.rehearse(&launch("t")).await.unwrap_err();
    assert_eq!(error.class, Class::Denied);
    client.call(&ReadVms::default()).await.unwrap();
    assert_eq!(fake.load()["CreateVms"].calls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_makes_nothing() {
    let (fake, client) = world();
    client.rehearse(&launch("t")).await.unwrap();
    assert!(fake.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_client_slows_down_where_the_api_throttles() {
    let (fake, client) = world();
    fake.conduct(|conduct| conduct.limit_each = Some(2));
    let requests: Vec<_> = (0..30).map(|number| launch(&number.to_string())).collect();
    let all = futures::future::join_all(requests.iter().map(|request| client.call(request))).await;
    let done = all.iter().filter(|answer| answer.is_ok()).count();
    for error in all.into_iter().filter_map(Result::err) {
        assert_eq!(error.class, Class::Throttled, "{error}");
    }
    let throttled = fake.struck(Fault::Throttled);
    assert!(done == 30 && (1..20).contains(&throttled), "{done} done, {throttled} throttled");
    assert_eq!(fake.vms().len(), done);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_launches_with_lost_answers_and_late_lists_make_a_thousand_vms() {
    let (fake, client) = world();
    fake.conduct(|conduct| {
        conduct.loses_answers = 0.05;
        conduct.loses_requests = 0.01;
        conduct.fails = 0.01;
        conduct.lists_after = Duration::from_secs(2);
    });
    let one = async |number: usize| {
        let request = launch(&format!("claim-{number}"));
        // What is unknown is asked for again by the same token, until it is known.
        for attempt in 0..50 {
            match client.call(&request).await {
                Ok(answer) => return answer.vms[0].vm_id.clone(),
                Err(error) => {
                    assert!(matches!(error.class, Class::Unknown | Class::Throttled | Class::Temporary), "{error}");
                    sleep(error.retry_after.unwrap_or_else(|| Duration::from_secs(1 + attempt))).await;
                }
            }
        }
        panic!("launch {number} came to no end");
    };
    let ids = futures::future::join_all((0..1_000).map(one)).await;
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((distinct.len(), fake.vms().len()), (1_000, 1_000));
    let load = &fake.load()["CreateVms"];
    // A full bucket at the start, and five a second from then on.
    assert!(load.calls > 1_000 && load.most_in_a_second <= 15, "{load:?}");
    for fault in [Fault::AnswerLost, Fault::RequestLost, Fault::Failed] {
        assert!(load.struck(fault) > 0, "{load:?}");
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!(by(&client, VmFilters::default()).await.len(), 1_000);
}

#[tokio::test]
async fn the_fake_answers_on_a_port() {
    let fake = Fake::new(Account::sample(), clock(0), Seed(1));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, fake.clone(), async { drop(stopped.await) }));
    let access = Account::sample().access(&format!("http://{address}")).unwrap();
    let network = Arc::new(crate::clouds::outscale::oapi::Network::new(&access).unwrap());
    let client = Client::new(access, network, Options::new(clock(0)));
    let vm = launched(&client, &launch("t")).await;
    assert_eq!(by_id(&client, &vm.vm_id).await.unwrap().vm_id, vm.vm_id);
    fake.conduct(|conduct| {
        conduct.loses_answers = 1.0;
        conduct.silence = Duration::ZERO;
    });
    let error = refused(&client, &launch("u")).await;
    assert_eq!(error.class, Class::Unknown, "{error}");
    assert_eq!(fake.vms().len(), 2);
    stop.send(()).unwrap();
    drop(client);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_launched() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let access = Account::sample().access(&format!("http://{address}")).unwrap();
    let network = Arc::new(crate::clouds::outscale::oapi::Network::new(&access).unwrap());
    let client = Client::new(access, network, Options { attempts: 1, ..Options::new(clock(0)) });
    let error = refused(&client, &launch("t")).await;
    assert_eq!(error.class, Class::Temporary, "{error}");
}
