//! KWOK machines in a box: a store of Node objects behind a client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::api::classes::kwok::KwokNodeClass;
use crate::clouds::catalog::generated;
use crate::clouds::{Cloud, Deletion, Error, LaunchRefused, LaunchSpec, RepairAction};
use crate::core::facts::{Claim, Condition, InstanceType, NodeClass, Status, samples};
use crate::core::ids::{ClaimUid, ClassRef, ProviderId};
use crate::core::labels;
use crate::core::repair::Policies;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

/// Nodes by name, and what the next requests are answered with instead.
#[derive(Clone, Default)]
struct Store {
    nodes: Arc<Mutex<BTreeMap<String, Value>>>,
    trouble: Arc<Mutex<Vec<(u16, String)>>>,
}

impl Store {
    fn client(&self) -> Client {
        let store = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let store = store.clone();
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let trouble = store.trouble.lock().unwrap().pop();
                let (code, answer) = trouble.map_or_else(
                    || store.answer(&head.method, head.uri.path(), head.uri.query().unwrap_or_default(), body),
                    |(code, message)| (code, failure(code, &message)),
                );
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Response::builder().status(code).body(answer)?)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: Value) -> (u16, Value) {
        let mut nodes = self.nodes.lock().unwrap();
        let name = path.strip_prefix("/api/v1/nodes").unwrap().trim_matches('/').trim_end_matches("/status").to_owned();
        match *method {
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if nodes.contains_key(&name) {
                    return (409, failure(409, "exists"));
                }
                let mut node = body;
                node["metadata"]["uid"] = format!("uid of {name}").into();
                nodes.insert(name, node.clone());
                (201, node)
            }
            Method::GET if name.is_empty() => {
                let selected = query.split('&').find_map(|part| part.strip_prefix("labelSelector="));
                let uid = selected.map(|selector| selector.rsplit_once("%3D").unwrap().1.to_owned());
                let is_meant = |node: &&Value| {
                    uid.is_none() || node["metadata"]["labels"][NODECLAIM_UID].as_str() == uid.as_deref()
                };
                let items: Vec<_> = nodes.values().filter(is_meant).cloned().collect();
                (
                    200,
                    json!({ "kind": "NodeList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": items }),
                )
            }
            Method::GET => nodes.get(&name).map_or_else(|| (404, failure(404, "no")), |node| (200, node.clone())),
            Method::DELETE => match nodes.get(&name) {
                None => (404, failure(404, "no")),
                Some(node) if body["preconditions"]["uid"] != node["metadata"]["uid"] => (409, failure(409, "uid")),
                Some(_) => (200, nodes.remove(&name).unwrap()),
            },
            Method::PATCH => {
                let Some(node) = nodes.get_mut(&name) else { return (404, failure(404, "no")) };
                node["status"]["nodeInfo"] = body["status"]["nodeInfo"].clone();
                // The API server's own answer would carry all of nodeInfo.
                (200, json!({ "metadata": node["metadata"] }))
            }
            _ => (405, failure(405, "?")),
        }
    }

    fn only(&self) -> Value {
        let nodes = self.nodes.lock().unwrap();
        assert_eq!(nodes.len(), 1);
        nodes.values().next().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.nodes.lock().unwrap().len()
    }

    fn kwok(&self) -> Kwok {
        Kwok::new(self.client(), generated())
    }
}

fn failure(code: u16, message: &str) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Other" };
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": reason })
}

fn class(delay: Option<&str>, ready: Status) -> NodeClass {
    let mut body = KwokNodeClass::new("default", crate::api::classes::kwok::KwokNodeClassBody::default());
    body.spec.spec.node_registration_delay = delay.map(str::to_owned);
    NodeClass {
        reference: ClassRef { group: CLASS_GROUP.into(), kind: CLASS_KIND.into(), name: "default".into() },
        conditions: vec![Condition {
            reason: "Testing".into(),
            message: "on purpose".into(),
            ..samples::condition("Ready", ready)
        }],
        body: Arc::new(body),
        ..samples::class()
    }
}

fn claim() -> Claim {
    Claim {
        name: "default-x1".into(),
        uid: "0a1b".into(),
        labels: [("karpenter.sh/nodepool".into(), "default".into())].into(),
        annotations: [("note".into(), "kept".into())].into(),
        requirements: vec![
            Requirement::new("team", Operator::In, ["a"]),
            Requirement::new(labels::INSTANCE_TYPE, Operator::In, ["c-1x-amd64-linux", "c-2x-amd64-linux"]),
        ],
        requests: Resources::new().with("cpu", 700).with("pods", 3000).with("x/y", 1000),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        class: ClassRef { group: CLASS_GROUP.into(), kind: CLASS_KIND.into(), name: "default".into() },
        ..samples::claim()
    }
}

