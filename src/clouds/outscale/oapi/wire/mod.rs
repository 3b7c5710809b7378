//! Requests and answers of the actions that joiner uses, in the API's own names.
//!
//! Requests leave out what is not set, and refuse fields that they do not know, so that they can also be read by a server that is as strict
//! as the real one. Answers take anything: fields may be missing, and newer servers send some that no specification has.

#[macro_use]
mod shapes;

mod catalogue;
mod envelope;
mod gpus;
mod images;
mod networks;
mod quotas;
mod snapshots;
mod state;
mod tags;
mod user_data;
mod vms;

pub use catalogue::{
    Catalog, CatalogEntry, FlexibleGpuModel, ReadCatalog, ReadFlexibleGpuCatalog, ReadPublicCatalog, ReadUnitPrice,
    ReadVmTypes, TheCatalog, TheFlexibleGpuCatalog, TheUnitPrice, TheVmTypes, UnitPriceEntry, VmType, VmTypeFilters,
};
pub use envelope::{Done, ErrorAnswer, ErrorEntry, ResponseContext};
pub use gpus::{FlexibleGpu, FlexibleGpuFilters, ReadFlexibleGpus, TheFlexibleGpu, TheFlexibleGpus, UpdateFlexibleGpu};
pub use images::{Image, ImageDevice, ImageFilters, ReadImages, TheImages};
pub use networks::{
    Keypair, KeypairFilters, ReadKeypairs, ReadSecurityGroups, ReadSubnets, ReadSubregions, SecurityGroup,
    SecurityGroupFilters, Subnet, SubnetFilters, Subregion, SubregionFilters, TheKeypairs, TheSecurityGroups,
    TheSubnets, TheSubregions,
};
pub use quotas::{Quota, QuotaFilters, QuotasOfType, ReadQuotas, TheQuotas};
pub use snapshots::{ReadSnapshots, Snapshot, SnapshotFilters, TheSnapshots};
pub use state::State;
pub use tags::{CreateTags, DeleteTags, ReadTags, ResourceTag, Tag, TagFilters, TheTags};
pub use user_data::UserData;
pub use vms::{
    Bsu, BsuToCreate, ConsoleOutput, CreateVms, DeleteVms, Device, DeviceToCreate, GroupOfVm, LinkNic,
    MaintenanceEvent, Nic, NicToCreate, Placement, PrivateIp, ReadConsoleOutput, ReadVms, ReadVmsState, RebootVms,
    StopVms, TheVm, TheVmStates, TheVms, UpdateVm, Vm, VmFilters, VmStateFilters, VmStatus, VmTransition,
    VmTransitions,
};
