//! [`Cluster`] on a real API server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::api::validation::CloudLabels;
use crate::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};
use crate::licence;

use super::convert::wire::Custom;
use super::convert::{self, ClassKind, ShapeStore};
use super::counts::{RequestCounts, WatchHealth};
use super::fresh::{AttachedTo, NodesById, SharedRoll};
use super::lease::Watched;
use super::permissions::Permissions;
use super::request::{JSON, MERGE, Request, VERSION};
use super::throttle::Throttle;
use super::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Cluster, Error, Lease,
    NodePatch, OverlayStatusPatch, PoolPatch, PoolStatusPatch, RecordNow, answer, events, evict, patch, watch,
};

/// How the client behaves.
#[derive(Clone)]
pub struct Options {
    /// Kinds of NodeClass to watch.
    pub classes: Vec<ClassKind>,
    /// Label domains that the cloud keeps to itself.
    pub restricted_domains: Vec<&'static str>,
    /// Labels in them that users may ask for all the same.
    pub label_keys: Vec<&'static str>,
    /// Whether Services and controllers are looked at: only default spread constraints ask for them.
    pub groups: bool,
    /// Whether NodeOverlays are looked at.
    pub overlays: bool,
    /// Whether CapacityBuffers are looked at, and what they are made from.
    pub buffers: bool,
    /// Requests a second (`KUBE_CLIENT_QPS`); zero means no limit. Watches and the lease are not counted in.
    pub qps: f64,
    /// Requests that may be sent at once (`KUBE_CLIENT_BURST`).
    pub burst: u32,
    /// How long a request may take.
    pub timeout: Duration,
    /// Objects a page while listing.
    pub page_size: u32,
    /// Namespace of the leader lease.
    pub lease_namespace: String,
    /// Name of the leader lease.
    pub lease_name: String,
    /// How long the lease lasts without renewal.
    pub lease_duration: Duration,
    /// Who writes Events: `reportingInstance`.
    pub instance: String,
    /// The wall clock, for times in leases and Events.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Options {
    /// Karpenter's defaults: 200 requests a second, 300 at once, `kube-system/karpenter-leader-election` of 15 s.
    pub fn new(clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self {
            classes: Vec::new(),
            restricted_domains: Vec::new(),
            label_keys: Vec::new(),
            groups: false,
            overlays: false,
            buffers: false,
            qps: 200.0,
            burst: 300,
            timeout: Duration::from_secs(30),
            page_size: 500,
            lease_namespace: "kube-system".to_owned(),
            lease_name: "karpenter-leader-election".to_owned(),
            lease_duration: Duration::from_secs(15),
            instance: "joiner".to_owned(),
            clock,
        }
    }

    /// Whether a NodeClaim is ours to look after: one of another cloud's NodeClass belongs to another autoscaler. One whose NodeClass cannot
    /// be read is kept, so that somebody hears of it.
    pub(super) fn is_ours(&self, claim: &Claim) -> bool {
        claim.class.is_one_of(self.classes.iter().map(|class| (class.group, class.kind)))
    }

    /// What validation of NodePools needs to know of the cloud.
    pub(super) fn cloud_labels(&self) -> CloudLabels<'_> {
        CloudLabels { restricted_domains: &self.restricted_domains, well_known: &self.label_keys }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("classes", &self.classes)
            .field("qps", &self.qps)
            .field("burst", &self.burst)
            .field("timeout", &self.timeout)
            .field("lease", &format_args!("{}/{}", self.lease_namespace, self.lease_name))
            .finish_non_exhaustive()
    }
}

/// What the client and its watches share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) options: Options,
    pub(super) shapes: ShapeStore,
    pub(super) counts: Arc<RequestCounts>,
    pub(super) health: Arc<WatchHealth>,
    pub(super) permissions: Arc<Permissions>,
}

/// A real API server.
pub struct KubeCluster {
    shared: Arc<Shared>,
    throttle: Throttle,
    lease: Watched,
    nodes_by_id: SharedRoll<NodesById>,
    attached: SharedRoll<AttachedTo>,
}

/// Where a client finds its API server and its credentials.
#[derive(Clone, Copy, Debug)]
pub enum ClientFrom<'a> {
    /// The kubeconfig that KUBECONFIG names, or `~/.kube/config`, or else the ServiceAccount of the pod that this runs in.
    Found,
    /// The kubeconfig that KUBECONFIG names, or `~/.kube/config`.
    Kubeconfig,
    /// These kubeconfigs, of which the first to say something counts.
    Files(&'a [PathBuf]),
}

/// The oldest minor version of Kubernetes 1 that joiner works with, as its chart says, too (`kubeVersion`): that of Karpenter 1.15.
const OLDEST_MINOR: u32 = 30;

