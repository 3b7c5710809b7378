//! The fake itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::DATE;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::account::Account;
use super::conduct::Conduct;
use super::dispatch::{self, Known};
use super::gate::Signed;
use super::load::{Fault, Load};
use super::refusal::Refusal;
use super::world::World;
use crate::clouds::outscale::oapi::wire::{FlexibleGpu, MaintenanceEvent, State, Vm};
use crate::clouds::outscale::oapi::{Answer, Post, Transport, Undelivered};
use crate::sim::seed::{between, uid};
use crate::sim::{Clock, Seed};

/// What comes back.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// An answer.
    Said {
        /// HTTP status.
        status: u16,
        /// `Date`, and nothing else that matters.
        headers: HeaderMap,
        /// JSON.
        body: String,
    },
    /// Nothing: the connection is lost.
    Lost,
}

/// A stand-in for the API. Clones are the same one.
#[derive(Clone)]
pub struct Fake {
    world: Arc<Mutex<World>>,
    clock: Clock,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fake").field("load", &self.load()).finish_non_exhaustive()
    }
}

impl Fake {
    /// An API with this account, whose time is that of `clock`.
    pub fn new(account: Account, clock: Clock, seed: Seed) -> Self {
        Self { world: Arc::new(Mutex::new(World::new(account, seed.stream("oapi")))), clock }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world as it is now.
    fn present(&self) -> MutexGuard<'_, World> {
        let mut world = self.world();
        world.at((self.clock)());
        world
    }

    /// Changes how it behaves.
    pub fn conduct(&self, change: impl FnOnce(&mut Conduct)) {
        change(&mut self.world().conduct);
    }

    /// Changes what the account has.
    pub fn account(&self, change: impl FnOnce(&mut Account)) {
        change(&mut self.world().account);
    }

    /// Every VM that is there, also those that are not listed yet and those that are terminated, in the order in which they were made.
    pub fn vms(&self) -> Vec<Vm> {
        let world = self.present();
        world.machines.in_order().into_iter().map(|machine| machine.vm.clone()).collect()
    }

    /// Every flexible GPU of the account, also those that are not listed yet.
    pub fn gpus(&self) -> Vec<FlexibleGpu> {
        self.present().machines.gpus.values().map(|gpu| gpu.row.clone()).collect()
    }

    /// Somebody deletes all flexible GPUs of the account.
    pub fn take_gpus(&self) {
        self.world().machines.gpus.clear();
    }

    /// How often a VM was restarted; nothing when there is none.
    pub fn reboots(&self, vm_id: &str) -> Option<u32> {
        self.present().machines.all.get(vm_id).map(|machine| machine.reboots)
    }

    /// Changes what is known of a VM. Says whether there is one.
    pub fn tamper(&self, vm_id: &str, change: impl FnOnce(&mut Vm)) -> bool {
        let mut world = self.present();
        let found = world.machines.all.get_mut(vm_id);
        found.map(|machine| change(&mut machine.vm)).is_some()
    }

    /// The cloud plans to do something to a VM, besides what it plans already. Says whether there is one.
    pub fn plan_maintenance(&self, vm_id: &str, event: MaintenanceEvent) -> bool {
        let mut world = self.present();
        let found = world.machines.all.get_mut(vm_id);
        found.map(|machine| machine.planned.push(event)).is_some()
    }

    /// A VM shuts itself down: it stops, or is deleted if it was made to. Says whether there was one.
    pub fn shut_down(&self, vm_id: &str) -> bool {
        let mut world = self.present();
        let at = world.later(world.conduct.ends_within);
        let Some(machine) = world.machines.all.get_mut(vm_id) else { return false };
        let ends = machine.vm.vm_initiated_shutdown_behavior.as_deref() == Some("terminate");
        let (way, end) =
            if ends { (State::ShuttingDown, State::Terminated) } else { (State::Stopping, State::Stopped) };
        machine.vm.state = way;
        machine.turns = Some((at, end));
        true
    }

