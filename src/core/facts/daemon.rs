//! DaemonSets: pods that every fitting node will carry, known before the node exists.

use std::sync::Arc;

use crate::core::ids::ObjectKey;

use super::{Effect, PodShape, Toleration, TolerationOperator};

/// Taints that the DaemonSet controller lets every pod of a DaemonSet tolerate (`AddOrUpdateDaemonPodTolerations`).
const TOLERATED: [(&str, Effect); 6] = [
    ("node.kubernetes.io/not-ready", Effect::NoExecute),
    ("node.kubernetes.io/unreachable", Effect::NoExecute),
    ("node.kubernetes.io/disk-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/unschedulable", Effect::NoSchedule),
];
/// The same for pods on the host's network.
const TOLERATED_ON_HOST: (&str, Effect) = ("node.kubernetes.io/network-unavailable", Effect::NoSchedule);

/// Adds what the DaemonSet controller adds to the tolerations of a template.
pub fn tolerate_as_daemon(tolerations: &mut Vec<Toleration>, on_host_network: bool) {
    for (key, effect) in TOLERATED.into_iter().chain(on_host_network.then_some(TOLERATED_ON_HOST)) {
        let (operator, effect) = (TolerationOperator::Exists, Some(effect));
        let toleration = Toleration { key: key.into(), operator, value: "".into(), effect, seconds: None };
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
}

/// A DaemonSet and the shape of its pods, as its template gives it.
#[derive(Clone, PartialEq, Debug)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What each of its pods looks like, with the tolerations that the DaemonSet controller adds.
    pub shape: Arc<PodShape>,
}

impl DaemonSet {
    /// Whether room is kept for its pods. Not for those that ask for devices: joiner cannot tell on which nodes there will be any (Karpenter's
    /// `--ignore-dra-requests`).
    pub fn is_expected(&self) -> bool {
        !self.shape.dynamic_resources
    }
}
