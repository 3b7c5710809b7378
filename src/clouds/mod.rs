//! Where machines come from: the trait [`Cloud`], and one room per cloud behind it.
//!
//! A cloud is slow, throttled and eventually consistent, and it loses answers. So every call ends in one of three ways (done, refused for
//! certain, unknown), creating takes a token that makes repeats safe, and a listing says how far it can be trusted. Clouds never name
//! each other, and never spawn tasks that outlive their calls.

pub mod simulated;

pub mod catalog;
mod error;
pub mod kwok;
mod metered;
pub mod outscale;

use std::time::Duration;

use futures::future::BoxFuture;

use crate::core::facts::{Claim, Machine, NodeClass, Pool};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::core::lifecycle::{DRIFT_EVERY, LAUNCH_TIMEOUT};

pub use error::{Error, LaunchRefused, SoldOut};
pub use metered::Metered;
pub use spec::{Assortment, Deletion, Judgement, LaunchSpec, Listing, Notice, Resolution, Shown, Whereabouts};

pub use crate::core::lifecycle::Hooks;
pub use crate::core::repair::{RepairAction, RepairPolicy};

mod spec;

/// A cloud, chosen at start. Object-safe; every future may be dropped at any await without leaving more than an unknown outcome behind.
pub trait Cloud: Send + Sync + 'static {
    /// Name for metrics and messages: `kwok`, `simulated`, `aws`.
    fn name(&self) -> &'static str;

    /// Group and kind of the NodeClasses that this cloud understands, the default first.
    fn class_kinds(&self) -> Vec<(&'static str, &'static str)>;

    /// Label keys that users may require although their domain is restricted (KWOK: `karpenter.kwok.sh/instance-size`, ...).
    fn label_keys(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The conditions on which `Ready` of this cloud's NodeClasses depends. Empty where nobody needs to work anything out: then a NodeClass is as
    /// its status says, and [`Cloud::resolve`] is never asked.
    fn class_conditions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Works out what a NodeClass comes to in this cloud: what its selectors find, and what is wrong with it.
    fn resolve<'a>(&'a self, _class: &'a NodeClass) -> BoxFuture<'a, Result<Resolution, Error>> {
        Box::pin(async { Ok(Resolution::default()) })
    }

    /// Why no machine can be made for a NodePool with this NodeClass, whatever pods ask for: field, fault and remedy in a sentence. Such a NodePool is
    /// not planned with. Costs no call.
    fn misfit(&self, _class: &NodeClass, _pool: &Pool) -> Option<String> {
        None
    }

    /// All instance types of a NodeClass. As long as nothing has changed, the
    /// answer is the same shared list, so that asking often costs nothing.
    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>>;

    /// Learns from a registered Node what machines of its type and image really have: of memory, a hypervisor and a kernel keep a part that nobody
    /// announces; and how its machine's Node is called. Says whether [`Cloud::catalog`] now answers otherwise. Costs no call.
    fn learn(&self, _shown: &Shown<'_>) -> bool {
        false
    }

    /// Launches the machine of a NodeClaim. Idempotent by [`LaunchSpec::token`]: asked twice, it answers with the same machine.
    ///
    /// [`Error::Unknown`] means that a machine may or may not exist: look with [`Cloud::find`] before doing anything else.
    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>>;

    /// How long a launch may take before its NodeClaim is given up, and another is planned in its place.
    fn launch_timeout(&self) -> Duration {
        LAUNCH_TIMEOUT
    }

    /// Whether [`Cloud::hooks`] has anything to say.
    fn has_hooks(&self) -> bool {
        false
    }

    /// What this cloud has still to do or to learn for the machine of a NodeClaim before pods may come to its Node, which is there (Karpenter's
    /// registration hooks). Asked again until nothing is pending; all that there is to do is done side by side.
    fn hooks<'a>(&'a self, _claim: &'a Claim) -> BoxFuture<'a, Result<Hooks, Error>> {
        Box::pin(async { Ok(Hooks::default()) })
    }

    /// The machine with this identity. That the cloud shows none can be wrong for a while (see [`Cloud::may_deny_for`]); that it shows one that has
    /// ended cannot.
    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>>;

    /// The machines that were launched with this token: none, one, or (a fault that the caller must mend) several.
    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>>;

    /// Every machine that wears this cluster's mark, with a statement of how far the list can be trusted.
    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>>;

    /// Begins to take a machine down, or says that it is gone, or that there is none. Repeating it is harmless. The ID comes from a NodeClaim, where anybody
    /// may have written it: where machines carry marks, one without this cluster's is refused with [`Error::Invalid`] and left alone.
    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>>;

    /// For how long at a stretch this cloud may say of a machine that runs that there is none: reads that lag behind a launch or lose a machine
    /// for a while, orders that are answered with "no such machine". That a machine is not there is believed only when [`Cloud::get`] and
    /// [`Cloud::find`] have both said so again and again for that long; [`Deletion::Gone`] alone is believed at once. Nothing where the cloud
    /// shows at once what is.
    fn may_deny_for(&self) -> Duration {
        Duration::from_mins(1)
    }

    /// Restarts a machine in place; `operation` makes repeats safe where the cloud can. Refused with [`Error::Unsupported`] where it cannot.
    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Why the machine of a NodeClaim no longer matches its NodeClass, in one word, or nothing when it does.
    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>>;

    /// How often [`Cloud::drift`] is to be asked again about a machine although neither its NodeClaim nor its NodeClass has changed; nothing
    /// where the answer depends on these two alone.
    fn drift_every(&self) -> Option<Duration> {
        Some(DRIFT_EVERY)
    }

    /// Which node conditions mean that a machine is broken, and what to do then. Static: asked once.
    fn repair_policies(&self) -> Vec<RepairPolicy>;
}
