//! The world as a whole: the cluster, the cloud and everybody who plays between them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::time::{Instant, sleep, sleep_until};

use super::attacher::Attacher;
use super::cluster::{Latency, SimCluster};
use super::collector::Collector;
use super::containers::Containers;
use super::daemons::Daemons;
use super::kubelet::{Kubelet, Pace};
use super::ledger::Ledger;
use super::scenario::{Act, End, Step};
use super::scheduler::{Rhythm, Scheduler};
use super::store::NewPod;
use super::workload::Workloads;
use super::{Clock, Seed};
use crate::clouds::simulated::{Conduct, Simulated};
use crate::core::facts::{InstanceType, OwnerClaim, Pod};
use crate::core::ids::{ClaimName, ClassRef, NodeName, ObjectKey, PoolName};
use crate::manifests::{Invalid, Object};

/// How long nothing may happen before a world counts as settled: longer than joiner's slowest routine (consolidation waits 15 s before it acts).
const QUIET: Duration = Duration::from_mins(1);
/// How long pods may stay without a node, nothing else happening, before a world counts as settled all the same.
const HOPELESS: Duration = Duration::from_mins(15);
/// How long a world that does not settle goes on after the last step.
const PATIENCE: Duration = Duration::from_hours(24);
/// How often a world is asked whether it has settled.
const LOOK: Duration = Duration::from_secs(5);

/// What a world is made of.
#[derive(Clone)]
pub struct WorldConfig {
    /// Source of all chance.
    pub seed: Seed,
    /// The wall clock; it has to follow tokio's.
    pub clock: Clock,
    /// How slow the API server is.
    pub latency: Latency,
    /// How fast nodes and pods come and go.
    pub pace: Pace,
    /// How fast the scheduler is.
    pub rhythm: Rhythm,
    /// How the cloud behaves.
    pub conduct: Conduct,
    /// What the cloud sells.
    pub catalogue: Vec<InstanceType>,
}

impl WorldConfig {
    /// A world at its usual pace, whose cloud behaves and sells nothing; what is to be otherwise stands before `..WorldConfig::usual(..)`.
    pub fn usual(seed: u64, clock: Clock) -> Self {
        Self {
            seed: Seed(seed),
            clock,
            latency: Latency::default(),
            pace: Pace::default(),
            rhythm: Rhythm::default(),
            conduct: Conduct::default(),
            catalogue: Vec::new(),
        }
    }
}

/// A world. Nothing in it moves until [`World::run`] (or each of [`World::stand_ins`]) is polled; nothing in it spawns tasks.
pub struct World {
    /// The API server.
    pub cluster: SimCluster,
    /// The cloud.
    pub cloud: Simulated,
    /// Deployments and their like.
    pub workloads: Workloads,
    /// What happened.
    pub ledger: Ledger,
    config: WorldConfig,
}

impl World {
    /// A world with an empty cluster.
    pub fn new(config: WorldConfig) -> Self {
        let cluster = SimCluster::new(config.seed, Arc::clone(&config.clock), config.latency);
        let rng = config.seed.stream("cloud");
        let cloud = Simulated::new(config.catalogue.clone(), config.conduct.clone(), Arc::clone(&config.clock), rng);
        let workloads = Workloads::new(cluster.clone());
        let ledger = Ledger::new(cluster.clone(), cloud.clone());
        Self { cluster, cloud, workloads, ledger, config }
    }

