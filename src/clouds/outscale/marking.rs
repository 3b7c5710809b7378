//! The marks of a new machine: written before anybody hears of it. One that cannot wear them is taken down again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::clouds::{Error, LaunchRefused};
use crate::core::facts::NodeClass;
use crate::core::ids::ClaimUid;

use super::cloud::Outscale;
use super::marks;
use super::mend::{self, Told};
use super::oapi::wire::{self, Vm};
use super::oapi::{Class, Client, Error as Failure};
use super::unmarkable;

/// A machine that was just made may not be known everywhere yet; its marks are tried after these pauses.
const MARK_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) since: Instant,
    pub(super) class: Arc<NodeClass>,
    /// How many of the tags are the NodeClass's.
    pub(super) of_class: usize,
    pub(super) names: Names,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) cluster: String,
}

/// How a machine's Node will be called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Names {
    /// Like this.
    Fixed(String),
    /// As its address says: the short name, or the full one.
    ByAddress { fqdn: bool },
}

impl Remembered {
    /// All tags of a machine. An earlier attempt may have made it from another state of its NodeClass: the hashes and the name that it has from its
    /// birth stay, for drift is seen by them.
    fn tags_of(&self, vm: &Vm) -> BTreeMap<String, String> {
        let mut tags = self.tags.clone();
        let told = mend::told(vm);
        for key in [marks::CLASS_HASH, marks::USER_DATA_HASH] {
            let of_birth = told.as_ref().and_then(|told| told.marks.get(key).map(String::as_str));
            if let Some(hash) = of_birth.or_else(|| marks::tag(vm, key)) {
                tags.insert(key.to_owned(), hash.to_owned());
            }
        }
        let names = told.map_or_else(|| self.names.clone(), |told| Names::told(&told));
        let name = match names {
            Names::Fixed(name) => Some(name),
            Names::ByAddress { fqdn } => marks::node_name(vm, fqdn),
        };
        if let Some(name) = name {
            tags.insert(marks::NAME.to_owned(), format!("{}-{name}", self.cluster));
            tags.insert(marks::NODE_NAME.to_owned(), name);
        }
        tags
    }
}

impl Names {
    /// As a machine was told.
    fn told(told: &Told) -> Self {
        let fixed = told.marks.get(marks::NODE_NAME).cloned();
        fixed.map_or(Self::ByAddress { fqdn: told.fqdn }, Self::Fixed)
    }
}

/// Writes the tags that a machine lacks. A machine that the API does not know yet is waited for.
pub(super) async fn marked(client: &Client, mut vm: Vm, birth: &Remembered) -> Result<Vm, Failure> {
    if let Names::ByAddress { fqdn } = birth.names
        && marks::node_name(&vm, fqdn).is_none()
    {
        vm = addressed(client, vm, fqdn).await?;
    }
    let missing = marks::missing(&vm, &birth.tags_of(&vm));
    if missing.is_empty() {
        return Ok(vm);
    }
    let request = wire::CreateTags { resource_ids: vec![vm.vm_id.clone()], tags: missing.clone() };
    let mut pauses = MARK_PAUSES.into_iter();
    loop {
        match client.call(&request).await {
            Ok(_) => break,
            Err(error) if error.is_not_found() => match pauses.next() {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    vm.tags.retain(|tag| missing.iter().all(|new| new.key != tag.key));
    vm.tags.extend(missing);
    Ok(vm)
}

/// The VM with its address, after which its Node is called. The answer to its making has it, as far as is known; if not, it comes.
async fn addressed(client: &Client, vm: Vm, fqdn: bool) -> Result<Vm, Failure> {
    let filters = wire::VmFilters { vm_ids: vec![vm.vm_id.clone()], ..wire::VmFilters::default() };
    let request = wire::ReadVms { filters: Some(filters), ..wire::ReadVms::default() };
    for pause in MARK_PAUSES {
        sleep(pause).await;
        let found = client.all(&request).await?.into_iter().find(|found| found.vm_id == vm.vm_id);
        if let Some(found) = found.filter(|found| marks::node_name(found, fqdn).is_some()) {
            return Ok(found);
        }
    }
    tracing::warn!(vm = %vm.vm_id, "the machine has no address; its Node will not be initialized before somebody sets its tag OscK8sNodeName");
    Ok(vm)
}

/// Nothing is launched with this NodeClass as it is.
pub(super) fn class_not_ready(class: &NodeClass, why: &str) -> Error {
    Error::Launch(LaunchRefused::ClassNotReady(format!("{}: {why}", class.reference)))
}

impl Outscale {
    /// Writes the marks that a machine lacks, if it is of a launch in this life whose answer was lost, perhaps before they were written.
    pub(super) async fn finished(&self, token: &ClaimUid, vm: Vm) -> Result<Vm, Error> {
        let Some(birth) = self.launches.birth(token) else { return Ok(vm) };
        let (id, vm_type) = (vm.vm_id.clone(), vm.vm_type.clone());
        match marked(&self.client, vm, &birth).await {
            Ok(vm) => {
                self.launches.ended(token);
                Ok(vm)
            }
            Err(error) if unmarkable::is_for_good(&error) => {
                Err(self.unmarked((&id, vm_type.as_deref()), &birth, &error).await)
            }
            Err(error) => Err(Error::Temporary(format!("machine {id} found, but not marked: {error}"))),
        }
    }

    /// A machine that could not be marked is taken down again, if that would not only be for joiner's own haste.
    pub(super) async fn unmarked(
        &self,
        (id, vm_type): (&str, Option<&str>),
        birth: &Remembered,
        error: &Failure,
    ) -> Error {
        let why = format!("machine {id} was made and could not be marked: {error}");
        if error.held_back || matches!(error.class, Class::Throttled | Class::NotFound) {
            // Found by its token, and marked then.
            return Error::Unknown(why);
        }
        let refused = unmarkable::is_for_good(error).then(|| self.unmarkable(birth, error));
        match self.gpus_go_with(id, vm_type).await {
            Ok(true) => {}
            Ok(false) => return Error::Unknown(format!("{why}; it stays until its flexible GPUs are listed")),
            Err(held) => return Error::Unknown(format!("{why}; {held}")),
        }
        let nodeclaim = birth.tags.get(marks::NODECLAIM);
        tracing::warn!(nodeclaim, vm = id, %error, "taking a machine down that cannot be marked");
        match (self.client.call(&wire::DeleteVms { vm_ids: vec![id.to_owned()] }).await, refused) {
            (Ok(_), Some(refused)) => refused,
            (Ok(_), None) if error.class == Class::Keys => {
                Error::Unauthorized { action: error.action, message: format!("{why}; it was taken down again") }
            }
            // The API confirms deletions and may forget them: the machine is looked for before anything else is tried.
            (Ok(_), None) => Error::Unknown(format!("{why}; it is taken down again")),
            (Err(left), _) => Error::Unknown(format!("{why}; nor could it be taken down: {left}")),
        }
    }

    /// The end of a launch whose machine cannot be marked, whatever is tried.
    fn unmarkable(&self, birth: &Remembered, error: &Failure) -> Error {
        let named = birth.tags.contains_key(marks::NODE_NAME);
        // A name that comes from the address is written in two tags.
        let all = birth.tags.len() + if named { 0 } else { 2 };
        let why = unmarkable::told(error, all, birth.of_class);
        // That a permission is missing, and that it is given, the NodeClass's condition PermissionsReady shows by itself.
        if error.class != Class::Denied {
            self.unmarkable.remember(&birth.class, &why);
        }
        class_not_ready(&birth.class, &format!("{why} (a machine was made, and taken down again)"))
    }
}
