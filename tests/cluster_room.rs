//! The client of `cluster` and the KWOK cloud against a real API server: what only it can say about preconditions, patches, budgets.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::controlplane::{ControlPlane, eventually};
use futures::StreamExt;
use joiner::api::classes::kwok::KwokNodeClass;
use joiner::clouds::catalog::generated;
use joiner::clouds::kwok::{CLASS_GROUP, CLASS_KIND, Kwok};
use joiner::clouds::{Cloud, Deletion, LaunchSpec};
use joiner::cluster::convert::ClassKind;
use joiner::cluster::{
    Announcement, ClaimPatch, ClaimStatusPatch, Cluster, Error, KubeCluster, NodePatch, Options, PoolPatch,
    PoolStatusPatch, Regarding,
};
use joiner::core::facts::{ClaimDraft, Condition, Effect, Fact, Kind, NodeClass, OwnerClaim, Pool, Status, Taint};
use joiner::core::ids::{ClassRef, NodeName, ObjectKey, PodUid};
use joiner::core::labels;
use joiner::core::requirements::{Operator, Requirement};
use joiner::core::resources::Resources;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

const LIMIT: Duration = Duration::from_mins(1);

const POOL: &str = r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: { name: default }
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      requirements: [{ key: kubernetes.io/os, operator: In, values: [linux] }]
      nodeClassRef: { group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default }
";

const PODS: &str = r"
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: shop, labels: { app: web } }
spec: { containers: [{ name: web, image: web, resources: { requests: { cpu: 100m } } }] }
---
apiVersion: v1
kind: Pod
metadata: { name: free, namespace: shop }
spec: { containers: [{ name: web, image: web }] }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: web, namespace: shop }
spec: { minAvailable: 1, selector: { matchLabels: { app: web } } }
";

fn cluster(client: Client) -> KubeCluster {
    let mut options = Options::new(Arc::new(|| "2026-11-21T12:00:00Z".parse().expect("it is a time")));
    options.classes = vec![ClassKind::of::<KwokNodeClass>(CLASS_GROUP, "v1alpha1", CLASS_KIND, "kwoknodeclasses")];
    options.restricted_domains = vec![CLASS_GROUP];
    options.page_size = 2;
    KubeCluster::new(client, options)
}

/// What one full list of everything says of NodePools, NodeClasses and pods.
async fn first_list(cluster: &KubeCluster) -> (Arc<Pool>, Arc<NodeClass>, Vec<Arc<joiner::core::facts::Pod>>) {
    let mut facts = cluster.facts();
    let (mut pool, mut class, mut pods, mut missing) = (None, None, Vec::new(), Kind::ALL.to_vec());
    while !missing.is_empty() {
        let fact = tokio::time::timeout(LIMIT, facts.next()).await.expect("watches answer").expect("without end");
        match fact {
            Fact::PoolSeen(seen) => pool = Some(seen),
            Fact::ClassSeen(seen) => class = Some(seen),
            Fact::PodSeen(seen) => pods.push(seen),
            Fact::Relisted(kind) => missing.retain(|other| *other != kind),
            _ => {}
        }
    }
    (pool.expect("there is a NodePool"), class.expect("there is a NodeClass"), pods)
}

fn draft(pool: &Pool) -> ClaimDraft {
    ClaimDraft {
        name: "default-1".into(),
        pool: pool.name.clone(),
        pool_uid: pool.uid.clone(),
        labels: Arc::new([(labels::NODEPOOL.into(), "default".into())].into()),
        annotations: Arc::new([(labels::NODEPOOL_HASH.into(), Arc::clone(&pool.hash))].into()),
        requirements: Arc::new([
            Requirement::new(labels::INSTANCE_TYPE, Operator::In, ["c-1x-amd64-linux"]),
            Requirement::new(labels::OS, Operator::In, ["linux"]),
        ]),
        requests: Resources::new().with("cpu", 100).with("memory", 64 * 1024 * 1024 * 1000).with("pods", 1000),
        taints: Vec::new(),
        startup_taints: vec![Taint::new("example.com/start", Effect::NoSchedule)],
        class: ClassRef { group: CLASS_GROUP.into(), kind: CLASS_KIND.into(), name: "default".into() },
        termination_grace: Some(Duration::from_secs(90)),
        expire_after: None,
    }
}

fn ready(kind: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: Status::True,
        reason: kind.into(),
        message: "".into(),
        since: "2026-11-21T12:00:00Z".parse().expect("it is a time"),
        generation: 1,
    }
}

