//! What it means that a VM is in no list: lists show new machines late, so that the absence of one that was just made says nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::facts::Machine;

/// Machines younger than this may be missing in a list. The API promises nothing; seconds have been seen.
pub(super) const SETTLES_WITHIN: Duration = Duration::from_mins(1);
/// What nobody has listed or asked for within this long is not remembered.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);

/// What this life knows of the VMs that it made, saw in lists, or was asked for.
#[derive(Default)]
pub(super) struct Sightings(BTreeMap<String, Sighting>);

struct Sighting {
    /// When it was made, listed or asked for first.
    since: Instant,
    /// When it was so last.
    last: Instant,
    /// Whether a list has shown it.
    is_listed: bool,
    /// Since when it is to be taken down and in no list.
    doomed: Option<Instant>,
    /// The machine, where this life has launched it: proof enough whose it is, before any list shows its marks.
    launched: Option<Machine>,
}

/// What the absence of a VM in a list means.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Absence {
    /// There is no such VM.
    Gone,
    /// It may not be listed yet. With the machine, if this life has launched it.
    Unsettled(Option<Box<Machine>>),
}

impl Sightings {
    fn of(&mut self, vm_id: &str) -> &mut Sighting {
        let now = Instant::now();
        let new = || Sighting { since: now, last: now, is_listed: false, doomed: None, launched: None };
        let sighting = self.0.entry(vm_id.to_owned()).or_insert_with(new);
        sighting.last = now;
        sighting
    }

    /// This life has launched a machine, or has found that an earlier attempt did.
    pub(super) fn launched(&mut self, vm_id: &str, machine: &Machine) {
        self.of(vm_id).launched.get_or_insert_with(|| machine.clone());
    }

    /// Lists show these.
    pub(super) fn listed<'a>(&mut self, vm_ids: impl Iterator<Item = &'a str>) {
        for vm_id in vm_ids {
            let sighting = self.of(vm_id);
            (sighting.is_listed, sighting.doomed) = (true, None);
        }
    }

    /// Forgets what is long past.
    pub(super) fn prune(&mut self) {
        self.0.retain(|_, sighting| sighting.last.elapsed() < REMEMBERED_FOR);
    }

    /// What it means that no list shows a VM that is asked for.
    pub(super) fn absence(&mut self, vm_id: &str) -> Absence {
        let sighting = self.of(vm_id);
        if sighting.since.elapsed() >= SETTLES_WITHIN {
            return Absence::Gone;
        }
        Absence::Unsettled(sighting.launched.clone().map(Box::new))
    }

    /// What it means that no list shows a VM that is to be taken down. One that this life launched and that was never listed has its time from the
    /// order on.
    pub(super) fn absence_of_doomed(&mut self, vm_id: &str) -> Absence {
        let sighting = self.of(vm_id);
        let doomed = *sighting.doomed.get_or_insert_with(Instant::now);
        let is_known = sighting.is_listed || sighting.launched.is_none() || doomed.elapsed() >= SETTLES_WITHIN;
        if sighting.since.elapsed() >= SETTLES_WITHIN && is_known {
            return Absence::Gone;
        }
        Absence::Unsettled(sighting.launched.clone().map(Box::new))
    }

    /// A VM is gone.
    pub(super) fn forget(&mut self, vm_id: &str) {
        self.0.remove(vm_id);
    }
}

#[cfg(test)]
#[path = "absence_tests.rs"]
mod tests;
