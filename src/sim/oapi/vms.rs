//! VMs: making, reading, changing and deleting them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::filters::{any_passes, check_ids, numbered, page, passes, tags_pass};
use super::load::Fault;
use super::machines::Machine;
use super::refusal::Refusal;
use super::sizes::{self, Size};
use super::world::World;
use super::{addresses, gpus, section};
use crate::clouds::outscale::oapi::wire::{
    Bsu, BsuToCreate, ConsoleOutput, CreateVms, DeleteVms, Device, Done, GroupOfVm, Image, LinkNic, Nic, Placement,
    PrivateIp, ReadConsoleOutput, ReadVms, ReadVmsState, RebootVms, ResourceTag, State, StopVms, Subnet, TheVm,
    TheVmStates, TheVms, UpdateVm, UserData, Vm, VmStatus, VmTransition, VmTransitions,
};

/// What a VM is whose type is not named.
const USUAL_TYPE: &str = "t2.small";

/// What a request comes to, once all that it names was found.
struct Order {
    image: Image,
    subnet: Subnet,
    groups: Vec<GroupOfVm>,
    vm_type: String,
    size: Size,
    tags: Vec<ResourceTag>,
    /// What is not as it would be on a good day.
    troubles: Vec<Fault>,
}

pub(super) fn create(world: &mut World, request: &CreateVms) -> Result<TheVms, Refusal> {
    let order = order(world, request)?;
    if let Some(vms) = request.client_token.as_ref().and_then(|token| known(world, token)) {
        return Ok(TheVms { vms, ..TheVms::default() });
    }
    let count = request.max_vms_count.unwrap_or(1).max(1);
    afford(world, &order, count)?;
    let reservation = id(world, "r");
    let mut vms = Vec::new();
    for at in 0..count {
        let vm = build(world, request, &order, (&reservation, at))?;
        let token = request.client_token.clone();
        let number = world.machines.made;
        world.machines.made += 1;
        let turns = match request.boot_on_creation {
            Some(false) => Some((world.later(world.conduct.boots_within), State::Stopped)),
            _ => Some((world.later(world.conduct.boots_within), State::Running)),
        };
        let listed_from = world.later(world.conduct.lists_after);
        let machine =
            Machine { vm: vm.clone(), number, listed_from, turns, size: order.size, planned: Vec::new(), reboots: 0 };
        if let Some(token) = token {
            world.machines.tokens.entry(token).or_default().push(vm.vm_id.clone());
        }
        world.machines.all.insert(vm.vm_id.clone(), machine);
        world.aside.extend(&order.troubles);
        gpus::bring(world, &vm);
        vms.push(vm);
    }
    Ok(TheVms { vms, ..TheVms::default() })
}

/// The VMs that were made with a token before, as long as any of them can be read. What the real API does once they are gone is not known
/// outside.
fn known(world: &World, token: &str) -> Option<Vec<Vm>> {
    if !world.conduct.honours_tokens {
        return None;
    }
    let ids = world.machines.tokens.get(token)?;
    let vms: Vec<Vm> = ids.iter().filter_map(|id| Some(world.machines.all.get(id)?.vm.clone())).collect();
    (!vms.is_empty()).then_some(vms)
}

