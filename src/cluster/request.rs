//! One request to the API server, as a value, and what is sent for it.

use serde_json::Value;

use super::Error;

/// Content type of a JSON merge patch.
pub(super) const MERGE: &str = "application/merge-patch+json";
/// Content type of a strategic merge patch, which built-in kinds understand.
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Content type of whole objects.
pub(super) const JSON: &str = "application/json";

/// Stands for questions about the API server itself: its version and what it serves.
pub(super) const VERSION: &str = "version";

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The verb, as RBAC names it.
    pub(super) verb: &'static str,
    /// API group; empty for the core group.
    pub(super) group: &'static str,
    /// Version of the group.
    pub(super) version: &'static str,
    /// Plural name, with subresource.
    pub(super) resource: &'static str,
    /// Kind and name, for messages.
    pub(super) object: String,
    /// Path and query.
    pub(super) path: String,
    /// Content type of the body.
    pub(super) content: &'static str,
    /// Body, if there is one.
    pub(super) body: Option<Value>,
    /// Whether the request carries the UID of the object that is meant, so that a conflict means that it is another one by now.
    pub(super) guarded: bool,
}

impl Request {
    /// A request for an object of a group, `v1`. `object` is its kind and name.
    pub(super) fn new(
        verb: &'static str,
        group: &'static str,
        resource: &'static str,
        object: impl Into<String>,
    ) -> Self {
        Self {
            verb,
            group,
            version: "v1",
            resource,
            object: object.into(),
            path: String::new(),
            content: JSON,
            body: None,
            guarded: false,
        }
    }

    /// Means another version than `v1`; to be said before the object is addressed.
    pub(super) fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    /// Addresses a cluster-scoped object or, with an empty name, the collection.
    pub(super) fn at(self, name: &str) -> Self {
        let path = self.path_of(None, name);
        Self { path, ..self }
    }

    /// Addresses a namespaced object or, with an empty name, the collection.
    pub(super) fn within(self, namespace: &str, name: &str) -> Self {
        let path = self.path_of(Some(namespace), name);
        Self { path, ..self }
    }

    /// Gives the request a body.
    pub(super) fn with(self, content: &'static str, body: Value) -> Self {
        Self { content, body: Some(body), ..self }
    }

    /// Says that the body carries the UID of the object that is meant.
    pub(super) fn guarded(self) -> Self {
        Self { guarded: true, ..self }
    }

    fn path_of(&self, namespace: Option<&str>, name: &str) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        let (plural, sub) = self.resource.split_once('/').map_or((self.resource, ""), |(plural, sub)| (plural, sub));
        let mut path = root;
        if let Some(namespace) = namespace {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        for part in [plural, name, sub] {
            if !part.is_empty() {
                path.push('/');
                path.push_str(part);
            }
        }
        path
    }

    /// Whether it may change something.
    pub(super) fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }

    /// The request as HTTP.
    pub(super) fn http(&self) -> Result<http::Request<kube::client::Body>, Error> {
        let method = match self.verb {
            "create" => http::Method::POST,
            "update" => http::Method::PUT,
            "patch" => http::Method::PATCH,
            "delete" => http::Method::DELETE,
            _ => http::Method::GET,
        };
        let body = self.body.as_ref().map(|body| body.to_string().into_bytes()).unwrap_or_default();
        http::Request::builder()
            .method(method)
            .uri(&self.path)
            .header(http::header::ACCEPT, JSON)
            .header(http::header::CONTENT_TYPE, self.content)
            .body(kube::client::Body::from(body))
            .map_err(|error| Error::Invalid {
                object: self.object.clone(),
                message: format!("its name cannot be part of a request ({error}); rename it"),
            })
    }
}
