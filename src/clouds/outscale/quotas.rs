//! Quotas: which of them a launch has run into, and what they leave. The API says that one is reached, and not which.

use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::oapi::wire::{Quota, ReadQuotas};
use super::oapi::{Class, Client, Error};

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

/// What quotas count of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size {
    /// vCores.
    pub(super) cores: i64,
    /// Memory in GiB, begun ones whole.
    pub(super) gib: i64,
}

impl Size {
    /// Whether it is as large in every way.
    pub(super) fn holds(self, other: Self) -> bool {
        self.cores >= other.cores && self.gib >= other.gib
    }
}

/// What keeps a machine from being made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shortage {
    /// Which quotas, and what to do about it.
    pub(super) told: String,
    /// What the account may still have; nothing when that is not known.
    pub(super) left: Option<Left>,
}

/// What an account may still have; what no quota counts is not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Left {
    machines: Option<i64>,
    cores: Option<i64>,
    gib: Option<i64>,
}

impl Left {
    /// Whether there is room for a machine of this size.
    pub(super) fn has_room_for(&self, size: Size) -> bool {
        let needs = [(self.machines, 1), (self.cores, size.cores), (self.gib, size.gib)];
        needs.into_iter().all(|(left, need)| left.is_none_or(|left| need <= left))
    }
}

impl Quotas {
    /// Names the quotas that keep a machine of this size from being made, and what to do about it.
    pub(super) async fn in_the_way(&self, client: &Client, size: Size) -> Shortage {
        let mut known = self.last.lock().await;
        if known.as_ref().is_none_or(|reading| reading.at.elapsed() >= FRESH_FOR) {
            let read = client.all(&ReadQuotas::default()).await;
            let quotas = read.map(|kinds| kinds.into_iter().flat_map(|kind| kind.quotas).collect());
            *known = Some(Reading { at: Instant::now(), quotas: quotas.map_err(|error| error.class) });
        }
        let told = match known.as_ref().map(|reading| &reading.quotas) {
            Some(Ok(quotas)) => return shortage(quotas, size),
            Some(Err(Class::Denied)) => {
                format!("allow the action api:ReadQuotas in an EIM policy to have the quota named here; {REMEDY}")
            }
            _ => format!("which quota that is could not be read; {REMEDY}"),
        };
        Shortage { told, left: None }
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

/// What a quota counts, as far as its name says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counts {
    Machines,
    Cores,
    Gib,
}

impl Counts {
    fn of(quota: &Quota) -> Option<Self> {
        let name = quota.name.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if is(&["core", "cpu"]) {
            Some(Self::Cores)
        } else if is(&["memory", "ram"]) {
            Some(Self::Gib)
        } else {
            is(&["vm_limit", "vm_count", "instance"]).then_some(Self::Machines)
        }
    }

    /// How much of it one machine takes.
    fn need(self, size: Size) -> i64 {
        match self {
            Self::Machines => 1,
            Self::Cores => size.cores,
            Self::Gib => size.gib,
        }
    }
}

fn shortage(quotas: &[Quota], size: Size) -> Shortage {
    let rows = quotas.iter().filter_map(|quota| Some((quota, quota.used_value?, quota.max_value?)));
    let (mut named, mut others, mut left) = (Vec::new(), Vec::new(), Left::default());
    for (quota, used, most) in rows {
        let Some(counts) = Counts::of(quota) else {
            if used >= most {
                others.push(format!("{} ({used} of {most} used)", quota.name));
            }
            continue;
        };
        let need = counts.need(size);
        if used + need > most {
            named.push(format!("{} ({used} of {most} used, {need} needed)", quota.name));
        }
        let slot = match counts {
            Counts::Machines => &mut left.machines,
            Counts::Cores => &mut left.cores,
            Counts::Gib => &mut left.gib,
        };
        *slot = Some(slot.unwrap_or(i64::MAX).min(most - used));
    }
    // What was read says nothing against this machine: it is not what the API went by.
    let left = (!named.is_empty()).then_some(left);
    // What has nothing to do with machines is only named when nothing else can be meant.
    let reached = if named.is_empty() { others } else { named };
    let told = if reached.is_empty() {
        format!("no quota that can be read is reached; {REMEDY}")
    } else {
        format!("reached: {}; {REMEDY}", reached.join(", "))
    };
    Shortage { told, left }
}

#[cfg(test)]
#[path = "quotas_tests.rs"]
mod tests;
