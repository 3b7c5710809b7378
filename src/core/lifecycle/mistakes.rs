//! Mistakes: what somebody has written into a NodeClaim that can be understood and cannot be right. It is said, with field and remedy; the
//! machine goes on, and is neither leaked nor taken down for it.

use jiff::Timestamp;

use crate::core::facts::{Kind, Machine, Node, Status};
use crate::core::labels;
use crate::core::requirements::Requirements;

use super::status::TERMINATING;
use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation, launch, reboot, registration, repair, whereabouts};

/// How long finalizers of others may keep what has no machine any more before that is said, in seconds; controllers need a moment.
const PATIENCE: i64 = 60;

/// Labels that say what a machine is and where.
const PLACE: [&str; 3] = [labels::INSTANCE_TYPE, labels::ZONE, labels::CAPACITY_TYPE];
/// Versions of the hash that releases of Karpenter have written (`karpenter.sh/nodepool-hash-version`).
const HASH_VERSIONS: [&str; 3] = ["v1", "v2", labels::HASH_VERSION];

/// Field and remedy of each mistake.
pub(super) fn found(situation: &Situation<'_>) -> Vec<String> {
    let claim = situation.claim;
    let mut found: Vec<String> = claim.broken.iter().map(|broken| broken.problem.to_string()).collect();
    if let Some(text) = claim.annotations.get(labels::TERMINATION_TIMESTAMP)
        && text.parse::<Timestamp>().is_err()
    {
        found.push(format!(
            "metadata.annotations[{}]: {text:?} is no time; write one as 2026-01-31T12:00:00Z, or remove it; until then {}",
            labels::TERMINATION_TIMESTAMP,
            if claim.termination_grace.is_some() { "spec.terminationGracePeriod counts" } else { "there is no deadline" },
        ));
    }
    if let Some(text) = repair::outlived(situation) {
        found.push(format!(
            "metadata.annotations[{}]: {text} is over, and the NodeClaim lives; joiner takes it off; write one that is to come, or write it once the \
             NodeClaim is being deleted",
            labels::TERMINATION_TIMESTAMP,
        ));
    }
    if let Some(id) = &claim.provider_id {
        let is_anothers = match &situation.memory.sight {
            Sight::Present(machine) if machine.id == *id => !is_own(situation, machine),
            // It was shown, and its own is looked for since.
            _ => situation.memory.anothers.as_ref() == Some(id),
        };
        if is_anothers {
            found.push(format!(
                "status.providerID: machine {id} carries the mark of another NodeClaim and is left alone; write back the ID of this one's own"
            ));
        } else if let Some((node, theirs)) = estranged(situation) {
            let is_owned = situation.snapshot.nodes_owned_by(claim).any(|owned| owned.name.as_str() == node);
            let field = if is_owned { "status.providerID" } else { "status.nodeName or status.providerID" };
            found.push(format!(
                "{field}: {id} is not the ID of Node {node} ({theirs}); joiner asks the cloud and writes back what is true"
            ));
        }
    }
    found.extend(misplaced(situation));
    found.extend(mislabelled(situation));
    found.extend(unheard_of(situation));
    found.extend(reboot::grace(claim).err().filter(|_| claim.deleting.is_none() && !reboot::is_rebooting(claim)));
    found.extend(kept(situation));
    found
}

/// A label that names another NodePool than the owner, or one that is not there: limits, budgets and drift go by the label.
fn misplaced(situation: &Situation<'_>) -> Option<String> {
    let named = situation.claim.pool()?;
    let Some(owner) = situation.owner() else {
        let (claim, snapshot) = (situation.claim, situation.snapshot);
        let is_known = snapshot.pools.contains_key(&named) || !snapshot.listed.contains(&Kind::NodePool);
        return (claim.owner_pool.is_none() && claim.deleting.is_none() && !is_known).then(|| {
            format!(
                "metadata.labels[{}]: there is no NodePool {named}, so nothing limits this NodeClaim or sees it drift; name one that is there, or \
                 remove the label",
                labels::NODEPOOL
            )
        });
    };
    (owner.name != named).then(|| {
        format!(
            "metadata.labels[{0}]: NodePool {named} is not its owner, and limits and drift of that one are judged by it; write back {1:?}",
            labels::NODEPOOL,
            owner.name.as_str()
        )
    })
}

