//! The list of checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{Effect, Pod, PodShape, Taint};
use crate::core::ids::PodUid;
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Requirements, ValueSet};

use super::super::plan::Plan;
use super::super::problem::Problem;
use super::violation::Violation;
use super::{claims, hosts, reserved, topology, variety, volumes};

/// All that is wrong with a plan; nothing when it is right.
pub fn check(problem: &Problem<'_>, plan: &Plan) -> Vec<Violation> {
    let mut found = Vec::new();
    everyone_once(problem, plan, &mut found);
    let places = places(problem, plan, &mut found);
    topology::check(problem, &places, &mut found);
    reserved::check(problem, plan, &mut found);
    volumes::check_shared(problem.snapshot, plan, &mut found);
    volumes::check_zones(problem.snapshot, plan, &mut found);
    variety::check(problem, plan, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// Where the pods are, and what is wrong with each place by itself.
fn places<'a>(problem: &'a Problem<'_>, plan: &'a Plan, found: &mut Vec<Violation>) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    claims::check(problem, plan, &mut places, found);
    hosts::check(problem, plan, &mut places, found);
    places
}

/// How many pods of a right plan kube-scheduler would not put again where they are once all are bound: each found its domain within the skew
/// when its turn came, and others followed whom its spread constraint counts and does not bind.
pub fn crowded(problem: &Problem<'_>, plan: &Plan) -> usize {
    topology::crowded(problem, &places(problem, plan, &mut Vec::new()))
}

/// How many pods of a right plan find their domain full to the skew when their turn comes: kube-scheduler takes pods by priority and age, and
/// counts what is bound by then.
pub fn out_of_turn(problem: &Problem<'_>, plan: &Plan) -> usize {
    topology::out_of_turn(problem, &places(problem, plan, &mut Vec::new()))
}

/// Where pods of the plan are, as the topology sees it.
pub(super) struct Place<'a> {
    /// Name of the NodeClaim or node: its own domain for the host name, if it has one.
    pub(super) name: Arc<str>,
    /// Whether it has the label for that, or will have it.
    pub(super) named: bool,
    /// Labels that are certain; NodeClaims that say the same share them.
    pub(super) labels: Arc<Labels>,
    /// What else the labels have to be, and that well-known ones of which this says nothing may still come: of a NodeClaim of the plan.
    pub(super) open: Option<Arc<Requirements>>,
    pub(super) taints: Vec<Taint>,
    pub(super) planned: Vec<&'a Arc<Pod>>,
    pub(super) running: Vec<&'a Arc<Pod>>,
}

fn everyone_once(problem: &Problem<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut seen: FxHashMap<&PodUid, u32> = problem.pods.iter().map(|pod| (&pod.uid, 0)).collect();
    let placed = plan.claims.iter().flat_map(|c| &c.pods).chain(plan.existing.iter().flat_map(|e| &e.pods));
    for uid in placed.map(|pod| &pod.uid).chain(plan.refused.iter().map(|refusal| &refusal.pod)) {
        match seen.get_mut(uid) {
            Some(times) if *times == 0 => *times = 1,
            _ => found.push(Violation::Surplus(uid.clone())),
        }
    }
    found.extend(problem.pods.iter().filter(|pod| seen[&pod.uid] == 0).map(|pod| Violation::Missing(pod.uid.clone())));
}

/// Whether a pod may run under these taints.
pub(super) fn tolerates(shape: &PodShape, taints: &[Taint]) -> bool {
    taints
        .iter()
        .filter(|taint| taint.effect != Effect::PreferNoSchedule)
        .all(|taint| shape.tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

/// The alternatives of what a pod requires of its node: without those that no node can meet, which would read as the absence of a label.
pub(super) fn alternatives(shape: &PodShape) -> Vec<Requirements> {
    let selector = shape.node_selector.iter().map(|(key, value)| (key, ValueSet::of([Arc::clone(value)])));
    let none = Vec::new();
    let required = &shape.node_affinity.required;
    let terms = if required.is_empty() { std::slice::from_ref(&none) } else { required.as_slice() };
    let all = terms.iter().filter_map(|term| {
        let written = term.iter().map(|line| (&line.key, ValueSet::from_written(line)));
        meetable(selector.clone().chain(written))
    });
    all.collect()
}

/// All of it, unless it contradicts itself: some value of each label, or its absence, has to suit everything that is said of it.
fn meetable<'a>(said: impl Iterator<Item = (&'a Arc<str>, ValueSet)>) -> Option<Requirements> {
    let mut all = Requirements::new();
    let mut present: BTreeSet<Arc<str>> = BTreeSet::new();
    for (key, set) in said {
        if !set.allows_absence() {
            present.insert(labels::normalized(key).into());
        }
        all.add(key, &set);
    }
    let can_be = |key: &Arc<str>| all.get(key).is_none_or(|set| !set.is_empty());
    present.iter().all(can_be).then_some(all)
}

/// What a label may turn out to be: values, and whether it may be absent.
#[derive(Clone, Default)]
pub(super) struct Outcome {
    pub(super) sets: Vec<ValueSet>,
    pub(super) absent: bool,
}

impl Outcome {
    /// Whether each outcome satisfies the wish.
    pub(super) fn always(&self, wish: &ValueSet) -> bool {
        (!self.absent || wish.allows_absence()) && self.sets.iter().all(|set| within(set, wish))
    }
}

/// Whether every member of `set` is one of `wish`.
fn within(set: &ValueSet, wish: &ValueSet) -> bool {
    if set.is_complement() {
        let plain = |set: &ValueSet| set.clone().with_min_values(None);
        plain(&set.intersection(wish)) == plain(set)
    } else {
        set.values().iter().all(|value| wish.has(value))
    }
}

/// What labels that are certain say of a key.
pub(super) fn certain(labels: &Labels, key: &str) -> Outcome {
    match labels.get(labels::normalized(key)) {
        Some(value) => Outcome { sets: vec![ValueSet::of([Arc::clone(value)])], absent: false },
        None => Outcome { sets: Vec::new(), absent: true },
    }
}

/// Pods of a place by shape: most checks look at shapes.
pub(super) fn shapes<'a>(pods: &[&'a Arc<Pod>]) -> Vec<&'a Arc<Pod>> {
    let mut by_shape: BTreeMap<*const PodShape, &Arc<Pod>> = BTreeMap::new();
    for pod in pods {
        by_shape.entry(Arc::as_ptr(&pod.shape)).or_insert(pod);
    }
    let mut first: Vec<&Arc<Pod>> = by_shape.into_values().collect();
    first.sort_by(|a, b| a.uid.cmp(&b.uid));
    first
}
