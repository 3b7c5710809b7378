//! Whereabouts: by which names the cloud is asked for a machine that is not where it was said to be. Its mark can be lost, and the ID in the NodeClaim's
//! status edited; its Nodes carry an ID, too. Only when the cloud knows none of them is there no machine.

use crate::core::ids::ProviderId;

use super::step::{Phase, Step};
use super::{Act, Situation};

/// The next question: for a machine with an ID about which nobody has asked, else for one with the mark.
pub(super) fn seek(situation: &Situation<'_>, phase: Phase) -> Step {
    Step::act(
        phase,
        match unasked(situation) {
            Some(id) => Act::Get(id.clone()),
            None => Act::Find(situation.claim.uid.clone()),
        },
    )
}

/// An ID that the NodeClaim or one of its Nodes names, and about which the cloud was not asked in vain.
pub(super) fn unasked<'a>(situation: &Situation<'a>) -> Option<&'a ProviderId> {
    let shown = situation.own_nodes().filter_map(|node| node.provider_id.as_ref());
    let mut named = situation.claim.provider_id.iter().chain(shown);
    named.find(|id| !situation.memory.tried.contains(*id))
}
