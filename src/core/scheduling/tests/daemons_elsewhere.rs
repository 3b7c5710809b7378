//! Random worlds with DaemonSets that come to some nodes of a NodePool. What is right is told here once more, machine by machine, and by nothing
//! that the solver or the checker use.

use proptest::prelude::*;

use super::super::{Ground, Plan, check, improved, lower_bound, mingled, solve};
use super::build::*;
use super::laws::any_scene;
use crate::core::facts::{HostPort, InstanceType, PodShape};
use crate::core::labels::{CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE};
use crate::core::requirements::{Operator, Requirement, ValueSet};

const RACK: &str = "example.com/rack";
/// The labels that machines differ in, and their values.
const KEYS: [(&str, [&str; 2]); 3] =
    [(ZONE, ["zone-a", "zone-b"]), (CAPACITY_TYPE, [ON_DEMAND, SPOT]), (RACK, ["r1", "r2"])];
/// Name, CPU that pods and daemons may take, and price on demand.
const TYPES: [(&str, i64, f64); 2] = [("small", 1900, 0.1), ("large", 3900, 0.19)];

/// A pod or a daemon: for machines with some of these values only.
#[derive(Clone, Copy, Debug)]
struct Small {
    cpu: i64,
    only: [Option<usize>; 3],
    /// Or else for those with this value of this label.
    or: Option<(usize, usize)>,
    port: bool,
    /// A daemon that some pods keep away from, or such a pod.
    apart: bool,
}

/// A machine: a type, and the value of each label.
type Machine = (usize, [usize; 3]);

fn machines() -> impl Iterator<Item = Machine> {
    (0..16).map(|at| (at & 1, [at >> 1 & 1, at >> 2 & 1, at >> 3 & 1]))
}

impl Small {
    fn comes_to(&self, (_, values): Machine) -> bool {
        self.only.iter().zip(values).all(|(only, value)| only.is_none_or(|only| only == value))
            || self.or.is_some_and(|(key, value)| values[key] == value)
    }

    fn shape(&self) -> PodShape {
        let mut one = shape(self.cpu, 10);
        let of = |(key, value): (usize, usize)| within(KEYS[key].0, &[KEYS[key].1[value]]);
        let only = self.only.iter().enumerate().filter_map(|(key, value)| Some((key, (*value)?)));
        match self.or {
            Some(or) if only.clone().next().is_some() => {
                one.node_affinity.required = vec![only.map(of).collect(), vec![of(or)]];
            }
            _ => one.node_selector.extend(only.map(|(key, value)| (KEYS[key].0.into(), KEYS[key].1[value].into()))),
        }
        if self.port {
            one.host_ports.push(HostPort { ip: "0.0.0.0".into(), port: 80, protocol: "TCP".into() });
        }
        one
    }
}

/// Whether a machine holds these pods and all daemons that come to it. Whether daemons leave each other their ports is not for us to say.
fn holds(machine: Machine, pods: &[Small], daemons: &[Small]) -> bool {
    let coming = || daemons.iter().filter(|daemon| daemon.comes_to(machine));
    let has_port = |one: &&Small| one.port;
    let ports = pods.iter().filter(has_port).count();
    pods.iter().all(|pod| pod.comes_to(machine))
        && pods.iter().chain(coming()).map(|one| one.cpu).sum::<i64>() <= TYPES[machine.0].1
        && !(pods.iter().any(|pod| pod.apart) && coming().any(|daemon| daemon.apart))
        && (ports == 0 || ports == 1 && coming().filter(has_port).count() == 0)
}

fn price((kind, values): Machine) -> f64 {
    TYPES[kind].2 * if values[1] == 1 { 0.66 } else { 1.0 }
}

