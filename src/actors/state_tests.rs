//! Facts wait where they come from while `state` is busy.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures::{FutureExt, StreamExt, stream};

use super::{BACKLOG, carry};
use crate::core::facts::{Fact, Kind};

#[test]
fn a_watch_is_read_no_further_than_the_backlog_reaches() {
    let endless = stream::repeat_with(|| Fact::Relisting(Kind::Pod)).boxed();
    let mailbox = Rc::new(RefCell::new(Vec::new()));
    let mut carrying = pin!(carry(endless, |fact, place| {
        mailbox.borrow_mut().push((fact, place));
        true
    }));
    let mut go_on = || {
        // A future that has done enough for one turn asks to be polled again: until it waits for room.
        let mut before = usize::MAX;
        while before != mailbox.borrow().len() {
            before = mailbox.borrow().len();
            assert_eq!((&mut carrying).now_or_never(), None);
        }
        before
    };
    assert_eq!(go_on(), BACKLOG);
    mailbox.borrow_mut().drain(..10);
    assert_eq!(mailbox.borrow().len(), BACKLOG - 10);
    assert_eq!(go_on(), BACKLOG);
}

#[test]
fn a_panic_while_an_object_is_read_is_the_end_of_the_stream_and_not_of_who_tells_of_it() {
    let broken = stream::once(async { panic!("an object that nobody thought of") }).boxed();
    assert_eq!(carry(broken, |_, _| true).now_or_never(), Some(()));
}

#[test]
fn nothing_is_carried_to_nobody() {
    let endless = stream::repeat_with(|| Fact::Relisting(Kind::Pod)).boxed();
    assert_eq!(carry(endless, |_, _| false).now_or_never(), Some(()));
}
