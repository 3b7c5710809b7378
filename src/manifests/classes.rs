//! The kinds of NodeClass that there are, and the labels of their clouds.

use crate::api::classes::kwok::KwokNodeClass;
use crate::api::classes::outscale::OutscaleNodeClass;
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
