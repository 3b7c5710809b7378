//! How much was asked of the fake, and what trouble it made.

use std::collections::BTreeMap;
use std::fmt;

use super::refusal::Refusal;

/// Trouble that the fake makes when it is told to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The request was lost before it had an effect.
    RequestLost,
    /// The answer was lost after its effect.
    AnswerLost,
    /// An internal error, without effect.
    Failed,
    /// More calls in a second than are let in.
    Throttled,
    /// A policy does not allow the action.
    Denied,
    /// There was no such machine to be had.
    SoldOut,
    /// The account may not have more.
    QuotaReached,
    /// The answer lacks what is there and is not listed yet.
    ListedLate,
    /// The user data named tags, and they did not become any.
    TagsIgnored,
    /// A VM was made for a token that had one.
    TokenForgotten,
}

impl Fault {
    /// The trouble that a refusal is; nothing where the request is wrong.
    pub(super) fn of(refusal: &Refusal) -> Option<Self> {
        match refusal.code {
            "2000" => Some(Self::Failed),
            "24" | "25" => Some(Self::Throttled),
            "4" => Some(Self::Denied),
            "10001" => Some(Self::SoldOut),
            "10021" | "10023" => Some(Self::QuotaReached),
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestLost => "requests lost",
            Self::AnswerLost => "answers lost",
            Self::Failed => "failed",
            Self::Throttled => "throttled",
            Self::Denied => "denied",
            Self::SoldOut => "sold out",
            Self::QuotaReached => "beyond quotas",
            Self::ListedLate => "without what is listed late",
            Self::TagsIgnored => "with tags ignored",
            Self::TokenForgotten => "with a token forgotten",
        })
    }
}

/// How much an action was called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// How often, as far as requests arrived.
    pub calls: u64,
    /// How often in the busiest second.
    pub most_in_a_second: u32,
    /// How often which trouble struck it.
    pub faults: BTreeMap<Fault, u64>,
}

impl Load {
    /// How often this trouble struck.
    pub fn struck(&self, fault: Fault) -> u64 {
        self.faults.get(&fault).copied().unwrap_or(0)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, most_in_a_second, faults } = self;
        write!(f, "{calls} calls, {most_in_a_second} in the busiest second")?;
        faults.iter().try_for_each(|(fault, times)| write!(f, ", {times} {fault}"))
    }
}
