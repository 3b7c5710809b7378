//! Stand between joiner and the simulated cluster and cloud, and tell a [`Narrator`] what is asked of them.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use joiner::clouds::simulated::Simulated;
use joiner::clouds::{self, Assortment, Cloud, Deletion, Hooks, LaunchSpec, Listing, RepairPolicy, Whereabouts};
use joiner::cluster::{Cluster, Error, RecordNow};
use joiner::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Machine, Node, NodeClass, Pod, VolumeAttachment};
use joiner::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};
use joiner::core::writes::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Lease, NodePatch,
    OverlayStatusPatch, PoolPatch, PoolStatusPatch,
};
use joiner::sim::{SimCluster, Topic};

use super::narrator::Narrator;

/// The simulated cluster, witnessed: what is asked of pods, and which Events are written. What happens to objects is told as facts.
pub(crate) struct SeenCluster {
    pub(crate) inner: SimCluster,
    pub(crate) narrator: Narrator,
}

/// The simulated cloud, witnessed: all calls but those that only read its catalogue and a whole listing that worked.
pub(crate) struct SeenCloud {
    pub(crate) inner: Simulated,
    pub(crate) narrator: Narrator,
}

fn said<T, E: std::fmt::Display>(answer: &Result<T, E>, done: &str) -> String {
    match answer {
        Ok(_) => done.to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}

impl Cluster for SeenCluster {
    fn facts(&self) -> BoxStream<'static, Fact> {
        self.inner.facts()
    }

    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        self.inner.create_claim(draft)
    }

    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        self.inner.patch_claim(name, patch)
    }

    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        self.inner.patch_claim_status(name, patch)
    }

    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.delete_claim(name, uid)
    }

    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>> {
        self.inner.list_claims()
    }

    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>> {
        self.inner.get_claim(name)
    }

    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.inner.get_node(name)
    }

    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.inner.find_node(id)
    }

    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>> {
        self.inner.pods_on(node)
    }

    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>> {
        self.inner.attached_to(node)
    }

    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>> {
        self.inner.slices_of(node)
    }

    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        patch: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.inner.patch_node(name, patch)
    }

    fn delete_node<'a>(&'a self, name: &'a NodeName, uid: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.delete_node(name, uid)
    }

    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_pool(name, patch)
    }

    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_pool_status(name, patch)
    }

    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_class(class, patch)
    }

    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_class_status(class, patch)
    }

    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        patch: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_overlay_status(name, patch)
    }

    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        patch: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.patch_buffer_status(key, patch)
    }

    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.nominate(pod, uid, node)
    }

    fn evict<'a>(&'a self, pod: &'a ObjectKey, uid: &'a PodUid) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let answer = self.inner.evict(pod, uid).await;
            self.narrator.asked(Topic::Pod, &format!("joiner evicts {}", pod.name), &said(&answer, "granted"));
            answer
        })
    }

    fn delete_pod<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        grace_seconds: i64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let answer = self.inner.delete_pod(pod, uid, grace_seconds).await;
            let question = format!("joiner deletes {} with {grace_seconds} s of grace", pod.name);
            self.narrator.asked(Topic::Pod, &question, &said(&answer, "granted"));
            answer
        })
    }

    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let answer = self.inner.announce(announcement).await;
            self.narrator.event(announcement);
            answer
        })
    }

    fn renew_lease<'a>(&'a self, holder: &'a str, record: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>> {
        self.inner.renew_lease(holder, record)
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.release_lease(holder)
    }
}

impl Cloud for SeenCloud {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.inner.class_kinds()
    }

    fn label_keys(&self) -> Vec<&'static str> {
        self.inner.label_keys()
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, clouds::Error>> {
        self.inner.catalog(class)
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.create(spec).await;
            let done = answer.as_ref().map(|machine| machine.id.to_string()).unwrap_or_default();
            let question = format!("cloud, launch a machine for {}", spec.claim.name);
            self.narrator.asked(Topic::Cloud, &question, &said(&answer, &done));
            answer
        })
    }

    fn launch_timeout(&self) -> std::time::Duration {
        self.inner.launch_timeout()
    }

    fn has_hooks(&self) -> bool {
        self.inner.has_hooks()
    }

    fn hooks<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Hooks, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.hooks(claim).await;
            let done = match &answer {
                Ok(told) if !told.pending.is_empty() => told.pending.join(", "),
                _ => "nothing".to_owned(),
            };
            let question = format!("cloud, what is still to be done for {}", claim.name);
            self.narrator.asked(Topic::Cloud, &question, &said(&answer, &done));
            answer
        })
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.get(id).await;
            let done = match &answer {
                Ok(Whereabouts::Unknown) => "no",
                Ok(Whereabouts::Ended) => "it has ended",
                _ => "yes",
            };
            self.narrator.asked(Topic::Cloud, &format!("cloud, is there {id}"), &said(&answer, done));
            answer
        })
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.find(token).await;
            let found = answer.iter().flatten().map(|machine| machine.id.to_string()).collect::<Vec<_>>().join(", ");
            let found = if found.is_empty() { "nothing" } else { &found };
            self.narrator.asked(Topic::Cloud, "cloud, what was launched with this token", &said(&answer, found));
            answer
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.list().await;
            if answer.is_err() {
                self.narrator.asked(Topic::Cloud, "cloud, list all machines", &said(&answer, ""));
            }
            answer
        })
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.delete(id).await;
            let done = match answer {
                Ok(Deletion::Gone) => "it is gone",
                Ok(Deletion::Missing) => "there is none",
                Ok(Deletion::InProgress) | Err(_) => "it is going",
            };
            self.narrator.asked(Topic::Cloud, &format!("cloud, take down {id}"), &said(&answer, done));
            answer
        })
    }

    fn may_deny_for(&self) -> std::time::Duration {
        self.inner.may_deny_for()
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), clouds::Error>> {
        Box::pin(async move {
            let answer = self.inner.reboot(id, operation).await;
            self.narrator.asked(Topic::Cloud, &format!("cloud, restart {id}"), &said(&answer, "granted"));
            answer
        })
    }

    fn drift<'a>(
        &'a self,
        claim: &'a Claim,
        class: &'a NodeClass,
    ) -> BoxFuture<'a, Result<Option<String>, clouds::Error>> {
        self.inner.drift(claim, class)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }
}
