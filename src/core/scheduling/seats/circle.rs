//! Who is seated together with a pod that was refused.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::scheduling::between::only;
use crate::core::scheduling::classes::Class;
use crate::core::scheduling::place::Wants;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::rooms::Kind;
use crate::core::scheduling::solve::Run;
use crate::core::scheduling::topology::CounterId;

/// So many pods are seated together at most.
const PODS: usize = 7;
/// So many of a class, besides those that are refused.
const ALIKE: usize = 3;
/// So many hosts are looked at, and so many of one kind for one pod.
const HOSTS: usize = 12;
const OF_KIND: usize = 2;

/// A refused pod, and who may be in its way.
pub(super) struct Circle {
    /// The refused pod is the first.
    pub(super) pods: Vec<usize>,
    pub(super) hosts: Vec<usize>,
}

/// Where pods are in a plan: the NodePools of new nodes, and hosts.
struct Seated {
    on_pool: Vec<(usize, usize)>,
    on_host: Vec<(usize, usize)>,
}

impl Run<'_> {
    /// Whoever minds the pod or sits where it could, at first or second hand; nothing when there could be no seat for it whoever sits where.
    pub(super) fn circle(&mut self, pod: usize, plan: &Plan, free: &FxHashSet<usize>) -> Option<Circle> {
        let seated = self.seated_by(plan);
        let mut circle = Circle { pods: Vec::new(), hosts: Vec::new() };
        let mut next = VecDeque::from([pod]);
        while let Some(one) = next.pop_front().filter(|_| circle.pods.len() < PODS) {
            if circle.pods.contains(&one) || !free.contains(&one) {
                continue;
            }
            let (hosts, pools) = (self.fitting_hosts(one), self.fitting_pools(one));
            if hosts.is_empty() && pools.is_empty() {
                if one == pod {
                    return None;
                }
                continue;
            }
            circle.pods.push(one);
            let own = seated.on_host.iter().filter(|(other, _)| *other == one).map(|(_, host)| *host);
            for host in own.chain(hosts.iter().copied()) {
                if circle.hosts.len() < HOSTS && !circle.hosts.contains(&host) {
                    circle.hosts.push(host);
                }
            }
            next.extend(self.minded(one));
            let limited = |pool: &usize| {
                let room = &self.world.pools[*pool].room;
                room.is_limited() || room.nodes.is_some()
            };
            let on_hosts = seated.on_host.iter().filter(|(_, host)| hosts.contains(host));
            let on_pools = seated.on_pool.iter().filter(|(_, pool)| pools.contains(pool) && limited(pool));
            next.extend(on_hosts.chain(on_pools).map(|(other, _)| *other));
        }
        circle.hosts.sort_unstable();
        (!circle.pods.is_empty()).then_some(circle)
    }

    fn seated_by(&self, plan: &Plan) -> Seated {
        let world = &self.world;
        let of_uid: FxHashMap<_, usize> = world.pods.iter().enumerate().map(|(at, pod)| (&pod.uid, at)).collect();
        let mut seated = Seated { on_pool: Vec::new(), on_host: Vec::new() };
        for claim in &plan.claims {
            let Some(pool) = world.pools.iter().position(|pool| pool.fact.name == claim.draft.pool) else { continue };
            seated.on_pool.extend(claim.pods.iter().filter_map(|pod| Some((*of_uid.get(&pod.uid)?, pool))));
        }
        for placed in &plan.existing {
            let by_node = placed.node.as_ref().and_then(|name| world.layout.by_node.get(name));
            let by_claim = || placed.claim.as_ref().and_then(|name| world.layout.by_claim.get(name));
            let Some(host) = by_node.or_else(by_claim) else { continue };
            seated.on_host.extend(placed.pods.iter().filter_map(|pod| Some((*of_uid.get(&pod.uid)?, *host as usize))));
        }
        seated
    }

    /// Hosts that would do if no other pod of the question were there or counted, a few of each kind.
    fn fitting_hosts(&mut self, pod: usize) -> Vec<usize> {
        self.with_class(pod, |run, class| {
            let mut fitting: Vec<usize> = Vec::new();
            let mut kinds: Vec<(Kind, usize)> = Vec::new();
            for variant in &class.variants {
                let bare = only(class, variant, &[]).0;
                for at in 0..run.world.hosts.len() {
                    let host = &run.world.hosts[at];
                    let kind = host.kind();
                    let known = kinds.iter().position(|(other, _)| *other == kind);
                    if fitting.len() >= HOSTS {
                        return fitting;
                    }
                    if known.is_some_and(|known| kinds[known].1 >= OF_KIND)
                        || fitting.contains(&at)
                        || run.try_host(at, class, &bare, &Wants::new()).is_err()
                    {
                        continue;
                    }
                    fitting.push(at);
                    match known {
                        Some(known) => kinds[known].1 += 1,
                        None => kinds.push((kind, 1)),
                    }
                }
            }
            fitting
        })
    }

    /// Pools that could make a node for the pod, whoever is where.
    fn fitting_pools(&mut self, pod: usize) -> Vec<usize> {
        self.with_class(pod, |run, class| {
            let all = 0..run.world.pools.len();
            let fits = |pool: &usize| {
                class.variants.iter().any(|variant| {
                    let taints = run.world.pools[*pool].taints;
                    let bare = only(class, variant, &[]).0;
                    run.world.tolerance.tolerates(class.tolerations, taints, variant.ignore_soft_taints)
                        && run.could_open(*pool, class, &bare, &Wants::new())
                })
            };
            all.filter(fits).collect()
        })
    }

    /// Whether such a pod gets no node of later pools because this one has reserved capacity for it, or will have: others in the circle may take what
    /// is free.
    pub(super) fn has_to_wait(&mut self, pod: usize, pool: usize) -> bool {
        let base = self.world.pools[pool].base;
        self.world.problem.settings.wait_for_reserved
            && self.with_class(pod, |run, class| {
                class.variants.iter().any(|variant| {
                    let joined = run.world.algebra.join(base, variant.term);
                    joined.is_some_and(|joined| run.lives_on_reserved(pool, joined, class))
                })
            })
    }

    /// Pods that mind this one or are minded by it, a few of each class.
    fn minded(&self, pod: usize) -> Vec<usize> {
        let classes = &self.world.classes;
        let own = &classes[self.world.class_of[pod] as usize];
        let asked = asked(own);
        let minds = |other: &Class| {
            other.touches.iter().any(|id| asked.contains(id))
                || self::asked(other).iter().any(|id| own.touches.contains(id))
        };
        let mut many = vec![0_usize; classes.len()];
        let minded: Vec<bool> = classes.iter().map(minds).collect();
        let of = &self.world.class_of;
        let mut few = |at: &usize| {
            let class = of[*at] as usize;
            many[class] += 1;
            minded[class] && many[class] <= ALIKE
        };
        (0..self.world.pods.len()).filter(|at| few(at)).collect()
    }
}

/// What a class looks at.
fn asked(class: &Class) -> Vec<CounterId> {
    let mut all: Vec<CounterId> = class.repelled.iter().map(|(_, id)| *id).collect();
    all.extend(class.courtesies.iter().map(|spread| spread.counter));
    for variant in &class.variants {
        all.extend(variant.spreads.iter().map(|spread| spread.counter));
        all.extend(variant.apart.iter().map(|(_, id)| *id));
        all.extend(variant.affinities.iter().flat_map(|one| one.counters.iter().map(|(_, id)| *id)));
    }
    all
}