fn order(world: &World, request: &CreateVms) -> Result<Order, Refusal> {
    let account = &world.account;
    if request.image_id.is_empty() {
        return Err(Refusal::required("ImageId"));
    }
    let image = account.images.iter().find(|image| image.image_id == request.image_id);
    let image = image.ok_or_else(|| Refusal::missing("5023", &request.image_id))?;
    let nic = request.nics.first();
    let subnet_id = request.subnet_id.as_ref().or_else(|| nic?.subnet_id.as_ref());
    let subnet_id = subnet_id.ok_or_else(|| Refusal::required("SubnetId (this fake has no public cloud)"))?;
    let subnet = account.subnets.iter().find(|subnet| subnet.subnet_id == *subnet_id);
    let subnet = subnet.ok_or_else(|| Refusal::missing("5057", subnet_id))?;
    let group_ids = nic.map_or(&request.security_group_ids, |nic| &nic.security_group_ids);
    let mut groups = Vec::new();
    for id in group_ids {
        let group = account.security_groups.iter().find(|group| group.security_group_id == *id);
        let group = group.ok_or_else(|| Refusal::missing("5020", id))?;
        if group.net_id != subnet.net_id {
            return Err(Refusal::new(400, "5022", "InvalidResource", format!("{id} is not of the Net of {subnet_id}")));
        }
        groups
            .push(GroupOfVm { security_group_id: id.clone(), security_group_name: group.security_group_name.clone() });
    }
    if let Some(name) = &request.keypair_name
        && !account.keypairs.iter().any(|keypair| keypair.keypair_name == *name)
    {
        return Err(Refusal::missing("5071", name));
    }
    for bsu in request.block_device_mappings.iter().filter_map(|device| device.bsu.as_ref()) {
        volume(world, bsu)?;
    }
    let asked = request.placement.as_ref().and_then(|placement| placement.subregion_name.as_ref());
    if asked.is_some_and(|asked| Some(asked) != subnet.subregion_name.as_ref()) {
        let details = format!("{subnet_id} is not in the subregion of Placement");
        return Err(Refusal::new(400, "3002", "InvalidParameterCombination", details));
    }
    let vm_type = request.vm_type.clone().unwrap_or_else(|| USUAL_TYPE.to_owned());
    let size = sizes::size(&vm_type, &account.vm_types);
    let size = size.ok_or_else(|| Refusal::value(format!("{vm_type} is no VM type")))?;
    let user_data = request.user_data.as_ref().map(told).transpose()?.unwrap_or_default();
    let mut tags = section::tags(&user_data);
    let mut troubles = Vec::new();
    if !world.conduct.reads_section && !tags.is_empty() {
        tags.clear();
        troubles.push(Fault::TagsIgnored);
    }
    if request.client_token.as_ref().is_some_and(|token| world.machines.tokens.contains_key(token)) {
        troubles.push(Fault::TokenForgotten);
    }
    // What the real API does with more of them is not known outside.
    tags.truncate(usize::try_from(account.quotas.tags).unwrap_or(usize::MAX));
    Ok(Order { image: image.clone(), subnet: subnet.clone(), groups, vm_type, size, tags, troubles })
}

/// Whether a volume can be made, as the specification describes them.
fn volume(world: &World, bsu: &BsuToCreate) -> Result<(), Refusal> {
    let size = bsu.volume_size.unwrap_or(u32::MAX);
    if bsu.iops.is_some_and(|iops| iops > size.saturating_mul(300)) {
        return Err(Refusal::value(format!("{size} GiB cannot have {} IOPS", bsu.iops.unwrap_or_default())));
    }
    let Some(id) = &bsu.snapshot_id else { return Ok(()) };
    let snapshot = world.account.snapshots.iter().find(|snapshot| snapshot.snapshot_id == *id);
    let snapshot = snapshot.ok_or_else(|| Refusal::missing("5054", id))?;
    if snapshot.state.as_deref() != Some("completed") {
        return Err(Refusal::state(format!("{id} is not completed")));
    }
    if snapshot.volume_size.is_some_and(|needed| needed > size) {
        return Err(Refusal::value(format!("{size} GiB are too few for {id}")));
    }
    Ok(())
}

fn told(user_data: &UserData) -> Result<Vec<u8>, Refusal> {
    if user_data.len() > UserData::LONGEST {
        return Err(Refusal::value(format!("UserData is longer than {} bytes", UserData::LONGEST)));
    }
    user_data.bytes().ok_or_else(|| Refusal::value("UserData is not base64"))
}

/// Quotas, capacity and addresses.
fn afford(world: &World, order: &Order, count: u32) -> Result<(), Refusal> {
    let (vms, used) = world.machines.used();
    let limits = world.account.quotas;
    let memory = used.memory + order.size.memory * f64::from(count);
    if vms + count > limits.vms {
        return Err(Refusal::quota(format!("the account may have {} VMs", limits.vms)));
    }
    if used.cores + order.size.cores * count > limits.cores || memory > f64::from(limits.memory) {
        let details = format!("the account may have {} cores and {} GiB of memory", limits.cores, limits.memory);
        return Err(Refusal::quota(details));
    }
    let subregion = order.subnet.subregion_name.as_deref();
    let is_sold_out = world.conduct.sold_out.iter().any(|scarce| {
        scarce.vm_type.as_ref().is_none_or(|begin| order.vm_type.starts_with(begin.as_str()))
            && scarce.subregion.as_ref().is_none_or(|place| Some(place.as_str()) == subregion)
    });
    if is_sold_out {
        let details = format!("there is no {} in {}", order.vm_type, subregion.unwrap_or_default());
        return Err(Refusal::new(400, "10001", "InsufficientCapacity", details));
    }
    let taken = u32::try_from(world.machines.addresses(&order.subnet.subnet_id).len()).unwrap_or(u32::MAX);
    let room = addresses::count(order.subnet.ip_range.as_deref().unwrap_or_default());
    if taken + count > room {
        // The real code is not known outside; this one was seen for public addresses.
        let details = format!("{} has no free addresses", order.subnet.subnet_id);
        return Err(Refusal::new(400, "10021", "TooManyResources (QuotaExceded)", details));
    }
    Ok(())
}

