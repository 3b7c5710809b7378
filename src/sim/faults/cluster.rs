//! The simulated API server on its bad days: what stands between it and joiner.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::time::{Instant, sleep};

use super::kind::Fault;
use super::mishaps::{Mishaps, Order};
use super::past::Past;
use super::plan::Mishap;
use super::stream;
use crate::cluster::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Cluster, Error, Lease,
    NodePatch, OverlayStatusPatch, PoolPatch, PoolStatusPatch, RecordNow,
};
use crate::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Kind, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};
use crate::core::labels::Labels;
use crate::sim::SimCluster;
use crate::sim::invariants::Invariants;

/// An annotation that others write.
const TOUCHED: &str = "karpenter.sh/touched";

/// A simulated API server whose requests meet faults, and whose dangerous ones are watched.
#[derive(Clone)]
pub struct HostileCluster {
    inner: SimCluster,
    mishaps: Mishaps,
    invariants: Invariants,
    past: Past,
}

/// A request, as far as faults look at it.
#[derive(Clone, Copy)]
struct Request<'a> {
    verb: &'static str,
    resource: &'static str,
    object: &'a (dyn Display + Sync),
    /// Whether it says which version of the object it means.
    guarded: bool,
}

impl Request<'_> {
    fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list")
    }
}

/// What becomes of a request.
enum Fate {
    Pass,
    /// It fails without effect, after a while.
    Fail(Duration, Error),
    /// It has its effect, and its answer comes late or never.
    Late(Mishap, bool),
    /// joiner is killed before or after it takes effect.
    Kill(Mishap),
    /// It has its effect, and somebody else holds the lease when it is answered.
    Depose(Mishap),
    /// It is not answered, and has its effect a while later.
    Afterwards(Mishap),
}

/// The same change once more, to be made after a while, whatever has become of joiner.
macro_rules! afterwards {
    ($self:ident, $object:expr, $change:ident($($given:ident),* $(; $copied:ident)*)) => {
        Some(move |after: Duration| {
            let (cluster, object, change) = ($self.clone(), $object.to_string(), stringify!($change));
            $(let $given = $given.clone();)*
            tokio::spawn(async move {
                sleep(after).await;
                cluster.landed(&object, change, &cluster.inner.$change($(&$given),* $(, $copied)*).await);
            });
        })
    };
}

/// What cannot be made later.
const NEVER: Option<fn(Duration)> = None;

impl HostileCluster {
    /// Puts faults in front of a cluster.
    pub fn new(inner: SimCluster, mishaps: Mishaps, invariants: Invariants) -> Self {
        let past = Past::of(&inner, &mishaps);
        Self { inner, mishaps, invariants, past }
    }

