//! VMs: making, reading, changing and deleting them.

use jiff::Timestamp;

use super::envelope::ResponseContext;
use super::shapes::moment;
use super::state::State;
use super::tags::ResourceTag;
use super::user_data::UserData;

requests! {
    /// Makes VMs. There is no field for tags: they go into the user data or follow by [`super::CreateTags`].
    CreateVms {
        /// Devices beside, or in place of, those of the image.
        block_device_mappings: Vec<DeviceToCreate>,
        /// `legacy` or `uefi`.
        boot_mode: Option<String>,
        /// Whether it starts at once; true unless said.
        boot_on_creation: Option<bool>,
        /// Whether its volumes have a path of their own.
        bsu_optimized: Option<bool>,
        /// Asked twice with the same token, the API makes one VM.
        client_token: Option<String>,
        /// Whether it cannot be deleted.
        deletion_protection: Option<bool>,
        /// The image; required.
        image_id: String,
        /// The keypair for SSH.
        keypair_name: Option<String>,
        /// The most VMs.
        max_vms_count: Option<u32>,
        /// The fewest VMs.
        min_vms_count: Option<u32>,
        /// Whether it may run VMs itself.
        nested_virtualization: Option<bool>,
        /// Interfaces, in place of a subnet and groups.
        nics: Vec<NicToCreate>,
        /// `medium`, `high` or `highest`; without effect where the type's name says it.
        performance: Option<String>,
        /// Where it runs.
        placement: Option<Placement>,
        /// Its addresses.
        private_ips: Vec<String>,
        /// Its security groups.
        security_group_ids: Vec<String>,
        /// The same by name.
        security_groups: Vec<String>,
        /// Its subnet.
        subnet_id: Option<String>,
        /// Whether it has a virtual TPM.
        tpm_enabled: Option<bool>,
        /// What it is told.
        user_data: Option<UserData>,
        /// What it does when it shuts itself down: `stop`, `restart` or `terminate`.
        vm_initiated_shutdown_behavior: Option<String>,
        /// Its type.
        vm_type: Option<String>,
    }

    /// A device to make.
    DeviceToCreate {
        /// What it is made of.
        bsu: Option<BsuToCreate>,
        /// Its name; `/dev/sda1` is the root.
        device_name: Option<String>,
        /// Leaves out a device of the image.
        no_device: Option<String>,
        /// `ephemeralN`.
        virtual_device_name: Option<String>,
    }

    /// An interface to make, or to take.
    NicToCreate {
        /// Whether it goes with its VM.
        delete_on_vm_deletion: Option<bool>,
        /// For people.
        description: Option<String>,
        /// 0 is the first.
        device_number: Option<u32>,
        /// One that exists.
        nic_id: Option<String>,
        /// How many addresses beside the first.
        secondary_private_ip_count: Option<u32>,
        /// Its security groups.
        security_group_ids: Vec<String>,
        /// Its subnet.
        subnet_id: Option<String>,
    }

    /// Lists VMs, also terminated ones for some minutes.
    ReadVms {
        /// Which.
        filters: Option<VmFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which VMs: any of each list, an empty one all, and every list that is not empty.
    VmFilters {
        /// Tokens that they were made with.
        client_tokens: Vec<String>,
        /// Images.
        image_ids: Vec<String>,
        /// Keypairs.
        keypair_names: Vec<String>,
        /// Nets.
        net_ids: Vec<String>,
        /// Private addresses.
        private_ips: Vec<String>,
        /// Security groups.
        security_group_ids: Vec<String>,
        /// Subnets.
        subnet_ids: Vec<String>,
        /// Subregions.
        subregion_names: Vec<String>,
        /// Keys of tags.
        tag_keys: Vec<String>,
        /// Values of tags.
        tag_values: Vec<String>,
        /// Tags, as `key=value`.
        tags: Vec<String>,
        /// `default`, `dedicated`.
        tenancies: Vec<String>,
        /// IDs; those of other accounts are left out, and damaged ones refuse the call.
        vm_ids: Vec<String>,
        /// States. The name `VmStates` is of [`VmStateFilters`] alone.
        vm_state_names: Vec<State>,
        /// Types.
        vm_types: Vec<String>,
    }

    /// Lists the states of VMs, with what the cloud plans to do to them.
    ReadVmsState {
        /// Whether also VMs that do not run are listed.
        all_vms: Option<bool>,
        /// Which.
        filters: Option<VmStateFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which VMs; each list means any of it, an empty one all.
    VmStateFilters {
        /// Codes of maintenance events.
        maintenance_event_codes: Vec<String>,
        /// Subregions.
        subregion_names: Vec<String>,
        /// IDs.
        vm_ids: Vec<String>,
        /// States.
        vm_states: Vec<State>,
    }

    /// Deletes VMs. One unknown ID refuses the whole call.
    DeleteVms {
        /// IDs.
        vm_ids: Vec<String>,
    }

    /// Stops VMs.
    StopVms {
        /// Whether they are not asked to shut down.
        force_stop: Option<bool>,
        /// IDs.
        vm_ids: Vec<String>,
    }

    /// Restarts VMs in place.
    RebootVms {
        /// IDs.
        vm_ids: Vec<String>,
    }

    /// Changes a VM. What is not set stays.
    UpdateVm {
        /// Whether it cannot be deleted.
        deletion_protection: Option<bool>,
        /// Its security groups, all of them.
        security_group_ids: Vec<String>,
        /// ID; required.
        vm_id: String,
        /// Its type, while it is stopped.
        vm_type: Option<String>,
    }

    /// Reads what a VM wrote to its console.
    ReadConsoleOutput {
        /// ID; required.
        vm_id: String,
    }
}

answers! {
    /// VMs.
    TheVms {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The VMs.
        vms: Vec<Vm>,
    }

    /// A changed VM.
    TheVm {
        /// The request's ID.
        response_context: ResponseContext,
        /// The VM.
        vm: Option<Vm>,
    }

    /// A VM. One that is terminated has lost its tags, addresses, interfaces and groups.
    Vm {
        /// `i386`, `x86_64`.
        architecture: Option<String>,
        /// Its devices.
        block_device_mappings: Vec<Device>,
        /// `legacy`, `uefi`.
        boot_mode: Option<String>,
        /// Whether its volumes have a path of their own.
        bsu_optimized: Option<bool>,
        /// The token that it was made with.
        client_token: Option<String>,
        /// When it was made.
        #[serde(deserialize_with = "moment")]
        creation_date: Option<Timestamp>,
        /// Whether it cannot be deleted.
        deletion_protection: Option<bool>,
        /// `xen`.
        hypervisor: Option<String>,
        /// Its image.
        image_id: Option<String>,
        /// Its keypair.
        keypair_name: Option<String>,
        /// Its place among those that were made with it.
        launch_number: Option<u32>,
        /// Its Net.
        net_id: Option<String>,
        /// Its interfaces.
        nics: Vec<Nic>,
        /// `medium`, `high` or `highest`.
        performance: Option<String>,
        /// Where it runs.
        placement: Option<Placement>,
        /// `ip-10-0-1-88.eu-west-2.compute.internal`.
        private_dns_name: Option<String>,
        /// Its first private address.
        private_ip: Option<String>,
        /// Licences; `0001` is Linux.
        product_codes: Vec<String>,
        /// Its public address.
        public_ip: Option<String>,
        /// What it was made with.
        reservation_id: Option<String>,
        /// `/dev/sda1`.
        root_device_name: Option<String>,
        /// `ebs`.
        root_device_type: Option<String>,
        /// Its groups.
        security_groups: Vec<GroupOfVm>,
        /// In which state it is.
        state: State,
        /// Why.
        state_reason: Option<String>,
        /// Its subnet.
        subnet_id: Option<String>,
        /// Its tags.
        tags: Vec<ResourceTag>,
        /// What it was told.
        user_data: Option<UserData>,
        /// ID.
        vm_id: String,
        /// What it does when it shuts itself down.
        vm_initiated_shutdown_behavior: Option<String>,
        /// Its type.
        vm_type: Option<String>,
    }

    /// A device of a VM.
    Device {
        /// Its volume.
        bsu: Option<Bsu>,
        /// Its name.
        device_name: Option<String>,
    }

    /// A volume of a VM.
    Bsu {
        /// Whether it goes with its VM.
        delete_on_vm_deletion: Option<bool>,
        /// Since when.
        link_date: Option<String>,
        /// `attaching`, `attached`, ...
        state: Option<String>,
        /// ID.
        volume_id: Option<String>,
    }

    /// An interface of a VM.
    Nic {
        /// Owner.
        account_id: Option<String>,
        /// How it is linked.
        link_nic: Option<LinkNic>,
        /// Hardware address.
        mac_address: Option<String>,
        /// Its Net.
        net_id: Option<String>,
        /// ID.
        nic_id: Option<String>,
        /// Its name.
        private_dns_name: Option<String>,
        /// Its addresses.
        private_ips: Vec<PrivateIp>,
        /// Its groups.
        security_groups: Vec<GroupOfVm>,
        /// `in-use`, ...
        state: Option<String>,
        /// Its subnet.
        subnet_id: Option<String>,
    }

    /// How an interface is linked.
    LinkNic {
        /// Whether it goes with its VM.
        delete_on_vm_deletion: Option<bool>,
        /// 0 is the first.
        device_number: Option<u32>,
        /// ID.
        link_nic_id: Option<String>,
        /// `attached`, ...
        state: Option<String>,
    }

    /// An address of an interface.
    PrivateIp {
        /// Whether it is the first.
        is_primary: Option<bool>,
        /// Its name.
        private_dns_name: Option<String>,
        /// The address.
        #[serde(rename = "PrivateIp")]
        address: Option<String>,
    }

    /// A security group of a VM.
    GroupOfVm {
        /// ID.
        security_group_id: String,
        /// Name.
        security_group_name: Option<String>,
    }

    /// States of VMs.
    TheVmStates {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The states.
        vm_states: Vec<VmStatus>,
    }

    /// The state of a VM, with what the cloud plans to do to it.
    VmStatus {
        /// What the cloud plans.
        maintenance_events: Vec<MaintenanceEvent>,
        /// Where it runs.
        subregion_name: Option<String>,
        /// ID.
        vm_id: String,
        /// The state.
        vm_state: State,
    }

    /// What the cloud plans to do to a VM.
    MaintenanceEvent {
        /// `system-reboot`, `system-maintenance`.
        code: Option<String>,
        /// For people.
        description: Option<String>,
        /// The latest end.
        #[serde(deserialize_with = "moment")]
        not_after: Option<Timestamp>,
        /// The earliest beginning.
        #[serde(deserialize_with = "moment")]
        not_before: Option<Timestamp>,
    }

    /// What became of VMs.
    VmTransitions {
        /// The request's ID.
        response_context: ResponseContext,
        /// The VMs.
        vms: Vec<VmTransition>,
    }

    /// What became of a VM.
    VmTransition {
        /// The state that it is in now.
        current_state: State,
        /// The state that it was in.
        previous_state: State,
        /// ID.
        vm_id: String,
    }

    /// What a VM wrote to its console.
    ConsoleOutput {
        /// In base64.
        console_output: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// ID.
        vm_id: Option<String>,
    }
    /// A volume to make. Images have them too, so fields that are not known are skipped.
    BsuToCreate {
        /// Whether it goes with its VM; true unless said.
        delete_on_vm_deletion: Option<bool>,
        /// Operations a second, for `io1`.
        iops: Option<u32>,
        /// What it is a copy of.
        snapshot_id: Option<String>,
        /// In GiB.
        volume_size: Option<u32>,
        /// `standard`, `gp2` or `io1`.
        volume_type: Option<String>,
    }

    /// Where a VM runs.
    Placement {
        /// The subregion.
        subregion_name: Option<String>,
        /// `default` or `dedicated`.
        tenancy: Option<String>,
    }
}
