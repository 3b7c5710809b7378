//! Pods that mind each other, and for which no turn was the right one: their domains are chosen together.
//!
//! A solve places one pod after the other and looks ahead no further than it is made anew for those that were refused. Where a few pods are left
//! over that mind each other, all ways of dealing them and those whom they mind out over the domains of a label are searched, as far as the
//! constraints between them tell; each that agrees with all of these is then tried on the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{Class, Spread, Variant};
use super::interner::KeyId;
use super::masks::Mask;
use super::place::{Allowed, Wants, also};
use super::solve::Run;
use super::topology::{CounterId, Topo};
use crate::core::ids::PodUid;

/// So many pods are dealt out together at most: beyond, the search rarely ends within its steps.
const MOST: usize = 12;
/// So many pods are put somewhere, and taken away again, in one search.
const STEPS: usize = 20_000;
/// Sets of pods that the search for an order looks at in the time of a step, or less.
const SETS_A_STEP: usize = 64;
/// The domain of a pod that is left out.
const NOWHERE: usize = usize::MAX;
/// So many ways are tried on the cluster.
const TRIES: usize = 32;

/// Pods in the order in which they are to be placed, and where: the name and the value of a label.
pub(super) type Deal = Vec<(PodUid, Arc<str>, Arc<str>)>;

/// Pods to deal out over the values of a label.
pub(super) struct Puzzle {
    label: Arc<str>,
    values: Vec<Arc<str>>,
    /// Those with the fewest choices first; alike ones side by side.
    pieces: Vec<Piece>,
}

/// A pod, and what it asks of where the others are. Others are numbers of pieces.
struct Piece {
    pod: PodUid,
    class: u32,
    /// Whether it had no place before: only then it may be left out.
    refused: bool,
    choices: Vec<usize>,
    /// Whom it may not share a domain with.
    apart: Vec<usize>,
    near: Vec<Near>,
    evenly: Vec<Evenly>,
}

/// Required pod affinity.
struct Near {
    /// The domains with those who are there already.
    there: Mask,
    whom: Vec<usize>,
    /// Whether the pod may be alone, if there is nobody else.
    first: bool,
}

/// A spread constraint.
struct Evenly {
    spread: Spread,
    /// How many are in each domain already.
    there: Vec<u32>,
    whom: Vec<usize>,
}

/// A search under way.
struct Search<'a> {
    puzzle: &'a Puzzle,
    /// The domain of each piece so far.
    way: Vec<usize>,
    /// So many pods are left out yet.
    without: usize,
    found: Vec<Deal>,
    steps: usize,
}

impl Puzzle {
    /// The pods.
    pub(super) fn pods(&self) -> impl Iterator<Item = &PodUid> {
        self.pieces.iter().map(|piece| &piece.pod)
    }

    /// Where the pods could be, as far as the constraints between them tell: the first few ways. Those with the fewest left out come first, and
    /// none leaves out all that had no place before.
    pub(super) fn ways(&self) -> Vec<Deal> {
        let refused = self.pieces.iter().filter(|piece| piece.refused).count();
        let mut search = Search { puzzle: self, way: Vec::new(), without: 0, found: Vec::new(), steps: 0 };
        for without in 0..refused {
            search.without = without;
            search.extend();
        }
        search.found
    }

    /// Whether each pod could be put again where it is when all are there.
    fn is_sound(&self, way: &[usize]) -> bool {
        let all = whole(way);
        (0..way.len()).filter(|at| way[*at] != NOWHERE).all(|at| self.opens(at, way, all & !(1 << at)))
    }

