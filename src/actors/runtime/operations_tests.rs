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
            Ok::<(), clouds::Error>(())
        };
        operations.start(permits, || true, call, move |_| told.send((permits, began.elapsed())).unwrap());
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

#[tokio::test(start_paused = true)]
async fn an_api_server_that_says_when_to_come_back_is_left_alone_until_then() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let start = |permits, answer: Result<(), cluster::Error>| {
        let (told, began) = (told.clone(), Instant::now());
        operations.start(permits, || true, async { answer }, move |_| told.send((permits, began.elapsed())).unwrap());
    };
    let busy = |seconds| {
        let retry_after = Some(Duration::from_secs(seconds));
        Err(cluster::Error::TooManyRequests { retry_after, message: "busy".to_owned() })
    };
    start(Permits::WriteCluster, busy(7));
    assert_eq!(ends.recv().await, Some((Permits::WriteCluster, Duration::ZERO)), "its caller knows at once");
    for permits in [Permits::WriteCluster, Permits::ReadCluster, Permits::Lease, Permits::ReadCloud, Permits::Launch] {
        start(permits, Ok(()));
    }
    let mut waited = std::collections::BTreeMap::new();
    for _ in 0..5 {
        let (permits, time) = ends.recv().await.unwrap();
        waited.insert(format!("{permits:?}"), time.as_secs());
    }
    let expected = [("Launch", 0), ("Lease", 0), ("ReadCloud", 0), ("ReadCluster", 7), ("WriteCluster", 7)];
    assert_eq!(waited, expected.map(|(permits, seconds)| (permits.to_owned(), seconds)).into());
    start(Permits::WriteCluster, busy(7));
    assert!(ends.recv().await.is_some());
    let (late, heard) = tokio::sync::oneshot::channel();
    operations.start(
        Permits::Delete,
        || true,
        async { Ok::<(), cluster::Error>(()) },
        |outcome| late.send(outcome).unwrap(),
    );
    assert!(matches!(heard.await, Ok(Outcome::Late)), "what cannot be taken back is decided again");
    start(Permits::Delete, Ok(()));
    assert_eq!(ends.recv().await, Some((Permits::Delete, Duration::ZERO)));
    // A budget's word is about one pod, and nobody waits for ever.
    let message = "Cannot evict pod".to_owned();
    let budget =
        cluster::Error::Budget { code: 429, budget: None, retry_after: Some(Duration::from_secs(10)), message };
    start(Permits::WriteCluster, Err(budget));
    assert_eq!(ends.recv().await.unwrap().1, Duration::ZERO);
    start(Permits::WriteCluster, busy(86_400));
    assert_eq!(ends.recv().await.unwrap().1, Duration::ZERO);
    start(Permits::WriteCluster, Ok(()));
    assert_eq!(ends.recv().await.unwrap().1, Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waits_for_its_turn_is_not_made_once_nobody_wants_it() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let launched = Arc::new(AtomicU64::new(0));
    let wanted = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..=CLOUD_PERMITS {
        let (launched, wanted, told) = (Arc::clone(&launched), Arc::clone(&wanted), told.clone());
        let call = async move {
            launched.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok::<(), clouds::Error>(())
        };
        operations.start(
            Permits::Launch,
            move || wanted.load(Relaxed),
            call,
            move |outcome| told.send(outcome).unwrap(),
        );
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    wanted.store(false, Relaxed);
    let mut done = 0;
    let mut late = 0;
    for _ in 0..=CLOUD_PERMITS {
        match ends.recv().await.unwrap() {
            Outcome::Done(()) => done += 1,
            Outcome::Late => late += 1,
            other => panic!("{other:?}"),
        }
    }
    let sent = CLOUD_PERMITS as u64;
    assert_eq!((done, late, launched.load(Relaxed)), (sent, 1, sent), "what was sent runs on");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_ends_in_a_message_and_keeps_nothing() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..CLOUD_PERMITS * 2 {
        let told = told.clone();
        let answers: Vec<Result<(), clouds::Error>> = Vec::new();
        let call = async move { answers.into_iter().next().expect("a bug in a client") };
        operations.start(Permits::Launch, || true, call, move |outcome| told.send(outcome).unwrap());
    }
    for _ in 0..CLOUD_PERMITS * 2 {
        assert!(matches!(ends.recv().await, Some(Outcome::Lost)), "whether it took effect nobody knows");
    }
    assert!(operations.close(Duration::from_secs(1)).await, "nothing is under way any more");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_its_client_knows_when_it_may_no_longer_write() {
    let (lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_secs(10)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let start = |permits| {
        let told = told.clone();
        let call = async move {
            tokio::time::sleep(Duration::from_secs(9)).await;
            let before = licence::holds();
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok::<_, clouds::Error>((before, licence::holds()))
        };
        operations.start(permits, || true, call, move |outcome| told.send(outcome).unwrap());
    };
    for permits in [
        Permits::WriteCluster,
        Permits::Delete,
        Permits::Launch,
        Permits::WriteCloud,
        Permits::Announce,
        Permits::ReadCloud,
        Permits::ReadCluster,
    ] {
        lease.send_replace(Some(Instant::now() + Duration::from_secs(10)));
        start(permits);
        assert!(matches!(ends.recv().await, Some(Outcome::Done((true, false)))), "{permits:?}");
    }
    // What is under way when joiner begins to end has until its patience ends.
    for (patience, may) in [(5, true), (1, false)] {
        lease.send_replace(Some(Instant::now() + Duration::from_hours(1)));
        let operations = Operations::new(lease.subscribe());
        let told = told.clone();
        let call = async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok::<_, clouds::Error>((true, licence::holds()))
        };
        operations.start(Permits::Launch, || true, call, move |outcome| told.send(outcome).unwrap());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(operations.close(Duration::from_secs(patience)).await, may);
        assert!(matches!(ends.recv().await, Some(Outcome::Done((true, holds))) if holds == may));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_client_holds_back_for_want_of_the_lease_was_not_sent_and_has_not_failed() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_secs(10)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let waits = |error: clouds::Error| async move {
        tokio::time::sleep(Duration::from_secs(11)).await;
        if licence::holds() { Ok(()) } else { Err(error) }
    };
    for error in
        [clouds::Error::Temporary("held back".to_owned()), clouds::Error::Unknown("made, not marked".to_owned())]
    {
        let told = told.clone();
        operations.start(Permits::Launch, || true, waits(error), move |outcome| told.send(outcome).unwrap());
    }
    assert!(matches!(ends.recv().await, Some(Outcome::NotLeader)));
    assert!(matches!(ends.recv().await, Some(Outcome::Failed(clouds::Error::Unknown(_)))), "something was sent before");
}

#[tokio::test(start_paused = true)]
async fn renewals_of_the_lease_hold_up_no_end_and_none_begins_after_it() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let start = || {
        let told = told.clone();
        let call = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok::<(), cluster::Error>(())
        };
        operations.start(Permits::Lease, || true, call, move |_| told.send(()).unwrap());
    };
    start();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(operations.close(Duration::from_secs(1)).await, "no write was under way");
    start();
    drop(told);
    assert!(ends.recv().await.is_some() && ends.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_events_holds_up_no_write_and_what_waits_of_it_is_bounded() {
    let (_lease, leader_until) = watch::channel(Some(Instant::now() + Duration::from_hours(1)));
    let operations = Operations::new(leader_until);
    let (told, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let start = |permits| {
        let told = told.clone();
        let call = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<(), cluster::Error>(())
        };
        operations.start(permits, || true, call, move |_| told.send(permits).unwrap());
    };
    let mut events = 0;
    while operations.may_announce() {
        start(Permits::Announce);
        events += 1;
    }
    assert_eq!(events, 1000);
    tokio::time::sleep(Duration::from_millis(500)).await;
    start(Permits::WriteCluster);
    let mut before = 0;
    while ends.recv().await.unwrap() == Permits::Announce {
        before += 1;
    }
    assert_eq!(before, 16, "those that were under way");
    assert!(operations.may_announce());
}
