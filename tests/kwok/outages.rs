//! What befalls the API server, or joiner in the middle of a burst: when it is over, everything is as if nothing had been.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::controlplane::eventually;
use crate::common::joiner::Joiner;
use crate::common::kube_api::{CLAIMS, NODES, condition, condition_message, name, text};
use crate::ending::{DRAINED, Excuse};
use crate::stage::{LIMIT, Stage, deployment, pool, small_machines};

/// The kinds that joiner watches here.
const WATCHES: usize = 13;
/// How long a burst of some hundred pods may take that is interrupted all the time.
const LONG: Duration = Duration::from_mins(3);

fn uids(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| text(pod, "/metadata/uid")).collect()
}

/// What ends when the API server is away, and is started anew when it is back. In a cluster, kube-controller-manager and kube-scheduler hold leases, and end
/// when they cannot renew them for ten seconds. kwok does not always find an API server again, where kubelets do.
const DEPENDENTS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];

fn goes_away(stage: &Stage) {
    stage.plane().stop_apiserver();
    for component in DEPENDENTS {
        stage.plane().tell(&format!("stop {component}"));
    }
}

fn comes_back(stage: &Stage) {
    stage.plane().start_apiserver();
    for component in DEPENDENTS {
        stage.plane().tell(&format!("start {component}"));
    }
}

/// Asks for pods on small machines and waits until they are there; `small` of 300m and `large` of one processor. Returns their UIDs.
fn burst(stage: &Stage, namespace: &str, small: u32, large: u32) -> BTreeSet<String> {
    stage.plane().apply(&pool(namespace, &small_machines()));
    let mut deployments = vec![deployment(namespace, "large", large, ["1", "1Gi"], &json!({}))];
    for (part, replicas) in [small / 2, small - small / 2].into_iter().enumerate() {
        deployments.push(deployment(namespace, &format!("small-{part}"), replicas, ["300m", "256Mi"], &json!({})));
    }
    stage.plane().apply(&deployments.join("\n---\n"));
    let all = (small + large) as usize;
    let pods = || stage.api().pods(namespace);
    uids(&eventually("all pods are there", LIMIT, || Some(pods()).filter(|pods| pods.len() == all)))
}

