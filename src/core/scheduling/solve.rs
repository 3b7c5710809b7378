//! A solve: pods in the order of placement, each on what exists, on what is planned, or on something new.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::algebra::ProfileId;
use super::classes::{Class, Variant};
use super::company::Company;
use super::cursor::{Cursor, Cursors};
use super::draft::{Caps, Draft};
use super::draws::Draw;
use super::interner::{KeyId, number};
use super::masks::Mask;
use super::order::{by_size, order};
use super::partners::Waiting;
use super::place::Wants;
use super::plan::{PlacedOn, Plan, Refusal};
use super::reason::Reason;
use super::rooms::{Kind, Rooms};
use super::seniors::Seniors;
use super::shelf::{add, subtract};
use super::world::World;
use crate::core::ids::PodUid;

/// So many pods that come before all others are tried again and again.
const FEW: usize = 64;

/// A solve under way.
pub(super) struct Run<'p> {
    pub(super) world: World<'p>,
    pub(super) drafts: Vec<Draft>,
    /// Pods placed on each host.
    pub(super) on_hosts: Vec<Vec<usize>>,
    pub(super) cursors: Cursors,
    /// What planned nodes have left of their aim.
    pub(super) rooms: Rooms,
    /// Number of placements so far.
    placements: u64,
    /// When each class failed last.
    failed: Vec<Option<u64>>,
    /// Pods that were left at the end.
    pub(super) waiting: Vec<Waiting>,
    /// Whether new nodes take whatever comes as long as some type holds it, rather than aim at a size.
    pub(super) is_aimless: bool,
    /// To where pods are drawn for the sake of others, whose affinity means them and who can be nowhere else.
    pub(super) draws: Vec<Draw>,
    /// Who has to be on a node with others and waits for them.
    pub(super) company: Vec<Company>,
    /// Who is to follow the pod that is being placed, and who has followed another before its turn.
    pub(super) invited: Vec<usize>,
    pub(super) followed: FxHashSet<usize>,
    /// Pods whose domain was chosen together with that of others.
    pub(super) dealt: FxHashMap<usize, (KeyId, usize)>,
    /// Whose turn comes before that of others, where pods are taken out of order.
    pub(super) seniors: Seniors,
    /// Whether no node is to be bought at the moment.
    pub(super) buys_nothing: bool,
    /// By class: the variant as which the last node was bought for one of its pods.
    pub(super) bought_as: FxHashMap<u32, usize>,
}

impl<'p> Run<'p> {
    pub(super) fn new(world: World<'p>) -> Self {
        Self {
            on_hosts: vec![Vec::new(); world.hosts.len()],
            failed: vec![None; world.classes.len()],
            cursors: Cursors::new(&world),
            rooms: Rooms::new(world.dimensions.0.len()),
            world,
            drafts: Vec::new(),
            placements: 0,
            waiting: Vec::new(),
            is_aimless: false,
            draws: Vec::new(),
            company: Vec::new(),
            invited: Vec::new(),
            followed: FxHashSet::default(),
            dealt: FxHashMap::default(),
            seniors: Seniors::default(),
            buys_nothing: false,
            bought_as: FxHashMap::default(),
        }
    }

    pub(super) fn host_of_draft(&self, draft: usize) -> u32 {
        number(self.world.hosts.len() + draft)
    }

    /// All pods in the order of placement.
    pub(super) fn in_order(&self) -> Vec<usize> {
        order(&self.world, &by_size(&self.world))
    }

    /// Places pods until a whole round changes nothing; returns those that are left.
    pub(super) fn place_all(&mut self, waiting: Vec<usize>) -> Vec<usize> {
        let waiting = self.return_planned(waiting);
        self.rounds(waiting)
    }

