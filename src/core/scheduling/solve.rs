//! The entry: pods in the order of placement, each on what exists, on what is planned, or on something new.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::ids::{ClaimName, NodeName};

use super::classes::{Class, Variant};
use super::draft::Draft;
use super::interner::number;
use super::place::{Refused, Wants};
use super::plan::{PlacedOn, Plan, Refusal};
use super::problem::Problem;
use super::reason::Reason;
use super::shelf::{add, subtract};
use super::world::World;

/// Finds a place for every pod, or says why there is none.
///
/// The same problem gives the same plan, whatever the order of its pods.
pub fn solve(problem: &Problem<'_>) -> Plan {
    let mut run = Run::new(World::new(problem));
    let left = run.place_all();
    run.finish(&left)
}

/// Candidates that have not refused a class for good.
struct Cursor {
    hosts: Vec<u32>,
    drafts: Vec<u32>,
    /// Drafts from this number on have not been looked at.
    next: usize,
}

/// A solve under way.
pub(super) struct Run<'p> {
    pub(super) world: World<'p>,
    pub(super) drafts: Vec<Draft>,
    /// Pods placed on each host.
    pub(super) on_hosts: Vec<Vec<usize>>,
    cursors: FxHashMap<(u32, usize), Cursor>,
    /// Number of placements so far.
    placements: u64,
    /// When each class failed last.
    failed: Vec<Option<u64>>,
}

impl<'p> Run<'p> {
    fn new(world: World<'p>) -> Self {
        Self {
            on_hosts: vec![Vec::new(); world.hosts.len()],
            failed: vec![None; world.classes.len()],
            world,
            drafts: Vec::new(),
            cursors: FxHashMap::default(),
            placements: 0,
        }
    }

    pub(super) fn host_of_draft(&self, draft: usize) -> u32 {
        number(self.world.hosts.len() + draft)
    }

    /// Places pods until a whole round changes nothing; returns those that are left.
    fn place_all(&mut self) -> Vec<usize> {
        let mut waiting = super::order::order(&self.world);
        waiting = self.return_planned(waiting);
        loop {
            let before = self.placements;
            waiting.retain(|pod| !self.place(*pod));
            if waiting.is_empty() || self.placements == before {
                return waiting;
            }
        }
    }

    /// Pods that were promised a node or a NodeClaim go back there before anybody else comes.
    fn return_planned(&mut self, waiting: Vec<usize>) -> Vec<usize> {
        let mut by_node: FxHashMap<NodeName, usize> = FxHashMap::default();
        let mut by_claim: FxHashMap<ClaimName, usize> = FxHashMap::default();
        for (at, host) in self.world.hosts.iter().enumerate().filter(|(_, host)| host.usable) {
            by_node.extend(host.node.iter().map(|name| (name.clone(), at)));
            by_claim.extend(host.claim.iter().map(|name| (name.clone(), at)));
        }
        waiting
            .into_iter()
            .filter(|pod| {
                let fact = &self.world.pods[*pod];
                let claim = self.world.problem.snapshot.planned.get(&fact.uid).and_then(|name| by_claim.get(name));
                let node = fact.nominated.as_ref().filter(|_| fact.node.is_none()).and_then(|name| by_node.get(name));
                claim.or(node).copied().is_none_or(|host| !self.place_at(*pod, host))
            })
            .collect()
    }

    fn place_at(&mut self, pod: usize, host: usize) -> bool {
        self.with_class(pod, |run, class| {
            class.variants.iter().any(|variant| {
                let fine =
                    run.wants(class, variant).is_some_and(|wants| run.try_host(host, class, variant, &wants).is_ok());
                if fine {
                    run.put_on_host(pod, host, class);
                }
                fine
            })
        })
    }

    /// Lends the class out while the run changes.
    fn with_class<T>(&mut self, pod: usize, work: impl FnOnce(&mut Self, &Class) -> T) -> T {
        let at = self.world.class_of[pod] as usize;
        let classes = std::mem::take(&mut self.world.classes);
        let answer = work(self, &classes[at]);
        self.world.classes = classes;
        answer
    }

