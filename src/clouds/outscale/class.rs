//! What a NodeClass comes to: asked of the API, of the Secret and of the market, and judged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::classes::outscale::{
    OutscaleNodeClass, OutscaleNodeClassSpec, OutscaleNodeClassStatus, ResolvedImage, ResolvedSecurityGroup,
    ResolvedSubnet,
};
use crate::clouds::Resolution;
use crate::core::labels::Labels;
use crate::core::quantity::Quantity;

use super::birth;
use super::cloud::Settings;
use super::found::{Fault, Found};
use super::market::Offer;
use super::marks::Marked;
use super::oapi::{Class, Client, wire};
use super::quotas::Quotas;
use super::secrets::{SecretError, Secrets};
use super::talos::{Template, Wrong};
use super::{catalogue, permissions, resolve, types, volumes};

/// How long a machine configuration that was read is good for launches.
const FRESH_FOR: Duration = Duration::from_mins(1);

/// Reason of a fault that is the API server's, or of whoever gave no such file, and not the Secret's.
const UNREACHABLE: &str = "SecretUnreachable";
/// Reason where no Secrets are looked at.
const UNASKED: &str = "SecretNotAsked";

/// Asks everything that a NodeClass depends on.
pub(super) async fn resolve(
    (client, quotas): (&Client, &Quotas),
    settings: &Settings,
    desk: &Templates,
    offer: &Offer,
    class: &OutscaleNodeClass,
) -> (Resolution, OutscaleNodeClassStatus) {
    let spec = &class.spec;
    let old = class.status.clone().unwrap_or_default();
    let mut judgements = Vec::new();
    let brings_gpus = catalogue::admitted(spec, &offer.listed, &offer.prices).iter().any(|kind| kind.gpus > 0);
    let (images, subnets, keypair, volumes, template, may) = tokio::join!(
        images(client, quotas, spec),
        subnets(client, spec),
        keypair(client, spec),
        volumes(client, spec),
        desk.fresh(spec),
        permissions::asked(client, brings_gpus)
    );
    let images = images.told("ImagesReady", &mut judgements);
    // A class whose own machines fill its subnets is not to lose those that are under way, as it would if it were not ready: what is full is closed
    // to launches, and NodePools that have no other subnets say so. It is open again with the next look at the class, every five minutes.
    let subnets = subnets.remarked("SubnetsReady", &mut judgements, |found| resolve::full(found));
    let net = subnets.as_ref().unwrap_or(&old.subnets).first().map(|subnet| subnet.net_id.clone());
    let groups = groups(client, spec, net.as_deref()).await.told("SecurityGroupsReady", &mut judgements);
    keypair.told("KeypairReady", &mut judgements);
    volumes.told("VolumesReady", &mut judgements);
    let template = user_data(template, settings, class).told("UserDataReady", &mut judgements);
    // Nothing is wrong with the class, and whoever misses a type or a restart finds out why.
    types(spec, offer).remarked("TypesReady", &mut judgements, String::clone);
    may.remarked("PermissionsReady", &mut judgements, String::clone);
    // What is not found any more is still what machines were launched with; the conditions say that nothing new can be launched.
    let status = OutscaleNodeClassStatus {
        images: images.unwrap_or_else(|| old.images.clone()),
        subnets: subnets.unwrap_or_else(|| old.subnets.clone()),
        security_groups: groups.unwrap_or_else(|| old.security_groups.clone()),
        user_data_hash: template.or_else(|| old.user_data_hash.clone()),
        conditions: Vec::new(),
    };
    let changed = status != OutscaleNodeClassStatus { conditions: Vec::new(), ..old };
    let details = changed.then(|| details(&status));
    (Resolution { judgements, details }, status)
}

/// The fields of a status that are not conditions. Lists are written even when they are empty, so that nothing outdated stays.
fn details(status: &OutscaleNodeClassStatus) -> Arc<str> {
    let fields = serde_json::json!({
        "images": status.images,
        "subnets": status.subnets,
        "securityGroups": status.security_groups,
        "userDataHash": status.user_data_hash,
    });
    fields.to_string().into()
}

async fn images(client: &Client, quotas: &Quotas, spec: &OutscaleNodeClassSpec) -> Found<Vec<ResolvedImage>> {
    let mut found = Vec::new();
    for mut term in spec.image_terms() {
        // Anybody may publish an image under any name, and what a machine is told at its birth opens the cluster.
        if term.id.is_none() && term.owner.is_none() {
            match own_account(client, quotas).await {
                Found::Good(account) => term.owner = Some(account),
                Found::Bad(fault) => return Found::Bad(fault),
                Found::Unanswered(why) => return Found::Unanswered(why),
                Found::NotAsked(why) => return Found::NotAsked(why),
            }
        }
        match client.all(&resolve::images_of(&term)).await {
            Ok(images) => found.push((term, images)),
            // That an ID is unknown is an answer.
            Err(error) if error.is_not_found() => found.push((term, Vec::new())),
            Err(error) => return Found::failed(&error),
        }
    }
    Found::of(resolve::images(&found, spec))
}

