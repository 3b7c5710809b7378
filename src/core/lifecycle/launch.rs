//! Launch: from a NodeClaim to a machine, once.

use std::sync::Arc;

use crate::core::facts::{Claim, InstanceType, Kind, Status};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Requirements;
use crate::core::resources::{ResourceName, Resources};
use crate::core::writes::ClaimPatch;

use super::step::{self, Phase, Step};
use super::{Act, Sight, Situation, whereabouts};

/// Seconds for which a machine that was launched must have been missing before its NodeClaim goes for it, as long as the auditor's grace.
const LOST_AFTER: i64 = 300;

/// What is next until there is a machine and the object says so; nothing after that.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    if situation.has("Launched", Status::True) && situation.claim.provider_id.is_some() {
        return None;
    }
    let phase = Phase::Launching;
    Some(match &situation.memory.sight {
        // A lost answer: look before launching again.
        // The cloud may not say it for a while, which is written down first.
        Sight::Uncertain => {
            step::tell(situation, phase).unwrap_or_else(|| Step::act(phase, Act::Find(situation.claim.uid.clone())))
        }
        Sight::Missing => step::tell(situation, phase).unwrap_or_else(|| whereabouts::seek(situation, phase)),
        // A status that says of a launch what only a launch can have brought was edited: there is a machine, and it has to be found.
        Sight::Unasked if was_launched(situation.claim) => Step::act(phase, Act::Find(situation.claim.uid.clone())),
        Sight::Absent if was_launched(situation.claim) => lost(situation),
        Sight::Unasked | Sight::Absent => match &situation.memory.launch_failure {
            Some(failure) if situation.now < failure.retry_at => {
                let wait = Step::wait(phase, format!("the next attempt to launch: {}", failure.message));
                step::tell_then_wait(situation, wait).look_at(failure.retry_at)
            }
            // There may well be one.
            _ if situation.class.is_none() && situation.snapshot.withheld.contains(&Kind::NodeClass) => {
                Step::wait(phase, "joiner to be allowed to list and watch NodeClasses")
            }
            _ => Step::act(phase, Act::Launch),
        },
        Sight::Present(machine) => match metadata(situation.claim, &machine.labels, &machine.annotations) {
            Some(patch) => Step::act(phase, Act::PatchClaim(patch)),
            None => step::write_status(situation, phase)?,
        },
        // Launched, and gone before the object could say so.
        Sight::Gone if serves(situation) => {
            Step::wait(phase, "the Node to fall silent, whose machine the cloud does not know")
        }
        Sight::Gone => Step::act(phase, Act::DeleteClaim(super::DeleteReason::MachineGone)),
    })
}

/// The machine that a NodeClaim was launched with cannot be found. It is not launched again: the NodeClaim goes when the machine has stayed away
/// for long enough, and no kubelet reports from it.
fn lost(situation: &Situation<'_>) -> Step {
    let phase = Phase::Launching;
    let memory = situation.memory;
    let since = memory.absent_since.unwrap_or(situation.now);
    if let Some(id) = whereabouts::unasked(situation) {
        return Step::act(phase, Act::Get(id.clone()));
    }
    if situation.now >= step::after(since, LOST_AFTER) && !serves(situation) {
        return Step::act(phase, Act::DeleteClaim(super::DeleteReason::MachineGone));
    }
    match whereabouts::look_again(situation) {
        Some(again) => Step::wait(phase, "the cloud to show the machine that it was launched with").look_at(again),
        None => Step::act(phase, Act::Find(situation.claim.uid.clone())),
    }
}

/// Whether a kubelet reports from a machine: better evidence of it than a cloud that does not name it.
fn serves(situation: &Situation<'_>) -> bool {
    situation.nodes.iter().any(|node| node.is_ready())
}

/// Whether some part of the status says that there was a machine.
pub(super) fn was_launched(claim: &Claim) -> bool {
    claim.provider_id.is_some() || claim.node.is_some() || claim.is("Launched")
}

