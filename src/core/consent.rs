//! Consent: what a person has said about findings that the auditor does not dare to act upon by itself.
//!
//! It is said with an annotation on joiner's Lease. The machines in question belong to no NodeClaim, often to no NodePool any more, and
//! the Lease is the one object that stands for the joiner that acts: it is there as long as joiner is, joiner reads it every two seconds
//! anyway, and whoever may write it may stop joiner altogether.

use std::collections::BTreeSet;
use std::fmt;

use crate::core::audit::Finding;

/// The annotation: `approve <id>` or `dismiss <id>`, with the ID that joiner names. It belongs to the cluster's people, so it has no domain.
pub const ANNOTATION: &str = "joiner-audit";

/// What a person decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// Names a set of findings, so that a decision about it is none about another: eight hexadecimal digits.
pub fn id(findings: &BTreeSet<Finding>) -> String {
    // FNV-1a: what was written down yesterday must mean the same tomorrow.
    let bytes = findings.iter().flat_map(|finding| finding.to_string().into_bytes().into_iter().chain([b'\n']));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

/// Decisions that hold. They end with the annotation that said them, and with this joiner: the next one asks again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Consent {
    /// The annotation that was taken as a decision, and which.
    taken: Option<(String, Decision)>,
    about: BTreeSet<Finding>,
    /// Why the annotation means nothing, if it does not.
    pub misunderstood: Option<String>,
}

impl Consent {
    /// The annotation as it is now: a decision that is no longer said no longer holds.
    pub fn hear(&mut self, said: Option<&str>) {
        self.misunderstood = None;
        if self.taken.as_ref().is_some_and(|(text, _)| Some(text.as_str()) != said) {
            *self = Self::default();
        }
    }

    /// Whether the annotation decides about these findings; then it does from now on.
    pub fn take(&mut self, said: Option<&str>, findings: &BTreeSet<Finding>) -> Option<Decision> {
        let said = said?;
        let wanted = id(findings);
        let decision = match said.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["approve", named] if *named == wanted => Decision::Approve,
            ["dismiss", named] if *named == wanted => Decision::Dismiss,
            ["approve" | "dismiss", named] => {
                self.misunderstood = Some(format!(
                    "annotation {ANNOTATION} is about {named}, and what is found now is {wanted}; look at it and decide again"
                ));
                return None;
            }
            _ => {
                self.misunderstood = Some(format!(
                    "annotation {ANNOTATION} is {said:?}; write \"approve {wanted}\" or \"dismiss {wanted}\""
                ));
                return None;
            }
        };
        self.taken = Some((said.to_owned(), decision));
        self.about.clone_from(findings);
        Some(decision)
    }

    /// What was decided about a finding.
    pub fn about(&self, finding: &Finding) -> Option<Decision> {
        let (_, decision) = self.taken.as_ref()?;
        self.about.contains(finding).then_some(*decision)
    }

    /// The decision that holds, in words.
    pub fn describe(&self) -> Option<String> {
        let (text, _) = self.taken.as_ref()?;
        Some(format!("{text}: {} findings", self.about.len()))
    }
}