    /// An order in which each pod may go to its domain when its turn comes.
    fn deal(&self, way: &[usize]) -> Option<Deal> {
        let all = whole(way);
        // Of each set of pods that could be there: who came last.
        let mut last: Vec<Option<usize>> = vec![None; all + 1];
        for there in 0..all {
            if there > 0 && last[there].is_none() {
                continue;
            }
            let waiting = (0..way.len()).filter(|at| (all & !there) >> at & 1 == 1);
            for at in waiting.filter(|at| self.opens(*at, way, there)) {
                last[there | 1 << at].get_or_insert(at);
            }
        }
        let mut deal = Deal::new();
        let mut there = all;
        while there > 0 {
            let at = last[there]?;
            deal.push((self.pieces[at].pod.clone(), Arc::clone(&self.label), Arc::clone(&self.values[way[at]])));
            there &= !(1 << at);
        }
        deal.reverse();
        Some(deal)
    }

    /// Whether a pod may go to its domain when these others are where they are to be.
    fn opens(&self, at: usize, way: &[usize], there: usize) -> bool {
        let piece = &self.pieces[at];
        let is_there = |other: &&usize| there >> **other & 1 == 1;
        let is_near = |near: &Near| {
            near.there.has(way[at])
                || near.whom.iter().filter(is_there).any(|other| way[*other] == way[at])
                || near.first && !near.whom.iter().any(|other| is_there(&other))
        };
        let is_even = |evenly: &Evenly| {
            let whom = evenly.whom.iter().filter(is_there).map(|other| way[*other]);
            evenly.allows(way[at], &whom.collect::<Vec<_>>())
        };
        piece.near.iter().all(is_near) && piece.evenly.iter().all(is_even)
    }
}

/// The set of all that are not left out, a bit each.
fn whole(way: &[usize]) -> usize {
    way.iter().enumerate().filter(|(_, here)| **here != NOWHERE).map(|(at, _)| 1 << at).sum()
}

impl Search<'_> {
    fn extend(&mut self) {
        let pieces = &self.puzzle.pieces;
        let at = self.way.len();
        let Some(piece) = pieces.get(at) else {
            // Ways that leave out fewer have been looked at.
            if self.without == 0 && self.puzzle.is_sound(&self.way) {
                self.steps += (1 << pieces.len()) / SETS_A_STEP;
                self.found.extend(self.puzzle.deal(&self.way));
            }
            return;
        };
        // Of pods that are alike it does not matter which is where; those that may be left out come last.
        let like = at.checked_sub(1).filter(|before| pieces[*before].class == piece.class);
        let least = like.map_or(0, |before| self.way[before]);
        for choice in piece.choices.iter().copied().filter(|choice| *choice >= least) {
            if piece.apart.iter().any(|other| self.way.get(*other) == Some(&choice)) {
                continue;
            }
            self.steps += 1;
            if self.steps > STEPS || self.found.len() >= TRIES {
                return;
            }
            self.way.push(choice);
            self.extend();
            self.way.pop();
        }
        if piece.refused && self.without > 0 {
            self.without -= 1;
            self.way.push(NOWHERE);
            self.extend();
            self.way.pop();
            self.without += 1;
        }
    }
}

impl Evenly {
    /// Whether one more pod may come here when others are there.
    fn allows(&self, here: usize, others: &[usize]) -> bool {
        let Spread { domains, max_skew, min_domains, own, .. } = &self.spread;
        let many = |value: usize| self.there[value] as usize + others.iter().filter(|other| **other == value).count();
        let least = if domains.count() < *min_domains { 0 } else { domains.bits().map(many).min().unwrap_or(0) };
        !domains.has(here) || many(here) + *own as usize <= least + *max_skew as usize
    }
}

/// The counters of a class' constraints, and on what they count. Who has to be on a node with others is where they are in every other respect.
fn asked(bare: &Variant) -> impl Iterator<Item = (Topo, CounterId)> + '_ {
    let near = bare.affinities.iter().flat_map(|one| one.counters.iter().copied());
    let evenly = bare.spreads.iter().map(|spread| (spread.topo, spread.counter));
    let others = evenly.chain(bare.apart.iter().copied()).filter(|(topo, _)| *topo != Topo::Host);
    near.chain(others)
}

/// Which classes are tied together by what is asked of a counter.
#[derive(Default)]
struct Ties(FxHashMap<CounterId, Tie>);

