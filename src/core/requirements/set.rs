//! What may be said of one label key: a set of values, finite or "all but", with integer bounds.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::written::{Operator, Requirement};

/// A set of label values.
///
/// Either the values themselves, or everything but the values (a complement), the latter possibly within inclusive integer bounds.
/// A value that is not an integer lies outside any bounds. The empty set means that the label must be absent (`DoesNotExist`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ValueSet {
    complement: bool,
    /// Sorted, each once.
    values: SmallVec<[Arc<str>; 2]>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
}

impl ValueSet {
    /// Every value (`Exists`).
    pub fn any() -> Self {
        Self { complement: true, values: SmallVec::new(), gte: None, lte: None, min_values: None }
    }

    /// No value (`DoesNotExist`).
    pub fn none() -> Self {
        Self { complement: false, ..Self::any() }
    }

    /// These values (`In`).
    pub fn of<V: Into<Arc<str>>>(values: impl IntoIterator<Item = V>) -> Self {
        Self { complement: false, values: sorted(values), ..Self::any() }
    }

    /// All but these values (`NotIn`).
    pub fn except<V: Into<Arc<str>>>(values: impl IntoIterator<Item = V>) -> Self {
        Self { complement: true, values: sorted(values), ..Self::any() }
    }

    /// All integers from `gte` to `lte`, either end open when absent.
    pub fn within(gte: Option<i64>, lte: Option<i64>) -> Self {
        Self { gte, lte, ..Self::any() }.normalized()
    }

    /// What a written requirement says. A bound that is not an integer (validation refuses it earlier) admits nothing.
    pub fn from_written(written: &Requirement) -> Self {
        let bound = || written.values.first().and_then(|text| text.parse::<i64>().ok());
        let set = match written.operator {
            Operator::In => Self::of(written.values.iter().cloned()),
            Operator::NotIn => Self::except(written.values.iter().cloned()),
            Operator::Exists => Self::any(),
            Operator::DoesNotExist => Self::none(),
            Operator::Gt => {
                bound().and_then(|n| n.checked_add(1)).map_or_else(Self::none, |n| Self::within(Some(n), None))
            }
            Operator::Lt => {
                bound().and_then(|n| n.checked_sub(1)).map_or_else(Self::none, |n| Self::within(None, Some(n)))
            }
            Operator::Gte => bound().map_or_else(Self::none, |n| Self::within(Some(n), None)),
            Operator::Lte => bound().map_or_else(Self::none, |n| Self::within(None, Some(n))),
        };
        Self { min_values: written.min_values, ..set }
    }

    /// The set with its minValues replaced.
    #[must_use]
    pub fn with_min_values(mut self, least: Option<u32>) -> Self {
        self.min_values = least;
        self
    }

    /// How many different values the chosen instance types must offer.
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// The listed values: members, or for a complement the excluded ones.
    pub fn values(&self) -> &[Arc<str>] {
        &self.values
    }

    /// Whether the set is "all but the listed values".
    pub fn is_complement(&self) -> bool {
        self.complement
    }

