//! Small worlds in which every possible plan is tried: the solver places all pods where some plan does, and the cheapest price is no less than its
//! bound and not much less than what it pays.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

use super::super::{Ground, check, lower_bound};

mod possible;
mod world;

use possible::{can_be_bound, cheapest};
use world::{APPS, HERE, Site, Small, World};

fn rarely(values: usize) -> impl Strategy<Value = Option<usize>> {
    prop_oneof![4 => Just(None), 1 => (0..values).prop_map(Some)]
}

fn any_small() -> impl Strategy<Value = Small> {
    let size = proptest::sample::select(&[400_i64, 900, 1600][..]);
    let nodes = (rarely(HERE), rarely(2), rarely(2), any::<bool>());
    let others = (rarely(2), rarely(2), rarely(2), rarely(2));
    (size, 0..APPS.len(), nodes, others, prop::bool::weighted(0.4), prop::bool::weighted(0.2)).prop_map(
        |(cpu, app, (zone, tier, arch, tolerates), (off_node, off_zone, near, beside), spreads, port)| Small {
            cpu,
            app,
            zone,
            tier,
            arch,
            tolerates,
            spreads,
            port,
            off_node,
            off_zone,
            near,
            beside,
        },
    )
}

fn any_site() -> impl Strategy<Value = Site> {
    let limits = (prop_oneof![3 => Just(None), 1 => (1..3_i64).prop_map(Some)], rarely(3));
    (0..3_i32, rarely(HERE), prop::option::of(0..2_usize), rarely(2), any::<bool>(), limits).prop_map(
        |(weight, zone, tier, arch, tainted, (nodes, cores))| Site {
            weight,
            zone,
            tier,
            arch,
            tainted,
            nodes,
            cores: cores.map(|at| [2, 4, 6][at]),
        },
    )
}

fn any_world(most: usize) -> impl Strategy<Value = World> {
    let pools = prop_oneof![1 => Just(vec![Site::default()]), 3 => prop::collection::vec(any_site(), 1..4)];
    (pools, prop::option::weighted(0.3, 0..APPS.len()), prop::collection::vec(any_small(), 1..=most)).prop_map(
        |(pools, running, mut pods)| {
            // Whoever is counted is bound: what pods do that nothing binds is not for the solver to say. And what such a constraint makes of nodes
            // that its pods do not ask for is told elsewhere.
            for app in 0..APPS.len() {
                let spreads = pods.iter().find(|one| one.app == app).is_some_and(|one| one.spreads);
                for one in pods.iter_mut().filter(|one| one.app == app) {
                    one.spreads = spreads;
                    if spreads {
                        (one.tier, one.arch) = (None, None);
                    }
                }
            }
            World { pools, running, pods }
        },
    )
}

/// A plan may cost so many times as much as the cheapest: a large node and a small one in place of a large one, which two of thirty thousand worlds
/// of `many_small_worlds` show.
const DEAREST: f64 = 2.06;

/// How many times as much as the cheapest plan the solver's costs, where there is something to buy, or what is wrong with it.
fn judged(world: &World) -> Result<f64, String> {
    let scene = world.scene();
    let plan = Ground::default().plan(&scene.problem());
    let wrong = check(&scene.problem(), &plan);
    if !wrong.is_empty() {
        return Err(format!("the plan is wrong: {wrong:?}"));
    }
    let optimum = cheapest(world);
    if plan.refused.is_empty() {
        if !can_be_bound(world, &scene, &plan) {
            return Err(format!("no order leads to {:#?}", plan.claims));
        }
        let bound = lower_bound(&scene.problem(), &plan);
        if bound > optimum.unwrap_or(f64::INFINITY) + 1e-9 {
            return Err(format!("the bound is {bound}, and {optimum:?} would do"));
        }
    }
    let Some(optimum) = optimum else { return Ok(1.0) };
    if !plan.refused.is_empty() {
        return Err(format!("refused: {:#?}", plan.refused));
    }
    if plan.price > optimum * DEAREST + 1e-9 {
        return Err(format!("{} $/h, and {optimum} would do: {:#?}", plan.price, plan.claims));
    }
    Ok(if optimum > 0.0 { plan.price / optimum } else { 1.0 })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_solver_finds_a_plan_where_there_is_one(world in any_world(4)) {
        let judged = judged(&world);
        prop_assert!(judged.is_ok(), "{}", judged.unwrap_err());
    }
}

/// The world of a seed.
fn seeded(seed: u64, most: usize) -> World {
    let config =
        ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() };
    any_world(most).new_tree(&mut TestRunner::new(config)).expect("nothing is filtered out").current()
}

/// Many more worlds, one a seed, of up to `JOINER_PODS` pods. For those who work on the solver: `JOINER_SEEDS=0..20000 cargo test --lib many_small_worlds -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn many_small_worlds() {
    let asked = std::env::var("JOINER_SEEDS").unwrap_or_else(|_| "0..20000".to_owned());
    let (from, to) = asked.split_once("..").expect("from..to");
    let seeds = from.parse().expect("a number")..to.parse().expect("a number");
    let most = std::env::var("JOINER_PODS").map_or(4, |most| most.parse().expect("a number"));
    let mut wrong: Vec<u64> = Vec::new();
    let mut dearest = (1.0, 0);
    for seed in seeds {
        let world = seeded(seed, most);
        match judged(&world) {
            Ok(ratio) if ratio > dearest.0 => dearest = (ratio, seed),
            Ok(_) => {}
            Err(why) => {
                println!("seed {seed}: {world:#?}\n{why}\n");
                wrong.push(seed);
            }
        }
    }
    println!("at most {} times the cheapest price (seed {})", dearest.0, dearest.1);
    assert!(wrong.is_empty(), "{} worlds: {wrong:?}", wrong.len());
}