/// Those who ask for a count, and those whom it counts.
struct Tie {
    topo: Topo,
    asking: Vec<usize>,
    counted: Vec<usize>,
}

impl Ties {
    fn new(classes: &[Class]) -> Self {
        let mut ties = Self::default();
        for (at, class) in classes.iter().enumerate() {
            for (topo, id) in class.variants.last().into_iter().flat_map(asked) {
                let tie = ties.0.entry(id).or_insert_with(|| Tie { topo, asking: Vec::new(), counted: Vec::new() });
                tie.asking.push(at);
            }
        }
        for (at, class) in classes.iter().enumerate() {
            for id in &class.touches {
                ties.0.entry(*id).and_modify(|tie| tie.counted.push(at));
            }
        }
        ties
    }

    /// Those tied to a class by what is counted on a label.
    fn of<'a>(&'a self, class: &'a Class, key: KeyId) -> impl Iterator<Item = usize> + 'a {
        let on_key = move |tie: &&Tie| tie.topo.key().is_none_or(|other| other == key);
        let asked = class.variants.last().into_iter().flat_map(asked).filter_map(|(_, id)| self.0.get(&id));
        let whom = asked.filter(on_key).flat_map(|tie| &tie.counted);
        let by = class.touches.iter().filter_map(|id| self.0.get(id)).filter(on_key).flat_map(|tie| &tie.asking);
        whom.chain(by).copied()
    }
}

