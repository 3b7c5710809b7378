//! Requirements on many keys at once: a map from key to the set of values that it may have.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::core::labels::{self, Labels};

use super::set::ValueSet;
use super::written::Requirement;

/// What is required of each label key; a key that is not in the map is not spoken of.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Requirements(BTreeMap<Arc<str>, ValueSet>);

/// Two sets of requirements that cannot both be met, and the first key that shows it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {wanted} is wanted, but {} is offered", offered.as_ref().map_or_else(|| "no such label".to_owned(), ToString::to_string))]
pub struct Incompatible {
    /// The label key.
    pub key: Arc<str>,
    /// What the incoming side wants.
    pub wanted: ValueSet,
    /// What this side has, or nothing when it does not know the key.
    pub offered: Option<ValueSet>,
}

impl Requirements {
    /// No requirements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requirements from a list as users and clouds write it.
    pub fn from_written<'a>(written: impl IntoIterator<Item = &'a Requirement>) -> Self {
        let mut all = Self::new();
        for one in written {
            all.add(&one.key, &ValueSet::from_written(one));
        }
        all
    }

    /// Each label as the one value that it has.
    pub fn from_labels(labels: &Labels) -> Self {
        let mut all = Self::new();
        for (key, value) in labels {
            all.add(key, &ValueSet::of([Arc::clone(value)]));
        }
        all
    }

    /// Narrows a key. Deprecated keys count as their stable forms.
    pub fn add(&mut self, key: &Arc<str>, set: &ValueSet) {
        let stable = labels::normalized(key);
        if let Some(known) = self.0.get_mut(stable) {
            *known = set.intersection(known);
        } else {
            let key = if stable == &**key { Arc::clone(key) } else { stable.into() };
            self.0.insert(key, set.clone());
        }
    }

    /// Narrows every key that `other` speaks of.
    pub fn add_all(&mut self, other: &Self) {
        for (key, set) in &other.0 {
            self.add(key, set);
        }
    }

    /// Replaces what is known of a key.
    pub fn set(&mut self, key: impl Into<Arc<str>>, set: ValueSet) {
        self.0.insert(key.into(), set);
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &str) -> Option<ValueSet> {
        self.0.remove(key)
    }

    /// What is required of a key, if anything.
    pub fn get(&self, key: &str) -> Option<&ValueSet> {
        self.0.get(key)
    }

    /// Keys and their sets, in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &ValueSet)> {
        self.0.iter()
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any key has minValues.
    pub fn has_min_values(&self) -> bool {
        self.0.values().any(|set| set.min_values().is_some())
    }

    /// Whether what is `incoming` can be met here. A key that this side does not know fails unless `may_be_undefined` says that it is
    /// open, or the incoming side is content with its absence.
    pub fn compatible(
        &self,
        incoming: &Self,
        may_be_undefined: impl Fn(&str) -> bool,
    ) -> Result<(), Box<Incompatible>> {
        for (key, wanted) in &incoming.0 {
            if !self.0.contains_key(key) && !wanted.allows_absence() && !may_be_undefined(key) {
                return Err(Box::new(Incompatible { key: Arc::clone(key), wanted: wanted.clone(), offered: None }));
            }
        }
        self.intersects(incoming)
    }

    /// Whether an object with these labels meets all of it: the same as `Requirements::from_labels(labels).compatible(self, |_| false)`, without
    /// making sets of the labels.
    pub fn admits(&self, labels: &Labels) -> bool {
        self.0.iter().all(|(key, wanted)| match labels::value(labels, key) {
            Some(value) => wanted.has(value),
            None => wanted.allows_absence(),
        })
    }

    /// Whether every key that both sides speak of has a value (or an absence) that suits both.
    pub fn intersects(&self, incoming: &Self) -> Result<(), Box<Incompatible>> {
        for (key, wanted) in &incoming.0 {
            let Some(offered) = self.0.get(key) else { continue };
            let fine = offered.has_intersection(wanted) || offered.allows_absence() && wanted.allows_absence();
            if !fine {
                return Err(Box::new(Incompatible {
                    key: Arc::clone(key),
                    wanted: wanted.clone(),
                    offered: Some(offered.clone()),
                }));
            }
        }
        Ok(())
    }

    /// What holds when either side holds, where that can be said in one: the two may differ in the values of one key only.
    pub fn or_on_one_key(&self, other: &Self) -> Option<Self> {
        if self.0.len() != other.0.len() {
            return None;
        }
        let mut both = self.clone();
        let mut differ = 0;
        for (key, set) in &mut both.0 {
            let theirs = other.0.get(key)?;
            if set == theirs {
                continue;
            }
            differ += 1;
            if differ > 1 || set.is_complement() || theirs.is_complement() {
                return None;
            }
            *set = ValueSet::of(set.values().iter().chain(theirs.values()).cloned());
        }
        Some(both)
    }

    /// The list that says the same, in order of key.
    pub fn to_written(&self) -> Vec<Requirement> {
        self.0.iter().flat_map(|(key, set)| set.to_written(key)).collect()
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (key, set) in self.0.iter().filter(|(key, _)| &***key != labels::HOSTNAME) {
            write!(f, "{}{key} {set}", if first { "" } else { ", " })?;
            first = false;
        }
        Ok(())
    }
}
