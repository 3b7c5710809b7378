//! What the actors are told at start.

use std::time::Duration;

/// Which planned pods are nominated to their node before it opens to the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nominate {
    /// Every planned pod (the default: on a real control plane it measures best, in rounds and in nodes).
    #[default]
    All,
    /// Only pods whose place others could take.
    Contested,
    /// None.
    None,
}

/// What keeps joiner from doing harm. Production has all of it on; tests switch one off to see that its absence does harm and is noticed.
/// No flag and no variable leads here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent protections, not a state machine")]
pub struct Protections {
    /// A launch that is repeated carries the token of the first one.
    pub token: bool,
    /// The auditor acts on what several looks over a while agree on, and not on one.
    pub evidence: bool,
    /// The auditor does nothing when too much looks wrong at once.
    pub breaker: bool,
    /// The auditor asks the API server for the NodeClaims, and does not trust what was watched.
    pub fresh_list: bool,
    /// Pods are asked to leave, so that their budgets can refuse.
    pub budgets: bool,
    /// A finalizer is taken off when the cloud has confirmed that the machine is gone, and not when it has taken the order.
    pub confirmation: bool,
}

impl Default for Protections {
    /// All of them.
    fn default() -> Self {
        Self { token: true, evidence: true, breaker: true, fresh_list: true, budgets: true, confirmation: true }
    }
}

/// Settings of the actors. Durations are Karpenter's defaults unless they say otherwise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A batch is closed when no new pod has come for this long.
    pub batch_idle: Duration,
    /// A batch is closed after this long at the latest.
    pub batch_max: Duration,
    /// Whether a lease decides who may write; without it this joiner always may.
    pub leader_election: bool,
    /// Name of the lease.
    pub lease_name: String,
    /// Name of this joiner in the lease.
    pub identity: String,
    /// Which planned pods are nominated.
    pub nominate: Nominate,
    /// Whether what pods merely prefer is tried before it is given up.
    pub respect_preferences: bool,
    /// How often the cloud is asked for its instance types.
    pub catalog_refresh: Duration,
    /// How often the cloud is asked what NodeClasses come to (Karpenter's AWS provider: 5 minutes).
    pub class_refresh: Duration,
    /// How often it is asked of those that are not ready: somebody is waiting for it.
    pub class_retry: Duration,
    /// How long a sold-out offering is not tried again (AWS' provider: 3 minutes).
    pub sold_out_for: Duration,
    /// How often machines, NodeClaims and Nodes are compared (Karpenter: 2 minutes).
    pub audit_every: Duration,
    /// Salt for the names of NodeClaims.
    pub name_salt: u64,
    /// What keeps joiner from doing harm: all on, but in tests.
    pub protections: Protections,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            leader_election: true,
            lease_name: "karpenter-leader-election".to_owned(),
            identity: "joiner".to_owned(),
            nominate: Nominate::default(),
            respect_preferences: true,
            catalog_refresh: Duration::from_hours(1),
            class_refresh: Duration::from_mins(5),
            class_retry: Duration::from_secs(30),
            sold_out_for: Duration::from_mins(3),
            audit_every: Duration::from_mins(2),
            name_salt: 0,
            protections: Protections::default(),
        }
    }
}
