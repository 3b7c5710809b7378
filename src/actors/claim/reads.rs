//! What a claim actor asks of the API server itself where a watch may lag behind, and what it makes of the answers.

use std::sync::Arc;

use crate::actors::protocol::{ClaimMsg, StateMsg, Written};
use crate::actors::runtime::{Cx, Outcome, Permits};
use crate::core::facts::{self, DeviceSlice, Fact, Node, Pod, VolumeAttachment};
use crate::core::ids::{ClaimName, NodeName, ProviderId};
use crate::core::lifecycle::is_waited_for;

use super::Claim;

impl Claim {
    pub(super) fn get_claim(&mut self, name: ClaimName, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say how the NodeClaim is now");
        let cluster = Arc::clone(&self.args.wiring.cluster);
        let call = async move { cluster.get_claim(&name).await };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::ClaimTold(op, outcome));
    }

    pub(super) fn claim_told(&mut self, outcome: Written<Option<Arc<facts::Claim>>>, cx: &Cx<ClaimMsg>) {
        let Some(found) = self.written("the API server", outcome, cx) else { return };
        self.memory.outdated = None;
        match found.filter(|found| self.known.as_ref().is_some_and(|known| known.uid == found.uid)) {
            Some(claim) => {
                self.tell_of_unseen(Fact::ClaimSeen(Arc::clone(&claim)));
                self.written = Some(claim);
            }
            None => self.tell_that_it_is_gone(),
        }
    }

    /// The API server knows no such NodeClaim: from here on nobody does, whatever a watch shows.
    pub(super) fn tell_that_it_is_gone(&self) {
        if let Some(known) = &self.known {
            let gone = StateMsg::NoClaim(known.name.clone(), known.uid.clone());
            self.args.wiring.slots.state.cast(gone);
        }
    }

    pub(super) fn get_node(&mut self, name: NodeName, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say whether the Node is there");
        let (cluster, asked) = (Arc::clone(&self.args.wiring.cluster), name.clone());
        let call = async move { cluster.get_node(&asked).await };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::NodeTold(op, name, outcome));
    }

    pub(super) fn node_told(&mut self, name: NodeName, outcome: Written<Option<Arc<Node>>>, cx: &Cx<ClaimMsg>) {
        match self.written("the API server", outcome, cx) {
            Some(Some(node)) => self.tell_of_unseen(Fact::NodeSeen(node)),
            Some(None) => self.memory.gone_node = Some(name),
            None => {}
        }
    }

    pub(super) fn find_node(&mut self, id: ProviderId, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say which Node is the machine's");
        let cluster = Arc::clone(&self.args.wiring.cluster);
        if !self.args.wiring.settings.protections.fresh_list {
            let watched = self.args.wiring.boards.snapshot().nodes_with(&id).next().cloned();
            return cx.cast(ClaimMsg::NodeFound(op, id, Outcome::Done(watched)));
        }
        let asked = id.clone();
        let call = async move { cluster.find_node(&asked).await };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::NodeFound(op, id, outcome));
    }

    pub(super) fn node_found(&mut self, id: ProviderId, outcome: Written<Option<Arc<Node>>>, cx: &Cx<ClaimMsg>) {
        let Some(found) = self.written("the API server", outcome, cx) else { return };
        if let Some(node) = &found
            && self.args.wiring.boards.snapshot().nodes.get(&node.name) != Some(node)
        {
            tracing::warn!(nodeclaim = %self.args.name, node = %node.name, "the watch does not show the node as it is");
            self.tell_of_unseen(Fact::NodeSeen(Arc::clone(node)));
        }
        self.memory.roll = Some((cx.now(), id, found));
    }

    pub(super) fn list_pods(&mut self, nodes: Vec<NodeName>, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say which pods are on the node");
        let cluster = Arc::clone(&self.args.wiring.cluster);
        if !self.args.wiring.settings.protections.fresh_list {
            let snapshot = self.args.wiring.boards.snapshot();
            let watched = nodes.iter().flat_map(|node| snapshot.pods_on(node)).cloned().collect();
            return cx.cast(ClaimMsg::PodsListed(op, Outcome::Done(watched)));
        }
        let call = async move {
            let mut pods = Vec::new();
            for node in &nodes {
                pods.extend(cluster.pods_on(node).await?);
            }
            Ok(pods)
        };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::PodsListed(op, outcome));
    }

    pub(super) fn pods_listed(&mut self, outcome: Written<Vec<Arc<Pod>>>, cx: &Cx<ClaimMsg>) {
        let Some(pods) = self.written("the API server", outcome, cx) else { return };
        let left = pods.iter().filter(|pod| is_waited_for(pod, cx.now())).count();
        if left > 0 {
            tracing::warn!(nodeclaim = %self.args.name, pods = left, "the watch does not show all pods of a drained node");
        }
        self.memory.listed_pods = Some((cx.now(), pods));
    }

    pub(super) fn list_attachments(&mut self, nodes: Vec<NodeName>, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say which volumes are attached to the node");
        if !self.args.wiring.settings.protections.fresh_list {
            let snapshot = self.args.wiring.boards.snapshot();
            let watched = nodes.iter().flat_map(|node| snapshot.attachments_of(node)).cloned().collect();
            return cx.cast(ClaimMsg::AttachmentsListed(op, Outcome::Done(watched)));
        }
        let cluster = Arc::clone(&self.args.wiring.cluster);
        let call = async move {
            let mut attached = Vec::new();
            for node in &nodes {
                attached.extend(cluster.attached_to(node).await?);
            }
            Ok(attached)
        };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::AttachmentsListed(op, outcome));
    }

    pub(super) fn attachments_listed(&mut self, outcome: Written<Vec<Arc<VolumeAttachment>>>, cx: &Cx<ClaimMsg>) {
        let Some(attached) = self.written("the API server", outcome, cx) else { return };
        if !attached.is_empty() {
            tracing::warn!(
                nodeclaim = %self.args.name, volumes = attached.len(), "the watch does not show all volumes of a drained node"
            );
        }
        self.memory.attached = Some((cx.now(), attached));
    }

    pub(super) fn list_slices(&mut self, node: NodeName, cx: &Cx<ClaimMsg>) {
        let op = self.begin("the API server to say which devices of the node are published");
        let cluster = Arc::clone(&self.args.wiring.cluster);
        let call = async move { cluster.slices_of(&node).await };
        cx.start(Permits::ReadCluster, call, move |outcome| ClaimMsg::SlicesListed(op, outcome));
    }

    pub(super) fn slices_listed(&mut self, outcome: Written<Vec<Arc<DeviceSlice>>>, cx: &Cx<ClaimMsg>) {
        if let Some(slices) = self.written("the API server", outcome, cx) {
            self.memory.slices = Some((cx.now(), slices));
        }
    }

    /// What the API server has and the watch does not show: from here on it is known all the same.
    fn tell_of_unseen(&self, fact: Fact) {
        self.args.wiring.slots.state.cast(StateMsg::Seen(fact));
    }
}
