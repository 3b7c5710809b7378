//! What machines there are: those that wear the mark, those that were seen and have lost it, and now and then those that never got any.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::clouds::{Error, Listing};
use crate::core::facts::Machine;

use super::absence::SETTLES_WITHIN;
use super::cloud::{Outscale, read_failed};
use super::marks;
use super::mend::{self, Names};
use super::oapi::wire::{self, State, Vm};

/// How often machines without marks are looked for, by what they were told at their birth: that takes a list of all machines of the subnets.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

impl Outscale {
    pub(super) async fn listed(&self) -> Result<Listing, Error> {
        let filters = wire::VmFilters {
            tags: vec![format!("{}={}", marks::MANAGED_BY, self.settings.cluster)],
            vm_state_names: State::STANDING.to_vec(),
            ..wire::VmFilters::default()
        };
        let request = wire::ReadVms { filters: Some(filters), ..wire::ReadVms::default() };
        let mut vms = self.client.all(&request).await.map_err(read_failed)?;
        let there: BTreeSet<&str> = vms.iter().map(|vm| vm.vm_id.as_str()).collect();
        let missing: Vec<String> =
            self.memory().seen.iter().filter(|id| !there.contains(id.as_str())).cloned().collect();
        // A machine that has lost its mark is still there: it is reported, and not taken for gone.
        for ids in missing.chunks(100) {
            let known = self.by_id.ask(&self.client, ids.to_vec()).await.map_err(read_failed)?;
            for id in ids {
                match known.iter().find(|vm| vm.vm_id == *id && !vm.state.is_gone()) {
                    Some(vm) => {
                        tracing::debug!(vm = %vm.vm_id, tag = marks::MANAGED_BY, "a machine has lost its mark, or it is not listed yet");
                        vms.push(vm.clone());
                    }
                    None => drop(self.memory().seen.remove(id)),
                }
            }
        }
        vms.extend(self.swept(&vms).await);
        {
            let sightings = &mut self.memory().sightings;
            sightings.listed(vms.iter().map(|vm| vm.vm_id.as_str()));
            sightings.prune();
        }
        let (mut sound, names) = {
            let mut memory = self.memory();
            memory.nodes.retain(|id, _| vms.iter().any(|vm| vm.vm_id == *id));
            (std::mem::take(&mut memory.sound), Names::of(memory.nodes.clone(), &vms))
        };
        let owner = (self.owner(), &names);
        mend::mend((&self.client, self.settings.dry_run), &self.launches, owner, &mut vms, &mut sound).await;
        self.memory().sound = sound;
        let offer = self.offer_for(&vms).await;
        if !self.settings.dry_run {
            self.gpus.tend(&self.client, vms.iter().filter(|vm| self.is_marked(vm)), &offer.listed).await;
        }
        let notices = self.maintenance.planned(&self.client, &vms).await;
        let mut machines: Vec<Machine> = vms.iter().filter_map(|vm| self.read(vm, &offer, None)).collect();
        tracing::debug!(machines = machines.len(), "listed machines");
        machines.extend(self.memory().imagined.values().cloned());
        Ok(Listing { machines, complete: true, settles_within: SETTLES_WITHIN, notices })
    }

    /// Now and then, the machines that no list by tags shows and that were made for this cluster all the same: their launch was lost before the
    /// marks were written, and with it all that knew of it.
    async fn swept(&self, known: &[Vm]) -> Vec<Vm> {
        let subnets: BTreeSet<String> = {
            let memory = self.memory();
            let is_due = memory.swept.is_none_or(|swept| swept.elapsed() >= SWEEP_EVERY);
            memory.subnets.values().flatten().filter(|_| is_due).cloned().collect()
        };
        if subnets.is_empty() {
            return Vec::new();
        }
        let known = known.iter().map(|vm| vm.vm_id.as_str()).collect();
        match mend::sweep(&self.client, subnets.into_iter().collect(), self.owner(), &known).await {
            Ok(found) => {
                self.memory().swept = Some(Instant::now());
                found
            }
            Err(error) => {
                tracing::warn!(%error, "machines without marks not looked for, trying again");
                Vec::new()
            }
        }
    }
}
