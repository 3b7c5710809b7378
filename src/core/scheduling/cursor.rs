//! Where a class of pods looks next: among nodes that are there, then among planned ones, skipping those that refused it for good.

use rustc_hash::FxHashMap;

use super::algebra::ProfileId;
use super::classes::{Class, Variant};
use super::company::Party;
use super::place::{Refused, Wants};
use super::rooms::Marks;
use super::solve::Run;
use super::topology::{CounterId, Topo};
use super::world::World;

/// What a class has learned of the candidates, for one step of its relaxation.
#[derive(Default)]
pub(super) struct Cursor {
    /// The constraints per node that this shares with other classes.
    rule: Option<usize>,
    /// Kinds of hosts that suit it.
    host_kinds: Vec<(u32, ProfileId)>,
    /// So many kinds of hosts have been looked at.
    hosts_seen: usize,
    /// Kinds of planned nodes that suit it, and what their labels would then be.
    draft_kinds: Vec<(u32, ProfileId)>,
    drafts_seen: usize,
    hosts: Marks,
    drafts: Marks,
    /// Planned nodes that refused it even beyond their aim.
    beyond: Marks,
}

/// Constraints per node: the pods to be apart from, and the counts not to exceed. Who broke them once breaks them for ever.
#[derive(PartialEq, Eq, Hash)]
struct Rule {
    apart: Vec<CounterId>,
    /// Counter, how many more the pod counts for, and the most.
    spreads: Vec<(CounterId, u32, u32)>,
}

/// Hosts and planned nodes that break a rule.
#[derive(Default)]
struct Broken {
    hosts: Marks,
    drafts: Marks,
}

/// All cursors, by class and step.
pub(super) struct Cursors {
    all: Vec<Vec<Cursor>>,
    rules: FxHashMap<Rule, usize>,
    broken: Vec<Broken>,
}

impl Cursors {
    pub(super) fn new(world: &World<'_>) -> Self {
        let all = world.classes.iter().map(|_| Vec::new()).collect();
        Self { all, rules: FxHashMap::default(), broken: Vec::new() }
    }

