//! What DaemonSets take of new nodes, and how a node can be kept from those that come to some nodes of a NodePool only.
//!
//! A daemon that runs in one zone, or on one capacity type, needs room on the nodes that may come to be there and on no others. So daemons are
//! judged by what a node may still become, and not by what its NodePool allows. Where all that a NodePool could carry comes to every node of its
//! instance types, which is the common case, one answer holds for all of its nodes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{HostPort, PodShape};

use super::algebra::{ProfileId, TermId};
use super::choose::sum;
use super::interner::KeyId;
use super::masks::Mask;
use super::place::Load;
use super::ports;
use super::shelf::{Amounts, Shelf, add, subtract};
use super::shunned::any_of;
use super::world::World;

/// So many ways to keep daemons away from a node are looked at.
const WAYS: usize = 32;

/// Instance types that carry the same daemons.
pub(super) struct DaemonGroup {
    pub(super) types: Mask,
    /// What they take if all of them come.
    pub(super) overhead: Amounts,
    /// What those take that come to every node of these types, wherever it is and whatever labels it gets.
    pub(super) surely: Amounts,
    pub(super) ports: Vec<HostPort>,
    /// Which DaemonSets they are of.
    pub(super) coming: Vec<u32>,
}

/// Every instance type of a shelf, by its daemons.
pub(super) type Groups = Arc<[DaemonGroup]>;

/// Groups by NodePool and by what a node may become.
pub(super) type Grouped = RefCell<FxHashMap<(usize, ProfileId), Groups>>;

/// A daemon that nodes of a NodePool may carry.
struct Daemon {
    which: u32,
    /// The alternatives of what it requires of a node.
    terms: Vec<TermId>,
    requests: Amounts,
    ports: Vec<HostPort>,
    /// Instance types of which it comes to some node.
    types: Mask,
    /// Those of which it comes to every node.
    surely: Mask,
}

impl Daemon {
    fn is_partial(&self) -> bool {
        self.types != self.surely
    }
}

/// The daemons of a NodePool.
pub(super) struct Daemons {
    all: Vec<Daemon>,
    /// For nodes that may become whatever the NodePool allows.
    pub(super) groups: Groups,
    /// Whether it depends on more than the instance type which of them come.
    pub(super) are_partial: bool,
    /// What keeps nodes from some daemon, those first that gain most room.
    away: Vec<TermId>,
}

impl DaemonGroup {
    /// What a type of the group has beside its daemons.
    pub(super) fn room(&self, at: usize, shelf: &Shelf) -> Amounts {
        let mut room = shelf.types[at].allocatable.clone();
        subtract(&mut room, &self.overhead);
        room
    }
}

/// What an instance type has beside the daemons that it would carry.
pub(super) fn room_of(groups: &[DaemonGroup], at: usize, shelf: &Shelf) -> Option<Amounts> {
    groups.iter().find(|group| group.types.has(at)).map(|group| group.room(at, shelf))
}

/// The types of a shelf grouped by who comes.
fn grouped(daemons: &[(&Daemon, Mask)], count: usize, zero: &Amounts) -> Groups {
    let mut carried: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (which, (_, types)) in daemons.iter().enumerate() {
        types.bits().for_each(|at| carried[at].push(which));
    }
    // Of each type, which daemons, and whether they surely come.
    let mut groups: BTreeMap<Vec<(usize, bool)>, Mask> = BTreeMap::new();
    for (at, which) in carried.into_iter().enumerate() {
        let known = which.into_iter().map(|which| (which, daemons[which].0.surely.has(at))).collect();
        groups.entry(known).or_insert_with(|| Mask::empty(count)).set(at);
    }
    let group = |(which, types): (Vec<(usize, bool)>, Mask)| {
        let (mut overhead, mut surely, mut ports, mut coming) = (zero.clone(), zero.clone(), Vec::new(), Vec::new());
        for (daemon, comes) in which.into_iter().map(|(which, comes)| (daemons[which].0, comes)) {
            add(&mut overhead, &daemon.requests);
            if comes {
                add(&mut surely, &daemon.requests);
            }
            ports.extend(daemon.ports.iter().cloned());
            coming.push(daemon.which);
        }
        DaemonGroup { types, overhead, surely, ports, coming }
    };
    groups.into_iter().map(group).collect()
}

