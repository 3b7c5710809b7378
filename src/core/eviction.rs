//! Eviction: the queue of pods that are to leave, one for the cluster, and who of them is asked next.
//!
//! ```text
//! named ─► ready ─► asking ─┬─ granted: not asked again for two minutes, the watch may be that late
//!            ▲              └─ refused: asked again after a while that grows
//!            └── named again ◄── idle: it may not be asked now (do-not-disrupt, a reboot's grace is over, it leaves already)
//! ```
//!
//! Nodes take turns, so that none waits for the pods of another, and few requests are under way at a time. Whoever wants a pod to go names it
//! again and again; one that nobody names any more is forgotten. Moments are counted by a clock that nobody sets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::backoff::backoff;
use super::ids::{ClaimName, NodeName, PodUid};
use super::lifecycle::{PodRef, Way};

/// A point of time: how long after the queue began.
pub type Moment = Duration;

/// Requests under way at most. At 200 requests a second, the limit of joiner's client unless it is told another, whoever writes something else
/// waits 160 ms behind these, and not 150 s behind the pods of 1,000 nodes; answers that take up to 160 ms leave that limit used.
const AT_ONCE: usize = 32;
/// First wait before a refused eviction is asked for again (Karpenter: 100 ms, doubling); PodDisruptionBudgets change no faster.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Longest wait before a refused eviction is asked for again (Karpenter's value).
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// How long a pod that was granted to leave may take to show it before it is asked again: so late can a watch be that lost its connection.
const GRANTED: Duration = Duration::from_mins(2);
/// A pod that nobody has named for so long is not to leave any more: drains are looked at every ten seconds.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// A pod that nobody has named for so long is not asked to leave a node without a NodeClaim: its drain may have been called off, which the Node does not
/// show at once.
const NAMED_WITHIN: Duration = Duration::from_secs(20);

/// What pods are to leave.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Emptied {
    /// The node of a NodeClaim.
    Claim(ClaimName),
    /// A Node that has no NodeClaim, by this time.
    Node(NodeName, Timestamp),
}

/// Pods that are to leave.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    pods: BTreeMap<PodUid, Leaving>,
    /// Those that may be asked now, by node.
    ready: BTreeMap<Emptied, VecDeque<PodUid>>,
    /// Those that may be asked again, and when.
    later: BTreeSet<(Moment, PodUid)>,
    asking: usize,
    /// Whose turn was last.
    last: Option<Emptied>,
}

/// A pod that is to leave.
#[derive(Clone, Debug)]
struct Leaving {
    pod: PodRef,
    from: Emptied,
    named: Moment,
    state: State,
    /// Its deadline has come: it is deleted.
    forced: bool,
    granted: bool,
    /// In a row.
    refused: u32,
    trouble: Option<Trouble>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Ready,
    Asking,
    Later(Moment),
}

/// Why a pod is still there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// Since when it is kept by budgets; when none does, since when it is refused.
    pub since: Moment,
    /// The PodDisruptionBudgets that keep it, as far as is known; nothing when it is not budgets.
    pub budget: Option<Arc<str>>,
    /// What was answered last.
    pub answer: String,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What was answered.
    pub answer: String,
    /// When budgets forbid it: their names, empty when nobody knows them.
    pub budget: Option<Arc<str>>,
    /// When to ask again, if the API server says so.
    pub wait: Option<Duration>,
}

/// Pods that the same budget keeps on nodes that are to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// How many.
    pub pods: usize,
    /// Since when the first of them is kept.
    pub since: Moment,
}

impl Queue {
    /// A pod is to leave a node; `forced` when its deadline has come, which may tighten what was asked. When it is asked, it is looked at anew.
    pub fn name(&mut self, from: &Emptied, pod: PodRef, forced: bool, now: Moment) {
        let uid = pod.uid.clone();
        let leaving = self.pods.entry(uid.clone()).or_insert_with(|| Leaving {
            pod,
            from: from.clone(),
            named: now,
            state: State::Idle,
            forced: false,
            granted: false,
            refused: 0,
            trouble: None,
        });
        leaving.named = now;
        // Where a deadline was moved, the new one counts. Who is ready stands in the row of a node, and is looked at when it is his turn.
        if matches!(leaving.state, State::Idle | State::Later(_)) {
            leaving.from = from.clone();
        }
        let sooner = forced && !leaving.forced;
        leaving.forced |= forced;
        if leaving.state == State::Idle || sooner && leaving.state != State::Asking {
            self.ready(&uid);
        }
    }

