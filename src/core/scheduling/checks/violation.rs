//! What can be wrong with a plan.

use std::fmt;
use std::sync::Arc;

use crate::core::ids::{InstanceTypeName, ObjectKey, PodUid, PoolName};

/// One thing that is wrong with a plan. `place` names the NodeClaim or node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Violation {
    /// A pod of the question is nowhere in the plan.
    Missing(PodUid),
    /// A pod is in the plan more than once, or was not asked about.
    Surplus(PodUid),
    /// A NodeClaim lists no instance type, or one that the catalog does not have.
    UnknownType {
        /// NodeClaim.
        place: Arc<str>,
        /// The type, empty when none is listed.
        instance_type: InstanceTypeName,
    },
    /// A listed type contradicts the NodeClaim's requirements, or no available offering of it meets them.
    UnfitType {
        /// NodeClaim.
        place: Arc<str>,
        /// The type.
        instance_type: InstanceTypeName,
    },
    /// Pods and daemons do not fit.
    Overfull {
        /// NodeClaim or node.
        place: Arc<str>,
        /// The listed type that is too small, or empty for a node that exists.
        instance_type: InstanceTypeName,
    },
    /// A pod does not tolerate a taint.
    Untolerated {
        /// NodeClaim or node.
        place: Arc<str>,
        /// The pod.
        pod: PodUid,
    },
    /// A pod's node selector or affinity is not met by every node that could come of the NodeClaim.
    Unmet {
        /// NodeClaim or node.
        place: Arc<str>,
        /// The pod.
        pod: PodUid,
    },
    /// A volume of a pod cannot be reached from every node that could come of the NodeClaim.
    VolumeUnreachable {
        /// NodeClaim or node.
        place: Arc<str>,
        /// The pod.
        pod: PodUid,
    },
    /// More volumes than can be attached.
    TooManyVolumes {
        /// NodeClaim or node.
        place: Arc<str>,
        /// Their CSI driver.
        driver: Arc<str>,
    },
    /// A claim for one pod at a time is used by several.
    VolumeShared {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// Pods that share a claim whose volume is yet to come are in several zones.
    VolumeTorn {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// Two pods want the same port of a node.
    PortTaken {
        /// NodeClaim or node.
        place: Arc<str>,
        /// The port.
        port: i32,
    },
    /// A place that must not be used.
    NotUsable {
        /// NodeClaim or node.
        place: Arc<str>,
    },
    /// A spread constraint is exceeded.
    Skewed {
        /// Topology key.
        key: Arc<str>,
        /// The domain that is too full.
        domain: Arc<str>,
    },
    /// A pod that has to be spread is where the topology key is missing or not settled: in no domain.
    NoDomain {
        /// The pod.
        pod: PodUid,
        /// NodeClaim or node.
        place: Arc<str>,
        /// Topology key.
        key: Arc<str>,
    },
    /// Required pod affinity is not met.
    Lonely {
        /// The pod.
        pod: PodUid,
    },
    /// Pods that must be apart share a domain.
    NotApart {
        /// Topology key.
        key: Arc<str>,
        /// The domain.
        domain: Arc<str>,
    },
    /// A pool's limits are exceeded.
    BeyondLimits(PoolName),
    /// More NodeClaims may be launched into a reservation than it has room for.
    OverReserved {
        /// Name of the reservation.
        reservation: Arc<str>,
    },
    /// A NodeClaim's types have fewer values of a label than its `minValues`, or those are lower than its NodePool's without leave.
    TooAlike {
        /// NodeClaim.
        place: Arc<str>,
        /// Label key.
        key: Arc<str>,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(pod) => write!(f, "pod {pod} is nowhere in the plan"),
            Self::Surplus(pod) => write!(f, "pod {pod} is in the plan twice or was not asked about"),
            Self::UnknownType { place, instance_type } => {
                write!(f, "{place} lists the unknown instance type {instance_type:?}")
            }
            Self::UnfitType { place, instance_type } => {
                write!(f, "{place} lists {instance_type}, which its requirements exclude or which cannot be had")
            }
            Self::Overfull { place, instance_type } => {
                write!(f, "the pods of {place} do not fit into it ({instance_type})")
            }
            Self::Untolerated { place, pod } => write!(f, "pod {pod} does not tolerate the taints of {place}"),
            Self::Unmet { place, pod } => write!(f, "{place} may not have the labels that pod {pod} asks for"),
            Self::VolumeUnreachable { place, pod } => {
                write!(f, "a volume of pod {pod} may not be reachable from {place}")
            }
            Self::TooManyVolumes { place, driver } => write!(f, "{place} cannot attach so many volumes of {driver}"),
            Self::VolumeShared { claim } => {
                write!(f, "PersistentVolumeClaim {claim} is for one pod, and several use it")
            }
            Self::VolumeTorn { claim } => {
                write!(f, "PersistentVolumeClaim {claim} is not bound, and pods that use it are in several zones")
            }
            Self::PortTaken { place, port } => write!(f, "port {port} of {place} is taken twice"),
            Self::NoDomain { pod, place, key } => {
                write!(f, "pod {pod} is to be spread over {key}, and {place} is in no such domain")
            }
            Self::NotUsable { place } => write!(f, "{place} must not be used"),
            Self::Skewed { key, domain } => write!(f, "too many pods in {key}={domain} for a spread constraint"),
            Self::Lonely { pod } => write!(f, "no pod that {pod} has affinity to is in its domain"),
            Self::NotApart { key, domain } => write!(f, "pods that must be apart share {key}={domain}"),
            Self::OverReserved { reservation } => {
                write!(f, "more NodeClaims may be launched into reservation {reservation} than it has room for")
            }
            Self::TooAlike { place, key } => write!(f, "{place} does not keep the minValues of {key}"),
            Self::BeyondLimits(pool) => write!(f, "the NodeClaims of {pool} may exceed its limits"),
        }
    }
}
