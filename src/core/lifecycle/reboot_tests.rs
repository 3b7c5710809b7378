//! A machine is restarted, look by look, by whoever looks after it, and whatever goes wrong meanwhile.

use super::*;
use crate::core::facts::samples::{condition, pod, serving, serving_node, start};
use crate::core::facts::{Fact, Fold, Pod};
use crate::core::ids::ProviderId;
use crate::core::lifecycle::{Memory, step};

/// A node that serves, whose machine is to be restarted.
struct World {
    claim: Claim,
    node: Option<Node>,
    /// A second Node with its provider ID.
    twin: Option<Node>,
    /// The Node that the API server has and the watch does not show.
    hidden: Option<Node>,
    pods: Vec<Pod>,
    memory: Memory,
    now: Timestamp,
    /// Why the cloud refuses, for good or for now.
    refuses: Option<(bool, &'static str)>,
    /// Whether pods leave when they are asked to.
    pods_leave: bool,
    asked: Vec<(ProviderId, Arc<str>)>,
    trace: Vec<String>,
}

impl World {
    fn new(grace: Option<&str>) -> Self {
        let mut claim = serving();
        claim.conditions.push(Condition {
            reason: "RebootRequested".into(),
            message: "rebooting for Kernel/Stuck".into(),
            ..condition(REBOOTING, Status::True)
        });
        claim.annotations.extend(grace.map(|grace| (labels::REBOOT_GRACE.into(), grace.into())));
        let node = Node { boot_id: Some("first".into()), ..serving_node() };
        Self {
            claim,
            node: Some(node),
            twin: None,
            hidden: None,
            pods: vec![pod("a", Some("node-1"))],
            memory: Memory::default(),
            now: start(),
            refuses: None,
            pods_leave: true,
            asked: vec![],
            trace: vec![],
        }
    }

    fn look(&self) -> Step {
        let mut fold = Fold::default();
        fold.fold(Fact::ClaimSeen(Arc::new(self.claim.clone())));
        self.node.iter().chain(&self.twin).for_each(|node| fold.fold(Fact::NodeSeen(Arc::new(node.clone()))));
        self.pods.iter().for_each(|pod| fold.fold(Fact::PodSeen(Arc::new(pod.clone()))));
        step(&Situation::of(&self.claim, fold.snapshot(), &self.memory, self.now))
    }

    /// Looks and acts until there is nothing to do at this moment, and returns what is waited for.
    fn run(&mut self) -> String {
        for _ in 0..30 {
            let step = self.look();
            let Some(act) = step.act else {
                return format!("{}: {}", step.phase.as_str(), step.waits_for.unwrap_or_else(|| "nothing".to_owned()));
            };
            let drains = matches!(act, Act::Drain { .. });
            self.act(act);
            if self.claim.deleting.is_some() || drains && !self.pods_leave {
                return format!("{}: {}", step.phase.as_str(), step.waits_for.unwrap_or_else(|| "its end".to_owned()));
            }
        }
        panic!("it never comes to rest:\n{}", self.trace.join("\n"));
    }

