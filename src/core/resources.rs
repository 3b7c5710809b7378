//! Resource vectors: how much of each resource a pod asks for or a node has, exact in thousandths.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::core::quantity::{Format, Quantity};

/// The name of a resource. The order (CPU, memory, pods, ephemeral storage, then the others by name) is that of reports.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResourceName {
    /// `cpu`, in cores.
    Cpu,
    /// `memory`, in bytes.
    Memory,
    /// `pods`, a count.
    Pods,
    /// `ephemeral-storage`, in bytes.
    EphemeralStorage,
    /// Any other: `nvidia.com/gpu`, `hugepages-2Mi`, or Karpenter's pseudo-resource `nodes` in limits.
    Other(Arc<str>),
}

impl ResourceName {
    /// Karpenter's pseudo-resource that limits the number of nodes of a NodePool.
    pub fn nodes() -> Self {
        Self::from("nodes")
    }

    /// The name as Kubernetes writes it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pods => "pods",
            Self::EphemeralStorage => "ephemeral-storage",
            Self::Other(name) => name,
        }
    }

    /// An amount of it, in thousandths, as Kubernetes writes it: bytes with binary suffixes, everything else in decimal.
    pub fn written(&self, milli: i64) -> Quantity {
        let format = match self {
            Self::Memory | Self::EphemeralStorage => Format::Binary,
            Self::Other(name) if name.starts_with("hugepages-") => Format::Binary,
            _ => Format::Decimal,
        };
        Quantity::from_milli(milli, format)
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "pods" => Self::Pods,
            "ephemeral-storage" => Self::EphemeralStorage,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Amounts by resource, in thousandths of the resource's unit (milli-cores, milli-bytes, milli-pods).
///
/// Invariant: sorted by name, each name once. An absent resource amounts to zero, but is not the same as a zero that was
/// written: limits and capacity overlays care about the difference. Thousandths in an `i64` reach to 9.2 PB of memory.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Resources(SmallVec<[(ResourceName, i64); 4]>);

impl Resources {
    /// No resources at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The amount of a resource in thousandths; zero when absent.
    pub fn get(&self, name: &ResourceName) -> i64 {
        self.find(name).map_or(0, |at| self.0[at].1)
    }

    /// The amount of a resource in thousandths, or nothing when the vector does not mention it.
    pub fn mentioned(&self, name: &ResourceName) -> Option<i64> {
        self.find(name).ok().map(|at| self.0[at].1)
    }

    /// Sets a resource to an amount in thousandths.
    pub fn set(&mut self, name: ResourceName, milli: i64) {
        match self.find(&name) {
            Ok(at) => self.0[at].1 = milli,
            Err(at) => self.0.insert(at, (name, milli)),
        }
    }

    /// The vector with one resource set, for building by hand. `milli` is in thousandths.
    #[must_use]
    pub fn with(mut self, name: impl Into<ResourceName>, milli: i64) -> Self {
        self.set(name.into(), milli);
        self
    }

    /// Resources and their amounts in thousandths, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, i64)> {
        self.0.iter().map(|(name, milli)| (name, *milli))
    }

    /// Whether no resource is mentioned.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds each amount of `other`, saturating at the ends of `i64`.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Takes each amount of `other` away; what falls below zero stays negative, so that an overfull node is seen as such.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// Raises each amount to that of `other` where the latter is larger.
    pub fn raise(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    /// The same resources, each with the lesser of the two amounts.
    #[must_use]
    pub fn lowered(&self, other: &Self) -> Self {
        self.iter().map(|(name, milli)| (name.clone(), milli.min(other.get(name)))).collect()
    }

    /// Whether every amount is at most that of `room`, a resource that `room` does not mention being zero.
    pub fn fits(&self, room: &Self) -> bool {
        let mut room = room.0.iter().peekable();
        self.iter().all(|(name, milli)| {
            while room.next_if(|(other, _)| other < name).is_some() {}
            milli <= room.next_if(|(other, _)| other == name).map_or(0, |(_, there)| *there)
        })
    }

    /// Changes each amount that `other` mentions to what `by` makes of it and the other's.
    fn combine(&mut self, other: &Self, by: fn(i64, i64) -> i64) {
        let mut from = 0;
        for (name, milli) in other.iter() {
            from += self.0[from..].iter().take_while(|(ours, _)| ours < name).count();
            match self.0.get_mut(from) {
                Some((ours, amount)) if ours == name => *amount = by(*amount, milli),
                _ => self.0.insert(from, (name.clone(), by(0, milli))),
            }
        }
    }

    fn find(&self, name: &ResourceName) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(name))
    }
}

impl FromIterator<(ResourceName, i64)> for Resources {
    fn from_iter<T: IntoIterator<Item = (ResourceName, i64)>>(amounts: T) -> Self {
        let mut all = Self::new();
        for (name, milli) in amounts {
            all.set(name, milli);
        }
        all
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, milli)| (name.as_str(), *milli))).finish()
    }
}

#[cfg(test)]
#[path = "resources_tests.rs"]
mod tests;
