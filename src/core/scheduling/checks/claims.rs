//! NodeClaims of a plan: types, room, taints, labels, ports, limits.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{AttachLimits, ClaimDraft, InstanceType, Offering, Pod, PodShape};
use crate::core::ids::{InstanceTypeName, PoolName};
use crate::core::labels::{self, Labels};
use crate::core::requirements::{Requirement, Requirements, ValueSet};
use crate::core::resources::{ResourceName, Resources};

use super::super::plan::{Plan, PlannedClaim};
use super::super::ports;
use super::super::problem::Problem;
use super::meet;
use super::verify::{Outcome, Place, alternatives, shapes, tolerates};
use super::violation::Violation;
use super::volumes;

/// What a type can be for NodeClaims with the same requirements.
struct Verdict {
    fits_requirements: bool,
    /// Room beside daemons, and their ports.
    room: Resources,
    ports: Vec<crate::core::facts::HostPort>,
    /// The daemons that may come to a machine of it.
    coming: Vec<Arc<PodShape>>,
    /// What the type and its fitting offerings say of each key.
    says: BTreeMap<Arc<str>, Vec<ValueSet>>,
}

/// Verdicts by instance type: several where a type is there in several sizes.
type Verdicts = FxHashMap<InstanceTypeName, Rc<[Verdict]>>;

/// What NodeClaims say of the labels of their nodes, and those that are certain.
type Said = (Arc<Requirements>, Arc<Labels>);

/// A list of instance types that NodeClaims share, judged once.
struct Listed {
    all: Vec<(InstanceTypeName, Option<Rc<[Verdict]>>)>,
    /// The room that each of them has; nothing unless all of them are known and fit the requirements.
    least: Option<Resources>,
}

impl Listed {
    fn new(names: &[InstanceTypeName], verdicts: &Verdicts) -> Self {
        let all: Vec<_> = names.iter().map(|name| (name.clone(), verdicts.get(name).map(Rc::clone))).collect();
        let mut least: Option<Resources> = None;
        for (_, verdict) in &all {
            let Some([verdict]) = verdict.as_deref().filter(|sizes| sizes.iter().all(|one| one.fits_requirements))
            else {
                return Self { all, least: None };
            };
            least = Some(match least {
                None => verdict.room.clone(),
                Some(least) => least.lowered(&verdict.room),
            });
        }
        Self { all, least }
    }

    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.all.iter().filter_map(|(_, verdict)| verdict.as_deref()).flatten()
    }
}

/// Where there is reserved capacity it matters whether a NodeClaim may have it, and where a daemon asks for something that offerings of a type
/// differ in, which of them it may have: what cannot be had on demand in a zone brings no daemon of that zone. Elsewhere the list of capacity types is as
/// good as none.
fn capacity_type_matters(problem: &Problem<'_>) -> bool {
    let lists = || problem.catalog.pools.values().flat_map(|list| list.iter());
    let offered = || lists().flat_map(|kind| &kind.offerings);
    let terms = problem.snapshot.daemons.values().flat_map(|daemon| alternatives(&daemon.shape));
    let asked: BTreeSet<Arc<str>> =
        terms.flat_map(|term| term.iter().map(|(key, _)| Arc::clone(key)).collect::<Vec<_>>()).collect();
    let is_asked = |offering: &Offering| offering.requirements.iter().any(|one| asked.contains(&one.key));
    offered().any(Offering::is_reserved) || !asked.is_empty() && offered().any(is_asked)
}

