//! What is null is absent, or the zero of its type.

use serde_json::{Value, json};

use super::settled;

fn of(kind: &str, yaml: &str) -> Value {
    settled(kind, &serde_saphyr::from_str(yaml).unwrap()).into_owned()
}

#[test]
fn fields_are_left_out_and_keys_of_maps_have_the_zero_of_their_type() {
    let pod = of(
        "Pod",
        "{metadata: {labels: {a: null}, annotations: null}, spec: {nodeSelector: null, containers: [{name: c, ports: null, resources: \
         {requests: {cpu: null, memory: 1Gi}, limits: null}}]}, status: null}",
    );
    let expected = json!({
        "metadata": { "labels": { "a": "" } },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "0", "memory": "1Gi" } } }] },
    });
    assert_eq!(pod, expected);
    assert_eq!(of("Pod", "{spec: {tolerations: [null]}}"), json!({ "spec": { "tolerations": [null] } }));
    let range = of("LimitRange", "{spec: {limits: [{type: Container, default: {cpu: null}, max: null}]}}");
    assert_eq!(range, json!({ "spec": { "limits": [{ "type": "Container", "default": { "cpu": "0" } }] } }));
}

#[test]
fn definitions_leave_keys_of_maps_out_too() {
    let pool = of(
        "NodePool",
        "{spec: {disruption: null, limits: {cpu: null, memory: 1Gi}, template: {metadata: {labels: {a: null}}}}}",
    );
    let expected = json!({ "spec": { "limits": { "memory": "1Gi" }, "template": { "metadata": { "labels": {} } } } });
    assert_eq!(pool, expected);
    assert_eq!(of("CSINode", "{spec: {drivers: null}}"), json!({ "spec": {} }), "of other kinds nothing is known");
}
