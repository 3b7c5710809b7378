//! The volumes of pods as they are written, as far as there are claims behind them.

use std::sync::Arc;

use serde_json::Value;

use crate::core::facts::{Access, VolumeClaim};
use crate::core::ids::ObjectKey;

/// A volume of a workload's pods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeSource {
    /// A claim that is there by itself, by name.
    Claim(Arc<str>),
    /// `volumeClaimTemplates` of a StatefulSet: the claim `<name>-<pod>` is made with the first pod of that name, and stays.
    Template {
        /// Name of the template.
        name: Arc<str>,
        /// Its class; nothing for the default.
        class: Option<Arc<str>>,
    },
    /// An ephemeral volume: the claim `<pod>-<name>` comes and goes with the pod.
    Ephemeral {
        /// Name of the volume.
        name: Arc<str>,
        /// Its class; nothing for the default.
        class: Option<Arc<str>>,
    },
}

impl VolumeSource {
    /// The name of the claim that a pod of this name mounts.
    pub fn claim_of(&self, pod: &str) -> Arc<str> {
        match self {
            Self::Claim(name) => Arc::clone(name),
            Self::Template { name, .. } => format!("{name}-{pod}").into(),
            Self::Ephemeral { name, .. } => format!("{pod}-{name}").into(),
        }
    }

    /// The claim that a controller makes for a pod, unless there is one of that name; nothing when users make it.
    pub fn made_for(&self, pod: &ObjectKey) -> Option<VolumeClaim> {
        let (Self::Template { class, .. } | Self::Ephemeral { class, .. }) = self else { return None };
        let key = ObjectKey { namespace: Arc::clone(&pod.namespace), name: self.claim_of(&pod.name) };
        let class = class.clone();
        // It belongs to one pod anyway.
        Some(VolumeClaim {
            key,
            deleting: false,
            lost: false,
            class,
            volume: None,
            bound: false,
            access: Access::OneNode,
        })
    }
}

/// The names of the claims that a pod of this name mounts, each once.
pub fn claims_of(sources: &[VolumeSource], pod: &str) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = sources.iter().map(|source| source.claim_of(pod)).collect();
    names.sort();
    names.dedup();
    names
}

/// The volumes of a pod's spec, and those that a StatefulSet makes by its templates.
pub(super) fn sources(spec: &Value, templates: &Value) -> Vec<VolumeSource> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(Arc::<str>::from);
    let template = |template: &Value| {
        let class = text(template, "/spec/storageClassName");
        text(template, "/metadata/name").map(|name| VolumeSource::Template { name, class })
    };
    let mut all: Vec<VolumeSource> = list(templates).iter().filter_map(template).collect();
    for volume in list(&spec["volumes"]) {
        if let Some(claim) = text(&volume, "/persistentVolumeClaim/claimName") {
            all.push(VolumeSource::Claim(claim));
        } else if let Some(name) = text(&volume, "/name").filter(|_| volume["ephemeral"].is_object()) {
            let class = text(&volume, "/ephemeral/volumeClaimTemplate/spec/storageClassName");
            all.push(VolumeSource::Ephemeral { name, class });
        }
    }
    all
}
