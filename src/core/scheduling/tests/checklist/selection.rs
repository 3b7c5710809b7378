//! Karpenter's suite of instance selection: the cheapest type that pod and pool allow, and how many kinds `minValues` asks for.
//!
//! Most of `minValues`: `min_values.rs`. That planning leaves the catalogue as it is needs no test: it is shared and cannot be changed.

use std::collections::BTreeSet;

use super::super::build::*;
use super::super::min_values::{best_effort, least};
use super::words::*;
use crate::core::facts::{InstanceType, Offering, PodShape, Pool};
use crate::core::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, OS, SPOT, ZONE};
use crate::core::requirements::Operator::{Exists, Lt, NotIn};
use crate::core::requirements::Requirement;
use crate::core::scheduling::{Plan, Reason};

/// What pods and pools may ask for.
const CHOICES: [(&str, [&str; 2]); 4] = [
    (ARCH, ["amd64", "arm64"]),
    (OS, ["linux", "windows"]),
    (ZONE, ["zone-a", "zone-b"]),
    (CAPACITY_TYPE, [SPOT, ON_DEMAND]),
];

/// A type that can be had in one zone and in one way. Its price goes by its size; spot is cheaper.
fn assorted(cores: i64, memory: i64, chosen: [&str; 4]) -> InstanceType {
    let [_, _, zone, capacity] = chosen;
    let price = (0.1 * cores as f64 + 0.1 * memory as f64) * if capacity == SPOT { 0.7 } else { 1.0 };
    let name = format!("{cores}-cpu-{memory}-mem-{}", chosen.join("-"));
    let requirements = vec![within(ZONE, &[zone]), within(CAPACITY_TYPE, &[capacity])];
    let offerings = vec![Offering { requirements, price, available: true, reservation_capacity: None }];
    let kind = InstanceType { offerings, ..instance_type(&name, cores, memory, price) };
    CHOICES.iter().zip(chosen).fold(kind, |kind, ((key, _), value)| kind.labelled(key, &[value]))
}

/// Types of these sizes in every combination of what can be chosen, in no order.
fn shuffled(cores: &[i64], memory: &[i64]) -> Vec<InstanceType> {
    let zones = ["zone-a", "zone-b", "zone-c"];
    let mut all = Vec::new();
    for (cores, memory) in cores.iter().flat_map(|cores| memory.iter().map(move |memory| (*cores, *memory))) {
        for (arch, os) in CHOICES[0].1.iter().flat_map(|arch| CHOICES[1].1.iter().map(move |os| (*arch, *os))) {
            for (zone, capacity) in zones.iter().flat_map(|zone| CHOICES[3].1.iter().map(move |one| (*zone, *one))) {
                all.push(assorted(cores, memory, [arch, os, zone, capacity]));
            }
        }
    }
    // 7919 is prime to their number: every type has a place of its own.
    (0..all.len()).map(|at| all[at * 7919 % all.len()].clone()).collect()
}

/// Who asks for a choice.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Nobody,
    Pod,
    Pool,
}

/// The first planned type is the cheapest that has all that is asked for, and all others have it too.
fn assert_cheapest(types: &[InstanceType], asked: [By; 4]) {
    let (mut shape, mut own) = (web(), pool("default"));
    for ((key, values), by) in CHOICES.into_iter().zip(asked) {
        match by {
            By::Nobody => {}
            By::Pod => shape = shape.selecting(key, values[1]),
            By::Pool => own = own.requiring(within(key, &values[1..])),
        }
    }
    let has = |kind: &InstanceType| {
        CHOICES.iter().zip(asked).all(|((key, values), by)| {
            let own = kind.requirements.iter().find(|line| &*line.key == *key).expect("every type says it");
            by == By::Nobody || *own.values[0] == *values[1]
        })
    };
    let holds = |kind: &InstanceType| shape.requests.fits(&kind.allocatable());
    let cheapest = types.iter().filter(|kind| has(kind) && holds(kind)).map(|kind| kind.offerings[0].price);
    let cheapest = cheapest.fold(f64::INFINITY, f64::min);
    let plan = Scene::default().with_pool(own, types.to_vec()).place(&shape).whole();
    assert!((plan.price - cheapest).abs() < 1e-9, "{} and not {cheapest}", plan.price);
    for name in plan.types() {
        let kind = types.iter().find(|kind| kind.name.as_str() == name).expect("a planned type is known");
        assert!(has(kind) && holds(kind), "{name}");
    }
}

#[test]
fn of_many_types_the_cheapest_is_chosen() {
    let types = shuffled(&[1, 2, 4, 8, 16, 32, 64], &[1, 2, 4, 8, 16, 32, 64, 128]);
    assert_eq!(types.len(), 1344);
    assert_cheapest(&types, [By::Nobody; 4]);
}

#[test]
fn whatever_pod_and_pool_ask_for_the_cheapest_type_that_has_it_is_chosen() {
    let types = shuffled(&[1, 4], &[1, 8]);
    let all = [By::Nobody, By::Pod, By::Pool];
    for combination in 0..81_usize {
        assert_cheapest(&types, [1, 3, 9, 27].map(|part| all[combination / part % 3]));
    }
}

#[test]
fn nothing_is_bought_where_no_type_has_what_is_asked_for() {
    let mut types = shuffled(&[1, 4], &[1, 8]);
    types.retain(|kind| !kind.name.as_str().contains("arm64"));
    let scene = |own: Pool| Scene::default().with_pool(own, types.clone());
    let arm = || web().selecting(ARCH, "arm64");
    for (own, shape) in [
        (pool("default"), arm()),
        (pool("default"), arm().selecting(ZONE, "zone-b")),
        (pool("default").requiring(within(ARCH, &["arm64"])), web().selecting(ZONE, "zone-b")),
    ] {
        let plan = scene(own).place(&shape);
        assert_eq!((plan.claims.len(), plan.left()), (0, 1));
    }
}