pub(super) fn check<'a>(
    problem: &Problem<'a>,
    plan: &'a Plan,
    places: &mut Vec<Place<'a>>,
    found: &mut Vec<Violation>,
) {
    let open = problem.open_keys();
    let mut known: FxHashMap<(PoolName, Vec<Requirement>), (usize, Verdicts)> = FxHashMap::default();
    let mut lists: FxHashMap<(*const InstanceTypeName, usize), Listed> = FxHashMap::default();
    let mut said: FxHashMap<(*const Requirement, *const Labels), Said> = FxHashMap::default();
    let matters = capacity_type_matters(problem);
    let shown = OnceCell::new();
    for claim in &plan.claims {
        let draft = &claim.draft;
        let aside = |key: &str| key == labels::INSTANCE_TYPE || key == labels::CAPACITY_TYPE && !matters;
        let beside = |r: &&Requirement| !aside(&r.key);
        let rest: Vec<Requirement> = draft.requirements.iter().filter(beside).cloned().collect();
        let next = known.len();
        let (which, verdicts) = known
            .entry((draft.pool.clone(), rest))
            .or_insert_with_key(|(_, rest)| (next, verdicts(problem, draft, rest)));
        // The plan holds the lists, so that an address stands for one list.
        let listed = lists
            .entry((claim.instance_types.as_ptr(), *which))
            .or_insert_with(|| Listed::new(&claim.instance_types, verdicts));
        let place: Arc<str> = draft.name.as_str().into();
        let pods: Vec<&Arc<Pod>> = claim.pods.iter().collect();
        check_types(claim, &place, listed, found);
        check_ports(claim, &place, listed, found);
        let coming = listed.verdicts().flat_map(|verdict| &verdict.coming).map(|shape| &**shape);
        meet::check(problem, &place, &pods, coming, found);
        // The plan holds these, too.
        let (requirements, certain) = said
            .entry((Arc::as_ptr(&draft.requirements).cast(), Arc::as_ptr(&draft.labels)))
            .or_insert_with(|| said_of(draft));
        let always = |key: &Arc<str>, wish: &ValueSet| {
            let own = if open.contains(&**key) && !draft.labels.contains_key(key) {
                Own::Required(requirements.get(key))
            } else {
                Own::Labelled(requirements.get(key))
            };
            listed.verdicts().all(|verdict| outcome(own, verdict.says.get(key)).always(wish))
        };
        for pod in pods.iter().filter(|pod| !volumes::reachable(problem.snapshot, pod, &always)) {
            found.push(Violation::VolumeUnreachable { place: Arc::clone(&place), pod: pod.uid.clone() });
        }
        if pods.iter().any(|pod| !pod.volume_claims.is_empty()) {
            let list = problem.catalog.pools.get(&draft.pool).into_iter().flat_map(|list| list.iter());
            let listed: Vec<_> = list.filter(|kind| claim.instance_types.contains(&kind.name)).collect();
            let shown = shown.get_or_init(|| AttachLimits::shown(problem.snapshot));
            volumes::check_type(problem.snapshot, &place, &claim.pods, (&listed, shown), found);
        }
        for pod in shapes(&pods) {
            if !tolerates(&pod.shape, &draft.taints) {
                found.push(Violation::Untolerated { place: Arc::clone(&place), pod: pod.uid.clone() });
            }
            let met = alternatives(&pod.shape).iter().any(|term| term.iter().all(|(key, wish)| always(key, wish)));
            if !met {
                found.push(Violation::Unmet { place: Arc::clone(&place), pod: pod.uid.clone() });
            }
        }
        places.push(Place {
            name: place,
            named: true,
            labels: Arc::clone(certain),
            open: Some(Arc::clone(requirements)),
            taints: draft.taints.clone(),
            planned: pods,
            running: Vec::new(),
        });
    }
    check_limits(problem, plan, found);
}

/// What a NodeClaim says of the labels of its node, and those that are certain.
fn said_of(draft: &ClaimDraft) -> Said {
    let mut requirements = Requirements::from_written(&*draft.requirements);
    requirements.add_all(&Requirements::from_labels(&draft.labels));
    requirements.add_all(&on_registration());
    let mut certain = (*draft.labels).clone();
    for (key, set) in requirements.iter() {
        if let Some(value) = set.single() {
            certain.insert(Arc::clone(key), Arc::clone(value));
        }
    }
    (Arc::new(requirements), Arc::new(certain))
}

/// Labels that every node of a NodeClaim comes to have, and that no NodeClaim names.
fn on_registration() -> Requirements {
    let both = [labels::REGISTERED, labels::INITIALIZED].map(|key| (key.into(), "true".into()));
    Requirements::from_labels(&both.into_iter().collect())
}

