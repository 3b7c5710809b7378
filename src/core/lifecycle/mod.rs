//! The life of one NodeClaim's machine, from launch to confirmed gone, as a pure state machine.
//!
//! [`step()`] looks at the NodeClaim, its Nodes, their pods and what the cloud last said, and names the one next act. It is told nothing about
//! how the situation came about: an actor that was just born and one that has been there all along are the same thing.
//!
//! ```text
//! Pending ─► Launching ─► Registering ─► Initializing ─► Ready ─► Draining ─► Terminating ─► Gone
//!                 └── refused, or a deadline passed: the NodeClaim is deleted, and ends at Terminating ──┘
//! ```

mod act;
mod consistency;
mod consolidation;
mod deletion;
mod denials;
mod detach;
mod devices;
mod doubt;
mod drain;
mod drift;
mod hold;
mod holdup;
mod hooks;
mod hydration;
mod initialization;
mod launch;
mod liveness;
mod mistakes;
mod quarantine;
mod reboot;
mod registration;
mod repair;
mod situation;
mod status;
mod step;
mod termination;
mod whereabouts;

pub(in crate::core) use drain::{is_drainable, is_protected};

pub use act::{Act, DeleteReason, PodRef};
pub use consistency::listed as inconsistencies;
pub use deletion::Deletion;
pub use denials::Denials;
pub use detach::{are_volumes_seen, still_attached};
pub use drain::{Drain, Way, drain_of, is_occupied, is_waited_for, protected_until, way_off, way_out};
pub use drift::{CloudDrift, EVERY as DRIFT_EVERY, class_version};
pub use hold::Hold;
pub use hooks::Hooks;
pub use launch::{Candidates, candidates};
pub use liveness::LAUNCH_TIMEOUT;
pub use quarantine::{HEALTHY_AFTER, quarantine};
pub use reboot::{Reboot, is_held, is_rebooting, issued_at as reboot_issued_at};
pub use repair::Repair;
pub use situation::{LaunchFailure, Memory, Sight, Situation};
pub use status::conditions_of;
pub use step::{Phase, Step, step};
pub use termination::{close, deadline as drain_deadline, open};

#[cfg(test)]
mod tests;