#[tokio::test]
#[ignore = "needs a control plane: tests/controlplane"]
async fn the_rooms_that_speak_to_a_real_api_server_are_understood() {
    let plane = ControlPlane::start_with(&["--without=kwok,kube-scheduler"]);
    // The API library's own client would repeat an eviction that a budget forbids until it times out.
    drop(plane.client(&plane.kubeconfig()).await);
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("the control plane wrote it");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = KubeCluster::client_of(config.expect("it names the cluster")).expect("it is complete");
    let cluster = cluster(client.clone());
    let missing = cluster.check().await.expect_err("nothing is installed yet").to_string();
    assert!(missing.contains("nodepools.karpenter.sh/v1, nodeclaims.karpenter.sh/v1, kwoknodeclasses"), "{missing}");
    plane.apply(&joiner::api::crds::yaml());
    plane.kubectl("wait crd --all --for=condition=Established --timeout=60s");
    eventually("the definitions are served", LIMIT, || {
        plane.try_kubectl(&["get", "nodepools,nodeclaims,kwoknodeclasses"], None).ok()
    });
    assert!(cluster.check().await.expect("all is installed").starts_with("v1."));
    plane.namespace("shop");
    plane.apply(POOL);
    plane.apply(PODS);

    let (pool, class, pods) = first_list(&cluster).await;
    assert_eq!((pool.errors.len(), pool.disruption.budgets.len(), pods.len()), (0, 1, 2));
    assert!(pool.hash.parse::<u64>().is_ok());
    pool_is_written(&plane, &cluster, &pool).await;
    let claim = claim_is_written(&cluster, &pool).await;
    node_is_made_and_taken_over(&cluster, client.clone(), claim, class).await;
    for pod in &pods {
        assert_eq!(pod.shape.broken, None);
    }
    pods_are_nominated_and_evicted(&plane, &cluster, client.clone()).await;
    events_and_lease(&plane, &cluster, &pool).await;
}

