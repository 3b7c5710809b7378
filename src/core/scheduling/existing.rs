//! Nodes that exist and NodeClaims that are under way, as candidates: fixed labels, and the room that is left.

use std::sync::Arc;

use crate::core::facts::{Claim, Effect, HostPort, Node, Owner, PodShape, Taint};
use crate::core::ids::{ClaimName, NodeName, PoolName};
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

use super::algebra::{ProfileId, Source, agree, narrow};
use super::layout::Many;
use super::rooms::Kind;
use super::shelf::{Amounts, Sets, add, lower, subtract};
use super::world::World;

/// A node or a NodeClaim without one.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) node: Option<NodeName>,
    pub(super) claim: Option<ClaimName>,
    pub(super) pool: Option<PoolName>,
    pub(super) profile: ProfileId,
    pub(super) taints: u32,
    /// Whether it has the label `kubernetes.io/hostname`, as a NodeClaim's node will.
    pub(super) named: bool,
    pub(super) capacity: Amounts,
    /// Allocatable less running pods, daemons still to come, and pods planned in this pass.
    pub(super) free: Amounts,
    /// Ports that running pods, daemons (running or to come) and pods planned in this pass take.
    pub(super) ports: Vec<HostPort>,
    /// Whether pods may be placed here. Nodes on their way out are kept for counting only.
    pub(super) usable: bool,
    pub(super) initialized: bool,
    /// The pods that run here, by shape.
    pub(super) running: Vec<(Arc<PodShape>, Many)>,
}

impl Host {
    /// What it has in common with all that are like it.
    pub(super) fn kind(&self) -> Kind {
        Kind { taints: self.taints, profile: self.profile, named: self.named }
    }

    /// The node's name, or else that of the NodeClaim.
    pub(super) fn name(&self) -> Arc<str> {
        let claim = || self.claim.as_ref().map_or("", ClaimName::as_str);
        self.node.as_ref().map_or_else(claim, NodeName::as_str).into()
    }
}

/// The daemons that belong on a node.
pub(super) struct OnNode {
    /// What they request together.
    requests: Amounts,
    ports: Vec<HostPort>,
    /// Their numbers, in the order of the snapshot.
    pub(super) coming: Vec<u32>,
}

/// A node before it is compiled.
struct Site<'a> {
    node: Option<&'a Node>,
    claim: Option<&'a Claim>,
    labels: Labels,
    taints: Vec<Taint>,
    capacity: Resources,
    allocatable: Resources,
    /// What a machine that is not chosen yet has beside its daemons, whichever it will be, and the host ports that these may take.
    beside: Option<(Amounts, Vec<HostPort>)>,
}

