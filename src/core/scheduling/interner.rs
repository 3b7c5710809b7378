//! Label keys and values as small numbers, and what may be said of one key as bits over its known values.
//!
//! Every value that anybody in the problem mentions is known before the first requirement is compiled, so that a complement ("all but
//! these") is a finite mask plus a word on the rest. Numbers follow the order of the text: nothing depends on the order of the input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};

use super::masks::Mask;

/// A label key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct KeyId(pub(super) u32);

/// Collects keys and values before they are numbered.
#[derive(Default)]
pub(super) struct Collector(BTreeMap<Arc<str>, BTreeSet<Arc<str>>>);

impl Collector {
    pub(super) fn key(&mut self, key: &str) -> &mut BTreeSet<Arc<str>> {
        let key = labels::normalized(key);
        if !self.0.contains_key(key) {
            self.0.insert(key.into(), BTreeSet::new());
        }
        self.0.get_mut(key).expect("was inserted above")
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn value(&mut self, key: &str, value: &Arc<str>) {
        let values = self.key(key);
        if !values.contains(value) {
            values.insert(Arc::clone(value));
        }
    }

    pub(super) fn requirement(&mut self, requirement: &Requirement) {
        match requirement.operator {
            Operator::In | Operator::NotIn => {
                for value in &requirement.values {
                    self.value(&requirement.key, value);
                }
            }
            _ => {
                self.key(&requirement.key);
            }
        }
    }

    /// Numbers everything. `open` says which keys a NodeClaim leaves open when it does not mention them.
    pub(super) fn finish(self, open: impl Fn(&str) -> bool) -> Universe {
        let mut universe = Universe::default();
        for (name, values) in self.0 {
            let values: Vec<Arc<str>> = values.into_iter().collect();
            universe.index.insert(Arc::clone(&name), KeyId(number(universe.keys.len())));
            universe.keys.push(Key {
                open: open(&name),
                index: values.iter().enumerate().map(|(at, v)| (Arc::clone(v), number(at))).collect(),
                integers: values.iter().map(|v| v.parse().ok()).collect(),
                values,
                name,
            });
        }
        universe
    }
}

/// A count as a 32-bit number.
pub(super) fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a problem has fewer than four billion of anything")
}

/// Everything that is known of label keys and their values.
#[derive(Default)]
pub(super) struct Universe {
    keys: Vec<Key>,
    index: FxHashMap<Arc<str>, KeyId>,
}

pub(super) struct Key {
    pub(super) name: Arc<str>,
    /// Whether a NodeClaim that does not mention the key leaves it open.
    pub(super) open: bool,
    pub(super) values: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, u32>,
    integers: Vec<Option<i64>>,
}

impl Key {
    pub(super) fn value(&self, text: &str) -> Option<usize> {
        self.index.get(text).map(|at| *at as usize)
    }
}

impl Universe {
    /// A collector that knows all keys and no values.
    pub(super) fn keys_only(&self) -> Collector {
        Collector(self.keys.iter().map(|key| (Arc::clone(&key.name), BTreeSet::new())).collect())
    }

    /// All keys.
    pub(super) fn ids(&self) -> impl Iterator<Item = KeyId> {
        (0..number(self.keys.len())).map(KeyId)
    }

    /// Whether all that was collected is known.
    pub(super) fn covers(&self, collected: &Collector) -> bool {
        collected.0.iter().all(|(key, values)| {
            self.find(key).is_some_and(|key| values.iter().all(|value| self.key(key).value(value).is_some()))
        })
    }

    pub(super) fn find(&self, key: &str) -> Option<KeyId> {
        self.index.get(labels::normalized(key)).copied()
    }

    pub(super) fn key(&self, key: KeyId) -> &Key {
        &self.keys[key.0 as usize]
    }

    /// Everything, absence included.
    pub(super) fn open(&self, key: KeyId) -> Domain {
        Domain { bits: Mask::full(self.key(key).values.len()), rest: Rest::Any, absent: true }
    }

