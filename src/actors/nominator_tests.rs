//! When nodes that were let open do so.

use tokio::time::{advance, sleep};

use super::*;

fn of(name: &str) -> Vec<ClaimName> {
    vec![name.into()]
}

#[tokio::test(start_paused = true)]
async fn nodes_open_when_their_pods_are_nominated_and_kube_scheduler_has_heard_of_it() {
    let mut released = Released::default();
    assert!(!released.may_open(true), "there are none");
    released.add(of("a"));
    assert!(!released.may_open(false), "nominations are being written");
    released.written = 100;
    released.all_written();
    assert_eq!(released.unheard_for(), Some(Duration::from_millis(200)));
    advance(Duration::from_millis(199)).await;
    assert!(!released.may_open(true));
    advance(Duration::from_millis(1)).await;
    assert!(released.may_open(true));
    released.add(of("b"));
    assert_eq!(
        (released.may_open(true), released.unheard_for()),
        (false, None),
        "those of the other are still to be written"
    );
}

#[tokio::test(start_paused = true)]
async fn that_nominations_are_taken_away_and_written_again_keeps_nobody_waiting() {
    let mut released = Released::default();
    released.add(of("a"));
    released.written = 100;
    released.all_written();
    sleep(Duration::from_millis(150)).await;
    released.wrote();
    released.all_written();
    assert!(!released.may_open(false), "one is under way");
    sleep(Duration::from_millis(50)).await;
    assert!(released.may_open(true));
}

#[tokio::test(start_paused = true)]
async fn nodes_open_though_nominations_cannot_be_written() {
    let mut released = Released::default();
    released.add(of("a"));
    sleep(AT_MOST).await;
    assert!(released.may_open(false));
}
