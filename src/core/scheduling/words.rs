//! What reasons say: a sentence that a person can act on. First what is so, then what would help.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::core::labels;
use crate::core::requirements::Operator;
use crate::core::resources::ResourceName;

use super::reason::{Blame, Lack, Partner, Reason};

/// Most things of a kind that are named.
const SHOWN: usize = 10;

/// An amount as people write it.
struct Amount<'a>(&'a ResourceName, i64);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEBI: i64 = 1 << 20;
        let Self(name, milli) = self;
        let (whole, part) = (milli.div_euclid(1000), milli.rem_euclid(1000));
        let is_bytes = matches!(name, ResourceName::Memory | ResourceName::EphemeralStorage)
            || name.as_str().starts_with("hugepages-");
        // So much is counted and no more: there may be any amount beyond.
        if *milli == i64::MAX {
            let most = if is_bytes { format!("{}Pi", whole >> 50) } else { whole.to_string() };
            return write!(f, "more than {most}");
        }
        if is_bytes && whole >= MEBI {
            return write!(f, "{}Mi", whole / MEBI);
        }
        match (whole, part) {
            (_, 0) => write!(f, "{whole}"),
            (1.., _) => write!(f, "{}", format!("{whole}.{part:03}").trim_end_matches('0')),
            _ => write!(f, "{milli}m"),
        }
    }
}

/// An amount of a resource as people write it, with its name.
pub fn amount_text(name: &ResourceName, milli: i64) -> String {
    format!("{} {name}", Amount(name, milli))
}

