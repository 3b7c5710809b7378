//! Required pod affinity that is not met: whom it means, and what keeps them and the pod apart.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::facts::{AffinityTerm, PodShape, Selector};
use crate::core::requirements::ValueSet;

use super::classes::{Affinity, Class};
use super::reason::Partner;
use super::solve::Run;
use super::topology::{Filter, Target, Topo};

/// So many kinds of pods are followed in search of a cycle.
const FOLLOWED: usize = 64;
/// Domains that are named at most.
const NAMED: usize = 10;

/// Pods of one shape that have no place.
pub(super) struct Waiting {
    pub(super) shape: Arc<PodShape>,
    /// The first of them.
    pub(super) name: Arc<str>,
}

impl Run<'_> {
    /// What keeps a pod from those that its required affinity means.
    pub(super) fn partner(&mut self, class: &Class, affinity: &Affinity) -> Partner {
        for key in affinity.counters.iter().filter_map(|(topo, _)| topo.key()) {
            if self.world.domains(key, &Filter::default()).is_empty() {
                return Partner::NoKey;
            }
        }
        for (topo, id) in &affinity.counters {
            let counter = self.world.counters.get(*id);
            if counter.total > 0 {
                let Topo::Key(key) = topo else { return Partner::Elsewhere(Vec::new()) };
                let info = self.world.algebra.universe.key(*key);
                let named = |at: usize| format!("{} {}", info.name, info.values[at]).into();
                return Partner::Elsewhere(counter.domains(true).bits().take(NAMED).map(named).collect());
            }
        }
        let mut running = self.world.layout.running.all.iter();
        if affinity.own || running.any(|kind| self.means(&class.shape, &kind.shape)) {
            return Partner::Elsewhere(Vec::new());
        }
        if let Some(cycle) = self.cycle(class) {
            return Partner::Cycle(cycle);
        }
        let there = self.waiting.iter().find(|other| self.means(&class.shape, &other.shape));
        if let Some(other) = there {
            return Partner::Waiting(Arc::clone(&other.name));
        }
        // Whoever is in the question and does not wait has a place, on a node that is in no domain of the key.
        if self.world.pods.iter().any(|other| self.means(&class.shape, &other.shape)) {
            return Partner::Elsewhere(Vec::new());
        }
        let others = self.world.problem.snapshot.pods.values().filter(|other| other.node.is_none());
        let named =
            others.filter(|other| self.means(&class.shape, &other.shape)).map(|other| other.key.to_string()).min();
        named.map_or(Partner::Nobody, |name| Partner::Unplanned(name.into()))
    }

    /// Whether the required affinity of one pod means another.
    fn means(&self, pod: &PodShape, other: &PodShape) -> bool {
        let snapshot = self.world.problem.snapshot;
        !pod.affinity.is_empty() && pod.affinity.iter().all(|term| Target::of(term, snapshot).selects(other))
    }

    /// The shortest way from the pod back to itself, from each pod to one that its affinity means.
    fn cycle(&self, class: &Class) -> Option<Vec<Arc<str>>> {
        let start = self.waiting.iter().position(|one| Arc::ptr_eq(&one.shape, &class.shape))?;
        let mut from: Vec<Option<usize>> = vec![None; self.waiting.len()];
        let mut next = VecDeque::from([start]);
        for _ in 0..FOLLOWED {
            let at = next.pop_front()?;
            let shape = &self.waiting[at].shape;
            for (to, other) in self.waiting.iter().enumerate() {
                if !self.means(shape, &other.shape) {
                    continue;
                }
                if to == start {
                    let way = std::iter::successors(Some(at), |at| from[*at].filter(|_| *at != start));
                    let mut way: Vec<Arc<str>> = way.map(|at| Arc::clone(&self.waiting[at].name)).collect();
                    way.reverse();
                    return Some(way);
                }
                if from[to].is_none() {
                    from[to] = Some(at);
                    next.push_back(to);
                }
            }
        }
        None
    }
}

/// Whom the required pod affinity of a pod means, as it is written.
pub(super) fn meant(shape: &PodShape) -> Arc<str> {
    let terms: Vec<String> = shape.affinity.iter().map(|term| of_term(term, &shape.namespace)).collect();
    terms.join(" and ").into()
}

fn of_term(term: &AffinityTerm, own: &Arc<str>) -> String {
    let pods = match &term.selector {
        None => "no labelSelector, which means nobody".to_owned(),
        Some(selector) => written(selector, "all pods"),
    };
    match &term.namespace_selector {
        Some(selector) => format!("{pods} in namespaces with {}", written(selector, "any label")),
        None if term.namespaces == [Arc::clone(own)] => pods,
        None => format!("{pods} in namespace {}", term.namespaces.join(" or ")),
    }
}

fn written(selector: &Selector, all: &str) -> String {
    let labels = selector.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions =
        selector.expressions.iter().map(|wanted| format!("{} {}", wanted.key, ValueSet::from_written(wanted)));
    let parts: Vec<String> = labels.chain(expressions).collect();
    if parts.is_empty() { all.to_owned() } else { parts.join(", ") }
}
