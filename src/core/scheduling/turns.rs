//! Turns: of equal pods that spread over zones, each gets the place that keeps the balance when its turn comes.
//!
//! kube-scheduler takes pods by priority and age, and holds each to what is bound by then. A plan that was improved has the right number of
//! pods in each zone, but not always in that order. Equal pods can change places, whatever else is asked of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{Pod, PodShape, Selector};
use crate::core::ids::PodUid;
use crate::core::labels;

use super::checks::out_of_turn;
use super::plan::Plan;
use super::problem::Problem;

/// When kube-scheduler takes a pod: the highest priority first, then the oldest.
pub(super) type Turn = (Reverse<i32>, Timestamp, Option<u64>, PodUid);

/// See [`Turn`].
pub(super) fn turn(problem: &Problem<'_>, pod: &Pod) -> Turn {
    (Reverse(pod.shape.priority), pod.created, problem.snapshot.arrival(&pod.uid), pod.uid.clone())
}

/// Where a pod is in the plan: which of the NodeClaims, and behind them of the nodes that exist, and where in its list.
type Seat = (usize, usize);

/// What pods have in common that are counted by one constraint: its key, its selector, and their namespace.
type Group = (Arc<str>, Option<Selector>, Arc<str>);

/// A pod that spreads, its seat, and the domain of that.
struct Seated {
    turn: Turn,
    seat: Seat,
    domain: Arc<str>,
    pod: Arc<Pod>,
}

/// The plan with equal pods in the order of their turns; as it was, where fewer would then find their domain within the skew.
pub(super) fn in_turn(plan: Plan, problem: &Problem<'_>) -> Plan {
    let late = out_of_turn(problem, &plan);
    if late == 0 {
        return plan;
    }
    let other = dealt(plan.clone(), problem);
    if out_of_turn(problem, &other) < late { other } else { plan }
}

fn dealt(mut plan: Plan, problem: &Problem<'_>) -> Plan {
    let mut moves: Vec<(Seat, Arc<Pod>)> = Vec::new();
    let claims = plan.claims.len();
    for (_, mut seated) in groups(&plan, problem) {
        seated.sort_by(|a, b| a.turn.cmp(&b.turn));
        deal(&seated, claims, &mut moves);
    }
    for ((place, at), pod) in moves {
        let pods = if place < claims { &mut plan.claims[place].pods } else { &mut plan.existing[place - claims].pods };
        pods[at] = pod;
    }
    plan
}

/// Pods that are bound by a required constraint on a key that several nodes share, by the first such constraint.
fn groups(plan: &Plan, problem: &Problem<'_>) -> BTreeMap<Group, Vec<Seated>> {
    let mut groups: BTreeMap<Group, Vec<Seated>> = BTreeMap::new();
    let new = plan.claims.iter().map(|claim| &claim.pods);
    let there = plan.existing.iter().map(|placed| &placed.pods);
    for (place, pods) in new.chain(there).enumerate() {
        for (at, pod) in pods.iter().enumerate() {
            let over_domains =
                pod.shape.spreads.iter().find(|spread| spread.required && &*spread.key != labels::HOSTNAME);
            // Who has a node in mind already, or a volume somewhere, is not one of many.
            let is_free = pod.volume_claims.is_empty()
                && pod.node.is_none()
                && pod.nominated.is_none()
                && !problem.snapshot.planned.contains_key(&pod.uid);
            let Some(spread) = over_domains.filter(|_| is_free) else { continue };
            let domain = match plan.claims.get(place) {
                Some(claim) => claim.domain(&spread.key),
                None => plan.existing[place - plan.claims.len()].domain(&spread.key, problem.snapshot),
            };
            let Some(domain) = domain else { continue };
            let group = (Arc::clone(&spread.key), spread.selector.clone(), Arc::clone(&pod.shape.namespace));
            let seated = Seated { turn: turn(problem, pod), seat: (place, at), domain, pod: Arc::clone(pod) };
            groups.entry(group).or_default().push(seated);
        }
    }
    groups
}

/// Who gets which seat, for pods in the order of their turns. The last come first: whoever has the last turn takes a seat where the fewest
/// follow, so that at every turn about as many are still to come in each domain. In the end all domains are balanced, so they are then, too.
/// Of two such seats the one on a new node is taken, of which there are `claims`: what exists is for those who come first.
fn deal(seated: &[Seated], claims: usize, moves: &mut Vec<(Seat, Arc<Pod>)>) {
    let mut domains: Vec<&Arc<str>> = seated.iter().map(|one| &one.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    if domains.len() < 2 {
        return;
    }
    let number = |domain: &Arc<str>| domains.binary_search(&domain).unwrap_or_default();
    // Seats that are free, by shape and domain. Those whose pods have the last turns are at the end, and are taken first.
    let mut free: BTreeMap<&Arc<PodShape>, Vec<Vec<Seat>>> = BTreeMap::new();
    let mut left = vec![0_usize; domains.len()];
    for one in seated {
        let of_shape = free.entry(&one.pod.shape).or_insert_with(|| vec![Vec::new(); domains.len()]);
        of_shape[number(&one.domain)].push(one.seat);
        left[number(&one.domain)] += 1;
    }
    let mut follow = vec![0_usize; domains.len()];
    for one in seated.iter().rev() {
        let Some(free) = free.get_mut(&one.pod.shape) else { continue };
        let open = (0..domains.len()).filter(|at| !free[*at].is_empty());
        let exists = |at: usize| free[at].last().is_some_and(|(place, _)| *place >= claims);
        let Some(at) = open.min_by_key(|at| (follow[*at], Reverse(left[*at]), exists(*at), *at)) else { continue };
        let Some(seat) = free[at].pop() else { continue };
        follow[at] += 1;
        left[at] -= 1;
        if seat != one.seat {
            moves.push((seat, Arc::clone(&one.pod)));
        }
    }
}
