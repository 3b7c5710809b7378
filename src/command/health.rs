//! What the probes of a running joiner ask for: nothing that a restart would not mend.
//!
//! Kubernetes answers a probe that fails with a restart (`/healthz`), or holds up a rollout (`/readyz`). A cloud or an API server in trouble, a
//! lease that another holds, an open circuit breaker, an actor that fails and is started anew: none of these is any better after that.

use std::time::Duration;

use crate::actors::Joiner;
use crate::actors::runtime::Kind;
use crate::admin::Check;

/// How long an actor may take for one message. With 100,000 pods the longest takes some tenths of a second.
const STALLED: Duration = Duration::from_mins(1);
/// How long a plan may take. That of 100,000 pods takes some three seconds on a core of its own; with a hundredth of one it would be five minutes.
const LOST: Duration = Duration::from_mins(10);

/// For readiness: the cluster was listed. A restart mends a watch that never got so far. Standing by is being ready, too.
pub(super) fn listed(joiner: &Joiner) -> Check {
    let boards = joiner.boards().clone();
    Check::new("state", move || {
        if boards.snapshot().is_complete() { Ok(()) } else { Err("the cluster has not been listed yet".to_owned()) }
    })
}

/// For liveness: the tree stands, every actor comes back from its messages, and every plan to its actor. One that does not cannot be ended from within; only a new process
/// helps.
pub(super) fn stirring(joiner: &Joiner) -> Check {
    let observations = joiner.house().observations.clone();
    let stands = joiner.pulse();
    Check::new("actors", move || {
        if !stands() {
            let what = "the supervisor has ended, and all actors with it";
            tracing::error!("{what}; the liveness probe fails, so that joiner is started anew");
            return Err(what.to_owned());
        }
        let named = |(kind, name, time): (Kind, String, Duration)| format!("{kind} {name} for {} s", time.as_secs());
        let stalled = observations.stalled(STALLED).into_iter().map(named);
        let lost = observations.lost_in_thought(LOST).into_iter().map(|one| format!("the plan of {}", named(one)));
        let named: Vec<String> = stalled.chain(lost).collect();
        if named.is_empty() {
            return Ok(());
        }
        let named = named.join(", ");
        tracing::error!(actors = named, "no progress; the liveness probe fails, so that joiner is started anew");
        Err(format!("no progress: {named}"))
    })
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
