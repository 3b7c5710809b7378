//! The way to Outscale's API on its bad days: what stands between the client and the stand-in for that API.
//!
//! The same faults befall [`super::HostileCloud`] one floor above. Here they come as the client meets them: as statuses, codes, answers that
//! break off, and silence.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::kind::Fault;
use super::mishaps::{Mishaps, Order};
use super::plan::Mishap;
use crate::clouds::outscale::oapi::wire::State;
use crate::clouds::outscale::oapi::{Answer, Post, Transport, Undelivered};
use crate::sim::oapi::Fake;

/// What comes back.
type Outcome = Result<Answer, Undelivered>;

/// A line to a fake on which things go wrong.
#[derive(Clone)]
pub struct HostileLine {
    fake: Fake,
    mishaps: Mishaps,
    /// VMs that answers do not show, and until when.
    hidden: Arc<Mutex<BTreeMap<String, Instant>>>,
}

impl HostileLine {
    /// Puts faults in front of a fake.
    pub fn new(fake: Fake, mishaps: Mishaps) -> Self {
        Self { fake, mishaps, hidden: Arc::default() }
    }

    fn hidden(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(&self, post: Post) -> Outcome {
        let name = call(&post);
        if let Some(mishap) = self.mishaps.holds(Fault::CloudThrottled) {
            let (code, kind) = if mishap.pick.is_multiple_of(2) {
                ("24", "ErrorOperationThrottledPerAccount")
            } else {
                ("25", "ErrorOperationThrottledPerCall")
            };
            return Ok(refusal(429, code, kind));
        }
        if self.mishaps.strikes(Fault::CloudError, name).is_some() {
            return Ok(refusal(500, "2000", "InternalError"));
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::CloudLost, name) {
            return silence(mishap.lasting).await;
        }
        match name {
            "CreateVms" => self.launch(post).await,
            "DeleteVms" => self.delete(post).await,
            "ReadVms" => self.list(post).await,
            _ => self.fake.post(post).await,
        }
    }

    /// joiner is killed with a call in its hands.
    async fn killed(&self, mishap: Mishap, post: Post) -> Outcome {
        if mishap.pick.is_multiple_of(2) {
            // Whoever asked will not hear the answer.
            drop(self.fake.post(post).await);
        }
        self.mishaps.order(Order::Kill(mishap.lasting));
        std::future::pending().await
    }

    /// What was asked for arrives later.
    fn later(&self, post: &Post, after: Duration) {
        let (fake, post) = (self.fake.clone(), post.clone());
        tokio::spawn(async move {
            sleep(after).await;
            drop(fake.post(post).await);
        });
    }

    async fn launch(&self, post: Post) -> Outcome {
        if self.mishaps.holds(Fault::Quota).is_some() {
            return Ok(refusal(400, "10023", "TooManyResources (QuotaExceded)"));
        }
        if let Some(mishap) = self.mishaps.holds(Fault::SoldOut)
            && is_sold_out(&post.body, mishap.pick)
        {
            return Ok(refusal(400, "10001", "InsufficientCapacity"));
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall, call(&post)) {
            return self.killed(mishap, post).await;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostBefore, call(&post)) {
            return silence(mishap.lasting).await;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLostAfter, call(&post)) {
            // What became of it stays unsaid.
            drop(self.fake.post(post).await);
            return silence(mishap.lasting).await;
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::LaunchLate, call(&post)) {
            self.later(&post, mishap.lasting);
            return silence(Duration::from_millis(mishap.pick % 5_000)).await;
        }
        self.fake.post(post).await
    }

    async fn delete(&self, post: Post) -> Outcome {
        if let Some(mishap) = self.mishaps.strikes(Fault::JoinerKilledMidCall, call(&post)) {
            return self.killed(mishap, post).await;
        }
        if self.mishaps.strikes(Fault::DeleteForgotten, call(&post)).is_some() {
            return Ok(self.confirmed(&post));
        }
        if let Some(mishap) = self.mishaps.strikes(Fault::DeleteSlow, call(&post)) {
            self.later(&post, mishap.lasting);
            return Ok(self.confirmed(&post));
        }
        self.fake.post(post).await
    }

    /// The answer to a deletion that does not happen, or not yet.
    fn confirmed(&self, post: &Post) -> Answer {
        let request: Value = serde_json::from_slice(&post.body).unwrap_or_default();
        let named = |id: &str| request["VmIds"].as_array().is_some_and(|ids| ids.iter().any(|one| one == id));
        let vms = self.fake.vms().into_iter().filter(|vm| named(&vm.vm_id));
        let vms = vms.map(|vm| {
            let now = if vm.state == State::Terminated { vm.state } else { State::ShuttingDown };
            json!({ "VmId": vm.vm_id, "PreviousState": vm.state, "CurrentState": now })
        });
        said(200, &json!({ "Vms": vms.collect::<Vec<_>>() }))
    }

    async fn list(&self, post: Post) -> Outcome {
        let answer = self.fake.post(post).await?;
        if self.mishaps.strikes(Fault::ListingBroken, "ReadVms").is_some() {
            return Ok(Answer { body: answer.body.slice(..answer.body.len() / 2), ..answer });
        }
        let now = Instant::now();
        // Answers are long: one that passes as it is is not read.
        let has_vms = std::str::from_utf8(&answer.body).is_ok_and(|text| text.contains("\"VmId\""));
        let hides = if has_vms { self.mishaps.strikes(Fault::MachineHidden, "ReadVms") } else { None };
        let shrinks = self.mishaps.holds(Fault::ListingShrunken);
        self.hidden().retain(|_, until| *until > now);
        if hides.is_none() && shrinks.is_none() && self.hidden().is_empty() {
            return Ok(answer);
        }
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let Some(vms) = body["Vms"].as_array_mut() else { return Ok(answer) };
        let id_of = |vm: &Value| vm["VmId"].as_str().unwrap_or_default().to_owned();
        if let Some(mishap) = hides.filter(|_| !vms.is_empty()) {
            let one = usize::try_from(mishap.pick >> 1).unwrap_or(0) % vms.len();
            self.hidden().insert(id_of(&vms[one]), now + mishap.lasting);
        }
        let hidden = self.hidden();
        vms.retain(|vm| !hidden.contains_key(&id_of(vm)));
        drop(hidden);
        if let Some(mishap) = shrinks {
            // From a tenth of the machines to all of them; which ones stays the same from one listing to the next.
            let tenths = mishap.pick % 10 + 1;
            vms.retain(|vm| {
                let sum: u64 = id_of(vm).bytes().map(u64::from).sum();
                sum.wrapping_add(mishap.pick >> 8) % 10 >= tenths
            });
        }
        Ok(Answer { body: Bytes::from(body.to_string()), ..answer })
    }
}

impl Transport for HostileLine {
    fn post(&self, post: Post) -> BoxFuture<'_, Outcome> {
        self.carry(post).boxed()
    }
}

/// The name of a call.
fn call(post: &Post) -> &str {
    post.url.path().rsplit('/').next().unwrap_or_default()
}

/// Nobody answers.
async fn silence(lasting: Duration) -> Outcome {
    sleep(lasting).await;
    Err(Undelivered::NoAnswer("connection lost".to_owned()))
}

fn refusal(status: u16, code: &str, kind: &str) -> Answer {
    said(status, &json!({ "Errors": [{ "Code": code, "Type": kind, "Details": "a bad day" }] }))
}

fn said(status: u16, body: &Value) -> Answer {
    Answer { status, date: None, retry_after: None, body: Bytes::from(body.to_string()) }
}

/// Whether what a launch asks for is sold out: what one subnet has, or every other type, or what both are.
fn is_sold_out(body: &[u8], pick: u64) -> bool {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let odd = |field: &str, by: u64| {
        let sum: u64 = request[field].as_str().unwrap_or_default().bytes().map(u64::from).sum();
        !sum.wrapping_add(by).is_multiple_of(2)
    };
    match pick % 3 {
        0 => odd("SubnetId", pick >> 8),
        1 => odd("VmType", pick >> 16),
        _ => odd("SubnetId", pick >> 8) && odd("VmType", pick >> 16),
    }
}