pub(super) fn id(world: &mut World, prefix: &str) -> String {
    format!("{prefix}-{:08x}", world.rng.u32(..))
}

fn build(world: &mut World, request: &CreateVms, order: &Order, (reservation, at): (&str, u32)) -> Result<Vm, Refusal> {
    let subnet = &order.subnet;
    let taken = world.machines.addresses(&subnet.subnet_id);
    let address = addresses::first_free(subnet.ip_range.as_deref().unwrap_or_default(), &taken);
    let address = address.ok_or_else(Refusal::internal)?;
    let dns = addresses::name(address, &world.account.region);
    let placement = request.placement.clone().unwrap_or_default();
    let behaviour = request.vm_initiated_shutdown_behavior.clone().unwrap_or_else(|| "stop".to_owned());
    let mut vm_id = id(world, "i");
    while world.machines.all.contains_key(&vm_id) {
        vm_id = id(world, "i");
    }
    Ok(Vm {
        architecture: order.image.architecture.clone(),
        block_device_mappings: devices(world, request, &order.image),
        boot_mode: Some("legacy".to_owned()),
        bsu_optimized: Some(false),
        client_token: request.client_token.clone(),
        creation_date: Some(world.now),
        deletion_protection: Some(request.deletion_protection.unwrap_or(false)),
        hypervisor: Some("xen".to_owned()),
        image_id: Some(order.image.image_id.clone()),
        keypair_name: request.keypair_name.clone(),
        launch_number: Some(at),
        net_id: subnet.net_id.clone(),
        nics: vec![Nic {
            account_id: Some(world.account.id.clone()),
            link_nic: Some(LinkNic {
                delete_on_vm_deletion: Some(true),
                device_number: Some(0),
                link_nic_id: Some(id(world, "eni-attach")),
                state: Some("attached".to_owned()),
            }),
            mac_address: None,
            net_id: subnet.net_id.clone(),
            nic_id: Some(id(world, "eni")),
            private_dns_name: Some(dns.clone()),
            private_ips: vec![PrivateIp {
                is_primary: Some(true),
                private_dns_name: Some(dns.clone()),
                address: Some(address.to_string()),
            }],
            security_groups: order.groups.clone(),
            state: Some("in-use".to_owned()),
            subnet_id: Some(subnet.subnet_id.clone()),
        }],
        performance: Some(sizes::performance(&order.vm_type).to_owned()),
        placement: Some(Placement {
            subregion_name: subnet.subregion_name.clone(),
            tenancy: placement.tenancy.or_else(|| Some("default".to_owned())),
        }),
        private_dns_name: Some(dns),
        private_ip: Some(address.to_string()),
        product_codes: order.image.product_codes.clone(),
        public_ip: None,
        reservation_id: Some(reservation.to_owned()),
        root_device_name: order.image.root_device_name.clone(),
        root_device_type: Some("ebs".to_owned()),
        security_groups: order.groups.clone(),
        state: State::Pending,
        state_reason: None,
        subnet_id: Some(subnet.subnet_id.clone()),
        tags: order.tags.clone(),
        user_data: request.user_data.clone(),
        vm_id,
        vm_initiated_shutdown_behavior: Some(behaviour),
        vm_type: Some(order.vm_type.clone()),
    })
}

/// The devices of the image, as the request changes them, and those that it adds.
fn devices(world: &mut World, request: &CreateVms, image: &Image) -> Vec<Device> {
    let asked = request.block_device_mappings.iter().map(|device| (&device.device_name, device.bsu.as_ref()));
    let own = image.block_device_mappings.iter().map(|device| (&device.device_name, device.bsu.as_ref()));
    let mut all: Vec<Device> = Vec::new();
    for (name, bsu) in asked.chain(own) {
        if all.iter().any(|device| device.device_name == *name) {
            continue;
        }
        let bsu = Bsu {
            delete_on_vm_deletion: Some(bsu.and_then(|bsu| bsu.delete_on_vm_deletion).unwrap_or(true)),
            link_date: Some(world.now.to_string()),
            state: Some("attached".to_owned()),
            volume_id: Some(id(world, "vol")),
        };
        all.push(Device { bsu: Some(bsu), device_name: name.clone() });
    }
    all
}

