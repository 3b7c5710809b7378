//! A pod takes a seat, and leaves it again as if it had never been there.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::core::scheduling::algebra::ProfileId;
use crate::core::scheduling::attach::Held;
use crate::core::scheduling::choose::sum;
use crate::core::scheduling::classes::{Class, Variant};
use crate::core::scheduling::draft::Draft;
use crate::core::scheduling::existing::Host;
use crate::core::scheduling::interner::number;
use crate::core::scheduling::masks::Mask;
use crate::core::scheduling::place::{Allowed, Wants, also};
use crate::core::scheduling::pools::Room;
use crate::core::scheduling::solve::Run;

/// So many values of a label are tried for new nodes.
const VALUES: usize = 8;
/// So many new nodes of a NodePool are tried for a pod, which differ by values of labels.
const KINDS: usize = 16;

/// Labels and their values, by name: numbers may be others when the next plan is made.
pub(super) type Pins = SmallVec<[(Arc<str>, Arc<str>); 2]>;

/// Where a pod could go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Seat {
    /// What exists.
    Host(usize),
    /// A planned node.
    Planned(usize),
    /// A new node of a pool, with these values of labels.
    New(usize, Pins),
}

/// Where a pod is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    Host(usize),
    Planned(usize),
}

/// What was there before a pod took its seat.
pub(super) struct Before {
    pod: usize,
    /// The node that goes, on which the pod was counted.
    from: Option<u32>,
    place: Place,
    host: Option<Arc<Host>>,
    draft: Option<Draft>,
    room: Option<(usize, Room)>,
    reserved: Vec<u32>,
    held: Option<Held>,
}

