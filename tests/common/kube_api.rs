//! A plain eye on the API server: objects as JSON, by path. Faster than kubectl, which matters to tests that look again and again.
#![allow(dead_code, reason = "each test uses the part it needs")]

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::TryStreamExt;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::controlplane::{ControlPlane, fail};

/// NodeClaims.
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
/// NodePools.
pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
/// Nodes.
pub(crate) const NODES: &str = "/api/v1/nodes";

/// What happened to an object, in the order in which the API server wrote it: its revision counts for all kinds together.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Revision of the whole store.
    pub(crate) revision: u64,
    /// Whether the object went.
    pub(crate) gone: bool,
    /// The object after the change, or as it was last.
    pub(crate) object: Value,
}

/// Notes everything that happens in some collections until it is dropped.
pub(crate) struct History {
    changes: Arc<Mutex<Vec<Change>>>,
    watches: JoinSet<()>,
}

impl History {
    /// What has happened to an object so far, oldest first.
    pub(crate) fn of(&self, kind: &str, name: &str) -> Vec<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |change: &&Change| text(&change.object, "/kind") == kind && text(&change.object, "/metadata/name") == name;
        let mut of: Vec<Change> = changes.iter().filter(is_it).cloned().collect();
        of.sort_by_key(|change| change.revision);
        of
    }
}

/// A client whose requests block.
pub(crate) struct KubeApi {
    runtime: Runtime,
    client: Client,
}

impl KubeApi {
    /// A client with the rights of a kubeconfig.
    pub(crate) fn new(plane: &ControlPlane, kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let client = runtime.block_on(plane.client(kubeconfig));
        Self { runtime, client }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, kube::Error> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, "application/merge-patch+json").body(body);
        self.runtime.block_on(self.client.request(request.map_err(kube::Error::HttpError)?))
    }

    /// Begins to note what happens in some collections: all that happens from this call on, however late a watch begins.
    #[track_caller]
    pub(crate) fn record(&self, collections: &[&str]) -> History {
        let mut history = History { changes: Arc::default(), watches: JoinSet::new() };
        for path in collections {
            let (client, changes) = (self.client.clone(), Arc::clone(&history.changes));
            let since = text(&self.collection(path), "/metadata/resourceVersion");
            let watch = format!("{path}?watch=true&resourceVersion={since}");
            let request = http::Request::builder().uri(watch).body(Vec::new()).expect("a path makes a request");
            let note = async move {
                let events = client.request_events::<Value>(request).await.expect("what is listed can be watched");
                let mut events = pin!(events);
                while let Ok(Some(event)) = events.try_next().await {
                    let (gone, object) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
                        WatchEvent::Deleted(object) => (true, object),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    let revision = text(&object, "/metadata/resourceVersion").parse().unwrap_or(0);
                    let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                    changes.push(Change { revision, gone, object });
                }
            };
            history.watches.spawn_on(note, self.runtime.handle());
        }
        history
    }

    /// The status code of an answer that is no object of interest: 200 when there is nothing to complain about.
    #[track_caller]
    pub(crate) fn status_of(&self, path: &str) -> u16 {
        match self.send("GET", path, None) {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => fail(&format!("GET {path}: {error}")),
        }
    }

    /// One object; nothing when it is not there.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        match self.send("GET", path, None) {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => fail(&format!("GET {path}: {error}")),
        }
    }

    /// All objects of a collection.
    #[track_caller]
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        self.collection(path)["items"].as_array().cloned().unwrap_or_default()
    }

    /// A collection as the API server lists it.
    #[track_caller]
    fn collection(&self, path: &str) -> Value {
        self.get(path).unwrap_or_else(|| fail(&format!("there is no {path}")))
    }

    /// Creates an object; says whether it was not there before.
    #[track_caller]
    pub(crate) fn create(&self, collection: &str, object: &Value) -> bool {
        let request = http::Request::builder().method("POST").uri(collection);
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a path makes a request");
        match self.runtime.block_on(self.client.request::<Value>(request)) {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 409 => false,
            Err(error) => fail(&format!("POST {collection}: {error}: {object}")),
        }
    }

    /// Changes an object by a JSON merge patch, unless it is gone or, where the patch names a version, another by now. Says whether it did.
    #[track_caller]
    pub(crate) fn try_patch(&self, path: &str, patch: &Value) -> bool {
        match self.send("PATCH", path, Some(patch)) {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => false,
            Err(error) => fail(&format!("PATCH {path}: {error}")),
        }
    }

    /// Changes an object by a JSON merge patch.
    #[track_caller]
    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Value {
        self.send("PATCH", path, Some(patch)).unwrap_or_else(|error| fail(&format!("PATCH {path}: {error}")))
    }

    /// Deletes an object, or a collection; one that is gone already is as good.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        match self.send("DELETE", path, None) {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => fail(&format!("DELETE {path}: {error}")),
        }
    }

    /// The pods of a namespace.
    #[track_caller]
    pub(crate) fn pods(&self, namespace: &str) -> Vec<Value> {
        self.list(&format!("/api/v1/namespaces/{namespace}/pods"))
    }

    /// The Events of a namespace with a reason: who they are about, and what they say. Those of joiner only.
    #[track_caller]
    pub(crate) fn events(&self, namespace: &str, reason: &str) -> Vec<(String, String)> {
        let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason={reason}");
        let ours = |event: &Value| event["source"]["component"] == "karpenter";
        let words = |event: &Value| (text(event, "/involvedObject/name"), text(event, "/message"));
        self.list(&path).iter().filter(|event| ours(event)).map(words).collect()
    }
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> String {
    text(object, "/metadata/name")
}

/// A text somewhere in an object; empty when it is not there.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A condition of an object, as `Status/Reason`; empty when it is not there.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    found.map(|found| format!("{}/{}", text(found, "/status"), text(found, "/reason"))).unwrap_or_default()
}

/// The message of a condition.
pub(crate) fn condition_message(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == kind);
    found.map(|found| text(found, "/message")).unwrap_or_default()
}
