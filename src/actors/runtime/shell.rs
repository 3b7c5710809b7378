//! The adapter between a [`Behaviour`] and ractor: counts, observes, and tells parents how their children ended.

use std::marker::PhantomData;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort, SupervisionEvent};
use tokio::time::Instant;

use super::instance::{Instance, Nudges};
use super::{Behaviour, Cx, Ended, House, Slot, View};

/// What is really in a mailbox: a message of the protocol, or the question that every actor answers.
#[derive(Debug)]
pub enum Envelope<M> {
    /// A message of the protocol.
    Message(M),
    /// Asks what the actor shows of itself.
    Observe(RpcReplyPort<View>),
}

/// An instance of a behaviour inside ractor.
struct Shell<B>(PhantomData<fn() -> B>);

/// What a shell needs to begin.
struct Start<B: Behaviour> {
    args: B::Args,
    slot: Slot<B::Msg>,
    nudges: Nudges,
    house: House,
}

/// What a shell holds while it lives.
struct Alive<B: Behaviour> {
    args: B::Args,
    cx: Cx<B::Msg>,
    nudges: Nudges,
    behaviour: Option<B>,
}

impl<B: Behaviour> Actor for Shell<B> {
    type Msg = Envelope<B::Msg>;
    type State = Alive<B>;
    type Arguments = Start<B>;

    /// Does nothing that could fail: a panic here would not reach the supervisor.
    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        start: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        let Start { args, slot, nudges, house } = start;
        let cx = Cx { myself: Instance::new(myself, nudges.clone()), slot, house };
        Ok(Alive { args, cx, nudges, behaviour: None })
    }

    async fn post_start(&self, _: ActorRef<Self::Msg>, alive: &mut Self::State) -> Result<(), ActorProcessingErr> {
        alive.behaviour = Some(B::born(&alive.args, &alive.cx));
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        envelope: Self::Msg,
        alive: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Some(behaviour) = &mut alive.behaviour else { return Ok(()) };
        match envelope {
            Envelope::Message(message) => {
                alive.nudges.take(&message);
                if let Some(lasting) = alive.cx.house.saboteur.visit(B::KIND) {
                    tokio::time::sleep(lasting).await;
                }
                let began = Instant::now();
                behaviour.handle(message, &alive.cx);
                alive.cx.slot.meter().handled(began.elapsed());
            }
            // Whoever asked may have lost patience.
            Envelope::Observe(reply) => drop(reply.send(behaviour.observe(alive.cx.now()))),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        alive: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let ended = match event {
            SupervisionEvent::ActorTerminated(who, _, _) => Ended { id: who.get_id().pid(), failure: None },
            SupervisionEvent::ActorFailed(who, error) => {
                Ended { id: who.get_id().pid(), failure: Some(error.to_string()) }
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        alive.cx.house.observations.leave(ended.id);
        if let Some(behaviour) = &mut alive.behaviour {
            behaviour.child_ended(&ended, &alive.cx);
        }
        Ok(())
    }
}

/// Starts an instance, linked to its parent if it has one, and puts it into a slot. Nothing when ractor refuses, which it does only
/// for duplicate names, and ours have none.
pub(super) fn spawn<B: Behaviour>(
    name: &str,
    args: B::Args,
    slot: &Slot<B::Msg>,
    house: &House,
    parent: Option<ActorCell>,
) -> Option<u64> {
    let nudges = Nudges::default();
    let start = Start { args, slot: slot.clone(), nudges: nudges.clone(), house: house.clone() };
    let parent_id = parent.as_ref().map(|cell| cell.get_id().pid());
    let spawned = match parent {
        Some(parent) => ActorRuntime::spawn_linked_instant(None, Shell::<B>(PhantomData), start, parent),
        None => ActorRuntime::spawn_instant(None, Shell::<B>(PhantomData), start),
    };
    let (actor, _) = spawned.ok()?;
    let id = actor.get_id().pid();
    let asked = actor.clone();
    let probe = Arc::new(move || -> futures::future::BoxFuture<'static, Option<View>> {
        let actor = asked.clone();
        Box::pin(async move {
            let (reply, answer) = ractor::concurrency::oneshot();
            actor.cast(Envelope::Observe(reply.into())).ok()?;
            answer.await.ok()
        })
    });
    let meter = Arc::clone(slot.meter());
    house.observations.enter(id, parent_id, (B::KIND, name.to_owned()), house.clock.now(), meter, probe);
    slot.fill(Instance::new(actor, nudges));
    Some(id)
}
