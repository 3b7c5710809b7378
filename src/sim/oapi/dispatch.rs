//! From the name of an action to what it does.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::Refusal;
use super::world::World;
use super::{gpus, lists, tags, vms};
use crate::clouds::outscale::oapi::{Action, wire};

/// What is known of an action before it is called.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) is_signed: bool,
    /// What it does, given its parameters.
    pub(super) run: fn(&mut World, Value) -> Result<Value, Refusal>,
}

macro_rules! routes {
    ($($request:ident => $handler:path;)*) => {
        /// The actions that this fake has.
        const ROUTES: &[Known] = &[$(Known {
            name: <wire::$request as Action>::NAME,
            is_signed: <wire::$request as Action>::SIGNED,
            run: |world, parameters| {
                let request: wire::$request = read(parameters)?;
                written(&$handler(world, &request)?)
            },
        },)*];
    };
}

routes! {
    CreateVms => vms::create;
    ReadVms => vms::read;
    ReadVmsState => vms::states;
    DeleteVms => vms::delete;
    StopVms => vms::stop;
    RebootVms => vms::reboot;
    UpdateVm => vms::update;
    ReadFlexibleGpus => gpus::read;
    UpdateFlexibleGpu => gpus::update;
    ReadConsoleOutput => vms::console;
    CreateTags => tags::create;
    DeleteTags => tags::delete;
    ReadTags => tags::read;
    ReadImages => lists::images;
    ReadSnapshots => lists::snapshots;
    ReadSubnets => lists::subnets;
    ReadSecurityGroups => lists::groups;
    ReadSubregions => lists::subregions;
    ReadKeypairs => lists::keypairs;
    ReadQuotas => lists::quotas;
    ReadCatalog => lists::catalog;
    ReadPublicCatalog => lists::public_catalog;
    ReadUnitPrice => lists::unit_price;
    ReadVmTypes => lists::vm_types;
    ReadFlexibleGpuCatalog => lists::gpus;
}

/// The action of a path, whether it stands below `/api/v1` or not.
pub(super) fn of_path(path: &str) -> Option<&'static Known> {
    let name = path.rsplit('/').next()?;
    ROUTES.iter().find(|known| known.name == name)
}

/// The names of the actions that need keys, and that a policy can deny.
pub fn signed_actions() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().filter(|known| known.is_signed).map(|known| known.name)
}

fn read<T: DeserializeOwned>(parameters: Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(parameters).map_err(|error| {
        let (place, said) = (error.path().to_string(), error.inner().to_string());
        // The parser lists all that would be known; the name of what is not is enough.
        match said.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
            Some((name, _)) => Refusal::unknown_parameter(format!("{name} is no parameter of this (at {place})")),
            None => Refusal::new(400, "4110", "InvalidParameterValue", format!("{place} is not of the right type")),
        }
    })
}

fn written<T: Serialize>(answer: &T) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|_| Refusal::internal())
}
