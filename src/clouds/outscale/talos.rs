//! The machine configuration of Talos: judged once for a NodeClass, and made out for each machine.
//!
//! A configuration is a stream of YAML documents, of which one (with `version: v1alpha1`) is the machine's; the others go along unchanged. It
//! holds the cluster's secrets: messages name fields, never values.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::api::classes::outscale::{Kubelet, Talos, fnv};
use crate::core::facts::Taint;
use crate::core::labels::{self, Labels};

use super::yaml;

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
/// The kubelet flag with the taints of a node's first moment. The API server refuses taints that a worker gives itself later.
const TAINTS: &str = "register-with-taints";
const ENDPOINT: &str = "/cluster/controlPlane/endpoint";

/// A configuration that is fit for workers, with the NodeClass' patches in it.
#[derive(Clone, PartialEq)]
pub(super) struct Template {
    main: Value,
    others: Vec<Value>,
    named_by_claim: bool,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("documents", &(self.others.len() + 1)).finish_non_exhaustive()
    }
}

/// What is one machine's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own<'a> {
    /// Name of its NodeClaim.
    pub(super) claim: &'a str,
    /// Labels that the kubelet is to register with; those that it must not set are left out.
    pub(super) labels: &'a Labels,
    /// Taints that the node is to have from its first moment.
    pub(super) taints: &'a [Taint],
}

impl Template {
    /// Reads and judges a configuration. What is wrong comes as one sentence for each fault, with the field and the remedy.
    pub(super) fn read(text: &str, talos: &Talos, kubelet: Option<&Kubelet>) -> Result<Self, Vec<String>> {
        let (main, others) = documents(text)?;
        let mut template = Self { main, others, named_by_claim: talos.named_by_claim() };
        let mut faults = Vec::new();
        for (at, patch) in talos.patches.iter().enumerate() {
            match yaml::read(patch) {
                Ok(patch @ Value::Object(_)) => merge(&mut template.main, patch),
                Ok(_) => {
                    faults.push(format!("spec.talos.patches[{at}]: is no map; write the fields that are to change"));
                }
                Err(error) => faults.push(format!("spec.talos.patches[{at}]: {error}; write YAML or JSON")),
            }
        }
        if let Some(endpoint) = &talos.cluster_endpoint {
            merge(&mut template.main, json!({ "cluster": { "controlPlane": { "endpoint": endpoint } } }));
        }
        if let Some(kubelet) = kubelet {
            merge(&mut template.main, kubelet_patch(kubelet));
        }
        let enabled = "/cluster/externalCloudProvider/enabled";
        if template.main.pointer(enabled).is_none() {
            merge(&mut template.main, json!({ "cluster": { "externalCloudProvider": { "enabled": true } } }));
        }
        if template.registers_with_fqdn() {
            // In one word, whichever it was: what a machine was told is searched for it.
            merge(&mut template.main, json!({ "machine": { "kubelet": { "registerWithFQDN": true } } }));
        }
        template.judge(&mut faults);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    fn judge(&self, faults: &mut Vec<String>) {
        let mut wrong = |pointer: &str, what: &str| faults.push(format!("{}: {what}", dotted(pointer)));
        let text = |pointer: &str| self.main.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("/machine/type"), "worker" | "join") {
            wrong("/machine/type", "must be worker; take the file worker.yaml that `talosctl gen config` wrote");
        }
        for pointer in NEEDED.into_iter().filter(|pointer| text(pointer).is_empty()) {
            wrong(pointer, "is missing; without it the machine cannot join the cluster");
        }
        for pointer in NOT_FOR_WORKERS.into_iter().filter(|pointer| !text(pointer).is_empty()) {
            wrong(pointer, "is a secret of the control plane and must not be on workers; remove it");
        }
        if !text(ENDPOINT).starts_with("https://") {
            wrong(ENDPOINT, "must be a URL beginning with https://; write it, or set spec.talos.clusterEndpoint");
        }
        if !self.main.pointer("/cluster/externalCloudProvider/enabled").is_some_and(yaml::is_true) {
            wrong(
                "/cluster/externalCloudProvider/enabled",
                "must be true: the cloud controller manager gives nodes the provider ID by which they are recognised",
            );
        }
        let args = self.main.pointer("/machine/kubelet/extraArgs").and_then(Value::as_object);
        for name in NOT_FOR_KUBELETS {
            if args.is_some_and(|args| args.contains_key(name)) {
                wrong(&format!("/machine/kubelet/extraArgs/{name}"), "cannot be set for all machines alike; remove it");
            }
        }
        if args.and_then(|args| args.get(TAINTS)).is_some_and(|taints| flag(taints).is_none()) {
            wrong("/machine/kubelet/extraArgs/register-with-taints", "is neither a text nor a list of texts");
        }
        if self.main.pointer("/machine/nodeTaints").and_then(Value::as_object).is_some_and(|taints| !taints.is_empty())
        {
            wrong(
                "/machine/nodeTaints",
                "the API server refuses taints that workers give themselves; write them into the NodePool",
            );
        }
        if self.main.pointer("/machine/network/hostname").is_some() {
            wrong(
                "/machine/network/hostname",
                "would give all machines one name; remove it, spec.talos.nodeName says how they are called",
            );
        }
        for document in &self.others {
            match document["kind"].as_str() {
                Some("HostnameConfig") if document.get("hostname").is_some() => {
                    wrong("HostnameConfig/hostname", "would give all machines one name; remove it");
                }
                Some("KubeNodeConfig") => {
                    wrong(
                        "KubeNodeConfig",
                        "cannot be combined with what joiner writes into the machine document; remove it",
                    );
                }
                _ => {}
            }
        }
        if self.named_by_claim && self.registers_with_fqdn() {
            wrong(
                "/machine/kubelet/registerWithFQDN",
                "does not go with spec.talos.nodeName NodeClaim; remove one of them",
            );
        }
        if let Some(size) = self.main.pointer("/machine/nodeLabels").filter(|labels| !labels.is_object()) {
            wrong("/machine/nodeLabels", if size.is_null() { "is empty; remove it" } else { "is no map of labels" });
        }
    }

