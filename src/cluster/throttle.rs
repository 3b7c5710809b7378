//! Keeps joiner within the request rate that it was given: a token bucket.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// A token bucket. Whoever comes when it is empty waits in line, and takes nothing with him when he leaves it.
#[derive(Debug)]
pub(super) struct Throttle {
    per_second: f64,
    burst: f64,
    /// Held by the first in line.
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
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
        if self.per_second <= 0.0 {
            return;
        }
        let mut bucket = self.bucket.lock().await;
        while let Some(wait) = self.missing(&mut bucket) {
            sleep(wait).await;
        }
        bucket.tokens -= 1.0;
    }

    /// How long until there is a token; nothing when there is one.
    fn missing(&self, bucket: &mut Bucket) -> Option<Duration> {
        let now = Instant::now();
        let gained = now.duration_since(bucket.since).as_secs_f64() * self.per_second;
        bucket.tokens = (bucket.tokens + gained).min(self.burst);
        bucket.since = now;
        // A token that is a rounding error away is there.
        (bucket.tokens < 1.0 - 1e-6).then(|| Duration::from_secs_f64((1.0 - bucket.tokens) / self.per_second))
    }
}
