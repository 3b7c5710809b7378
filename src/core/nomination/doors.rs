//! Who stands at a door: the node that was planned for a pod is there, and kube-scheduler does not bring the pod in.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::core::facts::{Claim, Snapshot};
use crate::core::ids::{ClaimName, PodUid};

use super::seats::{Nomination, door};

/// So many pods at most are shown to kube-scheduler again at a time. Most wait for the same few changes, and come along when one of them is shown.
const MOST: usize = 100;
/// After so many rests a pod is shown again only each so many: kube-scheduler tries again by itself what it has left aside for five minutes.
const SELDOM: u32 = 64;
/// How many pods kube-scheduler may try in vain between two looks, five seconds apart: one without a nomination costs it 20 ms, and more where thousands
/// are nominated. While it goes through so many, nobody gets a place, and it is at work all the same.
const TRIED_PER_LOOK: usize = 250;

/// The pods that wait though the node that was planned for them has come up, and the NodeClaims of these nodes: kube-scheduler has not come to them, has put
/// others into their place, or has left them aside.
fn at_doors(snapshot: &Snapshot) -> impl Iterator<Item = (&PodUid, &ClaimName)> {
    let planned = snapshot.pending.keys().filter_map(|uid| Some((uid, snapshot.planned.get(uid)?)));
    let is_up = |claim: &Arc<Claim>| claim.is("Initialized") && !claim.is_rebooting();
    planned.filter(move |(_, name)| snapshot.claims.get(*name).is_some_and(is_up))
}

/// Whether kube-scheduler is still at work, as far as can be seen from look to look.
///
/// It leaves pods aside that no event can help, and does not see every event: when a pod for which room was kept on one node is bound to another, it
/// does not try those that the kept room had sent away, for up to five minutes. A nomination that is taken away is such an event.
#[derive(Debug, Default)]
pub struct Doors {
    /// Who waited at the last look, if somebody stood at a door.
    waiting: Option<OrdMap<PodUid, u64>>,
    /// How many looks nobody has moved.
    still: u32,
}

impl Doors {
    /// Looks. Answers true when nobody who waited has got a place for as many looks as kube-scheduler may need to try all of them, and somebody stands at a
    /// door; then less and less often.
    pub fn are_still(&mut self, snapshot: &Snapshot) -> bool {
        let now = at_doors(snapshot).next().map(|_| snapshot.pending.clone());
        let before = std::mem::replace(&mut self.waiting, now);
        let moved = |(before, now): (OrdMap<_, _>, &OrdMap<_, _>)| {
            before.diff(now).any(|change| matches!(change, DiffItem::Remove(..)))
        };
        let still = before.zip(self.waiting.as_ref()).is_some_and(|both| !moved(both));
        self.still = if still { self.still.saturating_add(1) } else { 0 };
        let needed = u32::try_from(1 + snapshot.pending.len() / TRIED_PER_LOOK).unwrap_or(u32::MAX);
        let rests = self.still / needed;
        let is_due = rests.is_power_of_two() && rests < SELDOM || rests > 0 && rests.is_multiple_of(SELDOM);
        is_due && self.still.is_multiple_of(needed)
    }
}

/// Whom to show to kube-scheduler again when the doors are still: those whose door is open.
pub fn left_aside(snapshot: &Snapshot) -> Vec<Nomination> {
    let open = at_doors(snapshot).filter_map(|(uid, name)| {
        let door = door(snapshot, name, &BTreeSet::new())?;
        let node = snapshot.nodes.get(door.node).filter(|node| !node.cordoned)?.name.clone();
        Some(Nomination { pod: Arc::clone(snapshot.pods.get(uid)?), node })
    });
    open.take(MOST).collect()
}

#[cfg(test)]
#[path = "doors_tests.rs"]
mod tests;