    fn fate(&self, request: Request<'_>, may_be_late: bool) -> Fate {
        let m = &self.mishaps;
        let Request { verb, resource, object, .. } = request;
        let writes = request.writes();
        let said = |what: &str| format!("{verb} {resource} {object}: {what}");
        let unclear = |what: &str| if writes { Error::Unknown(said(what)) } else { Error::Temporary(said(what)) };
        if let Some(outage) = m.holds(Fault::ApiOutage) {
            let error = if outage.pick.is_multiple_of(2) {
                Error::Temporary(said("connection refused"))
            } else {
                unclear("timeout")
            };
            return Fate::Fail(Duration::from_millis(outage.pick % 3_000), error);
        }
        if resource == "leases" {
            return m.strikes(Fault::ApiSlow, resource).map_or(Fate::Pass, |mishap| Fate::Late(mishap, false));
        }
        if let Some(mishap) = m.strikes(Fault::ApiThrottled, object) {
            let message = "the server has received too many requests and has asked us to try again later".to_owned();
            return Fate::Fail(Duration::ZERO, Error::TooManyRequests { retry_after: Some(mishap.lasting), message });
        }
        if m.strikes(Fault::ApiError, object).is_some() {
            return Fate::Fail(Duration::ZERO, unclear("500 Internal Server Error: etcdserver: request timed out"));
        }
        if let Some(mishap) = m.strikes(Fault::ApiLostBefore, object) {
            return Fate::Fail(mishap.lasting, unclear("connection lost"));
        }
        if let Some(mishap) = m.strikes(Fault::ApiLostAfter, object) {
            return Fate::Late(mishap, true);
        }
        if let Some(mishap) = m.strikes(Fault::ApiSlow, object) {
            return Fate::Late(mishap, false);
        }
        if may_be_late && let Some(mishap) = m.strikes(Fault::ApiLate, object) {
            return Fate::Afterwards(mishap);
        }
        if writes && request.guarded && m.strikes(Fault::ApiConflict, object).is_some() {
            // Somebody is faster: the request fails by itself, and the watch shows why.
            self.touch(resource, &object.to_string());
        }
        if writes && m.strikes(Fault::ApiRejected, object).is_some() {
            let message = "admission webhook \"policy.example.com\" denied the request".to_owned();
            return Fate::Fail(Duration::ZERO, Error::Invalid { object: object.to_string(), message });
        }
        if writes && let Some(mishap) = m.strikes(Fault::JoinerKilledMidCall, object) {
            return Fate::Kill(mishap);
        }
        // On most days nobody holds one.
        if writes
            && self.inner.store().lease.is_some()
            && let Some(mishap) = m.strikes(Fault::LeaseLostMidWrite, object)
        {
            return Fate::Depose(mishap);
        }
        Fate::Pass
    }

    /// Somebody else changes an object.
    fn touch(&self, resource: &str, name: &str) {
        let mut store = self.inner.store();
        let annotation = |version: &str| Labels::from([(Arc::from(TOUCHED), Arc::from(version))]);
        match resource.split('/').next().unwrap_or_default() {
            "nodeclaims" => {
                store.update_claim(&ClaimName::from(name), |claim| {
                    claim.annotations.extend(annotation(&claim.version));
                });
            }
            "nodes" => {
                store.update_node(&NodeName::from(name), |node| node.annotations.extend(annotation(&node.version)));
            }
            "nodepools" => {
                store.update_pool(&PoolName::from(name), |pool| pool.annotations.extend(annotation(&pool.version)));
            }
            "nodeclasses" => store.touch_class(name),
            "nodeoverlays" => store.touch_overlay(name),
            "capacitybuffers" => store.touch_buffer(name),
            _ => {}
        }
    }

    /// Sends a request that has its effect at once or not at all.
    async fn pass<T>(
        &self,
        request: Request<'_>,
        call: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.send(request, call, NEVER).await
    }

