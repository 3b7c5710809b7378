//! A rehearsal: a joiner in a world in a box, whether its time is made up or real.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::actors::runtime::Clock;
use crate::actors::{self, Joiner, Parts};
use crate::clouds::simulated::Conduct;
use crate::clouds::{Cloud, catalog};
use crate::cluster::Cluster;
use crate::cluster::convert::ShapeStore;
use crate::config::{Settings, Trace, TraceFormat};
use crate::core::facts::InstanceType;
use crate::manifests::{Admission, Object, read_object};
use crate::sim::faults::{HostileCloud, HostileCluster, Mishaps, Plan};
use crate::sim::invariants::{Invariants, Journal};
use crate::sim::{Act, Feature, Scenario, Step, World, WorldConfig, read_openb, read_scenario};

use super::live;

/// What a rehearsal uses when it names no NodePool of its own.
const DEFAULT_POOL: &str = include_str!("default-pool.yaml");

/// A world, and what a joiner in it is made of.
pub struct Rehearsal {
    /// The world.
    pub world: World,
    clock: Clock,
    settings: actors::Settings,
    /// How many joiners there were: no two may give the same names.
    lives: AtomicU64,
}

impl Rehearsal {
    /// Builds the world of a scenario. Must be called inside the runtime whose clock it is to follow.
    pub fn new(
        scenario: &Scenario,
        types: Vec<InstanceType>,
        seed: u64,
        clock: Clock,
        settings: actors::Settings,
    ) -> Self {
        let config = WorldConfig {
            conduct: scenario.cloud.conduct(&Conduct::default()),
            catalogue: types,
            ..WorldConfig::usual(seed, Arc::new(move || clock.now()))
        };
        Self {
            world: World::new(config),
            clock,
            settings: actors::Settings { name_salt: seed, ..settings },
            lives: AtomicU64::new(0),
        }
    }

    /// Starts a joiner in this world; it may be the second, after the first was killed.
    pub fn joiner(&self) -> Joiner {
        self.start(Arc::new(self.world.cluster.clone()), Arc::new(self.world.cloud.clone()))
    }

    /// Begins to watch this world for what must never happen.
    pub fn watch(&self, scenario: &Scenario) -> Invariants {
        let clock = self.clock;
        let (cluster, cloud) = (self.world.cluster.clone(), self.world.cloud.clone());
        let invariants = Invariants::new(cluster, cloud, Arc::new(move || clock.now()), Journal::default());
        for step in &scenario.steps {
            if let Act::Edit(edit) = &step.act
                && let Some(name) = edit.strips()
            {
                invariants.finalizers_stripped(&name);
            }
        }
        invariants
    }

    /// Starts a joiner whose dangerous calls are watched. Nothing goes wrong but what the scenario says.
    pub fn watched_joiner(&self, invariants: &Invariants) -> Joiner {
        let (mishaps, _) = Mishaps::new(&Plan::default(), Duration::ZERO, Journal::default());
        let (cluster, cloud) = (self.world.cluster.clone(), self.world.cloud.clone());
        let cluster = HostileCluster::new(cluster, mishaps.clone(), invariants.clone());
        self.start(Arc::new(cluster), Arc::new(HostileCloud::new(cloud, &[], mishaps, invariants.clone())))
    }

    fn start(&self, cluster: Arc<dyn Cluster>, cloud: Arc<dyn Cloud>) -> Joiner {
        let life = self.lives.fetch_add(1, Ordering::Relaxed);
        let settings =
            actors::Settings { name_salt: self.settings.name_salt.wrapping_add(life << 32), ..self.settings.clone() };
        Joiner::start(Parts { cluster, cloud, settings, clock: self.clock })
    }
}

/// The actors' settings in a rehearsal: nobody else wants the lease.
pub(super) fn settings(settings: &Settings) -> actors::Settings {
    actors::Settings { leader_election: false, ..live::actors_settings(settings) }
}

