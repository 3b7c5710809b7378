//! Pods that another scheduler is to place.

use std::time::Duration;

use joiner::command::scenario_of;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rehearsals::{settings, settled, truth};
use super::tell;

fn app(name: &str, scheduler: &str) -> Value {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "1" } } }]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "replicas": 3, "template": { "spec": { "schedulerName": scheduler, "containers": containers } } },
    })
}

#[test]
fn nothing_is_bought_for_pods_on_which_another_scheduler_has_not_given_up() {
    let scenario = scenario_of("schedulers", &[app("theirs", "other")]).expect("the manifest is well-formed");
    tell(&scenario, settings(), async |rehearsal, _| {
        sleep(Duration::from_mins(10)).await;
        let now = truth(rehearsal);
        assert_eq!((now.pods.len(), now.claims.len()), (3, 0));
    });
}

#[test]
fn they_are_no_part_of_what_is_bought_for_others() {
    let alone = scenario_of("schedulers", &[app("ours", "default-scheduler")]);
    let beside = scenario_of("schedulers", &[app("ours", "default-scheduler"), app("theirs", "other")]);
    let bought = |scenario: joiner::sim::Scenario| {
        let mut bought = Vec::new();
        tell(&scenario, settings(), async |rehearsal, _| {
            settled(rehearsal).await;
            let claims = truth(rehearsal).claims;
            bought.extend(claims.values().map(|claim| claim.requests.clone()));
        });
        bought
    };
    let alone = bought(alone.expect("the manifest is well-formed"));
    assert_eq!(alone, bought(beside.expect("the manifests are well-formed")));
    assert!(!alone.is_empty());
}
