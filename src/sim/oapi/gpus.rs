//! Flexible GPUs: VMs of types that have some bring them along, and leave them behind unless they are tied to them.

use jiff::Timestamp;

use super::filters::{check_ids, passes};
use super::load::Fault;
use super::machines::Machines;
use super::refusal::Refusal;
use super::vms::id;
use super::world::World;
use crate::clouds::outscale::oapi::wire::{
    FlexibleGpu, ReadFlexibleGpus, TheFlexibleGpu, TheFlexibleGpus, UpdateFlexibleGpu, Vm,
};

/// A flexible GPU, with what only the cloud knows.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    /// As callers see it.
    pub(super) row: FlexibleGpu,
    /// From when on it is in what is read.
    listed_from: Timestamp,
}

/// Allocates the GPUs of a VM's type to the account, and attaches them to it.
pub(super) fn bring(world: &mut World, vm: &Vm) {
    let kind = world.account.vm_types.iter().find(|kind| vm.vm_type.as_deref() == Some(kind.vm_type_name.as_str()));
    let Some(count) = kind.and_then(|kind| kind.gpu) else { return };
    let model = world.account.gpus.first().cloned().unwrap_or_default();
    for _ in 0..count {
        let row = FlexibleGpu {
            delete_on_vm_deletion: Some(false),
            flexible_gpu_id: id(world, "fgpu"),
            generation: model.generations.first().cloned(),
            model_name: Some(model.model_name.clone()),
            state: Some("attached".to_owned()),
            subregion_name: vm.placement.as_ref().and_then(|placement| placement.subregion_name.clone()),
            tags: Vec::new(),
            vm_id: Some(vm.vm_id.clone()),
        };
        let listed_from = world.later(world.conduct.lists_after);
        world.machines.gpus.insert(row.flexible_gpu_id.clone(), Gpu { row, listed_from });
    }
}

impl Machines {
    /// A VM is gone: its GPUs go with it, or stay with the account.
    pub(super) fn leave_gpus_of(&mut self, vm_id: &str) {
        self.gpus.retain(|_, Gpu { row, .. }| {
            let is_its = row.vm_id.as_deref() == Some(vm_id);
            if is_its {
                (row.vm_id, row.state) = (None, Some("allocated".to_owned()));
            }
            !is_its || row.delete_on_vm_deletion != Some(true)
        });
    }
}

pub(super) fn read(world: &mut World, request: &ReadFlexibleGpus) -> Result<TheFlexibleGpus, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.flexible_gpu_ids, "fgpu-")?;
    check_ids(&by.vm_ids, "i-")?;
    let wanted = world.machines.gpus.values().filter(|Gpu { row, .. }| {
        passes(&by.flexible_gpu_ids, Some(&row.flexible_gpu_id))
            && passes(&by.states, row.state.as_deref())
            && passes(&by.vm_ids, row.vm_id.as_deref())
    });
    let (listed, late): (Vec<&Gpu>, Vec<&Gpu>) = wanted.partition(|gpu| gpu.listed_from <= world.now);
    if !late.is_empty() {
        world.aside.push(Fault::ListedLate);
    }
    let flexible_gpus = listed.into_iter().map(|gpu| gpu.row.clone()).collect();
    Ok(TheFlexibleGpus { flexible_gpus, ..TheFlexibleGpus::default() })
}

pub(super) fn update(world: &mut World, request: &UpdateFlexibleGpu) -> Result<TheFlexibleGpu, Refusal> {
    if request.flexible_gpu_id.is_empty() {
        return Err(Refusal::required("FlexibleGpuId"));
    }
    check_ids(std::slice::from_ref(&request.flexible_gpu_id), "fgpu-")?;
    // Which code the real API has for this is not known outside; those of missing resources begin with a five.
    let missing = || Refusal::missing("5000", &request.flexible_gpu_id);
    let Gpu { row, .. } = world.machines.gpus.get_mut(&request.flexible_gpu_id).ok_or_else(missing)?;
    if let Some(tied) = request.delete_on_vm_deletion {
        row.delete_on_vm_deletion = Some(tied);
    }
    Ok(TheFlexibleGpu { flexible_gpu: Some(row.clone()), ..TheFlexibleGpu::default() })
}
