//! What becomes of launches whose machines may not have their tags.

use super::super::tests::{SMALL, Scene, class_of, launch, ready, resolved, scene, spec};
use super::*;
use crate::api::classes::outscale::OutscaleNodeClassSpec;
use crate::clouds::outscale::Outscale;
use crate::clouds::{Cloud, Error as Refused, LaunchRefused};

#[tokio::test(start_paused = true)]
async fn tags_beyond_the_quota_end_the_launch_and_hold_the_class_back_until_it_has_fewer() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| account.quotas.tags = 10);
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let error = cloud.create(&wanted).await.unwrap_err();
    let Refused::Launch(LaunchRefused::ClassNotReady(why)) = &error else { panic!("{error}") };
    for part in [
        "spec.tags: CreateTags: 10023 TooManyResources (QuotaExceded)",
        "a machine is to have 11 tags, 1 of them those of spec.tags",
        "take tags out of spec.tags, or ask Outscale for more",
        "taken down again",
    ] {
        assert!(why.contains(part), "{why}");
    }
    assert!(fake.vms().iter().all(|vm| vm.state.is_leaving()));
    assert_eq!(fake.vms().len(), 1, "no further token is tried");
    // Whatever comes next makes no machine, and the class says why.
    assert!(cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.is_err());
    assert_eq!(fake.vms().len(), 1);
    let (_, resolution) = resolved(&cloud, &class).await;
    let said = resolution.judgements.iter().find(|judgement| judgement.condition == "UserDataReady").unwrap();
    assert_eq!((said.status, said.reason), (Status::False, "TagsRefused"));
    assert!(said.message.contains("take tags out of spec.tags"), "{}", said.message);
    // Without tags of its own it fits.
    let edited = ready_without_tags(&cloud).await;
    let machine = cloud.create(&launch(&cloud, &edited, 3, &[SMALL]).await).await.unwrap();
    assert!(machine.id.as_str().starts_with("aws:///"));
    assert_eq!(fake.vms().iter().find(|vm| !vm.state.is_leaving()).unwrap().tags.len(), 10);
    // A quota may have been raised.
    fake.account(|account| account.quotas.tags = 20);
    tokio::time::sleep(HELD_FOR).await;
    assert!(cloud.create(&launch(&cloud, &class, 4, &[SMALL]).await).await.is_ok());
}

/// Its launch was not answered, or it could not be taken down at once: it is met by whoever looks for it.
#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_be_marked_and_is_found_goes_as_well() {
    for (denied, why) in [
        (None, "spec.tags: CreateTags: 10023"),
        (Some("CreateTags"), "allow the action api:CreateTags in an EIM policy"),
    ] {
        let Scene { fake, cloud, .. } = scene();
        fake.conduct(|conduct| conduct.reads_section = false);
        let class = ready(&cloud, spec()).await;
        let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
        fake.conduct(|conduct| conduct.loses_first = vec!["CreateVms".to_owned()]);
        match denied {
            None => fake.account(|account| account.quotas.tags = 10),
            Some(action) => fake.account(|account| account.denied.extend([action.to_owned()])),
        }
        assert!(matches!(cloud.create(&wanted).await, Err(Refused::Unknown(_))));
        let is_leaving = || fake.vms().iter().all(|vm| vm.state.is_leaving());
        assert!(fake.vms().len() == 1 && !is_leaving(), "the launch was made and not answered");
        // The first order to take it down is not carried out.
        fake.account(|account| account.denied.extend(["DeleteVms".to_owned()]));
        let error = cloud.find(&wanted.token).await.unwrap_err();
        assert!(error.to_string().contains("nor could it be taken down"), "{error}");
        fake.account(|account| account.denied.retain(|action| action != "DeleteVms"));
        let error = cloud.find(&wanted.token).await.unwrap_err();
        let Refused::Launch(LaunchRefused::ClassNotReady(told)) = &error else { panic!("{error}") };
        assert!(told.contains(why) && told.contains("taken down again"), "{told}");
        assert!(is_leaving());
        assert_eq!(cloud.find(&wanted.token).await.unwrap(), []);
        // With tags beyond the quota, no other machine is made before somebody changes something.
        let error = cloud.create(&wanted).await.unwrap_err();
        assert!(matches!(error, Refused::Launch(LaunchRefused::ClassNotReady(_))), "{error}");
        assert!(is_leaving());
        assert_eq!(fake.vms().len(), 1 + usize::from(denied.is_some()));
    }
}

#[test]
fn a_namesake_of_a_class_whose_tags_were_refused_is_another_class() {
    let unmarkable = Unmarkable::default();
    let one = class_of(spec());
    unmarkable.remember(&one, "because");
    assert_eq!(unmarkable.why(&one).as_deref(), Some("because"));
    assert_eq!(unmarkable.why(&NodeClass { uid: "another".into(), ..one.clone() }), None);
    assert_eq!(unmarkable.why(&NodeClass { generation: one.generation + 1, ..one }), None);
}

async fn ready_without_tags(cloud: &Outscale) -> NodeClass {
    let mut bare = class_of(OutscaleNodeClassSpec { tags: BTreeMap::new(), ..spec() });
    bare.generation += 1;
    resolved(cloud, &bare).await.0
}