#[test]
fn every_listed_type_holds_all_pods_of_its_node() {
    let types = shuffled(&[1, 2, 4, 8, 16, 32, 64], &[1, 4, 16, 64]);
    for (cpu, memory) in [(100, 100), (100, 16_000), (1000, 2000), (2500, 500), (2500, 8000), (16_000, 1000)] {
        let shape = web().of(cpu, memory);
        let plan = buying(types.clone()).with_pods(pods("web", 3, &shape)).solve().whole();
        for claim in &plan.claims {
            for name in claim.instance_types.iter() {
                let kind = types.iter().find(|kind| kind.name == *name).expect("a planned type is known");
                assert!(claim.draft.requests.fits(&kind.allocatable()), "{cpu} {memory} {name}");
            }
        }
        // One node for all three is what Karpenter plans; joiner may part them where that is cheaper.
        let together = (cpu * 3, memory * 3);
        let fits = |kind: &&InstanceType| {
            web().of(together.0, together.1).requests.with("pods", 3000).fits(&kind.allocatable())
        };
        let one = types.iter().filter(fits).map(|kind| kind.offerings[0].price).fold(f64::INFINITY, f64::min);
        assert!(plan.price <= one + 1e-9, "{} for {cpu} {memory}, {one} for one node", plan.price);
    }
}

#[test]
fn offerings_that_the_pool_excludes_do_not_make_a_type_cheap() {
    let mut lure = instance_type("lure", 4, 16, 1.0);
    let is_spot =
        |offering: &&mut Offering| offering.requirements.iter().any(|line| line.values.iter().any(|v| &**v == SPOT));
    lure.offerings.iter_mut().filter(is_spot).for_each(|offering| offering.price = 0.01);
    let types = vec![lure, instance_type("honest", 4, 16, 0.5)];
    let own = pool("default").requiring(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let plan = Scene::default().with_pool(own, types.clone()).place(&web()).whole();
    assert_eq!((plan.types()[0], plan.price), ("honest", 0.5));
    assert_eq!(buying(types).place(&web()).whole().types()[0], "lure");
}

fn asking(lines: &[(Requirement, u32)]) -> Pool {
    let asked = lines.iter().map(|(line, least)| Requirement { min_values: Some(*least), ..line.clone() });
    asked.fold(pool("default"), Pool::requiring)
}

fn place(own: Pool, types: Vec<InstanceType>, shape: &PodShape) -> Plan {
    Scene::default().with_pool(own, types).place(shape)
}

#[test]
fn of_two_lines_about_one_key_the_larger_number_counts() {
    let lines = [(says(INSTANCE_TYPE, Exists, &[]), 4), (within(INSTANCE_TYPE, &["fake-1", "fake-2", "fake-3"]), 2)];
    let plan = place(asking(&lines), ladder(8), &web());
    assert!(
        matches!(plan.refused[0].reasons[..], [Reason::MinValues { wanted: 4, found: 3, .. }]),
        "{:?}",
        plan.refused
    );
    let plan = place(asking(&[(lines[0].0.clone(), 3), lines[1].clone()]), ladder(8), &web()).whole();
    assert_eq!((plan.types().len(), least(&plan.claims[0], INSTANCE_TYPE)), (3, Some(3)));
}

#[test]
fn every_key_has_its_own_number() {
    let types: Vec<InstanceType> = ladder(6)
        .into_iter()
        .enumerate()
        .map(|(at, kind)| kind.labelled("example.com/family", &[if at < 4 { "c" } else { "m" }]))
        .collect();
    let family = |least| (says("example.com/family", Exists, &[]), least);
    let cores = |least| (says("integer", Lt, &["7"]), least);
    let plan = place(asking(&[family(2), cores(5)]), types.clone(), &web()).whole();
    assert!(plan.types().len() >= 5);
    let plan = place(asking(&[family(3), cores(5)]), types.clone(), &web());
    assert!(matches!(&plan.refused[0].reasons[..], [Reason::MinValues { wanted: 3, found: 2, .. }]));
    let plan = place(asking(&[family(2), cores(7)]), types, &web());
    assert!(matches!(&plan.refused[0].reasons[..], [Reason::MinValues { wanted: 7, found: 6, .. }]));
}

#[test]
fn more_kinds_than_there_are_cannot_be_had() {
    let own = || asking(&[(says(INSTANCE_TYPE, Exists, &[]), 11)]);
    let plan = place(own(), ladder(10), &web());
    assert!(matches!(plan.refused[0].reasons[..], [Reason::MinValues { wanted: 11, found: 10, .. }]));
    let lowered = best_effort(Scene::default().with_pool(own(), ladder(10)).with_pods(pods("web", 1, &web())));
    assert_eq!(least(&lowered.claims[0], INSTANCE_TYPE), Some(10));
}

#[test]
fn pods_that_each_fit_few_kinds_part() {
    let own = asking(&[
        (within(INSTANCE_TYPE, &["fake-2", "fake-3", "fake-4"]), 2),
        (says(INSTANCE_TYPE, NotIn, &["fake-1"]), 2),
    ]);
    let scene = Scene::default().with_pool(own, ladder(4)).with_pods(pods("web", 2, &web().of(1800, 512)));
    let plan = scene.solve().whole();
    let kinds: Vec<BTreeSet<&str>> = plan
        .claims
        .iter()
        .map(|claim| claim.instance_types.iter().map(crate::core::ids::InstanceTypeName::as_str).collect())
        .collect();
    assert_eq!((plan.claims.len(), kinds.iter().all(|kinds| kinds.len() >= 2)), (2, true), "{kinds:?}");
}
