//! What a reason says, as data: for programs that do more than show the sentence.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::resources::ResourceName;

use super::fault::VolumeFault;
use super::reason::{Blame, Lack, Partner, Reason};

/// One field of a reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum {
    /// A name, a set as it is written, or an amount as Kubernetes writes it.
    Text(Arc<str>),
    /// A number.
    Number(i64),
    /// A number for each of several things.
    Counts(Vec<(Arc<str>, i64)>),
    /// Several things, each with fields of its own.
    List(Vec<BTreeMap<&'static str, Self>>),
}

type Fields = BTreeMap<&'static str, Datum>;

impl Reason {
    /// What it says beside its kind and the NodePool, field by field.
    pub fn fields(&self) -> Fields {
        match self {
            Self::Invalid(_)
            | Self::Distrusted(_)
            | Self::DynamicResources
            | Self::NoPools
            | Self::NoTypeHolds { .. }
            | Self::ReservedInUse { .. }
            | Self::Topology { .. }
            | Self::PoolStatic { .. }
            | Self::PoolDeleting { .. }
            | Self::NoCatalog { .. } => Fields::new(),
            Self::BoughtInVain { nodes } => {
                let one = |node: &Arc<str>| Fields::from([("node", text(node))]);
                Fields::from([("nodes", Datum::List(nodes.iter().map(one).collect()))])
            }
            Self::AfterReserved { first, .. } => Fields::from([("first", text(first.as_str()))]),
            Self::NoMatchingType { lacks, blame, .. } => of_lacks(lacks, *blame),
            Self::Several { all, .. } => {
                let one = |reason: &Self| with(reason.fields(), "kind", reason.kind());
                Fields::from([("all", Datum::List(all.iter().map(one).collect()))])
            }
            Self::Affinity { key, selector, partner } => of_affinity(key, selector, partner),
            Self::Volume(fault) => fault.fields(),
            Self::SharedVolume { claim } => Fields::from([("claim", text(claim))]),
            Self::Contradiction { key }
            | Self::VolumesElsewhere { key }
            | Self::AntiAffinity { key }
            | Self::Repelled { key }
            | Self::PoolContradiction { key, .. } => Fields::from([("key", text(key))]),
            Self::Spread { key, max_skew, min_domains, counts } => Fields::from([
                ("key", text(key)),
                ("maxSkew", Datum::Number(i64::from(*max_skew))),
                ("minDomains", number(*min_domains)),
                ("domains", counted(counts.iter().map(|(name, count)| (name, i64::from(*count))))),
            ]),
            Self::Limit { resource, left, .. } => {
                Fields::from([("resource", text(resource.as_str())), ("left", amount(resource, *left))])
            }
            Self::TooLarge { resource, wanted, most, daemon, .. } => {
                let mut all = Fields::from([
                    ("resource", text(resource.as_str())),
                    ("wanted", amount(resource, *wanted)),
                    ("most", amount(resource, *most)),
                ]);
                all.extend(daemon.iter().map(|(name, _)| ("daemon", text(name))));
                all
            }
            Self::NoOffering { types, .. } => Fields::from([("types", number(*types))]),
            Self::HostPort { port, .. } => Fields::from([("port", Datum::Number(i64::from(*port)))]),
            Self::Daemon { daemon, .. } => Fields::from([("daemon", text(daemon))]),
            Self::AttachLimit { driver, wanted, most, .. } => Fields::from([
                ("driver", text(driver)),
                ("wanted", Datum::Number(i64::from(*wanted))),
                ("most", Datum::Number(i64::from(*most))),
            ]),
            Self::VolumeTopology { key, wanted, offered, .. } | Self::Requirement { key, wanted, offered, .. } => {
                Fields::from([("key", text(key)), ("wanted", text(wanted)), ("offered", text(offered))])
            }
            Self::MinValues { key, wanted, found, .. } => Fields::from([
                ("key", text(key)),
                ("wanted", Datum::Number(i64::from(*wanted))),
                ("found", Datum::Number(i64::from(*found))),
            ]),
            Self::Taint { taint, .. } => Fields::from([
                ("key", text(&taint.key)),
                ("value", text(&taint.value)),
                ("effect", text(taint.effect.as_str())),
            ]),
            Self::PoolNotReady { why, .. } => Fields::from([("why", text(why))]),
            Self::NoTypes { without, .. } => {
                let types = without.iter().map(|(line, types)| (line, i64::try_from(*types).unwrap_or(i64::MAX)));
                Fields::from([("typesWithout", counted(types))])
            }
        }
    }
}

