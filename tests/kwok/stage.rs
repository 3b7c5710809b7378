//! What every scenario stands on: the control plane with the chart installed, an empty cluster, NodePools and Deployments to try.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::controlplane::{ControlPlane, eventually, eventually_or};
use crate::common::joiner::{Joiner, Variables, chart_variables};
use crate::common::kube_api::{CLAIMS, KubeApi, NODES, POOLS, name, text};

/// How long a cluster may take to become as it should be.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

const CLASS: &str = r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: { name: default }
";

/// The stage of one scenario; the next one waits until this is dropped.
pub(crate) struct Stage {
    ground: &'static Ground,
    _turn: MutexGuard<'static, ()>,
}

/// What all scenarios share.
struct Ground {
    plane: ControlPlane,
    api: KubeApi,
    /// joiner's kubeconfig: the rights of the chart's ServiceAccount.
    kubeconfig: PathBuf,
    program: PathBuf,
    variables: Variables,
}

impl Stage {
    /// Waits for its turn, and empties the cluster. `namespace` is made for the scenario's pods.
    pub(crate) fn set(namespace: &str) -> Self {
        static GROUND: OnceLock<Ground> = OnceLock::new();
        Self::set_on(&GROUND, namespace)
    }

    /// The same on a control plane that scenarios take down and up again: no other scenario shall stand on what that leaves behind.
    pub(crate) fn set_apart(namespace: &str) -> Self {
        static GROUND: OnceLock<Ground> = OnceLock::new();
        Self::set_on(&GROUND, namespace)
    }

    fn set_on(ground: &'static OnceLock<Ground>, namespace: &str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // A scenario that failed says nothing about the next.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = Self { ground: ground.get_or_init(prepare), _turn: turn };
        stage.clear();
        stage.namespace(namespace);
        stage
    }

