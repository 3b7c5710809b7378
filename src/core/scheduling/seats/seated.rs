//! The plan in which refused pods have seats.

use rustc_hash::FxHashSet;

use crate::core::ids::PodUid;
use crate::core::scheduling::anew::{refused, serves_more};
use crate::core::scheduling::ground::Ground;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::problem::Problem;
use crate::core::scheduling::solve::Run;

use super::search::Search;
use super::sit::{Place, Seat};

/// So many kinds of refused pods are looked at: who is refused beyond is rarely refused for the sake of a few.
const KINDS: usize = 8;

/// Who was given which seat, in this order. Numbers hold as long as the problem is the same.
pub(super) type Seating = Vec<(usize, Seat)>;

/// What came of one search.
struct Found {
    plan: Plan,
    seating: Seating,
}

impl Ground {
    /// The plan, or one that places more: the same pods and some that it refuses.
    pub(in crate::core::scheduling) fn seated(&mut self, problem: &Problem<'_>, plan: Plan) -> Plan {
        let mut best = plan;
        let mut seating = Seating::new();
        let mut tried: FxHashSet<u32> = FxHashSet::default();
        while !best.refused.is_empty() && tried.len() < KINDS {
            let left = refused(&best);
            let found = self.with(problem, |world| {
                let mut run = Run::new(world);
                let next = (0..run.world.pods.len())
                    .find(|pod| left.contains(&run.world.pods[*pod].uid) && !tried.contains(&run.world.class_of[*pod]));
                let found = next.map(|pod| {
                    tried.insert(run.world.class_of[pod]);
                    run.seat(pod, &best, &left, &seating)
                });
                (found, run.world)
            });
            let Some(found) = found else { break };
            let Some(Found { plan, seating: more }) = found else { continue };
            if serves_more(problem, &plan, &left) {
                best = plan;
                seating = more;
            }
        }
        best
    }
}

impl Run<'_> {
    /// A plan in which a refused pod has a seat, after those who were given theirs before; nothing when no way to seat it is found.
    fn seat(&mut self, pod: usize, plan: &Plan, left: &FxHashSet<PodUid>, before: &Seating) -> Option<Found> {
        let waiting = self.in_order();
        let waiting = self.return_planned(waiting);
        for (pod, seat) in before {
            self.sit(*pod, seat)?;
        }
        let seated = |pod: &usize| before.iter().any(|(known, _)| known == pod);
        let free: FxHashSet<usize> = waiting.iter().copied().filter(|pod| !seated(pod)).collect();
        let circle = self.circle(pod, plan, &free)?;
        let all = circle.pods;
        let without: Vec<usize> =
            all.iter().copied().filter(|one| *one == pod || !left.contains(&self.world.pods[*one].uid)).collect();
        let again = (without.len() < all.len()).then_some(without);
        let ways = std::iter::once(all).chain(again);
        let mut ways = ways.filter_map(|pods| Search::new(self, pods, &circle.hosts).found());
        let mut seating = before.clone();
        seating.extend(ways.next()?);
        drop(ways);
        self.note_seats(&seating);
        let rest = waiting.into_iter().filter(|pod| seating.iter().all(|(known, _)| known != pod)).collect();
        let left = self.rounds(rest);
        Some(Found { plan: self.finish(&left), seating })
    }

    /// Tells the indexes of what the search has done behind their backs.
    fn note_seats(&mut self, seating: &Seating) {
        for at in 0..self.drafts.len() {
            let left = self.drafts[at].left();
            self.rooms.push(Some(self.kind_of_draft(at)), &left);
        }
        for (pod, _) in seating {
            let class = self.world.class_of[*pod] as usize;
            let on = match self.place_of(*pod) {
                Some(Place::Planned(at)) => Some(at),
                Some(Place::Host(at)) => {
                    self.world.rooms.set_free(at, &self.world.hosts[at].free);
                    None
                }
                None => None,
            };
            self.with_class(*pod, |run, class| run.spent(class, on));
            self.forgive(crate::core::scheduling::interner::number(class));
        }
    }
}
