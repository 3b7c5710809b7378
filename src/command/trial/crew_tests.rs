//! What joiner is asked at the end of a day.

use jiff::Timestamp;

use super::*;
use crate::core::facts::samples;
use crate::sim::{World, WorldConfig};

/// A crew in a world of its own, with the clock of that world.
fn crew() -> (Crew, World, Clock) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let world = World::new(WorldConfig::usual(1, Arc::new(move || clock.now())));
    let clocks: (&'static AtomicI64, &'static AtomicI64) = (Box::leak(Box::default()), Box::leak(Box::default()));
    let (cluster, cloud) = (Arc::new(world.cluster.clone()), Arc::new(world.cloud.clone()));
    let settings = Settings { leader_election: false, ..Settings::default() };
    (Crew::new(cluster, cloud, settings, clock, clocks, true), world, clock)
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_say_what_it_remembers_is_named() {
    let (crew, world, _) = crew();
    assert_eq!(crew.memory(&world.cluster).await.silent, ["joiner"], "it has not begun");
    crew.start();
    sleep(Duration::from_mins(1)).await;
    assert_eq!(crew.memory(&world.cluster).await.silent, [""; 0]);
    let saboteur = crew.joiner.borrow().as_ref().map(|joiner| joiner.house().saboteur.clone()).unwrap();
    saboteur.stall(Kind::Claims, 0, Duration::from_hours(1));
    world.cluster.store().apply_claim(samples::claim());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(crew.memory(&world.cluster).await.silent, ["claims"]);
    crew.kill();
}

#[tokio::test(start_paused = true)]
async fn joiner_follows_the_steps_of_a_clock_that_its_judge_knows() {
    let (crew, _, clock) = crew();
    crew.start();
    sleep(Duration::from_mins(1)).await;
    let believed = || crew.joiner.borrow().as_ref().map(|joiner| joiner.house().clock.now()).unwrap();
    crew.set_clock(4_789);
    assert_eq!(believed(), clock.now() + SignedDuration::from_millis(4_789), "small");
    // Before joiner has anything to do the clock is right again: from there the next step is too long.
    crew.set_clock(0);
    crew.set_clock(7_534);
    assert_eq!((believed(), crew.followed.load(Ordering::Relaxed)), (clock.now(), 0));
    crew.kill();
}