/// Whether the class has types. As long as the API's list of them has never been read, nothing is said against any.
fn types(spec: &OutscaleNodeClassSpec, offer: &Offer) -> Found<String> {
    match types::judged(spec, offer) {
        Err(_) if offer.listed.is_empty() => {
            Found::NotAsked("the API's list of VM types has not been read yet; joiner asks for it every minute")
        }
        Ok(_) if offer.listed.is_empty() => Found::Good(String::new()),
        judged => Found::of(judged),
    }
}

/// The account whose images are meant where no owner is named.
async fn own_account(client: &Client, quotas: &Quotas) -> Found<String> {
    const FIELD: &str =
        "spec.imageSelectorTerms: a term without owner means images of the keys' own account; write its ID as owner";
    match quotas.account(client).await {
        Ok(Some(account)) => Found::Good(account),
        Ok(None) => Found::Bad(Fault::new("OwnerUnknown", format!("{FIELD}, as the API does not say which it is"))),
        Err(error) => match Found::<String>::failed(&error) {
            Found::Bad(fault) if error.class == Class::Denied => {
                Found::Bad(Fault::new(fault.reason, format!("{FIELD}, or have it read: {}", fault.message)))
            }
            other => other,
        },
    }
}

async fn subnets(client: &Client, spec: &OutscaleNodeClassSpec) -> Found<Vec<ResolvedSubnet>> {
    let mut found = Vec::new();
    for term in spec.subnet_terms() {
        match client.all(&resolve::subnets_of(&term)).await {
            Ok(subnets) => found.push((term, subnets)),
            Err(error) if error.is_not_found() => found.push((term, Vec::new())),
            Err(error) => return Found::failed(&error),
        }
    }
    Found::of(resolve::subnets(&found))
}

async fn groups(client: &Client, spec: &OutscaleNodeClassSpec, net: Option<&str>) -> Found<Vec<ResolvedSecurityGroup>> {
    let mut found = Vec::new();
    for term in spec.security_group_terms() {
        match client.all(&resolve::groups_of(&term)).await {
            Ok(groups) => found.push((term, groups)),
            Err(error) if error.is_not_found() => found.push((term, Vec::new())),
            Err(error) => return Found::failed(&error),
        }
    }
    Found::of(resolve::groups(&found, net))
}

async fn keypair(client: &Client, spec: &OutscaleNodeClassSpec) -> Found<()> {
    let Some(name) = &spec.keypair_name else { return Found::Good(()) };
    let filters = wire::KeypairFilters { keypair_names: vec![name.clone()], ..wire::KeypairFilters::default() };
    let missing = || {
        let message = format!(
            "spec.keypairName: the account has no keypair {name}; correct it, or leave the field out (Talos needs none)"
        );
        Found::Bad(Fault::new("KeypairNotFound", message))
    };
    match client.all(&wire::ReadKeypairs { filters: Some(filters), ..wire::ReadKeypairs::default() }).await {
        Ok(found) if found.iter().any(|keypair| keypair.keypair_name == *name) => Found::Good(()),
        Ok(_) => missing(),
        Err(error) if error.is_not_found() => missing(),
        Err(error) => Found::failed(&error),
    }
}

async fn volumes(client: &Client, spec: &OutscaleNodeClassSpec) -> Found<()> {
    let snapshot_ids = volumes::snapshots(spec);
    let mut found = Vec::new();
    // One by one: the API may refuse a list for one ID that it does not know.
    for id in snapshot_ids {
        let filters = wire::SnapshotFilters { snapshot_ids: vec![id] };
        match client.all(&wire::ReadSnapshots { filters: Some(filters), ..wire::ReadSnapshots::default() }).await {
            Ok(snapshots) => found.extend(snapshots),
            // That an ID is unknown is an answer.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Found::failed(&error),
        }
    }
    Found::of(volumes::judged(spec, &found))
}

/// Whether a configuration fits into user data, with all that a launch adds to it; and its hash.
fn user_data(template: Result<Arc<Template>, Fault>, settings: &Settings, class: &OutscaleNodeClass) -> Found<String> {
    let spec = &class.spec;
    let template = match template {
        Ok(template) => template,
        Err(fault) if fault.reason == UNREACHABLE => return Found::Unanswered(fault.message),
        Err(fault) if fault.reason == UNASKED => return Found::NotAsked("no Secrets are read here"),
        Err(fault) => return Found::Bad(fault),
    };
    if let Some(problem) = kept_wrongly(spec) {
        return Found::Bad(Fault::new("InvalidKubelet", problem));
    }
    let hash = template.hash();
    // The marks of a machine whose names are as long as names can be.
    let name = "x".repeat(LONGEST_NAME);
    let marked = Marked {
        cluster: &settings.cluster,
        cluster_id: &settings.cluster_id,
        claim: &name,
        uid: "00000000-0000-0000-0000-000000000000",
        pool: Some(&name),
        spec,
        user_data_hash: &hash,
    };
    let own = super::talos::Own { claim: &name, labels: &Labels::new(), taints: &[] };
    let whole = template.made_out_for(own) + &"x".repeat(OWN_PART);
    match birth::user_data(&marked.at_birth(Some(&name)), spec.placement.as_ref(), &whole) {
        Ok(_) => Found::Good(hash),
        Err(unfit) => Found::Bad(Fault::new("UserDataUnfit", format!("{}: {unfit}", unfit.field()))),
    }
}

