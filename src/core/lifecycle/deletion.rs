//! Deletions that were asked for and do not show yet: asked for again when they may have got lost, and never again once they were granted.

use jiff::Timestamp;

use crate::core::ids::NodeUid;

use super::Act;
use super::step::{Step, after};

/// Seconds after which a deletion that was neither granted nor refused is asked for again. The watch shows soon that it was granted, or
/// takes its time; asking on and on until then would be a storm of requests.
const ASK_AGAIN: i64 = 5;

/// The deletion that was last asked for. One is enough: a NodeClaim's comes first, then those of its Nodes, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deletion {
    of: Doomed,
    asked: Timestamp,
    granted: bool,
}

/// What is to be deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Doomed {
    Claim,
    Node(NodeUid),
}

impl Deletion {
    /// An act is about to be done; the deletion that it asks for, if it asks for one.
    pub fn asked(act: &Act, now: Timestamp) -> Option<Self> {
        Some(Self { of: doomed(act)?, asked: now, granted: false })
    }

    /// The API server has granted it.
    pub fn grant(&mut self) {
        self.granted = true;
    }

    /// One that a clock that was ahead has dated was asked for now.
    pub(super) fn mend(&mut self, now: Timestamp) {
        self.asked = self.asked.min(now);
    }

    /// Turns a step into a wait that asks for what was asked for already.
    pub(super) fn hold(&self, step: &mut Step, now: Timestamp) {
        let again = after(self.asked, ASK_AGAIN);
        let wanted = step.act.as_ref().and_then(doomed);
        if wanted.as_ref() != Some(&self.of) || !self.granted && now >= again {
            return;
        }
        step.act = None;
        step.waits_for = Some(match self.of {
            Doomed::Claim => "the NodeClaim to show its deletion".to_owned(),
            Doomed::Node(_) => "the Node to show its deletion".to_owned(),
        });
        if !self.granted {
            step.look_at = Some(step.look_at.map_or(again, |earlier| earlier.min(again)));
        }
    }
}

fn doomed(act: &Act) -> Option<Doomed> {
    match act {
        Act::DeleteClaim(_) => Some(Doomed::Claim),
        Act::DeleteNode(_, uid) => Some(Doomed::Node(uid.clone())),
        _ => None,
    }
}
