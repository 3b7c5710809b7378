//! The cloud of 3DS OUTSCALE, wired: who we are to its API, and what of its prices a plan uses.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::FutureExt;

use crate::actors::runtime::Clock;
use crate::clouds::outscale::oapi::{Access, Client, Dialect, Network, Options, Proxy, Rate};
use crate::clouds::outscale::{self, Outscale, Secrets};
use crate::clouds::{Cloud as _, Judgement, Resolution};
use crate::cluster::convert::UNREADABLE;
use crate::config::{Settings, Signature};
use crate::core::facts::{InstanceType, Status, find_condition};
use crate::core::scheduling::PlannedClaim;
use crate::plan::{Answer, Input};

/// The cloud. Keys come from a Secret where one is named, else as Outscale's own tools read them; machine configurations, from Secrets elsewhere.
pub(super) async fn cloud(
    settings: &Settings,
    (keys, configurations): (Arc<dyn Secrets>, Arc<dyn Secrets>),
    clock: Clock,
    dry_run: bool,
) -> Result<Outscale> {
    let told = &settings.outscale;
    let dialect = match told.signature {
        Signature::Aws4 => Dialect::Aws4,
        Signature::Osc4 => Dialect::Osc4,
    };
    let access = Access { dialect, ..told_access(told.secret.as_deref(), &*keys).await? };
    let proxy = Proxy::read(|name| std::env::var(name).ok(), &access.endpoint).context("no access to Outscale")?;
    let network = Network::through(&access, proxy.as_ref()).context("no access to Outscale")?;
    let mut options = Options::new(Arc::new(move || clock.now()));
    options.seed = u64::from(std::process::id());
    let (secret, place) = (told.secret.clone(), keys);
    options.reread = Some(Arc::new(move || {
        let (secret, place) = (secret.clone(), Arc::clone(&place));
        let read = async move { told_access(secret.as_deref(), &*place).await };
        read.map(|read| read.map(|access| access.keys).map_err(|error| format!("{error:#}"))).boxed()
    }));
    options.limits.each = Rate::new(f64::from(told.api_rps), told.api_rps.saturating_mul(2));
    tracing::info!(endpoint = %access.endpoint, region = access.region, signature = ?dialect, ?proxy, dry_run, "using Outscale's API");
    let client = Arc::new(Client::new(access, Arc::new(network), options));
    let cluster = told.cluster_name.clone().unwrap_or_else(|| "plan".to_owned());
    let settings = outscale::Settings {
        cluster_id: told.cluster_id.clone().unwrap_or_else(|| cluster.clone()),
        cluster,
        prices: told.prices.clone(),
        memory_overhead: told.memory_overhead,
        dry_run,
    };
    Ok(Outscale::new(client, configurations, settings)?)
}

/// Who we are to the API: of the Secret that is named, with what variables say of the way to it; else as Outscale's own tools read it.
async fn told_access(secret: Option<&str>, secrets: &dyn Secrets) -> Result<Access> {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(name) = secret {
        let or = "--osc-secret (or leave it out, and export OSC_ACCESS_KEY and OSC_SECRET_KEY)";
        let data = secrets.read(name).await.context(or)?;
        return Access::of_secret(&data, variable).with_context(|| format!("Secret {name}"));
    }
    Access::read(variable, |path| std::fs::read_to_string(path)).context("no access to Outscale")
}

/// Whether there is something to say of a condition. What was not asked for another's sake is nobody's question here.
fn is_told(judgement: &Judgement) -> bool {
    match judgement.status {
        Status::True => !judgement.message.is_empty(),
        Status::False => true,
        Status::Unknown => judgement.reason != outscale::NOT_ASKED,
    }
}