/// For so long a connection may be silent while an answer is awaited.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);

/// Why joiner cannot work with a cluster.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CheckError {
    /// There are no usable credentials.
    #[error(
        "no cluster to look after: {0}; set KUBECONFIG to a kubeconfig that works, run in a cluster, or try `--cluster simulated`"
    )]
    Kubeconfig(String),
    /// The API server does not answer.
    #[error("the API server cannot be asked: {0}; check KUBECONFIG or the ServiceAccount")]
    Unreachable(Error),
    /// The API server is older than what joiner asks of it.
    #[error(
        "the API server is {0}, and joiner needs Kubernetes 1.{OLDEST_MINOR} or later; upgrade the control plane first"
    )]
    TooOld(String),
    /// Definitions are missing.
    #[error("the cluster lacks the definitions of {}; apply them with `joiner crds | kubectl apply -f -`", .0.join(", "))]
    MissingDefinitions(Vec<String>),
}

/// Whether a version is known to be too old. Some providers write `30+`.
fn is_too_old(major: &str, minor: &str) -> bool {
    let number = |text: &str| text.trim_end_matches('+').parse::<u32>().ok();
    number(major).zip(number(minor)).is_some_and(|version| version < (1, OLDEST_MINOR))
}

impl KubeCluster {
    /// A cluster behind a client. Requests are never retried in here; make the client with [`KubeCluster::client`].
    pub fn new(client: Client, options: Options) -> Self {
        let throttle = Throttle::new(options.qps, options.burst);
        let shared = Arc::new(Shared {
            client,
            options,
            shapes: ShapeStore::new(),
            counts: Arc::default(),
            health: Arc::default(),
            permissions: Arc::default(),
        });
        Self { shared, throttle, lease: Watched::default(), nodes_by_id: Mutex::default(), attached: Mutex::default() }
    }