impl World<'_> {
    /// A node, with the NodeClaim behind it.
    pub(super) fn host_on(&mut self, node: &Node, claim: Option<&Claim>) -> Host {
        self.host(on_node(node, claim))
    }

    /// A NodeClaim without a node.
    pub(super) fn host_to_come(&mut self, claim: &Claim) -> Host {
        let site = self.under_way(claim);
        self.host(site)
    }

    fn host(&mut self, site: Site<'_>) -> Host {
        let snapshot = self.problem.snapshot;
        let Site { node, claim, labels, taints, capacity, allocatable, beside } = site;
        let usable = !claim.is_some_and(Claim::is_leaving) && node.is_none_or(|n| n.deleting.is_none());
        let profile = self.host_profile(&labels, claim.filter(|_| node.is_none()));
        let taints = self.tolerance.taints(taints);
        let mut free = self.dimensions.amounts(&allocatable);
        let mut ports = Vec::new();
        let mut daemons = self.zero();
        let mut running: Vec<(Arc<PodShape>, Many)> = Vec::new();
        // Who has to leave for a restart is gone when the node is back.
        let restarts = claim.is_some_and(Claim::is_rebooting);
        let pods = node.into_iter().flat_map(|node| snapshot.pods_on(&node.name));
        for pod in pods.filter(|pod| pod.is_active_on_node() && !(restarts && pod.deleting.is_some())) {
            let requests = self.dimensions.amounts(&pod.shape.requests);
            subtract(&mut free, &requests);
            ports.extend(pod.shape.host_ports.iter().cloned());
            if pod.shape.owner == Owner::DaemonSet {
                add(&mut daemons, &requests);
            }
            let known = running.iter().position(|(shape, _)| Arc::ptr_eq(shape, &pod.shape));
            let known = known.unwrap_or_else(|| {
                running.push((Arc::clone(&pod.shape), Many::default()));
                running.len() - 1
            });
            running[known].1.active += 1;
            running[known].1.staying += u32::from(pod.deleting.is_none());
        }
        if let Some((room, taken)) = beside {
            free = room;
            ports = taken;
        } else if usable {
            let belonging = self.daemons_on(profile, taints);
            for ((free, wanted), running) in free.iter_mut().zip(&belonging.requests).zip(&daemons) {
                *free = free.saturating_sub((wanted - running).max(0));
            }
            ports.extend(belonging.ports.iter().cloned());
        }
        Host {
            node: node.map(|n| n.name.clone()),
            claim: claim.map(|c| c.name.clone()),
            pool: labels.get(labels::NODEPOOL).map(|name| PoolName::from(Arc::clone(name))),
            profile,
            taints,
            named: node.is_none() || labels.contains_key(labels::HOSTNAME),
            capacity: self.dimensions.amounts(&capacity),
            free,
            ports,
            usable,
            initialized: node.is_some_and(|n| claim.is_none() || n.is_initialized()),
            running,
        }
    }

    /// The daemons that belong on a node with these labels and taints, that is there or on its way.
    pub(super) fn daemons_on(&mut self, profile: ProfileId, taints: u32) -> Arc<OnNode> {
        if let Some(known) = self.daemons_on.get(&(profile, taints)) {
            return Arc::clone(known);
        }
        let mut all = OnNode { requests: self.zero(), ports: Vec::new(), coming: Vec::new() };
        let expected = self.expected_daemons().map(|(which, daemon)| (which, Arc::clone(&daemon.shape)));
        for (which, shape) in expected.collect::<Vec<_>>() {
            let tolerations = self.tolerance.tolerations(&shape.tolerations);
            let terms = self.daemon_terms(&shape);
            let fits = terms.iter().any(|term| self.algebra.join(profile, *term).is_some());
            if fits && self.tolerance.tolerates(tolerations, taints, true) {
                add(&mut all.requests, &self.dimensions.amounts(&shape.requests));
                all.ports.extend(shape.host_ports.iter().cloned());
                all.coming.push(which);
            }
        }
        let all = Arc::new(all);
        self.daemons_on.insert((profile, taints), Arc::clone(&all));
        all
    }

    /// What the labels of a host are: those of the node, or (for a NodeClaim without one) what it says and still leaves open.
    fn host_profile(&mut self, labels: &Labels, claim: Option<&Claim>) -> ProfileId {
        let mut sets = Sets::new();
        let universe = &self.algebra.universe;
        for (key, value) in labels {
            if let Some(key) = universe.find(key) {
                sets.push((key, universe.value(key, value)));
            }
        }
        // A node may carry a deprecated key beside its stable form.
        sets.sort_by_key(|(key, _)| *key);
        sets.dedup_by_key(|(key, _)| *key);
        for requirement in claim.iter().flat_map(|claim| &claim.requirements) {
            if labels.contains_key(&requirement.key) {
                continue;
            }
            if let Some((key, domain)) = universe.requirement(requirement) {
                // A NodeClaim that contradicts itself will never become a node; it is left as it is.
                let _ = narrow(&mut sets, universe, key, &domain);
            }
        }
        self.algebra.add_profile(Source::Node, sets)
    }

    /// A NodeClaim without a node: what its status says, or else what all instance types that it may become have room for. It is charged to
    /// limits with the largest of them, as when it was planned: the cloud may choose any.
    fn under_way<'a>(&mut self, claim: &'a Claim) -> Site<'a> {
        let (mut capacity, mut allocatable) = (claim.capacity.clone(), claim.allocatable.clone());
        if allocatable.is_empty() {
            if let Some((all, some)) = self.outcomes(claim) {
                capacity = all;
                allocatable = some;
            } else {
                capacity = claim.requests.clone();
                allocatable = claim.requests.clone();
            }
        }
        let mut labels = claim.labels.clone();
        labels.insert(labels::REGISTERED.into(), "true".into());
        labels.insert(labels::INITIALIZED.into(), "true".into());
        let beside = if claim.allocatable.is_empty() { self.beside_daemons(claim) } else { None };
        Site { node: None, claim: Some(claim), labels, taints: claim.taints.clone(), capacity, allocatable, beside }
    }

    /// What every machine that the NodeClaim may become has beside the daemons that may come to it, and their host ports; nothing where its
    /// NodePool is not used any more, or has become another.
    fn beside_daemons(&mut self, claim: &Claim) -> Option<(Amounts, Vec<HostPort>)> {
        let name = claim.pool()?;
        let pool = self.pools.iter().position(|site| site.fact.name == name)?;
        let term = self.algebra.term(&claim.labels, &claim.requirements).ok()?;
        let profile = self.algebra.join(self.pools[pool].base, term)?;
        let groups = self.groups(pool, profile);
        let shelf = &self.algebra.shelves[self.pools[pool].shelf];
        let sets = &self.algebra.profile(profile).sets;
        let may_be = |at: &usize| {
            let kind = &shelf.types[*at];
            agree(&kind.sets, sets) && claim.requests.fits(&kind.fact.allocatable())
        };
        let mut room: Option<Amounts> = None;
        let mut ports: Vec<HostPort> = Vec::new();
        for group in groups.iter() {
            let kinds: Vec<usize> = group.types.bits().filter(may_be).collect();
            for has in kinds.iter().map(|at| group.room(*at, shelf)) {
                room = Some(room.map_or_else(|| has.clone(), |least| lower(&least, &has)));
            }
            if !kinds.is_empty() {
                ports.extend(group.ports.iter().cloned());
            }
        }
        Some((room?, ports))
    }

    /// The most capacity that any instance type has which the NodeClaim may become, and what each of them has allocatable at least.
    fn outcomes(&mut self, claim: &Claim) -> Option<(Resources, Resources)> {
        let list = self.problem.catalog.pools.get(&claim.pool()?)?;
        let listed: Vec<&Requirement> = claim
            .requirements
            .iter()
            .filter(|r| &*r.key == labels::INSTANCE_TYPE && r.operator == Operator::In)
            .collect();
        let mut outcomes: Option<(Resources, Resources)> = None;
        for kind in list.iter() {
            let named = listed.iter().all(|r| r.values.iter().any(|v| **v == *kind.name.as_str()));
            let allocatable = kind.allocatable();
            if !named || !claim.requests.fits(&allocatable) {
                continue;
            }
            outcomes = Some(match outcomes {
                None => (kind.capacity.clone(), allocatable),
                Some((mut most, least)) => {
                    most.raise(&kind.capacity);
                    (most, least.lowered(&allocatable))
                }
            });
        }
        outcomes
    }
}