    /// How much each action was called so far.
    pub fn load(&self) -> BTreeMap<&'static str, Load> {
        self.world().load.clone()
    }

    /// How often this trouble struck so far, whichever action it was.
    pub fn struck(&self, fault: Fault) -> u64 {
        self.world().load.values().map(|load| load.struck(fault)).sum()
    }

    /// Answers a request.
    pub async fn reply(&self, path: &str, headers: &HeaderMap, body: &[u8]) -> Reply {
        let (latency, silence, is_lost) = {
            let mut world = self.present();
            let bounds = world.conduct.latency;
            let part = world.conduct.loses_requests;
            (between(&mut world.rng, bounds), world.conduct.silence, world.chance(part))
        };
        sleep(latency).await;
        if is_lost {
            self.world().strike(path, Fault::RequestLost);
            sleep(silence).await;
            return Reply::Lost;
        }
        let (reply, is_lost) = {
            let mut world = self.present();
            let answer = world.answer(path, headers, body);
            if let Some(fault) = answer.as_ref().err().and_then(Fault::of) {
                world.strike(path, fault);
            }
            for fault in std::mem::take(&mut world.aside) {
                world.strike(path, fault);
            }
            let part = world.conduct.loses_answers;
            let reply = world.said(answer);
            let is_lost = world.chance(part) | std::mem::take(&mut world.unanswered);
            if is_lost {
                world.strike(path, Fault::AnswerLost);
            }
            (reply, is_lost)
        };
        if is_lost {
            sleep(silence).await;
            return Reply::Lost;
        }
        reply
    }
}

impl World {
    /// Counts trouble of an action, if there is one.
    fn strike(&mut self, path: &str, fault: Fault) {
        if let Some(known) = dispatch::of_path(path) {
            *self.load.entry(known.name).or_default().faults.entry(fault).or_default() += 1;
        }
    }

    fn answer(&mut self, path: &str, headers: &HeaderMap, body: &[u8]) -> Result<Value, Refusal> {
        let Some(known) = dispatch::of_path(path) else {
            return Err(Refusal::new(404, "12000", "InvalidAction", "this fake has no such action"));
        };
        self.throttle(known.name)?;
        if known.is_signed {
            self.admit(known, &Signed { path, headers, body })?;
        }
        let part = self.conduct.fails;
        if self.chance(part) || is_next(&mut self.conduct.fails_first, known.name) {
            return Err(Refusal::internal());
        }
        // Clients send nothing at all where they have nothing to say.
        let body: &[u8] = if body.is_empty() { b"{}" } else { body };
        let mut parameters: Value =
            serde_json::from_slice(body).map_err(|_| Refusal::new(400, "4110", "InvalidParameterValue", "not JSON"))?;
        let fields = parameters.as_object_mut();
        if fields.and_then(|fields| fields.remove("DryRun")) == Some(Value::Bool(true)) {
            return Ok(json!({}));
        }
        let answer = (known.run)(self, parameters)?;
        if is_next(&mut self.conduct.loses_first, known.name) {
            self.unanswered = true;
        }
        Ok(answer)
    }

    fn admit(&mut self, known: &Known, request: &Signed<'_>) -> Result<(), Refusal> {
        let place = (self.account.region.as_str(), self.now);
        self.gate.admit(request, &self.account.keys, place)?;
        if self.account.denied.contains(known.name) {
            let details = format!("the policies of this user do not allow api:{}", known.name);
            return Err(Refusal::new(401, "4", "AccessDenied", details));
        }
        Ok(())
    }

    /// An answer with what all answers have.
    fn said(&mut self, answer: Result<Value, Refusal>) -> Reply {
        let (status, mut body) = match answer {
            Ok(body) => (200, body),
            Err(refusal) => (refusal.status, refusal.body()),
        };
        body["ResponseContext"] = json!({ "RequestId": uid(&mut self.rng) });
        let mut headers = HeaderMap::new();
        if let Ok(date) = HeaderValue::from_str(&date(self.now)) {
            headers.insert(DATE, date);
        }
        Reply::Said { status, headers, body: body.to_string() }
    }
}

/// Whether the next call of an action is to go wrong, which it then does not a second time.
fn is_next(actions: &mut Vec<String>, name: &str) -> bool {
    let found = actions.iter().position(|action| action == name);
    found.map(|at| actions.swap_remove(at)).is_some()
}

/// A moment as HTTP writes it.
fn date(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

impl Transport for Fake {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        async move {
            match self.reply(post.url.path(), &post.headers, &post.body).await {
                Reply::Said { status, headers, body } => Ok(Answer::of(status, &headers, Bytes::from(body))),
                Reply::Lost => Err(Undelivered::NoAnswer("connection lost".to_owned())),
            }
        }
        .boxed()
    }
}
