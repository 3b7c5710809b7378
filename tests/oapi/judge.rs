//! Looks over every request on its way, and every answer on its way back.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use joiner::clouds::outscale::oapi::{Answer, Post, Transport, Undelivered};
use serde_json::Value;

use super::spec::Spec;

/// A transport that judges what it carries.
pub(crate) struct Judge<T> {
    inner: T,
    spec: Spec,
    wrong: Mutex<BTreeSet<String>>,
    seen: Mutex<BTreeSet<String>>,
}

impl<T> Judge<T> {
    /// Judges what `inner` carries.
    pub(crate) fn of(inner: T, spec: Spec) -> Arc<Self> {
        Arc::new(Self { inner, spec, wrong: Mutex::default(), seen: Mutex::default() })
    }

    /// Actions that were seen, with what became of them: `ReadVms 200`.
    pub(crate) fn seen(&self) -> BTreeSet<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Nothing that was carried was against the specification.
    pub(crate) fn acquit(&self) {
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    fn blame(&self, wrong: impl IntoIterator<Item = String>) {
        self.wrong.lock().unwrap().extend(wrong);
    }
}

impl<T: Transport> Transport for Judge<T> {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        let action = post.url.path().strip_prefix("/api/v1/").unwrap().to_owned();
        let request: Value = serde_json::from_slice(&post.body).unwrap();
        self.blame(self.spec.request(&action, &request));
        if self.spec.action(&action).is_signed != post.headers.contains_key("authorization") {
            self.blame([format!("{action}: signed where it need not be, or not where it must be")]);
        }
        if !post.headers.get("user-agent").is_some_and(|agent| agent.as_bytes().starts_with(b"joiner/")) {
            self.blame([format!("{action}: does not say who asks")]);
        }
        async move {
            let answer = self.inner.post(post).await?;
            self.seen.lock().unwrap().insert(format!("{action} {}", answer.status));
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            self.blame(self.spec.answer(&action, answer.status, &body));
            if body["ResponseContext"]["RequestId"].as_str().is_none_or(str::is_empty) {
                self.blame([format!("{action}: an answer without the ID of its request")]);
            }
            Ok(answer)
        }
        .boxed()
    }
}
