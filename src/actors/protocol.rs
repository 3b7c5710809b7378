//! Every message, on one page.
//!
//! Four kinds: a *fact* is something observed, idempotent; an *outcome* is the end of an operation that this actor started; a *nudge*
//! says go and look, carries no news, and two equal ones are one (`messages!` below: the second is not even put into the mailbox); an *ask* carries a reply port and comes only from `admin`, `main` and
//! tests. Actors never ask actors: `state` and `catalog` publish their latest value (see [`super::Boards`]), and others read it. The one
//! ask that all actors answer, what they show of themselves, is in [`super::runtime::Envelope`].
//!
//! News travels through `state` alone: it folds facts into the next snapshot, publishes it, and then nudges those whom it concerns. So
//! whoever is nudged sees at least what the nudge was about, and whoever was not alive at the time loses nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::clouds::{self, Assortment, Deletion, Hooks, Listing, Resolution, SoldOut, Whereabouts};
use crate::cluster::{self, Lease};
use crate::core::audit::Finding;
use crate::core::eviction::Emptied;
use crate::core::facts::{Claim, DeviceSlice, Fact, Machine, Node, Pod, VolumeAttachment};
use crate::core::health::Failure;
use crate::core::ids::{
    ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, PoolUid, ProviderId,
};
use crate::core::lifecycle::{PodRef, Way};
use crate::core::scheduling::Plan;

use super::runtime::{Message, OpId, Outcome};

/// Says which messages of each actor are nudges of which one is enough: see [`Message::nudge`].
macro_rules! messages {
    ($($message:ty: [$($nudge:ident),*];)*) => {$(
        impl Message for $message {
            fn nudge(&self) -> Option<usize> {
                let is: &[bool] = &[$(matches!(self, Self::$nudge)),*];
                is.iter().position(|is| *is)
            }
        }
    )*};
}

// Not those that name what they are about, and not a `Reconnect`: the second one is another than the first.
messages! {
    LeaderMsg: [Renew];
    StateMsg: [Publish];
    CatalogMsg: [Look, Refresh, Learnt];
    BatcherMsg: [PodsPending, PodsCame];
    ProvisionerMsg: [BatchReady, SupplyChanged, Look, Foresee, Watch];
    ClaimsMsg: [Look];
    ClaimMsg: [Look];
    NominatorMsg: [Look, Due, Wake];
    EvictorMsg: [Retry];
    PoolsMsg: [Look, Write];
    StaticsMsg: [Look];
    ClassesMsg: [Look];
    AuditorMsg: [Tick, Drain];
}

/// The outcome of a request to the API server.
pub type Written<T> = Outcome<T, cluster::Error>;
/// The outcome of a cloud call.
pub type Called<T> = Outcome<T, clouds::Error>;

/// A NodeClaim as it is after a change, and what of the change it does not show.
pub type Kept = (Arc<Claim>, Vec<String>);
/// A Node, all of its pods, and the VolumeAttachments there.
pub type Inhabited = (Arc<Node>, Vec<Arc<Pod>>, Vec<Arc<VolumeAttachment>>);

/// To `leader`.
#[derive(Debug)]
pub enum LeaderMsg {
    /// *Nudge.* Time to take or renew the lease.
    Renew,
    /// *Outcome.* The lease was asked for at that moment.
    Renewed(Instant, Written<Lease>),
}

/// To `state`.
#[derive(Debug)]
pub enum StateMsg {
    /// *Fact.* The cluster reports.
    Seen(Fact),
    /// *Fact.* A watch reports, and no more than a few thousand such reports wait here.
    Watched(Fact, OwnedSemaphorePermit),
    /// *Fact.* These pods are now planned for that NodeClaim.
    Planned(ClaimName, Vec<PodUid>),
    /// *Fact.* A plan has places for some pods and refuses others.
    Decided {
        /// Those that it has a place for.
        placed: Vec<PodUid>,
        /// Those that it has none for.
        refused: Vec<PodUid>,
    },
    /// *Fact.* The API server knows no NodeClaim of that name and UID.
    NoClaim(ClaimName, ClaimUid),
    /// *Fact.* The API server says that there is no such Node.
    NoNode(NodeName, NodeUid),
    /// *Fact.* That NodeClaim was not created: its pods are free again.
    Unplanned(ClaimName),
    /// *Nudge.* The mailbox was worked off: publish what has changed.
    Publish,
    /// *Nudge.* The stream of facts ended, which it never should: begin it anew.
    Reconnect,
}

/// To `catalog`.
#[derive(Debug)]
pub enum CatalogMsg {
    /// *Fact.* Offerings that could not be had.
    SoldOut(Vec<SoldOut>),
    /// *Outcome.* Instance types of a class.
    Fetched(ClassRef, Called<Assortment>),
    /// *Nudge.* NodePools or NodeClasses have changed.
    Look,
    /// *Nudge.* Time to ask the cloud again, or to forget what was sold out.
    Refresh,
    /// *Nudge.* The cloud has learnt from a Node what its machines have: its instance types are to be fetched again.
    Learnt,
}