/// Some of many, separated by commas.
fn some(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(SHOWN);
    let shown: Vec<String> = all.take(SHOWN).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} others", shown.join(", ")),
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pool) = self.pool() {
            write!(f, "NodePool {pool} ")?;
        }
        self.write_clause(f)?;
        match self.remedy() {
            remedy if remedy.is_empty() => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

impl Reason {
    /// What is so; where it is so of a NodePool, its name goes before.
    fn write_clause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "{what}"),
            Self::Distrusted(why) => {
                write!(
                    f,
                    "joiner's own check refused the place that was planned for the pod, which is a defect of joiner: {why}"
                )
            }
            Self::DynamicResources => {
                write!(f, "the pod asks for devices by spec.resourceClaims, and joiner does not allocate devices")
            }
            Self::BoughtInVain { nodes } => write!(
                f,
                "nodes were bought for the pod and stand empty, as kube-scheduler binds it to none of them: {}",
                nodes.join(", ")
            ),
            Self::Contradiction { key } => {
                write!(f, "the pod's nodeSelector and node affinity exclude each other on {key}")
            }
            Self::Volume(fault) => write!(f, "{fault}"),
            Self::VolumesElsewhere { key } => write!(
                f,
                "the pod's nodeSelector and node affinity exclude, on {key}, the places from which its volumes can be reached"
            ),
            Self::NoPools => write!(f, "there is no NodePool"),
            Self::Spread { .. }
            | Self::Affinity { .. }
            | Self::SharedVolume { .. }
            | Self::AntiAffinity { .. }
            | Self::Repelled { .. } => self.write_between_pods(f),
            Self::Limit { resource, left, .. } if *left < 0 => {
                write!(f, "has {} {resource} more than its limits allow", Amount(resource, left.saturating_neg()))
            }
            Self::Limit { resource, left, .. } => {
                write!(f, "has only {} {resource} left of its limits", Amount(resource, *left))
            }
            Self::NoTypeHolds { .. } => {
                write!(f, "has no instance type with enough of all that the pod and its node's daemons request at once")
            }
            Self::Requirement { key, wanted, .. } if **key == *labels::HOSTNAME => {
                write!(f, "names each of its new nodes anew, but the pod wants {key} {wanted}")
            }
            Self::Requirement { key, wanted, offered, .. } => {
                write!(f, "offers {key} {offered}, but the pod wants {wanted}")?;
                match labels::meant_by(key).filter(|_| **offered == *Operator::DoesNotExist.as_str()) {
                    Some(meant) => write!(f, " (is {meant} meant?)"),
                    None => Ok(()),
                }
            }
            Self::Taint { taint, .. } => write!(
                f,
                "has the taint {}={}:{}, which the pod does not tolerate",
                taint.key,
                taint.value,
                taint.effect.as_str()
            ),
            Self::Several { all, .. } => all.iter().enumerate().try_for_each(|(at, reason)| match reason {
                _ if at == 0 => reason.write_clause(f),
                Self::Topology { .. } => write!(f, "; and the constraints between pods allow no such node"),
                of_pool if of_pool.pool().is_some() => {
                    write!(f, "; and it ")?;
                    of_pool.write_clause(f)
                }
                between_pods => {
                    write!(f, "; and ")?;
                    between_pods.write_clause(f)
                }
            }),
            _ => self.write_offered(f),
        }
    }

    /// What a NodePool has to offer, and what is the matter with it.
    fn write_offered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { resource, wanted, most, daemon, .. } => {
                let needed = Amount(resource, *wanted);
                write!(
                    f,
                    "has no instance type large enough: the pod and its node's daemons need {needed} {resource}"
                )?;
                if let Some((name, amount)) = daemon {
                    write!(f, " (DaemonSet {name} {})", Amount(resource, *amount))?;
                }
                write!(f, ", the most there is is {}", Amount(resource, *most))
            }
            Self::NoOffering { types, .. } => {
                write!(f, "has {types} instance types that match, but none can be had at the moment")
            }
            Self::NoMatchingType { lacks, blame, .. } => write!(f, "{}", no_matching_type(lacks, *blame)),
            Self::MinValues { key, wanted, found, .. } => {
                write!(f, "asks for {wanted} values of {key} (minValues), but only {found} can be had")
            }
            Self::ReservedInUse { .. } => {
                write!(f, "has only reserved capacity that suits the pod, and NodeClaims use all of it")
            }
            Self::HostPort { port, .. } => {
                write!(f, "has a DaemonSet that takes host port {port} on every node that the pod could get")
            }
            Self::Daemon { daemon, .. } => write!(
                f,
                "has a pod of DaemonSet {daemon} on every node, and required pod anti-affinity on {} keeps it and the pod apart",
                labels::HOSTNAME
            ),
            Self::AttachLimit { driver, wanted, most, .. } => write!(
                f,
                "has no instance type that can attach the pod's {wanted} volumes of {driver}, the most there is is {most}"
            ),
            Self::VolumeTopology { key, wanted, offered, .. } => {
                write!(f, "offers {key} {offered}, but the pod's volumes can be reached from {key} {wanted} only")
            }
            Self::Topology { .. } => {
                write!(f, "could hold the pod, but the constraints between pods allow no such node")
            }
            Self::AfterReserved { first, .. } => write!(
                f,
                "could hold the pod, but is not asked while the pod waits for reserved capacity of NodePool {first}, which comes before it"
            ),
            Self::PoolNotReady { why, .. } => write!(f, "is not ready: {why}"),
            Self::PoolContradiction { key, .. } => {
                write!(f, "has requirements and labels that exclude each other on {key}")
            }
            Self::NoTypes { without, .. } if without.is_empty() => write!(
                f,
                "has no instance type: none of its NodeClass's instance types can be had at the moment, whatever the NodePool requires"
            ),
            Self::NoTypes { .. } => write!(f, "has requirements that leave no instance type that can be had"),
            Self::NoCatalog { .. } => {
                write!(f, "has no instance type: the cloud has named none for its NodeClass")
            }
            Self::PoolStatic { .. } => {
                write!(f, "is static (spec.replicas): it gets no further nodes because pods need them")
            }
            Self::PoolDeleting { .. } => write!(f, "is being deleted, and gets no further nodes"),
            _ => Ok(()),
        }
    }

    /// Constraints between pods.
    fn write_between_pods(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spread { key, counts, .. } if counts.is_empty() => write!(
                f,
                "no node that the pod could go to has the topology key {key} of the spread constraint (spec.topologySpreadConstraints)"
            ),
            Self::Spread { key, max_skew, min_domains, counts } => {
                let all = some(counts.iter().map(|(name, count)| format!("{name}={count}")));
                write!(f, "the spread constraint on {key} (maxSkew {max_skew}) leaves no domain: {all}")?;
                if *min_domains > counts.len() {
                    write!(f, "; as minDomains is {min_domains}, none may have more than maxSkew")?;
                }
                Ok(())
            }
            Self::Affinity { key, selector, partner } => write_affinity(f, key, selector, partner),
            Self::SharedVolume { claim } => write!(
                f,
                "PersistentVolumeClaim {claim} is not bound yet, and other pods that use it go to zones where this one cannot go"
            ),
            Self::AntiAffinity { key } => {
                write!(f, "the pod's anti-affinity on {key} excludes every domain it could go to")
            }
            Self::Repelled { key } => {
                write!(f, "pods with an anti-affinity on {key} against this pod are in every domain it could go to")
            }
            _ => Ok(()),
        }
    }

    /// What would help, if this alone is in the way. Empty where the clause says it.
    fn remedy(&self) -> Cow<'static, str> {
        let text = match self {
            Self::Invalid(_) | Self::Volume(_) | Self::Topology { .. } | Self::PoolNotReady { .. } => "",
            Self::Distrusted(_) => {
                "please report it with the pod, its NodePools, its DaemonSets and its node; other pods are planned"
            }
            Self::DynamicResources => {
                "ask for them by an extended resource in resources.limits, or give the pod a node that is there"
            }
            Self::BoughtInVain { .. } => {
                "its events say what kube-scheduler misses on them (kubectl describe pod); no further one is bought while they stand"
            }
            Self::Contradiction { .. } | Self::PoolContradiction { .. } => "change one of them",
            Self::VolumesElsewhere { .. } => "change them, or move the volumes",
            Self::NoPools => "create one",
            Self::Spread { key, counts, .. } if counts.is_empty() => {
                return format!(
                    "would fit if a NodePool that it could use stated values for {key} (in spec.template), or without the constraint"
                )
                .into();
            }
            Self::Spread { min_domains, counts, .. } if *min_domains > counts.len() => {
                "would fit with a lower minDomains, a higher maxSkew, or more domains"
            }
            Self::Spread { .. } => "would fit if the pod could go to the emptiest domains, or with a higher maxSkew",
            Self::Affinity { partner, .. } => of_affinity(partner),
            Self::SharedVolume { .. } => {
                "would fit if all of them could be in one zone, or with a claim for pods of many nodes (spec.accessModes)"
            }
            Self::AntiAffinity { key } => {
                return format!(
                    "would fit if there were a further {key} that it could go to, or if the anti-affinity were merely preferred"
                )
                .into();
            }
            Self::Repelled { key } => {
                return format!("would fit if there were a further {key} that it could go to").into();
            }
            Self::Limit { .. } => "would fit with higher spec.limits",
            Self::TooLarge { daemon: Some(_), .. } => {
                "would fit if the pod or the DaemonSet requested less, with larger types, or in a NodePool that the DaemonSet does not come to"
            }
            Self::TooLarge { .. } => "would fit if the pod requested less, or with larger types",
            Self::NoTypeHolds { .. } => "would fit if they requested less of one resource",
            Self::NoOffering { .. } => {
                "Events InsufficientCapacityError say what the cloud said, if it was asked; allow more zones, capacity types or types"
            }
            Self::NoMatchingType { .. } => "would fit if others were asked for, or the NodePool had more types",
            Self::HostPort { .. } => "use another port",
            Self::Daemon { .. } => {
                "would fit in a NodePool that the DaemonSet does not come to, or if the anti-affinity were merely preferred"
            }
            Self::AttachLimit { .. } => "would fit with fewer volumes, or with types that attach more",
            Self::VolumeTopology { key, .. } if **key == *labels::HOSTNAME => {
                "make room on that node, or move the volume"
            }
            Self::VolumeTopology { .. } => "widen the NodePool",
            Self::MinValues { .. } => "lower minValues",
            Self::ReservedInUse { .. } => {
                return format!(
                    "the pod waits until some is free, or until the NodePool allows {} or {} too",
                    labels::ON_DEMAND,
                    labels::SPOT
                )
                .into();
            }
            Self::Requirement { key, .. } if **key == *labels::HOSTNAME => {
                "make room for it on the node of that name, if there is one (resources, taints, cordons, ports), or ask for another label"
            }
            Self::Requirement { .. } => "would fit if they agreed",
            Self::Taint { .. } => "would fit with a toleration",
            Self::AfterReserved { .. } => "would fit if it came first, by a higher spec.weight",
            Self::Several { .. } => "all of this has to change before the pod fits",
            Self::NoTypes { without, .. } => return of_no_types(without).into(),
            Self::NoCatalog { .. } => "see the NodeClass's conditions",
            Self::PoolStatic { .. } => {
                "raise spec.replicas (feature gate StaticCapacity), or create a NodePool that is not static"
            }
            Self::PoolDeleting { .. } => "create another",
        };
        text.into()
    }
}

