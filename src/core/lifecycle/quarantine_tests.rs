//! A NodeClaim that nobody can look after says so, and for how long.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{serving, serving_node, start};
use crate::core::facts::{Broken, Fact, Fold};
use crate::core::lifecycle::{Act, Memory, Step, step};

/// A serving NodeClaim that was quarantined at the start, and what its next actor does so many seconds after it was born then.
fn look(seconds: i64) -> Step {
    let patch = quarantine(&serving(), "it fails", start()).unwrap();
    let claim = Claim { conditions: patch.conditions.unwrap(), ..serving() };
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
    let memory = Memory { since: Some(start()), ..Memory::default() };
    step(&Situation::of(&claim, fold.snapshot(), &memory, start() + SignedDuration::from_secs(seconds)))
}

#[test]
fn it_is_said_and_the_nodeclaim_is_no_less_ready_for_it() {
    let patch = quarantine(&serving(), "it fails", start()).unwrap();
    assert_eq!(patch.version, Some(serving().version));
    let conditions = patch.conditions.unwrap();
    let said = find_condition(&conditions, QUARANTINED).unwrap();
    assert_eq!((said.status, &*said.reason, &*said.message), (Status::True, REASON, "it fails"));
    assert_eq!(find_condition(&conditions, "Ready").unwrap().status, Status::True);
    let told = Claim { conditions, ..serving() };
    assert_eq!(quarantine(&told, "it fails", start()), None, "once");
    assert!(quarantine(&told, "it fails again", start()).is_some());
    let unreadable = Some(Broken { problem: "status.conditions".into(), conditions: true });
    assert_eq!(quarantine(&Claim { broken: unreadable, ..serving() }, "it fails", start()), None);
}

#[test]
fn it_ends_when_an_actor_has_lived_for_a_while() {
    let is_kept = |step: Step| match step.act {
        Some(Act::PatchStatus(patch)) => find_condition(&patch.conditions.unwrap(), QUARANTINED).is_some(),
        act => act.is_none(),
    };
    assert_eq!(look(59).look_at, Some(start() + HEALTHY_AFTER));
    assert!(is_kept(look(59)));
    assert!(!is_kept(look(60)));
}