    /// Sends a request. `later` lets it have its effect after so long, if that can be.
    async fn send<T>(
        &self,
        request: Request<'_>,
        call: impl Future<Output = Result<T, Error>> + Send,
        later: Option<impl FnOnce(Duration) + Send>,
    ) -> Result<T, Error> {
        if request.writes() && request.resource != "leases" {
            self.invariants.change_begins(request.verb, request.resource, &request.object.to_string());
        }
        let answer = match self.fate(request, later.is_some()) {
            Fate::Pass => call.await,
            Fate::Fail(after, error) => {
                sleep(after).await;
                Err(error)
            }
            Fate::Late(mishap, lost) => {
                let answer = call.await;
                sleep(mishap.lasting).await;
                if lost {
                    Err(Error::Unknown(format!("{} {}: no answer", request.verb, request.resource)))
                } else {
                    answer
                }
            }
            Fate::Depose(mishap) => {
                let answer = call.await;
                self.inner.store().lease = Some(("rival".to_owned(), Instant::now() + mishap.lasting));
                sleep(mishap.lasting / 2).await;
                answer
            }
            Fate::Afterwards(mishap) => {
                if let Some(later) = later {
                    later(mishap.lasting);
                }
                sleep(Duration::from_millis(mishap.pick % 5_000)).await;
                Err(Error::Unknown(format!("{} {}: no answer", request.verb, request.resource)))
            }
            Fate::Kill(mishap) => {
                if mishap.pick.is_multiple_of(2) {
                    // Whoever asked will not hear the answer.
                    drop(call.await);
                }
                self.note(request, || "joiner is killed with this in its hands".to_owned());
                self.mishaps.order(Order::Kill(mishap.lasting));
                std::future::pending().await
            }
        };
        if request.resource != "leases" && request.resource != "events" {
            self.note(request, || match &answer {
                Ok(_) => "done".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        answer
    }

    fn note(&self, request: Request<'_>, outcome: impl FnOnce() -> String) {
        let Request { verb, resource, object, .. } = request;
        if self.mishaps.journals() {
            let object = object.to_string();
            self.mishaps.note(&object, || format!("{verb} {resource}: {}", outcome()));
        }
    }

    /// A change has been made, or refused, that nobody waits for any more.
    fn landed<T>(&self, object: &str, change: &str, answer: &Result<T, Error>) {
        self.mishaps.note(object, || match answer {
            Ok(_) => format!("{change} takes effect late"),
            Err(error) => format!("{change} comes late: {error}"),
        });
    }

    /// The NodeClaims as they are, or as a cache has them that lags behind.
    fn list(&self, fresh: Vec<Arc<Claim>>) -> Vec<Arc<Claim>> {
        if self.mishaps.holds(Fault::ApiAmnesia).is_some() {
            return Vec::new();
        }
        let Some(mishap) = self.mishaps.strikes(Fault::ApiStaleList, "") else { return fresh };
        let old = self.past.list(Kind::NodeClaim, mishap.lasting).into_iter();
        old.filter_map(|fact| if let Fact::ClaimSeen(claim) = fact { Some(claim) } else { None }).collect()
    }
}

fn request<'a>(
    verb: &'static str,
    resource: &'static str,
    object: &'a (dyn Display + Sync),
    guarded: bool,
) -> Request<'a> {
    Request { verb, resource, object, guarded }
}

impl Cluster for HostileCluster {
    fn facts(&self) -> BoxStream<'static, Fact> {
        stream::hostile(self.inner.clone(), self.inner.facts(), self.mishaps.clone(), self.past.clone())
    }

    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        let later = afterwards!(self, draft.name, create_claim(draft));
        Box::pin(self.send(request("create", "nodeclaims", &draft.name, false), self.inner.create_claim(draft), later))
    }

    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        self.invariants.nodeclaim_to_be_changed(name, patch);
        let asked = request("patch", "nodeclaims", name, patch.version.is_some());
        Box::pin(self.send(
            asked,
            self.inner.patch_claim(name, patch),
            afterwards!(self, name, patch_claim(name, patch)),
        ))
    }

    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        let asked = request("patch", "nodeclaims/status", name, patch.version.is_some());
        let later = afterwards!(self, name, patch_claim_status(name, patch));
        Box::pin(self.send(asked, self.inner.patch_claim_status(name, patch), later))
    }

    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>> {
        self.invariants.nodeclaim_to_be_deleted(name, uid);
        let later = afterwards!(self, name, delete_claim(name, uid));
        Box::pin(self.send(request("delete", "nodeclaims", name, false), self.inner.delete_claim(name, uid), later))
    }

    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>> {
        Box::pin(async move {
            let answer =
                self.pass(request("list", "nodeclaims", &"the NodeClaims", false), self.inner.list_claims()).await;
            answer.map(|fresh| self.list(fresh))
        })
    }

    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>> {
        Box::pin(self.pass(request("get", "nodeclaims", name, false), self.inner.get_claim(name)))
    }

    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        Box::pin(self.pass(request("get", "nodes", name, false), self.inner.get_node(name)))
    }

    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        Box::pin(self.pass(request("list", "nodes", id, false), self.inner.find_node(id)))
    }

    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>> {
        Box::pin(self.pass(request("list", "pods", node, false), self.inner.pods_on(node)))
    }

    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>> {
        Box::pin(self.pass(request("list", "volumeattachments", node, false), self.inner.attached_to(node)))
    }

    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>> {
        Box::pin(self.pass(request("list", "resourceslices", node, false), self.inner.slices_of(node)))
    }

    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        patch: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.invariants.node_to_be_changed(name, patch);
        let asked = request("patch", "nodes", name, patch.version.is_some());
        Box::pin(self.send(asked, self.inner.patch_node(name, patch), afterwards!(self, name, patch_node(name, patch))))
    }

    fn delete_node<'a>(&'a self, name: &'a NodeName, uid: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>> {
        self.invariants.node_to_be_deleted(name, uid);
        let later = afterwards!(self, name, delete_node(name, uid));
        Box::pin(self.send(request("delete", "nodes", name, false), self.inner.delete_node(name, uid), later))
    }

    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>> {
        let later = afterwards!(self, name, patch_pool(name, patch));
        Box::pin(self.send(request("patch", "nodepools", name, false), self.inner.patch_pool(name, patch), later))
    }

    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let asked = request("patch", "nodepools/status", name, patch.version.is_some());
        let later = afterwards!(self, name, patch_pool_status(name, patch));
        Box::pin(self.send(asked, self.inner.patch_pool_status(name, patch), later))
    }

    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>> {
        let asked = request("patch", "nodeclasses", class, true);
        Box::pin(self.pass(asked, self.inner.patch_class(class, patch)))
    }

    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let asked = request("patch", "nodeclasses/status", class, false);
        Box::pin(self.pass(asked, self.inner.patch_class_status(class, patch)))
    }

    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        patch: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let inner = self.inner.patch_overlay_status(name, patch);
        Box::pin(async move {
            let asked = request("patch", "nodeoverlays/status", &name, patch.version.is_some());
            self.pass(asked, inner).await
        })
    }

    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        patch: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let asked = request("patch", "capacitybuffers/status", key, patch.version.is_some());
        Box::pin(self.pass(asked, self.inner.patch_buffer_status(key, patch)))
    }

    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let later = move |after| {
            let (cluster, pod, uid, node) = (self.clone(), pod.clone(), uid.clone(), node.cloned());
            tokio::spawn(async move {
                sleep(after).await;
                let answer = cluster.inner.nominate(&pod, &uid, node.as_ref()).await;
                cluster.landed(&pod.to_string(), "nominate", &answer);
            });
        };
        let asked = request("patch", "pods/status", pod, false);
        Box::pin(self.send(asked, self.inner.nominate(pod, uid, node), Some(later)))
    }

    fn evict<'a>(&'a self, pod: &'a ObjectKey, uid: &'a PodUid) -> BoxFuture<'a, Result<(), Error>> {
        self.invariants.pod_to_be_evicted(uid);
        let later = afterwards!(self, pod, evict(pod, uid));
        Box::pin(self.send(request("create", "pods/eviction", pod, false), self.inner.evict(pod, uid), later))
    }

    fn delete_pod<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        grace_seconds: i64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.invariants.pod_to_be_deleted(uid, grace_seconds);
        let later = afterwards!(self, pod, delete_pod(pod, uid; grace_seconds));
        let call = self.inner.delete_pod(pod, uid, grace_seconds);
        Box::pin(self.send(request("delete", "pods", pod, false), call, later))
    }

    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.announce(announcement)
    }

    fn renew_lease<'a>(&'a self, holder: &'a str, record: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move {
            self.invariants.lease_asked(holder);
            let call = async {
                let answer = self.inner.renew_lease(holder, record).await;
                if answer.as_ref().is_ok_and(|lease| lease.holder == holder) {
                    self.invariants.lease_got(holder);
                }
                answer
            };
            self.pass(request("update", "leases", &"", false), call).await
        })
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.release_lease(holder)
    }
}
