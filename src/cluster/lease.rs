//! The leader lease, held the way client-go holds it, so that joiner and Karpenter keep each other out.
//!
//! Clocks of other machines are not believed: a lease counts as expired when its record has not changed for its duration as seen from
//! here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::core::ids::ObjectKey;
use crate::core::{consent, record};

use super::request::{JSON, Request};
use super::{Error, KubeCluster, Lease, RecordNow, Regarding, answer};

/// What was seen of the lease.
#[derive(Default, Debug)]
pub(super) struct Watched {
    seen: Mutex<Option<Seen>>,
    /// What the auditor's annotations said.
    notes: Mutex<BTreeMap<&'static str, Note>>,
}

/// A version of the lease, and when it was first seen.
#[derive(Clone, Debug)]
struct Seen {
    version: String,
    at: Instant,
}

/// What stood in an annotation when it was last seen.
#[derive(Clone, Debug)]
struct Note {
    /// UID of the object where it was.
    on: String,
    text: String,
}

impl Watched {
    /// Keeps in mind what the auditor's annotations say. One that is not there any more was taken off, if it had been seen on this very object; on another
    /// one nobody has written it yet: somebody has deleted the lease.
    fn take_note(&self, object: &Object) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        for key in KEPT {
            match object.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)) {
                Some(text) => drop(notes.insert(key, Note { on: uid.to_owned(), text: text.clone() })),
                None if notes.get(key).is_some_and(|note| note.on == uid) => drop(notes.remove(key)),
                None => {}
            }
        }
    }

    /// What stood in the auditor's annotations of a lease before this one, and is to stand there again.
    fn lost(&self, object: Option<&Object>) -> Vec<(&'static str, String)> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let there = object.and_then(|object| object.metadata.annotations.as_ref());
        let is_there = |key: &str| there.is_some_and(|annotations| annotations.contains_key(key));
        notes.iter().filter(|(key, _)| !is_there(key)).map(|(key, note)| (*key, note.text.clone())).collect()
    }

    /// When this version of the lease was first seen.
    fn first_seen(&self, version: &str, now: Instant) -> Instant {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &*seen {
            Some(seen) if seen.version == version => seen.at,
            _ => {
                *seen = Some(Seen { version: version.to_owned(), at: now });
                now
            }
        }
    }
}

/// Annotations that outlive the object: what people have decided, and what the auditor has done and asked. The lease is deleted to have another joiner
/// lead, not to take that back.
const KEPT: [&str; 2] = [consent::ANNOTATION, record::ANNOTATION];

/// Times in a lease have microseconds.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

impl KubeCluster {
    fn lease_request(&self, verb: &'static str, name: &str) -> Request {
        let options = self.options();
        Request::new(
            verb,
            "coordination.k8s.io",
            "leases",
            format!("Lease {}/{}", options.lease_namespace, options.lease_name),
        )
        .within(&options.lease_namespace, name)
    }

    async fn read_lease(&self) -> Result<Option<Object>, Error> {
        answer::if_there(self.unthrottled(&self.lease_request("get", &self.options().lease_name)).await)
    }

    /// The lease with a new spec, and a record if there is one; labels, other annotations and version stay as they were read. What the auditor needs of a
    /// lease that was deleted stands there again.
    fn lease_object(&self, old: Option<&Object>, spec: &Value, record: Option<&str>) -> Value {
        let options = self.options();
        let mut metadata = old.map_or_else(
            || json!({ "name": options.lease_name, "namespace": options.lease_namespace }),
            |old| json!(old.metadata),
        );
        for (key, text) in self.watched_lease().lost(old) {
            metadata["annotations"][key] = text.into();
        }
        if let Some(record) = record {
            metadata["annotations"][record::ANNOTATION] = record.into();
        }
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec })
    }

    /// Takes or renews the lease, if it is free, expired or ours, and writes the record into it.
    pub(super) async fn take_lease(&self, holder: &str, record: RecordNow<'_>) -> Result<Lease, Error> {
        let old = self.read_lease().await?;
        let now = Instant::now();
        let spec = old.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let current = spec.holder_identity.clone().unwrap_or_default();
        if let Some(old) = &old {
            self.watched_lease().take_note(old);
            let version = old.metadata.resource_version.clone().unwrap_or_default();
            let seen = self.watched_lease().first_seen(&version, now);
            let said = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let duration = said.map_or_else(|| self.options().lease_duration, Duration::from_secs);
            let remaining = (seen + duration).saturating_duration_since(now);
            if !current.is_empty() && current != holder && !remaining.is_zero() {
                return Ok(self.lease(current, remaining, old));
            }
        }
        let duration = self.options().lease_duration;
        let time = micros(self.now());
        let is_ours = current == holder;
        let acquired = spec.acquire_time.as_ref().filter(|_| is_ours).map(|time| micros(time.0));
        let transitions = spec.lease_transitions.unwrap_or(0) + i32::from(old.is_some() && !is_ours);
        let body = self.lease_object(
            old.as_ref(),
            &json!({
                "holderIdentity": holder,
                "leaseDurationSeconds": duration.as_secs(),
                "acquireTime": acquired.as_ref().unwrap_or(&time),
                "renewTime": time,
                "leaseTransitions": transitions,
            }),
            record().as_deref(),
        );
        let request = match &old {
            Some(_) => self.lease_request("update", &self.options().lease_name),
            None => self.lease_request("create", ""),
        };
        let written: Object = self.unthrottled(&request.with(JSON, body)).await?;
        self.watched_lease().take_note(&written);
        self.watched_lease().first_seen(written.metadata.resource_version.as_deref().unwrap_or_default(), now);
        // Others count from when they see the record, which is later than `now`: never less than what is said here.
        let remaining = (now + duration).saturating_duration_since(Instant::now());
        Ok(self.lease(holder.to_owned(), remaining, &written))
    }

    fn lease(&self, holder: String, remaining: Duration, object: &Object) -> Lease {
        let (options, meta) = (self.options(), &object.metadata);
        let key = ObjectKey::new(options.lease_namespace.as_str(), options.lease_name.as_str());
        let uid = meta.uid.as_deref().unwrap_or_default().into();
        let said = |key| meta.annotations.as_ref()?.get(key).map(|text| text.as_str().into());
        let (audit, record) = (said(consent::ANNOTATION), said(record::ANNOTATION));
        Lease { holder, remaining, object: Regarding::Lease(key, uid), audit, record }
    }

    /// Gives the lease back: nobody holds it, and it lasts no longer than a second.
    pub(super) async fn drop_lease(&self, holder: &str) -> Result<(), Error> {
        let Some(old) = self.read_lease().await? else { return Ok(()) };
        let spec = old.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(holder) {
            return Ok(());
        }
        let time = micros(self.now());
        let body = self.lease_object(
            Some(&old),
            &json!({
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": time,
                "renewTime": time,
                "leaseTransitions": spec.lease_transitions.unwrap_or(0),
            }),
            None,
        );
        let request = self.lease_request("update", &self.options().lease_name);
        let _: Value = self.unthrottled(&request.with(JSON, body)).await?;
        Ok(())
    }
}
