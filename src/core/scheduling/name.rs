//! Names of new NodeClaims: `<pool>-<5 characters>`, the same for the same problem and salt, and never one that exists.

use std::collections::BTreeSet;

use crate::core::facts::Snapshot;
use crate::core::ids::{ClaimName, PoolName};

/// Kubernetes' alphabet for generated names: no vowels and nothing that looks like another character.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Characters that a NodeClaim's name has more than that of its NodePool.
pub const NAME_SUFFIX: usize = 6;

/// Gives out names.
#[derive(Debug)]
pub struct Names<'p> {
    snapshot: &'p Snapshot,
    salt: u64,
    given: BTreeSet<ClaimName>,
    next: u64,
}

impl<'p> Names<'p> {
    /// Names that this snapshot does not have. Another salt gives other names.
    pub fn new(snapshot: &'p Snapshot, salt: u64) -> Self {
        Self { snapshot, salt, given: BTreeSet::new(), next: 0 }
    }

    /// One more name for a NodeClaim of this NodePool.
    pub fn name(&mut self, pool: &PoolName) -> ClaimName {
        loop {
            let mut bits = mix(self.salt ^ mix(self.next));
            self.next += 1;
            let mut text = format!("{pool}-");
            for _ in 0..5 {
                text.push(char::from(ALPHABET[usize::try_from(bits % 27).expect("27 characters")]));
                bits /= 27;
            }
            let name = ClaimName::from(text);
            if !self.snapshot.claims.contains_key(&name) && self.given.insert(name.clone()) {
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
