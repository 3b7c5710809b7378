//! The machine configuration of Talos: judged once for a NodeClass, and made out for each machine.
//!
//! The machine's own document gets what is one machine's own; the others go along unchanged.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::api::classes::outscale::{Kubelet, Talos, fnv};
use crate::core::facts::Taint;
use crate::core::labels::{self, Labels};

use super::documents::{Documents, merge};
use super::worker;

/// The kubelet flag with the taints of a node's first moment. The API server refuses taints that a worker gives itself later.
pub(super) const TAINTS: &str = "register-with-taints";

/// Old names of labels that a kubelet may set on its own node.
const OUTDATED_LABELS: [&str; 5] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// A configuration that is fit for workers, with the NodeClass' patches in it.
#[derive(Clone, PartialEq)]
pub(super) struct Template {
    documents: Documents,
    named_by_claim: bool,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("documents", &(self.documents.others.len() + 1)).finish_non_exhaustive()
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

/// A fault of a configuration, and where somebody wrote it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wrong {
    /// The field of the NodeClass that brought it in; nothing when it stands in the Secret.
    pub(super) field: Option<String>,
    /// What is wrong, with the field of the configuration and the remedy.
    pub(super) what: String,
}

impl Wrong {
    /// What is wrong now. A fault that was there before the field's change is not the field's.
    fn after(field: Option<&str>, before: &[Self], documents: &Documents, named_by_claim: bool) -> Vec<Self> {
        let faults = worker::faults(documents, named_by_claim).into_iter();
        let known = |what: &String| before.iter().find(|known| known.what == *what).cloned();
        faults.map(|what| known(&what).unwrap_or_else(|| Self { field: field.map(str::to_owned), what })).collect()
    }
}

impl Template {
    /// Reads a configuration, puts in what the NodeClass says of it, and judges it.
    pub(super) fn read(text: &str, talos: &Talos, kubelet: Option<&Kubelet>) -> Result<Self, Vec<Wrong>> {
        let mut documents = Documents::read(text).map_err(|what| vec![Wrong { field: None, what }])?;
        let named_by_claim = talos.named_by_claim();
        let mut wrong = Wrong::after(None, &[], &documents, named_by_claim);
        let mut unread = Vec::new();
        for (at, patch) in talos.patches.iter().enumerate() {
            let field = format!("spec.talos.patches[{at}]");
            match documents.patch(patch) {
                Ok(()) => wrong = Wrong::after(Some(&field), &wrong, &documents, named_by_claim),
                Err(what) => unread.push(Wrong { field: Some(field), what }),
            }
        }
        if let Some(endpoint) = &talos.cluster_endpoint {
            merge(&mut documents.main, json!({ "cluster": { "controlPlane": { "endpoint": endpoint } } }));
            wrong = Wrong::after(Some("spec.talos.clusterEndpoint"), &wrong, &documents, named_by_claim);
        }
        if let Some(kubelet) = kubelet {
            merge(&mut documents.main, kubelet_patch(kubelet));
            wrong = Wrong::after(Some("spec.kubelet"), &wrong, &documents, named_by_claim);
        }
        wrong.extend(unread);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let main = &mut documents.main;
        if main.pointer("/cluster/externalCloudProvider/enabled").is_none() {
            merge(main, json!({ "cluster": { "externalCloudProvider": { "enabled": true } } }));
        }
        if worker::registers_with_fqdn(main) {
            // In one word, whichever it was: what a machine was told is searched for it.
            merge(main, json!({ "machine": { "kubelet": { "registerWithFQDN": true } } }));
        }
        Ok(Self { documents, named_by_claim })
    }

    /// Whether nodes take the full name that the metadata service tells.
    pub(super) fn registers_with_fqdn(&self) -> bool {
        worker::registers_with_fqdn(&self.documents.main)
    }

    /// The hash of all that is the same for every machine.
    pub(super) fn hash(&self) -> String {
        let Documents { main, others } = &self.documents;
        let text = serde_json::to_vec(&(main, others, self.named_by_claim)).expect("JSON values can be written");
        fnv(&text)
    }

    /// The configuration of one machine.
    pub(super) fn made_out_for(&self, own: Own<'_>) -> String {
        let mut documents = self.documents.clone();
        let Documents { main, others } = &mut documents;
        let args = self.documents.main.pointer("/machine/kubelet/extraArgs").and_then(|args| args.get(TAINTS));
        let taints = taints(args.and_then(flag).unwrap_or_default(), own.taints);
        let node_labels: Map<String, Value> = own
            .labels
            .iter()
            .filter(|(key, value)| may_label_itself(key) && !value.is_empty())
            .map(|(key, value)| (key.to_string(), Value::from(&**value)))
            .collect();
        merge(
            main,
            json!({ "machine": { "kubelet": { "extraArgs": { TAINTS: taints } }, "nodeLabels": node_labels } }),
        );
        if self.named_by_claim {
            match others.iter_mut().find(|document| document["kind"] == "HostnameConfig") {
                Some(document) => merge(document, json!({ "auto": "off", "hostname": own.claim })),
                None => merge(main, json!({ "machine": { "network": { "hostname": own.claim } } })),
            }
        }
        documents.written()
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

/// A kubelet flag: a text, or a list of texts in newer versions of Talos.
pub(super) fn flag(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => {
            Some(text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
        }
        Value::Array(all) => {
            let all: Vec<&str> = all.iter().map(Value::as_str).collect::<Option<_>>()?;
            flag(&Value::from(all.join(",")))
        }
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
pub(super) fn may_label_itself(key: &str) -> bool {
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
        || OUTDATED_LABELS.contains(&key)
}

#[cfg(test)]
#[path = "talos_tests.rs"]
mod tests;
