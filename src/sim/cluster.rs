//! The simulated API server behind the trait [`Cluster`]: the store's rules, seen through latency.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures::future::{BoxFuture, ready};
use futures::stream::{self, BoxStream, StreamExt};
use tokio::time::{Instant, sleep, sleep_until};

use super::Clock;
use super::admission::{Gate, Open, Requests, Verdict};
use super::seed::{self, Seed};
use super::store::{Store, Written};
use crate::cluster::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Cluster, Error, Lease,
    NodePatch, OverlayStatusPatch, PoolPatch, PoolStatusPatch, RecordNow, Regarding,
};
use crate::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};

/// How long a leader lease lasts without a renewal: that of client-go, which Karpenter uses too.
const LEASE: Duration = Duration::from_secs(15);

/// How slow the API server is. Each pair is a lower and an upper bound; the seed decides in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    /// From sending a request to its answer; it takes effect half-way.
    pub request: (Duration, Duration),
    /// From a change to its arrival at a watcher.
    pub watch: (Duration, Duration),
}

impl Default for Latency {
    /// About 5 ms a request and 10 ms for the watch: an API server at leisure.
    fn default() -> Self {
        let millis = |low, high| (Duration::from_millis(low), Duration::from_millis(high));
        Self { request: millis(4, 6), watch: millis(8, 12) }
    }
}

/// The simulated API server. Clones are handles to the same one.
#[derive(Clone)]
pub struct SimCluster {
    shared: Arc<Shared>,
}

struct Shared {
    latency: Latency,
    store: Mutex<Store>,
    front: Mutex<Front>,
}

/// What requests pass before they reach the store.
struct Front {
    gate: Box<dyn Gate>,
    requests: Requests,
    rng: Rng,
}

impl SimCluster {
    /// An empty cluster.
    pub fn new(seed: Seed, clock: Clock, latency: Latency) -> Self {
        let front = Front { gate: Box::new(Open), requests: Requests::new(), rng: seed.stream("request latency") };
        let store = Store::new(seed, clock);
        Self { shared: Arc::new(Shared { latency, store: Mutex::new(store), front: Mutex::new(front) }) }
    }

    /// The objects, for the stand-ins of Kubernetes' own components and for tests: no latency, no faults. Not to be held across
    /// an await.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        // A panic of one reader leaves the objects as they are between two calls, which is always consistent.
        self.shared.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a gate in front of all requests of joiner.
    pub fn set_gate(&self, gate: Box<dyn Gate>) {
        self.front().gate = gate;
    }

    /// Requests of joiner so far, by verb and resource.
    pub fn requests(&self) -> Requests {
        self.front().requests.clone()
    }

    /// The Events that are kept, oldest first.
    pub fn events(&self) -> Vec<Written> {
        self.store().events.iter().cloned().collect()
    }

    /// Everything that happens, without the watch's latency: for the stand-ins of Kubernetes' own components.
    pub fn prompt_facts(&self) -> BoxStream<'static, Fact> {
        self.watch((Duration::ZERO, Duration::ZERO))
    }

    fn watch(&self, delay: (Duration, Duration)) -> BoxStream<'static, Fact> {
        let queue = self.store().subscribe(delay);
        stream::unfold(queue, |mut queue| async move {
            let (at, fact) = queue.next().await?;
            if at > Instant::now() {
                sleep_until(at).await;
            }
            Some((fact, queue))
        })
        .boxed()
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.shared.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request and asks the gate; answers how long the request takes.
    fn admit(&self, verb: &'static str, resource: &'static str) -> (Verdict, Duration) {
        let mut front = self.front();
        *front.requests.entry((verb, resource)).or_default() += 1;
        let delay = seed::between(&mut front.rng, self.shared.latency.request);
        (front.gate.judge(verb, resource), delay)
    }

    /// One request: way there, effect, way back. Dropped on the way back, it has had its effect, as in life.
    async fn request<T>(
        &self,
        verb: &'static str,
        resource: &'static str,
        effect: impl FnOnce(&mut Store) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let (verdict, delay) = self.admit(verb, resource);
        let mut way = delay / 2;
        if let Verdict::Delay(longer) = verdict {
            way += longer;
        }
        sleep(way).await;
        if let Verdict::Refuse(error) = verdict {
            sleep(delay / 2).await;
            return Err(error);
        }
        let answer = effect(&mut self.store());
        sleep(delay / 2).await;
        if matches!(verdict, Verdict::LoseAnswer) {
            return Err(Error::Unknown(format!("{verb} {resource}: connection lost before the answer")));
        }
        answer
    }
}

