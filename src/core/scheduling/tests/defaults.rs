//! Default spread constraints: who gets them, and with which selector.

use std::sync::Arc;

use super::build::*;
use crate::core::facts::{Group, Kind, Pod, PodShape, PolicyHonor, Selector, TopologySpread};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::scheduling::{DefaultSpreads, Plan};

fn default(key: &str, required: bool) -> TopologySpread {
    TopologySpread { selector: None, required, ..spread(key, 1, &[]) }
}

fn with_group(mut scene: Scene, kind: Kind, name: &str, selector: Option<Selector>) -> Scene {
    let path = Group::path(kind, "default", name).unwrap();
    scene.snapshot.groups.insert(Arc::clone(&path), Arc::new(Group { kind, path, selector }));
    scene
}

fn web() -> PodShape {
    let mut one = shape(500, 500);
    one.labels = labels(&[("app", "web"), ("tier", "front")]);
    one
}

/// Pods of a controller.
fn owned(kind: Kind, name: &str, count: usize, shape: &PodShape) -> Vec<Arc<Pod>> {
    let owned = |pod: Arc<Pod>| Arc::new(Pod { owned_by: Group::path(kind, "default", name), ..(*pod).clone() });
    pods(name, count, shape).into_iter().map(owned).collect()
}

fn spread_out(mut scene: Scene, constraints: Vec<TopologySpread>) -> Plan {
    scene.pods = DefaultSpreads::new(constraints).apply(&scene.snapshot, scene.pods);
    scene.solve()
}

/// The selector that the first pod is given.
fn found(mut scene: Scene) -> Option<Selector> {
    scene.pods = DefaultSpreads::new(vec![default(labels::ZONE, true)]).apply(&scene.snapshot, scene.pods);
    scene.pods[0].shape.spreads.first().map(|spread| spread.selector.clone().unwrap())
}

fn is_in(key: &str, value: &str) -> Requirement {
    Requirement::new(key, Operator::In, [value])
}

#[test]
fn pods_of_a_controller_are_spread_over_zones_and_hosts() {
    let scene = || {
        let scene = Scene::new().with_pods(owned(Kind::ReplicaSet, "web-1", 4, &web()));
        with_group(scene, Kind::ReplicaSet, "web-1", Some(selector(&[("app", "web")])))
    };
    let zones = spread_out(scene(), vec![default(labels::ZONE, true)]);
    let mut counts: Vec<usize> = ZONES
        .iter()
        .map(|zone| {
            let there = (0..zones.claims.len()).filter(|at| pinned(&zones, *at, labels::ZONE) == Some(*zone));
            there.map(|at| zones.claims[at].pods.len()).sum()
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2]);
    let hosts = spread_out(scene(), vec![default(labels::HOSTNAME, true)]);
    assert_eq!(hosts.claims.len(), 4);
    assert!(spread_out(scene(), vec![]).claims.len() < 4);
}

#[test]
fn own_constraints_and_loneliness_keep_defaults_away() {
    let mut own = web();
    own.spreads.push(spread(labels::HOSTNAME, 5, &[("app", "web")]));
    let scene = |shape: &PodShape| {
        let scene = Scene::new().with_pods(owned(Kind::ReplicaSet, "web-1", 2, shape));
        with_group(scene, Kind::ReplicaSet, "web-1", Some(selector(&[("app", "web")])))
    };
    assert_eq!(spread_out(scene(&own), vec![default(labels::HOSTNAME, true)]).claims.len(), 1);
    // Nobody says which pods belong together: no controller that counts, no Service.
    assert_eq!(found(Scene::new().with_pods(pods("alone", 1, &web()))), None);
    assert_eq!(found(Scene::new().with_pods(owned(Kind::ReplicaSet, "gone", 1, &web()))), None);
    let job = Scene::new().with_pods(pods("job", 1, &web()));
    let served = with_group(job, Kind::Service, "web", Some(selector(&[("app", "web")])));
    assert_eq!(found(served), Some(selector(&[("app", "web")])));
}

