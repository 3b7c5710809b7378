//! How long to wait after failures in a row.

use std::time::Duration;

/// Wait after the n-th failure in a row (the first is n = 1): begins at `first`, doubles, and stays at `longest`.
pub fn backoff(first: Duration, longest: Duration, in_a_row: u32) -> Duration {
    // Sixteen doublings are more than any of our waits needs to reach its longest.
    first.saturating_mul(1 << in_a_row.saturating_sub(1).min(16)).min(longest)
}
