//! NodeClaims out of the ordinary: made by hand, nonsense, somebody else's, and such whose machine does not come.

use serde_json::{Value, json};

use crate::common::controlplane::{ControlPlane, eventually};
use crate::common::joiner::Joiner;
use crate::common::kube_api::{CLAIMS, NODES, POOLS, condition, condition_message, name, text};
use crate::stage::{LIMIT, Stage, deployment, pool};

/// A NodeClaim as somebody would write it by hand; `changes` are merged into its spec.
fn claim(name: &str, instance_type: &str, changes: &Value) -> String {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": { "name": name, "labels": { "example.com/made": "by-hand" }, "annotations": { "example.com/why": "a try" } },
        "spec": {
            "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
            "requirements": [
                { "key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type] },
                { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
            ],
            "resources": { "requests": { "cpu": "1" } },
            "taints": [{ "key": "example.com/hand", "value": "made", "effect": "NoSchedule" }],
            "expireAfter": "Never",
        },
    });
    for (key, change) in changes.as_object().into_iter().flatten() {
        claim["spec"][key] = change.clone();
    }
    claim.to_string()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_nodeclaim_made_by_hand_becomes_a_node_and_a_nonsense_one_harms_nobody() {
    let stage = Stage::set("by-hand");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&claim("mine", "c-4x-amd64-linux", &json!({})));
    let (mine, node) = stage.settled().pop().expect("it becomes a node");
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "c-4x-amd64-linux"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("example.com/made", "by-hand"),
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
    ] {
        assert_eq!(node["metadata"]["labels"][key], value, "{node}");
    }
    assert_eq!(node["metadata"]["annotations"]["example.com/why"], "a try");
    assert_eq!(node["spec"]["taints"], json!([{ "key": "example.com/hand", "value": "made", "effect": "NoSchedule" }]));
    let tolerant = json!({
        "nodeSelector": { "example.com/made": "by-hand" },
        "tolerations": [{ "key": "example.com/hand", "operator": "Exists" }],
    });
    stage.plane().apply(&deployment("by-hand", "guest", 2, ["500m", "512Mi"], &tolerant));
    stage.all_run("by-hand", 2);

    // Nonsense: what the API server lets through is answered for, each in its own way.
    let class =
        |group: &str, kind: &str, name: &str| json!({ "nodeClassRef": { "group": group, "kind": kind, "name": name } });
    let foreign = class("karpenter.example.com", "OtherNodeClass", "default");
    let nowhere = class("karpenter.kwok.sh", "KWOKNodeClass", "nowhere");
    let nonsense = [
        claim("no-such-type", "c-999x-amd64-linux", &json!({})),
        claim("too-large", "c-1x-amd64-linux", &json!({ "resources": { "requests": { "cpu": "3" } } })),
        claim("no-such-class", "c-1x-amd64-linux", &nowhere),
        claim("foreign", "c-1x-amd64-linux", &foreign),
    ];
    stage.plane().apply(&nonsense.join("\n---\n"));
    let get = |name: &str| api.get(&format!("{CLAIMS}/{name}"));
    for (name, why) in [("no-such-type", "no instance type meets spec.requirements"), ("too-large", "ask for less")] {
        let why_not = eventually(&format!("{name} says what is wrong"), LIMIT, || {
            let claim = get(name).expect("it is given time to be mended");
            (condition(&claim, "Launched") == "Unknown/LaunchFailed").then(|| condition_message(&claim, "Launched"))
        });
        assert!(why_not.contains(why), "{why_not}");
    }
    // As Karpenter does: without its NodeClass there will be no machine.
    eventually("what has no NodeClass is deleted", LIMIT, || get("no-such-class").is_none().then_some(()));
    let said = joiner.said("deleting nodeclaim").pop().expect("the log says so");
    assert_eq!(
        (&said["nodeclaim"], &said["reason"]),
        (&json!("no-such-class"), &json!("nodeclass_not_ready")),
        "{said}"
    );

    // Meanwhile pods get their nodes.
    stage.plane().apply(&pool("others", &json!({})));
    stage.plane().apply(&deployment("by-hand", "others", 3, ["500m", "512Mi"], &json!({})));
    stage.all_run("by-hand", 5);
    let foreign = get("foreign").expect("it is another autoscaler's");
    assert_eq!((&foreign["metadata"]["finalizers"], &foreign["status"]), (&Value::Null, &Value::Null), "{foreign}");
    let errors = joiner.said("act failed");
    assert!(errors.len() <= 2, "each is said once: {errors:?}");
    for name in ["no-such-type", "too-large", "foreign"] {
        api.delete(&format!("{CLAIMS}/{name}"));
        eventually(&format!("{name} goes when it is deleted"), LIMIT, || get(name).is_none().then_some(()));
    }
    let nodes = stage.ends_well(joiner);
    assert_eq!(nodes.len(), 2);
    assert!(nodes.iter().any(|(claim, _)| claim["metadata"]["uid"] == mine["metadata"]["uid"]));
}

