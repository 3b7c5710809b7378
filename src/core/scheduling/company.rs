//! Pods that have to be on a node with others, and for which there was no room where those are.
//!
//! A plan that refuses such a pod is made anew: whoever it waits for is placed on a node that suits both and has room for both, and it follows at
//! once.

use std::collections::BTreeSet;

use super::algebra::{ProfileId, TermId};
use super::classes::{Class, Variant};
use super::cursor::Cursor;
use super::interner::KeyId;
use super::masks::Mask;
use super::place::{Allowed, Wants, also};
use super::shelf::{Amounts, add};
use super::solve::Run;
use super::topology::{CounterId, Topo};

/// Pods that have to be on a node with one of those that a counter counts.
pub(super) struct Company {
    counter: CounterId,
    mates: Vec<Mate>,
    /// So many nodes have been sought for them.
    sought: usize,
}

/// One of them: what it needs, and where it can be.
#[derive(Clone)]
struct Mate {
    pod: usize,
    requests: Amounts,
    domains: Vec<(KeyId, Mask)>,
    guest: Guest,
    /// Who counts it: others may wait for it in turn.
    touches: Vec<CounterId>,
}

/// What a pod asks of the node that others are placed on for its sake.
#[derive(Clone)]
struct Guest {
    tolerations: u32,
    /// The alternatives of what it requires of labels.
    terms: Vec<TermId>,
}

/// Pods for which a node is meant.
pub(super) struct Party {
    /// What they need together.
    pub(super) room: Amounts,
    guests: Vec<Guest>,
}

impl Party {
    /// Pods of which it is known that the node suits them.
    pub(super) fn of_room(room: Amounts) -> Self {
        Self { room, guests: Vec::new() }
    }

    /// The room that a node must have: with guests, for all of them; else for the first pod, and the others come if they can.
    pub(super) fn at_least<'a>(&'a self, first: &'a Amounts) -> &'a Amounts {
        if self.guests.is_empty() { first } else { &self.room }
    }
}

impl Mate {
    /// What is left of these domains where the pod can be, too; nothing when it can be in none.
    fn within(&self, wants: &Wants) -> Option<Wants> {
        let mut wants = wants.clone();
        for (key, values) in &self.domains {
            also(&mut wants, Allowed { key: *key, values: values.clone(), absent: false, rank: None })?;
        }
        Some(wants)
    }
}

/// So many nodes with room for the company of pods are sought: what does not help then helps nobody.
const SOUGHT: usize = 8;
/// So many pods that wait for the same company are kept in mind, and so many kinds of company.
const FEW: usize = 64;

impl Run<'_> {
    /// A pod that has to be on a node with others is kept in mind when they are placed.
    pub(super) fn seek_company(&mut self, pod: usize) {
        let class = self.world.class_at(pod);
        let affinities = class.variants.last().into_iter().flat_map(|bare| &bare.affinities);
        let counters = affinities.flat_map(|one| &one.counters).filter(|(topo, _)| *topo == Topo::Host);
        let counters: Vec<CounterId> = counters.map(|(_, counter)| *counter).collect();
        let (requests, touches) = (class.requests.clone(), class.touches.clone());
        let guest = Guest { tolerations: class.tolerations, terms: class.bare_terms() };
        for counter in counters {
            let known = self.company.iter().position(|company| company.counter == counter);
            if known.map_or(self.company.len(), |at| self.company[at].mates.len()) >= FEW {
                continue;
            }
            let meant = self.world.classes.iter().filter(|class| class.touches.contains(&counter));
            let keys: BTreeSet<KeyId> = meant.flat_map(|class| class.pins.iter().copied()).collect();
            let domains = keys.into_iter().map(|key| (key, self.choices(pod, key))).collect();
            let mate =
                Mate { pod, requests: requests.clone(), domains, guest: guest.clone(), touches: touches.clone() };
            match known {
                Some(at) => self.company[at].mates.push(mate),
                None => self.company.push(Company { counter, mates: vec![mate], sought: 0 }),
            }
        }
    }

    /// A pod that has its place waits for nobody; those who wait for it follow at once, before others take their room.
    pub(super) fn has_company(&mut self, pod: usize) {
        self.company.iter_mut().for_each(|company| company.mates.retain(|mate| mate.pod != pod));
        for mate in std::mem::take(&mut self.invited) {
            if self.place(mate) {
                self.followed.insert(mate);
            }
        }
    }

    /// Who has to be on a node with such a pod, and who with those, where they can be where it can.
    fn mates(&self, pod: usize, counter: CounterId, wants: &Wants) -> Vec<Mate> {
        let mut mates: Vec<Mate> = Vec::new();
        let mut next = 0;
        let mut touches = Some(vec![counter]);
        while let Some(counters) = touches {
            let others = self.company.iter().filter(|company| counters.contains(&company.counter));
            for mate in others.flat_map(|company| &company.mates) {
                if mate.pod != pod && mates.iter().all(|known| known.pod != mate.pod) && mate.within(wants).is_some() {
                    mates.push(mate.clone());
                }
            }
            touches = mates.get(next).map(|mate| mate.touches.clone());
            next += 1;
        }
        mates
    }

    /// What becomes of a node's labels when all of a party come to it; nothing when one of them cannot.
    pub(super) fn with_party(&mut self, profile: ProfileId, taints: u32, party: &Party) -> Option<ProfileId> {
        party.guests.iter().try_fold(profile, |profile, guest| {
            let tolerates = self.world.tolerance.tolerates(guest.tolerations, taints, true);
            let joined = || guest.terms.iter().find_map(|term| self.world.algebra.join(profile, *term));
            tolerates.then(joined).flatten()
        })
    }

    /// On a node that has room for those, too, who have to be there with such a pod: all of them, or one.
    pub(super) fn in_company(
        &mut self,
        pod: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        cursor: &mut Cursor,
    ) -> bool {
        let is_meant = |company: &Company| class.touches.contains(&company.counter) && company.sought < SOUGHT;
        let Some(which) = self.company.iter().position(is_meant).filter(|_| !self.buys_nothing) else { return false };
        let mates = self.mates(pod, self.company[which].counter, wants);
        if mates.is_empty() {
            return false;
        }
        self.company[which].sought += 1;
        [&mates[..], &mates[..1]].into_iter().any(|mates| {
            let mut room = class.requests.clone();
            for mate in mates {
                add(&mut room, &mate.requests);
            }
            let party = Party { room, guests: mates.iter().map(|mate| mate.guest.clone()).collect() };
            let wants = mates.iter().try_fold(wants.clone(), |wants, mate| mate.within(&wants));
            let placed = wants.is_some_and(|wants| {
                self.on_host(pod, class, variant, (&wants, Some(&party)), cursor)
                    || self.on_new(pod, class, variant, &wants, Some(&party))
            });
            if placed {
                self.invited.extend(mates.iter().map(|mate| mate.pod));
            }
            placed
        })
    }
}
