//! The process: memory, CPU, files.

use super::Samples;
use super::families as f;

/// Samples the process. `live_bytes` is what the allocator has handed out; what the platform does not tell is left out.
pub fn sample_process(samples: &mut Samples, live_bytes: u64) {
    let seen = metrics_process::collector::collect();
    if let Some(seconds) = seen.cpu_seconds_total {
        samples.add(&f::PROCESS_CPU, &[], seconds);
    }
    let gauges = [
        (f::PROCESS_RESIDENT, seen.resident_memory_bytes),
        (f::PROCESS_VIRTUAL, seen.virtual_memory_bytes),
        (f::PROCESS_START, seen.start_time_seconds),
        (f::PROCESS_FDS, seen.open_fds),
        (f::PROCESS_MAX_FDS, seen.max_fds),
        (f::PROCESS_THREADS, seen.threads),
        (f::HEAP_LIVE, Some(live_bytes)),
    ];
    for (family, value) in gauges {
        if let Some(value) = value {
            samples.add(&family, &[], value as f64);
        }
    }
}