/// A node as Karpenter sees it: until it is initialized, and while its machine is being restarted, taints that go away by themselves do not count,
/// and what its status does not tell yet is taken from its NodeClaim.
fn on_node<'a>(node: &'a Node, claim: Option<&'a Claim>) -> Site<'a> {
    let mut labels = node.labels.clone();
    let mut taints = node.taints.clone();
    let (mut capacity, mut allocatable) = (node.capacity.clone(), node.allocatable.clone());
    if node.cordoned && !taints.iter().any(|t| &*t.key == "node.kubernetes.io/unschedulable") {
        taints.push(Taint::new("node.kubernetes.io/unschedulable", Effect::NoSchedule));
    }
    let rebooting = claim.is_some_and(Claim::is_rebooting);
    if let Some(claim) = claim.filter(|_| rebooting || !node.is_initialized()) {
        for (key, value) in &claim.labels {
            labels.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if !node.is_registered() {
            taints.extend(claim.taints.iter().filter(|t| !node.taints.iter().any(|n| n.matches(t))).cloned());
        }
        // Pods that had to leave come back, and need no other node meanwhile.
        taints.retain(|taint| !(claim.goes_at_start(taint) || rebooting && taint.is_of_restart()));
        for (seen, promised) in [(&mut capacity, &claim.capacity), (&mut allocatable, &claim.allocatable)] {
            for (name, milli) in promised.iter() {
                if seen.get(name) == 0 {
                    seen.set(name.clone(), milli);
                }
            }
        }
    }
    if claim.is_some() {
        // While planning, nodes are seen as they will be, so that daemons which wait for these labels are counted.
        labels.insert(labels::REGISTERED.into(), "true".into());
        labels.insert(labels::INITIALIZED.into(), "true".into());
    }
    labels.insert(labels::NODE_NAME_FIELD.into(), node.name.as_str().into());
    Site { node: Some(node), claim, labels, taints, capacity, allocatable, beside: None }
}