/// What is wrong with a NodeClass for which nothing may be launched; nothing when all that was judged is right. Keys that may only read are enough
/// for a plan, and so are NodeClasses whose machine configurations nobody has given. Where nothing could be asked, what `PermissionsReady` says is why.
fn unready(resolution: &Resolution) -> Option<String> {
    let is_blocked = resolution.judgements.iter().any(|judgement| judgement.reason == outscale::NOT_ASKED);
    let is_lesser = |judgement: &Judgement| match judgement.condition {
        "PermissionsReady" if judgement.status == Status::Unknown => !is_blocked,
        "PermissionsReady" => judgement.reason != outscale::UNAUTHORIZED,
        "UserDataReady" => judgement.status == Status::Unknown,
        _ => false,
    };
    let wrong = resolution.judgements.iter().filter(|judgement| judgement.status != Status::True);
    let said: Vec<String> = wrong
        .filter(|judgement| is_told(judgement) && !is_lesser(judgement))
        .map(|Judgement { condition, status, message, .. }| format!("{condition} is {}: {message}", status.as_str()))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What is said of a class that cannot be read.
fn unread(why: &str) -> Resolution {
    let judgement =
        Judgement { condition: "Ready", status: Status::False, reason: UNREADABLE, message: why.to_owned() };
    Resolution { judgements: vec![judgement], details: None }
}

/// What the account's quotas would refuse of a plan; nothing when there is room for all of it.
pub(super) async fn beyond_quotas(cloud: &Outscale, answer: &Answer) -> Option<String> {
    let pools = &answer.input.catalog.pools;
    let cheapest = |claim: &PlannedClaim| {
        let name = claim.instance_types.first()?;
        pools.get(&claim.draft.pool)?.iter().find(|kind| kind.name == *name)
    };
    let kinds: Vec<&InstanceType> = answer.plan.claims.iter().filter_map(cheapest).map(|kind| &**kind).collect();
    cloud.beyond_quotas(&kinds).await
}

/// Has a plan buy what Outscale sells to the NodeClasses in it; machine configurations are judged as far as they are given. Answers with the cloud, what
/// is wrong with them and where its prices come from, one sentence each.
pub(super) async fn sell(
    input: &mut Input,
    settings: &Settings,
    (keys, configurations): (Arc<dyn Secrets>, Arc<dyn Secrets>),
    clock: Clock,
) -> Result<(Outscale, Vec<String>)> {
    let cloud = cloud(settings, (keys, configurations), clock, true).await?;
    let mut notices = Vec::new();
    input.label_keys = outscale::LABEL_KEYS.to_vec();
    let classes: Vec<_> = input.snapshot.classes.values().cloned().collect();
    for class in classes.iter().filter(|class| &*class.reference.group == outscale::CLASS_GROUP) {
        let pools: Vec<_> = input.snapshot.pools.values().cloned().collect();
        let pools = || pools.iter().filter(|pool| pool.template.class == class.reference);
        // A class that nobody can read keeps no plan for the others from being made.
        let unreadable = find_condition(&class.conditions, "Ready").filter(|ready| &*ready.reason == UNREADABLE);
        let resolution = match unreadable {
            Some(ready) => unread(&ready.message),
            None => cloud.resolve(class).await?,
        };
        // Its file was told of, and each of its NodePools is.
        let is_said = unreadable.is_some() && pools().next().is_some();
        for judgement in resolution.judgements.iter().filter(|judgement| !is_said && is_told(judgement)) {
            let Judgement { condition, status, message, .. } = judgement;
            notices.push(format!("{}: {condition} is {}: {message}", class.reference, status.as_str()));
        }
        let unready = unready(&resolution);
        // What `run` would launch nothing for is not bought for either.
        let types = if unready.is_none() { cloud.catalog(class).await?.types } else { Arc::default() };
        input.sell(&class.reference, &types);
        for pool in pools() {
            let why = unready.as_ref().map(|why| format!("{} is not ready: {why}", class.reference));
            if let Some(why) = why.or_else(|| cloud.misfit(class, pool)) {
                input.refuse(pool, &why);
            }
        }
    }
    for pool in input.snapshot.pools.values() {
        let class = &pool.template.class;
        if !input.snapshot.classes.contains_key(class) || &*class.group != outscale::CLASS_GROUP {
            notices.push(format!(
                "NodePool {}: nothing can be bought for it, as there is no {} among what is planned for; add it",
                pool.name, class
            ));
            input.catalog.pools.insert(pool.name.clone(), Arc::default());
        }
    }
    notices.push(format!("prices are those of the {}", cloud.price_source().await));
    input.overlay();
    Ok((cloud, notices))
}
