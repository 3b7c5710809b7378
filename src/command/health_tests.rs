//! Probes that fail for what a restart would mend, and for nothing else.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::sleep;

use super::*;
use crate::actors::runtime::{Clock, Kind};
use crate::actors::{Parts, Settings};
use crate::clouds::catalog;
use crate::cluster::Error;
use crate::command::{Rehearsal, mixed, scenario_of};
use crate::sim::{End, Gate, Scenario, Verdict};

/// An API server that refuses every write, the lease included.
#[derive(Debug)]
struct NoWrites;

impl Gate for NoWrites {
    fn judge(&mut self, verb: &'static str, _: &'static str) -> Verdict {
        match verb {
            "list" | "get" | "watch" => Verdict::Pass,
            _ => Verdict::Refuse(Error::Temporary("etcd is gone".to_owned())),
        }
    }
}

/// A world, and a joiner that has just begun to look after it.
fn started(scenario: &Scenario, settings: Settings) -> (Rehearsal, Joiner) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let rehearsal = Rehearsal::new(scenario, catalog::generated(), 7, clock, Settings::default());
    let cluster = Arc::new(rehearsal.world.cluster.clone());
    let cloud = Arc::new(rehearsal.world.cloud.clone());
    let joiner = Joiner::start(Parts { cluster, cloud, settings, clock });
    (rehearsal, joiner)
}

#[tokio::test(start_paused = true)]
async fn no_trouble_that_a_restart_would_not_mend_fails_a_probe() {
    let scenario = scenario_of("burst", &mixed(20)).unwrap();
    let settings = Settings { leader_election: true, identity: "one".to_owned(), ..Settings::default() };
    let (rehearsal, joiner) = started(&scenario, settings);
    let (listed, stirring) = (listed(&joiner), stirring(&joiner));
    assert_eq!((listed.holds)(), Err("the cluster has not been listed yet".to_owned()), "nothing has been read");
    assert_eq!((stirring.holds)(), Ok(()));
    let story = async {
        let fine = |when: &str| {
            assert_eq!((listed.holds)(), Ok(()), "{when}");
            assert_eq!((stirring.holds)(), Ok(()), "{when}");
        };
        sleep(Duration::from_secs(30)).await;
        fine("it leads and buys");
        for kind in [Kind::State, Kind::Provisioner, Kind::Claim, Kind::Pools, Kind::Auditor] {
            joiner.house().saboteur.strike(kind, 0, 5);
        }
        sleep(Duration::from_secs(20)).await;
        fine("actors fail again and again");
        rehearsal.world.cluster.set_gate(Box::new(NoWrites));
        sleep(Duration::from_mins(3)).await;
        assert!(!joiner.house().operations.may_write(), "the lease is lost");
        fine("nothing can be written, the lease least of all");
    };
    tokio::select! {
        biased;
        () = rehearsal.world.run(&scenario.steps, End::At(Duration::from_hours(1))) => panic!("the story did not end"),
        () = story => {}
    }
    joiner.kill();
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_does_not_come_back_fails_the_liveness_probe() {
    let (_rehearsal, joiner) = started(&scenario_of("burst", &mixed(1)).unwrap(), Settings::default());
    let stirring = stirring(&joiner);
    sleep(Duration::from_secs(1)).await;
    let outline = joiner.house().observations.outline();
    let provisioner = outline.iter().find(|one| one.kind == Kind::Provisioner).unwrap();
    let earlier = provisioner.meter.computes();
    sleep(LOST).await;
    assert_eq!((stirring.holds)(), Err("no progress: the plan of provisioner provisioner for 600 s".to_owned()));
    let later = provisioner.meter.computes();
    drop(earlier);
    assert_eq!((stirring.holds)(), Ok(()), "another has only just begun");
    drop(later);
    assert_eq!(provisioner.meter.computing_for(), None);
    joiner.kill();
}

#[tokio::test(start_paused = true)]
async fn a_tree_without_its_root_fails_the_liveness_probe() {
    let (_rehearsal, joiner) = started(&scenario_of("burst", &mixed(1)).unwrap(), Settings::default());
    let stirring = stirring(&joiner);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((stirring.holds)(), Ok(()));
    // The supervisor fails when it hears that somebody is to be started again.
    joiner.house().saboteur.strike(Kind::Supervisor, 0, 1);
    joiner.house().saboteur.strike(Kind::Auditor, 0, 1);
    sleep(Duration::from_mins(20)).await;
    assert_eq!((stirring.holds)(), Err("the supervisor has ended, and all actors with it".to_owned()));
}
