//! [`Cloud`] on Outscale's API.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use tokio::time::Instant;

use crate::api::classes::outscale::{DEPENDENTS, OutscaleNodeClass, OutscaleNodeClassStatus};
use crate::clouds::{
    Assortment, Cloud, Deletion, Error, Judgement, LaunchRefused, LaunchSpec, Listing, RepairAction, RepairPolicy,
    Resolution, Shown, Whereabouts,
};
use crate::core::facts::{Claim, InstanceType, Machine, NodeClass, Pool, Status, find_condition};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::core::resources::ResourceName;

use super::absence::{Absence, SETTLES_WITHIN, Sightings};
use super::catalogue::{self, Wanted};
use super::class::{self, Templates};
use super::fit;
use super::gpus::Gpus;
use super::launch::{Birth, Launches, tokens};
use super::learnt::Learnt;
use super::machine::{Yardstick, machine, vm_id};
use super::maintenance::Maintenance;
use super::market::{Market, Offer};
use super::marks;
use super::mend::{Owner, Sound};
use super::oapi::wire::{self, Vm};
use super::oapi::{Client, Error as Failure};
use super::prices::PriceError;
use super::questions::{By, Questions};
use super::quotas::{Quotas, Size};
use super::secrets::Secrets;
use super::unmarkable::Unmarkable;
use super::vm_type::VmType;

/// API group of the NodeClass, and the label domain that users may not use freely.
pub const CLASS_GROUP: &str = "karpenter.outscale.com";
/// Version of the NodeClass.
pub const CLASS_VERSION: &str = "v1alpha1";
/// Kind of the NodeClass.
pub const CLASS_KIND: &str = "OutscaleNodeClass";
/// Its plural name.
pub const CLASS_PLURAL: &str = "outscalenodeclasses";
/// A node that is broken for this long is replaced.
const NOT_READY: Duration = Duration::from_mins(10);

/// How the cloud behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the cluster: the machines' mark.
    pub cluster: String,
    /// The cluster as the cloud controller manager knows it (`OscK8sClusterID/<id>`).
    pub cluster_id: String,
    /// A file with prices that win over the API's.
    pub prices: Option<PathBuf>,
    /// What a hypervisor keeps of a machine's memory, in thousandths of it.
    pub memory_overhead: i64,
    /// Whether nothing is to be created, changed or deleted: the API is asked whether it would be allowed, and what would happen is said.
    pub dry_run: bool,
}

/// The cloud of 3DS OUTSCALE.
pub struct Outscale {
    pub(super) client: Arc<Client>,
    pub(super) settings: Settings,
    pub(super) market: Market,
    pub(super) templates: Templates,
    pub(super) by_id: Questions,
    pub(super) by_token: Questions,
    pub(super) launches: Launches,
    pub(super) unmarkable: Unmarkable,
    pub(super) quotas: Quotas,
    pub(super) gpus: Gpus,
    learnt: Learnt,
    pub(super) maintenance: Maintenance,
    catalogues: Mutex<BTreeMap<Arc<str>, Kept>>,
    memory: Mutex<Memory>,
}

/// The last catalogue of a class, and what it was made from.
struct Kept {
    key: String,
    types: Arc<Vec<Arc<InstanceType>>>,
}

/// What this life knows of machines. Nothing depends on it: it says what a list lacks, and how long a deletion takes.
#[derive(Default)]
pub(super) struct Memory {
    /// Machines that were seen and are not known to be gone.
    pub(super) seen: BTreeSet<String>,
    /// Subnets of NodeClasses, by name of the class.
    pub(super) subnets: BTreeMap<Arc<str>, Vec<String>>,
    /// Machines whose marks are complete.
    pub(super) sound: Sound,
    /// Names of the Nodes that machines were seen to have.
    pub(super) nodes: BTreeMap<String, String>,
    /// When machines without marks were last looked for.
    pub(super) swept: Option<Instant>,
    /// What was listed, launched or asked for, and when.
    pub(super) sightings: Sightings,
    /// Since when machines are being deleted.
    pub(super) leaving: BTreeMap<String, Instant>,
    /// Machines of a dry run.
    pub(super) imagined: BTreeMap<ProviderId, Machine>,
    /// What classes came to in a dry run, which writes no status, by UID and generation: a namesake is another.
    pub(super) resolved: BTreeMap<(Arc<str>, i64), OutscaleNodeClassStatus>,
}

