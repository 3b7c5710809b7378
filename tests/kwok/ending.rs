//! What must hold when a scenario ends: NodeClaims and Nodes match, conditions and Events are as Karpenter's, joiner goes in peace; and whatever
//! is otherwise, the scenario has named.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::controlplane::eventually_or;
use crate::common::joiner::Joiner;
use crate::common::kube_api::{CLAIMS, KubeApi, NODES, POOLS, condition, name, text};
use crate::stage::{LIMIT, Stage};

/// What a scenario has brought about, and leaves behind.
pub(crate) enum Excuse<'a> {
    /// This Node has no pods.
    Empty(&'a str),
    /// There are Warnings of this reason that hold this text.
    Warning(&'static str, &'a str),
    /// Objects of this kind have this condition, as `Status/Reason`.
    Condition(&'static str, &'static str, &'static str),
    /// joiner was killed or cut off from the API server: what it was about to say, nobody has heard.
    Interrupted,
}

/// A Node was drained that had pods: until they are gone it warns, as Karpenter's.
pub(crate) const DRAINED: Excuse<'static> = Excuse::Warning("FailedDraining", "");

/// Karpenter's Events: the reason, the type, the kinds that they are about, and how their messages begin where programs may look for that.
const EVENTS: [(&str, &str, &[&str], &str); 13] = [
    ("Nominated", "Normal", &["Pod"], "Pod should schedule on: "),
    ("FailedScheduling", "Warning", &["Pod"], "Failed to schedule pod, "),
    ("NoCompatibleInstanceTypes", "Warning", &["NodePool"], ""),
    ("DisruptionTerminating", "Normal", &["Node", "NodeClaim"], "Disrupting Node"),
    ("FailedDraining", "Warning", &["Node"], "Failed to drain node, "),
    ("Evicted", "Normal", &["Pod"], "Evicted pod: "),
    ("Disrupted", "Normal", &["Pod"], ""),
    ("TerminationGracePeriodExpiring", "Warning", &["Node", "NodeClaim"], "All pods will be deleted by "),
    ("AwaitingVolumeDetachment", "Normal", &["Node"], ""),
    ("FailedConsistencyCheck", "Warning", &["NodeClaim"], "expected "),
    ("UnregisteredTaintMissing", "Warning", &["NodeClaim"], ""),
    ("InsufficientCapacityError", "Warning", &["NodeClaim", "Pod"], "NodeClaim "),
    ("Finalized", "Normal", &["Node", "NodeClaim", "NodePool"], "Finalized karpenter.sh/"),
];

/// The conditions whose changes are Events of type Normal with the condition as their reason.
const TOLD: [(&str, &[&str]); 3] = [
    (
        "NodeClaim",
        &[
            "Launched",
            "Registered",
            "Initialized",
            "Ready",
            "Consolidatable",
            "Drifted",
            "ConsistentStateFound",
            "Drained",
            "VolumesDetached",
            "InstanceTerminating",
        ],
    ),
    ("NodePool", &["ValidationSucceeded", "NodeClassReady", "NodeRegistrationHealthy", "Ready"]),
    ("Node", &["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"]),
];

/// The conditions that an object always has. They are Unknown before anybody writes them, so that all their changes are told.
const ALWAYS: [(&str, &[&str]); 2] = [
    ("NodeClaim", &["Launched", "Registered", "Initialized", "Ready"]),
    ("NodePool", &["ValidationSucceeded", "NodeClassReady", "Ready"]),
];

/// Who writes these Events.
const COMPONENT: &str = "karpenter";

impl Stage {
    /// What must hold at the end of a scenario that leaves nothing odd behind. Returns the NodeClaims with their Nodes.
    #[track_caller]
    pub(crate) fn ends_well(&self, joiner: Joiner) -> Vec<(Value, Value)> {
        self.ends_well_but(joiner, &[])
    }

    /// The same, but for what is excused.
    #[track_caller]
    pub(crate) fn ends_well_but(&self, joiner: Joiner, excuses: &[Excuse<'_>]) -> Vec<(Value, Value)> {
        let nodes = self.settled();
        self.none_is_for_nothing(&nodes, excuses);
        // What there is to write and to say of the last changes may be on its way.
        eventually_or("conditions are as Karpenter's, and their changes are told", LIMIT, || {
            let faults = self.faults(excuses);
            if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
        });
        assert!(joiner.stop().success());
        let there = uids(self.api());
        let events = events(self.api());
        let wrong: Vec<String> = events.iter().filter_map(|event| wrong(event, &there, excuses)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        nodes
    }

    #[track_caller]
    fn none_is_for_nothing(&self, nodes: &[(Value, Value)], excuses: &[Excuse<'_>]) {
        let is_daemon = |pod: &Value| text(pod, "/metadata/ownerReferences/0/kind") == "DaemonSet";
        let pods = self.api().list("/api/v1/pods");
        let used: BTreeSet<String> =
            pods.iter().filter(|pod| !is_daemon(pod)).map(|pod| text(pod, "/spec/nodeName")).collect();
        for (claim, node) in nodes {
            // Who makes a NodeClaim by hand wants it.
            let by_hand = text(claim, "/metadata/ownerReferences/0/kind") != "NodePool";
            let node = name(node);
            let excused = excuses.iter().any(|excuse| matches!(excuse, Excuse::Empty(empty) if *empty == node));
            assert!(by_hand || excused || used.contains(&node), "{node} is there for nothing: {claim}");
        }
    }

    /// What is wrong with the conditions of NodeClaims and NodePools, and what was not told of them.
    fn faults(&self, excuses: &[Excuse<'_>]) -> Vec<String> {
        let (claims, pools) = (self.api().list(CLAIMS), self.api().list(POOLS));
        let events = events(self.api());
        let objects =
            claims.iter().map(|claim| ("NodeClaim", claim)).chain(pools.iter().map(|pool| ("NodePool", pool)));
        let mut faults: Vec<String> = Vec::new();
        for (kind, object) in objects {
            faults.extend(ill_conditioned(kind, object, excuses));
            if !is_interrupted(excuses) {
                faults.extend(untold(kind, object, &events));
            }
        }
        let bought_of =
            |pool: &str| claims.iter().any(|claim| text(claim, "/metadata/labels/karpenter.sh~1nodepool") == pool);
        for pool in pools.iter().filter(|_| !is_interrupted(excuses)) {
            // Whoever edits a NodePool begins anew.
            let unproven = condition(pool, "NodeRegistrationHealthy") == "Unknown/AwaitingReconciliation";
            if unproven && pool["metadata"]["generation"] == 1 && bought_of(&name(pool)) {
                faults.push(format!("NodePool {} does not know that its machines become Nodes", name(pool)));
            }
        }
        if !is_interrupted(excuses) {
            faults.extend(unfinished(&claims, &events));
        }
        faults
    }
}

fn is_interrupted(excuses: &[Excuse<'_>]) -> bool {
    excuses.iter().any(|excuse| matches!(excuse, Excuse::Interrupted))
}

/// The names of a kind in a table.
fn of<'a>(table: &[(&str, &'a [&'a str])], kind: &str) -> &'a [&'a str] {
    table.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, names)| names)
}

/// What is wrong with the conditions of an object: all are True with their own name as the reason.
fn ill_conditioned(kind: &str, object: &Value, excuses: &[Excuse<'_>]) -> Vec<String> {
    let object_name = name(object);
    let listed = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |wanted: &str| listed.iter().any(|condition| condition["type"] == wanted);
    let missing = of(&ALWAYS, kind).iter().filter(|wanted| !has(wanted));
    let mut faults: Vec<String> = missing.map(|wanted| format!("{kind} {object_name} has no {wanted}")).collect();
    for listed in listed {
        let known = text(listed, "/type");
        let said = format!("{}/{}", text(listed, "/status"), text(listed, "/reason"));
        let is_well = of(&TOLD, kind).contains(&&*known) && said == format!("True/{known}");
        // Nobody knows it before the first machine.
        let is_open = known == "NodeRegistrationHealthy" && said == "Unknown/AwaitingReconciliation";
        let excused = excuses.iter().any(
            |excuse| matches!(excuse, Excuse::Condition(of, is, so) if *of == kind && *is == known && *so == said),
        );
        // Whoever takes over does not know whether a launch of the one before was still under way, and says so.
        let is_doubted = is_interrupted(excuses) && (&*known, &*said) == ("Launched", "True/MaybeLaunchedTwice");
        if !is_well && !is_open && !is_doubted && !excused {
            faults.push(format!("{kind} {object_name}: {known} is {said}: {}", text(listed, "/message")));
        }
        if is_well && !text(listed, "/message").is_empty() {
            faults.push(format!("{kind} {object_name}: {known} is well, and says {}", text(listed, "/message")));
        }
        if of(&ALWAYS, kind).contains(&&*known) && listed["observedGeneration"] != object["metadata"]["generation"] {
            faults.push(format!("{kind} {object_name}: {known} is of generation {}", listed["observedGeneration"]));
        }
    }
    if listed.last().is_some_and(|last| last["type"] != "Ready") {
        faults.push(format!("{kind} {object_name}: Ready follows from the others and comes last: {listed:?}"));
    }
    faults
}

/// The changes of an object's conditions of which there is no Event: a condition that is True became so once more often than it ceased to be.
fn untold(kind: &str, object: &Value, events: &[Value]) -> Vec<String> {
    let is_untold = |known: &&&str| {
        let about =
            |event: &&Value| event["involvedObject"]["uid"] == object["metadata"]["uid"] && event["reason"] == **known;
        let told: Vec<String> = events.iter().filter(about).map(|event| text(event, "/message")).collect();
        let became = told.iter().filter(|message| message.contains(" -> True,")).count();
        let ceased = told.iter().filter(|message| message.contains("Status: True ->")).count();
        became != ceased + usize::from(condition(object, known).starts_with("True/"))
    };
    let untold = of(&ALWAYS, kind).iter().filter(is_untold);
    untold.map(|known| format!("{kind} {}: how {known} came to be what it is was not told", name(object))).collect()
}

/// The NodeClaims that are gone, and whose end was not told.
fn unfinished(claims: &[Value], events: &[Value]) -> Vec<String> {
    let about = |event: &Value| (text(event, "/involvedObject/uid"), text(event, "/involvedObject/name"));
    let of_claims = || events.iter().filter(|event| event["involvedObject"]["kind"] == "NodeClaim");
    let there: BTreeSet<String> = claims.iter().map(|claim| text(claim, "/metadata/uid")).collect();
    let finalized: BTreeSet<(String, String)> =
        of_claims().filter(|event| event["reason"] == "Finalized").map(about).collect();
    let mentioned: BTreeSet<(String, String)> = of_claims().map(about).collect();
    let untold = mentioned.difference(&finalized).filter(|(uid, _)| !there.contains(uid));
    untold.map(|(_, name)| format!("NodeClaim {name} is gone, and nobody said so")).collect()
}

/// joiner's Events of all namespaces.
fn events(api: &KubeApi) -> Vec<Value> {
    let mut events = api.list("/api/v1/events");
    events.retain(|event| event["source"]["component"] == COMPONENT || event["reportingComponent"] == COMPONENT);
    events
}

/// The UIDs of what there is, by kind, namespace and name.
fn uids(api: &KubeApi) -> BTreeMap<[String; 3], String> {
    let kinds = [("Pod", "/api/v1/pods"), ("Node", NODES), ("NodeClaim", CLAIMS), ("NodePool", POOLS)];
    let of_kind = |(kind, collection): (&str, &str)| {
        let uid = |object: &Value| {
            ([kind.to_owned(), text(object, "/metadata/namespace"), name(object)], text(object, "/metadata/uid"))
        };
        api.list(collection).iter().map(uid).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// What is wrong with an Event, if something is.
fn wrong(event: &Value, there: &BTreeMap<[String; 3], String>, excuses: &[Excuse<'_>]) -> Option<String> {
    let about = &event["involvedObject"];
    let [reason, message, severity] = ["/reason", "/message", "/type"].map(|field| text(event, field));
    let [kind, namespace, object] = ["/kind", "/namespace", "/name"].map(|field| text(about, field));
    let is_it = |known: &&(&str, &str, &[&str], &str)| known.0 == reason && known.2.contains(&&*kind);
    let known = EVENTS.iter().find(is_it).map(|(_, severity, _, begins)| (*severity, *begins));
    let told = || of(&TOLD, &kind).contains(&&*reason).then_some(("Normal", "Status condition transitioned, Type: "));
    let home = if namespace.is_empty() { "default" } else { &namespace };
    let version = if kind.starts_with("Node") && kind != "Node" { "karpenter.sh/v1" } else { "v1" };
    let uid = text(about, "/uid");
    let same = there.get(&[kind.clone(), namespace.clone(), object]).is_none_or(|known| *known == uid);
    let is_excused = |excuse: &Excuse<'_>| matches!(excuse, Excuse::Warning(known, part) if *known == reason && message.contains(part));
    let fault = match known.or_else(told) {
        None => "Karpenter has no such Event",
        Some((usual, _)) if usual != severity => "Karpenter gives it another type",
        Some((_, begins)) if !message.starts_with(begins) => "its message begins otherwise",
        _ if (kind == "Pod") == namespace.is_empty() || text(event, "/metadata/namespace") != home => {
            "it is in the wrong namespace"
        }
        _ if text(about, "/apiVersion") != version => "its object has another version",
        _ if uid.is_empty() || !same => "its object has another UID",
        _ if severity == "Warning" && !excuses.iter().any(is_excused) => "nobody expected this warning",
        _ => return None,
    };
    Some(format!("{fault}: {event}"))
}
