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
    /// How long a sold-out offering is not tried again (AWS' provider: 3 minutes).
    pub sold_out_for: Duration,
    /// How often machines, NodeClaims and Nodes are compared (Karpenter: 2 minutes).
    pub audit_every: Duration,
    /// Salt for the names of NodeClaims.
    pub name_salt: u64,
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
            sold_out_for: Duration::from_mins(3),
            audit_every: Duration::from_mins(2),
            name_salt: 0,
        }
    }
}
