//! Manifests become objects, or one clear sentence.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Admission, Object, read_object};
use crate::cluster::convert::ShapeStore;
use crate::core::facts::{Count, Owner, Status};
use crate::manifests::{VolumeSource, Workload, WorkloadKind};

fn value(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn read(yaml: &str) -> Vec<Object> {
    let mut admission = Admission::default();
    admission.hear(&json!({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1_000}));
    read_object(&value(yaml), &ShapeStore::new(), &admission).unwrap()
}

fn problem(yaml: &str) -> String {
    read_object(&value(yaml), &ShapeStore::new(), &Admission::default()).unwrap_err().to_string()
}

fn workload(yaml: &str) -> Workload {
    match read(yaml).pop() {
        Some(Object::Workload(workload)) => workload,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deployment_says_how_many_pods_of_which_shape() {
    let web = workload(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, template: {metadata: \
         {labels: {app: web}}, spec: {priorityClassName: high, terminationGracePeriodSeconds: 7, containers: [{name: c, resources: \
         {requests: {cpu: 250m, memory: 1Gi}}}]}}}}",
    );
    assert_eq!((web.kind, web.replicas), (WorkloadKind::Deployment, 3));
    assert_eq!(web.key.to_string(), "shop/web");
    let shape = &web.shape;
    assert_eq!(
        (&*shape.namespace, shape.owner, shape.priority, shape.grace_seconds),
        ("shop", Owner::Controller, 1_000, 7)
    );
    assert_eq!(shape.requests.get(&"cpu".into()), 250);
    assert_eq!(shape.requests.get(&"pods".into()), 1_000);
    assert_eq!(&*shape.labels["app"], "web");
}

#[test]
fn kinds_of_workload_differ_in_owner_and_life() {
    let spec = "template: {spec: {containers: [{name: c}]}}";
    let set = workload(&format!("{{kind: StatefulSet, metadata: {{name: db}}, spec: {{{spec}}}}}"));
    assert_eq!((set.kind, set.shape.owner), (WorkloadKind::StatefulSet { ordered: true }, Owner::StatefulSet));
    let job =
        workload(&format!("{{kind: Job, metadata: {{name: j}}, spec: {{completions: 5, parallelism: 2, {spec}}}}}"));
    assert_eq!((job.kind, job.replicas), (WorkloadKind::Job { completions: 5, succeeded: 0 }, 2));
    assert_eq!(job.runs_for, Some(Duration::from_mins(1)));
    let pod = workload(
        "{kind: Pod, metadata: {name: p, annotations: {sim.joiner.dev/run-for: 1m30s}}, spec: {containers: [{name: c}]}}",
    );
    assert_eq!((pod.shape.owner, pod.runs_for), (Owner::Nobody, Some(Duration::from_secs(90))));
}

#[test]
fn a_list_gives_its_items_and_other_kinds_do_no_harm() {
    let all =
        read("{kind: List, items: [{kind: ConfigMap, metadata: {name: a}}, {kind: Namespace, metadata: {name: b}}]}");
    assert!(
        matches!(&all[..], [Object::Irrelevant(kind), Object::Namespace(name, _)] if kind == "ConfigMap" && &**name == "b")
    );
}

#[test]
fn a_budget_counts_pods_or_percent() {
    let all = read(
        "{kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 2, maxUnavailable: 25%, selector: {matchLabels: {a: b}, \
         matchExpressions: [{key: c, operator: Exists}]}}}",
    );
    let [Object::Budget(budget)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((budget.min_available, budget.max_unavailable), (Some(Count::Pods(2)), Some(Count::Percent(25))));
    assert_eq!(budget.selector.as_ref().map(|s| (s.labels.len(), s.expressions.len())), Some((1, 1)));
}

#[test]
fn pools_and_classes_are_read_as_the_cluster_would() {
    let all = read(
        "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {requirements: [{key: \
         karpenter.sh/capacity-type, operator: In, values: [spot]}], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: \
         default}}}}}",
    );
    assert!(matches!(&all[..], [Object::Pool(pool)] if pool.name.as_str() == "general" && pool.errors.is_empty()));
    let all = read("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}");
    assert!(matches!(&all[..], [Object::Class(class)] if &*class.conditions[0].kind == "Ready"));
}

#[test]
fn a_class_that_the_api_server_would_refuse_is_not_ready_and_says_all_of_it() {
    let text = "{apiVersion: karpenter.outscale.com/v1alpha1, kind: OutscaleNodeClass, metadata: {name: workers}, spec: {imageId: ami-1, subnetIds: \
         [subnet-0a1b2c3d], subnetSelectorTerms: [{tags: {a: b}}], securityGroupIds: [sg-0a1b2c3d], talos: {}}, status: {conditions: [{type: Ready, \
         status: 'True', reason: Ready, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}";
    let all = super::examine(&value(text), &ShapeStore::new(), &Admission::default());
    let [Ok(found)] = &all[..] else { panic!("{all:?}") };
    let said: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    let fields =
        ["spec.imageId: ", "spec.talos.secretRef: is missing", "spec: give either subnetIds or subnetSelectorTerms"];
    assert_eq!(said.len(), fields.len(), "{said:?}");
    for field in fields {
        assert!(said.iter().any(|one| one.starts_with(&format!("OutscaleNodeClass workers: {field}"))), "{said:?}");
    }
    let Object::Class(class) = &found.object else { panic!("{found:?}") };
    let [ready] = &class.conditions[..] else { panic!("{:?}", class.conditions) };
    assert_eq!((&*ready.kind, ready.status), ("Ready", Status::False));
    assert!(ready.message.contains("spec.imageId") && ready.message.contains("give either subnetIds"), "{ready:?}");
}

#[test]
fn a_pool_that_the_api_server_would_not_keep_is_not_used() {
    let text = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: Gen_eral}, spec: {template: {spec: {requirements: [], nodeClassRef: \
                {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}";
    let all = super::examine(&value(text), &ShapeStore::new(), &Admission::default());
    let [Ok(found)] = &all[..] else { panic!("{all:?}") };
    let said: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert!(matches!(&said[..], [one] if one.starts_with("NodePool Gen_eral: metadata.name: ")), "{said:?}");
    assert!(matches!(&found.object, Object::Pool(pool) if pool.errors.len() == 1), "{found:?}");
}

#[test]
fn what_is_wrong_is_said_with_object_field_and_remedy() {
    let template = "template: {spec: {containers: [{name: c}]}}";
    let cases = [
        (json!({"metadata": {"name": "x"}}).to_string(), "object x: kind: is missing"),
        (
            "{kind: Deployment, metadata: {name: web}, spec: {replicas: three, template: {spec: {}}}}".to_owned(),
            "Deployment web: spec.replicas: \"three\" is no number of pods; write a whole number from 0",
        ),
        (
            format!("{{kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 4294967296, {template}}}}}"),
            "Deployment web: spec.replicas: 4294967296 are more pods than a cluster can hold; write a whole number up to 150000",
        ),
        (
            format!("{{kind: Deployment, metadata: {{namespace: a}}, spec: {{{template}}}}}"),
            "Deployment a/without a name: metadata.name: is missing",
        ),
        (
            "{kind: Deployment, metadata: {name: web}, spec: {}}".to_owned(),
            "Deployment web: spec.template.spec: is missing",
        ),
        (
            "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: lots}}}]}}"
                .to_owned(),
            "Pod p: ",
        ),
        ("{kind: CronJob, metadata: {name: c}}".to_owned(), "CronJob c: kind: pods of a CronJob are not thought of"),
        (
            "{kind: Pod, metadata: {name: p}, spec: {priorityClassName: vip, containers: []}}".to_owned(),
            "there is no PriorityClass vip; apply it before",
        ),
        (
            "{kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: half}}".to_owned(),
            "PodDisruptionBudget b: spec.minAvailable: \"half\" is no number of pods",
        ),
    ];
    for (yaml, expected) in cases {
        let said = problem(&yaml);
        assert!(said.contains(expected), "{said:?} lacks {expected:?}");
    }
    assert!(
        problem(
            "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: lots}}}]}}"
        )
        .contains("lots")
    );
}

#[test]
fn volumes_of_a_workload_are_those_with_claims() {
    let db = workload(
        "{kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: [{name: c}], volumes: [{name: a, emptyDir: {}}, \
         {name: b, persistentVolumeClaim: {claimName: shared}}, {name: c, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: \
         fast}}}}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]}}",
    );
    assert_eq!(
        db.volumes,
        [
            VolumeSource::Template { name: "data".into(), class: None },
            VolumeSource::Claim("shared".into()),
            VolumeSource::Ephemeral { name: "c".into(), class: Some("fast".into()) },
        ]
    );
    let said = problem("{kind: PersistentVolume, metadata: {name: pv}, spec: {nodeAffinity: north}}");
    assert!(said.starts_with("PersistentVolume pv: spec"), "{said}");
}

#[test]
fn what_a_secret_holds_is_read_and_not_shown() {
    let all =
        read("{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {a: c2VjcmV0}, stringData: {b: plain}}");
    let [Object::Secret(secret)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&*secret.name, &*secret.data["a"], &*secret.data["b"]), ("keys", &b"secret"[..], &b"plain"[..]));
    assert_eq!(format!("{all:?}"), r#"[Secret(Secret { name: "keys", .. })]"#);
    // What tools encrypt in place is none of ours.
    let all = read("{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {a: 'ENC[AES256_GCM,data:x]'}}");
    assert!(matches!(&all[..], [Object::Irrelevant(kind)] if kind == "Secret"), "{all:?}");
}

#[test]
fn pods_have_the_labels_that_their_controllers_add() {
    let spec = "template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c}]}}";
    let labels = |yaml: String| workload(&yaml).shape.labels.clone();
    let job = labels(format!("{{kind: Job, metadata: {{name: j}}, spec: {{{spec}}}}}"));
    assert_eq!((&*job["batch.kubernetes.io/job-name"], &*job["job-name"], &*job["app"]), ("j", "j", "a"));
    assert!(job.contains_key("batch.kubernetes.io/controller-uid") && job.contains_key("controller-uid"));
    let hash = |name: &str, spec: &str| {
        labels(format!("{{kind: Deployment, metadata: {{name: {name}}}, spec: {{{spec}}}}}"))["pod-template-hash"]
            .to_string()
    };
    assert_eq!(hash("one", spec), hash("two", spec));
    assert_ne!(hash("one", spec), hash("one", &spec.replace("app: a", "app: b")));
    let wrong = problem(
        "{kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: text}, spec: {containers: [{name: c}]}}}}",
    );
    assert!(wrong.starts_with("Job j: "), "labels cannot be added to what is no map: {wrong}");
    // A key to match by is looked up among them.
    let own = spec.replace(
        "containers",
        "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: \
         {app: a}}, matchLabelKeys: [pod-template-hash]}], containers",
    );
    let web = workload(&format!("{{kind: Deployment, metadata: {{name: web}}, spec: {{{own}}}}}"));
    let selector = web.shape.spreads[0].selector.clone().unwrap();
    assert_eq!(&*selector.expressions[0].key, "pod-template-hash");
    assert!(selector.matches(&web.shape.labels));
}

#[test]
fn what_the_api_server_would_refuse_is_said() {
    let pod = |spec: &str| {
        problem(&format!("{{kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c}}], {spec}}}}}"))
    };
    let term = "topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: In, values: []}]}";
    let wish = "{weight: 0, podAffinityTerm: {topologyKey: zone, labelSelector: {}}}";
    let cases = [
        (
            pod(&format!(
                "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{{term}}}]}}}}"
            )),
            "labelSelector.matchExpressions[0].values",
        ),
        (
            pod(&format!("affinity: {{podAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{wish}]}}}}")),
            "preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0",
        ),
        (
            pod("topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]"),
            "spec.topologySpreadConstraints[0]",
        ),
        (
            problem(
                "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, ports: [{containerPort: 80, hostPort: 99999}]}]}}",
            ),
            "spec.containers[0].ports[0].hostPort: 99999",
        ),
        (
            problem(
                "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}}",
            ),
            "Pod p: spec.containers[0].resources.requests.cpu: is above its limit",
        ),
        (
            pod(
                "initContainers: [{name: i, resources: {requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}}}]",
            ),
            "spec.initContainers[0].resources.requests.example.com/gpu: is not its limit",
        ),
        (
            pod("resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}"),
            "spec.resources.requests.memory: is above",
        ),
        (
            problem(
                "{kind: Pod, metadata: {name: p}, spec: {resources: {requests: {cpu: 1}}, containers: [{name: c, resources: {requests: {cpu: 2}}}]}}",
            ),
            "spec.resources.requests.cpu: is less than what its containers request together",
        ),
        (
            problem(
                "{kind: NodePool, metadata: {name: p}, spec: {weight: 1000, template: {spec: {nodeClassRef: {group: g, kind: k, name: some}, requirements: []}}}}",
            ),
            "spec.weight: 1000",
        ),
    ];
    for (said, expected) in cases {
        assert!(said.contains(expected), "{said:?} lacks {expected:?}");
    }
}

#[test]
fn a_pod_whose_labels_cannot_be_read_is_there_with_the_reason() {
    let shapes = ShapeStore::new();
    for (labels, field) in [("{a: 1}", "metadata.labels.a"), ("[a]", "metadata.labels")] {
        let yaml =
            format!("{{kind: Pod, metadata: {{name: p, labels: {labels}}}, spec: {{containers: [{{name: c}}]}}}}");
        let found = super::examine(&value(&yaml), &shapes, &Admission::default()).pop().unwrap().unwrap();
        let Object::Pod { pod, .. } = found.object else { panic!("{found:?}") };
        assert!(pod.shape.broken.as_deref().is_some_and(|why| why.starts_with(field)), "{:?}", pod.shape.broken);
    }
}
