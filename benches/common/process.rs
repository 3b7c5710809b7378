//! What this process has used, as the system tells it. (Each benchmark takes a part of it.)
#![allow(dead_code, reason = "each benchmark needs a part of it")]

/// CPU time of this process so far, in seconds; 0 where the system does not tell.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15 (user and system time, in ticks of 10 ms) counted from behind the name, which may hold blanks.
    let ticks = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    ticks.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Memory that this process holds now, in bytes; 0 where the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}

/// Measures our own time, whatever tokio's clock says.
#[expect(clippy::disallowed_types, reason = "tokio's clock is a made-up one in the simulator")]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_types, reason = "tokio's clock is a made-up one in the simulator")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// How many seconds it has run.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
