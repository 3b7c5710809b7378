//! A running joiner says why: for pods that wait, pods that run, pods without a place, and NodeClaims, in the words of `joiner plan`.

#[path = "common/rehearsals.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod rehearsals;

use std::time::Duration;

use joiner::actors::Joiner;
use joiner::admin::Why;
use joiner::command::{explainer, mixed, scenario_of};
use joiner::plan::{self, Case, Explanation};
use joiner::sim::Scenario;
use rehearsals::{first_claim, in_virtual_time, play, rehearsal, settings, truth};
use serde_json::json;
use tokio::time::sleep;

/// Pods that find their places.
const PODS: usize = 30;

/// Thirty pods, and one that no machine holds.
fn scenario() -> Scenario {
    let mut load = mixed(PODS);
    load.push(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "giant", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "4000"}}}]},
    }));
    scenario_of("burst", &load).expect("the load is well-formed")
}

async fn ask(joiner: &Joiner, why: Why) -> Result<Explanation, String> {
    let answer = explainer(joiner)(why).await?;
    Ok(serde_json::from_value(answer).expect("what is shown can be read"))
}

async fn pod(joiner: &Joiner, name: &str) -> Explanation {
    ask(joiner, Why::Pod { namespace: None, name: name.to_owned() }).await.expect("the pod is known")
}

#[test]
fn a_running_joiner_says_why() {
    let scenario = scenario();
    in_virtual_time(async {
        let rehearsal = rehearsal(&scenario, 7, settings());
        let joiner = rehearsal.joiner();
        play(&rehearsal, &scenario, async {
            first_claim(&rehearsal).await;
            sleep(Duration::from_secs(2)).await;
            waiting(&joiner).await;
            refused(&joiner).await;
            while truth(&rehearsal).pods.values().filter(|pod| pod.node.is_some()).count() < PODS {
                sleep(Duration::from_secs(5)).await;
            }
            sleep(Duration::from_secs(5)).await;
            running(&joiner).await;
            refused(&joiner).await;
            claims(&joiner).await;
        })
        .await;
        joiner.kill();
    });
}

/// A pod that waits for its node says for which, and what stands in the way.
async fn waiting(joiner: &Joiner) {
    let snapshot = joiner.boards().snapshot();
    let (uid, claim) = snapshot.planned.iter().next().expect("something is planned");
    let said = pod(joiner, &snapshot.pods[uid].key.name).await;
    assert!(said.verdict.starts_with("goes to ") && said.verdict.contains(claim.as_str()), "{said}");
    let waits = said.waits_for.clone().unwrap_or_default();
    assert!(waits.contains(claim.as_str()), "{said}");
    assert!(said.decided.is_some() && !said.choices.is_empty(), "{said}");
}

/// The one without a place gives its reasons, the most helpful first, and again when it was tried again.
async fn refused(joiner: &Joiner) {
    let said = pod(joiner, "giant").await;
    assert_eq!(said.verdict, "has no place");
    assert!(said.reasons[0].contains("cpu"), "{said}");
    assert_eq!((&*said.facts[0].kind, said.facts[0].node_pool.as_deref()), ("TooLarge", Some("default")));
    let data = said.facts[0].facts.clone().expect("what the sentence says is there as data");
    assert_eq!((&data["resource"], data["wanted"].is_string()), (&json!("cpu"), true), "{data:?}");
    assert_eq!(said.waits_for, None);
}

/// A pod that runs says where, and what was planned for it.
async fn running(joiner: &Joiner) {
    let snapshot = joiner.boards().snapshot();
    let one = snapshot.pods.values().find(|pod| pod.node.is_some()).expect("pods run");
    let said = pod(joiner, &one.key.name).await;
    assert!(said.verdict.starts_with("runs on node ") && said.verdict.contains("NodeClaim"), "{said}");
    assert_eq!(said.waits_for, None);
    let unknown = ask(joiner, Why::Pod { namespace: Some("other".into()), name: one.key.name.to_string() }).await;
    assert_eq!(unknown.expect_err("it is not there"), format!("there is no pod other/{}", one.key.name));
}

/// Each NodeClaim says why it is of its pool, size and types, in the words of `joiner plan`.
async fn claims(joiner: &Joiner) {
    let (snapshot, decisions) = (joiner.boards().snapshot(), joiner.boards().decisions());
    assert!(!snapshot.claims.is_empty());
    for name in snapshot.claims.keys() {
        let said = ask(joiner, Why::NodeClaim(name.to_string())).await.expect("it is remembered");
        let decision = decisions.about_claim(name).expect("it is remembered");
        let case = Case {
            snapshot: &decision.question.snapshot,
            catalog: &decision.question.catalog,
            pods: &decision.question.pods,
            set_aside: &[],
            settings: &decision.question.settings,
            label_keys: &decision.question.label_keys,
            plan: &decision.plan,
        };
        let planned = plan::nodeclaim(&case, name.as_str()).expect("it was planned");
        assert_eq!(
            (&said.verdict, &said.reasons, &said.choices),
            (&planned.verdict, &planned.reasons, &planned.choices)
        );
        assert_eq!(said.decided, Some(decision.question.at));
    }
    let unknown = ask(joiner, Why::NodeClaim("nobody".into())).await.expect_err("it is not there");
    assert!(unknown.contains("there is no NodeClaim nobody"), "{unknown}");
}
