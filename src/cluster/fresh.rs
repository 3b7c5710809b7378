//! What the API server has now, and not a cache: read where something is decided because an object is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::core::facts::{Claim, Node, Pod};
use crate::core::ids::{NodeName, ProviderId};

use super::client::{KARPENTER, KubeCluster};
use super::convert::wire::{self, Custom};
use super::request::Request;
use super::{Error, answer, convert};

/// Which Node carries which provider ID, as one list said. The API server cannot be asked for a provider ID, so those who want to know at the
/// same time share a list: it counts for whoever asked before it was begun.
#[derive(Debug)]
pub(super) struct Roll {
    begun: Instant,
    names: BTreeMap<ProviderId, NodeName>,
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

    /// The Node of this name.
    pub(super) async fn node_named(&self, name: &NodeName) -> Result<Option<Arc<Node>>, Error> {
        let request = Request::new("get", "", "nodes", format!("Node {name}")).at(name.as_str());
        let node: wire::Node = match self.call(&request).await {
            Ok(node) => node,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let node = convert::node(&node).map_err(|error| answer::unclear(&request, &error.to_string()))?;
        Ok(Some(Arc::new(node)))
    }

    /// The Node that carries this provider ID; the first by name, where several do.
    pub(super) async fn node_with(&self, id: &ProviderId) -> Result<Option<Arc<Node>>, Error> {
        let asked = Instant::now();
        let name = {
            let mut roll = self.roll().lock().await;
            if roll.as_ref().is_none_or(|roll| roll.begun < asked) {
                *roll = Some(self.call_the_roll().await?);
            }
            roll.as_ref().and_then(|roll| roll.names.get(id).cloned())
        };
        let Some(name) = name else { return Ok(None) };
        // It may have gone, or become another one, since the list was made.
        Ok(self.node_named(&name).await?.filter(|node| node.provider_id.as_ref() == Some(id)))
    }

    async fn call_the_roll(&self) -> Result<Roll, Error> {
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
        let mut roll = Roll { begun: Instant::now(), names: BTreeMap::new() };
        let request = Request::new("list", "", "nodes", "Nodes").at("");
        self.pages(&request, |node: Listed| {
            if let Some(id) = node.spec.provider_id {
                roll.names.entry(id.into()).or_insert_with(|| node.metadata.name.into());
            }
            Ok(())
        })
        .await?;
        Ok(roll)
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