    /// One more namespace; the next scenario empties it.
    pub(crate) fn namespace(&self, name: &str) {
        self.plane().namespace(name);
        let mark = json!({ "metadata": { "labels": { "scenario": "" } } });
        self.api().patch(&format!("/api/v1/namespaces/{name}"), &mark);
    }

    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.ground.plane
    }

    pub(crate) fn api(&self) -> &KubeApi {
        &self.ground.api
    }

    /// Starts a joiner as the chart would; `name` is its pod's.
    #[track_caller]
    pub(crate) fn joiner(&self, name: &str) -> Joiner {
        self.joiner_with(name, &[])
    }

    /// Starts a joiner with other variables than the chart's.
    #[track_caller]
    pub(crate) fn joiner_with(&self, name: &str, changes: &[(&str, &str)]) -> Joiner {
        Joiner::start(&self.ground.program, &self.ground.kubeconfig, name, &self.variables(changes))
    }

    /// The chart's variables, with changes.
    pub(crate) fn variables(&self, changes: &[(&str, &str)]) -> Variables {
        let mut variables = self.ground.variables.clone();
        variables.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        variables
    }

    pub(crate) fn program(&self) -> &Path {
        &self.ground.program
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.ground.kubeconfig
    }

    /// Removes what earlier scenarios have left, without asking joiner: none runs now.
    fn clear(&self) {
        let api = self.api();
        for pool in api.list(POOLS) {
            api.delete(&format!("{POOLS}/{}", name(&pool)));
        }
        api.delete("/apis/karpenter.sh/v1alpha1/nodeoverlays");
        for namespace in api.list("/api/v1/namespaces?labelSelector=scenario") {
            let namespace = name(&namespace);
            api.delete(&format!("/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{namespace}/capacitybuffers"));
            api.delete(&format!("/api/v1/namespaces/{namespace}/podtemplates"));
            for kind in ["deployments", "statefulsets", "daemonsets"] {
                api.delete(&format!("/apis/apps/v1/namespaces/{namespace}/{kind}"));
            }
            api.delete(&format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"));
            eventually("the pods of earlier scenarios are gone", LIMIT, || {
                api.delete(&format!("/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"));
                api.pods(&namespace).is_empty().then_some(())
            });
            api.delete(&format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims"));
            api.delete(&format!("/api/v1/namespaces/{namespace}/events"));
        }
        for collection in ["persistentvolumes", "volumeattachments"] {
            let group = if collection == "persistentvolumes" { "/api/v1" } else { "/apis/storage.k8s.io/v1" };
            api.delete(&format!("{group}/{collection}"));
        }
        let nothing_holds = json!({ "metadata": { "finalizers": null } });
        for collection in [CLAIMS, NODES] {
            eventually("the nodes of earlier scenarios are gone", LIMIT, || {
                let left = api.list(collection);
                for object in &left {
                    let path = format!("{collection}/{}", name(object));
                    if object["metadata"]["finalizers"].is_array() && api.get(&path).is_some() {
                        api.patch(&path, &nothing_holds);
                    }
                    api.delete(&path);
                }
                left.is_empty().then_some(())
            });
        }
        // Whoever was killed does not come back to renew it.
        api.delete("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election");
    }

    /// All pods of a namespace run, and there are so many of them.
    #[track_caller]
    pub(crate) fn all_run(&self, namespace: &str, pods: usize) -> Vec<Value> {
        self.all_run_within(namespace, pods, LIMIT)
    }

    /// The same, for a crowd that takes its time.
    #[track_caller]
    pub(crate) fn all_run_within(&self, namespace: &str, pods: usize, limit: Duration) -> Vec<Value> {
        eventually_or(&format!("{pods} pods of {namespace} run"), limit, || {
            let (running, late) = self.by_run(namespace);
            all_of(pods, running, &late)
        })
    }

    /// The same, where kwok was away: it misses pods that were bound before it knew that it holds the lease of their Node, where a kubelet would ask
    /// for its own. A change shows them to it again.
    #[track_caller]
    pub(crate) fn all_run_again(&self, namespace: &str, pods: usize, limit: Duration) -> Vec<Value> {
        eventually_or(&format!("{pods} pods of {namespace} run again"), limit, || {
            let (running, late) = self.by_run(namespace);
            for pod in late.iter().filter(|pod| pod["spec"]["nodeName"].is_string()) {
                let shown = format!("testing/shown={}", text(pod, "/metadata/resourceVersion"));
                let line = ["annotate", "--overwrite", "pod", &name(pod), "--namespace", namespace, &shown];
                drop(self.plane().try_kubectl(&line, None)); // it may be gone by now
            }
            all_of(pods, running, &late)
        })
    }

    /// The pods of a namespace that run, and the others; those that are being deleted do not count.
    fn by_run(&self, namespace: &str) -> (Vec<Value>, Vec<Value>) {
        let mut pods = self.api().pods(namespace);
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods.into_iter().partition(|pod| pod["status"]["phase"] == "Running")
    }

    /// Every NodeClaim has one Node and is Ready, and every Node has one NodeClaim. Returns the NodeClaims with their Nodes.
    #[track_caller]
    pub(crate) fn settled(&self) -> Vec<(Value, Value)> {
        eventually("every NodeClaim has its Node, and every Node its NodeClaim", LIMIT, || {
            let (claims, nodes) = (self.api().list(CLAIMS), self.api().list(NODES));
            let mut owners: BTreeMap<String, Value> =
                nodes.iter().map(|node| (text(node, "/metadata/ownerReferences/0/uid"), node.clone())).collect();
            let is_ready = |claim: &Value| crate::common::kube_api::condition(claim, "Ready") == "True/Ready";
            if owners.len() != nodes.len() || claims.len() != nodes.len() || !claims.iter().all(is_ready) {
                return None;
            }
            let with_node = |claim: Value| owners.remove(&text(&claim, "/metadata/uid")).map(|node| (claim, node));
            claims.into_iter().map(with_node).collect()
        })
    }

    /// What must hold at the end of a scenario: NodeClaims and Nodes match one to one, none is there for nothing, and joiner goes in
    /// peace, without an error that the scenario did not expect. Returns the NodeClaims with their Nodes.
    #[track_caller]
    pub(crate) fn ends_well(&self, joiner: Joiner) -> Vec<(Value, Value)> {
        self.ends_well_but(joiner, &[])
    }

    /// The same, but that these Nodes may be without pods.
    #[track_caller]
    pub(crate) fn ends_well_but(&self, joiner: Joiner, empty: &[String]) -> Vec<(Value, Value)> {
        let nodes = self.settled();
        let is_daemon = |pod: &Value| text(pod, "/metadata/ownerReferences/0/kind") == "DaemonSet";
        let pods = self.api().list("/api/v1/pods");
        let used: BTreeSet<String> =
            pods.iter().filter(|pod| !is_daemon(pod)).map(|pod| text(pod, "/spec/nodeName")).collect();
        for (claim, node) in &nodes {
            // Who makes a NodeClaim by hand wants it.
            let by_hand = text(claim, "/metadata/ownerReferences/0/kind") != "NodePool";
            let node_name = name(node);
            let excused = by_hand || empty.contains(&node_name);
            assert!(excused || used.contains(&node_name), "{node_name} is there for nothing: {claim}");
        }
        assert!(joiner.stop().success());
        nodes
    }
}

impl Drop for Stage {
    #[expect(clippy::print_stderr, reason = "what the cluster looked like when a scenario failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in ["nodes,nodeclaims,nodepools,pods -A -o wide", "events -A --field-selector type=Warning"] {
                let args: Vec<&str> = ["get"].into_iter().chain(line.split(' ')).collect();
                eprintln!("{}", self.plane().try_kubectl(&args, None).unwrap_or_else(|error| error));
            }
        }
    }
}

