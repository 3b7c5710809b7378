//! Names of new NodeClaims: `<pool>-<5 characters>`, the same for the same problem and salt, and never one that exists.

use std::collections::BTreeSet;

use crate::core::ids::{ClaimName, PoolName};

use super::problem::Problem;

/// Kubernetes' alphabet for generated names: no vowels and nothing that looks like another character.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Gives out names.
pub(super) struct Names<'p> {
    problem: &'p Problem<'p>,
    given: BTreeSet<ClaimName>,
    next: u64,
}

impl<'p> Names<'p> {
    pub(super) fn new(problem: &'p Problem<'p>) -> Self {
        Self { problem, given: BTreeSet::new(), next: 0 }
    }

    pub(super) fn name(&mut self, pool: &PoolName) -> ClaimName {
        loop {
            let mut bits = mix(self.problem.settings.name_salt ^ mix(self.next));
            self.next += 1;
            let mut text = format!("{pool}-");
            for _ in 0..5 {
                text.push(char::from(ALPHABET[usize::try_from(bits % 27).expect("27 characters")]));
                bits /= 27;
            }
            let name = ClaimName::from(text);
            if !self.problem.snapshot.claims.contains_key(&name) && self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The finalizer of splitmix64: spreads the bits of a counter.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
