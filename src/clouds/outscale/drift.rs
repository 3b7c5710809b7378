//! In what machines differ from what their NodeClass says and finds now.

use std::collections::BTreeSet;

use crate::api::classes::outscale::{HASH, HASH_VERSION, HASH_VERSION_KEY, OutscaleNodeClass, USER_DATA_HASH};
use crate::clouds::Error;
use crate::core::facts::{Claim, NodeClass, Status, find_condition};
use crate::core::labels;

use super::cloud::{Outscale, read_failed};
use super::machine::vm_id;
use super::marks;
use super::oapi::wire::Vm;
use super::vm_type::VmType;

impl Outscale {
    /// Why a machine is not as its class says, as far as it is known. A class that is not ready says nothing about machines.
    pub(super) async fn difference(&self, claim: &Claim, class: &NodeClass) -> Result<Option<String>, Error> {
        let body = self.body(class)?;
        let is_ready = find_condition(&class.conditions, "Ready").is_some_and(|ready| ready.status == Status::True);
        let (Some(status), true) = (&body.status, is_ready) else { return Ok(None) };
        let note = |key: &str| claim.annotations.get(key).map(|value| &**value);
        if note(HASH_VERSION_KEY) == Some(HASH_VERSION) && note(HASH).is_some_and(|hash| hash != body.spec.hash()) {
            return Ok(Some("NodeClassDrift".to_owned()));
        }
        let user_data = note(USER_DATA_HASH).zip(status.user_data_hash.as_deref());
        if user_data.is_some_and(|(launched, wanted)| launched != wanted) {
            return Ok(Some("UserDataDrift".to_owned()));
        }
        let Some(vm_id) = claim.provider_id.as_ref().and_then(vm_id) else { return Ok(None) };
        let Some(vm) = self.vm(vm_id).await.map_err(read_failed)?.filter(|vm| !vm.state.is_leaving()) else {
            return Ok(None);
        };
        Ok(unlike(&vm, claim, &body).map(str::to_owned))
    }
}

/// In what a VM differs from what its class finds now.
fn unlike(vm: &Vm, claim: &Claim, class: &OutscaleNodeClass) -> Option<&'static str> {
    let status = class.status.as_ref()?;
    let is_in = |id: &Option<String>, mut all: Box<dyn Iterator<Item = &str> + '_>| {
        id.as_deref().is_none_or(|id| all.any(|other| other == id))
    };
    // Of all images that match the newest is the class', and what machines are launched with.
    if !is_in(&vm.image_id, Box::new(status.images.iter().take(1).map(|image| image.id.as_str()))) {
        return Some("ImageDrift");
    }
    if !is_in(&vm.subnet_id, Box::new(status.subnets.iter().map(|subnet| subnet.id.as_str()))) {
        return Some("SubnetDrift");
    }
    let wanted: BTreeSet<&str> = status.security_groups.iter().map(|group| group.id.as_str()).collect();
    let there: BTreeSet<&str> = vm.security_groups.iter().map(|group| group.security_group_id.as_str()).collect();
    if wanted != there {
        return Some("SecurityGroupDrift");
    }
    let launched = claim.labels.get(labels::INSTANCE_TYPE);
    if let (Some(launched), Some(now)) = (launched, &vm.vm_type)
        && !VmType::same(launched, now)
    {
        return Some("VmTypeDrift");
    }
    let has = |(key, value): (&String, &String)| marks::tag(vm, key) == Some(value);
    (!class.spec.tags.iter().all(has)).then_some("TagDrift")
}

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;
