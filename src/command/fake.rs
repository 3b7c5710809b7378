//! `joiner fake`: serves a stand-in for a cloud's API until it is told to stop.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tokio::net::TcpListener;

use crate::actors::runtime::Clock;
use crate::config::{Fake, FakeCloud, Quota};
use crate::sim::Seed;
use crate::sim::oapi::{self, Account, Scarce};

use super::live;

/// Serves until SIGTERM or Ctrl-C.
pub fn fake(told: &Fake) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, told.port)).await;
        let listener = listener.with_context(|| {
            format!("cannot listen on port {} of 127.0.0.1; name another one with --port", told.port)
        })?;
        let port = listener.local_addr().context("a listener without an address")?.port();
        match told.cloud {
            FakeCloud::Outscale => outscale(listener, port, told).await,
        }
    })
}

async fn outscale(listener: TcpListener, port: u16, told: &Fake) -> Result<()> {
    let clock = Clock::machine();
    let account = account(told)?;
    let greeting = greeting(&account, port);
    let skew = told.clock_skew;
    let now = move || clock.now().saturating_add(skew).unwrap_or_else(|_| clock.now());
    let fake = oapi::Fake::new(account, Arc::new(now), Seed(told.seed));
    fake.conduct(|conduct| {
        conduct.boots_within = told.boots_within;
        conduct.ends_within = told.ends_within;
        conduct.silence = told.silence;
        conduct.lists_after = told.lists_after;
        conduct.loses_answers = f64::from(told.loses_answers) / 100.0;
        conduct.loses_first.clone_from(&told.loses_first);
        conduct.reads_section = !told.ignores_section;
        conduct.limit_each = told.throttles_at;
        conduct.sold_out = told.sold_out.iter().map(scarce).collect();
    });
    say(&greeting)?;
    let stop = async {
        // Without signals there is nothing to wait for.
        let _ = live::signal().await;
    };
    oapi::serve(listener, fake.clone(), stop).await.context("cannot serve")?;
    let calls: Vec<String> = fake.load().iter().map(|(action, load)| format!("# {action}: {load}\n")).collect();
    say(&calls.concat())
}

/// The account of the fake, with what it may not do and not have.
fn account(told: &Fake) -> Result<Account> {
    let mut account = Account::sample();
    if let Some(unknown) = told.deny.iter().find(|action| !oapi::signed_actions().any(|known| known == *action)) {
        let known: Vec<&str> = oapi::signed_actions().collect();
        bail!("--deny {unknown}: no such action needs keys here; there are {}", known.join(", "));
    }
    account.denied = told.deny.iter().cloned().collect();
    let zones: Vec<&str> = account.subregions.iter().map(|subregion| subregion.subregion_name.as_str()).collect();
    let is_unknown = |zone: &&String| !zones.contains(&zone.as_str());
    if let Some(unknown) = told.sold_out.iter().filter_map(|sold_out| sold_out.zone.as_ref()).find(is_unknown) {
        bail!("--sold-out @{unknown}: no such zone here; there are {}", zones.join(", "));
    }
    for quota in &told.quota {
        match *quota {
            Quota::Vms(most) => account.quotas.vms = most,
            Quota::Cores(most) => account.quotas.cores = most,
            Quota::Memory(most) => account.quotas.memory = most,
            Quota::Tags(most) => account.quotas.tags = most,
        }
    }
    Ok(account)
}

fn scarce(sold_out: &crate::config::SoldOut) -> Scarce {
    Scarce { vm_type: sold_out.begins.clone(), subregion: sold_out.zone.clone() }
}

/// What a shell and a NodeClass need to know.
fn greeting(account: &Account, port: u16) -> String {
    let list = |items: Vec<&str>| items.join(" ");
    let subnets = account.subnets.iter().map(|subnet| subnet.subnet_id.as_str()).collect();
    let groups = account.security_groups.iter().map(|group| group.security_group_id.as_str()).collect();
    let images = account.images.iter().map(|image| image.image_id.as_str()).collect();
    let keypairs = account.keypairs.iter().map(|keypair| keypair.keypair_name.as_str()).collect();
    let zones = account.subregions.iter().map(|subregion| subregion.subregion_name.as_str()).collect();
    format!(
        "export OSC_ENDPOINT_API=http://127.0.0.1:{port}/api/v1\n\
         export OSC_ACCESS_KEY={access_key}\n\
         export OSC_SECRET_KEY={secret_key}\n\
         export OSC_REGION={region}\n\
         # subregions: {zones}\n# subnets: {subnets}\n# security groups: {groups}\n# images: {images}\n# keypairs: {keypairs}\n",
        access_key = Account::ACCESS_KEY,
        secret_key = Account::SECRET_KEY,
        region = account.region,
        zones = list(zones),
        subnets = list(subnets),
        groups = list(groups),
        images = list(images),
        keypairs = list(keypairs),
    )
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever read the first lines may have seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