impl Outscale {
    /// A cloud behind a client. Machine configurations are read from `secrets`.
    pub fn new(client: Arc<Client>, secrets: Arc<dyn Secrets>, settings: Settings) -> Result<Self, PriceError> {
        Ok(Self {
            market: Market::new(Arc::clone(&client), settings.prices.clone())?,
            client,
            settings,
            templates: Templates::new(secrets),
            by_id: Questions::new(By::Id),
            by_token: Questions::new(By::Token),
            launches: Launches::default(),
            unmarkable: Unmarkable::default(),
            quotas: Quotas::default(),
            gpus: Gpus::default(),
            learnt: Learnt::default(),
            maintenance: Maintenance::default(),
            catalogues: Mutex::default(),
            memory: Mutex::default(),
        })
    }

    /// Where the prices in use come from and when they were read, and what is doubtful about them, for people.
    pub async fn price_source(&self) -> String {
        let Offer { prices, read, .. } = self.market.offer().await;
        let read = read.map(|read| format!(", read on {}", read.strftime("%Y-%m-%d"))).unwrap_or_default();
        let doubt = prices.doubt.as_ref().map(|doubt| format!("; {doubt}")).unwrap_or_default();
        format!("{}{read}{doubt}", prices.source)
    }

    /// What the account's quotas would refuse of machines of these types, for people; nothing when there is room for all, as far as can be read.
    pub async fn beyond_quotas(&self, kinds: &[&InstanceType]) -> Option<String> {
        let sizes: Vec<Size> = kinds.iter().map(|kind| catalogue::size(kind)).collect();
        self.quotas.beyond(&self.client, &sizes).await
    }

    /// The same of the machines of a dry run. A rehearsal asks about permissions alone, and what is imagined is in nobody's count.
    pub(super) async fn imagined_beyond_quotas(&self) -> Option<String> {
        let size = |machine: &Machine| catalogue::size_by(&machine.labels);
        let sizes: Vec<Size> = self.memory().imagined.values().map(size).collect();
        self.quotas.beyond(&self.client, &sizes).await
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A VM as a machine. With the class at hand, what it says of kubelet and disks is counted in.
    pub(super) fn read(&self, vm: &Vm, offer: &Offer, class: Option<&OutscaleNodeClass>) -> Option<Machine> {
        let yardstick = Yardstick {
            listed: &offer.listed,
            memory_overhead: self.settings.memory_overhead,
            learnt: &self.learnt,
            spec: class.map(|class| &class.spec),
        };
        let mut machine = machine(vm, yardstick)?;
        if !self.is_marked(vm) {
            // One mark that anybody can write is not enough to be taken for ours.
            machine.token = None;
        }
        if machine.deleting {
            self.memory().seen.remove(&vm.vm_id);
        } else {
            self.memory().seen.insert(vm.vm_id.clone());
        }
        Some(machine)
    }

    /// What is known of the market, asked for only where the API's list of fixed types says more of these VMs than their types' names do.
    pub(super) async fn offer_for(&self, vms: &[Vm]) -> Offer {
        let known = self.market.known();
        let is_known =
            |name: &str| VmType::parse(name).is_some() || known.listed.iter().any(|kind| kind.vm_type_name == name);
        if vms.iter().filter_map(|vm| vm.vm_type.as_deref()).all(is_known) { known } else { self.market.offer().await }
    }

    /// Whether a machine wears both marks of this cluster, and neither of its two tokens contradicts the other.
    pub(super) fn is_marked(&self, vm: &Vm) -> bool {
        let (token, tag) = (marks::token(vm), marks::tag(vm, marks::NODECLAIM_UID));
        let agree = token.is_none() || tag.is_none() || token == tag;
        marks::tag(vm, marks::MANAGED_BY) == Some(&*self.settings.cluster)
            && marks::tag(vm, &marks::cluster_id_tag(&self.settings.cluster_id)) == Some("owned")
            && agree
    }

    pub(super) fn owner(&self) -> Owner<'_> {
        Owner { cluster: &self.settings.cluster, cluster_id: &self.settings.cluster_id }
    }

