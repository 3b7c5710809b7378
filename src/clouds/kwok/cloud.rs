//! [`Cloud`] on Node objects.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::api::classes::kwok::KwokNodeClass;
use crate::clouds::catalog::KWOK_LABEL_KEYS;
use crate::clouds::{
    Assortment, Cloud, Deletion, Error, LaunchRefused, LaunchSpec, Listing, RepairAction, RepairPolicy, Whereabouts,
};
use crate::core::facts::{Claim, InstanceType, Machine, NodeClass, Status, find_condition};
use crate::core::ids::{ClaimUid, ProviderId};

use super::boot::Boots;
use super::machine::machine;
use super::node::{self, NODECLAIM_UID, PREFIX};

/// API group of the NodeClass, and the label domain that users may not use freely.
pub const CLASS_GROUP: &str = "karpenter.kwok.sh";
/// Kind of the NodeClass.
pub const CLASS_KIND: &str = "KWOKNodeClass";
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Nodes a page while listing.
const PAGE: u32 = 500;

/// The cloud of nodes without machines.
pub struct Kwok {
    nodes: Api<Node>,
    catalog: Arc<Vec<Arc<InstanceType>>>,
    boots: Boots,
}

impl Kwok {
    /// A cloud that sells these instance types and keeps its machines in the cluster behind this client.
    pub fn new(client: Client, catalog: Vec<InstanceType>) -> Self {
        let catalog = Arc::new(catalog.into_iter().map(Arc::new).collect());
        Self { nodes: Api::all(client), catalog, boots: Boots::default() }
    }

    async fn launch(&self, spec: &LaunchSpec) -> Result<Machine, Error> {
        let delay = registration_delay(&spec.class)?;
        let Some((instance_type, offering)) = node::cheapest(&spec.candidates) else {
            return Err(Error::Launch(LaunchRefused::InsufficientCapacity {
                sold_out: Vec::new(),
                message: "none of the instance types has an offering that can be had".to_owned(),
            }));
        };
        let object = node::node(spec, instance_type, offering);
        if !delay.is_zero() {
            if let Some(known) = self.existing(&object, spec).await? {
                return Ok(known);
            }
            let wanted = machine(&object).ok_or_else(damaged)?;
            return Ok(self.boots.start(wanted, object, delay, self.nodes.clone()));
        }
        match within(TIMEOUT, self.nodes.create(&PostParams::default(), &object)).await {
            Ok(created) => machine(&created).ok_or_else(damaged),
            Err(Failure::Api(status)) if status.code == 409 => self.existing(&object, spec).await?.ok_or_else(|| {
                Error::Temporary(format!("Node {} existed a moment ago and is gone", object.name_any()))
            }),
            Err(failure) => Err(failure.of("create nodes", true)),
        }
    }