    /// The same with some pods before all others, and those whom their affinity means next: as long as they are few, they are tried again
    /// whenever another has been placed.
    pub(super) fn place_all_after(&mut self, first: &FxHashSet<PodUid>, waiting: Vec<usize>) -> Vec<usize> {
        let meant = self.draw_to(first);
        let waiting = self.return_planned(waiting);
        let is_first = |pod: &usize| first.contains(&self.world.pods[*pod].uid);
        let (mut urgent, mut others): (Vec<usize>, Vec<usize>) = waiting.into_iter().partition(is_first);
        others.sort_by_key(|pod| !self.world.class_at(*pod).touches.iter().any(|id| meant.contains(id)));
        urgent.retain(|pod| !self.place(*pod));
        let mut left = Vec::new();
        for pod in others {
            if !self.place(pod) {
                left.push(pod);
            } else if urgent.len() <= FEW {
                urgent.retain(|pod| !self.place(*pod));
            }
        }
        urgent.extend(left);
        self.rounds(urgent)
    }

    /// The same for pods of which none is promised anything.
    pub(super) fn rounds(&mut self, mut waiting: Vec<usize>) -> Vec<usize> {
        loop {
            let before = self.placements;
            waiting.retain(|pod| !self.place(*pod));
            if waiting.is_empty() {
                return waiting;
            }
            // Only when nothing else can be done: what the others open counts.
            if self.placements == before
                && !self.has_put_off()
                && !self.count_as_the_scheduler(&waiting)
                && !self.place_as_the_scheduler(&mut waiting)
            {
                return waiting;
            }
        }
    }

    /// How many pods have been placed so far.
    pub(super) fn placements(&self) -> u64 {
        self.placements
    }

    /// What could not be placed under other constraints is tried again.
    pub(super) fn forgive(&mut self, class: u32) {
        self.failed[class as usize] = None;
    }

    /// Pods that were promised a node or a NodeClaim go back there before anybody else comes.
    pub(super) fn return_planned(&mut self, waiting: Vec<usize>) -> Vec<usize> {
        let layout = Arc::clone(&self.world.layout);
        let (by_node, by_claim) = (&layout.by_node, &layout.by_claim);
        waiting
            .into_iter()
            .filter(|pod| {
                let fact = &self.world.pods[*pod];
                let claim = self.world.problem.snapshot.planned.get(&fact.uid).and_then(|name| by_claim.get(name));
                let node = fact.nominated.as_ref().filter(|_| fact.node.is_none()).and_then(|name| by_node.get(name));
                let host = claim.or(node).map(|at| *at as usize).filter(|at| self.world.hosts[*at].usable);
                host.is_none_or(|host| !self.place_at(*pod, host))
            })
            .collect()
    }

    fn place_at(&mut self, pod: usize, host: usize) -> bool {
        self.moving(pod, |run, class| {
            class.variants.iter().any(|variant| {
                let fine = run.host_allows(class, variant, number(host)).is_ok()
                    && run
                        .wants(class, variant)
                        .and_then(|wants| run.as_dealt(pod, wants))
                        .is_some_and(|wants| run.try_host(host, class, variant, &wants).is_ok());
                if fine {
                    run.put_on_host(pod, host, class);
                }
                fine
            })
        })
    }

    /// Tries to place a pod; one that is still on a node that goes is counted there again if it gets no place.
    pub(super) fn moving(&mut self, pod: usize, attempt: impl FnOnce(&mut Self, &Class) -> bool) -> bool {
        let from = self.world.still_on.remove(&pod);
        self.with_class(pod, |run, class| {
            if let Some(host) = from {
                run.recount(class, host, -1);
            }
            let placed = attempt(run, class);
            if let Some(host) = from.filter(|_| !placed) {
                run.recount(class, host, 1);
                run.world.still_on.insert(pod, host);
            }
            placed
        })
    }

    /// So many more pods of a class where they have been from the start.
    pub(super) fn recount(&mut self, class: &Class, host: u32, many: i32) {
        self.tally(class, host, self.world.hosts[host as usize].kind(), many);
    }

    /// So many more pods of a class on a node of this kind, there or planned.
    pub(super) fn tally(&mut self, class: &Class, host: u32, kind: Kind, many: i32) {
        for id in &class.touches {
            self.world.count(*id, host, kind, many);
        }
    }

