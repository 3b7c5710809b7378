//! What all actors of one joiner share.

use super::{Clock, Observations, Operations, Promises, Saboteur};

/// The common ground of one joiner's actors. Several houses can stand in one process, as in tests.
#[derive(Clone, Debug)]
pub struct House {
    /// The time.
    pub clock: Clock,
    /// Where calls run that take time.
    pub operations: Operations,
    /// Who is alive.
    pub observations: Observations,
    /// Which promises were seen to be broken.
    pub promises: Promises,
    /// Panics and standstills on purpose.
    pub saboteur: Saboteur,
}
