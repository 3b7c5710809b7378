//! Pod classes: pods of equal shape are one question. A class knows its terms, its constraints and the steps of its relaxation.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::facts::{AffinityTerm, Pod, PodShape, PolicyHonor, TopologySpread};
use crate::core::labels;

use super::algebra::TermId;
use super::interner::{KeyId, number};
use super::masks::Mask;
use super::shelf::Amounts;
use super::shunned::Shunned;
use super::topology::{CounterId, Filter, FilterId, Target, Topo, Whom};
use super::volumes::Needs;
use super::world::World;

/// A spread constraint.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) topo: Topo,
    pub(super) counter: CounterId,
    pub(super) max_skew: u32,
    pub(super) min_domains: usize,
    /// Whether the pod counts itself.
    pub(super) own: u32,
    /// The domains that exist or could be made.
    pub(super) domains: Mask,
}

/// Required pod affinity: the counters of all terms, each of pods that all terms mean together, as kube-scheduler counts.
#[derive(Clone, Debug)]
pub(super) struct Affinity {
    pub(super) counters: SmallVec<[(Topo, CounterId); 1]>,
    /// Whether the pod itself is one of those meant: then it may be the first.
    pub(super) own: bool,
    /// Then also those who are on their way out: kube-scheduler lets nobody be the first before they are gone.
    pub(super) leaving: SmallVec<[(Topo, CounterId); 1]>,
}

/// One step of relaxation: what still has to hold.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    /// How far it is relaxed; variants of one level differ by alternatives of what is required.
    pub(super) level: usize,
    pub(super) term: TermId,
    pub(super) ignore_soft_taints: bool,
    pub(super) spreads: Vec<Spread>,
    pub(super) affinities: Vec<Affinity>,
    pub(super) apart: Vec<(Topo, CounterId)>,
}

/// Pods of one shape.
pub(super) struct Class {
    pub(super) shape: Arc<PodShape>,
    pub(super) requests: Amounts,
    pub(super) tolerations: u32,
    /// From all wishes to bare requirements. Empty when the pod contradicts itself, or asks for what joiner cannot give.
    pub(super) variants: Vec<Variant>,
    /// The key on which the pod's own requirements contradict each other.
    pub(super) contradiction: Option<KeyId>,
    /// The key on which the pod's own requirements and those of its volumes contradict each other.
    pub(super) elsewhere: Option<KeyId>,
    /// What the pod's volumes ask for.
    pub(super) needs: Option<Arc<Needs>>,
    /// Counters to raise when a pod is placed.
    pub(super) touches: Vec<CounterId>,
    /// Counters of pods that want to be apart from this one.
    pub(super) repelled: Vec<(Topo, CounterId)>,
    /// Zonal constraints of other pods that count these and do not bind them.
    pub(super) courtesies: Vec<Spread>,
    /// Keys (not the host name) that must be settled where such a pod is placed.
    pub(super) pins: Vec<KeyId>,
    /// DaemonSets whose pods may not be on a node with such a pod.
    pub(super) shunned: Shunned,
    /// The entry of the demand that this class belongs to.
    pub(super) demand: usize,
}

impl Class {
    /// The variants that give nothing up: they differ by alternatives of what is required.
    pub(super) fn with_all_wishes(&self) -> impl Iterator<Item = &Variant> {
        let first = self.variants.first();
        self.variants.iter().take_while(move |variant| first.is_some_and(|first| first.level == variant.level))
    }

    /// The alternatives of what its pods require of a node's labels.
    pub(super) fn bare_terms(&self) -> Vec<TermId> {
        let bare = self.variants.last().map(|bare| bare.level);
        self.variants.iter().filter(|variant| Some(variant.level) == bare).map(|variant| variant.term).collect()
    }

