//! Why a pod found no place: typed, so that it can be counted, and readable, so that a person can act on it.

use std::sync::Arc;

use crate::core::facts::Taint;
use crate::core::ids::PoolName;
use crate::core::resources::ResourceName;

use super::fault::VolumeFault;

/// One fact that kept a pod from being placed. The order is that of helpfulness: what is wrong with the pod, then what the pools that came
/// closest lack, then pools that could not be used at all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The pod itself could not be understood: what, and how to mend it.
    Invalid(Arc<str>),
    /// The independent check found fault with the place that was planned for the pod: this.
    Distrusted(Arc<str>),
    /// The pod asks for devices by `spec.resourceClaims`, which joiner does not allocate.
    DynamicResources,
    /// Nodes were bought for the pod that serve and stand empty, and kube-scheduler has bound it to none of them.
    BoughtInVain {
        /// Their names.
        nodes: Vec<Arc<str>>,
    },
    /// The pod's own node selector and node affinity exclude each other.
    Contradiction {
        /// Label key.
        key: Arc<str>,
    },
    /// Something is wrong with a volume of the pod.
    Volume(VolumeFault),
    /// The pod's own node selector and node affinity exclude the places from which its volumes can be reached.
    VolumesElsewhere {
        /// Label key.
        key: Arc<str>,
    },
    /// There is no NodePool at all.
    NoPools,
    /// A spread constraint allows none of the domains that the pod could go to.
    Spread {
        /// Topology key.
        key: Arc<str>,
        /// Its maxSkew.
        max_skew: u32,
        /// Its minDomains; 0 when it has none.
        min_domains: usize,
        /// Pods counted in each domain.
        counts: Vec<(Arc<str>, u32)>,
    },
    /// No pod that the required pod affinity means is anywhere the pod could go.
    Affinity {
        /// Topology keys of its terms.
        key: Arc<str>,
        /// The pods that it means, as its selectors say.
        selector: Arc<str>,
        /// What keeps those pods and this one apart.
        partner: Partner,
    },
    /// A volume of the pod is yet to come and will be in one zone, and pods that use it too are where this one cannot go.
    SharedVolume {
        /// PersistentVolumeClaim.
        claim: Arc<str>,
    },
    /// Pods that the required anti-affinity means are everywhere the pod could go.
    AntiAffinity {
        /// Topology key.
        key: Arc<str>,
    },
    /// Pods whose anti-affinity means this pod are everywhere it could go.
    Repelled {
        /// Topology key.
        key: Arc<str>,
    },
    /// The pool's limits are reached.
    Limit {
        /// NodePool.
        pool: PoolName,
        /// The resource that is short.
        resource: ResourceName,
        /// What is left of it, in thousandths.
        left: i64,
    },
    /// No instance type is large enough.
    TooLarge {
        /// NodePool.
        pool: PoolName,
        /// The resource that is short.
        resource: ResourceName,
        /// What the pod and the daemons ask for, in thousandths.
        wanted: i64,
        /// The most that any matching instance type has, in thousandths.
        most: i64,
        /// Where the pod alone would fit: the DaemonSet whose pod asks for most of it, and how much, in thousandths.
        daemon: Option<(Arc<str>, i64)>,
    },
    /// Each resource is there in some instance type, but no type has all at once.
    NoTypeHolds {
        /// NodePool.
        pool: PoolName,
    },
    /// Instance types match, but none of their offerings can be had at the moment.
    NoOffering {
        /// NodePool.
        pool: PoolName,
        /// How many types match.
        types: usize,
    },
    /// No instance type of the pool has the labels that the pod and its volumes ask for.
    NoMatchingType {
        /// NodePool.
        pool: PoolName,
        /// What would have to be given up of what they ask for.
        lacks: Vec<Lack>,
        /// How those stand to each other.
        blame: Blame,
    },
    /// A host port that the pod wants is taken by a daemon on every node of the pool.
    HostPort {
        /// NodePool.
        pool: PoolName,
        /// The port.
        port: i32,
    },
    /// A DaemonSet's pod comes to every node of the pool, and required anti-affinity keeps it and the pod apart.
    Daemon {
        /// NodePool.
        pool: PoolName,
        /// The DaemonSet.
        daemon: Arc<str>,
    },
    /// No instance type of the pool can attach all volumes of the pod.
    AttachLimit {
        /// NodePool.
        pool: PoolName,
        /// CSI driver.
        driver: Arc<str>,
        /// How many volumes of it the pod has.
        wanted: u32,
        /// How many the best instance type can attach.
        most: u32,
    },
    /// The pool has no nodes from which the pod's volumes can be reached.
    VolumeTopology {
        /// NodePool.
        pool: PoolName,
        /// Label key.
        key: Arc<str>,
        /// From where the volumes can be reached.
        wanted: Arc<str>,
        /// What the pool offers.
        offered: Arc<str>,
    },
    /// The pool's minValues cannot be met.
    MinValues {
        /// NodePool.
        pool: PoolName,
        /// Label key.
        key: Arc<str>,
        /// How many values are asked for.
        wanted: u32,
        /// How many are left.
        found: u32,
    },
    /// Only reserved capacity of the pool suits the pod, and none is free.
    ReservedInUse {
        /// NodePool.
        pool: PoolName,
    },
    /// The pod's labels requirements and the pool's exclude each other.
    Requirement {
        /// NodePool.
        pool: PoolName,
        /// Label key.
        key: Arc<str>,
        /// What the pod asks for.
        wanted: Arc<str>,
        /// What the pool offers.
        offered: Arc<str>,
    },
    /// The pod does not tolerate a taint of the pool.
    Taint {
        /// NodePool.
        pool: PoolName,
        /// The taint.
        taint: Taint,
    },
    /// The pod would fit the pool, but the constraints between pods do not allow it.
    Topology {
        /// NodePool.
        pool: PoolName,
    },
    /// The pool would do, but the pod waits for reserved capacity of a pool that comes before it.
    AfterReserved {
        /// NodePool.
        pool: PoolName,
        /// The NodePool whose reserved capacity the pod waits for.
        first: PoolName,
    },
    /// Several things at once keep the pod from the pool.
    Several {
        /// NodePool.
        pool: PoolName,
        /// What they are. None of them can stay.
        all: Vec<Self>,
    },
    /// The pool is not ready.
    PoolNotReady {
        /// NodePool.
        pool: PoolName,
        /// Why, as far as is known.
        why: Arc<str>,
    },
    /// The pool's own requirements exclude each other.
    PoolContradiction {
        /// NodePool.
        pool: PoolName,
        /// Label key.
        key: Arc<str>,
    },
    /// The pool's requirements leave no instance type with an available offering.
    NoTypes {
        /// NodePool.
        pool: PoolName,
        /// The requirements and labels to blame, and how many types there would be without each; none where it takes all of them together.
        without: Vec<(Arc<str>, usize)>,
    },
    /// The cloud has not told which instance types the pool's NodeClass can have.
    NoCatalog {
        /// NodePool.
        pool: PoolName,
    },
    /// The pool is static: it has so many nodes, whatever pods ask for.
    PoolStatic {
        /// NodePool.
        pool: PoolName,
    },
    /// The pool is being deleted.
    PoolDeleting {
        /// NodePool.
        pool: PoolName,
    },
}