/// Machines of 3.9 processors that these pods need at least.
fn fewest(small: u32, large: u32) -> usize {
    (small * 300 + large * 1000).div_ceil(3900) as usize
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn twenty_kills_at_random_moments_of_a_burst_lose_nothing_and_buy_nothing_twice() {
    let seed = std::env::var("JOINER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("JOINER_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::set("kills");
    let api = stage.api();
    // Without the lease, whose expiry would put 15 s between two lives: each is to find the burst in full swing.
    let start = || stage.joiner_with("joiner-a", &[("DISABLE_LEADER_ELECTION", "true")]);
    let mut joiner = start();
    let asked = burst(&stage, "kills", 350, 150);

    // How far the burst has come: every machine counts when its NodeClaim, its Node and its registration are there.
    let far = fewest(350, 150);
    let mut moments: Vec<usize> = (0..20).map(|_| random.usize(1..3 * far)).collect();
    moments.sort_unstable();
    let is_registered = |node: &&Value| node["metadata"]["labels"]["karpenter.sh/registered"] == "true";
    for moment in moments {
        eventually(&format!("{moment} of {} steps are done", 3 * far), LIMIT, || {
            let nodes = api.list(NODES);
            let done = api.list(CLAIMS).len() + nodes.len() + nodes.iter().filter(is_registered).count();
            (done >= moment).then_some(())
        });
        joiner.kill();
        joiner = start();
    }

    let pods = stage.all_run_within("kills", 500, LONG);
    assert_eq!(uids(&pods), asked, "the same pods");
    let nodes = stage.ends_well_but(joiner, &[Excuse::Interrupted]);
    assert!(nodes.len() <= far + far / 5, "{} machines were bought, {far} would do", nodes.len());
    let tokens: BTreeSet<String> =
        nodes.iter().map(|(_, node)| text(node, "/metadata/labels/karpenter.kwok.sh~1nodeclaim-uid")).collect();
    assert_eq!(tokens, nodes.iter().map(|(claim, _)| text(claim, "/metadata/uid")).collect(), "a machine a NodeClaim");
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn an_api_server_that_is_away_for_half_a_minute_finds_the_burst_where_it_was() {
    let stage = Stage::set_apart("away");
    let api = stage.api();
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("lease lost");
    joiner.expect_error("nodeclaim not created");
    let asked = burst(&stage, "away", 140, 60);
    eventually("the first NodeClaims are created", LIMIT, || (!api.list(CLAIMS).is_empty()).then_some(()));
    goes_away(&stage);
    let gone = Instant::now();
    eventually("half a minute has passed", LIMIT, || (gone.elapsed() >= Duration::from_secs(30)).then_some(()));
    assert_eq!(joiner.probe("/healthz"), 200, "that the API server is away is no reason to be killed");
    comes_back(&stage);

    let pods = stage.all_run_again("away", 200, LONG);
    // kube-controller-manager may learn later than kube-scheduler that a Node is open, and then takes its new pods off it again: that is its
    // own doing, and it says so. No other pod was lost.
    let evicted = api.list("/api/v1/namespaces/away/events?fieldSelector=reason=TaintManagerEviction");
    let evicted: BTreeSet<String> = evicted.iter().map(|event| text(event, "/involvedObject/uid")).collect();
    let lost: Vec<&String> =
        asked.iter().filter(|uid| !uids(&pods).contains(*uid) && !evicted.contains(*uid)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "the same pods");
    let complaints = joiner.complaints();
    // A watch says three things at most (refused, not yet allowed, as kube's own library says, and then not yet ready), a machine in the making
    // three (its launch failed, nobody knows how, and the cloud does not answer either), and the rest is single: nothing is said once an attempt.
    let most = 3 * WATCHES + 3 * api.list(CLAIMS).len() + 5;
    assert!(complaints.len() <= most, "nobody reads a flood of {}: {complaints:#?}", complaints.len());
    assert!(joiner.said("permission missing").is_empty(), "an API server that starts is not believed: {complaints:#?}");
    assert!(complaints.iter().any(|line| text(line, "/error").contains("cannot be reached")), "{complaints:#?}");
    assert!(joiner.is_leader());
    let nodes = stage.ends_well_but(joiner, &[Excuse::Interrupted]);
    let far = fewest(140, 60);
    assert!(nodes.len() <= far + far / 5 + 1, "{} machines were bought, {far} would do", nodes.len());
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn what_happened_while_joiner_slept_and_etcd_forgot_is_learnt_from_new_lists() {
    let stage = Stage::set_apart("forgotten");
    let api = stage.api();
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("lease lost");
    stage.plane().apply(&pool("forgotten", &small_machines()));
    stage.plane().apply(&deployment("forgotten", "before", 6, ["1", "1Gi"], &json!({})));
    stage.all_run("forgotten", 6);
    let nodes = stage.settled();
    let lists = |joiner: &Joiner| {
        let requests = joiner.metric("joiner_api_requests_total");
        let is_list = |labels: &str| labels.contains("verb=\"list\"") && labels.contains("resource=\"pods\"");
        requests.iter().filter(|(labels, _)| is_list(labels)).map(|(_, count)| *count).sum::<f64>()
    };
    let before = lists(&joiner);

    // joiner sleeps. Its watches break, the world changes, and the history that it would need is no more.
    joiner.freeze();
    goes_away(&stage);
    comes_back(&stage);
    let deleted = format!("{CLAIMS}/{}", name(&nodes[0].0));
    api.delete(&deleted);
    api.delete("/apis/apps/v1/namespaces/forgotten/deployments/before");
    // The controllers have watches to mend as well, and take their time; whoever was to stop the old pods is not waited for.
    let old = "/api/v1/namespaces/forgotten/pods?labelSelector=app%3Dbefore&gracePeriodSeconds=0";
    eventually("the old pods are gone for good", LONG, || {
        api.delete(old);
        let sets = api.list("/apis/apps/v1/namespaces/forgotten/replicasets");
        (sets.is_empty() && api.pods("forgotten").is_empty()).then_some(())
    });
    stage.plane().apply(&deployment("forgotten", "after", 9, ["1", "1Gi"], &json!({})));
    eventually("the new pods are there", LONG, || (api.pods("forgotten").len() == 9).then_some(()));
    let version = text(&nodes[0].1, "/metadata/resourceVersion");
    let then = format!("/api/v1/pods?limit=1&resourceVersion={version}&resourceVersionMatch=Exact");
    eventually("etcd has forgotten the revision that joiner knew", LIMIT, || {
        (api.status_of(&then) == 410).then_some(())
    });
    joiner.thaw();

    eventually("the deleted NodeClaim is gone", LONG, || api.get(&deleted).is_none().then_some(()));
    assert!(lists(&joiner) > before, "pods were listed anew");
    stage.all_run_again("forgotten", 9, LONG);
    // After the outage the node that is left may be taken for unreachable for a while: then it is not used.
    let old: Vec<String> = nodes.iter().map(|(_, node)| name(node)).collect();
    let mut excuses: Vec<Excuse<'_>> = old.iter().map(|node| Excuse::Empty(node)).collect();
    excuses.extend([Excuse::Interrupted, DRAINED]);
    stage.ends_well_but(joiner, &excuses);
}

/// Writes of joiner to these resources are denied, as by an admission policy of somebody who knows better.
fn denial(resources: &Value) -> String {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "not-now" },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [resources] },
            "validations": [{
                "expression": "request.userInfo.username != 'system:serviceaccount:kube-system:joiner'",
                "message": "no new machines before the audit is over",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "not-now" },
        "spec": { "policyName": "not-now", "validationActions": ["Deny"] },
    });
    format!("{policy}\n---\n{binding}")
}

/// A webhook for joiner's writes to Nodes and NodeClaim status whose server is not there.
fn unreachable_webhook() -> String {
    let rule = |groups: &str, resource: &str| json!({ "apiGroups": [groups], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [resource] });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "not-there" },
        "webhooks": [{
            "name": "not-there.example.com",
            "clientConfig": { "url": "https://127.0.0.1:9/validate" },
            "rules": [rule("", "nodes"), rule("karpenter.sh", "nodeclaims/status")],
            "matchConditions": [{ "name": "joiner", "expression": "request.userInfo.username == 'system:serviceaccount:kube-system:joiner'" }],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2,
        }],
    })
    .to_string()
}

