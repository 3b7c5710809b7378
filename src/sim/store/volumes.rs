//! Volumes in the store: claims are made with pods, bound when a pod gets its node, and attached while a node uses them.
//!
//! The provisioner's stand-in is here too: a claim of a class with a driver gets a PersistentVolume in the zone of its pod's node.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::objects::Store;
use crate::core::facts::{
    CsiNode, Fact, Kind, Node, Pod, StorageClass, Topologies, Volume, VolumeAttachment, VolumeClaim,
};
use crate::core::ids::{NodeName, ObjectKey, PodUid};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::manifests::{VolumeSource, claims_of};

/// All objects about volumes.
#[derive(Default)]
pub(in crate::sim) struct Volumes {
    pub(in crate::sim) claims: BTreeMap<ObjectKey, Arc<VolumeClaim>>,
    pub(in crate::sim) made: BTreeMap<Arc<str>, Arc<Volume>>,
    pub(in crate::sim) classes: BTreeMap<Arc<str>, Arc<StorageClass>>,
    pub(in crate::sim) csi_nodes: BTreeMap<NodeName, Arc<CsiNode>>,
    pub(in crate::sim) attachments: BTreeMap<Arc<str>, Arc<VolumeAttachment>>,
    /// Since when each attachment is there.
    pub(in crate::sim) since: BTreeMap<Arc<str>, Instant>,
    /// Which pod last used what is attached by each, where it has gone, and when it went.
    pub(in crate::sim) last_user: BTreeMap<Arc<str>, (Instant, Arc<Pod>)>,
    /// Attachments that do not go although they should, and until when.
    pub(in crate::sim) stuck: BTreeMap<Arc<str>, Instant>,
    /// Claims of ephemeral volumes by their pod.
    ephemeral: BTreeMap<PodUid, Vec<ObjectKey>>,
}

impl Store {
    /// Puts a PersistentVolumeClaim. One without a class gets the default; one of a class that binds at once gets its volume.
    pub fn apply_volume_claim(&mut self, mut claim: VolumeClaim) {
        if claim.class.is_none() {
            let defaults = self.volumes.classes.values().filter(|class| class.is_default);
            claim.class = defaults.max_by_key(|class| class.created).map(|class| Arc::clone(&class.name));
        }
        let class = claim.class.as_ref().and_then(|name| self.volumes.classes.get(name)).cloned();
        let key = claim.key.clone();
        self.save_volume_claim(claim);
        if let Some(class) = class.filter(|class| class.immediate && class.driver.is_some()) {
            let first = class.topologies.first().map(|term| {
                let one = |line: &Requirement| Requirement {
                    values: line.values.iter().take(1).cloned().collect(),
                    ..line.clone()
                };
                vec![term.iter().map(one).collect()]
            });
            self.provision(&key, &class, first);
        }
    }

    /// Puts a PersistentVolume.
    pub fn apply_volume(&mut self, volume: Volume) {
        let volume = Arc::new(volume);
        self.volumes.made.insert(Arc::clone(&volume.name), Arc::clone(&volume));
        self.emit(&Fact::VolumeSeen(volume));
    }

    /// Puts a StorageClass.
    pub fn apply_storage_class(&mut self, class: StorageClass) {
        let class = Arc::new(class);
        self.volumes.classes.insert(Arc::clone(&class.name), Arc::clone(&class));
        self.emit(&Fact::StorageClassSeen(class));
    }

    /// Puts a CSINode.
    pub fn apply_csi_node(&mut self, node: CsiNode) {
        let node = Arc::new(node);
        self.volumes.csi_nodes.insert(node.node.clone(), Arc::clone(&node));
        self.emit(&Fact::CsiNodeSeen(node));
    }

    /// Says that a volume is attached to a node.
    pub fn attach(&mut self, volume: &Arc<str>, node: &NodeName) {
        let name: Arc<str> = format!("csi-{volume}-{node}").into();
        if self.volumes.attachments.contains_key(&name) {
            return;
        }
        self.apply_attachment(VolumeAttachment { name, node: node.clone(), volume: Some(Arc::clone(volume)) });
    }

    /// Puts a VolumeAttachment.
    pub fn apply_attachment(&mut self, one: VolumeAttachment) {
        let one = Arc::new(one);
        self.volumes.since.insert(Arc::clone(&one.name), Instant::now());
        self.volumes.attachments.insert(Arc::clone(&one.name), Arc::clone(&one));
        self.emit(&Fact::AttachmentSeen(one));
    }

    /// Says that a VolumeAttachment is gone; false when there was none.
    pub fn detach(&mut self, name: &Arc<str>) -> bool {
        let there = self.volumes.attachments.remove(name).is_some();
        if there {
            self.volumes.since.remove(name);
            self.volumes.last_user.remove(name);
            self.volumes.stuck.remove(name);
            self.emit(&Fact::AttachmentGone(Arc::clone(name)));
        }
        there
    }

