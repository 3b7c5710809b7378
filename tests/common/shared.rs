//! Data that is not in this repository: specifications, recordings, upstream's definitions, traces. Tests that need some look for it in
//! `$JOINER_SHARED_DATA`, else beside the repository, and skip aloud where it is not.

use std::io::Write;
use std::path::PathBuf;

/// Where a file or folder of the shared data is; nothing, said aloud, where it is not.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = std::env::var_os("JOINER_SHARED_DATA").map_or_else(beside, PathBuf::from).join(name);
    if path.exists() {
        return Some(path);
    }
    // Straight to the stream, as what a test prints is shown only when it fails.
    drop(
        std::io::stderr()
            .write_all(format!("SKIPPED: {} is not there; set JOINER_SHARED_DATA\n", path.display()).as_bytes()),
    );
    None
}
