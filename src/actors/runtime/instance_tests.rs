//! Mailboxes that do not grow, and nudges that do not get lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::*;
use crate::actors::runtime::{
    Behaviour, Clock, Cx, House, Kind, Observations, Operations, Promises, Saboteur, Slot, View, shell,
};

/// News is counted, a nudge has it looked at how much there was.
#[derive(Debug)]
enum Say {
    Look,
    News(u64),
}

impl Message for Say {
    fn nudge(&self) -> Option<usize> {
        matches!(self, Self::Look).then_some(3)
    }
}

#[derive(Clone, Default)]
struct World {
    truth: Arc<AtomicU64>,
    seen: Arc<AtomicU64>,
    looks: Arc<AtomicU64>,
    news: Arc<AtomicU64>,
}

struct Watcher(World);

impl Behaviour for Watcher {
    type Msg = Say;
    type Args = World;
    const KIND: Kind = Kind::Batcher;

    fn born(world: &World, _: &Cx<Say>) -> Self {
        Self(world.clone())
    }

    fn handle(&mut self, message: Say, _: &Cx<Say>) {
        match message {
            Say::Look => {
                self.0.looks.fetch_add(1, SeqCst);
                self.0.seen.store(self.0.truth.load(SeqCst), SeqCst);
            }
            Say::News(number) => drop(self.0.news.fetch_add(number, SeqCst)),
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        View::default()
    }
}

fn watcher(world: &World) -> (Slot<Say>, House) {
    let leader_until = watch::Sender::new(None);
    let house = House {
        clock: Clock::machine(),
        operations: Operations::new(leader_until.subscribe()),
        observations: Observations::default(),
        promises: Promises::default(),
        saboteur: Saboteur::default(),
    };
    let slot = Slot::empty();
    shell::spawn::<Watcher>("watcher", world.clone(), &slot, &house, None);
    (slot, house)
}

async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ten_thousand_equal_nudges_are_one_and_news_is_never_folded() {
    let world = World::default();
    let (slot, _) = watcher(&world);
    // On one thread nobody handles anything before this waits.
    for _ in 0..10_000 {
        slot.cast(Say::Look);
        slot.cast(Say::News(1));
    }
    assert_eq!(slot.meter().depth(), 10_001);
    until(|| world.news.load(Relaxed) == 10_000).await;
    assert_eq!((world.looks.load(Relaxed), slot.meter().folded_total()), (1, 9_999));
    slot.cast(Say::Look);
    until(|| world.looks.load(Relaxed) == 2).await;
    until(|| slot.meter().depth() == 0).await;
}

/// Whoever changes the truth and then nudges is sure that it is looked at, also while others nudge and looks are under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_gets_lost() {
    for _ in 0..200 {
        let world = World::default();
        let (slot, _) = watcher(&world);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (world, slot) = (world.clone(), slot.clone());
                tokio::spawn(async move {
                    for _ in 0..50 {
                        world.truth.fetch_add(1, SeqCst);
                        slot.cast(Say::Look);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.unwrap();
        }
        until(|| slot.meter().depth() == 0).await;
        assert_eq!(world.seen.load(SeqCst), 150, "the last look saw all");
    }
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stands_still_is_named_and_what_waits_for_it_is_not_lost() {
    let (world, minute) = (World::default(), Duration::from_mins(1));
    let (slot, house) = watcher(&world);
    house.saboteur.stall(Kind::Batcher, 1, minute * 2);
    for number in 1..=3 {
        slot.cast(Say::News(number));
    }
    tokio::time::sleep(minute).await;
    assert_eq!(world.news.load(Relaxed), 1, "the second message takes its time");
    assert_eq!(house.observations.stalled(minute), [(Kind::Batcher, "watcher".to_owned(), minute)]);
    tokio::time::sleep(minute * 2).await;
    assert_eq!(world.news.load(Relaxed), 6);
    assert_eq!(house.observations.stalled(Duration::ZERO), []);
    assert!(house.saboteur.is_done());
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_to_an_actor_that_has_ended_does_not_count_as_waiting() {
    let world = World::default();
    let (slot, house) = watcher(&world);
    house.saboteur.strike(Kind::Batcher, 0, 1);
    slot.cast(Say::News(1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(house.saboteur.is_done());
    // As its successor begins.
    slot.meter().emptied();
    slot.cast(Say::News(2));
    assert_eq!((slot.meter().depth(), world.news.load(Relaxed)), (0, 0));
}