/// The most characters of an object's name.
const LONGEST_NAME: usize = 253;
/// Bytes that a machine's labels and taints may take, whatever NodePool it is of.
const OWN_PART: usize = 16 * 1024;

/// The first amount that a kubelet cannot keep.
fn kept_wrongly(spec: &OutscaleNodeClassSpec) -> Option<String> {
    let kubelet = spec.kubelet.as_ref()?;
    let fields = [("systemReserved", &kubelet.system_reserved), ("kubeReserved", &kubelet.kube_reserved)];
    let mut all = fields.into_iter().flat_map(|(field, kept)| kept.iter().flatten().map(move |entry| (field, entry)));
    all.find_map(|(field, (name, amount))| match Quantity::parse(amount.as_str()) {
        Ok(amount) if !amount.is_negative() => None,
        Ok(_) => Some(format!("spec.kubelet.{field}.{name}: is negative; write zero or more")),
        Err(error) => Some(format!("spec.kubelet.{field}.{name}: {error}")),
    })
}

/// Reads machine configurations, and keeps them for as long as a burst of launches takes.
pub(super) struct Templates {
    secrets: Arc<dyn Secrets>,
    kept: Mutex<BTreeMap<String, (Instant, Arc<Template>)>>,
}

impl Templates {
    pub(super) fn new(secrets: Arc<dyn Secrets>) -> Self {
        Self { secrets, kept: Mutex::default() }
    }

    /// The configuration of a class, at most a minute old.
    pub(super) async fn of(&self, spec: &OutscaleNodeClassSpec) -> Result<Arc<Template>, Fault> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key(spec)).cloned();
        match kept {
            Some((read, template)) if read.elapsed() < FRESH_FOR => Ok(template),
            _ => self.fresh(spec).await,
        }
    }

    /// The configuration of a class as it is now.
    pub(super) async fn fresh(&self, spec: &OutscaleNodeClassSpec) -> Result<Arc<Template>, Fault> {
        let template = Arc::new(self.read(spec).await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (read, _)| read.elapsed() < FRESH_FOR);
        kept.insert(key(spec), (Instant::now(), Arc::clone(&template)));
        Ok(template)
    }

    async fn read(&self, spec: &OutscaleNodeClassSpec) -> Result<Template, Fault> {
        let reference = &spec.talos.secret_ref;
        let data = self.secrets.read(&reference.name).await.map_err(|error| {
            let (reason, more) = match &error {
                SecretError::Missing(_) => ("SecretNotFound", ""),
                SecretError::Forbidden(_) => ("SecretForbidden", ""),
                SecretError::Unreachable(..) => (UNREACHABLE, ""),
                SecretError::NotGiven(_) => (UNREACHABLE, ", to have the machine configuration judged"),
                SecretError::NotAsked(_) => (UNASKED, ""),
            };
            Fault::new(reason, format!("spec.talos.secretRef: {error}{more}"))
        })?;
        let key = reference.key();
        let Some(bytes) = data.get(key) else {
            let there: Vec<&str> = data.keys().map(String::as_str).collect();
            let message = format!(
                "spec.talos.secretRef: Secret {} has no key {key} (there are: {}); store the worker's configuration under it",
                reference.name,
                there.join(", ")
            );
            return Err(Fault::new("SecretKeyNotFound", message));
        };
        let secret = format!("Secret {}, key {key}", reference.name);
        let unfit = |wrong: Vec<Wrong>| Fault::new("InvalidMachineConfiguration", by_place(&secret, &wrong));
        let text = std::str::from_utf8(bytes).map_err(|_| {
            unfit(vec![Wrong { field: None, what: "is no UTF-8 text; store the file as it is".to_owned() }])
        })?;
        Template::read(text, &spec.talos, spec.kubelet.as_ref()).map_err(unfit)
    }
}

/// All that is wrong with a configuration in one sentence: what is in the Secret first, then what each field of the NodeClass has brought in.
fn by_place(secret: &str, wrong: &[Wrong]) -> String {
    let mut places: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for Wrong { field, what } in wrong {
        places.entry(field.as_deref()).or_default().push(what);
    }
    let told = places.iter().map(|(field, all)| format!("{}: {}", field.unwrap_or(secret), all.join("; ")));
    told.collect::<Vec<_>>().join("; ")
}

/// All that a template is made from, besides the Secret's content.
fn key(spec: &OutscaleNodeClassSpec) -> String {
    serde_json::to_string(&(&spec.talos, &spec.kubelet)).expect("all keys are texts")
}

#[cfg(test)]
#[path = "class_tests.rs"]
mod tests;
