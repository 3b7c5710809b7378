//! Checks behind `/healthz` and `/readyz`, and how their results are written.

use std::fmt::Write;
use std::sync::Arc;

/// Something that must hold.
#[derive(Clone)]
pub struct Check {
    /// One word; also the check's own path below the probe.
    pub name: &'static str,
    /// Whether it holds, or what is missing. Must not take time.
    pub holds: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    /// A check of this name.
    pub fn new(name: &'static str, holds: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name, holds: Arc::new(holds) }
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// Runs checks: whether all hold, and the text to answer with. Without `verbose`, only failing checks are named.
pub(super) fn examine(checks: &[Check], verbose: bool) -> (bool, String) {
    let (mut all, mut text) = (true, String::new());
    for check in checks {
        // Writing to a String cannot fail.
        let _ = match (check.holds)() {
            Ok(()) if verbose => writeln!(text, "[+]{} ok", check.name),
            Ok(()) => Ok(()),
            Err(missing) => {
                all = false;
                writeln!(text, "[-]{} failed: {missing}", check.name)
            }
        };
    }
    if all {
        text.push_str("ok\n");
    }
    (all, text)
}
