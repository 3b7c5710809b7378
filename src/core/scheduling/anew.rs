//! A plan, from the first pass over the pods to the last: made anew as long as pods are refused that could perhaps be placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::founders::doomed;
use super::ground::Ground;
use super::heirs;
use super::improve::improved;
use super::mingle::mingled;
use super::plan::{Plan, Refusal};
use super::problem::Problem;
use super::puzzle::Deal;
use super::reason::Reason;
use super::solve::Run;
use crate::core::facts::{Pod, PodShape};
use crate::core::ids::PodUid;

/// Finds a place for every pod, or says why there is none.
///
/// The same problem gives the same plan, whatever the order of its pods. Whoever asks often keeps a [`Ground`].
pub fn solve(problem: &Problem<'_>) -> Plan {
    Ground::default().solve(problem)
}

/// How often a plan is made anew for the sake of pods that were refused.
const PASSES: usize = 3;
/// So many groups of pods that mind each other are looked at, when pods are left that do.
const PUZZLES: usize = 16;

fn minds_others(refusal: &Refusal) -> bool {
    refusal.reasons.iter().any(Reason::minds_others)
}

/// Pods that a plan refuses.
pub(super) fn refused(plan: &Plan) -> FxHashSet<PodUid> {
    plan.refused.iter().map(|refusal| refusal.pod.clone()).collect()
}

/// Whether a plan refuses some of these pods only, and fewer, and everybody else gets where it puts them.
pub(super) fn serves_more(problem: &Problem<'_>, plan: &Plan, left: &FxHashSet<PodUid>) -> bool {
    let now = refused(plan);
    now.len() < left.len() && now.is_subset(left) && doomed(problem, plan).is_empty()
}

impl Ground {
    /// Finds a place for every pod, or says why there is none, as [`solve()`] does.
    pub fn solve(&mut self, problem: &Problem<'_>) -> Plan {
        heirs::served(problem, |problem| self.placed(problem))
    }

    /// The same, where the first has a claim for one pod at a time, place or no place.
    fn placed(&mut self, problem: &Problem<'_>) -> Plan {
        let (plan, has_rivals) = self.pass(problem, &FxHashSet::default(), &Deal::new());
        let unserved = |plan: &Plan| {
            let mut all = refused(plan);
            if has_rivals {
                all.extend(doomed(problem, plan));
            }
            all
        };
        let left = unserved(&plan);
        let is_final = plan.existing.is_empty() && !plan.refused.iter().any(minds_others);
        if left.is_empty() || is_final && left.len() == plan.refused.len() {
            return plan;
        }
        // Others may have taken room that exists and could have been bought for them, or be where nobody else can then be: who was refused comes
        // first then.
        let mut first = left.clone();
        let mut best = (plan, left);
        for _ in 0..PASSES {
            let (other, _) = self.pass(problem, &first, &Deal::new());
            let now = unserved(&other);
            let known = first.len();
            first.extend(now.iter().cloned());
            let is_done = now.is_empty() || first.len() == known;
            if now.len() < best.1.len() && now.is_subset(&best.1) {
                best = (other, now);
            }
            if is_done {
                break;
            }
        }
        if has_rivals { self.without_doomed(problem, best.0) } else { best.0 }
    }

    /// The plan, or one in which nobody counts on being bound before others: whoever did comes last, and is perhaps refused.
    fn without_doomed(&mut self, problem: &Problem<'_>, plan: Plan) -> Plan {
        let mut plan = plan;
        let mut last = FxHashSet::default();
        for _ in 0..PASSES {
            let more = doomed(problem, &plan);
            if more.is_empty() {
                break;
            }
            // Those that are alike come last together: of several that could be the first of their kind another would take its place.
            let shapes: BTreeSet<&PodShape> =
                problem.pods.iter().filter(|pod| more.contains(&pod.uid)).map(|pod| &*pod.shape).collect();
            let alike = problem.pods.iter().filter(|pod| shapes.contains(&*pod.shape));
            last.extend(alike.map(|pod| pod.uid.clone()));
            plan = self.with(problem, |world| {
                let mut run = Run::new(world);
                let waiting = run.in_order();
                let is_last = |pod: &usize| last.contains(&run.world.pods[*pod].uid);
                let (after, waiting): (Vec<usize>, Vec<usize>) = waiting.into_iter().partition(is_last);
                let mut left = run.place_all(waiting);
                left.extend(after);
                let left = run.rounds(left);
                (run.finish(&left), run.world)
            });
        }
        plan
    }

    /// The whole way to a plan: solved, improved, and mingled.
    pub fn plan(&mut self, problem: &Problem<'_>) -> Plan {
        let plan = self.solve(problem);
        let plan = self.untangled(problem, plan);
        let plan = self.seated(problem, plan);
        let plan = improved(self, problem, plan);
        mingled(problem, plan)
    }

    /// The plan, or a better one in which the domains of a few pods that mind each other were chosen together.
    fn untangled(&mut self, problem: &Problem<'_>, plan: Plan) -> Plan {
        if !plan.refused.iter().any(minds_others) {
            return plan;
        }
        let waits = |refusal: &Refusal| refusal.reasons.iter().any(Reason::is_of_affinity);
        let hopeless = plan.refused.iter().filter(|refusal| !minds_others(refusal) && !waits(refusal));
        let hopeless: FxHashSet<PodUid> = hopeless.map(|refusal| refusal.pod.clone()).collect();
        let left = refused(&plan);
        let puzzles = self.with(problem, |world| {
            let mut run = Run::new(world);
            (run.puzzles(&left, &hopeless), run.world)
        });
        let mut deal = Deal::new();
        for puzzle in puzzles.into_iter().take(PUZZLES) {
            if puzzle.pods().any(|pod| deal.iter().any(|(dealt, ..)| dealt == pod)) {
                continue;
            }
            // Others are left out of it first: a way that cannot be gone without them costs little then.
            let is_one = |way: &Deal| {
                let is_in = |pod: &&Arc<Pod>| way.iter().any(|(dealt, ..)| *dealt == pod.uid);
                let pods: Vec<Arc<Pod>> = problem.pods.iter().filter(is_in).cloned().collect();
                self.pass(&Problem { pods: &pods, ..*problem }, &FxHashSet::default(), way).0.refused.is_empty()
            };
            deal.extend(puzzle.ways().into_iter().find(is_one).into_iter().flatten());
        }
        if deal.is_empty() {
            return plan;
        }
        let (other, _) = self.pass(problem, &FxHashSet::default(), &deal);
        if serves_more(problem, &other, &left) { other } else { plan }
    }

    /// Places each pod when its turn comes, these before all others; or as they are dealt out. Says whether pods may come too late to be the first of
    /// their kind.
    fn pass(&mut self, problem: &Problem<'_>, first: &FxHashSet<PodUid>, deal: &Deal) -> (Plan, bool) {
        self.with(problem, |world| {
            let mut run = Run::new(world);
            let mut waiting = run.in_order();
            run.deal(deal, &mut waiting);
            if !first.is_empty() || !deal.is_empty() {
                run.heed_seniors(&waiting, !deal.is_empty());
            }
            let left = if first.is_empty() { run.place_all(waiting) } else { run.place_all_after(first, waiting) };
            ((run.finish(&left), run.has_rivals()), run.world)
        })
    }
}
