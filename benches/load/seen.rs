//! What a bystander sees of a load: pods nominated and bound, NodeClaims created, Nodes opened, and when.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{BoxStream, SelectAll, StreamExt};
use joiner::api::nodeclaim::NodeClaim;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use tokio::time::Instant;

/// Where a pod was to go, and where it went.
#[derive(Default)]
struct Way {
    nominated: Option<String>,
    bound: Option<String>,
}

/// What became of the pods of one part of the load.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// Bound to the very node that they were first nominated to.
    as_nominated: usize,
    /// Bound to another.
    elsewhere: usize,
    /// Placed by kube-scheduler before they were nominated.
    without_nomination: usize,
}

/// Something that changed.
enum Change {
    Pod { name: String, nominated: Option<String>, bound: Option<String> },
    Claim(String),
    Node { name: String, open: bool },
}

/// All that was seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    pods: BTreeMap<String, Way>,
    bound: usize,
    open: BTreeSet<String>,
    /// Names of all NodeClaims there were.
    pub(crate) claims: BTreeSet<String>,
    pub(crate) last_pod: Option<Instant>,
    pub(crate) first_claim: Option<Instant>,
    pub(crate) last_claim: Option<Instant>,
    pub(crate) last_open: Option<Instant>,
    pub(crate) last_bound: Option<Instant>,
}

/// Watches that run.
pub(crate) struct Watch {
    seen: Seen,
    changes: SelectAll<BoxStream<'static, Change>>,
}

impl Seen {
    /// Begins to watch; the lists that watches begin with are over when this returns, or nearly so.
    pub(crate) fn watch(client: &Client, namespace: &str) -> Watch {
        let pods = watcher(Api::<Pod>::namespaced(client.clone(), namespace), Config::default());
        let claims = watcher(Api::<PartialObjectMeta<NodeClaim>>::all(client.clone()), Config::default());
        let nodes = watcher(Api::<Node>::all(client.clone()), Config::default());
        let pods = pods.default_backoff().applied_objects().filter_map(async |pod| pod.ok().map(of_pod));
        let claims = claims.default_backoff().applied_objects();
        let claims = claims.filter_map(async |claim| claim.ok().map(|claim| Change::Claim(claim.name_any())));
        let nodes =
            nodes.default_backoff().applied_objects().filter_map(async |node| node.ok().map(|node| of_node(&node)));
        Watch {
            seen: Self::default(),
            changes: futures::stream::select_all([pods.boxed(), claims.boxed(), nodes.boxed()]),
        }
    }

    fn see(&mut self, change: Change) {
        let now = Some(Instant::now());
        match change {
            Change::Pod { name, nominated, bound } => {
                if !self.pods.contains_key(&name) {
                    self.last_pod = now;
                }
                let way = self.pods.entry(name).or_default();
                if way.nominated.is_none() {
                    way.nominated = nominated;
                }
                if way.bound.is_none() && bound.is_some() {
                    way.bound = bound;
                    self.bound += 1;
                    self.last_bound = now;
                }
            }
            Change::Claim(name) => {
                self.first_claim = self.first_claim.or(now);
                if self.claims.insert(name) {
                    self.last_claim = now;
                }
            }
            Change::Node { name, open } => {
                if open && self.open.insert(name) {
                    self.last_open = now;
                }
            }
        }
    }

    /// What became of the pods that are bound, by the part of the load that the names of their Deployments begin with.
    pub(crate) fn parts(&self) -> BTreeMap<String, Part> {
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        for (name, way) in self.pods.iter().filter(|(_, way)| way.bound.is_some()) {
            // A pod has the name of its Deployment (the part and a number), a hash and a suffix.
            let part = name.rsplitn(4, '-').last().unwrap_or(name);
            let part = parts.entry(part.to_owned()).or_default();
            match &way.nominated {
                None => part.without_nomination += 1,
                nominated if *nominated == way.bound => part.as_nominated += 1,
                Some(_) => part.elsewhere += 1,
            }
        }
        parts
    }
}

impl Watch {
    /// Watches until so many pods are bound.
    pub(crate) async fn until_bound(mut self, pods: usize) -> Seen {
        while self.seen.bound < pods {
            let change = self.changes.next().await.expect("watches do not end");
            self.seen.see(change);
        }
        self.seen
    }
}

fn of_pod(pod: Pod) -> Change {
    let name = pod.name_any();
    let nominated = pod.status.and_then(|status| status.nominated_node_name);
    Change::Pod { name, nominated, bound: pod.spec.and_then(|spec| spec.node_name) }
}

fn of_node(node: &Node) -> Change {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    Change::Node { name: node.name_any(), open: !taints.iter().any(|taint| taint.key == "karpenter.sh/unregistered") }
}