/// The cheapest machines for all pods; nothing when there are none.
fn cheapest(rest: &[Small], nodes: &mut Vec<Vec<Small>>, daemons: &[Small]) -> f64 {
    let Some((first, rest)) = rest.split_first() else {
        let of = |pods: &Vec<Small>| {
            let fit = machines().filter(|machine| holds(*machine, pods, daemons));
            fit.map(price).fold(f64::INFINITY, f64::min)
        };
        return nodes.iter().map(of).sum();
    };
    let mut best = f64::INFINITY;
    for at in 0..nodes.len() {
        nodes[at].push(*first);
        best = best.min(cheapest(rest, nodes, daemons));
        nodes[at].pop();
    }
    nodes.push(vec![*first]);
    best = best.min(cheapest(rest, nodes, daemons));
    nodes.pop();
    best
}

fn scene(all: &[Small], daemons: &[Small], sold_out: Option<usize>) -> Scene {
    let kind = |(name, cpu, price): (&str, i64, f64)| -> InstanceType {
        let mut kind = instance_type(name, (cpu + 100) / 1000, 64, price);
        kind.offerings.retain(|offering| offering.zone().is_some_and(|zone| KEYS[0].1.contains(&&**zone)));
        let gone = |zone: &str| sold_out.is_some_and(|at| KEYS[0].1[at] == zone);
        kind.offerings.iter_mut().for_each(|one| one.available = !one.zone().is_some_and(|zone| gone(zone)));
        kind
    };
    let mut own = pool("default");
    own.template.requirements.push(within(RACK, &KEYS[2].1));
    let mut scene = Scene::default().with_pool(own, TYPES.map(kind).to_vec());
    for (at, daemon) in daemons.iter().enumerate() {
        let mut own = daemon.shape();
        // The anti-affinity is the pod's, or the daemon's.
        if daemon.apart && at % 2 == 0 {
            own.labels = labels(&[("role", "agent")]);
        } else if daemon.apart {
            own.anti_affinity.push(term(HOSTNAME, &[("role", "shy")]));
        }
        scene = scene.with_daemon(&format!("d{at}"), own);
    }
    for (at, one) in all.iter().enumerate() {
        let mut own = one.shape();
        if one.apart {
            own.labels = labels(&[("role", "shy")]);
            own.anti_affinity.push(term(HOSTNAME, &[("role", "agent")]));
        }
        scene = scene.with_pods(pods(&format!("p{at}"), 1, &own));
    }
    scene
}

/// Whether each machine that the NodeClaims of a plan may become holds what comes to it.
fn is_safe(plan: &Plan, all: &[Small], daemons: &[Small]) -> bool {
    let number = |name: &str| name.strip_prefix('p').and_then(|name| name.split('-').next()).unwrap().parse::<usize>();
    plan.claims.iter().all(|claim| {
        let pods: Vec<Small> = claim.pods.iter().map(|pod| all[number(&pod.key.name).unwrap()]).collect();
        let allows = |key: &str, value: &str| {
            let said = claim.draft.requirements.iter().filter(|line| &*line.key == key);
            said.into_iter().all(|line| ValueSet::from_written(line).has(value))
                && claim.draft.labels.get(key).is_none_or(|label| &**label == value)
        };
        let may_be = |(kind, values): &Machine| {
            let listed = claim.instance_types.iter().any(|name| name.as_str() == TYPES[*kind].0);
            listed && KEYS.iter().zip(values).all(|((key, all), value)| allows(key, all[*value]))
        };
        machines().filter(may_be).all(|machine| holds(machine, &pods, daemons))
    })
}

fn any_small(sizes: &'static [i64], often: f64) -> impl Strategy<Value = Small> {
    let only = || prop::option::weighted(often, 0..2_usize);
    let or = prop::option::weighted(often / 2.0, (0..3_usize, 0..2_usize));
    let rarely = || prop::bool::weighted(0.2);
    (proptest::sample::select(sizes), [only(), only(), only()], or, rarely(), rarely())
        .prop_map(|(cpu, only, or, port, apart)| Small { cpu, only, or, port, apart })
}

