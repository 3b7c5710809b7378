//! What every scenario begins with: its turn, an empty cluster, NodePools and Deployments to try.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::controlplane::{ControlPlane, eventually, eventually_or};
use crate::common::joiner::{Joiner, Variables};
use crate::common::kube_api::{CLAIMS, KubeApi, NODES, POOLS, condition, name, text};
use crate::ground::Ground;

/// How long a cluster may take to become as it should be.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// KWOKNodeClasses.
pub(crate) const CLASSES: &str = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";

/// The stage of one scenario; the next one waits until this is dropped.
pub(crate) struct Stage {
    ground: Arc<Ground>,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// Waits for its turn, and empties the cluster. `namespace` is made for the scenario's pods.
    pub(crate) fn set(namespace: &str) -> Self {
        static GROUND: OnceLock<Arc<Ground>> = OnceLock::new();
        Self::set_on(|| shared(&GROUND), namespace)
    }

    /// The same on a control plane that scenarios take down and up again: no other scenario shall stand on what that leaves behind.
    pub(crate) fn set_apart(namespace: &str) -> Self {
        static GROUND: OnceLock<Arc<Ground>> = OnceLock::new();
        Self::set_on(|| shared(&GROUND), namespace)
    }

    /// The same on a control plane of its own, whose kube-scheduler gives these spread constraints to pods without any.
    pub(crate) fn set_with_default_spreads(namespace: &str, constraints: &Value) -> Self {
        Self::set_on(|| Arc::new(Ground::with_default_spreads(constraints)), namespace)
    }

    fn set_on(ground: impl FnOnce() -> Arc<Ground>, namespace: &str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // A scenario that failed says nothing about the next.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = Self { ground: ground(), _turn: turn };
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
        Joiner::start(self.program(), self.kubeconfig(), name, &self.variables(changes))
    }

    /// Installs the chart once more, under the name `release` and with other values, and starts a joiner as that release would.
    #[track_caller]
    pub(crate) fn joiner_of(&self, release: &str, values: &Value) -> Joiner {
        let release = self.ground.install(release, values);
        Joiner::start(self.program(), &release.kubeconfig, "joiner-a", &release.variables)
    }

    /// The chart's variables, with changes.
    pub(crate) fn variables(&self, changes: &[(&str, &str)]) -> Variables {
        let mut variables = self.ground.release.variables.clone();
        variables.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        variables
    }

    pub(crate) fn program(&self) -> &Path {
        &self.ground.program
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.ground.release.kubeconfig
    }

    /// Removes what earlier scenarios have left, without asking joiner: none runs now.
    fn clear(&self) {
        let api = self.api();
        for pool in api.list(POOLS) {
            api.delete(&format!("{POOLS}/{}", name(&pool)));
        }
        for class in api.list(CLASSES).iter().map(name).filter(|class| class != "default") {
            api.delete(&format!("{CLASSES}/{class}"));
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
        // Those about Nodes, NodeClaims and NodePools.
        api.delete("/api/v1/namespaces/default/events");
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
            let is_ready = |claim: &Value| condition(claim, "Ready") == "True/Ready";
            if owners.len() != nodes.len() || claims.len() != nodes.len() || !claims.iter().all(is_ready) {
                return None;
            }
            let with_node = |claim: Value| owners.remove(&text(&claim, "/metadata/uid")).map(|node| (claim, node));
            claims.into_iter().map(with_node).collect()
        })
    }
}

/// A ground that is laid for the first scenario that stands on it, and stays for the others.
fn shared(ground: &OnceLock<Arc<Ground>>) -> Arc<Ground> {
    Arc::clone(ground.get_or_init(|| Arc::new(Ground::usual())))
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
