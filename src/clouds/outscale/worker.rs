//! What a worker's machine configuration must be, so that machines that are told it join the cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::api::common::TaintEffect;
use crate::api::validation::{check_label_value, check_qualified_name};

use super::documents::{Documents, told};
use super::talos::{TAINTS, flag, may_label_itself};
use super::types::nearest;
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
/// The certificates of those who may change machines, and of the API server.
const CERTIFICATES: [&str; 2] = ["/machine/ca/crt", "/cluster/ca/crt"];
/// What a certificate in PEM begins with.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
/// The kubelet flag that says who initialises its Node.
const CLOUD_PROVIDER: &str = "cloud-provider";
/// Fields of the machine document (Talos' reference of `v1alpha1`). Talos takes no others, so a machine that is told one never joins.
const FIELDS: [&str; 5] = ["version", "debug", "persist", "machine", "cluster"];
/// Fields of `machine`, those that are outdated among them.
const MACHINE_FIELDS: [&str; 27] = [
    "type",
    "token",
    "ca",
    "acceptedCAs",
    "certSANs",
    "controlPlane",
    "kubelet",
    "pods",
    "network",
    "disks",
    "install",
    "files",
    "env",
    "time",
    "sysctls",
    "sysfs",
    "registries",
    "systemDiskEncryption",
    "features",
    "udev",
    "logging",
    "kernel",
    "seccompProfiles",
    "baseRuntimeSpecOverrides",
    "nodeLabels",
    "nodeAnnotations",
    "nodeTaints",
];
/// Fields of `cluster`, those that are outdated among them.
const CLUSTER_FIELDS: [&str; 26] = [
    "id",
    "secret",
    "controlPlane",
    "clusterName",
    "network",
    "token",
    "aescbcEncryptionSecret",
    "secretboxEncryptionSecret",
    "ca",
    "acceptedCAs",
    "aggregatorCA",
    "serviceAccount",
    "apiServer",
    "controllerManager",
    "proxy",
    "scheduler",
    "discovery",
    "etcd",
    "coreDNS",
    "externalCloudProvider",
    "extraManifests",
    "extraManifestHeaders",
    "inlineManifests",
    "adminKubeconfig",
    "allowSchedulingOnMasters",
    "allowSchedulingOnControlPlanes",
];

/// What is wrong with a configuration: a sentence for each fault, with the field and the remedy.
pub(super) fn faults(documents: &Documents, named_by_claim: bool) -> Vec<String> {
    let mut judge = Judge { documents, faults: Vec::new() };
    judge.fields();
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

    /// Fields that Talos does not know.
    fn fields(&mut self) {
        for (pointer, known) in [("", &FIELDS[..]), ("/machine", &MACHINE_FIELDS), ("/cluster", &CLUSTER_FIELDS)] {
            for field in self.at(pointer).and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys()) {
                if !known.contains(&field.as_str()) {
                    let meant = nearest(field, known.iter().copied());
                    let meant = meant.map(|meant| format!(" (is {meant} meant?)")).unwrap_or_default();
                    self.wrong(
                        &format!("{pointer}/{field}"),
                        &format!("is no field that Talos knows{meant}; correct or remove it"),
                    );
                }
            }
        }
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
        for pointer in CERTIFICATES {
            let text = self.text(pointer);
            if !text.is_empty() && !is_certificate(text) {
                self.wrong(
                    pointer,
                    "is no certificate (PEM, in base64); take the file worker.yaml that `talosctl gen config` wrote",
                );
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
        if args.get(CLOUD_PROVIDER).is_some_and(|provider| flag(provider).as_deref() != Some(&["external".to_owned()]))
        {
            self.wrong(
                &extra_arg(CLOUD_PROVIDER),
                "must be external: the cloud controller manager initialises nodes; remove it, as Talos sets it by itself",
            );
        }
        match args.get(TAINTS).map(flag) {
            Some(None) => self.wrong(&extra_arg(TAINTS), "is neither a text nor a list of texts"),
            Some(Some(taints)) => {
                for taint in taints {
                    if let Err(what) = check_taint(&taint) {
                        self.wrong(&extra_arg(TAINTS), &what);
                    }
                }
            }
            None => {}
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
        match self.at("/machine/nodeLabels") {
            None => {}
            Some(Value::Object(labels)) => {
                for (key, value) in labels {
                    if let Err(what) = check_label(key, value) {
                        self.faults.push(format!("machine.nodeLabels[{key}]: {what}"));
                    }
                }
            }
            Some(Value::Null) => self.wrong("/machine/nodeLabels", "is empty; remove it"),
            Some(_) => self.wrong("/machine/nodeLabels", "is no map of labels"),
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

/// Whether this is a certificate as Talos writes it. What is in it is not looked at.
fn is_certificate(text: &str) -> bool {
    let text: String = text.split_whitespace().collect();
    STANDARD.decode(text).is_ok_and(|pem| pem.trim_ascii_start().starts_with(CERTIFICATE))
}

/// Checks a label that a worker is to give itself.
fn check_label(key: &str, value: &Value) -> Result<(), String> {
    check_qualified_name(key)?;
    let text = yaml::text(value).ok_or("is no text; write the label's value")?;
    check_label_value(&text)?;
    if may_label_itself(key) {
        return Ok(());
    }
    Err("the API server refuses that workers give themselves this label; write it into spec.template.metadata.labels of NodePools".to_owned())
}

/// Checks a taint as the kubelet reads it: `key=value:effect`, or without a value.
fn check_taint(taint: &str) -> Result<(), String> {
    let (label, effect) = taint.split_once(':').unwrap_or((taint, ""));
    if !TaintEffect::NAMES.contains(&effect) {
        return Err(format!("{taint:?} is no taint; write key=value:{}", TaintEffect::NAMES.join(", or ")));
    }
    let (key, value) = label.split_once('=').unwrap_or((label, ""));
    check_qualified_name(key).and_then(|()| check_label_value(value)).map_err(|what| format!("taint {taint:?}: {what}"))
}
