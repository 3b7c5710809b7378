//! The cheapest nodes for given pods, by a beam search: nodes are bought one after the other, each of every type that is worth it and filled
//! in more than one way, and of all that were begun the few that promise most are continued.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::nodes::{Kind, Node};
use super::sites::Site;
use crate::core::scheduling::bound::Effort;
use crate::core::scheduling::choose::{also_buy, worth};
use crate::core::scheduling::shelf::{Amounts, fits, subtract};

/// How many beginnings are continued.
const WIDTH: usize = 12;
/// A search must save more than this part of the price, which is more than the rounding of sums.
const GAIN: f64 = 1e-6;

/// Pods to be packed.
pub(super) struct Load<'a> {
    pub(super) sites: &'a [Site],
    /// Kinds and how many of each, those that are hardest to place first.
    pub(super) kinds: Vec<(usize, &'a Kind, u32)>,
    /// Nodes whose pods do not all move: each stays, of the same site, but perhaps of another size.
    pub(super) seeds: Vec<&'a Node>,
    /// Nothing of any resource.
    pub(super) zero: &'a Amounts,
    pub(super) effort: &'a Effort,
}

/// A node that was bought.
#[derive(Clone)]
pub(super) struct Bought {
    pub(super) site: usize,
    pub(super) price: f64,
    /// The number of the seed that it holds.
    pub(super) seed: Option<usize>,
    /// How many of each kind, in the order of the load.
    pub(super) taken: Vec<u32>,
}

/// Some nodes, and what is still to be placed.
struct Begun {
    price: f64,
    /// What it may come to.
    guess: f64,
    left: Vec<u32>,
    /// The last node, and what came before it.
    last: Option<usize>,
}

/// How a node is filled.
#[derive(Clone, Copy)]
enum Way {
    /// As many as fit of each kind, the hardest first.
    InOrder,
    /// One of the first kind, and then always what best uses what is left of each resource.
    Mixed,
}

/// Nodes for all pods of the load, cheaper than `limit` together; nothing when none are found.
pub(super) fn cheapest(load: &Load<'_>, limit: f64) -> Option<Vec<Bought>> {
    let mut best_buys = Vec::new();
    let mut sites: Vec<usize> = load.kinds.iter().flat_map(|(_, kind, _)| kind.sites.iter().copied()).collect();
    sites.sort_unstable();
    sites.dedup();
    for good in sites.into_iter().flat_map(|site| &load.sites[site].goods) {
        also_buy(&mut best_buys, &good.room, good.price);
        load.effort.spend(best_buys.len() * good.room.len());
    }
    let mut search = Search { load, best_buys, steps: Vec::new(), best: limit * (1.0 - GAIN), found: None };
    let left = load.kinds.iter().map(|(.., many)| *many).collect();
    let mut begun = vec![Begun { price: 0.0, guess: 0.0, left, last: None }];
    let mut seeds = load.seeds.iter().copied().enumerate();
    while !begun.is_empty() && !load.effort.is_spent() {
        begun = search.level(begun, seeds.next(), seeds.len() == 0);
    }
    let mut all = Vec::new();
    let mut at = search.found;
    while let Some((before, bought)) = at.map(|at| &search.steps[at]) {
        all.push(bought.clone());
        at = *before;
    }
    (!all.is_empty()).then_some(all)
}

impl Load<'_> {
    /// What so many pods of each kind need, beside what is there.
    fn sum(&self, base: Option<&Amounts>, many: &[u32]) -> Amounts {
        let mut sum = base.unwrap_or(self.zero).clone();
        for ((_, kind, _), many) in self.kinds.iter().zip(many).filter(|(_, many)| **many > 0) {
            sum.iter_mut().zip(&kind.need).for_each(|(sum, need)| *sum += need * i64::from(*many));
        }
        sum
    }
}

struct Search<'a, 'l> {
    load: &'l Load<'a>,
    /// Types that are the cheapest way to have some mix of resources.
    best_buys: Vec<(Amounts, f64)>,
    steps: Vec<(Option<usize>, Bought)>,
    /// The price of the cheapest nodes so far.
    best: f64,
    found: Option<usize>,
}

impl Search<'_, '_> {
    /// Buys one more node for each beginning; `is_last`: no seed is left behind this one.
    fn level(&mut self, begun: Vec<Begun>, seed: Option<(usize, &Node)>, is_last: bool) -> Vec<Begun> {
        let mut next: Vec<Begun> = Vec::new();
        let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
        for from in begun {
            for bought in self.purchases(&from, seed) {
                let price = from.price + bought.price;
                if price >= self.best {
                    continue;
                }
                let left: Vec<u32> = from.left.iter().zip(&bought.taken).map(|(left, taken)| left - taken).collect();
                let is_done = is_last && left.iter().all(|left| *left == 0);
                let same = known.get(&left).copied();
                if same.is_some_and(|same| next[same].price <= price) {
                    continue;
                }
                self.steps.push((from.last, bought));
                let last = Some(self.steps.len() - 1);
                if is_done {
                    (self.best, self.found) = (price, last);
                    continue;
                }
                let guess = price + self.guess(&left);
                if let Some(same) = same {
                    next[same] = Begun { price, guess, left, last };
                } else {
                    known.insert(left.clone(), next.len());
                    next.push(Begun { price, guess, left, last });
                }
            }
        }
        next.retain(|begun| begun.price < self.best);
        next.sort_by(|a, b| a.guess.total_cmp(&b.guess).then_with(|| b.price.total_cmp(&a.price)));
        next.truncate(WIDTH);
        next
    }

