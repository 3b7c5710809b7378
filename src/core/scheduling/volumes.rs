//! The volumes of pods: from where they can be reached. What a node can hold of them is next door, in `attach`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{Access, AffinityTerm, Kind, Pod, PodShape, Selector, Snapshot, Topologies};

use crate::core::ids::{ObjectKey, PodUid};
use crate::core::labels;
use crate::core::requirements::{Requirement, Requirements};

use super::attach::{Load, VolumeId};
use super::fault::VolumeFault;
use super::interner::number;

/// No pod is tried with more combinations than this of where its volumes could be; zones of one key count as one. One with more is refused: each
/// is a question of its own to every node.
const MOST_ALTERNATIVES: usize = 256;

/// What the volumes of a pod ask of its node. Pods of one shape whose volumes ask the same are one class.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Needs {
    /// Requirements on the node's labels, one list of which must hold.
    pub(super) alternatives: Topologies,
    /// What the volumes take of the node.
    pub(super) load: Load,
    /// Claims whose volume is yet to come, and that other pods of the question use too: all have to be in one zone, whichever it will be.
    pub(super) together: Vec<ObjectKey>,
    /// What is wrong with a volume: the pod can go nowhere.
    pub(super) fault: Option<VolumeFault>,
}

impl Needs {
    /// Those of a pod that can go nowhere.
    fn none(fault: VolumeFault) -> Self {
        Self { alternatives: Vec::new(), load: Load::default(), together: Vec::new(), fault: Some(fault) }
    }

    /// Whether a volume asks for something of this label.
    pub(super) fn speaks_of(&self, key: &str) -> bool {
        self.alternatives.iter().flatten().any(|requirement| *requirement.key == *key)
    }
}

/// Gives pods with volumes classes of their own: says for each shape what the volumes of its pods ask for. `shapes` and `class_of` are
/// extended; without volumes nothing changes.
pub(super) fn split(
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    shapes: &mut Vec<Arc<PodShape>>,
    class_of: &mut [u32],
) -> Vec<Option<Arc<Needs>>> {
    let mut needs: Vec<Option<Arc<Needs>>> = vec![None; shapes.len()];
    if pods.iter().all(|pod| pod.volume_claims.is_empty()) {
        return needs;
    }
    let users = Users::of(snapshot, pods);
    let mut index: FxHashMap<(u32, Arc<Needs>), u32> = FxHashMap::default();
    for (pod, class) in pods.iter().zip(class_of).filter(|(pod, _)| !pod.volume_claims.is_empty()) {
        let own = Arc::new(needs_of(snapshot, pod, &users));
        *class = *index.entry((*class, own)).or_insert_with_key(|(shape, own)| {
            shapes.push(marked(&shapes[*shape as usize], &own.together));
            needs.push(Some(Arc::clone(own)));
            number(shapes.len() - 1)
        });
    }
    needs
}

/// A label that no pod can have: only pods of the question that use this claim are found by it.
fn mark(claim: &ObjectKey) -> Arc<str> {
    format!(":claim {claim}").into()
}

/// The shape of pods that are found by these claims.
fn marked(shape: &Arc<PodShape>, claims: &[ObjectKey]) -> Arc<PodShape> {
    if claims.is_empty() {
        return Arc::clone(shape);
    }
    let mut shape = PodShape::clone(shape);
    shape.labels.extend(claims.iter().map(|claim| (mark(claim), "".into())));
    Arc::new(shape)
}

/// In the zone of the other pods that use a claim.
pub(super) fn beside(claim: &ObjectKey) -> AffinityTerm {
    let labels = [(mark(claim), "".into())].into_iter().collect();
    AffinityTerm {
        key: labels::ZONE.into(),
        selector: Some(Selector { labels, expressions: Vec::new() }),
        namespaces: vec![Arc::clone(&claim.namespace)],
        namespace_selector: None,
    }
}

/// Who uses which claim.
struct Users {
    pods: FxHashMap<ObjectKey, u32>,
    /// Volumes that are attached somewhere.
    attached: FxHashSet<Arc<str>>,
    /// Who has, or is the first to want, a claim that is for one pod at a time.
    holders: FxHashMap<ObjectKey, (PodUid, ObjectKey)>,
}