    /// Lends the class out while the run changes.
    pub(super) fn with_class<T>(&mut self, pod: usize, work: impl FnOnce(&mut Self, &Class) -> T) -> T {
        let at = self.world.class_of[pod] as usize;
        let classes = std::mem::take(&mut self.world.classes);
        let answer = work(self, &classes[at]);
        self.world.classes = classes;
        answer
    }

    pub(super) fn place(&mut self, pod: usize) -> bool {
        if self.followed.contains(&pod) {
            return true;
        }
        if self.waits_for_seniors(pod) {
            return false;
        }
        let which = self.world.class_of[pod];
        // What another pod of the class could not do, one that leaves another node perhaps can, or one that is to be elsewhere.
        let is_special = self.world.still_on.contains_key(&pod) || self.dealt.contains_key(&pod);
        if !is_special && self.failed[which as usize].is_some_and(|when| when == self.placements) {
            return false;
        }
        let placed = self.moving(pod, |run, class| {
            if run.failed[which as usize].is_some() && !class.is_topological() && !run.dealt.contains_key(&pod) {
                return false;
            }
            run.place_somehow(pod, which, class)
        });
        self.failed[which as usize] = if placed { None } else { Some(self.placements) };
        if placed {
            self.has_company(pod);
        }
        placed
    }

    pub(super) fn place_variant(&mut self, pod: usize, which: u32, at: usize, class: &Class) -> bool {
        let variant = &class.variants[at];
        let wants = self.wants(class, variant).and_then(|wants| self.as_dealt(pod, wants));
        let Some(wants) = wants else { return false };
        let mut cursor = self.cursors.take(which, at);
        self.prepare(&mut cursor, class, variant);
        let drawn = self.drawn(class, &wants);
        let placed = drawn.as_ref().is_some_and(|wants| self.in_company(pod, class, variant, wants, &mut cursor))
            || self.in_company(pod, class, variant, &wants, &mut cursor)
            || self
                .beside_leaving(variant, &wants)
                .is_some_and(|wants| self.somewhere(pod, class, variant, &wants, &mut cursor))
            || drawn.is_some_and(|wants| self.somewhere(pod, class, variant, &wants, &mut cursor))
            || self.somewhere(pod, class, variant, &wants, &mut cursor)
            || self.beyond(pod, class, variant, &wants, &mut cursor);
        self.cursors.give(which, at, cursor);
        placed
    }

    /// On a node that is there, on one that is planned, or on a new one.
    fn somewhere(&mut self, pod: usize, class: &Class, variant: &Variant, wants: &Wants, cursor: &mut Cursor) -> bool {
        // Room that is there is used whoever counts the pod: kube-scheduler would do so.
        self.on_host(pod, class, variant, (wants, None), cursor)
            || self.courteous(class, wants).is_some_and(|wants| {
                self.on_draft(pod, class, variant, &wants, cursor) || self.on_new(pod, class, variant, &wants, None)
            })
            || self.on_draft(pod, class, variant, wants, cursor)
            || self.on_new(pod, class, variant, wants, None)
    }

    pub(super) fn put_on_host(&mut self, pod: usize, at: usize, class: &Class) {
        self.occupy_host(pod, at, class);
        self.world.rooms.set_free(at, &self.world.hosts[at].free);
        self.spent(class, None);
    }

    /// The same, and nobody is told: neither the index of what is free nor those to whom room was promised.
    pub(super) fn occupy_host(&mut self, pod: usize, at: usize, class: &Class) {
        let host = Arc::make_mut(&mut self.world.hosts[at]);
        subtract(&mut host.free, &class.requests);
        host.ports.extend(class.shape.host_ports.iter().cloned());
        let kind = host.kind();
        self.on_hosts[at].push(pod);
        self.world.attached.put(number(at), class);
        self.record(class, number(at), kind);
    }

    /// One pod less waits: promises that nobody is left for end, and the room is free again.
    pub(super) fn spent(&mut self, class: &Class, on: Option<usize>) {
        for draft in self.world.demand.placed(class.demand, on, &mut self.drafts) {
            let left = self.drafts[draft as usize].left();
            self.rooms.set_free(draft as usize, &left);
        }
    }

