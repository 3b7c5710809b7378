//! Why a pod found no place: typed, so that it can be counted, and readable, so that a person can act on it.

use std::fmt;
use std::sync::Arc;

use crate::core::facts::Taint;
use crate::core::ids::PoolName;
use crate::core::labels;
use crate::core::requirements::Operator;
use crate::core::resources::ResourceName;

use super::fault::VolumeFault;

/// One fact that kept a pod from being placed. The order is that of helpfulness: what is wrong with the pod, then what the pools that came
/// closest lack, then pools that could not be used at all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The pod itself could not be understood: what, and how to mend it.
    Invalid(Arc<str>),
    /// The pod asks for devices by `spec.resourceClaims`, which joiner does not allocate.
    DynamicResources,
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
        /// Pods counted in each domain.
        counts: Vec<(Arc<str>, u32)>,
    },
    /// No pod that the required pod affinity means is anywhere the pod could go.
    Affinity {
        /// Topology keys of its terms.
        key: Arc<str>,
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
    /// No instance type of the pool has the labels that the pod asks for.
    NoMatchingType {
        /// NodePool.
        pool: PoolName,
    },
    /// A host port that the pod wants is taken by a daemon on every node of the pool.
    HostPort {
        /// NodePool.
        pool: PoolName,
        /// The port.
        port: i32,
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
}

/// An amount as people write it.
struct Amount<'a>(&'a ResourceName, i64);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEBI: i64 = 1 << 20;
        let Self(name, milli) = self;
        let (whole, part) = (milli.div_euclid(1000), milli.rem_euclid(1000));
        match name {
            ResourceName::Memory | ResourceName::EphemeralStorage if whole >= MEBI => write!(f, "{}Mi", whole / MEBI),
            _ if part == 0 => write!(f, "{whole}"),
            _ => write!(f, "{milli}m"),
        }
    }
}

/// How many pods are in each domain, as people read it.
struct Domains<'a>(&'a [(Arc<str>, u32)]);

impl fmt::Display for Domains<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (at, (name, count)) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{name}={count}", if at == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} others"),
        }
    }
}

impl Reason {
    /// Whether the pod itself is at fault: it was left out before anything was tried.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Volume(_))
    }

    /// Whether a NodePool's own requirements leave it nothing that could be bought: somebody has to correct it.
    pub fn filters_out_all(&self) -> bool {
        matches!(self, Self::NoTypes { .. } | Self::PoolContradiction { .. })
    }

    /// The sentences about volumes.
    fn write_volumes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(fault) => write!(f, "{fault}"),
            Self::VolumesElsewhere { key } => write!(
                f,
                "the pod's nodeSelector and node affinity exclude, on {key}, the places from which its volumes can be reached; change them, or move the volumes"
            ),
            Self::AttachLimit { pool, driver, wanted, most } => write!(
                f,
                "NodePool {pool} has no instance type that can attach the pod's {wanted} volumes of {driver}, the most there is is {most}"
            ),
            Self::VolumeTopology { pool, key, wanted, offered } => write!(
                f,
                "NodePool {pool} offers {key} {offered}, but the pod's volumes can be reached from {key} {wanted} only; widen the NodePool"
            ),
            _ => Ok(()),
        }
    }
}

/// Which requirements of a pool leave it no instance type.
fn fmt_no_types(f: &mut fmt::Formatter<'_>, pool: &PoolName, without: &[(Arc<str>, usize)]) -> fmt::Result {
    if without.is_empty() {
        return write!(
            f,
            "NodePool {pool}: none of its NodeClass's instance types can be had at the moment, whatever the NodePool requires; see the NodeClass, and NodeOverlays if there are any"
        );
    }
    write!(f, "NodePool {pool}: its requirements leave no instance type that can be had; ")?;
    if without.iter().all(|(_, types)| *types == 0) {
        let all: Vec<String> = without.iter().map(|(line, _)| format!("`{line}`")).collect();
        return write!(f, "there would be some if {} were all relaxed", all.join(" and "));
    }
    f.write_str("there would be ")?;
    for (at, (line, types)) in without.iter().enumerate() {
        write!(f, "{}{types} without `{line}`", if at == 0 { "" } else { " or " })?;
    }
    Ok(())
}

/// An amount of a resource as people write it, with its name.
pub fn amount_text(name: &ResourceName, milli: i64) -> String {
    format!("{} {name}", Amount(name, milli))
}