fn verdicts(problem: &Problem<'_>, draft: &ClaimDraft, rest: &[Requirement]) -> Verdicts {
    let mut requirements = Requirements::from_written(rest);
    requirements.add_all(&Requirements::from_labels(&draft.labels));
    let mut template = requirements.clone();
    template.add_all(&on_registration());
    let open = problem.open_keys();
    // What is not well-known becomes a label of the node, and so does what the NodePool labels its nodes with.
    let is_label = |key: &Arc<str>| !open.contains(&**key) || draft.labels.contains_key(key);
    let expected = problem.snapshot.daemons.values().filter(|daemon| daemon.is_expected());
    let tolerant = expected.filter(|daemon| tolerates(&daemon.shape, &draft.taints));
    let daemons: Vec<_> = tolerant.map(|daemon| (daemon, alternatives(&daemon.shape))).collect();
    let list = problem.catalog.pools.get(&draft.pool).into_iter().flat_map(|list| list.iter());
    let mut verdicts: BTreeMap<InstanceTypeName, Vec<Verdict>> = BTreeMap::new();
    for fact in list {
        let own = Requirements::from_written(&fact.requirements);
        let mut both = template.clone();
        both.add_all(&own);
        let available = fact.offerings.iter().filter(|offering| offering.available);
        let offered = available.map(|offering| Requirements::from_written(&offering.requirements));
        let offered: Vec<Requirements> = offered.filter(|one| both.intersects(one).is_ok()).collect();
        let mut room = fact.allocatable();
        let (mut taken, mut coming) = (Vec::new(), Vec::new());
        let machines = if daemons.is_empty() { Vec::new() } else { machines(fact, &both, &is_label) };
        for (daemon, terms) in &daemons {
            let comes = |machine: &Requirements| terms.iter().any(|term| machine.compatible(term, |_| false).is_ok());
            if machines.iter().any(comes) {
                room.subtract(&daemon.shape.requests);
                taken.extend(daemon.shape.host_ports.iter().cloned());
                coming.push(Arc::clone(&daemon.shape));
            }
        }
        let fits_requirements = !offered.is_empty() && requirements.intersects(&own).is_ok();
        verdicts.entry(fact.name.clone()).or_default().push(Verdict {
            fits_requirements,
            room,
            ports: taken,
            coming,
            says: says(&both, &own, &offered),
        });
    }
    verdicts.into_iter().map(|(name, sizes)| (name, sizes.into())).collect()
}

/// What an instance type and the offerings that a NodeClaim may get say of each key, nothing standing for a label that the node will not have.
fn says(claim: &Requirements, own: &Requirements, offered: &[Requirements]) -> BTreeMap<Arc<str>, Vec<ValueSet>> {
    let mut says: BTreeMap<Arc<str>, Vec<ValueSet>> = BTreeMap::new();
    for key in offered.iter().flat_map(Requirements::iter).map(|(key, _)| key) {
        if says.contains_key(key) {
            continue;
        }
        let narrowed = |set: &ValueSet| claim.get(key).map_or_else(|| set.clone(), |claim| claim.intersection(set));
        let of = |one: &Requirements| one.get(key).map(narrowed).or_else(|| own.get(key).cloned());
        says.insert(Arc::clone(key), offered.iter().map(|one| of(one).unwrap_or_else(ValueSet::none)).collect());
    }
    for (key, set) in own.iter() {
        says.entry(Arc::clone(key)).or_insert_with(|| vec![set.clone()]);
    }
    says
}

/// What the labels of a NodeClaim's machine may be if it gets this instance type, offering by offering: what the NodeClaim says of keys that are
/// labels, and what type and offering say. What is sold out now may be had again when the machine is asked for.
fn machines(fact: &InstanceType, claim: &Requirements, is_label: &dyn Fn(&Arc<str>) -> bool) -> Vec<Requirements> {
    let own = Requirements::from_written(&fact.requirements);
    let mut all = Vec::new();
    for offering in &fact.offerings {
        let one = Requirements::from_written(&offering.requirements);
        if claim.intersects(&one).is_ok() {
            let mut machine = Requirements::new();
            let is_had = |key: &Arc<str>| is_label(key) || own.get(key).is_some() || one.get(key).is_some();
            for (key, set) in claim.iter().filter(|(key, _)| is_had(key)) {
                machine.add(key, set);
            }
            machine.add_all(&one);
            all.push(machine);
        }
    }
    all
}

