//! The life of a machine, look by look, in a toy world that does what each act says.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::core::facts::samples::{claim, condition, machine, node, pod, start, volume_claim};
use crate::core::facts::{
    Broken, Claim, Condition, DoNotDisrupt, Fact, Fold, InstanceType, Node, Offering, Owner, Pod, PodShape, Status,
    VolumeAttachment, find_condition,
};
use crate::core::ids::PodUid;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;
use crate::core::writes::{ClaimPatch, ClaimStatusPatch, NodePatch};

/// A cluster, a cloud and a claim actor's memory, small enough to see through.
struct Toy {
    claim: Option<Claim>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    memory: Memory,
    now: Timestamp,
    /// What the cloud answers to a deletion.
    deletion: Vec<bool>,
    /// Whether the cloud says that there is no machine, when it is asked.
    lost: bool,
    trace: Vec<String>,
    planned: Vec<&'static str>,
    volumes: Vec<Fact>,
    /// A Node that is there, and that the watch does not show.
    hidden: Option<Node>,
    /// Pods that are there, and that the watch does not show.
    hidden_pods: Vec<Pod>,
    /// Pods that are no more, and that the watch still shows.
    vanished: Vec<PodUid>,
    /// VolumeAttachments that are there, and that the watch does not show.
    hidden_volumes: Vec<Fact>,
}

impl Toy {
    fn new(claim: Claim) -> Self {
        Self {
            claim: Some(claim),
            nodes: vec![],
            pods: vec![],
            memory: Memory::default(),
            now: start(),
            deletion: vec![false, true],
            lost: false,
            trace: vec![],
            planned: vec![],
            volumes: vec![],
            hidden: None,
            hidden_pods: vec![],
            vanished: vec![],
            hidden_volumes: vec![],
        }
    }

    fn look(&self) -> Step {
        let mut fold = Fold::default();
        let claim = self.claim.clone().unwrap();
        fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
        self.nodes.iter().for_each(|node| fold.fold(Fact::NodeSeen(Arc::new(node.clone()))));
        self.pods.iter().for_each(|pod| fold.fold(Fact::PodSeen(Arc::new(pod.clone()))));
        self.volumes.iter().cloned().for_each(|fact| fold.fold(fact));
        fold.planned(&claim.name, self.planned.iter().map(|name| (*name).into()).collect());
        step(&Situation::of(&claim, fold.snapshot(), &self.memory, self.now))
    }

    /// Looks and acts until there is nothing to do at this moment, and returns what is waited for.
    fn run(&mut self) -> String {
        for _ in 0..50 {
            if self.claim.is_none() {
                return "gone".to_owned();
            }
            let step = self.look();
            let Some(act) = step.act else {
                return format!("{}: {}", step.phase.as_str(), step.waits_for.unwrap_or_else(|| "nothing".to_owned()));
            };
            self.act(act);
        }
        panic!("it never comes to rest:\n{}", self.trace.join("\n"));
    }

