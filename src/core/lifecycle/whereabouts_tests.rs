//! A machine that the cloud denies is asked for again and again before it is believed to be gone.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::facts::samples::{claim, machine, start};
use crate::core::facts::{Claim, Fact, Fold};
use crate::core::labels;
use crate::core::lifecycle::step::after;
use crate::core::lifecycle::{Denials, Memory, step};

/// A NodeClaim that is being deleted, whose machine the cloud knows no more.
fn dying() -> Claim {
    Claim {
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        deleting: Some(start()),
        provider_id: Some("sim://a/1".into()),
        ..claim()
    }
}

/// What is next, for a cloud that may deny a machine for a minute.
fn look(memory: &Memory, now: Timestamp) -> Step {
    let (claim, mut fold) = (dying(), Fold::default());
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    step(&Situation::of(&claim, fold.snapshot(), memory, now).with_denial(Duration::from_mins(1)))
}

/// A round has ended in which the cloud knew no machine, as the actor takes it in.
fn round(memory: &mut Memory, now: Timestamp) {
    memory.denials.add(now, Duration::from_mins(1));
    memory.tried.clear();
    let is_believed = memory.denials.suffice(Duration::from_mins(1));
    memory.sight = if is_believed { Sight::Gone } else { Sight::Missing };
}

#[test]
fn a_machine_is_gone_when_five_rounds_over_a_minute_have_said_so() {
    let (mut memory, mut now) = (Memory { sight: Sight::Missing, ..Memory::default() }, start());
    for _ in 0..4 {
        assert!(matches!(look(&memory, now).act, Some(Act::Get(_))), "by its ID");
        memory.tried.insert("sim://a/1".into());
        assert!(matches!(look(&memory, now).act, Some(Act::Find(_))), "and by its mark");
        round(&mut memory, now);
        let wait = look(&memory, after(now, 14));
        assert_eq!((wait.act, wait.look_at), (None, Some(after(now, 15))));
        assert!(wait.waits_for.unwrap().contains("for 60 s"));
        now = after(now, 15);
    }
    round(&mut memory, now);
    assert_eq!(memory.sight, Sight::Gone);
}

#[test]
fn a_clock_that_jumps_cuts_one_pause_short_and_no_more() {
    let mut memory = Memory { sight: Sight::Missing, ..Memory::default() };
    round(&mut memory, start());
    let ahead = after(start(), 7200);
    assert!(look(&memory, ahead).act.is_some(), "two hours have passed, it seems");
    round(&mut memory, ahead);
    assert_eq!((look(&memory, ahead).act, &memory.sight), (None, &Sight::Missing));
}

#[test]
fn what_was_denied_before_a_machine_was_launched_counts_no_more() {
    let mut memory = Memory { absent_since: Some(start()), ..Memory::default() };
    round(&mut memory, start());
    round(&mut memory, after(start(), 15));
    memory.shown(machine());
    assert_eq!((memory.denials, memory.absent_since), (Denials::default(), None));
    assert!(matches!(memory.sight, Sight::Present(_)));
}
