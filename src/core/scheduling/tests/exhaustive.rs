//! Small worlds in which every possible plan is tried: the solver places all pods where some plan does, and the cheapest price is no less than its
//! bound and no less than half of what it pays.
//!
//! What is possible is told here once more, as kube-scheduler's filters have it, and by nothing that the solver or the checker use: nodes are
//! bought, and then there is an order in which each pod finds its node open.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::{Ground, Plan, lower_bound};
use super::build::*;
use crate::core::facts::{HostPort, InstanceType, Pod};
use crate::core::labels::{CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE};

const APPS: [&str; 2] = ["web", "db"];
/// Zones with nodes to buy, as `ZONES` has them.
const HERE: usize = 2;
/// CPU of the one node that is there, in the first zone.
const OLD: i64 = 1000;

/// A pod, in as few words as it goes.
#[derive(Clone, Copy, Debug)]
struct Small {
    cpu: i64,
    app: usize,
    zone: Option<usize>,
    spreads: bool,
    port: bool,
    /// Not on a node, or not in a zone, with these.
    off_node: Option<usize>,
    off_zone: Option<usize>,
    /// In a zone with these.
    near: Option<usize>,
    /// On a node with these.
    beside: Option<usize>,
}

/// Where a pod is: the number of its node, and the zone of each node; the first node is the one that is there.
type Seats = Vec<usize>;

fn types() -> Vec<InstanceType> {
    [("small", 2, 0.1), ("large", 4, 0.19)]
        .map(|(name, cpu, price)| {
            let mut kind = instance_type(name, cpu, 64, price);
            kind.offerings.retain(|offering| offering.zone().is_some_and(|zone| ZONES[..HERE].contains(&&**zone)));
            kind
        })
        .to_vec()
}

/// The price of a new node for so much CPU; nothing when no type holds it.
fn price(cpu: i64) -> Option<f64> {
    if cpu <= 1900 { Some(0.1) } else { (cpu <= 3900).then_some(0.19) }
}

fn scene(all: &[Small]) -> Scene {
    let mut own = pool("default");
    own.template.requirements.push(within(CAPACITY_TYPE, &[ON_DEMAND]));
    let app = |which: usize| [("app", APPS[which])];
    let pods = all.iter().enumerate().map(|(at, small)| {
        let mut one = shape(small.cpu, 64);
        one.labels = labels(&app(small.app));
        if let Some(zone) = small.zone {
            one.node_selector = labels(&[(ZONE, ZONES[zone])]);
        }
        if small.spreads {
            one.spreads.push(spread(ZONE, 1, &app(small.app)));
        }
        if small.port {
            one.host_ports.push(HostPort { ip: "0.0.0.0".into(), port: 80, protocol: "TCP".into() });
        }
        one.anti_affinity.extend(small.off_node.map(|whom| term(HOSTNAME, &app(whom))));
        one.anti_affinity.extend(small.off_zone.map(|whom| term(ZONE, &app(whom))));
        one.affinity.extend(small.near.map(|whom| term(ZONE, &app(whom))));
        one.affinity.extend(small.beside.map(|whom| term(HOSTNAME, &app(whom))));
        pod(&format!("p{at}"), i64::try_from(at).unwrap(), &one)
    });
    let mut old = node("old", 1, 64, &[(ZONE, ZONES[0])]);
    old.allocatable = old.allocatable.with("cpu", OLD);
    Scene::default().with_pool(own, types()).with_node(old).with_pods(pods.collect::<Vec<Arc<Pod>>>())
}

/// Whether kube-scheduler would bind a pod to its node when these are bound.
fn opens(all: &[Small], seats: &Seats, zones: &[usize], bound: u32, at: usize, domains: &[usize]) -> bool {
    let (one, seat) = (all[at], seats[at]);
    let there = || (0..all.len()).filter(|other| bound >> other & 1 == 1);
    let in_zone = |other: usize, zone: usize| zones[seats[other]] == zone;
    let here = zones[seat];
    let count =
        |app: usize, zone: usize| there().filter(|other| all[*other].app == app && in_zone(*other, zone)).count();
    if one.zone.is_some_and(|zone| zone != here)
        || one.port && there().any(|other| all[other].port && seats[other] == seat)
        || there().any(|other| {
            let apart = |a: usize, b: usize| {
                all[a].off_node == Some(all[b].app) && seats[a] == seats[b]
                    || all[a].off_zone == Some(all[b].app) && zones[seats[a]] == zones[seats[b]]
            };
            apart(at, other) || apart(other, at)
        })
    {
        return false;
    }
    if one.spreads {
        let least = domains
            .iter()
            .filter(|zone| one.zone.is_none_or(|own| own == **zone))
            .map(|zone| count(one.app, *zone))
            .min();
        if count(one.app, here) > least.unwrap_or(0) {
            return false;
        }
    }
    // Whom several terms mean must be meant by all of them.
    let meant: Vec<usize> = one.near.into_iter().chain(one.beside).collect();
    let is_meant = |app: usize| meant.iter().all(|whom| *whom == app);
    let first = is_meant(one.app) && !there().any(|other| is_meant(all[other].app));
    let near =
        |whom: usize| there().any(|other| is_meant(all[other].app) && all[other].app == whom && in_zone(other, here));
    let beside =
        |whom: usize| there().any(|other| is_meant(all[other].app) && all[other].app == whom && seats[other] == seat);
    first || one.near.is_none_or(near) && one.beside.is_none_or(beside)
}