    fn say(&mut self, what: impl Into<String>) {
        self.trace.push(what.into());
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::PatchClaim(patch) => self.patch_claim(patch),
            Act::PatchStatus(patch) => self.patch_status(patch),
            Act::Launch => {
                self.say("launch");
                self.memory.launching();
                self.memory.sight = Sight::Present(Arc::new(machine()));
            }
            Act::AskDrift => {
                self.say("ask about drift");
                self.memory.drift.asked = Some(self.now);
                self.memory.drift.answer = Some(None);
            }
            Act::AskHooks => {
                self.say("ask about hooks");
                self.memory.hooks = Some((self.now, Hooks::default()));
            }
            Act::Find(_) => {
                self.say("find");
                self.memory.looked = Some(self.now);
                self.memory.sight = Sight::Absent;
            }
            Act::Get(_) | Act::GetAside(_) => {
                self.say(if self.lost { "get: gone" } else { "get: there" });
                self.memory.asked = Some(self.now);
                self.memory.heard = true;
                self.memory.sight = if self.lost { Sight::Gone } else { Sight::Present(Arc::new(machine())) };
            }
            Act::DeleteClaim(reason) => {
                self.say(format!("delete NodeClaim: {}", reason.as_str()));
                self.delete();
            }
            Act::GetClaim => panic!("nobody else changes it"),
            Act::GetNode(name) => {
                let hidden = self.hidden.take();
                self.say(format!("get Node {name}: {}", if hidden.is_some() { "there" } else { "gone" }));
                match hidden {
                    Some(node) => self.nodes.push(node),
                    None => self.memory.gone_node = Some(name),
                }
            }
            Act::FindNode(id) => {
                let hidden = self.hidden.clone();
                self.say(format!(
                    "find the Node of {id}: {}",
                    hidden.as_ref().map_or("none", |node| node.name.as_str())
                ));
                self.memory.roll = Some((self.now, id, hidden.map(Arc::new)));
            }
            Act::ListPods(_) => self.list_pods(),
            Act::ListAttachments(_) => self.list_attachments(),
            Act::ListSlices(_) => panic!("nobody waits for devices"),
            Act::PatchNode(name, _, patch) => self.patch_node(name.as_str(), patch),
            Act::DeleteNode(name, _) => {
                self.say(format!("delete Node {name}"));
                let now = self.now;
                self.node(name.as_str()).deleting = Some(now);
            }
            Act::Drain { evict, force } => {
                for pod in &evict {
                    self.say(format!("evict {}", pod.key.name));
                }
                for (pod, grace) in &force {
                    self.say(format!("delete {} with {grace} s", pod.key.name));
                }
                let leaving: Vec<_> =
                    evict.iter().chain(force.iter().map(|(pod, _)| pod)).map(|pod| pod.uid.clone()).collect();
                self.pods.retain(|pod| !leaving.contains(&pod.uid));
            }
            Act::Reboot(..) => panic!("nobody asked for a reboot"),
            Act::DeleteMachine(_) => {
                let gone = self.deletion.remove(0);
                self.say(if gone { "delete machine: gone" } else { "delete machine: in progress" });
                self.memory.delete_asked = Some(self.now);
                if gone {
                    self.memory.sight = Sight::Gone;
                }
            }
        }
    }

    fn list_pods(&mut self) {
        let there = self.pods.iter().chain(&self.hidden_pods).filter(|pod| !self.vanished.contains(&pod.uid));
        let there: Vec<_> = there.cloned().map(Arc::new).collect();
        let left = there.iter().filter(|pod| is_waited_for(pod, self.now)).count();
        self.say(format!("list pods: {left} to leave"));
        self.memory.listed_pods = Some((self.now, there));
    }

    fn list_attachments(&mut self) {
        let there = self.volumes.iter().chain(&self.hidden_volumes);
        let attached = there.filter_map(|fact| match fact {
            Fact::AttachmentSeen(one) => Some(Arc::clone(one)),
            _ => None,
        });
        let attached: Vec<_> = attached.collect();
        self.say(format!("list attachments: {}", attached.len()));
        self.memory.attached = Some((self.now, attached));
    }

    fn patch_claim(&mut self, patch: ClaimPatch) {
        let claim = self.claim.as_mut().unwrap();
        let mut what = vec![];
        what.extend(patch.labels.keys().map(|key| format!("label {key}")));
        what.extend(patch.annotations.iter().map(|(key, value)| format!("annotation {key}={value}")));
        claim.labels.extend(patch.labels);
        claim.annotations.extend(patch.annotations);
        if let Some(finalizers) = patch.finalizers {
            what.push(format!("finalizers {finalizers:?}"));
            claim.finalizers = finalizers;
        }
        if claim.deleting.is_some() && claim.finalizers.is_empty() {
            self.claim = None;
        }
        self.say(format!("NodeClaim: {}", what.join(", ")));
    }

    fn patch_status(&mut self, patch: ClaimStatusPatch) {
        let claim = self.claim.as_mut().unwrap();
        let ready: Vec<String> = patch
            .conditions
            .iter()
            .flatten()
            .filter(|c| {
                !claim
                    .conditions
                    .iter()
                    .any(|old| old.kind == c.kind && old.status == c.status && old.reason == c.reason)
            })
            .map(|c| format!("{}={}({})", c.kind, c.status.as_str(), c.reason))
            .collect();
        claim.provider_id = patch.provider_id.or_else(|| claim.provider_id.take());
        claim.node = patch.node.or_else(|| claim.node.take());
        claim.capacity = patch.capacity.unwrap_or_else(|| claim.capacity.clone());
        claim.allocatable = patch.allocatable.unwrap_or_else(|| claim.allocatable.clone());
        claim.conditions = patch.conditions.unwrap_or_else(|| claim.conditions.clone());
        self.say(format!("status: {}", ready.join(" ")).trim_end());
    }

    fn patch_node(&mut self, name: &str, patch: NodePatch) {
        let node = self.node(name);
        assert_eq!(
            patch.version.as_ref(),
            Some(&node.version),
            "or it would be patched again and again until it shows"
        );
        let mut what = vec![];
        what.extend(patch.labels.iter().map(|(key, value)| format!("{key}={value}")));
        if let Some(taints) = patch.taints {
            what.push(format!("taints {:?}", taints.iter().map(|t| t.key.to_string()).collect::<Vec<_>>()));
            node.taints = taints;
        }
        if let Some(finalizers) = patch.finalizers {
            what.push(format!("finalizers {finalizers:?}"));
            node.finalizers = finalizers;
        }
        if let Some(owner) = patch.owner {
            what.push(format!("owner {}", owner.name));
            node.owner_claims.push(owner);
            for gone in patch.disowned {
                what.push(format!("no more {}", gone.name));
                node.owner_claims.retain(|owner| *owner != gone);
            }
        }
        node.labels.extend(patch.labels);
        let gone = node.deleting.is_some() && node.finalizers.is_empty();
        if gone {
            self.nodes.retain(|node| node.name.as_str() != name);
        }
        self.say(format!("Node: {}", what.join(", ")));
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.iter_mut().find(|node| node.name.as_str() == name).unwrap()
    }

    fn ready(&mut self) {
        let node = &mut self.nodes[0];
        node.conditions = vec![Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "KubeletReady".into(),
            message: "".into(),
            since: start(),
            generation: 0,
        }];
        node.taints.retain(|taint| &*taint.key != "node.kubernetes.io/not-ready");
    }

    fn delete(&mut self) {
        let claim = self.claim.as_mut().unwrap();
        claim.deleting = Some(self.now);
        claim.generation += 1;
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn trace(&mut self) -> String {
        std::mem::take(&mut self.trace).join("\n")
    }

    /// A NodeClaim that serves two pods.
    fn serving() -> Self {
        let mut toy = Self::new(claim());
        toy.run();
        toy.nodes.push(node());
        toy.ready();
        toy.run();
        toy.node("node-1").taints.retain(|taint| &*taint.key != "cilium");
        assert_eq!(toy.run(), "Ready: nothing");
        toy.pods = vec![pod("a", Some("node-1")), pod("b", Some("node-1"))];
        toy.trace.clear();
        toy
    }
}

