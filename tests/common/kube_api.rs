//! A plain eye on the API server: objects as JSON, by path. Faster than kubectl, which matters to tests that look again and again.
#![allow(dead_code, reason = "each test uses the part it needs")]

use std::path::Path;

use kube::Client;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::controlplane::{ControlPlane, fail};

/// NodeClaims.
pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
/// NodePools.
pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
/// Nodes.
pub(crate) const NODES: &str = "/api/v1/nodes";

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
        let list = self.get(path).unwrap_or_else(|| fail(&format!("there is no {path}")));
        list["items"].as_array().cloned().unwrap_or_default()
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