    /// A client as this room wants it, see [`KubeCluster::client_of`].
    pub async fn client(from: ClientFrom<'_>) -> Result<Client, CheckError> {
        let unreadable = |error: &KubeconfigError| CheckError::Kubeconfig(error.to_string());
        let options = KubeConfigOptions::default();
        let config = match from {
            ClientFrom::Found => Config::infer().await.map_err(|error| CheckError::Kubeconfig(error.to_string()))?,
            ClientFrom::Kubeconfig => Config::from_kubeconfig(&options).await.map_err(|error| unreadable(&error))?,
            ClientFrom::Files(paths) => {
                let mut kubeconfig = Kubeconfig::default();
                for path in paths {
                    let next = Kubeconfig::read_from(path).and_then(|next| kubeconfig.merge(next));
                    kubeconfig = next.map_err(|error| unreadable(&error))?;
                }
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unreadable(&error))?
            }
        };
        Self::client_of(config)
    }

    /// A client as this room wants it: without the API library's own retries, which would hold an eviction for minutes while a budget
    /// forbids it.
    pub fn client_of(mut config: Config) -> Result<Client, CheckError> {
        config.default_retry = false;
        // A list and the start of a watch have no deadline else: an API server that goes without a word would leave a kind unseen for ever. Longer than the
        // API server lets a watch be silent (290 s).
        config.read_timeout = Some(LONGEST_SILENCE);
        config.reset_reader_on_write = true;
        if let Ok(agent) = concat!("joiner/", env!("CARGO_PKG_VERSION")).parse() {
            config.headers.push((http::header::USER_AGENT, agent));
        }
        Client::try_from(config).map_err(|error| CheckError::Unreachable(Error::Temporary(error.to_string())))
    }

    /// Asks for the API server's version and whether all definitions are there; the answer is the version, such as `v1.36.3`.
    pub async fn check(&self) -> Result<String, CheckError> {
        #[derive(Deserialize)]
        struct Version {
            #[serde(rename = "gitVersion")]
            text: String,
            major: String,
            minor: String,
        }
        let ask = |path: String| Request { path, ..Request::new("get", "", VERSION, "the API server's version") };
        let version: Version = self.call(&ask("/version".to_owned())).await.map_err(CheckError::Unreachable)?;
        if is_too_old(&version.major, &version.minor) {
            return Err(CheckError::TooOld(version.text));
        }
        let options = &self.shared.options;
        let classes = options.classes.iter().map(|kind| (kind.group, kind.version, kind.plural));
        let overlays = options.overlays.then_some((KARPENTER, OVERLAY_VERSION, "nodeoverlays"));
        let buffers = options.buffers.then_some((BUFFERS, BUFFER_VERSION, "capacitybuffers"));
        let mut missing = Vec::new();
        for (group, api_version, plural) in [("karpenter.sh", "v1", "nodepools"), ("karpenter.sh", "v1", "nodeclaims")]
            .into_iter()
            .chain(classes)
            .chain(overlays)
            .chain(buffers)
        {
            let request = ask(format!("/apis/{group}/{api_version}"));
            let is_there = match self.call::<APIResourceList>(&request).await {
                Ok(list) => list.resources.iter().any(|resource| resource.name == plural),
                Err(Error::NotFound(_)) => false,
                Err(error) => return Err(CheckError::Unreachable(error)),
            };
            if !is_there {
                missing.push(format!("{plural}.{group}/{api_version}"));
            }
        }
        if missing.is_empty() { Ok(version.text) } else { Err(CheckError::MissingDefinitions(missing)) }
    }

    /// Requests sent so far.
    pub fn counts(&self) -> Arc<RequestCounts> {
        Arc::clone(&self.shared.counts)
    }

    /// Which watches are in trouble.
    pub fn health(&self) -> Arc<WatchHealth> {
        Arc::clone(&self.shared.health)
    }

    /// Which permissions are missing.
    pub fn permissions(&self) -> Arc<Permissions> {
        Arc::clone(&self.shared.permissions)
    }

    pub(super) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(super) fn shapes(&self) -> &ShapeStore {
        &self.shared.shapes
    }

    pub(super) fn nodes_by_id(&self) -> &SharedRoll<NodesById> {
        &self.nodes_by_id
    }

    pub(super) fn attached(&self) -> &SharedRoll<AttachedTo> {
        &self.attached
    }

    pub(super) fn watched_lease(&self) -> &Watched {
        &self.lease
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.shared.options.clock)()
    }

    /// Sends a request when its turn has come, if it is then still to be sent, and reads the answer.
    pub(super) async fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        self.throttle.pass().await;
        if request.is_write() && !licence::holds() {
            return Err(Error::Temporary(format!("{}: {}", request.object, licence::WITHDRAWN)));
        }
        self.unthrottled(request).await
    }

    /// Sends a request at once, and reads the answer.
    pub(super) async fn unthrottled<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        self.shared.counts.count(request.verb, request.resource);
        let timeout = self.shared.options.timeout;
        let answer = tokio::time::timeout(timeout, self.exchange(request))
            .await
            .unwrap_or_else(|_| Err(answer::unclear(request, &format!("no answer within {} s", timeout.as_secs()))));
        self.shared.permissions.heard((request.verb, request.group, request.resource), &answer);
        serde_json::from_slice(&answer?)
            .map_err(|error| answer::unclear(request, &format!("the answer cannot be read ({error})")))
    }

    async fn exchange(&self, request: &Request) -> Result<Bytes, Error> {
        let response =
            self.shared.client.send(request.http()?).await.map_err(|error| answer::silence(request, &error))?;
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(|error| answer::silence(request, &error))?;
        if head.status.is_success() {
            return Ok(bytes);
        }
        let retry_after = head.headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        Err(answer::refusal(request, head.status, retry_after, &bytes))
    }

    /// Sends a request whose answer says nothing but that it worked.
    async fn tell(&self, request: Request) -> Result<(), Error> {
        self.call::<IgnoredAny>(&request).await.map(drop)
    }

    /// Sends a request that is answered with a NodeClaim.
    pub(super) async fn claim(&self, request: Request) -> Result<Arc<Claim>, Error> {
        let object: Custom = self.call(&request).await?;
        convert::claim(&object).map(Arc::new).map_err(|error| answer::unclear(&request, &error.to_string()))
    }

    /// The kind of a NodeClass whose status joiner works out, and what its status is called.
    fn own_class(&self, class: &ClassRef) -> Result<(&ClassKind, &'static str), Error> {
        let kinds = &self.shared.options.classes;
        let kind = kinds.iter().find(|kind| kind.is(class));
        kind.and_then(|kind| Some((kind, kind.status?))).ok_or_else(|| Error::Invalid {
            object: class.to_string(),
            message: "this kind is not joiner's to write; this is a defect of joiner".to_owned(),
        })
    }
}

/// Group of NodePools, NodeClaims and NodeOverlays.
pub(super) const KARPENTER: &str = "karpenter.sh";
/// Version of NodeOverlays.
pub(super) const OVERLAY_VERSION: &str = "v1alpha1";
/// Group of CapacityBuffers.
pub(super) const BUFFERS: &str = "autoscaling.x-k8s.io";
/// Version of CapacityBuffers.
pub(super) const BUFFER_VERSION: &str = "v1beta1";

/// Options of a deletion that is not meant for a namesake.
fn only_with(uid: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } })
}

