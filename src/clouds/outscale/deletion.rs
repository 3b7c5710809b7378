//! How machines go: an order is given only for what is this cluster's by two proofs, and again with every look until the API says that the machine
//! is gone.

use std::time::Duration;

use tokio::time::Instant;

use crate::clouds::{Deletion, Error};
use crate::core::ids::{InstanceTypeName, ProviderId};

use super::absence::Absence;
use super::cloud::{Outscale, read_failed};
use super::gpus;
use super::machine::vm_id;
use super::marks;
use super::mend::{self, Names};
use super::oapi::wire::{self, State, Vm};

/// A machine that is still shutting down after this long is stopped by force: guests can hold it up for ever.
const SHUTS_DOWN_WITHIN: Duration = Duration::from_mins(5);
/// The API's code for a machine that is protected from deletion.
const PROTECTED: &str = "8018";

impl Outscale {
    pub(super) async fn taken_down(&self, id: &ProviderId) -> Result<Deletion, Error> {
        if self.memory().imagined.remove(id).is_some() {
            tracing::info!(machine = %id, "dry run: the machine that was not made is gone");
            return Ok(Deletion::Gone);
        }
        let Some(vm_id) = vm_id(id) else { return Ok(Deletion::Gone) };
        let Some(vm) = self.row(vm_id).await.map_err(read_failed)? else {
            return self.taken_down_unlisted(vm_id).await;
        };
        if vm.state.is_gone() {
            self.forget(vm_id);
            return Ok(Deletion::Gone);
        }
        if let Err(unproven) = self.proven(&vm) {
            // Whoever it belongs to, it is going.
            return if vm.state.is_leaving() && !self.is_given_away(&vm) {
                Ok(Deletion::InProgress)
            } else {
                Err(unproven)
            };
        }
        if self.settings.dry_run {
            return self.rehearsed_down(&vm).await;
        }
        self.order_down(&vm).await
    }

    /// Takes a machine down that no list shows, perhaps not yet. One that this life launched is joiner's, whatever lists show. Of any other it is not
    /// known whose it is: it is waited for as long as lists may be late.
    async fn taken_down_unlisted(&self, vm_id: &str) -> Result<Deletion, Error> {
        let absence = self.memory().sightings.absence_of_doomed(vm_id);
        let launched = match absence {
            Absence::Gone => {
                self.forget(vm_id);
                // No list shows it, which is not the same as a list that shows that it has ended.
                return Ok(Deletion::Missing);
            }
            Absence::Unsettled(launched) => launched,
        };
        let vm_type =
            launched.as_ref().and_then(|machine| machine.instance_type.as_ref()).map(InstanceTypeName::as_str);
        if launched.is_some() && self.gpus_go_with(vm_id, vm_type).await? {
            tracing::info!(vm = vm_id, "deleting a machine that is not listed yet, as its NodeClaim is going or gone");
            let state = self.ordered_down(vm_id).await?;
            if state.is_some_and(State::is_gone) {
                self.forget(vm_id);
                return Ok(Deletion::Gone);
            }
        }
        Ok(Deletion::InProgress)
    }

    /// Whether a machine wears another cluster's name.
    fn is_given_away(&self, vm: &Vm) -> bool {
        marks::tag(vm, marks::MANAGED_BY).is_some_and(|other| other != self.settings.cluster)
    }

    /// Whether a machine is joiner's to restart or to take down. The NodeClaim's word is one proof, and anybody may have written it: the machine
    /// itself must say so, too.
    pub(super) fn proven(&self, vm: &Vm) -> Result<(), Error> {
        let (cluster, vm_id) = (&self.settings.cluster, &vm.vm_id);
        let message = if let Some(other) = marks::tag(vm, marks::MANAGED_BY).filter(|_| self.is_given_away(vm)) {
            format!("VM {vm_id} belongs to cluster {other} by its tag {}; it is left alone", marks::MANAGED_BY)
        } else if self.is_marked(vm) || mend::wanted(vm, self.owner(), &Names::default()).is_some() {
            return Ok(());
        } else {
            let mark = marks::cluster_id_tag(&self.settings.cluster_id);
            format!(
                "VM {vm_id} does not say that it is this cluster's, neither by its tags nor by what it was told at its birth; it is left alone. \
                 If it is this NodeClaim's machine, give it the tags {}={cluster} and {mark}=owned; if not, take its ID out of status.providerID",
                marks::MANAGED_BY
            )
        };
        Err(Error::Invalid { field: "status.providerID".to_owned(), message })
    }

    /// Says once of a machine that it would be deleted, where the API would do it.
    async fn rehearsed_down(&self, vm: &Vm) -> Result<Deletion, Error> {
        if self.memory().leaving.contains_key(&vm.vm_id) {
            return Ok(Deletion::InProgress);
        }
        self.client.rehearse(&wire::DeleteVms { vm_ids: vec![vm.vm_id.clone()] }).await.map_err(Error::from)?;
        self.memory().leaving.insert(vm.vm_id.clone(), Instant::now());
        tracing::info!(
            vm = %vm.vm_id, vm_type = vm.vm_type, nodeclaim = mark(vm, marks::NODECLAIM), nodepool = mark(vm, marks::NODEPOOL),
            "dry run: would delete the machine, as its NodeClaim is going or gone"
        );
        Ok(Deletion::InProgress)
    }

