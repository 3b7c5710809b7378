//! Disruption budgets of NodePools (`spec.disruption.budgets`): how many nodes may be on their way out at once, for which reason, and when.
//!
//! Nothing is disrupted by choice yet: so far the allowance is shown, in metrics and on the page of `pools`.

use std::collections::BTreeMap;
use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use jiff::{SignedDuration, Timestamp};

use crate::core::facts::{Budget, Pool, Snapshot};
use crate::core::ids::PoolName;

/// Schedules with a name, and what they stand for.
const NAMED: [(&str, &str); 7] = [
    ("@annually", "0 0 1 1 *"),
    ("@yearly", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Why a node would be disrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It runs nothing but daemons.
    Empty,
    /// It is not as its NodePool or NodeClass has it.
    Drifted,
    /// Its pods would fit elsewhere at less cost.
    Underutilized,
    /// It is broken.
    Unhealthy,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Empty, Self::Drifted, Self::Underutilized, Self::Unhealthy];

    /// As budgets write it.
    fn written(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Underutilized => "Underutilized",
            Self::Unhealthy => "Unhealthy",
        }
    }

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Drifted => "drifted",
            Self::Underutilized => "underutilized",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// What the nodes of a NodePool mean to its budgets. Counted are those that were ready for pods once and whose machine is not going yet: what has
/// never served is no loss, and what is all but gone is none any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// All that count.
    pub nodes: u64,
    /// Of these, the ones that leave or restart.
    leaving: u64,
    /// Of the others, the ones that are not ready.
    silent: u64,
}

impl Census {
    /// How many nodes are missing already, and so are charged to the budget of a reason. Those that are to be repaired are not ready as a rule: that
    /// must not keep them from it.
    pub fn consuming(self, reason: Reason) -> u64 {
        match reason {
            Reason::Unhealthy => self.leaving,
            Reason::Empty | Reason::Drifted | Reason::Underutilized => self.leaving + self.silent,
        }
    }
}

/// Counts the nodes of each NodePool that has any.
pub fn census(snapshot: &Snapshot) -> BTreeMap<PoolName, Census> {
    let mut counts: BTreeMap<_, Census> = BTreeMap::new();
    for claim in snapshot.claims.values() {
        let (Some(pool), Some(node)) = (claim.pool(), snapshot.node_of(claim)) else { continue };
        // A node that restarts has lost the label, and comes back.
        let serves = node.is_initialized() || claim.is_rebooting();
        if !serves || claim.is("InstanceTerminating") {
            continue;
        }
        let count = counts.entry(pool).or_default();
        count.nodes += 1;
        if claim.is_leaving() || node.deleting.is_some() || claim.is_rebooting() {
            count.leaving += 1;
        } else if !node.is_ready() {
            count.silent += 1;
        }
    }
    counts
}

/// How many of so many nodes of a NodePool may be missing for a reason at a moment; nothing when no budget bounds them then. The smallest budget
/// counts. A budget that cannot be read lets nothing go, for any reason: somebody wanted less than what is there without it.
pub fn allowed(pool: &Pool, reason: Reason, nodes: u64, now: Timestamp) -> Option<u64> {
    let mut least = None;
    for budget in &pool.disruption.budgets {
        let Ok((bound, schedule)) = read(budget) else { return Some(0) };
        let is_meant = budget.reasons.as_ref().is_none_or(|all| all.iter().any(|one| **one == *reason.written()));
        if is_meant && is_active(schedule.as_ref(), budget.duration, now) {
            let bound = bound.of(nodes);
            least = Some(least.map_or(bound, |least: u64| least.min(bound)));
        }
    }
    least
}

/// What is wrong with the budgets of a NodePool, one sentence each: field and remedy.
pub fn problems(pool: &Pool) -> Vec<String> {
    let judge =
        |(at, budget): (usize, &Budget)| read(budget).err().map(|what| format!("spec.disruption.budgets[{at}].{what}"));
    pool.disruption.budgets.iter().enumerate().filter_map(judge).collect()
}

/// What a person is told of the budgets of a NodePool: how many nodes they let go now, and what is wrong with them.
pub fn describe(pool: &Pool, census: Census, now: Timestamp) -> String {
    let problems = problems(pool);
    if !problems.is_empty() {
        return format!("budgets let nothing go: {}", problems.join("; "));
    }
    let bounded = Reason::ALL.iter().filter_map(|reason| {
        let allowed = allowed(pool, *reason, census.nodes, now)?;
        let left = allowed.saturating_sub(census.consuming(*reason));
        Some(format!("{left} {}", reason.label()))
    });
    let bounded: Vec<String> = bounded.collect();
    if bounded.is_empty() {
        "no budget bounds it now".to_owned()
    } else {
        format!("budgets would let go {}", bounded.join(", "))
    }
}

/// What `nodes` says.
#[derive(Clone, Copy)]
enum Bound {
    Count(u64),
    Percent(u64),
}

impl Bound {
    fn read(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            None => text.parse().ok().map(Self::Count),
            Some(percent) => percent.parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
        }
    }

    /// Rounded up: any share of a few nodes lets one of them go.
    fn of(self, nodes: u64) -> u64 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => nodes.saturating_mul(percent).div_ceil(100),
        }
    }
}

fn read(budget: &Budget) -> Result<(Bound, Option<Crontab>), String> {
    let bound = Bound::read(&budget.nodes).ok_or_else(|| {
        format!("nodes: \"{}\" is no number of nodes: write a count such as 5, or a share such as 10%", budget.nodes)
    })?;
    let schedule = budget.schedule.as_deref().map(cron).transpose()?;
    Ok((bound, schedule))
}

/// A schedule of five fields, or one with a name; UTC.
fn cron(text: &str) -> Result<Crontab, String> {
    let named = NAMED.iter().find(|(name, _)| *name == text).map(|(_, fields)| *fields);
    let fields = named.unwrap_or(text);
    // `?` says the same as `*` to the parser that Karpenter uses.
    let line = format!("{} UTC", fields.replace('?', "*"));
    cronexpr::parse_crontab(&line).map_err(|_| {
        format!(
            "schedule: \"{text}\" is no schedule: write minute, hour, day of the month, month and day of the week in UTC, such as \"0 9 * * mon-fri\", or \
             @hourly, @daily, @weekly, @monthly or @yearly"
        )
    })
}

/// Whether a budget counts at a moment: always, or for a while after each hit of its schedule.
fn is_active(schedule: Option<&Crontab>, duration: Option<Duration>, now: Timestamp) -> bool {
    let (Some(schedule), Some(duration)) = (schedule, duration) else { return true };
    let hit = SignedDuration::try_from(duration).ok().and_then(|duration| {
        let begin = now.checked_sub(duration).ok()?;
        schedule.find_next(MakeTimestamp(begin)).ok()
    });
    // A day that never comes, such as the thirtieth of February, makes it count never.
    hit.is_some_and(|hit| hit.timestamp() <= now)
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