/// Whether a NodeClaim's NodeClass is of a kind that a cloud in here looks after: the simulated one, or Outscale's over its stand-in.
fn is_ours(claim: &Claim) -> bool {
    let kind = (&*claim.class.group, &*claim.class.kind);
    [("karpenter.kwok.sh", "KWOKNodeClass"), ("karpenter.outscale.com", "OutscaleNodeClass")].contains(&kind)
}

impl Cluster for SimCluster {
    fn facts(&self) -> BoxStream<'static, Fact> {
        // The bargain of the trait: NodeClaims of another autoscaler are not told.
        let foreign = |fact: &Fact| matches!(fact, Fact::ClaimSeen(claim) if !is_ours(claim));
        self.watch(self.shared.latency.watch).filter(move |fact| ready(!foreign(fact))).boxed()
    }

    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        Box::pin(self.request("create", "nodeclaims", |store| store.create_claim(draft)))
    }

    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        Box::pin(self.request("patch", "nodeclaims", |store| store.patch_claim(name, patch)))
    }

    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        Box::pin(self.request("patch", "nodeclaims/status", |store| store.patch_claim_status(name, patch)))
    }

    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("delete", "nodeclaims", move |store| {
            // A namesake is not meant.
            if store.claims.get(name).is_some_and(|claim| claim.uid != *uid) {
                return Err(Error::NotFound(format!("NodeClaim {name}")));
            }
            store.delete_claim(name)
        }))
    }

    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>> {
        Box::pin(self.request("list", "nodeclaims", |store| Ok(store.claims.values().cloned().collect())))
    }

    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>> {
        Box::pin(self.request("get", "nodeclaims", |store| Ok(store.claims.get(name).cloned())))
    }

    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        Box::pin(self.request("get", "nodes", |store| Ok(store.nodes.get(name).cloned())))
    }

    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        let carries = |node: &&Arc<Node>| node.provider_id.as_ref() == Some(id);
        Box::pin(self.request("list", "nodes", move |store| Ok(store.nodes.values().find(carries).cloned())))
    }

    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>> {
        Box::pin(self.request("list", "pods", |store| Ok(store.pods_on(node).cloned().collect())))
    }

    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>> {
        Box::pin(self.request("list", "volumeattachments", |store| {
            Ok(store.volumes.attachments.values().filter(|one| one.node == *node).cloned().collect())
        }))
    }

    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>> {
        Box::pin(self.request("list", "resourceslices", |store| {
            Ok(store.slices.values().filter(|slice| slice.node.as_ref() == Some(node)).cloned().collect())
        }))
    }

    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        patch: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        Box::pin(self.request("patch", "nodes", |store| store.patch_node(name, patch).map(Some)))
    }

    fn delete_node<'a>(&'a self, name: &'a NodeName, uid: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("delete", "nodes", |store| store.delete_node(name, Some(uid))))
    }

    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "nodepools", |store| store.patch_pool(name, patch)))
    }

    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "nodepools/status", |store| store.patch_pool_status(name, patch)))
    }

    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "nodeclasses", |store| store.patch_class(class, patch)))
    }

    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "nodeclasses/status", |store| store.patch_class_status(class, patch)))
    }

    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        patch: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "nodeoverlays/status", |store| store.patch_overlay_status(name, patch)))
    }

    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        patch: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "capacitybuffers/status", |store| store.patch_buffer_status(key, patch)))
    }

    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("patch", "pods/status", move |store| store.nominate(pod, uid, node)))
    }

    fn evict<'a>(&'a self, pod: &'a ObjectKey, uid: &'a PodUid) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("create", "pods/eviction", |store| store.evict(pod, uid)))
    }

    fn delete_pod<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        grace_seconds: i64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let grace = Duration::from_secs(u64::try_from(grace_seconds.max(1)).unwrap_or(1));
        Box::pin(self.request("delete", "pods", move |store| store.delete_pod(pod, uid, Some(grace))))
    }

    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("create", "events", |store| {
            store.announce(announcement.clone());
            Ok(())
        }))
    }

    fn renew_lease<'a>(&'a self, holder: &'a str, record: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move {
            let key = ObjectKey::new("kube-system", "karpenter-leader-election");
            let seen = self.request("get", "leases", |store| Ok(store.lease.clone())).await?;
            let record = record();
            let written = self.request("update", "leases", move |store| {
                if store.lease != seen {
                    return Err(Error::Conflict(format!("Lease {key}")));
                }
                let (owner, remaining) = store.renew_lease(holder, LEASE);
                if owner == holder
                    && let Some(record) = record
                {
                    store.record = Some(record);
                }
                let object = Regarding::Lease(key, "".into());
                Ok(Lease { holder: owner, remaining, object, audit: store.audit.clone(), record: store.record.clone() })
            });
            written.await
        })
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.request("update", "leases", |store| {
            store.release_lease(holder);
            Ok(())
        }))
    }
}
