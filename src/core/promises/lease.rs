//! For how long whoever has the lease may act on it.

use std::time::Duration;

/// A lease that was not renewed for this long is no longer trusted (client-go's renew deadline; the lease itself lasts 15 s).
pub const LEASE_TRUSTED: Duration = Duration::from_secs(10);
