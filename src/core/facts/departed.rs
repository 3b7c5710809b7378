//! NodeClaims that have gone: a list from before their end does not bring them back.
//!
//! A watch that begins anew may be answered from a cache that lags minutes behind, and show NodeClaims that are not there any more. Whoever believed it would
//! launch machines for them. A UID is given once, so that nothing that has gone comes back under it.

use imbl::{OrdSet, Vector};

use crate::core::ids::ClaimUid;

/// So many are remembered, those that went last: as many as joiner is made to look after, so that all can be replaced at once. Each takes some hundred bytes.
const REMEMBERED: usize = 10_000;

/// The NodeClaims that went last, as a watch has told of each. That a list lacks one, or the API server finds none, is not for good: the list may be from
/// before it was made, and an API server that has just started may not know the kind yet.
#[derive(Clone, Debug, Default)]
pub struct Departed {
    uids: OrdSet<ClaimUid>,
    in_order: Vector<ClaimUid>,
}

impl Departed {
    /// One has gone.
    pub fn add(&mut self, uid: &ClaimUid) {
        if self.uids.insert(uid.clone()).is_some() {
            return;
        }
        self.in_order.push_back(uid.clone());
        if self.in_order.len() > REMEMBERED
            && let Some(first) = self.in_order.pop_front()
        {
            self.uids.remove(&first);
        }
    }

    /// Whether it has gone.
    pub fn has(&self, uid: &ClaimUid) -> bool {
        self.uids.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_went_last_are_remembered() {
        let mut departed = Departed::default();
        let uid = |number: usize| ClaimUid::from(format!("uid-{number}").as_str());
        departed.add(&uid(0));
        (0..REMEMBERED).for_each(|number| departed.add(&uid(number)));
        assert!(departed.has(&uid(0)), "who is told twice is remembered once");
        departed.add(&uid(REMEMBERED));
        assert_eq!((departed.has(&uid(0)), departed.has(&uid(1)), departed.has(&uid(REMEMBERED))), (false, true, true));
        assert_eq!((departed.uids.len(), departed.in_order.len()), (REMEMBERED, REMEMBERED));
    }
}
