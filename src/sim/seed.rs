//! The only source of chance: one seed, from which every part of the world draws a stream of its own.

use std::time::Duration;

use fastrand::Rng;

/// Letters that Kubernetes uses in generated names: no vowels, and nothing that is easily confused.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The seed of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of random numbers of one part of the world. Parts draw from streams of their own, so that one more draw in one
    /// part does not change what happens in the others.
    pub fn stream(self, part: &str) -> Rng {
        // FNV-1a over the part's name, so that the streams differ and do not depend on a hasher's version.
        let name = part
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Rng::with_seed(self.0 ^ name)
    }
}

/// A UID in the form of a random (version 4) UUID.
pub(in crate::sim) fn uid(rng: &mut Rng) -> String {
    let bits = (rng.u128(..) & !(0xf000 << 64) & !(0xc000 << 48)) | (0x4000 << 64) | (0x8000 << 48);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// A suffix as Kubernetes generates it for names.
pub(super) fn suffix(rng: &mut Rng, length: usize) -> String {
    (0..length).map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())])).collect()
}

/// A duration between two bounds, both included; the bounds may come in any order.
pub(in crate::sim) fn between(rng: &mut Rng, (one, other): (Duration, Duration)) -> Duration {
    let (low, high) = (one.min(other), one.max(other));
    let span = u64::try_from(high.saturating_sub(low).as_micros()).unwrap_or(u64::MAX - 1);
    low + Duration::from_micros(rng.u64(0..=span))
}