    /// The anti-affinities of one of its variants that keep its pods away from each other, too.
    pub(super) fn away_from_its_like<'a>(
        &'a self,
        variant: &'a Variant,
    ) -> impl Iterator<Item = (Topo, CounterId)> + 'a {
        variant.apart.iter().copied().filter(|(_, id)| self.touches.contains(id))
    }

    /// The spread constraints per node that its pods are bound by: whom each counts, and how many a node may have.
    pub(super) fn caps(&self) -> impl Iterator<Item = (CounterId, u32)> + '_ {
        let bare = self.variants.last().into_iter().flat_map(|bare| &bare.spreads);
        bare.filter(|spread| spread.topo == Topo::Host).map(|spread| (spread.counter, spread.max_skew))
    }

    /// Whether a later pod can change what is possible for this class.
    pub(super) fn is_topological(&self) -> bool {
        !self.repelled.is_empty()
            || self.variants.iter().any(|v| !v.spreads.is_empty() || !v.affinities.is_empty() || !v.apart.is_empty())
    }
}

/// Shapes of the pods, each once, and the number of each pod's shape.
pub(super) fn group(pods: &[Arc<Pod>]) -> (Vec<Arc<PodShape>>, Vec<u32>) {
    let mut shapes: Vec<Arc<PodShape>> = Vec::new();
    let mut by_pointer: FxHashMap<*const PodShape, u32> = FxHashMap::default();
    let mut by_value: FxHashMap<Arc<PodShape>, u32> = FxHashMap::default();
    let numbers = pods
        .iter()
        .map(|pod| {
            *by_pointer.entry(Arc::as_ptr(&pod.shape)).or_insert_with(|| {
                *by_value.entry(Arc::clone(&pod.shape)).or_insert_with(|| {
                    shapes.push(Arc::clone(&pod.shape));
                    number(shapes.len() - 1)
                })
            })
        })
        .collect();
    (shapes, numbers)
}

/// Which wishes are still in force, counted from the heaviest that was dropped.
#[derive(Clone, Copy)]
struct Level {
    affinity: usize,
    apart: usize,
    node: usize,
    spreads: usize,
    ignore_soft_taints: bool,
}

