//! What the API server would not keep is told with its field.

use serde_json::Value;

use super::faults;

fn of(yaml: &str) -> Vec<String> {
    let value: Value = serde_saphyr::from_str(yaml).unwrap();
    faults(value["kind"].as_str().unwrap(), &value)
}

fn pod(spec: &str) -> Vec<String> {
    of(&format!(
        "{{kind: Pod, metadata: {{name: p, labels: {{app: a}}}}, spec: {{containers: [{{name: c}}], {spec}}}}}"
    ))
}

fn spread(more: &str) -> String {
    format!(
        "{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: a}}}}{more}}}"
    )
}

/// Node affinity with one expression, required or preferred.
fn wants(operator: &str, values: &str) -> [String; 2] {
    let term = format!("{{matchExpressions: [{{key: size, operator: {operator}, values: {values}}}]}}");
    let of = |affinity: String| format!("affinity: {{nodeAffinity: {{{affinity}}}}}");
    [
        of(format!("requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}")),
        of(format!("preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {term}}}]")),
    ]
}

#[test]
fn pods() {
    let spreads = |all: &[String]| format!("topologySpreadConstraints: [{}]", all.join(", "));
    let soft = spread(", minDomains: 2").replace("DoNotSchedule", "ScheduleAnyway");
    let near = |more: &str| {
        format!(
            "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: zone, {more}}}]}}}}"
        )
    };
    let selector = "labelSelector: {matchLabels: {app: a}}";
    let cases = [
        (spreads(&[spread(""), spread("")]), "spec.topologySpreadConstraints[1]: has the topologyKey"),
        (spreads(&[soft]), "spec.topologySpreadConstraints[0].minDomains: is for DoNotSchedule"),
        (
            spreads(&[spread(", matchLabelKeys: [app]")]),
            "spec.topologySpreadConstraints[0].matchLabelKeys[0]: app is in",
        ),
        (near("matchLabelKeys: [app]"), "IgnoredDuringExecution[0].matchLabelKeys: needs a labelSelector"),
        (
            near(&format!("{selector}, matchLabelKeys: [b], mismatchLabelKeys: [b]")),
            "matchLabelKeys: b is among mismatchLabelKeys",
        ),
        (
            near("labelSelector: {matchLabels: {app: 'a b'}}"),
            "labelSelector.matchLabels[app]: \"a b\" is not a label value",
        ),
        (
            "tolerations: [{key: a, operator: Exists, value: b}]".to_owned(),
            "spec.tolerations[0].value: has to be left out",
        ),
        ("tolerations: [{value: b}]".to_owned(), "spec.tolerations[0].operator: has to be Exists"),
        (
            "tolerations: [{key: a b, operator: Exists}]".to_owned(),
            "spec.tolerations[0].key: \"a b\" is not a qualified name",
        ),
        (
            "tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 3}]".to_owned(),
            "spec.tolerations[0].effect: has to be NoExecute",
        ),
        ("containers: []".to_owned(), "spec.containers: is empty"),
    ];
    for (spec, expected) in cases {
        let said = if spec.starts_with("containers") {
            of(&format!("{{kind: Pod, metadata: {{name: p}}, spec: {{{spec}}}}}"))
        } else {
            pod(&spec)
        };
        assert!(matches!(&said[..], [one] if one.contains(expected)), "{said:?} lacks {expected:?}");
    }
    for (operator, values) in [("In", "[]"), ("NotIn", "[]"), ("Exists", "[a]"), ("Gt", "[a]"), ("Lt", "['1', '2']")] {
        for spec in wants(operator, values) {
            let said = pod(&spec);
            assert!(matches!(&said[..], [one] if one.contains("matchExpressions[0].values: ")), "{operator}: {said:?}");
        }
    }
    let fine = [
        near(&format!("{selector}, mismatchLabelKeys: [app]")),
        spreads(&[spread(", matchLabelKeys: [tier]").replace("app: a", "tier: a")]),
        spreads(&[spread(""), spread(", matchLabelKeys: [b], minDomains: 2").replace("zone", "rack")]),
        "tolerations: [{operator: Exists}, {key: n, operator: Gt, value: '-1'}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 3}]".to_owned(),
        wants("Lt", "['-1']")[0].clone(),
        wants("DoesNotExist", "[]")[1].clone(),
    ];
    for spec in fine {
        assert!(pod(&spec).is_empty(), "{:?}", pod(&spec));
    }
}

