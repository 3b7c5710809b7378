//! Workloads that CapacityBuffers follow.

use serde_json::{Value, json};

use super::*;

fn workload(spec: &Value) -> Scalable {
    let object = json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": spec });
    scalable(ScalableKind::Deployment, &serde_json::from_value(object).unwrap(), &ShapeStore::new()).unwrap()
}

#[test]
fn a_workload_that_names_no_number_of_pods_has_one() {
    let template = json!({ "spec": { "containers": [{ "name": "c" }] } });
    assert_eq!(workload(&json!({ "template": template })).replicas, 1);
    assert_eq!(workload(&json!({ "replicas": 0, "template": template })).replicas, 0);
}
