//! Pods that are the first of their kind, where others of the kind could be bound before them and elsewhere.
//!
//! A pod whose required affinity means itself may be alone as long as none that it means is anywhere. kube-scheduler does not know who was meant to
//! be first: another that the affinity means, and that does not wait for the first, is bound as soon as its own node takes it. If that is elsewhere,
//! the pod on its new node would never be let in. A plan is not to count on that order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::core::facts::{AffinityTerm, Pod, PodShape};
use crate::core::ids::PodUid;
use crate::core::labels;

use super::classes::Class;
use super::plan::{Placement, Plan};
use super::problem::Problem;
use super::solve::Run;
use super::topology::{CounterId, Target, Targets};

/// When kube-scheduler comes to a pod: nodes that are there come before those that are not, then it goes by priority and age.
type Turn = (bool, Reverse<i32>, (Timestamp, u64, PodUid));

/// Where a pod is, in the eyes of each term of an affinity.
type Domains = SmallVec<[Option<Arc<str>>; 2]>;

/// The number of an affinity.
type Which = usize;

/// A required affinity, and whom it means.
struct Affinity<'p> {
    terms: &'p [AffinityTerm],
    targets: SmallVec<[u32; 2]>,
    /// Whether it means pods that have it themselves, and whether it means others.
    means_own: bool,
    means_others: bool,
    /// Whether one whom it means is on a node already: then nobody is the first.
    stands: bool,
}

/// A shape of pods: its own affinity, and the affinities that mean it.
struct Member {
    own: Option<Which>,
    meant_by: SmallVec<[Which; 1]>,
}

/// The affinities of a question's pods.
struct Affinities<'p> {
    all: Vec<Affinity<'p>>,
    members: FxHashMap<*const PodShape, Member>,
}

/// A pod where a plan puts it.
struct Placed<'a> {
    pod: &'a Arc<Pod>,
    place: Placement<'a>,
    member: &'a Member,
}

/// Where a plan puts those whom affinities mean.
struct Layout<'a> {
    problem: &'a Problem<'a>,
    affinities: &'a Affinities<'a>,
    placed: Vec<Placed<'a>>,
    /// Who is in which domains, by the affinity that means them.
    parties: BTreeMap<(Which, Domains), Vec<usize>>,
}

/// The pods of a plan that count on being bound before others of their kind, which nothing makes sure of.
pub(super) fn doomed(problem: &Problem<'_>, plan: &Plan) -> FxHashSet<PodUid> {
    let mut affinities = Affinities::of(problem);
    if affinities.doubtful().next().is_none() {
        return FxHashSet::default();
    }
    affinities.see_who_stands(problem);
    let layout = Layout::of(problem, &affinities, plan);
    affinities.doubtful().flat_map(|which| layout.late(which)).map(|at| layout.placed[at].pod.uid.clone()).collect()
}

impl Run<'_> {
    /// Whether some pods may be the first of their kind, and others come first. Where none do, which is the rule, no plan need be asked.
    pub(super) fn has_rivals(&self) -> bool {
        let classes = &self.world.classes;
        let own = |class: &Class| {
            let bare = class.variants.last()?.affinities.first()?;
            (bare.own && !class.shape.affinity.is_empty()).then(|| bare.counters.clone())
        };
        let mut known: FxHashMap<CounterId, Vec<&Class>> = FxHashMap::default();
        for class in classes {
            for (_, counter) in own(class).into_iter().flatten() {
                known.entry(counter).or_default();
            }
        }
        if known.is_empty() {
            return false;
        }
        for class in classes {
            for counter in &class.touches {
                known.entry(*counter).and_modify(|meant| meant.push(class));
            }
        }
        classes.iter().any(|class| {
            let counters = own(class).unwrap_or_default();
            let meant = counters.first().and_then(|(_, counter)| known.get(counter));
            meant.into_iter().flatten().any(|other| {
                other.shape.affinity != class.shape.affinity
                    && counters.iter().all(|(_, counter)| other.touches.contains(counter))
            })
        })
    }
}

impl<'p> Affinities<'p> {
    /// All that pods of the question have, and whom of these they mean.
    fn of(problem: &Problem<'p>) -> Self {
        let shapes: FxHashMap<*const PodShape, &PodShape> =
            problem.pods.iter().map(|pod| (Arc::as_ptr(&pod.shape), &*pod.shape)).collect();
        let mut lists: Vec<&[AffinityTerm]> =
            shapes.values().map(|shape| &shape.affinity[..]).filter(|terms| !terms.is_empty()).collect();
        lists.sort_unstable();
        lists.dedup();
        let mut affinities = Self { all: Vec::new(), members: FxHashMap::default() };
        if lists.is_empty() {
            return affinities;
        }
        let mut targets = Targets::default();
        let mut by_target: FxHashMap<u32, Vec<Which>> = FxHashMap::default();
        for terms in &lists {
            let mut own: SmallVec<[u32; 2]> =
                terms.iter().map(|term| targets.add(Target::of(term, problem.snapshot))).collect();
            own.sort_unstable();
            by_target.entry(own[0]).or_default().push(affinities.all.len());
            let (means_own, means_others, stands) = (false, false, false);
            affinities.all.push(Affinity { terms, targets: own, means_own, means_others, stands });
        }
        for (pointer, shape) in shapes {
            let meaning = targets.meaning(shape);
            let own = lists.binary_search(&&shape.affinity[..]).ok();
            let known = meaning.iter().filter_map(|target| by_target.get(target)).flatten().copied();
            let is_meant =
                |which: &Which| affinities.all[*which].targets.iter().all(|one| meaning.binary_search(one).is_ok());
            let meant_by: SmallVec<[Which; 1]> = known.filter(is_meant).collect();
            for which in &meant_by {
                let means = &mut affinities.all[*which];
                *if own == Some(*which) { &mut means.means_own } else { &mut means.means_others } = true;
            }
            affinities.members.insert(pointer, Member { own, meant_by });
        }
        affinities
    }

