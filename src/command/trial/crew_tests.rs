//! What joiner is asked at the end of a day.

use jiff::Timestamp;

use super::*;
use crate::core::facts::samples;
use crate::sim::{World, WorldConfig};

#[tokio::test(start_paused = true)]
async fn whoever_does_not_say_what_it_remembers_is_named() {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let world = World::new(WorldConfig::usual(1, Arc::new(move || clock.now())));
    let clocks: (&'static AtomicI64, &'static AtomicI64) = (Box::leak(Box::default()), Box::leak(Box::default()));
    let (cluster, cloud) = (Arc::new(world.cluster.clone()), Arc::new(world.cloud.clone()));
    let settings = Settings { leader_election: false, ..Settings::default() };
    let crew = Crew::new(cluster, cloud, settings, clock, clocks, true);
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
