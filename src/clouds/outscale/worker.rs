//! What a worker's machine configuration must be, so that machines that are told it join the cluster.

use serde_json::Value;

use super::documents::{Documents, told};
use super::talos::{TAINTS, flag};
use super::yaml;

/// What a worker cannot do without.
const NEEDED: [&str; 4] = ["/machine/token", "/machine/ca/crt", "/cluster/token", "/cluster/ca/crt"];
/// What belongs to the control plane and to nobody's user data.
const NOT_FOR_WORKERS: [&str; 5] = [
    "/machine/ca/key",
    "/cluster/ca/key",
    "/cluster/aggregatorCA/key",
    "/cluster/serviceAccount/key",
    "/cluster/etcd/ca/key",
];
/// Kubelet flags that Talos keeps to itself, and those that would make all nodes one.
const NOT_FOR_KUBELETS: [&str; 8] = [
    "bootstrap-kubeconfig",
    "kubeconfig",
    "container-runtime",
    "container-runtime-endpoint",
    "config",
    "cert-dir",
    "provider-id",
    "hostname-override",
];
/// Kinds of documents that Talos refuses beside a field of the machine document, which joiner writes or needs.
const NOT_BESIDE: [(&str, &str); 4] = [
    ("KubeNodeConfig", "machine.nodeLabels"),
    ("KubeletConfig", "machine.kubelet"),
    ("KubeClusterConfig", "cluster.controlPlane.endpoint"),
    ("KubeAPIServerCAConfig", "cluster.ca"),
];
const ENDPOINT: &str = "/cluster/controlPlane/endpoint";

/// What is wrong with a configuration: a sentence for each fault, with the field and the remedy.
pub(super) fn faults(documents: &Documents, named_by_claim: bool) -> Vec<String> {
    let mut judge = Judge { documents, faults: Vec::new() };
    judge.membership();
    judge.kubelet();
    judge.node(named_by_claim);
    judge.others();
    judge.faults
}

/// Whether nodes take the full name that the metadata service tells.
pub(super) fn registers_with_fqdn(main: &Value) -> bool {
    main.pointer("/machine/kubelet/registerWithFQDN").is_some_and(yaml::is_true)
}

struct Judge<'a> {
    documents: &'a Documents,
    faults: Vec<String>,
}

impl<'a> Judge<'a> {
    fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.documents.main.pointer(pointer)
    }

    fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn wrong(&mut self, pointer: &str, what: &str) {
        self.faults.push(format!("{}: {what}", pointer.trim_start_matches('/').replace('/', ".")));
    }

    /// What makes a machine a worker of the cluster.
    fn membership(&mut self) {
        if !matches!(self.text("/machine/type"), "worker" | "join") {
            self.wrong("/machine/type", "must be worker; take the file worker.yaml that `talosctl gen config` wrote");
        }
        for pointer in NEEDED {
            if self.text(pointer).is_empty() {
                self.wrong(pointer, "is missing; without it the machine cannot join the cluster");
            }
        }
        for pointer in NOT_FOR_WORKERS {
            if !self.text(pointer).is_empty() {
                self.wrong(pointer, "is a secret of the control plane and must not be on workers; remove it");
            }
        }
        if !self.text(ENDPOINT).starts_with("https://") {
            self.wrong(ENDPOINT, "must be a URL beginning with https://; write it, or set spec.talos.clusterEndpoint");
        }
        // Where nothing is said, it is enabled.
        if self.at("/cluster/externalCloudProvider/enabled").is_some_and(|enabled| !yaml::is_true(enabled)) {
            self.wrong(
                "/cluster/externalCloudProvider/enabled",
                "must be true: the cloud controller manager gives nodes the provider ID by which they are recognised",
            );
        }
    }

    fn kubelet(&mut self) {
        let Some(args) = self.at("/machine/kubelet/extraArgs").and_then(Value::as_object) else { return };
        for name in NOT_FOR_KUBELETS {
            if args.contains_key(name) {
                self.wrong(&extra_arg(name), "cannot be set for all machines alike; remove it");
            }
        }
        if args.get(TAINTS).is_some_and(|taints| flag(taints).is_none()) {
            self.wrong(&extra_arg(TAINTS), "is neither a text nor a list of texts");
        }
    }

    /// What a machine says of its Node.
    fn node(&mut self, named_by_claim: bool) {
        if self.at("/machine/nodeTaints").and_then(Value::as_object).is_some_and(|taints| !taints.is_empty()) {
            self.wrong(
                "/machine/nodeTaints",
                "the API server refuses taints that workers give themselves; write them into the NodePool",
            );
        }
        if self.at("/machine/network/hostname").is_some() {
            self.wrong(
                "/machine/network/hostname",
                "would give all machines one name; remove it, spec.talos.nodeName says how they are called",
            );
        }
        if named_by_claim && registers_with_fqdn(&self.documents.main) {
            self.wrong(
                "/machine/kubelet/registerWithFQDN",
                "does not go with spec.talos.nodeName NodeClaim; remove one of them",
            );
        }
        if let Some(labels) = self.at("/machine/nodeLabels").filter(|labels| !labels.is_object()) {
            self.wrong(
                "/machine/nodeLabels",
                if labels.is_null() { "is empty; remove it" } else { "is no map of labels" },
            );
        }
    }

    /// The documents with a kind.
    fn others(&mut self) {
        for document in &self.documents.others {
            let kind = document["kind"].as_str().unwrap_or_default();
            if document.get("apiVersion").and_then(Value::as_str).is_none_or(str::is_empty) {
                self.faults.push(format!("{}: has no apiVersion; write apiVersion: v1alpha1", told(document)));
            }
            if kind == "HostnameConfig" && document.get("hostname").is_some() {
                self.wrong("HostnameConfig/hostname", "would give all machines one name; remove it");
            }
            if let Some((_, field)) = NOT_BESIDE.iter().find(|(other, _)| *other == kind) {
                let what = format!(
                    "Talos does not take it beside {field}, which joiner needs; remove it, and write {field} instead (as `talosctl gen config \
                     --talos-version v1.13` does)"
                );
                self.wrong(kind, &what);
            }
        }
    }
}

fn extra_arg(name: &str) -> String {
    format!("/machine/kubelet/extraArgs/{name}")
}
