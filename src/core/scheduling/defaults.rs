//! Default spread constraints: those that kube-scheduler gives to pods without any, where joiner is told of them.
//!
//! kube-scheduler finds out by itself which pods belong together: those of the Services that select the pod, narrowed by the selector of
//! its controller. Pods here are given the same constraints before anything is planned, so that the solver, its check and the metrics
//! see them like any other.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{Group, Kind, Pod, PodShape, Selector, Snapshot, TopologySpread};
use crate::core::requirements::{Operator, Requirement};

/// Shapes that are remembered at most; then all are forgotten.
const REMEMBERED: usize = 10_000;

/// The constraints, and the shapes that have been given them: equal questions get equal shapes, which a kept ground knows by address.
#[derive(Debug, Default)]
pub struct DefaultSpreads {
    constraints: Vec<TopologySpread>,
    /// By the address of the original, which is held, and the selector.
    known: FxHashMap<(usize, Selector), [Arc<PodShape>; 2]>,
}

impl DefaultSpreads {
    /// Constraints whose selectors are open.
    pub fn new(constraints: Vec<TopologySpread>) -> Self {
        Self { constraints, known: FxHashMap::default() }
    }

    /// The same pods; those without spread constraints that belong to a Service or a controller have the default ones.
    pub fn apply(&mut self, snapshot: &Snapshot, pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        if self.constraints.is_empty() {
            return pods;
        }
        if self.known.len() > REMEMBERED {
            self.known.clear();
        }
        let mut services: FxHashMap<Arc<str>, Vec<&Selector>> = FxHashMap::default();
        let mut selectors: FxHashMap<(usize, Option<Arc<str>>), Option<Selector>> = FxHashMap::default();
        pods.into_iter()
            .map(|pod| {
                if !pod.shape.spreads.is_empty() {
                    return pod;
                }
                let alike = (address(&pod.shape), pod.owned_by.clone());
                let selector = selectors.entry(alike).or_insert_with(|| {
                    let namespace = &pod.shape.namespace;
                    let services =
                        services.entry(Arc::clone(namespace)).or_insert_with(|| services_of(snapshot, namespace));
                    selector(snapshot, &pod, services)
                });
                match selector {
                    Some(selector) => Arc::new(Pod { shape: self.spread(&pod.shape, selector), ..(*pod).clone() }),
                    None => pod,
                }
            })
            .collect()
    }

    fn spread(&mut self, shape: &Arc<PodShape>, selector: &Selector) -> Arc<PodShape> {
        let spread = || {
            let own = |one: &TopologySpread| TopologySpread { selector: Some(selector.clone()), ..one.clone() };
            let spreads = self.constraints.iter().map(own).collect();
            [Arc::clone(shape), Arc::new(PodShape { spreads, ..(**shape).clone() })]
        };
        let [_, spread] = self.known.entry((address(shape), selector.clone())).or_insert_with(spread);
        Arc::clone(spread)
    }
}

fn address(shape: &Arc<PodShape>) -> usize {
    Arc::as_ptr(shape).addr()
}

/// Selectors of the Services of a namespace that have one.
fn services_of<'a>(snapshot: &'a Snapshot, namespace: &str) -> Vec<&'a Selector> {
    let Some(prefix) = Group::path(Kind::Service, namespace, "") else { return Vec::new() };
    let from = snapshot.groups.range(Arc::clone(&prefix)..);
    let own = from.take_while(|(path, _)| path.starts_with(&*prefix));
    own.filter_map(|(_, group)| group.selector.as_ref()).collect()
}

/// Which pods belong with this one; nothing when nobody says so.
fn selector(snapshot: &Snapshot, pod: &Pod, services: &[&Selector]) -> Option<Selector> {
    let labels = &pod.shape.labels;
    let mut all = Selector::default();
    for service in services {
        if service.labels.iter().all(|(key, value)| labels.get(key) == Some(value)) {
            all.labels.extend(service.labels.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
        }
    }
    let owner = pod.owned_by.as_ref().and_then(|path| snapshot.groups.get(path));
    if let Some((owner, own)) = owner.and_then(|owner| Some((owner, owner.selector.as_ref()?))) {
        let labels = own.labels.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value)));
        if owner.kind == Kind::ReplicationController {
            all.labels.extend(labels);
        } else {
            // Both must hold, even where they exclude each other.
            all.expressions.extend(labels.map(|(key, value)| Requirement::new(key, Operator::In, [value])));
            all.expressions.extend(own.expressions.iter().cloned());
        }
    }
    (!all.labels.is_empty() || !all.expressions.is_empty()).then_some(all)
}
