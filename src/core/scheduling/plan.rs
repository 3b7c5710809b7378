//! What the solver returns: NodeClaims to create, pods for nodes that exist, and a reason for every pod that found no place.

use std::sync::Arc;

use crate::core::facts::{ClaimDraft, Pod, Snapshot};
use crate::core::ids::{ClaimName, InstanceTypeName, NodeName, PodUid};
use crate::core::labels;
use crate::core::requirements::Operator;

use super::reason::Reason;

/// How a solve is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Salt for the names of new NodeClaims, so that two plans never collide and the same input gives the same names.
    pub name_salt: u64,
    /// Most instance types that a NodeClaim lists (Karpenter: 600).
    pub max_instance_types: usize,
    /// Whether preferred affinities and `ScheduleAnyway` spreads are tried before they are given up (Karpenter's preference policy
    /// `Respect`) or not looked at (`Ignore`).
    pub respect_preferences: bool,
    /// Whether a NodePool's `minValues` may be lowered to place a pod (Karpenter's policy `BestEffort`) or must hold (`Strict`).
    pub lower_min_values: bool,
    /// Whether a pod that only reserved capacity suits waits until some is free (as in provisioning), rather than going to a lighter
    /// NodePool (as when a disruption is considered).
    pub wait_for_reserved: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name_salt: 0,
            max_instance_types: 600,
            respect_preferences: true,
            lower_min_values: false,
            wait_for_reserved: false,
        }
    }
}

/// The outcome of a solve. Every pod that was asked about is in exactly one of the three lists.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// NodeClaims to create, in the order in which they were opened.
    pub claims: Vec<PlannedClaim>,
    /// Pods for nodes that exist or are under way.
    pub existing: Vec<PlacedOn>,
    /// Pods that found no place.
    pub refused: Vec<Refusal>,
    /// Why NodePools could be used for nobody, one reason for each such pool.
    pub unusable: Vec<Reason>,
    /// Sum of the prices of `claims`, in USD per hour.
    pub price: f64,
}

impl Plan {
    /// Where pods are placed: first on what is to be created, then on what exists.
    pub(super) fn placements(&self) -> impl Iterator<Item = Placement<'_>> {
        self.claims.iter().map(Placement::New).chain(self.existing.iter().map(Placement::Known))
    }
}

/// A NodeClaim to create, or a node that exists or is under way.
#[derive(Clone, Copy)]
pub(super) enum Placement<'a> {
    New(&'a PlannedClaim),
    Known(&'a PlacedOn),
}

impl<'a> Placement<'a> {
    /// The node, or the NodeClaim as long as there is none.
    pub(super) fn name(&self) -> &'a str {
        match self {
            Self::New(claim) => claim.draft.name.as_str(),
            Self::Known(PlacedOn { node: Some(node), .. }) => node.as_str(),
            Self::Known(PlacedOn { claim, .. }) => claim.as_ref().map_or("", ClaimName::as_str),
        }
    }

    /// Whether there is a node already.
    pub(super) fn is_there(&self) -> bool {
        matches!(self, Self::Known(PlacedOn { node: Some(_), .. }))
    }

    pub(super) fn pods(&self) -> &'a [Arc<Pod>] {
        match self {
            Self::New(claim) => &claim.pods,
            Self::Known(placed) => &placed.pods,
        }
    }

    /// The domain of a topology key in which it is, or will be.
    pub(super) fn domain(&self, key: &str, snapshot: &Snapshot) -> Option<Arc<str>> {
        if key == labels::HOSTNAME {
            return Some(self.name().into());
        }
        match self {
            Self::New(claim) => claim.domain(labels::normalized(key)),
            Self::Known(placed) => placed.domain(labels::normalized(key), snapshot),
        }
    }
}

/// A NodeClaim to create.
#[derive(Clone, Debug)]
pub struct PlannedClaim {
    /// The object, complete.
    pub draft: ClaimDraft,
    /// Pods planned for it, in the order of their placement.
    pub pods: Vec<Arc<Pod>>,
    /// Instance types that hold them, cheapest first. NodeClaims with the same list share it.
    pub instance_types: Arc<[InstanceTypeName]>,
    /// Price of the cheapest available offering, in USD per hour.
    pub price: f64,
}

impl PlannedClaim {
    /// The one value that the node will have for a label; nothing when that is open.
    pub(super) fn domain(&self, key: &str) -> Option<Arc<str>> {
        let draft = &self.draft;
        let mut required = draft.requirements.iter().filter(|one| &*one.key == key && one.operator == Operator::In);
        let settled = required.find_map(|one| if let [value] = one.values.as_slice() { Some(value) } else { None });
        settled.or_else(|| draft.labels.get(key)).cloned()
    }
}

/// Where on what exists pods were placed.
#[derive(Clone, Debug)]
pub struct PlacedOn {
    /// The NodeClaim behind the node, if joiner owns it.
    pub claim: Option<ClaimName>,
    /// The node, once it exists.
    pub node: Option<NodeName>,
    /// Pods placed there.
    pub pods: Vec<Arc<Pod>>,
}

impl PlacedOn {
    /// The value that the node has for a label, as far as it or its NodeClaim says.
    pub(super) fn domain(&self, key: &str, snapshot: &Snapshot) -> Option<Arc<str>> {
        let node = self.node.as_ref().and_then(|name| snapshot.nodes.get(name)).map(|node| &node.labels);
        let claim = self.claim.as_ref().and_then(|name| snapshot.claims.get(name)).map(|claim| &claim.labels);
        node.into_iter().chain(claim).find_map(|labels| labels.get(key)).cloned()
    }
}

/// A pod that found no place.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The pod.
    pub pod: PodUid,
    /// Why, most helpful first.
    pub reasons: Vec<Reason>,
}
