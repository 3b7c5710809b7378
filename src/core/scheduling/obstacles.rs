//! All that keeps a pod from the nodes of one NodePool: each thing on its own, so that none is said to be enough when another is in the way too.

use std::sync::Arc;

use crate::core::facts::DaemonSet;

use super::algebra::{ProfileId, agree};
use super::classes::{Class, Variant};
use super::daemons::{Groups, room_of};
use super::facts::fewest;
use super::interner::{Domain, KeyId};
use super::masks::Mask;
use super::place::Load;
use super::reason::{Blame, Lack, Reason};
use super::solve::Run;

impl Run<'_> {
    /// What a pool lacks for the pod, nothing if it could make a node for it alone; and the labels of its nodes if the pod gave up what the pool
    /// lacks of them.
    pub(super) fn obstacles(&mut self, class: &Class, variant: &Variant, pool: usize) -> (Vec<Reason>, ProfileId) {
        let mut all = self.tainted(class, variant, pool);
        let (profile, kinds) = self.labelled(class, variant, pool, &mut all);
        let holding = self.sized(class, (pool, profile), &kinds, &mut all);
        all.extend(self.world.explain_attaching(pool, &holding, class));
        let allowed = self.world.within_limits(pool, &holding);
        if allowed.is_empty() {
            all.extend(self.limited(pool, &holding));
            return (all, profile);
        }
        let name = self.world.pools[pool].fact.name.clone();
        let stock = self.world.algebra.profile(profile);
        if !stock.possible().is_empty() && !allowed.meets(&stock.types) && self.world.reservable(profile).is_empty() {
            all.push(Reason::ReservedInUse { pool: name.clone() });
        }
        let least = Arc::clone(&self.world.pools[pool].least);
        let lowers = self.world.problem.settings.lower_min_values;
        let variety = self.world.variety(self.world.pools[pool].shelf, profile, &allowed, &least);
        // A constraint between pods that looks at a label leaves a node one value of it.
        let pinned = least.iter().find(|(key, wanted)| *wanted > 1 && class.pins.contains(key));
        let variety = variety.and_then(|()| pinned.map_or(Ok(()), |(key, wanted)| Err((*key, *wanted, 1))));
        if let Err((key, wanted, found)) = variety
            && !lowers
        {
            all.push(Reason::MinValues { pool: name, key: self.key_name(key), wanted, found });
        }
        (all, profile)
    }

    fn tainted(&self, class: &Class, variant: &Variant, pool: usize) -> Vec<Reason> {
        let site = &self.world.pools[pool];
        let taints = self.world.tolerance.untolerated(class.tolerations, site.taints, variant.ignore_soft_taints);
        taints.map(|taint| Reason::Taint { pool: site.fact.name.clone(), taint: taint.clone() }).collect()
    }

    /// What the pool's labels lack, and the instance types that are left once the pod has given that up.
    fn labelled(&mut self, class: &Class, variant: &Variant, pool: usize, all: &mut Vec<Reason>) -> (ProfileId, Mask) {
        let base = self.world.pools[pool].base;
        let mut keys: Vec<KeyId> = self.world.algebra.sets_of(variant.term).iter().map(|(key, _)| *key).collect();
        for (key, wanted, offered) in self.world.algebra.conflicts(base, variant.term) {
            keys.retain(|kept| *kept != key);
            let (pool, name) = (self.world.pools[pool].fact.name.clone(), self.key_name(key));
            let of_volumes = class.needs.as_ref().is_some_and(|needs| needs.speaks_of(&name));
            let (wanted, offered) = (self.text(key, &wanted), self.text(key, &offered));
            all.push(if of_volumes {
                Reason::VolumeTopology { pool, key: name, wanted, offered }
            } else {
                Reason::Requirement { pool, key: name, wanted, offered }
            });
        }
        let joined = self.narrowed(pool, variant, &keys);
        let possible = self.world.algebra.profile(joined).possible();
        if !possible.is_empty() {
            return (joined, possible);
        }
        let sold_out = self.matching(pool, joined);
        if !sold_out.is_empty() {
            let pool = self.world.pools[pool].fact.name.clone();
            all.push(Reason::NoOffering { pool, types: sold_out.count() });
            return (joined, sold_out);
        }
        let named = fewest(&keys, |kept| self.would_hold(class, variant, pool, kept))
            .or_else(|| fewest(&keys, |kept| !self.of_keys(pool, variant, kept).1.is_empty()))
            .unwrap_or_default();
        all.push(self.lacking(variant, pool, &keys, &named));
        let kept: Vec<KeyId> = keys.into_iter().filter(|key| !named.contains(key)).collect();
        self.of_keys(pool, variant, &kept)
    }

    /// The labels of a pool's nodes if the pod asked for these keys only.
    fn narrowed(&mut self, pool: usize, variant: &Variant, keys: &[KeyId]) -> ProfileId {
        let base = self.world.pools[pool].base;
        let term = self.world.algebra.only(variant.term, keys);
        self.world.algebra.join(base, term).unwrap_or(base)
    }

    fn of_keys(&mut self, pool: usize, variant: &Variant, keys: &[KeyId]) -> (ProfileId, Mask) {
        let profile = self.narrowed(pool, variant, keys);
        (profile, self.world.algebra.profile(profile).possible())
    }

    /// Whether the pool could make a node for the pod alone if the pod asked for these keys only.
    fn would_hold(&mut self, class: &Class, variant: &Variant, pool: usize, keys: &[KeyId]) -> bool {
        let (profile, types) = self.of_keys(pool, variant, keys);
        let holding = self.world.could_hold(pool, profile, &types, Load::of_pod(class));
        let holding = self.world.attaching(pool, holding, u32::MAX, class);
        !self.world.within_limits(pool, &holding).is_empty()
    }

    /// The types that match but for what can be had.
    fn matching(&self, pool: usize, profile: ProfileId) -> Mask {
        let shelf = &self.world.algebra.shelves[self.world.pools[pool].shelf];
        let sets = &self.world.algebra.profile(profile).sets;
        let mut all = Mask::empty(shelf.types.len());
        for (at, kind) in shelf.types.iter().enumerate() {
            if agree(&kind.sets, sets) && kind.offerings.iter().any(|offer| agree(&offer.sets, sets)) {
                all.set(at);
            }
        }
        all
    }

    fn lacking(&mut self, variant: &Variant, pool: usize, keys: &[KeyId], named: &[KeyId]) -> Reason {
        let without = |gone: &[KeyId]| -> Vec<KeyId> { keys.iter().filter(|k| !gone.contains(k)).copied().collect() };
        let enough = |run: &mut Self, key: KeyId| !run.of_keys(pool, variant, &without(&[key])).1.is_empty();
        let blame = match named {
            [one] if self.of_keys(pool, variant, &[*one]).1.is_empty() => Blame::Alone,
            [_] => Blame::Beside,
            all if all.iter().all(|key| enough(self, *key)) => Blame::Either,
            _ => Blame::Each,
        };
        let mut lacks = Vec::new();
        for key in named {
            let gone = if blame == Blame::Each { named.to_vec() } else { vec![*key] };
            let profile = self.narrowed(pool, variant, &without(&gone));
            let wanted = self.world.algebra.sets_of(variant.term).iter().find(|(k, _)| k == key);
            let open = || self.world.algebra.universe.open(*key);
            let wanted = wanted.map_or_else(open, |(_, domain)| domain.clone());
            let offered = self.world.algebra.values_had(profile, *key);
            lacks.push(Lack {
                key: self.key_name(*key),
                wanted: self.text(*key, &wanted),
                offered: self.text(*key, &offered),
            });
        }
        Reason::NoMatchingType { pool: self.world.pools[pool].fact.name.clone(), lacks, blame }
    }

    /// What is too large for `kinds`, and those that would hold the pod without it.
    fn sized(&mut self, class: &Class, at: (usize, ProfileId), kinds: &Mask, all: &mut Vec<Reason>) -> Mask {
        let (pool, profile) = at;
        let name = self.world.pools[pool].fact.name.clone();
        let mut requests = class.requests.clone();
        let mut roomy = self.world.could_hold(pool, profile, kinds, Load::of(&requests, &[]));
        if roomy.is_empty() {
            let ways = self.world.kept_from_daemons(pool, profile, |_| false);
            let ways: Vec<Groups> = [profile].into_iter().chain(ways).map(|way| self.world.groups(pool, way)).collect();
            let shelf = &self.world.algebra.shelves[self.world.pools[pool].shelf];
            for (at, resource) in self.world.dimensions.0.iter().enumerate() {
                let whole = |kind: usize| shelf.types[kind].allocatable[at];
                let rooms =
                    |kind: usize| ways.iter().filter_map(move |way| room_of(way, kind, shelf)).map(|room| room[at]);
                let room = |kind: usize| (rooms(kind).max().unwrap_or_else(|| whole(kind)), kind);
                let (room, best) = kinds.bits().map(room).max_by_key(|(room, _)| *room).unwrap_or((0, 0));
                if class.requests[at] > room {
                    let most = whole(best);
                    let wanted = class.requests[at].saturating_add(most - room);
                    let daemon = (class.requests[at] <= most).then(|| self.largest_daemon(&ways, best, at)).flatten();
                    let resource = resource.clone();
                    all.push(Reason::TooLarge { pool: name.clone(), resource, wanted, most, daemon });
                    requests[at] = 0;
                }
            }
            roomy = self.world.could_hold(pool, profile, kinds, Load::of(&requests, &[]));
        }
        if roomy.is_empty() {
            // Where daemons alone are too large, that is said already.
            let is_said = all.iter().any(|reason| matches!(reason, Reason::TooLarge { daemon: Some(_), .. }));
            if !is_said {
                all.push(Reason::NoTypeHolds { pool: name.clone() });
            }
            roomy = kinds.clone();
            requests = self.world.zero();
        }
        let wanted = &class.shape.host_ports;
        let holding = self.world.could_hold(pool, profile, &roomy, Load::of(&requests, wanted));
        if !holding.is_empty() {
            let load = Load { shunned: &class.shunned, ..Load::of(&requests, wanted) };
            let apart = self.world.could_hold(pool, profile, &roomy, load);
            if apart.is_empty() {
                all.extend(self.shunned(class, (pool, profile)));
            }
            return if apart.is_empty() { holding } else { apart };
        }
        let groups = self.world.groups(pool, profile);
        let taken = groups.iter().find_map(|group| super::ports::first_taken(wanted, &group.ports));
        all.extend(taken.map(|port| Reason::HostPort { pool: name, port: port.port }));
        roomy
    }

    /// The DaemonSet whose pod asks for most of a resource on nodes of an instance type, and how much.
    fn largest_daemon(&self, ways: &[Groups], kind: usize, resource: usize) -> Option<(Arc<str>, i64)> {
        let of_kind = ways.iter().flat_map(|way| way.iter()).filter(|group| group.types.has(kind));
        let coming: Vec<u32> = of_kind.flat_map(|group| group.coming.iter().copied()).collect();
        let daemons = self.world.expected_daemons().filter(|(which, _)| coming.contains(which));
        let asks = |(_, daemon): (u32, &Arc<DaemonSet>)| {
            (self.world.dimensions.amounts(&daemon.shape.requests)[resource], daemon.key.to_string())
        };
        let (amount, name) = daemons.map(asks).max()?;
        (amount > 0).then(|| (name.into(), amount))
    }

    /// The daemon that comes to nodes of a pool and may not be on one with the pod.
    fn shunned(&self, class: &Class, (pool, profile): (usize, ProfileId)) -> Option<Reason> {
        let groups = self.world.groups(pool, profile);
        let which = class.shunned.iter().find(|which| groups.iter().any(|group| group.coming.contains(which)))?;
        let (_, daemon) = self.world.expected_daemons().find(|(at, _)| at == which)?;
        Some(Reason::Daemon { pool: self.world.pools[pool].fact.name.clone(), daemon: daemon.key.to_string().into() })
    }

    /// The limits that leave none of `holding`: one that would be enough to raise, or all that have to be raised together.
    fn limited(&self, pool: usize, holding: &Mask) -> Vec<Reason> {
        let site = &self.world.pools[pool];
        let name = site.fact.name.clone();
        if let Some(nodes) = site.room.nodes.filter(|nodes| *nodes <= 0) {
            let resource = crate::core::resources::ResourceName::nodes();
            return vec![Reason::Limit { pool: name, resource, left: nodes.saturating_mul(1000) }];
        }
        let shelf = &self.world.algebra.shelves[site.shelf];
        let limits: Vec<(usize, i64)> =
            site.room.resources.iter().enumerate().filter_map(|(at, left)| Some((at, (*left)?))).collect();
        let within = |kept: &[(usize, i64)]| {
            holding.bits().any(|kind| kept.iter().all(|(at, left)| shelf.types[kind].capacity[*at] <= *left))
        };
        let mut short = fewest(&limits, within).unwrap_or_default();
        if let [one, _, ..] = short[..]
            && within(&limits.iter().filter(|limit| **limit != one).copied().collect::<Vec<_>>())
        {
            short.truncate(1);
        }
        let limit = |(at, left): (usize, i64)| {
            let resource = self.world.dimensions.0[at].clone();
            Reason::Limit { pool: name.clone(), resource, left }
        };
        short.into_iter().map(limit).collect()
    }

    pub(super) fn key_name(&self, key: KeyId) -> Arc<str> {
        Arc::clone(&self.world.algebra.universe.key(key).name)
    }

    fn text(&self, key: KeyId, domain: &Domain) -> Arc<str> {
        let lines = self.world.algebra.universe.written(key, domain, None);
        let texts: Vec<String> =
            lines.iter().map(|line| crate::core::requirements::ValueSet::from_written(line).to_string()).collect();
        // A bound says by itself that the label has to be there.
        texts.join(" and ").replace("Exists >=", ">=").replace("Exists <=", "<=").into()
    }
}
