//! What the integration tests share: the real control plane they run against, and joiner as a process in it.

pub(crate) mod controlplane;
pub(crate) mod joiner;
pub(crate) mod kube_api;
