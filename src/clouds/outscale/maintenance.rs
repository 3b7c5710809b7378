//! What Outscale plans to do to machines: restarts and maintenance of servers, which it announces beside the state of VMs.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::clouds::Notice;

use super::machine::provider_id;
use super::oapi::wire::{self, MaintenanceEvent, Vm};
use super::oapi::{Class, Client};

/// Codes of what is announced; only VMs with one of them are read.
const CODES: [&str; 2] = ["system-reboot", "system-maintenance"];
/// When it is asked again after the keys were found not to allow it.
const DENIED_FOR: Duration = Duration::from_hours(1);

/// Asks for what is planned.
#[derive(Default)]
pub(super) struct Maintenance(Mutex<Option<Instant>>);

impl Maintenance {
    /// What is planned for these VMs. Where it cannot be read, nothing is known, and nothing depends on it.
    pub(super) async fn planned(&self, client: &Client, vms: &[Vm]) -> Vec<Notice> {
        let denied = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if vms.is_empty() || denied.is_some_and(|denied| denied.elapsed() < DENIED_FOR) {
            return Vec::new();
        }
        let filters = wire::VmStateFilters {
            maintenance_event_codes: CODES.map(str::to_owned).to_vec(),
            ..wire::VmStateFilters::default()
        };
        match client.all(&wire::ReadVmsState { filters: Some(filters), ..wire::ReadVmsState::default() }).await {
            Ok(states) => {
                let events: BTreeMap<&str, &[MaintenanceEvent]> =
                    states.iter().map(|state| (state.vm_id.as_str(), state.maintenance_events.as_slice())).collect();
                vms.iter()
                    .flat_map(|vm| notices(vm, events.get(vm.vm_id.as_str()).copied().unwrap_or_default()))
                    .collect()
            }
            Err(error) => {
                tracing::warn!(%error, "planned maintenance of machines not read");
                let refused = (error.class == Class::Denied).then(Instant::now);
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = refused;
                Vec::new()
            }
        }
    }
}

fn notices(vm: &Vm, events: &[MaintenanceEvent]) -> Vec<Notice> {
    let Some(machine) = provider_id(vm) else { return Vec::new() };
    let notice = |event: &MaintenanceEvent| {
        let code = event.code.as_deref().filter(|code| !code.is_empty()).unwrap_or("maintenance");
        let said = event.description.as_deref().filter(|said| !said.is_empty());
        let what = said.map_or_else(|| code.to_owned(), |said| format!("{code} ({said})"));
        Notice { machine: machine.clone(), what, from: event.not_before, until: event.not_after }
    };
    events.iter().map(notice).collect()
}

#[cfg(test)]
#[path = "maintenance_tests.rs"]
mod tests;
