//! Reading and writing real manifests.

use serde_json::{Value, json};

use super::classes::kwok::KwokNodeClass;
use super::common::{ConditionStatus, Operator};
use super::nodeclaim::{NodeClaim, NodeClaimSpec};
use super::nodepool::{ConsolidationPolicy, NodePool};

fn holds_null(tree: &Value) -> bool {
    match tree {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(fields) => fields.values().any(holds_null),
        _ => false,
    }
}

#[test]
fn a_short_manifest_gets_the_api_servers_defaults() {
    let pool: NodePool = serde_saphyr::from_str(
        "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: general }
fieldOfTomorrow: 1
spec:
  template:
    spec:
      alsoUnknown: { a: b }
      requirements:
        - { key: kubernetes.io/arch, operator: In, values: [amd64] }
      nodeClassRef: { group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default }
  limits: { cpu: 100, memory: 1000Gi }
",
    )
    .unwrap();
    assert!(pool.status.is_none());
    let disruption = &pool.spec.disruption;
    assert_eq!(disruption.consolidation_policy, ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!((disruption.consolidate_after.as_str(), disruption.budgets.len()), ("0s", 1));
    assert_eq!(disruption.budgets[0].nodes, "10%");
    assert_eq!(pool.spec.template.spec.expire_after, "720h");
    assert_eq!(pool.spec.limits.as_ref().unwrap()["cpu"].as_str(), "100");
    let written = serde_json::to_value(&pool).unwrap();
    assert!(!holds_null(&written), "{written:#}");
    assert!(written.get("status").is_none());
    assert_eq!(serde_json::from_value::<NodePool>(written).unwrap(), pool);
}

#[test]
fn an_empty_list_of_budgets_is_not_the_default() {
    let mut pool = json!({ "metadata": {}, "spec": {
        "template": { "spec": {
            "requirements": [],
            "nodeClassRef": { "group": "g", "kind": "K", "name": "n" },
        } },
        "disruption": { "budgets": [], "consolidateAfter": "Never" },
    } });
    let parsed: NodePool = serde_json::from_value(pool.clone()).unwrap();
    assert!(parsed.spec.disruption.budgets.is_empty());
    assert_eq!(parsed.spec.disruption.consolidate_after(), Ok(None));
    assert_eq!(serde_json::to_value(&parsed).unwrap()["spec"]["disruption"]["budgets"], json!([]));
    pool["spec"]["disruption"]["consolidationPolicy"] = json!("WhenTheMoonIsFull");
    let parsed: NodePool = serde_json::from_value(pool).unwrap();
    let policy = &parsed.spec.disruption.consolidation_policy;
    assert_eq!(*policy, ConsolidationPolicy::Other("WhenTheMoonIsFull".into()));
    assert_eq!(serde_json::to_value(policy).unwrap(), json!("WhenTheMoonIsFull"));
}

#[test]
fn a_claim_of_long_ago_is_read() {
    let claim: NodeClaim = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "c" },
        "spec": { "requirements": [{ "key": "k", "operator": "Gte", "values": ["1"] }],
            "resources": { "requests": { "cpu": 2, "memory": "1Gi" } },
            "nodeClassRef": { "group": "g", "kind": "K", "name": "n" } },
        "status": { "providerID": "kwok://n", "imageID": "i", "lastPodEventTime": "2026-01-01T00:00:00Z",
            "conditions": [{ "type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
    }))
    .unwrap();
    assert_eq!(claim.spec.requirements[0].operator, Operator::Gte);
    assert_eq!(claim.spec.resources.requests["cpu"].as_str(), "2");
    let status = claim.status.as_ref().unwrap();
    assert_eq!((status.provider_id.as_deref(), status.image_id.as_deref()), (Some("kwok://n"), Some("i")));
    assert_eq!((status.conditions[0].status, status.conditions[0].reason.as_str()), (ConditionStatus::True, ""));
    let written = serde_json::to_value(&claim).unwrap();
    assert!(!holds_null(&written), "{written:#}");
    assert_eq!(written["status"]["lastPodEventTime"], "2026-01-01T00:00:00Z");
}

#[test]
fn a_new_claim_writes_what_was_set_and_no_more() {
    let claim = NodeClaim::new("c", NodeClaimSpec::default());
    assert_eq!(
        serde_json::to_value(&claim).unwrap(),
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "c" },
            "spec": { "requirements": [], "nodeClassRef": { "group": "", "kind": "", "name": "" }, "expireAfter": "720h" } })
    );
}

#[test]
fn a_kwok_class_needs_no_spec() {
    let class: KwokNodeClass = serde_json::from_value(json!({ "metadata": { "name": "default" } })).unwrap();
    assert!(class.spec.spec.node_registration_delay().unwrap().is_zero());
    let class: KwokNodeClass =
        serde_json::from_value(json!({ "metadata": {}, "spec": { "nodeRegistrationDelay": "90s" } })).unwrap();
    assert_eq!(class.spec.spec.node_registration_delay().unwrap().as_secs(), 90);
    assert_eq!(serde_json::to_value(&class).unwrap()["spec"], json!({ "nodeRegistrationDelay": "90s" }));
}

#[test]
fn a_quantity_is_a_text_or_an_integer() {
    use super::common::Quantity;
    assert_eq!(serde_json::from_value::<Quantity>(json!("500m")).unwrap(), "500m".into());
    assert_eq!(serde_json::from_value::<Quantity>(json!(-3)).unwrap(), "-3".into());
    let error = serde_json::from_value::<Quantity>(json!(1.5)).unwrap_err().to_string();
    assert!(error.contains("quantity"), "{error}");
}