/// To `batcher`.
#[derive(Debug)]
pub enum BatcherMsg {
    /// *Nudge.* There are pods that need a place and are not planned for one.
    PodsPending,
    /// *Nudge.* Pods have come that need a place, or may turn out to: a burst is not over.
    PodsCame,
    /// *Nudge.* The window of that number has been quiet long enough, or open long enough.
    WindowElapsed(u64),
}

/// To `provisioner`.
#[derive(Debug)]
pub enum ProvisionerMsg {
    /// *Nudge.* A batch is ready: solve.
    BatchReady,
    /// *Outcome.* The solver is done, and the checker too; or one of them panicked.
    Solved(OpId, Result<Box<(Plan, Vec<String>)>, String>),
    /// *Outcome.* What a plan of this price costs at least, both in USD per hour.
    Bounded(f64, f64),
    /// *Outcome.* A NodeClaim was written, or not.
    Created(ClaimName, Written<Arc<Claim>>),
    /// *Fact.* The cloud has no machine for a NodeClaim, for which these pods were planned.
    SoldOut(ClaimName, Vec<PodUid>, String),
    /// *Nudge.* Something has changed that could make room for pods that were refused.
    SupplyChanged,
    /// *Nudge.* Look whether anything is left to do.
    Look,
    /// *Nudge.* Look whether somebody who is about to lose its node has no other place yet.
    Foresee,
    /// *Nudge.* Look whether pods have come that kube-scheduler, busy with those of a plan, has not looked at, or those of the plan do not come in.
    Watch,
}

/// To `claims`.
#[derive(Debug)]
pub enum ClaimsMsg {
    /// *Nudge.* Something about the NodeClaims in [`super::Boards::stirred`] has changed: themselves, their Nodes, or the pods there.
    Look,
    /// *Nudge.* The backoff of a failed claim actor is over.
    Revive(ClaimName),
    /// *Nudge.* Time to say again that a NodeClaim is quarantined.
    Tell(ClaimName),
    /// *Outcome.* A NodeClaim was told that it is quarantined.
    Told(ClaimName, Written<()>),
    /// *Fact.* The nodes of these NodeClaims may open: their pods are nominated.
    Open(Vec<ClaimName>),
}

/// To a `claim`.
#[derive(Debug)]
pub enum ClaimMsg {
    /// *Nudge.* Something about the NodeClaim has changed, or a moment has come.
    Look,
    /// *Fact.* Its node may open.
    Open,
    /// *Outcome.* Metadata or status of the NodeClaim was written, or the NodeClaim was deleted (then nothing is returned).
    Written(OpId, Written<Option<Kept>>),
    /// *Outcome.* The API server said how the NodeClaim is now.
    ClaimTold(OpId, Written<Option<Arc<Claim>>>),
    /// *Outcome.* The API server said whether there is a Node of this name.
    NodeTold(OpId, NodeName, Written<Option<Arc<Node>>>),
    /// *Outcome.* The API server said which Node carries the machine's provider ID.
    NodeFound(OpId, ProviderId, Written<Option<Arc<Node>>>),
    /// *Outcome.* The API server said which pods are on the nodes.
    PodsListed(OpId, Written<Vec<Arc<Pod>>>),
    /// *Outcome.* The API server said which volumes are attached to the nodes.
    AttachmentsListed(OpId, Written<Vec<Arc<VolumeAttachment>>>),
    /// *Outcome.* The API server said which ResourceSlices the Node has.
    SlicesListed(OpId, Written<Vec<Arc<DeviceSlice>>>),
    /// *Outcome.* The Node was written.
    NodeWritten(OpId, NodeName, NodeUid, Written<Vec<String>>),
    /// *Outcome.* The cloud launched a machine, or did not.
    Launched(OpId, Called<Box<Machine>>),
    /// *Outcome.* The machines with this NodeClaim's token.
    Found(OpId, Called<Vec<Machine>>),
    /// *Outcome.* The machine with this NodeClaim's provider ID.
    Got(OpId, ProviderId, Called<Whereabouts>),
    /// *Outcome.* The cloud was asked to take the machine down.
    Deleted(OpId, Called<Deletion>),
    /// *Outcome.* The cloud was asked to restart the machine: this operation.
    Rebooted(OpId, Arc<str>, Called<()>),
    /// *Outcome.* The cloud was asked what it has still to do before the Node opens.
    HooksTold(OpId, Called<Hooks>),
    /// *Outcome.* The cloud was asked whether the machine has drifted, and why.
    DriftTold(OpId, Called<Option<String>>),
}

