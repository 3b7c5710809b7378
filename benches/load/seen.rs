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
    /// Names of all NodeClaims there were.
    pub(crate) claims: BTreeSet<String>,
    nodes: BTreeSet<String>,
    open: BTreeSet<String>,
    moments: BTreeMap<Step, Vec<Instant>>,
}

/// What happens in a burst, once for each pod or node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Step {
    PodCreated,
    NodeClaimCreated,
    NodeThere,
    /// The first nomination of a pod.
    PodNominated,
    NodeOpen,
    PodBound,
}

/// Seconds until a step had happened to the first, to a half, to 99 of 100, and to the last to which it happened.
#[derive(Serialize)]
pub(crate) struct Took {
    first: f64,
    half: f64,
    pub(crate) most: f64,
    pub(crate) last: f64,
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
        match change {
            Change::Pod { name, nominated, bound } => {
                if !self.pods.contains_key(&name) {
                    self.note(Step::PodCreated);
                }
                let way = self.pods.entry(name).or_default();
                let newly_nominated = way.nominated.is_none() && nominated.is_some();
                let newly_bound = way.bound.is_none() && bound.is_some();
                way.nominated = way.nominated.take().or(nominated);
                way.bound = way.bound.take().or(bound);
                if newly_nominated {
                    self.note(Step::PodNominated);
                }
                if newly_bound {
                    self.note(Step::PodBound);
                }
            }
            Change::Claim(name) => {
                if self.claims.insert(name) {
                    self.note(Step::NodeClaimCreated);
                }
            }
            Change::Node { name, open } => {
                if self.nodes.insert(name.clone()) {
                    self.note(Step::NodeThere);
                }
                if open && self.open.insert(name) {
                    self.note(Step::NodeOpen);
                }
            }
        }
    }

    fn note(&mut self, step: Step) {
        self.moments.entry(step).or_default().push(Instant::now());
    }

    /// How often a step has happened.
    fn count(&self, step: Step) -> usize {
        self.moments.get(&step).map_or(0, Vec::len)
    }

    /// How long each step took.
    pub(crate) fn took(&self, began: Instant) -> BTreeMap<Step, Took> {
        let took = |moments: &Vec<Instant>| {
            let percent = |percent: usize| {
                let at = (moments.len() * percent).div_ceil(100).saturating_sub(1);
                moments.get(at).map_or(0.0, |moment| (*moment - began).as_secs_f64())
            };
            Took { first: percent(0), half: percent(50), most: percent(99), last: percent(100) }
        };
        self.moments.iter().map(|(step, moments)| (*step, took(moments))).collect()
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
        while self.seen.count(Step::PodBound) < pods {
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