impl Run<'_> {
    /// Where a pod is that sits somewhere.
    pub(super) fn place_of(&self, pod: usize) -> Option<Place> {
        let planned = self.drafts.iter().position(|draft| draft.pods.contains(&pod)).map(Place::Planned);
        planned.or_else(|| self.on_hosts.iter().position(|pods| pods.contains(&pod)).map(Place::Host))
    }

    /// A pod takes a seat if it may, with as many of its wishes as it can have there.
    pub(super) fn sit(&mut self, pod: usize, seat: &Seat) -> Option<Before> {
        let from = self.world.still_on.get(&pod).copied();
        let mut before = None;
        self.moving(pod, |run, class| {
            before = class.variants.iter().find_map(|variant| match seat {
                Seat::Host(at) => run.sit_on_host(pod, *at, class, variant),
                Seat::Planned(at) => run.sit_on_draft(pod, *at, class, variant),
                Seat::New(pool, pins) => run.sit_on_new(pod, (*pool, pins), class, variant),
            });
            before.is_some()
        });
        before.map(|before| Before { from, ..before })
    }

    fn sit_on_host(&mut self, pod: usize, at: usize, class: &Class, variant: &Variant) -> Option<Before> {
        self.host_allows(class, variant, number(at)).ok()?;
        let wants = self.wants(class, variant)?;
        self.try_host(at, class, variant, &wants).ok()?;
        let before =
            Before { host: Some(Arc::clone(&self.world.hosts[at])), ..self.now(pod, Place::Host(at), number(at)) };
        self.occupy_host(pod, at, class);
        Some(before)
    }

    fn sit_on_draft(&mut self, pod: usize, at: usize, class: &Class, variant: &Variant) -> Option<Before> {
        let host = self.host_of_draft(at);
        self.host_allows(class, variant, host).ok()?;
        let wants = self.wants(class, variant)?;
        let (draft, pool) = (self.drafts[at].clone(), self.drafts[at].pool);
        let before = Before {
            room: Some((pool, self.world.pools[pool].room.clone())),
            ..self.now(pod, Place::Planned(at), host)
        };
        self.widen(at);
        let Ok((profile, types)) = self.try_draft(at, class, variant, &wants, true) else {
            self.drafts[at] = draft;
            self.restore_room(before.room);
            return None;
        };
        self.narrow(at, class, profile, types);
        let types = self.drafts[at].types.clone();
        self.occupy_draft(pod, at, class, profile, types);
        Some(Before { draft: Some(draft), ..before })
    }

    /// A planned node may become all that its pool's limits allow.
    fn widen(&mut self, at: usize) {
        let draft = &mut self.drafts[at];
        let pool = draft.pool;
        if !self.world.pools[pool].room.is_limited() {
            return;
        }
        self.world.pools[pool].room.release(&draft.charged, 1);
        draft.types = self.world.within_limits(pool, &self.world.algebra.profile(draft.profile).types);
    }

    /// It takes no more of them than it has to for its pods and one more.
    fn narrow(&mut self, at: usize, class: &Class, profile: ProfileId, types: Mask) {
        let draft = &self.drafts[at];
        let pool = draft.pool;
        if !self.world.pools[pool].room.is_limited() {
            self.drafts[at].types = types;
            return;
        }
        let requests = sum(&draft.requests, &class.requests);
        let types = self.world.modest(pool, profile, types, &requests, &draft.least);
        let charged = self.world.largest(pool, &types);
        self.world.pools[pool].room.charge(&charged, 1);
        let draft = &mut self.drafts[at];
        (draft.charged, draft.types) = (charged, types);
    }

    fn sit_on_new(
        &mut self,
        pod: usize,
        (pool, pins): (usize, &Pins),
        class: &Class,
        variant: &Variant,
    ) -> Option<Before> {
        let taints = self.world.pools[pool].taints;
        let host = self.host_of_draft(self.drafts.len());
        if !self.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints) {
            return None;
        }
        self.host_allows(class, variant, host).ok()?;
        let wants = self.pinned(self.wants(class, variant)?, pins)?;
        let before = Before {
            room: Some((pool, self.world.pools[pool].room.clone())),
            ..self.now(pod, Place::Planned(self.drafts.len()), host)
        };
        let at = self.begin(pool, class, variant, &wants)?;
        let (profile, types) = (self.drafts[at].profile, self.drafts[at].types.clone());
        self.occupy_draft(pod, at, class, profile, types);
        Some(before)
    }

    fn pinned(&self, mut wants: Wants, pins: &Pins) -> Option<Wants> {
        let universe = &self.world.algebra.universe;
        for (label, value) in pins {
            let key = universe.find(label)?;
            let info = universe.key(key);
            let mut values = Mask::empty(info.values.len());
            values.set(info.value(value)?);
            also(&mut wants, Allowed { key, values, absent: false, rank: None })?;
        }
        Some(wants)
    }

    fn now(&self, pod: usize, place: Place, host: u32) -> Before {
        Before {
            pod,
            from: None,
            place,
            host: None,
            draft: None,
            room: None,
            reserved: self.world.left_reserved.clone(),
            held: self.world.attached.of_host(host),
        }
    }

    fn restore_room(&mut self, room: Option<(usize, Room)>) {
        if let Some((pool, room)) = room {
            self.world.pools[pool].room = room;
        }
    }

    /// The pod that took its seat last leaves it.
    pub(super) fn leave(&mut self, before: Before) {
        let pod = before.pod;
        self.with_class(pod, |run, class| {
            run.count_at(class, before.place, -1);
            if let Some(from) = before.from {
                run.recount(class, from, 1);
                run.world.still_on.insert(pod, from);
            }
        });
        let host = match before.place {
            Place::Host(at) => {
                self.on_hosts[at].pop();
                self.world.hosts[at] = before.host.expect("a host is kept before a pod comes to it");
                number(at)
            }
            Place::Planned(at) => {
                match before.draft {
                    Some(draft) => self.drafts[at] = draft,
                    None => self.drafts.truncate(at),
                }
                self.host_of_draft(at)
            }
        };
        self.restore_room(before.room);
        self.world.left_reserved = before.reserved;
        self.world.attached.put_back(host, before.held);
    }

    /// So many more pods of a class where one is.
    fn count_at(&mut self, class: &Class, place: Place, many: i32) {
        match place {
            Place::Host(at) => self.recount(class, number(at), many),
            Place::Planned(at) => self.tally(class, self.host_of_draft(at), self.kind_of_draft(at), many),
        }
    }

    /// Whether a pod could be put again where it is, as far as the others allow it.
    pub(super) fn stays(&mut self, pod: usize, place: Place) -> bool {
        let (host, profile) = match place {
            Place::Host(at) => (number(at), self.world.hosts[at].profile),
            Place::Planned(at) => (self.host_of_draft(at), self.drafts[at].profile),
        };
        self.with_class(pod, |run, class| {
            run.count_at(class, place, -1);
            let stays = class.variants.iter().any(|variant| {
                run.host_allows(class, variant, host).is_ok()
                    && run.wants(class, variant).is_some_and(|wants| run.could(profile, &wants))
            });
            run.count_at(class, place, 1);
            stays
        })
    }

    /// The new nodes of a pool that differ for such a pod and those who mind it: by the values of the labels that are looked at.
    pub(super) fn kinds_of_new(&mut self, pod: usize, pool: usize) -> Vec<Pins> {
        let base = self.world.pools[pool].base;
        let class = self.world.class_at(pod);
        let (pins, terms) = (class.pins.clone(), class.bare_terms());
        let mut all: Vec<Pins> = Vec::new();
        for joined in terms.into_iter().filter_map(|term| self.world.algebra.join(base, term)).collect::<Vec<_>>() {
            let mut kinds = vec![Pins::new()];
            for key in &pins {
                let domain = self.world.algebra.domain(joined, *key);
                if domain.is_settled() {
                    continue;
                }
                let info = self.world.algebra.universe.key(*key);
                let values: Vec<&Arc<str>> = domain.bits.bits().take(VALUES).map(|at| &info.values[at]).collect();
                let with = |kind: &Pins, value: &Arc<str>| -> Pins {
                    kind.iter().cloned().chain([(Arc::clone(&info.name), Arc::clone(value))]).collect()
                };
                if !values.is_empty() {
                    kinds = kinds.iter().flat_map(|kind| values.iter().map(|value| with(kind, value))).collect();
                    kinds.truncate(KINDS);
                }
            }
            for kind in kinds {
                if !all.contains(&kind) {
                    all.push(kind);
                }
            }
        }
        all
    }
}
