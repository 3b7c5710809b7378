//! Nodes that exist and NodeClaims under way: what the plan puts on them.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{Claim, Effect, InstanceType, Node, Owner, Pod, PodShape, Taint};
use crate::core::ids::{ClaimName, NodeName, PodUid};
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Operator, Requirements, ValueSet};
use crate::core::resources::Resources;

use super::super::plan::{PlacedOn, Plan};
use super::super::ports;
use super::super::problem::Problem;
use super::claims::holds;
use super::meet;
use super::verify::{Place, alternatives, certain, shapes, tolerates};
use super::violation::Violation;
use super::volumes;

pub(super) fn check<'a>(
    problem: &Problem<'a>,
    plan: &'a Plan,
    places: &mut Vec<Place<'a>>,
    found: &mut Vec<Violation>,
) {
    let batch: FxHashSet<&PodUid> = problem.pods.iter().map(|pod| &pod.uid).collect();
    let refused: FxHashSet<&PodUid> = plan.refused.iter().map(|refusal| &refusal.pod).collect();
    let snapshot = problem.snapshot;
    let mut claims: FxHashMap<&NodeName, &Claim> = FxHashMap::default();
    for claim in snapshot.claims.values() {
        if let Some(node) = snapshot.node_of(claim) {
            claims.insert(&node.name, claim);
        }
    }
    let mut on_node: FxHashMap<&NodeName, &PlacedOn> = FxHashMap::default();
    let mut on_claim: FxHashMap<&ClaimName, &PlacedOn> = FxHashMap::default();
    for placed in &plan.existing {
        match (&placed.node, &placed.claim) {
            (Some(node), _) => drop(on_node.insert(node, placed).map(|twice| twice.pods.len())),
            (None, Some(claim)) => drop(on_claim.insert(claim, placed).map(|twice| twice.pods.len())),
            (None, None) => found.push(Violation::NotUsable { place: "a place without a name".into() }),
        }
    }
    for node in snapshot.nodes.values() {
        let claim = claims.get(&node.name).copied();
        let restarts = claim.is_some_and(Claim::is_rebooting);
        let stays = |pod: &Pod| pod.is_active_on_node() && !(restarts && pod.deleting.is_some());
        let goes = node.deleting.is_some() || claim.is_some_and(Claim::is_leaving);
        let excluded = problem.excluded.nodes.contains(&node.name);
        // Whoever has no other place stays until the node is gone.
        let moves = |pod: &Pod| batch.contains(&pod.uid) && !(goes && !excluded && refused.contains(&pod.uid));
        let running: Vec<&Arc<Pod>> = snapshot.pods_on(&node.name).filter(|pod| stays(pod) && !moves(pod)).collect();
        let planned: Vec<&Arc<Pod>> = on_node.remove(&node.name).into_iter().flat_map(|placed| &placed.pods).collect();
        let (labels, taints) = seen(node, claim, restarts);
        let named = labels.contains_key(labels::HOSTNAME);
        let leaving = goes || excluded || claim.is_some_and(|claim| is_leaving(problem, claim));
        let place = Place {
            name: node.name.as_str().into(),
            named,
            labels: Arc::new(labels),
            open: None,
            taints,
            planned,
            running,
        };
        if !place.planned.is_empty() {
            if leaving {
                found.push(Violation::NotUsable { place: Arc::clone(&place.name) });
            }
            check_place(problem, &place, Some(room(node, claim, restarts)), None, found);
        }
        places.push(place);
    }
    for (name, placed) in on_claim {
        let Some(claim) = snapshot.claims.get(name).filter(|claim| !is_leaving(problem, claim)) else {
            found.push(Violation::NotUsable { place: name.as_str().into() });
            continue;
        };
        let mut labels = claim.labels.clone();
        for (key, set) in Requirements::from_written(&claim.requirements).iter() {
            if let Some(value) = set.single() {
                labels.entry(Arc::clone(key)).or_insert_with(|| Arc::clone(value));
            }
        }
        let room = (!claim.allocatable.is_empty()).then(|| claim.allocatable.clone());
        let planned = placed.pods.iter().collect();
        let place = Place {
            name: name.as_str().into(),
            named: true,
            labels: Arc::new(labels),
            open: None,
            taints: claim.taints.clone(),
            planned,
            running: Vec::new(),
        };
        // The cloud may yet make any of these of it.
        if room.is_none() {
            for kind in possible(problem, claim) {
                check_room(problem, &place, (kind.allocatable(), kind.name.as_str()), found);
            }
        }
        check_place(problem, &place, room, Some(claim), found);
        places.push(place);
    }
    found.extend(on_node.into_keys().map(|name| Violation::NotUsable { place: name.as_str().into() }));
}

