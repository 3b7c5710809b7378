//! joiner gives a Kubernetes cluster the nodes that its pending pods need.

pub mod actors;
pub mod admin;
pub mod api;
pub mod clouds;
pub mod cluster;
pub mod config;
pub mod core;
pub mod telemetry;
