//! Reasons as the smallest set of facts: what several NodePools say alike is said once, and what follows from another fact is left out.

use crate::core::ids::PoolName;

use super::reason::Reason;

/// NodePools that are named; more are counted.
const NAMED: usize = 4;

/// The smallest set that says the same, most helpful first.
pub(super) fn smallest(mut reasons: Vec<Reason>) -> Vec<Reason> {
    reasons.sort_unstable();
    reasons.dedup();
    if reasons.iter().any(is_between_pods) {
        let before = reasons.len();
        // It says no more than that the constraint between pods is what stands in the way.
        reasons.retain(|reason| !matches!(reason, Reason::Topology { .. }));
        if reasons.len() == before {
            // Every NodePool refuses the pod for itself: that comes first, the constraint between pods could change nothing.
            let (between, of_pools): (Vec<Reason>, Vec<Reason>) = reasons.into_iter().partition(is_between_pods);
            reasons = [of_pools, between].concat();
        }
    }
    let mut groups: Vec<(Reason, Vec<PoolName>)> = Vec::new();
    for mut reason in reasons {
        let pool = reason.pool_mut().map(|pool| std::mem::replace(pool, "".into()));
        match groups.iter_mut().find(|(known, pools)| *known == reason && !pools.is_empty()) {
            Some((_, pools)) => pools.extend(pool),
            None => groups.push((reason, pool.into_iter().collect())),
        }
    }
    let named = |(mut reason, pools): (Reason, Vec<PoolName>)| {
        if let Some(pool) = reason.pool_mut() {
            *pool = together(&pools).into();
        }
        reason
    };
    groups.into_iter().map(named).collect()
}

/// The fewest of some conditions that have to go before something is possible: each that would be enough alone, or else a set of which none
/// may stay. None when it is possible as it is; nothing when it is impossible without any.
pub(super) fn fewest<T: Copy>(all: &[T], mut possible: impl FnMut(&[T]) -> bool) -> Option<Vec<T>> {
    if !possible(&[]) {
        return None;
    }
    if possible(all) {
        return Some(Vec::new());
    }
    let without = |at: usize| [&all[..at], &all[at + 1..]].concat();
    let alone: Vec<T> = (0..all.len()).filter(|at| possible(&without(*at))).map(|at| all[at]).collect();
    if !alone.is_empty() {
        return Some(alone);
    }
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    for one in all {
        kept.push(*one);
        if !possible(&kept) {
            out.extend(kept.pop());
        }
    }
    Some(out)
}

fn is_between_pods(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::Spread { .. }
            | Reason::Affinity { .. }
            | Reason::SharedVolume { .. }
            | Reason::AntiAffinity { .. }
            | Reason::Repelled { .. }
    )
}

fn together(pools: &[PoolName]) -> String {
    let names: Vec<&str> = pools.iter().take(NAMED).map(PoolName::as_str).collect();
    match pools.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} others", names.join(", ")),
    }
}

