//! What is kept in mind from look to look of the auditor, to see later whether it was right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::invariant::{Broken, Invariant};
use crate::core::facts::Machine;
use crate::core::ids::{ClaimName, ClaimUid, NodeName, ProviderId};

/// How long a machine that carries its mark may run without a NodeClaim while things go wrong all around: the auditor needs three looks that agree
/// over five minutes, each of which trouble can spoil, and takes a share of all machines at a time.
pub const ORPHANED_AT_MOST: Duration = Duration::from_hours(2);
/// For so long after a finalizer went is it looked whether the cloud shows the machine: thirty looks of the auditor.
const DOUBTED_FOR: Duration = Duration::from_hours(1);

/// Whose finalizer joiner has taken off, and what must not be there any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Released {
    /// A NodeClaim's: no machine with its token.
    Claim(ClaimName, ClaimUid),
    /// A Node's: no machine with its provider ID.
    Node(NodeName, ProviderId),
}

/// What a complete look of the auditor saw. Moments are told by a clock that nobody sets.
#[derive(Clone, Debug)]
pub struct Looked<'a> {
    /// When the listing of machines began.
    pub began: Duration,
    /// When the look ended.
    pub now: Duration,
    /// For how long the cloud's word may be outdated.
    pub lag: Duration,
    /// Every machine with this cluster's mark.
    pub machines: &'a [Machine],
    /// Machines that belong to no NodeClaim and about which nobody has to be asked, or was.
    pub orphans: BTreeSet<&'a ProviderId>,
}

/// What is remembered.
#[derive(Clone, Default, Debug)]
pub struct Vigil {
    released: Vec<(Duration, Released)>,
    orphaned: BTreeMap<ProviderId, Duration>,
}

impl Vigil {
    /// A finalizer is being taken off.
    pub fn release(&mut self, at: Duration, released: Released) {
        self.released.push((at, released));
    }

    /// A machine is being launched for a NodeClaim, which may be gone already: a watch that began anew from an old list has shown it again. What is there
    /// from now on is not what its finalizer had to wait for.
    pub fn launch(&mut self, uid: &ClaimUid) {
        self.released.retain(|(_, released)| !matches!(released, Released::Claim(_, token) if token == uid));
    }

    /// What a look shows to be broken. The same is said again as long as it is so.
    pub fn look(&mut self, look: &Looked<'_>) -> Vec<Broken> {
        let mut broken = twins(look.machines);
        self.released.retain(|(at, _)| look.now.saturating_sub(*at) < DOUBTED_FOR);
        let judged = self.released.iter().filter(|(at, _)| *at + look.lag < look.began);
        broken.extend(judged.filter_map(|(_, released)| released.judge(look.machines)));
        self.orphaned.retain(|id, _| look.orphans.contains(id));
        for id in &look.orphans {
            let since = *self.orphaned.entry((*id).clone()).or_insert(look.now);
            let time = look.now.saturating_sub(since);
            if time > ORPHANED_AT_MOST {
                let what = format!("machine {id} has had no NodeClaim for {} minutes", time.as_secs() / 60);
                broken.push(Broken { promise: Invariant::NoOrphan, object: format!("machine {id}"), what });
            }
        }
        broken
    }
}

impl Released {
    fn judge(&self, machines: &[Machine]) -> Option<Broken> {
        let is_meant = |machine: &&Machine| match self {
            Self::Claim(_, token) => machine.token.as_ref() == Some(token),
            Self::Node(_, id) => machine.id == *id,
        };
        let id = &machines.iter().find(is_meant)?.id;
        let (promise, object) = match self {
            Self::Claim(name, _) => (Invariant::FinalizerLast, format!("NodeClaim {name}")),
            Self::Node(name, _) => (Invariant::NodeFinalizerLast, format!("Node {name}")),
        };
        let what = format!("the finalizer of {object} was taken off, and the cloud shows machine {id}");
        Some(Broken { promise, object, what })
    }
}

/// Machines that run for one NodeClaim.
fn twins(machines: &[Machine]) -> Vec<Broken> {
    let mut of: BTreeMap<&ClaimUid, Vec<&Machine>> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| !machine.deleting) {
        if let Some(token) = &machine.token {
            of.entry(token).or_default().push(machine);
        }
    }
    of.retain(|_, machines| machines.len() > 1);
    let told = of.into_iter().map(|(token, machines)| {
        let name = machines[0].claim.as_ref().map_or_else(|| token.to_string(), ToString::to_string);
        let ids: Vec<_> = machines.iter().map(|machine| machine.id.as_str()).collect();
        let what = format!("NodeClaim {name} has the machines {}", ids.join(" and "));
        Broken { promise: Invariant::OneMachine, object: format!("NodeClaim {name}"), what }
    });
    told.collect()
}

#[cfg(test)]
#[path = "vigil_tests.rs"]
mod tests;
