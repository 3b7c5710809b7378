//! ResourceSlices: the devices that a driver publishes for a Node.

use std::sync::Arc;

use crate::core::ids::NodeName;

/// A ResourceSlice, as far as it tells whether all devices of a pool are published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSlice {
    /// Its name.
    pub name: Arc<str>,
    /// The Node that has the devices; nothing for those that several Nodes reach.
    pub node: Option<NodeName>,
    /// The driver that publishes it.
    pub driver: Arc<str>,
    /// The pool of devices of which it is a part.
    pub pool: Arc<str>,
    /// The generation of the pool to which it belongs: of a pool that is published anew, the highest one counts.
    pub generation: i64,
    /// How many slices the pool consists of at this generation.
    pub of: i64,
}
