//! Quotas: which of them a launch has run into. The API says that one is reached, and not which.

use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::oapi::wire::{Quota, ReadQuotas};
use super::oapi::{Class, Client, Error};
use super::vm_type::VmType;

/// How long what was read is good for: a burst of launches that are all refused asks once.
const FRESH_FOR: Duration = Duration::from_secs(30);
/// What to do about it.
const REMEDY: &str = "ask Outscale for more, or lower spec.limits of NodePools";

/// The quotas as they were last read.
#[derive(Default)]
pub(super) struct Quotas {
    last: Mutex<Option<Reading>>,
    /// Whose they are, which does not change.
    account: OnceCell<String>,
}

struct Reading {
    at: Instant,
    quotas: Result<Vec<Quota>, Class>,
}

impl Quotas {
    /// Names the quotas that keep a machine of this type from being made, and what to do about it.
    pub(super) async fn in_the_way(&self, client: &Client, vm_type: &str) -> String {
        let mut known = self.last.lock().await;
        if known.as_ref().is_none_or(|reading| reading.at.elapsed() >= FRESH_FOR) {
            let read = client.all(&ReadQuotas::default()).await;
            let quotas = read.map(|kinds| kinds.into_iter().flat_map(|kind| kind.quotas).collect());
            *known = Some(Reading { at: Instant::now(), quotas: quotas.map_err(|error| error.class) });
        }
        match known.as_ref().map(|reading| &reading.quotas) {
            Some(Ok(quotas)) => told(quotas, VmType::parse(vm_type).as_ref()),
            Some(Err(Class::Denied)) => {
                format!("allow the action api:ReadQuotas in an EIM policy to have the quota named here; {REMEDY}")
            }
            _ => format!("which quota that is could not be read; {REMEDY}"),
        }
    }

    /// The account that the keys are of: of all that a node autoscaler may read, quotas alone certainly say it. Nothing when they do not.
    pub(super) async fn account(&self, client: &Client) -> Result<Option<String>, Error> {
        if let Some(known) = self.account.get() {
            return Ok(Some(known.clone()));
        }
        let read = client.all(&ReadQuotas::default()).await?;
        let account = read
            .into_iter()
            .flat_map(|kind| kind.quotas)
            .filter_map(|quota| quota.account_id)
            .find(|id| !id.is_empty());
        if let Some(account) = &account {
            // Whoever came first said the same.
            drop(self.account.set(account.clone()));
        }
        Ok(account)
    }
}

/// How much of a quota one machine takes, by the quota's name; nothing where the name does not say what it counts.
fn need(quota: &Quota, kind: Option<&VmType>) -> Option<i64> {
    let name = quota.name.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if is(&["core", "cpu"]) {
        Some(kind.map_or(1, |kind| i64::from(kind.cores)))
    } else if is(&["memory", "ram"]) {
        Some(kind.map_or(1, |kind| (kind.memory_mib + 1023) / 1024))
    } else {
        is(&["vm_limit", "vm_count", "instance"]).then_some(1)
    }
}

fn told(quotas: &[Quota], kind: Option<&VmType>) -> String {
    let rows = quotas.iter().filter_map(|quota| Some((quota, quota.used_value?, quota.max_value?)));
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for (quota, used, most) in rows {
        match need(quota, kind) {
            Some(need) if used + need > most => {
                named.push(format!("{} ({used} of {most} used, {need} needed)", quota.name));
            }
            None if used >= most => others.push(format!("{} ({used} of {most} used)", quota.name)),
            _ => {}
        }
    }
    // What has nothing to do with machines is only named when nothing else can be meant.
    let reached = if named.is_empty() { others } else { named };
    if reached.is_empty() {
        return format!("no quota that can be read is reached; {REMEDY}");
    }
    format!("reached: {}; {REMEDY}", reached.join(", "))
}

#[cfg(test)]
#[path = "quotas_tests.rs"]
mod tests;