impl Reason {
    /// The kind of fact, as programs tell them apart.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Distrusted(_) => "Distrusted",
            Self::DynamicResources => "DynamicResources",
            Self::BoughtInVain { .. } => "BoughtInVain",
            Self::Contradiction { .. } => "Contradiction",
            Self::Volume(_) => "Volume",
            Self::VolumesElsewhere { .. } => "VolumesElsewhere",
            Self::NoPools => "NoPools",
            Self::Spread { .. } => "Spread",
            Self::Affinity { .. } => "Affinity",
            Self::SharedVolume { .. } => "SharedVolume",
            Self::AntiAffinity { .. } => "AntiAffinity",
            Self::Repelled { .. } => "Repelled",
            Self::Limit { .. } => "Limit",
            Self::TooLarge { .. } => "TooLarge",
            Self::NoTypeHolds { .. } => "NoTypeHolds",
            Self::NoOffering { .. } => "NoOffering",
            Self::NoMatchingType { .. } => "NoMatchingType",
            Self::HostPort { .. } => "HostPort",
            Self::Daemon { .. } => "Daemon",
            Self::AttachLimit { .. } => "AttachLimit",
            Self::VolumeTopology { .. } => "VolumeTopology",
            Self::MinValues { .. } => "MinValues",
            Self::ReservedInUse { .. } => "ReservedInUse",
            Self::Requirement { .. } => "Requirement",
            Self::Taint { .. } => "Taint",
            Self::Topology { .. } => "Topology",
            Self::PoolNotReady { .. } => "PoolNotReady",
            Self::PoolContradiction { .. } => "PoolContradiction",
            Self::NoTypes { .. } => "NoTypes",
            Self::NoCatalog { .. } => "NoCatalog",
            Self::AfterReserved { .. } => "AfterReserved",
            Self::Several { .. } => "Several",
            Self::PoolStatic { .. } => "PoolStatic",
            Self::PoolDeleting { .. } => "PoolDeleting",
        }
    }

    /// The NodePool that it is about; several are named together.
    pub fn pool(&self) -> Option<&PoolName> {
        match self {
            Self::Invalid(_)
            | Self::Distrusted(_)
            | Self::DynamicResources
            | Self::BoughtInVain { .. }
            | Self::Contradiction { .. }
            | Self::Volume(_)
            | Self::VolumesElsewhere { .. }
            | Self::NoPools
            | Self::Spread { .. }
            | Self::Affinity { .. }
            | Self::SharedVolume { .. }
            | Self::AntiAffinity { .. }
            | Self::Repelled { .. } => None,
            Self::Limit { pool, .. }
            | Self::TooLarge { pool, .. }
            | Self::NoTypeHolds { pool }
            | Self::NoOffering { pool, .. }
            | Self::NoMatchingType { pool, .. }
            | Self::HostPort { pool, .. }
            | Self::Daemon { pool, .. }
            | Self::AttachLimit { pool, .. }
            | Self::VolumeTopology { pool, .. }
            | Self::MinValues { pool, .. }
            | Self::ReservedInUse { pool }
            | Self::Requirement { pool, .. }
            | Self::Taint { pool, .. }
            | Self::Topology { pool }
            | Self::PoolNotReady { pool, .. }
            | Self::PoolContradiction { pool, .. }
            | Self::NoTypes { pool, .. }
            | Self::AfterReserved { pool, .. }
            | Self::Several { pool, .. }
            | Self::PoolStatic { pool }
            | Self::PoolDeleting { pool }
            | Self::NoCatalog { pool } => Some(pool),
        }
    }

    pub(super) fn pool_mut(&mut self) -> Option<&mut PoolName> {
        match self {
            Self::Invalid(_)
            | Self::Distrusted(_)
            | Self::DynamicResources
            | Self::BoughtInVain { .. }
            | Self::Contradiction { .. }
            | Self::Volume(_)
            | Self::VolumesElsewhere { .. }
            | Self::NoPools
            | Self::Spread { .. }
            | Self::Affinity { .. }
            | Self::SharedVolume { .. }
            | Self::AntiAffinity { .. }
            | Self::Repelled { .. } => None,
            Self::Limit { pool, .. }
            | Self::TooLarge { pool, .. }
            | Self::NoTypeHolds { pool }
            | Self::NoOffering { pool, .. }
            | Self::NoMatchingType { pool, .. }
            | Self::HostPort { pool, .. }
            | Self::Daemon { pool, .. }
            | Self::AttachLimit { pool, .. }
            | Self::VolumeTopology { pool, .. }
            | Self::MinValues { pool, .. }
            | Self::ReservedInUse { pool }
            | Self::Requirement { pool, .. }
            | Self::Taint { pool, .. }
            | Self::Topology { pool }
            | Self::PoolNotReady { pool, .. }
            | Self::PoolContradiction { pool, .. }
            | Self::NoTypes { pool, .. }
            | Self::AfterReserved { pool, .. }
            | Self::Several { pool, .. }
            | Self::PoolStatic { pool }
            | Self::PoolDeleting { pool }
            | Self::NoCatalog { pool } => Some(pool),
        }
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
