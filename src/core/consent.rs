//! Consent: what a person has said about findings that the auditor does not dare to act upon by itself.
//!
//! It is said with an annotation on joiner's Lease. The machines in question belong to no NodeClaim, often to no NodePool any more, and
//! the Lease is the one object that stands for the joiner that acts: it is there as long as joiner is, joiner reads it every two seconds
//! anyway, and whoever may write it may stop joiner altogether.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::core::audit::Finding;

/// The annotation: `approve <ids>`, `dismiss <ids>` or both, with the IDs that joiner names. It belongs to the cluster's people, so it has no domain.
pub const ANNOTATION: &str = "joiner-audit";

/// Hexadecimal digits of an ID.
const DIGITS: usize = 12;
/// Most characters of a word that is quoted to say that it is wrong.
const LONGEST: usize = 40;

/// What a person decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decision {
    /// The findings are right: act upon them, as slowly as upon any others.
    Approve,
    /// The findings are wrong, or none of joiner's business: leave them alone, and let them stand in nobody's way.
    Dismiss,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "approve",
            Self::Dismiss => "dismiss",
        })
    }
}

/// Names a finding, so that a decision about it is none about another, nor about a namesake of its object: twelve hexadecimal digits. Of a thousand findings in one question two have the same
/// name once in 500 million clusters.
pub fn id(finding: &Finding) -> String {
    // FNV-1a: what was written down yesterday must mean the same tomorrow.
    let text = finding.to_string();
    let hash = text
        .bytes()
        .chain(finding.uid().unwrap_or_default().bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:0DIGITS$x}", ((hash >> 48) ^ hash) & 0xffff_ffff_ffff)
}

/// What a person can write about findings that wait for a decision, word for word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// If they are right.
    pub approve: String,
    /// If they are not.
    pub dismiss: String,
    /// What the IDs in these words are about: those that wait, and those that were decided and still stand.
    pub about: BTreeMap<String, String>,
}

/// What a person has decided: what the annotation says. A joiner that was just started reads the same as the one before it, and each finding is named,
/// so that what was said holds for it whatever became of the others. Nor does what was left unsaid turn into a word: what a person was asked about stays a
/// question until it is decided or no more, were it one of few by then.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    said: Option<String>,
    /// What was last understood: words that are none take nothing back.
    understood: Option<String>,
    decisions: BTreeMap<String, Decision>,
    /// IDs of findings that a person was asked about or has dismissed, and since when each of them is not found, if it is not.
    held: BTreeMap<String, Option<Duration>>,
    /// It was told that this was heard.
    told: bool,
    /// Why the annotation means nothing, if it does not.
    misunderstood: Option<String>,
}

impl Consent {
    /// The annotation as it is now. Of one that cannot be understood nobody knows whether it was to take back what stood there before, so that this stays
    /// in force.
    pub fn hear(&mut self, said: Option<&str>) {
        if self.said.as_deref() == said {
            return;
        }
        self.said = said.map(ToOwned::to_owned);
        match said.map_or_else(|| Ok(BTreeMap::new()), read) {
            Ok(decisions) => {
                let dismissed = decisions.iter().filter(|(_, decision)| **decision == Decision::Dismiss);
                self.resume(dismissed.map(|(id, _)| id.clone()).collect());
                self.understood.clone_from(&self.said);
                self.told &= self.decisions == decisions;
                self.decisions = decisions;
                self.misunderstood = None;
            }
            Err(why) => {
                self.misunderstood = Some(format!(
                    "annotation {ANNOTATION} is not understood: {why}; right are the words approve and dismiss, each with IDs behind it that have commas \
                     between them"
                ));
            }
        }
    }

    /// Why nobody knows what the annotation means, while that is so. What it meant before is in force, as far as this joiner has read that.
    pub fn unread(&self) -> Option<&str> {
        self.misunderstood.as_deref().filter(|_| self.said != self.understood)
    }

    /// Why the annotation means nothing, or nothing any more.
    pub fn misunderstood(&self) -> Option<&str> {
        self.misunderstood.as_deref()
    }

    /// What was decided about a finding.
    pub fn about(&self, finding: &Finding) -> Option<Decision> {
        if self.decisions.is_empty() { None } else { self.decisions.get(&id(finding)).copied() }
    }

    /// IDs of what a person was asked about or has dismissed, those first that nobody has decided about.
    pub fn held(&self) -> impl Iterator<Item = &String> {
        let (decided, open): (Vec<_>, Vec<_>) = self.held.keys().partition(|id| self.decisions.contains_key(*id));
        open.into_iter().chain(decided)
    }

    /// Goes on with what an auditor before this one has asked about.
    pub fn resume(&mut self, held: BTreeSet<String>) {
        for id in held {
            self.held.entry(id).or_default();
        }
    }

