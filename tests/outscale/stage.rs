//! What the scenario stands on: the control plane with the chart installed for Outscale, an account, machines, Secrets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use joiner::clouds::outscale::oapi::wire::Vm;
use serde_json::Value;

use crate::account::{Account, Counts};
use crate::common::controlplane::{ControlPlane, eventually};
use crate::common::joiner::{Joiner, Variables, chart_variables};
use crate::common::kube_api::{CLAIMS, KubeApi, NODES, condition, name, text};
use crate::machines::Machines;

/// How long a cluster may take to become as it should be: on a bad day some of it waits for calls that are given up after two minutes only.
pub(crate) const LIMIT: Duration = Duration::from_mins(4);
/// NodeClasses.
pub(crate) const CLASSES: &str = "/apis/karpenter.outscale.com/v1alpha1/outscalenodeclasses";
/// The cluster's name, and how the cloud controller manager knows it.
pub(crate) const CLUSTER: [&str; 2] = ["demo", "demo-id"];

/// A worker's configuration, in part. Talos would need more; joiner reads no more than this.
const WORKER: &str = r#"version: v1alpha1
machine: { type: worker, token: mmmmmm.0123456789abcdef, ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCm1hY2hpbmUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= } }
cluster: { token: cccccc.0123456789abcdef, ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmNsdXN0ZXIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= }, controlPlane: { endpoint: "https://10.0.0.2:6443" } }
"#;

/// A cluster, an account, and whom joiner does not play.
pub(crate) struct Stage {
    machines: Machines,
    pub(crate) account: Account,
    pub(crate) api: KubeApi,
    /// joiner's kubeconfig: the rights of the chart's ServiceAccount.
    kubeconfig: PathBuf,
    program: PathBuf,
    variables: Variables,
    pub(crate) plane: ControlPlane,
}

impl Stage {
    /// Sets it up. `flags` are those of the fake.
    pub(crate) fn set(flags: &[&str]) -> Self {
        let plane = ControlPlane::start();
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/joiner");
        let chart = chart.to_str().expect("the repository has a plain name");
        let [cluster, id] = CLUSTER;
        // The chart as it is, but for its pods: nothing here can run an image.
        let values = format!(
            "replicas=0,cloud=outscale,outscale.clusterName={cluster},outscale.clusterID={id},outscale.keysSecret=outscale-keys,\
             outscale.machineConfigSecrets={{talos-worker,talos-odd}}"
        );
        plane.helm(&["install", "joiner", chart, "--namespace", "kube-system", "--set", &values]);
        let kubeconfig = plane.kubeconfig_for_service_account("kube-system", "joiner");
        let api = KubeApi::new(&plane, &plane.kubeconfig());
        let variables = chart_variables(&api, "joiner");
        assert_eq!((&*variables["JOINER_CLOUD"], &*variables["OSC_SECRET"]), ("outscale", "outscale-keys"));
        // A build that ends while the scenario runs must not change what it tries.
        let program = plane.dir().join("joiner");
        fs::copy(env!("CARGO_BIN_EXE_joiner"), &program).expect("the binary under test can be copied");
        let account = Account::open(&program, flags);
        let word = |name: &str| account.variables[name].as_str();
        let keys = [
            ("access_key", word("OSC_ACCESS_KEY")),
            ("secret_key", word("OSC_SECRET_KEY")),
            ("region", word("OSC_REGION")),
            ("endpoint", word("OSC_ENDPOINT_API")),
        ];
        let secrets = [
            secret("outscale-keys", &keys),
            secret("talos-worker", &[("worker.yaml", WORKER)]),
            secret("talos-odd", &[("controlplane.yaml", WORKER)]),
        ];
        plane.apply(&secrets.join("\n---\n"));
        let machines = Machines::play(account.eye(), KubeApi::new(&plane, &plane.kubeconfig()), id);
        Self { machines, account, api, kubeconfig, program, variables, plane }
    }

    /// Ends everything in order: what the fake counted.
    #[track_caller]
    pub(crate) fn close(self) -> Counts {
        drop(self.machines);
        self.account.close()
    }

    /// Starts a joiner as the chart would; `name` is its pod's.
    #[track_caller]
    pub(crate) fn joiner(&self, name: &str) -> Joiner {
        Joiner::start(&self.program, &self.kubeconfig, name, &self.variables)
    }

    /// Every NodeClaim is Ready and has one Node and one machine, and neither Nodes nor machines are left over. Returns the machines' IDs by
    /// the NodeClaims' names.
    #[track_caller]
    pub(crate) fn settled(&self) -> BTreeMap<String, String> {
        let _shown = Shown(self);
        eventually("every NodeClaim has its Node and its machine, and nothing else is there", LIMIT, || {
            let (claims, nodes) = (self.api.list(CLAIMS), self.api.list(NODES));
            let alive = self.account.alive();
            let mut machines: BTreeMap<&str, &str> =
                alive.iter().filter_map(|vm| Some((vm.client_token.as_deref()?, vm.vm_id.as_str()))).collect();
            let mut owners: BTreeMap<String, String> = nodes
                .iter()
                .map(|node| (text(node, "/metadata/ownerReferences/0/uid"), text(node, "/spec/providerID")))
                .collect();
            if claims.len() != nodes.len() || claims.len() != alive.len() {
                return None;
            }
            let pair = |claim: &Value| {
                let (uid, id) = (text(claim, "/metadata/uid"), text(claim, "/status/providerID"));
                let machine = machines.remove(uid.as_str())?;
                let agree = owners.remove(&uid)? == id && id.ends_with(&format!("/{machine}"));
                (agree && condition(claim, "Ready") == "True/Ready").then(|| (name(claim), machine.to_owned()))
            };
            claims.iter().map(pair).collect()
        })
    }
}

impl Stage {
    /// What the world looks like, for whoever has to find out why a scenario failed.
    fn show(&self) -> String {
        let get = ["get", "outscalenodeclasses,nodeclaims,nodes,pods", "-A", "-o", "wide"];
        let seen = self.plane.try_kubectl(&get, None).unwrap_or_else(|error| error);
        let vm = |vm: &Vm| format!("{} {} {:?} {:?}\n", vm.vm_id, vm.state.as_str(), vm.client_token, vm.tags);
        let vms: Vec<String> = self.account.glance().iter().map(vm).collect();
        format!("{seen}\n{}", vms.concat())
    }
}

/// Shows the world when the test fails while this is there.
struct Shown<'a>(&'a Stage);

impl Drop for Shown<'_> {
    #[expect(clippy::print_stderr, reason = "what the world looked like when a scenario failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.show());
        }
    }
}

fn secret(name: &str, data: &[(&str, &str)]) -> String {
    let data: BTreeMap<&str, &str> = data.iter().copied().collect();
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "namespace": "kube-system" },
        "stringData": data,
    })
    .to_string()
}
