//! A cloud whose calls are timed and whose failures are counted, under Karpenter's metric names.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::core::facts::{Claim, Machine, NodeClass, Pool};
use crate::core::ids::{ClaimUid, ProviderId};
use crate::telemetry::metrics::{self, CloudCall, CloudFailure};

use super::{
    Assortment, Cloud, Deletion, Error, Hooks, LaunchRefused, LaunchSpec, Listing, RepairPolicy, Resolution, Shown,
    Whereabouts,
};

/// Wraps any cloud.
pub struct Metered(Arc<dyn Cloud>);

impl Metered {
    /// Wraps a cloud.
    pub fn new(cloud: Arc<dyn Cloud>) -> Self {
        Self(cloud)
    }

    /// Times a call. `controller` is the kind of actor that makes it.
    fn time<'a, T: 'a>(
        &'a self,
        (controller, call): (&'static str, CloudCall),
        pool: String,
        future: BoxFuture<'a, Result<T, Error>>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        async move {
            let began = Instant::now();
            let result = future.await;
            let failure = result.as_ref().err().map(failure);
            metrics::cloud_called(controller, call, self.0.name(), &pool, began.elapsed(), failure);
            result
        }
        .boxed()
    }
}

fn failure(error: &Error) -> CloudFailure {
    match error {
        Error::Launch(LaunchRefused::InsufficientCapacity { .. }) => CloudFailure::InsufficientCapacity,
        Error::Launch(LaunchRefused::ClassNotReady(_)) => CloudFailure::NodeClassNotReady,
        _ => CloudFailure::Unknown,
    }
}

impl Cloud for Metered {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.0.class_kinds()
    }

    fn label_keys(&self) -> Vec<&'static str> {
        self.0.label_keys()
    }

    fn class_conditions(&self) -> &'static [&'static str] {
        self.0.class_conditions()
    }

    fn resolve<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Resolution, Error>> {
        self.0.resolve(class)
    }

    fn misfit(&self, class: &NodeClass, pool: &Pool) -> Option<String> {
        self.0.misfit(class, pool)
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        self.time(("catalog", CloudCall::GetInstanceTypes), String::new(), self.0.catalog(class))
    }

    fn learn(&self, shown: &Shown<'_>) -> bool {
        self.0.learn(shown)
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        let pool = spec.claim.pool().map(|pool| pool.to_string()).unwrap_or_default();
        self.time(("claim", CloudCall::Create), pool, self.0.create(spec))
    }

    fn launch_timeout(&self) -> Duration {
        self.0.launch_timeout()
    }

    fn has_hooks(&self) -> bool {
        self.0.has_hooks()
    }

    fn hooks<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<Hooks, Error>> {
        self.time(("claim", CloudCall::Get), String::new(), self.0.hooks(claim))
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        self.time(("claim", CloudCall::Get), String::new(), self.0.get(id))
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        self.time(("claim", CloudCall::Get), String::new(), self.0.find(token))
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        self.time(("auditor", CloudCall::List), String::new(), self.0.list())
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        self.time(("claim", CloudCall::Delete), String::new(), self.0.delete(id))
    }

    fn may_deny_for(&self) -> Duration {
        self.0.may_deny_for()
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.time(("claim", CloudCall::Reboot), String::new(), self.0.reboot(id, operation))
    }

    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.time(("claim", CloudCall::IsDrifted), String::new(), self.0.drift(claim, class))
    }

    fn drift_every(&self) -> Option<Duration> {
        self.0.drift_every()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.0.repair_policies()
    }
}
