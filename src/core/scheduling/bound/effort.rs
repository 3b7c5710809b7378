//! How much work a search may do.

use std::cell::Cell;

/// What may still be spent on a search, in cells of tables that are worked out; each takes one to three nanoseconds.
///
/// It is counted and not timed, so that the same question has the same answer however busy the machine is.
#[derive(Debug)]
pub(in crate::core::scheduling) struct Effort {
    left: Cell<u64>,
}

impl Effort {
    /// So many cells.
    pub(in crate::core::scheduling) fn of(cells: u64) -> Self {
        Self { left: Cell::new(cells) }
    }

    /// One of so many equal parts, set aside.
    pub(in crate::core::scheduling) fn part(&self, of: u64) -> Self {
        let part = self.left.get() / of.max(1);
        self.left.set(self.left.get() - part);
        Self::of(part)
    }

    /// Leaves no more than so many cells.
    pub(in crate::core::scheduling) fn limit(&self, cells: u64) {
        self.left.set(self.left.get().min(cells));
    }

    /// Spends some, as far as there are any.
    pub(in crate::core::scheduling) fn spend(&self, cells: usize) {
        self.left.set(self.left.get().saturating_sub(cells as u64));
    }

    /// Whether nothing is left.
    pub(in crate::core::scheduling) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}