    /// What the pods that are left would cost on nodes of one type, if nodes and pods could be cut.
    fn guess(&self, left: &[u32]) -> f64 {
        let total = self.load.sum(None, left);
        self.load.effort.spend((left.len() + self.best_buys.len()) * total.len());
        worth(&self.best_buys, &total)
    }

    /// What could be bought next: a node for the seed, or else one that holds a pod of the first kind of which some are left.
    fn purchases(&self, from: &Begun, seed: Option<(usize, &Node)>) -> Vec<Bought> {
        let waiting = (0..from.left.len()).filter(|at| from.left[*at] > 0);
        let first = waiting.max_by_key(|at| (self.spread(*at, from.left[*at]), Reverse(*at)));
        let sites: &[usize] = match (seed, first) {
            (Some((_, seed)), _) => std::slice::from_ref(&seed.site),
            (None, Some(first)) => &self.load.kinds[first].1.sites,
            (None, None) => return Vec::new(),
        };
        let base: Option<&Amounts> = seed.map(|(_, seed)| &seed.base);
        let mut all: Vec<Bought> = Vec::new();
        for at in sites {
            let (site, here) = (&self.load.sites[*at], all.len());
            let ways = [Way::InOrder, Way::Mixed];
            for good in site.goods.iter().filter(|good| base.is_none_or(|base| fits(base, &good.room))) {
                let mut room = good.room.clone();
                if let Some(base) = base {
                    subtract(&mut room, base);
                }
                let mut is_all = false;
                for way in ways {
                    let taken = self.filled(*at, &room, first.filter(|_| seed.is_none()), &from.left, way);
                    // What a smaller node takes, or is taken in another way, is not weighed again.
                    let Some(taken) =
                        taken.filter(|taken| all[here..].iter().rev().take(3).all(|known| known.taken != *taken))
                    else {
                        continue;
                    };
                    is_all |= taken == from.left;
                    let sum = self.load.sum(base, &taken);
                    self.load.effort.spend(site.goods.len() + taken.len() * sum.len());
                    let price = site.price(&sum).unwrap_or(good.price);
                    all.push(Bought { site: *at, price, seed: seed.map(|(seed, _)| seed), taken });
                }
                if is_all {
                    break;
                }
            }
        }
        all
    }

    /// How many nodes pods of a kind must still be on, and how many they are; the same of all that may be on one.
    fn spread(&self, at: usize, left: u32) -> (u32, u32) {
        let per_node = self.load.kinds[at].1.per_node;
        if per_node < left { (left.div_ceil(per_node), left) } else { (1, 0) }
    }

    /// Fills a room; nothing when `first`, of which there must be one, does not fit.
    fn filled(&self, site: usize, whole: &Amounts, first: Option<usize>, left: &[u32], way: Way) -> Option<Vec<u32>> {
        let kinds = &self.load.kinds;
        let mut room = whole.clone();
        let mut taken = vec![0; left.len()];
        let take = |at: usize, many: u32, taken: &mut Vec<u32>, room: &mut Amounts| {
            taken[at] += many;
            room.iter_mut().zip(&kinds[at].1.need).for_each(|(room, need)| *room -= need * i64::from(many));
        };
        let most = |at: usize, taken: &[u32], room: &Amounts| {
            let kind = kinds[at].1;
            most(&kind.need, room).min(left[at].min(kind.per_node).saturating_sub(taken[at]))
        };
        if let Some(first) = first {
            if !fits(&kinds[first].1.need, &room) {
                return None;
            }
            take(first, 1, &mut taken, &mut room);
        }
        let mut open: Vec<usize> =
            (0..left.len()).filter(|at| left[*at] > 0 && kinds[*at].1.sites.contains(&site)).collect();
        // Those that need many nodes come before those that may all be on this one.
        open.sort_by_key(|at| Reverse(self.spread(*at, left[*at])));
        match way {
            Way::InOrder => {
                for at in open {
                    self.load.effort.spend(room.len());
                    take(at, most(at, &taken, &room), &mut taken, &mut room);
                }
            }
            Way::Mixed => loop {
                self.load.effort.spend(open.len() * room.len());
                open.retain(|at| most(*at, &taken, &room) > 0);
                let use_of = |at: usize| -> f64 {
                    let all = kinds[at]
                        .1
                        .need
                        .iter()
                        .zip(&room)
                        .zip(whole)
                        .filter(|((need, _), whole)| **need > 0 && **whole > 0);
                    all.map(|((need, room), whole)| *need as f64 * *room as f64 / (*whole as f64 * *whole as f64)).sum()
                };
                // Half of each Deployment that needs two nodes, rather than all that may be here of one of them and nothing of the other.
                let beyond = |at: usize| self.spread(at, left[at] - taken[at]);
                let best = open.iter().copied().max_by(|a, b| {
                    beyond(*a).cmp(&beyond(*b)).then_with(|| use_of(*a).total_cmp(&use_of(*b))).then(b.cmp(a))
                });
                let Some(at) = best else { break };
                let many = most(at, &taken, &room);
                // Half at a time: the best use of what is left changes on the way.
                take(at, many.div_ceil(2), &mut taken, &mut room);
            },
        }
        taken.iter().any(|taken| *taken > 0).then_some(taken).or_else(|| first.is_none().then(|| vec![0; left.len()]))
    }
}

/// How many fit.
fn most(need: &[i64], room: &[i64]) -> u32 {
    let times = need.iter().zip(room).filter(|(need, _)| **need > 0).map(|(need, room)| room.div_euclid(*need).max(0));
    u32::try_from(times.min().unwrap_or(i64::MAX)).unwrap_or(u32::MAX)
}
