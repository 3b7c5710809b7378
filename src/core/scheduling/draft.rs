//! A planned node while it is being filled.

use smallvec::SmallVec;

use crate::core::facts::HostPort;

use super::algebra::ProfileId;
use super::choose::Promises;
use super::least::Least;
use super::masks::Mask;
use super::shelf::Amounts;
use super::shunned::Shunned;
use super::topology::CounterId;

/// Counters, and the most that each may count on one node.
pub(super) type Caps = SmallVec<[(CounterId, u32); 1]>;

/// A NodeClaim to be. It keeps every instance type that holds its pods; `aim` says how full it should become.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) pool: usize,
    pub(super) profile: ProfileId,
    pub(super) requests: Amounts,
    /// Room beside daemons that it is meant to fill.
    pub(super) aim: Amounts,
    /// How many pods of each entry of the demand are still expected.
    pub(super) promises: Promises,
    /// What those will take.
    pub(super) reserved: Amounts,
    pub(super) types: Mask,
    /// How many values of which labels `types` must have: what the pool asks for, or what is left of that.
    pub(super) least: Least,
    pub(super) ports: Vec<HostPort>,
    /// DaemonSets whose pods may not come to it.
    pub(super) shunned: Shunned,
    /// The spread constraints per node of its pods: whom each counts, and how many of them the node may have in the end.
    pub(super) caps: Caps,
    /// What it takes of its pool's limits as long as all of `types` are possible.
    pub(super) charged: Amounts,
    /// Pods by number, in the order of their placement.
    pub(super) pods: Vec<usize>,
}
