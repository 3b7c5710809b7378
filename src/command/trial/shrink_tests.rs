//! What is told of the shortest history.

use std::time::Duration;

use super::*;
use crate::config::{Command, parse};
use crate::sim::faults::Profile;

#[test]
fn the_promise_that_was_sought_for_is_told_and_a_command_that_plays_the_day_again() {
    let profile = Profile::parse("sold-out=2.5,watch-stale").unwrap();
    let broken =
        |invariant, what: &str| Violation { invariant, at: Duration::ZERO, objects: vec![], what: what.into() };
    let violations = vec![broken(Invariant::NoOrphan, "the other"), broken(Invariant::OneMachine, "the one")];
    let text = Shortest {
        invariant: Invariant::OneMachine,
        history: History::draw(7, &profile).unwrap(),
        told: Told { violations, ..Told::default() },
        attempts: 1,
        cut_off: false,
    }
    .text();
    assert!(text.contains("what it breaks: one-machine-per-nodeclaim at 00:00:00.000: the one\n"), "{text}");
    let (_, command) = text.split_once("again: joiner ").unwrap();
    let Ok(Command::Simulate(simulate)) = parse(command.split(' ').map(str::to_owned), |_| None) else {
        panic!("{command} is refused");
    };
    let faults = simulate.faults.unwrap();
    assert_eq!((simulate.seed, faults.seeds, Profile::parse(&faults.profile)), (Some(7), None, Ok(profile)));
}
