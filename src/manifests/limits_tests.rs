//! What LimitRanges refuse.

use serde_json::Value;

use super::LimitRange;

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

/// What a LimitRange with these limits says of a pod, its defaults written.
fn refused(limits: &str, spec: &str) -> Vec<String> {
    let (range, mut spec) = (LimitRange::new(&value(limits)), value(spec));
    spec["containers"].as_array_mut().unwrap().iter_mut().for_each(|one| range.write(one));
    range.refusals(&spec, "spec", "small")
}

#[test]
fn containers_have_no_less_and_no_more_than_they_may() {
    let limits = "[{type: Container, min: {cpu: 100m}, max: {cpu: '2', memory: 1Gi}}]";
    assert!(refused(limits, "{containers: [{resources: {requests: {cpu: 100m}, limits: {cpu: 2000m}}}]}").is_empty());
    // What they do not say is the most that they may have.
    assert!(refused(limits, "{containers: [{}]}").is_empty());
    assert_eq!(
        refused(limits, "{containers: [{}, {resources: {requests: {cpu: 50m}, limits: {memory: 2Gi}}}]}"),
        [
            "spec.containers[1].resources.requests[cpu]: a Container has to have 100m at least by LimitRange small",
            "spec.containers[1].resources.limits[memory]: a Container has to have a limit, and that of 1Gi at most by LimitRange small",
        ]
    );
}

#[test]
fn pods_are_their_containers_together_and_no_less_than_any_before_them() {
    let limits = "[{type: Pod, max: {cpu: '2'}}]";
    let of = |cpu: &str| format!("{{resources: {{limits: {{cpu: {cpu}}}}}}}");
    let pod = |containers: &[&str], first: &str| {
        let all: Vec<String> = containers.iter().map(|cpu| of(cpu)).collect();
        refused(limits, &format!("{{containers: [{}], initContainers: [{}]}}", all.join(", "), of(first)))
    };
    assert!(pod(&["1", "1"], "2").is_empty());
    let why = ["spec.limits[cpu]: a Pod has to have a limit, and that of 2 at most by LimitRange small"];
    assert_eq!(pod(&["1", "1001m"], "1"), why);
    assert_eq!(pod(&["1"], "3"), why);
    assert_eq!(refused(limits, "{containers: [{}]}"), why);
    // Sidecars run beside the containers.
    let sidecar = "{containers: [{resources: {limits: {cpu: 1}}}], initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1500m}}}]}";
    assert_eq!(refused(limits, sidecar), why);
}

#[test]
fn a_limit_is_no_greater_part_of_its_request_than_it_may_be() {
    let limits = "[{type: Container, maxLimitRequestRatio: {memory: '1.5'}}]";
    let pod = |request: &str, limit: &str| {
        refused(
            limits,
            &format!(
                "{{containers: [{{resources: {{requests: {{memory: {request}}}, limits: {{memory: {limit}}}}}}}]}}"
            ),
        )
    };
    assert!(pod("2Gi", "3Gi").is_empty());
    assert!(pod("2Gi", "3073Mi")[0].ends_with("a limit of 1.5 times that at most by LimitRange small"));
    assert!(!pod("0", "1Gi").is_empty() && !refused(limits, "{containers: [{}]}").is_empty());
}