/// Which requirements of a pool leave it no instance type.
fn of_no_types(without: &[(Arc<str>, usize)]) -> String {
    if without.is_empty() {
        return "Events InsufficientCapacityError say what the cloud said, if it was asked; else see the NodeClass, and NodeOverlays if there are any".to_owned();
    }
    if without.iter().all(|(_, types)| *types == 0) {
        let all: Vec<String> = without.iter().map(|(line, _)| format!("`{line}`")).collect();
        return format!("there would be some if {} were all relaxed", all.join(" and "));
    }
    let each: Vec<String> = without.iter().map(|(line, types)| format!("{types} without `{line}`")).collect();
    format!("there would be {}", each.join(" or "))
}

/// Which labels no type has.
fn no_matching_type(lacks: &[Lack], blame: Blame) -> String {
    let wanted = |lack: &Lack| format!("{} {}", lack.key, lack.wanted);
    let instead = |lack: &Lack| format!("{} {}", lack.key, lack.offered);
    let all = |one: &dyn Fn(&Lack) -> String, between: &str| lacks.iter().map(one).collect::<Vec<_>>().join(between);
    let offered = all(&instead, " or ");
    match blame {
        Blame::Alone => format!("has no instance type with {} (there is {offered})", all(&wanted, " and ")),
        Blame::Beside => format!(
            "has no instance type with {} beside what else the pod asks for (there is {offered})",
            all(&wanted, " and ")
        ),
        Blame::Either => {
            format!("has no instance type with {} at once (there is {offered})", all(&wanted, " and "))
        }
        Blame::Each => {
            let change = |lack: &Lack| format!("{} (there is {})", wanted(lack), lack.offered);
            format!("has no instance type with {}", all(&change, ", nor beside that with "))
        }
    }
}

