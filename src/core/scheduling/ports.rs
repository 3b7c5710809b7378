//! Ports of the node that containers take.

use crate::core::facts::HostPort;

/// Whether two containers could not run on one node.
pub(super) fn conflict(a: &HostPort, b: &HostPort) -> bool {
    let everywhere = |ip: &str| ip.is_empty() || ip == "0.0.0.0" || ip == "::";
    a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || everywhere(&a.ip) || everywhere(&b.ip))
}

/// The first wanted port that is taken.
pub(super) fn first_taken<'a>(wanted: &'a [HostPort], taken: &[HostPort]) -> Option<&'a HostPort> {
    wanted.iter().find(|port| taken.iter().any(|other| conflict(port, other)))
}
