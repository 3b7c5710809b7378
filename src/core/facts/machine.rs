//! Machines: a cloud's VMs (for KWOK, the Node objects it fabricates) that carry this cluster's mark.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::ids::{ClaimName, ClaimUid, InstanceTypeName, ProviderId};
use crate::core::labels::Labels;
use crate::core::resources::Resources;

/// A machine as the cloud shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// The cloud's identity of it, as the Node will carry it.
    pub id: ProviderId,
    /// The NodeClaim UID in its mark; nothing when the mark is damaged. Evidence is never guessed.
    pub token: Option<ClaimUid>,
    /// The NodeClaim name in its mark.
    pub claim: Option<ClaimName>,
    /// When the cloud made it, if it says so.
    pub created: Option<Timestamp>,
    /// Whether the cloud is already taking it down.
    pub deleting: bool,
    /// Its instance type.
    pub instance_type: Option<InstanceTypeName>,
    /// Labels that the cloud resolved: instance type, zone, capacity type, architecture, and its own.
    pub labels: Labels,
    /// Annotations that the cloud wants on the NodeClaim.
    pub annotations: Labels,
    /// Image it was booted from.
    pub image: Option<Arc<str>>,
    /// What the cloud expects the node's capacity to be.
    pub capacity: Resources,
    /// What the cloud expects the node's allocatable to be.
    pub allocatable: Resources,
}
