//! Where everything stands: the hosts in the order in which they are tried, what runs on them, and what they use of the limits.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::PodShape;
use crate::core::ids::{ClaimName, NodeName, PoolName};

use super::existing::Host;
use super::interner::number;
use super::rooms::Rooms;
use super::shelf::{Amounts, add};

/// How many pods of a shape run somewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Many {
    /// Those that use room.
    pub(super) active: u32,
    /// Those of them that are not being deleted: only these count for topology.
    pub(super) staying: u32,
}

/// Pods that a question takes from hosts, by shape and host.
pub(super) type Left = FxHashMap<(*const PodShape, u32), Many>;

/// A shape and the hosts on which such pods run.
pub(super) struct Runs {
    pub(super) shape: Arc<PodShape>,
    pub(super) on: Vec<(u32, Many)>,
}

/// What runs where.
#[derive(Default)]
pub(super) struct Running {
    pub(super) all: Vec<Runs>,
    /// Those of them that bear an anti-affinity.
    pub(super) avoiding: Vec<usize>,
}

/// All hosts.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) hosts: Vec<Arc<Host>>,
    pub(super) rooms: Rooms,
    pub(super) by_node: FxHashMap<NodeName, u32>,
    pub(super) by_claim: FxHashMap<ClaimName, u32>,
    pub(super) running: Running,
    /// What each pool's hosts use of its limits, and how many they are.
    pub(super) used: FxHashMap<PoolName, (Amounts, i64)>,
    /// Whether some node lacks the label `kubernetes.io/hostname`.
    pub(super) lacks_names: bool,
}

impl Layout {
    /// Initialized hosts first, nodes before NodeClaims without one, then by name.
    pub(super) fn new(mut hosts: Vec<Arc<Host>>, width: usize) -> Self {
        let name = |host: &Host| -> Arc<str> { host.name() };
        hosts.sort_by_cached_key(|host| (!host.initialized, host.node.is_none(), name(host)));
        let mut layout = Self { rooms: Rooms::new(width), ..Self::default() };
        let mut index: FxHashMap<*const PodShape, usize> = FxHashMap::default();
        let running = &mut layout.running;
        for (at, host) in hosts.iter().enumerate() {
            let at = number(at);
            let kind = host.kind();
            layout.rooms.push(host.usable.then_some(kind), &host.free);
            layout.by_node.extend(host.node.iter().map(|name| (name.clone(), at)));
            layout.by_claim.extend(host.claim.iter().map(|name| (name.clone(), at)));
            for (shape, many) in &host.running {
                let which = *index.entry(Arc::as_ptr(shape)).or_insert_with(|| {
                    if !shape.anti_affinity.is_empty() {
                        running.avoiding.push(running.all.len());
                    }
                    running.all.push(Runs { shape: Arc::clone(shape), on: Vec::new() });
                    running.all.len() - 1
                });
                running.all[which].on.push((at, *many));
            }
            if let Some(pool) = host.pool.as_ref().filter(|_| host.usable) {
                let (used, nodes) =
                    layout.used.entry(pool.clone()).or_insert_with(|| (host.capacity.iter().map(|_| 0).collect(), 0));
                add(used, &host.capacity);
                *nodes += 1;
            }
        }
        layout.lacks_names = hosts.iter().any(|host| !host.named);
        layout.hosts = hosts;
        layout
    }
}