    /// The label is not there.
    pub(super) fn absent(&self, key: KeyId) -> Domain {
        Domain { bits: Mask::empty(self.key(key).values.len()), rest: Rest::Nothing, absent: true }
    }

    /// Exactly this value; a value nobody mentions is one of the rest.
    pub(super) fn value(&self, key: KeyId, text: &str) -> Domain {
        let mut bits = Mask::empty(self.key(key).values.len());
        match self.key(key).value(text) {
            Some(at) => {
                bits.set(at);
                Domain { bits, rest: Rest::Nothing, absent: false }
            }
            None => Domain { bits, rest: text.parse().map_or(Rest::Word, |n| Rest::Within(n, n)), absent: false },
        }
    }

    /// What a written requirement says of its key, or nothing when nobody knows the key (it was not collected).
    pub(super) fn requirement(&self, written: &Requirement) -> Option<(KeyId, Domain)> {
        let key = self.find(&written.key)?;
        let len = self.key(key).values.len();
        let listed = || {
            let mut bits = Mask::empty(len);
            for at in written.values.iter().filter_map(|v| self.key(key).value(v)) {
                bits.set(at);
            }
            bits
        };
        let bound = || written.values.first().and_then(|v| v.parse::<i64>().ok());
        let within = |range: Option<(i64, i64)>| match range {
            None => Domain { bits: Mask::empty(len), rest: Rest::Nothing, absent: false },
            Some((low, high)) => {
                let mut bits = Mask::empty(len);
                for (at, _) in
                    self.key(key).integers.iter().enumerate().filter(|(_, n)| n.is_some_and(|n| low <= n && n <= high))
                {
                    bits.set(at);
                }
                Domain { bits, rest: Rest::Within(low, high), absent: false }
            }
        };
        let domain = match written.operator {
            Operator::In => Domain { bits: listed(), rest: Rest::Nothing, absent: false },
            Operator::NotIn => {
                let mut bits = Mask::full(len);
                for at in listed().bits() {
                    bits.clear(at);
                }
                Domain { bits, rest: Rest::Any, absent: true }
            }
            Operator::Exists => Domain { bits: Mask::full(len), rest: Rest::Any, absent: false },
            Operator::DoesNotExist => self.absent(key),
            Operator::Gt => within(bound().and_then(|n| n.checked_add(1)).map(|n| (n, i64::MAX))),
            Operator::Lt => within(bound().and_then(|n| n.checked_sub(1)).map(|n| (i64::MIN, n))),
            Operator::Gte => within(bound().map(|n| (n, i64::MAX))),
            Operator::Lte => within(bound().map(|n| (i64::MIN, n))),
        };
        Some((key, self.tidy(key, domain)))
    }

    /// Both at once, or nothing when they exclude each other.
    pub(super) fn meet(&self, key: KeyId, a: &Domain, b: &Domain) -> Option<Domain> {
        let mut bits = a.bits.clone();
        bits.and(&b.bits);
        let met = self.tidy(key, Domain { bits, rest: a.rest.meet(b.rest), absent: a.absent && b.absent });
        if met.is_empty() { None } else { Some(met) }
    }

    /// All that a domain leaves out; nothing where that is no range and not all of the rest.
    pub(super) fn complement(&self, key: KeyId, of: &Domain) -> Option<Domain> {
        let rest = match of.rest {
            Rest::Nothing => Rest::Any,
            Rest::Any => Rest::Nothing,
            Rest::Word | Rest::Within(..) => return None,
        };
        let mut bits = Mask::full(self.key(key).values.len());
        bits.retain(|value| !of.bits.has(value));
        Some(Domain { bits, rest, absent: !of.absent })
    }

