//! How many volumes machines can attach, as far as those show that run.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::labels;

use super::{InstanceType, Snapshot};

/// What the CSINodes of running machines say of their instance types. Clouds do not say it, or not for every driver: it depends on how the driver is
/// configured.
#[derive(Clone, Debug, Default)]
pub struct AttachLimits(FxHashMap<Arc<str>, BTreeMap<Arc<str>, Option<u32>>>);

impl AttachLimits {
    /// By instance type and driver: the most that a machine shows. Of what another holds already (network interfaces that take slots, volumes that
    /// the driver did not attach) a fresh one may be free.
    pub fn shown(snapshot: &Snapshot) -> Self {
        let mut shown: FxHashMap<Arc<str>, BTreeMap<Arc<str>, Option<u32>>> = FxHashMap::default();
        for csi in snapshot.csi_nodes.values() {
            let node = snapshot.nodes.get(&csi.node);
            let Some(kind) = node.and_then(|node| node.labels.get(labels::INSTANCE_TYPE)) else { continue };
            let limits = shown.entry(Arc::clone(kind)).or_default();
            for (driver, limit) in &csi.limits {
                let most = limits.entry(Arc::clone(driver)).or_insert(*limit);
                *most = most.zip(*limit).map(|(most, limit)| most.max(limit));
            }
        }
        Self(shown)
    }

    /// How many volumes of a driver a fresh machine can hold: what others of its type show, else what the cloud says; nothing when there is no limit,
    /// or none is known.
    pub fn of(&self, kind: &InstanceType, driver: &str) -> Option<u32> {
        let shown = self.0.get(kind.name.as_str()).and_then(|limits| limits.get(driver));
        shown.copied().unwrap_or_else(|| kind.attach_limits.get(driver).copied())
    }

    /// The limits of every driver that has one, on a machine of a type, which may be one that the cloud does not list any more.
    pub fn all(&self, name: &str, kind: Option<&InstanceType>) -> BTreeMap<Arc<str>, u32> {
        let mut limits = kind.map(|kind| kind.attach_limits.clone()).unwrap_or_default();
        self.0.get(name).into_iter().for_each(|shown| tell(&mut limits, shown));
        limits
    }
}

/// Writes what was shown over what was known.
pub fn tell(limits: &mut BTreeMap<Arc<str>, u32>, shown: &BTreeMap<Arc<str>, Option<u32>>) {
    for (driver, limit) in shown {
        match limit {
            Some(limit) => drop(limits.insert(Arc::clone(driver), *limit)),
            None => drop(limits.remove(driver)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::facts::samples::node;
    use crate::core::facts::{CsiNode, Fact, Fold};

    const EBS: &str = "ebs.csi.aws.com";

    fn shown(of: &[(&str, &str, Option<u32>)]) -> AttachLimits {
        let mut fold = Fold::default();
        for (name, kind, limit) in of {
            let mut node = node();
            node.name = (*name).into();
            node.labels.insert(labels::INSTANCE_TYPE.into(), (*kind).into());
            fold.fold(Fact::NodeSeen(Arc::new(node)));
            let csi = CsiNode { node: (*name).into(), limits: [(EBS.into(), *limit)].into() };
            fold.fold(Fact::CsiNodeSeen(Arc::new(csi)));
        }
        AttachLimits::shown(fold.snapshot())
    }

    fn of(limits: &AttachLimits, kind: &str) -> BTreeMap<Arc<str>, u32> {
        limits.all(kind, None)
    }

    #[test]
    fn machines_of_a_type_show_what_a_fresh_one_can_hold() {
        let limits = shown(&[("a", "m5", Some(24)), ("b", "m5", Some(25)), ("c", "c7", None)]);
        assert_eq!(of(&limits, "m5"), [(EBS.into(), 25)].into(), "the most that one shows");
        assert_eq!(of(&limits, "c7"), [].into(), "without a limit");
        assert_eq!(of(&limits, "r6"), [].into(), "nobody knows");
        let limits = shown(&[("a", "m5", Some(24)), ("b", "m5", None)]);
        assert_eq!(of(&limits, "m5"), [].into(), "one that has no limit shows that there is none");
    }
}
