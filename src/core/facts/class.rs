//! NodeClasses, carried unopened: only the cloud that a class belongs to knows what is inside.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::ids::ClassRef;

use super::{Condition, finalizers};

/// A NodeClass object of any cloud.
#[derive(Clone)]
pub struct NodeClass {
    /// Which one it is.
    pub reference: ClassRef,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.uid`; empty where a class was not read from an API server.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub version: Arc<str>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Arc<str>>,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Timestamp>,
    /// `status.conditions`; its `Ready` decides whether machines may be launched.
    pub conditions: Vec<Condition>,
    /// The typed object, for the cloud to open.
    pub body: Arc<dyn Any + Send + Sync>,
}

impl NodeClass {
    /// Whether it stays until joiner lets it go.
    pub fn has_finalizer(&self) -> bool {
        finalizers::is_held(&self.finalizers)
    }
}

impl fmt::Debug for NodeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeClass")
            .field("reference", &self.reference)
            .field("generation", &self.generation)
            .field("deleting", &self.deleting)
            .field("conditions", &self.conditions)
            .finish_non_exhaustive()
    }
}
