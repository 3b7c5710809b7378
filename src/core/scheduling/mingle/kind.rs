//! Pods that can take each other's places, and where those places are.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{DoNotDisrupt, Owner, Pod, PodShape, TopologySpread};
use crate::core::ids::PoolName;
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

use super::super::plan::Plan;
use super::super::problem::Problem;
use super::super::topology::Target;

/// The places of one NodeClaim that alike pods have: which it is, and where in its list of pods they are.
pub(super) type Seats = (usize, Vec<usize>);

/// Places of alike pods on nodes of one NodePool and one domain of each key that they spread by.
pub(super) struct Table {
    pub(super) pool: PoolName,
    /// Each key that they spread by, and the value.
    pub(super) domain: Vec<(Arc<str>, Arc<str>)>,
    pub(super) seats: Vec<Seats>,
}

/// What tells one table from another: what its pods have in common, the values of the keys that they spread by, and the NodePool.
type Name<'a> = (Arc<PodShape>, Vec<Arc<str>>, &'a PoolName);

/// Pods that others must be near or away from: where those may be depends on where these are, so that these stay.
pub(super) struct Minded<'p> {
    problem: &'p Problem<'p>,
    targets: OnceCell<Vec<Target>>,
    /// What was found out: a pod is asked about in each table again.
    known: RefCell<FxHashMap<*const PodShape, bool>>,
}

impl<'p> Minded<'p> {
    pub(super) fn of(problem: &'p Problem<'p>) -> Self {
        Self { problem, targets: OnceCell::new(), known: RefCell::default() }
    }

    /// Whether a required affinity or anti-affinity of any pod or DaemonSet means such pods.
    pub(super) fn has(&self, shape: &Arc<PodShape>) -> bool {
        let find = || self.targets.get_or_init(|| self.targets()).iter().any(|target| target.selects(shape));
        *self.known.borrow_mut().entry(Arc::as_ptr(shape)).or_insert_with(find)
    }

    fn targets(&self) -> Vec<Target> {
        let snapshot = self.problem.snapshot;
        let pods = self.problem.pods.iter().chain(snapshot.pods.values()).map(|pod| &pod.shape);
        let mut seen: FxHashSet<*const PodShape> = FxHashSet::default();
        let mut targets: FxHashSet<Target> = FxHashSet::default();
        for shape in pods.chain(snapshot.daemons.values().map(|daemon| &daemon.shape)) {
            if seen.insert(Arc::as_ptr(shape)) {
                let terms = shape.affinity.iter().chain(&shape.anti_affinity);
                targets.extend(terms.map(|term| Target::of(term, snapshot)));
            }
        }
        targets.into_iter().collect()
    }
}

/// All tables of a plan.
pub(super) fn tables(plan: &Plan, minded: &Minded<'_>) -> Vec<Table> {
    let mut kinds: FxHashMap<*const PodShape, Option<Arc<PodShape>>> = FxHashMap::default();
    let mut tables: BTreeMap<Name<'_>, Vec<Seats>> = BTreeMap::new();
    for (claim, planned) in plan.claims.iter().enumerate() {
        let mut here: BTreeMap<Arc<PodShape>, Vec<usize>> = BTreeMap::new();
        for (at, pod) in planned.pods.iter().enumerate().filter(|(_, pod)| pod.volume_claims.is_empty()) {
            // Pods of one owner share their shape: most of the time it is known.
            let kind = kinds.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| kind(&pod.shape, minded));
            if let Some(kind) = kind {
                here.entry(Arc::clone(kind)).or_default().push(at);
            }
        }
        for (kind, places) in here {
            let values: Option<Vec<_>> = kind.spreads.iter().map(|spread| planned.domain(&spread.key)).collect();
            if let Some(values) = values {
                tables.entry((kind, values, &planned.draft.pool)).or_default().push((claim, places));
            }
        }
    }
    let table = |((kind, values, pool), seats): (Name<'_>, _)| Table {
        pool: pool.clone(),
        domain: kind.spreads.iter().map(|spread| Arc::clone(&spread.key)).zip(values).collect(),
        seats,
    };
    tables.into_iter().map(table).collect()
}

/// What a pod has in common with those that can take its place; nothing when its place depends on more than domains, or on nothing.
fn kind(shape: &Arc<PodShape>, minded: &Minded<'_>) -> Option<Arc<PodShape>> {
    let by_domain = |spread: &TopologySpread| &*spread.key != labels::HOSTNAME;
    if !shape.spreads.iter().any(|spread| spread.required)
        || !shape.spreads.iter().all(by_domain)
        || shape.has_affinity()
        || !shape.host_ports.is_empty()
        || minded.has(shape)
    {
        return None;
    }
    let mut kind = PodShape {
        namespace: "".into(),
        labels: Labels::new(),
        limits: Resources::new(),
        critical: false,
        grace_seconds: 0,
        owner: Owner::Nobody,
        do_not_disrupt: DoNotDisrupt::Unsaid,
        ..(**shape).clone()
    };
    for spread in &mut kind.spreads {
        (spread.selector, spread.max_skew, spread.min_domains) = (None, 1, None);
    }
    Some(Arc::new(kind))
}

/// Whether a pod may go to any node that has room, as far as it and those that mind it say.
pub(super) fn is_plain(pod: &Pod, minded: &Minded<'_>) -> bool {
    let shape = &pod.shape;
    !shape.is_topological() && shape.host_ports.is_empty() && pod.volume_claims.is_empty() && !minded.has(shape)
}
