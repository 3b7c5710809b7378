//! What the integration tests share: the real control plane they run against.

pub(crate) mod controlplane;