/// What a NodeClaim says of a key.
#[derive(Clone, Copy)]
enum Own<'a> {
    /// The node gets it as a label: a custom key, or one that the NodePool labels its nodes with.
    Labelled(Option<&'a ValueSet>),
    /// A well-known key, which is the instance type's to say.
    Required(Option<&'a ValueSet>),
}

fn outcome(own: Own<'_>, says: Option<&Vec<ValueSet>>) -> Outcome {
    let (Own::Labelled(required) | Own::Required(required)) = own;
    let sets: Vec<ValueSet> = match (own, says) {
        (_, Some(says)) => {
            let narrowed = |set: &ValueSet| required.map_or_else(|| set.clone(), |own| set.intersection(own));
            says.iter().map(narrowed).filter(|set| !set.is_empty()).collect()
        }
        (Own::Labelled(Some(own)), None) if !own.is_empty() => vec![own.clone()],
        (Own::Labelled(_) | Own::Required(_), None) => Vec::new(),
    };
    let silent = says.is_some_and(|says| says.iter().any(ValueSet::is_empty));
    Outcome { absent: sets.is_empty() || silent && matches!(own, Own::Required(_)), sets }
}

fn total(claim: &PlannedClaim) -> Resources {
    let mut all = Resources::new();
    for pod in &claim.pods {
        all.add(&pod.shape.requests);
    }
    all
}

fn check_types(claim: &PlannedClaim, place: &Arc<str>, listed: &Listed, found: &mut Vec<Violation>) {
    let need = total(claim);
    if listed.all.is_empty() {
        found.push(Violation::UnknownType { place: Arc::clone(place), instance_type: "".into() });
    }
    if listed.least.as_ref().is_some_and(|least| holds(&need, least)) {
        return;
    }
    for (name, verdict) in &listed.all {
        let (place, instance_type) = (Arc::clone(place), name.clone());
        let Some(sizes) = verdict else {
            found.push(Violation::UnknownType { place, instance_type });
            continue;
        };
        // Whoever launches it leaves out what does not hold the requests: of several sizes, one must.
        let mut fitting = sizes.iter().filter(|size| size.fits_requirements).peekable();
        if fitting.peek().is_none() {
            found.push(Violation::UnfitType { place, instance_type });
        } else if !fitting.any(|size| holds(&need, &size.room)) {
            found.push(Violation::Overfull { place, instance_type });
        }
    }
}

/// Whether what is asked for is there; what is asked for in no amount may be short.
pub(super) fn holds(need: &Resources, room: &Resources) -> bool {
    need.iter().all(|(name, milli)| milli <= 0 || milli <= room.get(name))
}

fn check_ports(claim: &PlannedClaim, place: &Arc<str>, listed: &Listed, found: &mut Vec<Violation>) {
    if claim.pods.iter().all(|pod| pod.shape.host_ports.is_empty()) {
        return;
    }
    let mut taken = Vec::new();
    for pod in &claim.pods {
        if let Some(port) = ports::first_taken(&pod.shape.host_ports, &taken) {
            found.push(Violation::PortTaken { place: Arc::clone(place), port: port.port });
        }
        taken.extend(pod.shape.host_ports.iter().cloned());
    }
    for verdict in listed.verdicts() {
        if let Some(port) = ports::first_taken(&taken, &verdict.ports) {
            found.push(Violation::PortTaken { place: Arc::clone(place), port: port.port });
        }
    }
}

/// What is there and the largest that each NodeClaim may become must stay within the limits.
fn check_limits(problem: &Problem<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    for pool in problem.snapshot.pools.values().filter(|pool| !pool.limits.is_empty()) {
        let planned: Vec<&PlannedClaim> = plan.claims.iter().filter(|claim| claim.draft.pool == pool.name).collect();
        if planned.is_empty() {
            continue;
        }
        let list = problem.catalog.pools.get(&pool.name);
        let mut used = Resources::new();
        for (labels, capacity) in super::hosts::in_use(problem) {
            if labels.get(labels::NODEPOOL).is_some_and(|name| **name == *pool.name.as_str()) {
                used.add(&capacity);
                used.add(&Resources::new().with("nodes", 1000));
            }
        }
        // Of a type in several sizes the smallest: which of them are meant is for the launch to find out.
        let mut capacity: BTreeMap<&InstanceTypeName, Resources> = BTreeMap::new();
        for kind in list.into_iter().flat_map(|list| list.iter()) {
            let known = capacity.entry(&kind.name).or_insert_with(|| kind.capacity.clone());
            *known = known.lowered(&kind.capacity);
        }
        let mut largest: FxHashMap<*const InstanceTypeName, Resources> = FxHashMap::default();
        for claim in planned {
            let most = largest.entry(claim.instance_types.as_ptr()).or_insert_with(|| {
                let mut most = Resources::new().with("nodes", 1000);
                for has in claim.instance_types.iter().filter_map(|name| capacity.get(name)) {
                    most.raise(has);
                }
                most
            });
            used.add(most);
        }
        let beyond = |(name, limit): (&ResourceName, i64)| used.get(name) > limit;
        if pool.limits.iter().any(beyond) {
            found.push(Violation::BeyondLimits(pool.name.clone()));
        }
    }
}