#[test]
fn what_cannot_be_met_stays_out_or_is_given_up() {
    let scene = || {
        let mut own = pool("default");
        own.template.requirements.push(within(labels::ZONE, &["zone-a"]));
        let scene = Scene::default().with_pool(own, types()).with_pods(owned(Kind::StatefulSet, "db", 2, &web()));
        with_group(scene, Kind::StatefulSet, "db", Some(selector(&[("app", "web")])))
    };
    let strict = TopologySpread { min_domains: Some(3), ..default(labels::ZONE, true) };
    assert_eq!(spread_out(scene(), vec![strict]).refused.len(), 1);
    let soft = default("example.com/rack", false);
    assert!(spread_out(scene(), vec![soft]).refused.is_empty());
    let hard = default("example.com/rack", true);
    assert_eq!(spread_out(scene(), vec![hard]).refused.len(), 2);
}

#[test]
fn pods_that_run_already_are_counted() {
    let mut scene = Scene::new()
        .with_node(node("old", 8, 32, &[(labels::ZONE, "zone-a")]))
        .running("web-a", "old", &web())
        .running("web-b", "old", &web())
        .with_pods(owned(Kind::ReplicaSet, "web-1", 2, &web()));
    scene = with_group(scene, Kind::ReplicaSet, "web-1", Some(selector(&[("app", "web")])));
    let plan = spread_out(scene, vec![default(labels::ZONE, true)]);
    let mut zones: Vec<_> = (0..plan.claims.len()).map(|at| pinned(&plan, at, labels::ZONE).unwrap()).collect();
    zones.sort_unstable();
    assert_eq!((plan.existing.len(), zones), (0, vec!["zone-b", "zone-c"]));
}

#[test]
fn revisions_are_spread_by_themselves() {
    let revision = |hash: &str| {
        let mut one = web();
        one.labels.insert("pod-template-hash".into(), hash.into());
        one
    };
    let mut scene = Scene::new().with_pods(owned(Kind::ReplicaSet, "web-1", 3, &revision("1"))).with_pods(owned(
        Kind::ReplicaSet,
        "web-2",
        3,
        &revision("2"),
    ));
    for hash in ["1", "2"] {
        let own = Some(selector(&[("app", "web"), ("pod-template-hash", hash)]));
        scene = with_group(scene, Kind::ReplicaSet, &format!("web-{hash}"), own);
    }
    let plan = spread_out(scene, vec![default(labels::HOSTNAME, true)]);
    // One of each on every node.
    assert_eq!(plan.claims.len(), 3);
}

#[test]
fn services_and_owners_together_make_the_selector() {
    let pod = |kind| Scene::new().with_pods(owned(kind, "web-1", 1, &web()));
    let service = |scene, name: &str, own: Option<Selector>| with_group(scene, Kind::Service, name, own);
    // Services that do not select the pod, or nothing, or everything, add nothing.
    let mut scene = pod(Kind::ReplicaSet);
    scene = service(scene, "a", Some(selector(&[("app", "other")])));
    scene = service(scene, "b", None);
    scene = service(scene, "c", Some(Selector::default()));
    assert_eq!(found(scene), None);
    // Several are merged.
    let mut scene = pod(Kind::ReplicaSet);
    scene = service(scene, "a", Some(selector(&[("app", "web")])));
    scene = service(scene, "b", Some(selector(&[("tier", "front")])));
    assert_eq!(found(scene), Some(selector(&[("app", "web"), ("tier", "front")])));
    // A ReplicaSet's selector holds as well, labels as expressions and expressions as they are.
    let has = Requirement::new("tier", Operator::Exists, [""; 0]);
    let own = Selector { labels: labels(&[("app", "other")]), expressions: vec![has.clone()] };
    let mut scene = with_group(pod(Kind::ReplicaSet), Kind::ReplicaSet, "web-1", Some(own));
    scene = service(scene, "a", Some(selector(&[("app", "web")])));
    let both = Selector { labels: labels(&[("app", "web")]), expressions: vec![is_in("app", "other"), has] };
    assert_eq!(found(scene), Some(both));
    // That of a ReplicationController stands in place of what Services say.
    let mut scene = pod(Kind::ReplicationController);
    scene = with_group(scene, Kind::ReplicationController, "web-1", Some(selector(&[("app", "older")])));
    scene = service(scene, "a", Some(selector(&[("app", "web"), ("tier", "front")])));
    assert_eq!(found(scene), Some(selector(&[("app", "older"), ("tier", "front")])));
}

