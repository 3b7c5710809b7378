//! A fake, and what is asked of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use joiner::clouds::outscale::oapi::wire::{BsuToCreate, CreateVms, DeviceToCreate, NicToCreate, Placement, UserData};
use joiner::clouds::outscale::oapi::{Client, Options, Transport};
use joiner::sim::oapi::{Account, Fake, Fault};
use joiner::sim::{Clock, Seed};
use tokio::time::Instant;

/// A clock that moves with tokio's.
pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    let base: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    Arc::new(move || base + SignedDuration::try_from(start.elapsed()).unwrap())
}

pub(crate) fn fake() -> Fake {
    Fake::new(Account::sample(), clock(), Seed(1))
}

/// Answers and requests get lost, calls fail and are throttled, and lists lag behind.
pub(crate) fn has_a_bad_day(fake: &Fake) {
    fake.conduct(|conduct| {
        conduct.loses_answers = 0.1;
        conduct.loses_requests = 0.05;
        conduct.fails = 0.1;
        conduct.limit_each = Some(4);
        conduct.lists_after = Duration::from_secs(2);
    });
}

/// All of that did happen.
pub(crate) fn had_a_bad_day(fake: &Fake) {
    let meant = [Fault::AnswerLost, Fault::RequestLost, Fault::Failed, Fault::Throttled, Fault::ListedLate];
    let missed: Vec<Fault> = meant.into_iter().filter(|fault| fake.struck(*fault) == 0).collect();
    assert_eq!(missed, [], "{:?}", fake.load());
}

pub(crate) fn client(transport: Arc<dyn Transport>) -> Client {
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    Client::new(access, transport, Options::new(clock()))
}

#[expect(clippy::unnecessary_wraps, reason = "most fields may be left out")]
pub(crate) fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A launch with every field that there is.
pub(crate) fn whole_launch() -> CreateVms {
    CreateVms {
        block_device_mappings: vec![DeviceToCreate {
            bsu: Some(BsuToCreate {
                delete_on_vm_deletion: Some(true),
                iops: Some(100),
                snapshot_id: text("snap-00000001"),
                volume_size: Some(50),
                volume_type: text("io1"),
            }),
            device_name: text("/dev/sdb"),
            no_device: text(""),
            virtual_device_name: text("ephemeral0"),
        }],
        boot_mode: text("legacy"),
        boot_on_creation: Some(true),
        bsu_optimized: Some(false),
        client_token: text("token"),
        deletion_protection: Some(false),
        image_id: Account::IMAGE.to_owned(),
        keypair_name: text(Account::KEYPAIR),
        max_vms_count: Some(1),
        min_vms_count: Some(1),
        nested_virtualization: Some(false),
        nics: vec![NicToCreate {
            delete_on_vm_deletion: Some(true),
            description: text("first"),
            device_number: Some(0),
            nic_id: text("eni-00000001"),
            secondary_private_ip_count: Some(1),
            security_group_ids: vec![Account::GROUP.to_owned()],
            subnet_id: text("subnet-00000001"),
        }],
        performance: text("high"),
        placement: Some(Placement { subregion_name: text("eu-west-2a"), tenancy: text("default") }),
        private_ips: vec!["10.0.0.9".to_owned()],
        security_group_ids: vec![Account::GROUP.to_owned()],
        security_groups: vec!["nodes".to_owned()],
        subnet_id: text("subnet-00000001"),
        tpm_enabled: Some(false),
        user_data: Some(UserData::of(
            b"-----BEGIN OUTSCALE SECTION-----\ntags.a=b\n-----END OUTSCALE SECTION-----\nx: y\n",
        )),
        vm_initiated_shutdown_behavior: text("terminate"),
        vm_type: text("tinav6.c4r8p2"),
    }
}

/// A launch as joiner makes it.
pub(crate) fn launch(token: &str) -> CreateVms {
    CreateVms {
        client_token: text(token),
        image_id: Account::IMAGE.to_owned(),
        security_group_ids: vec![Account::GROUP.to_owned()],
        subnet_id: text("subnet-00000001"),
        vm_type: text("tinav6.c2r4p2"),
        ..CreateVms::default()
    }
}
