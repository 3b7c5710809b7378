//! How many volumes a node can hold, by driver. Each volume counts once, however many pods of the node use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::facts::{AttachLimits, tell_attach_limits};
use crate::core::ids::PodUid;
use crate::core::labels;

use super::classes::Class;
use super::existing::Host;
use super::masks::Mask;
use super::reason::Reason;
use super::volumes::{attached_by, key};
use super::world::World;

/// What makes a volume the same as another: the PersistentVolume's name, or that of the claim as long as it has none.
pub(super) type VolumeId = Arc<str>;

/// The volumes of a pod that drivers attach.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Load {
    /// By driver: how many volumes the pod has for itself, on whichever node.
    own: Vec<(Arc<str>, u32)>,
    /// Volumes, with their drivers, that a node may have already.
    shared: Vec<(Arc<str>, VolumeId)>,
}

impl Load {
    /// Adds a volume.
    pub(super) fn add(&mut self, driver: &Arc<str>, id: &VolumeId, alone: bool) {
        if !alone {
            self.shared.push((Arc::clone(driver), Arc::clone(id)));
            return;
        }
        match self.own.iter_mut().find(|(known, _)| known == driver) {
            Some((_, count)) => *count += 1,
            None => self.own.push((Arc::clone(driver), 1)),
        }
    }

    /// Equal loads look equal from here on.
    pub(super) fn finish(&mut self) {
        self.own.sort_unstable();
        self.shared.sort_unstable();
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.is_empty()
    }
}

/// The volumes of one node, there or planned.
#[derive(Clone, Default)]
pub(super) struct Held {
    counts: BTreeMap<Arc<str>, u32>,
    /// Volumes that another pod may bring again.
    ids: FxHashSet<VolumeId>,
    /// By driver; what is not here has no limit.
    limits: BTreeMap<Arc<str>, u32>,
}

impl Held {
    /// How many volumes of each driver that the load touches there would be.
    fn with(&self, load: &Load) -> BTreeMap<Arc<str>, u32> {
        let mut more: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (driver, count) in &load.own {
            *more.entry(Arc::clone(driver)).or_default() += count;
        }
        for (driver, _) in load.shared.iter().filter(|(_, id)| !self.ids.contains(id)) {
            *more.entry(Arc::clone(driver)).or_default() += 1;
        }
        for (driver, count) in &mut more {
            *count += self.counts.get(driver).copied().unwrap_or(0);
        }
        more
    }

    fn put(&mut self, load: &Load) {
        let counts = self.with(load);
        self.counts.extend(counts);
        self.ids.extend(load.shared.iter().map(|(_, id)| Arc::clone(id)));
    }
}

/// The volumes of all nodes, and what new nodes can hold. Empty as long as no pod of the question has volumes.
#[derive(Default)]
pub(super) struct Attached {
    /// By the number of the host or planned node.
    nodes: FxHashMap<u32, Held>,
    /// What new nodes can hold.
    fresh: AttachLimits,
}

impl Attached {
    /// What the nodes hold by now.
    pub(super) fn of(world: &World<'_>) -> Self {
        let counts = |class: &Class| class.needs.as_ref().is_some_and(|needs| !needs.load.is_empty());
        if !world.classes.iter().any(counts) {
            return Self::default();
        }
        let batch: FxHashSet<&PodUid> = world.pods.iter().map(|pod| &pod.uid).collect();
        let fresh = AttachLimits::shown(world.problem.snapshot);
        let hosts = world.hosts.iter().enumerate().filter(|(_, host)| host.usable);
        let held = |(at, host): (usize, &Arc<Host>)| (super::interner::number(at), held(world, host, &batch, &fresh));
        Self { nodes: hosts.map(held).collect(), fresh }
    }

    /// Whether a node that is there has room for the volumes of such a pod. Volumes only come in a run, so that no becomes yes never again.
    pub(super) fn host_takes(&self, host: u32, class: &Class) -> bool {
        let (Some(needs), Some(held)) = (&class.needs, self.nodes.get(&host)) else { return true };
        let fits = |(driver, count): (&Arc<str>, &u32)| held.limits.get(driver).is_none_or(|limit| count <= limit);
        held.limits.is_empty() || held.with(&needs.load).iter().all(fits)
    }

    /// What a node holds, to be put back when pods are taken away again.
    pub(super) fn of_host(&self, host: u32) -> Option<Held> {
        self.nodes.get(&host).cloned()
    }

    /// A node holds again what it held.
    pub(super) fn put_back(&mut self, host: u32, held: Option<Held>) {
        match held {
            Some(held) => self.nodes.insert(host, held),
            None => self.nodes.remove(&host),
        };
    }