fn write_affinity(f: &mut fmt::Formatter<'_>, key: &str, selector: &str, partner: &Partner) -> fmt::Result {
    let affinity = format!("the required pod affinity on {key}");
    match partner {
        Partner::NoKey => write!(
            f,
            "no node has the label {key} that {affinity} (spec.affinity.podAffinity) has as its topologyKey, and none can be made that has"
        ),
        Partner::Nobody => write!(
            f,
            "no pod is there that {affinity} (spec.affinity.podAffinity) asks for ({selector}), neither one that runs nor one that waits"
        ),
        Partner::Unplanned(pod) => write!(
            f,
            "the pods that {affinity} (spec.affinity.podAffinity) asks for ({selector}) run nowhere and are not to be placed now, such as {pod}"
        ),
        Partner::Waiting(pod) => {
            write!(f, "the pods that {affinity} asks for ({selector}) have no place themselves, such as {pod}")
        }
        Partner::Cycle(pods) => {
            let steps: Vec<String> =
                pods.iter().cycle().skip(1).take(pods.len()).map(|next| format!("waits for {next}")).collect();
            let first = pods.first().map_or("", |pod| &**pod);
            write!(f, "{affinity} ({selector}) waits for itself: {first} {}", steps.join(", which "))
        }
        Partner::Elsewhere(domains) if domains.is_empty() => {
            write!(f, "the pods that {affinity} asks for ({selector}) are where this pod cannot go")
        }
        Partner::Elsewhere(domains) => write!(
            f,
            "the pods that {affinity} asks for ({selector}) are in {} only, where this pod cannot go",
            some(domains.iter().map(ToString::to_string))
        ),
    }
}

fn of_affinity(partner: &Partner) -> &'static str {
    match partner {
        Partner::NoKey => "state values for it in a NodePool's spec.template, or use another topologyKey",
        Partner::Nobody => "would fit beside such a pod, or if the affinity were merely preferred",
        Partner::Unplanned(_) => "would fit once they are, or if the affinity were merely preferred",
        Partner::Waiting(_) => "would fit once they have one, or if the affinity were merely preferred",
        Partner::Cycle(_) => {
            "one of these affinities has to be merely preferred (preferredDuringSchedulingIgnoredDuringExecution)"
        }
        Partner::Elsewhere(_) => "would fit if it could go there, or if the affinity were merely preferred",
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
