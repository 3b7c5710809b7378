//! CapacityBuffers.

use std::time::Duration;

use joiner::actors::runtime::Kind;
use joiner::actors::{Features, Settings};
use joiner::command::{Rehearsal, scenario_of};
use joiner::core::facts::{Buffer, Status, find_condition};
use joiner::core::ids::ObjectKey;
use joiner::core::writes::Regarding;
use joiner::sim::{Act, Scenario};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rehearsals::{assert_intact, machines, settings, settled, truth};
use super::{apply, tell};

fn on() -> Settings {
    Settings { features: Features { capacity_buffer: true, ..Features::default() }, ..settings() }
}

fn containers(cpu: &str) -> Value {
    json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] })
}

fn template(cpu: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "chunk" }, "template": { "spec": containers(cpu) } })
}

fn buffer(spec: &Value) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": { "name": "spare" },
        "spec": spec,
    })
}

fn of_template(replicas: u64) -> Value {
    buffer(&json!({ "podTemplateRef": { "name": "chunk" }, "replicas": replicas }))
}

fn app(replicas: u64, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": replicas, "template": { "spec": containers(cpu) } },
    })
}

fn scenario(manifests: &[Value]) -> Scenario {
    scenario_of("buffers", manifests).expect("the manifests are well-formed")
}

fn spare(rehearsal: &Rehearsal) -> Buffer {
    (*truth(rehearsal).buffers[&ObjectKey::new("default", "spare")]).clone()
}

/// `Status/Reason` of a condition.
fn said(rehearsal: &Rehearsal, kind: &str) -> String {
    let buffer = spare(rehearsal);
    let found = find_condition(&buffer.conditions, kind);
    found.map_or_else(String::new, |found| format!("{}/{}", found.status.as_str(), found.reason))
}

/// Longer than the pause between two looks at the room of buffers.
async fn a_while() {
    sleep(Duration::from_mins(3)).await;
}

/// CPU that is free on all nodes, in thousandths.
fn free(rehearsal: &Rehearsal) -> i64 {
    let now = truth(rehearsal);
    let all: i64 = now.nodes.values().map(|node| node.allocatable.get(&"cpu".into())).sum();
    let bound = now.pods.values().filter(|pod| pod.node.is_some());
    all - bound.map(|pod| pod.shape.requests.get(&"cpu".into())).sum::<i64>()
}

#[test]
fn room_is_bought_and_kept_and_no_pod_is_made_up() {
    tell(&scenario(&[template("1"), of_template(5)]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        a_while().await;
        assert_intact(rehearsal, 0, "room for five");
        assert!(free(rehearsal) >= 5000);
        let before = machines(rehearsal).len();
        let buffer = spare(rehearsal);
        assert_eq!((buffer.status.replicas, buffer.status.template_generation), (Some(5), Some(1)));
        assert_eq!(buffer.status.template.as_deref(), Some("chunk"));
        assert_eq!(said(rehearsal, "ReadyForProvisioning"), "True/Resolved");
        assert_eq!(said(rehearsal, "Provisioning"), "True/FitsExistingCapacity");
        sleep(Duration::from_hours(1)).await;
        assert_eq!(machines(rehearsal).len(), before, "room is bought once");
        let of_pods = |regarding: &Regarding| matches!(regarding, Regarding::Pod(..));
        let events = rehearsal.world.cluster.events();
        assert_eq!(
            events.iter().filter(|(_, event)| of_pods(&event.regarding)).count(),
            0,
            "nobody is told of placeholders"
        );
    });
}

#[test]
fn without_the_gate_no_room_is_kept() {
    tell(&scenario(&[template("1"), of_template(5)]), settings(), async |rehearsal, _| {
        a_while().await;
        assert!(truth(rehearsal).claims.is_empty() && spare(rehearsal).conditions.is_empty());
    });
}

