//! The volumes that a NodeClass gives its machines, judged: whether the API would make such.

use crate::api::classes::outscale::{BlockDeviceMapping, OutscaleNodeClassSpec};

use super::found::Fault;
use super::oapi::wire::Snapshot;

/// The most I/O operations a second that a volume of type io1 may have for each of its GiB (Outscale's API, `BsuToCreate.Iops`).
const IOPS_PER_GIB: u32 = 300;

/// The snapshots that volumes are filled from.
pub(super) fn snapshots(spec: &OutscaleNodeClassSpec) -> Vec<String> {
    spec.volumes().into_iter().filter_map(|volume| volume.bsu.snapshot_id).collect()
}

/// Whether all volumes can be made, given the snapshots that the API found.
pub(super) fn judged(spec: &OutscaleNodeClassSpec, found: &[Snapshot]) -> Result<(), Fault> {
    spec.volumes().iter().try_for_each(|volume| {
        fast_enough(volume)?;
        match &volume.bsu.snapshot_id {
            Some(id) => filled(volume, id, found.iter().find(|snapshot| snapshot.snapshot_id == *id)),
            None => Ok(()),
        }
    })
}

fn field(volume: &BlockDeviceMapping, name: &str) -> String {
    format!("spec.blockDeviceMappings[{}].bsu.{name}", volume.device_name)
}

fn fast_enough(volume: &BlockDeviceMapping) -> Result<(), Fault> {
    let (iops, size) = (volume.bsu.iops.unwrap_or(0), volume.bsu.size());
    let most = size.saturating_mul(IOPS_PER_GIB);
    if iops <= most {
        return Ok(());
    }
    let message = format!(
        "{}: {iops} are more than {IOPS_PER_GIB} for each GiB of {size}; lower it to {most}, or raise volumeSize to {}",
        field(volume, "iops"),
        iops.div_ceil(IOPS_PER_GIB)
    );
    Err(Fault::new("TooManyIops", message))
}

fn filled(volume: &BlockDeviceMapping, id: &str, snapshot: Option<&Snapshot>) -> Result<(), Fault> {
    let Some(snapshot) = snapshot else {
        let message = format!(
            "{}: the account sees no snapshot {id}; name one of its region that it owns or may use",
            field(volume, "snapshotId")
        );
        return Err(Fault::new("SnapshotNotFound", message));
    };
    if let Some(state) = snapshot.state.as_deref().filter(|state| *state != "completed") {
        let message = format!(
            "{}: snapshot {id} is {state}; wait until it is completed, or name another",
            field(volume, "snapshotId")
        );
        return Err(Fault::new("SnapshotNotReady", message));
    }
    let (needed, size) = (snapshot.volume_size.unwrap_or(0), volume.bsu.size());
    if needed > size {
        let message = format!(
            "{}: snapshot {id} needs a volume of {needed} GiB; raise it from {size}",
            field(volume, "volumeSize")
        );
        return Err(Fault::new("VolumeTooSmall", message));
    }
    Ok(())
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
