//! Slips of the pen are found with their path, and nothing else is.

use serde_json::Value;

use super::fields;

fn of(yaml: &str) -> Vec<String> {
    let value: Value = serde_saphyr::from_str(yaml).unwrap();
    let told = fields(value["kind"].as_str().unwrap(), &value);
    told.into_iter().map(|line| line.split(": ").next().unwrap().to_owned()).collect()
}

#[test]
fn unknown_fields_are_told_with_their_path() {
    assert_eq!(
        fields("Pod", &serde_json::json!({"spec": {"nodeSelectors": {"a": "b"}}})),
        ["spec.nodeSelectors: is no field of a Pod, and counts for nothing; correct its name, or leave it out"]
    );
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, label: {}}, spec: {replica: 2, template: {spec: {\
                      containers: [{name: a}, {name: b, resource: {}, resources: {request: {cpu: 1}}}], affinity: {nodeAffinty: {}}}}}}";
    let template = "spec.template.spec";
    assert_eq!(
        of(deployment),
        [
            "metadata.label".to_owned(),
            "spec.replica".to_owned(),
            format!("{template}.affinity.nodeAffinty"),
            format!("{template}.containers[1].resource"),
            format!("{template}.containers[1].resources.request"),
        ]
    );
    let pool = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p}, spec: {limit: {}, template: {spec: {taint: []}}}}";
    assert_eq!(of(pool), ["spec.limit", "spec.template.spec.taint"]);
}

#[test]
fn names_that_users_choose_and_kinds_that_nobody_knows_are_free() {
    let free = [
        "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {any: x}, annotations: {b: c}}, spec: {nodeSelector: {any: x}, containers: [{name: \
         c, resources: {limits: {example.com/gpu: 1}, requests: {cpu: 0.5}}, livenessProbe: {httpGet: {port: 80}}}], overhead: {cpu: 1}, \
         tolerations: [{key: a, operator: Exists, tolerationSeconds: 3}]}}",
        "{kind: ConfigMap, data: {}, dat: 1}",
        "{kind: Pod, metadata: {uid: of-a-cluster}, spec: {ofAReleaseToCome: 1}}",
        "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p, labels: {any: x}}, spec: {limits: {cpu: 1}, template: {metadata: {labels: \
         {any: x}}, spec: {requirements: [], nodeClassRef: {group: g, kind: k, name: n}, kubelet: null}}, disruption: {budgets: [{nodes: '1'}]}}}",
        "{kind: PersistentVolume, spec: {capacity: {storage: 1Gi}, csi: {driver: d, volumeAttributes: {any: x}}, claimRef: {name: c}}}",
    ];
    assert_eq!(free.map(of).concat(), ["spec.template.spec.kubelet"], "NodePools had it once");
}
