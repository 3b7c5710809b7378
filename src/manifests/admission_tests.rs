//! What is written into pods, as the API server would write it.

use serde_json::{Value, json};

use super::Admission;

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn admission(all: &[&str]) -> Admission {
    let mut admission = Admission::default();
    for yaml in all {
        admission.hear(&value(yaml));
    }
    admission
}

const GVISOR: &str = "{kind: RuntimeClass, metadata: {name: gvisor}, handler: runsc, overhead: {podFixed: {cpu: 250m, memory: 120Mi}}, \
                      scheduling: {nodeSelector: {sandbox: gvisor}, tolerations: [{key: sandbox, operator: Exists}]}}";

#[test]
fn a_runtime_class_gives_overhead_and_says_where_its_pods_run() {
    let all = admission(&[GVISOR]);
    let pod = value("{kind: Pod, spec: {runtimeClassName: gvisor, nodeSelector: {a: b}, containers: []}}");
    let admitted = all.admit("Pod", &pod).unwrap();
    let spec = &admitted.value["spec"];
    assert_eq!(spec["overhead"], json!({"cpu": "250m", "memory": "120Mi"}));
    assert_eq!(spec["nodeSelector"], json!({"a": "b", "sandbox": "gvisor"}));
    assert_eq!(spec["tolerations"], json!([{"key": "sandbox", "operator": "Exists"}]));
    assert!(admitted.notices.is_empty() && admitted.refusals.is_empty());
    // Another time it changes nothing.
    assert_eq!(all.admit("Pod", &admitted.value).unwrap().value, admitted.value);
    let refusal = |pod: &str| all.admit("Pod", &value(pod)).unwrap().refusals.join("; ");
    let other = refusal("{spec: {runtimeClassName: gvisor, nodeSelector: {sandbox: kata}}}");
    assert!(
        other.starts_with("spec.nodeSelector[sandbox]: is \"kata\", and RuntimeClass gvisor has \"gvisor\""),
        "{other}"
    );
    let other = refusal("{spec: {runtimeClassName: gvisor, overhead: {cpu: 1}}}");
    assert!(other.starts_with("spec.overhead: is not that of RuntimeClass gvisor"), "{other}");
    assert_eq!(refusal("{spec: {runtimeClassName: gvisor, overhead: {cpu: '0.25', memory: 120Mi}}}"), "");
    let missing = all.admit("Deployment", &value("{spec: {template: {spec: {runtimeClassName: kata}}}}")).unwrap();
    assert!(
        missing.notices[0].starts_with("spec.template.spec.runtimeClassName: RuntimeClass kata is not in the files")
    );
}

#[test]
fn limit_ranges_give_defaults_to_containers_of_their_namespace() {
    let all = admission(&[
        "{kind: LimitRange, metadata: {name: l, namespace: shop}, spec: {limits: [{type: Pod, max: {cpu: 9}}, {type: Container, default: \
         {cpu: 500m, memory: 1Gi}, defaultRequest: {cpu: 100m}, min: {ephemeral-storage: 1Gi}}]}}",
    ]);
    let of = |namespace: &str, resources: &str| {
        let yaml = format!(
            "{{metadata: {{namespace: {namespace}}}, spec: {{template: {{spec: {{initContainers: [{{name: i}}], containers: [{{name: c, resources: {resources}}}]}}}}}}}}"
        );
        all.admit("Deployment", &value(&yaml)).unwrap().value["spec"]["template"]["spec"].clone()
    };
    let spec = of("shop", "null");
    let defaults = json!({
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi", "ephemeral-storage": "1Gi"},
    });
    assert_eq!((&spec["containers"][0]["resources"], &spec["initContainers"][0]["resources"]), (&defaults, &defaults));
    let spec = of("shop", "{limits: {cpu: 2}, requests: {memory: 64Mi}}");
    let own = json!({
        "limits": {"cpu": 2, "memory": "1Gi"},
        "requests": {"cpu": 2, "memory": "64Mi", "ephemeral-storage": "1Gi"},
    });
    assert_eq!(spec["containers"][0]["resources"], own, "a limit stands for its request before a default does");
    assert_eq!(of("other", "null")["containers"][0]["resources"], Value::Null);
}

#[test]
fn a_pod_that_the_api_server_has_kept_is_as_it_is() {
    let all = admission(&[
        GVISOR,
        "{kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 1}}]}}",
    ]);
    let pod = value("{metadata: {uid: u-1}, spec: {runtimeClassName: gvisor, containers: [{name: c}]}}");
    assert_eq!(all.admit("Pod", &pod).unwrap().value, pod);
}

#[test]
fn priorities_are_those_of_the_classes() {
    let all = admission(&["{kind: List, items: [{kind: PriorityClass, metadata: {name: high}, value: 7}]}"]);
    let of = |name: &str| {
        let pod = json!({"spec": {"priorityClassName": name}});
        let admitted = all.admit("Pod", &pod).unwrap();
        (admitted.value["spec"]["priority"].clone(), admitted.notices.len())
    };
    assert_eq!(of("high"), (json!(7), 0));
    assert_eq!(of("system-node-critical"), (json!(2_000_001_000), 0));
    assert_eq!(of("none"), (json!(0), 1));
}