pub(super) fn read(world: &mut World, request: &ReadVms) -> Result<TheVms, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.vm_ids, "i-")?;
    let wanted = world.machines.in_order().into_iter().filter(|machine| {
        let vm = &machine.vm;
        let placement = vm.placement.as_ref();
        passes(&by.vm_ids, Some(&vm.vm_id))
            && passes(&by.client_tokens, vm.client_token.as_deref())
            && passes(&by.image_ids, vm.image_id.as_deref())
            && passes(&by.keypair_names, vm.keypair_name.as_deref())
            && passes(&by.net_ids, vm.net_id.as_deref())
            && passes(&by.private_ips, vm.private_ip.as_deref())
            && passes(&by.subnet_ids, vm.subnet_id.as_deref())
            && passes(&by.vm_types, vm.vm_type.as_deref())
            && passes(&by.subregion_names, placement.and_then(|placement| placement.subregion_name.as_deref()))
            && passes(&by.tenancies, placement.and_then(|placement| placement.tenancy.as_deref()))
            && any_passes(
                &by.security_group_ids,
                vm.security_groups.iter().map(|group| group.security_group_id.as_str()),
            )
            && (by.vm_state_names.is_empty() || by.vm_state_names.contains(&vm.state))
            && tags_pass((&by.tag_keys, &by.tag_values, &by.tags), &vm.tags)
    });
    let (wanted, late): (Vec<&Machine>, Vec<&Machine>) = wanted.partition(|machine| machine.listed_from <= world.now);
    if !late.is_empty() {
        world.aside.push(Fault::ListedLate);
    }
    let wanted = wanted.into_iter().map(|machine| (machine.number, machine.vm.clone()));
    let (vms, next) = page(wanted, request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheVms { vms, next_page_token: next, ..TheVms::default() })
}

pub(super) fn states(world: &mut World, request: &ReadVmsState) -> Result<TheVmStates, Refusal> {
    let by = request.filters.clone().unwrap_or_default();
    check_ids(&by.vm_ids, "i-")?;
    let all = request.all_vms == Some(true);
    let wanted = world.machines.listed(world.now).into_iter().filter(|machine| {
        let vm = &machine.vm;
        let place = vm.placement.as_ref().and_then(|placement| placement.subregion_name.as_deref());
        (all || vm.state == State::Running)
            && any_passes(&by.maintenance_event_codes, machine.planned.iter().filter_map(|event| event.code.as_deref()))
            && passes(&by.vm_ids, Some(&vm.vm_id))
            && passes(&by.subregion_names, place)
            && (by.vm_states.is_empty() || by.vm_states.contains(&vm.state))
    });
    let wanted = wanted.map(|machine| VmStatus {
        maintenance_events: machine.planned.clone(),
        subregion_name: machine.vm.placement.as_ref().and_then(|placement| placement.subregion_name.clone()),
        vm_id: machine.vm.vm_id.clone(),
        vm_state: machine.vm.state,
    });
    let (vm_states, next) = page(numbered(wanted), request.next_page_token.as_deref(), request.results_per_page)?;
    Ok(TheVmStates { vm_states, next_page_token: next, ..TheVmStates::default() })
}

/// The VMs that a call names, all of them or a refusal.
fn all_there(world: &World, ids: &[String]) -> Result<(), Refusal> {
    if ids.is_empty() {
        return Err(Refusal::required("VmIds"));
    }
    check_ids(ids, "i-")?;
    match ids.iter().find(|id| !world.machines.all.contains_key(*id)) {
        Some(id) => Err(Refusal::missing("5063", id)),
        None => Ok(()),
    }
}

/// Sends VMs on their way from one state to another.
fn turn(world: &mut World, ids: &[String], to: impl Fn(State) -> Option<(State, State)>) -> VmTransitions {
    let at = world.later(world.conduct.ends_within);
    let mut vms = Vec::new();
    for id in ids {
        let Some(machine) = world.machines.all.get_mut(id) else { continue };
        let previous = machine.vm.state;
        if let Some((way, end)) = to(previous) {
            machine.vm.state = way;
            machine.turns = Some((at, end));
        }
        vms.push(VmTransition { current_state: machine.vm.state, previous_state: previous, vm_id: id.clone() });
    }
    VmTransitions { vms, ..VmTransitions::default() }
}

