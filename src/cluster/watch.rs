//! Watches: one per kind, each healing its own gaps, merged into one stream of facts.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::core::facts::{Fact, Kind, NodeClass, ScalableKind};
use crate::core::ids::{ClassRef, NodeName, ObjectKey, PodUid, PoolName};
use crate::telemetry::log::chain;

use super::Error;
use super::client::{BUFFER_VERSION, BUFFERS, OVERLAY_VERSION, Shared};
use super::convert::wire::{self, Custom};
use super::convert::{self, ClassKind, Unreadable};

/// What is watched: the kind as facts call it, its API group, and its plural.
#[derive(Clone, Copy)]
struct Watched {
    kind: Kind,
    group: &'static str,
    plural: &'static str,
}

/// A kind of the API server's own, or of ours.
fn watched(kind: Kind, group: &'static str, plural: &'static str) -> Watched {
    Watched { kind, group, plural }
}

/// Everything that happens, of every kind.
pub(super) fn facts(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let client = || shared.client.clone();
    let karpenter = |kind: &str, plural: &str| custom(shared, "karpenter.sh", "v1", kind, plural);
    let own = Arc::clone(shared);
    let pods =
        watch(shared, Api::<wire::Pod>::all(client()), watched(Kind::Pod, "", "pods"), move |event| match event {
            Change::Seen(pod) => convert::pod(&pod, &own.shapes).map(|pod| Fact::PodSeen(Arc::new(pod))),
            Change::Gone(pod) => Ok(Fact::PodGone(PodUid::from(pod.metadata.uid.unwrap_or_default()))),
        });
    let nodes =
        watch(shared, Api::<wire::Node>::all(client()), watched(Kind::Node, "", "nodes"), |event| match event {
            Change::Seen(node) => convert::node(&node).map(|node| Fact::NodeSeen(Arc::new(node))),
            Change::Gone(node) => Ok(Fact::NodeGone(NodeName::from(node.metadata.name.unwrap_or_default()))),
        });
    let own = Arc::clone(shared);
    let claims = watch(
        shared,
        karpenter("NodeClaim", "nodeclaims"),
        watched(Kind::NodeClaim, "karpenter.sh", "nodeclaims"),
        |event| match event {
            Change::Seen(claim) => convert::claim(&claim).map(|claim| Fact::ClaimSeen(Arc::new(claim))),
            Change::Gone(claim) => {
                let (name, uid) = (claim.metadata.name.unwrap_or_default(), claim.metadata.uid.unwrap_or_default());
                Ok(Fact::ClaimGone(name.into(), uid.into()))
            }
        },
    )
    .filter(move |fact| futures::future::ready(!matches!(fact, Fact::ClaimSeen(claim) if !own.options.is_ours(claim))))
    .boxed();
    let own = Arc::clone(shared);
    let pools = watch(
        shared,
        karpenter("NodePool", "nodepools"),
        watched(Kind::NodePool, "karpenter.sh", "nodepools"),
        move |event| match event {
            Change::Seen(pool) => {
                convert::pool(&pool, &own.options.cloud_labels()).map(|pool| Fact::PoolSeen(Arc::new(pool)))
            }
            Change::Gone(pool) => Ok(Fact::PoolGone(PoolName::from(pool.metadata.name.unwrap_or_default()))),
        },
    );
    let own = Arc::clone(shared);
    let daemons = watch(
        shared,
        Api::<wire::DaemonSet>::all(client()),
        watched(Kind::DaemonSet, "apps", "daemonsets"),
        move |event| match event {
            Change::Seen(daemon) => {
                convert::daemon(&daemon, &own.shapes).map(|daemon| Fact::DaemonSeen(Arc::new(daemon)))
            }
            Change::Gone(daemon) => Ok(Fact::DaemonGone(ObjectKey::new(
                daemon.metadata.namespace.unwrap_or_default(),
                daemon.metadata.name.unwrap_or_default(),
            ))),
        },
    );
    let namespaces =
        watch(shared, Api::<wire::Namespace>::all(client()), watched(Kind::Namespace, "", "namespaces"), |event| {
            match event {
                Change::Seen(namespace) => {
                    convert::namespace(&namespace).map(|(name, labels)| Fact::NamespaceSeen(name, labels))
                }
                Change::Gone(namespace) => Ok(Fact::NamespaceGone(namespace.metadata.name.unwrap_or_default().into())),
            }
        });
    let all = [pods, nodes, claims, pools, classes(shared), daemons, namespaces, pod_budgets(shared)];
    let more = volumes(shared).into_iter().chain(groups(shared)).chain(features(shared));
    stream::select_all(all.into_iter().chain(more)).boxed()
}

