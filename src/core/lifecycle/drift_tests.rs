//! Drift, reason by reason; what cannot be said stays as it is.

use super::*;
use crate::core::facts::samples::{class, condition, pool, serving, start};
use crate::core::facts::{Condition, Fact, Fold, NodeClass};
use crate::core::lifecycle::{Act, Memory, step};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

struct World {
    claim: Claim,
    pool: Option<Pool>,
    class: NodeClass,
    types: Vec<Arc<InstanceType>>,
    memory: Memory,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let mut claim = serving();
        claim.annotations = pool().annotations;
        let more = [(labels::INSTANCE_TYPE, "c-1x"), (labels::CAPACITY_TYPE, labels::SPOT), (labels::ARCH, "amd64")];
        claim.labels.extend(more.map(|(key, value)| (key.into(), value.into())));
        let types = vec![kind("c-1x", "zone-a", labels::SPOT)];
        Self { claim, pool: Some(pool()), class: class(), types, memory: Memory::default(), now: start() }
    }

    fn asked(mut self, drifted: Option<&str>) -> Self {
        self.memory.drift = CloudDrift {
            asked: Some(self.now),
            class: Some(class_version(&self.class)),
            answer: Some(drifted.map(Into::into)),
            failed: false,
        };
        self
    }

    fn look<T>(&self, look: impl FnOnce(&Situation<'_>) -> T) -> T {
        let mut fold = Fold::default();
        fold.fold(Fact::ClaimSeen(Arc::new(self.claim.clone())));
        fold.fold(Fact::ClassSeen(Arc::new(self.class.clone())));
        if let Some(pool) = &self.pool {
            fold.fold(Fact::PoolSeen(Arc::new(pool.clone())));
        }
        let situation = Situation::of(&self.claim, fold.snapshot(), &self.memory, self.now);
        look(&situation.with_types(Some(&self.types)).with_drift_every(Some(EVERY)))
    }

    fn judge(&self) -> Judgement {
        self.look(judge)
    }

    fn pool(&mut self) -> &mut Pool {
        self.pool.as_mut().unwrap()
    }
}

fn kind(name: &str, zone: &str, capacity_type: &str) -> Arc<InstanceType> {
    let one = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    Arc::new(InstanceType {
        name: name.into(),
        requirements: vec![one(labels::INSTANCE_TYPE, name)],
        capacity: Resources::new().with("cpu", 1000),
        overhead: Resources::new(),
        attach_limits: std::collections::BTreeMap::new(),
        offerings: vec![Offering {
            requirements: vec![one(labels::ZONE, zone), one(labels::CAPACITY_TYPE, capacity_type)],
            price: 1.0,
            available: false,
            reservation_capacity: None,
        }],
    })
}

fn drifted(reason: &str) -> Judgement {
    Judgement::Drifted(reason.into())
}

fn hash(world: &mut World, hash: &str, version: &str) {
    let all = [(labels::NODEPOOL_HASH, hash), (labels::NODEPOOL_HASH_VERSION, version)];
    world.pool().annotations = all.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
}

#[test]
fn a_template_that_was_edited_is_drift_and_a_hash_of_another_recipe_is_none() {
    let mut world = World::new().asked(None);
    assert_eq!(world.judge(), Judgement::Fine);
    hash(&mut world, "2", labels::HASH_VERSION);
    assert_eq!(world.judge(), drifted("NodePoolDrifted"));
    hash(&mut world, "2", "v2");
    assert_eq!(world.judge(), Judgement::Fine, "another recipe");
    for key in [labels::NODEPOOL_HASH, labels::NODEPOOL_HASH_VERSION] {
        hash(&mut world, "2", labels::HASH_VERSION);
        let claim = world.claim.annotations.remove(key);
        assert_eq!(world.judge(), Judgement::Fine, "{key} is missing on the NodeClaim");
        world.claim.annotations.insert(key.into(), claim.unwrap());
        world.pool().annotations.remove(key);
        assert_eq!(world.judge(), Judgement::Fine, "{key} is missing on the NodePool");
    }
}

#[test]
fn requirements_that_no_longer_admit_the_labels_are_drift() {
    let of = |key: &str, operator, values: &[&str]| {
        let mut world = World::new().asked(Some("NodeClassDrift"));
        world.claim.labels.insert("example.com/generation".into(), "5".into());
        world.pool().template.requirements = vec![Requirement::new(key, operator, values.iter().copied())];
        let is = world.judge();
        assert!(is == drifted("RequirementsDrifted") || is == drifted("NodeClassDrift"));
        is == drifted("RequirementsDrifted")
    };
    assert!(of(labels::ARCH, Operator::In, &["arm64"]), "changed");
    assert!(of("example.com/team", Operator::In, &["red"]), "added");
    assert!(of("example.com/team", Operator::Exists, &[]), "a label that is not there");
    assert!(of(labels::ARCH, Operator::DoesNotExist, &[]), "a label that must not be there");
    assert!(of("example.com/generation", Operator::Gt, &["5"]), "out of bounds");
    assert!(of("example.com/generation", Operator::Lt, &["5"]), "out of bounds");
    assert!(!of(labels::ARCH, Operator::In, &["amd64", "arm64"]), "widened");
    assert!(!of(labels::ARCH, Operator::Exists, &[]));
    assert!(!of("example.com/team", Operator::NotIn, &["red"]));
    assert!(!of("example.com/generation", Operator::Gte, &["5"]));
}

