//! A world with a script and joiner's own actors in it, as several tests play it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{World, WorldConfig};
use crate::actors::runtime::Clock;
use crate::actors::{Joiner, Parts, Settings};
use crate::clouds::catalog::generated;
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::sim::scenario::{End, Scenario, read_scenario};

/// What scripts begin with: a NodePool that suits everybody.
const GENERAL: &str = r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
---
";

/// The stage, set.
pub(super) struct Staged {
    pub(super) world: World,
    pub(super) joiner: Joiner,
    pub(super) scenario: Scenario,
}

impl Staged {
    /// Sets it: [`GENERAL`], and the script behind it.
    pub(super) fn set(script: &str, seed: u64, conduct: Conduct) -> Self {
        let open = |_: &Path| Ok(format!("{GENERAL}{script}"));
        let scenario = read_scenario(Path::new("script.yaml"), &ShapeStore::new(), &open).unwrap();
        let clock = Clock::simulated(Timestamp::from_second(1_800_000_000).unwrap());
        let now: crate::sim::Clock = Arc::new(move || clock.now());
        let world = World::new(WorldConfig { conduct, catalogue: generated(), ..WorldConfig::usual(seed, now) });
        let joiner = Joiner::start(Parts {
            cluster: Arc::new(world.cluster.clone()),
            cloud: Arc::new(world.cloud.clone()),
            settings: Settings::default(),
            clock,
        });
        Self { world, joiner, scenario }
    }

    /// Plays until a story has been told, and gives the world back with what was told.
    pub(super) async fn until<T>(self, story: impl AsyncFnOnce(&World) -> T) -> (World, T) {
        let Self { world, joiner, scenario } = self;
        let told = tokio::select! {
            biased;
            () = world.run(&scenario.steps, End::At(Duration::from_hours(3))) => panic!("the story did not end"),
            told = story(&world) => told,
        };
        joiner.stop(Duration::from_secs(5)).await;
        (world, told)
    }
}
