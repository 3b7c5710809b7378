//! Who counts as alive.

use super::*;

fn enter(observations: &Observations, id: u64, parent: Option<u64>, kind: Kind) -> Arc<Meter> {
    let meter = Arc::new(Meter::default());
    let probe: Probe = Arc::new(|| Box::pin(async { None }));
    let named = (kind, format!("{kind} {id}"));
    observations.enter(id, parent, named, Timestamp::UNIX_EPOCH, Arc::clone(&meter), probe);
    meter
}

#[test]
fn the_end_of_a_parent_is_the_end_of_all_below_it() {
    let observations = Observations::default();
    enter(&observations, 1, None, Kind::Supervisor);
    enter(&observations, 2, Some(1), Kind::Claims);
    enter(&observations, 3, Some(2), Kind::Claim).handled(Duration::ZERO);
    enter(&observations, 4, Some(2), Kind::Claim);
    enter(&observations, 5, Some(1), Kind::Pools);
    observations.leave(2);
    assert_eq!(observations.count(), BTreeMap::from([(Kind::Supervisor, 1), (Kind::Pools, 1)]));
    let figures = observations.figures();
    assert_eq!(figures[&Kind::Claim].handled, 1, "totals do not fall");
    assert_eq!(figures[&Kind::Claim].alive, 0);
    // A late word of a child that went with its parent changes nothing.
    observations.leave(3);
    assert_eq!(observations.figures()[&Kind::Claim].handled, 1);
}

#[test]
fn a_child_that_ends_leaves_its_siblings() {
    let observations = Observations::default();
    enter(&observations, 1, None, Kind::Claims);
    enter(&observations, 2, Some(1), Kind::Claim);
    enter(&observations, 3, Some(1), Kind::Claim);
    observations.leave(2);
    assert_eq!(observations.count()[&Kind::Claim], 1);
    observations.leave(1);
    assert_eq!(observations.count(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn who_has_messages_and_is_done_with_none_stands_still() {
    let observations = Observations::default();
    let meter = enter(&observations, 1, None, Kind::Claims);
    let minute = Duration::from_mins(1);
    tokio::time::advance(10 * minute).await;
    meter.sent();
    assert_eq!(observations.stalled(minute), [], "a time without messages is no standstill");
    tokio::time::advance(minute).await;
    meter.sent();
    assert_eq!(observations.stalled(minute), [(Kind::Claims, "claims 1".to_owned(), minute)]);
    meter.handled(minute);
    assert_eq!(observations.stalled(minute), [], "the next one has just begun");
    tokio::time::advance(minute).await;
    assert_eq!(observations.stalled(minute).len(), 1);
    meter.handled(minute);
    tokio::time::advance(minute).await;
    assert_eq!(observations.stalled(minute), [], "nothing waits");
}
