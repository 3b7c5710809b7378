//! A new node: from the heaviest pool that allows it, of equal pools from the one that is the best value, in a reservation if there is one, as
//! large as is good value.

use std::cmp::Ordering;
use std::sync::Arc;

use super::algebra::{ProfileId, Source};
use super::choose::{Aim, Promises};
use super::classes::{Class, Variant};
use super::company::Party;
use super::draft::{Caps, Draft};
use super::interner::number;
use super::least::Least;
use super::masks::Mask;
use super::place::{Load, Wants, settles};
use super::shelf::Amounts;
use super::solve::Run;

/// For whom a node is opened.
struct Asks<'a> {
    class: &'a Class,
    wants: &'a Wants,
    /// The pods for which the node is meant; nothing leaves it to the solver what the node should hold.
    meant: Option<&'a Party>,
}

/// A node that could be opened.
struct Design {
    profile: ProfileId,
    types: Mask,
    aim: Aim,
    least: Least,
}

impl Run<'_> {
    /// Opens a node from the heaviest pool that allows it, of pools of one weight and of alternatives from the best value: for a party, or as
    /// large as is good value.
    pub(super) fn on_new(
        &mut self,
        pod: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        meant: Option<&Party>,
    ) -> bool {
        let host = self.host_of_draft(self.drafts.len());
        if self.buys_nothing || self.host_allows(class, variant, host).is_err() {
            return false;
        }
        let asks = Asks { class, wants, meant };
        let mut best: Option<(usize, usize, Design)> = None;
        for pool in 0..self.world.pools.len() {
            if best.as_ref().is_some_and(|(known, ..)| !self.are_weighed(*known, pool)) {
                break;
            }
            let (base, taints) = (self.world.pools[pool].base, self.world.pools[pool].taints);
            if !self.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints) {
                continue;
            }
            // They differ in nothing but what is required of the node.
            for (way, alternative) in class.alternatives(variant) {
                let joined = self.world.algebra.join(base, alternative.term);
                let joined = joined.and_then(|joined| match meant {
                    Some(party) => self.with_party(joined, taints, party),
                    None => Some(joined),
                });
                let Some(joined) = joined.filter(|joined| self.could(*joined, wants)) else { continue };
                let design = self.in_reservation(pool, joined, &asks).or_else(|| self.design(pool, joined, &asks));
                if let Some(design) = design {
                    let is_better =
                        |(known, _, before): &(usize, usize, Design)| self.is_better((pool, &design), (*known, before));
                    if best.as_ref().is_none_or(is_better) {
                        best = Some((pool, way, design));
                    }
                } else if best.is_none()
                    && self.world.problem.settings.wait_for_reserved
                    && self.waits(pool, joined, class)
                {
                    return false;
                }
                if self.is_aimless && best.is_some() {
                    break;
                }
            }
        }
        let Some((pool, way, design)) = best else { return false };
        self.bought_as.insert(self.world.class_of[pod], way);
        self.open(pod, pool, class, design);
        true
    }

    /// Whether two pools are weighed against each other: those of one weight, unless the plan is made as by Karpenter, where the name decides.
    fn are_weighed(&self, a: usize, b: usize) -> bool {
        !self.is_aimless && self.world.pools[a].fact.weight == self.world.pools[b].fact.weight
    }

    /// Whether the node of one pool is better than that of another: what is paid for already before all else, then what keeps the `minValues` of
    /// its pool, then more for the money.
    fn is_better(&self, (pool, design): (usize, &Design), (other, before): (usize, &Design)) -> bool {
        let rank = |pool: usize, design: &Design| {
            let is_held = matches!(self.world.algebra.profile(design.profile).source, Source::Held(..));
            (is_held, design.least == self.world.pools[pool].least)
        };
        let (own, known) = (rank(pool, design), rank(other, before));
        own > known || own == known && design.aim.is_better_value(&before.aim)
    }

    /// Whether a pool could make a node for such a pod alone.
    pub(super) fn could_open(&mut self, pool: usize, class: &Class, variant: &Variant, wants: &Wants) -> bool {
        let Some(joined) = self.world.algebra.join(self.world.pools[pool].base, variant.term) else { return false };
        let asks = Asks { class, wants, meant: Some(&Party::of_room(class.requests.clone())) };
        self.could(joined, wants)
            && (self.in_reservation(pool, joined, &asks).is_some() || self.design(pool, joined, &asks).is_some())
    }

    /// A planned node of a pool as it would be for such a pod alone, without the pod yet; nothing when the pool can make none.
    pub(super) fn begin(&mut self, pool: usize, class: &Class, variant: &Variant, wants: &Wants) -> Option<usize> {
        let joined = self.world.algebra.join(self.world.pools[pool].base, variant.term)?;
        if !self.could(joined, wants) {
            return None;
        }
        let asks = Asks { class, wants, meant: Some(&Party::of_room(class.requests.clone())) };
        let design = self.in_reservation(pool, joined, &asks).or_else(|| self.design(pool, joined, &asks))?;
        Some(self.start(pool, design))
    }

    /// The best node in a reservation that has room: what was paid for is used first.
    fn in_reservation(&mut self, pool: usize, joined: ProfileId, asks: &Asks<'_>) -> Option<Design> {
        let mut best: Option<Design> = None;
        for id in self.world.reservable(joined) {
            let Some(held) = self.world.algebra.hold(joined, id) else { continue };
            let Some(design) = self.design(pool, held, asks) else { continue };
            if best.as_ref().is_none_or(|best| design.aim.compare(&best.aim) == Ordering::Greater) {
                best = Some(design);
            }
        }
        best
    }

    /// Whether such a pod has to wait for reserved capacity: it is all that the pool has for it, and none is free.
    pub(super) fn waits(&mut self, pool: usize, joined: ProfileId, class: &Class) -> bool {
        let profile = self.world.algebra.profile(joined);
        !profile.reserved.is_empty()
            && self.world.reservable(joined).is_empty()
            && self.lives_on_reserved(pool, joined, class)
    }

    /// Whether reserved capacity, free or not, is all that the pool has for such a pod.
    pub(super) fn lives_on_reserved(&mut self, pool: usize, joined: ProfileId, class: &Class) -> bool {
        let profile = self.world.algebra.profile(joined);
        if profile.reserved.is_empty() {
            return false;
        }
        let (types, possible) = (profile.types.clone(), profile.possible());
        let mut holds = |types: &Mask| {
            let holding = self.world.could_hold(pool, joined, types, Load::of_pod(class));
            !self.world.within_limits(pool, &holding).is_empty()
        };
        !holds(&types) && holds(&possible)
    }

    /// The node that a pool would make of such labels: kept from daemons that come to some of its nodes only where it would else not hold the
    /// pod, or be worse value.
    fn design(&mut self, pool: usize, joined: ProfileId, asks: &Asks<'_>) -> Option<Design> {
        let mut best = self.designed(pool, joined, asks);
        if !self.world.pools[pool].daemons.are_partial {
            return best;
        }
        for way in self.world.kept_from_daemons(pool, joined, settles(asks.class, asks.wants)) {
            let Some(other) = self.designed(pool, way, asks) else { continue };
            if best.as_ref().is_none_or(|best| other.aim.is_better_value(&best.aim)) {
                best = Some(other);
            }
        }
        best
    }

    /// The node that a pool would make of exactly such labels.
    fn designed(&mut self, pool: usize, joined: ProfileId, asks: &Asks<'_>) -> Option<Design> {
        let class = asks.class;
        let mut least = Arc::clone(&self.world.pools[pool].least);
        let requests = asks.meant.map_or(&class.requests, |party| party.at_least(&class.requests));
        let load = Load { requests, least: &least, ..Load::of_pod(class) };
        let holding = self.world.holding_at_best(pool, joined, &self.world.algebra.profile(joined).types, load);
        let types = self.world.within_limits(pool, &holding);
        let types = self.world.attaching(pool, types, self.host_of_draft(self.drafts.len()), class);
        if types.is_empty() {
            return None;
        }
        let mut settled = self.settle(pool, joined, &types, class, asks.wants, load);
        if settled.is_none() && self.world.problem.settings.lower_min_values && !least.is_empty() {
            settled = self.settle(pool, joined, &types, class, asks.wants, Load { least: &[], ..load });
            let (profile, types) = settled.as_ref()?;
            least = self.world.lowered(pool, *profile, types, &least);
        }
        let (profile, types) = settled?;
        let aim = match asks.meant {
            Some(party) => self.world.meant(pool, profile, &types, &party.room),
            None if self.is_aimless => self.world.anything(pool, profile, &types),
            None => self.world.aim(pool, profile, &types, class.demand),
        };
        let types = self.world.modest(pool, profile, types, &aim.room, &least);
        Some(Design { profile, types, aim, least })
    }

    fn open(&mut self, pod: usize, pool: usize, class: &Class, design: Design) {
        let (profile, types) = (design.profile, design.types.clone());
        let at = self.start(pool, design);
        self.world.demand.promise(number(at), &self.drafts[at]);
        self.rooms.push(None, &self.drafts[at].left());
        self.put_on_draft(pod, at, class, profile, types);
    }

    /// A planned node with nobody on it yet.
    fn start(&mut self, pool: usize, design: Design) -> usize {
        let Design { profile, types, aim: Aim { room: aim, promises, .. }, least } = design;
        if let Source::Held(_, id) = self.world.algebra.profile(profile).source {
            self.world.left_reserved[id as usize] -= 1;
        }
        let reserved = self.promised(&promises);
        let charged = self.world.largest(pool, &types);
        self.world.pools[pool].room.charge(&charged, 1);
        self.drafts.push(Draft {
            pool,
            profile,
            requests: self.world.zero(),
            aim,
            promises,
            reserved,
            types,
            least,
            ports: Vec::new(),
            shunned: Vec::new(),
            caps: Caps::new(),
            charged,
            pods: Vec::new(),
        });
        self.drafts.len() - 1
    }

    fn promised(&self, promises: &Promises) -> Amounts {
        let mut reserved = self.world.zero();
        for (entry, many) in promises {
            for (total, need) in reserved.iter_mut().zip(&self.world.demand.entries[*entry].requests) {
                *total = total.saturating_add(need.saturating_mul(i64::from(*many)));
            }
        }
        reserved
    }
}