    /// The machine that an earlier attempt made.
    async fn existing(&self, wanted: &Node, spec: &LaunchSpec) -> Result<Option<Machine>, Error> {
        let name = wanted.name_any();
        let Some(found) = self.node(&name).await? else { return Ok(None) };
        if found.metadata.deletion_timestamp.is_some() {
            return Err(Error::Temporary(format!("Node {name} is being deleted")));
        }
        let machine = machine(&found).filter(|machine| machine.token.as_ref() == Some(&spec.token));
        machine.map(Some).ok_or_else(|| Error::Invalid {
            field: "metadata.name".to_owned(),
            message: format!("Node {name} exists and is not of this NodeClaim; delete that Node"),
        })
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, Error> {
        within(TIMEOUT, self.nodes.get_opt(name)).await.map_err(|failure| failure.of("get nodes", false))
    }

    async fn listed(&self, selector: Option<String>) -> Result<Vec<Machine>, Error> {
        let mut params = ListParams::default().limit(PAGE);
        params.label_selector = selector;
        let mut machines = Vec::new();
        loop {
            let page =
                within(TIMEOUT, self.nodes.list(&params)).await.map_err(|failure| failure.of("list nodes", false))?;
            machines.extend(page.items.iter().filter_map(machine));
            params.continue_token = page.metadata.continue_.filter(|rest| !rest.is_empty());
            if params.continue_token.is_none() {
                return Ok(machines);
            }
        }
    }

    async fn take_down(&self, id: &ProviderId) -> Result<Deletion, Error> {
        let Some(name) = node_name(id) else { return Ok(Deletion::Gone) };
        self.boots.stop(id);
        let Some(node) = self.node(name).await? else { return Ok(Deletion::Gone) };
        if node.metadata.deletion_timestamp.is_some() {
            return Ok(Deletion::Gone);
        }
        if machine(&node).is_none_or(|machine| machine.token.is_none()) {
            return Err(Error::Invalid {
                field: "metadata.labels".to_owned(),
                message: format!(
                    "Node {name} is not marked as a NodeClaim's, and is left alone; write label {NODECLAIM_UID} with the NodeClaim's UID back, or \
                     delete that Node"
                ),
            });
        }
        let uid = node.metadata.uid.clone();
        let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version: None });
        match within(TIMEOUT, self.nodes.delete(name, &params)).await {
            Ok(_) => Ok(Deletion::InProgress),
            // Somebody else was faster; the Node of this name is another one now.
            Err(Failure::Api(status)) if matches!(status.code, 404 | 409) => Ok(Deletion::Gone),
            Err(failure) => Err(failure.of("delete nodes", true)),
        }
    }

    async fn restart(&self, id: &ProviderId, operation: &str) -> Result<(), Error> {
        let missing = || Error::Invalid {
            field: "status.providerID".to_owned(),
            message: format!("{id} has no Node; a machine can be rebooted once its Node is there"),
        };
        let name = node_name(id).ok_or_else(missing)?;
        let patch = json!({ "status": { "nodeInfo": { "bootID": format!("kwok-{operation}") } } });
        match within(TIMEOUT, self.nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(patch))).await {
            Ok(_) => Ok(()),
            Err(Failure::Api(status)) if status.code == 404 => Err(missing()),
            Err(failure) => Err(failure.of("patch nodes/status", true)),
        }
    }
}

impl Cloud for Kwok {
    fn name(&self) -> &'static str {
        "kwok"
    }

    fn class_kinds(&self) -> Vec<(&'static str, &'static str)> {
        vec![(CLASS_GROUP, CLASS_KIND)]
    }

    fn label_keys(&self) -> Vec<&'static str> {
        KWOK_LABEL_KEYS.to_vec()
    }

    fn catalog<'a>(&'a self, _: &'a NodeClass) -> BoxFuture<'a, Result<Assortment, Error>> {
        async { Ok(Arc::clone(&self.catalog).into()) }.boxed()
    }

    fn create<'a>(&'a self, spec: &'a LaunchSpec) -> BoxFuture<'a, Result<Machine, Error>> {
        self.launch(spec).boxed()
    }

    fn get<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Whereabouts, Error>> {
        async move {
            let Some(name) = node_name(id) else { return Ok(Whereabouts::Unknown) };
            // Asked before the Node, so that one that appears in between is not missed.
            let booting = self.boots.get(id);
            let node = self.node(name).await?;
            let Some(node) = node else { return Ok(booting.into()) };
            Ok(machine(&node).filter(|machine| !machine.deleting).into())
        }
        .boxed()
    }

    fn find<'a>(&'a self, token: &'a ClaimUid) -> BoxFuture<'a, Result<Vec<Machine>, Error>> {
        async move {
            let booting = self.boots.all().into_iter().filter(|machine| machine.token.as_ref() == Some(token));
            let found = self.listed(Some(format!("{NODECLAIM_UID}={token}"))).await?;
            Ok(merged(found.into_iter().filter(|machine| !machine.deleting).collect(), booting))
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Listing, Error>> {
        async move {
            let booting = self.boots.all();
            let machines = merged(self.listed(None).await?, booting);
            Ok(Listing { machines, complete: true, settles_within: Duration::ZERO, notices: Vec::new() })
        }
        .boxed()
    }

    fn delete<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Deletion, Error>> {
        self.take_down(id).boxed()
    }

    /// The API server shows at once which Nodes there are.
    fn may_deny_for(&self) -> Duration {
        Duration::ZERO
    }

    fn reboot<'a>(&'a self, id: &'a ProviderId, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.restart(id, operation).boxed()
    }

    fn drift<'a>(&'a self, _: &'a Claim, _: &'a NodeClass) -> BoxFuture<'a, Result<Option<String>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn drift_every(&self) -> Option<Duration> {
        None
    }

    /// Those of Karpenter 1.15's KWOK provider.
    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |condition, status, toleration, action, grace, reason| RepairPolicy {
            condition,
            status,
            toleration: Duration::from_secs(toleration),
            action,
            termination_grace: Some(Duration::from_secs(grace)),
            priority: 0,
            reason,
        };
        vec![
            policy("Ready", Status::False, 600, RepairAction::Replace, 0, None),
            policy("Ready", Status::Unknown, 600, RepairAction::Replace, 0, Some(".*")),
            policy("KWOKUnhealthy", Status::True, 30, RepairAction::Replace, 45, Some(".*")),
            policy("KWOKRebootRequired", Status::True, 30, RepairAction::Reboot, 60, Some(".*")),
        ]
    }
}

