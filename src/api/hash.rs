//! The NodePool hash: a number that changes when the static part of a NodePool's template does.
//!
//! Karpenter stores it as `karpenter.sh/nodepool-hash`; NodeClaims whose number differs have drifted. It must be
//! reproduced bit for bit, or taking over a cluster would replace every node. Karpenter lets a reflection
//! library walk its Go structs, so the names hashed here are Go names, and what Go regards as zero is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::common::{NodeClassRef, Taint};
use crate::api::duration::DurationError;
use crate::api::nodepool::{NodeClaimTemplate, NodeClaimTemplateSpec, NodePool, TemplateMetadata};

/// The version of the recipe, stored as `karpenter.sh/nodepool-hash-version`; Karpenter 1.15's.
pub const NODEPOOL_HASH_VERSION: &str = "v3";

/// Seconds from the year 1, where Go counts from, to 1970.
const GO_EPOCH_TO_UNIX: i64 = 62_135_596_800;

impl NodePool {
    /// The hash of the template, to be stored as a decimal number.
    ///
    /// Covers labels, annotations, taints, startup taints, the class reference, the grace period and the
    /// expiry; requirements are compared otherwise. Fails on a duration that cannot be read.
    pub fn hash(&self) -> Result<u64, DurationError> {
        template(&self.spec.template)
    }
}

fn template(template: &NodeClaimTemplate) -> Result<u64, DurationError> {
    let mut hash = Struct::new("NodeClaimTemplate");
    hash.field("ObjectMeta", metadata(&template.metadata));
    hash.field("Spec", spec(&template.spec)?);
    Ok(hash.0)
}

fn metadata(metadata: &TemplateMetadata) -> Option<u64> {
    if metadata.is_absent() {
        return None;
    }
    let mut hash = Struct::new("ObjectMeta");
    hash.field("Labels", metadata.labels.as_ref().map(map));
    hash.field("Annotations", metadata.annotations.as_ref().map(map));
    Some(hash.0)
}

/// Never zero: without a class reference the schema admits no NodePool.
fn spec(spec: &NodeClaimTemplateSpec) -> Result<Option<u64>, DurationError> {
    let mut hash = Struct::new("NodeClaimTemplateSpec");
    hash.field("Taints", spec.taints.as_deref().map(taints));
    hash.field("StartupTaints", spec.startup_taints.as_deref().map(taints));
    hash.field("NodeClassRef", Some(class_ref(&spec.node_class_ref)));
    hash.field("TerminationGracePeriod", spec.termination_grace_period()?.map(grace_period));
    hash.field("ExpireAfter", spec.expire_after()?.map(expire_after));
    Ok(Some(hash.0))
}

fn class_ref(reference: &NodeClassRef) -> u64 {
    let mut hash = Struct::new("NodeClassReference");
    hash.field("Kind", text(&reference.kind));
    hash.field("Name", text(&reference.name));
    hash.field("Group", text(&reference.group));
    hash.0
}

/// Plain xor: order does not matter, two equal taints cancel out, and no taints are 0.
fn taints(taints: &[Taint]) -> u64 {
    taints.iter().map(taint).fold(0, |sum, hash| sum ^ hash)
}

fn taint(taint: &Taint) -> u64 {
    let mut hash = Struct::new("Taint");
    hash.field("Key", text(&taint.key));
    hash.field("Value", taint.value.as_deref().and_then(text));
    hash.field("Effect", text(taint.effect.as_str()));
    hash.field("TimeAdded", taint.time_added.as_ref().map(time_added));
    hash.0
}

/// A pointer to Go's wrapper around a time, whose one field is hashed in its binary form: version 1, seconds,
/// nanoseconds, and the offset from UTC in minutes, all big-endian. The offset is that of the process that
/// parsed the object; ours and that of Karpenter's image is UTC.
fn time_added(time: &Time) -> u64 {
    let seconds = time.0.as_second().saturating_add(GO_EPOCH_TO_UNIX);
    let nanoseconds = time.0.subsec_nanosecond();
    let mut binary = vec![1];
    binary.extend(seconds.to_be_bytes());
    binary.extend(nanoseconds.to_be_bytes());
    binary.extend(0_i16.to_be_bytes());
    let mut hash = Struct::new("Time");
    hash.field("Time", Some(fnv1(&binary)));
    hash.0
}

/// A pointer to a wrapper: present even when zero, while its inner zero is left out.
fn grace_period(duration: Duration) -> u64 {
    let mut hash = Struct::new("Duration");
    hash.field("Duration", (!duration.is_zero()).then(|| nanoseconds(duration)));
    hash.0
}

/// A wrapper around a pointer: `Never` leaves the whole field out, zero does not.
fn expire_after(duration: Duration) -> u64 {
    let mut hash = Struct::new("NillableDuration");
    hash.field("Duration", Some(nanoseconds(duration)));
    hash.0
}

fn nanoseconds(duration: Duration) -> u64 {
    let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    fnv1(&nanoseconds.to_le_bytes())
}

/// A map that is empty, though present, counts.
fn map(entries: &BTreeMap<String, String>) -> u64 {
    let sum = entries
        .iter()
        .map(|(key, value)| pair(fnv1(key.as_bytes()), fnv1(value.as_bytes())))
        .fold(0, |sum, hash| sum ^ hash);
    seal(sum)
}

/// An empty text is a zero value, and is left out.
fn text(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| fnv1(text.as_bytes()))
}

/// A struct on its way to a hash. The fields' order matters, because each one is sealed in.
struct Struct(u64);

impl Struct {
    fn new(type_name: &str) -> Self {
        Self(fnv1(type_name.as_bytes()))
    }

    fn field(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.0 = seal(self.0 ^ pair(fnv1(name.as_bytes()), value));
        }
    }
}

fn pair(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv1(&bytes)
}

fn seal(hash: u64) -> u64 {
    fnv1(&hash.to_le_bytes())
}

/// FNV-1, 64 bit: multiplies first and then xors, unlike the commoner FNV-1a.
fn fnv1(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte))
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
