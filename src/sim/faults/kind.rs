//! Every kind of fault, with how often it strikes in a mixed history.

use std::time::Duration;

/// Declares the kinds: a word for people, how many a mixed day has on average, and between which bounds (in seconds) one lasts.
macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal, $a_day:literal, $least:literal..=$most:literal;)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Fault {
            $($(#[doc = $doc])* $name,)*
        }

        impl Fault {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in summaries and profiles.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// How many a mixed day has on average.
            pub(super) fn a_day(self) -> f64 {
                match self {
                    $(Self::$name => $a_day,)*
                }
            }

            /// How long one lasts, or delays things: least and most.
            pub(super) fn lasts(self) -> (Duration, Duration) {
                match self {
                    $(Self::$name => (Duration::from_secs($least), Duration::from_secs($most)),)*
                }
            }
        }
    };
}

faults! {
    /// A write is refused because somebody else changed the object.
    ApiConflict = "api-conflict", 20.0, 0..=0;
    /// A request is answered with 429 and a time to come back.
    ApiThrottled = "api-throttled", 20.0, 1..=10;
    /// A request fails with 500 and has no effect; of a write nobody says so.
    ApiError = "api-error", 20.0, 0..=0;
    /// The connection is lost before the request had an effect.
    ApiLostBefore = "api-lost-before", 12.0, 1..=45;
    /// The connection is lost after the request had its effect.
    ApiLostAfter = "api-lost-after", 12.0, 1..=45;
    /// The answer takes long.
    ApiSlow = "api-slow", 12.0, 1..=60;
    /// Admission refuses a write.
    ApiRejected = "api-rejected", 8.0, 0..=0;
    /// No request gets through.
    ApiOutage = "api-outage", 2.0, 5..=180;
    /// The list of NodeClaims comes from a cache that lags behind.
    ApiStaleList = "api-stale-list", 3.0, 60..=900;
    /// The API server shows no NodeClaim at all for a while, neither in lists nor in watches. By name only: who loses everything at once
    /// cannot tell it from a cluster that was emptied.
    ApiAmnesia = "api-amnesia", 0.0, 300..=1800;
    /// A watch breaks (410), misses what happens, and starts over with a list.
    WatchDropped = "watch-dropped", 8.0, 1..=60;
    /// The last events are delivered once more.
    WatchDuplicated = "watch-duplicated", 12.0, 0..=0;
    /// The watch is late.
    WatchStalled = "watch-stalled", 4.0, 5..=180;
    /// A watch starts over with a list from a cache that lags behind, and stays silent for a while.
    WatchStale = "watch-stale", 2.0, 20..=600;

    /// An instance type, zone or capacity type is sold out.
    SoldOut = "sold-out", 4.0, 300..=3600;
    /// The account may have no more machines.
    Quota = "quota", 1.0, 60..=1200;
    /// The cloud wants fewer calls.
    CloudThrottled = "cloud-throttled", 3.0, 5..=60;
    /// A cloud call fails without effect.
    CloudError = "cloud-error", 15.0, 0..=0;
    /// A cloud call is not answered in time, and had no effect.
    CloudLost = "cloud-lost", 8.0, 5..=130;
    /// A launch is not answered; the machine was made.
    LaunchLostAfter = "launch-lost-after", 12.0, 1..=130;
    /// A launch is not answered; no machine was made.
    LaunchLostBefore = "launch-lost-before", 8.0, 1..=130;
    /// A launch is not answered; the machine is made a while later.
    LaunchLate = "launch-late", 4.0, 1..=30;
    /// A machine is missing from listings for a while.
    MachineHidden = "machine-hidden", 6.0, 60..=1800;
    /// A machine that was just launched is shown by no read for a while, neither by its ID nor by its token nor in lists.
    MachineLate = "machine-shown-late", 6.0, 2..=40;
    /// A machine that runs is shown by no read for a while, and orders about it are answered as if there were none.
    MachineDenied = "machine-denied", 6.0, 2..=40;
    /// Somebody takes all tags off a machine, and puts them back a while later.
    MachineUntagged = "machine-untagged", 2.0, 60..=7200;
    /// A listing breaks off, and says so.
    ListingBroken = "listing-broken", 4.0, 0..=0;
    /// Listings lack a part of the machines, and do not say so.
    ListingShrunken = "listing-shrunken", 1.5, 60..=1200;
    /// A machine takes minutes to go down.
    DeleteSlow = "delete-slow", 8.0, 60..=600;
    /// The order to take a machine down is answered with "no such machine" for a while, and the machine runs on.
    DeleteDenied = "delete-denied", 6.0, 2..=40;
    /// The order to take a machine down is confirmed and forgotten.
    DeleteForgotten = "delete-forgotten", 8.0, 0..=0;
    /// A machine dies.
    MachineDies = "machine-dies", 10.0, 0..=0;
    /// A machine's kubelet never reports.
    NeverRegisters = "never-registers", 5.0, 0..=0;
    /// A machine's Node carries somebody else's provider ID.
    WrongProviderId = "wrong-provider-id", 3.0, 0..=0;
    /// A second Node appears with the provider ID of another.
    RegistersTwice = "registers-twice", 2.0, 60..=1800;

    /// A node is not ready for a while.
    NodeNotReady = "node-not-ready", 10.0, 20..=1200;
    /// A kubelet is silent for a while.
    KubeletSilent = "kubelet-silent", 8.0, 60..=1200;
    /// All kubelets are silent for a while.
    Partition = "partition", 0.5, 30..=1200;
    /// A pod does not end when its grace period is over.
    PodStuck = "pod-stuck", 8.0, 60..=1800;
    /// A volume is not detached from its node for a while.
    AttachmentStuck = "attachment-stuck", 6.0, 120..=3600;
    /// A PodDisruptionBudget allows no eviction for a while.
    BudgetBlocks = "budget-blocks", 4.0, 300..=3600;

    /// joiner is killed, and started again after a while.
    JoinerKilled = "joiner-killed", 2.0, 1..=120;
    /// joiner is killed with a request in its hands.
    JoinerKilledMidCall = "joiner-killed-mid-call", 4.0, 1..=60;
    /// An actor panics.
    ActorPanics = "actor-panics", 8.0, 0..=0;
    /// joiner's clock jumps, forwards or backwards, and is right again after a while.
    ClockJumps = "clock-jumps", 3.0, 10..=1800;
    /// Somebody else holds the lease for a while.
    LeaseLost = "lease-lost", 3.0, 16..=180;

    /// A user deletes a NodeClaim.
    UserDeletesClaim = "user-deletes-nodeclaim", 8.0, 0..=0;
    /// A user deletes a NodeClaim that is being launched.
    UserDeletesNewClaim = "user-deletes-new-nodeclaim", 6.0, 0..=0;
    /// A user deletes a Node.
    UserDeletesNode = "user-deletes-node", 8.0, 0..=0;
    /// A user takes all finalizers off a NodeClaim that is being deleted; some leave one of their own there for a while.
    UserStripsFinalizers = "user-strips-finalizers", 2.0, 0..=600;
    /// A user puts nonsense of some kind into an annotation of a NodeClaim.
    UserEditsClaim = "user-edits-nodeclaim", 4.0, 0..=0;
    /// A user writes another machine's provider ID, one of no machine, or nonsense into a NodeClaim's status, or takes it out.
    UserEditsProviderId = "user-edits-provider-id", 3.0, 0..=0;
    /// A user takes conditions or the Node out of a NodeClaim's status, says that nothing in it is known, names a Node that is not there, or says that it
    /// is drained.
    UserEditsStatus = "user-edits-status", 3.0, 0..=0;
    /// A user takes labels and taints off a Node.
    UserEditsNode = "user-edits-node", 4.0, 0..=0;
    /// Somebody holds a NodeClaim with a finalizer of their own for a while.
    ForeignFinalizer = "foreign-finalizer", 3.0, 60..=1800;
    /// A user changes a NodePool's template.
    UserEditsPool = "user-edits-nodepool", 3.0, 0..=0;
    /// A user deletes a NodePool, and puts it back a while later.
    UserDeletesPool = "user-deletes-nodepool", 0.5, 10..=600;
    /// A user asks for a reboot of a node.
    UserRebootsNode = "user-reboots-node", 3.0, 0..=0;

    // Kinds that came later stand last: which kinds a history has is drawn in this order, and days that were played are to stay as they were.
    /// Somebody else takes the lease while a write of joiner's is under way: it takes effect, and is answered when joiner leads no more.
    LeaseLostMidWrite = "lease-lost-mid-write", 3.0, 16..=180;
    /// An order to take a machine down, or to restart it, has its effect and is not answered.
    OrderLostAfter = "order-lost-after", 8.0, 1..=130;
    /// A watch of what nodes and pods hang on (budgets, volumes and their attachments, classes, daemons) breaks, misses what happens, and starts over
    /// with a list.
    SideWatchDropped = "side-watch-dropped", 6.0, 1..=600;
    /// The same watch starts over with a list that lags behind, and stays silent for a while.
    SideWatchStale = "side-watch-stale", 3.0, 20..=600;
    /// An actor does not come back from a message, and its mailbox is not served.
    ActorStalls = "actor-stalls", 2.0, 5..=600;
    /// A write is not answered, and has its effect a while later, whatever has become of joiner by then.
    ApiLate = "api-late", 6.0, 1..=60;
    /// An order to take a machine down, or to restart it, is not answered, and has its effect a while later.
    OrderLate = "order-late", 4.0, 1..=60;
    /// The cloud forgets a machine that has ended: from then on it knows of none, and not that it has ended.
    MachineForgotten = "machine-forgotten", 12.0, 0..=0;
    /// A user deletes a NodeClaim, or takes the finalizers off one that is being deleted, and makes it anew under its name.
    UserRemakesClaim = "user-remakes-nodeclaim", 3.0, 0..=600;
    /// A user cordons a node for a while.
    UserCordonsNode = "user-cordons-node", 4.0, 60..=3600;
    /// A user deletes a pod by force: it is gone at once, from a node that goes above all.
    UserForcesPod = "user-forces-pod", 6.0, 0..=0;
    /// A user deletes a VolumeAttachment: it is gone at once, from a node that goes above all.
    UserDetachesVolume = "user-detaches-volume", 4.0, 0..=0;
    /// A user lets a PodDisruptionBudget allow none, one or all of its pods to go, and puts it right a while later.
    UserEditsBudget = "user-edits-budget", 3.0, 60..=3600;
    /// The code that reads the watches panics.
    WatchPanics = "watch-panics", 1.0, 0..=0;
    /// A user writes something else into a NodeClass, of which some cannot be read, or it is found not to be ready; it is put right a while later.
    UserEditsClass = "user-edits-nodeclass", 2.0, 60..=600;
}