fn of_lacks(lacks: &[Lack], blame: Blame) -> Fields {
    let lack = |lack: &Lack| {
        Fields::from([("key", text(&lack.key)), ("wanted", text(&lack.wanted)), ("offered", text(&lack.offered))])
    };
    Fields::from([("labels", Datum::List(lacks.iter().map(lack).collect())), ("blame", text(blame.as_str()))])
}

fn of_affinity(key: &str, selector: &str, partner: &Partner) -> Fields {
    let mut fields =
        Fields::from([("key", text(key)), ("selector", text(selector)), ("partner", text(partner.as_str()))]);
    let named: &[Arc<str>] = match partner {
        Partner::NoKey | Partner::Nobody => &[],
        Partner::Unplanned(pod) | Partner::Waiting(pod) => std::slice::from_ref(pod),
        Partner::Cycle(all) | Partner::Elsewhere(all) => all,
    };
    if !named.is_empty() {
        fields.insert("where", text(&named.join(", ")));
    }
    fields
}

impl Blame {
    fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "Alone",
            Self::Beside => "Beside",
            Self::Either => "Either",
            Self::Each => "Each",
        }
    }
}

impl Partner {
    fn as_str(&self) -> &'static str {
        match self {
            Self::NoKey => "NoKey",
            Self::Nobody => "Nobody",
            Self::Unplanned(_) => "Unplanned",
            Self::Waiting(_) => "Waiting",
            Self::Cycle(_) => "Cycle",
            Self::Elsewhere(_) => "Elsewhere",
        }
    }
}

impl VolumeFault {
    fn fields(&self) -> Fields {
        match self {
            Self::Withheld { kind } => Fields::from([("fault", text("Withheld")), ("resource", text(kind))]),
            Self::NoClaim { claim } => fault("NoClaim", &claim.to_string()),
            Self::ClaimDeleting { claim } => fault("ClaimDeleting", &claim.to_string()),
            Self::ClaimLost { claim } => fault("ClaimLost", &claim.to_string()),
            Self::NoClass { claim } => fault("NoClass", &claim.to_string()),
            Self::ByHand { claim } => fault("ByHand", &claim.to_string()),
            Self::Apart { claim } => fault("Apart", &claim.to_string()),
            Self::TooMany { claim, .. } => fault("TooMany", &claim.to_string()),
            Self::InUse { claim, pod } => with(fault("InUse", &claim.to_string()), "pod", &pod.to_string()),
            Self::NoVolume { claim, volume } => with(fault("NoVolume", &claim.to_string()), "volume", volume),
            Self::Binding { claim, volume } => with(fault("Binding", &claim.to_string()), "volume", volume),
            Self::Nowhere { claim, volume } => with(fault("Nowhere", &claim.to_string()), "volume", volume),
            Self::NodeGone { claim, volume, .. } => with(fault("NodeGone", &claim.to_string()), "volume", volume),
            Self::ClassMissing { claim, class } => with(fault("ClassMissing", &claim.to_string()), "class", class),
            Self::Immediate { claim, class } => with(fault("Immediate", &claim.to_string()), "class", class),
        }
    }
}

fn fault(kind: &str, claim: &str) -> Fields {
    Fields::from([("fault", text(kind)), ("claim", text(claim))])
}

fn with(mut fields: Fields, name: &'static str, value: &str) -> Fields {
    fields.insert(name, text(value));
    fields
}

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

fn number(value: usize) -> Datum {
    Datum::Number(i64::try_from(value).unwrap_or(i64::MAX))
}

fn counted<'a>(all: impl Iterator<Item = (&'a Arc<str>, i64)>) -> Datum {
    Datum::Counts(all.map(|(name, count)| (Arc::clone(name), count)).collect())
}

/// Thousandths, as Kubernetes writes an amount of the resource.
fn amount(resource: &ResourceName, milli: i64) -> Datum {
    Datum::Text(resource.written(milli).to_string().into())
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
