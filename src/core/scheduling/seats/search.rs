//! All ways to seat a few pods, one after the other.

use rustc_hash::FxHashSet;

use crate::core::scheduling::solve::Run;

use super::seated::Seating;
use super::sit::{Place, Seat};

/// So many seats are tried in one search.
const STEPS: usize = 2_000;

/// Who sits where, however it came about: a planned node is called by the first of its pods and by what it has become.
type State = Vec<Option<(Place, u32)>>;

/// A search under way.
pub(super) struct Search<'a, 'p> {
    run: &'a mut Run<'p>,
    pods: Vec<usize>,
    /// The seats on what exists, and on new nodes, for each pod.
    choices: Vec<Vec<Seat>>,
    /// Whether the seating of others can open a seat to the pod.
    can_wait: Vec<bool>,
    seats: Vec<Option<Place>>,
    way: Seating,
    seen: FxHashSet<State>,
    steps: usize,
}

impl<'a, 'p> Search<'a, 'p> {
    pub(super) fn new(run: &'a mut Run<'p>, pods: Vec<usize>, hosts: &[usize]) -> Self {
        let choices = pods.iter().map(|pod| choices(run, *pod, hosts)).collect();
        let can_wait = |pod: &usize| {
            let variants = &run.world.class_at(*pod).variants;
            variants.iter().any(|variant| !variant.spreads.is_empty() || !variant.affinities.is_empty())
                || run.world.still_on.contains_key(pod)
        };
        let can_wait = pods.iter().map(can_wait).collect();
        let seats = vec![None; pods.len()];
        Self { run, pods, choices, can_wait, seats, way: Seating::new(), seen: FxHashSet::default(), steps: 0 }
    }

    /// The first way that seats all of them; they then sit there.
    pub(super) fn found(mut self) -> Option<Seating> {
        self.extend().then_some(self.way)
    }

    fn extend(&mut self) -> bool {
        if self.way.len() == self.pods.len() {
            let seated = self.pods.iter().zip(&self.seats);
            return seated.into_iter().all(|(pod, seat)| seat.is_some_and(|seat| self.run.stays(*pod, seat)));
        }
        for at in 0..self.pods.len() {
            if self.seats[at].is_some() || self.is_like_one_before(at) {
                continue;
            }
            let mut has_seat = false;
            let planned = (0..self.run.drafts.len()).map(Seat::Planned);
            for seat in planned.chain(self.choices[at].clone()).collect::<Vec<_>>() {
                self.steps += 1;
                if self.steps > STEPS {
                    return false;
                }
                let place = match seat {
                    Seat::Host(host) => Place::Host(host),
                    Seat::Planned(draft) => Place::Planned(draft),
                    Seat::New(..) => Place::Planned(self.run.drafts.len()),
                };
                let Some(before) = self.run.sit(self.pods[at], &seat) else { continue };
                has_seat = true;
                self.seats[at] = Some(place);
                self.way.push((self.pods[at], seat));
                if self.seen.insert(self.state()) && self.extend() {
                    return true;
                }
                self.way.pop();
                self.seats[at] = None;
                self.run.leave(before);
            }
            // Who has no seat now and waits for nobody will have none.
            if !has_seat && !self.can_wait[at] {
                return false;
            }
        }
        false
    }

    /// Of pods that are alike it does not matter which comes first.
    fn is_like_one_before(&self, at: usize) -> bool {
        let class = |at: usize| self.run.world.class_of[self.pods[at]];
        let moves = |at: usize| self.run.world.still_on.contains_key(&self.pods[at]);
        (0..at).any(|other| self.seats[other].is_none() && class(other) == class(at) && !moves(other) && !moves(at))
    }

    fn state(&self) -> State {
        let named = |place: Place| match place {
            Place::Host(_) => (place, 0),
            Place::Planned(at) => {
                let first = self.seats.iter().position(|other| *other == Some(place)).unwrap_or(usize::MAX);
                (Place::Planned(first), self.run.drafts[at].profile.0)
            }
        };
        self.seats.iter().map(|seat| seat.map(named)).collect()
    }
}

/// The seats of a pod on what exists and on new nodes, in the order in which they are tried.
fn choices(run: &mut Run<'_>, pod: usize, hosts: &[usize]) -> Vec<Seat> {
    let mut all: Vec<Seat> = hosts.iter().map(|host| Seat::Host(*host)).collect();
    for pool in 0..run.world.pools.len() {
        all.extend(run.kinds_of_new(pod, pool).into_iter().map(|pins| Seat::New(pool, pins)));
        if run.has_to_wait(pod, pool) {
            break;
        }
    }
    all
}
