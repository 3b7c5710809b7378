//! What can be wrong with a pod's volume: typed, and readable with the object, the field and the remedy.

use std::fmt;
use std::sync::Arc;

use crate::core::ids::ObjectKey;

/// Why the volume behind a claim can be reached from nowhere, as far as is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VolumeFault {
    /// joiner may not look at the objects that it would have to know.
    Withheld {
        /// What it may not look at, in the plural.
        kind: &'static str,
    },
    /// The claim does not exist (yet).
    NoClaim {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// The claim is being deleted.
    ClaimDeleting {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// The volume behind the claim is no more.
    ClaimLost {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// The claim names a volume that does not exist or is being deleted.
    NoVolume {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// PersistentVolume.
        volume: Arc<str>,
    },
    /// The claim names a volume, and the binding is not complete.
    Binding {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// PersistentVolume.
        volume: Arc<str>,
    },
    /// The volume's node affinity can be met by no node.
    Nowhere {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// PersistentVolume.
        volume: Arc<str>,
    },
    /// The volume lives on one node, which is gone.
    NodeGone {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// PersistentVolume.
        volume: Arc<str>,
        /// The host names that its node affinity names.
        hosts: Vec<Arc<str>>,
    },
    /// The claim is not bound, and there is no class that would make a volume for it.
    NoClass {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// The claim is not bound, and asks for a volume that somebody makes by hand: its class is the empty text.
    ByHand {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
    },
    /// The claim's class does not exist.
    ClassMissing {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// StorageClass.
        class: Arc<str>,
    },
    /// The class binds at once, and has not done so.
    Immediate {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// StorageClass.
        class: Arc<str>,
    },
    /// The claim is for one pod at a time, and another has it or came before.
    InUse {
        /// PersistentVolumeClaim.
        claim: ObjectKey,
        /// The other pod.
        pod: ObjectKey,
    },
    /// The volumes of the pod can be reached from no common place.
    Apart {
        /// PersistentVolumeClaim of the one that agrees with none before it.
        claim: ObjectKey,
    },
    /// Where the volumes of the pod can be reached is described by more alternatives than are tried.
    TooMany {
        /// PersistentVolumeClaim of the one with which they are too many.
        claim: ObjectKey,
        /// How many alternatives are tried at most.
        most: usize,
    },
}

impl fmt::Display for VolumeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withheld { kind } => write!(
                f,
                "the pod has volumes, and joiner may not list {kind}; add the rule that its log names to its ClusterRole"
            ),
            Self::NoClaim { claim } => {
                write!(f, "PersistentVolumeClaim {claim} does not exist; create it, or correct spec.volumes of the pod")
            }
            Self::ClaimDeleting { claim } => {
                write!(f, "PersistentVolumeClaim {claim} is being deleted; wait for its end and create it again")
            }
            Self::ClaimLost { claim } => write!(
                f,
                "PersistentVolumeClaim {claim} has status.phase Lost: its PersistentVolume is gone; restore that, or replace the claim"
            ),
            Self::NoVolume { claim, volume } => write!(
                f,
                "PersistentVolumeClaim {claim}: spec.volumeName names {volume}, which does not exist or is being deleted; restore it, or replace the claim"
            ),
            Self::Binding { claim, volume } => write!(
                f,
                "PersistentVolumeClaim {claim}: its binding to {volume} (spec.volumeName) is not complete; see the events of the claim"
            ),
            Self::Nowhere { claim, volume } => write!(
                f,
                "PersistentVolumeClaim {claim}: no node meets spec.nodeAffinity of PersistentVolume {volume}; correct it"
            ),
            Self::NodeGone { claim, volume, hosts } => write!(
                f,
                "PersistentVolumeClaim {claim}: PersistentVolume {volume} lives on node {}, which is gone, and kube-scheduler lets its pods onto no other; delete the claim, so that a new volume is made, or bring the node back",
                hosts.join(" or ")
            ),
            Self::NoClass { claim } => write!(
                f,
                "PersistentVolumeClaim {claim} is not bound and has no StorageClass; set spec.storageClassName, mark a default class, or bind it by hand"
            ),
            Self::ByHand { claim } => write!(
                f,
                "PersistentVolumeClaim {claim} is not bound, and its spec.storageClassName is empty, so that only a PersistentVolume without a class is bound to it; create one of its size and access modes, or name a StorageClass"
            ),
            Self::ClassMissing { claim, class } => write!(
                f,
                "PersistentVolumeClaim {claim}: spec.storageClassName names {class}, which does not exist; create that StorageClass, or correct the claim"
            ),
            Self::Immediate { claim, class } => write!(
                f,
                "PersistentVolumeClaim {claim} is not bound, and StorageClass {class} binds at once; see its provisioner, or use volumeBindingMode WaitForFirstConsumer"
            ),
            Self::InUse { claim, pod } => write!(
                f,
                "PersistentVolumeClaim {claim} is for one pod at a time (spec.accessModes ReadWriteOncePod), and pod {pod} has it or comes first; wait for its end, or use ReadWriteOnce"
            ),
            Self::Apart { claim } => write!(
                f,
                "PersistentVolumeClaim {claim} can be reached from no place that the pod's other volumes can be reached from; put them into one place"
            ),
            Self::TooMany { claim, most } => write!(
                f,
                "PersistentVolumeClaim {claim}: the places from which the pod's volumes can be reached are more than {most} alternatives, which are not tried; describe them by fewer labels or terms (spec.nodeAffinity of the PersistentVolumes, allowedTopologies of the StorageClasses)"
            ),
        }
    }
}
