//! Marks that were lost, and machines that never got any: what a machine was told at its birth says which marks it is to have.
//!
//! User data cannot be changed while a machine runs, so its section with tags is a second place for the marks. It is believed only of a machine
//! whose client token is the UID that it names: a copy of a machine has the same user data and another token.

use std::collections::{BTreeMap, BTreeSet};

use super::birth;
use super::launch::Launches;
use super::marks;
use super::oapi::wire::{self, ResourceTag, Vm};
use super::oapi::{Client, Error};

/// Most machines whose marks are written by one look. Each is a call, and the next look goes on.
const AT_ONCE: usize = 20;

/// Who we are to machines.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    /// The cluster's name.
    pub(super) cluster: &'a str,
    /// The cluster as the cloud controller manager knows it.
    pub(super) cluster_id: &'a str,
}

/// How Nodes are called, as far as that is known from elsewhere than the machine itself.
#[derive(Default)]
pub(super) struct Names {
    /// Nodes that have registered, by VM ID.
    nodes: BTreeMap<String, String>,
    /// The machine whose address gives this name.
    addresses: BTreeMap<String, String>,
}

impl Names {
    /// Nodes that have registered, and all machines.
    pub(super) fn of(nodes: BTreeMap<String, String>, vms: &[Vm]) -> Self {
        let names =
            |vm: &Vm| [false, true].into_iter().filter_map(|fqdn| marks::node_name(vm, fqdn)).collect::<Vec<_>>();
        let named = |vm| names(vm).into_iter().map(|name| (name, vm.vm_id.clone()));
        Self { nodes, addresses: vms.iter().filter(|vm| !vm.state.is_leaving()).flat_map(named).collect() }
    }

    /// Whether it is certain that a machine's Node is called `name`, after its address, and not as its tag says: it has registered so, or the tag
    /// names the Node of another machine. Everything else somebody may have written who knows better.
    fn refute(&self, vm_id: &str, name: &str, tag: &str) -> bool {
        let has_registered = self.nodes.get(vm_id).is_some_and(|node| node == name);
        has_registered || self.addresses.get(tag).is_some_and(|other| other != vm_id)
    }
}

/// What a machine was told at its birth that it is.
pub(super) struct Told {
    /// Its marks.
    pub(super) marks: BTreeMap<String, String>,
    /// Whether its Node takes the full name that the metadata service tells.
    pub(super) fqdn: bool,
}

/// What a machine was told at its birth, if it was told its own token.
pub(super) fn told(vm: &Vm) -> Option<Told> {
    let token = marks::token(vm)?;
    let text = String::from_utf8(vm.user_data.as_ref()?.bytes()?).ok()?;
    let (tags, configuration) = birth::read(&text)?;
    let marks: BTreeMap<String, String> =
        tags.filter(|(key, _)| marks::is_mark(key)).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let fqdn = configuration.lines().any(|line| line.trim() == "registerWithFQDN: true");
    marks.get(marks::NODECLAIM_UID).is_some_and(|uid| uid == token).then_some(Told { marks, fqdn })
}

/// The marks that a machine is to have, if it was made for this cluster by somebody who gave it its token.
pub(super) fn wanted(vm: &Vm, owner: Owner<'_>, names: &Names) -> Option<BTreeMap<String, String>> {
    let Told { marks: mut all, fqdn } = told(vm)?;
    let says = |key: &str, value: &str| all.get(key).is_some_and(|told| told == value);
    let cluster_id = marks::cluster_id_tag(owner.cluster_id);
    let ours = says(marks::MANAGED_BY, owner.cluster) && says(&cluster_id, "owned");
    // Whoever wrote another owner has given the machine away.
    let given_away = |key: &str| marks::tag(vm, key).is_some_and(|there| all.get(key).is_none_or(|told| told != there));
    if !ours || given_away(marks::MANAGED_BY) || given_away(&cluster_id) {
        return None;
    }
    // A name that comes from the address was not known at birth. One that somebody wrote is left alone, unless it cannot be.
    if !all.contains_key(marks::NODE_NAME)
        && let Some(name) = marks::node_name(vm, fqdn)
        && marks::tag(vm, marks::NODE_NAME).is_none_or(|tag| tag == name || names.refute(&vm.vm_id, &name, tag))
    {
        all.insert(marks::NAME.to_owned(), format!("{}-{name}", owner.cluster));
        all.insert(marks::NODE_NAME.to_owned(), name);
    }
    // What people see is theirs to change.
    if marks::tag(vm, marks::NAME).is_some() {
        all.remove(marks::NAME);
    }
    Some(all)
}

/// Tags of machines with which nothing was missing: as long as they are the same, what the machine was told need not be read again.
pub(super) type Sound = BTreeMap<String, Vec<ResourceTag>>;

/// Writes the marks that machines lack or that were changed. A machine for which that does not work stays as it is, until the next look.
pub(super) async fn mend(
    (client, dry_run): (&Client, bool),
    launches: &Launches,
    (owner, names): (Owner<'_>, &Names),
    vms: &mut [Vm],
    sound: &mut Sound,
) {
    let there: BTreeSet<&str> = vms.iter().map(|vm| vm.vm_id.as_str()).collect();
    sound.retain(|id, _| there.contains(id.as_str()));
    let mut calls = 0;
    for vm in vms.iter_mut().filter(|vm| !vm.state.is_leaving()) {
        if sound.get(&vm.vm_id) == Some(&vm.tags) {
            continue;
        }
        let Some(wanted) = wanted(vm, owner, names) else { continue };
        let lacking = marks::missing(vm, &wanted);
        let token = wanted.get(marks::NODECLAIM_UID).map_or("", String::as_str);
        if lacking.is_empty() {
            // Whether a name that somebody wrote can be shows later, when the Node has registered.
            if wanted.contains_key(marks::NODE_NAME) {
                sound.insert(vm.vm_id.clone(), vm.tags.clone());
            }
            continue;
        }
        if calls == AT_ONCE || launches.is_under_way(token) {
            continue;
        }
        calls += 1;
        let keys: Vec<&str> = lacking.iter().map(|tag| tag.key.as_str()).collect();
        if dry_run {
            tracing::info!(vm = %vm.vm_id, tags = keys.join(", "), "dry run: would write marks of a machine again");
            continue;
        }
        let request = wire::CreateTags { resource_ids: vec![vm.vm_id.clone()], tags: lacking.clone() };
        match client.call(&request).await {
            Ok(_) => {
                tracing::warn!(vm = %vm.vm_id, tags = keys.join(", "), "a machine lacked marks, they were written again");
                vm.tags.retain(|tag| lacking.iter().all(|new| new.key != tag.key));
                vm.tags.extend(lacking);
            }
            Err(error) => tracing::warn!(vm = %vm.vm_id, tags = keys.join(", "), %error, "a machine lacks marks"),
        }
    }
}

/// Machines of these subnets that were made for this cluster, by whatever tags they have, but those that are known.
pub(super) async fn sweep(
    client: &Client,
    subnets: Vec<String>,
    owner: Owner<'_>,
    known: &BTreeSet<&str>,
) -> Result<Vec<Vm>, Error> {
    let filters = wire::VmFilters {
        subnet_ids: subnets,
        vm_state_names: wire::State::STANDING.to_vec(),
        ..wire::VmFilters::default()
    };
    let request = wire::ReadVms { filters: Some(filters), ..wire::ReadVms::default() };
    let mut vms = client.all(&request).await?;
    vms.retain(|vm| !known.contains(vm.vm_id.as_str()) && wanted(vm, owner, &Names::default()).is_some());
    Ok(vms)
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
