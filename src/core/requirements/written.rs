//! A requirement as users and clouds write it, before any algebra.

use std::fmt;
use std::sync::Arc;

/// How the values of a requirement are meant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer above the one value.
    Gt,
    /// The label is an integer below the one value.
    Lt,
    /// The label is an integer at or above the one value (Karpenter's own operator).
    Gte,
    /// The label is an integer at or below the one value (Karpenter's own operator).
    Lte,
}

impl Operator {
    /// The operator's name in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
            Self::Gte => "Gte",
            Self::Lte => "Lte",
        }
    }

    /// Reads the operator's name; nothing when it is none of the eight.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist, Self::Gt, Self::Lt, Self::Gte, Self::Lte]
            .into_iter()
            .find(|operator| operator.as_str() == name)
    }
}

/// One line of a requirement list: key, operator, values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Label key.
    pub key: Arc<str>,
    /// How `values` are meant.
    pub operator: Operator,
    /// Values, in the order in which they were written.
    pub values: Vec<Arc<str>>,
    /// How many different values the chosen instance types must offer (NodePools only).
    pub min_values: Option<u32>,
}

impl Requirement {
    /// A requirement without minValues.
    pub fn new<V: Into<Arc<str>>>(
        key: impl Into<Arc<str>>,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self { key: key.into(), operator, values: values.into_iter().map(Into::into).collect(), min_values: None }
    }
}

impl fmt::Debug for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator.as_str())?;
        if !self.values.is_empty() {
            write!(f, " [{}]", self.values.join(" "))?;
        }
        match self.min_values {
            Some(least) => write!(f, " minValues {least}"),
            None => Ok(()),
        }
    }
}