    /// Those by which somebody may be the first, and others come first.
    fn doubtful(&self) -> impl Iterator<Item = Which> {
        let is_doubtful = |which: &Which| {
            let one = &self.all[*which];
            one.means_own && one.means_others && !one.stands
        };
        (0..self.all.len()).filter(is_doubtful)
    }

    /// Looks for those whom affinities mean on nodes: pods that are not asked about.
    fn see_who_stands(&mut self, problem: &Problem<'_>) {
        let snapshot = problem.snapshot;
        let keys: BTreeSet<&str> = self.all.iter().flat_map(|one| one.terms).map(|term| &*term.key).collect();
        let mut known: FxHashSet<(*const PodShape, Vec<&str>)> = FxHashSet::default();
        let asked = problem.pods.iter().filter(|pod| pod.node.is_some());
        let asked: FxHashSet<&PodUid> = asked.map(|pod| &pod.uid).collect();
        for (node, uids) in &snapshot.bound {
            // On a node that is in no domain of any term nobody is seen.
            let Some(node) = snapshot.nodes.get(node) else { continue };
            let there: Vec<&str> =
                keys.iter().copied().filter(|key| labels::value(&node.labels, key).is_some()).collect();
            let pods = uids.iter().filter(|uid| !asked.contains(uid)).filter_map(|uid| snapshot.pods.get(uid));
            for pod in pods.filter(|pod| pod.is_active_on_node() && pod.deleting.is_none()) {
                if known.insert((Arc::as_ptr(&pod.shape), there.clone())) {
                    for one in self.all.iter_mut().filter(|one| !one.stands) {
                        let is_seen = one.terms.iter().any(|term| there.contains(&&*term.key));
                        let means = |term: &AffinityTerm| Target::of(term, snapshot).selects(&pod.shape);
                        one.stands = is_seen && one.terms.iter().all(means);
                    }
                }
            }
        }
    }
}

impl<'a> Layout<'a> {
    fn of(problem: &'a Problem<'a>, affinities: &'a Affinities<'a>, plan: &'a Plan) -> Self {
        let mut layout = Self { problem, affinities, placed: Vec::new(), parties: BTreeMap::new() };
        for place in plan.placements() {
            for pod in place.pods() {
                let Some(member) = affinities.members.get(&Arc::as_ptr(&pod.shape)) else { continue };
                let at = layout.placed.len();
                layout.placed.push(Placed { pod, place, member });
                for which in &member.meant_by {
                    let domains = layout.domains(at, *which);
                    // Where a node is in no domain of any term, nobody is seen.
                    if domains.iter().any(Option::is_some) {
                        layout.parties.entry((*which, domains)).or_default().push(at);
                    }
                }
            }
        }
        layout
    }

    fn domains(&self, at: usize, which: Which) -> Domains {
        let terms = self.affinities.all[which].terms.iter();
        terms.map(|term| self.placed[at].place.domain(&term.key, self.problem.snapshot)).collect()
    }

    fn turn(&self, at: usize) -> Turn {
        let Placed { pod, place, .. } = &self.placed[at];
        (!place.is_there(), Reverse(pod.shape.priority), self.problem.age(pod))
    }

    /// Those who have an affinity, are by themselves, and may come too late to be the first.
    fn late(&self, which: Which) -> Vec<usize> {
        let is_bound = |at: &&usize| self.placed[**at].member.own == Some(which);
        let all = || {
            let from = self.parties.range((which, Domains::new())..);
            from.take_while(move |((other, _), _)| *other == which).map(|(_, party)| party)
        };
        let others = all().flatten().filter(|at| !is_bound(at) && self.is_free(**at, which));
        let Some(others) = others.map(|at| self.turn(*at)).min() else { return Vec::new() };
        let mut late = Vec::new();
        for party in all().filter(|party| party.iter().all(|at| is_bound(&at))) {
            let is_promised = |at: &usize| {
                let pod = self.placed[*at].pod;
                pod.nominated.is_some() || self.problem.snapshot.planned.contains_key(&pod.uid)
            };
            // On a node that is there, whoever has the first turn is bound first.
            let comes_first = |first: Turn| !first.0 && first < others;
            if !party.iter().any(is_promised) && !party.iter().map(|at| self.turn(*at)).min().is_some_and(comes_first) {
                late.extend(party);
            }
        }
        late
    }

    /// Whether a pod is bound sooner or later without anybody that has an affinity: it waits for nobody, may be the first itself, or one for whom it
    /// waits is so.
    fn is_free(&self, at: usize, which: Which) -> bool {
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        let mut next = vec![at];
        while let Some(at) = next.pop() {
            let Member { own, meant_by } = self.placed[at].member;
            let Some(own) = *own else { return true };
            if own == which || !seen.insert(at) {
                continue;
            }
            if self.affinities.all[own].stands || meant_by.contains(&own) {
                return true;
            }
            next.extend(self.parties.get(&(own, self.domains(at, own))).into_iter().flatten());
        }
        false
    }
}
