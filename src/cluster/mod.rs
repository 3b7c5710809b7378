//! How we see and touch Kubernetes: the trait [`Cluster`], and the real client behind it.
//!
//! Nothing in here retries or decides: a conflict, a refusal or a lost answer goes back to the actor as a value. Nothing spawns tasks:
//! [`Cluster::facts`] is a stream that its reader drives.

mod error;

mod answer;
mod client;
mod counts;
mod dry_run;
mod events;
mod evict;
mod fresh;
mod lease;
mod patch;
mod permissions;
mod request;
mod throttle;
mod watch;

pub mod convert;

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};

pub use crate::core::writes::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Lease, NodePatch,
    OverlayStatusPatch, PoolPatch, PoolStatusPatch, Regarding,
};
pub use answer::refused_eviction;
pub use client::{CheckError, ClientFrom, KubeCluster, Options};
pub use counts::{RequestCounts, WatchHealth};
pub use dry_run::DryRun;
pub use error::Error;
pub use permissions::Permissions;

/// What the auditor's record says now; nothing leaves what is written.
pub type RecordNow<'a> = &'a (dyn Fn() -> Option<Arc<str>> + Send + Sync);

/// A Kubernetes API server as joiner needs it. Object-safe; every write is a single request.
pub trait Cluster: Send + Sync + 'static {
    /// Everything that happens, from a first full list onwards, without end: gaps are healed inside by listing again, and said
    /// with [`Fact::Relisting`] and [`Fact::Relisted`]. Of NodeClaims only those are told whose NodeClass is of a kind that is looked after
    /// here: the others belong to another autoscaler.
    fn facts(&self) -> BoxStream<'static, Fact>;

    /// Whether writes are said and not done: whoever speaks of one says that it would be.
    fn only_says(&self) -> bool {
        false
    }

    /// Creates a NodeClaim under the name in the draft. [`Error::Exists`] means that an earlier attempt had worked.
    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>>;

    /// Changes metadata of a NodeClaim. With a `version`, a change by somebody else makes it an [`Error::Conflict`].
    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>>;

    /// Changes the status of a NodeClaim.
    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>>;

    /// Asks for the deletion of a NodeClaim; finalizers decide when it happens. The UID keeps a namesake safe.
    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>>;

    /// All NodeClaims as the API server has them now, not from a cache: evidence for the auditor. Those of another autoscaler are among them: they
    /// have nodes and machines, too, that are not nobody's.
    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>>;

    /// A NodeClaim as the API server has it now, not from a cache; nothing when there is none.
    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>>;

    /// A Node as the API server has it now, not from a cache; nothing when there is none.
    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>>;

    /// The Node with this provider ID as the API server has it now, not from a cache; nothing when there is none. The first by name when there are
    /// several.
    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>>;

    /// The pods on a Node as the API server has them now, not from a cache.
    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>>;

    /// The volumes that are attached to a Node as the API server has it now, not from a cache.
    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>>;

    /// The ResourceSlices of a Node as the API server has them now, not from a cache: those that name it, or are owned by it.
    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>>;

    /// Changes metadata and taints of a Node. The answer is the Node as it is then, where there is one: nobody has changed it in a dry run.
    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        patch: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>>;

    /// Asks for the deletion of a Node; finalizers decide when it happens.
    fn delete_node<'a>(&'a self, name: &'a NodeName, uid: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes annotations of a NodePool.
    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the status of a NodePool.
    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the finalizers of a NodeClass of a kind that joiner looks after.
    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the status of a NodeClass of a kind that joiner looks after.
    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the status of a NodeOverlay.
    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        patch: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Changes the status of a CapacityBuffer.
    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        patch: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Sets `status.nominatedNodeName` of a pod, or clears it. The UID guards against a namesake.
    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Asks for the eviction of a pod. [`Error::Budget`] means that a PodDisruptionBudget forbids it for now.
    fn evict<'a>(&'a self, pod: &'a ObjectKey, uid: &'a PodUid) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes a pod with a grace period of at least one second: the way past a budget when a deadline allows it.
    fn delete_pod<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        grace_seconds: i64,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Writes an Event.
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes or renews the leader lease for `holder`; the answer says who holds it now. If that is `holder`, the auditor's record is written down in it, as
    /// it is after the lease was read: of attempts that overtake each other the API server takes none that has read another's lease, so that no record is
    /// written over by an older one.
    fn renew_lease<'a>(&'a self, holder: &'a str, record: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>>;

    /// Gives the lease back, if `holder` has it, so that a successor need not wait.
    fn release_lease<'a>(&'a self, holder: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

#[cfg(test)]
mod tests;
