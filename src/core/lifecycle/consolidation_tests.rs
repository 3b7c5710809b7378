//! When a node may be consolidated, and when pod events are written.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::facts::samples::{pod, pool, serving, serving_node, start};
use crate::core::facts::{Claim, Fact, Fold, Kind, Owner, Pod, PodPhase, PodShape, Pool};
use crate::core::lifecycle::Memory;
use crate::core::resources::Resources;

struct World {
    claim: Claim,
    pool: Option<Pool>,
    fold: Fold,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let mut fold = Fold::default();
        fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
        for kind in Kind::ALL {
            fold.fold(Fact::Relisted(kind));
        }
        Self { claim: serving(), pool: Some(pool()), fold, now: start() }
    }

    fn look<T>(&mut self, look: impl FnOnce(&Situation<'_>) -> T) -> T {
        self.fold.fold(Fact::ClaimSeen(Arc::new(self.claim.clone())));
        match &self.pool {
            Some(pool) => self.fold.fold(Fact::PoolSeen(Arc::new(pool.clone()))),
            None => self.fold.fold(Fact::PoolGone("web".into())),
        }
        look(&Situation::of(&self.claim, self.fold.snapshot(), &Memory::default(), self.now))
    }

    fn see(&mut self, pod: Pod) {
        self.fold.at(self.now);
        self.fold.fold(Fact::PodSeen(Arc::new(pod)));
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }
}

fn seconds(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

#[test]
fn a_node_that_was_left_alone_may_be_consolidated() {
    let mut world = World::new();
    assert_eq!(world.look(from), Some(seconds(30)), "counted from its initialization");
    assert_eq!(world.look(wanted), Some(false));
    world.pass(30);
    assert_eq!(world.look(wanted), Some(true));
    world.see(pod("a", Some("node-1")));
    assert_eq!(world.look(wanted), Some(false), "a pod came");
    world.pass(30);
    assert_eq!(world.look(wanted), Some(true));
    world.claim.last_pod_event = Some(seconds(50));
    assert_eq!(world.look(from), Some(seconds(80)), "whoever wrote that knew of a later one");
}

#[test]
fn never_not_initialized_and_static_are_never() {
    let mut world = World::new();
    world.pass(3600);
    world.pool.as_mut().unwrap().disruption.consolidate_after = Some(Duration::ZERO);
    assert_eq!(world.look(wanted), Some(true));
    world.pool.as_mut().unwrap().disruption.consolidate_after = None;
    assert_eq!(world.look(wanted), Some(false));
    world.pool = Some(Pool { replicas: Some(3), ..pool() });
    assert_eq!(world.look(wanted), Some(false));
    world.pool = None;
    assert_eq!(world.look(wanted), None, "nothing can be said");
    world.pool = Some(pool());
    for status in [Status::Unknown, Status::False] {
        world.claim.conditions.iter_mut().for_each(|condition| condition.status = status);
        assert_eq!(world.look(wanted), Some(false));
    }
}

#[test]
fn pods_that_come_end_and_leave_are_events() {
    let mut world = World::new();
    world.see(pod("a", None));
    assert_eq!(world.look(|s| s.pod_event), None);
    let bound = pod("a", Some("node-1"));
    for (at, pod) in [
        (10, bound.clone()),
        (20, Pod { phase: PodPhase::Succeeded, ..bound.clone() }),
        (30, Pod { deleting: Some(seconds(60)), phase: PodPhase::Succeeded, ..bound }),
    ] {
        world.now = seconds(at);
        world.see(pod.clone());
        assert_eq!(world.look(|s| s.pod_event), Some(seconds(at)));
        world.pass(1);
        world.see(pod);
        assert_eq!(world.look(|s| s.pod_event), Some(seconds(at)), "seen once more, nothing has happened");
    }
    let mut daemon = PodShape::plain(Resources::new());
    daemon.owner = Owner::DaemonSet;
    world.now = seconds(40);
    world.see(Pod { shape: Arc::new(daemon), ..pod("d", Some("node-1")) });
    assert_eq!(world.look(|s| s.pod_event), Some(seconds(30)), "daemons do not count");
    assert!(world.fold.take_news().claims.contains(&"web-1".into()));
    world.see(pod("b", Some("elsewhere")));
    world.fold.fold(Fact::NodeGone("node-1".into()));
    assert!(world.fold.snapshot().pod_events.is_empty(), "nothing is kept of nodes that are gone");
}

#[test]
fn a_restart_makes_no_node_look_busy() {
    let mut fold = Fold::default();
    fold.at(seconds(3600));
    fold.fold(Fact::PodSeen(Arc::new(Pod { scheduled: Some(seconds(7)), ..pod("a", Some("node-1")) })));
    fold.fold(Fact::PodSeen(Arc::new(pod("b", Some("node-1")))));
    assert_eq!(
        fold.snapshot().pod_events.get(&crate::core::ids::NodeName::from("node-1")),
        Some(&seconds(7)),
        "when it was bound, not when it was seen"
    );
}

#[test]
fn nothing_is_kept_of_nodes_that_went_while_nobody_looked() {
    let mut before = Fold::default();
    before.at(seconds(3600));
    before.fold(Fact::PodSeen(Arc::new(Pod { scheduled: Some(seconds(7)), ..pod("a", Some("gone")) })));
    before.fold(Fact::PodSeen(Arc::new(Pod { scheduled: Some(seconds(7)), ..pod("b", Some("node-1")) })));
    let mut fold = Fold::with_plans_of(before.snapshot());
    fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
    fold.fold(Fact::Relisted(Kind::Node));
    let kept: Vec<_> = fold.snapshot().pod_events.keys().map(crate::core::ids::NodeName::as_str).collect();
    assert_eq!(kept, ["node-1"]);
}

#[test]
fn an_event_is_written_at_once_and_the_last_of_a_burst_after_ten_seconds() {
    let mut world = World::new();
    world.see(pod("a", Some("node-1")));
    assert_eq!(world.look(event_to_write), Some(start()));
    world.claim.last_pod_event = Some(start());
    assert_eq!(world.look(event_to_write), None, "nothing new");
    world.pass(4);
    world.see(pod("b", Some("node-1")));
    world.pass(3);
    world.see(pod("c", Some("node-1")));
    assert_eq!((world.look(event_to_write), world.look(write_at)), (None, Some(seconds(10))));
    world.now = seconds(10);
    assert_eq!(world.look(event_to_write), Some(seconds(7)));
}