    fn place(&mut self, pod: usize) -> bool {
        let which = self.world.class_of[pod];
        if self.failed[which as usize].is_some_and(|when| when == self.placements) {
            return false;
        }
        let placed = self.with_class(pod, |run, class| {
            if class.shape.broken.is_some() || run.failed[which as usize].is_some() && !class.is_topological() {
                return false;
            }
            (0..class.variants.len()).any(|at| run.place_variant(pod, which, at, class))
        });
        self.failed[which as usize] = if placed { None } else { Some(self.placements) };
        placed
    }

    fn place_variant(&mut self, pod: usize, which: u32, at: usize, class: &Class) -> bool {
        let variant = &class.variants[at];
        let Some(wants) = self.wants(class, variant) else { return false };
        let mut cursor = self.cursors.remove(&(which, at)).unwrap_or_else(|| Cursor {
            hosts: (0..number(self.world.hosts.len())).filter(|h| self.world.hosts[*h as usize].usable).collect(),
            drafts: Vec::new(),
            next: 0,
        });
        cursor.drafts.extend(number(cursor.next)..number(self.drafts.len()));
        cursor.next = self.drafts.len();
        let placed = self.on_host(pod, class, variant, &wants, &mut cursor.hosts)
            || self.as_promised(pod, class, variant, &wants)
            || self.on_draft(pod, class, variant, &wants, &mut cursor.drafts);
        self.cursors.insert((which, at), cursor);
        placed || self.on_new(pod, class, variant, &wants) || self.beyond(pod, class, variant, &wants)
    }

    fn on_host(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants, hosts: &mut Vec<u32>) -> bool {
        let mut kept = 0;
        let mut found = false;
        for at in 0..hosts.len() {
            let host = hosts[at];
            if !found {
                match self.try_host(host as usize, class, variant, wants) {
                    Ok(()) => {
                        self.put_on_host(pod, host as usize, class);
                        found = true;
                    }
                    Err(Refused::Forever) => continue,
                    Err(Refused::ForNow) => {}
                }
            } else if kept == at {
                return true;
            }
            hosts[kept] = host;
            kept += 1;
        }
        hosts.truncate(kept);
        found
    }

    fn on_draft(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants, drafts: &mut Vec<u32>) -> bool {
        let mut kept = 0;
        let mut found = false;
        for at in 0..drafts.len() {
            let draft = drafts[at];
            if !found {
                match self.try_draft(draft as usize, class, variant, wants, false) {
                    Ok((profile, types)) => {
                        self.put_on_draft(pod, draft as usize, class, profile, types);
                        found = true;
                    }
                    Err(Refused::Forever) => continue,
                    Err(Refused::ForNow) => {}
                }
            } else if kept == at {
                return true;
            }
            drafts[kept] = draft;
            kept += 1;
        }
        drafts.truncate(kept);
        found
    }

    /// The planned nodes that hold room ready for such pods.
    fn as_promised(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants) -> bool {
        let mut at = 0;
        while let Some(draft) = self.world.demand.entries[class.demand].drafts.get(at).map(|draft| *draft as usize) {
            if !self.drafts[draft].expects(class.demand) {
                self.world.demand.entries[class.demand].drafts.remove(at);
                continue;
            }
            if let Ok((profile, types)) = self.try_draft(draft, class, variant, wants, false) {
                self.put_on_draft(pod, draft, class, profile, types);
                return true;
            }
            at += 1;
        }
        false
    }

    /// Planned nodes may grow past their aim when nothing else is possible.
    fn beyond(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants) -> bool {
        for draft in 0..self.drafts.len() {
            if let Ok((profile, types)) = self.try_draft(draft, class, variant, wants, true) {
                self.put_on_draft(pod, draft, class, profile, types);
                return true;
            }
        }
        false
    }