/// A label with values that no instance type has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Lack {
    /// Label key.
    pub key: Arc<str>,
    /// What is asked for.
    pub wanted: Arc<str>,
    /// What there would be if something else were asked for.
    pub offered: Arc<str>,
}

/// How labels that no instance type has together stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Blame {
    /// There is one, and no type has it.
    Alone,
    /// There is one, and no type has it beside what else is asked for.
    Beside,
    /// No type has all of them; it is enough to give up any.
    Either,
    /// All of them have to be given up.
    Each,
}

/// What keeps a pod from those that its required pod affinity means.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Partner {
    /// No node has the topology key, nor could one be made that has.
    NoKey,
    /// There are no such pods.
    Nobody,
    /// They wait, and are not for joiner to place now, such as this one: gated, another scheduler's, or ending.
    Unplanned(Arc<str>),
    /// They have no place themselves, such as this one.
    Waiting(Arc<str>),
    /// Pods that wait for each other, this one first, and each for the next.
    Cycle(Vec<Arc<str>>),
    /// They are in these domains only, where this pod cannot go. Nodes are not named.
    Elsewhere(Vec<Arc<str>>),
}

impl Reason {
    /// Whether the pod itself is at fault: it was left out before anything was tried.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Volume(_))
    }

    /// Whether the pod could perhaps be placed if other pods of the plan were elsewhere.
    pub fn minds_others(&self) -> bool {
        self.holds(&|one| match one {
            Self::Spread { .. }
            | Self::SharedVolume { .. }
            | Self::AntiAffinity { .. }
            | Self::Repelled { .. }
            | Self::Topology { .. } => true,
            Self::Affinity { partner, .. } => matches!(partner, Partner::Elsewhere(_)),
            _ => false,
        })
    }

    /// Whether the pod asks for others where it is to be.
    pub(super) fn is_of_affinity(&self) -> bool {
        self.holds(&|one| matches!(one, Self::Affinity { .. } | Self::SharedVolume { .. }))
    }

    /// Whether a NodePool's limits are in the way.
    pub(super) fn is_of_limit(&self) -> bool {
        self.holds(&|one| matches!(one, Self::Limit { .. }))
    }

    /// Whether it is such a reason, or one of several is.
    fn holds(&self, is: &impl Fn(&Self) -> bool) -> bool {
        match self {
            Self::Several { all, .. } => all.iter().any(|one| one.holds(is)),
            one => is(one),
        }
    }

    /// Whether a NodePool's own requirements leave it nothing that could be bought: somebody has to correct it.
    pub fn filters_out_all(&self) -> bool {
        matches!(self, Self::NoTypes { .. } | Self::PoolContradiction { .. } | Self::MinValues { .. })
    }
}
