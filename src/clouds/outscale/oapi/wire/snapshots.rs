//! Snapshots of volumes.

use super::envelope::ResponseContext;

requests! {
    /// Lists snapshots.
    ReadSnapshots {
        /// Which.
        filters: Option<SnapshotFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which snapshots.
    SnapshotFilters {
        /// IDs; an empty list means all.
        snapshot_ids: Vec<String>,
    }
}

answers! {
    /// Snapshots.
    TheSnapshots {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The snapshots.
        snapshots: Vec<Snapshot>,
    }

    /// A snapshot.
    Snapshot {
        /// ID.
        snapshot_id: String,
        /// `in-queue`, `pending`, `completed`, `error`, `deleting`.
        state: Option<String>,
        /// GiB of the volume that it was made of.
        volume_size: Option<u32>,
    }
}
