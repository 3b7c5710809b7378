//! Every request of the client and every answer of the fake is as the specification says.

use std::sync::Arc;
use std::time::Duration;

use joiner::clouds::outscale::oapi::wire::*;
use joiner::clouds::outscale::oapi::{Action, Class, Client};
use joiner::sim::oapi::Account;
use tokio::time::sleep;

use super::judge::Judge;
use super::spec::Spec;
use super::world::{client, fake, had_a_bad_day, has_a_bad_day, launch, text, whole_launch};

fn one(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

fn whole_vm_filters() -> VmFilters {
    VmFilters {
        client_tokens: one("token"),
        image_ids: one(Account::IMAGE),
        keypair_names: one(Account::KEYPAIR),
        net_ids: one("vpc-00000001"),
        private_ips: one("10.0.0.4"),
        security_group_ids: one(Account::GROUP),
        subnet_ids: one("subnet-00000001"),
        subregion_names: one("eu-west-2a"),
        tag_keys: one("a"),
        tag_values: one("b"),
        tags: one("a=b"),
        tenancies: one("default"),
        vm_ids: vec![],
        vm_state_names: vec![State::Pending, State::Running, State::Stopping, State::Stopped, State::ShuttingDown],
        vm_types: one("tinav6.c4r8p2"),
    }
}

/// Everything that can be said about what stands in lists.
async fn lists(client: &Client) {
    let (keys, values, tags) = (one("a"), one("b"), one("a=b"));
    let size = Some(5);
    let filters = Some(ImageFilters {
        account_aliases: one("Outscale"),
        account_ids: one("000000000001"),
        architectures: one("x86_64"),
        image_ids: one(Account::IMAGE),
        image_names: one("Talos*"),
        states: one("available"),
        tag_keys: keys.clone(),
        tag_values: values.clone(),
        tags: tags.clone(),
    });
    client.call(&ReadImages { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(SubnetFilters {
        net_ids: one("vpc-00000001"),
        states: one("available"),
        subnet_ids: one("subnet-00000001"),
        subregion_names: one("eu-west-2a"),
        tag_keys: keys.clone(),
        tag_values: values.clone(),
        tags: tags.clone(),
    });
    client.call(&ReadSubnets { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(SecurityGroupFilters {
        net_ids: one("vpc-00000001"),
        security_group_ids: one(Account::GROUP),
        security_group_names: one("nodes"),
        tag_keys: keys,
        tag_values: values,
        tags,
    });
    client.call(&ReadSecurityGroups { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(SubregionFilters {
        region_names: one("eu-west-2"),
        states: one("available"),
        subregion_names: one("eu-west-2a"),
    });
    client.call(&ReadSubregions { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(KeypairFilters { keypair_fingerprints: one("aa"), keypair_names: one("rehearsal") });
    client.call(&ReadKeypairs { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(QuotaFilters {
        collections: one("Compute"),
        quota_names: one("vm_limit"),
        quota_types: one("global"),
        short_descriptions: one("VM Limit"),
    });
    client.call(&ReadQuotas { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(VmTypeFilters {
        gpus: vec![0],
        memory_sizes: vec![8.0],
        vcore_counts: vec![2],
        vm_type_names: one("t2.large"),
    });
    client.call(&ReadVmTypes { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    let filters = Some(SnapshotFilters { snapshot_ids: one(Account::SNAPSHOT) });
    client.call(&ReadSnapshots { filters, next_page_token: None, results_per_page: size }).await.unwrap();
    // And all of each.
    client.all(&ReadImages::default()).await.unwrap();
    client.all(&ReadSubnets::default()).await.unwrap();
    client.all(&ReadSecurityGroups::default()).await.unwrap();
    client.all(&ReadSubregions::default()).await.unwrap();
    client.all(&ReadSnapshots::default()).await.unwrap();
    client.all(&ReadKeypairs::default()).await.unwrap();
    client.all(&ReadQuotas::default()).await.unwrap();
    client.all(&ReadVmTypes::default()).await.unwrap();
    client.call(&ReadCatalog {}).await.unwrap();
    client.call(&ReadPublicCatalog {}).await.unwrap();
    client.call(&ReadFlexibleGpuCatalog {}).await.unwrap();
    let (operation, service) = ("RunInstances-OD".to_owned(), "TinaOS-FCU".to_owned());
    let kind = "BoxUsage:tinav7.c4r8p1".to_owned();
    client.call(&ReadUnitPrice { operation, service, kind }).await.unwrap();
}

/// A machine with a flexible GPU, which is tied to it.
async fn gpus(client: &Client) {
    let request = CreateVms { vm_type: text("p6.large"), ..launch("with-gpu") };
    let vm = client.call(&request).await.unwrap().vms.remove(0);
    let of = |ids: Vec<String>| {
        let vm_ids = one(&vm.vm_id);
        let filters = FlexibleGpuFilters { flexible_gpu_ids: ids, states: one("attached"), vm_ids };
        ReadFlexibleGpus { filters: Some(filters) }
    };
    let gpu = client.call(&of(vec![])).await.unwrap().flexible_gpus.remove(0);
    let update = UpdateFlexibleGpu { delete_on_vm_deletion: Some(true), flexible_gpu_id: gpu.flexible_gpu_id.clone() };
    client.call(&update).await.unwrap();
    let tied = client.call(&of(one(&gpu.flexible_gpu_id))).await.unwrap().flexible_gpus;
    assert_eq!(tied, [FlexibleGpu { delete_on_vm_deletion: Some(true), ..gpu }]);
    client.call(&DeleteVms { vm_ids: one(&vm.vm_id) }).await.unwrap();
    sleep(Duration::from_secs(11)).await;
    refused(client, &update).await;
}

async fn refused<A: Action>(client: &Client, request: &A) {
    assert!(client.call(request).await.is_err(), "{} was not refused", A::NAME);
}

#[tokio::test(start_paused = true)]
async fn every_action_with_every_field() {
    let Some(spec) = Spec::load() else { return };
    let fake = fake();
    let judge = Judge::of(fake.clone(), spec);
    let client = client(Arc::clone(&judge) as _);
    lists(&client).await;
    let vm = client.call(&whole_launch()).await.unwrap().vms.remove(0);
    client.rehearse(&whole_launch()).await.unwrap();
    let ids = vec![vm.vm_id.clone()];
    let listed = ReadVms { filters: Some(whole_vm_filters()), next_page_token: None, results_per_page: Some(10) };
    assert_eq!(client.call(&listed).await.unwrap().vms, std::slice::from_ref(&vm));
    let by_id = VmFilters { vm_ids: ids.clone(), ..VmFilters::default() };
    let by_id = ReadVms { filters: Some(by_id), ..ReadVms::default() };
    sleep(Duration::from_secs(31)).await;
    let tags = vec![ResourceTag::new("OscK8sClusterID/x", "owned"), ResourceTag::new("empty", "")];
    client.call(&CreateTags { resource_ids: ids.clone(), tags: tags.clone() }).await.unwrap();
    let filters =
        TagFilters { keys: one("empty"), resource_ids: ids.clone(), resource_types: one("vm"), values: one("*") };
    let read = ReadTags { filters: Some(filters), next_page_token: None, results_per_page: Some(1) };
    assert_eq!(client.call(&read).await.unwrap().tags.len(), 1);
    client.call(&DeleteTags { resource_ids: ids.clone(), tags }).await.unwrap();
    let filters = VmStateFilters {
        maintenance_event_codes: vec![],
        subregion_names: one("eu-west-2a"),
        vm_ids: ids.clone(),
        vm_states: vec![State::Running],
    };
    let states =
        ReadVmsState { all_vms: Some(true), filters: Some(filters), next_page_token: None, results_per_page: Some(10) };
    assert_eq!(client.call(&states).await.unwrap().vm_states.len(), 1);
    client.call(&ReadConsoleOutput { vm_id: vm.vm_id.clone() }).await.unwrap();
    gpus(&client).await;
    client.call(&RebootVms { vm_ids: ids.clone() }).await.unwrap();
    let update = UpdateVm {
        deletion_protection: Some(false),
        security_group_ids: one(Account::GROUP),
        vm_id: vm.vm_id.clone(),
        vm_type: None,
    };
    client.call(&update).await.unwrap();
    client.call(&StopVms { force_stop: Some(true), vm_ids: ids.clone() }).await.unwrap();
    sleep(Duration::from_secs(11)).await;
    client.call(&UpdateVm { vm_type: text("tinav6.c2r4p2"), ..update }).await.unwrap();
    client.call(&DeleteVms { vm_ids: ids.clone() }).await.unwrap();
    client.call(&by_id).await.unwrap();
    sleep(Duration::from_secs(11)).await;
    assert_eq!(client.call(&by_id).await.unwrap().vms[0].state, State::Terminated);
    refused(&client, &DeleteVms { vm_ids: one("i-ffffffff") }).await;
    refused(&client, &CreateVms { image_id: "ami-ffffffff".to_owned(), ..whole_launch() }).await;
    refused(&client, &ReadVms { results_per_page: Some(0), ..ReadVms::default() }).await;
    judge.acquit();
    let answered = judge.seen().iter().filter(|seen| seen.ends_with(" 200")).count();
    assert_eq!(answered, 25, "{:?}", judge.seen());
}

#[tokio::test(start_paused = true)]
async fn a_bad_day() {
    let Some(spec) = Spec::load() else { return };
    let fake = fake();
    has_a_bad_day(&fake);
    fake.conduct(|conduct| conduct.fails_first = vec!["CreateTags".to_owned(); 3]);
    let judge = Judge::of(fake.clone(), spec);
    let client = client(Arc::clone(&judge) as _);
    let live = async |number: usize| {
        let request = launch(&format!("claim-{number}"));
        let vm = loop {
            match client.call(&request).await {
                Ok(mut answer) => break answer.vms.remove(0),
                Err(error) => {
                    assert!(matches!(error.class, Class::Unknown | Class::Throttled | Class::Temporary), "{error}");
                    sleep(Duration::from_secs(2)).await;
                }
            }
        };
        // It may not be listed yet, and the call may fail.
        drop(client.call(&ReadVms::default()).await);
        let tags = CreateTags { resource_ids: one(&vm.vm_id), tags: vec![ResourceTag::new("mark", "mine")] };
        while let Err(error) = client.call(&tags).await {
            assert!(matches!(error.class, Class::Unknown | Class::Throttled | Class::Temporary), "{error}");
        }
        sleep(Duration::from_mins(1)).await;
        while let Err(error) = client.call(&DeleteVms { vm_ids: one(&vm.vm_id) }).await {
            assert!(matches!(error.class, Class::Unknown | Class::Throttled | Class::Temporary), "{error}");
        }
    };
    futures::future::join_all((0..100).map(live)).await;
    sleep(Duration::from_secs(11)).await;
    let vms = fake.vms();
    assert!(vms.iter().all(|vm| vm.state == State::Terminated), "{vms:?}");
    assert!(vms.len() <= 100, "{} VMs were made for 100 tokens", vms.len());
    judge.acquit();
    had_a_bad_day(&fake);
}

#[test]
fn the_judge_sees_what_is_wrong() {
    let Some(spec) = Spec::load() else { return };
    for (action, request) in [
        ("CreateVms", serde_json::json!({ "ImageId": "ami-1", "Tags": [] })),
        ("CreateVms", serde_json::json!({ "VmType": "t2.small" })),
        ("CreateVms", serde_json::json!({ "ImageId": "ami-1", "Performance": "super" })),
        ("CreateVms", serde_json::json!({ "ImageId": "ami-1", "MaxVmsCount": "1" })),
        ("ReadVms", serde_json::json!({ "Filters": { "VmStates": ["running"] } })),
        ("ReadVms", serde_json::json!({ "Filters": { "VmIds": "i-1" } })),
        ("CreateTags", serde_json::json!({ "ResourceIds": ["i-1"], "Tags": [{ "Key": "k" }] })),
    ] {
        assert_eq!(spec.request(action, &request).len(), 1, "{action} {request}");
    }
    let odd = serde_json::json!({ "Vms": [{ "CreationDate": "yesterday" }], "More": 1 });
    assert_eq!(spec.answer("ReadVms", 200, &odd).len(), 2);
    assert_eq!(spec.answer("ReadVms", 400, &serde_json::json!({ "Errors": [{ "Code": 5063 }] })).len(), 1);
}
