//! How many pods of a kind are in each domain: kept as pods are placed, never recounted.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::facts::PodShape;

use super::super::algebra::TermId;
use super::super::interner::{KeyId, number};
use super::super::masks::Mask;
use super::select::Targets;

/// What makes two nodes the same domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) enum Topo {
    /// Each node is a domain of its own.
    Host,
    /// Nodes with the same value of a label.
    Key(KeyId),
}

impl Topo {
    /// The label, where there is one.
    pub(in super::super) fn key(self) -> Option<KeyId> {
        match self {
            Self::Host => None,
            Self::Key(key) => Some(key),
        }
    }
}

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct CounterId(pub(in super::super) u32);

/// Which nodes a spread constraint looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct FilterId(pub(in super::super) u32);

/// Nodes that meet one of the terms (when there are any), whose taints are tolerated (when that is asked), and that have all of these labels.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(in super::super) struct Filter {
    pub(in super::super) terms: Option<Vec<TermId>>,
    pub(in super::super) tolerations: Option<u32>,
    /// The keys of the pod's other required constraints: kube-scheduler counts a node for one of them only if it is in a domain of each.
    pub(in super::super) keys: Vec<KeyId>,
    /// Whether the host name is one of those keys; said only where some node lacks it.
    pub(in super::super) named: bool,
}

/// Whom a counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in super::super) enum Whom {
    /// The pods that all of the targets mean, but for those that are being deleted.
    Staying,
    /// The same, each until it is gone.
    Present,
    /// The pods that bear an anti-affinity against the one target, each until it is gone.
    Bearers,
}

/// Counts by domain.
#[derive(Clone, Debug)]
enum Counts {
    Hosts(FxHashMap<u32, u32>),
    Values(Vec<u32>),
}

/// One counter: the pods that all of `targets` mean, or the pods that bear an anti-affinity against them.
#[derive(Clone, Debug)]
pub(in super::super) struct Counter {
    pub(in super::super) topo: Topo,
    pub(in super::super) filter: Option<FilterId>,
    pub(in super::super) whom: Whom,
    counts: Counts,
    pub(in super::super) total: u32,
}

impl Counter {
    pub(in super::super) fn on_host(&self, host: u32) -> u32 {
        match &self.counts {
            Counts::Hosts(hosts) => hosts.get(&host).copied().unwrap_or(0),
            Counts::Values(_) => 0,
        }
    }

    pub(in super::super) fn in_domain(&self, value: usize) -> u32 {
        match &self.counts {
            Counts::Hosts(_) => 0,
            Counts::Values(values) => values[value],
        }
    }

    /// So many more on a host; less than nothing when they leave.
    pub(in super::super) fn add_host(&mut self, host: u32, many: i32) {
        if let Counts::Hosts(hosts) = &mut self.counts {
            let there = hosts.entry(host).or_default();
            *there = there.saturating_add_signed(many);
            self.total = self.total.saturating_add_signed(many);
        }
    }

    /// The same in a domain.
    pub(in super::super) fn add_value(&mut self, value: usize, many: i32) {
        if let Counts::Values(values) = &mut self.counts {
            values[value] = values[value].saturating_add_signed(many);
            self.total = self.total.saturating_add_signed(many);
        }
    }

    /// The domains with (`some`) or without any.
    pub(in super::super) fn domains(&self, some: bool) -> Mask {
        let Counts::Values(values) = &self.counts else { return Mask::default() };
        let mut mask = Mask::empty(values.len());
        for (at, _) in values.iter().enumerate().filter(|(_, n)| (**n > 0) == some) {
            mask.set(at);
        }
        mask
    }
}

/// What identifies a counter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Identity {
    topo: Topo,
    filter: Option<FilterId>,
    targets: SmallVec<[u32; 1]>,
    whom: Whom,
}

/// All counters of a problem.
#[derive(Default)]
pub(in super::super) struct Counters {
    pub(in super::super) all: Vec<Counter>,
    identities: Vec<Identity>,
    index: FxHashMap<Identity, CounterId>,
    /// Counters by the first of their targets.
    by_target: FxHashMap<u32, Vec<CounterId>>,
    filters: Vec<Filter>,
    filter_index: FxHashMap<Filter, FilterId>,
}

impl Counters {
    pub(in super::super) fn get(&self, id: CounterId) -> &Counter {
        &self.all[id.0 as usize]
    }

    pub(in super::super) fn get_mut(&mut self, id: CounterId) -> &mut Counter {
        &mut self.all[id.0 as usize]
    }

    pub(in super::super) fn filter(&mut self, filter: Filter) -> FilterId {
        if let Some(known) = self.filter_index.get(&filter) {
            return *known;
        }
        let id = FilterId(number(self.filters.len()));
        self.filter_index.insert(filter.clone(), id);
        self.filters.push(filter);
        id
    }

    pub(in super::super) fn filter_of(&self, id: FilterId) -> &Filter {
        &self.filters[id.0 as usize]
    }

    /// The counter of those whom `targets` tell. `domains` is the number of known values of the key.
    pub(in super::super) fn add(
        &mut self,
        topo: Topo,
        filter: Option<FilterId>,
        targets: SmallVec<[u32; 1]>,
        whom: Whom,
        domains: usize,
    ) -> CounterId {
        let identity = Identity { topo, filter, targets, whom };
        if let Some(known) = self.index.get(&identity) {
            return *known;
        }
        let id = CounterId(number(self.all.len()));
        if let Some(first) = identity.targets.first() {
            self.by_target.entry(*first).or_default().push(id);
        }
        let counts = match topo {
            Topo::Host => Counts::Hosts(FxHashMap::default()),
            Topo::Key(_) => Counts::Values(vec![0; domains]),
        };
        self.all.push(Counter { topo, filter, whom, counts, total: 0 });
        self.index.insert(identity.clone(), id);
        self.identities.push(identity);
        id
    }

    /// The counters that count a pod of this shape, and those whose owners keep it away.
    pub(in super::super) fn touching(&self, shape: &PodShape, targets: &Targets) -> (Vec<CounterId>, Vec<CounterId>) {
        let meaning = targets.meaning(shape);
        let (mut counted, mut repelled) = (Vec::new(), Vec::new());
        for id in meaning.iter().filter_map(|target| self.by_target.get(target)).flatten() {
            let identity = &self.identities[id.0 as usize];
            if identity.targets.iter().all(|target| meaning.binary_search(target).is_ok()) {
                if identity.whom == Whom::Bearers { &mut repelled } else { &mut counted }.push(*id);
            }
        }
        counted.sort_unstable();
        repelled.sort_unstable();
        (counted, repelled)
    }
}