    /// Everybody who plays, with names for logs: for callers who want a task for each. They never end. For the same world from the same
    /// seed, spawn them in this order on a single thread.
    pub fn stand_ins(&self) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
        let WorldConfig { seed, pace, rhythm, .. } = self.config;
        let kubelet = Kubelet::new(self.cluster.clone(), self.cloud.clone(), pace, seed);
        let containers = Containers::new(self.cluster.clone(), pace, seed);
        let scheduler = Scheduler::new(self.cluster.clone(), rhythm, seed);
        vec![
            ("ledger", Box::pin(self.ledger.clone().run())),
            ("kubelet", Box::pin(kubelet.run())),
            ("daemons", Box::pin(Daemons::new(self.cluster.clone()).run())),
            ("containers", Box::pin(containers.run())),
            ("attacher", Box::pin(Attacher::new(self.cluster.clone(), pace, seed).run())),
            ("collector", Box::pin(Collector::new(self.cluster.clone(), seed).run())),
            ("workloads", Box::pin(self.workloads.clone().run())),
            ("scheduler", Box::pin(scheduler.run())),
        ]
    }

    /// Plays a timeline with all stand-ins in one task, and ends with it.
    pub async fn run(&self, steps: &[Step], end: End) {
        let players = join_all(self.stand_ins().into_iter().map(|(_, player)| player));
        tokio::select! {
            biased;
            () = self.play(steps, end) => {}
            _ = players => {}
        }
    }

    /// Plays a timeline; the stand-ins have to be polled elsewhere. What cannot be done is noted in the ledger.
    pub async fn play(&self, steps: &[Step], end: End) {
        let start = Instant::now();
        for step in steps {
            if let End::At(end) = end
                && step.at > end
            {
                break;
            }
            sleep_until(start + step.at).await;
            if let Err(invalid) = self.perform(&step.act) {
                self.ledger.complain(format!("timeline at {} s: {invalid}", step.at.as_secs()));
            }
        }
        match end {
            End::At(end) => sleep_until(start + end).await,
            End::Settled => self.settle().await,
        }
    }

    /// Does what a step says, at once.
    pub fn perform(&self, act: &Act) -> Result<(), Invalid> {
        match act {
            Act::Apply(objects) => {
                for object in objects {
                    self.apply(object.clone());
                }
                Ok(())
            }
            Act::Scale { kind, key, replicas } => {
                let wanted = i64::try_from(*replicas).unwrap_or(i64::MAX);
                self.cluster.store().scale_scalable(kind, key, wanted);
                found(kind, key, self.workloads.scale(kind, key, *replicas))
            }
            Act::Delete { kind, key } => found(kind, key, self.delete(kind, key)),
            Act::Edit(edit) => found(&edit.kind, &edit.key(), edit.perform(&mut self.cluster.store())),
            Act::Answer(answers) => {
                answers.perform(&self.cloud);
                Ok(())
            }
            Act::Befall(fate) => {
                found("machine of NodeClaim", &ObjectKey::new("", fate.of.as_str()), fate.perform(&self.cloud))
            }
        }
    }

    /// Puts an object.
    pub fn apply(&self, object: Object) {
        let mut store = self.cluster.store();
        // A pod that is written for a node that is there is on it; every other one is kept, and placed by the scheduler.
        let object = match object {
            Object::Pod { pod, runs_for, volumes }
                if pod.node.as_ref().is_some_and(|on| store.nodes.contains_key(on)) =>
            {
                let Pod { key, shape, node, .. } = *pod;
                // A pod of that name may be there already; then nothing changes.
                store.create_pod(NewPod { key, shape, runs_for, workload: None, node, volumes }).ok();
                return;
            }
            other => other.kept(),
        };
        match object {
            Object::Pool(pool) => {
                store.apply_pool(*pool);
            }
            Object::Class(class) => store.apply_class(class),
            Object::Claim(claim) => {
                store.apply_claim(*claim);
            }
            Object::Daemon(daemon) => store.apply_daemon(daemon),
            Object::Namespace(name, labels) => store.apply_namespace(&name, labels),
            Object::Budget(budget) => store.apply_budget(budget),
            Object::VolumeClaim(claim) => store.apply_volume_claim(claim),
            Object::Volume(volume) => store.apply_volume(volume),
            Object::StorageClass(class) => store.apply_storage_class(class),
            Object::CsiNode(node) => store.apply_csi_node(node),
            Object::Attachment(attachment) => store.apply_attachment(attachment),
            Object::Slice(slice) => drop(store.slices.insert(Arc::clone(&slice.name), Arc::new(slice))),
            Object::Overlay(overlay) => store.apply_overlay(*overlay),
            Object::Buffer(buffer) => store.apply_buffer(*buffer),
            Object::Template(template) => store.apply_template(template),
            Object::Node(mut node) => {
                // Which UID a NodeClaim has got here, whoever writes a manifest cannot know.
                for owner in &mut node.owner_claims {
                    if let Some(claim) = store.claims.get(&owner.name) {
                        *owner = OwnerClaim::of(claim);
                    }
                }
                // A Node without a machine: it stays as it was written, and a second one of its name changes nothing.
                store.create_node(*node).ok();
            }
            // A pod has become something that keeps it.
            Object::Priority(..) | Object::Secret(_) | Object::Irrelevant(_) | Object::Pod { .. } => {}
            Object::Workload(workload) => {
                if let Some(scalable) = workload.scalable() {
                    store.apply_scalable(scalable);
                }
                // The workloads take the store themselves.
                drop(store);
                self.workloads.apply(workload);
            }
        }
    }

    fn delete(&self, kind: &str, key: &ObjectKey) -> bool {
        let mut store = self.cluster.store();
        match kind {
            "NodePool" => store.delete_pool(&PoolName::from(key.name.clone())).is_ok(),
            "NodeClaim" => store.delete_claim(&ClaimName::from(key.name.clone())).is_ok(),
            "Node" => store.delete_node(&NodeName::from(key.name.clone()), None).is_ok(),
            "DaemonSet" => store.delete_daemon(key).is_ok(),
            "PodDisruptionBudget" => store.delete_budget(key),
            "PersistentVolumeClaim" => store.delete_volume_claim(key),
            "VolumeAttachment" => store.detach(&key.name),
            "ResourceSlice" => store.slices.remove(&key.name).is_some(),
            "NodeOverlay" => store.delete_overlay(&key.name),
            "CapacityBuffer" => store.delete_buffer(key),
            "PodTemplate" => store.delete_template(key),
            "KWOKNodeClass" | "OutscaleNodeClass" => {
                let group = if kind == "KWOKNodeClass" { "karpenter.kwok.sh" } else { "karpenter.outscale.com" };
                let reference = ClassRef { group: group.into(), kind: kind.into(), name: key.name.clone() };
                store.delete_class(&reference).is_ok()
            }
            "Pod" => {
                drop(store);
                let bare = self.workloads.delete(kind, key);
                let mut store = self.cluster.store();
                let uid = store.pod_names.get(key).cloned();
                uid.is_some_and(|uid| store.delete_pod(key, &uid, None).is_ok()) || bare
            }
            _ => {
                store.delete_scalable(kind, key);
                drop(store);
                self.workloads.delete(kind, key)
            }
        }
    }

    /// Waits until nothing is pending or under way.
    async fn settle(&self) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            sleep(LOOK).await;
            let store = self.cluster.store();
            let quiet = store.last_change().elapsed().min(start.elapsed());
            let under_way = store.claims.values().any(|claim| claim.deleting.is_some() || !claim.is("Initialized"))
                || store.nodes.values().any(|node| node.deleting.is_some())
                || store.pods.values().any(|record| record.pod.deleting.is_some());
            let pending = store.pods.values().any(|record| record.pod.node.is_none() && !record.pod.is_terminal());
            if quiet >= HOPELESS || (quiet >= QUIET && !pending && !under_way) {
                return;
            }
        }
    }
}

fn found(kind: &str, key: &ObjectKey, found: bool) -> Result<(), Invalid> {
    if found {
        return Ok(());
    }
    Err(Invalid { object: format!("{kind} {key}"), problem: "is not there; apply it before".to_owned() })
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "staged_tests.rs"]
mod staged;

#[cfg(test)]
#[path = "rehearsal_tests.rs"]
mod rehearsal;

#[cfg(test)]
#[path = "picky_tests.rs"]
mod picky;

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod volumes;