/// A policy that takes the zone off every NodeClaim that is changed.
fn stripping_policy() -> String {
    let zone = "topology.kubernetes.io/zone";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": "no-zones" },
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": { "resourceRules": [
                { "apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["nodeclaims"] },
            ] },
            "matchConditions": [{ "name": "has-zone", "expression": format!("has(object.metadata.labels) && '{zone}' in object.metadata.labels") }],
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": { "expression": format!("[JSONPatch{{op: 'remove', path: '/metadata/labels/' + jsonpatch.escapeKey('{zone}')}}]") },
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": { "name": "no-zones" },
        "spec": { "policyName": "no-zones" },
    });
    format!("{policy}\n---\n{binding}")
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Takes the denials away when this is dropped: later scenarios need to write.
struct Lifted<'a>(&'a Stage);

impl Drop for Lifted<'_> {
    fn drop(&mut self) {
        for object in [
            "validatingadmissionpolicybindings/not-now",
            "validatingadmissionpolicies/not-now",
            "validatingwebhookconfigurations/not-there",
            "mutatingadmissionpolicybindings/no-zones",
            "mutatingadmissionpolicies/no-zones",
        ] {
            self.0.api().delete(&format!("{ADMISSION}/{object}"));
        }
    }
}

/// Whether a write as joiner's ServiceAccount is turned away, tried without effect.
fn is_turned_away(stage: &Stage, line: &[&str], why: &str) -> Option<()> {
    let account = ["--as=system:serviceaccount:kube-system:joiner", "--dry-run=server"];
    let answer = stage.plane().try_kubectl(&[line, &account].concat(), None);
    answer.is_err_and(|error| error.contains(why)).then_some(())
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn writes_that_admission_rejects_are_complained_of_once_and_made_when_it_lets_them() {
    let stage = Stage::set("denied");
    let api = stage.api();
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("no new machines before the audit is over");
    stage.plane().apply(&pool("denied", &small_machines()));
    stage.plane().apply(&deployment("denied", "before", 3, ["1", "1Gi"], &json!({})));
    stage.all_run("denied", 3);
    let (old, _) = stage.settled().pop().expect("there is a node");

    // No NodeClaims: pods wait, and the log says why, once.
    let lifted = Lifted(&stage);
    let writes = json!({ "apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["nodeclaims"] });
    stage.plane().apply(&denial(&writes));
    let delete = ["delete", "nodeclaim", &name(&old)];
    eventually("the policy is in force", LIMIT, || is_turned_away(&stage, &delete, "before the audit is over"));
    stage.plane().apply(&deployment("denied", "after", 12, ["1", "1Gi"], &json!({})));
    let plans = || joiner.metric("joiner_plans_total").values().sum::<f64>();
    eventually("joiner has tried", LIMIT, || joiner.said("nodeclaim not created").pop());
    let first = plans();
    eventually("joiner has tried twice more", LIMIT, || (plans() >= first + 2.0).then_some(()));
    let complaints = joiner.complaints();
    assert!((1..=2).contains(&complaints.len()), "one clear line: {complaints:#?}");
    assert_eq!(api.list(CLAIMS).len(), 1);
    drop(lifted);
    stage.all_run("denied", 15);

    // A webhook that nobody answers for: Nodes come and cannot be registered.
    let lifted = Lifted(&stage);
    stage.plane().apply(&unreachable_webhook());
    let (_, node) = stage.settled().pop().expect("there are nodes");
    let label = ["label", "node", &name(&node), "example.com/try=yes"];
    eventually("the webhook is in force", LIMIT, || is_turned_away(&stage, &label, "failed calling webhook"));
    stage.plane().apply(&deployment("denied", "later", 6, ["1", "1Gi"], &json!({})));
    let before = joiner.complaints().len();
    eventually("the machines are there, and what holds them up is said", LIMIT, || {
        let claims = api.list(CLAIMS).into_iter().filter(|claim| condition(claim, "Ready") != "True/Ready");
        let names: Vec<String> = claims.map(|claim| name(&claim)).collect();
        let said = |claim: &String| joiner.actor("claim", claim).map(|actor| text(&actor, "/waitsFor"));
        let waits = |claim: &String| said(claim).is_some_and(|said| said.contains("failed calling webhook"));
        (!names.is_empty() && names.iter().all(waits)).then_some(())
    });
    let claims = api.list(CLAIMS);
    let late = claims.iter().filter(|claim| condition(claim, "Ready") != "True/Ready").count();
    let new = joiner.complaints().len() - before;
    assert!(new <= 2 * late, "{new} lines for {late} machines: {:#?}", joiner.complaints());
    drop(lifted);
    stage.all_run("denied", 21);
    let nodes = stage.ends_well(joiner);
    assert!(nodes.len() <= fewest(0, 21) + 2, "{} machines were bought", nodes.len());
    assert!(nodes.iter().all(|(claim, _)| condition_message(claim, "Launched").is_empty()));
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn what_a_mutating_policy_takes_back_is_told_and_not_fought() {
    let stage = Stage::set("stripped");
    let api = stage.api();
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("does not keep label topology.kubernetes.io/zone");
    stage.plane().apply(&pool("stripped", &small_machines()));
    stage.plane().apply(&deployment("stripped", "before", 3, ["1", "1Gi"], &json!({})));
    stage.all_run("stripped", 3);
    let (old, _) = stage.settled().pop().expect("there is a node");

    let lifted = Lifted(&stage);
    stage.plane().apply(&stripping_policy());
    let patch = r#"{"metadata":{"labels":{"example.com/try":"yes"}}}"#;
    let shown = "jsonpath={.metadata.labels}";
    let line = ["patch", "nodeclaim", &name(&old), "--type=merge", "-p", patch, "--dry-run=server", "-o", shown];
    eventually("the policy is in force", LIMIT, || {
        let labels = stage.plane().try_kubectl(&line, None).expect("the label is allowed");
        (!labels.contains("topology.kubernetes.io/zone")).then_some(())
    });
    stage.plane().apply(&deployment("stripped", "after", 12, ["1", "1Gi"], &json!({})));
    let late = || api.list(CLAIMS).into_iter().filter(|claim| condition(claim, "Ready") != "True/Ready");
    let why =
        |claim: &Value| joiner.actor("claim", &name(claim)).map(|actor| text(&actor, "/waitsFor")).unwrap_or_default();
    let told = "does not keep label topology.kubernetes.io/zone: exempt NodeClaims from the mutating admission policy";
    eventually("NodeClaims say what is taken from them", LIMIT, || {
        let all: Vec<Value> = late().collect();
        (!all.is_empty() && all.iter().all(|claim| why(claim).contains(told))).then_some(())
    });
    let patches = || {
        let requests = joiner.metric("joiner_api_requests_total");
        let of_claims = |labels: &&String| labels.contains("\"patch\"") && labels.contains("\"nodeclaims\"");
        requests.iter().filter(|(labels, _)| of_claims(labels)).map(|(_, count)| count).sum::<f64>()
    };
    let (began, first, claims) = (Instant::now(), patches(), late().count());
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let four_each = 4.0 * claims as f64;
    eventually("it is tried four times more", LIMIT, || (patches() >= first + four_each).then_some(()));
    assert!(began.elapsed() >= Duration::from_secs(7), "after pauses that double: {:?}", began.elapsed());
    assert!(joiner.complaints().len() <= claims, "one line for each NodeClaim: {:#?}", joiner.complaints());
    drop(lifted);
    stage.all_run("stripped", 15);
    stage.ends_well(joiner);
}