async fn pool_is_written(plane: &ControlPlane, cluster: &KubeCluster, pool: &Pool) {
    let patch = PoolPatch { annotations: [(labels::NODEPOOL_HASH.into(), Arc::clone(&pool.hash))].into() };
    cluster.patch_pool(&pool.name, &patch).await.expect("annotations are taken");
    let patch = PoolStatusPatch {
        nodes: Some(0),
        resources: Some(Resources::new().with("cpu", 1500).with("nodes", 0).with("nvidia.com/gpu", 1000)),
        conditions: Some(vec![ready("Ready")]),
        ..PoolStatusPatch::default()
    };
    cluster.patch_pool_status(&pool.name, &patch).await.expect("status is taken");
    let patch = PoolStatusPatch {
        resources: Some(Resources::new().with("cpu", 1000).with("nodes", 0)),
        without_resources: vec!["nvidia.com/gpu".into()],
        ..PoolStatusPatch::default()
    };
    cluster.patch_pool_status(&pool.name, &patch).await.expect("status is taken");
    let left = plane.kubectl(&format!("get nodepool {} -o jsonpath={{.status.resources}}", pool.name));
    assert_eq!(left.trim(), r#"{"cpu":"1","nodes":"0"}"#);
}

async fn claim_is_written(cluster: &KubeCluster, pool: &Pool) -> Arc<joiner::core::facts::Claim> {
    let draft = draft(pool);
    let created = cluster.create_claim(&draft).await.expect("the draft is valid");
    assert_eq!(
        (&created.broken, &created.requirements, &created.requests),
        (&None, &draft.requirements.to_vec(), &draft.requests)
    );
    assert_eq!((created.termination_grace, created.expire_after), (draft.termination_grace, None));
    assert_eq!(created.owner_pool, Some(pool.uid.clone()));
    assert!(matches!(cluster.create_claim(&draft).await, Err(Error::Exists(_))));
    let finalizers = |names: &[&str]| Some(names.iter().map(|name| Arc::from(*name)).collect());
    let patch = ClaimPatch {
        version: Some(Arc::clone(&created.version)),
        finalizers: finalizers(&[labels::TERMINATION_FINALIZER]),
        ..ClaimPatch::default()
    };
    let patched = cluster.patch_claim(&created.name, &patch).await.expect("the version is current");
    assert!(patched.has_finalizer());
    assert!(matches!(cluster.patch_claim(&created.name, &patch).await, Err(Error::Conflict(_))));
    let status = ClaimStatusPatch {
        provider_id: Some("kwok://x".into()),
        capacity: Some(draft.requests.clone()),
        conditions: Some(vec![ready("Launched")]),
        ..ClaimStatusPatch::default()
    };
    let patched = cluster.patch_claim_status(&created.name, &status).await.expect("status is taken");
    assert!(patched.is("Launched") && patched.capacity == draft.requests);
    assert_eq!(cluster.list_claims().await.expect("they can be listed").len(), 1);
    // No write of ours sends the spec back: it is fixed, and quantities in it may be written otherwise than we would.
    let release = ClaimPatch {
        version: Some(Arc::clone(&patched.version)),
        finalizers: finalizers(&[]),
        ..ClaimPatch::default()
    };
    let released = cluster.patch_claim(&patched.name, &release).await.expect("the spec is not touched");
    assert_eq!((released.has_finalizer(), &released.requests), (false, &draft.requests));
    let hold = ClaimPatch { version: Some(Arc::clone(&released.version)), ..patch };
    let patched = cluster.patch_claim(&released.name, &hold).await.expect("the version is current");
    let error = cluster.patch_claim(&"none".into(), &ClaimPatch::default()).await;
    assert!(matches!(error, Err(Error::NotFound(_))), "{error:?}");
    let mut invalid = draft;
    invalid.name = "Not A Name".into();
    let error = cluster.create_claim(&invalid).await;
    assert!(matches!(error, Err(Error::Invalid { .. })), "{error:?}");
    patched
}

async fn node_is_made_and_taken_over(
    cluster: &KubeCluster,
    client: Client,
    claim: Arc<joiner::core::facts::Claim>,
    class: Arc<NodeClass>,
) {
    let kwok = Kwok::new(client.clone(), generated());
    let candidates: Vec<_> =
        generated().into_iter().filter(|t| t.name.as_str() == "c-1x-amd64-linux").map(Arc::new).collect();
    let spec = LaunchSpec { token: claim.uid.clone(), claim: Arc::clone(&claim), class, candidates };
    let machine = kwok.create(&spec).await.expect("a Node can be made");
    // kube-controller-manager adds labels of its own meanwhile, so only identities are compared.
    assert_eq!(kwok.create(&spec).await.expect("again is no harm").id, machine.id);
    let found = kwok.find(&claim.uid).await.expect("it can be found");
    assert_eq!(found.iter().map(|found| &found.id).collect::<Vec<_>>(), [&machine.id]);
    assert_eq!(machine.token, Some(claim.uid.clone()));
    let nodes: Api<Node> = Api::all(client);
    let name = machine.id.as_str().trim_start_matches("kwok://").to_owned();
    let node = nodes.get(&name).await.expect("the Node is there");
    let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref()).expect("the status is kept");
    assert_eq!(allocatable["cpu"].0, "900m");
    let mut taken = NodePatch {
        version: Some("1".into()),
        labels: [(labels::REGISTERED.into(), "true".into())].into(),
        taints: Some(vec![Taint::new("example.com/start", Effect::NoSchedule)]),
        finalizers: Some(vec![labels::TERMINATION_FINALIZER.into()]),
        owner: Some(OwnerClaim::of(&claim)),
        ..NodePatch::default()
    };
    let node_name = NodeName::from(name.as_str());
    assert!(matches!(cluster.patch_node(&node_name, &taken).await, Err(Error::Conflict(_))));
    patch_current(cluster, &nodes, &node_name, &mut taken).await;
    let node = nodes.get(&name).await.expect("the Node is there");
    let taints = node.spec.as_ref().and_then(|s| s.taints.clone()).unwrap_or_default();
    let has = |key: &str| taints.iter().any(|taint| taint.key == key);
    assert!(has("example.com/start") && !has(labels::UNREGISTERED_TAINT), "{taints:?}");
    assert_eq!(node.metadata.finalizers.as_deref(), Some(&[labels::TERMINATION_FINALIZER.to_owned()][..]));
    let owners = node.metadata.owner_references.unwrap_or_default();
    assert_eq!((owners.len(), owners[0].uid.as_str(), owners[0].controller), (1, claim.uid.as_str(), None));
    kwok.reboot(&machine.id, "op").await.expect("the boot ID can be changed");
    let node = nodes.get(&name).await.expect("the Node is there");
    let status = node.status.clone().unwrap_or_default();
    assert_eq!(status.node_info.map(|info| info.boot_id).as_deref(), Some("kwok-op"));

    let uid = node.metadata.uid.clone().unwrap_or_default();
    let error = cluster.delete_node(&node_name, &"another".into()).await;
    assert!(matches!(error, Err(Error::NotFound(_))), "{error:?}");
    cluster.delete_node(&node_name, &uid.as_str().into()).await.expect("it is this one");
    assert_eq!(kwok.delete(&machine.id).await.expect("it terminates"), Deletion::Gone);
    assert_eq!(kwok.get(&machine.id).await.expect("it can be asked for").machine(), None);
    let mut released = NodePatch { finalizers: Some(Vec::new()), ..NodePatch::default() };
    patch_current(cluster, &nodes, &node_name, &mut released).await;
    assert!(nodes.get_opt(&name).await.expect("it can be asked for").is_none());
    cluster.delete_claim(&claim.name, &claim.uid).await.expect("it is there");
}

