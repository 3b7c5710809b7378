//! Whether a write may still be sent, asked at the last moment.
//!
//! Whoever starts a call knows whether this joiner holds the lease, and a client knows when its request really goes out: after it has waited for its
//! turn, or before it is repeated, the lease may be another's. So the one hands the other its licence, along with the call.

use std::sync::Arc;

/// Says whether writes are allowed at this moment.
pub type Licence = Arc<dyn Fn() -> bool + Send + Sync>;

tokio::task_local! {
    static LICENCE: Licence;
}

/// What a client says of a write that it did not send.
pub const WITHDRAWN: &str = "not sent, as this joiner may not write any more: it has lost the lease, or ends";

/// Runs a call whose writes are sent only as long as the licence holds.
pub async fn under<T>(licence: Licence, call: impl Future<Output = T>) -> T {
    LICENCE.scope(licence, call).await
}

/// Whether a write may be sent now. A call that was started without a licence needs none.
pub fn holds() -> bool {
    LICENCE.try_with(|licence| licence()).unwrap_or(true)
}
