//! Calls: each waits for its turn, is signed, sent, understood, and repeated where that is harmless.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep, timeout};

use super::access::{Access, Keys};
use super::action::{Action, Effect, Paged};
use super::codes::{self, Class};
use super::error::Error;
use super::limits::{Limits, Turns};
use super::renewal::{Renewal, Reread};
use super::sign;
use super::standing::Standing;
use super::transport::{Answer, Post, Transport, Undelivered};
use super::wire::{Done, ErrorAnswer, ErrorEntry};
use crate::licence;

/// Items a page. The API allows 1000, but VMs come with their user data, of which each may have half a MiB.
const PAGE: u32 = 200;
/// More pages than any account has: a server that always sends a token must not keep us for ever.
const MOST_PAGES: usize = 5_000;
/// How long to wait before the second attempt; twice as long before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// How long one call tries to reach the API at all.
const REACHED_WITHIN: Duration = Duration::from_secs(10);
/// For how long no call is repeated after another one was given up because nothing can be reached: what has just been tried in vain is not worth waiting
/// for once more.
const OUT_OF_REACH_FOR: Duration = Duration::from_secs(15);

/// How a client behaves.
#[derive(Clone)]
pub struct Options {
    /// Tells the time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How often each action may be called.
    pub limits: Limits,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// How long a call may wait for its turn.
    pub turn_within: Duration,
    /// How long a call and its repetitions may take: none is begun that might not be answered by then.
    pub all_within: Duration,
    /// How often a call is sent at most.
    pub attempts: u32,
    /// Seed of the jitter.
    pub seed: u64,
    /// Reads the keys again once they are refused, where they can have changed.
    pub reread: Option<Reread>,
}

impl Options {
    /// The usual ones. A call that waits and is repeated stays below the deadline that actors give a cloud.
    pub fn new(now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self {
            now,
            limits: Limits::default(),
            answer_within: Duration::from_secs(30),
            turn_within: Duration::from_secs(30),
            all_within: Duration::from_secs(75),
            attempts: 4,
            seed: 0,
            reread: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// A client of the API. It is shared: its limits, and what it learned of keys and clock, hold for all of its calls.
pub struct Client {
    access: Access,
    keys: Renewal,
    options: Options,
    transport: Arc<dyn Transport>,
    turns: Turns,
    standing: Standing,
    /// Held by the one signed call that tries whether the keys are good.
    trial: tokio::sync::Mutex<()>,
    /// When a call was last given up because nothing can be reached; nothing once anything has answered.
    out_of_reach: Mutex<Option<Instant>>,
    rng: Mutex<Rng>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("access", &self.access).field("options", &self.options).finish_non_exhaustive()
    }
}

/// What of a call is the same at every attempt.
struct Call {
    action: &'static str,
    effect: Effect,
    signed: bool,
    body: Vec<u8>,
}

impl Client {
    /// A client whose requests are carried by `transport`: [`super::Network`], or a server in this process.
    pub fn new(access: Access, transport: Arc<dyn Transport>, options: Options) -> Self {
        let turns = Turns::new(options.limits.clone());
        let rng = Mutex::new(Rng::with_seed(options.seed));
        Self {
            keys: Renewal::new(access.keys.clone(), options.reread.clone()),
            access,
            options,
            transport,
            turns,
            standing: Standing::default(),
            trial: tokio::sync::Mutex::new(()),
            out_of_reach: Mutex::default(),
            rng,
        }
    }

    /// Where the API is, and who it was to it at first.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The time, as far as is known by the API's clock.
    pub fn now(&self) -> Timestamp {
        corrected((self.options.now)(), self.standing.skew())
    }

    /// How many requests of each action were sent.
    pub fn sent(&self) -> BTreeMap<&'static str, u64> {
        self.turns.sent()
    }

    /// The API's clock minus ours, as far as answers have shown it; differences of a second or so count as none.
    pub fn skew(&self) -> SignedDuration {
        self.standing.skew()
    }

    /// What is wrong with this machine's clock and what to do about it, if answers have shown that anything is.
    pub fn clock_trouble(&self) -> Option<String> {
        self.standing.clock_trouble()
    }

    /// Calls an action.
    pub async fn call<A: Action>(&self, request: &A) -> Result<A::Answer, Error> {
        let body = written(A::NAME, serde_json::to_vec(request))?;
        self.repeat(&Call { action: A::NAME, effect: A::EFFECT, signed: A::SIGNED, body }).await
    }

    /// Asks the API whether the action would be allowed. Nothing is changed; what the request names is hardly looked at.
    pub async fn rehearse<A: Action>(&self, request: &A) -> Result<Done, Error> {
        let mut body = written(A::NAME, serde_json::to_value(request))?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert("DryRun".to_owned(), true.into());
        }
        let body = written(A::NAME, serde_json::to_vec(&body))?;
        self.repeat(&Call { action: A::NAME, effect: Effect::Reads, signed: A::SIGNED, body }).await
    }

