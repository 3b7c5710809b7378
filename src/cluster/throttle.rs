//! Keeps joiner within the request rate that it was given: a token bucket.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket. Whoever comes when it is empty waits in line.
#[derive(Debug)]
pub(super) struct Throttle {
    per_second: f64,
    burst: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Below zero when requests are waiting.
    tokens: f64,
    since: Instant,
}

impl Throttle {
    /// A full bucket of `burst` tokens that gains `per_second` tokens a second.
    pub(super) fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        Self { per_second, burst, bucket: Mutex::new(Bucket { tokens: burst, since: Instant::now() }) }
    }

    /// Waits until a request may be sent. A rate of zero or less means no limit.
    pub(super) async fn pass(&self) {
        let wait = self.reserve();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes a token and says how long until it is there.
    fn reserve(&self) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(bucket.since).as_secs_f64() * self.per_second;
        bucket.tokens = (bucket.tokens + gained).min(self.burst) - 1.0;
        bucket.since = now;
        // A token that is a rounding error away is there.
        if bucket.tokens > -1e-6 { Duration::ZERO } else { Duration::from_secs_f64(-bucket.tokens / self.per_second) }
    }
}