/// Labels that say what the machine is, on the NodeClaim and on its Node: prices, drift and metrics go by the ones, kube-scheduler and plans by the others.
/// They are written when it is launched and when the Node registers, and never again.
fn mislabelled(situation: &Situation<'_>) -> Vec<String> {
    let claim = situation.claim;
    if claim.deleting.is_some() || !launch::was_launched(situation.claim) {
        return Vec::new();
    }
    let machine = situation.memory.machine().filter(|machine| is_own(situation, machine));
    let allowed = Requirements::from_written(&claim.requirements);
    let node =
        situation.node().filter(|node| node.is_registered() && node.deleting.is_none() && !situation.has_patched(node));
    let mut found = Vec::new();
    for key in PLACE {
        let Some(said) = claim.labels.get(key) else { continue };
        let shown = machine.and_then(|machine| machine.labels.get(key));
        let is_allowed = allowed.get(key).is_none_or(|set| set.has(said));
        let right = shown.unwrap_or(said);
        if said != right {
            found.push(format!("metadata.labels[{key}]: {said:?} is not what its machine is; write back {right:?}"));
        } else if !is_allowed {
            found.push(format!(
                "metadata.labels[{key}]: spec.requirements do not allow {said:?}; write back what its machine is"
            ));
            continue;
        }
        if let Some(node) = node.filter(|node| node.labels.get(key) != Some(right)) {
            let is = node
                .labels
                .get(key)
                .map_or_else(|| "it is missing".to_owned(), |said| format!("{said:?} is not what its machine is"));
            found.push(format!("metadata.labels[{key}] of Node {}: {is}; write back {right:?}", node.name));
        }
    }
    found
}

/// A version of the hash that no release has written: drift is not judged by such a hash, as it might be of another recipe.
fn unheard_of(situation: &Situation<'_>) -> Option<String> {
    let version = situation.claim.annotations.get(labels::NODEPOOL_HASH_VERSION)?;
    (situation.claim.deleting.is_none() && !HASH_VERSIONS.contains(&&**version)).then(|| {
        format!(
            "metadata.annotations[{}]: {version:?} is no version of the hash, so drift from the NodePool's template is not seen; write back {:?}",
            labels::NODEPOOL_HASH_VERSION,
            labels::HASH_VERSION
        )
    })
}

/// What keeps a NodeClaim whose machine is gone: finalizers of others, once they have had their time.
fn kept(situation: &Situation<'_>) -> Option<String> {
    if kept_from(situation).is_none_or(|from| situation.now < from) {
        return None;
    }
    let remedy = "whoever put that there takes it off; if nobody is left who does, remove it by hand";
    if !situation.claim.has_finalizer() {
        return Some(format!(
            "metadata.finalizers: the NodeClaim is kept by {}; {remedy}",
            situation.claim.finalizers.join(", ")
        ));
    }
    let node = situation.nodes.iter().find(|node| !node.has_finalizer() && !node.finalizers.is_empty())?;
    Some(format!("metadata.finalizers of Node {0}: it is kept by {1}; {remedy}", node.name, node.finalizers.join(", ")))
}

/// When finalizers of others that keep a NodeClaim or its Node have had their time, if nothing else keeps them.
pub(super) fn kept_from(situation: &Situation<'_>) -> Option<Timestamp> {
    let claim = situation.claim;
    let deleting = claim.deleting.filter(|_| !claim.finalizers.is_empty())?;
    let gone = situation.memory.sight == Sight::Gone;
    let ordered = if situation.has(TERMINATING, Status::True) { situation.since(TERMINATING) } else { deleting };
    gone.then(|| step::after(ordered, PATIENCE))
}