    /// A person is asked about these findings.
    pub fn hold<'a>(&mut self, open: impl IntoIterator<Item = &'a Finding>) {
        self.resume(open.into_iter().map(id).collect());
    }

    /// Forgets what was asked about or dismissed and was not found for so long, by a clock that nobody sets: a look that does not show it may be the one
    /// that is wrong.
    pub fn forget<'a>(&mut self, found: impl Iterator<Item = &'a Finding>, moment: Duration, patience: Duration) {
        if self.held.is_empty() {
            return;
        }
        let found: BTreeSet<String> = found.map(id).collect();
        self.held.retain(|id, missing| {
            if found.contains(id) {
                *missing = None;
                return true;
            }
            moment.saturating_sub(*missing.get_or_insert(moment)) < patience
        });
    }

    /// Looks whether anything of what was decided about is still found.
    pub fn compare<'a>(&mut self, mut standing: impl Iterator<Item = &'a Finding>) {
        if self.unread().is_some() {
            return;
        }
        let is_of_others = !self.decisions.is_empty() && standing.all(|finding| self.about(finding).is_none());
        self.misunderstood = is_of_others.then(|| {
            let named: Vec<_> = self.decisions.keys().map(String::as_str).collect();
            let named = named.join(",");
            format!("annotation {ANNOTATION} is about {named}, which is not found now; look at it and decide again")
        });
    }

    /// Whether a finding waits for a word of its own, however few like it there are by now.
    pub fn is_held(&self, finding: &Finding) -> bool {
        !self.held.is_empty() && self.about(finding).is_none() && self.held.contains_key(&id(finding))
    }

    /// What was decided about these findings and was not told yet, with how many each decision is about.
    pub fn news<'a>(&mut self, findings: impl Iterator<Item = &'a Finding>) -> Vec<(Decision, usize)> {
        if self.told || self.decisions.is_empty() {
            return Vec::new();
        }
        let mut counts = BTreeMap::new();
        for decision in findings.filter_map(|finding| self.about(finding)) {
            *counts.entry(decision).or_insert(0) += 1;
        }
        self.told = !counts.is_empty();
        counts.into_iter().collect()
    }

    /// What can be written about findings that nobody has decided about. What was decided about others that still stand is said again with it.
    pub fn question<'a>(
        &self,
        open: &BTreeSet<&Finding>,
        standing: impl Iterator<Item = &'a Finding> + Clone,
    ) -> Question {
        let open: Vec<String> = open.iter().map(|finding| id(finding)).collect();
        let is_named = |finding: &&Finding| open.contains(&id(finding)) || self.about(finding).is_some();
        let about = standing.clone().filter(is_named).map(|finding| (id(finding), finding.to_string())).collect();
        let standing: Vec<&Finding> = standing.collect();
        let text = |now| self.words(now, &open, &standing);
        Question { approve: text(Decision::Approve), dismiss: text(Decision::Dismiss), about }
    }

    /// What to write that decides so about open findings, and repeats what is said of those that were decided.
    fn words(&self, now: Decision, open: &[String], standing: &[&Finding]) -> String {
        let mut words = Vec::new();
        for decision in [Decision::Approve, Decision::Dismiss] {
            let mut ids: Vec<String> = if decision == now { open.to_vec() } else { Vec::new() };
            let decided = standing.iter().filter(|finding| self.about(finding) == Some(decision));
            ids.extend(decided.map(|finding| id(finding)));
            if decision == Decision::Dismiss {
                // What this look does not show may be there again at the next. What is gone for good needs no word any more.
                let is_kept = |id: &&String| self.decisions.get(*id) == Some(&decision) && !ids.contains(*id);
                let kept: Vec<String> = self.held.keys().filter(is_kept).cloned().collect();
                ids.extend(kept);
            }
            if !ids.is_empty() {
                words.push(format!("{decision} {}", ids.join(",")));
            }
        }
        words.join(" ")
    }

    /// Whether a person says nothing. A word that is not understood takes nothing back.
    pub fn is_silent(&self) -> bool {
        self.said.is_none()
    }

    /// The decisions that hold, in words.
    pub fn describe(&self) -> Option<&str> {
        self.understood.as_deref()
    }
}

/// Reads an annotation: a decision and IDs with commas between them, once or more often; otherwise says what is wrong with it. What is both approved and
/// dismissed is left alone.
fn read(said: &str) -> Result<BTreeMap<String, Decision>, String> {
    let mut words = said.split_whitespace();
    let mut decisions = BTreeMap::new();
    while let Some(word) = words.next() {
        let decision = match word {
            "approve" => Decision::Approve,
            "dismiss" => Decision::Dismiss,
            _ => return Err(format!("{:?} is neither approve nor dismiss", excerpt(word))),
        };
        let ids = words.next().ok_or_else(|| format!("there are no IDs behind {word}"))?;
        for id in ids.split(',').filter(|id| !id.is_empty()) {
            if !is_id(id) {
                return Err(format!("{:?} is no ID of a finding", excerpt(id)));
            }
            let known = decisions.entry(id.to_owned()).or_insert(decision);
            *known = decision.max(*known);
        }
    }
    if decisions.is_empty() { Err("it names no finding".to_owned()) } else { Ok(decisions) }
}

/// Whether a word has the form of what [`id`] says.
fn is_id(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The beginning of a word that somebody may have written without end.
fn excerpt(word: &str) -> String {
    word.chars().take(LONGEST).collect()
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod tests;
