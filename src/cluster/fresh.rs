//! What the API server has now, and not a cache: read where something is decided because an object is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::core::facts::{Claim, DeviceSlice, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, NodeName, ProviderId};

use super::client::{KARPENTER, KubeCluster};
use super::convert::wire::{self, Custom};
use super::convert::wire_devices::ResourceSlice;
use super::request::Request;
use super::{Error, answer, convert};

/// What one list said of things for which the API server cannot be asked one by one: those who want to know at the same time share it. It counts for
/// whoever asked before it was begun, so a thousand who ask at once cost two lists, and no two are under way at a time.
#[derive(Debug)]
pub(super) struct Roll<T> {
    begun: Instant,
    what: T,
}

/// Where such a list is kept for the others who want it.
pub(super) type SharedRoll<T> = Mutex<Option<Roll<T>>>;

/// Which Node carries which provider ID.
pub(super) type NodesById = BTreeMap<ProviderId, NodeName>;
/// Which volumes are attached to which Node.
pub(super) type AttachedTo = BTreeMap<NodeName, Vec<Arc<VolumeAttachment>>>;

/// Looks something up in a list that was begun no earlier than now.
async fn shared<T, A>(
    roll: &SharedRoll<T>,
    call: impl Future<Output = Result<T, Error>>,
    look: impl FnOnce(&T) -> A,
) -> Result<A, Error> {
    let asked = Instant::now();
    let mut roll = roll.lock().await;
    if let Some(known) = roll.as_ref().filter(|known| known.begun >= asked) {
        return Ok(look(&known.what));
    }
    let begun = Instant::now();
    let what = call.await?;
    Ok(look(&roll.insert(Roll { begun, what }).what))
}

impl KubeCluster {
    /// Every NodeClaim, another autoscaler's too.
    pub(super) async fn all_claims(&self) -> Result<Vec<Arc<Claim>>, Error> {
        let request = Request::new("list", KARPENTER, "nodeclaims", "NodeClaims").at("");
        let unclear = |error: convert::Unreadable| answer::unclear(&request, &error.to_string());
        let mut claims = Vec::new();
        self.pages(&request, |object: Custom| {
            claims.push(Arc::new(convert::claim(&object).map_err(unclear)?));
            Ok(())
        })
        .await?;
        Ok(claims)
    }

    /// The NodeClaim of this name.
    pub(super) async fn claim_named(&self, name: &ClaimName) -> Result<Option<Arc<Claim>>, Error> {
        let request = Request::new("get", KARPENTER, "nodeclaims", format!("NodeClaim {name}")).at(name.as_str());
        answer::if_there(self.claim(request).await)
    }

    /// The Node of this name.
    pub(super) async fn node_named(&self, name: &NodeName) -> Result<Option<Arc<Node>>, Error> {
        let request = Request::new("get", "", "nodes", format!("Node {name}")).at(name.as_str());
        answer::if_there(self.node(&request).await)
    }

    /// Sends a request that is answered with a Node.
    pub(super) async fn node(&self, request: &Request) -> Result<Arc<Node>, Error> {
        let node: wire::Node = self.call(request).await?;
        convert::node(&node).map(Arc::new).map_err(|error| answer::unclear(request, &error.to_string()))
    }

    /// The Node that carries this provider ID; the first by name, where several do.
    pub(super) async fn node_with(&self, id: &ProviderId) -> Result<Option<Arc<Node>>, Error> {
        let name = shared(self.nodes_by_id(), self.call_the_roll(), |names| names.get(id).cloned()).await?;
        let Some(name) = name else { return Ok(None) };
        // It may have gone, or become another one, since the list was made.
        Ok(self.node_named(&name).await?.filter(|node| node.provider_id.as_ref() == Some(id)))
    }