    fn act(&mut self, act: Act) {
        let what = match act {
            Act::PatchNode(_, _, patch) => {
                let node = self.node.as_mut().unwrap();
                patch.without_labels.iter().for_each(|key| drop(node.labels.remove(key)));
                node.labels.extend(patch.labels);
                node.taints = patch.taints.unwrap_or_else(|| node.taints.clone());
                let taints: Vec<_> = node.taints.iter().map(|taint| taint.key.to_string()).collect();
                let initialized = if node.is_initialized() { "initialized" } else { "not initialized" };
                format!("Node: {initialized}, taints {taints:?}")
            }
            Act::PatchClaim(patch) => {
                patch.without_annotations.iter().for_each(|key| drop(self.claim.annotations.remove(key)));
                let set: Vec<_> = patch.annotations.iter().map(|(key, value)| format!("{key}={value}")).collect();
                self.claim.annotations.extend(patch.annotations);
                format!("NodeClaim: set {set:?}, off {:?}", patch.without_annotations)
            }
            Act::PatchStatus(patch) => {
                self.claim.conditions = patch.conditions.unwrap();
                let said = [REBOOTING, "Initialized"].map(|kind| {
                    let it = find_condition(&self.claim.conditions, kind);
                    it.map_or_else(|| format!("no {kind}"), |it| format!("{kind}={} {}", it.status.as_str(), it.reason))
                });
                format!("status: {}", said.join(", "))
            }
            Act::Drain { evict, force } => {
                assert_eq!(force, [], "nobody is deleted for a reboot");
                if self.pods_leave {
                    self.pods.retain(|pod| !evict.iter().any(|leaving| leaving.uid == pod.uid));
                }
                format!("evict {}", evict.iter().map(|pod| pod.key.name.to_string()).collect::<Vec<_>>().join(", "))
            }
            Act::Reboot(id, operation) => {
                let memory = &mut self.memory.reboot;
                memory.first.get_or_insert_with(|| (Arc::clone(&operation), self.now));
                self.asked.push((id, Arc::clone(&operation)));
                match self.refuses {
                    None => memory.issued = Some(operation),
                    Some((true, why)) => memory.refused = Some((operation, why.to_owned())),
                    Some((false, why)) => {
                        self.memory.reboot.trouble = Some(why.to_owned());
                        self.memory.cloud.until = Some(after(self.now, 60));
                    }
                }
                "reboot".to_owned()
            }
            Act::DeleteClaim(reason) => {
                self.claim.deleting = Some(self.now);
                format!("delete NodeClaim: {reason:?}")
            }
            Act::FindNode(id) => {
                let found = self.hidden.clone().map(Arc::new);
                let what = if found.is_some() { "find Node: there" } else { "find Node: none" };
                self.memory.roll = Some((self.now, id, found));
                what.to_owned()
            }
            Act::AskDrift => {
                self.memory.drift.asked = Some(self.now);
                return;
            }
            other => panic!("{other:?}"),
        };
        self.trace.push(what);
    }

    fn boots(&mut self, boot: &str) {
        self.node.as_mut().unwrap().boot_id = Some(boot.into());
    }

    fn pass(&mut self, seconds: i64) {
        self.now = after(self.now, seconds);
    }

    fn trace(&mut self) -> String {
        std::mem::take(&mut self.trace).join("\n")
    }

