//! PodDisruptionBudgets as the API server sends them.

use serde_json::{Value, json};

use super::*;

fn read(spec: &Value) -> PodBudget {
    let object = json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": spec });
    pod_budget(&serde_json::from_value(object).unwrap()).unwrap()
}

#[test]
fn pods_and_percent_are_read() {
    let budget =
        read(&json!({ "minAvailable": 2, "maxUnavailable": "0%", "selector": { "matchLabels": { "app": "web" } } }));
    assert_eq!(budget.key.to_string(), "shop/web");
    assert_eq!((budget.min_available, budget.max_unavailable), (Some(Count::Pods(2)), Some(Count::Percent(0))));
    assert_eq!(budget.selector.map(|selector| selector.labels.len()), Some(1));
    assert!(!budget.spares_unready);
}

#[test]
fn an_empty_selector_means_all_pods_and_an_absent_one_none() {
    assert!(read(&json!({ "selector": {} })).selector.is_some());
    assert!(read(&json!({})).selector.is_none());
}

#[test]
fn unready_pods_may_be_spared() {
    assert!(read(&json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" })).spares_unready);
    assert!(!read(&json!({ "unhealthyPodEvictionPolicy": "IfHealthyBudget" })).spares_unready);
}

#[test]
fn nothing_can_be_kept_by_a_budget_without_a_name() {
    let nameless = serde_json::from_value(json!({ "metadata": {} })).unwrap();
    assert!(pod_budget(&nameless).is_err());
}
