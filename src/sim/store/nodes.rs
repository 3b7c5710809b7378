//! Nodes in the store.

use std::sync::Arc;

use super::objects::{Store, check_guarded, check_version, merge, without};
use crate::cluster::{Error, NodePatch};
use crate::core::facts::{Fact, Node};
use crate::core::ids::{NodeName, NodeUid};

impl Store {
    /// Creates a Node; its UID, age and version are given here.
    pub fn create_node(&mut self, mut node: Node) -> Result<Arc<Node>, Error> {
        if self.nodes.contains_key(&node.name) {
            return Err(Error::Exists(object(&node.name)));
        }
        node.uid = NodeUid::from(self.uid());
        node.created = self.now();
        Ok(self.save_node(node))
    }

    /// Changes metadata and taints of a Node; with the last finalizer a deleted one goes.
    pub fn patch_node(&mut self, name: &NodeName, patch: &NodePatch) -> Result<Arc<Node>, Error> {
        let there = self.nodes.get(name).ok_or_else(|| Error::NotFound(object(name)))?;
        check_version(&object(name), patch.version.as_ref(), &there.version)?;
        let guarded = patch.version.is_some();
        check_guarded(&object(name), "spec.taints", guarded || patch.taints.is_none())?;
        check_guarded(&object(name), "metadata.finalizers", guarded || patch.finalizers.is_none())?;
        check_guarded(&object(name), "metadata.ownerReferences", guarded || patch.owner.is_none())?;
        let mut node = (**there).clone();
        merge(&mut node.labels, &patch.labels);
        merge(&mut node.annotations, &patch.annotations);
        without(&mut node.labels, &patch.without_labels);
        without(&mut node.annotations, &patch.without_annotations);
        if let Some(taints) = &patch.taints {
            node.taints.clone_from(taints);
        }
        if let Some(finalizers) = &patch.finalizers
            && *finalizers != node.finalizers
        {
            if let Some(new) = finalizers.iter().find(|new| node.deleting.is_some() && !node.finalizers.contains(new)) {
                let message = format!("metadata.finalizers: {new} cannot be added to an object that is being deleted");
                return Err(Error::Invalid { object: object(name), message });
            }
            node.finalizers.clone_from(finalizers);
        }
        if let Some(owner) = &patch.owner {
            node.owner_claims.retain(|owner| !patch.disowned.contains(owner));
            if !node.owner_claims.contains(owner) {
                node.owner_claims.push(owner.clone());
            }
        }
        node.taints.retain(|taint| !self.stripped.contains(&taint.key));
        Ok(if node == **there { Arc::clone(there) } else { self.save_node(node) })
    }

    /// Lets the kubelet or the node controllers change a Node; nothing happens when it is gone.
    pub fn update_node(&mut self, name: &NodeName, change: impl FnOnce(&mut Node)) {
        let Some(there) = self.nodes.get(name) else { return };
        let mut node = (**there).clone();
        change(&mut node);
        if node != **there {
            self.save_node(node);
        }
    }

    /// Asks for the deletion of a Node; with a UID, only of that very one.
    pub fn delete_node(&mut self, name: &NodeName, uid: Option<&NodeUid>) -> Result<(), Error> {
        let there = self.nodes.get(name).ok_or_else(|| Error::NotFound(object(name)))?;
        if uid.is_some_and(|uid| *uid != there.uid) {
            return Err(Error::NotFound(format!("{} with UID {}", object(name), uid.map_or("", NodeUid::as_str))));
        }
        if there.deleting.is_none() {
            let mut node = (**there).clone();
            node.deleting = Some(self.now());
            self.save_node(node);
        }
        Ok(())
    }

    fn save_node(&mut self, mut node: Node) -> Arc<Node> {
        node.version = self.next_version();
        let node = Arc::new(node);
        if node.deleting.is_some() && node.finalizers.is_empty() {
            self.nodes.remove(&node.name);
            self.emit(&Fact::NodeGone(node.name.clone()));
        } else {
            self.nodes.insert(node.name.clone(), Arc::clone(&node));
            self.emit(&Fact::NodeSeen(Arc::clone(&node)));
        }
        node
    }
}

fn object(name: &NodeName) -> String {
    format!("Node {name}")
}
