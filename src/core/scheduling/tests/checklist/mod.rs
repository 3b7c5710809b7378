//! The behaviours that Karpenter's own suites hold its solver to, one test each: given, when, then.
//!
//! A file per theme; its first lines say which of those suites it answers, and where a behaviour is tested that is not in it. Where joiner
//! differs on purpose the test shows joiner's behaviour and says so; the README's table of differences has the reason.
//!
//! | Karpenter's suite | here | elsewhere |
//! |---|---|---|
//! | requirements | | `core/requirements/tests.rs`, `core/requirements/table_tests.rs`, `core/labels_tests.rs` |
//! | taints, ports, pods, resources | [`taints`], [`packing`] | `cluster/convert/tests.rs`, `core/facts/catalog_tests.rs`, `core/resources_tests.rs` |
//! | constraints | [`constraints`], [`custom`] | |
//! | preference fallback | [`fallback`] | |
//! | instance type compatibility | [`kinds`] | |
//! | bin packing | [`packing`] | `price.rs` |
//! | in-flight nodes | [`underway`] | `kept.rs` |
//! | existing nodes | [`existing`] | |
//! | volumes | [`volumes`] | `volumes.rs`, `core/scheduling/volumes_tests.rs` |
//! | deleting nodes | [`leaving`] | |
//! | topology: spread | [`spread`], [`spread_policies`], [`spread_many`] | `topology.rs` |
//! | topology: affinity | [`affinity`], [`anti_affinity`] | `topology.rs` |
//! | provisioner | [`pools`], [`daemons`], [`claims`] | `basics.rs` |
//! | cluster state | | `core/facts/order_tests.rs`, `core/facts/fold_tests.rs` |

mod words;

mod constraints;
mod custom;
mod fallback;
mod kinds;
mod packing;

mod existing;
mod leaving;
mod underway;

mod affinity;
mod anti_affinity;
mod spread;
mod spread_many;
mod spread_policies;

mod claims;
mod daemons;
mod devices;
mod pools;
mod reserved;
mod selection;
mod taints;
mod volumes;