/// Whether a machine carries this NodeClaim's mark, or has lost it: then the NodeClaim's word for it counts, unless its Node is another NodeClaim's.
pub(super) fn is_own(situation: &Situation<'_>, machine: &Machine) -> bool {
    let others = || situation.snapshot.nodes_with(&machine.id).any(|node| is_anothers_node(situation, node));
    !situation.by_token || machine.token.as_ref().map_or_else(|| !others(), |token| *token == situation.claim.uid)
}

/// Asks the cloud for the machine when the object's word for it cannot be true.
pub(super) fn look_up(situation: &Situation<'_>, phase: Phase) -> Option<Step> {
    let unproven = is_unproven(situation);
    let known = match &situation.memory.sight {
        Sight::Present(machine) => is_own(situation, machine),
        Sight::Unasked | Sight::Uncertain | Sight::Missing => false,
        Sight::Absent => {
            whereabouts::unasked(situation).is_none() && (!unproven || whereabouts::look_again(situation).is_some())
        }
        Sight::Gone => true,
    };
    // Somebody has taken the ID away: until it is written back, nobody else sees whose the machine is, and a drain may last for hours.
    let is_bereft = situation.claim.deleting.is_some() && situation.claim.provider_id.is_none();
    let doubtful = launch::was_launched(situation.claim)
        && (is_bereft || unproven || estranged(situation).is_some() || situation.by_token && is_anothers(situation));
    (doubtful && !known).then(|| match &situation.memory.sight {
        Sight::Absent | Sight::Missing | Sight::Present(_) => whereabouts::seek(situation, phase),
        Sight::Unasked | Sight::Uncertain | Sight::Gone => Step::act(phase, Act::Find(situation.claim.uid.clone())),
    })
}

/// Whether a Node is about to be taken, or a machine to be given up because none has come, on the word of the object: who has not launched the machine
/// in this life asks first which one it is.
fn is_unproven(situation: &Situation<'_>) -> bool {
    let claim = situation.claim;
    let id =
        claim.provider_id.as_ref().filter(|id| situation.by_token && claim.deleting.is_none() && !id.is_imagined());
    id.is_some_and(|id| {
        situation.has("Launched", Status::True)
            && !situation.has("Registered", Status::True)
            && (situation.snapshot.nodes_with(id).next().is_some() || situation.now >= registration::overdue(situation))
    })
}

/// The Node that this NodeClaim owns or names, and its provider ID, when that is another than the NodeClaim's. The name counts too: whoever edits
/// a Node may have taken the owner off it.
fn estranged<'a>(situation: &Situation<'a>) -> Option<(&'a str, &'a str)> {
    let claim = situation.claim;
    let id = claim.provider_id.as_ref()?;
    let named = claim.node.as_ref().and_then(|name| situation.snapshot.nodes.get(name));
    let own = situation.nodes.iter().copied().filter(|node| node.is_owned_by(claim));
    own.chain(named).find_map(|node| {
        let theirs = node.provider_id.as_ref().filter(|theirs| *theirs != id)?;
        Some((node.name.as_str(), theirs.as_str()))
    })
}

/// Whether a Node with the NodeClaim's provider ID belongs to another NodeClaim.
fn is_anothers(situation: &Situation<'_>) -> bool {
    let (claim, snapshot) = (situation.claim, situation.snapshot);
    let mut nodes = claim.provider_id.iter().flat_map(|id| snapshot.nodes_with(id));
    nodes.any(|node| is_anothers_node(situation, node))
}

fn is_anothers_node(situation: &Situation<'_>, node: &Node) -> bool {
    situation.snapshot.owners_of(node).any(|owner| owner.uid != situation.claim.uid)
}

#[cfg(test)]
#[path = "mistakes_tests.rs"]
mod tests;
