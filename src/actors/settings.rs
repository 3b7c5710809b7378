//! What the actors are told at start.

use std::time::Duration;

use crate::core::facts::TopologySpread;

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

/// Whether broken nodes are repaired, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NodeRepair {
    /// They are not (the default, as Karpenter's gate).
    #[default]
    Off,
    /// As a disruption: under budgets, replacements first.
    Disruption,
    /// At once, as Karpenter did before 1.15.
    Legacy,
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
    /// What runs on a machine that belongs to no NodeClaim leaves it before it goes.
    pub evacuation: bool,
    /// Pods are asked to leave, so that their budgets can refuse.
    pub budgets: bool,
    /// A finalizer is taken off when the cloud has confirmed that the machine is gone, and not when it has taken the order.
    pub confirmation: bool,
    /// That there is no machine is believed of a cloud that has said so for as long as it may be wrong, and not at its first word.
    pub disbelief: bool,
    /// A machine goes when its node's volumes are detached.
    pub detachment: bool,
    /// A clock that jumps ahead is not followed at once, and what one that was ahead has left in an actor's memory is mended.
    pub clock: bool,
    /// The actor of a NodeClaim that fails is started again.
    pub revival: bool,
    /// So is any other actor.
    pub supervision: bool,
    /// A machine is known by its token, and its Node by its owner, and not by what somebody wrote into `status.providerID`.
    pub ownership: bool,
    /// Nothing is written while somebody else holds the lease.
    pub lease: bool,
}

impl Default for Protections {
    /// All of them.
    fn default() -> Self {
        Self {
            token: true,
            evidence: true,
            breaker: true,
            fresh_list: true,
            evacuation: true,
            budgets: true,
            confirmation: true,
            disbelief: true,
            detachment: true,
            clock: true,
            revival: true,
            supervision: true,
            ownership: true,
            lease: true,
        }
    }
}

/// Optional features, off unless somebody turns them on (Karpenter's feature gates of these names, and a flag).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each with a name of its own")]
pub struct Features {
    /// NodeOverlays change prices and capacity of instance types.
    pub node_overlay: bool,
    /// NodePools with `replicas` hold a fixed number of nodes.
    pub static_capacity: bool,
    /// CapacityBuffers keep room for pods to come.
    pub capacity_buffer: bool,
    /// Nodes are initialized once the drivers that their NodeClaims name have published their devices (`--ignore-dra-requests=false`).
    pub dynamic_resources: bool,
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
    /// Whether a NodePool's `minValues` may be lowered to place a pod.
    pub lower_min_values: bool,
    /// Spread constraints of pods that have none, from kube-scheduler's configuration.
    pub default_spreads: Vec<TopologySpread>,
    /// How often the cloud is asked for its instance types.
    pub catalog_refresh: Duration,
    /// How often the cloud is asked what NodeClasses come to (Karpenter's AWS provider: 5 minutes).
    pub class_refresh: Duration,
    /// How often it is asked of those that are not ready: somebody is waiting for it.
    pub class_retry: Duration,
    /// How long a sold-out offering is not tried again (AWS' provider: 3 minutes).
    pub sold_out_for: Duration,
    /// Whether broken nodes are repaired, and how.
    pub repair: NodeRepair,
    /// How often machines, NodeClaims and Nodes are compared (Karpenter: 2 minutes).
    pub audit_every: Duration,
    /// Salt for the names of NodeClaims.
    pub name_salt: u64,
    /// Optional features.
    pub features: Features,
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
            lower_min_values: false,
            default_spreads: Vec::new(),
            catalog_refresh: Duration::from_hours(1),
            class_refresh: Duration::from_mins(5),
            class_retry: Duration::from_secs(30),
            sold_out_for: Duration::from_mins(3),
            repair: NodeRepair::default(),
            audit_every: Duration::from_mins(2),
            name_salt: 0,
            features: Features::default(),
            protections: Protections::default(),
        }
    }
}
