//! Our own time and memory, which a simulated clock says nothing about.

use std::time::Duration;

/// Measures our own time.
#[expect(clippy::disallowed_types, reason = "tokio's clock is a made-up one in a rehearsal")]
pub(super) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_types, reason = "tokio's clock is a made-up one in a rehearsal")]
    pub(super) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// How long it has run.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The most memory that this process has held so far, in bytes; 0 where the system does not tell.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