    pub(super) fn put_on_draft(&mut self, pod: usize, at: usize, class: &Class, profile: ProfileId, types: Mask) {
        self.occupy_draft(pod, at, class, profile, types);
        self.rooms.set_kind(at, self.kind_of_draft(at));
        self.spent(class, Some(at));
        let left = self.drafts[at].left();
        self.rooms.set_free(at, &left);
    }

    /// The same, and nobody is told.
    pub(super) fn occupy_draft(&mut self, pod: usize, at: usize, class: &Class, profile: ProfileId, types: Mask) {
        let draft = &mut self.drafts[at];
        let pool = draft.pool;
        add(&mut draft.requests, &class.requests);
        draft.ports.extend(class.shape.host_ports.iter().cloned());
        draft.shunned.extend(&class.shunned);
        for cap in class.caps().filter(|cap| !draft.caps.contains(cap)).collect::<Caps>() {
            draft.caps.push(cap);
        }
        draft.pods.push(pod);
        draft.profile = profile;
        if draft.types != types {
            draft.types = types;
            if self.world.pools[pool].room.is_limited() {
                let now = self.world.largest(pool, &draft.types);
                self.world.pools[pool].room.refund(&draft.charged, &now);
                draft.charged = now;
            }
        }
        let host = self.host_of_draft(at);
        self.world.attached.put(host, class);
        self.record(class, host, self.kind_of_draft(at));
    }

    fn record(&mut self, class: &Class, host: u32, kind: Kind) {
        self.tally(class, host, kind, 1);
        self.placements += 1;
    }

    pub(super) fn kind_of_draft(&self, at: usize) -> Kind {
        let draft = &self.drafts[at];
        Kind { taints: self.world.pools[draft.pool].taints, profile: draft.profile, named: true }
    }

    /// The plan, and reasons for the pods that are left.
    pub(super) fn finish(&mut self, left: &[usize]) -> Plan {
        let mut plan = Plan::default();
        let mut refused: Vec<(usize, Vec<Reason>)> = Vec::new();
        let mut reasons: FxHashMap<u32, Vec<Reason>> = FxHashMap::default();
        let mut named = FxHashSet::default();
        let firsts = left.iter().filter(|pod| named.insert(self.world.class_of[**pod]));
        let waiting = |pod: &usize| Waiting {
            shape: Arc::clone(&self.world.class_at(*pod).shape),
            name: self.world.pods[*pod].key.to_string().into(),
        };
        self.waiting = firsts.map(waiting).collect();
        for pod in left {
            let class = self.world.class_of[*pod];
            let why = match reasons.get(&class) {
                Some(known) => known.clone(),
                None => self.with_class(*pod, Self::explain),
            };
            reasons.insert(class, why.clone());
            refused.push((*pod, why));
        }
        for (at, pods) in self.on_hosts.iter().enumerate().filter(|(_, pods)| !pods.is_empty()) {
            let host = &self.world.hosts[at];
            let pods = pods.iter().map(|pod| Arc::clone(&self.world.pods[*pod])).collect();
            plan.existing.push(PlacedOn { claim: host.claim.clone(), node: host.node.clone(), pods });
        }
        let mut names = super::name::Names::new(self.world.problem.snapshot, self.world.problem.settings.name_salt);
        let mut moulds = super::finish::Moulds::default();
        for draft in &self.drafts {
            match super::finish::finished(&self.world, draft, &mut moulds, &mut names) {
                Ok(claim) => plan.claims.push(claim),
                Err(reason) => refused.extend(draft.pods.iter().map(|pod| (*pod, vec![reason.clone()]))),
            }
        }
        refused.sort_by_key(|(pod, _)| *pod);
        plan.refused = refused
            .into_iter()
            .map(|(pod, reasons)| Refusal { pod: self.world.pods[pod].uid.clone(), reasons })
            .collect();
        plan.unusable.clone_from(&self.world.unusable);
        // An empty sum of floats is -0.0.
        plan.price = plan.claims.iter().map(|claim| claim.price).fold(0.0, |sum, price| sum + price);
        plan
    }
}
