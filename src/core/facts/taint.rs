//! Taints and the tolerations that answer them, as kube-scheduler matches them.

use std::sync::Arc;

use crate::core::labels::{REBOOTING_TAINT, UNREGISTERED_TAINT};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// New pods stay away and running ones are evicted.
    NoExecute,
}

impl Effect {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// Reads the word; nothing when it is none of the three.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute].into_iter().find(|effect| effect.as_str() == word)
    }
}

/// A taint on a node. Two taints are the same one when key and effect agree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Taint {
    /// Label-like key.
    pub key: Arc<str>,
    /// Value, often empty.
    pub value: Arc<str>,
    /// What it does.
    pub effect: Effect,
}

impl Taint {
    /// A taint without a value.
    pub fn new(key: impl Into<Arc<str>>, effect: Effect) -> Self {
        Self { key: key.into(), value: "".into(), effect }
    }

    /// Whether the two are the same taint (key and effect), whatever their values.
    pub fn matches(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }

    /// Whether this taint goes away by itself while a node starts, so that it need not be tolerated by pods planned for it
    /// (Karpenter's list of known ephemeral taints; values are ignored).
    pub fn is_ephemeral(&self) -> bool {
        matches!(
            (&*self.key, self.effect),
            ("node.kubernetes.io/not-ready", Effect::NoSchedule | Effect::NoExecute)
                | (
                    "node.kubernetes.io/unreachable" | "node.cloudprovider.kubernetes.io/uninitialized",
                    Effect::NoSchedule
                )
                | (UNREGISTERED_TAINT, Effect::NoExecute)
        ) || self.key.starts_with("readiness.k8s.io/")
    }

    /// Whether this taint goes away by itself when the machine of a node has been restarted; only then it may be looked through.
    pub fn is_of_restart(&self) -> bool {
        [REBOOTING_TAINT, "node.kubernetes.io/unreachable"].contains(&&*self.key)
    }
}

/// How a toleration compares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TolerationOperator {
    /// Key and value agree.
    Equal,
    /// The key agrees, or is empty and stands for all keys.
    Exists,
    /// The taint's value is an integer above the toleration's.
    Gt,
    /// The taint's value is an integer below the toleration's.
    Lt,
}

/// A pod's toleration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Toleration {
    /// Key, or empty for all keys (with `Exists`).
    pub key: Arc<str>,
    /// How to compare.
    pub operator: TolerationOperator,
    /// Value, for every operator but `Exists`.
    pub value: Arc<str>,
    /// Effect, or nothing for all effects.
    pub effect: Option<Effect>,
    /// For how long a NoExecute taint is tolerated, in seconds; nothing means for ever.
    pub seconds: Option<i64>,
}

impl Toleration {
    /// Whether this toleration answers the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let integers = || Some((taint.value.parse::<i64>().ok()?, self.value.parse::<i64>().ok()?));
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => !self.key.is_empty() && self.value == taint.value,
            TolerationOperator::Gt => integers().is_some_and(|(taint, bound)| taint > bound),
            TolerationOperator::Lt => integers().is_some_and(|(taint, bound)| taint < bound),
        }
    }
}
