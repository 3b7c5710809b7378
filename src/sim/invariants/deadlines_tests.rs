//! Whose word a deadline is.

use std::time::Duration;

use super::*;
use crate::clouds::Error;
use crate::core::facts::Status;
use crate::core::facts::samples::{self, condition};
use crate::core::ids::ClaimName;
use crate::core::time::rfc3339;
use crate::sim::invariants::stage::Stage;
use crate::sim::props;

/// What joiner writes of the NodeClaim's deadline takes effect.
fn write(stage: &Stage, text: &str) {
    let (name, annotations) = (ClaimName::from("one"), [(labels::TERMINATION_TIMESTAMP.into(), text.into())].into());
    let patch = ClaimPatch { annotations, ..ClaimPatch::default() };
    stage.invariants.nodeclaim_to_be_changed(&name, &patch);
    stage.cluster.store().patch_claim(&name, &patch).unwrap();
}

/// Minutes from the deletion to the deadline.
fn minutes(stage: &Stage) -> Option<i64> {
    let claim = stage.claim("one");
    let end = stage.invariants.deadline(&claim)?.checked_add(ROUNDED).ok()?;
    Some(end.duration_since(claim.deleting?).as_mins())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_the_end_of_the_grace_period_whatever_joiner_writes() {
    for (grace, end) in [(None, None), (Some(Duration::from_mins(10)), Some(10))] {
        let stage = Stage::new();
        stage.serving(&props::draft("one")).await;
        let now = stage.cluster.store().now();
        write(&stage, &rfc3339(now));
        stage.cluster.store().update_claim(&"one".into(), |claim| claim.termination_grace = grace);
        assert_eq!(stage.invariants.deadline(&stage.claim("one")), None, "it is not being deleted");
        stage.cluster.store().delete_claim(&"one".into()).unwrap();
        assert_eq!(minutes(&stage), end);
        write(&stage, "tomorrow at noon");
        assert_eq!(minutes(&stage), end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_a_nodeclaim_is_made_with_is_the_users_word() {
    let stage = Stage::new();
    let end = stage.cluster.store().now().checked_add(SignedDuration::from_mins(3)).unwrap();
    stage.cluster.store().apply_claim(Claim {
        name: "one".into(),
        annotations: [(labels::TERMINATION_TIMESTAMP.into(), rfc3339(end).into())].into(),
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        termination_grace: Some(Duration::from_mins(10)),
        ..samples::claim()
    });
    stage.settle().await;
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    assert_eq!(stage.invariants.deadline(&stage.claim("one")), Some(end));
    write(&stage, &rfc3339(end - SignedDuration::from_mins(1)));
    assert_eq!(minutes(&stage), Some(10), "what joiner writes over it is not");
}

/// A NodeClaim whose reboot gives pods two minutes, and what the cloud says of it.
async fn rebooting(answer: Result<(), Error>) -> Stage {
    let stage = Stage::new();
    let (id, _) = stage.serving(&props::draft("one")).await;
    stage.cluster.store().update_claim(&"one".into(), |claim| {
        claim.annotations.insert(labels::REBOOT_GRACE.into(), "2m".into());
        claim.conditions.push(condition("Rebooting", Status::True));
    });
    stage.invariants.reboot_begins(&id, "one");
    stage.invariants.reboot_ends(&id, &answer);
    let end = stage.cluster.store().now().checked_add(SignedDuration::from_mins(2)).unwrap();
    write(&stage, &rfc3339(end));
    stage.cluster.store().delete_claim(&"one".into()).unwrap();
    stage
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_has_failed_has_a_deadline_that_joiner_sets() {
    let stage = rebooting(Ok(())).await;
    assert_eq!(minutes(&stage), None, "it has not failed");
    let stage = rebooting(Err(Error::Unsupported("restarts"))).await;
    assert_eq!(minutes(&stage), Some(2));
    write(&stage, "tomorrow at noon");
    assert_eq!(minutes(&stage), None, "somebody has overwritten it");
}