impl World<'_> {
    /// The counter for a key, or nothing when the key is unknown to everybody.
    fn counter(
        &mut self,
        key: &str,
        filter: Option<FilterId>,
        targets: SmallVec<[u32; 1]>,
        whom: Whom,
    ) -> (Topo, CounterId) {
        let (topo, domains) = self.topo(key);
        (topo, self.counters.add(topo, filter, targets, whom, domains))
    }

    fn topo(&self, key: &str) -> (Topo, usize) {
        if key == labels::HOSTNAME {
            return (Topo::Host, 0);
        }
        let key = self.algebra.universe.find(key).expect("every topology key was collected");
        (Topo::Key(key), self.algebra.universe.key(key).values.len())
    }

    fn target(&mut self, term: &AffinityTerm) -> u32 {
        self.targets.add(Target::of(term, self.problem.snapshot))
    }

    /// The counter of pods that avoid what this term means.
    pub(super) fn owners(&mut self, term: &AffinityTerm) -> (Topo, CounterId) {
        let target = self.target(term);
        self.counter(&term.key, None, SmallVec::from_slice(&[target]), Whom::Bearers)
    }

    fn apart(&mut self, term: &AffinityTerm) -> (Topo, CounterId) {
        let target = self.target(term);
        self.counter(&term.key, None, SmallVec::from_slice(&[target]), Whom::Present)
    }

    fn affinity(&mut self, terms: &[&AffinityTerm], shape: &PodShape) -> Affinity {
        let mut targets: SmallVec<[u32; 1]> = terms.iter().map(|term| self.target(term)).collect();
        targets.sort_unstable();
        targets.dedup();
        let own = targets.iter().all(|target| self.targets.selects(*target, shape));
        let mut counters: SmallVec<[(Topo, CounterId); 1]> =
            terms.iter().map(|term| self.counter(&term.key, None, targets.clone(), Whom::Staying)).collect();
        counters.sort_unstable();
        counters.dedup();
        let on_keys = terms.iter().filter(|term| own && &*term.key != labels::HOSTNAME);
        let leaving = on_keys.map(|term| self.counter(&term.key, None, targets.clone(), Whom::Present)).collect();
        Affinity { counters, own, leaving }
    }

    fn spread(&mut self, spread: &TopologySpread, shape: &PodShape, terms: &[TermId], tolerations: u32) -> Spread {
        let constrained = !shape.node_selector.is_empty() || !shape.node_affinity.required.is_empty();
        let others = shape.spreads.iter().filter(|other| spread.required && other.required && other.key != spread.key);
        let named = self.layout.lacks_names && others.clone().any(|other| &*other.key == labels::HOSTNAME);
        let mut keys: Vec<KeyId> = others.filter_map(|other| self.topo(&other.key).0.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        let filter = Filter {
            keys,
            named,
            terms: (spread.node_affinity_policy == PolicyHonor::Honor && constrained).then(|| terms.to_vec()),
            tolerations: (spread.node_taints_policy == PolicyHonor::Honor).then_some(tolerations),
        };
        let id = (filter != Filter::default()).then(|| self.counters.filter(filter.clone()));
        let target = self.targets.add(Target::within(&shape.namespace, spread.selector.as_ref()));
        let (topo, counter) = self.counter(&spread.key, id, SmallVec::from_slice(&[target]), Whom::Staying);
        let domains = match topo {
            Topo::Host => Mask::default(),
            Topo::Key(key) => self.domains(key, &filter),
        };
        Spread {
            topo,
            counter,
            max_skew: u32::try_from(spread.max_skew).unwrap_or(1).max(1),
            min_domains: spread.min_domains.map_or(0, |n| usize::try_from(n).unwrap_or(0)),
            own: u32::from(self.targets.selects(target, shape)),
            domains,
        }
    }

    /// Compiles a shape. Counters come into being here; which of them touch the class is only known when all classes are compiled.
    pub(super) fn class(&mut self, shape: &Arc<PodShape>, needs: Option<Arc<Needs>>) -> Class {
        let tolerations = self.tolerance.tolerations(&shape.tolerations);
        let mut terms = Vec::new();
        let mut contradiction = None;
        let required: Vec<&[crate::core::requirements::Requirement]> = if shape.node_affinity.required.is_empty() {
            vec![&[]]
        } else {
            shape.node_affinity.required.iter().map(Vec::as_slice).collect()
        };
        for term in &required {
            match self.algebra.term(&shape.node_selector, *term) {
                Ok(id) => terms.push(id),
                Err(key) => contradiction = Some(key),
            }
        }
        if terms.is_empty() && contradiction.is_none() {
            contradiction = Some(KeyId(0));
        }
        let variants = if shape.dynamic_resources || shape.broken.is_some() {
            Vec::new()
        } else {
            self.variants(shape, &required, &terms, tolerations, needs.as_deref())
        };
        // Each side alone can be met, both together cannot: the first alternatives show on which key.
        let elsewhere = needs.as_ref().filter(|_| variants.is_empty() && contradiction.is_none()).and_then(|needs| {
            let all = required.first()?.iter().chain(needs.alternatives.first()?);
            self.algebra.term(&shape.node_selector, all).err()
        });
        let touches: Vec<CounterId> = shape.anti_affinity.iter().map(|term| self.owners(term).1).collect();
        Class {
            shape: Arc::clone(shape),
            requests: self.dimensions.amounts(&shape.requests),
            tolerations,
            contradiction: if variants.is_empty() { contradiction } else { None },
            elsewhere,
            needs,
            variants,
            touches,
            courtesies: Vec::new(),
            repelled: Vec::new(),
            pins: Vec::new(),
            shunned: self.shunned_by(shape),
            demand: 0,
        }
    }

    fn variants(
        &mut self,
        shape: &PodShape,
        required: &[&[crate::core::requirements::Requirement]],
        terms: &[TermId],
        tolerations: u32,
        needs: Option<&Needs>,
    ) -> Vec<Variant> {
        let respect = self.problem.settings.respect_preferences;
        let mut wanted: Vec<_> = shape.preferred_affinity.iter().filter(|_| respect).collect();
        let mut unwanted: Vec<_> = shape.preferred_anti_affinity.iter().filter(|_| respect).collect();
        let mut nodes: Vec<_> = shape.node_affinity.preferred.iter().filter(|_| respect).collect();
        wanted.sort_by_key(|w| std::cmp::Reverse(w.weight));
        unwanted.sort_by_key(|w| std::cmp::Reverse(w.weight));
        nodes.sort_by_key(|w| std::cmp::Reverse(w.weight));

        let hard: Vec<Spread> =
            shape.spreads.iter().filter(|s| s.required).map(|s| self.spread(s, shape, terms, tolerations)).collect();
        let soft: Vec<Spread> = shape
            .spreads
            .iter()
            .filter(|s| respect && !s.required)
            .map(|s| self.spread(s, shape, terms, tolerations))
            .collect();
        let all: Vec<&AffinityTerm> = shape.affinity.iter().collect();
        let mut hard_affinity: Vec<Affinity> = Vec::new();
        if !all.is_empty() {
            hard_affinity.push(self.affinity(&all, shape));
        }
        let sharing = needs.iter().flat_map(|needs| &needs.together).map(super::volumes::beside);
        hard_affinity.extend(sharing.map(|term| self.affinity(&[&term], shape)));
        let soft_affinity: Vec<Affinity> = wanted.iter().map(|w| self.affinity(&[&w.term], shape)).collect();
        let hard_apart: Vec<(Topo, CounterId)> = shape.anti_affinity.iter().map(|term| self.apart(term)).collect();
        let soft_apart: Vec<(Topo, CounterId)> = unwanted.iter().map(|w| self.apart(&w.term)).collect();

        let anywhere = [Vec::new()];
        let reachable = needs.map_or(&anywhere[..], |needs| &needs.alternatives);
        let mut variants = Vec::new();
        let wishes = [soft_affinity.len(), soft_apart.len(), nodes.len(), soft.len()];
        let steps = levels(wishes, self.tolerance.has_soft, self.only_softly(terms, tolerations));
        for (step, level) in steps.into_iter().enumerate() {
            let preferred = nodes.get(level.node).map_or(&[][..], |w| w.term.as_slice());
            for (term, volumes) in required.iter().flat_map(|term| reachable.iter().map(move |volumes| (term, volumes)))
            {
                let all = term.iter().chain(preferred).chain(volumes);
                let Ok(term) = self.algebra.term(&shape.node_selector, all) else { continue };
                let affinities = hard_affinity.iter().chain(&soft_affinity[level.affinity..]).cloned().collect();
                variants.push(Variant {
                    level: step,
                    term,
                    ignore_soft_taints: level.ignore_soft_taints,
                    spreads: hard.iter().chain(&soft[level.spreads..]).cloned().collect(),
                    affinities,
                    apart: hard_apart.iter().chain(&soft_apart[level.apart..]).copied().collect(),
                });
            }
        }
        variants
    }

    /// Whether no node for such pods could be made from any NodePool unless taints with PreferNoSchedule are put up with.
    fn only_softly(&mut self, terms: &[TermId], tolerations: u32) -> bool {
        self.tolerance.has_soft
            && !self.pools.is_empty()
            && (0..self.pools.len()).all(|at| {
                let (base, taints) = (self.pools[at].base, self.pools[at].taints);
                !self.tolerance.tolerates(tolerations, taints, false)
                    || terms.iter().all(|term| self.algebra.join(base, *term).is_none())
            })
    }
}

/// Karpenter's order of relaxation: preferred pod affinity, preferred pod anti-affinity, preferred node affinity, soft spreads, and
/// last the taints with PreferNoSchedule. Required alternatives are tried at each step, where Karpenter has by then dropped all but the last.
/// Where every new node has such a taint (`only_softly`), putting up with it is the first step: to wait with that until nothing is wished for any more
/// would give up all wishes for the sake of one that cannot be met.
fn levels(wishes: [usize; 4], soft_taints: bool, only_softly: bool) -> Vec<Level> {
    let mut level = Level { affinity: 0, apart: 0, node: 0, spreads: 0, ignore_soft_taints: false };
    let mut all = vec![level];
    if only_softly {
        level.ignore_soft_taints = true;
        all.push(level);
    }
    for (which, count) in wishes.into_iter().enumerate() {
        for dropped in 1..=count {
            match which {
                0 => level.affinity = dropped,
                1 => level.apart = dropped,
                2 => level.node = dropped,
                _ => level.spreads = dropped,
            }
            all.push(level);
        }
    }
    if soft_taints && !only_softly {
        all.push(Level { ignore_soft_taints: true, ..level });
    }
    all
}
