//! Whom calls wait for.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_thousand_launches_that_wait_for_their_turn_hold_up_neither_reads_nor_deletions() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let start = |permits, takes: Duration| {
        let (told, began) = (told.clone(), Instant::now());
        let call = async move {
            tokio::time::sleep(takes).await;
            Ok::<(), ()>(())
        };
        operations.start(permits, call, move |_| told.send((permits, began.elapsed())).unwrap());
    };
    for _ in 0..1000 {
        start(Permits::Launch, Duration::from_mins(1));
    }
    // They have begun to wait.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for permits in [Permits::ReadCloud, Permits::WriteCloud, Permits::ReadCluster] {
        start(permits, Duration::from_secs(1));
    }
    for _ in 0..3 {
        let (permits, took) = ends.recv().await.unwrap();
        assert!(permits != Permits::Launch && took == Duration::from_secs(1), "{permits:?} took {took:?}");
    }
    // Launches wait for each other: what is under way is bounded.
    let mut slowest = Duration::ZERO;
    for _ in 0..1000 {
        slowest = slowest.max(ends.recv().await.unwrap().1);
    }
    assert_eq!(slowest, Duration::from_mins(8));
}