impl Reason {
    /// Constraints between pods.
    fn fmt_between_pods(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spread { key, counts, .. } if counts.is_empty() => write!(
                f,
                "nothing offers the topology key {key} of the spread constraint; would fit if a NodePool stated values for {key} (in spec.template), or without the constraint"
            ),
            Self::Spread { key, max_skew, counts } => write!(
                f,
                "the spread constraint on {key} (maxSkew {max_skew}) leaves no domain: {}; add capacity to the emptiest domains or raise maxSkew",
                Domains(counts)
            ),
            Self::Affinity { key } => {
                write!(
                    f,
                    "no pod that the required pod affinity on {key} asks for is where this pod could go; would fit beside such a pod (where both wait for each other, one of the affinities has to be merely preferred)"
                )
            }
            Self::AntiAffinity { key } => {
                write!(
                    f,
                    "the pod's anti-affinity on {key} excludes every domain it could go to; would fit if there were a further {key}, or if the anti-affinity were merely preferred"
                )
            }
            Self::Repelled { key } => {
                write!(
                    f,
                    "pods with an anti-affinity on {key} against this pod are in every domain it could go to; would fit if there were a further {key}"
                )
            }
            _ => Ok(()),
        }
    }

    /// What a pool has to offer, all in all.
    fn fmt_offered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOffering { pool, types } => write!(
                f,
                "NodePool {pool} has {types} instance types that match, but none can be had at the moment; allow more zones, capacity types or types"
            ),
            Self::NoMatchingType { pool } => {
                write!(
                    f,
                    "NodePool {pool} has no instance type with the labels that the pod asks for; would fit if the pod asked for others, or the NodePool allowed more types"
                )
            }
            Self::MinValues { pool, key, wanted, found } => write!(
                f,
                "NodePool {pool} asks for {wanted} values of {key} (minValues), but only {found} are left for this pod; lower minValues"
            ),
            Self::ReservedInUse { pool } => write!(
                f,
                "only reserved capacity of NodePool {pool} suits the pod, and NodeClaims use all of it; the pod waits until some is free, or until the NodePool allows {} or {} too",
                crate::core::labels::ON_DEMAND,
                crate::core::labels::SPOT
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "{what}"),
            Self::DynamicResources => write!(
                f,
                "the pod asks for devices by spec.resourceClaims, and joiner does not allocate devices; ask for them by an extended resource in resources.limits, or give the pod a node that is there"
            ),
            Self::Contradiction { key } => {
                write!(f, "the pod's nodeSelector and node affinity exclude each other on {key}; change one of them")
            }
            Self::Volume(_)
            | Self::VolumesElsewhere { .. }
            | Self::AttachLimit { .. }
            | Self::VolumeTopology { .. } => self.write_volumes(f),
            Self::NoPools => write!(f, "there is no NodePool; create one"),
            Self::Spread { .. } | Self::Affinity { .. } | Self::AntiAffinity { .. } | Self::Repelled { .. } => {
                self.fmt_between_pods(f)
            }
            Self::Limit { pool, resource, left } => write!(
                f,
                "NodePool {pool} has only {} {resource} left of its limits; would fit with higher spec.limits",
                Amount(resource, *left)
            ),
            Self::TooLarge { pool, resource, wanted, most } => write!(
                f,
                "NodePool {pool} has no instance type large enough: the pod and its node's daemons need {} {resource}, the most there is is {}; would fit if the pod requested less, or with larger types",
                Amount(resource, *wanted),
                Amount(resource, *most)
            ),
            Self::NoTypeHolds { pool } => {
                write!(
                    f,
                    "NodePool {pool} has no instance type with enough of all that the pod requests at once; would fit if it requested less of one resource"
                )
            }
            Self::NoOffering { .. }
            | Self::NoMatchingType { .. }
            | Self::MinValues { .. }
            | Self::ReservedInUse { .. } => self.fmt_offered(f),
            Self::HostPort { pool, port } => {
                write!(f, "host port {port} is taken by a DaemonSet on every node of NodePool {pool}; use another port")
            }
            Self::Requirement { pool, key, wanted, offered } => {
                write!(
                    f,
                    "NodePool {pool} offers {key} {offered}, but the pod wants {wanted}; would fit if they agreed"
                )?;
                match labels::meant_by(key).filter(|_| **offered == *Operator::DoesNotExist.as_str()) {
                    Some(meant) => write!(f, " (is {meant} meant?)"),
                    None => Ok(()),
                }
            }
            Self::Taint { pool, taint } => write!(
                f,
                "NodePool {pool} has the taint {}={}:{}, which the pod does not tolerate; would fit with a toleration",
                taint.key,
                taint.value,
                taint.effect.as_str()
            ),
            Self::Topology { pool } => {
                write!(f, "NodePool {pool} could hold the pod, but the constraints between pods allow no such node")
            }
            Self::PoolNotReady { pool, why } => write!(f, "NodePool {pool} is not ready: {why}"),
            Self::PoolContradiction { pool, key } => write!(
                f,
                "NodePool {pool}: its requirements and labels exclude each other on {key}; change one of them"
            ),
            Self::NoTypes { pool, without } => fmt_no_types(f, pool, without),
            Self::NoCatalog { pool } => write!(
                f,
                "NodePool {pool}: the cloud has named no instance types for its NodeClass; see the NodeClass's conditions"
            ),
        }
    }
}