impl World<'_> {
    /// The daemons of a NodePool with these labels and taints.
    pub(super) fn daemons_of(&mut self, base: ProfileId, taints: u32, shelf: usize) -> Daemons {
        let count = self.algebra.shelves[shelf].types.len();
        let expected = self.expected_daemons().map(|(which, daemon)| (which, Arc::clone(&daemon.shape)));
        let expected: Vec<(u32, Arc<PodShape>)> = expected.collect();
        let mut all = Vec::new();
        for (which, shape) in expected {
            let tolerations = self.tolerance.tolerations(&shape.tolerations);
            if !self.tolerance.tolerates(tolerations, taints, true) {
                continue;
            }
            let terms = self.daemon_terms(&shape);
            let types = self.comes_to(base, &terms, count);
            let mut surely = types.clone();
            surely.retain(|at| terms.iter().any(|term| self.algebra.always(base, shelf, at, *term)));
            if !types.is_empty() {
                let requests = self.dimensions.amounts(&shape.requests);
                all.push(Daemon { which, terms, requests, ports: shape.host_ports.clone(), types, surely });
            }
        }
        let whole: Vec<(&Daemon, Mask)> = all.iter().map(|daemon| (daemon, daemon.types.clone())).collect();
        let groups = grouped(&whole, count, &self.zero());
        let away = self.away(base, shelf, &all);
        Daemons { are_partial: all.iter().any(Daemon::is_partial), all, groups, away }
    }

    /// The alternatives of a daemon's required node affinity.
    pub(super) fn daemon_terms(&mut self, shape: &PodShape) -> Vec<TermId> {
        if shape.node_affinity.required.is_empty() {
            return self.algebra.term(&shape.node_selector, &[]).into_iter().collect();
        }
        shape.node_affinity.required.iter().filter_map(|t| self.algebra.term(&shape.node_selector, t).ok()).collect()
    }

    /// The instance types of which a daemon with these alternatives comes to some node.
    fn comes_to(&self, profile: ProfileId, terms: &[TermId], count: usize) -> Mask {
        let mut types = Mask::empty(count);
        for term in terms {
            types.or(&self.algebra.sometimes(profile, *term));
        }
        types
    }

    /// How nodes of a NodePool can be kept from each daemon that comes to some nodes of a type only: by keys of which the NodeClaim decides, one
    /// on which each of the daemon's alternatives insists. What no instance type tells the cloud might set as it likes.
    fn away(&mut self, base: ProfileId, shelf: usize, daemons: &[Daemon]) -> Vec<TermId> {
        let mut partial: Vec<&Daemon> = daemons.iter().filter(|daemon| daemon.is_partial()).collect();
        partial.sort_by(|a, b| b.requests.cmp(&a.requests));
        let mut all = Vec::new();
        for daemon in partial {
            let types = &self.algebra.shelves[shelf].types;
            let decides =
                |key: KeyId| !self.algebra.universe.key(key).open || daemon.types.bits().all(|at| types[at].tells(key));
            for sets in self.algebra.opposites(&daemon.terms, decides, WAYS) {
                let term = self.algebra.intern(sets);
                let left = self.algebra.join(base, term).map(|without| self.algebra.profile(without).possible());
                // Which instance types a daemon comes to is known without.
                if left.is_some_and(|left| left.meets(&daemon.types)) && !all.contains(&term) {
                    all.push(term);
                }
            }
        }
        all
    }

    /// The instance types of a NodePool, by the daemons that come to nodes which may become this.
    pub(super) fn groups(&self, pool: usize, profile: ProfileId) -> Groups {
        let daemons = &self.pools[pool].daemons;
        if !daemons.are_partial {
            return Arc::clone(&daemons.groups);
        }
        let count = self.algebra.shelves[self.pools[pool].shelf].types.len();
        let comes = |daemon: &Daemon| {
            if daemon.is_partial() { self.comes_to(profile, &daemon.terms, count) } else { daemon.types.clone() }
        };
        let judged = || {
            let all: Vec<(&Daemon, Mask)> = daemons.all.iter().map(|daemon| (daemon, comes(daemon))).collect();
            grouped(&all, count, &self.zero())
        };
        Arc::clone(self.grouped.borrow_mut().entry((pool, profile)).or_insert_with(judged))
    }

    /// What nodes may become that are kept from some daemons, in several ways: the widest first. No key that is to be settled otherwise is
    /// narrowed for that.
    pub(super) fn kept_from_daemons(
        &mut self,
        pool: usize,
        profile: ProfileId,
        settled: impl Fn(KeyId) -> bool,
    ) -> Vec<ProfileId> {
        let daemons = Arc::clone(&self.pools[pool].daemons);
        let is_open = |way: &&TermId| !self.algebra.sets_of(**way).iter().any(|(key, _)| settled(*key));
        let away: Vec<TermId> = daemons.away.iter().filter(is_open).copied().collect();
        let mut all = vec![profile];
        let mut at = 0;
        while at < all.len() && all.len() < WAYS {
            for term in &away {
                let without = self.without(all[at], *term).filter(|without| !all.contains(without));
                all.extend(without);
            }
            at += 1;
        }
        // Where there are too many ways, from as many daemons as possible at least.
        let most = away.iter().fold(profile, |most, term| self.without(most, *term).unwrap_or(most));
        if !all.contains(&most) {
            all.push(most);
        }
        all.split_off(1)
    }

    /// A node that this keeps from a daemon, if there is one.
    fn without(&mut self, profile: ProfileId, away: TermId) -> Option<ProfileId> {
        self.algebra.join(profile, away).filter(|without| !self.algebra.profile(*without).possible().is_empty())
    }

    /// The types of `mask` that hold a load beside the daemons of a node which may become this, without taking a daemon's host port
    /// or meeting one that is shunned.
    pub(super) fn holding(&self, pool: usize, profile: ProfileId, mask: &Mask, load: Load<'_>) -> Mask {
        let shelf = &self.algebra.shelves[self.pools[pool].shelf];
        let of_group = |group: &DaemonGroup| {
            let mut types = mask.clone();
            types.and(&group.types);
            shelf.keep_room(&mut types, &sum(&group.overhead, load.requests));
            types
        };
        let free = |group: &&DaemonGroup| {
            ports::first_taken(load.ports, &group.ports).is_none() && !any_of(load.shunned, &group.coming)
        };
        let all = self.groups(pool, profile);
        let mut groups = all.iter().filter(|group| group.types.meets(mask)).filter(free);
        let mut all = groups.next().map_or_else(|| Mask::empty(shelf.types.len()), of_group);
        for group in groups {
            all.or(&of_group(group));
        }
        all
    }

    /// The types of `mask` that hold a load, whatever comes of it: all of them where it is still open which daemons come.
    pub(super) fn holding_at_best(&self, pool: usize, profile: ProfileId, mask: &Mask, load: Load<'_>) -> Mask {
        if self.pools[pool].daemons.are_partial {
            return mask.clone();
        }
        self.holding(pool, profile, mask, load)
    }

    /// The types of `mask` that could hold a load, if need be on a node that is kept from some daemons.
    pub(super) fn could_hold(&mut self, pool: usize, profile: ProfileId, mask: &Mask, load: Load<'_>) -> Mask {
        let mut all = self.holding(pool, profile, mask, load);
        for without in self.kept_from_daemons(pool, profile, |_| false) {
            let mut types = self.algebra.profile(without).possible();
            types.and(mask);
            all.or(&self.holding(pool, without, &types, load));
        }
        all
    }
}
