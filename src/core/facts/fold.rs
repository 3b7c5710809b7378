//! Folding: how one fact after another makes the next snapshot, and what of it is news to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};

use super::fold_daemons::Daemons;
use super::{Claim, Fact, Kind, Node, Owner, Pod, PodShape, ScalableKind, Snapshot};

/// What has changed since the last look, by whom it concerns.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent bits of news, not a state machine")]
pub struct News {
    /// NodeClaims of which something changed: themselves, their Nodes, what they were made from, pods that came or went there, or (while they
    /// are being deleted) any pod there.
    pub claims: BTreeSet<ClaimName>,
    /// NodePools changed.
    pub pools: bool,
    /// NodeClasses changed.
    pub classes: bool,
    /// NodeClaims or Nodes changed: what pools use.
    pub usage: bool,
    /// There are pods that need a place and are not planned for one, or that will need one because their node has begun to go.
    pub pending: bool,
    /// Pods came that need a place, or may turn out to.
    pub arrivals: bool,
    /// Something changed that could make room for a pod that was refused.
    pub supply: bool,
    /// NodeOverlays changed.
    pub overlays: bool,
    /// CapacityBuffers changed, or what they are made from.
    pub buffers: bool,
    /// Pods that were bound.
    pub landed: Landed,
}

/// How many pods were bound, by where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// To the node that was planned for them, or for a pod that equals them.
    pub planned: usize,
    /// To the node that was planned for a pod of another kind that requests the same.
    pub exchanged: usize,
    /// To room that was planned for nobody of their size.
    pub elsewhere: usize,
}

/// The identity of anything that is watched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    Pod(PodUid),
    Node(NodeName),
    Claim(ClaimName),
    Pool(PoolName),
    Class(ClassRef),
    Daemon(ObjectKey),
    Namespace(Arc<str>),
    VolumeClaim(ObjectKey),
    Volume(Arc<str>),
    StorageClass(Arc<str>),
    CsiNode(NodeName),
    Attachment(Arc<str>),
    Group(Arc<str>),
    Overlay(Arc<str>),
    Buffer(ObjectKey),
    Template(ObjectKey),
    Scalable((ScalableKind, ObjectKey)),
    PodBudget(ObjectKey),
}

/// Makes snapshots out of facts.
#[derive(Debug, Default)]
pub struct Fold {
    pub(super) snapshot: Snapshot,
    claim_of: BTreeMap<ProviderId, ClaimName>,
    /// Provider IDs that were named by more than one NodeClaim: somebody has edited one of them.
    disputed: BTreeSet<ProviderId>,
    /// While a kind is being listed again: what was known of it and has not been seen since.
    unseen: BTreeMap<Kind, BTreeSet<Key>>,
    /// What DaemonSets say their pods are, and what they are.
    pub(super) daemons: Daemons,
    /// When the facts arrive that are folded next; nothing when nobody has said.
    now: Option<Timestamp>,
    pub(super) news: News,
}

impl Fold {
    /// Knows nothing yet but what no list brings back of an earlier snapshot: plans, when pods came and went, and which NodeClaims have gone.
    pub fn with_plans_of(earlier: &Snapshot) -> Self {
        let snapshot = Snapshot {
            epoch: earlier.epoch,
            planned: earlier.planned.clone(),
            planned_for: earlier.planned_for.clone(),
            replanned: earlier.replanned,
            pod_events: earlier.pod_events.clone(),
            departed: earlier.departed.clone(),
            ..Snapshot::default()
        };
        Self { snapshot, ..Self::default() }
    }

