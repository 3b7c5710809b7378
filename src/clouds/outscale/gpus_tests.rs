//! No flexible GPU is left allocated when its machine is gone.

use super::super::tests::{Scene, calls, class_of, launch, ready, resolved, scene, spec};
use super::*;
use crate::api::classes::outscale::{OutscaleNodeClassSpec, VmTypes};
use crate::clouds::outscale::Outscale;
use crate::clouds::{Cloud, Deletion};
use crate::core::facts::Machine;
use crate::sim::oapi::{Fake, Fault};

const WITH_GPU: &str = "p6.large";

fn with_gpu() -> OutscaleNodeClassSpec {
    OutscaleNodeClassSpec {
        vm_types: Some(VmTypes { names: Some(vec![WITH_GPU.to_owned()]), ..VmTypes::default() }),
        ..spec()
    }
}

async fn launched(cloud: &Outscale) -> Machine {
    let class = ready(cloud, with_gpu()).await;
    cloud.create(&launch(cloud, &class, 1, &[WITH_GPU]).await).await.unwrap()
}

/// Whether each GPU of the account goes with its machine.
fn ties(fake: &Fake) -> Vec<bool> {
    fake.gpus().into_iter().map(|gpu| gpu.delete_on_vm_deletion == Some(true)).collect()
}

/// Asks for the deletion every five seconds until it is done.
async fn gone(cloud: &Outscale, machine: &Machine) {
    for _ in 0..60 {
        if cloud.delete(&machine.id).await.is_ok_and(|deletion| deletion == Deletion::Gone) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    panic!("{} is still there", machine.id);
}

#[test]
fn the_list_of_types_says_who_brings_gpus() {
    let listed = [("t2.small", None), (WITH_GPU, Some(2))].map(|(name, gpu)| wire::VmType {
        vm_type_name: name.to_owned(),
        gpu,
        ..wire::VmType::default()
    });
    for (name, count) in [("t2.small", Some(0)), (WITH_GPU, Some(2)), ("tinav7.c4r8p1", Some(0)), ("m9.large", None)] {
        assert_eq!(brought(Some(name), &listed), count, "{name}");
    }
    assert_eq!(brought(Some("tinav7.c4r8p1"), &[]), Some(0));
    assert_eq!(brought(None, &listed), None);
}

#[tokio::test(start_paused = true)]
async fn a_gpu_goes_with_the_machine_that_brought_it() {
    let Scene { fake, cloud, .. } = scene();
    let machine = launched(&cloud).await;
    assert_eq!(ties(&fake), [true]);
    // What is known is not asked again.
    let asked = calls(&fake, "ReadFlexibleGpus");
    cloud.list().await.unwrap();
    gone(&cloud, &machine).await;
    assert_eq!((ties(&fake), calls(&fake, "ReadFlexibleGpus")), (vec![], asked));
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_is_listed_late_is_tied_by_the_next_look() {
    let Scene { fake, cloud, .. } = scene();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(20));
    launched(&cloud).await;
    assert_eq!(ties(&fake), [false]);
    assert!(fake.load()["ReadFlexibleGpus"].struck(Fault::ListedLate) > 0);
    tokio::time::sleep(Duration::from_mins(1)).await;
    cloud.list().await.unwrap();
    assert_eq!(ties(&fake), [true]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_not_taken_down_before_its_gpu_was_seen() {
    let Scene { fake, cloud, .. } = scene();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(20));
    let machine = launched(&cloud).await;
    // Lists show neither of them yet.
    let ordered = calls(&fake, "DeleteVms");
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!((ties(&fake), calls(&fake, "DeleteVms")), (vec![false], ordered));
    assert!(fake.load()["ReadFlexibleGpus"].struck(Fault::ListedLate) > 0);
    gone(&cloud, &machine).await;
    assert!(fake.gpus().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_somebody_took_away_holds_its_machine_up_for_a_minute() {
    let Scene { fake, cloud, secrets } = scene();
    let machine = launched(&cloud).await;
    fake.take_gpus();
    // Another life, which knows nothing of it.
    let cloud = super::super::tests::cloud(&fake, &secrets, false);
    resolved(&cloud, &class_of(with_gpu())).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let ordered = calls(&fake, "DeleteVms");
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(calls(&fake, "DeleteVms"), ordered);
    gone(&cloud, &machine).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_waits_while_the_api_does_not_answer_for_its_gpu() {
    let Scene { fake, cloud, secrets } = scene();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(20));
    let machine = launched(&cloud).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    // A life that has not heard yet which types there are.
    let cloud = super::super::tests::cloud(&fake, &secrets, false);
    let ordered = calls(&fake, "DeleteVms");
    fake.conduct(|conduct| conduct.loses_first = vec!["UpdateFlexibleGpu".to_owned(); 20]);
    let error = cloud.delete(&machine.id).await.unwrap_err().to_string();
    assert!(
        error.contains("is not taken down before its flexible GPUs are sure to go with it: UpdateFlexibleGpu"),
        "{error}"
    );
    assert_eq!(calls(&fake, "DeleteVms"), ordered);
    assert!(fake.struck(Fault::AnswerLost) > 0);
    gone(&cloud, &machine).await;
    assert!(fake.gpus().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_tie_a_gpu_leaves_it_behind_and_says_so() {
    for action in ["ReadFlexibleGpus", "UpdateFlexibleGpu"] {
        let Scene { fake, cloud, .. } = scene();
        let class = ready(&cloud, with_gpu()).await;
        fake.account(|account| account.denied.extend([action.to_owned()]));
        let machine = cloud.create(&launch(&cloud, &class, 1, &[WITH_GPU]).await).await.unwrap();
        gone(&cloud, &machine).await;
        assert_eq!(ties(&fake), [false], "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_machines_without_gpus_nothing_is_asked() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[super::super::tests::SMALL]).await).await.unwrap();
    cloud.list().await.unwrap();
    gone(&cloud, &machine).await;
    assert_eq!(calls(&fake, "ReadFlexibleGpus"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_ties_nothing() {
    let Scene { fake, cloud, secrets } = scene();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(20));
    let machine = launched(&cloud).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let dry = super::super::tests::cloud(&fake, &secrets, true);
    dry.list().await.unwrap();
    assert_eq!(dry.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(ties(&fake), [false]);
}