pub(super) fn delete(world: &mut World, request: &DeleteVms) -> Result<VmTransitions, Refusal> {
    all_there(world, &request.vm_ids)?;
    let protected = request.vm_ids.iter().find(|id| {
        world.machines.all.get(*id).is_some_and(|machine| {
            machine.vm.deletion_protection == Some(true) && machine.vm.state != State::Terminated
        })
    });
    if let Some(id) = protected {
        let details = format!("{id} is protected from deletion");
        return Err(Refusal::new(400, "8018", "OperationNotSupported", details));
    }
    Ok(turn(world, &request.vm_ids, |state| (!state.is_leaving()).then_some((State::ShuttingDown, State::Terminated))))
}

pub(super) fn stop(world: &mut World, request: &StopVms) -> Result<VmTransitions, Refusal> {
    all_there(world, &request.vm_ids)?;
    if let Some(id) = request.vm_ids.iter().find(|id| world.machines.all[*id].vm.state.is_leaving()) {
        return Err(Refusal::state(format!("{id} is being deleted")));
    }
    let forced = request.force_stop == Some(true);
    Ok(turn(world, &request.vm_ids, |state| match state {
        State::Stopped => None,
        _ if forced => Some((State::Stopping, State::Stopped)),
        State::Stopping => None,
        _ => Some((State::Stopping, State::Stopped)),
    }))
}

pub(super) fn reboot(world: &mut World, request: &RebootVms) -> Result<Done, Refusal> {
    all_there(world, &request.vm_ids)?;
    if let Some(id) = request.vm_ids.iter().find(|id| world.machines.all[*id].vm.state != State::Running) {
        return Err(Refusal::state(format!("{id} does not run")));
    }
    for id in &request.vm_ids {
        if let Some(machine) = world.machines.all.get_mut(id) {
            machine.reboots += 1;
        }
    }
    Ok(Done::default())
}

pub(super) fn update(world: &mut World, request: &UpdateVm) -> Result<TheVm, Refusal> {
    let ids = std::slice::from_ref(&request.vm_id);
    if request.vm_id.is_empty() {
        return Err(Refusal::required("VmId"));
    }
    all_there(world, ids)?;
    let groups = &world.account.security_groups;
    let mut named = Vec::new();
    for id in &request.security_group_ids {
        let group = groups.iter().find(|group| group.security_group_id == *id);
        let group = group.ok_or_else(|| Refusal::missing("5020", id))?;
        named.push(GroupOfVm { security_group_id: id.clone(), security_group_name: group.security_group_name.clone() });
    }
    let size = request.vm_type.as_ref().map(|kind| sizes::size(kind, &world.account.vm_types).ok_or(kind));
    let size = size.transpose().map_err(|kind| Refusal::value(format!("{kind} is no VM type")))?;
    let Some(machine) = world.machines.all.get_mut(&request.vm_id) else {
        return Err(Refusal::missing("5063", &request.vm_id));
    };
    if machine.vm.state.is_leaving() {
        return Err(Refusal::state(format!("{} is being deleted", request.vm_id)));
    }
    if let Some(size) = size {
        if machine.vm.state != State::Stopped {
            return Err(Refusal::state(format!("{} is not stopped", request.vm_id)));
        }
        machine.size = size;
        machine.vm.vm_type.clone_from(&request.vm_type);
    }
    if let Some(protection) = request.deletion_protection {
        machine.vm.deletion_protection = Some(protection);
    }
    if !named.is_empty() {
        for nic in &mut machine.vm.nics {
            nic.security_groups.clone_from(&named);
        }
        machine.vm.security_groups = named;
    }
    Ok(TheVm { vm: Some(machine.vm.clone()), ..TheVm::default() })
}

pub(super) fn console(world: &mut World, request: &ReadConsoleOutput) -> Result<ConsoleOutput, Refusal> {
    if request.vm_id.is_empty() {
        return Err(Refusal::required("VmId"));
    }
    all_there(world, std::slice::from_ref(&request.vm_id))?;
    let machine = &world.machines.all[&request.vm_id];
    let text = format!("{} is {}\n", request.vm_id, machine.vm.state.as_str());
    Ok(ConsoleOutput {
        console_output: Some(STANDARD.encode(text)),
        vm_id: Some(request.vm_id.clone()),
        ..ConsoleOutput::default()
    })
}