    /// The VM of an ID, unless it is gone.
    pub(super) async fn vm(&self, id: &str) -> Result<Option<Vm>, Failure> {
        Ok(self.row(id).await?.filter(|vm| !vm.state.is_gone()))
    }

    /// The VM of an ID, also one that is terminated; nothing when no list shows it, which says little of a new one.
    pub(super) async fn row(&self, id: &str) -> Result<Option<Vm>, Failure> {
        let found = self.by_id.ask(&self.client, vec![id.to_owned()]).await;
        let vm = match found {
            Ok(vms) => vms.into_iter().find(|vm| vm.vm_id == id),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        self.memory().sightings.listed(vm.iter().map(|vm| vm.vm_id.as_str()));
        Ok(vm)
    }

    /// The typed class. A dry run writes no status: what it found out stands in its memory.
    pub(super) fn body<'a>(&self, class: &'a NodeClass) -> Result<Cow<'a, OutscaleNodeClass>, Error> {
        let body = opened(class)?;
        let key = (Arc::clone(&class.uid), class.generation);
        match self.memory().resolved.get(&key) {
            Some(status) => Ok(Cow::Owned(OutscaleNodeClass { status: Some(status.clone()), ..body.clone() })),
            None => Ok(Cow::Borrowed(body)),
        }
    }

    pub(super) async fn types(&self, class: &NodeClass) -> Result<Assortment, Error> {
        let body = self.body(class)?;
        let offer = self.market.offer().await;
        let status = body.status.clone().unwrap_or_default();
        // Whether a subnet has room, and not how much, decides what is offered.
        let subnets: Vec<(&str, bool)> =
            status.subnets.iter().map(|subnet| (subnet.zone.as_str(), subnet.available_ips > 0)).collect();
        // What is learnt while the list is made counts for the next one.
        let learnt = self.learnt.epoch();
        let image = status.images.first().map(|image| &image.id);
        let key =
            serde_json::to_string(&(&body.spec, subnets, image, offer.epoch, learnt)).expect("all keys are texts");
        let name = &class.reference.name;
        if let Some(kept) = self.catalogues.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && kept.key == key
        {
            return Ok(Assortment { types: Arc::clone(&kept.types), lacks: offer.lacks() });
        }
        let wanted = Wanted {
            spec: &body.spec,
            status: &status,
            listed: &offer.listed,
            prices: &offer.prices,
            learnt: &self.learnt,
            memory_overhead: self.settings.memory_overhead,
        };
        let types = Arc::new(catalogue::instance_types(&wanted).into_iter().map(Arc::new).collect());
        let kept = Kept { key, types: Arc::clone(&types) };
        self.catalogues.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(name), kept);
        Ok(Assortment { types, lacks: offer.lacks() })
    }

    async fn launched(&self, spec: &LaunchSpec) -> Result<Machine, Error> {
        usable(&spec.class)?;
        let body = self.body(&spec.class)?;
        let class: &OutscaleNodeClass = &body;
        if let Some(known) = self.memory().imagined.values().find(|known| known.token.as_ref() == Some(&spec.token)) {
            return Ok(known.clone());
        }
        let birth = Birth { cloud: self, spec, class };
        if self.settings.dry_run {
            let machine = birth.rehearsed().await?;
            self.memory().imagined.insert(machine.id.clone(), machine.clone());
            if let Some(why) = self.imagined_beyond_quotas().await {
                tracing::warn!(nodeclaim = %spec.claim.name, why, "dry run: a quota is in the way");
            }
            return Ok(machine);
        }
        let vm = birth.launched().await?;
        let offer = self.offer_for(std::slice::from_ref(&vm)).await;
        self.gpus.tend(&self.client, std::iter::once(&vm), &offer.listed).await;
        let machine = self
            .read(&vm, &offer, Some(class))
            .ok_or_else(|| Error::Unknown(format!("CreateVms: VM {} came without a subregion", vm.vm_id)))?;
        self.memory().sightings.launched(&vm.vm_id, &machine);
        Ok(machine)
    }

    async fn with_token(&self, token: &ClaimUid) -> Result<Vec<Machine>, Error> {
        if let Some(known) = self.memory().imagined.values().find(|known| known.token.as_ref() == Some(token)) {
            return Ok(vec![known.clone()]);
        }
        let found = self.by_token.ask(&self.client, tokens(token.as_str())).await.map_err(read_failed)?;
        self.memory().sightings.listed(found.iter().map(|vm| vm.vm_id.as_str()));
        let offer = self.offer_for(&found).await;
        let mut machines = Vec::new();
        for vm in found.into_iter().filter(|vm| !vm.state.is_leaving()) {
            let vm = self.finished(token, vm).await?;
            machines
                .extend(self.read(&vm, &offer, None).map(|machine| Machine { token: Some(token.clone()), ..machine }));
        }
        Ok(machines)
    }

    /// What is said of a machine that no list shows.
    fn unlisted(&self, vm_id: &str) -> Result<Whereabouts, Error> {
        match self.memory().sightings.absence(vm_id) {
            Absence::Gone => Ok(Whereabouts::Unknown),
            Absence::Unsettled(Some(launched)) => Ok(Whereabouts::There(launched)),
            Absence::Unsettled(None) => Err(Error::Temporary(format!(
                "VM {vm_id} is not listed; as lists may show a new VM late, it counts as gone when that is so for {} s",
                SETTLES_WITHIN.as_secs()
            ))),
        }
    }
}