    /// Opens a node from the first pool that allows it.
    fn on_new(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants) -> bool {
        let host = self.host_of_draft(self.drafts.len());
        if self.host_allows(class, variant, host).is_err() {
            return false;
        }
        for pool in 0..self.world.pools.len() {
            let (base, taints) = (self.world.pools[pool].base, self.world.pools[pool].taints);
            if !self.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints) {
                continue;
            }
            let Some(joined) = self.world.algebra.join(base, variant.term) else { continue };
            let holding = self.world.holding(
                pool,
                &self.world.algebra.profile(joined).types,
                &class.requests,
                &class.shape.host_ports,
            );
            let types = self.world.within_limits(pool, &holding);
            let types = self.world.attaching(pool, types, host, class);
            if types.is_empty() {
                continue;
            }
            let Some((profile, types)) = self.settle(pool, joined, &types, class, wants) else { continue };
            let (aim, promises) = self.world.aim(pool, profile, &types, class.demand);
            let mut reserved = self.world.zero();
            for (entry, many) in &promises {
                for (total, need) in reserved.iter_mut().zip(&self.world.demand.entries[*entry].requests) {
                    *total = total.saturating_add(need.saturating_mul(i64::from(*many)));
                }
            }
            let charged = self.world.largest(pool, &types);
            self.world.pools[pool].room.charge(&charged, 1);
            self.drafts.push(Draft {
                pool,
                profile,
                requests: self.world.zero(),
                aim,
                promises,
                reserved,
                types: types.clone(),
                ports: Vec::new(),
                charged,
                pods: Vec::new(),
            });
            let at = self.drafts.len() - 1;
            self.world.demand.promise(number(at), &self.drafts[at]);
            self.put_on_draft(pod, at, class, profile, types);
            return true;
        }
        false
    }

    fn put_on_host(&mut self, pod: usize, at: usize, class: &Class) {
        let host = &mut self.world.hosts[at];
        subtract(&mut host.free, &class.requests);
        host.ports.extend(class.shape.host_ports.iter().cloned());
        let (profile, taints) = (host.profile, host.taints);
        self.on_hosts[at].push(pod);
        self.world.attached.put(number(at), class);
        self.record(class, number(at), profile, taints);
        self.world.demand.placed(class.demand, None, &mut self.drafts);
    }

    fn put_on_draft(
        &mut self,
        pod: usize,
        at: usize,
        class: &Class,
        profile: super::algebra::ProfileId,
        types: super::masks::Mask,
    ) {
        let draft = &mut self.drafts[at];
        let pool = draft.pool;
        add(&mut draft.requests, &class.requests);
        draft.ports.extend(class.shape.host_ports.iter().cloned());
        draft.pods.push(pod);
        draft.profile = profile;
        if draft.types != types {
            draft.types = types;
            let now = self.world.largest(pool, &draft.types);
            self.world.pools[pool].room.refund(&draft.charged, &now);
            draft.charged = now;
        }
        let (host, taints) = (self.host_of_draft(at), self.world.pools[pool].taints);
        self.world.attached.put(host, class);
        self.record(class, host, profile, taints);
        self.world.demand.placed(class.demand, Some(at), &mut self.drafts);
    }

    fn record(&mut self, class: &Class, host: u32, profile: super::algebra::ProfileId, taints: u32) {
        for id in &class.touches {
            self.world.count(*id, host, profile, taints);
        }
        self.placements += 1;
    }

    /// The plan, and reasons for the pods that are left.
    fn finish(mut self, left: &[usize]) -> Plan {
        let mut plan = Plan::default();
        let mut refused: Vec<(usize, Vec<Reason>)> = Vec::new();
        let mut reasons: FxHashMap<u32, Vec<Reason>> = FxHashMap::default();
        for pod in left {
            let class = self.world.class_of[*pod];
            let why = reasons.entry(class).or_insert_with(|| self.with_class(*pod, Self::explain));
            refused.push((*pod, why.clone()));
        }
        for (at, pods) in self.on_hosts.iter().enumerate().filter(|(_, pods)| !pods.is_empty()) {
            let host = &self.world.hosts[at];
            let pods = pods.iter().map(|pod| Arc::clone(&self.world.pods[*pod])).collect();
            plan.existing.push(PlacedOn { claim: host.claim.clone(), node: host.node.clone(), pods });
        }
        let mut names = super::name::Names::new(self.world.problem);
        for draft in &self.drafts {
            match super::finish::finished(&self.world, draft, &mut names) {
                Ok(claim) => plan.claims.push(claim),
                Err(reason) => refused.extend(draft.pods.iter().map(|pod| (*pod, vec![reason.clone()]))),
            }
        }
        refused.sort_by_key(|(pod, _)| *pod);
        plan.refused = refused
            .into_iter()
            .map(|(pod, reasons)| Refusal { pod: self.world.pods[pod].uid.clone(), reasons })
            .collect();
        // An empty sum of floats is -0.0.
        plan.price = plan.claims.iter().map(|claim| claim.price).fold(0.0, |sum, price| sum + price);
        plan
    }
}
