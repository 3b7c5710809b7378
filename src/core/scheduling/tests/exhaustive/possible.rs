//! Every plan of a small world. What is possible is told here once more, as kube-scheduler's filters have it, and by nothing that the solver or the
//! checker use: nodes are bought, and then there is an order in which each pod finds its node open.

use super::super::super::Plan;
use super::super::build::*;
use super::world::{HERE, OLD, RUNNING, Site, Small, TYPES, World};
use crate::core::labels::ZONE;

/// CPU of a node that the system takes.
const OVERHEAD: i64 = 100;

/// Nodes, and who is where.
struct Seats<'w> {
    world: &'w World,
    /// The pods, after them the one that runs, if one does.
    all: Vec<Small>,
    /// The pool and the zone of each node; the first is the one that is there, of no pool.
    nodes: Vec<(Option<usize>, usize)>,
    /// The node of each pod.
    of: Vec<usize>,
    /// Zones that nodes are in or could be bought in: all count, for a later pod may open them.
    domains: Vec<usize>,
}

impl<'w> Seats<'w> {
    fn new(world: &'w World) -> Self {
        let mut all = world.pods.clone();
        all.extend(world.running.map(|app| Small { cpu: RUNNING, app, ..Small::default() }));
        let is_domain =
            |zone: &usize| *zone == 0 || world.pools.iter().any(|pool| pool.zone.is_none_or(|own| own == *zone));
        Self { world, all, nodes: vec![(None, 0)], of: Vec::new(), domains: (0..HERE).filter(is_domain).collect() }
    }

    fn zone(&self, pod: usize) -> usize {
        self.nodes[self.of[pod]].1
    }

    /// Whether kube-scheduler would bind a pod to its node when these are bound.
    fn opens(&self, bound: u32, at: usize) -> bool {
        let (all, of) = (&self.all, &self.of);
        let (one, seat, here) = (all[at], of[at], self.zone(at));
        let there = || (0..all.len()).filter(|other| bound >> other & 1 == 1);
        let count = |app: usize, zone: usize| {
            there().filter(|other| all[*other].app == app && self.zone(*other) == zone).count()
        };
        let apart = |a: usize, b: usize| {
            all[a].off_node == Some(all[b].app) && of[a] == of[b]
                || all[a].off_zone == Some(all[b].app) && self.zone(a) == self.zone(b)
        };
        if one.port && there().any(|other| all[other].port && of[other] == seat)
            || there().any(|other| apart(at, other) || apart(other, at))
        {
            return false;
        }
        if one.spreads {
            let own = self.domains.iter().filter(|zone| one.zone.is_none_or(|own| own == **zone));
            let least = own.map(|zone| count(one.app, *zone)).min();
            if count(one.app, here) > least.unwrap_or(0) {
                return false;
            }
        }
        // Whom several terms mean must be meant by all of them.
        let meant: Vec<usize> = one.near.into_iter().chain(one.beside).collect();
        let is_meant = |app: usize| meant.iter().all(|whom| *whom == app);
        let first = is_meant(one.app) && !there().any(|other| is_meant(all[other].app));
        let mut those = there().filter(|other| is_meant(all[*other].app));
        let near = one.near.is_none() || those.clone().any(|other| self.zone(other) == here);
        let beside = one.beside.is_none() || those.any(|other| of[other] == seat);
        first || near && beside
    }

    /// Whether there is an order in which each pod can be bound.
    fn has_order(&self) -> bool {
        let waiting = self.world.pods.len();
        let whole = (1_u32 << self.all.len()) - 1;
        let mut reached = vec![false; whole as usize + 1];
        let start = whole & !((1 << waiting) - 1);
        reached[start as usize] = true;
        for bound in start..whole {
            for at in (0..waiting).filter(|at| bound >> at & 1 == 0) {
                if reached[bound as usize] && self.opens(bound, at) {
                    reached[(bound | 1 << at) as usize] = true;
                }
            }
        }
        reached[whole as usize]
    }

    /// Whether each pod could be bound again where it is.
    fn stays(&self) -> bool {
        let whole = (1_u32 << self.all.len()) - 1;
        (0..self.world.pods.len()).all(|at| self.opens(whole & !(1 << at), at))
    }

    /// Whether whoever may be alone as long as nobody is there whom it means is bound before those: on the node that is there when its turn comes
    /// first, or together with one of them, who needs nobody.
    fn is_alone_in_time(&self) -> bool {
        let (all, of) = (&self.all, &self.of);
        let waiting = self.world.pods.len();
        let terms = |at: usize| (all[at].near, all[at].beside);
        (0..waiting).all(|at| {
            let one = all[at];
            let meant: Vec<usize> = one.near.into_iter().chain(one.beside).collect();
            let is_meant = |other: &usize| meant.iter().all(|app| *app == all[*other].app);
            if meant.is_empty() || !is_meant(&at) || (waiting..all.len()).any(|other| is_meant(&other)) {
                return true;
            }
            let is_here = |other: &usize| {
                (one.near.is_none() || self.zone(*other) == self.zone(at))
                    && (one.beside.is_none() || of[*other] == of[at])
            };
            let (alike, others): (Vec<usize>, Vec<usize>) =
                (0..waiting).filter(is_meant).partition(|other| terms(*other) == terms(at));
            let turn = |other: usize| (of[other] != 0, other);
            let first = alike.into_iter().filter(is_here).map(turn).min();
            let free = self.free(at);
            let other = others.iter().copied().filter(|other| free[*other]).map(turn).min();
            others.iter().any(is_here) || first.zip(other).is_none_or(|(first, other)| !first.0 && first < other)
        })
    }

