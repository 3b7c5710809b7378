//! The tree as a whole: how it is put up, watched and taken down.

use std::sync::Arc;
use std::time::Duration;

use crate::clouds::{Cloud, Metered};
use crate::cluster::{Announcement, Cluster};
use crate::core::ids::ClaimName;
use crate::core::lifecycle::Repair;
use crate::core::repair::Policies;
use crate::telemetry::dedupe::Dedupe;
use crate::telemetry::events::Event;

use super::auditor::Auditor;
use super::batcher::Batcher;
use super::boards::Boards;
use super::catalog::Catalog;
use super::claims::Claims;
use super::classes::Classes;
use super::evictor::Evictor;
use super::leader::Leader;
use super::nominator::Nominator;
use super::pools::Pools;
use super::protocol::{
    AuditorMsg, BatcherMsg, CatalogMsg, ClaimsMsg, ClassesMsg, EvictorMsg, LeaderMsg, NominatorMsg, PoolsMsg,
    ProvisionerMsg, StateMsg, StaticsMsg,
};
use super::provisioner::Provisioner;
use super::runtime::{
    Clock, House, Observations, Operations, Outcome, Permits, Post, Promises, RootMsg, Saboteur, Slot, Supervisor,
};
use super::settings::{NodeRepair, Settings};
use super::state::State;
use super::statics::Statics;

/// What a joiner is made of.
pub struct Parts {
    /// The cluster that it serves.
    pub cluster: Arc<dyn Cluster>,
    /// The cloud that it buys from.
    pub cloud: Arc<dyn Cloud>,
    /// How it behaves.
    pub settings: Settings,
    /// Its clock.
    pub clock: Clock,
}

/// Addresses of the singletons.
#[derive(Debug)]
pub(super) struct Slots {
    pub leader: Slot<LeaderMsg>,
    pub state: Slot<StateMsg>,
    pub catalog: Slot<CatalogMsg>,
    pub claims: Slot<ClaimsMsg>,
    pub evictor: Slot<EvictorMsg>,
    pub nominator: Slot<NominatorMsg>,
    pub batcher: Slot<BatcherMsg>,
    pub provisioner: Slot<ProvisionerMsg>,
    pub pools: Slot<PoolsMsg>,
    pub statics: Slot<StaticsMsg>,
    pub auditor: Slot<AuditorMsg>,
    pub classes: Slot<ClassesMsg>,
}

/// What every actor is born with.
pub(super) struct Wiring {
    pub cluster: Arc<dyn Cluster>,
    pub cloud: Arc<dyn Cloud>,
    pub settings: Settings,
    pub boards: Boards,
    pub slots: Slots,
    /// Whether and how nodes are repaired; nothing when they are not.
    pub repair: Option<Repair>,
}

impl Wiring {
    /// Has the actors of these NodeClaims look.
    pub(super) fn stir(&self, claims: impl IntoIterator<Item = ClaimName>) {
        self.boards.stirred.send_modify(|stirred| stirred.extend(claims));
        self.slots.claims.cast(ClaimsMsg::Look);
    }

    /// For how long the cloud may say that there is no machine although there is one.
    pub(super) fn may_deny_for(&self) -> Duration {
        if self.settings.protections.disbelief { self.cloud.may_deny_for() } else { Duration::ZERO }
    }

    /// Writes an Event beside everything else. One that cannot be written is not
    /// tried again by itself; it counts as not said, so that whoever says it again is heard.
    pub(super) fn announce(&self, house: &House, said: &mut Dedupe, event: Event) {
        if !house.operations.may_announce() || !said.admit(&event, house.clock.now()) {
            return;
        }
        let forget = said.on_failure(&event);
        let Event { about: regarding, warning, reason, message, .. } = event;
        let announcement = Announcement { regarding, warning, reason, message };
        let cluster = Arc::clone(&self.cluster);
        let call = async move { cluster.announce(&announcement).await };
        house.operations.start(
            Permits::Announce,
            || true,
            call,
            move |outcome| {
                if !matches!(outcome, Outcome::Done(())) {
                    forget();
                }
            },
        );
    }
}

