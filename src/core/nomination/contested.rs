//! Which pods could lose the place that was planned for them.

use crate::core::facts::Pod;
use crate::core::resources::Resources;

/// A pod that asks for this share of its node in some resource is large: when small pods come first, its place is gone.
const LARGE: i64 = 8;

/// Whether others could take the place that was planned for this pod: every pod that cannot go just anywhere, and every large one.
pub fn is_contested(pod: &Pod, room: &Resources) -> bool {
    let shape = &pod.shape;
    let constrained = !shape.spreads.is_empty()
        || !shape.affinity.is_empty()
        || !shape.anti_affinity.is_empty()
        || !shape.node_selector.is_empty()
        || !shape.node_affinity.required.is_empty()
        || !shape.host_ports.is_empty();
    let large = shape.requests.iter().any(|(name, milli)| milli > 0 && milli.saturating_mul(LARGE) >= room.get(name));
    constrained || large
}
