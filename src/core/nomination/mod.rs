//! Nomination: how planned pods get to the nodes that were bought for them.
//!
//! kube-scheduler tries the node in `status.nominatedNodeName` first, and keeps the room there from others. So the pods of a plan are nominated while
//! their nodes are still closed, and the nodes of a plan open together. Who has no nomination then is expensive as well as in the way: whenever
//! kube-scheduler weighs a node it copies every pod that is nominated to it, and for such a pod it weighs all nodes (15 µs a pod: with 10,000
//! nominated, 150 ms). A nominated pod costs it one node.

mod contested;
mod doors;
mod opening;
mod queue;
mod seats;

pub use contested::is_contested;
pub use doors::{Doors, left_aside};
pub use opening::{AT_MOST, Opening, heard_after, is_expected};
pub use queue::Nominations;
pub use seats::Nomination;
