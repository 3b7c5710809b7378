//! Scenario files: what they say, and what is said of those that are wrong.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Act, End, Scenario, read_scenario};
use crate::clouds::simulated::Conduct;
use crate::cluster::convert::ShapeStore;
use crate::core::ids::ObjectKey;
use crate::manifests::Object;
use crate::sim::verbs::Topic;

const BURST: &str = r#"
scenario: burst
seed: 7
cloud:
  bootSeconds: [20, 60]
  soldOut: [{zone: test-zone-a, from: 0s, until: 10m}]
  quota: {machines: 500}
  neverRegister: 1%
files: [more/db.yaml]
timeline:
  - at: 1h
    delete: {kind: Deployment, name: web, namespace: default}
  - at: 5m
    scale: {deployment: default/web, replicas: 300}
until: 2h
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 3, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}}
"#;

const DB: &str = "{kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: [{name: c}]}}}}";

fn read(text: &str) -> Result<Scenario, String> {
    let files = BTreeMap::from([("dir/burst.yaml", text), ("dir/more/db.yaml", DB)]);
    let open = |path: &Path| {
        let found = files.get(path.to_str().unwrap());
        found.map(|text| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    read_scenario(Path::new("dir/burst.yaml"), &ShapeStore::new(), &open).map_err(|error| error.to_string())
}

#[test]
fn a_scenario_is_read_in_order_of_time() {
    let scenario = read(BURST).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed), ("burst", Some(7)));
    assert_eq!(scenario.end, End::At(Duration::from_hours(2)));
    let at: Vec<_> = scenario.steps.iter().map(|step| step.at.as_secs()).collect();
    assert_eq!(at, [0, 300, 3_600]);
    let Act::Apply(first) = &scenario.steps[0].act else { panic!() };
    let names: Vec<_> = first
        .iter()
        .map(|object| match object {
            Object::Workload(workload) => format!("{} {}", workload.kind.as_str(), workload.key),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["Deployment default/web", "StatefulSet default/db"]);
    assert!(matches!(&scenario.steps[1].act, Act::Scale { kind, replicas: 300, .. } if kind == "Deployment"));
    let conduct = scenario.cloud.conduct(&Conduct::default());
    assert_eq!(conduct.boot, (Duration::from_secs(20), Duration::from_mins(1)));
    assert_eq!((conduct.quota, conduct.launch), (Some(500), Conduct::default().launch));
    assert!((conduct.never_register - 0.01).abs() < 1e-9);
    assert_eq!(conduct.sold_out[0].until, Some(Duration::from_mins(10)));
}

#[test]
fn a_file_of_manifests_is_a_scenario_that_settles() {
    let scenario = read(DB).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.end), ("burst", End::Settled));
    assert!(matches!(&scenario.steps[..], [step] if matches!(&step.act, Act::Apply(all) if all.len() == 1)));
}

#[test]
fn what_is_wrong_is_said_with_file_path_field_and_what_is_allowed() {
    let cases: [(&str, &[&str]); 19] = [
        (
            "scenario: x\ntimelime: []",
            &["dir/burst.yaml: document 1", "unknown field `timelime`", "`timeline`", "`until`"],
        ),
        (
            "timeline: [{at: 5m, scale: {deployment: web, replica: 3}}]",
            &["timeline[0].scale", "unknown field `replica`", "`replicas`"],
        ),
        ("timeline: [{at: soon, apply: []}]", &["timeline[0].at", "\"soon\" is no duration; write for instance 90s"]),
        ("timeline: [{at: 5m}]", &["document 1, timeline[0]", "needs exactly one of apply, scale, delete, edit"]),
        ("timeline: [{at: 5m, scale: {replicas: 3}}]", &["timeline[0].scale", "needs exactly one of deployment"]),
        ("cloud: {neverRegister: often}", &["cloud.neverRegister", "is no share; write for instance 1%"]),
        ("cloud: {quota: {cores: 5}}", &["cloud.quota", "unknown field `cores`", "`machines`"]),
        ("until: whenever", &["until", "neither \"settle\" nor a duration"]),
        ("files: [gone.yaml]", &["dir/gone.yaml", "not found"]),
        (
            "manifests: [{kind: Deployment, metadata: {name: web}, spec: {replicas: -1, template: {spec: {}}}}]",
            &["document 1, manifests[0]", "Deployment web: spec.replicas: -1 is no number of pods"],
        ),
        (
            "timeline: [{at: 5m, edit: {kind: Node, name: one, taint: {}}}]",
            &["timeline[0].edit", "unknown field `taint`", "`taints`"],
        ),
        (
            "timeline: [{at: 5m, edit: {kind: Node, name: one, taints: {a: Never}}}]",
            &["timeline[0].edit", "\"Never\" is no effect; write NoSchedule"],
        ),
        (
            "timeline: [{at: 5m, edit: {kind: Pod, name: web, taints: {a: NoSchedule}}}]",
            &["timeline[0].edit", "taints: can be edited of Node, not of Pod"],
        ),
        (
            "timeline: [{at: 5m, edit: {kind: Pod, name: web, annotations: { color: blue }}}]",
            &[
                "timeline[0].edit",
                "annotations.color: means nothing here; of a Pod, karpenter.sh/do-not-disrupt can be edited",
            ],
        ),
        (
            "timeline: [{at: 5m, edit: {kind: Deployment, name: web}}]",
            &["timeline[0].edit", "kind: Deployment cannot be edited; apply it anew, or edit a Node"],
        ),
        ("timeline: [{at: 5m, cloud: {create: Nonsense}}]", &["timeline[0].cloud", "unknown variant `Nonsense`"]),
        (
            "timeline: [{at: 5m, cloud: {delete: Quota}}]",
            &["timeline[0].cloud", "Quota is an answer to create only; write Throttled"],
        ),
        ("timeline: [{at: 5m, machine: {of: one, does: sing}}]", &["timeline[0].machine", "unknown variant `sing`"]),
        ("scenario: a\n---\nscenario: b", &["document 2", "second scenario"]),
    ];
    for (text, expected) in cases {
        let said = read(text).unwrap_err();
        for part in expected {
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
    }
    assert!(read("scenario: [").unwrap_err().starts_with("dir/burst.yaml: YAML: "));
}

#[test]
fn edits_answers_and_misfortunes_are_read() {
    let text = "timeline:
      - {at: 1s, edit: {kind: Node, name: one, labels: {a: b, c: null}, conditions: {Ready: \"False\"}, capacity: {cpu: 500m}}}
      - {at: 2s, cloud: {create: InsufficientCapacity, get: Lost, times: 3}}
      - {at: 3s, machine: {of: one, does: vanish}}
narrate: {from: 1m, about: [Node], metrics: [m]}";
    let scenario = read(text).unwrap();
    let Act::Edit(edit) = &scenario.steps[1].act else { panic!() };
    assert_eq!((edit.kind.as_str(), edit.key()), ("Node", ObjectKey::new("default", "one")));
    let Act::Answer(answers) = &scenario.steps[2].act else { panic!() };
    let told = "the cloud will answer Create with InsufficientCapacity Get with Lost, 3 times";
    assert_eq!(answers.to_string(), told);
    assert!(matches!(&scenario.steps[3].act, Act::Befall(fate) if fate.of == "one"));
    let narration = &scenario.narration;
    assert_eq!(narration.from(), Duration::from_mins(1));
    assert!(narration.is_about(Topic::Node) && !narration.is_about(Topic::Pod));
}
