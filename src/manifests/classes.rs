//! The kinds of NodeClass that there are, what the API server would not keep of them and of joiner's other kinds, and the labels of their clouds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::api::capacitybuffer::CapacityBuffer;
use crate::api::classes::kwok::KwokNodeClass;
use crate::api::classes::outscale::OutscaleNodeClass;
use crate::api::crds;
use crate::api::definition::Definition;
use crate::api::nodeoverlay::NodeOverlay;
use crate::api::validation::Fault;
use crate::clouds::{catalog, kwok, outscale};
use crate::cluster::convert::ClassKind;

/// Label domains that clouds keep to themselves, whichever is in use.
pub const RESTRICTED_DOMAINS: [&str; 2] = [kwok::CLASS_GROUP, outscale::CLASS_GROUP];

/// KWOK's NodeClass.
pub fn kwok_class() -> ClassKind {
    ClassKind::of::<KwokNodeClass>(kwok::CLASS_GROUP, "v1alpha1", kwok::CLASS_KIND, "kwoknodeclasses")
}

/// Outscale's NodeClass, whose status joiner works out.
pub fn outscale_class() -> ClassKind {
    let (version, plural) = (outscale::CLASS_VERSION, outscale::CLASS_PLURAL);
    ClassKind::of::<OutscaleNodeClass>(outscale::CLASS_GROUP, version, outscale::CLASS_KIND, plural)
        .with_status("outscalenodeclasses/status")
}

/// Why the API server would refuse an object of one of joiner's own kinds: all that the kind's definition says is applied to it.
pub(super) fn faults(kind: &str, value: &Value) -> Vec<Fault> {
    static DEFINITIONS: LazyLock<BTreeMap<&str, Definition>> = LazyLock::new(|| {
        let kinds = ["NodeOverlay", "CapacityBuffer", kwok::CLASS_KIND, outscale::CLASS_KIND];
        let all = [
            crds::definition::<NodeOverlay>(),
            crds::definition::<CapacityBuffer>(),
            crds::definition::<KwokNodeClass>(),
            crds::definition::<OutscaleNodeClass>(),
        ];
        kinds.into_iter().zip(all.iter().map(Definition::of)).collect()
    });
    DEFINITIONS.get(kind).map(|definition| definition.faults(value, None)).unwrap_or_default()
}

/// Labels in those domains that users may ask for all the same.
pub const LABEL_KEYS: [&str; 10] = [
    catalog::INSTANCE_SIZE,
    catalog::INSTANCE_FAMILY,
    catalog::INSTANCE_CPU,
    catalog::INSTANCE_MEMORY,
    outscale::INSTANCE_FAMILY,
    outscale::INSTANCE_CPU,
    outscale::INSTANCE_MEMORY,
    outscale::INSTANCE_GENERATION,
    outscale::INSTANCE_PERFORMANCE,
    outscale::INSTANCE_GPUS,
];
