//! A question asked: the plan, what is wrong with it (nothing, one hopes), and the least that any plan costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::explain::Case;
use super::input::Input;
use super::reach::Reach;
use crate::core::facts::{Catalog, InstanceType, Pod};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels;
use crate::core::requirements::Requirements;
use crate::core::scheduling::{self, Ground, PlacedOn, Plan, PlannedClaim, Problem, Settings};

/// An input, and what came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was asked.
    pub input: Input,
    /// What the solver says.
    pub plan: Plan,
    /// No plan that places the same pods costs less than this, in USD per hour.
    pub lower_bound: f64,
    /// What the independent check found wrong with plans that were therefore made again: a defect of joiner's.
    pub violations: Vec<String>,
    /// How long solving took, in seconds.
    pub seconds: f64,
}

/// Solves. `took` is called when the plan is there, and says how long that took in seconds. What there is to notice of the plan, such as a NodePool that is
/// of use to nobody, is added to the notices of the input.
pub fn answer(mut input: Input, settings: &Settings, took: impl FnOnce() -> f64) -> Answer {
    let mut problem = Problem::new(&input.snapshot, &input.catalog, &input.pods, settings);
    problem.label_keys = &input.label_keys;
    let mut ground = Ground::default();
    let (plan, violations) = scheduling::sound(&problem, |asked| ground.plan(asked));
    let seconds = took();
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let lower_bound = scheduling::lower_bound(&problem, &plan);
    let unusable = plan.unusable.iter().filter(|reason| reason.filters_out_all()).map(ToString::to_string);
    input.notices.extend(unusable);
    let defect = |violation| format!("a plan broke a rule, which is a defect of joiner: {violation}");
    input.notices.extend(violations.iter().map(defect));
    Answer { input, plan, lower_bound, violations, seconds }
}

impl Answer {
    /// Where the machine of a NodeClaim may come to stand and how it may be paid: zones and capacity types of the offerings that its types
    /// and requirements allow.
    pub(super) fn places(&self, claim: &PlannedClaim) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let requirements = Requirements::from_written(&*claim.draft.requirements);
        let (mut zones, mut capacity_types) = (Vec::new(), Vec::new());
        for kind in self.types(claim) {
            for offering in kind.offerings.iter().filter(|offering| offering.available) {
                if requirements.intersects(&Requirements::from_written(&offering.requirements)).is_ok() {
                    zones.extend(offering.zone().cloned());
                    capacity_types.extend(offering.capacity_type().cloned());
                }
            }
        }
        for list in [&mut zones, &mut capacity_types] {
            list.sort_unstable();
            list.dedup();
        }
        (zones, capacity_types)
    }

    /// The same, to ask single questions about; `settings` are those that it was solved with.
    pub fn case<'a>(&'a self, settings: &'a Settings) -> Case<'a> {
        Case {
            snapshot: &self.input.snapshot,
            catalog: &self.input.catalog,
            pods: &self.input.pods,
            set_aside: &self.input.set_aside,
            settings,
            label_keys: &self.input.label_keys,
            plan: &self.plan,
        }
    }

    /// The instance types of a NodeClaim.
    pub(super) fn types<'a>(&'a self, claim: &'a PlannedClaim) -> impl Iterator<Item = &'a Arc<InstanceType>> {
        types_of(&self.input.catalog, claim)
    }

    /// Labels that the plan chose where the NodePool leaves them open.
    pub(super) fn chosen_labels(&self, claim: &PlannedClaim) -> BTreeMap<Arc<str>, Arc<str>> {
        let pool = self.input.snapshot.pools.get(&claim.draft.pool);
        let given = |key: &Arc<str>, value: &Arc<str>| {
            let own = &**key == labels::NODEPOOL || **key == *claim.draft.class.label();
            let fixed = pool.is_some_and(|pool| {
                let written = Requirements::from_written(&pool.template.requirements);
                pool.template.labels.get(key) == Some(value)
                    || written.get(key).is_some_and(|set| set.single().is_some())
            });
            own || fixed
        };
        let labels = claim.draft.labels.iter().filter(|(key, value)| !given(key, value));
        labels.map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect()
    }

    /// The Node of a place, once it is registered; until then only its NodeClaim is known by name.
    pub(super) fn registered<'a>(&self, placed: &'a PlacedOn) -> Option<&'a NodeName> {
        let is_registered = |name: &NodeName| {
            placed.claim.is_none() || self.input.snapshot.nodes.get(name).is_some_and(|node| node.was_registered())
        };
        placed.node.as_ref().filter(|name| is_registered(name))
    }

    /// Pods without a place and why, most helpful reason first; by namespace and name.
    pub fn unplaced(&self) -> Vec<(ObjectKey, Vec<String>)> {
        let pods: BTreeMap<&PodUid, &Arc<Pod>> = self.input.pods.iter().map(|pod| (&pod.uid, pod)).collect();
        let reach = Reach::of(&self.input.snapshot, &self.input.catalog);
        let refused = self.plan.refused.iter().filter_map(|refusal| {
            let pod = pods.get(&refusal.pod)?;
            Some((pod.key.clone(), reach.reasons(pod, &refusal.reasons)))
        });
        let aside = self.input.set_aside.iter().map(|(key, why)| (key.clone(), vec![why.clone()]));
        let mut all: Vec<(ObjectKey, Vec<String>)> = refused.chain(aside).collect();
        all.sort();
        all
    }

    /// How many pods are planned on new nodes.
    pub(super) fn on_new(&self) -> usize {
        self.plan.claims.iter().map(|claim| claim.pods.len()).sum()
    }

    /// How many pods are planned on what exists.
    pub(super) fn on_existing(&self) -> usize {
        self.plan.existing.iter().map(|placed| placed.pods.len()).sum()
    }

    /// By how much the price exceeds the lower bound, in percent; nothing where there is no bound.
    pub(super) fn over_bound(&self) -> Option<f64> {
        (self.lower_bound > 0.0).then(|| (100.0 * (self.plan.price / self.lower_bound - 1.0)).max(0.0))
    }
}

/// The instance types of a NodeClaim, cheapest first.
pub(super) fn types_of<'a>(
    catalog: &'a Catalog,
    claim: &'a PlannedClaim,
) -> impl Iterator<Item = &'a Arc<InstanceType>> {
    let list = catalog.pools.get(&claim.draft.pool);
    let holds = |kind: &&Arc<InstanceType>| claim.draft.requests.fits(&kind.allocatable());
    // Of a type in several sizes, the first that holds the pods.
    let mut by_name: BTreeMap<_, &Arc<InstanceType>> = BTreeMap::new();
    for kind in list.into_iter().flat_map(|list| list.iter()) {
        let known = by_name.entry(&kind.name).or_insert(kind);
        if !holds(known) && holds(&kind) {
            *known = kind;
        }
    }
    claim.instance_types.iter().filter_map(move |name| by_name.get(name).copied())
}