    /// A pod goes: remembers it as the last that used its volumes on its node.
    pub(super) fn leave_volumes(&mut self, pod: &Arc<Pod>) {
        if pod.volume_claims.is_empty() {
            return;
        }
        let used = self.attachable(pod);
        let own = |one: &&Arc<VolumeAttachment>| {
            pod.node.as_ref() == Some(&one.node) && one.volume.as_ref().is_some_and(|volume| used.contains(volume))
        };
        let left = self.volumes.attachments.values().filter(own);
        let left = left.map(|one| (Arc::clone(&one.name), (Instant::now(), Arc::clone(pod))));
        self.volumes.last_user.extend(left.collect::<Vec<_>>());
    }

    /// Deletes a PersistentVolumeClaim, whoever uses it; false when there is none.
    pub fn delete_volume_claim(&mut self, key: &ObjectKey) -> bool {
        let there = self.volumes.claims.remove(key).is_some();
        if there {
            self.emit(&Fact::VolumeClaimGone(key.clone()));
        }
        there
    }

    /// The volumes of a pod that a driver attaches.
    pub(in crate::sim) fn attachable(&self, pod: &Pod) -> Vec<Arc<str>> {
        let volume = |name: &Arc<str>| {
            let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            let volume = self.volumes.made.get(self.volumes.claims.get(&key)?.volume.as_ref()?)?;
            volume.driver.is_some().then(|| Arc::clone(&volume.name))
        };
        pod.volume_claims.iter().filter_map(volume).collect()
    }

    /// The claims of a pod, and what they are bound to, as they are now.
    pub(in crate::sim) fn facts_of_claims(&self, pod: &Pod) -> Vec<Fact> {
        let mut facts = Vec::new();
        for name in &pod.volume_claims {
            let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            if let Some(claim) = self.volumes.claims.get(&key) {
                let volume = claim.volume.as_ref().and_then(|name| self.volumes.made.get(name));
                facts.extend(volume.cloned().map(Fact::VolumeSeen));
                facts.push(Fact::VolumeClaimSeen(Arc::clone(claim)));
            }
        }
        facts
    }

    pub(in crate::sim) fn all_of_volumes(&self, kind: Kind) -> Vec<Fact> {
        let all = &self.volumes;
        match kind {
            Kind::VolumeClaim => all.claims.values().cloned().map(Fact::VolumeClaimSeen).collect(),
            Kind::Volume => all.made.values().cloned().map(Fact::VolumeSeen).collect(),
            Kind::StorageClass => all.classes.values().cloned().map(Fact::StorageClassSeen).collect(),
            Kind::CsiNode => all.csi_nodes.values().cloned().map(Fact::CsiNodeSeen).collect(),
            Kind::VolumeAttachment => all.attachments.values().cloned().map(Fact::AttachmentSeen).collect(),
            _ => Vec::new(),
        }
    }

    /// Makes the claims that come with a pod, and answers the names of all that it mounts.
    pub(super) fn claims_of_pod(&mut self, pod: &ObjectKey, uid: &PodUid, sources: &[VolumeSource]) -> Vec<Arc<str>> {
        for source in sources {
            let Some(claim) = source.made_for(pod) else { continue };
            if matches!(source, VolumeSource::Ephemeral { .. }) {
                self.volumes.ephemeral.entry(uid.clone()).or_default().push(claim.key.clone());
            }
            if !self.volumes.claims.contains_key(&claim.key) {
                self.apply_volume_claim(claim);
            }
        }
        claims_of(sources, &pod.name)
    }

    /// A pod is gone, and with it the claims of its ephemeral volumes.
    pub(super) fn forget_claims_of(&mut self, pod: &PodUid) {
        for key in self.volumes.ephemeral.remove(pod).unwrap_or_default() {
            self.delete_volume_claim(&key);
        }
    }

    /// Gives the unbound claims of a pod volumes in the zone of its node.
    pub(super) fn bind_claims(&mut self, pod: &Pod, node: &Node) {
        for name in &pod.volume_claims {
            let key = ObjectKey { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(name) };
            let Some(claim) = self.volumes.claims.get(&key).filter(|claim| claim.volume.is_none()) else { continue };
            let class = claim.class.as_ref().and_then(|name| self.volumes.classes.get(name)).cloned();
            if let Some(class) = class {
                let zone = node.labels.get(labels::ZONE);
                let here =
                    zone.map(|zone| vec![vec![Requirement::new(labels::ZONE, Operator::In, [Arc::clone(zone)])]]);
                self.provision(&key, &class, here);
            }
        }
    }

    fn provision(&mut self, key: &ObjectKey, class: &StorageClass, topologies: Option<Topologies>) {
        let Some(claim) = self.volumes.claims.get(key) else { return };
        let claim = VolumeClaim::clone(claim);
        let name: Arc<str> = format!("pvc-{}", self.uid()).into();
        let driver = class.driver.clone();
        self.apply_volume(Volume { name: Arc::clone(&name), deleting: false, driver, on_one_node: false, topologies });
        self.save_volume_claim(VolumeClaim { volume: Some(name), bound: true, ..claim });
    }

    fn save_volume_claim(&mut self, claim: VolumeClaim) {
        let claim = Arc::new(claim);
        self.volumes.claims.insert(claim.key.clone(), Arc::clone(&claim));
        self.emit(&Fact::VolumeClaimSeen(claim));
    }
}