#[test]
fn a_life_from_launch_to_ready() {
    let mut toy = Toy::new(claim());
    assert_eq!(toy.run(), "Registering: the Node to appear");
    insta::assert_snapshot!(toy.trace(), @r#"
    NodeClaim: finalizers ["karpenter.sh/termination"]
    launch
    NodeClaim: label topology.kubernetes.io/zone
    status: Initialized=Unknown(AwaitingReconciliation) Launched=True(Launched) Registered=Unknown(NodeNotFound) Ready=Unknown(ReconcilingDependents)
    "#);
    toy.nodes.push(node());
    assert_eq!(toy.run(), "Initializing: the Node to become Ready");
    insta::assert_snapshot!(toy.trace(), @r#"
    Node: karpenter.kwok.sh/kwoknodeclass=default, karpenter.sh/nodepool=web, karpenter.sh/registered=true, topology.kubernetes.io/zone=zone-a, taints ["node.kubernetes.io/not-ready", "team", "cilium"], finalizers ["karpenter.sh/termination"], owner web-1
    status: Initialized=Unknown(NodeNotReady) Registered=True(Registered)
    "#);
    toy.ready();
    assert_eq!(toy.run(), "Initializing: startup taint cilium:NoExecute to be removed");
    toy.node("node-1").taints.retain(|taint| &*taint.key != "cilium");
    assert_eq!(toy.run(), "Ready: nothing");
    insta::assert_snapshot!(toy.trace(), @r"
    status: Initialized=Unknown(StartupTaintsExist)
    Node: karpenter.sh/initialized=true
    status: ConsistentStateFound=True(ConsistentStateFound) Initialized=True(Initialized) Ready=True(Ready)
    ");
}

#[test]
fn a_node_that_pods_are_planned_for_opens_when_it_is_told_to() {
    let expected = || {
        let mut toy = Toy::new(claim());
        (toy.planned, toy.pods) = (vec!["x"], vec![pod("x", None)]);
        toy.run();
        toy.nodes.push(node());
        toy.trace.clear();
        let waits =
            "Registering: the Node to be ready and its pods to be nominated, to open with the other nodes of its plan";
        assert_eq!(toy.run(), waits);
        let closed =
            r#"taints ["node.kubernetes.io/not-ready", "team", "cilium", "karpenter.sh/unregistered"], finalizers"#;
        assert!(toy.trace().contains(closed), "it has its taints, and is closed: {}", toy.trace());
        toy.trace.clear();
        toy
    };
    let opens = "Initializing: the Node to become Ready";
    let mut toy = expected();
    toy.memory.may_open = true;
    assert_eq!(toy.run(), opens);
    let mut toy = expected();
    toy.pods.clear();
    assert_eq!(toy.run(), opens, "nobody waits for it any more");
    let mut toy = expected();
    let delayed = start() + SignedDuration::from_secs(15);
    assert_eq!(toy.look().look_at, Some(delayed), "it is said to be there");
    toy.pass(15);
    toy.run();
    assert_eq!(toy.trace(), "status: Registered=Unknown(NodeNotRegistered)");
    assert_eq!(toy.look().look_at, Some(start() + crate::core::nomination::AT_MOST));
    toy.pass(105);
    assert_eq!(toy.run(), opens, "should word of it get lost");
}

#[test]
fn a_life_from_deletion_to_gone() {
    let mut toy = Toy::serving();
    toy.delete();
    assert_eq!(toy.run(), "Draining: the shortest time of a drain to pass");
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    toy.pass(5);
    assert_eq!(toy.run(), "gone");
    insta::assert_snapshot!(toy.trace(), @r#"
    delete Node node-1
    Node: node.kubernetes.io/exclude-from-external-load-balancers=karpenter, taints ["team", "karpenter.sh/disrupted"]
    status: Drained=Unknown(Draining)
    evict a
    evict b
    list pods: 0 to leave
    list attachments: 0
    status: Drained=True(Drained) VolumesDetached=True(VolumesDetached)
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    delete machine: gone
    Node: finalizers []
    NodeClaim: finalizers []
    "#);
}

#[test]
fn the_machine_of_a_node_that_is_not_ready_is_asked_for_now_and_again() {
    let mut toy = Toy::serving();
    toy.node("node-1").conditions.clear();
    toy.delete();
    let first = toy.look();
    toy.act(first.act.unwrap());
    let aside = toy.look();
    assert!(matches!(aside.act, Some(Act::GetAside(_))));
    assert!(
        aside.waits_for.is_some(),
        "an actor that is held up between a question that nothing waits for and its next look says why it waits"
    );
    assert_eq!(toy.run(), "Draining: the shortest time of a drain to pass");
    let told = toy.trace();
    assert!(told.starts_with("delete Node node-1\nget: there\nNode: "), "{told}");
    toy.pods = vec![pod("stuck", Some("node-1"))];
    toy.pods[0].deleting = Some(start());
    assert_eq!(toy.run(), "Draining: 1 pods to leave");
    toy.lost = true;
    toy.pass(9);
    assert_eq!(
        (toy.run(), toy.trace()),
        ("Draining: 1 pods to leave".to_owned(), String::new()),
        "asked ten seconds ago"
    );
    toy.pass(1);
    assert_eq!(toy.run(), "gone", "nobody waits for a pod whose machine is gone");
    assert!(toy.trace().starts_with("get: gone\n"));
}

#[test]
fn a_cloud_that_fails_holds_up_no_drain() {
    let mut toy = Toy::serving();
    toy.node("node-1").conditions.clear();
    toy.delete();
    toy.memory.asked = Some(toy.now);
    toy.memory.cloud.until = Some(start() + SignedDuration::from_mins(10));
    toy.pass(60);
    assert_eq!(toy.run(), "Draining: the shortest time of a drain to pass");
    assert!(toy.trace().contains("evict a\n"), "pods are asked though the cloud is not");
    toy.pass(10);
    toy.memory.cloud.trouble = Some("the cloud: out of order".into());
    assert_eq!(toy.run(), "Terminating: the cloud: out of order", "nothing is asked of the cloud itself");
}

#[test]
fn a_node_that_is_not_to_be_seen_is_asked_for_before_its_machine_goes() {
    let mut toy = Toy::serving();
    toy.hidden = toy.nodes.pop();
    toy.delete();
    toy.pass(5);
    toy.run();
    toy.pass(5);
    toy.run();
    let told = toy.trace();
    assert!(told.starts_with("get Node node-1: there\ndelete Node node-1\n"), "{told}");
    assert!(told.find("evict a") < told.find("delete machine"), "{told}");
    let mut toy = Toy::serving();
    toy.nodes.clear();
    toy.delete();
    toy.run();
    let told = toy.trace();
    assert!(told.starts_with("get Node node-1: gone\n") && told.contains("delete machine"), "{told}");
}

#[test]
fn a_node_that_comes_back_after_it_was_removed_by_force_is_opened_again() {
    let mut toy = Toy::serving();
    toy.nodes.clear();
    assert_eq!(toy.run(), "Ready: nothing");
    toy.pass(60);
    toy.nodes.push(Node { created: toy.now, ..node() });
    assert_eq!(toy.run(), "Initializing: the Node to become Ready");
    toy.ready();
    assert_eq!(toy.run(), "Initializing: startup taint cilium:NoExecute to be removed");
    toy.node("node-1").taints.retain(|taint| &*taint.key != "cilium");
    assert_eq!(toy.run(), "Ready: nothing");
    let node = toy.node("node-1");
    assert!(node.is_registered() && node.is_initialized());
    assert!(!node.taints.iter().any(|taint| &*taint.key == labels::UNREGISTERED_TAINT));
}

#[test]
fn a_nodeclaim_goes_after_its_nodes() {
    let mut toy = Toy::serving();
    toy.node("node-1").finalizers.push("example.com/inventory".into());
    toy.pods.clear();
    toy.delete();
    toy.run();
    toy.pass(5);
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: Node node-1 to vanish");
    assert_eq!(toy.node("node-1").finalizers.len(), 1, "ours is off");
    toy.nodes.clear();
    assert_eq!(toy.run(), "gone");
}

#[test]
fn finalizers_stay_as_long_as_the_machine_may_live() {
    let mut toy = Toy::serving();
    toy.deletion = vec![false; 20];
    toy.delete();
    for _ in 0..10 {
        toy.pass(5);
        toy.run();
        assert!(toy.claim.as_ref().unwrap().has_finalizer());
        assert!(toy.nodes[0].finalizers.iter().any(|f| &**f == labels::TERMINATION_FINALIZER));
    }
}

#[test]
fn a_deletion_that_was_asked_for_is_not_asked_for_at_every_look() {
    let mut toy = Toy::serving();
    toy.node("node-1").deleting = Some(start());
    assert!(matches!(toy.look().act, Some(Act::DeleteClaim(_))));
    // No answer yet, and the watch does not show it.
    toy.memory.deletion = Deletion::asked(&toy.look().act.unwrap(), toy.now);
    let waiting = toy.look();
    assert_eq!((waiting.act, waiting.waits_for.as_deref()), (None, Some("the NodeClaim to show its deletion")));
    assert_eq!(waiting.look_at, Some(start() + SignedDuration::from_secs(5)));
    toy.pass(5);
    assert!(matches!(toy.look().act, Some(Act::DeleteClaim(_))), "it may have got lost");
    toy.memory.deletion.as_mut().unwrap().grant();
    assert_eq!(toy.look().act, None, "it was granted: the watch takes its time");
    toy.delete();
    toy.node("node-1").deleting = None;
    let ask = toy.look().act.unwrap();
    assert!(matches!(ask, Act::DeleteNode(..)), "another deletion than the one that was granted");
    toy.memory.deletion = Deletion::asked(&ask, toy.now);
    assert_eq!(toy.look().act, None);
    toy.memory.deletion = Deletion::asked(&Act::DeleteNode("node-1".into(), "another".into()), toy.now);
    assert!(matches!(toy.look().act, Some(Act::DeleteNode(..))), "of a namesake that is gone");
}

#[test]
fn a_deleted_node_takes_its_nodeclaim_along() {
    let mut toy = Toy::serving();
    toy.node("node-1").deleting = Some(start());
    toy.run();
    assert!(toy.trace().starts_with("delete NodeClaim: node_deleted"));
}

#[test]
fn a_deadline_is_written_once_and_then_enforced() {
    let mut grace = claim();
    grace.termination_grace = Some(Duration::from_mins(1));
    let mut toy = Toy::new(grace);
    toy.run();
    toy.nodes.push(node());
    toy.ready();
    toy.node("node-1").taints.clear();
    toy.run();
    let mut guarded = PodShape::plain(Resources::new());
    guarded.do_not_disrupt = DoNotDisrupt::Always;
    toy.pods = vec![Pod { shape: Arc::new(guarded), ..pod("guarded", Some("node-1")) }];
    toy.trace.clear();
    toy.node("node-1").taints.clear();
    toy.run();
    toy.delete();
    let waiting = toy.run();
    assert!(waiting.contains("default/guarded must not be disrupted"), "{waiting}");
    assert!(toy.trace().contains("annotation karpenter.sh/nodeclaim-termination-timestamp=2027-01-15T08:01:00Z"));
    toy.pass(21);
    toy.run();
    // Drains are looked at every 10 s, but the moment when the pod has to go is not missed.
    assert_eq!(toy.look().look_at, Some(start() + SignedDuration::from_secs(30)));
    toy.pass(10);
    toy.run();
    // It has a grace period of 30 s, and 29 are left: it is deleted early enough to use them.
    assert!(toy.trace().contains("delete guarded with 29 s"));
}

#[test]
fn workloads_leave_before_their_daemons_and_critical_pods_last() {
    let mut toy = Toy::serving();
    let shaped = |name: &str, owner, critical| Pod {
        shape: Arc::new(PodShape { critical, owner, ..PodShape::plain(Resources::new()) }),
        ..pod(name, Some("node-1"))
    };
    toy.pods = vec![
        shaped("critical-daemon", Owner::DaemonSet, true),
        shaped("critical", Owner::Controller, true),
        shaped("daemon", Owner::DaemonSet, false),
        shaped("workload", Owner::Controller, false),
        shaped("mirror", Owner::Node, true),
    ];
    toy.delete();
    toy.run();
    let order: Vec<String> =
        toy.trace().lines().filter_map(|line| line.strip_prefix("evict ").map(str::to_owned)).collect();
    assert_eq!(order, ["workload", "daemon", "critical", "critical-daemon"]);
}

#[test]
fn a_nodeclaim_is_deleted_once_though_the_watch_is_late() {
    let mut toy = Toy::new(claim());
    toy.run();
    toy.memory.refused = Some(DeleteReason::ClassNotReady("no such NodeClass".into()));
    let act = toy.look().act.unwrap();
    assert!(matches!(act, Act::DeleteClaim(DeleteReason::ClassNotReady(_))));
    let mut deletion = Deletion::asked(&act, toy.now).unwrap();
    deletion.grant();
    toy.memory.deletion = Some(deletion);
    toy.pass(60);
    assert_eq!(toy.run(), "Registering: the NodeClaim to show its deletion");
}

#[test]
fn what_never_launches_or_registers_is_given_up() {
    let mut toy = Toy::new(claim());
    toy.memory.launch_failure = Some(LaunchFailure {
        cause: "LaunchFailed",
        message: "no network".into(),
        attempts: 1,
        retry_at: start() + SignedDuration::from_mins(60),
    });
    assert_eq!(toy.run(), "Launching: the next attempt to launch: no network");
    assert!(toy.trace().contains("Launched=Unknown(LaunchFailed)"));
    toy.pass(300);
    toy.run();
    assert!(toy.trace().starts_with("delete NodeClaim: launch_timeout"));

    let mut toy = Toy::new(claim());
    toy.run();
    toy.trace.clear();
    toy.pass(899);
    assert_eq!(toy.run(), "Registering: the Node to appear");
    toy.pass(1);
    toy.run();
    let told = toy.trace();
    assert!(told.starts_with("find the Node of sim://a/1: none\ndelete NodeClaim: registration_timeout"), "{told}");
}

#[test]
fn a_machine_whose_node_the_watch_does_not_show_is_not_given_up() {
    let mut toy = Toy::new(claim());
    toy.run();
    toy.hidden = Some(node());
    toy.pass(900);
    toy.trace.clear();
    assert_eq!(toy.run(), "Registering: the watch to show Node node-1 as it is");
    toy.pass(9);
    assert_eq!(toy.run(), "Registering: the watch to show Node node-1 as it is");
    toy.pass(1);
    toy.run();
    assert_eq!(toy.trace().matches("find the Node of").count(), 2, "asked every ten seconds");
    toy.hidden = None;
    toy.pass(10);
    toy.run();
    let told = toy.trace();
    assert!(told.contains(": none\ndelete NodeClaim: registration_timeout"), "{told}");
}

#[test]
fn a_node_that_registered_unseen_is_drained_before_its_machine_goes() {
    let mut dying = claim();
    dying.finalizers.push(labels::TERMINATION_FINALIZER.into());
    dying.deleting = Some(start());
    let mut registered = node();
    registered.labels.insert(labels::REGISTERED.into(), "true".into());
    registered.finalizers.push(labels::TERMINATION_FINALIZER.into());
    // The watch shows nothing yet, or the Node as it was before.
    for seen in [vec![], vec![node()]] {
        let mut toy = Toy::new(dying.clone());
        toy.memory.sight = Sight::Present(Arc::new(machine()));
        toy.nodes = seen;
        toy.hidden = Some(registered.clone());
        assert_eq!(toy.run(), "Terminating: the watch to show Node node-1 as it is");
        toy.nodes = toy.hidden.take().into_iter().collect();
        toy.trace.clear();
        toy.run();
        let told = toy.trace();
        assert!(told.starts_with("delete Node node-1\n"), "{told}");
        assert!(!told.contains("delete machine"), "its pods come first: {told}");
    }
}

#[test]
fn what_somebody_else_has_changed_is_asked_for_and_neither_written_nor_given_up_before() {
    let mut toy = Toy::new(claim());
    assert!(matches!(toy.look().act, Some(Act::PatchClaim(_))));
    toy.memory.outdated = Some(toy.claim.as_ref().unwrap().version.clone());
    toy.memory.cluster.until = Some(start() + SignedDuration::from_millis(100));
    assert_eq!(toy.look().act, None, "the watch gets a moment to show it");
    toy.pass(1);
    assert_eq!(toy.look().act, Some(Act::GetClaim));
    toy.memory.refused = Some(DeleteReason::LaunchTimeout);
    toy.claim.as_mut().unwrap().finalizers.push(labels::TERMINATION_FINALIZER.into());
    assert_eq!(toy.look().act, Some(Act::GetClaim), "nor is it deleted for what it may no longer be");
    toy.memory.outdated = Some("another".into());
    assert_eq!(toy.look().act, Some(Act::DeleteClaim(DeleteReason::LaunchTimeout)), "the watch shows a newer one");
}

#[test]
fn a_nodeclaim_outlives_the_launch_that_nobody_heard_the_end_of() {
    let mut dying = claim();
    dying.finalizers.push(labels::TERMINATION_FINALIZER.into());
    dying.deleting = Some(start());
    let mut toy = Toy::new(dying);
    // Whoever was here before may have died with a launch in its hands.
    toy.memory.doubt_until = Some(start() + SignedDuration::from_secs(120));
    assert!(toy.run().contains("a launch without an answer"), "it waits, though the cloud knows no machine");
    toy.pass(119);
    assert!(toy.run().contains("a launch without an answer"));
    toy.pass(1);
    toy.trace.clear();
    assert_eq!(toy.run(), "gone");
    assert_eq!(toy.trace(), "find\nNodeClaim: finalizers []", "it is asked once more before the finalizer goes");
}

#[test]
fn a_machine_that_is_gone_is_not_the_last_while_an_earlier_launch_may_still_make_one() {
    let mut dying = claim();
    dying.finalizers.push(labels::TERMINATION_FINALIZER.into());
    dying.deleting = Some(start());
    let gone = |launched: Option<Condition>| {
        let mut toy = Toy::new(Claim { conditions: launched.into_iter().collect(), ..dying.clone() });
        toy.memory = Memory { sight: Sight::Gone, ..Memory::born(start()) };
        toy
    };
    // Somebody was born while it was going, and whoever launched it knew of no other launch: a restart of joiner soon after a launch holds up nothing.
    assert_eq!(gone(Some(condition("Launched", Status::True))).run(), "gone");
    // Whoever launched it died before it could say so, or said that there was another launch (day 9457).
    let doubted = Condition { reason: "MaybeLaunchedTwice".into(), ..condition("Launched", Status::True) };
    for launched in [None, Some(doubted)] {
        let mut toy = gone(launched);
        assert!(toy.run().contains("a launch without an answer"));
        toy.pass(120);
        toy.trace.clear();
        assert_eq!(toy.run(), "gone");
        assert!(toy.trace().starts_with("find\n"), "{}", toy.trace());
    }
}

#[test]
fn a_nodeclaim_says_that_it_may_have_been_launched_twice_and_the_second_machine_is_looked_for_when_it_goes() {
    let reason = |toy: &Toy| {
        let claim = toy.claim.as_ref().unwrap();
        find_condition(&claim.conditions, "Launched").map(|it| (it.status, it.reason.to_string())).unwrap()
    };
    let mut toy = Toy::new(claim());
    toy.run();
    assert_eq!(reason(&toy), (Status::True, "Launched".to_owned()));

    // An answer was lost, and the machine is there: it was one launch.
    let mut lost = Memory::default();
    lost.launching();
    lost.unanswered(start());
    let found = Memory { sight: Sight::Present(Arc::new(machine())), ..lost.clone() };
    let mut toy = Toy::new(claim());
    toy.memory = found;
    toy.run();
    assert_eq!(reason(&toy), (Status::True, "Launched".to_owned()));

    // It was lost, and it was launched again; or a predecessor may have died with a launch in its hands.
    for memory in [lost, Memory::born(start())] {
        let mut toy = Toy::new(claim());
        toy.memory = memory;
        toy.run();
        assert_eq!(reason(&toy), (Status::True, "MaybeLaunchedTwice".to_owned()));
        // However late that is (day 1317).
        toy.pass(600);
        toy.run();
        assert_eq!(reason(&toy), (Status::True, "MaybeLaunchedTwice".to_owned()));
        toy.delete();
        (toy.memory.sight, toy.lost) = (Sight::Gone, true);
        toy.trace.clear();
        assert_eq!(toy.run(), "gone");
        assert!(toy.trace().ends_with("find\nget: gone\nNodeClaim: finalizers []"), "{}", toy.trace());
    }
}

#[test]
fn a_finalizer_that_is_put_back_does_not_mean_that_nobody_has_launched() {
    let mut fresh = Memory::born(start());
    fresh.finalizer_added(&claim());
    assert_eq!(fresh, Memory { since: Some(start()), ..Memory::default() });

    // This actor has launched, or somebody before it.
    let mut lost = fresh;
    lost.launching();
    lost.unanswered(start());
    let launched = Claim { conditions: vec![condition("Launched", Status::True)], ..claim() };
    for (memory, claim) in [(lost, claim()), (Memory::born(start()), launched)] {
        let mut put_back = memory.clone();
        put_back.finalizer_added(&claim);
        assert_eq!(put_back, memory);
    }
}

#[test]
fn a_lost_answer_is_looked_up_before_anything_is_launched_again() {
    let mut toy = Toy::new(claim());
    toy.memory.sight = Sight::Uncertain;
    toy.run();
    assert!(toy.trace().contains("find\nlaunch"));
}

#[test]
fn a_nodeclaim_that_is_deleted_before_it_says_that_it_was_launched_asks_the_cloud() {
    let mut deleted = claim();
    deleted.finalizers = vec![labels::TERMINATION_FINALIZER.into()];
    deleted.deleting = Some(start());
    let mut toy = Toy::new(deleted);
    assert_eq!(toy.run(), "gone");
    assert_eq!(toy.trace(), "find\nNodeClaim: finalizers []");
}

#[test]
fn a_broken_nodeclaim_is_left_alone_says_so_and_is_launched_when_it_is_mended() {
    let mut toy = Toy::new(Claim { broken: Some(not_a_quantity(false)), ..claim() });
    assert!(toy.run().starts_with("Quarantined: somebody to mend the NodeClaim: spec.resources.requests.cpu"));
    insta::assert_snapshot!(toy.trace(), @"status: Initialized=Unknown(AwaitingReconciliation) Launched=Unknown(AwaitingReconciliation) Registered=Unknown(AwaitingReconciliation) ValidationSucceeded=False(NodeClaimValidationFailed) Ready=False(UnhealthyDependents)");
    let conditions = &toy.claim.as_ref().unwrap().conditions;
    let valid = find_condition(conditions, "ValidationSucceeded").unwrap();
    assert_eq!(&*valid.message, "spec.resources.requests.cpu: \"1.5.2\" is not a quantity; write 1500m");
    // Longer than any deadline: that nobody could launch it is not its fault.
    toy.pass(3600);
    assert!(toy.run().starts_with("Quarantined"));
    toy.claim.as_mut().unwrap().broken = None;
    assert_eq!(toy.run(), "Registering: the Node to appear");
    insta::assert_snapshot!(toy.trace(), @r#"
    NodeClaim: finalizers ["karpenter.sh/termination"]
    status: ValidationSucceeded=True(ValidationSucceeded) Ready=Unknown(ReconcilingDependents)
    launch
    NodeClaim: label topology.kubernetes.io/zone
    status: Registered=Unknown(NodeNotFound) Launched=True(Launched)
    "#);
    toy.pass(20 * 60);
    toy.run();
    assert!(toy.trace().contains("delete NodeClaim: registration_timeout"), "deadlines run again");
}

fn not_a_quantity(conditions: bool) -> Broken {
    let problem = "spec.resources.requests.cpu: \"1.5.2\" is not a quantity; write 1500m".into();
    Broken { problem, conditions }
}

#[test]
fn a_nodeclaim_that_breaks_while_it_serves_keeps_its_machine_and_recovers() {
    let mut toy = Toy::serving();
    toy.claim.as_mut().unwrap().broken = Some(not_a_quantity(false));
    assert!(toy.run().starts_with("Quarantined"));
    assert_eq!(
        toy.trace(),
        "status: ValidationSucceeded=False(NodeClaimValidationFailed) Ready=False(UnhealthyDependents)"
    );
    let claim = toy.claim.as_mut().unwrap();
    assert!(claim.is("Launched") && claim.is("Registered") && claim.is("Initialized"));
    claim.broken = None;
    assert_eq!(toy.run(), "Ready: nothing");
    assert_eq!(toy.trace(), "status: ValidationSucceeded=True(ValidationSucceeded) Ready=True(Ready)");
}

#[test]
fn conditions_that_cannot_be_read_are_not_overwritten() {
    let mut toy = Toy::new(Claim { broken: Some(not_a_quantity(true)), ..claim() });
    assert!(toy.run().starts_with("Quarantined"));
    assert_eq!(toy.trace(), "");
}

#[test]
fn two_nodes_with_one_provider_id_register_neither() {
    let mut toy = Toy::new(claim());
    toy.run();
    toy.nodes = vec![node(), Node { name: "node-2".into(), uid: "node-uid-2".into(), ..node() }];
    assert_eq!(toy.run(), "Registering: all but one of the Nodes node-1, node-2 to go");
    assert!(toy.trace().contains("Registered=False(MultipleNodesFound)"));
    toy.nodes.pop();
    toy.run();
    assert!(toy.trace().contains("Registered=True"));
}

/// Found on a real API server that was away for half a minute, where it is the cloud as well: each failure of one let the other be asked at once, and
/// every try was a line in the log.
#[test]
fn an_api_server_and_a_cloud_that_fail_at_one_time_are_both_left_alone() {
    let mut toy = Toy::new(claim());
    let until = |failures: u32| start() + SignedDuration::from_mins(failures.into());
    assert!(toy.memory.hold_mut(false).failed("the NodeClaim: no answer".into(), until));
    assert!(toy.memory.hold_mut(true).failed("the cloud: no answer".into(), until));
    assert!(!toy.memory.hold_mut(false).failed("the NodeClaim: no answer".into(), until), "that is known");
    assert!(!toy.memory.hold_mut(true).failed("the cloud: no answer".into(), until));
    assert_eq!(toy.run(), "Pending: the NodeClaim: no answer");
    toy.claim.as_mut().unwrap().finalizers.push(labels::TERMINATION_FINALIZER.into());
    toy.memory.doubt_until = Some(start() + SignedDuration::from_mins(5));
    assert_eq!(toy.run(), "Launching: the cloud: no answer");
    assert_eq!(toy.trace(), "");
}

#[test]
fn a_failed_act_waits_for_its_turn_and_a_deadline_does_not() {
    let mut toy = Toy::new(claim());
    toy.memory.cluster.until = Some(start() + SignedDuration::from_mins(10));
    toy.memory.cluster.trouble = Some("the NodeClaim: rejected".into());
    assert_eq!(toy.run(), "Pending: the NodeClaim: rejected");
    toy.claim.as_mut().unwrap().finalizers.push(labels::TERMINATION_FINALIZER.into());
    toy.pass(300);
    toy.act_once();
    assert!(toy.trace().starts_with("delete NodeClaim: launch_timeout"));
}

impl Toy {
    fn act_once(&mut self) {
        let act = self.look().act.unwrap();
        self.act(act);
    }
}

#[test]
fn a_node_is_drained_only_when_the_api_server_itself_says_so() {
    let mut toy = Toy::serving();
    toy.hidden_pods = std::mem::take(&mut toy.pods);
    toy.hidden_pods.truncate(1);
    toy.delete();
    toy.run();
    toy.pass(5);
    let waits = "Draining: the watch to show 1 pods that are still on the node: default/a";
    assert_eq!(toy.run(), waits, "its watch began anew with an old list");
    toy.pass(9);
    toy.trace.clear();
    assert_eq!((toy.run().as_str(), toy.trace().as_str()), (waits, ""), "not asked all the time");
    toy.pods = std::mem::take(&mut toy.hidden_pods);
    assert_eq!(toy.run(), waits, "seen and asked to leave");
    toy.pass(1);
    assert!(toy.run().starts_with("Terminating"), "gone, as the API server itself says");
    insta::assert_snapshot!(toy.trace(), @r"
    evict a
    list pods: 0 to leave
    list attachments: 0
    status: Drained=True(Drained) VolumesDetached=True(VolumesDetached)
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    ");
}

#[test]
fn the_deadline_of_a_nodeclaim_ends_the_wait_for_pods_that_nobody_shows() {
    let mut toy = Toy::serving();
    toy.claim.as_mut().unwrap().termination_grace = Some(Duration::from_mins(1));
    toy.hidden_pods = std::mem::take(&mut toy.pods);
    toy.delete();
    toy.run();
    toy.pass(5);
    assert!(toy.run().starts_with("Draining: the watch to show 2 pods that are still on the node"));
    assert_eq!(toy.look().look_at, Some(toy.now + SignedDuration::from_secs(10)));
    toy.pass(55);
    assert!(toy.run().starts_with("Terminating"));
}

#[test]
fn pods_that_are_seen_again_on_a_drained_node_leave_it_before_its_machine_goes() {
    let mut toy = Toy::serving();
    toy.volumes = vec![attachment("csi-1", "pv-1")];
    let pods = std::mem::take(&mut toy.pods);
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go");
    toy.trace.clear();
    toy.pods = pods;
    toy.run();
    toy.pass(5);
    toy.volumes.clear();
    assert!(toy.run().starts_with("Terminating"));
    insta::assert_snapshot!(toy.trace(), @r"
    status: Drained=Unknown(Draining)
    evict a
    evict b
    list pods: 0 to leave
    list attachments: 0
    status: Drained=True(Drained) VolumesDetached=True(VolumesDetached)
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    ");
}

/// The order stands, but the cloud takes its time, and a node takes pods until it is gone.
#[test]
fn whoever_takes_the_taint_off_a_node_whose_machine_goes_gains_nothing() {
    let mut toy = Toy::serving();
    toy.pods.clear();
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    toy.trace.clear();
    toy.nodes[0].taints.clear();
    toy.pods = vec![pod("late", Some("node-1"))];
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    insta::assert_snapshot!(toy.trace(), @r#"
    Node: node.kubernetes.io/exclude-from-external-load-balancers=karpenter, taints ["karpenter.sh/disrupted"]
    evict late
    "#);
    toy.pass(5);
    toy.run();
    assert!(toy.trace().starts_with("delete machine: gone"), "nobody is waited for");
}

fn attachment(name: &str, volume: &str) -> Fact {
    let one = VolumeAttachment { name: name.into(), node: "node-1".into(), volume: Some(volume.into()) };
    Fact::AttachmentSeen(Arc::new(one))
}

fn bound(claim: &str, volume: &str) -> Fact {
    Fact::VolumeClaimSeen(Arc::new(volume_claim("default", claim, Some(volume))))
}

#[test]
fn a_drained_node_waits_until_its_volumes_are_detached() {
    let mut toy = Toy::serving();
    toy.volumes = vec![attachment("csi-1", "pv-1"), attachment("csi-2", "pv-2")];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1, csi-2 to go");
    toy.trace.clear();
    toy.pass(3600);
    assert_eq!(
        toy.run(),
        "Draining: VolumeAttachments csi-1, csi-2 to go",
        "without a deadline for as long as it takes"
    );
    assert_eq!(toy.look().look_at, Some(toy.now + SignedDuration::from_secs(10)));
    toy.volumes.pop();
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go");
    toy.volumes.clear();
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    insta::assert_snapshot!(toy.trace(), @r"
    status:
    list attachments: 0
    status: VolumesDetached=True(VolumesDetached)
    list pods: 0 to leave
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    ");
}

#[test]
fn a_machine_waits_for_volumes_that_only_the_api_server_shows() {
    let mut toy = Toy::serving();
    toy.hidden_volumes = vec![attachment("csi-1", "pv-1")];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go");
    toy.trace.clear();
    toy.pass(9);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go");
    toy.pass(1);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go", "the API server is asked anew");
    toy.hidden_volumes.clear();
    toy.pass(10);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    insta::assert_snapshot!(toy.trace(), @r"
    list attachments: 1
    list attachments: 0
    status: VolumesDetached=True(VolumesDetached)
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    ");
}

#[test]
fn the_deadline_of_a_nodeclaim_ends_the_wait_for_its_volumes() {
    let mut toy = Toy::serving();
    toy.claim.as_mut().unwrap().termination_grace = Some(Duration::from_mins(1));
    toy.volumes = vec![attachment("csi-1", "pv-1")];
    toy.delete();
    toy.run();
    toy.pass(50);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go");
    assert_eq!(toy.look().look_at, Some(toy.now + SignedDuration::from_secs(10)), "the deadline");
    toy.trace.clear();
    toy.pass(10);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    insta::assert_snapshot!(toy.trace(), @r"
    status: VolumesDetached=False(TerminationGracePeriodElapsed)
    delete machine: in progress
    status: InstanceTerminating=True(InstanceTerminating)
    ");
}

#[test]
fn volumes_of_pods_that_stay_are_not_waited_for() {
    let mut toy = Toy::serving();
    let mut daemon = PodShape::plain(Resources::new());
    daemon.tolerations = vec![crate::core::facts::Toleration {
        key: "".into(),
        operator: crate::core::facts::TolerationOperator::Exists,
        value: "".into(),
        effect: None,
        seconds: None,
    }];
    let staying = Pod { volume_claims: vec!["logs".into()], ..pod("staying", Some("node-1")) };
    toy.pods = vec![Pod { shape: Arc::new(daemon), ..staying }];
    toy.volumes = vec![attachment("csi-1", "pv-1"), bound("logs", "pv-1")];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    assert!(toy.trace().contains("VolumesDetached=True"));
}

#[test]
fn a_volume_is_waited_for_once_the_api_server_knows_no_more_of_the_stuck_pod_that_used_it() {
    let mut toy = Toy::serving();
    let stuck = Pod {
        volume_claims: vec!["data".into()],
        deleting: Some(toy.now - SignedDuration::from_mins(2)),
        ..pod("stuck", Some("node-1"))
    };
    toy.vanished = vec![stuck.uid.clone()];
    toy.pods = vec![stuck];
    toy.volumes = vec![attachment("csi-1", "pv-1"), bound("data", "pv-1")];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-1 to go", "the watch still shows the pod");
    toy.volumes.remove(0);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
}

#[test]
fn a_volume_is_waited_for_once_the_watch_shows_that_the_stuck_pod_that_used_it_has_gone() {
    let mut toy = Toy::serving();
    toy.pods = vec![Pod {
        volume_claims: vec!["data".into()],
        deleting: Some(toy.now - SignedDuration::from_mins(2)),
        ..pod("stuck", Some("node-1"))
    }];
    toy.volumes = vec![attachment("csi-1", "pv-1"), bound("data", "pv-1"), attachment("csi-2", "pv-2")];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Draining: VolumeAttachments csi-2 to go", "nobody waits for what a stuck pod uses");
    toy.pods.clear();
    toy.volumes.pop();
    assert_eq!(
        toy.run(),
        "Draining: VolumeAttachments csi-1 to go",
        "though it was there when the API server was asked"
    );
}

#[test]
fn without_permission_to_see_volumes_nobody_waits_for_them() {
    let mut toy = Toy::serving();
    toy.volumes = vec![attachment("csi-1", "pv-1"), Fact::Withheld(crate::core::facts::Kind::VolumeAttachment)];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    assert!(!toy.trace().contains("VolumesDetached"));
}

fn kind(name: &str, cpu: i64, price: f64, available: bool) -> Arc<InstanceType> {
    let one = |key: &str, value: &str| Requirement::new(key, Operator::In, [value.to_owned()]);
    Arc::new(InstanceType {
        name: name.into(),
        requirements: vec![one(labels::INSTANCE_TYPE, name)],
        capacity: Resources::new().with("cpu", cpu),
        overhead: Resources::new().with("cpu", 100),
        attach_limits: std::collections::BTreeMap::new(),
        offerings: vec![Offering {
            requirements: vec![one(labels::ZONE, "zone-a"), one(labels::CAPACITY_TYPE, labels::SPOT)],
            price,
            available,
            reservation_capacity: None,
        }],
    })
}

#[test]
fn candidates_are_what_fits_and_can_be_had_cheapest_first() {
    let types = [
        kind("dear", 4000, 2.0, true),
        kind("sold-out", 2000, 0.5, false),
        kind("small", 500, 0.1, true),
        kind("cheap", 1000, 1.0, true),
    ];
    let Candidates::Some(found) = candidates(&claim(), &types) else { panic!("nothing found") };
    assert_eq!(found.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>(), ["cheap", "dear"]);
    let mut picky = claim();
    picky.requirements = vec![Requirement::new(labels::INSTANCE_TYPE, Operator::In, ["sold-out"])];
    assert_eq!(candidates(&picky, &types), Candidates::SoldOut);
    picky.requirements = vec![Requirement::new(labels::ZONE, Operator::In, ["zone-b"])];
    assert_eq!(candidates(&picky, &types), Candidates::SoldOut);
    picky.requirements = vec![Requirement::new(labels::INSTANCE_TYPE, Operator::In, ["unheard-of"])];
    let why = |claim: &Claim| match candidates(claim, &types) {
        Candidates::Impossible(why) => why.split("; delete").next().unwrap_or_default().to_owned(),
        other => panic!("{other:?}"),
    };
    let unmet = "no instance type meets spec.requirements: node.kubernetes.io/instance-type In [unheard-of]";
    assert_eq!(why(&picky), unmet);
    let large = Claim { requests: claim().requests.with("cpu", 5000).with("memory", 0), ..claim() };
    assert_eq!(
        why(&large),
        "no instance type that meets spec.requirements holds spec.resources.requests: cpu 5 (at most 3900m)"
    );
}

#[test]
fn a_nodeclaim_that_cannot_be_protected_says_so_and_is_given_up_in_time() {
    let mut toy = Toy::new(claim());
    toy.memory.cluster.failed("the NodeClaim: 403 denied by policy".to_owned(), |_| start());
    let step = toy.look();
    let Some(Act::PatchStatus(patch)) = step.act else { panic!("{step:?}") };
    toy.patch_status(patch);
    let launched = find_condition(&toy.claim.as_ref().unwrap().conditions, "Launched").unwrap().clone();
    assert_eq!((launched.status, &*launched.reason), (Status::Unknown, "FinalizerMissing"));
    assert!(
        launched.message.starts_with("metadata.finalizers: karpenter.sh/termination could not be added"),
        "{launched:?}"
    );
    assert!(launched.message.contains("403 denied by policy"), "{launched:?}");
    toy.trace.clear();
    assert!(matches!(toy.look().act, Some(Act::PatchClaim(_))), "it is tried again");
    toy.pass(5 * 60);
    assert!(
        matches!(toy.look().act, Some(Act::Find(_))),
        "a machine may have been launched before somebody took the finalizer off"
    );
    toy.memory.sight = Sight::Absent;
    assert_eq!(toy.look().act, Some(Act::DeleteClaim(DeleteReason::LaunchTimeout)));
    toy.memory.sight = Sight::Present(Arc::new(machine()));
    assert!(
        matches!(toy.look().act, Some(Act::PatchStatus(_) | Act::PatchClaim(_))),
        "what has a machine is not given up"
    );
}

#[test]
fn a_machine_that_does_not_go_is_told_of_with_its_age_and_the_clouds_last_answer() {
    let mut toy = Toy::serving();
    toy.pods.clear();
    toy.deletion = vec![false; 3_000];
    toy.delete();
    toy.run();
    toy.pass(5);
    assert_eq!(toy.run(), "Terminating: the cloud to confirm that the machine is gone");
    let said =
        |toy: &Toy| find_condition(&toy.claim.as_ref().unwrap().conditions, "InstanceTerminating").unwrap().clone();
    assert_eq!(&*said(&toy).message, "");
    let gone_by = ("the machine ought to be gone", said(&toy).since + SignedDuration::from_mins(5));
    assert!(toy.look().deadlines.contains(&gone_by));
    // Refused steadily after it was accepted.
    for _ in 0..3 {
        toy.memory.cloud.failed("the deletion: not authorized".to_owned(), |_| start());
    }
    toy.pass(5);
    toy.run();
    let condition = said(&toy);
    assert!(
        condition.status == Status::True
            && condition.message.contains("is still there; the cloud's last answer: the deletion: not authorized"),
        "{condition:?}"
    );
    toy.memory.cloud = Hold::default();
    let mut told = std::collections::BTreeSet::new();
    for _ in 0..2_200 {
        toy.pass(5);
        toy.run();
        told.extend(toy.look().overdue);
    }
    assert!(said(&toy).message.contains("for more than 3 h; the cloud's last answer: it is going"), "{:?}", said(&toy));
    assert_eq!(told.len(), 7, "5, 10, 20, 40 min, 1, 2, 3 h: {told:#?}");
    toy.deletion = vec![true];
    toy.pass(5);
    toy.run();
    assert!(toy.claim.is_none() || said(&toy).message.is_empty());
}

#[test]
fn a_deletion_is_the_generation_of_all_conditions() {
    let mut toy = Toy::serving();
    toy.delete();
    toy.run();
    let claim = toy.claim.as_ref().unwrap();
    assert!(claim.conditions.iter().any(|condition| &*condition.kind == "ConsistentStateFound"));
    assert!(
        claim.conditions.iter().all(|condition| condition.generation == claim.generation),
        "{:#?}",
        claim.conditions
    );
}

#[test]
fn the_time_for_a_launch_and_for_a_registration_runs_from_when_nobody_knew_better() {
    // A NodeClaim that is older: it was judged anew a while ago.
    let mut toy = Toy::new(claim());
    let old = start() - SignedDuration::from_hours(1);
    let claim = toy.claim.as_mut().unwrap();
    claim.created = old;
    claim.finalizers.push(labels::TERMINATION_FINALIZER.into());
    let unknown = |kind: &str, since| Condition { since, ..condition(kind, Status::Unknown) };
    let at = |toy: &Toy, what: &str| {
        let deadlines = toy.look().deadlines;
        deadlines.into_iter().find(|(named, _)| named.contains(what)).map(|(_, at)| at)
    };
    claim.conditions = vec![unknown("Launched", start()), unknown("Registered", start())];
    assert_eq!(at(&toy, "not launched"), Some(start() + SignedDuration::from_mins(5)));
    assert_eq!(at(&toy, "not registered"), Some(start() + SignedDuration::from_mins(15)));
    toy.claim.as_mut().unwrap().conditions.clear();
    assert_eq!(at(&toy, "not launched"), Some(old + SignedDuration::from_mins(5)), "never judged");
}
