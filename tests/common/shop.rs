//! The simulated cloud with a list of instance types that a test decides over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use joiner::clouds::simulated::Simulated;
use joiner::clouds::{Assortment, Cloud, Deletion, Error, LaunchSpec, Listing, RepairPolicy, Whereabouts};
use joiner::core::facts::{Claim, InstanceType, Machine, NodeClass};
use joiner::core::ids::{ClaimUid, ProviderId};
use tokio::time::sleep;

/// What a list has.
pub(crate) type Types = Arc<Vec<Arc<InstanceType>>>;

/// A cloud that sells what is on its list.
pub(crate) struct Shop {
    inner: Simulated,
    /// What is answered in place of the usual list, if anything, and how soon that is to be asked for again.
    pub(crate) list: Mutex<(Option<Types>, Option<Duration>)>,
    /// How long that takes.
    pub(crate) takes: Mutex<Duration>,
    /// How long a list of the machines takes.
    pub(crate) lists_in: Mutex<Duration>,
    /// The generations of the NodeClasses that were asked for.
    pub(crate) asked: Mutex<Vec<i64>>,
}

impl Shop {
    pub(crate) fn new(inner: Simulated) -> Self {
        Self {
            inner,
            list: Mutex::default(),
            takes: Mutex::default(),
            lists_in: Mutex::default(),
            asked: Mutex::default(),
        }
    }
}

impl Cloud for Shop {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        self.inner.class_kinds()
    }

    fn label_keys(&self) -> Vec<&'static str> {
        self.inner.label_keys()
    }

    fn catalog<'a>(&'a self, class: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        Box::pin(async move {
            self.asked.lock().expect("no test has panicked").push(class.generation);
            let takes = *self.takes.lock().expect("no test has panicked");
            sleep(takes).await;
            let (list, lacks) = self.list.lock().expect("no test has panicked").clone();
            let types = if let Some(list) = list { list } else { self.inner.catalog(class).await?.types };
            Ok(Assortment { types, lacks })
        })
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        self.inner.create(spec)
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        self.inner.get(id)
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        self.inner.find(token)
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async {
            let takes = *self.lists_in.lock().expect("no test has panicked");
            sleep(takes).await;
            self.inner.list().await
        })
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        self.inner.delete(id)
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.inner.reboot(id, operation)
    }

    fn drift<'a>(&'a self, claim: &'a Claim, class: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        self.inner.drift(claim, class)
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.inner.repair_policies()
    }
}