/// PodDisruptionBudgets.
fn pod_budgets(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let api = Api::<wire::PodDisruptionBudget>::all(shared.client.clone());
    watch(shared, api, watched(Kind::PodBudget, "policy", "poddisruptionbudgets"), |event| match event {
        Change::Seen(budget) => convert::pod_budget(&budget).map(|budget| Fact::PodBudgetSeen(Arc::new(budget))),
        Change::Gone(budget) => Ok(Fact::PodBudgetGone(key(budget.metadata))),
    })
}

/// Services and controllers, if anybody asks for them; else there are none.
fn groups(shared: &Arc<Shared>) -> Vec<BoxStream<'static, Fact>> {
    /// One of the kinds; `$fold` reads the selector of its objects.
    macro_rules! group {
        ($name:ident, $group:literal, $plural:literal, $fold:path) => {{
            let what = watched(Kind::$name, $group, $plural);
            watch(shared, Api::<wire::$name>::all(shared.client.clone()), what, |event| match event {
                Change::Seen(one) => {
                    $fold(Kind::$name, &one.metadata, one.spec.as_ref()).map(|group| Fact::GroupSeen(Arc::new(group)))
                }
                Change::Gone(one) => $fold(Kind::$name, &one.metadata, None).map(|group| Fact::GroupGone(group.path)),
            })
        }};
    }
    if !shared.options.groups {
        return Kind::GROUPS.map(nothing).into();
    }
    vec![
        group!(Service, "", "services", convert::plain_group),
        group!(ReplicationController, "", "replicationcontrollers", convert::plain_group),
        group!(ReplicaSet, "apps", "replicasets", convert::controller_group),
        group!(StatefulSet, "apps", "statefulsets", convert::controller_group),
    ]
}

/// Everything about optional features; of what is off, nothing is there.
fn features(shared: &Arc<Shared>) -> Vec<BoxStream<'static, Fact>> {
    let options = &shared.options;
    let mut all = vec![if options.overlays { overlays(shared) } else { nothing(Kind::NodeOverlay) }];
    if options.buffers {
        all.extend([buffers(shared), templates(shared)]);
        all.extend(ScalableKind::ALL.map(|kind| scalables(shared, kind)));
    } else {
        all.extend([Kind::CapacityBuffer, Kind::PodTemplate].map(nothing));
        all.extend(ScalableKind::ALL.map(|kind| nothing(Kind::Scalable(kind))));
    }
    all
}

/// A kind that is not looked at.
fn nothing(kind: Kind) -> BoxStream<'static, Fact> {
    stream::iter([Fact::Relisting(kind), Fact::Relisted(kind)]).chain(stream::pending()).boxed()
}

/// A kind that is read as a custom resource.
fn custom(shared: &Shared, group: &str, version: &str, kind: &str, plural: &str) -> Api<Custom> {
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::<Custom>::all_with(shared.client.clone(), &resource)
}

fn key(meta: ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default())
}

fn overlays(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let own = Arc::clone(shared);
    let api = custom(shared, "karpenter.sh", OVERLAY_VERSION, "NodeOverlay", "nodeoverlays");
    let what = watched(Kind::NodeOverlay, "karpenter.sh", "nodeoverlays");
    watch(shared, api, what, move |event| match event {
        Change::Seen(overlay) => {
            convert::overlay(&overlay, &own.options.cloud_labels()).map(|overlay| Fact::OverlaySeen(Arc::new(overlay)))
        }
        Change::Gone(overlay) => Ok(Fact::OverlayGone(overlay.metadata.name.unwrap_or_default().into())),
    })
}

