//! The promises, by name, and what it looks like when a running joiner sees one broken.

/// How the message of a panic on purpose begins, in tests and in the simulator. All others are defects.
pub const SABOTAGE: &str = "sabotage of";

/// Declares the invariants with the word that names each.
macro_rules! invariants {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal;)*) => {
        /// Something that must hold in every history.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Invariant {
            $($(#[doc = $doc])* $name,)*
        }

        impl Invariant {
            /// Every invariant.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in summaries.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

invariants! {
    /// No NodeClaim ever has two machines.
    OneMachine = "one-machine-per-nodeclaim";
    /// No machine runs without a NodeClaim for longer than the auditor needs.
    NoOrphan = "no-machine-without-nodeclaim";
    /// No machine is ordered down that is not known to be joiner's, or that a NodeClaim claims which nobody has deleted.
    NoClaimedMachineDeleted = "no-claimed-machine-deleted";
    /// joiner deletes no NodeClaim whose machine serves, unless a deadline, its Node's deletion, a scale-down, a reboot that failed or a repair calls for it.
    NoServingClaimDeleted = "no-serving-nodeclaim-deleted";
    /// joiner deletes no Node but that of a NodeClaim which somebody has deleted, and none without its finalizer before its machine is gone.
    NoServingNodeDeleted = "no-serving-node-deleted";
    /// joiner asks no pod to leave, and closes no Node, whose NodeClaim nobody has deleted, but for the deletion of the Node, a reboot, or a machine that is too many.
    NoServingNodeDrained = "no-serving-node-drained";
    /// No pod is taken past a PodDisruptionBudget or its do-not-disrupt before a deadline allows it, and then it has what is left of its own time to end.
    BudgetsHold = "no-eviction-past-budget";
    /// No machine is ordered down while pods that have to leave it run there, before a deadline allows it.
    PodsFirst = "pods-leave-before-machine-goes";
    /// No machine is ordered down whose drained node has volumes attached, before a deadline allows it.
    VolumesFirst = "volumes-detach-before-machine-goes";
    /// A NodeClaim's finalizer stays until its machine is gone.
    FinalizerLast = "finalizer-outlives-machine";
    /// So does its Node's.
    NodeFinalizerLast = "node-finalizer-outlives-machine";
    /// joiner begins no change while another has held the lease for longer than it may trust in its own.
    OnlyLeaderWrites = "only-the-leader-writes";
    /// Whatever waits says what for.
    WaitsHaveReasons = "every-wait-has-a-reason";
    /// While nothing goes wrong nobody is asked to decide anything.
    NobodyIsAsked = "nobody-is-asked-without-cause";
    /// Every pod that can run does within a bound once faults stop.
    PodsRun = "pods-run-once-faults-stop";
    /// Every NodeClaim has one ready Node and one machine within a bound once faults stop.
    Settles = "nodeclaims-settle-once-faults-stop";
    /// When everything is deleted, nothing is left.
    NothingLeft = "nothing-left-when-emptied";
    /// joiner's memory returns to its level when the cluster is empty.
    MemoryReturns = "memory-returns-to-its-level";
    /// No code of joiner's panics, unless it is made to. What is started anew after a panic looks healthy and is not.
    NoPanic = "no-panic";
    /// A seed can be played, and what is broken in it is broken each time: the simulator's own promise.
    OneHistory = "one-seed-one-history";
}

impl Invariant {
    /// Those that a running joiner can watch by itself. For the others it would have to know the truth of the world, or what is still to come: the
    /// simulator does.
    pub const WATCHED: [Self; 8] = [
        Self::OneMachine,
        Self::NoOrphan,
        Self::NoClaimedMachineDeleted,
        Self::NoServingNodeDeleted,
        Self::BudgetsHold,
        Self::FinalizerLast,
        Self::NodeFinalizerLast,
        Self::WaitsHaveReasons,
    ];
}

/// A promise that joiner itself has seen to be broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Which one.
    pub promise: Invariant,
    /// The object concerned, by kind and name.
    pub object: String,
    /// One sentence.
    pub what: String,
}