    async fn call_the_roll(&self) -> Result<NodesById, Error> {
        #[derive(Deserialize)]
        struct Listed {
            metadata: Metadata,
            #[serde(default)]
            spec: Spec,
        }
        #[derive(Deserialize)]
        struct Metadata {
            name: String,
        }
        #[derive(Deserialize, Default)]
        struct Spec {
            #[serde(rename = "providerID")]
            provider_id: Option<String>,
        }
        let mut names = NodesById::new();
        let request = Request::new("list", "", "nodes", "Nodes").at("");
        self.pages(&request, |node: Listed| {
            if let Some(id) = node.spec.provider_id {
                names.entry(id.into()).or_insert_with(|| node.metadata.name.into());
            }
            Ok(())
        })
        .await?;
        Ok(names)
    }

    /// The VolumeAttachments of a Node. One that cannot be read is not among them, as in what is watched.
    pub(super) async fn volumes_on(&self, node: &NodeName) -> Result<Vec<Arc<VolumeAttachment>>, Error> {
        let of_node = |all: &AttachedTo| all.get(node).cloned().unwrap_or_default();
        shared(self.attached(), self.all_attachments(), of_node).await
    }

    async fn all_attachments(&self) -> Result<AttachedTo, Error> {
        let request = Request::new("list", "storage.k8s.io", "volumeattachments", "VolumeAttachments").at("");
        let mut all = AttachedTo::new();
        self.pages(&request, |one: wire::VolumeAttachment| {
            if let Ok(one) = convert::attachment(&one) {
                all.entry(one.node.clone()).or_default().push(Arc::new(one));
            }
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// The pods of a Node. One that cannot be read is not among them, as in what is watched.
    pub(super) async fn pods_of(&self, node: &NodeName) -> Result<Vec<Arc<Pod>>, Error> {
        let all = Request::new("list", "", "pods", format!("Pods of Node {node}")).at("");
        // Names of Nodes are DNS subdomains: nothing in them needs to be escaped.
        let request = Request { path: format!("{}?fieldSelector=spec.nodeName%3D{node}", all.path), ..all };
        let mut pods = Vec::new();
        self.pages(&request, |pod: wire::Pod| {
            pods.extend(convert::pod(&pod, self.shapes()).map(Arc::new));
            Ok(())
        })
        .await?;
        Ok(pods)
    }

    /// The ResourceSlices of a Node. One that cannot be read is not among them, and so its pool is not whole.
    pub(super) async fn devices_of(&self, node: &NodeName) -> Result<Vec<Arc<DeviceSlice>>, Error> {
        let all =
            Request::new("list", "resource.k8s.io", "resourceslices", format!("ResourceSlices of Node {node}")).at("");
        let mut slices = Vec::new();
        // Those that name no Node may still be owned by this one: no selector finds owners.
        for name in [node.as_str(), ""] {
            let request = Request { path: format!("{}?fieldSelector=spec.nodeName%3D{name}", all.path), ..all.clone() };
            self.pages(&request, |slice: ResourceSlice| {
                let read = convert::slice(&slice).ok().filter(|slice| slice.node.as_ref() == Some(node));
                slices.extend(read.map(Arc::new));
                Ok(())
            })
            .await?;
        }
        Ok(slices)
    }

    /// Hands over every object of a list, page by page, in the order of their names.
    async fn pages<T: DeserializeOwned>(
        &self,
        list: &Request,
        mut each: impl FnMut(T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Page<T> {
            metadata: PageMetadata,
            items: Vec<T>,
        }
        #[derive(Deserialize)]
        struct PageMetadata {
            #[serde(rename = "continue", default)]
            rest: String,
        }
        let limit = self.options().page_size;
        let join = if list.path.contains('?') { '&' } else { '?' };
        let mut rest = String::new();
        loop {
            // Tokens of the API server are URL-safe base64.
            let more = if rest.is_empty() { String::new() } else { format!("&continue={rest}") };
            let request = Request { path: format!("{}{join}limit={limit}{more}", list.path), ..list.clone() };
            let page: Page<T> = self.call(&request).await?;
            page.items.into_iter().try_for_each(&mut each)?;
            rest = page.metadata.rest;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }
}