/// Patches a Node as its actor would: kube-controller-manager writes to it too, so a conflict means to look again.
async fn patch_current(cluster: &KubeCluster, nodes: &Api<Node>, name: &NodeName, patch: &mut NodePatch) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        assert!(attempts < 20, "somebody writes to {name} without end");
        let node = nodes.get(name.as_str()).await.expect("the Node is there");
        patch.version = node.metadata.resource_version.map(Arc::from);
        match cluster.patch_node(name, patch).await {
            Err(Error::Conflict(_)) => {}
            other => return drop(other.expect("the version is current")),
        }
    }
}

async fn pods_are_nominated_and_evicted(plane: &ControlPlane, cluster: &KubeCluster, client: Client) {
    let pods: Api<Pod> = Api::namespaced(client, "shop");
    let pod = pods.get("web").await.expect("it was applied");
    let (key, uid) = (ObjectKey::new("shop", "web"), PodUid::from(pod.metadata.uid.unwrap_or_default()));
    let nominated = async || {
        let pod = pods.get("web").await.expect("it was applied");
        pod.status.and_then(|status| status.nominated_node_name)
    };
    cluster.nominate(&key, &uid, Some(&"n1".into())).await.expect("it can be nominated");
    assert_eq!(nominated().await.as_deref(), Some("n1"));
    let error = cluster.nominate(&key, &"another".into(), Some(&"n2".into())).await;
    assert!(matches!(error, Err(Error::NotFound(_))), "{error:?}");
    cluster.nominate(&key, &uid, None).await.expect("it can be cleared");
    assert_eq!(nominated().await, None);

    // A budget protects running pods only.
    let bind = r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}}"#;
    plane
        .try_kubectl(&["create", "--raw", "/api/v1/namespaces/shop/pods/web/binding", "-f", "-"], Some(bind))
        .expect("a pod can be bound to any node");
    let running = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    plane
        .try_kubectl(
            &["patch", "pod", "web", "-n", "shop", "--subresource=status", "--type=merge", "-p", running],
            None,
        )
        .expect("a status can be written");
    plane.kubectl("wait pdb/web -n shop --for=jsonpath={.status.currentHealthy}=1 --timeout=30s");
    let error = cluster.evict(&key, &uid).await;
    assert!(matches!(&error, Err(Error::Budget { budget: Some(budget), .. }) if budget == "web"), "{error:?}");
    let error = cluster.evict(&key, &"another".into()).await;
    assert!(matches!(error, Err(Error::NotFound(_) | Error::Budget { .. })), "{error:?}");
    let error = cluster.delete_pod(&key, &"another".into(), 1).await;
    assert!(matches!(error, Err(Error::NotFound(_))), "{error:?}");
    cluster.delete_pod(&key, &uid, 0).await.expect("a budget does not forbid deletion");
    let free = pods.get("free").await.expect("it was applied");
    let (key, uid) = (ObjectKey::new("shop", "free"), PodUid::from(free.metadata.uid.unwrap_or_default()));
    let error = cluster.evict(&key, &"another".into()).await;
    assert!(matches!(error, Err(Error::NotFound(_))), "{error:?}");
    cluster.evict(&key, &uid).await.expect("nothing forbids it");
    assert!(matches!(cluster.evict(&key, &uid).await, Err(Error::NotFound(_))));
}

async fn events_and_lease(plane: &ControlPlane, cluster: &KubeCluster, pool: &Pool) {
    let announcement = Announcement {
        regarding: Regarding::Pool(pool.name.clone(), pool.uid.clone()),
        warning: true,
        reason: "NoCompatibleInstanceTypes",
        message: "said by a test".to_owned(),
    };
    cluster.announce(&announcement).await.expect("an Event can be written");
    let line = plane.kubectl("get events -n default --field-selector reason=NoCompatibleInstanceTypes -o jsonpath={.items[*].source.component}/{.items[*].type}");
    assert_eq!(line, "karpenter/Warning");

    let lease = cluster.renew_lease("one", &|| None).await.expect("it is free");
    assert_eq!(lease.holder, "one");
    assert_eq!(cluster.renew_lease("one", &|| None).await.expect("it is ours").holder, "one");
    let lease = cluster.renew_lease("two", &|| None).await.expect("it can be read");
    assert!(lease.holder == "one" && lease.remaining > Duration::from_secs(10), "{lease:?}");
    cluster.release_lease("one").await.expect("it is ours");
    assert_eq!(cluster.renew_lease("two", &|| None).await.expect("it is free").holder, "two");
}
