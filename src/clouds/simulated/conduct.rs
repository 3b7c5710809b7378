//! How the simulated cloud behaves: every liberty it takes is a field here.

use std::sync::Arc;
use std::time::Duration;

use crate::core::facts::{InstanceType, Offering};
use crate::core::labels::Labels;
use crate::core::lifecycle::LAUNCH_TIMEOUT;

/// How the cloud behaves. Pairs are lower and upper bounds between which chance decides; shares are between 0 and 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Conduct {
    /// From asking for a machine to the cloud's answer.
    pub launch: (Duration, Duration),
    /// From the launch to the first word of the machine's kubelet.
    pub boot: (Duration, Duration),
    /// From the order to restart a machine until its kubelet reports again; as long as a boot when nothing is said.
    pub reboot: Option<(Duration, Duration)>,
    /// Of any other call.
    pub call: (Duration, Duration),
    /// From the order to take a machine down until it is gone.
    pub shutdown: (Duration, Duration),
    /// Machines younger than this may be missing from a listing.
    pub settles_within: Duration,
    /// How long a launch may take before its NodeClaim is given up.
    pub launch_timeout: Duration,
    /// What it does for a machine before its Node may open.
    pub hooks: Vec<Hook>,
    /// For how long it may say of a machine that runs that there is none. It does so only where the script says so.
    pub may_deny_for: Duration,
    /// When which offerings are sold out. The catalogue does not know: a launch finds out.
    pub sold_out: Vec<SoldOutWindow>,
    /// How many machines the account may have.
    pub quota: Option<usize>,
    /// Share of the machines whose kubelet never reports.
    pub never_register: f64,
    /// Share of the launches whose answer is lost after the machine was made.
    pub lost_answers: f64,
    /// Share of the listings that break off after some pages.
    pub broken_listings: f64,
    /// Machines, and so their Nodes, are named after their NodeClaims: for stories that people read.
    pub named_after_claims: bool,
}

impl Default for Conduct {
    /// An honest cloud of ordinary speed: a launch takes about a second, a boot about half a minute.
    fn default() -> Self {
        let millis = |low, high| (Duration::from_millis(low), Duration::from_millis(high));
        Self {
            launch: millis(500, 1_500),
            boot: millis(20_000, 40_000),
            reboot: None,
            call: millis(20, 60),
            shutdown: millis(5_000, 15_000),
            settles_within: Duration::from_secs(5),
            launch_timeout: LAUNCH_TIMEOUT,
            hooks: Vec::new(),
            may_deny_for: Duration::ZERO,
            sold_out: Vec::new(),
            quota: None,
            never_register: 0.0,
            lost_answers: 0.0,
            broken_listings: 0.0,
            named_after_claims: false,
        }
    }
}

/// Something that is done for every machine before its Node may open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hook {
    /// Its name.
    pub name: Arc<str>,
    /// How long after the launch it is done.
    pub takes: Duration,
    /// Labels that are known then.
    pub labels: Labels,
}

/// A time in which some offerings cannot be had. What is not named is not asked for: a window without a zone holds in all zones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SoldOutWindow {
    /// Only this instance type.
    pub instance_type: Option<Arc<str>>,
    /// Only this zone.
    pub zone: Option<Arc<str>>,
    /// Only this capacity type.
    pub capacity_type: Option<Arc<str>>,
    /// When it begins, counted from the cloud's start.
    pub from: Duration,
    /// When it ends; nothing means never.
    pub until: Option<Duration>,
}

impl SoldOutWindow {
    /// Whether an offering is sold out by this window, so long after the cloud's start.
    pub fn covers(&self, instance_type: &InstanceType, offering: &Offering, elapsed: Duration) -> bool {
        let open =
            |wanted: Option<&Arc<str>>, there: Option<&str>| wanted.is_none_or(|wanted| there == Some(&**wanted));
        self.from <= elapsed
            && self.until.is_none_or(|until| elapsed < until)
            && open(self.instance_type.as_ref(), Some(instance_type.name.as_str()))
            && open(self.zone.as_ref(), offering.zone().map(|zone| &**zone))
            && open(self.capacity_type.as_ref(), offering.capacity_type().map(|kind| &**kind))
    }
}