    /// The snapshot as it is now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Kinds of which nothing complete has been heard.
    pub fn not_listed(&self) -> Vec<&'static str> {
        let known = |kind: &Kind| self.snapshot.listed.contains(kind) || self.snapshot.withheld.contains(kind);
        Kind::ALL.into_iter().filter(|kind| !known(kind)).map(Kind::as_str).collect()
    }

    /// What has changed since this was last asked. Some of what takes a search is found out only now, so the snapshot is looked at afterwards.
    pub fn take_news(&mut self) -> News {
        self.look_for_daemon_pods();
        std::mem::take(&mut self.news)
    }

    /// Facts that are folded from now on arrive at this time.
    pub fn at(&mut self, now: Timestamp) {
        self.now = Some(now);
    }

    /// Takes in a fact.
    pub fn fold(&mut self, fact: Fact) {
        self.snapshot.epoch += 1;
        match fact {
            Fact::PodSeen(pod) => self.pod_seen(&pod),
            Fact::NodeSeen(node) => self.node_seen(&node),
            Fact::ClaimSeen(claim) => self.claim_seen(claim),
            Fact::PoolSeen(pool) => {
                self.seen(Kind::NodePool, &Key::Pool(pool.name.clone()));
                // Our own status writes come back here: they change nothing that a plan depends on.
                let supply = self.snapshot.pools.get(&pool.name).is_none_or(|old| {
                    old.generation != pool.generation
                        || old.is_ready() != pool.is_ready()
                        || old.deleting != pool.deleting
                });
                // A pool that can now be used is as good as a new pod: who waits for one should not wait for the next round.
                self.news.pending |= supply && pool.is_ready() && !self.snapshot.pending.is_empty();
                self.news.supply |= supply;
                self.news.pools = true;
                let known = self.snapshot.pools.get(&pool.name);
                if known.is_none_or(|old| old.generation != pool.generation || old.annotations != pool.annotations) {
                    self.claims_changed(|claim| claim.pool().as_ref() == Some(&pool.name));
                }
                self.snapshot.pools.insert(pool.name.clone(), pool);
            }
            Fact::ClassSeen(class) => {
                self.seen(Kind::NodeClass, &Key::Class(class.reference.clone()));
                self.news.classes = true;
                self.news.supply = true;
                let known = self.snapshot.classes.get(&class.reference);
                if known.is_none_or(|old| old.generation != class.generation || old.conditions != class.conditions) {
                    self.claims_changed(|claim| claim.class == class.reference);
                }
                self.snapshot.classes.insert(class.reference.clone(), class);
            }
            Fact::DaemonSeen(daemon) => {
                self.seen(Kind::DaemonSet, &Key::Daemon(daemon.key.clone()));
                self.daemon_seen(daemon);
            }
            Fact::NamespaceSeen(name, labels) => {
                self.seen(Kind::Namespace, &Key::Namespace(Arc::clone(&name)));
                self.snapshot.namespaces.insert(name, labels);
            }
            Fact::GroupSeen(group) => self.group_seen(&group),
            Fact::GroupGone(path) => self.gone(&Key::Group(path)),
            Fact::PodGone(uid) => self.gone(&Key::Pod(uid)),
            Fact::NodeGone(name) => self.gone(&Key::Node(name)),
            Fact::ClaimGone(name, uid) => self.claim_gone(name, &uid),
            Fact::PoolGone(name) => self.gone(&Key::Pool(name)),
            Fact::ClassGone(reference) => self.gone(&Key::Class(reference)),
            Fact::DaemonGone(key) => self.gone(&Key::Daemon(key)),
            Fact::NamespaceGone(name) => self.gone(&Key::Namespace(name)),
            Fact::Withheld(kind) => {
                if self.snapshot.withheld.insert(kind).is_none() && self.snapshot.is_complete() {
                    self.everything_is_news();
                }
            }
            Fact::Relisting(kind) => {
                let known = self.keys(kind);
                self.unseen.insert(kind, known);
            }
            Fact::Relisted(kind) => {
                for key in self.unseen.remove(&kind).unwrap_or_default() {
                    self.gone(&key);
                }
                if kind == Kind::Node {
                    self.forget_events_elsewhere();
                }
                let given_back = self.snapshot.withheld.remove(&kind).is_some();
                if self.snapshot.listed.insert(kind).is_none() || given_back {
                    self.everything_is_news();
                }
            }
            about_features => self.fold_features(about_features),
        }
    }

    /// These pods are now planned for a NodeClaim, and for no other.
    pub fn planned(&mut self, claim: &ClaimName, pods: Vec<PodUid>) {
        self.snapshot.epoch += 1;
        self.snapshot.replanned = self.snapshot.epoch;
        self.plan(claim, pods);
    }

    fn plan(&mut self, claim: &ClaimName, pods: Vec<PodUid>) {
        for uid in pods {
            if self.snapshot.arrival(&uid).is_some() {
                self.unplan(&uid);
                self.snapshot.planned_for.entry(claim.clone()).or_default().insert(uid.clone());
                self.snapshot.planned.insert(uid, claim.clone());
            }
        }
        self.news.claims.insert(claim.clone());
    }

    /// Nothing is planned for this NodeClaim any more: its pods need another place.
    pub fn unplanned(&mut self, claim: &ClaimName) {
        self.snapshot.epoch += 1;
        self.snapshot.replanned = self.snapshot.epoch;
        for uid in self.snapshot.planned_for.remove(claim).unwrap_or_default() {
            self.snapshot.planned.remove(&uid);
            self.news.pending |= self.snapshot.pending.contains_key(&uid);
        }
    }

    /// The API server knows no such NodeClaim. That is not for good: one that has just started may not know the kind yet.
    pub fn no_claim(&mut self, name: &ClaimName, uid: &ClaimUid) {
        if self.snapshot.claims.get(name).is_some_and(|claim| claim.uid == *uid) {
            self.snapshot.epoch += 1;
            self.gone(&Key::Claim(name.clone()));
        }
    }

    /// The API server says that there is no such Node, which an answer that came late may have brought back.
    pub fn no_node(&mut self, name: &NodeName, uid: &NodeUid) {
        if self.snapshot.nodes.get(name).is_some_and(|node| node.uid == *uid) {
            self.snapshot.epoch += 1;
            self.gone(&Key::Node(name.clone()));
        }
    }

    /// After the first list everybody has to look at everything.
    fn everything_is_news(&mut self) {
        self.news.claims.extend(self.snapshot.claims.keys().cloned());
        self.news.pools = true;
        self.news.classes = true;
        self.news.usage = true;
        self.news.supply = true;
        self.news.overlays = true;
        self.news.buffers |= !self.snapshot.buffers.is_empty();
        self.news.pending |= self.somebody_waits();
    }

    /// What these NodeClaims are made from has changed.
    fn claims_changed(&mut self, concerns: impl Fn(&Claim) -> bool) {
        let claims = self.snapshot.claims.values().filter(|claim| concerns(claim));
        self.news.claims.extend(claims.map(|claim| claim.name.clone()));
    }

    /// Whether a pod needs a place and is not planned for one.
    pub(super) fn somebody_waits(&self) -> bool {
        self.snapshot.pending.keys().any(|uid| !self.snapshot.planned.contains_key(uid))
    }

    fn pod_seen(&mut self, pod: &Arc<Pod>) {
        self.seen(Kind::Pod, &Key::Pod(pod.uid.clone()));
        let old = self.snapshot.pods.insert(pod.uid.clone(), Arc::clone(pod));
        self.daemon_pod_seen(pod);
        let home = |pod: &Pod| if pod.is_active_on_node() { pod.node.clone() } else { None };
        let (before, now) = (old.as_deref().and_then(home), home(pod));
        self.pod_event(old.as_deref(), pod);
        if before != now {
            if let Some(node) = before {
                self.unbind(&node, &pod.uid);
            }
            if let Some(node) = &now {
                // As it was: with the binding the API server writes the node's zone and region into the pod's labels.
                self.land(old.as_deref().unwrap_or(pod), node);
                self.snapshot.bound.entry(node.clone()).or_default().insert(pod.uid.clone());
                // It may have taken room that is to be kept free.
                self.news.supply |= !self.snapshot.buffers.is_empty();
            }
        }
        if let Some(node) = now {
            self.pods_of_node_changed(&node);
        }
        if pod.is_provisionable() {
            let denominated = old.as_ref().is_some_and(|old| old.nominated.is_some()) && pod.nominated.is_none();
            if denominated {
                *self.snapshot.denominated.entry(pod.uid.clone()).or_insert(0) += 1;
            }
            if !pod.unjudged && (denominated || !self.snapshot.weighed.contains_key(&pod.uid)) {
                self.snapshot.weighed.insert(pod.uid.clone(), self.snapshot.epoch);
            }
            let came = self.came(&pod.uid);
            self.snapshot.undecided.remove(&pod.uid);
            self.snapshot.pending.insert(pod.uid.clone(), came);
            self.news.pending |= !self.snapshot.planned.contains_key(&pod.uid);
        } else if pod.is_undecided() {
            let came = self.came(&pod.uid);
            self.snapshot.pending.remove(&pod.uid);
            self.snapshot.undecided.insert(pod.uid.clone(), came);
        } else {
            self.forget(&pod.uid);
        }
    }

    /// A pod waits no longer for a place.
    fn forget(&mut self, uid: &PodUid) {
        self.snapshot.undecided.remove(uid);
        self.snapshot.pending.remove(uid);
        self.snapshot.denominated.remove(uid);
        self.snapshot.weighed.remove(uid);
        self.unplan(uid);
    }

    /// When a waiting pod came: now, if it was not there.
    fn came(&mut self, uid: &PodUid) -> u64 {
        self.snapshot.arrival(uid).unwrap_or_else(|| {
            self.news.arrivals = true;
            self.snapshot.epoch
        })
    }

    /// Keeps when pods came to a node, ended there or began to end there. A pod that was there before joiner looked came when it was bound:
    /// a restart makes no node look busy.
    fn pod_event(&mut self, old: Option<&Pod>, pod: &Pod) {
        let (Some(node), Some(now)) = (&pod.node, self.now) else { return };
        let is_left_over = self.snapshot.listed.contains(&Kind::Node) && !self.snapshot.nodes.contains_key(node);
        if is_left_over || pod.shape.owner == Owner::DaemonSet {
            return;
        }
        let at = match old {
            Some(old) if old.node != pod.node || old.is_terminal() != pod.is_terminal() => now,
            Some(old) if old.deleting.is_none() && pod.deleting.is_some() => now,
            Some(_) => return,
            None if self.snapshot.listed.contains(&Kind::Pod) => pod.scheduled.unwrap_or(now),
            None => match pod.scheduled {
                Some(scheduled) => scheduled,
                None => return,
            },
        };
        // Whole seconds, as the status of NodeClaims has them.
        let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
        if self.snapshot.pod_events.get(node).is_none_or(|known| *known < at) {
            self.snapshot.pod_events.insert(node.clone(), at);
            self.news.claims.extend(self.claim_on(node).cloned());
        }
    }

    /// Forgets when pods came and went on nodes that are not there: they went while nobody looked.
    fn forget_events_elsewhere(&mut self) {
        let Snapshot { pod_events, nodes, .. } = &mut self.snapshot;
        let elsewhere: Vec<_> = pod_events.keys().filter(|node| !nodes.contains_key(*node)).cloned().collect();
        for node in elsewhere {
            pod_events.remove(&node);
        }
    }

    fn claim_on(&self, node: &NodeName) -> Option<&ClaimName> {
        self.claim_of.get(self.snapshot.nodes.get(node)?.provider_id.as_ref()?)
    }

    /// A planned pod has been bound. Where it took the place that was planned for a pod that equals it, or at least requests the same, the two
    /// change places in the plan: such pods are interchangeable, and kube-scheduler takes them in an order of its own.
    fn land(&mut self, pod: &Pod, node: &NodeName) {
        let Some(planned) = self.snapshot.planned.get(&pod.uid).cloned() else { return };
        let claim =
            self.snapshot.nodes.get(node).and_then(|node| self.claim_of.get(node.provider_id.as_ref()?)).cloned();
        if claim.as_ref() == Some(&planned) {
            self.news.landed.planned += 1;
            return;
        }
        let there = claim.and_then(|claim| self.snapshot.planned_for.get(&claim));
        let find = |is_like: fn(&PodShape, &PodShape) -> bool| {
            let is_like =
                |uid: &&PodUid| self.snapshot.pods.get(*uid).is_some_and(|other| is_like(&other.shape, &pod.shape));
            there.and_then(|pods| pods.iter().find(is_like)).cloned()
        };
        let equal = find(|other, shape| other == shape);
        let alike = if equal.is_none() { find(|other, shape| other.requests == shape.requests) } else { None };
        match (&equal, &alike) {
            (Some(_), _) => self.news.landed.planned += 1,
            (None, Some(_)) => self.news.landed.exchanged += 1,
            (None, None) => self.news.landed.elsewhere += 1,
        }
        if alike.is_some() {
            self.snapshot.replanned = self.snapshot.epoch;
        }
        if let Some(other) = equal.or(alike) {
            self.plan(&planned, vec![other]);
        }
    }

    fn node_seen(&mut self, node: &Arc<Node>) {
        self.seen(Kind::Node, &Key::Node(node.name.clone()));
        let old = self.snapshot.nodes.insert(node.name.clone(), Arc::clone(node));
        if let Some(id) =
            old.as_ref().and_then(|old| old.provider_id.clone()).filter(|id| node.provider_id.as_ref() != Some(id))
        {
            self.unlink(&id, &node.name);
        }
        if let Some(id) = &node.provider_id {
            self.snapshot.nodes_of.entry(id.clone()).or_default().insert(node.name.clone());
        }
        for owner in old.iter().flat_map(|old| &old.owner_claims).filter(|owner| !node.owner_claims.contains(owner)) {
            self.disown(&owner.name, &node.name);
        }
        for owner in &node.owner_claims {
            let owned = self.snapshot.owned.entry(owner.name.clone()).or_default();
            owned.insert(node.name.clone());
        }
        let concerned: Vec<ClaimName> = self.standing_for(node).cloned().collect();
        self.news.claims.extend(concerned);
        if node.deleting.is_some() && old.is_none_or(|old| old.deleting.is_none()) {
            self.begins_to_go(&node.name);
        }
        self.news.usage = true;
        self.news.supply = true;
    }

    /// The pods of a node that goes will need another place.
    fn begins_to_go(&mut self, node: &NodeName) {
        self.news.pending |= self.snapshot.bound.get(node).is_some_and(|pods| !pods.is_empty());
    }

    fn claim_seen(&mut self, claim: Arc<Claim>) {
        // A list from a cache that lags behind, or the answer to its creation that came late.
        if self.snapshot.departed.has(&claim.uid) {
            return;
        }
        // A write's answer and the watch race each other: the older version does not count.
        if self.snapshot.claims.get(&claim.name).is_some_and(|known| known.uid == claim.uid && is_older(&claim, known))
        {
            self.seen(Kind::NodeClaim, &Key::Claim(claim.name.clone()));
            return;
        }
        self.seen(Kind::NodeClaim, &Key::Claim(claim.name.clone()));
        let before = self.snapshot.claims.get(&claim.name).and_then(|known| known.provider_id.clone());
        if let Some(before) = before.filter(|before| claim.provider_id.as_ref() != Some(before)) {
            self.unclaim(&before, &claim.name);
        }
        if let Some(id) = &claim.provider_id {
            // The first stays.
            let owner = self.claim_of.entry(id.clone()).or_insert_with(|| claim.name.clone());
            if *owner != claim.name {
                self.disputed.insert(id.clone());
            }
        }
        if claim.deleting.is_some() {
            self.unplanned(&claim.name);
        }
        if claim.is_leaving()
            && !self.snapshot.claims.get(&claim.name).is_some_and(|known| known.is_leaving())
            && let Some(node) = self.snapshot.node_of(&claim).map(|node| node.name.clone())
        {
            self.begins_to_go(&node);
        }
        self.news.claims.insert(claim.name.clone());
        self.news.usage = true;
        self.news.supply = true;
        self.snapshot.claims.insert(claim.name.clone(), claim);
    }

    fn claim_gone(&mut self, name: ClaimName, uid: &ClaimUid) {
        self.snapshot.departed.add(uid);
        if self.snapshot.claims.get(&name).is_none_or(|claim| claim.uid == *uid) {
            self.gone(&Key::Claim(name));
        }
    }

    pub(super) fn gone(&mut self, key: &Key) {
        match key {
            Key::Pod(uid) => {
                if let Some(pod) = self.snapshot.pods.remove(uid) {
                    self.daemon_pod_gone(&pod);
                    if let Some(node) = &pod.node {
                        self.unbind(node, uid);
                    }
                }
                self.forget(uid);
            }
            Key::Node(name) => {
                if let Some(node) = self.snapshot.nodes.remove(name) {
                    let concerned: Vec<ClaimName> = self.standing_for(&node).cloned().collect();
                    self.news.claims.extend(concerned);
                    if let Some(id) = &node.provider_id {
                        self.unlink(id, name);
                    }
                    node.owner_claims.iter().for_each(|owner| self.disown(&owner.name, name));
                }
                self.snapshot.pod_events.remove(name);
                self.news.usage = true;
                self.news.supply = true;
            }
            Key::Claim(name) => {
                if let Some(id) = self.snapshot.claims.remove(name).and_then(|claim| claim.provider_id.clone()) {
                    self.unclaim(&id, name);
                }
                self.unplanned(name);
                self.news.claims.insert(name.clone());
                self.news.usage = true;
                self.news.supply = true;
            }
            Key::Pool(name) => {
                self.snapshot.pools.remove(name);
                self.news.pools = true;
            }
            Key::Class(reference) => {
                self.snapshot.classes.remove(reference);
                self.news.classes = true;
            }
            Key::Daemon(key) => {
                self.snapshot.daemons.remove(key);
                self.daemons.template_gone(key);
                self.news.supply = true;
            }
            Key::Namespace(name) => {
                self.snapshot.namespaces.remove(name);
            }
            Key::Group(path) => self.group_gone(path),
            about_features => self.feature_gone(about_features),
        }
    }

    /// A NodeClaim names this machine no more; another may.
    fn unclaim(&mut self, id: &ProviderId, name: &ClaimName) {
        if self.claim_of.get(id) != Some(name) {
            return;
        }
        self.claim_of.remove(id);
        if self.disputed.remove(id) {
            let mut others = self.snapshot.claims.values();
            let other = others.find(|other| other.provider_id.as_ref() == Some(id) && other.name != *name);
            self.claim_of.extend(other.map(|other| (id.clone(), other.name.clone())));
        }
    }

    pub(super) fn seen(&mut self, kind: Kind, key: &Key) {
        if let Some(unseen) = self.unseen.get_mut(&kind) {
            unseen.remove(key);
        }
    }

    fn keys(&self, kind: Kind) -> BTreeSet<Key> {
        let snapshot = &self.snapshot;
        match kind {
            Kind::Pod => snapshot.pods.keys().cloned().map(Key::Pod).collect(),
            Kind::Node => snapshot.nodes.keys().cloned().map(Key::Node).collect(),
            Kind::NodeClaim => snapshot.claims.keys().cloned().map(Key::Claim).collect(),
            Kind::NodePool => snapshot.pools.keys().cloned().map(Key::Pool).collect(),
            Kind::NodeClass => snapshot.classes.keys().cloned().map(Key::Class).collect(),
            Kind::DaemonSet => snapshot.daemons.keys().cloned().map(Key::Daemon).collect(),
            Kind::Namespace => snapshot.namespaces.keys().cloned().map(Key::Namespace).collect(),
            Kind::VolumeClaim => snapshot.volume_claims.keys().cloned().map(Key::VolumeClaim).collect(),
            Kind::Volume => snapshot.volumes.keys().cloned().map(Key::Volume).collect(),
            Kind::StorageClass => snapshot.storage_classes.keys().cloned().map(Key::StorageClass).collect(),
            Kind::CsiNode => snapshot.csi_nodes.keys().cloned().map(Key::CsiNode).collect(),
            Kind::VolumeAttachment => snapshot.attachments.keys().cloned().map(Key::Attachment).collect(),
            Kind::Service | Kind::ReplicationController | Kind::ReplicaSet | Kind::StatefulSet => self.groups(kind),
            Kind::NodeOverlay => snapshot.overlays.keys().cloned().map(Key::Overlay).collect(),
            Kind::CapacityBuffer => snapshot.buffers.keys().cloned().map(Key::Buffer).collect(),
            Kind::PodBudget => snapshot.pod_budgets.keys().cloned().map(Key::PodBudget).collect(),
            Kind::PodTemplate => snapshot.templates.keys().cloned().map(Key::Template).collect(),
            Kind::Scalable(scalable) => {
                let of_kind = snapshot.scalables.keys().filter(|(one, _)| *one == scalable);
                of_kind.cloned().map(Key::Scalable).collect()
            }
        }
    }

    fn unplan(&mut self, uid: &PodUid) {
        if let Some(claim) = self.snapshot.planned.remove(uid)
            && let Some(pods) = self.snapshot.planned_for.get_mut(&claim)
        {
            pods.remove(uid);
            if pods.is_empty() {
                self.snapshot.planned_for.remove(&claim);
                // Nobody is left whom its node would wait for.
                self.news.claims.insert(claim);
            }
        }
    }

    fn unbind(&mut self, node: &NodeName, uid: &PodUid) {
        if take_out(&mut self.snapshot.bound, node, uid) {
            self.news.supply = true;
        }
        self.pods_of_node_changed(node);
    }

    /// Pods and attachments concern a claim actor only while its node is being emptied.
    pub(super) fn pods_of_node_changed(&mut self, node: &NodeName) {
        let Some(node) = self.snapshot.nodes.get(node) else { return };
        let is_emptied = |name: &&ClaimName| {
            self.snapshot.claims.get(*name).is_some_and(|claim| claim.deleting.is_some() || claim.is_rebooting())
        };
        let concerned: Vec<ClaimName> = self.standing_for(node).filter(is_emptied).cloned().collect();
        self.news.claims.extend(concerned);
    }

    /// The NodeClaims that look after a Node: the one with its provider ID, and those that own it, whatever ID somebody has written into them.
    fn standing_for<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a ClaimName> {
        let by_id = node.provider_id.as_ref().and_then(|id| self.claim_of.get(id));
        by_id.into_iter().chain(self.snapshot.owners_of(node).map(|claim| &claim.name))
    }

    fn unlink(&mut self, id: &ProviderId, node: &NodeName) {
        take_out(&mut self.snapshot.nodes_of, id, node);
        self.news.claims.extend(self.claim_of.get(id).cloned());
    }

    fn disown(&mut self, owner: &ClaimName, node: &NodeName) {
        if take_out(&mut self.snapshot.owned, owner, node) {
            self.news.claims.insert(owner.clone());
        }
    }
}

/// Takes a value out of those of a key, and the key with its last one. Says whether the key was there.
fn take_out<K: Ord + Clone, V: Ord + Clone>(index: &mut OrdMap<K, OrdSet<V>>, key: &K, value: &V) -> bool {
    let Some(values) = index.get_mut(key) else { return false };
    values.remove(value);
    if values.is_empty() {
        index.remove(key);
    }
    true
}

/// Whether `claim` is an older version than `known`. Resource versions are numbers that grow (Kubernetes says so since 1.35); those that
/// are none do not compare.
fn is_older(claim: &Claim, known: &Claim) -> bool {
    match (claim.version.parse::<u64>(), known.version.parse::<u64>()) {
        (Ok(claim), Ok(known)) => claim < known,
        _ => false,
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
