//! Turns: of equal pods that spread over zones, each gets the place that keeps the balance when its turn comes.
//!
//! kube-scheduler takes pods by priority and age, and holds each to what is bound by then. A plan that was improved has the right number of
//! pods in each zone, but not always in that order. Equal pods can change places, whatever else is asked of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::facts::{Pod, PodShape, Snapshot, TopologySpread};
use crate::core::ids::PodUid;
use crate::core::labels;

use super::plan::Plan;
use super::problem::Problem;
use super::topology::Target;

/// A constraint, and what pods there are in each domain before the plan.
struct Watch<'p> {
    constraint: &'p TopologySpread,
    running: FxHashMap<Arc<str>, usize>,
}

/// What a constraint is to pods of a shape.
#[derive(Clone, Copy)]
struct Role {
    watch: usize,
    bound: bool,
    /// It is the first that binds them: by this one they are dealt.
    leads: bool,
    counted: bool,
}

/// A pod of the plan in the eyes of a constraint.
struct Seen<'a> {
    /// Its turn.
    turn: u32,
    role: Role,
    domain: Arc<str>,
    seat: Seat,
    pod: &'a Arc<Pod>,
}

/// Where a pod is in the plan: which of the NodeClaims, and behind them of the nodes that exist, and where in its list.
type Seat = (usize, usize);

/// The turns of the pods of a question.
pub(super) struct Turns<'p> {
    problem: &'p Problem<'p>,
    turn: FxHashMap<&'p PodUid, u32>,
    watches: Vec<Watch<'p>>,
    roles: FxHashMap<*const PodShape, SmallVec<[Role; 1]>>,
}

impl<'p> Turns<'p> {
    pub(super) fn new(problem: &'p Problem<'p>) -> Self {
        let shapes: FxHashMap<*const PodShape, &PodShape> =
            problem.pods.iter().map(|pod| (Arc::as_ptr(&pod.shape), &*pod.shape)).collect();
        let binding: BTreeSet<(&TopologySpread, &Arc<str>)> =
            shapes.values().flat_map(|shape| over_domains(shape).map(|one| (one, &shape.namespace))).collect();
        let mut all = Self { problem, turn: FxHashMap::default(), watches: Vec::new(), roles: FxHashMap::default() };
        if binding.is_empty() {
            return all;
        }
        let binding: Vec<(&TopologySpread, &Arc<str>)> = binding.into_iter().collect();
        let targets: Vec<Target> =
            binding.iter().map(|(constraint, from)| Target::within(from, constraint.selector.as_ref())).collect();
        for (pointer, shape) in shapes {
            let role = |watch: usize| {
                let (constraint, from) = binding[watch];
                let own = shape.namespace == *from;
                let bound = own && over_domains(shape).any(|one| one == constraint);
                let leads = own && over_domains(shape).next() == Some(constraint);
                Role { watch, bound, leads, counted: targets[watch].selects(shape) }
            };
            let roles = (0..binding.len()).map(role).filter(|role| role.bound || role.counted);
            all.roles.insert(pointer, roles.collect());
        }
        let mut pods: Vec<&Arc<Pod>> = problem.pods.iter().collect();
        pods.sort_by_cached_key(|pod| (Reverse(pod.shape.priority), problem.age(pod)));
        all.turn = (0..).zip(pods).map(|(turn, pod)| (&pod.uid, turn)).collect();
        all.watches =
            binding.into_iter().map(|(constraint, _)| Watch { constraint, running: FxHashMap::default() }).collect();
        all.count_running(&targets, problem.snapshot);
        all
    }