    /// Who is to be asked now, and how; nothing when nobody is, or enough are. `way` says how a pod has to leave at this moment, if it has to.
    pub fn next(&mut self, now: Moment, way: impl Fn(&Emptied, &PodUid) -> Option<Way>) -> Option<(PodRef, Way)> {
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, uid)) = self.later.pop_first() {
                self.ready(&uid);
            }
        }
        while self.asking < AT_ONCE {
            let (from, uid) = self.take_turn()?;
            let Some(leaving) = self.pods.get_mut(&uid) else { continue };
            let is_named = leaving.named.saturating_add(NAMED_WITHIN) >= now;
            let is_wanted = is_named || matches!(leaving.from, Emptied::Claim(_));
            let Some(way) = way(&leaving.from, &uid).filter(|_| is_wanted) else {
                (leaving.state, leaving.trouble) = (State::Idle, None);
                continue;
            };
            leaving.state = State::Asking;
            // What is so now counts, also where a deadline was moved: else each refusal would be asked again at once.
            leaving.forced = matches!(way, Way::Delete(_));
            self.asking += 1;
            self.last = Some(from);
            return Some((leaving.pod.clone(), way));
        }
        None
    }

    /// A pod was granted to leave, in the way that was asked. Says whether it is the first time.
    pub fn granted(&mut self, uid: &PodUid, way: Way, now: Moment) -> bool {
        let Some(leaving) = self.answered(uid) else { return false };
        let first = !std::mem::replace(&mut leaving.granted, true);
        (leaving.refused, leaving.trouble) = (0, None);
        // Its deadline has come in between: what was granted may take too long.
        let too_polite = leaving.forced && way == Way::Evict;
        self.wait(uid, if too_polite { now } else { now.saturating_add(GRANTED) });
        first
    }

    /// There is no such pod any more. The watch will show it.
    pub fn gone(&mut self, uid: &PodUid, now: Moment) {
        if let Some(leaving) = self.answered(uid) {
            leaving.trouble = None;
            self.wait(uid, now.saturating_add(GRANTED));
        }
    }

    /// A pod was not granted to leave: it is asked again. Says why it is still there, and whether that is news.
    pub fn refused(&mut self, uid: &PodUid, way: Way, refusal: Refusal, now: Moment) -> Option<(Trouble, bool)> {
        let leaving = self.answered(uid)?;
        let before = leaving.trouble.take();
        let news = before.as_ref().is_none_or(|before| before.answer != refusal.answer);
        let kept = before.filter(|before| before.budget.is_some() || refusal.budget.is_none());
        let since = kept.as_ref().map_or(now, |kept| kept.since);
        // An API server in trouble says nothing about the budgets that kept it before.
        let budget = refusal.budget.or_else(|| kept.and_then(|kept| kept.budget));
        let trouble = Trouble { since, budget, answer: refusal.answer };
        leaving.trouble = Some(trouble.clone());
        leaving.refused += 1;
        let doubled = backoff(FIRST_BACKOFF, LONGEST_BACKOFF, leaving.refused);
        let wait = refusal.wait.map_or(doubled, |wait| wait.clamp(FIRST_BACKOFF, LONGEST_BACKOFF));
        let too_polite = leaving.forced && way == Way::Evict;
        self.wait(uid, if too_polite { now } else { now.saturating_add(wait) });
        Some((trouble, news))
    }

    /// Forgets pods that are not there any more, and those that nobody names any more. One that was granted to leave is remembered until it has left.
    pub fn sweep(&mut self, now: Moment, is_there: impl Fn(&PodUid) -> bool) {
        let named = |leaving: &Leaving| leaving.named.saturating_add(FORGOTTEN) >= now;
        self.pods.retain(|uid, leaving| {
            leaving.state == State::Asking || (leaving.granted || named(leaving)) && is_there(uid)
        });
        let pods = &self.pods;
        self.later.retain(|(_, uid)| pods.contains_key(uid));
        self.ready.retain(|_, ready| {
            ready.retain(|uid| pods.contains_key(uid));
            !ready.is_empty()
        });
    }

    /// When somebody may be asked who may not be asked now.
    pub fn wake(&self) -> Option<Moment> {
        self.later.first().map(|(at, _)| *at)
    }

    /// How many pods are to leave, those included that were granted to and have not left.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Pods that are still there for a reason that is known.
    pub fn troubles(&self) -> impl Iterator<Item = (&PodRef, &Trouble)> {
        self.pods.values().filter_map(|leaving| Some((&leaving.pod, leaving.trouble.as_ref()?)))
    }

    /// The pods that budgets keep, by namespace and budget.
    pub fn blocked(&self) -> BTreeMap<(Arc<str>, Arc<str>), Blocked> {
        let mut blocked: BTreeMap<_, Blocked> = BTreeMap::new();
        for leaving in self.pods.values().filter(|leaving| !leaving.forced) {
            let Some(Trouble { since, budget: Some(budget), .. }) = &leaving.trouble else { continue };
            let key = (Arc::clone(&leaving.pod.key.namespace), Arc::clone(budget));
            let of_budget = blocked.entry(key).or_insert(Blocked { pods: 0, since: *since });
            of_budget.pods += 1;
            of_budget.since = of_budget.since.min(*since);
        }
        blocked
    }

    /// The node behind the one whose turn was last, and its first pod.
    fn take_turn(&mut self) -> Option<(Emptied, PodUid)> {
        let behind = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next =
            self.ready.range::<Emptied, _>((behind, Bound::Unbounded)).next().or_else(|| self.ready.iter().next());
        let from = next.map(|(from, _)| from.clone())?;
        let pods = self.ready.get_mut(&from)?;
        let uid = pods.pop_front();
        if pods.is_empty() {
            self.ready.remove(&from);
        }
        Some((from, uid?))
    }

    /// A pod may be asked now. Those whose deadline has come stand first on their node.
    fn ready(&mut self, uid: &PodUid) {
        let Some(leaving) = self.pods.get_mut(uid) else { return };
        let queue = self.ready.entry(leaving.from.clone()).or_default();
        match leaving.state {
            State::Later(at) => drop(self.later.remove(&(at, uid.clone()))),
            State::Ready => queue.retain(|other| other != uid),
            State::Idle | State::Asking => {}
        }
        leaving.state = State::Ready;
        if leaving.forced {
            queue.push_front(uid.clone());
        } else {
            queue.push_back(uid.clone());
        }
    }

    fn answered(&mut self, uid: &PodUid) -> Option<&mut Leaving> {
        let leaving = self.pods.get_mut(uid).filter(|leaving| leaving.state == State::Asking)?;
        self.asking -= 1;
        Some(leaving)
    }

    fn wait(&mut self, uid: &PodUid, until: Moment) {
        if let Some(leaving) = self.pods.get_mut(uid) {
            leaving.state = State::Later(until);
            self.later.insert((until, uid.clone()));
        }
    }
}

#[cfg(test)]
#[path = "eviction_tests.rs"]
mod tests;
