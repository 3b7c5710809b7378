//! What a Node gets when it is registered, and when it is registered again.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{claim, machine, node, pod, serving, serving_node, start};
use crate::core::facts::{Claim, Condition, Fact, Fold, Machine};
use crate::core::ids::ProviderId;
use crate::core::lifecycle::{Act, Memory, Sight, step};

/// The taints that a registration puts on a Node; nothing when it writes nothing to it.
fn taints(claim: &Claim, node: &Node) -> Option<Vec<String>> {
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(node.clone())));
    let memory = Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() };
    match step(&Situation::of(claim, fold.snapshot(), &memory, start())).act {
        Some(crate::core::lifecycle::Act::PatchNode(_, _, patch)) => {
            Some(patch.taints?.iter().map(|taint| taint.key.to_string()).collect())
        }
        _ => None,
    }
}

/// The serving NodeClaim after somebody has taken Registered out of its status.
fn taken_out() -> Claim {
    let mut claim = serving();
    claim.conditions.retain(|condition| &*condition.kind != "Registered");
    claim
}

#[test]
fn startup_taints_come_with_the_first_registration() {
    let mut fresh = taken_out();
    fresh.conditions.retain(|condition| &*condition.kind == "Launched");
    let closed = node();
    assert_eq!(taints(&fresh, &closed).unwrap(), ["node.kubernetes.io/not-ready", "team", "cilium"]);
}

#[test]
fn startup_taints_do_not_come_back_on_a_node_that_was_registered_whatever_somebody_took_off_it() {
    assert_eq!(claim().startup_taints.len(), 1);
    assert_eq!(taints(&taken_out(), &serving_node()), None, "all is there but the condition");
    let without = |change: fn(&mut Node)| {
        let mut node = serving_node();
        node.owner_claims.clear();
        change(&mut node);
        taints(&taken_out(), &node).unwrap()
    };
    assert_eq!(without(|_| {}), ["team"], "the owner");
    let labels_gone = |node: &mut Node| node.labels.retain(|key, _| !key.starts_with("karpenter.sh/"));
    assert_eq!(without(labels_gone), ["team"], "and the labels");
    assert_eq!(without(|node| node.finalizers.clear()), ["team"], "or the finalizer");
}

/// What a NodeClaim with a machine says of its Node, beside this one and after so many seconds.
fn said(node: Node, seconds: i64) -> (Option<String>, Option<jiff::Timestamp>) {
    let condition = Condition {
        kind: "Launched".into(),
        status: Status::True,
        reason: "Launched".into(),
        message: "".into(),
        since: start(),
        generation: 1,
    };
    let claim = Claim {
        provider_id: Some("sim://a/1".into()),
        finalizers: vec![labels::TERMINATION_FINALIZER.into()],
        conditions: vec![condition],
        ..claim()
    };
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(node)));
    let memory = Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() };
    let now = start() + jiff::SignedDuration::from_secs(seconds);
    let looked = step(&Situation::of(&claim, fold.snapshot(), &memory, now));
    let message = match &looked.act {
        Some(Act::PatchStatus(patch)) => patch.conditions.as_ref().and_then(|conditions| {
            let registered = conditions.iter().find(|condition| &*condition.kind == "Registered")?;
            Some(registered.message.to_string())
        }),
        _ => None,
    };
    (message, looked.look_at)
}

