//! Machines that the cloud says not to have, though they run.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::ids::ProviderId;

/// For how long at a stretch a cloud of bad days may say so: longer than any such fault lasts.
pub(super) const MAY_DENY_FOR: Duration = Duration::from_mins(1);

/// Machines that are denied, and until when.
#[derive(Debug, Default)]
pub(super) struct Denials(BTreeMap<ProviderId, Instant>);

impl Denials {
    /// Denies a machine from now on; not one that was denied a moment ago, which would be a longer stretch than was promised.
    pub(super) fn begin(&mut self, id: &ProviderId, lasting: Duration) -> bool {
        let now = Instant::now();
        self.0.retain(|_, until| *until + MAY_DENY_FOR > now);
        if self.0.contains_key(id) {
            return false;
        }
        self.0.insert(id.clone(), now + lasting);
        true
    }

    /// Whether a machine is denied now.
    pub(super) fn has(&self, id: &ProviderId) -> bool {
        self.0.get(id).is_some_and(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_machine_is_denied_for_longer_than_was_promised() {
        let (mut denials, id) = (Denials::default(), ProviderId::from("sim://a/1"));
        assert!(denials.begin(&id, Duration::from_secs(40)));
        assert!(denials.has(&id) && !denials.begin(&id, Duration::from_secs(40)));
        sleep(Duration::from_secs(41)).await;
        assert!(!denials.has(&id) && !denials.begin(&id, Duration::from_secs(40)), "a moment ago");
        sleep(MAY_DENY_FOR).await;
        assert!(denials.begin(&id, Duration::from_secs(40)));
    }
}