/// Turns on what a scenario asks for.
pub fn with_features(mut settings: actors::Settings, features: &BTreeSet<Feature>) -> actors::Settings {
    for feature in features {
        match feature {
            Feature::NodeRepair if features.contains(&Feature::LegacyNodeRepair) => {
                settings.repair = actors::NodeRepair::Legacy;
            }
            Feature::NodeRepair => settings.repair = actors::NodeRepair::Disruption,
            Feature::LegacyNodeRepair => {}
            Feature::NodeOverlay => settings.features.node_overlay = true,
            Feature::StaticCapacity => settings.features.static_capacity = true,
            Feature::CapacityBuffer => settings.features.capacity_buffer = true,
            Feature::DynamicResources => settings.features.dynamic_resources = true,
        }
    }
    settings
}

/// The instance types of a file, or the generated ones.
pub(super) fn instance_types(settings: &Settings) -> Result<Vec<InstanceType>> {
    let mut types = match &settings.instance_types {
        Some(path) => catalog::read_file(path)?,
        None => catalog::generated(),
    };
    if !settings.gates.reserved_capacity {
        for kind in &mut types {
            kind.offerings.retain(|offering| !offering.is_reserved());
        }
    }
    Ok(types)
}

/// Reads what is to be rehearsed, from a scenario, a trace, or both (the scenario then brings the NodePools).
pub(super) fn read(scenario: Option<&Path>, trace: Option<&Trace>) -> Result<Scenario> {
    let shapes = ShapeStore::new();
    let open = |path: &Path| std::fs::read_to_string(path);
    let scenario = scenario.map(|path| read_scenario(path, &shapes, &open)).transpose()?;
    let trace = trace.map(|trace| self::trace(trace, &shapes)).transpose()?;
    let mut whole = match (scenario, trace) {
        (Some(mut scenario), Some(trace)) => {
            scenario.steps.extend(trace.steps);
            scenario.steps.sort_by_key(|step| step.at);
            scenario
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => anyhow::bail!("nothing to simulate; name a scenario file or --trace openb FILE"),
    };
    give_pool(&mut whole)?;
    Ok(whole)
}

/// A recorded day.
pub(super) fn trace(trace: &Trace, shapes: &ShapeStore) -> Result<Scenario> {
    let file = &trace.file;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; --trace takes a readable file", file.display()))?;
    match trace.format {
        TraceFormat::Openb => Ok(read_openb(file, &text, shapes)?),
    }
}

/// A scenario that puts these manifests at its start, and is over when nothing is left to do.
pub fn scenario_of(name: &str, manifests: &[Value]) -> Result<Scenario> {
    let shapes = ShapeStore::new();
    let objects = manifests.iter().map(|manifest| read_object(manifest, &shapes, &Admission::default()));
    let objects = objects.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let steps = vec![Step { at: Duration::ZERO, act: Act::Apply(objects) }];
    let mut scenario = Scenario {
        name: name.to_owned(),
        seed: None,
        features: BTreeSet::new(),
        cloud: crate::sim::Behaviour::default(),
        steps,
        end: crate::sim::End::Settled,
        narration: crate::sim::Narration::default(),
    };
    give_pool(&mut scenario)?;
    Ok(scenario)
}

/// Gives a scenario without any NodePool the default one.
fn give_pool(scenario: &mut Scenario) -> Result<()> {
    let is_pool = |object: &Object| matches!(object, Object::Pool(_));
    let has_pool =
        scenario.steps.iter().any(|step| matches!(&step.act, Act::Apply(objects) if objects.iter().any(is_pool)));
    if !has_pool {
        let objects = default_pool()?;
        scenario.steps.insert(0, Step { at: Duration::ZERO, act: Act::Apply(objects) });
    }
    Ok(())
}

/// The NodePool and NodeClass of a rehearsal that names none.
pub fn default_pool() -> Result<Vec<Object>> {
    let manifest: Value = serde_saphyr::from_str(DEFAULT_POOL)?;
    Ok(read_object(&manifest, &ShapeStore::new(), &Admission::default())?)
}