impl Users {
    fn of(snapshot: &Snapshot, batch: &[Arc<Pod>]) -> Self {
        let asked: FxHashSet<&PodUid> = batch.iter().map(|pod| &pod.uid).collect();
        let running = snapshot.pods.values().filter(|pod| pod.is_active_on_node() && !asked.contains(&pod.uid));
        let mut pods: FxHashMap<ObjectKey, u32> = FxHashMap::default();
        for pod in running.chain(batch) {
            for name in &pod.volume_claims {
                *pods.entry(key(pod, name)).or_default() += 1;
            }
        }
        let runs = |pod: &&&Arc<Pod>| snapshot.pods.get(&pod.uid).is_some_and(|seen| seen.is_active_on_node());
        let others = snapshot.pods.values().filter(|pod| pod.is_active_on_node() && !asked.contains(&pod.uid));
        let (there, waiting): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = batch.iter().partition(|pod| runs(&pod));
        let mut holders: FxHashMap<ObjectKey, (PodUid, ObjectKey)> = FxHashMap::default();
        for pod in others.chain(there).chain(waiting) {
            for claim in pod.volume_claims.iter().map(|name| key(pod, name)) {
                if snapshot.volume_claims.get(&claim).is_some_and(|fact| fact.access == Access::OnePod) {
                    holders.entry(claim).or_insert_with(|| (pod.uid.clone(), pod.key.clone()));
                }
            }
        }
        let attached = snapshot.attachments.values().filter_map(|one| one.volume.clone()).collect();
        Self { pods, attached, holders }
    }

    /// Whether several pods use a claim.
    fn are_many(&self, claim: &ObjectKey) -> bool {
        self.pods.get(claim).is_some_and(|pods| *pods > 1)
    }

    /// Whether the pod's node is certain not to have the volume yet, whichever it is.
    fn is_alone(&self, claim: &ObjectKey, id: &VolumeId) -> bool {
        self.pods.get(claim).is_none_or(|pods| *pods <= 1) && !self.attached.contains(id)
    }
}

pub(super) fn key(pod: &Pod, name: &Arc<str>) -> ObjectKey {
    ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) }
}

fn needs_of(snapshot: &Snapshot, pod: &Pod, users: &Users) -> Needs {
    let mut all = vec![Requirements::new()];
    let mut load = Load::default();
    let mut seen = BTreeSet::new();
    let mut together = Vec::new();
    for name in &pod.volume_claims {
        let claim = key(pod, name);
        let found = match found(snapshot, &claim) {
            Ok(found) => found,
            Err(fault) => return Needs::none(fault),
        };
        if let Some((_, holder)) = users.holders.get(&claim).filter(|(uid, _)| *uid != pod.uid) {
            let pod = holder.clone();
            return Needs::none(VolumeFault::InUse { claim, pod });
        }
        if found.is_to_come && found.driver.is_some() && users.are_many(&claim) && !together.contains(&claim) {
            together.push(claim.clone());
        }
        if let Some(driver) = found.driver
            && seen.insert(Arc::clone(&found.id))
        {
            load.add(driver, &found.id, users.is_alone(&claim, &found.id));
        }
        if let Some(terms) = found.topologies {
            match combined(&all, &terms) {
                Ok(both) => all = both,
                Err(misfit) => return Needs::none(misfit.fault(claim)),
            }
        }
    }
    load.finish();
    together.sort_unstable();
    Needs { alternatives: all.iter().map(Requirements::to_written).collect(), load, together, fault: None }
}

/// What is known of the volume behind a claim.
struct Found<'a> {
    /// What makes it the same as another: its volume, or the claim as long as there is none.
    id: VolumeId,
    /// The driver that attaches it.
    driver: Option<&'a Arc<str>>,
    /// From where it can be reached; nothing when from everywhere.
    topologies: Option<Cow<'a, Topologies>>,
    /// Whether it is made when the first pod that uses it has a node, for pods of one node.
    is_to_come: bool,
}