#[test]
fn other_namespaces_have_other_services() {
    let mut scene = Scene::new().with_pods(pods("web", 1, &web()));
    for namespace in ["defaul", "default-2", "other"] {
        let path = Group::path(Kind::Service, namespace, "web").unwrap();
        let selector = Some(selector(&[("app", "web")]));
        scene.snapshot.groups.insert(Arc::clone(&path), Arc::new(Group { kind: Kind::Service, path, selector }));
    }
    assert_eq!(found(scene), None);
}

#[test]
fn equal_questions_get_equal_shapes() {
    let scene = with_group(
        Scene::new().with_pods(owned(Kind::ReplicaSet, "web-1", 3, &web())),
        Kind::ReplicaSet,
        "web-1",
        Some(selector(&[("app", "web")])),
    );
    let mut spreads = DefaultSpreads::new(vec![default(labels::ZONE, true), default(labels::HOSTNAME, false)]);
    let first = spreads.apply(&scene.snapshot, scene.pods.clone());
    let again = spreads.apply(&scene.snapshot, scene.pods.clone());
    assert!(first.iter().chain(&again).all(|pod| Arc::ptr_eq(&pod.shape, &first[0].shape)));
    let keys: Vec<&str> = first[0].shape.spreads.iter().map(|spread| &*spread.key).collect();
    assert_eq!(keys, [labels::ZONE, labels::HOSTNAME]);
    assert!(scene.pods[0].shape.spreads.is_empty());
}

#[test]
fn workloads_are_spread_by_themselves() {
    let app = |name: &str| PodShape { labels: labels(&[("app", name)]), ..shape(500, 500) };
    let mut scene = Scene::new().with_pods(owned(Kind::ReplicaSet, "red", 2, &app("red"))).with_pods(owned(
        Kind::ReplicaSet,
        "blue",
        2,
        &app("blue"),
    ));
    for name in ["red", "blue"] {
        scene = with_group(scene, Kind::ReplicaSet, name, Some(selector(&[("app", name)])));
    }
    // One of each on both nodes.
    assert_eq!(spread_out(scene, vec![default(labels::HOSTNAME, true)]).claims.len(), 2);
}

#[test]
fn pods_of_a_job_are_spread_when_a_service_selects_them() {
    let job = |service: bool| {
        let owned = |pod: Arc<Pod>| {
            let owned_by = Some("/apis/batch/v1/namespaces/default/jobs/web".into());
            Arc::new(Pod { owned_by, ..(*pod).clone() })
        };
        let scene = Scene::new().with_pods(pods("job", 3, &web()).into_iter().map(owned).collect());
        let service = service.then(|| selector(&[("app", "web")]));
        spread_out(with_group(scene, Kind::Service, "web", service), vec![default(labels::HOSTNAME, true)])
    };
    assert_eq!((job(true).claims.len(), job(false).claims.len()), (3, 1), "a Job itself says nothing");
}

#[test]
fn what_is_configured_is_carried() {
    let mut scene = Scene::new().with_pods(owned(Kind::ReplicaSet, "web-1", 1, &web()));
    scene = with_group(scene, Kind::ReplicaSet, "web-1", Some(selector(&[("app", "web")])));
    let configured = TopologySpread {
        max_skew: 3,
        min_domains: Some(2),
        node_affinity_policy: PolicyHonor::Ignore,
        node_taints_policy: PolicyHonor::Honor,
        ..default(labels::ZONE, true)
    };
    let found = DefaultSpreads::new(vec![configured.clone()]).apply(&scene.snapshot, scene.pods);
    let selector = found[0].shape.spreads[0].selector.clone();
    assert_eq!(found[0].shape.spreads, [TopologySpread { selector, ..configured }]);
}
