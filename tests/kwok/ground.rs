//! What scenarios stand on: a control plane, and joiner's chart installed in it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::controlplane::{ControlPlane, eventually};
use crate::common::joiner::{Variables, chart_variables};
use crate::common::kube_api::KubeApi;
use crate::stage::{LIMIT, merge};

const CLASS: &str = r"
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: { name: default }
";

/// A control plane with a NodeClass, and the chart installed as release `joiner`.
pub(crate) struct Ground {
    pub(crate) plane: ControlPlane,
    pub(crate) api: KubeApi,
    pub(crate) program: PathBuf,
    pub(crate) release: Release,
}

/// What an installed chart gives joiner.
pub(crate) struct Release {
    /// The rights of its ServiceAccount, and nothing more.
    pub(crate) kubeconfig: PathBuf,
    pub(crate) variables: Variables,
}

impl Ground {
    /// The chart with its default values.
    pub(crate) fn usual() -> Self {
        // etcd forgets what is older than a few seconds, as it does in the field after five minutes: whoever was away is told 410.
        let plane = ControlPlane::start_with(&["--arg=kube-apiserver=--etcd-compaction-interval=5s"]);
        Self::new(plane, &json!({}))
    }

    /// A kube-scheduler that gives these spread constraints to pods without any, and a chart whose values say so.
    pub(crate) fn with_default_spreads(constraints: &Value) -> Self {
        let flags = ["--without=kube-scheduler", "--arg=kube-scheduler=--config=kube-scheduler.json"];
        let plane = ControlPlane::start_with(&flags);
        let version = "kubescheduler.config.k8s.io/v1";
        let spreads = json!({
            "apiVersion": version,
            "kind": "PodTopologySpreadArgs",
            "defaultingType": "List",
            "defaultConstraints": constraints,
        });
        // With a file, kube-scheduler overlooks the flags that say the same.
        let configuration = json!({
            "apiVersion": version,
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": { "kubeconfig": "kube-scheduler.kubeconfig", "qps": 500, "burst": 1000 },
            "profiles": [{
                "schedulerName": "default-scheduler",
                "pluginConfig": [{ "name": "PodTopologySpread", "args": spreads }],
            }],
        });
        fs::write(plane.dir().join("kube-scheduler.json"), configuration.to_string())
            .expect("the folder of the control plane is ours");
        plane.tell("start kube-scheduler");
        let known = json!({ "podTopologySpread": { "defaultConstraints": constraints } });
        Self::new(plane, &json!({ "settings": { "schedulerConfig": known.to_string() } }))
    }

    fn new(plane: ControlPlane, values: &Value) -> Self {
        let api = KubeApi::new(&plane, &plane.kubeconfig());
        let release = install(&plane, &api, "joiner", values);
        plane.apply(CLASS);
        // A build that ends while the scenarios run must not change what they try.
        let program = plane.dir().join("joiner");
        fs::copy(env!("CARGO_BIN_EXE_joiner"), &program).expect("the binary under test can be copied");
        Self { plane, api, program, release }
    }

    /// Installs the chart once more, under a name of its own.
    #[track_caller]
    pub(crate) fn install(&self, name: &str, values: &Value) -> Release {
        install(&self.plane, &self.api, name, values)
    }
}

/// Installs the chart as it is, but for its pods: nothing here can run an image. joiner is started by the scenarios.
#[track_caller]
fn install(plane: &ControlPlane, api: &KubeApi, name: &str, values: &Value) -> Release {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/joiner");
    let mut all = json!({ "replicas": 0 });
    merge(&mut all, values);
    let file = plane.dir().join(format!("{name}.values.json"));
    fs::write(&file, all.to_string()).expect("the folder of the control plane is ours");
    let [chart, file] = [&chart, &file].map(|path| path.to_str().expect("it is a plain name"));
    plane.helm(&["install", name, chart, "--namespace", "kube-system", "--values", file]);
    // The API server's authorizer hears of new rules by a watch.
    let account = format!("--as=system:serviceaccount:kube-system:{name}");
    for right in [["list", "nodeclaims"], ["list", "kwoknodeclasses"], ["update", "leases/karpenter-leader-election"]] {
        let asked = ["auth", "can-i", right[0], right[1], "--namespace", "kube-system", &account];
        eventually(&format!("{name} may {}", right.join(" ")), LIMIT, || plane.try_kubectl(&asked, None).ok());
    }
    let kubeconfig = plane.kubeconfig_for_service_account("kube-system", name);
    Release { kubeconfig, variables: chart_variables(api, name) }
}