/// Labels and annotations that the machine adds to the NodeClaim. For labels the NodeClaim's own win, for annotations the cloud's.
fn metadata(claim: &Claim, machine_labels: &Labels, machine_annotations: &Labels) -> Option<ClaimPatch> {
    let labels: Labels = machine_labels
        .iter()
        .filter(|(key, _)| !claim.labels.contains_key(*key) && &***key != labels::HOSTNAME)
        .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
        .collect();
    let annotations: Labels = machine_annotations
        .iter()
        .filter(|(key, value)| claim.annotations.get(*key) != Some(*value))
        .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
        .collect();
    if labels.is_empty() && annotations.is_empty() {
        return None;
    }
    Some(ClaimPatch { labels, annotations, ..ClaimPatch::default() })
}

/// What a NodeClaim can be launched as.
#[derive(Clone, PartialEq, Debug)]
pub enum Candidates {
    /// Instance types, cheapest first, each with its available and compatible offerings only, cheapest first.
    Some(Vec<Arc<InstanceType>>),
    /// Types would do, but nothing of them can be had now.
    SoldOut,
    /// No type does: which requirement or resource is the matter.
    Impossible(String),
}

/// Which of a class's instance types a NodeClaim may be launched as.
pub fn candidates(claim: &Claim, types: &[Arc<InstanceType>]) -> Candidates {
    let wanted = Requirements::from_written(&claim.requirements);
    let mut fitting: Vec<(f64, Arc<InstanceType>)> = Vec::new();
    let (mut compatible, mut large_enough) = (Vec::new(), false);
    let name = wanted.get(labels::INSTANCE_TYPE);
    for kind in types {
        // Most types are not among those that the NodeClaim names, which shows before their requirements are looked at.
        if !name.is_none_or(|name| name.has(kind.name.as_str())) {
            continue;
        }
        if Requirements::from_written(&kind.requirements).intersects(&wanted).is_err() {
            continue;
        }
        let room = kind.allocatable();
        if !claim.requests.fits(&room) {
            compatible.push(room);
            continue;
        }
        large_enough = true;
        let mut offerings: Vec<_> = kind
            .offerings
            .iter()
            .filter(|offering| offering.available && offering.reservation_capacity != Some(0))
            .filter(|offering| Requirements::from_written(&offering.requirements).intersects(&wanted).is_ok())
            .cloned()
            .collect();
        offerings.sort_by(|a, b| a.price.total_cmp(&b.price));
        if let Some(cheapest) = offerings.first() {
            let price = cheapest.price;
            fitting.push((price, Arc::new(InstanceType { offerings, ..InstanceType::clone(kind) })));
        }
    }
    fitting.sort_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| x.name.cmp(&y.name)));
    if !fitting.is_empty() {
        return Candidates::Some(fitting.into_iter().map(|(_, kind)| kind).collect());
    }
    if large_enough {
        Candidates::SoldOut
    } else if compatible.is_empty() {
        Candidates::Impossible(unmet(claim, types))
    } else {
        Candidates::Impossible(too_large(claim, &compatible))
    }
}

/// Which requirement no type meets. A NodeClaim's spec cannot be changed: the remedy is another one.
fn unmet(claim: &Claim, types: &[Arc<InstanceType>]) -> String {
    let is_met = |wanted: &Requirements| {
        types.iter().any(|kind| Requirements::from_written(&kind.requirements).intersects(wanted).is_ok())
    };
    let each = claim.requirements.iter().map(|one| Requirements::from_written([one]));
    let unmet: Vec<_> = each.filter(|one| !is_met(one)).map(|one| one.to_string()).collect();
    let which = if unmet.is_empty() { "all of them at once".to_owned() } else { unmet.join("; ") };
    format!(
        "no instance type meets spec.requirements: {which}; delete the NodeClaim, and widen the requirements of its NodePool, or of another \
         NodeClaim"
    )
}

/// Which resource no type that meets the requirements has enough of, given what each of them has.
fn too_large(claim: &Claim, rooms: &[Resources]) -> String {
    let most = |name: &ResourceName| rooms.iter().map(|room| room.get(name)).max().unwrap_or(0);
    let lacking: Vec<_> = claim
        .requests
        .iter()
        .filter(|(name, milli)| *milli > most(name))
        .map(|(name, milli)| format!("{name} {} (at most {})", name.written(milli), name.written(most(name))))
        .collect();
    let which = if lacking.is_empty() { "everything at once".to_owned() } else { lacking.join(", ") };
    format!(
        "no instance type that meets spec.requirements holds spec.resources.requests: {which}; delete the NodeClaim, and ask for less, or for larger \
         types, in its NodePool or another NodeClaim"
    )
}
