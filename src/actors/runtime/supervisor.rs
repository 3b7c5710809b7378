//! The root of the tree: starts every actor, and starts it again when it fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Behaviour, Cx, Ended, House, Kind, Message, Slot, Timer, View};
use crate::core::backoff::backoff;

/// First wait before a failed actor is started again.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// Longest wait before a failed actor is started again.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// An actor that has lived this long is healthy: its next failure counts as its first.
const HEALTHY_AFTER: Duration = Duration::from_mins(1);

/// Starts an instance under the supervisor, and returns its identity.
type Spawn = Arc<dyn Fn(&Cx<RootMsg>) -> Option<u64> + Send + Sync>;

/// Takes an instance that has ended out of its slot, and notes when and with what error.
type Vacate = Arc<dyn Fn(Option<(Timestamp, &str)>) + Send + Sync>;

/// One line of the restart table: a place in the tree and how to fill it.
#[derive(Clone)]
pub struct Post {
    kind: Kind,
    spawn: Spawn,
    vacate: Vacate,
}

impl Post {
    /// A place for a singleton.
    pub fn new<B: Behaviour>(slot: &Slot<B::Msg>, args: B::Args) -> Self {
        let (filled, vacated) = (slot.clone(), slot.clone());
        Self {
            kind: B::KIND,
            spawn: Arc::new(move |cx| cx.spawn::<B>(B::KIND.as_str(), args.clone(), &filled)),
            vacate: Arc::new(move |failure| {
                vacated.vacate();
                if let Some((at, error)) = failure {
                    vacated.meter().restarted(at, error);
                }
            }),
        }
    }
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Post").field(&self.kind).finish()
    }
}

/// What the supervisor is told, by itself only.
#[derive(Debug)]
pub enum RootMsg {
    /// *Nudge.* The backoff of a post is over: fill it.
    Refill(usize),
}

impl Message for RootMsg {}

/// The root actor.
#[derive(Debug)]
pub struct Supervisor {
    posts: Arc<Vec<Post>>,
    refills: bool,
    filled: BTreeMap<u64, usize>,
    failures: Vec<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    /// Failures without a healthy stretch in between.
    in_a_row: u32,
    born: Option<Instant>,
    refill: Option<Timer>,
}

impl Supervisor {
    /// Starts the tree: the posts are filled in order. Unless it `refills` them, who fails leaves a post empty: only to prove that this is noticed.
    pub fn start(posts: Vec<Post>, refills: bool, house: &House) -> Slot<RootMsg> {
        let slot = Slot::empty();
        super::shell::spawn::<Self>(Kind::Supervisor.as_str(), (Arc::new(posts), refills), &slot, house, None);
        slot
    }

    fn fill(&mut self, at: usize, cx: &Cx<RootMsg>) {
        self.failures[at].refill = None;
        self.failures[at].born = Some(Instant::now());
        if let Some(id) = (self.posts[at].spawn)(cx) {
            self.filled.insert(id, at);
        }
    }
}

impl Behaviour for Supervisor {
    type Msg = RootMsg;
    type Args = (Arc<Vec<Post>>, bool);
    const KIND: Kind = Kind::Supervisor;

    fn born((posts, refills): &Self::Args, cx: &Cx<RootMsg>) -> Self {
        let failures = posts.iter().map(|_| Failures::default()).collect();
        let mut root = Self { posts: Arc::clone(posts), refills: *refills, filled: BTreeMap::new(), failures };
        for at in 0..root.posts.len() {
            root.fill(at, cx);
        }
        root
    }

    fn handle(&mut self, message: RootMsg, cx: &Cx<RootMsg>) {
        match message {
            RootMsg::Refill(at) => self.fill(at, cx),
        }
    }

    fn child_ended(&mut self, ended: &Ended, cx: &Cx<RootMsg>) {
        let Some(at) = self.filled.remove(&ended.id) else { return };
        let post = &self.posts[at];
        (post.vacate)(ended.failure.as_deref().map(|error| (cx.now(), error)));
        // Singletons never end by themselves but at shutdown, when the whole tree is told to stop.
        let Some(error) = ended.failure.as_ref().filter(|_| self.refills) else { return };
        let failures = &mut self.failures[at];
        let healthy = failures.born.is_some_and(|born| born.elapsed() >= HEALTHY_AFTER);
        failures.in_a_row = if healthy { 1 } else { failures.in_a_row + 1 };
        failures.refill =
            Some(cx.after(backoff(FIRST_BACKOFF, LONGEST_BACKOFF, failures.in_a_row), RootMsg::Refill(at)));
        tracing::error!(actor = %post.kind, error, in_a_row = failures.in_a_row, "actor failed, starting it again");
    }

    fn observe(&self, _: Timestamp) -> View {
        let down = self.failures.iter().zip(self.posts.iter()).filter(|(failures, _)| failures.refill.is_some());
        let down: Vec<_> = down.map(|(_, post)| post.kind.as_str()).collect();
        View {
            state: if down.is_empty() { "all posts filled".to_owned() } else { "restarting".to_owned() },
            waits_for: (!down.is_empty()).then(|| format!("backoff of {}", down.join(", "))),
            ..View::default()
        }
    }
}