/// A failed read: certainly without effect.
pub(super) fn read_failed(error: Failure) -> Error {
    match Error::from(error) {
        Error::Unknown(message) => Error::Temporary(message),
        other => other,
    }
}

/// The typed class. Of one that cannot be read, its condition says why.
fn opened(class: &NodeClass) -> Result<&OutscaleNodeClass, Error> {
    class.body.downcast_ref::<OutscaleNodeClass>().ok_or_else(|| {
        let why = find_condition(&class.conditions, "Ready").map(|ready| &*ready.message);
        not_ready(class, why.unwrap_or("is no OutscaleNodeClass that can be read"))
    })
}

fn not_ready(class: &NodeClass, why: impl fmt::Display) -> Error {
    Error::Launch(LaunchRefused::ClassNotReady(format!("{}: {why}", class.reference)))
}

/// The class, if machines may be launched with it.
fn usable(class: &NodeClass) -> Result<(), Error> {
    opened(class)?;
    if class.deleting.is_some() {
        return Err(not_ready(class, "is being deleted"));
    }
    match find_condition(&class.conditions, "Ready") {
        Some(ready) if ready.status == Status::True => Ok(()),
        Some(ready) => Err(not_ready(class, format_args!("{} {}", ready.reason, ready.message))),
        None => Err(not_ready(class, "has not been judged yet")),
    }
}