#[test]
fn real_pods_use_the_room_at_once_and_it_is_filled_up_again() {
    tell(&scenario(&[template("1"), of_template(4)]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        a_while().await;
        apply(rehearsal, &app(4, "1"));
        sleep(Duration::from_secs(5)).await;
        let now = truth(rehearsal);
        assert_eq!(now.pods.values().filter(|pod| pod.node.is_some()).count(), 4, "the room was there");
        settled(rehearsal).await;
        a_while().await;
        assert_intact(rehearsal, 4, "filled up again");
        assert!(free(rehearsal) >= 4000, "{}", free(rehearsal));
        assert_eq!(said(rehearsal, "Provisioning"), "True/FitsExistingCapacity");
    });
}

#[test]
fn a_share_follows_the_workload() {
    let share = buffer(
        &json!({ "scalableRef": { "apiGroup": "apps", "kind": "Deployment", "name": "web" }, "percentage": 50 }),
    );
    tell(&scenario(&[app(4, "1"), share]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(spare(rehearsal).status.replicas, Some(2));
        assert!(free(rehearsal) >= 2000);
        let key = ObjectKey::new("default", "web");
        let grown = Act::Scale { kind: "Deployment".to_owned(), key, replicas: 10 };
        rehearsal.world.perform(&grown).expect("it is there");
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(spare(rehearsal).status.replicas, Some(5));
        assert!(free(rehearsal) >= 5000);
    });
}

#[test]
fn what_is_missing_is_named_and_found_when_it_comes() {
    tell(&scenario(&[of_template(2)]), on(), async |rehearsal, _| {
        a_while().await;
        assert_eq!(said(rehearsal, "ReadyForProvisioning"), "False/PodTemplateNotFound");
        assert_eq!(said(rehearsal, "Provisioning"), "False/NotReadyForProvisioning");
        apply(rehearsal, &template("2"));
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(said(rehearsal, "Provisioning"), "True/FitsExistingCapacity");
        assert!(free(rehearsal) >= 4000);
    });
}

#[test]
fn a_changed_template_is_followed() {
    tell(&scenario(&[template("1"), of_template(2)]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        apply(rehearsal, &template("16"));
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(spare(rehearsal).status.template_generation, Some(2));
        assert!(free(rehearsal) >= 32_000);
    });
}

#[test]
fn a_buffer_that_fits_nowhere_says_so_and_is_no_pod_that_failed() {
    tell(&scenario(&[template("5000"), of_template(1), app(1, "1")]), on(), async |rehearsal, joiner| {
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(said(rehearsal, "Provisioning"), "False/RequiresNewCapacity");
        assert!(joiner.boards().refusals.borrow().reasons.is_empty());
        assert_intact(rehearsal, 1, "the real pod runs");
    });
}

#[test]
fn a_deleted_buffer_is_forgotten() {
    tell(&scenario(&[template("1"), of_template(2)]), on(), async |rehearsal, joiner| {
        settled(rehearsal).await;
        a_while().await;
        assert_eq!(joiner.boards().rooms().on.values().sum::<usize>(), 2);
        let key = ObjectKey::new("default", "spare");
        let gone = Act::Delete { kind: "CapacityBuffer".to_owned(), key };
        rehearsal.world.perform(&gone).expect("it is there");
        sleep(Duration::from_secs(30)).await;
        assert!(joiner.boards().rooms().on.is_empty(), "nothing protects its nodes any more");
    });
}

#[test]
fn actors_may_die_while_room_is_bought() {
    for kind in [Kind::Provisioner, Kind::Pools, Kind::State] {
        for after in [1, 4, 8] {
            tell(&scenario(&[template("1"), of_template(12)]), on(), async |rehearsal, joiner| {
                joiner.house().saboteur.strike(kind, after, 1);
                settled(rehearsal).await;
                a_while().await;
                settled(rehearsal).await;
                let story = format!("{kind} struck after {after} messages");
                assert_intact(rehearsal, 0, &story);
                assert_eq!(said(rehearsal, "Provisioning"), "True/FitsExistingCapacity", "{story}");
                assert_eq!(
                    find_condition(&spare(rehearsal).conditions, "ReadyForProvisioning").map(|c| c.status),
                    Some(Status::True)
                );
            });
        }
    }
}