#[test]
fn a_node_that_stays_closed_is_said_to_be_there_and_what_it_waits_for() {
    let claim = {
        let mut claim = taken_out();
        claim.conditions.retain(|condition| &*condition.kind == "Launched");
        claim
    };
    let mut closed = serving_node();
    closed.labels.remove(labels::REGISTERED);
    closed.created = start();
    closed.taints.push(unregistered());
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(closed)));
    fold.fold(Fact::PodSeen(Arc::new(pod("x", None))));
    fold.planned(&claim.name, vec!["x".into()]);
    let memory = Memory { sight: Sight::Present(Arc::new(machine())), ..Memory::default() };
    let said = |memory: &Memory, seconds: i64| {
        let now = step::after(start(), seconds);
        crate::core::lifecycle::status::wanted(&Situation::of(&claim, fold.snapshot(), memory, now)).and_then(|patch| {
            let conditions = patch.conditions?;
            let registered = conditions.into_iter().find(|condition| &*condition.kind == "Registered")?;
            Some((registered.reason.to_string(), registered.message.to_string()))
        })
    };
    assert_ne!(said(&memory, 14).unwrap().0, "NodeNotRegistered", "most are registered before");
    let (reason, message) = said(&memory, 15).unwrap();
    assert_eq!(reason, "NodeNotRegistered");
    assert!(message.starts_with("Node node-1 is there since ") && message.ends_with(KEPT_CLOSED), "{message}");
    let mut refused = memory;
    refused.cluster.failed("the Node: 403".to_owned(), |_| start());
    assert!(said(&refused, 15).unwrap().1.ends_with("joiner could not change it (the Node: 403)"));
}

/// What a NodeClaim with a machine says of its Node beside one of its NodePool that may be it.
fn said_beside(change: impl FnOnce(&mut Node)) -> String {
    let mut node = Node { provider_id: None, ..node() };
    node.labels.insert(labels::NODEPOOL.into(), "web".into());
    change(&mut node);
    said(node, 120).0.unwrap()
}

#[test]
fn a_node_without_a_provider_id_is_named_where_its_nodeclaim_waits() {
    let named = said_beside(|_| {});
    assert!(named.starts_with("Node not registered with cluster; Node node-1 of its NodePool"), "{named}");
    assert!(named.contains("--osc-cluster-id") && named.contains("OscK8sNodeName"), "{named}");
    let others: [fn(&mut Node); 4] = [
        |node| node.created = start() + jiff::SignedDuration::from_secs(90),
        |node| drop(node.labels.insert(labels::NODEPOOL.into(), "other".into())),
        |node| node.taints.clear(),
        |node| node.created = start() - jiff::SignedDuration::from_secs(1),
    ];
    for change in others {
        assert_eq!(said_beside(change), "Node not registered with cluster");
    }
}

#[test]
fn a_node_with_a_provider_id_for_which_nobody_waits_is_named_too() {
    let named = said_beside(|node| node.provider_id = Some("sim://a/2".into()));
    let expected = "Node not registered with cluster; Node node-1 of its NodePool came after it and has the spec.providerID sim://a/2, for which \
                    no NodeClaim waits; if it is the Node of sim://a/1, ";
    assert!(named.starts_with(expected), "{named}");
    let owned = said_beside(|node| {
        node.provider_id = Some("sim://a/2".into());
        node.owner_claims = vec![OwnerClaim { name: "web-2".into(), uid: "another".into() }];
    });
    assert_eq!(owned, "Node not registered with cluster", "its NodeClaim may come to be seen");
}

/// Whether a NodeClaim with this machine is to be given up some time for want of a registered Node, these being there.
fn is_to_register(id: ProviderId, nodes: Vec<Node>, memory: Memory) -> bool {
    let claim = Claim { provider_id: Some(id.clone()), ..claim() };
    let memory = Memory { sight: Sight::Present(Arc::new(Machine { id, ..machine() })), ..memory };
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    for node in nodes {
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    let situation = Situation::of(&claim, fold.snapshot(), &memory, start());
    let deadlines = crate::core::lifecycle::liveness::deadlines(&situation);
    deadlines.iter().any(|(what, _)| *what == "given up: not registered")
}

#[test]
fn a_machine_of_a_dry_run_is_not_given_up_for_want_of_a_node() {
    assert!(is_to_register("sim://a/1".into(), vec![], Memory::default()));
    assert!(!is_to_register(ProviderId::imagined("zone-a", &"web-1".into()), vec![], Memory::default()));
}

#[test]
fn a_node_that_was_just_written_to_counts_before_that_is_seen() {
    let patched = |patched_node| Memory { patched_node, ..Memory::default() };
    assert!(is_to_register("sim://a/1".into(), vec![node()], patched(None)));
    assert!(!is_to_register("sim://a/1".into(), vec![node()], patched(Some(node().version))));
}