/// What a node offers: until a node of ours is initialized, and while it restarts, also what its kubelet does not say yet.
fn room(node: &Node, claim: Option<&Claim>, restarts: bool) -> Resources {
    let mut room = node.allocatable.clone();
    if let Some(claim) = claim.filter(|_| !node.is_initialized() || restarts) {
        for (name, milli) in claim.allocatable.iter().filter(|(name, _)| node.allocatable.get(name) == 0) {
            room.set(name.clone(), milli);
        }
    }
    room
}

fn is_leaving(problem: &Problem<'_>, claim: &Claim) -> bool {
    claim.is_leaving() || problem.excluded.claims.contains(&claim.name)
}

/// Labels and taints that count, as for the provisioner: until a node of ours is initialized, and while it restarts, what goes away by itself does
/// not.
fn seen(node: &Node, claim: Option<&Claim>, restarts: bool) -> (Labels, Vec<Taint>) {
    let mut labels = node.labels.clone();
    labels.insert(labels::NODE_NAME_FIELD.into(), node.name.as_str().into());
    let mut taints = node.taints.clone();
    if node.cordoned {
        taints.push(Taint::new("node.kubernetes.io/unschedulable", Effect::NoSchedule));
    }
    if let Some(claim) = claim.filter(|_| !node.is_initialized() || restarts) {
        for (key, value) in &claim.labels {
            labels.entry(Arc::clone(key)).or_insert_with(|| Arc::clone(value));
        }
        taints.retain(|taint| !(claim.goes_at_start(taint) || restarts && taint.is_of_restart()));
    }
    (labels, taints)
}

/// The DaemonSet pods that run on such a node, or surely will.
fn daemons<'a>(problem: &'a Problem<'_>, place: &Place<'_>) -> Vec<&'a PodShape> {
    let waits = [labels::REGISTERED, labels::INITIALIZED].map(|key| (key.into(), "true".into()));
    let mut own = Requirements::from_labels(&place.labels);
    own.add_all(&Requirements::from_labels(
        &waits.into_iter().filter(|(key, _)| !place.labels.contains_key(key)).collect(),
    ));
    let expected = problem.snapshot.daemons.values().filter(|daemon| daemon.is_expected());
    let shapes = expected.map(|daemon| &*daemon.shape).filter(|shape| tolerates(shape, &place.taints));
    shapes.filter(|shape| alternatives(shape).iter().any(|term| own.compatible(term, |_| false).is_ok())).collect()
}

/// Whether a node with so much room holds what the plan puts on it, beside its pods and its daemons.
fn check_room(problem: &Problem<'_>, place: &Place<'_>, (room, kind): (Resources, &str), found: &mut Vec<Violation>) {
    let mut expected = Resources::new();
    for shape in daemons(problem, place) {
        expected.add(&shape.requests);
    }
    let (mut need, mut running) = (Resources::new(), Resources::new());
    for pod in &place.running {
        let of = if pod.shape.owner == Owner::DaemonSet { &mut running } else { &mut need };
        of.add(&pod.shape.requests);
    }
    expected.raise(&running);
    need.add(&expected);
    let mut planned = Resources::new();
    for pod in &place.planned {
        planned.add(&pod.shape.requests);
    }
    let mut left = room;
    left.subtract(&need);
    if !holds(&planned, &left) {
        found.push(Violation::Overfull { place: Arc::clone(&place.name), instance_type: kind.into() });
    }
}