fn buffers(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let api = custom(shared, BUFFERS, BUFFER_VERSION, "CapacityBuffer", "capacitybuffers");
    watch(shared, api, watched(Kind::CapacityBuffer, BUFFERS, "capacitybuffers"), |event| match event {
        Change::Seen(buffer) => convert::buffer(&buffer).map(|buffer| Fact::BufferSeen(Arc::new(buffer))),
        Change::Gone(buffer) => Ok(Fact::BufferGone(key(buffer.metadata))),
    })
}

fn templates(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let own = Arc::clone(shared);
    let api = Api::<wire::PodTemplateObject>::all(shared.client.clone());
    watch(shared, api, watched(Kind::PodTemplate, "", "podtemplates"), move |event| match event {
        Change::Seen(one) => convert::template(&one, &own.shapes).map(|one| Fact::TemplateSeen(Arc::new(one))),
        Change::Gone(one) => Ok(Fact::TemplateGone(key(one.metadata))),
    })
}

fn scalables(shared: &Arc<Shared>, kind: ScalableKind) -> BoxStream<'static, Fact> {
    let own = Arc::clone(shared);
    let plural = match kind {
        ScalableKind::Deployment => "deployments",
        ScalableKind::StatefulSet => "statefulsets",
        ScalableKind::ReplicaSet => "replicasets",
    };
    let api = custom(shared, "apps", "v1", kind.as_str(), plural);
    watch(shared, api, watched(Kind::Scalable(kind), "apps", plural), move |event| match event {
        Change::Seen(one) => convert::scalable(kind, &one, &own.shapes).map(|one| Fact::ScalableSeen(Arc::new(one))),
        Change::Gone(one) => Ok(Fact::ScalableGone(kind, key(one.metadata))),
    })
}

/// Everything about volumes.
fn volumes(shared: &Arc<Shared>) -> [BoxStream<'static, Fact>; 5] {
    const STORAGE: &str = "storage.k8s.io";
    let client = || shared.client.clone();
    let name = |meta: ObjectMeta| -> Arc<str> { meta.name.unwrap_or_default().into() };
    let claims = watch(
        shared,
        Api::<wire::PersistentVolumeClaim>::all(client()),
        watched(Kind::VolumeClaim, "", "persistentvolumeclaims"),
        |event| match event {
            Change::Seen(claim) => convert::volume_claim(&claim).map(|claim| Fact::VolumeClaimSeen(Arc::new(claim))),
            Change::Gone(claim) => Ok(Fact::VolumeClaimGone(ObjectKey::new(
                claim.metadata.namespace.unwrap_or_default(),
                claim.metadata.name.unwrap_or_default(),
            ))),
        },
    );
    let volumes = watch(
        shared,
        Api::<wire::PersistentVolume>::all(client()),
        watched(Kind::Volume, "", "persistentvolumes"),
        move |event| match event {
            Change::Seen(volume) => convert::volume(&volume).map(|volume| Fact::VolumeSeen(Arc::new(volume))),
            Change::Gone(volume) => Ok(Fact::VolumeGone(name(volume.metadata))),
        },
    );
    let classes = watch(
        shared,
        Api::<wire::StorageClass>::all(client()),
        watched(Kind::StorageClass, STORAGE, "storageclasses"),
        move |event| match event {
            Change::Seen(class) => convert::storage_class(&class).map(|class| Fact::StorageClassSeen(Arc::new(class))),
            Change::Gone(class) => Ok(Fact::StorageClassGone(name(class.metadata))),
        },
    );
    let nodes =
        watch(shared, Api::<wire::CSINode>::all(client()), watched(Kind::CsiNode, STORAGE, "csinodes"), move |event| {
            match event {
                Change::Seen(node) => convert::csi_node(&node).map(|node| Fact::CsiNodeSeen(Arc::new(node))),
                Change::Gone(node) => Ok(Fact::CsiNodeGone(name(node.metadata).into())),
            }
        });
    let attachments = watch(
        shared,
        Api::<wire::VolumeAttachment>::all(client()),
        watched(Kind::VolumeAttachment, STORAGE, "volumeattachments"),
        move |event| match event {
            Change::Seen(one) => convert::attachment(&one).map(|one| Fact::AttachmentSeen(Arc::new(one))),
            Change::Gone(one) => Ok(Fact::AttachmentGone(name(one.metadata))),
        },
    );
    [claims, volumes, classes, nodes, attachments]
}

