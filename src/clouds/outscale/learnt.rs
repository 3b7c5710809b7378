//! What machines really have: the memory that their kubelets report, which no list of types tells.
//!
//! It is remembered by VM type and image, for another kernel keeps another part of it. A joiner that starts anew learns it again from the Nodes that
//! are there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::vm_type::VmType;

/// A machine has at least this part of the memory that its type names, in percent; a Node that shows less is not such a machine.
const LEAST: i64 = 50;
const MIB: i64 = 1 << 20;

/// The memory of machines.
#[derive(Default)]
pub(super) struct Learnt(Mutex<State>);

#[derive(Default)]
struct State {
    /// Thousandths of a byte by VM type and image: the least that was seen.
    memory: BTreeMap<(String, String), i64>,
    epoch: u64,
}

impl Learnt {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Node of this type and image has so much memory (thousandths of a byte). Says whether that is news.
    pub(super) fn learn(&self, kind: &str, image: &str, memory: i64) -> bool {
        // How large fixed types are is seen when it is asked for: their list may not have been read yet.
        let strange = VmType::parse(kind).is_some_and(|kind| !is_plausible(&kind, memory));
        if image.is_empty() || memory <= 0 || strange {
            return false;
        }
        let mut state = self.state();
        let known = state.memory.entry((kind.to_owned(), image.to_owned())).or_insert(i64::MAX);
        // Of two machines that differ the smaller counts: what is planned for it fits on both.
        if *known <= memory {
            return false;
        }
        *known = memory;
        state.epoch += 1;
        true
    }

    /// The memory of such machines, where it is known.
    pub(super) fn memory(&self, kind: &VmType, image: &str) -> Option<i64> {
        let seen = self.state().memory.get(&(kind.name.clone(), image.to_owned())).copied();
        seen.filter(|memory| is_plausible(kind, *memory))
    }

    /// Rises with everything that is learnt.
    pub(super) fn epoch(&self) -> u64 {
        self.state().epoch
    }
}

/// Whether a machine of a type may have so much memory.
fn is_plausible(kind: &VmType, memory: i64) -> bool {
    let nominal = kind.memory_mib.saturating_mul(MIB * 1000);
    (nominal / 100 * LEAST..=nominal).contains(&memory)
}

#[cfg(test)]
#[path = "learnt_tests.rs"]
mod tests;
