//! The record: what the auditor has done and why, and which findings wait for a word of their own. It stands in an annotation of joiner's Lease, where
//! anybody can read it and whoever acts next goes on with it. What was found and not acted upon is not in it: that is found again.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use jiff::Timestamp;

use crate::core::time::rfc3339;

/// The annotation, beside that of [`crate::core::consent`].
pub const ANNOTATION: &str = "joiner-audit-record";
/// Most bytes of it. It travels with each renewal of the Lease, every two seconds.
const MOST: usize = 8 << 10;
/// Most characters of why one thing was done.
const LONGEST: usize = 500;
/// What its line begins with that names findings.
const HELD: &str = "waiting for a decision: ";

/// What is written down.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// What was done, and when: the latest first.
    pub deeds: VecDeque<(Timestamp, String)>,
    /// IDs of findings that wait for a word of their own; see [`crate::core::consent::Consent::held`].
    pub held: BTreeSet<String>,
}

impl Record {
    /// Reads an annotation. Lines that say nothing are left out: somebody may have written there.
    pub fn read(text: &str) -> Self {
        let mut record = Self::default();
        for line in text.lines() {
            if let Some(ids) = line.strip_prefix(HELD) {
                record.held.extend(ids.split(',').map(ToOwned::to_owned));
            } else if let Some((at, deed)) = line.split_once(' ')
                && let Ok(at) = at.parse()
            {
                record.deeds.push_back((at, deed.to_owned()));
            }
        }
        record
    }

    /// Writes down what was done, and why. What had to be tried again is there once; the oldest deeds go when there is no room.
    pub fn note(&mut self, at: Timestamp, what: &str, why: &str) {
        let what = format!("{what}: ").replace('\n', " ");
        self.deeds.retain(|(_, deed)| !deed.starts_with(&what));
        let why = why.replace('\n', " ").chars().take(LONGEST).collect::<String>();
        self.deeds.push_front((at, what + &why));
        while self.deeds.len() > 1 && self.to_string().len() > MOST {
            self.deeds.pop_back();
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.held.is_empty() {
            let ids: Vec<&str> = self.held.iter().map(String::as_str).collect();
            writeln!(f, "{HELD}{}", ids.join(","))?;
        }
        self.deeds.iter().try_for_each(|(at, deed)| writeln!(f, "{} {deed}", rfc3339(*at)))
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
