//! What a stand-in means to do later: things with their times, in order.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Things to do, by time; of those due at the same time, the first noted comes first.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    entries: BTreeMap<(Instant, u64), T>,
    noted: u64,
}

impl<T> Agenda<T> {
    pub(super) fn new() -> Self {
        Self { entries: BTreeMap::new(), noted: 0 }
    }

    pub(super) fn at(&mut self, when: Instant, what: T) {
        self.noted += 1;
        self.entries.insert((when, self.noted), what);
    }

    pub(super) fn after(&mut self, wait: Duration, what: T) {
        self.at(Instant::now() + wait, what);
    }

    /// The next thing, once it is due; waits for ever when there is none. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> T {
        loop {
            let Some((due, _)) = self.entries.keys().next() else { return std::future::pending().await };
            sleep_until(*due).await;
            if let Some((_, what)) = self.entries.pop_first() {
                return what;
            }
        }
    }
}
