//! What is still to go wrong, and what has: shared by everybody whom faults can befall.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use tokio::time::Instant;

use super::kind::Fault;
use super::plan::{Mishap, Plan};
use crate::sim::invariants::Journal;

/// Something that befalls joiner itself, to be done by whoever runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Kill it now, and start it again after a while.
    Kill(Duration),
    /// Let an actor panic; the number decides which, and when.
    Panic(u64),
    /// Let an actor stand still for a while; the number decides which, and when.
    Stall(u64, Duration),
    /// Let its clock be wrong by so many milliseconds from now on.
    Clock(i64),
}

/// What is still to go wrong. Clones are handles to the same list.
#[derive(Clone)]
pub struct Mishaps(Arc<Shared>);

struct Shared {
    start: Instant,
    /// From when on nothing goes wrong any more.
    calm: Duration,
    journal: Journal,
    orders: UnboundedSender<Order>,
    state: Mutex<State>,
}

struct State {
    /// By kind (in the order of [`Fault::ALL`]) and time.
    waiting: Vec<VecDeque<Mishap>>,
    /// How often each kind has struck.
    counts: BTreeMap<&'static str, u64>,
}

impl Mishaps {
    /// A plan whose time starts now and ends at `calm`, and where the orders for joiner come out.
    pub fn new(plan: &Plan, calm: Duration, journal: Journal) -> (Self, UnboundedReceiver<Order>) {
        let mut waiting: Vec<_> = Fault::ALL.iter().map(|_| VecDeque::new()).collect();
        for mishap in &plan.0 {
            waiting[mishap.fault as usize].push_back(*mishap);
        }
        let (orders, reader) = unbounded();
        let state = Mutex::new(State { waiting, counts: BTreeMap::new() });
        (Self(Arc::new(Shared { start: Instant::now(), calm, journal, orders, state })), reader)
    }

    /// How often each kind has struck so far.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.state().counts.clone()
    }

    /// Whether one of these kinds is still to come.
    pub(super) fn expects(&self, faults: &[Fault]) -> bool {
        let state = self.state();
        faults.iter().any(|fault| !state.waiting[*fault as usize].is_empty())
    }

    /// An occasion for a fault that strikes once, and the object that it would befall: it strikes now, or not.
    pub(super) fn strikes(&self, fault: Fault, object: impl Display) -> Option<Mishap> {
        self.strikes_one(fault, |_| object)
    }

    /// The same where the mishap itself decides which object it befalls.
    pub(super) fn strikes_one<D: Display>(&self, fault: Fault, object: impl FnOnce(&Mishap) -> D) -> Option<Mishap> {
        let mishap = self.drawn(fault)?;
        if self.journals() {
            self.laid(fault, &object(&mishap).to_string());
        }
        Some(mishap)
    }

    fn drawn(&self, fault: Fault) -> Option<Mishap> {
        let mut state = self.state();
        let waiting = &mut state.waiting[fault as usize];
        let first = waiting.front_mut()?;
        let elapsed = self.0.start.elapsed();
        if first.at > elapsed || elapsed >= self.0.calm {
            return None;
        }
        if first.pass_over > 0 {
            first.pass_over -= 1;
            return None;
        }
        let mishap = waiting.pop_front()?;
        state.count(fault);
        Some(mishap)
    }

    /// An occasion for a fault that lasts, and befalls all alike: whether it lasts now.
    pub(super) fn holds(&self, fault: Fault) -> Option<Mishap> {
        let mut state = self.state();
        let elapsed = self.0.start.elapsed();
        let waiting = &mut state.waiting[fault as usize];
        while waiting.front().is_some_and(|first| first.at + first.lasting <= elapsed) {
            waiting.pop_front();
        }
        let mishap = *waiting.front_mut().filter(|first| first.at <= elapsed)?;
        // Counted once, however many it hits.
        if let Some(first) = waiting.front_mut()
            && std::mem::replace(&mut first.pass_over, u64::MAX) != u64::MAX
        {
            state.count(fault);
            self.laid(fault, "");
        }
        Some(mishap)
    }

    /// Takes all that is to happen by itself out of the list, in order of time.
    pub(super) fn take(&self, faults: &[Fault]) -> Vec<Mishap> {
        let mut state = self.state();
        let mut taken: Vec<_> =
            faults.iter().flat_map(|fault| std::mem::take(&mut state.waiting[*fault as usize])).collect();
        taken.sort_by_key(|mishap| (mishap.at, mishap.fault));
        taken
    }

    /// Notes that a fault which was taken has struck.
    pub(super) fn struck(&self, fault: Fault, object: &str) {
        self.state().count(fault);
        self.laid(fault, object);
    }

    /// Notes that one was laid for somebody who may never come.
    pub(super) fn laid(&self, fault: Fault, object: &str) {
        self.note(object, || format!("FAULT {}", fault.as_str()));
    }

    /// Notes that one that was laid has held somebody back.
    pub(super) fn bitten(&self, fault: Fault) {
        self.state().count(fault);
    }

    /// Whether nothing goes wrong any more.
    pub(super) fn are_over(&self) -> bool {
        self.0.start.elapsed() >= self.0.calm
    }

    /// When the history began.
    pub(super) fn start(&self) -> Instant {
        self.0.start
    }

    /// Hands an order to whoever runs joiner.
    pub(super) fn order(&self, order: Order) {
        // Nobody runs joiner any more when the history is over.
        self.0.orders.unbounded_send(order).ok();
    }

    /// Whether anything is written into the journal at all.
    pub(super) fn journals(&self) -> bool {
        self.0.journal.is_kept()
    }

    /// Writes into the journal.
    pub(super) fn note(&self, object: &str, what: impl FnOnce() -> String) {
        self.0.journal.note(object, what);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, fault: Fault) {
        *self.counts.entry(fault.as_str()).or_default() += 1;
    }
}