#[test]
fn a_type_that_is_no_longer_sold_is_drift_after_an_hour() {
    let mut world = World::new().asked(None);
    world.types = vec![kind("c-2x", "zone-a", labels::SPOT)];
    assert_eq!(world.judge(), Judgement::Fine);
    assert_eq!(world.look(catalog_at), Some(start() + SignedDuration::from_hours(1)));
    world.now = start() + SignedDuration::from_hours(1);
    assert_eq!(world.judge(), drifted("InstanceTypeNotFound"));
    let is = |world: &World| world.judge() == drifted("InstanceTypeNotFound");
    world.types = vec![kind("c-1x", "zone-a", labels::SPOT)];
    assert!(!is(&world), "sold out is not gone");
    world.types = vec![kind("c-1x", "zone-b", labels::SPOT)];
    assert!(is(&world), "no offering in its zone");
    world.types = vec![Arc::new(InstanceType { offerings: vec![], ..(*kind("c-1x", "", "")).clone() })];
    assert!(is(&world), "no offering at all");
    world.types = vec![kind("c-1x", "zone-a", labels::SPOT)];
    world.claim.labels.remove(labels::INSTANCE_TYPE);
    assert!(is(&world), "nobody knows what it is");
    world.types = vec![];
    assert!(!is(&world), "an empty catalog says nothing of machines");
}

#[test]
fn a_reserved_machine_may_go_on_as_one_on_demand() {
    let mut world = World::new().asked(None);
    world.now = start() + SignedDuration::from_hours(1);
    world.claim.labels.insert(labels::CAPACITY_TYPE.into(), labels::RESERVED.into());
    world.claim.labels.insert("example.com/reservation".into(), "r-1".into());
    world.types = vec![kind("c-1x", "zone-a", labels::ON_DEMAND)];
    assert_eq!(world.judge(), Judgement::Fine);
    world.types = vec![kind("c-1x", "zone-a", labels::SPOT)];
    assert_eq!(world.judge(), drifted("InstanceTypeNotFound"));
}

#[test]
fn what_the_cloud_says_counts_last_and_until_it_says_otherwise() {
    let mut world = World::new().asked(Some("NodeClassDrift"));
    assert_eq!(world.judge(), drifted("NodeClassDrift"));
    hash(&mut world, "2", labels::HASH_VERSION);
    assert_eq!(world.judge(), drifted("NodePoolDrifted"), "static drift comes first");
    hash(&mut world, "1", labels::HASH_VERSION);
    // A new life of the actor has not heard the cloud yet.
    world.memory = Memory::default();
    let known = Condition { reason: "NodeClassDrift".into(), ..condition(DRIFTED, Status::True) };
    world.claim.conditions.push(known);
    assert_eq!(world.judge(), Judgement::Open);
    world.claim.conditions.last_mut().unwrap().reason = "NodePoolDrifted".into();
    assert_eq!(world.judge(), Judgement::Fine, "that can be seen from here");
}

#[test]
fn nothing_is_said_without_a_nodepool_and_nothing_drifts_before_it_is_launched() {
    let mut world = World::new().asked(Some("NodeClassDrift"));
    for status in [Status::Unknown, Status::False] {
        world.claim.conditions = vec![condition("Launched", status)];
        assert_eq!(world.judge(), Judgement::Fine);
    }
    world.claim.conditions = vec![condition("Launched", Status::True)];
    world.pool().errors.push("spec.template.spec.requirements[0].operator: \"Is\" is no operator".into());
    assert_eq!(world.judge(), Judgement::Open);
    world.pool = None;
    assert_eq!(world.judge(), Judgement::Open);
    assert_eq!(world.look(ask_at), None);
}

#[test]
fn the_cloud_is_asked_every_five_minutes_and_at_once_when_the_nodeclass_changes() {
    let mut world = World::new();
    assert_eq!(world.look(ask_at), Some(start()));
    assert!(matches!(world.look(step).act, Some(Act::AskDrift | Act::PatchStatus(_))));
    world = world.asked(None);
    assert_eq!(world.look(ask_at), Some(start() + SignedDuration::from_mins(5)));
    world.now = start() + SignedDuration::from_mins(2);
    world.class.generation += 1;
    assert_eq!(world.look(ask_at), Some(world.now));
    world = world.asked(None);
    world.memory.drift.failed = true;
    assert_eq!(world.look(ask_at), Some(world.now + SignedDuration::from_mins(1)), "a question that failed");
    world.memory.drift.failed = false;
    hash(&mut world, "2", labels::HASH_VERSION);
    assert_eq!(world.look(ask_at), None, "it has drifted, whatever the cloud says");
}

#[test]
fn the_condition_comes_and_goes_with_what_it_says() {
    let mut world = World::new().asked(None);
    hash(&mut world, "2", labels::HASH_VERSION);
    let written = |world: &World| match world.look(step).act {
        Some(Act::PatchStatus(patch)) => patch.conditions.unwrap_or_default(),
        other => panic!("{other:?}"),
    };
    world.claim.conditions = written(&world);
    let condition = find_condition(&world.claim.conditions, DRIFTED).unwrap();
    assert_eq!((condition.status, &*condition.reason, &*condition.message), (Status::True, POOL, POOL));
    hash(&mut world, "1", labels::HASH_VERSION);
    assert!(find_condition(&written(&world), DRIFTED).is_none(), "removed, not False");
}
