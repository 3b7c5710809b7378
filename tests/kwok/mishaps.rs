//! What befalls joiner itself: it is killed, it is one of two, it may not do something, it cannot start.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::controlplane::{ControlPlane, eventually};
use crate::common::joiner::{Joiner, Variables, give_up};
use crate::common::kube_api::{CLAIMS, NODES, condition, name, text};
use crate::ending::{DRAINED, Excuse};
use crate::stage::{LIMIT, Stage, deployment, pool, small_machines};

fn uids(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| text(pod, "/metadata/uid")).collect()
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_joiner_killed_again_and_again_buys_no_machine_twice() {
    let stage = Stage::set("killed");
    let api = stage.api();
    // Without the lease, whose expiry would put 15 s between two lives: each is to find the burst in full swing.
    let start = || stage.joiner_with("joiner-a", &[("DISABLE_LEADER_ELECTION", "true")]);
    let mut joiner = start();
    stage.plane().apply(&pool("killed", &small_machines()));
    let deployments = [
        deployment("killed", "small", 70, ["300m", "256Mi"], &json!({})),
        deployment("killed", "large", 30, ["1", "1Gi"], &json!({})),
    ];
    stage.plane().apply(&deployments.join("\n---\n"));
    eventually("all pods are there", LIMIT, || (api.pods("killed").len() == 100).then_some(()));
    let asked = uids(&api.pods("killed"));

    let is_registered = |node: &Value| node["metadata"]["labels"]["karpenter.sh/registered"] == "true";
    let moments: [(&str, &dyn Fn() -> bool); 3] = [
        ("the first NodeClaims are created", &|| !api.list(CLAIMS).is_empty()),
        ("the first Nodes are there", &|| !api.list(NODES).is_empty()),
        ("the first Nodes are registered", &|| api.list(NODES).iter().any(is_registered)),
    ];
    for (moment, has_come) in moments {
        eventually(moment, LIMIT, || has_come().then_some(()));
        joiner.kill();
        joiner = start();
    }

    let pods = stage.all_run("killed", 100);
    assert_eq!(uids(&pods), asked, "no pod was lost on the way");
    let nodes = stage.ends_well_but(joiner, &[Excuse::Interrupted]);
    // 51 cores of pods on machines of 4, of which 3.9 can be used.
    assert!(nodes.len() <= 16, "{} machines were bought", nodes.len());
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn of_two_replicas_one_acts_and_the_other_takes_over() {
    let stage = Stage::set("replicas");
    let api = stage.api();
    let first = stage.joiner("joiner-a");
    eventually("the first leads", LIMIT, || first.is_leader().then_some(()));
    let second = stage.joiner("joiner-b");
    stage.plane().apply(&pool("replicas", &json!({})));
    stage.plane().apply(&deployment("replicas", "before", 10, ["500m", "512Mi"], &json!({})));
    stage.all_run("replicas", 10);
    assert!(!second.is_leader() && second.said("computed plan").is_empty(), "the second only watches");

    // In the middle of a burst: NodeClaims are there, and their pods are not.
    let before = api.list(CLAIMS).len();
    stage.plane().apply(&deployment("replicas", "after", 10, ["1", "1Gi"], &json!({})));
    eventually("the first buys", LIMIT, || (api.list(CLAIMS).len() > before).then_some(()));
    first.kill();
    let killed = Instant::now();
    eventually("the second takes over", LIMIT, || second.is_leader().then_some(()));
    // The lease lasts 15 s, and is asked for every 2 s.
    assert!(killed.elapsed() < Duration::from_secs(15 + 2 + 13), "it took {:?}", killed.elapsed());
    let pods = stage.all_run("replicas", 20);
    let nodes = stage.settled();
    let used: BTreeSet<String> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    assert_eq!(used, nodes.iter().map(|(_, node)| name(node)).collect(), "nothing was bought twice");

    // Asked to go, a leader gives the lease back: its successor need not wait until it expires.
    let third = stage.joiner("joiner-c");
    eventually("the third has seen who leads", LIMIT, || third.said("lease").pop());
    assert!(!third.is_leader());
    assert!(second.stop().success());
    eventually("the third leads at once", Duration::from_secs(6), || third.is_leader().then_some(()));
    let lease = api.get(LEASE);
    let holder = text(&lease.expect("it is held"), "/spec/holderIdentity");
    assert!(holder.starts_with("joiner-c_"), "{holder}");
    stage.ends_well_but(third, &[Excuse::Interrupted]);
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election";

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-core";

/// Puts the rules of joiner's ClusterRole back when this is dropped.
pub(crate) struct Restored<'a>(&'a Stage, Value);

impl<'a> Restored<'a> {
    /// Takes rights away: `change` says what is left of the rules.
    pub(crate) fn after(stage: &'a Stage, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        let rules = stage.api().get(ROLE).expect("the chart made it")["rules"].clone();
        let mut left: Vec<Value> = rules.as_array().expect("there are rules").clone();
        change(&mut left);
        stage.api().patch(ROLE, &json!({ "rules": left }));
        Self(stage, rules)
    }
}

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        self.0.api().patch(ROLE, &json!({ "rules": self.1 }));
    }
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_missing_permission_is_named_once_with_its_rule_and_the_rest_goes_on() {
    let stage = Stage::set("rights");
    let api = stage.api();
    let restored = Restored::after(&stage, |rules| rules.retain(|rule| rule["resources"] != json!(["pods/eviction"])));
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("permission missing");
    stage.plane().apply(&pool("rights", &json!({})));
    stage.plane().apply(&deployment("rights", "web", 4, ["500m", "512Mi"], &json!({})));
    stage.all_run("rights", 4);
    let (claim, _) = stage.settled().pop().expect("there is a node");
    let claim = format!("{CLAIMS}/{}", name(&claim));

    api.delete(&claim);
    let line = eventually("the missing permission is named", LIMIT, || joiner.said("permission missing").pop());
    let rule = r#"forbidden: create pods/eviction; add a rule to joiner's ClusterRole: apiGroups [""], resources ["pods/eviction"], verbs ["create"]"#;
    assert_eq!(text(&line, "/error"), rule, "{line}");
    // Meanwhile pods get their nodes.
    stage.plane().apply(&deployment("rights", "more", 4, ["500m", "512Mi"], &json!({})));
    stage.all_run("rights", 8);
    assert_eq!(condition(&api.get(&claim).expect("its pods are still there"), "Drained"), "Unknown/Draining");
    assert_eq!(joiner.said("permission missing").len(), 1, "said once");

    drop(restored);
    eventually("the drain goes on", LIMIT, || api.get(&claim).is_none().then_some(()));
    assert_eq!(joiner.said("permission given").len(), 1);
    stage.all_run("rights", 8);
    stage.ends_well_but(joiner, &[DRAINED]);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn without_what_only_plans_need_nodes_are_drained_and_nothing_is_bought() {
    let stage = Stage::set("blind");
    let api = stage.api();
    let joiner = stage.joiner("joiner-a");
    stage.plane().apply(&pool("blind", &json!({})));
    stage.plane().apply(&deployment("blind", "web", 2, ["500m", "512Mi"], &json!({})));
    stage.all_run("blind", 2);
    let (claim, _) = stage.settled().pop().expect("there is a node");
    let claim = format!("{CLAIMS}/{}", name(&claim));
    assert!(joiner.stop().success());

    let kinds = ["namespaces", "daemonsets"];
    let restored = Restored::after(&stage, |rules| {
        for rule in
            rules.iter_mut().filter(|rule| rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list"))))
        {
            let resources = rule["resources"].as_array_mut().expect("a rule names resources");
            resources.retain(|resource| !kinds.iter().any(|kind| resource == kind));
        }
        rules.retain(|rule| rule["resources"] != json!([]));
    });
    // The API server's authorizer hears of its own objects by a watch: what was listed before that would be watched on.
    for kind in kinds {
        let asked = ["auth", "can-i", "list", kind, "--as=system:serviceaccount:kube-system:joiner"];
        eventually(kind, LIMIT, || stage.plane().try_kubectl(&asked, None).is_err().then_some(()));
    }
    let mut joiner = stage.joiner("joiner-a");
    joiner.expect_error("permission missing");
    joiner.expect_error("no nodes are bought before joiner may list and watch these");
    api.delete(&claim);
    eventually("the node is drained and gone", LIMIT, || api.get(&claim).is_none().then_some(()));
    eventually("it is said what is missing", LIMIT, || {
        let last = joiner.said("no nodes are bought").pop()?;
        (text(&last, "/kinds") == "DaemonSets, Namespaces").then_some(())
    });
    let missing = joiner.said("permission missing");
    for kind in kinds {
        assert_eq!(missing.iter().filter(|line| text(line, "/error").contains(kind)).count(), 1, "{kind}: {missing:?}");
    }
    // Its watch is in trouble, and why; however often it is tried.
    assert!(joiner.complaints().len() <= 2 * kinds.len() + 1, "{:?}", joiner.complaints());
    assert!(api.list(CLAIMS).is_empty(), "nothing is bought without them");

    drop(restored);
    stage.all_run("blind", 2);
    stage.ends_well_but(joiner, &[DRAINED]);
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_joiner_that_cannot_start_says_why_and_what_to_do() {
    let stage = Stage::set("start");
    // A port that is taken; whoever waits for the lease is not held up by the one who could not start, and never took it.
    let holder = || {
        let lease = stage.api().get(LEASE);
        lease.and_then(|lease| lease.pointer("/spec/holderIdentity")?.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let before = holder();
    let taken = TcpListener::bind("0.0.0.0:0").expect("there are free ports");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    for (variable, flag) in [("METRICS_PORT", "--metrics-port"), ("HEALTH_PROBE_PORT", "--health-probe-port")] {
        let (code, said) = give_up(stage.program(), stage.kubeconfig(), &stage.variables(&[(variable, &port)]));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("address in use") && said.contains(variable) && said.contains(flag), "{said}");
    }
    assert_eq!(holder(), before);
    let joiner = stage.joiner("joiner-a");
    eventually("the lease is free", LIMIT, || joiner.is_leader().then_some(()));
    stage.ends_well(joiner);

    let (code, said) = give_up(stage.program(), &stage.plane().dir().join("none"), &Variables::new());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no cluster to look after") && said.contains("KUBECONFIG"), "{said}");
}

#[test]
#[ignore = "needs a control plane: tests/controlplane"]
fn a_cluster_without_our_definitions_is_told_which_and_how() {
    let plane = ControlPlane::start_with(&["--without=kwok,kube-scheduler,kube-controller-manager"]);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_joiner"));
    let (code, said) = give_up(program, &plane.kubeconfig(), &Variables::new());
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(
            "nodepools.karpenter.sh/v1, nodeclaims.karpenter.sh/v1, kwoknodeclasses.karpenter.kwok.sh/v1alpha1"
        ),
        "{said}"
    );
    assert!(said.contains("joiner crds | kubectl apply"), "{said}");
    // As it says.
    plane.apply(&joiner::api::crds::yaml());
    eventually("the definitions are served", LIMIT, || {
        plane.try_kubectl(&["get", "nodepools,nodeclaims,kwoknodeclasses"], None).ok()
    });
    let joiner = Joiner::start(
        program,
        &plane.kubeconfig(),
        "joiner-a",
        &Variables::from([("LEADER_ELECTION_NAMESPACE".to_owned(), "kube-system".to_owned())]),
    );
    assert!(joiner.stop().success());
}