impl std::fmt::Debug for Wiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring").field("settings", &self.settings).field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// The cloud's policies, where nodes are to be repaired. Those of a cloud are a part of joiner, and no setting: each cloud's tests hold them to
/// [`Policies::new`]. Wrong ones repair nothing here, and that is said.
fn repair(cloud: &dyn Cloud, how: NodeRepair) -> Option<Repair> {
    if how == NodeRepair::Off {
        return None;
    }
    match Policies::new(cloud.repair_policies()) {
        Ok(policies) => Some(Repair { policies, legacy: how == NodeRepair::Legacy }),
        Err(problems) => {
            tracing::error!(cloud = cloud.name(), problems = problems.join("; "), "nodes are not repaired");
            None
        }
    }
}

/// A running joiner.
#[derive(Debug)]
pub struct Joiner {
    wiring: Arc<Wiring>,
    house: House,
    root: Slot<RootMsg>,
}

impl Joiner {
    /// Puts the tree up. Must be called inside a tokio runtime.
    pub fn start(parts: Parts) -> Self {
        let boards = Boards::new();
        let house = House {
            clock: if parts.settings.protections.clock { parts.clock.careful() } else { parts.clock },
            operations: Operations::new(boards.leader_until.subscribe()),
            observations: Observations::default(),
            promises: Promises::default(),
            saboteur: Saboteur::default(),
        };
        let slots = Slots {
            leader: Slot::empty(),
            state: Slot::empty(),
            catalog: Slot::empty(),
            claims: Slot::empty(),
            evictor: Slot::empty(),
            nominator: Slot::empty(),
            batcher: Slot::empty(),
            provisioner: Slot::empty(),
            pools: Slot::empty(),
            statics: Slot::empty(),
            auditor: Slot::empty(),
            classes: Slot::empty(),
        };
        let repair = repair(&*parts.cloud, parts.settings.repair);
        let wiring = Arc::new(Wiring {
            repair,
            cluster: parts.cluster,
            cloud: Arc::new(Metered::new(parts.cloud)),
            settings: parts.settings,
            boards,
            slots,
        });
        let (slots, args) = (&wiring.slots, || Arc::clone(&wiring));
        // The order of starting: whoever is nudged by another stands before it.
        let posts = vec![
            Post::new::<Leader>(&slots.leader, args()),
            Post::new::<Catalog>(&slots.catalog, args()),
            Post::new::<Claims>(&slots.claims, args()),
            Post::new::<Evictor>(&slots.evictor, args()),
            Post::new::<Nominator>(&slots.nominator, args()),
            Post::new::<Batcher>(&slots.batcher, args()),
            Post::new::<Provisioner>(&slots.provisioner, args()),
            Post::new::<Pools>(&slots.pools, args()),
            Post::new::<Statics>(&slots.statics, args()),
            Post::new::<Auditor>(&slots.auditor, args()),
            Post::new::<Classes>(&slots.classes, args()),
            Post::new::<State>(&slots.state, args()),
        ];
        let root = Supervisor::start(posts, wiring.settings.protections.supervision, &house);
        Self { wiring, house, root }
    }

    /// The latest values that actors publish.
    pub fn boards(&self) -> &Boards {
        &self.wiring.boards
    }

    /// Kinds of NodeClass that its cloud serves: group and kind.
    pub fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.wiring.cloud.class_kinds()
    }

    /// Clock, operations, observations, and the saboteur for tests.
    pub fn house(&self) -> &House {
        &self.house
    }

    /// Answers, for as long as it is asked, whether the tree stands: whoever restarts all others has nobody above.
    pub fn pulse(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let root = self.root.clone();
        move || root.is_alive()
    }

    /// Takes the tree down: no new write begins, those under way are waited for, the lease is given back. Says whether all writes had
    /// ended within `patience`.
    pub async fn stop(self, patience: Duration) -> bool {
        let ended = self.house.operations.close(patience).await;
        self.root.stop();
        if self.wiring.settings.leader_election {
            self.house.operations.lease_rests(Duration::from_secs(3)).await;
            let release = self.wiring.cluster.release_lease(&self.wiring.settings.identity);
            if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(5), release).await {
                tracing::warn!(%error, "lease not given back; a successor waits until it expires");
            }
        }
        ended
    }

    /// Takes the tree down at once, as if the process were killed: nothing is waited for, nothing is given back.
    pub fn kill(self) {
        self.house.operations.abandon();
        self.root.stop();
    }
}