fn candidates(names: &[&str]) -> Vec<Arc<InstanceType>> {
    generated().into_iter().filter(|t| names.contains(&t.name.as_str())).map(Arc::new).collect()
}

fn spec(class: NodeClass) -> LaunchSpec {
    LaunchSpec {
        token: ClaimUid::from("0a1b"),
        claim: Arc::new(claim()),
        class: Arc::new(class),
        candidates: candidates(&["c-2x-amd64-linux", "c-1x-amd64-linux"]),
    }
}

#[tokio::test]
async fn a_node_is_made_as_karpenters_provider_makes_it() {
    let store = Store::default();
    let machine = store.kwok().create(&spec(class(None, Status::True))).await.unwrap();
    let node = store.only();
    let name = node["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("kwok-default-x1-"), "{name}");
    assert_eq!(node["spec"]["providerID"], format!("kwok://{name}"));
    assert_eq!(node["spec"]["taints"], json!([{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }]));
    assert_eq!(
        node["metadata"]["labels"],
        json!({
            "karpenter.sh/nodepool": "default", "team": "a", "node.kubernetes.io/instance-type": "c-1x-amd64-linux",
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "default-x1",
            "topology.kubernetes.io/zone": "test-zone-a", "karpenter.sh/capacity-type": "spot",
            "karpenter.kwok.sh/instance-size": "1", "karpenter.kwok.sh/instance-family": "c",
            "karpenter.kwok.sh/instance-cpu": "1", "karpenter.kwok.sh/instance-memory": "2Gi",
            "eks-node-viewer/instance-price": "0.019003", "kwok-partition": "a", "kwok.x-k8s.io/node": "fake",
            "karpenter.kwok.sh/nodeclaim-uid": "0a1b",
        })
    );
    assert_eq!(
        node["metadata"]["annotations"],
        json!({ "note": "kept", "kwok.x-k8s.io/node": "fake", "karpenter.kwok.sh/nodeclaim-name": "default-x1" })
    );
    assert_eq!(node["status"]["capacity"], json!({ "cpu": "700m", "pods": "3", "x/y": "1" }));
    assert_eq!(
        node["status"]["allocatable"],
        json!({ "cpu": "900m", "memory": "2038Mi", "pods": "16", "ephemeral-storage": "20Gi", "x/y": "1" })
    );
    assert_eq!(machine.token, Some("0a1b".into()));
    assert_eq!(machine.claim, Some("default-x1".into()));
    assert_eq!(machine.instance_type, Some("c-1x-amd64-linux".into()));
    assert_eq!(machine.capacity, claim().requests);
    assert!(!machine.labels.contains_key(labels::HOSTNAME));
}

#[tokio::test]
async fn the_cheapest_offering_that_can_be_had_is_taken() {
    let store = Store::default();
    let mut spec = spec(class(None, Status::True));
    for candidate in &mut spec.candidates {
        let mut changed = (**candidate).clone();
        for offering in &mut changed.offerings {
            let capacity_type = offering.capacity_type().map(ToString::to_string);
            offering.available = changed.name.as_str() == "c-2x-amd64-linux"
                && capacity_type.as_deref() == Some("on-demand")
                && offering.zone().is_some_and(|zone| &**zone == "test-zone-c");
        }
        *candidate = Arc::new(changed);
    }
    let machine = store.kwok().create(&spec).await.unwrap();
    assert_eq!(machine.instance_type, Some("c-2x-amd64-linux".into()));
    assert_eq!(machine.labels.get(labels::ZONE).map(|zone| &**zone), Some("test-zone-c"));
    assert_eq!(machine.labels.get(labels::CAPACITY_TYPE).map(|kind| &**kind), Some("on-demand"));
}

#[tokio::test]
async fn a_type_of_several_systems_becomes_a_node_of_one() {
    let mut spec = spec(class(None, Status::True));
    let mut both = (*spec.candidates[0]).clone();
    for requirement in &mut both.requirements {
        if &*requirement.key == labels::OS {
            requirement.values = vec!["windows".into(), "linux".into()];
        }
    }
    spec.candidates = vec![Arc::new(both)];
    let store = Store::default();
    store.kwok().create(&spec).await.unwrap();
    assert_eq!(store.only()["metadata"]["labels"][labels::OS], "linux");
    let mut windows = claim();
    windows.requirements.push(Requirement::new(labels::OS, Operator::NotIn, ["linux"]));
    spec.claim = Arc::new(windows);
    let store = Store::default();
    store.kwok().create(&spec).await.unwrap();
    assert_eq!(store.only()["metadata"]["labels"][labels::OS], "windows");
}

#[tokio::test]
async fn creating_twice_makes_one_node_even_when_the_first_answer_was_lost() {
    let store = Store::default();
    let kwok = store.kwok();
    let first = kwok.create(&spec(class(None, Status::True))).await.unwrap();
    // Another controller, asked for something that has become dearer meanwhile: still the machine that exists.
    let mut again = spec(class(None, Status::True));
    again.candidates = candidates(&["c-2x-amd64-linux"]);
    assert_eq!(store.kwok().create(&again).await.unwrap(), first);
    assert_eq!(store.count(), 1);
    assert_eq!(kwok.find(&"0a1b".into()).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(kwok.find(&"other".into()).await.unwrap(), []);
    assert_eq!(kwok.get(&first.id).await.unwrap().machine(), Some(first));
}

#[tokio::test]
async fn a_namesake_of_another_nodeclaim_is_not_taken_for_ours() {
    let store = Store::default();
    let kwok = store.kwok();
    kwok.create(&spec(class(None, Status::True))).await.unwrap();
    for node in store.nodes.lock().unwrap().values_mut() {
        node["metadata"]["labels"][NODECLAIM_UID] = "other".into();
    }
    let error = kwok.create(&spec(class(None, Status::True))).await.unwrap_err();
    assert!(error.to_string().contains("is not of this NodeClaim; delete that Node"), "{error}");
}

#[tokio::test]
async fn a_class_that_is_not_ready_refuses_the_launch() {
    let store = Store::default();
    let kwok = store.kwok();
    let error = kwok.create(&spec(class(None, Status::False))).await.unwrap_err();
    assert!(
        matches!(&error, Error::Launch(LaunchRefused::ClassNotReady(why)) if why.contains("on purpose")),
        "{error}"
    );
    let mut foreign = class(None, Status::True);
    foreign.body = Arc::new(());
    let error = kwok.create(&spec(foreign)).await.unwrap_err();
    assert!(matches!(error, Error::Launch(LaunchRefused::ClassNotReady(_))), "{error}");
    let mut leaving = class(None, Status::True);
    leaving.deleting = Some(jiff::Timestamp::UNIX_EPOCH);
    assert!(kwok.create(&spec(leaving)).await.is_err());
    let error = kwok.create(&spec(class(Some("soon"), Status::True))).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid { field, .. } if field.contains("nodeRegistrationDelay")), "{error}");
    assert_eq!(store.count(), 0);
    kwok.create(&spec(class(None, Status::Unknown))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_boots_is_seen_by_every_call_before_its_node_appears() {
    let store = Store::default();
    let kwok = store.kwok();
    let delayed = spec(class(Some("1m"), Status::True));
    let machine = kwok.create(&delayed).await.unwrap();
    assert_eq!(kwok.create(&delayed).await.unwrap(), machine);
    assert_eq!(store.count(), 0);
    assert_eq!(kwok.get(&machine.id).await.unwrap().machine(), Some(machine.clone()));
    assert_eq!(kwok.find(&"0a1b".into()).await.unwrap(), std::slice::from_ref(&machine));
    assert_eq!(kwok.list().await.unwrap().machines.len(), 1);
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(store.count(), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(store.count(), 1);
    assert_eq!(kwok.list().await.unwrap().machines.len(), 1);
    assert_eq!(kwok.create(&delayed).await.unwrap().id, machine.id);
}

#[tokio::test(start_paused = true)]
async fn a_machine_deleted_while_it_boots_never_appears_and_a_failed_announcement_is_repeated() {
    let store = Store::default();
    let kwok = store.kwok();
    let delayed = spec(class(Some("1m"), Status::True));
    let machine = kwok.create(&delayed).await.unwrap();
    assert_eq!(kwok.delete(&machine.id).await.unwrap(), Deletion::Gone);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!((store.count(), kwok.get(&machine.id).await.unwrap().machine()), (0, None));
    kwok.create(&delayed).await.unwrap();
    tokio::time::sleep(Duration::from_secs(59)).await;
    store.trouble.lock().unwrap().push((503, "later".to_owned()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(store.count(), 1);
}

#[tokio::test]
async fn deletion_is_in_progress_once_and_then_gone() {
    let store = Store::default();
    let kwok = store.kwok();
    let machine = kwok.create(&spec(class(None, Status::True))).await.unwrap();
    assert_eq!(kwok.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(kwok.delete(&machine.id).await.unwrap(), Deletion::Gone);
    assert_eq!(kwok.delete(&ProviderId::from("aws:///i-1")).await.unwrap(), Deletion::Gone);
}

#[tokio::test]
async fn a_node_that_is_nobodys_is_not_deleted() {
    let store = Store::default();
    let kwok = store.kwok();
    let machine = kwok.create(&spec(class(None, Status::True))).await.unwrap();
    for node in store.nodes.lock().unwrap().values_mut() {
        node["metadata"]["labels"].as_object_mut().unwrap().retain(|key, _| !key.contains("nodeclaim"));
    }
    let refused = kwok.delete(&machine.id).await.unwrap_err().to_string();
    assert!(refused.contains("is not marked as a NodeClaim's") && refused.contains("metadata.labels"), "{refused}");
    assert_eq!(store.count(), 1);
}

#[tokio::test]
async fn a_node_that_is_being_deleted_counts_as_gone() {
    let store = Store::default();
    let kwok = store.kwok();
    let machine = kwok.create(&spec(class(None, Status::True))).await.unwrap();
    for node in store.nodes.lock().unwrap().values_mut() {
        node["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z".into();
    }
    assert_eq!(kwok.delete(&machine.id).await.unwrap(), Deletion::Gone);
    assert_eq!(kwok.get(&machine.id).await.unwrap().machine(), None);
    assert_eq!(kwok.find(&"0a1b".into()).await.unwrap(), []);
    assert!(kwok.list().await.unwrap().machines[0].deleting);
    assert!(matches!(kwok.create(&spec(class(None, Status::True))).await, Err(Error::Temporary(_))));
}

#[tokio::test]
async fn nodes_of_karpenter_are_known_by_their_owner_and_other_nodes_are_left_alone() {
    let store = Store::default();
    let theirs = json!({
        "metadata": { "name": "theirs", "ownerReferences": [
            { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c9", "uid": "u9" },
        ] },
        "spec": { "providerID": "kwok://theirs" },
    });
    let young = json!({ "metadata": { "name": "young" }, "spec": { "providerID": "kwok://young" } });
    let real = json!({ "metadata": { "name": "real" }, "spec": { "providerID": "aws:///i-1" } });
    let all = [("theirs", theirs), ("young", young), ("real", real)];
    store.nodes.lock().unwrap().extend(all.map(|(name, node)| (name.to_owned(), node)));
    let listing = store.kwok().list().await.unwrap();
    assert!(listing.complete);
    let seen: Vec<_> =
        listing.machines.iter().map(|m| (m.id.as_str(), m.token.as_ref().map(ClaimUid::as_str))).collect();
    assert_eq!(seen, [("kwok://theirs", Some("u9")), ("kwok://young", None)]);
}

#[tokio::test]
async fn a_reboot_changes_the_boot_id() {
    let store = Store::default();
    let kwok = store.kwok();
    let machine = kwok.create(&spec(class(None, Status::True))).await.unwrap();
    kwok.reboot(&machine.id, "op1").await.unwrap();
    assert_eq!(store.only()["status"]["nodeInfo"], json!({ "bootID": "kwok-op1" }));
    let error = kwok.reboot(&ProviderId::from("kwok://none"), "op1").await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn failures_come_back_in_the_clouds_classes() {
    let store = Store::default();
    let kwok = store.kwok();
    let create = async |code: u16| {
        store.trouble.lock().unwrap().push((code, "said".to_owned()));
        kwok.create(&spec(class(None, Status::True))).await.unwrap_err()
    };
    assert_eq!(
        create(403).await.to_string(),
        r#"not authorized to create nodes: said; add a rule to joiner's ClusterRole: apiGroups [""], resources ["nodes"], verbs ["create"]"#
    );
    assert!(matches!(create(429).await, Error::Throttled { .. }));
    assert!(matches!(create(422).await, Error::Invalid { .. }));
    assert!(matches!(create(500).await, Error::Unknown(_)));
    store.trouble.lock().unwrap().push((500, "said".to_owned()));
    assert!(matches!(kwok.list().await, Err(Error::Temporary(_))));
    assert_eq!(store.count(), 0);
}

#[tokio::test]
async fn what_the_cloud_says_of_itself() {
    let kwok = Store::default().kwok();
    assert_eq!(kwok.name(), "kwok");
    assert_eq!(kwok.class_kinds(), [("karpenter.kwok.sh", "KWOKNodeClass")]);
    assert_eq!(kwok.label_keys().len(), 4);
    assert_eq!(kwok.catalog(&class(None, Status::True)).await.unwrap().types.len(), 144);
    assert_eq!(kwok.drift(&claim(), &class(None, Status::True)).await.unwrap(), None);
    let policies = kwok.repair_policies();
    assert!(Policies::new(policies.clone()).is_ok());
    let reboot = policies.iter().find(|policy| policy.action == RepairAction::Reboot).unwrap();
    assert_eq!((reboot.condition, reboot.toleration), ("KWOKRebootRequired", Duration::from_secs(30)));
}