/// What happened to an object.
enum Change<K> {
    Seen(K),
    Gone(K),
}

/// What happens to the objects of a kind. A watch that is refused after a list would go on where it was once it is allowed again, and list nothing; of a kind
/// that joiner can do without it begins anew, so that a list gives back what was withheld.
fn events<K>(
    what: Watched,
    client_page: Option<u32>,
    api: Api<K>,
) -> impl futures::Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watcher::Config { page_size: client_page, ..watcher::Config::default() };
    let begin = move || watcher::watcher(api.clone(), config.clone()).boxed();
    let lives = stream::unfold(begin(), move |mut life| {
        let begin = begin.clone();
        async move {
            let event = life.next().await?;
            let is_over = matches!(&event, Err(error) if is_withheld(what, error));
            Some((event, if is_over { begin() } else { life }))
        }
    });
    // The pauses go on from one life to the next.
    lives.backoff(Pauses::default())
}

/// First pause after a failed watch; doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause: for so long is joiner blind after an API server has come back (the library's own is 30 s).
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A failure that comes this long after the one before is the first of a new row.
const QUIET: Duration = Duration::from_mins(1);

/// The pauses between attempts to watch. A list that works does not make them shorter: where it is the watch that fails, everything would
/// be listed again and again.
#[derive(Default)]
struct Pauses {
    last: Option<(Instant, Duration)>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let pause = match self.last {
            Some((at, pause)) if now.duration_since(at) < pause + QUIET => (pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        self.last = Some((now, pause));
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {}
}

/// The facts of one kind.
fn watch<K, F>(shared: &Arc<Shared>, api: Api<K>, what: Watched, fold: F) -> BoxStream<'static, Fact>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    F: Fn(Change<K>) -> Result<Fact, Unreadable> + Send + 'static,
{
    let shared = Arc::clone(shared);
    let kind = what.kind;
    events(what, Some(shared.options.page_size), api)
        .filter_map(move |event| {
            let withheld = matches!(&event, Err(error) if is_withheld(what, error));
            let event = shared.observed(what, event);
            let fact = event.and_then(|event| match event {
                Event::Init => Some(Fact::Relisting(kind)),
                Event::InitDone => Some(Fact::Relisted(kind)),
                Event::InitApply(object) | Event::Apply(object) => {
                    fold(Change::Seen(object)).map_err(|error| shared.health.unreadable(error)).ok()
                }
                Event::Delete(object) => fold(Change::Gone(object)).ok(),
            });
            futures::future::ready(fact.or_else(|| withheld.then_some(Fact::Withheld(kind))))
        })
        .boxed()
}

/// NodeClasses of all kinds that the cloud understands, as if they were one kind.
///
/// A list that starts over says that what is not seen again is gone; with several kinds behind one, that holds only if the other kinds'
/// objects are said again too. NodeClasses are few: they are kept here for it.
fn classes(shared: &Arc<Shared>) -> BoxStream<'static, Fact> {
    let kinds = shared.options.classes.clone();
    if kinds.is_empty() {
        return stream::iter([Fact::Relisting(Kind::NodeClass), Fact::Relisted(Kind::NodeClass)])
            .chain(stream::pending())
            .boxed();
    }
    let streams = kinds.iter().enumerate().map(|(at, kind)| {
        let shared = Arc::clone(shared);
        let api = Api::<Custom>::all_with(shared.client.clone(), &kind.resource());
        let what = watched(Kind::NodeClass, kind.group, kind.plural);
        events(what, Some(shared.options.page_size), api)
            .filter_map(move |event| {
                let withheld = matches!(&event, Err(error) if is_withheld(what, error));
                let news = shared.observed(what, event).map(Some).or_else(|| withheld.then_some(None));
                futures::future::ready(news.map(|event| (at, event)))
            })
            .boxed()
    });
    let merged = stream::select_all(streams);
    let mut shelves: Vec<Shelf> = kinds.iter().map(|_| Shelf::default()).collect();
    let health = Arc::clone(&shared.health);
    merged
        .flat_map(move |(at, event)| {
            let Some(event) = event else { return stream::iter(vec![Fact::Withheld(Kind::NodeClass)]) };
            let facts = fold_class(&mut shelves, at, &kinds[at], event).unwrap_or_else(|error| {
                health.unreadable(error);
                Vec::new()
            });
            stream::iter(facts)
        })
        .boxed()
}

/// The NodeClasses of one kind.
#[derive(Default)]
struct Shelf {
    known: BTreeMap<ClassRef, Arc<NodeClass>>,
    listing: BTreeMap<ClassRef, Arc<NodeClass>>,
    is_listed: bool,
}

fn fold_class(
    shelves: &mut [Shelf],
    at: usize,
    kind: &ClassKind,
    event: Event<Custom>,
) -> Result<Vec<Fact>, Unreadable> {
    let Some(shelf) = shelves.get_mut(at) else { return Ok(Vec::new()) };
    match event {
        Event::Init => {
            shelf.listing.clear();
            Ok(Vec::new())
        }
        Event::InitApply(object) => {
            let class = Arc::new(convert::class(&object, kind)?);
            shelf.listing.insert(class.reference.clone(), class);
            Ok(Vec::new())
        }
        Event::InitDone => {
            shelf.known = std::mem::take(&mut shelf.listing);
            shelf.is_listed = true;
            if shelves.iter().any(|shelf| !shelf.is_listed) {
                return Ok(Vec::new());
            }
            let all = shelves.iter().flat_map(|shelf| shelf.known.values()).cloned().map(Fact::ClassSeen);
            let facts = std::iter::once(Fact::Relisting(Kind::NodeClass)).chain(all);
            Ok(facts.chain([Fact::Relisted(Kind::NodeClass)]).collect())
        }
        Event::Apply(object) => {
            let class = Arc::new(convert::class(&object, kind)?);
            shelf.known.insert(class.reference.clone(), Arc::clone(&class));
            Ok(vec![Fact::ClassSeen(class)])
        }
        Event::Delete(object) => {
            let reference = kind.reference(object.metadata.name.unwrap_or_default());
            shelf.known.remove(&reference);
            Ok(vec![Fact::ClassGone(reference)])
        }
    }
}

impl Shared {
    /// Counts and notes what a watch reports; errors end here, the watch goes on by itself.
    fn observed<K>(&self, what: Watched, event: watcher::Result<Event<K>>) -> Option<Event<K>> {
        match event {
            Ok(event) => {
                match event {
                    Event::Init => self.counts.count("list", what.plural),
                    Event::InitDone => self.counts.count("watch", what.plural),
                    _ => {}
                }
                if !matches!(event, Event::Init) {
                    for verb in ["list", "watch"] {
                        self.permissions.heard((verb, what.group, what.plural), &Ok(()));
                    }
                    self.health.works(what.kind);
                }
                Some(event)
            }
            // The server has forgotten where this watch was; it lists again, and that is all.
            Err(watcher::Error::WatchError(status)) if status.code == 410 => None,
            Err(error) => {
                let error = trouble(what, &error);
                if let Error::Forbidden { verb, .. } = error {
                    self.permissions.heard((verb, what.group, what.plural), &Err::<(), _>(error.clone()));
                }
                self.health.failed(what.kind, format!("watch of {}: {error}", what.plural));
                None
            }
        }
    }
}

/// Whether joiner's account lacks a permission for a kind that it can do without. Only the next list takes that back.
fn is_withheld(what: Watched, error: &watcher::Error) -> bool {
    what.kind.is_dispensable() && matches!(trouble(what, error), Error::Forbidden { .. })
}

/// What is wrong with a watch, and the remedy where there is one.
fn trouble(what: Watched, error: &watcher::Error) -> Error {
    let (verb, code, said) = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => ("list", status.code, status.message.clone()),
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => ("watch", status.code, status.message.clone()),
        _ => ("watch", 0, chain(error)),
    };
    match code {
        403 => Error::Forbidden { verb, group: what.group, resource: what.plural },
        404 => Error::Temporary(format!("{said}; apply the definitions with `joiner crds | kubectl apply -f -`")),
        _ => Error::Temporary(said),
    }
}
