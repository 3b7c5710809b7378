//! Namespaces: their labels are all that matters.

use std::sync::Arc;

use serde_json::Value;

use crate::core::labels::{self, Labels};

use super::common;
use super::problems::{Unreadable, lenient};
use super::wire;

/// Reads a namespace from a manifest or an answer of the API server.
pub fn read_namespace(value: &Value) -> Result<(Arc<str>, Arc<Labels>), Unreadable> {
    let (wire, _) = lenient("Namespace", value)?;
    namespace(&wire)
}

/// Folds a namespace into its name and labels.
pub fn namespace(wire: &wire::Namespace) -> Result<(Arc<str>, Arc<Labels>), Unreadable> {
    let name = common::name("Namespace", &wire.metadata)?;
    let mut labels = common::shared(wire.metadata.labels.as_ref());
    labels.extend(namespace_labels(&name));
    Ok((name, Arc::new(labels)))
}

/// The label that the API server gives every namespace, whatever its manifest says.
pub fn namespace_labels(name: &Arc<str>) -> Labels {
    Labels::from([(labels::NAMESPACE_NAME.into(), Arc::clone(name))])
}
