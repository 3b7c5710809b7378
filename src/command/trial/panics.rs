//! Panics that nobody intended. joiner goes on after each, and so does the world, so that only who listens hears of them.

use std::cell::RefCell;

use tokio::time::Instant;

use crate::core::promises::{Invariant, SABOTAGE};
use crate::sim::invariants::{Invariants, Journal, Violation};

/// A panic.
struct Panic {
    at: Instant,
    place: String,
    message: String,
}

thread_local! {
    /// What has been heard on this thread; nothing where nobody listens. A history is played by one thread, computations included.
    static HEARD: RefCell<Option<(Journal, Vec<Panic>)>> = const { RefCell::new(None) };
}

/// Listens to the panics of this thread for as long as it lives.
pub(super) struct Listener(Instant);

impl Listener {
    /// Begins to listen. Each panic is written into the journal when it happens.
    pub(super) fn new(journal: &Journal) -> Self {
        install();
        HEARD.set(Some((journal.clone(), Vec::new())));
        Self(Instant::now())
    }

    /// Reports what was heard: once for each place, as it was there first.
    pub(super) fn report(&self, invariants: &Invariants) {
        let heard = HEARD.with_borrow_mut(|heard| heard.as_mut().map(|(_, heard)| std::mem::take(heard)));
        for Panic { at, place, message } in heard.unwrap_or_default() {
            let what = format!("a panic at {place}: {message}");
            let at = at.saturating_duration_since(self.0);
            // What happened to the world as a whole before tells how it came.
            let objects = vec![place, String::new()];
            invariants.note_broken(Violation { invariant: Invariant::NoPanic, at, objects, what });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        HEARD.set(None);
    }
}

/// Hears all panics of the process. Those on purpose say nothing on stderr: a thousand histories have thousands of them.
fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let message = panic.payload_as_str().unwrap_or("(no text)");
            if message.starts_with(SABOTAGE) {
                return;
            }
            usual(panic);
            let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
            HEARD.with_borrow_mut(|heard| {
                if let Some((journal, panics)) = heard {
                    journal.note(&place, || format!("PANIC: {message}"));
                    panics.push(Panic { at: Instant::now(), place, message: message.to_owned() });
                }
            });
        }));
    });
}