    /// Inclusive integer bounds.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.gte, self.lte)
    }

    /// Whether no value is in the set.
    pub fn is_empty(&self) -> bool {
        !self.complement && self.values.is_empty()
    }

    /// The one member of a set that has exactly one.
    pub fn single(&self) -> Option<&Arc<str>> {
        if self.complement || self.values.len() != 1 { None } else { self.values.first() }
    }

    /// The operator that describes the set; bounds alone read as `Exists`.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, false) => Operator::In,
            (false, true) => Operator::DoesNotExist,
        }
    }

    /// Whether a node without the label satisfies the set.
    pub fn allows_absence(&self) -> bool {
        matches!(self.operator(), Operator::NotIn | Operator::DoesNotExist) && self.gte.is_none() && self.lte.is_none()
    }

    /// How many values are in the set; complements count down from `u64::MAX`.
    pub fn size(&self) -> u64 {
        let listed = self.values.len() as u64;
        if self.complement { u64::MAX - listed } else { listed }
    }

    /// Whether a value is in the set.
    pub fn has(&self, value: &str) -> bool {
        let listed = self.values.binary_search_by(|v| (**v).cmp(value)).is_ok();
        listed != self.complement && in_bounds(value, self.gte, self.lte)
    }

    /// What is in both sets; the larger minValues is kept.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let gte = self.gte.max(other.gte);
        let lte = match (self.lte, other.lte) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let values: SmallVec<[Arc<str>; 2]> = match (self.complement, other.complement) {
            (true, true) => sorted(self.values.iter().chain(&other.values).cloned()),
            (true, false) => other.values.iter().filter(|v| self.has(v)).cloned().collect(),
            (false, _) => self.values.iter().filter(|v| other.has(v)).cloned().collect(),
        };
        let complement = self.complement && other.complement;
        let min_values = self.min_values.max(other.min_values);
        Self { complement, values, gte, lte, min_values }.normalized()
    }

    /// Whether any value is in both sets.
    pub fn has_intersection(&self, other: &Self) -> bool {
        match (self.complement, other.complement) {
            (false, _) => self.values.iter().any(|v| other.has(v) && self.has(v)),
            (true, false) => other.values.iter().any(|v| self.has(v) && other.has(v)),
            (true, true) => {
                let bounded = self.gte.is_some() || self.lte.is_some() || other.gte.is_some() || other.lte.is_some();
                !bounded || !self.intersection(other).is_empty()
            }
        }
    }

    /// A concrete member, always the same one: the first listed value, or the allowed integer nearest to the lower bound or to zero.
    pub fn concrete(&self) -> Option<Arc<str>> {
        if !self.complement {
            return self.values.first().cloned();
        }
        // Upwards from the lower bound or zero; where only an upper bound is given and it lies below zero, downwards from it.
        let (mut candidate, step) = match (self.gte, self.lte) {
            (Some(low), _) => (low, 1),
            (None, Some(high)) => (high.min(0), -1),
            (None, None) => (0, 1),
        };
        loop {
            let text = candidate.to_string();
            if self.has(&text) {
                return Some(text.into());
            }
            candidate = candidate.checked_add(step)?;
        }
    }

    /// The requirements that say the same, bounds as `Gte` and `Lte`. Unlike Karpenter, exclusions survive beside bounds.
    pub fn to_written(&self, key: &Arc<str>) -> Vec<Requirement> {
        let line = |operator, values: Vec<Arc<str>>| Requirement {
            key: Arc::clone(key),
            operator,
            values,
            min_values: self.min_values,
        };
        let mut lines = Vec::new();
        if let Some(bound) = self.gte {
            lines.push(line(Operator::Gte, vec![bound.to_string().into()]));
        }
        if let Some(bound) = self.lte {
            lines.push(line(Operator::Lte, vec![bound.to_string().into()]));
        }
        if lines.is_empty() || !self.values.is_empty() {
            lines.push(line(self.operator(), self.values.to_vec()));
        }
        lines
    }

    /// Canonical form: concrete sets carry no bounds, exclusions outside the bounds are dropped, an impossible set is the empty set.
    fn normalized(mut self) -> Self {
        if self.gte.is_none() && self.lte.is_none() {
            return self;
        }
        let (gte, lte) = (self.gte, self.lte);
        if !self.complement {
            (self.gte, self.lte) = (None, None);
            return self;
        }
        self.values.retain(|v| in_bounds(v, gte, lte));
        let low = i128::from(gte.unwrap_or(i64::MIN));
        let high = i128::from(lte.unwrap_or(i64::MAX));
        // Several spellings of one integer ("5", "05") count once.
        let mut excluded: SmallVec<[i64; 4]> = self.values.iter().filter_map(|v| v.parse().ok()).collect();
        excluded.sort_unstable();
        excluded.dedup();
        if high - low < excluded.len() as i128 {
            return Self { min_values: self.min_values, ..Self::none() };
        }
        self
    }
}

fn sorted<V: Into<Arc<str>>>(values: impl IntoIterator<Item = V>) -> SmallVec<[Arc<str>; 2]> {
    let mut all: SmallVec<[Arc<str>; 2]> = values.into_iter().map(Into::into).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn in_bounds(value: &str, gte: Option<i64>, lte: Option<i64>) -> bool {
    if gte.is_none() && lte.is_none() {
        return true;
    }
    value.parse::<i64>().is_ok_and(|n| gte.is_none_or(|low| n >= low) && lte.is_none_or(|high| n <= high))
}

/// As Karpenter writes it: operator, at most five values, bounds, minValues.
impl fmt::Display for ValueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operator().as_str())?;
        if !self.values.is_empty() {
            let shown = &self.values[..self.values.len().min(5)];
            write!(f, " [{}", shown.join(" "))?;
            match self.values.len() - shown.len() {
                0 => f.write_str("]")?,
                more => write!(f, " and {more} others]")?,
            }
        }
        if let Some(bound) = self.gte {
            write!(f, " >={bound}")?;
        }
        if let Some(bound) = self.lte {
            write!(f, " <={bound}")?;
        }
        self.min_values.map_or(Ok(()), |least| write!(f, " minValues {least}"))
    }
}

impl fmt::Debug for ValueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
