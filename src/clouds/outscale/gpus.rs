//! Flexible GPUs. A machine of a fixed type that has some brings them along, and Outscale keeps them, and charges for them, when the machine is gone,
//! unless they are tied to it (`DeleteOnVmDeletion`). So they are tied as soon as they are seen, and no machine is taken down before that is confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::absence::SETTLES_WITHIN;
use super::oapi::wire::{self, FlexibleGpu, Vm};
use super::oapi::{Class, Client, Error as Failure};
use super::vm_type::VmType;
use crate::clouds::Error;

/// Most machines of one question.
const AT_ONCE: usize = 100;
/// How long a machine that is to go waits for a GPU that another action on it keeps from being changed.
const FREE_WITHIN: Duration = Duration::from_mins(5);

/// How many GPUs a machine of a type brings along; nothing when nobody knows yet.
pub(super) fn brought(vm_type: Option<&str>, listed: &[wire::VmType]) -> Option<usize> {
    let name = vm_type?;
    if VmType::parse(name).is_some() {
        return Some(0);
    }
    let kind = listed.iter().find(|kind| kind.vm_type_name == name)?;
    Some(kind.gpu.unwrap_or(0) as usize)
}

/// What this life knows of machines' GPUs. Nothing depends on it: what is not known is asked again.
#[derive(Default)]
pub(super) struct Gpus(Mutex<State>);

#[derive(Default)]
struct State {
    /// Machines all of whose GPUs are tied to them, or of whose GPUs nothing can be said or changed.
    settled: BTreeSet<String>,
    /// Since when machines that are to go wait for their GPUs.
    waiting: BTreeMap<String, Instant>,
}

impl Gpus {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A machine is gone.
    pub(super) fn forget(&self, vm_id: &str) {
        let mut state = self.state();
        state.settled.remove(vm_id);
        state.waiting.remove(vm_id);
    }

    /// Ties the GPUs of machines to them. What does not work is tried again at the next look.
    pub(super) async fn tend<'a>(&self, client: &Client, vms: impl Iterator<Item = &'a Vm>, listed: &[wire::VmType]) {
        let due: Vec<(&str, usize)> = {
            let state = self.state();
            let open = vms.filter(|vm| !vm.state.is_leaving() && !state.settled.contains(&vm.vm_id));
            let count = |vm: &'a Vm| Some((vm.vm_id.as_str(), brought(vm.vm_type.as_deref(), listed)?));
            open.filter_map(count).filter(|(_, count)| *count > 0).collect()
        };
        for some in due.chunks(AT_ONCE) {
            let gpus = match of(client, some.iter().map(|(vm_id, _)| (*vm_id).to_owned()).collect()).await {
                Ok(gpus) => gpus,
                Err(error) => {
                    tracing::warn!(%error, machines = some.len(), "flexible GPUs not looked for, trying again");
                    return;
                }
            };
            for (vm_id, count) in some {
                let own: Vec<&FlexibleGpu> = gpus.iter().filter(|gpu| gpu.vm_id.as_deref() == Some(*vm_id)).collect();
                match tied(client, &own).await {
                    Ok(()) if own.len() >= *count => drop(self.state().settled.insert((*vm_id).to_owned())),
                    // They may not be listed yet.
                    Ok(()) => tracing::debug!(vm = vm_id, gpus = own.len(), count, "not all flexible GPUs are listed"),
                    Err(error) => tracing::warn!(vm = vm_id, %error, "a flexible GPU does not go with its machine yet"),
                }
            }
        }
    }

    /// Whether a machine may be taken down: its GPUs are tied to it, or nothing can be done about them, which is said.
    pub(super) async fn let_go(&self, client: &Client, vm_id: &str, brought: Option<usize>) -> Result<bool, Error> {
        if brought == Some(0) || self.state().settled.contains(vm_id) {
            return Ok(true);
        }
        let since = *self.state().waiting.entry(vm_id.to_owned()).or_insert_with(Instant::now);
        let outcome = match of(client, vec![vm_id.to_owned()]).await {
            Ok(gpus) => tied(client, &gpus.iter().collect::<Vec<_>>()).await.map(|()| gpus.len()),
            Err(error) => Err(error),
        };
        match outcome {
            // Lists show new ones late.
            Ok(count) if count < brought.unwrap_or(0) && since.elapsed() < SETTLES_WITHIN => return Ok(false),
            Ok(_) => {}
            Err(error) if is_final(&error, since.elapsed()) => tracing::warn!(
                vm = vm_id,
                error = error.stable(),
                "a flexible GPU of the machine may stay behind, which is paid for until somebody deletes it; ReadFlexibleGpus shows it, \
                 DeleteFlexibleGpu deletes it"
            ),
            Err(error) => {
                return Err(Error::Temporary(format!(
                    "VM {vm_id} is not taken down before its flexible GPUs are sure to go with it: {}",
                    error.stable()
                )));
            }
        }
        self.state().settled.insert(vm_id.to_owned());
        Ok(true)
    }
}

/// Whether trying again is in vain. While keys are refused, no machine can be taken down either.
fn is_final(error: &Failure, after: Duration) -> bool {
    match error.class {
        Class::Denied | Class::Invalid | Class::NotFound => true,
        Class::Conflict => after >= FREE_WITHIN,
        _ => false,
    }
}

/// The GPUs of machines.
async fn of(client: &Client, vm_ids: Vec<String>) -> Result<Vec<FlexibleGpu>, Failure> {
    let filters = wire::FlexibleGpuFilters { vm_ids, ..wire::FlexibleGpuFilters::default() };
    Ok(client.call(&wire::ReadFlexibleGpus { filters: Some(filters) }).await?.flexible_gpus)
}

/// Ties GPUs to the machine that they are attached to: all of them, whatever becomes of one. Answers with the first failure.
async fn tied(client: &Client, gpus: &[&FlexibleGpu]) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for gpu in gpus.iter().filter(|gpu| gpu.delete_on_vm_deletion != Some(true)) {
        let request =
            wire::UpdateFlexibleGpu { delete_on_vm_deletion: Some(true), flexible_gpu_id: gpu.flexible_gpu_id.clone() };
        match client.call(&request).await {
            Ok(answer) if answer.flexible_gpu.as_ref().is_some_and(|gpu| gpu.delete_on_vm_deletion == Some(false)) => {
                let said = format!("{} is answered not to go with its VM", gpu.flexible_gpu_id);
                let error = Failure::silent("UpdateFlexibleGpu", Class::Invalid, said);
                outcome = outcome.and(Err(error));
            }
            Ok(_) => {
                let (vm, id, model) = (gpu.vm_id.as_deref(), &gpu.flexible_gpu_id, gpu.model_name.as_deref());
                tracing::info!(vm, gpu = %id, model, "a flexible GPU will be deleted with its machine");
            }
            // There is nothing that could stay behind.
            Err(error) if error.is_not_found() => {}
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

#[cfg(test)]
#[path = "gpus_tests.rs"]
mod tests;