    /// Who is bound sooner or later without pods that have the affinity of this one.
    fn free(&self, at: usize) -> Vec<bool> {
        let all = &self.all;
        let terms = |at: usize| (all[at].near, all[at].beside);
        let means = |one: usize, other: usize| {
            let meant = [all[one].near, all[one].beside].into_iter().flatten().all(|app| app == all[other].app);
            meant
                && (all[one].near.is_none() || self.zone(one) == self.zone(other))
                && (all[one].beside.is_none() || self.of[one] == self.of[other])
        };
        let mut free: Vec<bool> = (0..all.len())
            .map(|one| one >= self.world.pods.len() || terms(one) != terms(at) && means(one, one))
            .collect();
        for _ in 0..all.len() {
            for one in (0..all.len()).filter(|one| terms(*one) != terms(at)) {
                free[one] |= (0..all.len()).any(|other| free[other] && means(one, other));
            }
        }
        free
    }

    /// Whether a node may have such a pod, as far as its labels and taints say.
    fn suits(&self, (pool, zone): (Option<usize>, usize), pod: Small) -> bool {
        let old = Site { arch: Some(0), ..Site::default() };
        let site = pool.map_or(old, |pool| self.world.pools[pool]);
        let open = |wanted: Option<usize>, own: Option<usize>| wanted.is_none() || own.is_none() || wanted == own;
        pod.zone.is_none_or(|own| own == zone)
            && (pod.tier.is_none() || pod.tier == site.tier)
            && open(pod.arch, site.arch)
            && (pod.tolerates || !site.tainted)
    }

    /// What the nodes cost; nothing when one of them cannot be, or not beside the others.
    fn price(&self) -> Option<f64> {
        let mut total = 0.0;
        let mut cores = vec![0; self.world.pools.len()];
        for (at, (pool, _)) in self.nodes.iter().enumerate() {
            let there = || (0..self.all.len()).filter(|pod| self.of[*pod] == at).map(|pod| self.all[pod]);
            let load: i64 = there().map(|pod| pod.cpu).sum();
            let Some(pool) = pool else {
                if load > OLD {
                    return None;
                }
                continue;
            };
            let mut arches = there().filter_map(|pod| pod.arch);
            let first = arches.next();
            if arches.any(|arch| Some(arch) != first) {
                return None;
            }
            let (_, many, price) = TYPES.iter().find(|(_, cores, _)| load <= cores * 1000 - OVERHEAD)?;
            cores[*pool] += many;
            total += price;
        }
        let within = |at: usize| {
            let Site { nodes, cores: most, .. } = self.world.pools[at];
            let many = self.nodes.iter().filter(|(pool, _)| *pool == Some(at)).count();
            nodes.is_none_or(|most| many <= usize::try_from(most).unwrap()) && most.is_none_or(|most| cores[at] <= most)
        };
        (0..cores.len()).all(within).then_some(total)
    }

    /// Tries all nodes for the pods that have none yet.
    fn extend(&mut self, best: &mut Option<f64>) {
        let Some(pod) = self.world.pods.get(self.of.len()).copied() else {
            self.of.extend(self.world.running.map(|_| 0));
            if let Some(total) = self.price().filter(|total| best.is_none_or(|best| *total < best))
                && self.has_order()
                && self.stays()
                && self.is_alone_in_time()
            {
                *best = Some(total);
            }
            self.of.truncate(self.world.pods.len());
            return;
        };
        for node in 0..self.nodes.len() {
            if self.suits(self.nodes[node], pod) {
                self.of.push(node);
                self.extend(best);
                self.of.pop();
            }
        }
        for pool in 0..self.world.pools.len() {
            let own = self.world.pools[pool].zone;
            for zone in (0..HERE).filter(|zone| own.is_none_or(|own| own == *zone)) {
                let node = (Some(pool), zone);
                if self.suits(node, pod) {
                    self.of.push(self.nodes.len());
                    self.nodes.push(node);
                    self.extend(best);
                    self.nodes.pop();
                    self.of.pop();
                }
            }
        }
    }
}

/// The price of the cheapest plan that places all pods; nothing when there is none.
pub(super) fn cheapest(world: &World) -> Option<f64> {
    let mut best = None;
    Seats::new(world).extend(&mut best);
    best
}

/// Whether the pods of a plan can be bound one after the other where it has them, on the nodes that there then are.
pub(super) fn can_be_bound(world: &World, scene: &Scene, plan: &Plan) -> bool {
    let mut seats = Seats::new(world);
    seats.of = vec![0; seats.all.len()];
    for (at, claim) in plan.claims.iter().enumerate() {
        // A node that may be anywhere is in the zone whose turn it is to be thought of: nobody on it looks at zones.
        let zone = pinned(plan, at, ZONE).map_or(0, |name| ZONES.iter().position(|zone| *zone == name).unwrap());
        seats.nodes.push((None, zone));
        for one in &claim.pods {
            seats.of[scene.pods.iter().position(|pod| pod.uid == one.uid).unwrap()] = seats.nodes.len() - 1;
        }
    }
    seats.domains = seats.nodes.iter().map(|(_, zone)| *zone).collect();
    seats.domains.sort_unstable();
    seats.domains.dedup();
    seats.has_order()
}
