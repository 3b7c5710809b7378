//! Status conditions as every Kubernetes object carries them.

use std::sync::Arc;

use jiff::Timestamp;

/// Truth value of a condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`, and anything that is neither of the others.
    Unknown,
}

impl Status {
    /// The word that Kubernetes writes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads Kubernetes' word.
    pub fn parse(word: &str) -> Self {
        match word {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// One status condition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// For instance `Ready`.
    pub kind: Arc<str>,
    /// Whether it holds.
    pub status: Status,
    /// One word for programs.
    pub reason: Arc<str>,
    /// A sentence for people; often empty.
    pub message: Arc<str>,
    /// When `status` last changed.
    pub since: Timestamp,
    /// The generation of the object that was judged.
    pub generation: i64,
}

/// The condition of a kind, if it is there.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| &*condition.kind == kind)
}
