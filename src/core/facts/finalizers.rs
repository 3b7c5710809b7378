//! joiner's finalizer, in the list of finalizers that an object carries.

use std::sync::Arc;

use crate::core::labels::TERMINATION_FINALIZER;

/// Whether it is there: the object stays until joiner lets it go.
pub fn is_held(finalizers: &[Arc<str>]) -> bool {
    finalizers.iter().any(is_ours)
}

/// The list with it.
pub fn held(finalizers: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut finalizers = finalizers.to_vec();
    if !is_held(&finalizers) {
        finalizers.push(TERMINATION_FINALIZER.into());
    }
    finalizers
}

/// The list without it; those of others stay as they are.
pub fn released(finalizers: &[Arc<str>]) -> Vec<Arc<str>> {
    finalizers.iter().filter(|finalizer| !is_ours(finalizer)).cloned().collect()
}

fn is_ours(finalizer: &Arc<str>) -> bool {
    **finalizer == *TERMINATION_FINALIZER
}