    /// A range all of whose integers are known values has no rest.
    fn tidy(&self, key: KeyId, mut domain: Domain) -> Domain {
        if let Rest::Within(low, high) = domain.rest {
            let known = self.key(key).integers.iter().flatten().filter(|n| low <= **n && **n <= high).count();
            if i128::from(high) - i128::from(low) < known as i128 {
                domain.rest = Rest::Nothing;
            }
        }
        domain
    }

    /// A domain as requirements, bounds as `Gte` and `Lte`.
    pub(super) fn written(&self, key: KeyId, domain: &Domain, min_values: Option<u32>) -> Vec<Requirement> {
        let info = self.key(key);
        let line =
            |operator, values: Vec<Arc<str>>| Requirement { key: Arc::clone(&info.name), operator, values, min_values };
        let texts = |wanted: bool, range: Option<(i64, i64)>| -> Vec<Arc<str>> {
            (0..info.values.len())
                .filter(|at| domain.bits.has(*at) == wanted)
                .filter(|at| range.is_none_or(|(l, h)| info.integers[*at].is_some_and(|n| l <= n && n <= h)))
                .map(|at| Arc::clone(&info.values[at]))
                .collect()
        };
        match domain.rest {
            Rest::Nothing | Rest::Word if domain.bits.is_empty() => vec![line(Operator::DoesNotExist, Vec::new())],
            Rest::Nothing | Rest::Word => vec![line(Operator::In, texts(true, None))],
            Rest::Any => {
                let excluded = texts(false, None);
                let mut lines = Vec::new();
                if excluded.is_empty() || !domain.absent {
                    lines.push(line(Operator::Exists, Vec::new()));
                }
                if !excluded.is_empty() {
                    lines.push(line(Operator::NotIn, excluded));
                }
                lines
            }
            Rest::Within(low, high) => {
                let mut lines = Vec::new();
                if low != i64::MIN {
                    lines.push(line(Operator::Gte, vec![low.to_string().into()]));
                }
                if high != i64::MAX {
                    lines.push(line(Operator::Lte, vec![high.to_string().into()]));
                }
                let excluded = texts(false, Some((low, high)));
                if !excluded.is_empty() {
                    lines.push(line(Operator::NotIn, excluded));
                }
                lines
            }
        }
    }
}

/// Which of the values that nobody mentions are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Rest {
    /// None.
    Nothing,
    /// One that is not an integer, and nobody asks which.
    Word,
    /// The integers from the first to the second.
    Within(i64, i64),
    /// All.
    Any,
}

impl Rest {
    fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Any, x) | (x, Self::Any) => x,
            (Self::Word, Self::Word) => Self::Word,
            (Self::Word, Self::Within(..)) | (Self::Within(..), Self::Word) => Self::Nothing,
            (Self::Within(a, b), Self::Within(c, d)) => {
                let (low, high) = (a.max(c), b.min(d));
                if low <= high { Self::Within(low, high) } else { Self::Nothing }
            }
        }
    }
}

/// What a label may be: one of the known values, one of the rest, or absent. Never empty once it is part of a term or a profile.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Domain {
    pub(super) bits: Mask,
    pub(super) rest: Rest,
    pub(super) absent: bool,
}

impl Domain {
    pub(super) fn is_empty(&self) -> bool {
        !self.absent && self.rest == Rest::Nothing && self.bits.is_empty()
    }

    /// Whether nothing is left open: one known value, or absent.
    pub(super) fn is_settled(&self) -> bool {
        match (self.rest, self.absent) {
            (Rest::Nothing, true) => self.bits.is_empty(),
            (Rest::Nothing, false) => self.bits.count() == 1,
            (Rest::Word, false) => self.bits.is_empty(),
            (Rest::Within(low, high), false) => low == high && self.bits.is_empty(),
            _ => false,
        }
    }

    /// Whether two domains share anything, without building it. May say yes for ranges whose integers are all excluded.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.bits.meets(&other.bits) || (self.absent && other.absent) || self.rest.meet(other.rest) != Rest::Nothing
    }
}