/// The pods that run, if these are all; or how many run, and of each that does not its phase, where it is, where it is nominated to, and its conditions.
fn all_of(pods: usize, running: Vec<Value>, late: &[Value]) -> Result<Vec<Value>, String> {
    if late.is_empty() && running.len() == pods {
        return Ok(running);
    }
    let line = |pod: &Value| {
        let status = &pod["status"];
        let said = [&status["phase"], &pod["spec"]["nodeName"], &status["nominatedNodeName"], &status["conditions"]];
        format!("{}: {}", name(pod), said.map(Value::to_string).join(" "))
    };
    let told = [format!("{} run", running.len())].into_iter().chain(late.iter().map(line));
    Err(told.collect::<Vec<_>>().join("\n"))
}

fn prepare() -> Ground {
    // etcd forgets what is older than a few seconds, as it does in the field after five minutes: whoever was away is told 410.
    let plane = ControlPlane::start_with(&["--arg=kube-apiserver=--etcd-compaction-interval=5s"]);
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/joiner");
    let chart = chart.to_str().expect("the repository has a plain name");
    // The chart as it is, but for its pods: nothing here can run an image. joiner is started by the scenarios.
    // The rights of all features; which are on, the scenarios say.
    let features = "replicas=0,settings.featureGates.nodeOverlay=true,settings.featureGates.capacityBuffer=true";
    plane.helm(&["install", "joiner", chart, "--namespace", "kube-system", "--set", features]);
    plane.apply(CLASS);
    let kubeconfig = plane.kubeconfig_for_service_account("kube-system", "joiner");
    let api = KubeApi::new(&plane, &plane.kubeconfig());
    let mut variables = chart_variables(&api);
    variables.remove("FEATURE_GATES");
    // A build that ends while the scenarios run must not change what they try.
    let program = plane.dir().join("joiner");
    fs::copy(env!("CARGO_BIN_EXE_joiner"), &program).expect("the binary under test can be copied");
    Ground { plane, api, kubeconfig, program, variables }
}

/// A NodePool's spec of small machines (four processors, of which 3.9 can be used), so that a burst needs many.
pub(crate) fn small_machines() -> Value {
    json!({ "template": { "spec": { "requirements": [
        { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
        { "key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"] },
    ] } } })
}

/// A NodePool; `changes` are merged into its spec.
pub(crate) fn pool(name: &str, changes: &Value) -> String {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "disruption": { "consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty" },
            "template": {
                "metadata": { "labels": { "testing/cluster": "yes" }, "annotations": { "testing/note": "kept" } },
                "spec": {
                    "requirements": [
                        { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
                        { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
                        { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
                    ],
                    "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                    "expireAfter": "Never",
                },
            },
        },
    });
    merge(&mut pool["spec"], changes);
    pool.to_string()
}

/// A Deployment of so many pods with these requests; `changes` are merged into the pods' spec.
pub(crate) fn deployment(
    namespace: &str,
    name: &str,
    replicas: u32,
    [cpu, memory]: [&str; 2],
    changes: &Value,
) -> String {
    let labels = json!({ "app": name });
    let mut pod = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{ "name": "main", "image": "main", "resources": { "requests": { "cpu": cpu, "memory": memory } } }],
    });
    merge(&mut pod, changes);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
    .to_string()
}

/// A required spread of the pods of an app.
pub(crate) fn spread(app: &str, key: &str, skew: u32) -> Value {
    json!({ "topologySpreadConstraints": [{
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": app } },
    }] })
}

/// Takes the changes over, objects field by field.
pub(crate) fn merge(into: &mut Value, changes: &Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(into.entry(key).or_insert(Value::Null), change);
            }
        }
        (into, changes) => into.clone_from(changes),
    }
}
