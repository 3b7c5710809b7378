//! Features in whole worlds: static NodePools, NodeOverlays, CapacityBuffers, and the places of pods whose node goes, each from the object
//! that a user writes to the nodes that come of it.

#[path = "common/rehearsals.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod rehearsals;

#[path = "features/buffers.rs"]
mod buffers;
#[path = "features/leaving.rs"]
mod leaving;
#[path = "features/overlays.rs"]
mod overlays;
#[path = "features/schedulers.rs"]
mod schedulers;
#[path = "features/statics.rs"]
mod statics;

use joiner::actors::{Joiner, Settings};
use joiner::cluster::convert::ShapeStore;
use joiner::command::Rehearsal;
use joiner::manifests::{Admission, read_object};
use joiner::sim::{Act, Scenario};
use serde_json::Value;

/// A user applies a manifest.
fn apply(rehearsal: &Rehearsal, manifest: &Value) {
    let objects =
        read_object(manifest, &ShapeStore::new(), &Admission::default()).expect("the manifest is well-formed");
    rehearsal.world.perform(&Act::Apply(objects)).expect("the object can be applied");
}

/// Plays a story in the world of a scenario, with a joiner.
fn tell(scenario: &Scenario, settings: Settings, story: impl AsyncFnOnce(&Rehearsal, &Joiner)) {
    rehearsals::in_virtual_time(async {
        let rehearsal = rehearsals::rehearsal(scenario, 7, settings);
        let joiner = rehearsal.joiner();
        rehearsals::play(&rehearsal, scenario, async { story(&rehearsal, &joiner).await }).await;
        joiner.kill();
    });
}