/// Looks a claim up.
fn found<'a>(snapshot: &'a Snapshot, claim: &ObjectKey) -> Result<Found<'a>, VolumeFault> {
    for kind in [Kind::VolumeClaim, Kind::Volume, Kind::StorageClass] {
        if snapshot.withheld.contains(&kind) {
            return Err(VolumeFault::Withheld { kind: kind.as_str() });
        }
    }
    let fact = snapshot.volume_claims.get(claim).ok_or_else(|| VolumeFault::NoClaim { claim: claim.clone() })?;
    if fact.deleting {
        return Err(VolumeFault::ClaimDeleting { claim: claim.clone() });
    }
    if fact.lost {
        return Err(VolumeFault::ClaimLost { claim: claim.clone() });
    }
    if let Some(name) = &fact.volume {
        let (claim, volume) = (claim.clone(), Arc::clone(name));
        let Some(there) = snapshot.volumes.get(name).filter(|volume| !volume.deleting) else {
            return Err(VolumeFault::NoVolume { claim, volume });
        };
        if !fact.bound {
            return Err(VolumeFault::Binding { claim, volume });
        }
        if there.topologies.as_ref().is_some_and(Vec::is_empty) {
            return Err(VolumeFault::Nowhere { claim, volume });
        }
        let topologies = there.reached_from(&snapshot.nodes);
        if topologies.as_ref().is_some_and(|terms| terms.is_empty()) {
            return Err(VolumeFault::NodeGone { claim, volume, hosts: there.hosts() });
        }
        return Ok(Found { id: volume, driver: there.driver.as_ref(), topologies, is_to_come: false });
    }
    let class = snapshot.storage_class_of(fact).ok_or_else(|| match &fact.class {
        Some(name) if !name.is_empty() => VolumeFault::ClassMissing { claim: claim.clone(), class: Arc::clone(name) },
        Some(_) => VolumeFault::ByHand { claim: claim.clone() },
        None => VolumeFault::NoClass { claim: claim.clone() },
    })?;
    if class.immediate {
        return Err(VolumeFault::Immediate { claim: claim.clone(), class: Arc::clone(&class.name) });
    }
    let topologies = (!class.topologies.is_empty()).then_some(Cow::Borrowed(&class.topologies));
    let is_to_come = fact.access == Access::OneNode;
    Ok(Found { id: unbound(claim), driver: class.driver.as_ref(), topologies, is_to_come })
}

/// The driver that attaches the volume behind a claim, and which volume it is; nothing when none does. What is wrong with a volume does not
/// detach it.
pub(super) fn attached_by<'a>(snapshot: &'a Snapshot, claim: &ObjectKey) -> Option<(&'a Arc<str>, VolumeId)> {
    let fact = snapshot.volume_claims.get(claim)?;
    if let Some(volume) = fact.volume.as_ref().and_then(|name| snapshot.volumes.get(name)) {
        return Some((volume.driver.as_ref()?, Arc::clone(&volume.name)));
    }
    Some((snapshot.storage_class_of(fact)?.driver.as_ref()?, unbound(claim)))
}

/// The identity of a volume that is yet to come. A namespace and a name have a slash between them, and so never look like a volume's name.
fn unbound(claim: &ObjectKey) -> VolumeId {
    claim.to_string().into()
}

/// Why alternatives cannot be put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Misfit {
    /// No two of them agree.
    Apart,
    /// There are more than are tried.
    TooMany,
}

impl Misfit {
    fn fault(self, claim: ObjectKey) -> VolumeFault {
        match self {
            Self::Apart => VolumeFault::Apart { claim },
            Self::TooMany => VolumeFault::TooMany { claim, most: MOST_ALTERNATIVES },
        }
    }
}

/// What holds when one of each side holds.
fn combined(known: &[Requirements], terms: &[Vec<Requirement>]) -> Result<Vec<Requirements>, Misfit> {
    let mut all: Vec<Requirements> = Vec::new();
    for term in terms {
        let term = Requirements::from_written(term);
        for one in known.iter().filter(|one| one.intersects(&term).is_ok()) {
            let mut both = one.clone();
            both.add_all(&term);
            join(&mut all, both);
            if all.len() > MOST_ALTERNATIVES {
                return Err(Misfit::TooMany);
            }
        }
    }
    if all.is_empty() { Err(Misfit::Apart) } else { Ok(all) }
}

/// Adds an alternative; two that differ in the values of one key only are one with the values of both. So the zones of a volume stay one
/// question, and the cheapest of them can be taken.
fn join(all: &mut Vec<Requirements>, mut more: Requirements) {
    while let Some(at) = all.iter().position(|known| known.or_on_one_key(&more).is_some()) {
        let known = all.swap_remove(at);
        more = known.or_on_one_key(&more).unwrap_or(more);
    }
    all.push(more);
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