/// Whether there is an order in which each pod can be bound.
fn has_order(all: &[Small], seats: &Seats, zones: &[usize], domains: &[usize]) -> bool {
    let whole = (1_u32 << all.len()) - 1;
    let mut reached = vec![false; whole as usize + 1];
    reached[0] = true;
    for bound in 0..whole {
        for at in 0..all.len() {
            if reached[bound as usize] && bound >> at & 1 == 0 && opens(all, seats, zones, bound, at, domains) {
                reached[(bound | 1 << at) as usize] = true;
            }
        }
    }
    reached[whole as usize]
}

/// Whether each pod could be bound again where it is.
fn stays(all: &[Small], seats: &Seats, zones: &[usize], domains: &[usize]) -> bool {
    let whole = (1_u32 << all.len()) - 1;
    (0..all.len()).all(|at| opens(all, seats, zones, whole & !(1 << at), at, domains))
}

/// The price of the cheapest plan that places all pods; nothing when there is none.
fn cheapest(all: &[Small]) -> Option<f64> {
    let mut best = None;
    extend(all, &mut Vec::new(), &mut vec![0], &mut best);
    best
}

fn extend(all: &[Small], seats: &mut Seats, zones: &mut Vec<usize>, best: &mut Option<f64>) {
    if seats.len() == all.len() {
        let load = |node: usize| (0..all.len()).filter(|at| seats[*at] == node).map(|at| all[at].cpu).sum::<i64>();
        let total = (1..zones.len()).map(|node| price(load(node))).sum::<Option<f64>>().filter(|_| load(0) <= OLD);
        let Some(total) = total.filter(|total| best.is_none_or(|best| *total < best)) else { return };
        // All zones that could be opened count, for a later pod may open them.
        let domains: Vec<usize> = (0..HERE).collect();
        if has_order(all, seats, zones, &domains) && stays(all, seats, zones, &domains) {
            *best = Some(total);
        }
        return;
    }
    for node in 0..zones.len() {
        seats.push(node);
        extend(all, seats, zones, best);
        seats.pop();
    }
    for zone in 0..HERE {
        seats.push(zones.len());
        zones.push(zone);
        extend(all, seats, zones, best);
        zones.pop();
        seats.pop();
    }
}

/// Whether the pods of a plan can be bound one after the other where it has them, on the nodes that there then are.
fn can_be_bound(all: &[Small], scene: &Scene, plan: &Plan) -> bool {
    let mut zones = vec![0];
    let mut seats = vec![0; all.len()];
    for (at, claim) in plan.claims.iter().enumerate() {
        // A node that may be anywhere is in the zone whose turn it is to be thought of: nobody on it looks at zones.
        let zone = pinned(plan, at, ZONE).map_or(0, |name| ZONES.iter().position(|zone| *zone == name).unwrap());
        zones.push(zone);
        for one in &claim.pods {
            seats[scene.pods.iter().position(|pod| pod.uid == one.uid).unwrap()] = zones.len() - 1;
        }
    }
    let mut domains = zones.clone();
    domains.sort_unstable();
    domains.dedup();
    has_order(all, &seats, &zones, &domains)
}

fn any_small() -> impl Strategy<Value = Small> {
    let rarely = || prop_oneof![4 => Just(None), 1 => (0..2_usize).prop_map(Some)];
    let size = proptest::sample::select(&[400_i64, 900, 1600][..]);
    (
        size,
        0..2_usize,
        rarely(),
        prop::bool::weighted(0.4),
        prop::bool::weighted(0.2),
        rarely(),
        rarely(),
        rarely(),
        rarely(),
    )
        .prop_map(|(cpu, app, zone, spreads, port, off_node, off_zone, near, beside)| Small {
            cpu,
            app,
            zone,
            spreads,
            port,
            off_node,
            off_zone,
            near,
            beside,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_solver_finds_a_plan_where_there_is_one(all in prop::collection::vec(any_small(), 1..5)) {
        let mut all = all;
        // Whoever is counted is bound: what pods do that nothing binds is not for the solver to say.
        for app in 0..APPS.len() {
            let spreads = all.iter().find(|one| one.app == app).is_some_and(|one| one.spreads);
            all.iter_mut().filter(|one| one.app == app).for_each(|one| one.spreads = spreads);
        }
        let scene = scene(&all);
        let plan = Ground::default().plan(&scene.problem());
        let optimum = cheapest(&all);
        if plan.refused.is_empty() {
            prop_assert!(can_be_bound(&all, &scene, &plan), "no order leads to {:#?}", plan.claims);
            prop_assert!(lower_bound(&scene.problem(), &plan) <= optimum.unwrap_or(f64::INFINITY) + 1e-9);
        }
        if let Some(optimum) = optimum {
            prop_assert!(plan.refused.is_empty(), "{:#?}", plan.refused);
            prop_assert!(plan.price <= optimum * 2.0 + 1e-9, "{} $/h, and {optimum} would do: {:#?}", plan.price, plan.claims);
        }
    }
}
