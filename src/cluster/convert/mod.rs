//! From what the API server sends to lean facts, and from drafts back to objects.
//!
//! Law: an object that cannot be read is still reported, with what is wrong with it in the field that the fact keeps for
//! that (`broken`, `errors`, a condition that is not True); only an object without a name is refused. Objects are folded into facts
//! as they are parsed: nothing of the API library's types stays in memory.

mod amounts;
mod buffer;
mod claim;
mod class;
mod common;
mod daemon;
mod draft;
mod group;
mod namespace;
mod node;
mod overlay;
mod pod;
mod pod_budget;
mod pool;
mod problems;
mod slice;
mod volume;
pub mod wire;
pub mod wire_devices;
pub mod wire_groups;
pub mod wire_volumes;

pub use amounts::{capacity, written};
pub use buffer::{buffer, read_buffer, read_template, scalable, template};
pub use claim::{claim, read_claim};
pub use class::{ClassKind, UNREADABLE, class, condemn, read_class};
pub use daemon::{daemon, read_daemon};
pub use draft::{claim_object, condition_object, taint_object};
pub use group::{controller_group, plain_group, read_group};
pub use namespace::{namespace, namespace_labels, read_namespace};
pub use node::{node, read_node};
pub use overlay::{overlay, read_overlay};
pub use pod::{ShapeStore, are_requests_readable, do_not_disrupt, pod, read_pod};
pub use pod_budget::pod_budget;
pub use pool::{pool, read_pool};
pub use problems::Unreadable;
pub use slice::{read_slice, slice};
pub use volume::{
    attachment, csi_node, read_attachment, read_csi_node, read_storage_class, read_volume, read_volume_claim,
    storage_class, volume, volume_claim,
};

#[cfg(test)]
mod tests;
