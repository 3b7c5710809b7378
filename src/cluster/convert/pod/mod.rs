//! Pods: what is theirs alone, and the shape that equal ones share.

mod affinity;
mod read;
mod requests;
mod selector;
mod shapes;

pub(super) use read::shape;
pub use read::{do_not_disrupt, pod, read_pod};
pub use requests::are_requests_readable;
pub(super) use selector::{Fields, label_selector};
pub use shapes::ShapeStore;
