//! May this pod go there, and what would the candidate's labels then be?

use std::sync::Arc;

use smallvec::SmallVec;

use crate::core::facts::HostPort;

use super::algebra::{ProfileId, TermId};
use super::classes::{Class, Spread, Variant};
use super::interner::KeyId;
use super::masks::Mask;
use super::ports;
use super::rooms::Kind;
use super::shelf::fits;
use super::shunned::Shunned;
use super::solve::Run;
use super::topology::{CounterId, Topo};

/// The domains of one key that constraints allow.
#[derive(Clone)]
pub(super) struct Allowed {
    pub(super) key: KeyId,
    pub(super) values: Mask,
    /// Whether a node without the label is all right.
    pub(super) absent: bool,
    /// Emptier domains of this counter are preferred.
    pub(super) rank: Option<CounterId>,
}

/// What the topology allows a pod at this moment.
pub(super) type Wants = SmallVec<[Allowed; 2]>;

/// What a node is to hold.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) requests: &'a [i64],
    pub(super) ports: &'a [HostPort],
    /// DaemonSets whose pods may not come there.
    pub(super) shunned: &'a [u32],
    /// So many values of labels must its instance types keep.
    pub(super) least: &'a [(KeyId, u32)],
}

impl<'a> Load<'a> {
    /// These requests and host ports, whatever the values of labels.
    pub(super) fn of(requests: &'a [i64], ports: &'a [HostPort]) -> Self {
        Self { requests, ports, shunned: &[], least: &[] }
    }

    /// All that a pod brings.
    pub(super) fn of_pod(class: &'a Class) -> Self {
        Self { shunned: &class.shunned, ..Self::of(&class.requests, &class.shape.host_ports) }
    }
}

/// Which keys are settled for such a pod, whatever else a node may become.
pub(super) fn settles(class: &Class, wants: &Wants) -> impl Fn(KeyId) -> bool {
    |key| class.pins.contains(&key) || wants.iter().any(|want| want.key == key)
}

/// Why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// Not in this run any more.
    Forever,
    /// Perhaps after other pods have been placed.
    ForNow,
}

