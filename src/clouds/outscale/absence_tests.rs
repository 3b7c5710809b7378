//! Machines that are taken down before any list shows them, against the stand-in for the API.

use super::super::oapi::wire::State;
use super::super::tests::{SMALL, Scene, launch, ready, scene, spec};
use super::*;
use crate::clouds::{Cloud, Deletion, Error};
use crate::core::ids::ProviderId;
use crate::sim::oapi::{Fake, Fault};

fn states(fake: &Fake) -> Vec<State> {
    fake.vms().iter().map(|vm| vm.state).collect()
}

/// Asks again and again until the machine is said to be gone, or to be unknown. Answers with how long that took.
async fn gone(cloud: &impl Cloud, id: &ProviderId) -> Duration {
    let began = Instant::now();
    while cloud.delete(id).await.unwrap() == Deletion::InProgress {
        assert!(began.elapsed() < Duration::from_mins(5), "{id} is not gone");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_no_list_shows_yet_is_taken_down_before_it_is_said_to_be_gone() {
    for seconds in [2, 15, 900] {
        let Scene { fake, cloud, .. } = scene();
        fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(seconds));
        let class = ready(&cloud, spec()).await;
        let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
        assert_eq!(cloud.get(&machine.id).await.unwrap().machine().as_ref(), Some(&machine), "{seconds}");
        assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress, "{seconds}");
        assert_eq!(states(&fake), [State::ShuttingDown], "{seconds}");
        gone(&cloud, &machine.id).await;
        assert_eq!(states(&fake), [State::Terminated], "{seconds}");
        assert!(fake.struck(Fault::ListedLate) > 0, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_launch_nobody_remembers_is_waited_for() {
    let Scene { fake, secrets, cloud } = scene();
    fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(2));
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let successor = super::super::tests::cloud(&fake, &secrets, false);
    assert!(matches!(successor.get(&machine.id).await, Err(Error::Temporary(_))));
    assert_eq!(successor.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(states(&fake), [State::Pending], "nobody knows yet whose it is");
    assert!(fake.struck(Fault::ListedLate) > 0);
    gone(&successor, &machine.id).await;
    assert_eq!(states(&fake), [State::Terminated]);
    // There never was such a VM.
    let took = gone(&successor, &ProviderId::from("aws:///eu-west-2a/i-0000ffff")).await;
    assert!(took >= SETTLES_WITHIN && took < 2 * SETTLES_WITHIN, "{took:?}");
}
