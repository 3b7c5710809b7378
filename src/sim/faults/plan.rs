//! The list of what is to go wrong, drawn from the seed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::kind::Fault;
use crate::sim::seed::{self, Seed};

/// How long after a busy moment most faults strike.
const WAKE: Duration = Duration::from_mins(20);
/// How many in a hundred of a history's faults strike close to its busy moments.
const NEAR: u32 = 60;
/// How many in a hundred of the kinds are left out of a history. Histories that lack a kind reach states that those with all of them
/// never do.
const LEFT_OUT: u32 = 35;
/// How often a day a kind that is named without a number strikes at least, on average.
const OFTEN: f64 = 12.0;
/// How often a day a kind may strike at most: more than once a second is another kind of trouble.
const MOST: f64 = 86_400.0;
/// Most occasions that a fault lets pass.
const PASSED_OVER: u64 = 12;

/// Something that is to go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mishap {
    /// From when on it waits for an occasion, counted from the start.
    pub at: Duration,
    /// What.
    pub fault: Fault,
    /// How long it lasts, or how long it delays something.
    pub lasting: Duration,
    /// How many occasions it lets pass.
    pub pass_over: u64,
    /// Decides what else is open: which object, which way.
    pub pick: u64,
}

/// What is to go wrong in a history, in order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan(pub Vec<Mishap>);

/// Which faults there are.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Profile {
    /// None.
    #[default]
    None,
    /// All kinds, in different mixtures.
    Mixed,
    /// These kinds, so often a day on average.
    These(Cow<'static, [(Fault, f64)]>),
}

/// What does not name a profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownProfile {
    /// There is no such kind.
    #[error("there are no faults {0:?}; write none, mixed, or some of {words} with commas between them", words = words())]
    Kind(String),
    /// A kind is named more than once.
    #[error("{0} is there twice; write it once")]
    Twice(&'static str),
    /// A number that says nothing.
    #[error("{fault}={number} says nothing; write how often a day it is to strike on average, as {fault}=300")]
    Number {
        /// The kind.
        fault: String,
        /// What stands for its number.
        number: String,
    },
}

fn words() -> String {
    Fault::ALL.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(", ")
}

impl Profile {
    /// Reads `none`, `mixed`, or kinds with commas between them. A kind strikes much more often than in a mixed history, or as often a day as the
    /// number behind it says, as in `watch-stale=300`.
    pub fn parse(words: &str) -> Result<Self, UnknownProfile> {
        match words {
            "none" => Ok(Self::None),
            "mixed" => Ok(Self::Mixed),
            _ => {
                let these = words.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
                let mut known = BTreeSet::new();
                match these.iter().find(|(fault, _)| !known.insert(fault.as_str())) {
                    Some((twice, _)) => Err(UnknownProfile::Twice(twice.as_str())),
                    None => Ok(Self::These(these.into())),
                }
            }
        }
    }

    /// The kinds that strike in histories of this profile, if there are enough of them.
    pub fn kinds(&self) -> Vec<Fault> {
        match self {
            Self::None => Vec::new(),
            Self::Mixed => Fault::ALL.iter().copied().filter(|fault| fault.a_day() > 0.0).collect(),
            Self::These(these) => these.iter().filter(|(_, a_day)| *a_day > 0.0).map(|(fault, _)| *fault).collect(),
        }
    }

    /// Whether one of these kinds is asked for by its name.
    pub fn names(&self, faults: &[Fault]) -> bool {
        matches!(self, Self::These(these) if these.iter().any(|(named, _)| faults.contains(named)))
    }
}

/// As it is read.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Mixed => f.write_str("mixed"),
            Self::These(these) => {
                let words = these.iter().map(|(fault, a_day)| format!("{}={a_day}", fault.as_str()));
                f.write_str(&words.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// One kind of a profile, and how often a day it strikes.
fn one(word: &str) -> Result<(Fault, f64), UnknownProfile> {
    let (name, number) = word.split_once('=').map_or((word, None), |(name, number)| (name, Some(number)));
    let fault = Fault::ALL.iter().copied().find(|fault| fault.as_str() == name);
    let fault = fault.ok_or_else(|| UnknownProfile::Kind(name.to_owned()))?;
    let Some(number) = number else { return Ok((fault, OFTEN.max(10.0 * fault.a_day()))) };
    let a_day = number.parse().ok().filter(|a_day: &f64| (0.0..=MOST).contains(a_day));
    let unclear = || UnknownProfile::Number { fault: name.to_owned(), number: number.to_owned() };
    Ok((fault, a_day.ok_or_else(unclear)?))
}

impl Plan {
    /// Draws what is to go wrong from the start until `calm`; much of it soon after the `busy` moments.
    pub fn draw(seed: Seed, profile: &Profile, busy: &[Duration], calm: Duration) -> Self {
        let mut character = seed.stream("faults");
        // How hostile this history is: from nearly friendly to twice the average.
        let hostility = match profile {
            Profile::Mixed => 2.0 * character.f64(),
            Profile::None | Profile::These(_) => 1.0,
        };
        let mut plan = Vec::new();
        for fault in Fault::ALL.iter().copied() {
            let left_out = character.u32(..100) < LEFT_OUT;
            let a_day = match profile {
                Profile::None => 0.0,
                Profile::Mixed if left_out => 0.0,
                Profile::Mixed => fault.a_day() * hostility,
                Profile::These(these) => these.iter().find(|(these, _)| *these == fault).map_or(0.0, |(_, rate)| *rate),
            };
            let mut rng = seed.stream(fault.as_str());
            let mean = a_day * calm.as_secs_f64() / 86_400.0;
            // Uniform between none and twice the mean: the spread matters, the shape does not.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small count, never negative"
            )]
            let count = (2.0 * mean * rng.f64()).round() as u64;
            for _ in 0..count {
                let at = if rng.u32(..100) < NEAR && !busy.is_empty() {
                    busy[rng.usize(..busy.len())] + seed::between(&mut rng, (Duration::ZERO, WAKE))
                } else {
                    seed::between(&mut rng, (Duration::ZERO, calm))
                };
                let mut lasting = seed::between(&mut rng, fault.lasts());
                let (pass_over, pick) = (rng.u64(..=PASSED_OVER), rng.u64(..));
                if at >= calm {
                    continue;
                }
                lasting = lasting.min(calm.saturating_sub(at));
                plan.push(Mishap { at, fault, lasting, pass_over, pick });
            }
        }
        plan.sort_by_key(|mishap| (mishap.at, mishap.fault));
        Self(plan)
    }

    /// The plan with only those mishaps that a test lets stay.
    #[must_use]
    pub fn keep(&self, stays: impl Fn(usize, &Mishap) -> bool) -> Self {
        Self(self.0.iter().enumerate().filter(|(at, mishap)| stays(*at, mishap)).map(|(_, mishap)| *mishap).collect())
    }
}
