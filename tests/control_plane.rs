//! The control plane of the end-to-end tests itself: pods run on fake nodes, kube-apiserver can go and come back, `ServiceAccounts` are
//! held to their rights, helm installs, and nothing is left behind.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::controlplane::{ControlPlane, eventually};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;

const LIMIT: Duration = Duration::from_mins(1);

const NODE: &str = r"
apiVersion: v1
kind: Node
metadata:
  name: fake-1
  annotations:
    kwok.x-k8s.io/node: fake
  labels:
    kubernetes.io/hostname: fake-1
status:
  allocatable: { cpu: '4', memory: 16Gi, pods: '110' }
  capacity: { cpu: '4', memory: 16Gi, pods: '110' }
";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 3
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - name: web
          image: web
          resources: { requests: { cpu: '1', memory: 1Gi } }
";

const CHART: &str = r"
apiVersion: v2
name: reader
version: 0.1.0
kubeVersion: '>=1.30.0-0'
";

/// The template of [`CHART`].
const READER: &str = r"
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader, namespace: {{ .Release.Namespace }} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: reader }
rules:
  - { apiGroups: [''], resources: [nodes], verbs: [list] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: reader }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader }
subjects:
  - { kind: ServiceAccount, name: reader, namespace: {{ .Release.Namespace }} }
";

/// The programs that run from the folder of a control plane, by their command lines. Without `/proc` there is none to be seen.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().expect("temporary folders have plain names");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let command_lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    command_lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(dir)).collect()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn pods_of_a_deployment_run_on_a_fake_node_and_nothing_is_left_behind() {
    let cluster = ControlPlane::start();
    let dir = cluster.dir().to_owned();
    cluster.namespace("shop");
    cluster.apply(DEPLOYMENT);
    cluster.kubectl("wait deployment/web -n shop --for=jsonpath={.status.unavailableReplicas}=3 --timeout=60s");
    cluster.kubectl("wait pod --all -n shop --for=condition=PodScheduled=false --timeout=60s");

    cluster.apply(NODE);
    cluster.kubectl("rollout status deployment/web -n shop --timeout=60s");
    let places = cluster.kubectl("get pods -n shop -o jsonpath={range.items[*]}{.spec.nodeName}={.status.phase},{end}");
    assert_eq!(places, "fake-1=Running,fake-1=Running,fake-1=Running,");

    if cfg!(target_os = "linux") {
        assert_eq!(processes_of(&dir).len(), 5, "etcd, three of Kubernetes and kwok: {:?}", processes_of(&dir));
    }
    drop(cluster);
    assert_eq!(processes_of(&dir), Vec::<String>::new());
    assert!(!dir.exists(), "{} is still there", dir.display());
}

#[tokio::test]
#[ignore = "needs a control plane: tests/controlplane"]
async fn the_service_account_of_a_helm_chart_may_do_what_its_role_says_and_no_more() {
    let cluster = ControlPlane::start_with(&["--without=kwok,kube-scheduler"]);
    cluster.apply(NODE);
    let chart = cluster.dir().join("chart");
    fs::create_dir_all(chart.join("templates")).expect("the control plane's folder is ours");
    fs::write(chart.join("Chart.yaml"), CHART).expect("the control plane's folder is ours");
    fs::write(chart.join("templates/reader.yaml"), READER).expect("the control plane's folder is ours");
    let chart = chart.to_str().expect("temporary folders have plain names");
    cluster.helm(&["install", "reader", chart, "--namespace", "shop", "--create-namespace"]);
    let kubeconfig = cluster.kubeconfig_for_service_account("shop", "reader");
    let nodes: Api<Node> = Api::all(cluster.client(&kubeconfig).await);
    let listed = nodes.list(&ListParams::default()).await.expect("the role allows it");
    assert_eq!(listed.items.len(), 1);
    let refused = nodes.get("fake-1").await.expect_err("the role does not allow it");
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn the_api_server_comes_back_as_it_was_and_no_child_outlives_a_killed_supervisor() {
    let mut cluster = ControlPlane::start_with(&["--without=kwok"]);
    cluster.namespace("before");
    cluster.stop_apiserver();
    let refused = cluster.try_kubectl(&["get", "namespace", "before"], None).expect_err("kube-apiserver is stopped");
    assert!(refused.contains("refused"), "{refused}");
    cluster.start_apiserver();
    assert_eq!(cluster.kubectl("get namespace before -o name"), "namespace/before\n");
    cluster.tell("kill kube-apiserver");
    cluster.start_apiserver();
    cluster.namespace("after"); // so kube-controller-manager has found it again

    let dir = cluster.dir().to_owned();
    cluster.kill_supervisor();
    eventually("all components are gone", LIMIT, || processes_of(&dir).is_empty().then_some(()));
}