/// The API server refuses what is no NodeClaim at all, and says which field.
#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn what_the_definitions_forbid_never_reaches_joiner() {
    let stage = Stage::set("forbidden");
    for (field, changes) in [
        ("spec.requirements", json!({ "requirements": [{ "key": "a", "operator": "Near", "values": ["b"] }] })),
        ("spec.expireAfter", json!({ "expireAfter": "soon" })),
        (
            "spec.nodeClassRef.name",
            json!({ "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "" } }),
        ),
    ] {
        let refused = apply_error(stage.plane(), &claim("never", "c-1x-amd64-linux", &changes));
        assert!(refused.contains(field), "{refused}");
    }
}

fn apply_error(plane: &ControlPlane, yaml: &str) -> String {
    plane.try_kubectl(&["create", "-f", "-"], Some(yaml)).expect_err("the definitions forbid it")
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_node_that_does_not_come_is_waited_for_in_plain_sight_and_bought_once() {
    let stage = Stage::set("late");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    let slow = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": { "name": "slow" },
        "spec": { "nodeRegistrationDelay": "2h" },
    });
    stage.plane().apply(&slow.to_string());
    stage.plane().apply(&pool("late", &json!({ "template": { "spec": { "nodeClassRef": { "name": "slow" } } } })));
    stage.plane().apply(&deployment("late", "web", 2, ["500m", "512Mi"], &json!({})));
    let claim = eventually("the machine is launched, and its Node is missed", LIMIT, || {
        let claim = api.list(CLAIMS).pop()?;
        (condition(&claim, "Registered") == "Unknown/NodeNotFound").then_some(claim)
    });
    assert_eq!(condition(&claim, "Launched"), "True/Launched");
    assert!(condition(&claim, "Ready").starts_with("Unknown/"), "{claim}");
    let actor = waits(&joiner, &claim, "Registering", "the Node to appear");
    let deadlines = actor["deadlines"].as_array().cloned().unwrap_or_default();
    let given_up = deadlines.iter().find(|deadline| deadline["what"] == "given up: not registered");
    let left = given_up.and_then(|deadline| deadline["inSeconds"].as_f64()).expect("the page says when it is given up");
    assert!((600.0..=900.0).contains(&left), "15 minutes after its creation: {actor}");

    // More pods come: they are planned for the machine that is on its way, and no second one is bought for those who wait.
    stage.plane().apply(&deployment("late", "more", 1, ["100m", "128Mi"], &json!({})));
    eventually("the new pod is planned beside the others", LIMIT, || {
        joiner.said("computed plan").into_iter().find(|plan| plan["nodeclaims"] == 0 && plan["existing_pods"] != 0)
    });
    assert_eq!(api.list(CLAIMS).len(), 1);
    assert!(api.list(NODES).is_empty());

    // Whoever has enough mends the NodePool and deletes the NodeClaim: it goes at once, and the pods get a node.
    let mended = json!({ "spec": { "template": { "spec": { "nodeClassRef": { "name": "default" } } } } });
    api.patch(&format!("{POOLS}/late"), &mended);
    api.delete(&format!("{CLAIMS}/{}", name(&claim)));
    stage.all_run("late", 3);
    let nodes = stage.settled();
    assert!(nodes.iter().all(|(other, _)| name(other) != name(&claim)));

    // A Node that is there and never becomes Ready.
    stage.plane().tell("stop kwok");
    let kubelets = Kubelets(&stage);
    stage.plane().apply(&deployment("late", "large", 1, ["8", "16Gi"], &json!({})));
    let claim = eventually("the Node is registered, and not Ready", LIMIT, || {
        let claims = api.list(CLAIMS);
        claims.into_iter().find(|claim| condition(claim, "Initialized") == "Unknown/NodeNotReady")
    });
    assert_eq!(condition(&claim, "Registered"), "True/Registered");
    waits(&joiner, &claim, "Initializing", "the Node to become Ready");
    drop(kubelets);
    stage.all_run_again("late", 4, LIMIT);
    stage.ends_well(joiner);
}

/// What the page of actors says of a NodeClaim once it is in this state and waits for that.
#[track_caller]
fn waits(joiner: &Joiner, claim: &Value, state: &str, waits_for: &str) -> Value {
    eventually(&format!("its actor is {state} and waits for {waits_for}"), LIMIT, || {
        let actor = joiner.actor("claim", &name(claim))?;
        (text(&actor, "/state") == state && text(&actor, "/waitsFor") == waits_for).then_some(actor)
    })
}

/// Starts kwok again when this is dropped: later scenarios need it.
struct Kubelets<'a>(&'a Stage);

impl Drop for Kubelets<'_> {
    fn drop(&mut self) {
        self.0.plane().tell("start kwok");
    }
}