    async fn order_down(&self, vm: &Vm) -> Result<Deletion, Error> {
        let ids = vec![vm.vm_id.clone()];
        let is_news = !self.memory().leaving.contains_key(&vm.vm_id);
        if is_news && vm.state != State::ShuttingDown {
            let made = vm.creation_date.map(tracing::field::display);
            tracing::info!(
                vm = %vm.vm_id, nodeclaim = mark(vm, marks::NODECLAIM), uid = marks::token(vm).unwrap_or_else(|| mark(vm, marks::NODECLAIM_UID)),
                nodepool = mark(vm, marks::NODEPOOL), state = vm.state.as_str(), made, "deleting a machine, as its NodeClaim is going or gone"
            );
            let volumes = volumes_left(vm).join(", ");
            if !volumes.is_empty() {
                tracing::warn!(
                    vm = %vm.vm_id, volumes, "volumes stay behind, as deleteOnVmDeletion is false: those that no PersistentVolume names are paid for until somebody deletes them"
                );
            }
        }
        let since = *self.memory().leaving.entry(vm.vm_id.clone()).or_insert_with(Instant::now);
        let stuck =
            vm.state == State::Stopping || (vm.state == State::ShuttingDown && since.elapsed() >= SHUTS_DOWN_WITHIN);
        if stuck {
            tracing::warn!(vm = %vm.vm_id, state = vm.state.as_str(), "the machine does not shut down, stopping it by force");
            let force = wire::StopVms { vm_ids: ids.clone(), force_stop: Some(true) };
            if let Err(error) = self.client.call(&force).await {
                tracing::warn!(vm = %vm.vm_id, %error, "not stopped by force");
            }
            self.memory().leaving.insert(vm.vm_id.clone(), Instant::now());
        }
        if vm.state == State::ShuttingDown || !self.gpus_go_with(&vm.vm_id, vm.vm_type.as_deref()).await? {
            return Ok(Deletion::InProgress);
        }
        match self.ordered_down(&vm.vm_id).await? {
            Some(state) if state.is_gone() => {}
            // Listed a moment ago, and unknown to the order.
            None if self.memory().sightings.absence_of_doomed(&vm.vm_id) == Absence::Gone => {
                return Ok(Deletion::Missing);
            }
            // A new machine may not be known everywhere.
            Some(_) | None => return Ok(Deletion::InProgress),
        }
        self.forget(&vm.vm_id);
        Ok(Deletion::Gone)
    }

    /// Whether a machine's flexible GPUs are seen to, so that it may go. No deletion waits for the list of types.
    pub(super) async fn gpus_go_with(&self, vm_id: &str, vm_type: Option<&str>) -> Result<bool, Error> {
        let brought = gpus::brought(vm_type, &self.market.known().listed);
        self.gpus.let_go(&self.client, vm_id, brought).await
    }

    /// Sends the deletion of a VM, and takes its protection from deletion off where that is in the way. Answers with its state; nothing when the API
    /// knows no such VM.
    async fn ordered_down(&self, vm_id: &str) -> Result<Option<State>, Error> {
        let delete = wire::DeleteVms { vm_ids: vec![vm_id.to_owned()] };
        let mut answer = self.client.call(&delete).await;
        if matches!(&answer, Err(error) if error.has_code(PROTECTED)) {
            tracing::info!(vm = vm_id, "taking the protection from deletion off, as its NodeClaim is deleted");
            let open = wire::UpdateVm {
                vm_id: vm_id.to_owned(),
                deletion_protection: Some(false),
                ..wire::UpdateVm::default()
            };
            self.client.call(&open).await.map_err(Error::from)?;
            answer = self.client.call(&delete).await;
        }
        match answer {
            Ok(answer) => {
                let own = answer.vms.iter().find(|own| own.vm_id == vm_id);
                Ok(Some(own.map_or(State::ShuttingDown, |own| own.current_state)))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn forget(&self, vm_id: &str) {
        let mut memory = self.memory();
        memory.seen.remove(vm_id);
        memory.leaving.remove(vm_id);
        memory.sightings.forget(vm_id);
        self.gpus.forget(vm_id);
    }
}

/// The volumes that are there when the machine is not any more.
fn volumes_left(vm: &Vm) -> Vec<&str> {
    let volumes = vm.block_device_mappings.iter().filter_map(|device| device.bsu.as_ref());
    volumes.filter(|bsu| bsu.delete_on_vm_deletion == Some(false)).filter_map(|bsu| bsu.volume_id.as_deref()).collect()
}

/// What a mark says, for people.
fn mark<'a>(vm: &'a Vm, key: &str) -> &'a str {
    marks::tag(vm, key).unwrap_or("unknown")
}

#[cfg(test)]
#[path = "deletion_tests.rs"]
mod tests;