fn check_place(
    problem: &Problem<'_>,
    place: &Place<'_>,
    room: Option<Resources>,
    claim: Option<&Claim>,
    found: &mut Vec<Violation>,
) {
    let mut taken: Vec<_> = place
        .running
        .iter()
        .filter(|p| p.shape.owner != Owner::DaemonSet)
        .flat_map(|p| p.shape.host_ports.clone())
        .collect();
    if place.named {
        let staying: Vec<&Arc<Pod>> = place.running.iter().copied().filter(|pod| pod.deleting.is_none()).collect();
        let coming = daemons(problem, place).into_iter().filter(|daemon| !meet::is_kept_out(problem, &staying, daemon));
        meet::check(problem, &place.name, &place.planned, coming, found);
    }
    for daemon in daemons(problem, place) {
        taken.extend(daemon.host_ports.iter().cloned());
    }
    if let Some(room) = room {
        check_room(problem, place, (room, ""), found);
    }
    for pod in &place.planned {
        if let Some(port) = ports::first_taken(&pod.shape.host_ports, &taken) {
            found.push(Violation::PortTaken { place: Arc::clone(&place.name), port: port.port });
        }
        taken.extend(pod.shape.host_ports.iter().cloned());
    }
    let open = claim.map(|claim| Requirements::from_written(&claim.requirements)).unwrap_or_default();
    let always = |key: &Arc<str>, wish: &ValueSet| match open.get(key).filter(|_| !place.labels.contains_key(key)) {
        Some(set) => super::verify::Outcome { absent: set.allows_absence(), sets: vec![set.clone()] }.always(wish),
        None if matches!(&**key, labels::REGISTERED | labels::INITIALIZED) => true,
        None => certain(&place.labels, key).always(wish),
    };
    for pod in place.planned.iter().filter(|pod| !volumes::reachable(problem.snapshot, pod, &always)) {
        found.push(Violation::VolumeUnreachable { place: Arc::clone(&place.name), pod: pod.uid.clone() });
    }
    volumes::check_node(problem.snapshot, place, found);
    for pod in shapes(&place.planned) {
        if !tolerates(&pod.shape, &place.taints) {
            found.push(Violation::Untolerated { place: Arc::clone(&place.name), pod: pod.uid.clone() });
        }
        let met = alternatives(&pod.shape).iter().any(|term| term.iter().all(|(key, wish)| always(key, wish)));
        if !met {
            found.push(Violation::Unmet { place: Arc::clone(&place.name), pod: pod.uid.clone() });
        }
    }
}

/// Labels and capacity of all nodes and NodeClaims that count for limits.
pub(super) fn in_use(problem: &Problem<'_>) -> Vec<(Labels, Resources)> {
    let snapshot = problem.snapshot;
    let mut all = Vec::new();
    let mut owned: FxHashSet<&NodeName> = FxHashSet::default();
    for claim in snapshot.claims.values() {
        let node = snapshot.node_of(claim);
        owned.extend(node.map(|node| &node.name));
        let gone = node.is_some_and(|node| node.deleting.is_some() || problem.excluded.nodes.contains(&node.name));
        if !gone && !is_leaving(problem, claim) {
            let mut capacity = claim.capacity.clone();
            if node.is_none() && capacity.is_empty() {
                possible(problem, claim).for_each(|kind| capacity.raise(&kind.capacity));
            }
            if let Some(node) = node {
                capacity.raise(&node.capacity);
            }
            all.push((claim.labels.clone(), capacity));
        }
    }
    for node in snapshot.nodes.values().filter(|node| !owned.contains(&node.name)) {
        if node.deleting.is_none() && !problem.excluded.nodes.contains(&node.name) {
            all.push((node.labels.clone(), node.capacity.clone()));
        }
    }
    all
}

/// The instance types that a NodeClaim which was not launched yet may become.
fn possible<'a>(problem: &'a Problem<'_>, claim: &'a Claim) -> impl Iterator<Item = &'a Arc<InstanceType>> {
    let list = claim.pool().and_then(|pool| problem.catalog.pools.get(&pool));
    let named = |kind: &InstanceType| {
        let lists = claim.requirements.iter().filter(|line| &*line.key == labels::INSTANCE_TYPE);
        let mut lists = lists.filter(|line| line.operator == Operator::In).peekable();
        lists.peek().is_some() && lists.all(|line| line.values.iter().any(|value| **value == *kind.name.as_str()))
    };
    let all = list.into_iter().flat_map(|list| list.iter());
    all.filter(move |kind| named(kind) && claim.requests.fits(&kind.allocatable()))
}