    /// Lends one out; it must be given back.
    pub(super) fn take(&mut self, class: u32, step: usize) -> Cursor {
        self.all[class as usize].get_mut(step).map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn give(&mut self, class: u32, step: usize, cursor: Cursor) {
        let steps = &mut self.all[class as usize];
        if steps.len() <= step {
            steps.resize_with(step + 1, Cursor::default);
        }
        steps[step] = cursor;
    }

    fn rule(&mut self, class: &Class, variant: &Variant) -> usize {
        let all = variant.apart.iter().chain(&class.repelled);
        let mut apart: Vec<CounterId> = all.filter(|(topo, _)| *topo == Topo::Host).map(|(_, id)| *id).collect();
        apart.sort_unstable();
        apart.dedup();
        let spreads = variant.spreads.iter().filter(|s| s.topo == Topo::Host);
        let mut spreads: Vec<(CounterId, u32, u32)> = spreads.map(|s| (s.counter, s.own, s.max_skew)).collect();
        spreads.sort_unstable();
        let next = self.broken.len();
        let rule = *self.rules.entry(Rule { apart, spreads }).or_insert(next);
        if rule == next {
            self.broken.push(Broken::default());
        }
        rule
    }
}

impl Run<'_> {
    /// Looks at kinds of candidates that have come into being since.
    pub(super) fn prepare(&mut self, cursor: &mut Cursor, class: &Class, variant: &Variant) {
        if cursor.rule.is_none() {
            cursor.rule = Some(self.cursors.rule(class, variant));
        }
        let algebra = &mut self.world.algebra;
        let tolerance = &mut self.world.tolerance;
        let fine = |tolerance: &mut super::tolerance::Tolerance, taints| {
            tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints)
        };
        for at in cursor.hosts_seen..self.world.rooms.kinds.len() {
            let kind = self.world.rooms.kinds[at];
            if fine(tolerance, kind.taints)
                && algebra.join(kind.profile, variant.term) == Some(kind.profile)
                && class.pins.iter().all(|key| algebra.domain(kind.profile, *key).is_settled())
            {
                cursor.host_kinds.push((super::interner::number(at), kind.profile));
            }
        }
        cursor.hosts_seen = self.world.rooms.kinds.len();
        for at in cursor.drafts_seen..self.rooms.kinds.len() {
            let kind = self.rooms.kinds[at];
            if fine(tolerance, kind.taints)
                && let Some(joined) = algebra.join(kind.profile, variant.term)
            {
                cursor.draft_kinds.push((super::interner::number(at), joined));
            }
        }
        cursor.drafts_seen = self.rooms.kinds.len();
    }

    /// Whether candidates with these labels could be where the topology allows the pod now.
    pub(super) fn could(&self, profile: ProfileId, wants: &Wants) -> bool {
        wants.iter().all(|want| {
            let domain = self.world.algebra.domain(profile, want.key);
            domain.absent && want.absent || domain.bits.meets(&want.values)
        })
    }

    fn suitable(&self, kinds: &[(u32, ProfileId)], wants: &Wants) -> Vec<u32> {
        kinds.iter().filter(|(_, profile)| self.could(*profile, wants)).map(|(kind, _)| *kind).collect()
    }

    /// A node that is there, with room for the pod or for all of a party.
    pub(super) fn on_host(
        &mut self,
        pod: usize,
        class: &Class,
        variant: &Variant,
        (wants, meant): (&Wants, Option<&Party>),
        cursor: &mut Cursor,
    ) -> bool {
        if cursor.host_kinds.is_empty() {
            return false;
        }
        let mut kinds = self.suitable(&cursor.host_kinds, wants);
        if let Some(party) = meant {
            kinds.retain(|kind| {
                let kind = self.world.rooms.kinds[*kind as usize];
                self.with_party(kind.profile, kind.taints, party) == Some(kind.profile)
            });
        }
        let room = meant.map_or(&class.requests, |party| &party.room);
        let rule = cursor.rule.expect("a cursor is prepared before it is used");
        let mut from = 0;
        loop {
            let gone = [&cursor.hosts, &self.cursors.broken[rule].hosts];
            let Some(at) = self.world.rooms.next(from, Some(room), &kinds, gone) else { return false };
            match self.host_allows(class, variant, super::interner::number(at)) {
                Ok(()) => match self.try_host(at, class, variant, wants) {
                    Ok(()) => {
                        self.put_on_host(pod, at, class);
                        return true;
                    }
                    Err(Refused::Forever) => cursor.hosts.set(at),
                    Err(Refused::ForNow) => {}
                },
                Err(Refused::Forever) => self.cursors.broken[rule].hosts.set(at),
                Err(Refused::ForNow) => {}
            }
            from = at + 1;
        }
    }

    /// Planned nodes: first those that hold room ready for such pods, then those that have some left. Where none has an aim, those with
    /// the fewest pods first, as Karpenter does.
    pub(super) fn on_draft(
        &mut self,
        pod: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        cursor: &mut Cursor,
    ) -> bool {
        let kinds = self.suitable(&cursor.draft_kinds, wants);
        if kinds.is_empty() {
            return false;
        }
        let mut promised = 0;
        while let Some(draft) = self.world.demand.entries[class.demand].drafts.get(promised).map(|d| *d as usize) {
            if !self.drafts[draft].expects(class.demand) {
                self.world.demand.entries[class.demand].drafts.remove(promised);
                continue;
            }
            if self.rooms.is_one_of(draft, &kinds) && self.joins(pod, draft, class, variant, wants, cursor) {
                return true;
            }
            promised += 1;
        }
        let rule = cursor.rule.expect("a cursor is prepared before it is used");
        let mut from = 0;
        if self.is_aimless {
            let mut open: Vec<(usize, usize)> = Vec::new();
            let gone = [&cursor.drafts, &self.cursors.broken[rule].drafts];
            while let Some(at) = self.rooms.next(from, Some(&class.requests), &kinds, gone) {
                open.push((self.drafts[at].pods.len(), at));
                from = at + 1;
            }
            open.sort_unstable();
            return open.into_iter().any(|(_, at)| self.joins(pod, at, class, variant, wants, cursor));
        }
        loop {
            let gone = [&cursor.drafts, &self.cursors.broken[rule].drafts];
            let Some(at) = self.rooms.next(from, Some(&class.requests), &kinds, gone) else { return false };
            if self.joins(pod, at, class, variant, wants, cursor) {
                return true;
            }
            from = at + 1;
        }
    }

    /// Puts a pod on a planned node if that is possible.
    fn joins(
        &mut self,
        pod: usize,
        at: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        cursor: &mut Cursor,
    ) -> bool {
        let rule = cursor.rule.expect("a cursor is prepared before it is used");
        if cursor.drafts.has(at) || self.cursors.broken[rule].drafts.has(at) {
            return false;
        }
        match self.put_where_allowed(pod, at, (class, variant, wants), rule, false) {
            Ok(()) => return true,
            Err(Refused::Forever) => cursor.drafts.set(at),
            Err(Refused::ForNow) => {}
        }
        false
    }

    /// Puts a pod on a planned node, within its aim or `beyond` it. What the node's neighbours forbid for good is remembered for all classes under
    /// the same rule; the refusal is what the node itself says to this class.
    fn put_where_allowed(
        &mut self,
        pod: usize,
        at: usize,
        (class, variant, wants): (&Class, &Variant, &Wants),
        rule: usize,
        beyond: bool,
    ) -> Result<(), Refused> {
        if let Err(refused) = self.host_allows(class, variant, self.host_of_draft(at)) {
            if refused == Refused::Forever {
                self.cursors.broken[rule].drafts.set(at);
            }
            return Err(Refused::ForNow);
        }
        if !beyond && self.crowds(class, at) {
            return Err(Refused::Forever);
        }
        let (profile, types) = self.try_draft(at, class, variant, wants, beyond)?;
        self.put_on_draft(pod, at, class, profile, types);
        Ok(())
    }

    /// Planned nodes may grow past their aim when nothing else is possible.
    pub(super) fn beyond(
        &mut self,
        pod: usize,
        class: &Class,
        variant: &Variant,
        wants: &Wants,
        cursor: &mut Cursor,
    ) -> bool {
        let kinds = self.suitable(&cursor.draft_kinds, wants);
        if kinds.is_empty() {
            return false;
        }
        let rule = cursor.rule.expect("a cursor is prepared before it is used");
        let mut from = 0;
        loop {
            let gone = [&cursor.beyond, &self.cursors.broken[rule].drafts];
            let Some(at) = self.rooms.next(from, None, &kinds, gone) else { return false };
            match self.put_where_allowed(pod, at, (class, variant, wants), rule, true) {
                Ok(()) => return true,
                Err(Refused::Forever) => cursor.beyond.set(at),
                Err(Refused::ForNow) => {}
            }
            from = at + 1;
        }
    }
}