impl Cluster for KubeCluster {
    fn facts(&self) -> BoxStream<'static, Fact> {
        watch::facts(&self.shared)
    }

    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        let request = Request::new("create", KARPENTER, "nodeclaims", format!("NodeClaim {}", draft.name)).at("");
        self.claim(request.with(JSON, convert::claim_object(draft))).boxed()
    }

    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        async move {
            let object = format!("NodeClaim {name}");
            let body = patch::claim(&object, patch)?;
            let request = Request::new("patch", KARPENTER, "nodeclaims", object).at(name.as_str());
            self.claim(request.with(MERGE, body)).await
        }
        .boxed()
    }

    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        let request =
            Request::new("patch", KARPENTER, "nodeclaims/status", format!("NodeClaim {name}")).at(name.as_str());
        self.claim(request.with(MERGE, patch::claim_status(patch))).boxed()
    }

    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::new("delete", KARPENTER, "nodeclaims", format!("NodeClaim {name}")).at(name.as_str());
        self.tell(request.with(JSON, only_with(uid.as_str())).guarded()).boxed()
    }

    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>> {
        self.all_claims().boxed()
    }

    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>> {
        self.claim_named(name).boxed()
    }

    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.node_named(name).boxed()
    }

    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.node_with(id).boxed()
    }

    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>> {
        self.pods_of(node).boxed()
    }

    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>> {
        self.volumes_on(node).boxed()
    }

    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>> {
        self.devices_of(node).boxed()
    }

    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        patch: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        async move {
            let object = format!("Node {name}");
            let (content, body) = patch::node(&object, patch)?;
            let request = Request::new("patch", "", "nodes", object).at(name.as_str()).with(content, body);
            self.node(&request).await.map(Some)
        }
        .boxed()
    }

    fn delete_node<'a>(&'a self, name: &'a NodeName, uid: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::new("delete", "", "nodes", format!("Node {name}")).at(name.as_str());
        self.tell(request.with(JSON, only_with(uid.as_str())).guarded()).boxed()
    }

    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::new("patch", KARPENTER, "nodepools", format!("NodePool {name}")).at(name.as_str());
        self.tell(request.with(MERGE, patch::pool(patch))).boxed()
    }

    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let request =
            Request::new("patch", KARPENTER, "nodepools/status", format!("NodePool {name}")).at(name.as_str());
        self.tell(request.with(MERGE, patch::pool_status(patch))).boxed()
    }

    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let object = class.to_string();
            let (kind, _) = self.own_class(class)?;
            let path = format!("/apis/{}/{}/{}/{}", kind.group, kind.version, kind.plural, class.name);
            let request = Request { path, ..Request::new("patch", kind.group, kind.plural, object) };
            self.tell(request.with(MERGE, patch::class(patch))).await
        }
        .boxed()
    }

    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let object = class.to_string();
            let (kind, status) = self.own_class(class)?;
            let body = patch::class_status(&object, patch)?;
            let path = format!("/apis/{}/{}/{}/{}/status", kind.group, kind.version, kind.plural, class.name);
            let request = Request { path, ..Request::new("patch", kind.group, status, object) };
            self.tell(request.with(MERGE, body)).await
        }
        .boxed()
    }

    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        patch: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::new("patch", KARPENTER, "nodeoverlays/status", format!("NodeOverlay {name}"));
        let request = request.version(OVERLAY_VERSION).at(name);
        self.tell(request.with(MERGE, patch::overlay_status(patch))).boxed()
    }

    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        patch: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let request = Request::new("patch", BUFFERS, "capacitybuffers/status", format!("CapacityBuffer {key}"));
        let request = request.version(BUFFER_VERSION).within(&key.namespace, &key.name);
        self.tell(request.with(MERGE, patch::buffer_status(patch))).boxed()
    }

    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        node: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.tell(evict::nomination(pod, uid, node)).boxed()
    }

    fn evict<'a>(&'a self, pod: &'a ObjectKey, uid: &'a PodUid) -> BoxFuture<'a, Result<(), Error>> {
        self.tell(evict::eviction(pod, uid)).boxed()
    }

    fn delete_pod<'a>(
        &'a self,
        pod: &'a ObjectKey,
        uid: &'a PodUid,
        grace_seconds: i64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.tell(evict::deletion(pod, uid, grace_seconds)).boxed()
    }

    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>> {
        self.tell(events::event(announcement, &self.options().classes, &self.options().instance, self.now())).boxed()
    }

    fn renew_lease<'a>(&'a self, holder: &'a str, record: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>> {
        self.take_lease(holder, record).boxed()
    }

    fn release_lease<'a>(&'a self, holder: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.drop_lease(holder).boxed()
    }
}

impl fmt::Debug for KubeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeCluster").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
