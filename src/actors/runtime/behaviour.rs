//! What an actor is: a value, how it is born, and what it does with a message.

use std::time::Duration;

use jiff::Timestamp;

use super::instance::Instance;
use super::{House, Kind, Message, Outcome, Slot, View, shell};

/// An actor. Handlers are plain functions that never await: what takes time is started through [`Cx`] and comes back as a message.
pub trait Behaviour: Sized + Send + 'static {
    /// What may be in its mailbox.
    type Msg: Message;
    /// All that is needed for it to be born, and born again.
    type Args: Clone + Send + Sync + 'static;
    /// Which kind it is.
    const KIND: Kind;

    /// A new instance. It knows nothing but `args`: what its predecessor knew is found again in the snapshot and in the cloud.
    fn born(args: &Self::Args, cx: &Cx<Self::Msg>) -> Self;

    /// Deals with one message. A panic ends the instance and another takes its place.
    fn handle(&mut self, message: Self::Msg, cx: &Cx<Self::Msg>);

    /// What it shows of itself.
    fn observe(&self, now: Timestamp) -> View;

    /// A child has ended. Only parents need this.
    fn child_ended(&mut self, _ended: &Ended, _cx: &Cx<Self::Msg>) {}
}

/// The end of a child.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which child.
    pub id: u64,
    /// What went wrong; nothing when it stopped by itself.
    pub failure: Option<String>,
}

/// What an actor may do to the world while it handles a message.
pub struct Cx<M: Message> {
    pub(super) myself: Instance<M>,
    pub(super) slot: Slot<M>,
    /// Clock, operations, observations.
    pub house: House,
}

/// A message to oneself that is on its way; it does not arrive once this is dropped.
#[derive(Debug)]
pub struct Timer(tokio::task::JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The mailbox of one instance: unlike a slot it does not lead to its successor.
#[derive(Debug)]
pub struct Mailbox<M: Message> {
    instance: Instance<M>,
    slot: Slot<M>,
}

impl<M: Message> Mailbox<M> {
    /// Sends a message, and says whether the instance is still there.
    pub fn cast(&self, message: M) -> bool {
        let alive = self.instance.cast(self.slot.meter(), message);
        if !alive {
            self.slot.meter().dropped();
        }
        alive
    }
}

impl<M: Message> Cx<M> {
    /// This instance's mailbox, for a task that runs beside it.
    pub fn mailbox(&self) -> Mailbox<M> {
        Mailbox { instance: self.myself.clone(), slot: self.slot.clone() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.house.clock.now()
    }

    /// This actor's own identity.
    pub fn id(&self) -> u64 {
        self.myself.actor().get_id().pid()
    }

    /// This actor's own address.
    pub fn slot(&self) -> &Slot<M> {
        &self.slot
    }

    /// Sends this instance a message after a while. It is lost when the instance dies: its successor sets its own.
    #[must_use = "the message does not arrive once the timer is dropped"]
    pub fn after(&self, delay: Duration, message: M) -> Timer {
        let mailbox = self.mailbox();
        Timer(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            mailbox.cast(message);
        }))
    }

    /// Sends this instance a message, behind what is already in its mailbox.
    pub fn cast(&self, message: M) {
        self.mailbox().cast(message);
    }

    /// Ends this instance for good, after the current message.
    pub fn stop(&self) {
        self.myself.actor().stop(None);
    }

    /// Runs a call beside this actor and sends it the outcome; a change is not made once the actor is gone. See [`super::Operations::start`].
    pub fn start<T, E>(
        &self,
        permits: super::Permits,
        call: impl Future<Output = Result<T, E>> + Send + 'static,
        then: impl FnOnce(Outcome<T, E>) -> M + Send + 'static,
    ) where
        T: Send + 'static,
        E: super::Refusal + Send + 'static,
    {
        let (mailbox, myself) = (self.mailbox(), self.myself.clone());
        self.house.operations.start(
            permits,
            move || myself.is_alive(),
            call,
            move |outcome| {
                mailbox.cast(then(outcome));
            },
        );
    }

    /// Runs a call beside this actor whose outcome nobody needs to hear.
    pub fn start_unheard<T, E>(
        &self,
        permits: super::Permits,
        call: impl Future<Output = Result<T, E>> + Send + 'static,
    ) where
        T: Send + 'static,
        E: super::Refusal + Send + 'static,
    {
        let myself = self.myself.clone();
        self.house.operations.start(permits, move || myself.is_alive(), call, drop);
    }

    /// Runs a computation beside this actor and sends it the result; in a simulation it runs here and now, so that histories repeat. A
    /// panic in it is a result too.
    pub fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(Result<T, String>) -> M + Send + 'static,
    ) {
        let mailbox = self.mailbox();
        if self.house.clock.is_simulated() {
            mailbox.cast(then(Ok(work())));
            return;
        }
        let computation = self.slot.meter().computes();
        tokio::spawn(async move {
            let result = tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string());
            drop(computation);
            mailbox.cast(then(result));
        });
    }

    /// Starts a child and puts it into a slot. The identity it returns comes back in [`Behaviour::child_ended`].
    pub fn spawn<B: Behaviour>(&self, name: &str, args: B::Args, slot: &Slot<B::Msg>) -> Option<u64> {
        shell::spawn::<B>(name, args, slot, &self.house, Some(self.myself.actor().get_cell()))
    }
}