    /// Notes a pod that was placed.
    pub(super) fn put(&mut self, host: u32, class: &Class) {
        if let Some(needs) = class.needs.as_ref().filter(|needs| !needs.load.is_empty()) {
            self.nodes.entry(host).or_default().put(&needs.load);
        }
    }
}

/// What a node holds, and what it can.
fn held(world: &World<'_>, host: &Host, batch: &FxHashSet<&PodUid>, fresh: &AttachLimits) -> Held {
    let snapshot = world.problem.snapshot;
    let mut held = Held { limits: limits(world, host, fresh), ..Held::default() };
    let Some(node) = &host.node else { return held };
    let mut take = |driver: &Arc<str>, id: VolumeId| {
        if held.ids.insert(id) {
            *held.counts.entry(Arc::clone(driver)).or_default() += 1;
        }
    };
    for pod in snapshot.pods_on(node).filter(|pod| !batch.contains(&pod.uid)) {
        for name in &pod.volume_claims {
            if let Some((driver, id)) = attached_by(snapshot, &key(pod, name)) {
                take(driver, id);
            }
        }
    }
    // kube-scheduler counts what is still attached too.
    for name in snapshot.attachments_of(node).filter_map(|one| one.volume.as_ref()) {
        if let Some(driver) = snapshot.volumes.get(name).and_then(|volume| volume.driver.as_ref()) {
            take(driver, Arc::clone(name));
        }
    }
    held
}

/// What the CSINode says; of drivers that it does not know yet, what others of its instance type show.
fn limits(world: &World<'_>, host: &Host, fresh: &AttachLimits) -> BTreeMap<Arc<str>, u32> {
    let snapshot = world.problem.snapshot;
    let node = host.node.as_ref();
    let claim = host.claim.as_ref().and_then(|name| snapshot.claims.get(name));
    let all = [node.and_then(|name| snapshot.nodes.get(name)).map(|n| &n.labels), claim.map(|c| &c.labels)];
    let kind = all.into_iter().flatten().find_map(|all| all.get(labels::INSTANCE_TYPE));
    let list = host.pool.as_ref().and_then(|pool| world.problem.catalog.pools.get(pool));
    let mut limits = kind.map_or_else(BTreeMap::new, |kind| {
        let listed = list.and_then(|list| list.iter().find(|fact| fact.name.as_str() == &**kind));
        fresh.all(kind, listed.map(|fact| &**fact))
    });
    if let Some(csi) = node.and_then(|name| snapshot.csi_nodes.get(name)) {
        tell_attach_limits(&mut limits, &csi.limits);
    }
    limits
}

impl World<'_> {
    /// The types of `mask` that could also attach the volumes of such a pod, beside those of the planned node with this number.
    pub(super) fn attaching(&self, pool: usize, mut mask: Mask, host: u32, class: &Class) -> Mask {
        let Some(needs) = class.needs.as_ref().filter(|needs| !needs.load.is_empty()) else { return mask };
        let counts =
            self.attached.nodes.get(&host).map_or_else(|| Held::default().with(&needs.load), |h| h.with(&needs.load));
        let shelf = &self.algebra.shelves[self.pools[pool].shelf];
        let types: Vec<usize> = mask.bits().collect();
        for at in types {
            let limit = |driver: &str| self.attached.fresh.of(&shelf.types[at].fact, driver);
            if counts.iter().any(|(driver, count)| limit(driver).is_some_and(|limit| *count > limit)) {
                mask.clear(at);
            }
        }
        mask
    }

    /// Why no type of `mask` could attach the volumes of such a pod alone, if that is so.
    pub(super) fn explain_attaching(&self, pool: usize, mask: &Mask, class: &Class) -> Option<Reason> {
        let needs = class.needs.as_ref()?;
        if !self.attaching(pool, mask.clone(), u32::MAX, class).is_empty() {
            return None;
        }
        let site = &self.pools[pool];
        let shelf = &self.algebra.shelves[site.shelf];
        let limit = |at: usize, driver: &str| self.attached.fresh.of(&shelf.types[at].fact, driver);
        let most = |driver: &str| mask.bits().filter_map(|at| limit(at, driver)).max();
        let wanted = Held::default().with(&needs.load);
        let short = wanted.into_iter().find_map(|(driver, wanted)| {
            let most = most(&driver)?;
            (wanted > most).then_some((driver, wanted, most))
        });
        let (driver, wanted, most) = short.unwrap_or_else(|| ("several drivers".into(), 0, 0));
        Some(Reason::AttachLimit { pool: site.fact.name.clone(), driver, wanted, most })
    }
}
