//! Keys that change while joiner runs: once they are refused they are read again where they came from, and used when they are others.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::access::Keys;

/// Reads the keys again; in words, why they cannot be read.
pub type Reread = Arc<dyn Fn() -> BoxFuture<'static, Result<Keys, String>> + Send + Sync>;

/// Keys that are refused are read again this often at most: a Secret is changed by hand.
const EVERY: Duration = Duration::from_secs(10);

/// The keys that are used now.
pub(super) struct Renewal {
    state: Mutex<State>,
    reread: Option<Reread>,
}

struct State {
    keys: Arc<Keys>,
    looked: Option<Instant>,
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewal").field("can_be_read_again", &self.reread.is_some()).finish_non_exhaustive()
    }
}

impl Renewal {
    pub(super) fn new(keys: Keys, reread: Option<Reread>) -> Self {
        Self { state: Mutex::new(State { keys: Arc::new(keys), looked: None }), reread }
    }

    pub(super) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).keys)
    }

    /// Reads refused keys again, if it is time. Says whether they are others now.
    pub(super) async fn renew(&self) -> bool {
        let Some(reread) = &self.reread else { return false };
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
                return false;
            }
            state.looked = Some(Instant::now());
        }
        match reread().await {
            Ok(keys) => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let changed = *state.keys != keys;
                if changed {
                    tracing::info!(
                        access_key = keys.access_key,
                        "the keys were refused and have changed, using the new ones"
                    );
                    state.keys = Arc::new(keys);
                }
                changed
            }
            Err(error) => {
                tracing::warn!(error, "the keys were refused, and cannot be read again");
                false
            }
        }
    }
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
mod tests;