#[test]
fn pods_that_an_api_server_has_kept_have_their_keys_in_their_selectors() {
    let pod = |uid: &str| {
        let spread = spread(", matchLabelKeys: [app]");
        of(&format!(
            "{{kind: Pod, metadata: {{name: p, uid: {uid}, labels: {{app: a}}}}, spec: {{containers: [{{name: c}}], topologySpreadConstraints: [{spread}]}}}}"
        ))
    };
    assert_eq!((pod("u-1").len(), pod("null").len()), (0, 1));
}

#[test]
fn scheduling_gates() {
    let cases = [
        ("wait", "spec.schedulingGates: is no list"),
        ("{name: wait}", "spec.schedulingGates: is no list"),
        ("[{name: a}, {}]", "spec.schedulingGates[1].name: is missing"),
        ("[wait]", "spec.schedulingGates[0].name: is missing"),
        ("[{name: a}, {name: a}]", "spec.schedulingGates[1].name: a is there already"),
        ("[{name: a b}]", "spec.schedulingGates[0].name: \"a b\" is not a qualified name"),
    ];
    for (gates, expected) in cases {
        let said = pod(&format!("schedulingGates: {gates}"));
        assert!(matches!(&said[..], [one] if one.starts_with(expected)), "{said:?} lacks {expected:?}");
    }
    assert!(pod("schedulingGates: [{name: example.com/wait}, {name: b}]").is_empty());
}

#[test]
fn names_and_labels() {
    let named = |kind: &str, metadata: &str| {
        of(&format!(
            "{{kind: {kind}, metadata: {{{metadata}}}, spec: {{containers: [{{name: c}}], template: {{spec: {{containers: [{{name: c}}]}}}}}}}}"
        ))
    };
    let cases = [
        (named("Pod", "name: Web"), "metadata.name: \"Web\" is not a DNS name"),
        (
            named("Deployment", &format!("name: {}", "a".repeat(254))),
            "metadata.name: has 254 characters; write 253 at most",
        ),
        (named("Job", "name: a, namespace: a.b"), "metadata.namespace: \"a.b\" is not a DNS name"),
        (
            named("Namespace", &format!("name: {}", "a".repeat(64))),
            "metadata.name: has 64 characters; write 63 at most",
        ),
        (named("Pod", "name: p, labels: {a: b c}"), "metadata.labels[a]: \"b c\" is not a label value"),
        (named("Pod", "name: p, labels: {a b: c}"), "metadata.labels[a b]: \"a b\" is not a qualified name"),
        (
            of(
                "{kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: {a: '-'}}, spec: {containers: [{name: c}]}}}}",
            ),
            "spec.template.metadata.labels[a]: \"-\" is not a label value",
        ),
    ];
    for (said, expected) in cases {
        assert!(matches!(&said[..], [one] if one.contains(expected)), "{said:?} lacks {expected:?}");
    }
    assert!(named("Pod", "name: a.b-c.1, namespace: x-1").is_empty());
    for kind in ["NodePool", "Node", "PersistentVolumeClaim", "StorageClass"] {
        let said = of(&format!("{{kind: {kind}, metadata: {{name: Gen_eral}}}}"));
        assert!(
            matches!(&said[..], [one] if one.starts_with("metadata.name: \"Gen_eral\" is not")),
            "{kind}: {said:?}"
        );
    }
    assert!(of("{kind: ClusterRole, metadata: {name: 'system:node'}}").is_empty(), "another rule");
}

#[test]
fn selectors_that_miss_their_own_template() {
    let set = |selector: &str| {
        of(&format!(
            "{{kind: StatefulSet, metadata: {{name: s}}, spec: {{selector: {selector}, template: {{metadata: {{labels: {{app: a}}}}, spec: {{containers: [{{name: c}}]}}}}}}}}"
        ))
    };
    assert!(
        set("{matchLabels: {app: b}}")[0].starts_with("spec.selector: does not match spec.template.metadata.labels")
    );
    assert!(
        set("{matchExpressions: [{key: app, operator: NotIn, values: [a]}]}")[0]
            .starts_with("spec.selector: does not match")
    );
    assert!(set("{}")[0].starts_with("spec.selector: is empty"));
    assert!(set("{matchLabels: {app: a}}").is_empty());
}