    /// Whether nodes take the full name that the metadata service tells.
    pub(super) fn registers_with_fqdn(&self) -> bool {
        self.main.pointer("/machine/kubelet/registerWithFQDN").is_some_and(yaml::is_true)
    }

    /// The hash of all that is the same for every machine.
    pub(super) fn hash(&self) -> String {
        let text =
            serde_json::to_vec(&(&self.main, &self.others, self.named_by_claim)).expect("JSON values can be written");
        fnv(&text)
    }

    /// The configuration of one machine.
    pub(super) fn made_out_for(&self, own: Own<'_>) -> String {
        let mut main = self.main.clone();
        let args = self.main.pointer("/machine/kubelet/extraArgs").and_then(|args| args.get(TAINTS));
        let taints = taints(args.and_then(flag).unwrap_or_default(), own.taints);
        let node_labels: Map<String, Value> = own
            .labels
            .iter()
            .filter(|(key, value)| may_label_itself(key) && !value.is_empty())
            .map(|(key, value)| (key.to_string(), Value::from(&**value)))
            .collect();
        merge(
            &mut main,
            json!({ "machine": { "kubelet": { "extraArgs": { TAINTS: taints } }, "nodeLabels": node_labels } }),
        );
        let mut others = self.others.clone();
        if self.named_by_claim {
            match others.iter_mut().find(|document| document["kind"] == "HostnameConfig") {
                Some(document) => {
                    merge(document, json!({ "auto": "off", "hostname": own.claim }));
                }
                None => merge(&mut main, json!({ "machine": { "network": { "hostname": own.claim } } })),
            }
        }
        let documents = std::iter::once(&main).chain(&others);
        documents.map(yaml::write).collect::<Vec<_>>().join("\n---\n") + "\n"
    }
}

/// What the kubelet keeps and takes, as Talos wants it.
fn kubelet_patch(kubelet: &Kubelet) -> Value {
    let mut config = Map::new();
    if let Some(pods) = kubelet.max_pods {
        config.insert("maxPods".to_owned(), pods.into());
    }
    for (field, reserved) in [("systemReserved", &kubelet.system_reserved), ("kubeReserved", &kubelet.kube_reserved)] {
        if let Some(reserved) = reserved {
            let amounts: Map<_, _> =
                reserved.iter().map(|(name, amount)| (name.clone(), amount.as_str().into())).collect();
            config.insert(field.to_owned(), amounts.into());
        }
    }
    json!({ "machine": { "kubelet": { "extraConfig": config } } })
}

/// The documents of a configuration: the machine's own, and the others.
fn documents(text: &str) -> Result<(Value, Vec<Value>), Vec<String>> {
    let mut main = None;
    let mut others = Vec::new();
    for (at, part) in parts(text).iter().enumerate() {
        let value = yaml::read(part).map_err(|error| vec![format!("document {}: {error}; write YAML", at + 1)])?;
        match value {
            Value::Null => {}
            Value::Object(_) if value.get("kind").is_some() => others.push(value),
            Value::Object(_) if value["version"] == "v1alpha1" && main.is_none() => main = Some(value),
            Value::Object(_) if value["version"] == "v1alpha1" => {
                return Err(vec![format!("document {}: is a second machine configuration; leave one", at + 1)]);
            }
            _ => {
                return Err(vec![format!(
                    "document {}: is no machine configuration; it must have version: v1alpha1",
                    at + 1
                )]);
            }
        }
    }
    main.map(|main| (main, others)).ok_or_else(|| {
        vec!["has no document with version: v1alpha1; store the file worker.yaml of `talosctl gen config`".to_owned()]
    })
}

fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.retain(|part| part.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')));
    parts
}

/// A JSON merge patch (RFC 7386).
fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Some(fields) = into.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// A kubelet flag: a text, or a list of texts in newer versions of Talos.
fn flag(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => {
            Some(text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
        }
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// The taints of a node's first moment: the configuration's, the NodeClaim's, and the one that keeps pods away until it is recognised.
fn taints(mut all: Vec<String>, own: &[Taint]) -> String {
    let unregistered = format!("{}=:NoExecute", labels::UNREGISTERED_TAINT);
    let own = own.iter().map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect.as_str()));
    for taint in own.chain([unregistered]) {
        if !all.contains(&taint) {
            all.push(taint);
        }
    }
    all.join(",")
}

/// Whether the API server lets a kubelet set this label on its own node (admission plugin NodeRestriction).
fn may_label_itself(key: &str) -> bool {
    let domain = labels::domain(key);
    let is_in = |parent: &str| domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'));
    if is_in("node-restriction.kubernetes.io") || key == labels::HOSTNAME {
        return false;
    }
    if !is_in("kubernetes.io") && !is_in("k8s.io") {
        return true;
    }
    is_in("kubelet.kubernetes.io")
        || is_in("node.kubernetes.io")
        || [labels::ZONE, labels::REGION, labels::ARCH, labels::OS].contains(&key)
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
#[path = "talos_tests.rs"]
mod tests;
