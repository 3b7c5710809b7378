//! VMs, and what time does to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};

use super::conduct::Conduct;
use super::gpus::Gpu;
use super::sizes::Size;
use crate::clouds::outscale::oapi::wire::{MaintenanceEvent, State, Vm};

/// A VM, with what only the cloud knows.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// As callers see it.
    pub(super) vm: Vm,
    /// Which one it is of all that were made.
    pub(super) number: u64,
    /// From when on it is in what is read.
    pub(super) listed_from: Timestamp,
    /// When it passes into which state. [`State::Unknown`] stands for being forgotten.
    pub(super) turns: Option<(Timestamp, State)>,
    /// Cores and memory, for quotas.
    pub(super) size: Size,
    /// What the cloud plans to do to it.
    pub(super) planned: Vec<MaintenanceEvent>,
    /// How often it was restarted.
    pub(super) reboots: u32,
}

/// All VMs, and the numbers that make their IDs.
#[derive(Default)]
pub(super) struct Machines {
    pub(super) all: BTreeMap<String, Machine>,
    /// Tokens that VMs were made with, also those of VMs that are forgotten.
    pub(super) tokens: BTreeMap<String, Vec<String>>,
    pub(super) made: u64,
    /// Flexible GPUs of the account, by ID.
    pub(super) gpus: BTreeMap<String, Gpu>,
}

impl Machines {
    /// Lets time pass.
    pub(super) fn settle(&mut self, now: Timestamp, conduct: &Conduct) {
        let forgets = SignedDuration::try_from(conduct.forgets_after).unwrap_or(SignedDuration::MAX);
        let mut gone = Vec::new();
        for machine in self.all.values_mut() {
            while let Some((at, state)) = machine.turns.filter(|(at, _)| *at <= now) {
                machine.vm.state = state;
                machine.turns = None;
                if state == State::Terminated {
                    strip(&mut machine.vm);
                    gone.push(machine.vm.vm_id.clone());
                    machine.turns = at.checked_add(forgets).ok().map(|gone| (gone, State::Unknown));
                }
            }
        }
        for vm_id in gone {
            self.leave_gpus_of(&vm_id);
        }
        self.all.retain(|_, machine| machine.vm.state != State::Unknown);
    }

    /// The VMs in the order in which they were made, those included that are not listed yet.
    pub(super) fn in_order(&self) -> Vec<&Machine> {
        let mut all: Vec<_> = self.all.values().collect();
        all.sort_by_key(|machine| machine.number);
        all
    }

    /// Those of them that are listed.
    pub(super) fn listed(&self, now: Timestamp) -> Vec<&Machine> {
        let mut listed = self.in_order();
        listed.retain(|machine| machine.listed_from <= now);
        listed
    }

    /// Addresses that are taken in a subnet.
    pub(super) fn addresses(&self, subnet: &str) -> BTreeSet<Ipv4Addr> {
        let there = self.all.values().filter(|machine| machine.vm.subnet_id.as_deref() == Some(subnet));
        there.filter_map(|machine| machine.vm.private_ip.as_deref()?.parse().ok()).collect()
    }

    /// VMs, cores and memory that count against quotas.
    pub(super) fn used(&self) -> (u32, Size) {
        let counted = self.all.values().filter(|machine| machine.vm.state != State::Terminated);
        counted.fold((0, Size::default()), |(count, sum), machine| {
            let cores = sum.cores + machine.size.cores;
            (count + 1, Size { cores, memory: sum.memory + machine.size.memory })
        })
    }
}

/// What a VM loses when it is gone, as recorded.
fn strip(vm: &mut Vm) {
    vm.block_device_mappings.clear();
    vm.nics.clear();
    vm.tags.clear();
    vm.security_groups.clear();
    vm.private_ip = None;
    vm.private_dns_name = None;
    vm.public_ip = None;
    vm.subnet_id = None;
    vm.net_id = None;
    vm.state_reason = Some("Client.UserInitiatedShutdown".to_owned());
}