impl Run<'_> {
    /// Puzzles of pods that were refused and those whom they mind. Pods in `hopeless` have no place in any.
    pub(super) fn puzzles(&mut self, refused: &FxHashSet<PodUid>, hopeless: &FxHashSet<PodUid>) -> Vec<Puzzle> {
        let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); self.world.classes.len()];
        for (pod, class) in self.world.class_of.iter().enumerate() {
            if !hopeless.contains(&self.world.pods[pod].uid) {
                of_class[*class as usize].push(pod);
            }
        }
        let ties = Ties::new(&self.world.classes);
        let keys: BTreeSet<KeyId> = self.world.classes.iter().flat_map(|class| class.pins.iter().copied()).collect();
        let mut puzzles = Vec::new();
        let mut known: FxHashSet<(KeyId, usize)> = FxHashSet::default();
        for class in 0..of_class.len() {
            if !of_class[class].iter().any(|pod| refused.contains(&self.world.pods[*pod].uid)) {
                continue;
            }
            for key in keys.iter().copied() {
                if !known.insert((key, class)) {
                    continue;
                }
                let together = self.entangled(class, key, &of_class, &ties);
                known.extend(together.iter().map(|class| (key, *class)));
                let pods: Vec<usize> = together.iter().flat_map(|class| of_class[*class].iter().copied()).collect();
                if (2..=MOST).contains(&pods.len()) {
                    puzzles.push(self.puzzle(key, &pods, refused));
                }
            }
        }
        puzzles
    }

    /// A class and all that mind it or are minded by it, at first or second hand, on a label; broken off when these are too many pods.
    fn entangled(&self, class: usize, key: KeyId, of_class: &[Vec<usize>], ties: &Ties) -> Vec<usize> {
        let mut together = vec![class];
        let (mut next, mut pods) = (0, of_class[class].len());
        while let Some(one) = together.get(next).copied().filter(|_| pods <= MOST) {
            for other in ties.of(&self.world.classes[one], key) {
                if !together.contains(&other) {
                    pods += of_class[other].len();
                    together.push(other);
                }
            }
            next += 1;
        }
        together
    }

    /// Those of the pods that have a choice, and what binds them to each other.
    fn puzzle(&mut self, key: KeyId, pods: &[usize], refused: &FxHashSet<PodUid>) -> Puzzle {
        let mut pieces: Vec<Piece> = Vec::new();
        for pod in pods {
            let choices: Vec<usize> = self.choices(*pod, key).bits().collect();
            let uid = &self.world.pods[*pod].uid;
            if !choices.is_empty() {
                let class = self.world.class_of[*pod];
                let refused = refused.contains(uid);
                let (apart, near, evenly) = (Vec::new(), Vec::new(), Vec::new());
                pieces.push(Piece { pod: uid.clone(), class, refused, choices, apart, near, evenly });
            }
        }
        pieces.sort_by_key(|piece| (piece.choices.len(), piece.class, piece.refused));
        let classes: Vec<&Class> = pieces.iter().map(|piece| &self.world.classes[piece.class as usize]).collect();
        for (at, piece) in pieces.iter_mut().enumerate() {
            self.bind(piece, at, key, &classes);
        }
        let label = self.world.algebra.universe.key(key);
        Puzzle { label: Arc::clone(&label.name), values: label.values.clone(), pieces }
    }

    /// What a piece asks of where the others are, of which these are the classes.
    fn bind(&self, piece: &mut Piece, at: usize, key: KeyId, classes: &[&Class]) {
        let counters = &self.world.counters;
        let others = || (0..classes.len()).filter(move |other| *other != at);
        let counted = |id: CounterId| others().filter(|other| classes[*other].touches.contains(&id)).collect();
        let on_key = |topo: Topo| topo == Topo::Key(key);
        let is_apart = |a: usize, b: usize| {
            let apart = classes[a].variants.last().into_iter().flat_map(|bare| &bare.apart);
            apart.into_iter().any(|(topo, id)| on_key(*topo) && classes[b].touches.contains(id))
        };
        piece.apart = others().filter(|other| is_apart(at, *other) || is_apart(*other, at)).collect();
        let Some(bare) = classes[at].variants.last() else { return };
        let values = self.world.algebra.universe.key(key).values.len();
        for affinity in &bare.affinities {
            let first = affinity.own && affinity.counters.iter().all(|(_, id)| counters.get(*id).total == 0);
            for (topo, id) in &affinity.counters {
                let there = match topo {
                    Topo::Key(other) if *other == key => counters.get(*id).domains(true),
                    Topo::Key(_) => continue,
                    // In which domains the nodes with those who are there are is not counted.
                    Topo::Host if counters.get(*id).total > 0 => Mask::full(values),
                    Topo::Host => Mask::empty(values),
                };
                piece.near.push(Near { there, whom: counted(*id), first });
            }
        }
        for spread in bare.spreads.iter().filter(|spread| on_key(spread.topo)) {
            let there = (0..values).map(|value| counters.get(spread.counter).in_domain(value)).collect();
            piece.evenly.push(Evenly { spread: spread.clone(), there, whom: counted(spread.counter) });
        }
    }

    /// Has pods placed before all others, in this order, and nowhere else.
    pub(super) fn deal(&mut self, deal: &Deal, waiting: &mut [usize]) {
        let universe = &self.world.algebra.universe;
        let turns: FxHashMap<&PodUid, usize> = deal.iter().enumerate().map(|(turn, (pod, ..))| (pod, turn)).collect();
        let turn = |pod: &usize| turns.get(&self.world.pods[*pod].uid).copied();
        for pod in &*waiting {
            let Some((_, label, value)) = turn(pod).map(|turn| &deal[turn]) else { continue };
            let key = universe.find(label).expect("the puzzle took it from here");
            let value = universe.key(key).value(value).expect("the puzzle took it from here");
            self.dealt.insert(*pod, (key, value));
        }
        waiting.sort_by_key(|pod| turn(pod).unwrap_or(usize::MAX));
        for pod in &waiting[..deal.len()] {
            self.seek_company(*pod);
        }
    }

    /// What the topology allows, for a pod with a place in a puzzle.
    pub(super) fn as_dealt(&self, pod: usize, wants: Wants) -> Option<Wants> {
        let Some((key, value)) = self.dealt.get(&pod) else { return Some(wants) };
        let mut values = Mask::empty(self.world.algebra.universe.key(*key).values.len());
        values.set(*value);
        let mut wants = wants;
        also(&mut wants, Allowed { key: *key, values, absent: false, rank: None })?;
        Some(wants)
    }
}
