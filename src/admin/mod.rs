//! How we are seen: probes, metrics, and the live tree of actors as JSON and as a page. Reads only; nothing here changes anything.
//!
//! Two ports, as Karpenter has them: one for the kubelet's probes, one for everything that people and Prometheus look at.

mod actors;
mod probes;
mod routes;
mod serve;
mod tree;

#[cfg(test)]
mod tests;

pub use probes::Check;
pub use serve::{Config, Error, Explainer, Handle, Ports, Sampler, Sources, Why, open};
