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
    fn of(quotas: &[Quota]) -> Self {
        let mut left = Self::default();
        for (_, counts, used, most) in counted(quotas) {
            let slot = match counts {
                Counts::Machines => &mut left.machines,
                Counts::Cores => &mut left.cores,
                Counts::Gib => &mut left.gib,
            };
            *slot = Some(slot.unwrap_or(i64::MAX).min(most - used));
        }
        left
    }

    /// Takes the room for a machine of this size, if there is any.
    fn take(&mut self, size: Size) -> bool {
        let has_room = self.has_room_for(size);
        if has_room {
            let needs = [(&mut self.machines, 1), (&mut self.cores, size.cores), (&mut self.gib, size.gib)];
            for (left, need) in needs {
                *left = left.map(|left| left - need);
            }
        }
        has_room
    }

    /// Whether there is room for a machine of this size.
    pub(super) fn has_room_for(&self, size: Size) -> bool {
        let needs = [(self.machines, 1), (self.cores, size.cores), (self.gib, size.gib)];
        needs.into_iter().all(|(left, need)| left.is_none_or(|left| need <= left))
    }
}

impl Quotas {
    /// Names the quotas that keep a machine of this size from being made, and what to do about it.
    pub(super) async fn in_the_way(&self, client: &Client, size: Size) -> Shortage {
        let told = match self.read(client).await {
            Ok(quotas) => return shortage(&quotas, size),
            Err(Class::Denied) => {
                format!("allow the action api:ReadQuotas in an EIM policy to have the quota named here; {REMEDY}")
            }
            Err(_) => format!("which quota that is could not be read; {REMEDY}"),
        };
        Shortage { told, left: None }
    }

    /// How many of these machines, launched in this order, would be refused for a quota, and which; nothing when none would, as far as can be read.
    pub(super) async fn beyond(&self, client: &Client, machines: &[Size]) -> Option<String> {
        if machines.is_empty() {
            return None;
        }
        beyond(&self.read(client).await.ok()?, machines)
    }

    /// All quotas, at most half a minute old; why not, where they cannot be read.
    async fn read(&self, client: &Client) -> Result<Vec<Quota>, Class> {
        let mut known = self.last.lock().await;
        if let Some(reading) = known.as_ref().filter(|reading| reading.at.elapsed() < FRESH_FOR) {
            return reading.quotas.clone();
        }
        let read = client.all(&ReadQuotas::default()).await;
        let quotas = read.map(|kinds| kinds.into_iter().flat_map(|kind| kind.quotas).collect());
        let quotas = quotas.map_err(|error| error.class);
        *known = Some(Reading { at: Instant::now(), quotas: quotas.clone() });
        quotas
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

    /// How much of it machines take.
    fn need(self, machines: &[Size]) -> i64 {
        machines
            .iter()
            .map(|size| match self {
                Self::Machines => 1,
                Self::Cores => size.cores,
                Self::Gib => size.gib,
            })
            .sum()
    }
}

/// The quotas that count machines: what each of them counts, how much of it is used, and the most.
fn counted(quotas: &[Quota]) -> impl Iterator<Item = (&Quota, Counts, i64, i64)> {
    quotas.iter().filter_map(|quota| Some((quota, Counts::of(quota)?, quota.used_value?, quota.max_value?)))
}

/// The quotas that machines do not fit into together.
fn reached(quotas: &[Quota], machines: &[Size]) -> Vec<String> {
    let is_reached = |(quota, counts, used, most): (&Quota, Counts, i64, i64)| {
        let need = counts.need(machines);
        (used + need > most).then(|| format!("{} ({used} of {most} used, {need} needed)", quota.name))
    };
    counted(quotas).filter_map(is_reached).collect()
}

fn shortage(quotas: &[Quota], size: Size) -> Shortage {
    let named = reached(quotas, &[size]);
    // What was read says nothing against this machine: it is not what the API went by.
    let left = (!named.is_empty()).then(|| Left::of(quotas));
    // What has nothing to do with machines is only named when nothing else can be meant.
    let is_other = |quota: &&Quota| Counts::of(quota).is_none();
    let others = quotas.iter().filter(is_other).filter_map(|quota| {
        let (used, most) = (quota.used_value?, quota.max_value?);
        (used >= most).then(|| format!("{} ({used} of {most} used)", quota.name))
    });
    let reached = if named.is_empty() { others.collect() } else { named };
    let told = if reached.is_empty() {
        format!("no quota that can be read is reached; {REMEDY}")
    } else {
        format!("reached: {}; {REMEDY}", reached.join(", "))
    };
    Shortage { told, left }
}

fn beyond(quotas: &[Quota], machines: &[Size]) -> Option<String> {
    let reached = reached(quotas, machines);
    if reached.is_empty() {
        return None;
    }
    let mut left = Left::of(quotas);
    let refused = machines.iter().filter(|size| !left.take(**size)).count();
    let all = machines.len();
    Some(format!("the account's quotas would refuse {refused} of {all} machines: {}; {REMEDY}", reached.join(", ")))
}

#[cfg(test)]
#[path = "quotas_tests.rs"]
mod tests;