impl Run<'_> {
    /// The domains that the constraints of a variant leave, or nothing when one leaves none.
    pub(super) fn wants(&self, class: &Class, variant: &Variant) -> Option<Wants> {
        self.wants_of(variant, &class.repelled)
    }

    /// The same, where only these pods keep the pod away.
    pub(super) fn wants_of(&self, variant: &Variant, repelled: &[(Topo, CounterId)]) -> Option<Wants> {
        let mut wants = Wants::new();
        for allowed in variant.spreads.iter().filter_map(|spread| self.within_skew(spread)) {
            also(&mut wants, allowed)?;
        }
        let counters = &self.world.counters;
        for affinity in &variant.affinities {
            let first = affinity.own && affinity.counters.iter().all(|(_, id)| counters.get(*id).total == 0);
            for (topo, id) in &affinity.counters {
                let Topo::Key(key) = topo else { continue };
                let values = if first {
                    Mask::full(self.world.algebra.universe.key(*key).values.len())
                } else {
                    counters.get(*id).domains(true)
                };
                also(&mut wants, Allowed { key: *key, values, absent: false, rank: None })?;
            }
        }
        for (topo, id) in variant.apart.iter().chain(repelled) {
            let Topo::Key(key) = topo else { continue };
            let values = counters.get(*id).domains(false);
            also(&mut wants, Allowed { key: *key, values, absent: true, rank: None })?;
        }
        Some(wants)
    }

    /// The same, less what constraints of other pods that count this one would be broken by; nothing when there are none, or they leave nothing.
    ///
    /// kube-scheduler does not ask this of the pod. But a pod that it counts in a domain that is full to the skew leaves those that are bound by
    /// the constraint where they could not be put again.
    pub(super) fn courteous(&self, class: &Class, wants: &Wants) -> Option<Wants> {
        if class.courtesies.is_empty() {
            return None;
        }
        let mut wants = wants.clone();
        for allowed in class.courtesies.iter().filter_map(|spread| self.within_skew(spread)) {
            also(&mut wants, allowed)?;
        }
        Some(wants)
    }

    /// Whether one more such pod on a planned node would be one too many for a spread constraint per node of a pod that is there. kube-scheduler
    /// does not ask this either, but could then not put that one again where it is.
    pub(super) fn crowds(&self, class: &Class, draft: usize) -> bool {
        let host = self.host_of_draft(draft);
        let on = |id: &CounterId| self.world.counters.get(*id).on_host(host);
        self.drafts[draft].caps.iter().any(|(id, most)| class.touches.contains(id) && on(id) >= *most)
    }

    /// The domains in which one more pod keeps within the skew; nothing for a constraint per node.
    fn within_skew(&self, spread: &Spread) -> Option<Allowed> {
        let Topo::Key(key) = spread.topo else { return None };
        let counter = self.world.counters.get(spread.counter);
        let known = spread.domains.count();
        let least = if known < spread.min_domains {
            0
        } else {
            spread.domains.bits().map(|value| counter.in_domain(value)).min().unwrap_or(0)
        };
        let mut values = Mask::empty(self.world.algebra.universe.key(key).values.len());
        for value in spread.domains.bits() {
            if counter.in_domain(value) + spread.own <= least + spread.max_skew {
                values.set(value);
            }
        }
        Some(Allowed { key, values, absent: false, rank: Some(spread.counter) })
    }

    /// Whether the constraints per node allow another such pod on this one.
    pub(super) fn host_allows(&self, class: &Class, variant: &Variant, host: u32) -> Result<(), Refused> {
        self.host_allows_of(variant, &class.repelled, host)
    }

    /// The same, where only these pods keep the pod away.
    pub(super) fn host_allows_of(
        &self,
        variant: &Variant,
        repelled: &[(Topo, CounterId)],
        host: u32,
    ) -> Result<(), Refused> {
        let counters = &self.world.counters;
        // A node without the label is in no domain: nobody can be spread there or be beside another, and nothing keeps pods apart.
        let named = self.world.hosts.get(host as usize).is_none_or(|host| host.named);
        for (topo, id) in variant.apart.iter().chain(repelled) {
            if *topo == Topo::Host && counters.get(*id).on_host(host) > 0 {
                return Err(Refused::Forever);
            }
        }
        for spread in variant.spreads.iter().filter(|s| s.topo == Topo::Host) {
            if !named || counters.get(spread.counter).on_host(host) + spread.own > spread.max_skew {
                return Err(Refused::Forever);
            }
        }
        for affinity in &variant.affinities {
            let mut hosts = affinity.counters.iter().filter(|(topo, _)| *topo == Topo::Host).peekable();
            if hosts.peek().is_none() {
                continue;
            }
            let first = affinity.own && affinity.counters.iter().all(|(_, id)| counters.get(*id).total == 0);
            if !named || !first && hosts.any(|(_, id)| counters.get(*id).on_host(host) == 0) {
                return Err(Refused::ForNow);
            }
        }
        Ok(())
    }

    /// Whether a pod may go to a node that is there, as far as the constraints per node allow; nothing of the node can be narrowed any more.
    pub(super) fn try_host(
        &mut self,
        at: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
    ) -> Result<(), Refused> {
        let host = &self.world.hosts[at];
        let (profile, taints) = (host.profile, host.taints);
        if !host.usable
            || !fits(&class.requests, &host.free)
            || ports::first_taken(&class.shape.host_ports, &host.ports).is_some()
            || !self.world.attached.host_takes(super::interner::number(at), class)
        {
            return Err(Refused::Forever);
        }
        if !self.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints)
            || self.world.algebra.join(profile, variant.term) != Some(profile)
            || self.world.is_shunned(at, &class.shunned)
        {
            return Err(Refused::Forever);
        }
        for key in &class.pins {
            let domain = self.world.algebra.domain(profile, *key);
            if !domain.is_settled() {
                return Err(Refused::Forever);
            }
            let fine = |want: &Allowed| domain.absent && want.absent || domain.bits.meets(&want.values);
            if !wants.iter().find(|w| w.key == *key).is_none_or(fine) {
                return Err(Refused::ForNow);
            }
        }
        Ok(())
    }

    /// Whether a pod may join a planned node, as far as the constraints per node allow; the answer is what its labels and types would then be.
    pub(super) fn try_draft(
        &mut self,
        at: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        beyond_aim: bool,
    ) -> Result<(ProfileId, Mask), Refused> {
        let draft = &self.drafts[at];
        let (pool, profile) = (draft.pool, draft.profile);
        let requests = super::choose::sum(&draft.requests, &class.requests);
        if !beyond_aim && !draft.expects(class.demand) {
            if !fits(&requests, &draft.aim) {
                return Err(Refused::Forever);
            }
            if !fits(&super::choose::sum(&requests, &draft.reserved), &draft.aim) {
                return Err(Refused::ForNow);
            }
        }
        if ports::first_taken(&class.shape.host_ports, &draft.ports).is_some() {
            return Err(Refused::Forever);
        }
        // The commonest no of all, before anything is computed: its zone is settled, and it is not one of those allowed now.
        for want in wants {
            let domain = self.world.algebra.domain(profile, want.key);
            if domain.is_settled() && !(domain.absent && want.absent || domain.bits.meets(&want.values)) {
                return Err(Refused::ForNow);
            }
        }
        let taints = self.world.pools[pool].taints;
        if !self.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints) {
            return Err(Refused::Forever);
        }
        let joined = self.world.algebra.join(profile, variant.term).ok_or(Refused::Forever)?;
        let draft = &self.drafts[at];
        let mut ports = draft.ports.clone();
        ports.extend(class.shape.host_ports.iter().cloned());
        let shunned: Shunned = draft.shunned.iter().chain(&class.shunned).copied().collect();
        let least = Arc::clone(&draft.least);
        let load = Load { requests: &requests, ports: &ports, shunned: &shunned, least: &least };
        let found = self.grown(at, joined, class, wants, load);
        if found.is_ok() || !beyond_aim || !self.world.pools[pool].daemons.are_partial {
            return found;
        }
        let ways = self.world.kept_from_daemons(pool, joined, settles(class, wants));
        let mut kept = ways.into_iter().map(|way| self.grown(at, way, class, wants, load));
        kept.find(Result::is_ok).unwrap_or(found)
    }

    /// What a planned node would be with this load and the pod, if it may become no more than `profile`.
    fn grown(
        &mut self,
        at: usize,
        profile: ProfileId,
        class: &Class,
        wants: &Wants,
        load: Load<'_>,
    ) -> Result<(ProfileId, Mask), Refused> {
        let draft = &self.drafts[at];
        let pool = draft.pool;
        let types = draft.types_for(profile, self);
        let holding = self.world.holding_at_best(pool, profile, &types, load);
        // As with sizes: each further volume makes fewer types fit, whosever it is.
        let holding = self.world.attaching(pool, holding, self.host_of_draft(at), class);
        if holding.is_empty() {
            return Err(Refused::Forever);
        }
        self.settle(pool, profile, &holding, class, wants, load).ok_or(Refused::ForNow)
    }

    /// Pins every key that a constraint looks at. `types` are those that would hold the load at best.
    pub(super) fn settle(
        &mut self,
        pool: usize,
        profile: ProfileId,
        types: &Mask,
        class: &Class,
        wants: &Wants,
        load: Load<'_>,
    ) -> Option<(ProfileId, Mask)> {
        let taints = self.world.pools[pool].taints;
        let mut profile = profile;
        // A spread that looks at some nodes only must know whether it looks at this one: it is narrowed until it does.
        for id in &class.touches {
            let Some(filter) = self.world.counters.get(*id).filter else { continue };
            if self.world.looks_at_by(filter, Kind { taints, profile, named: true }) {
                continue;
            }
            let filter = self.world.counters.filter_of(filter).clone();
            for term in filter.terms.iter().flatten() {
                let Some(inside) = self.world.algebra.join(profile, *term) else { continue };
                // Where the pod may not go anyway it will be known that it does not.
                if self.could(inside, wants) && self.still(pool, inside, types, load).is_some() {
                    profile = inside;
                    break;
                }
            }
        }
        let open = profile;
        let asked = wants.iter().map(|want| &want.key).filter(|key| !class.pins.contains(key));
        for key in class.pins.iter().chain(asked) {
            profile = self.pin((pool, load), (profile, open), types, *key, wants)?;
        }
        let left = self.still(pool, profile, types, load)?;
        Some((profile, left))
    }

    /// Settles one key: on the emptiest allowed domain, then the one in which there is least choice, then the cheapest, then the first by name.
    /// `open`: what the node could be before any key was settled.
    fn pin(
        &mut self,
        (pool, load): (usize, Load<'_>),
        (profile, open): (ProfileId, ProfileId),
        types: &Mask,
        key: KeyId,
        wants: &Wants,
    ) -> Option<ProfileId> {
        let want = wants.iter().find(|want| want.key == key);
        let domain = self.world.algebra.domain(profile, key).into_owned();
        if domain.is_settled() {
            let fine = want.is_none_or(|w| (domain.absent && w.absent) || domain.bits.meets(&w.values));
            return fine.then_some(profile);
        }
        let mut values = domain.bits.clone();
        if let Some(want) = want {
            values.and(&want.values);
        }
        let rank = want.and_then(|w| w.rank);
        let mut choices: SmallVec<[(u32, usize, f64, ProfileId); 4]> = SmallVec::new();
        for value in values.bits() {
            let term = self.world.algebra.pin(key, Some(value));
            let Some(pinned) = self.world.algebra.join(profile, term) else { continue };
            let Some(left) = self.still(pool, pinned, types, load) else { continue };
            if !self.leaves_all(pinned, key, wants) {
                continue;
            }
            let count = rank.map_or(0, |id| self.world.counters.get(id).in_domain(value));
            let prices = &self.world.algebra.profile(pinned).prices;
            let price = left.bits().map(|at| prices[at]).fold(f64::INFINITY, f64::min);
            choices.push((count, self.choice(open, term, key, wants), price, pinned));
        }
        let best = choices.into_iter().min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        if let Some((.., pinned)) = best {
            return Some(pinned);
        }
        if domain.absent && want.is_none_or(|w| w.absent) {
            let term = self.world.algebra.pin(key, None);
            return self.world.algebra.join(profile, term).filter(|p| self.still(pool, *p, types, load).is_some());
        }
        None
    }

    /// Other keys over which the pod is spread than one.
    fn others(wants: &Wants, key: KeyId) -> impl Iterator<Item = &Allowed> {
        wants.iter().filter(move |want| want.rank.is_some() && want.key != key)
    }

    /// Whether such a node could still be in an allowed domain of each other key over which the pod is spread.
    fn leaves_all(&self, profile: ProfileId, pinned: KeyId, wants: &Wants) -> bool {
        Self::others(wants, pinned).all(|want| self.world.algebra.within_reach(profile, want.key).meets(&want.values))
    }

    /// How many domains of other keys over which the pod is spread there are for a node that is narrowed so. Where a zone has one capacity type only,
    /// its turn comes first: later that one may be full to the skew, and the zone be the only one that is not.
    fn choice(&mut self, open: ProfileId, term: TermId, pinned: KeyId, wants: &Wants) -> usize {
        let mut others = Self::others(wants, pinned).peekable();
        if others.peek().is_none() {
            return 0;
        }
        let Some(narrowed) = self.world.algebra.join(open, term) else { return 0 };
        others.map(|want| self.world.algebra.within_reach(narrowed, want.key).count()).sum()
    }

    /// The types that a narrower profile leaves, if they are enough.
    fn still(&self, pool: usize, profile: ProfileId, types: &Mask, load: Load<'_>) -> Option<Mask> {
        let mut left = types.clone();
        left.and(&self.world.algebra.profile(profile).types);
        let site = &self.world.pools[pool];
        if site.daemons.are_partial {
            left = self.world.holding(pool, profile, &left, load);
        }
        let is_enough = !left.is_empty() && self.world.variety(site.shelf, profile, &left, load.least).is_ok();
        is_enough.then_some(left)
    }
}

impl super::draft::Draft {
    fn types_for(&self, profile: ProfileId, run: &Run<'_>) -> Mask {
        let mut types = self.types.clone();
        types.and(&run.world.algebra.profile(profile).types);
        types
    }
}

/// Adds what one constraint allows; nothing when no domain is left.
pub(super) fn also(wants: &mut Wants, more: Allowed) -> Option<()> {
    match wants.iter_mut().find(|known| known.key == more.key) {
        Some(known) => {
            known.values.and(&more.values);
            known.absent &= more.absent;
            known.rank = known.rank.or(more.rank);
        }
        None => wants.push(more),
    }
    wants.iter().all(|known| known.absent || !known.values.is_empty()).then_some(())
}
