//! NodePools in dense form: what their nodes' labels may be, which daemons come to them, and what their limits leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::facts::Pool;
use crate::core::labels;
use crate::core::requirements::{Requirement, Requirements, ValueSet};
use crate::core::resources::ResourceName;

use super::algebra::{ProfileId, Source, narrow};
use super::daemons::Daemons;
use super::interner::KeyId;
use super::least::Least;
use super::masks::Mask;
use super::reason::Reason;
use super::shelf::{Amounts, Sets, subtract};
use super::world::World;

/// What a pool's limits leave within a pass.
#[derive(Clone)]
pub(super) struct Room {
    /// Per resource of the problem; nothing where there is no limit.
    pub(super) resources: Vec<Option<i64>>,
    /// Nodes, in whole numbers.
    pub(super) nodes: Option<i64>,
}

/// A pool that nodes can be made from.
#[derive(Clone)]
pub(super) struct PoolSite {
    pub(super) fact: Arc<Pool>,
    pub(super) shelf: usize,
    pub(super) base: ProfileId,
    pub(super) taints: u32,
    pub(super) daemons: Arc<Daemons>,
    pub(super) room: Room,
    /// How many values of which labels its NodeClaims must leave open.
    pub(super) least: Least,
}

/// The label of the NodeClass, and labels that a node of this pool will have.
pub(super) fn template(pool: &Pool) -> Requirements {
    let mut all = Requirements::from_written(&pool.template.requirements);
    all.add_all(&Requirements::from_labels(&pool.template.labels));
    all.add(&labels::NODEPOOL.into(), &ValueSet::of([pool.name.as_str()]));
    all.add(&pool.template.class.label().into(), &ValueSet::of([Arc::clone(&pool.template.class.name)]));
    // Only while planning, so that daemons which wait for these labels are counted.
    all.add(&labels::REGISTERED.into(), &ValueSet::of(["true"]));
    all.add(&labels::INITIALIZED.into(), &ValueSet::of(["true"]));
    all
}

/// A requirement as people read it.
fn text(line: &Requirement) -> String {
    format!("{} {}", line.key, ValueSet::from_written(line))
}