impl Cloud for Outscale {
    fn name(&self) -> &'static str {
        "outscale"
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        vec![(CLASS_GROUP, CLASS_KIND)]
    }

    fn label_keys(&self) -> Vec<&'static str> {
        catalogue::LABEL_KEYS.to_vec()
    }

    fn class_conditions(&self) -> &'static [&'static str] {
        &DEPENDENTS
    }

    fn resolve<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Resolution, Error>> {
        async move {
            let body = opened(class)?;
            let offer = self.market.offer().await;
            let (mut resolution, status) =
                class::resolve((&self.client, &self.quotas), &self.settings, &self.templates, &offer, body).await;
            self.unmarkable.judge(class, &mut resolution.judgements);
            let counted =
                |judgement: &Judgement| judgement.condition == "SubnetsReady" && judgement.status == Status::True;
            if resolution.judgements.iter().any(counted) {
                self.launches.counted(status.subnets.iter().map(|subnet| subnet.id.as_str()));
            }
            let subnets = status.subnets.iter().map(|subnet| subnet.id.clone()).collect();
            self.memory().subnets.insert(Arc::clone(&class.reference.name), subnets);
            if self.settings.dry_run {
                let key = (Arc::clone(&class.uid), class.generation);
                self.memory().resolved.insert(key, status);
            }
            Ok(resolution)
        }
        .boxed()
    }

    fn misfit(&self, class: &NodeClass, pool: &Pool) -> Option<String> {
        let body = self.body(class).ok()?;
        fit::misfit(&body, &class.reference, pool)
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        self.types(class).boxed()
    }

    fn learn(&self, shown: &Shown<'_>) -> bool {
        if let Some(vm_id) = vm_id(shown.machine) {
            self.memory().nodes.insert(vm_id.to_owned(), shown.node.to_owned());
        }
        let memory = shown.capacity.get(&ResourceName::Memory);
        let news = self.learnt.learn(shown.instance_type, shown.image, memory);
        if news {
            let (vm_type, mib) = (shown.instance_type, memory / 1000 / (1 << 20));
            tracing::info!(vm_type, image = shown.image, mib, "learnt from a Node how much memory such machines have");
        }
        news
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        self.launched(spec).boxed()
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        async move {
            if let Some(imagined) = self.memory().imagined.get(id) {
                return Ok(Some(imagined.clone()).into());
            }
            let Some(vm_id) = vm_id(id) else { return Ok(Whereabouts::Unknown) };
            let Some(vm) = self.row(vm_id).await.map_err(read_failed)? else { return self.unlisted(vm_id) };
            if vm.state.is_gone() {
                return Ok(Whereabouts::Ended);
            }
            // Whoever asks for one machine believes that it is theirs: if it says itself that it is another's, by its client token, they should know.
            let said = || marks::token(&vm).or_else(|| marks::tag(&vm, marks::NODECLAIM_UID)).map(ClaimUid::from);
            let offer = self.offer_for(std::slice::from_ref(&vm)).await;
            Ok(self
                .read(&vm, &offer, None)
                .map(|machine| Machine { token: machine.token.clone().or_else(said), ..machine })
                .into())
        }
        .boxed()
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        self.with_token(token).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        self.listed().boxed()
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        self.taken_down(id).boxed()
    }

    fn may_deny_for(&self) -> Duration {
        SETTLES_WITHIN
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, _operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let missing = || Error::Missing(id.clone());
            let vm_id = vm_id(id).ok_or_else(missing)?;
            let vm = self.vm(vm_id).await.map_err(read_failed)?.ok_or_else(missing)?;
            self.proven(&vm)?;
            let request = wire::RebootVms { vm_ids: vec![vm.vm_id] };
            if self.settings.dry_run {
                self.client.rehearse(&request).await.map_err(Error::from)?;
                tracing::info!(machine = %id, "dry run: would reboot the machine");
                return Ok(());
            }
            match self.client.call(&request).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_not_found() => Err(missing()),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.difference(claim, class).boxed()
    }

    /// A kubelet that is silent counts as one that says that it is not ready. Talos has no node problem detector of its own.
    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |status, reason| RepairPolicy {
            condition: "Ready",
            status,
            toleration: NOT_READY,
            action: RepairAction::Replace,
            termination_grace: None,
            priority: 0,
            reason,
        };
        vec![policy(Status::False, None), policy(Status::Unknown, Some(".*"))]
    }
}

impl fmt::Debug for Outscale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outscale")
            .field("client", &self.client)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "cloud_tests.rs"]
mod tests;
