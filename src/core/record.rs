//! The record: what the auditor has done and why, what it has found, and which findings a person was asked about. It stands in an annotation of
//! joiner's Lease, where anybody can read it and whoever acts next goes on with it. It proves nothing: evidence is gathered anew by each auditor.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use jiff::Timestamp;

use crate::core::time::rfc3339;

/// The annotation, beside that of [`crate::core::consent`].
pub const ANNOTATION: &str = "joiner-audit-record";
/// Most bytes of what was done. It travels with each renewal of the Lease, every two seconds.
const MOST: usize = 8 << 10;
/// Most characters of why one thing was done, and of what was seen of one finding.
const LONGEST: usize = 500;
/// Most characters of what a person wrote: some IDs, by which one word is known from the next.
const EXCERPT: usize = 200;
/// Most findings in it: a cluster that was renamed has hundreds, and they are all alike.
const FINDINGS: usize = 10;
/// Bytes of a line beside its text: the time, a space and the end.
const STAMP: usize = "1970-01-01T00:00:00Z ".len() + 1;
/// What its line begins with that names what a person was asked about.
const HELD: &str = "asked about: ";
/// Most findings in that line. While one of them waits nothing goes, so that the next auditor finds and asks about the others.
pub const HELD_MOST: usize = 300;
/// What begins with, behind the time, that a person has said.
const PERSON: &str = "a person ";
/// What a finding begins with, behind the time.
const FOUND: &str = "found: ";
/// What is behind a finding that is no more, before the time.
const OVER: &str = "; no more since ";

/// What is written down.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// What was done, and when: the latest first.
    pub deeds: VecDeque<(Timestamp, String)>,
    /// What was found, and since when; or that it is no more, and since when. The latest first.
    pub findings: VecDeque<(Timestamp, String)>,
    /// IDs of findings that a person was asked about; see [`crate::core::consent::Consent::held`].
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
                match deed.strip_prefix(FOUND) {
                    Some(finding) => record.findings.push_back((at, finding.to_owned())),
                    None => record.deeds.push_back((at, deed.to_owned())),
                }
            }
        }
        record
    }

    /// Writes down what was done, and why. What had to be tried again is there once; the oldest deeds go when there is no room.
    pub fn note(&mut self, at: Timestamp, what: &str, why: &str) {
        let what = beginning(what);
        self.deeds.retain(|(_, deed)| !deed.starts_with(&what));
        self.deeds.push_front((at, what + &line(why)));
        let size = |deeds: &VecDeque<(_, String)>| deeds.iter().map(|(_, deed)| STAMP + deed.len()).sum::<usize>();
        while self.deeds.len() > 1 && size(&self.deeds) > MOST {
            self.deeds.pop_back();
        }
    }

    /// Writes down what a person has said, or that it was taken back, unless that is the last word that stands there: whoever was just started hears it
    /// anew.
    pub fn heard(&mut self, at: Timestamp, words: Option<&str>, about: &str) {
        let last = self.deeds.iter().map(|(_, deed)| deed).find(|deed| deed.starts_with(PERSON));
        let what = match words {
            Some(words) => format!("{PERSON}said {}", excerpt(words)),
            None if last.is_none() => return,
            None => format!("{PERSON}took back what was said"),
        };
        if last.is_none_or(|last| !last.starts_with(&beginning(&what))) {
            self.note(at, &what, about);
        }
    }

    /// Whether it is written down that this was done, for that reason.
    pub fn has(&self, what: &str, why: &str) -> bool {
        let deed = beginning(what) + &line(why);
        self.deeds.iter().any(|(_, known)| *known == deed)
    }

    /// Takes in what a look has found, with what it saw. A finding is written down with the time of the first look that made it, were it one of an
    /// auditor before this one, and again when it is no more. Beyond the first few the page and the log have them.
    pub fn saw(&mut self, at: Timestamp, mut found: BTreeMap<String, &str>) {
        for (_, finding) in self.findings.iter_mut().filter(|(_, finding)| !finding.contains(OVER)) {
            let known = found.keys().find(|what| finding.starts_with(&format!("{what}: "))).cloned();
            match known {
                Some(what) => drop(found.remove(&what)),
                None => finding.extend([OVER, &rfc3339(at)]),
            }
        }
        let open = self.findings.iter().filter(|(_, finding)| !finding.contains(OVER)).count();
        for (what, seen) in found.into_iter().take(FINDINGS.saturating_sub(open)) {
            self.findings.push_front((at, format!("{}: {}", line(&what), line(seen))));
        }
        while self.findings.len() > FINDINGS
            && let Some(over) = self.findings.iter().rposition(|(_, finding)| finding.contains(OVER))
        {
            self.findings.remove(over);
        }
    }
}

/// What a deed begins with: all but the reason.
fn beginning(what: &str) -> String {
    format!("{what}: ").replace('\n', " ")
}

/// The beginning of a text, in quotes, which may have any length.
fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(EXCERPT).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// A text that fits into a line.
fn line(text: &str) -> String {
    text.replace('\n', " ").chars().take(LONGEST).collect()
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.held.is_empty() {
            let ids: Vec<&str> = self.held.iter().map(String::as_str).collect();
            writeln!(f, "{HELD}{}", ids.join(","))?;
        }
        self.deeds.iter().try_for_each(|(at, deed)| writeln!(f, "{} {deed}", rfc3339(*at)))?;
        self.findings.iter().try_for_each(|(at, finding)| writeln!(f, "{} {FOUND}{finding}", rfc3339(*at)))
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
