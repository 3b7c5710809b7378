//! Initialization: the Node becomes ready for the pods that were planned for it.

use jiff::Timestamp;

use crate::core::facts::{Node, Status};
use crate::core::labels::{self, Labels};
use crate::core::time::rfc3339;
use crate::core::writes::NodePatch;

use super::reboot;
use super::step::{self, Phase, Step};
use super::{Situation, devices};

/// Seconds after which a registered Node ought to be initialized: as long as a machine has to register. Nothing is deleted then, as by Karpenter: what
/// initialization waits for is somebody else's to do (the kubelet, the network, whoever takes a startup taint off), and he has to hear of it.
const OVERDUE: i64 = 15 * 60;

/// What is next until the Node is initialized and the object says so; nothing after that.
pub(super) fn next(situation: &Situation<'_>) -> Option<Step> {
    // A Node that came back after it was removed by force has to be initialized anew; the NodeClaim goes on saying that it was.
    let back = |node: &Node| !node.is_initialized() && node.created > situation.since("Initialized");
    if situation.has("Initialized", Status::True) && !situation.node().is_some_and(back) {
        return None;
    }
    let phase = Phase::Initializing;
    if let Some((reason, blocker)) = blocker(situation) {
        let wait = Step::wait(phase, blocker);
        return if reason == devices::UNPUBLISHED {
            devices::next(situation, wait)
        } else {
            Some(step::tell_then_wait(situation, wait))
        };
    }
    let node = situation.node()?;
    if node.is_initialized() {
        return step::write_status(situation, phase);
    }
    let labels = Labels::from([(labels::INITIALIZED.into(), "true".into())]);
    let patch = NodePatch { labels, ..NodePatch::of(node) };
    Some(Step::patch_node(situation, phase, node, patch, "the Node to show its initialization"))
}

/// When the Node ought to be initialized at the latest; nothing when it is, or has not registered.
pub(super) fn deadline(situation: &Situation<'_>) -> Option<Timestamp> {
    let waits = situation.has("Registered", Status::True)
        && !situation.has("Initialized", Status::True)
        && situation.claim.deleting.is_none()
        && !reboot::is_rebooting(situation.claim);
    let begun = || situation.since("Registered").max(reboot::ended(situation.claim).unwrap_or(Timestamp::MIN));
    waits.then(|| step::after(begun(), OVERDUE))
}

/// What a Node that ought to be initialized by now still waits for, and what somebody can do.
pub(super) fn overdue(situation: &Situation<'_>) -> Option<String> {
    deadline(situation).filter(|at| *at <= situation.now)?;
    let (_, blocker) = blocker(situation)?;
    let node = situation.node().map_or("which is not there", |node| node.name.as_str());
    Some(format!(
        "Node {node} registered at {} and still waits for {blocker}; see that whoever is to bring that about does (kubelet, network plugin, device \
         plugin or driver, or who takes the taint off), or delete the NodeClaim to have another machine",
        rfc3339(situation.since("Registered"))
    ))
}

/// What keeps the Node from being initialized: Karpenter's reason, and a sentence.
pub(super) fn blocker(situation: &Situation<'_>) -> Option<(&'static str, String)> {
    let Some(node) = situation.node() else {
        return Some(("NodeNotFound", "the Node to come back".to_owned()));
    };
    if !node.is_ready() {
        return Some(("NodeNotReady", "the Node to become Ready".to_owned()));
    }
    let startup = &situation.claim.startup_taints;
    if let Some(taint) = startup.iter().find(|taint| node.taints.iter().any(|present| present.matches(taint))) {
        let text = format!("startup taint {}:{} to be removed", taint.key, taint.effect.as_str());
        return Some(("StartupTaintsExist", text));
    }
    if let Some(taint) = node.taints.iter().find(|taint| taint.is_ephemeral()) {
        let text = format!("taint {}:{} to be removed", taint.key, taint.effect.as_str());
        return Some(("KnownEphemeralTaintsExist", text));
    }
    missing_resource(situation, node)
        .map(|name| ("ResourceNotRegistered", format!("resource {name} to be registered by the Node")))
        .or_else(|| devices::blocker(situation))
}

/// A resource that was requested and that the Node does not offer at all (yet).
fn missing_resource(situation: &Situation<'_>, node: &Node) -> Option<String> {
    situation
        .claim
        .requests
        .iter()
        .find(|(name, milli)| *milli > 0 && node.allocatable.get(name) <= 0)
        .map(|(name, _)| name.to_string())
}