/// To `nominator`.
#[derive(Debug)]
pub enum NominatorMsg {
    /// *Nudge.* Something has changed while pods are planned for nodes.
    Look,
    /// *Nudge.* Time to look.
    Due,
    /// *Outcome.* A pod was nominated, or not.
    Nominated(PodUid, NodeName, Written<()>),
    /// *Nudge.* kube-scheduler does not bring in the pods whose nodes serve.
    Wake,
    /// *Outcome.* A pod's nomination was taken away, so that kube-scheduler tries it again; or not.
    Woken(Written<()>),
}

/// To `evictor`.
#[derive(Debug)]
pub enum EvictorMsg {
    /// *Nudge.* Pods of a node are to leave.
    Drain {
        /// Which node.
        from: Emptied,
        /// To be asked.
        evict: Vec<PodRef>,
        /// To be deleted: their node's deadline has come.
        force: Vec<PodRef>,
    },
    /// *Outcome.* A pod was asked to leave in this way.
    Evicted(PodRef, Way, Written<()>),
    /// *Nudge.* Time to ask again, or to forget those that have left.
    Retry,
}

/// To `pools`.
#[derive(Debug)]
pub enum PoolsMsg {
    /// *Nudge.* NodePools, NodeClasses, NodeClaims or Nodes have changed, what is known of NodeOverlays and CapacityBuffers, or the auditor's alarm.
    Look,
    /// *Nudge.* Time to write what has changed.
    Write,
    /// *Fact.* A machine of the NodePool with this UID has become a Node, or was given up.
    Launched(PoolUid, Result<(), Failure>),
    /// *Outcome.* An object was written.
    Written(Judged, Written<()>),
}

/// An object whose status `pools` keeps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Judged {
    /// A NodePool.
    Pool(PoolName),
    /// A NodeOverlay.
    Overlay(Arc<str>),
    /// A CapacityBuffer.
    Buffer(ObjectKey),
}

impl std::fmt::Display for Judged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pool(name) => write!(f, "NodePool {name}"),
            Self::Overlay(name) => write!(f, "NodeOverlay {name}"),
            Self::Buffer(key) => write!(f, "CapacityBuffer {key}"),
        }
    }
}

/// To `statics`.
#[derive(Debug)]
pub enum StaticsMsg {
    /// *Nudge.* NodePools, NodeClaims or Nodes have changed.
    Look,
    /// *Fact.* A NodeClaim of this NodePool is deleted because it got no machine.
    GivenUp(PoolName),
    /// *Outcome.* A NodeClaim was written, or not.
    Created(ClaimName, Written<Arc<Claim>>),
    /// *Outcome.* A NodeClaim was deleted, or not.
    Deleted(ClaimName, Written<()>),
}

/// To `classes`.
#[derive(Debug)]
pub enum ClassesMsg {
    /// *Nudge.* NodeClasses have changed, or it is time to ask the cloud again.
    Look,
    /// *Nudge.* A launch was refused for what this NodeClass names: what the cloud said of it before may be outdated.
    Doubted(ClassRef),
    /// *Outcome.* What a NodeClass of that generation comes to.
    Resolved(ClassRef, i64, Called<Resolution>),
    /// *Outcome.* The status of a NodeClass was written.
    Written(ClassRef, Written<()>),
    /// *Outcome.* The finalizers of a NodeClass were written, or not.
    Kept(ClassRef, Written<()>),
}

/// To `auditor`.
#[derive(Debug)]
pub enum AuditorMsg {
    /// *Nudge.* Time to compare.
    Tick,
    /// *Fact.* The lease was lost.
    StandBy,
    /// *Outcome.* The NodeClaims as the API server has them.
    ClaimsListed(OpId, Written<Vec<Arc<Claim>>>),
    /// *Outcome.* The machines as the cloud has them.
    MachinesListed(OpId, Called<Listing>),
    /// *Nudge.* Time to look how far the pods of orphaned machines have left.
    Drain,
    /// *Outcome.* A Node was changed, or not; what of the change it has not kept.
    NodeWritten(NodeName, NodeUid, Written<Vec<String>>),
    /// *Outcome.* The Node of a machine that looks empty and is to be taken down, and its pods, as the API server has them.
    Inhabited(ProviderId, Written<Option<Inhabited>>),
    /// *Outcome.* An orphaned machine was taken down.
    Reaped(ProviderId, Called<Deletion>),
    /// *Nudge.* Time to ask once more for machines that the cloud has denied.
    AskForLost,
    /// *Outcome.* Whether the cloud knows the machine that no listing shows, of a NodeClaim or of a Node which were found for that.
    MachineAsked(Finding, Called<bool>),
    /// *Outcome.* A NodeClaim without a machine was deleted.
    ClaimDeleted(ClaimName, Written<()>),
}

/// What the latest solve refused, for `/actors`, `explain` and the simulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusals {
    /// When.
    pub epoch: u64,
    /// Reasons by pod, as sentences, the most helpful first.
    pub reasons: BTreeMap<PodUid, Vec<String>>,
}