    fn initialized(&self) -> bool {
        self.claim.is("Initialized")
    }
}

#[test]
fn a_reboot_from_its_request_to_its_end() {
    let mut world = World::new(None);
    assert_eq!(world.run(), "Rebooting: the shortest time of a drain to pass");
    world.pass(5);
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
    insta::assert_snapshot!(world.trace(), @r#"
    Node: initialized, taints ["karpenter.sh/rebooting"]
    status: Rebooting=True RebootRequested, Initialized=True Initialized
    evict a
    NodeClaim: set ["karpenter.sh/reboot-pre-boot-id=first"], off []
    reboot
    status: Rebooting=True RebootIssued, Initialized=Unknown Rebooting
    Node: not initialized, taints ["karpenter.sh/rebooting"]
    "#);
    let nanoseconds = start().as_nanosecond();
    assert_eq!(world.asked, [("sim://a/1".into(), format!("uid-1-{nanoseconds}-first").into())]);
    let ready = world.node.as_mut().unwrap().conditions.pop();
    world.boots("second");
    assert_eq!(world.run(), "Rebooting: the Node to become Ready after its reboot");
    assert!(!world.initialized());
    world.node.as_mut().unwrap().conditions.extend(ready);
    assert_eq!(world.run(), "Ready: nothing");
    insta::assert_snapshot!(world.trace(), @r#"
    Node: not initialized, taints []
    NodeClaim: set [], off ["karpenter.sh/reboot-pre-boot-id"]
    status: Rebooting=False RebootSucceeded, Initialized=Unknown Rebooting
    Node: initialized, taints []
    status: Rebooting=False RebootSucceeded, Initialized=True Initialized
    "#);
}

#[test]
fn whoever_takes_over_goes_on_where_the_last_one_was() {
    let mut world = World::new(Some("0s"));
    world.claim.annotations.insert(labels::PRE_BOOT_ID.into(), "first".into());
    world.node.as_mut().unwrap().taints.push(rebooting());
    assert!(matches!(world.look().act, Some(Act::Reboot(..))), "the same order as before");
    world.boots("second");
    assert_eq!(world.run(), "Ready: nothing");
    assert_eq!(world.asked, [], "it has restarted already");
}

#[test]
fn without_grace_pods_ride_along() {
    let mut world = World::new(Some("0s"));
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
    assert_eq!((world.pods.len(), world.trace().contains("evict")), (1, false));
}

#[test]
fn pods_have_the_grace_and_stay_on_the_node_after_it() {
    let mut world = World::new(Some("1m"));
    world.pods_leave = false;
    assert_eq!(world.run(), "Rebooting: 1 pods to leave before the reboot");
    assert_eq!(world.look().deadlines, [("is rebooted with the pods that are left", after(start(), 60))]);
    world.pass(59);
    assert_eq!(world.run(), "Rebooting: 1 pods to leave before the reboot");
    world.pass(1);
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
    assert_eq!(world.pods.len(), 1);
    // A grace shorter than the shortest drain is as long as that.
    let mut world = World::new(Some("1s"));
    world.pods_leave = false;
    world.run();
    world.pass(4);
    assert_eq!(world.run(), "Rebooting: 1 pods to leave before the reboot");
    world.pass(1);
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
}

#[test]
fn without_a_bound_pods_are_waited_for() {
    let mut world = World::new(None);
    world.pods_leave = false;
    for _ in 0..3 {
        assert_eq!(world.run(), "Rebooting: 1 pods to leave before the reboot");
        world.pass(3600);
    }
    assert_eq!(world.look().deadlines, []);
}

#[test]
fn a_grace_that_cannot_be_understood_ends_the_reboot_and_nothing_else() {
    for text in ["soon", "-1s"] {
        let mut world = World::new(Some(text));
        assert_eq!(world.run(), "Ready: nothing");
        let rebooting = find_condition(&world.claim.conditions, REBOOTING).unwrap();
        assert_eq!((rebooting.status, &*rebooting.reason), (Status::False, "RebootFailed"));
        let field =
            format!("metadata.annotations[karpenter.sh/reboot-termination-grace-period]: {text:?} is no duration");
        assert!(rebooting.message.starts_with(&field), "{}", rebooting.message);
        assert!(world.initialized() && world.node.unwrap().taints.is_empty());
    }
}

#[test]
fn a_cloud_that_cannot_reboot_costs_the_nodeclaim() {
    let mut world = World::new(Some("10m"));
    world.refuses = Some((true, "rebooting is not supported by this cloud"));
    world.run();
    world.pass(5);
    world.run();
    insta::assert_snapshot!(world.trace(), @r#"
    Node: initialized, taints ["karpenter.sh/rebooting"]
    status: Rebooting=True RebootRequested, Initialized=True Initialized
    evict a
    NodeClaim: set ["karpenter.sh/reboot-pre-boot-id=first"], off []
    reboot
    Node: initialized, taints []
    NodeClaim: set ["karpenter.sh/nodeclaim-termination-timestamp=2027-01-15T08:10:05Z"], off []
    delete NodeClaim: RebootRefused("rebooting is not supported by this cloud")
    "#);
}

#[test]
fn an_earlier_deadline_is_not_moved() {
    let mut world = World::new(Some("10m"));
    let earlier = after(start(), 60).to_string();
    world.claim.annotations.insert(labels::TERMINATION_TIMESTAMP.into(), earlier.as_str().into());
    world.refuses = Some((true, "no"));
    world.run();
    world.pass(5);
    world.run();
    assert!(world.claim.deleting.is_some());
    assert_eq!(*world.claim.annotations[labels::TERMINATION_TIMESTAMP], earlier);
}

#[test]
fn an_order_that_is_not_taken_is_repeated_for_five_minutes() {
    let mut world = World::new(Some("0s"));
    world.refuses = Some((false, "throttled"));
    world.run();
    assert_eq!(world.look().deadlines, [("reboot is given up", after(start(), 300))]);
    for _ in 0..4 {
        world.pass(60);
        world.run();
    }
    assert!(world.claim.deleting.is_none() && world.asked.len() == 5);
    assert!(world.asked.iter().all(|asked| *asked == world.asked[0]), "the same operation each time");
    world.pass(60);
    world.run();
    let said = world.trace();
    assert!(said.contains("RebootRefused(\"the reboot could not be ordered within 5 minutes: throttled"), "{said}");
}

#[test]
fn an_order_that_the_cloud_has_taken_is_not_given_up_though_nobody_could_write_that_down() {
    let mut world = World::new(Some("0s"));
    while world.asked.is_empty() {
        let act = world.look().act.unwrap();
        world.act(act);
    }
    world.pass(600);
    assert!(matches!(world.look().act, Some(Act::PatchStatus(_))));
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
    assert_eq!(world.look().deadlines, [("reboot is given up", after(world.now, 1200))]);
}

#[test]
fn a_node_that_does_not_come_back_is_replaced_after_twenty_minutes() {
    let mut world = World::new(Some("0s"));
    world.run();
    world.node.as_mut().unwrap().conditions.clear();
    assert_eq!(world.look().deadlines, [("reboot is given up", after(start(), 1200))]);
    world.pass(1199);
    assert_eq!(world.run(), "Rebooting: the Node to show a new boot ID");
    world.pass(1);
    world.run();
    assert!(world.trace().ends_with("delete NodeClaim: RebootTimeout(\"the node was not back within 20 minutes\")"));
}

#[test]
fn a_node_that_is_gone_is_not_waited_for_longer_than_five_minutes() {
    let mut world = World::new(None);
    world.node = None;
    assert_eq!(world.run(), "Rebooting: the Node to be there");
    world.pass(300);
    world.run();
    assert!(world.claim.deleting.is_some());
    assert!(world.trace().starts_with("find Node: none\n"), "the API server itself has said so");
}

#[test]
fn a_node_that_no_watch_shows_is_no_reason_to_give_a_reboot_up() {
    let mut world = World::new(None);
    world.hidden = world.node.take();
    assert_eq!(world.run(), "Rebooting: the Node to be there");
    for _ in 0..3 {
        world.pass(300);
        assert_eq!(world.run(), "Rebooting: the watch to show Node node-1 as it is");
    }
    world.node = world.hidden.take();
    world.run();
    assert_eq!(world.asked.len(), 1, "{}", world.trace());
}

#[test]
fn of_two_nodes_of_the_machine_one_is_waited_for_to_go() {
    let mut world = World::new(None);
    let node = world.node.clone().unwrap();
    world.twin = Some(Node { name: "node-1-twin".into(), uid: "twin".into(), owner_claims: vec![], ..node });
    world.run();
    world.pass(600);
    world.run();
    assert!(world.claim.deleting.is_none(), "{}", world.trace());
    world.twin = None;
    world.run();
    assert_eq!(world.asked.len(), 1, "{}", world.trace());
}

#[test]
fn what_is_left_of_a_reboot_that_nobody_asks_for_any_more_is_taken_off() {
    let mut world = World::new(None);
    world.pods_leave = false;
    world.run();
    world.claim.conditions.retain(|condition| &*condition.kind != REBOOTING);
    world.claim.annotations.insert(labels::PRE_BOOT_ID.into(), "first".into());
    assert_eq!(world.run(), "Ready: nothing");
    assert!(world.node.unwrap().taints.is_empty() && world.claim.annotations.is_empty());
}