impl World<'_> {
    /// Makes a pool usable, or notes why it is not.
    pub(super) fn open_pool(&mut self, pool: &Arc<Pool>, shelf: usize) {
        // The written lines rather than the folded sets: a NotIn beside an Exists must keep "may not be absent".
        let fixed: Vec<Requirement> = template(pool)
            .iter()
            .filter(|(key, set)| set.single().is_some() && !pool.template.requirements.iter().any(|r| r.key == **key))
            .flat_map(|(key, set)| set.to_written(key))
            .collect();
        let labelled = Requirements::from_labels(&pool.template.labels).to_written();
        // What no instance type says keeps out nobody; only, no node has the label.
        let is_told = |line: &&Requirement| !self.is_untold(shelf, &line.key);
        let required = pool.template.requirements.iter().filter(is_told);
        let lines: Vec<&Requirement> = required.chain(&fixed).chain(&labelled).collect();
        let base = match self.base(&lines, shelf) {
            Ok(base) => base,
            Err(key) => {
                let key = Arc::clone(&self.algebra.universe.key(key).name);
                self.unusable.push(Reason::PoolContradiction { pool: pool.name.clone(), key });
                return;
            }
        };
        let possible = self.algebra.profile(base).possible();
        if possible.is_empty() {
            let without = self.without_types(pool, &lines, shelf);
            self.unusable.push(Reason::NoTypes { pool: pool.name.clone(), without });
            return;
        }
        let mut min_values: BTreeMap<KeyId, u32> = BTreeMap::new();
        for requirement in &pool.template.requirements {
            if let (Some(key), Some(least)) = (self.algebra.universe.find(&requirement.key), requirement.min_values) {
                let known = min_values.entry(key).or_default();
                *known = least.max(*known);
            }
        }
        let least: Least = min_values.into_iter().collect();
        if let Err((key, wanted, found)) = self.variety(shelf, base, &possible, &least)
            && !self.problem.settings.lower_min_values
        {
            let key = Arc::clone(&self.algebra.universe.key(key).name);
            self.unusable.push(Reason::MinValues { pool: pool.name.clone(), key, wanted, found });
            return;
        }
        let taints = self.tolerance.taints(pool.template.taints.clone());
        let daemons = Arc::new(self.daemons_of(base, taints, shelf));
        let limit = |name: &ResourceName| pool.limits.mentioned(name);
        let room = Room {
            resources: self.dimensions.0.iter().map(limit).collect(),
            nodes: limit(&ResourceName::nodes()).map(|milli| milli.div_euclid(1000)),
        };
        self.pools.push(PoolSite { fact: Arc::clone(pool), shelf, base, taints, daemons, room, least });
    }

    /// Whether this is a well-known key of which no instance type of a shelf says anything.
    pub(super) fn is_untold(&self, shelf: usize, key: &str) -> bool {
        let key = self.algebra.universe.find(key);
        key.is_some_and(|key| self.algebra.shelves[shelf].untold.contains(&key))
    }

    /// What nodes may be that meet all lines, or the key on which these exclude each other.
    fn base(&mut self, lines: &[&Requirement], shelf: usize) -> Result<ProfileId, KeyId> {
        let mut sets = Sets::new();
        for (key, domain) in lines.iter().filter_map(|line| self.algebra.universe.requirement(line)) {
            narrow(&mut sets, &self.algebra.universe, key, &domain)?;
        }
        Ok(self.algebra.add_profile(Source::Shelf(super::interner::number(shelf)), sets))
    }

    /// The requirements and labels that leave a pool no instance type that can be had, and how many there would be without each: none where it
    /// takes all of them together. Nothing when there is no type whatever the pool requires.
    fn without_types(&mut self, pool: &Pool, lines: &[&Requirement], shelf: usize) -> Vec<(Arc<str>, usize)> {
        let template = &pool.template;
        let own =
            |key: &Arc<str>| template.labels.contains_key(key) || template.requirements.iter().any(|r| r.key == *key);
        let all: BTreeSet<&Arc<str>> = lines.iter().map(|line| &line.key).filter(|key| own(key)).collect();
        let all: Vec<&Arc<str>> = all.into_iter().collect();
        let mut types = |kept: &[&Arc<str>]| {
            let held: Vec<&Requirement> =
                lines.iter().filter(|line| !all.contains(&&line.key) || kept.contains(&&line.key)).copied().collect();
            self.base(&held, shelf).map_or(0, |base| self.algebra.profile(base).possible().count())
        };
        let named = super::facts::fewest(&all, |kept| types(kept) > 0).unwrap_or_default();
        let without = |key: &Arc<str>| {
            let rest: Vec<&Arc<str>> = all.iter().filter(|other| **other != key).copied().collect();
            let mut written: Vec<String> =
                lines.iter().filter(|line| line.key == *key).map(|line| text(line)).collect();
            written.dedup();
            (written.join(" and ").into(), types(&rest))
        };
        named.into_iter().map(without).collect()
    }

    /// The types of `mask` whose capacity the pool's limits still allow.
    pub(super) fn within_limits(&self, pool: usize, mask: &Mask) -> Mask {
        let site = &self.pools[pool];
        let shelf = &self.algebra.shelves[site.shelf];
        if site.room.nodes.is_some_and(|nodes| nodes <= 0) {
            return Mask::empty(shelf.types.len());
        }
        let mut allowed = mask.clone();
        shelf.at_most(&mut allowed, &site.room.resources);
        allowed
    }

    /// The largest capacity among the types of `mask`: what a NodeClaim that lists them may come to use of the limits.
    pub(super) fn largest(&self, pool: usize, mask: &Mask) -> Amounts {
        self.algebra.shelves[self.pools[pool].shelf].most(mask)
    }
}

impl Room {
    /// Whether any resource is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.resources.iter().any(Option::is_some)
    }

    pub(super) fn charge(&mut self, capacity: &[i64], nodes: i64) {
        for (room, has) in self.resources.iter_mut().zip(capacity) {
            if let Some(room) = room {
                *room = room.saturating_sub(*has);
            }
        }
        self.nodes = self.nodes.map(|n| n.saturating_sub(nodes));
    }

    /// Gives back what was charged for nodes.
    pub(super) fn release(&mut self, capacity: &[i64], nodes: i64) {
        for (room, has) in self.resources.iter_mut().zip(capacity) {
            if let Some(room) = room {
                *room = room.saturating_add(*has);
            }
        }
        self.nodes = self.nodes.map(|n| n.saturating_add(nodes));
    }

    /// Charges less than before: the NodeClaim lost some of its larger types.
    pub(super) fn refund(&mut self, before: &[i64], now: &[i64]) {
        let mut less: Amounts = before.into();
        subtract(&mut less, now);
        for (room, less) in self.resources.iter_mut().zip(&less) {
            if let Some(room) = room {
                *room = room.saturating_add(*less);
            }
        }
    }
}
