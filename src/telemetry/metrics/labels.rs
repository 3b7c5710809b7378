//! Values that labels may take.

use std::time::Duration;

use crate::core::facts::ConsolidationPolicy;

/// Declares an enum and the word for each of its variants.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// The label value.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    )*};
}

words! {
    /// Why a NodeClaim was created.
    CreatedFor {
        /// For pending pods, or for a static NodePool.
        Provisioned = "provisioned",
        /// To replace nodes that were more than their pods needed.
        Underutilized = "underutilized",
        /// To replace a node that no longer was what its NodePool asks for.
        Drifted = "drifted",
        /// To replace a node that was broken.
        Unhealthy = "unhealthy",
    }

    /// Why joiner removed a NodeClaim.
    DisruptedFor {
        /// No pods.
        Empty = "empty",
        /// Its pods fit elsewhere, or on something cheaper.
        Underutilized = "underutilized",
        /// It no longer was what its NodePool asks for.
        Drifted = "drifted",
        /// Too old.
        Expired = "expired",
        /// Broken.
        Unhealthy = "unhealthy",
        /// Its machine was gone.
        GarbageCollected = "garbage_collected",
        /// The cloud had no machine for it.
        InsufficientCapacity = "insufficient_capacity",
        /// Its NodeClass was not ready.
        NodeClassNotReady = "nodeclass_not_ready",
        /// No machine came in time.
        LaunchTimeout = "launch_timeout",
        /// No node came in time.
        RegistrationTimeout = "registration_timeout",
    }

    /// How a reboot ended.
    RebootResult {
        /// The node is back.
        Succeeded = "succeeded",
        /// The cloud did not take the order.
        ProviderError = "provider_error",
        /// The node did not come back in time.
        RecoveryTimeout = "recovery_timeout",
        /// What was asked for could not be understood.
        InvalidRequest = "invalid_request",
    }

    /// How much time its pods were given.
    TerminationMode {
        /// As much as they needed.
        Graceful = "graceful",
        /// A bounded time.
        Eventual = "eventual",
        /// None.
        Forceful = "forceful",
    }

    /// How a call to the cloud failed; Karpenter's names of errors.
    CloudFailure {
        /// None of the offerings could be had.
        InsufficientCapacity = "InsufficientCapacityError",
        /// The NodeClass cannot be used.
        NodeClassNotReady = "NodeClassNotReadyError",
        /// Anything else.
        Unknown = "unknown",
    }

    /// A call to the cloud, by the name of Karpenter's method.
    CloudCall {
        /// Launches a machine.
        Create = "Create",
        /// Ends a machine.
        Delete = "Delete",
        /// Looks a machine up.
        Get = "Get",
        /// Lists machines.
        List = "List",
        /// Lists instance types.
        GetInstanceTypes = "GetInstanceTypes",
        /// Compares a machine with its NodeClass.
        IsDrifted = "IsDrifted",
        /// Reboots a machine.
        Reboot = "Reboot",
    }

    /// What became of a nomination.
    NominationResult {
        /// Written to the pod.
        Written = "written",
        /// Taken back.
        Withdrawn = "withdrawn",
        /// The pod was bound to the nominated node.
        Kept = "kept",
        /// The pod was bound to another node.
        Missed = "missed",
        /// The API server refused it.
        Refused = "refused",
    }

    /// What the auditor found without its counterpart.
    OrphanKind {
        /// A machine without a NodeClaim.
        Machine = "machine",
        /// A NodeClaim without a machine.
        Claim = "nodeclaim",
        /// A Node without a NodeClaim.
        Node = "node",
        /// A second machine of one NodeClaim.
        Duplicate = "duplicate",
    }
}

impl TerminationMode {
    /// The mode that a NodeClaim's termination grace period makes.
    pub fn of(grace: Option<Duration>) -> Self {
        match grace {
            None => Self::Graceful,
            Some(grace) if grace.is_zero() => Self::Forceful,
            Some(_) => Self::Eventual,
        }
    }
}

/// The word for a consolidation policy in lower-case labels; empty when the disruption was no consolidation.
pub fn policy_word(policy: Option<ConsolidationPolicy>) -> &'static str {
    match policy {
        None => "",
        Some(ConsolidationPolicy::WhenEmpty) => "when_empty",
        Some(ConsolidationPolicy::WhenEmptyOrUnderutilized) => "when_empty_or_underutilized",
        Some(ConsolidationPolicy::Balanced) => "balanced",
    }
}
