//! A VM read as a machine.

use std::sync::Arc;

use crate::api::classes::outscale::{HASH, HASH_VERSION_KEY, OutscaleNodeClassSpec, USER_DATA_HASH};
use crate::core::facts::Machine;
use crate::core::ids::{ClaimName, ClaimUid, InstanceTypeName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;

use super::catalogue::{capacity, overhead, own_labels, region};
use super::learnt::Learnt;
use super::marks;
use super::mend;
use super::oapi::wire::{self, Vm};
use super::vm_type::VmType;

/// What provider IDs begin with, as the cloud controller manager writes them.
const PREFIX: &str = "aws://";
/// What they may begin with as well: its parser takes both.
const OTHER_PREFIX: &str = "osc://";

/// The provider ID of a VM: `aws:///eu-west-2a/i-0a1b2c3d`.
pub(super) fn provider_id(vm: &Vm) -> Option<ProviderId> {
    let zone = vm.placement.as_ref().and_then(|placement| placement.subregion_name.as_deref())?;
    is_vm_id(&vm.vm_id).then(|| ProviderId::from(format!("{PREFIX}/{zone}/{}", vm.vm_id)))
}

/// The VM in a provider ID; nothing when the ID is another cloud's.
pub(super) fn vm_id(id: &ProviderId) -> Option<&str> {
    let rest = id.as_str().strip_prefix(PREFIX).or_else(|| id.as_str().strip_prefix(OTHER_PREFIX))?;
    rest.rsplit('/').next().filter(|last| is_vm_id(last))
}

/// Whether this is a VM's ID. The API refuses calls with IDs that it cannot read, and with them all that was asked beside.
fn is_vm_id(text: &str) -> bool {
    text.strip_prefix("i-")
        .is_some_and(|rest| (8..=17).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What must be known besides a VM to say what its node will have.
#[derive(Clone, Copy)]
pub(super) struct Yardstick<'a> {
    /// The API's list of fixed types.
    pub(super) listed: &'a [wire::VmType],
    /// What a hypervisor keeps of a machine's memory, in thousandths of it.
    pub(super) memory_overhead: i64,
    /// What machines were seen to have.
    pub(super) learnt: &'a Learnt,
    /// The NodeClass, where it is at hand.
    pub(super) spec: Option<&'a OutscaleNodeClassSpec>,
}

/// A VM as a machine; nothing when it lacks an identity. A type that nobody knows is no reason to overlook it.
pub(super) fn machine(vm: &Vm, yardstick: Yardstick<'_>) -> Option<Machine> {
    let id = provider_id(vm)?;
    let zone = vm.placement.as_ref().and_then(|placement| placement.subregion_name.as_deref()).unwrap_or_default();
    let name = vm.vm_type.as_deref().unwrap_or_default();
    let kind = VmType::parse(name)
        .or_else(|| yardstick.listed.iter().find(|row| row.vm_type_name == name).and_then(VmType::fixed));
    let mut set: Labels = [
        (labels::ZONE, zone),
        (labels::REGION, region(zone)),
        (labels::CAPACITY_TYPE, labels::ON_DEMAND),
        (labels::ARCH, "amd64"),
        (labels::OS, "linux"),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .into();
    let mut room = (Resources::new(), Resources::new());
    if let Some(kind) = &kind {
        set.insert(labels::INSTANCE_TYPE.into(), kind.name.as_str().into());
        set.extend(own_labels(kind).into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))));
        let usual = OutscaleNodeClassSpec::default();
        let spec = yardstick.spec.unwrap_or(&usual);
        let seen = yardstick.learnt.memory(kind, vm.image_id.as_deref().unwrap_or_default());
        let whole = capacity(kind, spec, seen, yardstick.memory_overhead);
        let mut left = whole.clone();
        left.subtract(&overhead(kind, spec));
        let kept = whole.iter().map(|(name, _)| (name.clone(), left.get(name).max(0))).collect();
        room = (whole, kept);
    } else if !name.is_empty() {
        set.insert(labels::INSTANCE_TYPE.into(), name.into());
    }
    let tag = |key: &str| marks::tag(vm, key).filter(|value| !value.is_empty());
    let token = marks::token(vm).or_else(|| tag(marks::NODECLAIM_UID));
    Some(Machine {
        id,
        token: token.map(ClaimUid::from),
        claim: tag(marks::NODECLAIM).map(ClaimName::from),
        created: vm.creation_date,
        deleting: vm.state.is_leaving(),
        instance_type: kind
            .map(|kind| InstanceTypeName::from(kind.name.as_str()))
            .or_else(|| vm.vm_type.as_deref().map(InstanceTypeName::from)),
        labels: set,
        annotations: annotations(vm),
        image: vm.image_id.as_deref().map(Arc::from),
        capacity: room.0,
        allocatable: room.1,
    })
}

/// What the NodeClaim is to remember of its launch, by which drift is seen. A machine without these tags knows it from its birth.
fn annotations(vm: &Vm) -> Labels {
    let keys = [marks::CLASS_HASH, marks::USER_DATA_HASH];
    let is_tagged = keys.iter().all(|key| marks::tag(vm, key).is_some());
    let told = if is_tagged { None } else { mend::told(vm) };
    let [class, user_data] =
        keys.map(|key| marks::tag(vm, key).or_else(|| told.as_ref()?.marks.get(key).map(String::as_str)));
    let mut all = Labels::new();
    if let Some((version, hash)) = class.and_then(|mark| mark.split_once('-')) {
        all.insert(HASH.into(), hash.into());
        all.insert(HASH_VERSION_KEY.into(), version.into());
    }
    if let Some(hash) = user_data {
        all.insert(USER_DATA_HASH.into(), hash.into());
    }
    all
}