    /// Reads all pages. One page that cannot be read fails the whole: a list is complete or it is none.
    pub async fn all<A: Paged>(&self, request: &A) -> Result<Vec<A::Item>, Error> {
        let mut request = request.clone();
        let (mut items, mut token) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            request.turn(token, PAGE);
            let (page, next) = A::page(self.call(&request).await?);
            items.extend(page);
            token = next;
            if token.is_none() {
                return Ok(items);
            }
        }
        Err(Error::silent(A::NAME, Class::Unknown, format!("the list does not end after {MOST_PAGES} pages")))
    }

    async fn repeat<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let (began, mut attempt, mut open) = (Instant::now(), 1, None);
        loop {
            let error = match self.attempt(call).await {
                Ok(answer) => return Ok(answer),
                // That this attempt was not made says nothing about the one before.
                Err(error) if error.held_back => return Err(open.unwrap_or(error)),
                Err(error) => error,
            };
            let pause = self.pause(attempt, error.retry_after);
            let is_too_late = began.elapsed() + pause + self.options.answer_within > self.options.all_within;
            let is_in_vain = error.unreachable && (began.elapsed() >= REACHED_WITHIN || self.is_out_of_reach());
            let is_last = attempt >= self.options.attempts || is_too_late || is_in_vain;
            if is_last || !may_repeat(call.effect, &error) {
                if error.unreachable {
                    *self.reach() = Some(Instant::now());
                }
                return Err(error);
            }
            tracing::debug!(action = call.action, attempt, ?pause, %error, "calling again");
            open = open.or_else(|| (error.class == Class::Unknown).then_some(error));
            sleep(pause).await;
            attempt += 1;
        }
    }

    fn reach(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.out_of_reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another call was given up a moment ago because nothing can be reached.
    fn is_out_of_reach(&self) -> bool {
        self.reach().is_some_and(|since| since.elapsed() < OUT_OF_REACH_FOR)
    }

    /// How long to wait: what the API asks for, or else longer with every attempt; never two callers the same.
    fn pause(&self, attempt: u32, told: Option<Duration>) -> Duration {
        let longest = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(LONGEST_PAUSE);
        let part = self.rng.lock().unwrap_or_else(PoisonError::into_inner).f64();
        longest.mul_f64(0.5 + part / 2.0).max(told.unwrap_or_default().min(LONGEST_PAUSE))
    }

    /// One attempt; two when the first showed that our clock is wrong, or that the keys have changed.
    async fn attempt<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let _trial = if call.signed { self.on_trial(call.action).await? } else { None };
        for last in [false, true] {
            if call.signed
                && let Some((left, why)) = self.standing.closed()
                && !self.renewed().await
            {
                let held = Error::silent(call.action, Class::Keys, why);
                return Err(Error { retry_after: Some(left), held_back: true, ..held });
            }
            let (answer, clock_was_wrong, keys) = self.send(call).await?;
            match self.understand(call, answer) {
                Err(error) if error.class == Class::Keys && call.signed => {
                    // Keys that have been exchanged meanwhile are refused rightly, which says nothing of those that are used now.
                    let is_outdated = !Arc::ptr_eq(&keys, &self.keys.keys());
                    if (clock_was_wrong || is_outdated) && !last {
                        continue;
                    }
                    if is_outdated {
                        return Err(error);
                    }
                    self.standing.refused(error.words());
                    if last || !self.renewed().await {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
        Err(Error::silent(call.action, Class::Temporary, "the clock is wrong"))
    }

    /// Whether the keys, which were refused, are others now.
    async fn renewed(&self) -> bool {
        let renewed = self.keys.renew().await;
        if renewed {
            self.standing.has_other_keys();
        }
        renewed
    }

    /// As long as nobody knows whether the keys are good, one call tries them and the others wait.
    async fn on_trial(&self, action: &'static str) -> Result<Option<MutexGuard<'_, ()>>, Error> {
        if self.standing.is_trusted() {
            return Ok(None);
        }
        let Ok(trial) = timeout(self.options.turn_within, self.trial.lock()).await else {
            let message = "not called, as the first call with these keys is not answered yet";
            let held = Error::silent(action, Class::Temporary, message);
            return Err(Error { held_back: true, ..held });
        };
        // Meanwhile the one before may have shown that they are.
        Ok((!self.standing.is_trusted()).then_some(trial))
    }

    /// Sends a request. Also says whether the answer showed that the clock that it was signed with is wrong, and which keys it was signed with.
    async fn send(&self, call: &Call) -> Result<(Answer, bool, Arc<Keys>), Error> {
        let action = call.action;
        if let Err(wait) = self.turns.wait(action, self.options.turn_within).await {
            let held = Error::silent(action, Class::Throttled, "not called, as joiner's own limit of calls is reached");
            return Err(Error { retry_after: Some(wait), held_back: true, ..held });
        }
        if call.effect != Effect::Reads && !licence::holds() {
            let held = Error::silent(action, Class::Temporary, licence::WITHDRAWN);
            return Err(Error { held_back: true, ..held });
        }
        let keys = self.keys.keys();
        let signed = call.signed.then_some((&*keys, self.access.dialect));
        let (sent, skew) = ((self.options.now)(), self.standing.skew());
        let place = (self.access.region.as_str(), &self.access.endpoint, action);
        let headers = sign::headers(signed, place, &call.body, corrected(sent, skew))
            .map_err(|why| Error::silent(action, Class::Invalid, format!("cannot be signed: {why}")))?;
        let post = Post { url: self.access.endpoint.url(action), headers, body: call.body.clone() };
        let began = Instant::now();
        let answer = match timeout(self.options.answer_within, self.transport.post(post)).await {
            Ok(answer) => answer,
            Err(_) => {
                Err(Undelivered::NoAnswer(format!("no answer within {} s", self.options.answer_within.as_secs())))
            }
        };
        let answer = answer.map_err(|undelivered| match undelivered {
            Undelivered::NotSent(why) => {
                let message = format!("{} cannot be reached ({why}); {}", self.access.endpoint, way_out(&why));
                Error { unreachable: true, ..Error::silent(action, Class::Temporary, message) }
            }
            Undelivered::NoAnswer(why) => Error::silent(action, open_end(call.effect), why),
        })?;
        *self.reach() = None;
        tracing::debug!(action, status = answer.status, millis = began.elapsed().as_millis(), "answered");
        if answer.date.is_some_and(|date| self.standing.learn(date, (sent, (self.options.now)()))) {
            let told = self.clock_trouble().unwrap_or_else(|| "the clock of this machine is right again".to_owned());
            tracing::warn!("{told}");
        }
        // Another answer may have taught it while this one was on its way.
        let clock_was_wrong = self.standing.skew() != skew;
        Ok((answer, clock_was_wrong, keys))
    }

    fn understand<T: DeserializeOwned>(&self, call: &Call, answer: Answer) -> Result<T, Error> {
        let Answer { status, retry_after, body, .. } = answer;
        if (200..300).contains(&status) {
            if call.signed {
                self.standing.accepted();
            }
            self.turns.quicken(call.action);
            if tracing::enabled!(tracing::Level::DEBUG) {
                let context: Done = serde_json::from_slice(&body).unwrap_or_default();
                tracing::debug!(action = call.action, status, request = context.response_context.request_id, "done");
            }
            let answer = serde_json::from_slice(&body);
            return answer.map_err(|error| {
                // The parser's own words may repeat what it read.
                let place = format!("line {}, column {}", error.line(), error.column());
                let message = format!("the answer cannot be read at {place} of {} bytes", body.len());
                Error { status: Some(status), ..Error::silent(call.action, open_end(call.effect), message) }
            });
        }
        let (entries, id) = refusal(&body);
        let class = codes::class(status, &entries).unwrap_or_else(|| open_end(call.effect));
        if call.signed && !matches!(class, Class::Keys | Class::Throttled | Class::Unknown | Class::Temporary) {
            self.standing.accepted();
        }
        let all = entries.iter().any(|entry| codes::throttles_everything(&entry.code));
        let is_silent = entries.is_empty();
        let mut error = Error::spoken(call.action, (class, status), entries, id);
        error.retry_after = retry_after;
        if is_silent {
            error.message = format!(
                "an answer without a reason from {}; should that last, see whether it is Outscale's API ({ADDRESS})",
                self.access.endpoint
            );
        }
        if class == Class::Throttled {
            self.turns.slow_down(call.action, all, retry_after.unwrap_or(FIRST_PAUSE));
        }
        tracing::debug!(action = call.action, status, request = error.request_id, code = error.code(), "refused");
        Err(error)
    }
}

/// Where it stands where the API is.
const ADDRESS: &str = "OSC_ENDPOINT_API, or endpoint of the Secret or the profile";

/// What to do about an API that cannot be reached for this reason.
fn way_out(why: &str) -> String {
    if why.contains("certificate") {
        return format!(
            "name a file with the endpoint's CA certificate in SSL_CERT_FILE, or check the address ({ADDRESS}) and the proxy (HTTPS_PROXY)"
        );
    }
    format!(
        "check the region (OSC_REGION, or region of the Secret or the profile), the address ({ADDRESS}) and the proxy (HTTPS_PROXY)"
    )
}

/// The API's time, given ours.
fn corrected(now: Timestamp, skew: SignedDuration) -> Timestamp {
    now.saturating_add(skew).unwrap_or(now)
}

/// What a failure means that leaves open whether the call took effect.
fn open_end(effect: Effect) -> Class {
    if effect == Effect::Reads { Class::Temporary } else { Class::Unknown }
}

/// Whether a call may be sent again after this.
fn may_repeat(effect: Effect, error: &Error) -> bool {
    match error.class {
        _ if error.held_back => false,
        Class::Throttled | Class::Temporary => true,
        Class::Unknown => effect != Effect::Acts,
        _ => false,
    }
}

/// The reasons in an answer, and the ID of its request, as far as it can be read.
fn refusal(body: &[u8]) -> (Vec<ErrorEntry>, Option<String>) {
    let Ok(answer) = serde_json::from_slice::<ErrorAnswer>(body) else { return (Vec::new(), None) };
    let id = answer.response_context.request_id;
    (answer.errors, (!id.is_empty()).then_some(id))
}

fn written<T>(action: &'static str, written: serde_json::Result<T>) -> Result<T, Error> {
    written.map_err(|error| Error::silent(action, Class::Invalid, format!("cannot be written as JSON: {error}")))
}
