//! NodeOverlays.

use std::time::Duration;

use joiner::actors::{Features, Settings};
use joiner::command::{Rehearsal, scenario_of};
use joiner::core::facts::{Condition, Status, find_condition};
use joiner::core::labels;
use joiner::sim::Scenario;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rehearsals::{assert_intact, delete, settings, settled, truth};
use super::{apply, tell};

const DONGLE: &str = "example.com/dongle";

fn on() -> Settings {
    Settings { features: Features { node_overlay: true, ..Features::default() }, ..settings() }
}

fn overlay(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name }, "spec": spec })
}

fn only(key: &str, value: &str) -> Value {
    json!([{ "key": key, "operator": "In", "values": [value] }])
}

fn app(name: &str, replicas: u64, requests: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "replicas": replicas, "template": { "spec": { "containers": [
            { "name": "c", "resources": { "requests": requests, "limits": requests } },
        ] } } },
    })
}

fn scenario(manifests: &[Value]) -> Scenario {
    scenario_of("overlays", manifests).expect("the manifests are well-formed")
}

fn condition(rehearsal: &Rehearsal, overlay: &str, kind: &str) -> Condition {
    let now = truth(rehearsal);
    find_condition(&now.overlays[overlay].conditions, kind).expect("the condition is there").clone()
}

#[test]
fn a_price_decides_what_is_bought() {
    // One pod of three cores: the cheapest four cores are bought, unless something larger is said to cost nearly nothing.
    let wanted = overlay(
        "cheap",
        &json!({ "requirements": only(labels::INSTANCE_TYPE, "m-32x-amd64-linux"), "price": "0.0001" }),
    );
    let pod = app("web", 1, &json!({ "cpu": "3" }));
    let bought = |rehearsal: &Rehearsal| {
        let now = truth(rehearsal);
        let claim = now.claims.values().next().expect("one node was bought").clone();
        (claim.labels[labels::INSTANCE_TYPE].to_string(), claim.annotations.contains_key(labels::PRICE_OVERLAY_APPLIED))
    };
    tell(&scenario(&[pod.clone(), wanted.clone()]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        assert_intact(rehearsal, 1, "with the overlay");
        assert_eq!(bought(rehearsal), ("m-32x-amd64-linux".to_owned(), true));
        let ready = condition(rehearsal, "cheap", "Ready");
        assert_eq!((ready.status, ready.generation), (Status::True, 1));
    });
    tell(&scenario(&[pod, wanted]), settings(), async |rehearsal, _| {
        settled(rehearsal).await;
        let (kind, marked) = bought(rehearsal);
        assert!(kind != "m-32x-amd64-linux" && !marked, "without the gate nothing has changed: {kind}");
        assert!(truth(rehearsal).overlays["cheap"].conditions.is_empty());
    });
}

#[test]
fn a_resource_that_only_an_overlay_knows_is_bought_and_used() {
    let wanted = overlay(
        "dongles",
        &json!({ "requirements": only(labels::INSTANCE_TYPE, "c-4x-amd64-linux"), "capacity": { DONGLE: "2" } }),
    );
    let pods = app("web", 4, &json!({ "cpu": "100m", DONGLE: "1" }));
    tell(&scenario(&[pods, wanted]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        assert_intact(rehearsal, 4, "two nodes of two dongles");
        let now = truth(rehearsal);
        assert_eq!(now.claims.len(), 2);
        for claim in now.claims.values() {
            assert_eq!(&*claim.labels[labels::INSTANCE_TYPE], "c-4x-amd64-linux");
            assert_eq!(claim.allocatable.get(&DONGLE.into()), 2000);
            assert!(claim.annotations.contains_key(labels::CAPACITY_OVERLAY_APPLIED));
        }
    });
}

#[test]
fn an_overlay_that_comes_later_helps_pods_that_wait() {
    let pods = app("web", 1, &json!({ "cpu": "100m", DONGLE: "1" }));
    tell(&scenario(&[pods]), on(), async |rehearsal, _| {
        sleep(Duration::from_mins(2)).await;
        assert!(truth(rehearsal).claims.is_empty());
        apply(rehearsal, &overlay("dongles", &json!({ "requirements": [], "capacity": { DONGLE: "1" } })));
        settled(rehearsal).await;
        assert_intact(rehearsal, 1, "it runs");
    });
}

#[test]
fn a_conflict_is_named_and_ends_with_its_cause() {
    let price = |price: &str| json!({ "requirements": [], "price": price });
    let overlays = [overlay("a", &price("0.1")), overlay("b", &price("0.2"))];
    tell(&scenario(&overlays), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        let said = condition(rehearsal, "a", "ValidationSucceeded");
        assert_eq!((said.status, &*said.reason), (Status::False, "Conflict"));
        assert!(said.message.contains("NodeOverlay b"), "{}", said.message);
        assert_eq!(condition(rehearsal, "a", "Ready").status, Status::False);
        assert_eq!(condition(rehearsal, "b", "Ready").status, Status::True);
        delete(rehearsal, "NodeOverlay", "b");
        settled(rehearsal).await;
        assert_eq!(condition(rehearsal, "a", "Ready").status, Status::True);
    });
}

#[test]
fn a_wrong_overlay_is_named_and_the_others_hold() {
    // The API server's schema refuses this; an older definition, or none, would not.
    let fine = overlay("fine", &json!({ "requirements": [], "price": "0.1" }));
    tell(&scenario(&[fine]), on(), async |rehearsal, _| {
        settled(rehearsal).await;
        {
            let mut store = rehearsal.world.cluster.store();
            let like = store.overlay("fine").expect("it was applied");
            let errors = vec!["spec.capacity[cpu]: the cloud knows this resource; only others can be added".into()];
            store.apply_overlay(joiner::core::facts::Overlay {
                name: "wrong".into(),
                errors,
                conditions: Vec::new(),
                ..like
            });
        }
        settled(rehearsal).await;
        let said = condition(rehearsal, "wrong", "ValidationSucceeded");
        assert_eq!((said.status, &*said.reason), (Status::False, "RuntimeValidation"));
        assert!(said.message.contains("spec.capacity[cpu]"), "{}", said.message);
        assert_eq!(condition(rehearsal, "fine", "Ready").status, Status::True);
    });
}