impl fmt::Debug for Kwok {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kwok").field("instance_types", &self.catalog.len()).finish_non_exhaustive()
    }
}

/// The Node's name in a provider ID; nothing when the ID is another cloud's.
fn node_name(id: &ProviderId) -> Option<&str> {
    id.as_str().strip_prefix(PREFIX).filter(|name| !name.is_empty())
}

/// What was listed, and what boots and was not listed.
fn merged(mut listed: Vec<Machine>, booting: impl IntoIterator<Item = Machine>) -> Vec<Machine> {
    for machine in booting {
        if listed.iter().all(|other| other.id != machine.id) {
            listed.push(machine);
        }
    }
    listed
}

/// How long machines of a class take to boot, if any may be launched at all.
fn registration_delay(class: &NodeClass) -> Result<Duration, Error> {
    let not_ready = |why: String| Error::Launch(LaunchRefused::ClassNotReady(format!("{}: {why}", class.reference)));
    if class.deleting.is_some() {
        return Err(not_ready("it is being deleted".to_owned()));
    }
    if let Some(ready) = find_condition(&class.conditions, "Ready").filter(|ready| ready.status == Status::False) {
        return Err(not_ready(format!("{} {}", ready.reason, ready.message)));
    }
    let body = class.body.downcast_ref::<KwokNodeClass>();
    let body = body.ok_or_else(|| not_ready(format!("it is no {CLASS_KIND}; name one in the nodeClassRef")))?;
    body.spec.spec.node_registration_delay().map_err(|error| Error::unreadable(&class.reference, &error))
}

fn damaged() -> Error {
    Error::Unknown("the API server answered with a Node that is not the one that was sent".to_owned())
}

/// A failed request to the API server.
enum Failure {
    Api(Box<kube::core::Status>),
    Unreachable(String),
    Silent(String),
}

/// A request with a deadline.
async fn within<T>(timeout: Duration, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(timeout, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Failure::Api(status)),
        Ok(Err(error)) if is_unreachable(&error) => Err(Failure::Unreachable(error.to_string())),
        Ok(Err(error)) => Err(Failure::Silent(error.to_string())),
        Err(_) => Err(Failure::Silent(format!("no answer within {} s", timeout.as_secs()))),
    }
}

/// Whether nobody listened, so that nothing can have happened.
fn is_unreachable(error: &kube::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// What the API server said, with the remedy: an action is a verb and a resource.
fn with_rule(action: &str, message: &str) -> String {
    let (verb, resource) = action.split_once(' ').unwrap_or((action, ""));
    format!(
        "{message}; add a rule to joiner's ClusterRole: apiGroups [\"\"], resources [\"{resource}\"], verbs [\"{verb}\"]"
    )
}

impl Failure {
    /// The failure in the cloud's classes.
    fn of(self, action: &'static str, is_write: bool) -> Error {
        let unclear = |text: String| if is_write { Error::Unknown(text) } else { Error::Temporary(text) };
        match self {
            Self::Unreachable(text) => Error::Temporary(format!("{action}: {text}")),
            Self::Silent(text) => unclear(format!("{action}: {text}")),
            Self::Api(status) => match status.code {
                401 => Error::Unauthorized { action, message: status.message },
                403 => Error::Unauthorized { action, message: with_rule(action, &status.message) },
                429 => {
                    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                    let retry_after = (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)));
                    Error::Throttled { said: String::new(), retry_after }
                }
                400..500 => Error::Invalid { field: action.to_owned(), message: status.message },
                _ => unclear(format!("{action}: {} {}", status.code, status.message)),
            },
        }
    }
}