fn any_daemon() -> impl Strategy<Value = PodShape> {
    let lines = prop_oneof![
        proptest::sample::select(&ZONES[..]).prop_map(|zone| within(ZONE, &[zone])),
        proptest::sample::select(&ZONES[..]).prop_map(|zone| Requirement::new(ZONE, Operator::NotIn, [zone])),
        proptest::sample::select(&[SPOT, ON_DEMAND][..]).prop_map(|kind| within(CAPACITY_TYPE, &[kind])),
        Just(within(RACK, &["r1"])),
        Just(Requirement::new(RACK, Operator::DoesNotExist, [""; 0])),
    ];
    let terms = prop::collection::vec(prop::collection::vec(lines, 1..3), 1..3);
    (proptest::sample::select(&[200_i64, 900, 3000][..]), terms, any::<bool>()).prop_map(|(cpu, terms, port)| {
        let mut one = Small { cpu, only: [None; 3], or: None, port, apart: false }.shape();
        one.node_affinity.required = terms;
        one
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever fits somewhere beside the daemons there gets a place, and not at more than twice the least price.
    #[test]
    fn every_pod_that_fits_somewhere_beside_the_daemons_is_placed(
        all in prop::collection::vec(any_small(&[300, 900, 1700, 3500], 0.2), 1..5),
        daemons in prop::collection::vec(any_small(&[100, 700, 1500], 0.4), 0..4),
    ) {
        let scene = scene(&all, &daemons, None);
        let plan = Ground::default().plan(&scene.problem());
        prop_assert!(check(&scene.problem(), &plan).is_empty(), "{:#?}", check(&scene.problem(), &plan));
        prop_assert!(is_safe(&plan, &all, &daemons), "{:#?}", plan.claims);
        let mut fitting = all.clone();
        fitting.retain(|pod| machines().any(|machine| holds(machine, &[*pod], &daemons)));
        prop_assert_eq!(plan.refused.len(), all.len() - fitting.len(), "{:#?} {:#?}", plan.refused, plan.claims);
        let optimum = cheapest(&fitting, &mut Vec::new(), &daemons);
        prop_assert!(plan.price <= optimum * 2.0 + 1e-9, "{} $/h, and {optimum} would do: {:#?}", plan.price, plan.claims);
        prop_assert!(lower_bound(&scene.problem(), &plan) <= optimum + 1e-9);
    }

    /// Offerings that are sold out for now are not taken for ones that never come.
    #[test]
    fn plans_are_safe_where_a_zone_is_sold_out(
        all in prop::collection::vec(any_small(&[300, 900, 1700], 0.2), 1..4),
        daemons in prop::collection::vec(any_small(&[100, 700, 1500], 0.4), 0..4),
        zone in 0..2_usize,
    ) {
        let scene = scene(&all, &daemons, Some(zone));
        let plan = solve(&scene.problem());
        prop_assert!(check(&scene.problem(), &plan).is_empty(), "{:#?}", check(&scene.problem(), &plan));
        prop_assert!(is_safe(&plan, &all, &daemons), "{:#?}", plan.claims);
    }

    /// Beside all that pods can ask of each other.
    #[test]
    fn no_plan_with_daemons_of_some_nodes_breaks_a_rule(
        scene in any_scene(),
        daemons in prop::collection::vec(any_daemon(), 1..4),
    ) {
        let named = daemons.iter().enumerate().map(|(at, daemon)| (format!("d{at}"), daemon));
        let scene = named.fold(scene, |scene, (name, daemon)| scene.with_daemon(&name, daemon.clone()));
        let plan = solve(&scene.problem());
        let better = improved(&mut Ground::default(), &scene.problem(), plan.clone());
        prop_assert!(better.price <= plan.price + 1e-9 || better.refused.len() < plan.refused.len());
        let mixed = mingled(&scene.problem(), better.clone());
        for (plan, step) in [(plan, "solved"), (better, "improved"), (mixed, "mingled")] {
            let violations = check(&scene.problem(), &plan);
            prop_assert!(violations.is_empty(), "{step} {:#?}", violations);
            prop_assert!(plan.refused.iter().all(|refusal| !refusal.reasons.is_empty()), "{step} {:?}", plan.refused);
        }
    }
}
