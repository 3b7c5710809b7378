//! Small worlds in which every possible plan is tried: the solver places all pods where some plan does, and the cheapest price is no less than its
//! bound and no less than half of what it pays.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

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

fn any_world() -> impl Strategy<Value = World> {
    let pools = prop_oneof![1 => Just(vec![Site::default()]), 3 => prop::collection::vec(any_site(), 1..4)];
    (pools, prop::option::weighted(0.3, 0..APPS.len()), prop::collection::vec(any_small(), 1..5)).prop_map(
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_solver_finds_a_plan_where_there_is_one(world in any_world()) {
        let scene = world.scene();
        let plan = Ground::default().plan(&scene.problem());
        prop_assert_eq!(check(&scene.problem(), &plan), []);
        let optimum = cheapest(&world);
        if plan.refused.is_empty() {
            prop_assert!(can_be_bound(&world, &scene, &plan), "no order leads to {:#?}", plan.claims);
            prop_assert!(lower_bound(&scene.problem(), &plan) <= optimum.unwrap_or(f64::INFINITY) + 1e-9);
        }
        if let Some(optimum) = optimum {
            prop_assert!(plan.refused.is_empty(), "{:#?}", plan.refused);
            prop_assert!(plan.price <= optimum * 2.0 + 1e-9, "{} $/h, and {optimum} would do: {:#?}", plan.price, plan.claims);
        }
    }
}
