//! What is said of a class whose keys are refused, or that the API does not answer for.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, FutureExt};

use super::super::oapi::{Answer, Post, Transport, Undelivered};
use super::super::tests::{Kept, SMALL, Scene, WORKER, class_of, cloud_over, launch, ready, resolved, scene, spec};
use super::*;
use crate::api::classes::outscale::VmTypes;
use crate::clouds::Cloud;
use crate::clouds::outscale::Outscale;
use crate::core::facts::{Status, find_condition};
use crate::sim::oapi::Account;

/// Status, reason and message of every condition after a look.
async fn judged(cloud: &Outscale) -> BTreeMap<&'static str, (Status, &'static str, String)> {
    judged_of(cloud, spec()).await
}

async fn judged_of(
    cloud: &Outscale,
    spec: OutscaleNodeClassSpec,
) -> BTreeMap<&'static str, (Status, &'static str, String)> {
    let (_, resolution) = resolved(cloud, &class_of(spec)).await;
    resolution.judgements.into_iter().map(|told| (told.condition, (told.status, told.reason, told.message))).collect()
}

#[tokio::test(start_paused = true)]
async fn refused_keys_are_one_condition_and_its_text_stays() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| account.keys.clear());
    let first = judged(&cloud).await;
    let bad: Vec<_> = first.iter().filter(|(_, told)| told.0 == Status::False).collect();
    let [(condition, (_, reason, message))] = bad.as_slice() else { panic!("{bad:?}") };
    assert_eq!((**condition, *reason), ("PermissionsReady", "Unauthorized"));
    assert!(message.starts_with("the API refuses the keys: "), "{message}");
    assert!(message.contains("check the access key") && message.contains("reads keys of a Secret"), "{message}");
    for condition in ["ImagesReady", "SubnetsReady", "SecurityGroupsReady"] {
        let (status, reason, message) = &first[condition];
        assert_eq!((*status, *reason), (Status::Unknown, "NotAsked"), "{condition}: {message}");
    }
    assert_eq!(first["UserDataReady"].0, Status::True);
    // While calls are held back, and when the keys are tried again.
    for seconds in [7, 30, 61, 200] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(judged(&cloud).await, first, "{seconds} s later");
    }
    fake.account(|account| account.keys = Account::sample().keys);
    tokio::time::sleep(Duration::from_mins(10)).await;
    ready(&cloud, spec()).await;
}

/// A network that leads nowhere.
struct Nowhere;

impl Transport for Nowhere {
    fn post(&self, _: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        async { Err(Undelivered::NotSent("no such host".to_owned())) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_that_cannot_be_reached_is_one_condition_and_no_type_is_blamed_for_it() {
    let secrets = Kept::default();
    secrets.put("talos", "worker.yaml", WORKER);
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    let cloud = cloud_over(access, Arc::new(Nowhere), &secrets, false);
    let vm_types = Some(VmTypes { names: Some(vec!["m4.large".to_owned()]), ..VmTypes::default() });
    let (_, resolution) = resolved(&cloud, &class_of(OutscaleNodeClassSpec { vm_types, ..spec() })).await;
    for told in &resolution.judgements {
        match told.condition {
            "KeypairReady" | "VolumesReady" | "UserDataReady" => assert_eq!(told.status, Status::True, "{told:?}"),
            "PermissionsReady" => {
                assert_eq!((told.status, told.reason), (Status::Unknown, "NoAnswer"));
                assert!(
                    told.message
                        .contains("cannot be reached (no such host); check the region (OSC_REGION, or region of"),
                    "{told:?}"
                );
            }
            condition => {
                assert_eq!((told.status, told.reason), (Status::Unknown, "NotAsked"), "{told:?}");
                let more = if condition == "TypesReady" { "list of VM types" } else { "see PermissionsReady" };
                assert!(told.message.contains(more), "{told:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn permissions_that_nobody_has_confirmed_are_unknown() {
    let Scene { fake, cloud, .. } = scene();
    ready(&cloud, spec()).await;
    fake.conduct(|conduct| conduct.fails = 1.0);
    let told = judged(&cloud).await;
    assert_eq!((told["PermissionsReady"].0, told["PermissionsReady"].1), (Status::Unknown, "NoAnswer"));
    assert_eq!(judged(&cloud).await, told, "the text stays");
    fake.conduct(|conduct| conduct.fails = 0.0);
    fake.account(|account| account.denied.extend(["ReadVms", "DeleteVms"].map(str::to_owned)));
    let told = judged(&cloud).await;
    let (status, reason, message) = &told["PermissionsReady"];
    assert_eq!((*status, *reason), (Status::False, "Forbidden"));
    for action in ["ReadVms", "DeleteVms"] {
        let statement = format!(r#"{{"Effect":"Allow","Action":["api:{action}"],"Resource":["*"]}}"#);
        assert!(message.contains(&statement), "{message}");
    }
    assert_eq!(judged(&cloud).await, told, "the text stays");
}

#[tokio::test(start_paused = true)]
async fn user_data_that_every_launch_would_be_refused_for_are_said_to_be_unfit() {
    let Scene { secrets, cloud, .. } = scene();
    let told = async |filler: usize| {
        secrets.put(
            "talos",
            "worker.yaml",
            &format!("{WORKER}---\napiVersion: v1alpha1\nkind: Filler\ntext: {}\n", "x".repeat(filler)),
        );
        let (class, _) = resolved(&cloud, &class_of(spec())).await;
        let condition = find_condition(&class.conditions, "UserDataReady").unwrap();
        (condition.status, condition.message.to_string(), class)
    };
    // By itself it fits, and by far; with what a machine's labels may take it does not.
    let most = wire::UserData::LONGEST / 4 * 3;
    let (status, message, _) = told(most - 15 * 1024).await;
    assert_eq!(status, Status::False);
    assert!(message.starts_with("spec.talos: the user data have "), "{message}");
    let (status, message, class) = told(most - 20 * 1024).await;
    assert_eq!(status, Status::True, "{message}");
    cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let tagged = OutscaleNodeClassSpec { tags: [("team".to_owned(), "a\nb".to_owned())].into(), ..spec() };
    let (class, _) = resolved(&cloud, &class_of(tagged)).await;
    let condition = find_condition(&class.conditions, "UserDataReady").unwrap();
    assert!(condition.message.starts_with("spec.tags: tag \"team\" cannot stand"), "{condition:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_machine_configuration_is_told_of_the_secret_or_of_the_field_that_brought_it() {
    let Scene { secrets, cloud, .. } = scene();
    secrets.put("talos", "worker.yaml", &WORKER.replace("mmmmmm.0123456789abcdef", "''"));
    let mut spec = spec();
    spec.talos.patches = vec!["machine: { type: controlplane }".to_owned()];
    let (_, _, message) = judged_of(&cloud, spec).await.remove("UserDataReady").unwrap();
    assert_eq!(
        message,
        "Secret talos, key worker.yaml: machine.token: is missing; without it the machine cannot join the cluster; \
         spec.talos.patches[0]: machine.type: must be worker; take the file worker.yaml that `talosctl gen config` wrote"
    );
}
