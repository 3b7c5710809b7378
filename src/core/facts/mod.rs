//! Facts: what was observed in the cluster and in the cloud, parsed once, lean, and free of any API library's types.
//!
//! [`Fact`] is the word that `cluster` hands to `actors`; [`Snapshot`] is all that a decision may look at.

mod attaching;
mod buffer;
mod catalog;
mod claim;
mod class;
mod condition;
mod daemon;
mod departed;
pub mod finalizers;
mod fold;
mod fold_daemons;
mod fold_features;
mod fold_groups;
mod fold_volumes;
mod group;
mod machine;
mod node;
mod overlay;
mod pod;
mod pod_budget;
mod pool;
#[cfg(test)]
pub(crate) mod samples;
mod seen;
mod slice;
mod snapshot;
mod taint;
mod volume;
mod waits;

pub use attaching::{AttachLimits, tell as tell_attach_limits};
pub use buffer::{Buffer, BufferStatus, PodTemplate, Scalable, ScalableKind, Source};
pub use catalog::{Catalog, InstanceType, Offering};
pub use claim::{Broken, Claim, ClaimDraft};
pub use class::NodeClass;
pub use condition::{Condition, Status, find as find_condition};
pub use daemon::{DaemonSet, tolerate_as_daemon};
pub use departed::Departed;
pub use fold::{Fold, Landed, News};
pub use group::Group;
pub use machine::Machine;
pub use node::{Node, OwnerClaim};
pub use overlay::{Judgement, Overlaid, Overlay, PriceChange, Verdict};
pub use pod::{
    AffinityTerm, DoNotDisrupt, HostPort, NodeAffinity, Owner, Pod, PodPhase, PodShape, PolicyHonor, Preference,
    Selector, TopologySpread, Weighted,
};
pub use pod_budget::{Count, PodBudget};
pub use pool::{Budget, ConsolidationPolicy, Disruption, Pool, Template};
pub use seen::{Fact, Kind};
pub use slice::DeviceSlice;
pub use snapshot::Snapshot;
pub use taint::{Effect, Taint, Toleration, TolerationOperator};
pub use volume::{Access, CsiNode, StorageClass, Topologies, Volume, VolumeAttachment, VolumeClaim};
pub use waits::{Reached, Took, Wait, Waits};

#[cfg(test)]
mod order_tests;