    fn count_running(&mut self, targets: &[Target], snapshot: &Snapshot) {
        let mut counted: FxHashMap<*const PodShape, SmallVec<[usize; 1]>> = FxHashMap::default();
        for (name, pods) in &snapshot.bound {
            let Some(node) = snapshot.nodes.get(name) else { continue };
            for pod in pods.iter().filter_map(|uid| snapshot.pods.get(uid)).filter(|pod| pod.deleting.is_none()) {
                let by = counted.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| {
                    (0..targets.len()).filter(|watch| targets[*watch].selects(&pod.shape)).collect()
                });
                for watch in by.iter() {
                    let watch = &mut self.watches[*watch];
                    if let Some(domain) = node.labels.get(&watch.constraint.key) {
                        *watch.running.entry(Arc::clone(domain)).or_default() += 1;
                    }
                }
            }
        }
    }

    /// How many pods of a plan find their domain full to the skew when their turn comes, as far as the domains are concerned that the plan uses.
    pub(super) fn late(&self, plan: &Plan) -> usize {
        self.late_of(&self.seen(plan))
    }

    fn late_of(&self, seen: &[Vec<Seen<'_>>]) -> usize {
        seen.iter().zip(&self.watches).map(|(seen, watch)| late(seen, watch)).sum()
    }

    /// The plan with equal pods in the order of their turns; as it was, where no fewer would then find their domain full.
    pub(super) fn kept(&self, plan: Plan) -> Plan {
        let seen = self.seen(&plan);
        let late = self.late_of(&seen);
        if late == 0 {
            return plan;
        }
        let mut moves: Vec<(Seat, Arc<Pod>)> = Vec::new();
        let claims = plan.claims.len();
        for seen in seen {
            let free: Vec<Seen<'_>> = seen.into_iter().filter(|one| one.role.leads && self.is_free(one.pod)).collect();
            deal(&free, claims, &mut moves);
        }
        let mut other = plan.clone();
        for ((place, at), pod) in moves {
            let pods =
                if place < claims { &mut other.claims[place].pods } else { &mut other.existing[place - claims].pods };
            pods[at] = pod;
        }
        if self.late(&other) < late { other } else { plan }
    }

    /// Whether a pod is one of many: not who has a node in mind already, or a volume somewhere.
    fn is_free(&self, pod: &Pod) -> bool {
        pod.volume_claims.is_empty()
            && pod.node.is_none()
            && pod.nominated.is_none()
            && !self.problem.snapshot.planned.contains_key(&pod.uid)
    }

    /// The pods of a plan that each constraint looks at, in the order of their turns.
    fn seen<'a>(&self, plan: &'a Plan) -> Vec<Vec<Seen<'a>>> {
        let mut all: Vec<Vec<Seen<'a>>> = self.watches.iter().map(|_| Vec::new()).collect();
        let new = plan.claims.iter().map(|claim| &claim.pods);
        let there = plan.existing.iter().map(|placed| &placed.pods);
        for (place, pods) in new.chain(there).enumerate() {
            let mut known: Vec<(&str, Option<Arc<str>>)> = Vec::new();
            for (at, pod) in pods.iter().enumerate() {
                for role in self.roles.get(&Arc::as_ptr(&pod.shape)).into_iter().flatten() {
                    let key = &*self.watches[role.watch].constraint.key;
                    let domain = known.iter().find(|(name, _)| *name == key).map(|(_, domain)| domain.clone());
                    let domain = domain.unwrap_or_else(|| {
                        let domain = match plan.claims.get(place) {
                            Some(claim) => claim.domain(key),
                            None => plan.existing[place - plan.claims.len()].domain(key, self.problem.snapshot),
                        };
                        known.push((key, domain.clone()));
                        domain
                    });
                    if let (Some(domain), Some(turn)) = (domain, self.turn.get(&pod.uid)) {
                        all[role.watch].push(Seen { turn: *turn, role: *role, domain, seat: (place, at), pod });
                    }
                }
            }
        }
        for seen in &mut all {
            seen.sort_unstable_by_key(|one| one.turn);
        }
        all
    }
}

/// The required constraints on keys that several nodes share.
fn over_domains(shape: &PodShape) -> impl Iterator<Item = &TopologySpread> {
    shape.spreads.iter().filter(|spread| spread.required && &*spread.key != labels::HOSTNAME)
}

fn late(seen: &[Seen<'_>], watch: &Watch<'_>) -> usize {
    let mut counts: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    for one in seen {
        counts.entry(&one.domain).or_insert_with(|| watch.running.get(&one.domain).copied().unwrap_or_default());
    }
    let skew = usize::try_from(watch.constraint.max_skew).unwrap_or(1);
    let mut late = 0;
    for one in seen {
        let least = counts.values().min().copied().unwrap_or_default();
        let here = counts.entry(&one.domain).or_default();
        let own = usize::from(one.role.counted);
        late += usize::from(one.role.bound && *here + own > least + skew);
        *here += own;
    }
    late
}

/// Who gets which seat, for pods in the order of their turns. The last come first: whoever has the last turn takes a seat where the fewest
/// follow, so that at every turn about as many are still to come in each domain. In the end all domains are balanced, so they are then, too.
/// Of two such seats the one on a new node is taken, of which there are `claims`: what exists is for those who come first.
fn deal(seen: &[Seen<'_>], claims: usize, moves: &mut Vec<(Seat, Arc<Pod>)>) {
    let mut domains: Vec<&Arc<str>> = seen.iter().map(|one| &one.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    if domains.len() < 2 {
        return;
    }
    let number = |domain: &Arc<str>| domains.binary_search(&domain).unwrap_or_default();
    // Seats that are free, by shape and domain. Those whose pods have the last turns are at the end, and are taken first.
    let mut free: BTreeMap<&Arc<PodShape>, Vec<Vec<Seat>>> = BTreeMap::new();
    let mut left = vec![0_usize; domains.len()];
    for one in seen {
        let of_shape = free.entry(&one.pod.shape).or_insert_with(|| vec![Vec::new(); domains.len()]);
        of_shape[number(&one.domain)].push(one.seat);
        left[number(&one.domain)] += 1;
    }
    let mut follow = vec![0_usize; domains.len()];
    for one in seen.iter().rev() {
        let Some(free) = free.get_mut(&one.pod.shape) else { continue };
        let open = (0..domains.len()).filter(|at| !free[*at].is_empty());
        let exists = |at: usize| free[at].last().is_some_and(|(place, _)| *place >= claims);
        let Some(at) = open.min_by_key(|at| (follow[*at], Reverse(left[*at]), exists(*at), *at)) else { continue };
        let Some(seat) = free[at].pop() else { continue };
        follow[at] += 1;
        left[at] -= 1;
        if seat != one.seat {
            moves.push((seat, Arc::clone(one.pod)));
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
