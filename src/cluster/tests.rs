//! The client against an API server in a box: a service that answers from a script and remembers what it was asked.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use http::Response;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::convert::ClassKind;
use super::*;
use crate::api::classes::kwok::KwokNodeClass;
use crate::core::facts::{Condition, Effect, Kind, OwnerClaim, Status, Taint};
use crate::core::resources::Resources;
use crate::licence;

/// What the box answers.
#[derive(Clone)]
enum Reply {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status, a `Retry-After` and a plain body, as from flow control or a balancer.
    Plain(u16, Option<u32>, &'static str),
    /// Events of a watch, one a line, then the end of the stream.
    Lines(Vec<Value>),
    /// No answer, ever.
    Silence,
    /// Nobody listens.
    Refused,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    content: String,
    body: Value,
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

#[derive(Clone)]
struct Server {
    asked: Arc<Mutex<Vec<Asked>>>,
    script: Arc<Script>,
}

impl Server {
    fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self { asked: Arc::default(), script: Arc::new(script) }
    }

    /// Answers the replies one after the other, whatever is asked.
    fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let queue = Mutex::new(replies.into_iter().collect::<VecDeque<_>>());
        Self::new(move |asked| queue.lock().unwrap().pop_front().unwrap_or_else(|| panic!("unexpected {asked:?}")))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let asked = Asked {
                    method: head.method.to_string(),
                    path: head.uri.to_string(),
                    content: head.headers.get("content-type").map_or("", |v| v.to_str().unwrap()).to_owned(),
                    body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
                };
                server.asked.lock().unwrap().push(asked.clone());
                let response = Response::builder();
                let response = match (server.script)(&asked) {
                    Reply::Json(code, body) => response.status(code).body(Body::from(body.to_string().into_bytes()))?,
                    Reply::Plain(code, after, text) => {
                        let response = match after {
                            Some(seconds) => response.header("Retry-After", seconds),
                            None => response,
                        };
                        response.status(code).body(Body::from(text.as_bytes().to_vec()))?
                    }
                    Reply::Lines(lines) => {
                        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                        let text = lines.join("\n") + "\n";
                        response.body(Body::from(text.into_bytes()))?
                    }
                    Reply::Silence => std::future::pending().await,
                    Reply::Refused => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
                };
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(response)
            }
        });
        Client::new(service, "default")
    }

    fn cluster(&self) -> KubeCluster {
        KubeCluster::new(self.client(), options())
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn last(&self) -> Asked {
        self.asked().pop().unwrap()
    }
}

fn options() -> Options {
    let mut options = Options::new(Arc::new(|| "2026-11-21T12:00:00.5Z".parse().unwrap()));
    options.classes =
        vec![ClassKind::of::<KwokNodeClass>("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses")];
    options.page_size = 2;
    options
}

fn status(code: u16, reason: &str, message: &str) -> Reply {
    Reply::Json(
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message }),
    )
}

fn claim_json(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "5" },
        "spec": { "requirements": [], "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "n" } },
    })
}

fn pod() -> (ObjectKey, PodUid) {
    (ObjectKey::new("shop", "web"), PodUid::from("pu"))
}

async fn evict_against(reply: Reply) -> Error {
    let (key, uid) = pod();
    Server::replies([reply]).cluster().evict(&key, &uid).await.unwrap_err()
}

#[tokio::test]
async fn an_eviction_names_the_pod_that_is_meant() {
    let server = Server::replies([Reply::Json(201, json!({ "kind": "Status", "status": "Success" }))]);
    let (key, uid) = pod();
    let cluster = server.cluster();
    cluster.evict(&key, &uid).await.unwrap();
    let asked = server.last();
    assert_eq!((&*asked.method, &*asked.path), ("POST", "/api/v1/namespaces/shop/pods/web/eviction"));
    assert_eq!(asked.body["deleteOptions"], json!({ "preconditions": { "uid": "pu" } }));
    assert_eq!(asked.body["kind"], "Eviction");
    assert_eq!(cluster.counts().of("create", "pods/eviction"), 1);
}

/// What an API server of Kubernetes 1.36 says when a budget forbids an eviction.
fn forbidden(details: &Value) -> Reply {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Reply::Json(
        429,
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "message": message, "details": details,
        }),
    )
}

#[tokio::test]
async fn a_budget_that_forbids_is_named_by_the_cause() {
    let needs = "The disruption budget web needs 2 healthy pods and has 1 currently";
    let other = json!({ "reason": "FieldValueInvalid", "message": "something else" });
    let cause = json!({ "reason": "DisruptionBudget", "message": needs });
    let error = evict_against(forbidden(&json!({ "causes": [other, cause] }))).await;
    let Error::Budget { code: 429, budget, retry_after, message } = &error else { panic!("{error:?}") };
    assert_eq!((budget.as_deref(), *retry_after), (Some("web"), None));
    assert_eq!(*message, format!("Cannot evict pod as it would violate the pod's disruption budget. {needs}"));
    assert_eq!(error.to_string(), *message);
    // Its controller has not looked at the budget yet.
    let processed = "The disruption budget web is still being processed by the server.";
    let cause = json!({ "reason": "DisruptionBudget", "message": processed });
    let error = evict_against(forbidden(&json!({ "causes": [cause], "retryAfterSeconds": 10 }))).await;
    let Error::Budget { budget, retry_after, .. } = &error else { panic!("{error:?}") };
    assert_eq!((budget.as_deref(), *retry_after), (Some("web"), Some(Duration::from_secs(10))));
}

#[tokio::test]
async fn a_conflict_about_a_budget_does_not_mean_that_the_pod_is_gone() {
    let about = "Operation cannot be fulfilled on poddisruptionbudgets.policy \"web\": the object has been modified";
    let error = evict_against(status(409, "Conflict", about)).await;
    assert!(matches!(&error, Error::Temporary(_)), "{error}");
    let error = evict_against(status(409, "Conflict", "Precondition failed: UID in precondition: pu")).await;
    assert!(matches!(&error, Error::NotFound(_)), "{error}");
}

#[tokio::test]
async fn a_budget_that_forbids_is_known_by_the_message_alone() {
    let error = evict_against(forbidden(&json!({ "retryAfterSeconds": 10 }))).await;
    let Error::Budget { code: 429, budget, retry_after, message } = &error else { panic!("{error:?}") };
    assert_eq!((budget, *retry_after), (&None, Some(Duration::from_secs(10))));
    assert_eq!(message, "Cannot evict pod as it would violate the pod's disruption budget.");
    // Two budgets on one pod.
    let two = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let error = evict_against(status(500, "InternalError", two)).await;
    assert!(matches!(&error, Error::Budget { code: 500, budget: None, message, .. } if message == two), "{error:?}");
}

#[tokio::test]
async fn an_api_server_that_has_too_much_to_do_is_no_budget() {
    // Flow control answers in plain text with a header.
    let error = evict_against(Reply::Plain(429, Some(3), "Too many requests, please try again later.")).await;
    let Error::TooManyRequests { retry_after, message } = error else { panic!("{error:?}") };
    assert_eq!((retry_after, &*message), (Some(Duration::from_secs(3)), "Too many requests, please try again later."));
    // Who is going down, or not up yet.
    let error = evict_against(Reply::Plain(503, Some(5), "apiserver is shutting down")).await;
    let Error::TooManyRequests { retry_after, message } = error else { panic!("{error:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(5)));
    assert_eq!(message, "503 Service Unavailable: apiserver is shutting down");
    let busy = "the server has received too many requests and has asked us to try again later";
    let error = evict_against(status(429, "TooManyRequests", busy)).await;
    assert!(matches!(&error, Error::TooManyRequests { message, .. } if message == busy), "{error:?}");
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let forbidden =
        "pods \"web\" is forbidden: User \"system:serviceaccount:joiner\" cannot create resource \"pods/eviction\"";
    let error = evict_against(status(403, "Forbidden", forbidden)).await;
    assert_eq!(
        error.to_string(),
        "forbidden: create pods/eviction; add a rule to joiner's ClusterRole: apiGroups [\"\"], resources [\"pods/eviction\"], verbs [\"create\"]"
    );
    let error = evict_against(status(403, "Forbidden", "exceeded quota")).await;
    assert!(matches!(&error, Error::Invalid { message, .. } if message == "exceeded quota"), "{error}");
    // The UID did not match: the pod that was meant is gone.
    assert!(matches!(evict_against(status(409, "Conflict", "uid")).await, Error::NotFound(_)));
    assert!(matches!(evict_against(status(404, "NotFound", "no")).await, Error::NotFound(_)));
    assert!(matches!(evict_against(status(422, "Invalid", "bad")).await, Error::Invalid { .. }));
    assert!(matches!(evict_against(status(401, "Unauthorized", "who")).await, Error::Temporary(_)));
    let webhook = "Internal error occurred: failed calling webhook \"x\": connection refused";
    assert!(matches!(evict_against(status(500, "InternalError", webhook)).await, Error::Temporary(_)));
    for code in [408, 500, 502, 503, 504] {
        let error = evict_against(Reply::Plain(code, None, "upstream gone")).await;
        assert!(matches!(&error, Error::Unknown(text) if text.contains("Pod shop/web")), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_unknown_for_writes_and_harmless_for_reads() {
    let started = Instant::now();
    let error = evict_against(Reply::Silence).await;
    assert_eq!(error.to_string(), "outcome unknown: create Pod shop/web: no answer within 30 s");
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    let error = Server::replies([Reply::Silence]).cluster().list_claims().await.unwrap_err();
    assert!(matches!(error, Error::Temporary(_)), "{error}");
    // Where nobody listens, nothing happened.
    let error = evict_against(Reply::Refused).await;
    assert!(matches!(&error, Error::Temporary(text) if text.contains("cannot be reached")), "{error}");
}

#[tokio::test]
async fn conflicts_and_namesakes_are_different_things() {
    let name = ClaimName::from("c");
    let patch = ClaimPatch { version: Some("4".into()), ..ClaimPatch::default() };
    let cluster = Server::replies([status(409, "Conflict", "the object has been modified")]).cluster();
    let error = cluster.patch_claim(&name, &patch).await.unwrap_err();
    assert_eq!(error.to_string(), "NodeClaim c was changed by somebody else");
    let cluster = Server::replies([status(409, "AlreadyExists", "exists")]).cluster();
    assert!(matches!(cluster.create_claim(&draft()).await.unwrap_err(), Error::Exists(_)));
    let cluster = Server::replies([Reply::Plain(404, None, "404 page not found")]).cluster();
    let error = cluster.create_claim(&draft()).await.unwrap_err().to_string();
    assert!(error.contains("joiner crds | kubectl apply -f -"), "{error}");
}

fn draft() -> ClaimDraft {
    ClaimDraft {
        name: "c".into(),
        pool: "p".into(),
        pool_uid: "pu".into(),
        labels: Arc::default(),
        annotations: Arc::default(),
        requirements: Arc::default(),
        requests: Resources::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        class: crate::core::ids::ClassRef { group: "g".into(), kind: "K".into(), name: "n".into() },
        termination_grace: None,
        expire_after: None,
    }
}

#[tokio::test]
async fn nodeclaims_are_created_and_patched_with_small_requests() {
    let server = Server::new(|_| Reply::Json(200, claim_json("c")));
    let cluster = server.cluster();
    let claim = cluster.create_claim(&draft()).await.unwrap();
    assert_eq!((claim.uid.as_str(), &*claim.version), ("uid-c", "5"));
    let asked = server.last();
    assert_eq!((&*asked.method, &*asked.path), ("POST", "/apis/karpenter.sh/v1/nodeclaims"));
    assert_eq!(asked.body["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);

    let patch = ClaimPatch {
        version: Some("5".into()),
        labels: [("a".into(), "b".into())].into(),
        finalizers: Some(vec!["karpenter.sh/termination".into()]),
        ..ClaimPatch::default()
    };
    cluster.patch_claim(&claim.name, &patch).await.unwrap();
    let asked = server.last();
    assert_eq!((&*asked.method, &*asked.path), ("PATCH", "/apis/karpenter.sh/v1/nodeclaims/c"));
    assert_eq!(asked.content, "application/merge-patch+json");
    assert_eq!(
        asked.body,
        json!({ "metadata": { "resourceVersion": "5", "labels": { "a": "b" }, "finalizers": ["karpenter.sh/termination"] } })
    );

    let patch = ClaimStatusPatch {
        provider_id: Some("kwok://n".into()),
        capacity: Some(Resources::new().with("cpu", 4000).with("memory", 1024 * 1024 * 1000)),
        conditions: Some(vec![Condition {
            kind: "Launched".into(),
            status: Status::True,
            reason: "Launched".into(),
            message: "".into(),
            since: "2026-11-21T11:59:59.9Z".parse().unwrap(),
            generation: 1,
        }]),
        ..ClaimStatusPatch::default()
    };
    cluster.patch_claim_status(&claim.name, &patch).await.unwrap();
    let asked = server.last();
    assert_eq!(asked.path, "/apis/karpenter.sh/v1/nodeclaims/c/status");
    assert_eq!(
        asked.body,
        json!({ "status": {
            "providerID": "kwok://n",
            "capacity": { "cpu": "4", "memory": "1Mi" },
            "conditions": [{
                "type": "Launched", "status": "True", "reason": "Launched", "message": "",
                "lastTransitionTime": "2026-11-21T11:59:59Z", "observedGeneration": 1,
            }],
        } })
    );
}

#[tokio::test]
async fn lists_are_not_replaced_without_the_version_they_were_made_from() {
    let cluster = Server::replies([]).cluster();
    let patch = ClaimPatch { finalizers: Some(Vec::new()), ..ClaimPatch::default() };
    let error = cluster.patch_claim(&"c".into(), &patch).await.unwrap_err().to_string();
    assert!(error.contains("needs the resourceVersion"), "{error}");
    let patch = NodePatch { taints: Some(Vec::new()), ..NodePatch::default() };
    assert!(matches!(cluster.patch_node(&"n".into(), &patch).await.unwrap_err(), Error::Invalid { .. }));
}

#[tokio::test]
async fn a_node_is_taken_over_in_one_request() {
    let node = json!({ "metadata": { "name": "n", "uid": "nu", "resourceVersion": "8", "creationTimestamp": "2026-11-21T12:00:00Z" } });
    let server = Server::new(move |_| Reply::Json(200, node.clone()));
    let cluster = server.cluster();
    let mut patch = NodePatch {
        version: Some("7".into()),
        labels: [("karpenter.sh/registered".into(), "true".into())].into(),
        annotations: [("example.com/team".into(), "a".into()), ("karpenter.sh/x".into(), "y".into())].into(),
        taints: Some(vec![Taint { key: "k".into(), value: "v".into(), effect: Effect::NoSchedule }]),
        finalizers: Some(vec!["karpenter.sh/termination".into()]),
        owner: Some(OwnerClaim { name: "c".into(), uid: "cu".into() }),
        ..NodePatch::default()
    };
    let node = cluster.patch_node(&"n".into(), &patch).await.unwrap().expect("it is answered with what it is then");
    let missing = [
        "label karpenter.sh/registered",
        "annotation karpenter.sh/x",
        "taint k",
        "finalizer karpenter.sh/termination",
        "owner NodeClaim c",
    ];
    assert_eq!(patch.missing_from(&node), missing, "of a Node's annotations only Karpenter's are known");
    let asked = server.last();
    assert_eq!((&*asked.path, &*asked.content), ("/api/v1/nodes/n", "application/strategic-merge-patch+json"));
    assert_eq!(
        asked.body,
        json!({
            "metadata": {
                "resourceVersion": "7",
                "labels": { "karpenter.sh/registered": "true" },
                "annotations": { "example.com/team": "a", "karpenter.sh/x": "y" },
                "finalizers": ["karpenter.sh/termination"],
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "cu",
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": { "taints": [{ "key": "k", "value": "v", "effect": "NoSchedule" }] },
        })
    );
    patch.disowned = vec![OwnerClaim { name: "d".into(), uid: "du".into() }];
    cluster.patch_node(&"n".into(), &patch).await.unwrap();
    assert_eq!(server.last().body["metadata"]["ownerReferences"][1], json!({ "$patch": "delete", "uid": "du" }));
    patch.owner = None;
    patch.without_labels = vec!["karpenter.sh/initialized".into()];
    cluster.patch_node(&"n".into(), &patch).await.unwrap();
    let asked = server.last();
    let labels = json!({ "karpenter.sh/registered": "true", "karpenter.sh/initialized": null });
    assert_eq!(asked.body["metadata"]["labels"], labels, "null takes a label off");
    assert_eq!(asked.content, "application/merge-patch+json");
    assert_eq!(asked.body["spec"]["taints"], json!([{ "key": "k", "value": "v", "effect": "NoSchedule" }]));
}

#[tokio::test]
async fn deletions_nominations_pools_and_events_say_what_is_meant() {
    let server = Server::new(|_| Reply::Json(200, json!({})));
    let cluster = server.cluster();
    let (key, uid) = pod();
    cluster.delete_node(&"n".into(), &"nu".into()).await.unwrap();
    assert_eq!(server.last().body["preconditions"]["uid"], "nu");
    cluster.delete_pod(&key, &uid, 0).await.unwrap();
    let asked = server.last();
    assert_eq!((&*asked.method, &*asked.path), ("DELETE", "/api/v1/namespaces/shop/pods/web"));
    assert_eq!((&asked.body["gracePeriodSeconds"], &asked.body["preconditions"]["uid"]), (&json!(1), &json!("pu")));
    cluster.delete_claim(&"c".into(), &"u".into()).await.unwrap();
    assert_eq!((&*server.last().method, &server.last().body["preconditions"]["uid"]), ("DELETE", &json!("u")));
    cluster.nominate(&key, &uid, Some(&"n".into())).await.unwrap();
    let asked = server.last();
    assert_eq!(asked.path, "/api/v1/namespaces/shop/pods/web/status");
    assert_eq!(asked.body, json!({ "metadata": { "uid": "pu" }, "status": { "nominatedNodeName": "n" } }));
    cluster.nominate(&key, &uid, None).await.unwrap();
    assert_eq!(server.last().body["status"], json!({ "nominatedNodeName": null }));
    let patch = PoolPatch { annotations: [("karpenter.sh/nodepool-hash".into(), "1".into())].into() };
    cluster.patch_pool(&"p".into(), &patch).await.unwrap();
    assert_eq!(server.last().body, json!({ "metadata": { "annotations": { "karpenter.sh/nodepool-hash": "1" } } }));
    let patch = PoolStatusPatch { nodes: Some(2), class_generation: Some(3), ..PoolStatusPatch::default() };
    cluster.patch_pool_status(&"p".into(), &patch).await.unwrap();
    let asked = server.last();
    assert_eq!(asked.path, "/apis/karpenter.sh/v1/nodepools/p/status");
    assert_eq!(asked.body, json!({ "status": { "nodes": 2, "nodeClassObservedGeneration": 3 } }));
    let patch = PoolStatusPatch {
        resources: Some(Resources::new().with("cpu", 2000)),
        without_resources: vec!["nvidia.com/gpu".into()],
        ..PoolStatusPatch::default()
    };
    cluster.patch_pool_status(&"p".into(), &patch).await.unwrap();
    let asked = server.last();
    assert_eq!(asked.body, json!({ "status": { "resources": { "cpu": "2", "nvidia.com/gpu": null } } }));
    let announcement = Announcement {
        regarding: Regarding::Claim("c".into(), "cu".into()),
        warning: true,
        reason: "InsufficientCapacityError",
        message: "all of it is sold out".to_owned(),
    };
    cluster.announce(&announcement).await.unwrap();
    let asked = server.last();
    assert_eq!(asked.path, "/api/v1/namespaces/default/events");
    assert_eq!(asked.body["source"]["component"], "karpenter");
    assert_eq!((&asked.body["type"], &asked.body["metadata"]["generateName"]), (&json!("Warning"), &json!("c.")));
    assert_eq!(asked.body["message"], "all of it is sold out");
    assert_eq!(asked.body["firstTimestamp"], "2026-11-21T12:00:00Z");
    assert_eq!(
        asked.body["involvedObject"],
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "cu" })
    );
}

#[tokio::test]
async fn a_nomination_of_a_namesake_is_not_found() {
    let (key, uid) = pod();
    let message = "Pod \"web\" is invalid: metadata.uid: Invalid value: \"pu\": field is immutable";
    let cluster = Server::replies([status(422, "Invalid", message)]).cluster();
    assert!(matches!(cluster.nominate(&key, &uid, None).await.unwrap_err(), Error::NotFound(_)));
}

#[tokio::test]
async fn nodeclaims_are_listed_page_by_page() {
    let server = Server::replies([
        Reply::Json(200, json!({ "metadata": { "continue": "tok" }, "items": [claim_json("a"), claim_json("b")] })),
        Reply::Json(200, json!({ "metadata": {}, "items": [claim_json("c")] })),
    ]);
    let claims = server.cluster().list_claims().await.unwrap();
    assert_eq!(claims.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(server.last().path, "/apis/karpenter.sh/v1/nodeclaims?limit=2&continue=tok");
}

#[tokio::test]
async fn a_nodeclaim_is_read_by_its_name() {
    let server = Server::replies([Reply::Json(200, claim_json("a")), status(404, "NotFound", "not found")]);
    let cluster = server.cluster();
    let claim = cluster.get_claim(&"a".into()).await.unwrap();
    assert_eq!(claim.map(|claim| claim.name.clone()), Some("a".into()));
    assert_eq!(server.last().path, "/apis/karpenter.sh/v1/nodeclaims/a");
    assert_eq!(cluster.get_claim(&"a".into()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn those_who_look_for_their_nodes_at_the_same_time_share_a_list() {
    let node = |name: &str| json!({ "metadata": { "name": name, "uid": name }, "spec": { "providerID": format!("sim://{name}") } });
    let server = Server::new(move |asked| match asked.path.as_str() {
        "/api/v1/nodes?limit=2" => Reply::Json(
            200,
            json!({ "metadata": { "continue": "tok" }, "items": [node("a"), { "metadata": { "name": "nameless" } }] }),
        ),
        "/api/v1/nodes?limit=2&continue=tok" => {
            Reply::Json(200, json!({ "metadata": {}, "items": [node("b"), node("gone")] }))
        }
        "/api/v1/nodes/a" => Reply::Json(200, node("a")),
        "/api/v1/nodes/b" => Reply::Json(200, node("b")),
        _ => status(404, "NotFound", ""),
    });
    let cluster = server.cluster();
    let ids: Vec<ProviderId> = ["a", "b", "gone", "never"].map(|name| format!("sim://{name}").into()).into();
    let found = futures::future::join_all(ids.iter().map(|id| cluster.find_node(id))).await;
    let names: Vec<_> = found.into_iter().map(|found| found.unwrap().map(|node| node.name.to_string())).collect();
    assert_eq!(names, [Some("a".to_owned()), Some("b".to_owned()), None, None]);
    let lists = || server.asked().iter().filter(|asked| asked.path == "/api/v1/nodes?limit=2").count();
    assert_eq!(lists(), 1);
    tokio::time::advance(Duration::from_millis(1)).await;
    cluster.find_node(&ids[0]).await.unwrap();
    assert_eq!(lists(), 2, "who asks later is not told what was");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_volumes_at_the_same_time_share_a_list() {
    let one = |name: &str, node: &str| {
        let spec =
            json!({ "attacher": "csi", "nodeName": node, "source": { "persistentVolumeName": format!("pv-{name}") } });
        json!({ "metadata": { "name": name, "uid": name }, "spec": spec })
    };
    let server = Server::new(move |asked| match asked.path.as_str() {
        "/apis/storage.k8s.io/v1/volumeattachments?limit=2" => {
            Reply::Json(200, json!({ "metadata": { "continue": "tok" }, "items": [one("x", "a"), one("y", "b")] }))
        }
        "/apis/storage.k8s.io/v1/volumeattachments?limit=2&continue=tok" => {
            Reply::Json(200, json!({ "metadata": {}, "items": [one("z", "a"), { "metadata": { "name": "unclear" } }] }))
        }
        _ => status(404, "NotFound", ""),
    });
    let cluster = server.cluster();
    let nodes: Vec<NodeName> = ["a", "b", "c"].map(NodeName::from).into();
    let found = futures::future::join_all(nodes.iter().map(|node| cluster.attached_to(node))).await;
    let names: Vec<Vec<_>> =
        found.into_iter().map(|on| on.unwrap().iter().map(|one| one.name.to_string()).collect()).collect();
    assert_eq!(names, [vec!["x", "z"], vec!["y"], vec![]]);
    assert_eq!(server.asked().len(), 2, "one list of two pages");
    tokio::time::advance(Duration::from_millis(1)).await;
    cluster.attached_to(&nodes[0]).await.unwrap();
    assert_eq!(server.asked().len(), 4, "who asks later is not told what was");
}

#[tokio::test]
async fn the_slices_of_a_node_name_it_or_are_owned_by_it() {
    let slice = |name: &str, spec: Value, owners: Value| {
        let mut spec = spec;
        spec["driver"] = "gpu.example.com".into();
        spec["pool"] = json!({ "name": "pool", "generation": 3, "resourceSliceCount": 2 });
        json!({ "metadata": { "name": name, "ownerReferences": owners }, "spec": spec })
    };
    let owner = |name: &str| json!([{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": name }]);
    let named = json!({ "metadata": {}, "items": [slice("named", json!({ "nodeName": "node-1" }), owner("node-1"))] });
    let nameless = json!({ "metadata": {}, "items": [
        slice("owned", json!({ "allNodes": true }), owner("node-1")),
        slice("of-another", json!({ "allNodes": true }), owner("node-2")),
        slice("of-all", json!({ "allNodes": true }), json!([])),
        { "metadata": { "name": "unclear" }, "spec": { "driver": "", "pool": { "name": "pool", "resourceSliceCount": 1 } } },
    ] });
    let server = Server::replies([Reply::Json(200, named), Reply::Json(200, nameless)]);
    let found = server.cluster().slices_of(&"node-1".into()).await.unwrap();
    assert_eq!(found.iter().map(|slice| &*slice.name).collect::<Vec<_>>(), ["named", "owned"]);
    assert_eq!(
        (&*found[0].driver, &*found[0].pool, found[0].generation, found[0].of),
        ("gpu.example.com", "pool", 3, 2)
    );
    let path = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D";
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, [format!("{path}node-1&limit=2"), format!("{path}&limit=2")]);
}

#[tokio::test]
async fn the_pods_of_a_node_are_listed_page_by_page() {
    let pod = |name: &str| json!({ "metadata": { "name": name, "namespace": "default", "uid": name }, "spec": { "containers": [] } });
    let server = Server::replies([
        Reply::Json(200, json!({ "metadata": { "continue": "tok" }, "items": [pod("a"), pod("b")] })),
        Reply::Json(200, json!({ "metadata": {}, "items": [pod("c")] })),
    ]);
    let pods = server.cluster().pods_on(&"node-1".into()).await.unwrap();
    assert_eq!(pods.iter().map(|pod| &*pod.key.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(server.last().path, "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&limit=2&continue=tok");
}

#[tokio::test(start_paused = true)]
async fn requests_keep_to_the_rate_and_the_lease_does_not_wait() {
    let server = Server::new(|asked| {
        if asked.path.contains("leases") && asked.method == "GET" {
            return status(404, "NotFound", "");
        }
        Reply::Json(200, json!({ "metadata": { "resourceVersion": "1" } }))
    });
    let cluster = KubeCluster::new(server.client(), Options { qps: 2.0, burst: 3, ..options() });
    let started = Instant::now();
    for _ in 0..7 {
        cluster.delete_claim(&"c".into(), &"u".into()).await.unwrap();
    }
    assert_eq!(started.elapsed().as_millis(), 2000);
    cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!(started.elapsed().as_millis(), 2000);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_for_his_turn_holds_up_nobody() {
    let server = Server::new(|_| Reply::Json(200, json!({ "metadata": { "resourceVersion": "1" } })));
    let cluster = KubeCluster::new(server.client(), Options { qps: 1.0, burst: 1, ..options() });
    let (name, uid) = (ClaimName::from("c"), ClaimUid::from("u"));
    cluster.delete_claim(&name, &uid).await.unwrap();
    let given_up =
        (0..100).map(|_| tokio::time::timeout(Duration::from_millis(500), cluster.delete_claim(&name, &uid)));
    assert!(futures::future::join_all(given_up).await.iter().all(Result::is_err));
    let started = Instant::now();
    cluster.delete_claim(&name, &uid).await.unwrap();
    assert_eq!((started.elapsed().as_millis(), server.asked().len()), (500, 2));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_turn_comes_after_the_lease_is_lost_is_not_sent_and_a_read_is() {
    let server = Server::new(|asked| match asked.method.as_str() {
        "GET" => status(404, "NotFound", ""),
        _ => Reply::Json(200, json!({ "metadata": { "resourceVersion": "1" } })),
    });
    let cluster = KubeCluster::new(server.client(), Options { qps: 0.1, burst: 1, ..options() });
    let until = Instant::now() + Duration::from_secs(9);
    let licence: licence::Licence = Arc::new(move || Instant::now() < until);
    let (name, uid) = (ClaimName::from("c"), ClaimUid::from("u"));
    let delete = || licence::under(Arc::clone(&licence), cluster.delete_claim(&name, &uid));
    delete().await.unwrap();
    let error = delete().await.unwrap_err();
    assert!(
        matches!(&error, Error::Temporary(why) if why == &format!("NodeClaim c: {}", licence::WITHDRAWN)),
        "{error}"
    );
    assert!(licence::under(Arc::clone(&licence), cluster.get_claim(&name)).await.unwrap().is_none());
    assert_eq!(server.asked().iter().map(|asked| asked.method.as_str()).collect::<Vec<_>>(), ["DELETE", "GET"]);
    // Whoever gives no licence needs none.
    cluster.delete_claim(&name, &uid).await.unwrap();
}

// The lease.

fn lease_json(version: &str, holder: &str, seconds: i64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "karpenter-leader-election", "namespace": "kube-system", "resourceVersion": version, "uid": "lu" },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 4,
            "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z",
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_created() {
    let server = Server::replies([status(404, "NotFound", ""), Reply::Json(201, lease_json("1", "me", 15))]);
    let lease = server.cluster().renew_lease("me", &|| None).await.unwrap();
    let object = Regarding::Lease(ObjectKey::new("kube-system", "karpenter-leader-election"), "lu".into());
    let term = Duration::from_secs(15);
    assert_eq!(lease, Lease { holder: "me".to_owned(), remaining: term, object, audit: None, record: None });
    let asked = server.last();
    assert_eq!((&*asked.method, &*asked.path), ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"));
    assert_eq!(asked.body["spec"]["renewTime"], "2026-11-21T12:00:00.500000Z");
    assert_eq!(asked.body["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_lease_is_respected_until_it_was_unchanged_for_its_duration_as_seen_from_here() {
    // Its renewTime is years ago, but nobody's clock but ours counts.
    let server = Server::new(|asked| match asked.method.as_str() {
        "GET" => Reply::Json(200, lease_json("7", "other", 15)),
        _ => Reply::Json(200, lease_json("8", "me", 15)),
    });
    let cluster = server.cluster();
    let lease = cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!((&*lease.holder, lease.remaining), ("other", Duration::from_secs(15)));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(cluster.renew_lease("me", &|| None).await.unwrap().remaining, Duration::from_secs(5));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(cluster.renew_lease("me", &|| None).await.unwrap().holder, "me");
    let asked = server.last();
    assert_eq!((&*asked.method, &asked.body["metadata"]["resourceVersion"]), ("PUT", &json!("7")));
    assert_eq!(asked.body["spec"]["leaseTransitions"], 5);
    assert_eq!(asked.body["spec"]["acquireTime"], "2026-11-21T12:00:00.500000Z");
}

/// The record of the auditor is written beside what others have written there, and only by the holder; without a new one the old one stays.
#[tokio::test(start_paused = true)]
async fn the_lease_carries_the_auditors_record() {
    let annotated = |holder: &str| {
        let mut lease = lease_json("7", holder, 15);
        lease["metadata"]["annotations"] = json!({ "joiner-audit": "approve 1a2b3c", "joiner-audit-record": "old" });
        lease
    };
    let server = Server::new(move |asked| match asked.method.as_str() {
        "GET" => Reply::Json(200, annotated("me")),
        _ => Reply::Json(200, asked.body.clone()),
    });
    let cluster = server.cluster();
    for (record, written) in [(Some("new"), "new"), (None, "old")] {
        let lease = cluster.renew_lease("me", &|| record.map(Into::into)).await.unwrap();
        assert_eq!((lease.audit.as_deref(), lease.record.as_deref()), (Some("approve 1a2b3c"), Some(written)));
        let annotations = json!({ "joiner-audit": "approve 1a2b3c", "joiner-audit-record": written });
        assert_eq!(server.last().body["metadata"]["annotations"], annotations);
    }
    let lease = cluster.renew_lease("you", &|| Some("mine".into())).await.unwrap();
    assert_eq!((&*lease.holder, lease.record.as_deref(), &*server.last().method), ("me", Some("old"), "GET"));
}

/// Somebody deletes the lease so that another joiner leads: what people have decided and what was recorded stands on the new one. Who takes an annotation
/// off has taken it back.
#[tokio::test(start_paused = true)]
async fn what_is_written_on_a_lease_outlives_it() {
    let said = |record: &str| json!({ "joiner-audit": "dismiss 1a2b3c", "joiner-audit-record": record });
    let there: Arc<Mutex<Option<Value>>> = Arc::default();
    let shown = Arc::clone(&there);
    let server = Server::new(move |asked| match (asked.method.as_str(), &*shown.lock().unwrap()) {
        ("GET", None) => status(404, "NotFound", ""),
        ("GET", Some(lease)) => Reply::Json(200, lease.clone()),
        // The API server gives a UID of its own to what is new.
        ("POST", _) => {
            let mut lease = asked.body.clone();
            lease["metadata"]["uid"] = "new".into();
            Reply::Json(201, lease)
        }
        _ => Reply::Json(200, asked.body.clone()),
    });
    let lease = |holder: &str, uid: &str, annotations: Value| {
        let mut lease = lease_json("7", holder, 15);
        lease["metadata"]["uid"] = uid.into();
        lease["metadata"]["annotations"] = annotations;
        *there.lock().unwrap() = Some(lease);
    };
    let cluster = server.cluster();
    // Seen while another leads, and then on the new lease of a third, who has not known it.
    lease("you", "old", said("old"));
    cluster.renew_lease("me", &|| None).await.unwrap();
    lease("", "another", json!({ "joiner-audit-record": "of another" }));
    let renewed = cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!(server.last().body["metadata"]["annotations"], said("of another"));
    assert_eq!((renewed.audit.as_deref(), renewed.record.as_deref()), (Some("dismiss 1a2b3c"), Some("of another")));
    *there.lock().unwrap() = None;
    cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!((&*server.last().method, &server.last().body["metadata"]["annotations"]), ("POST", &said("of another")));
    *there.lock().unwrap() = None;
    cluster.renew_lease("me", &|| Some("newer".into())).await.unwrap();
    assert_eq!(server.last().body["metadata"]["annotations"], said("newer"));
    lease("me", "new", json!({ "joiner-audit-record": "newer" }));
    let renewed = cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!(renewed.audit, None, "a person has taken it back");
    *there.lock().unwrap() = None;
    cluster.renew_lease("me", &|| None).await.unwrap();
    assert_eq!(server.last().body["metadata"]["annotations"], json!({ "joiner-audit-record": "newer" }));
}

#[tokio::test(start_paused = true)]
async fn a_renewed_foreign_lease_counts_anew_and_our_own_keeps_its_beginning() {
    let version = Arc::new(Mutex::new("7"));
    let shown = Arc::clone(&version);
    let server = Server::new(move |_| Reply::Json(200, lease_json(*shown.lock().unwrap(), "other", 15)));
    let cluster = server.cluster();
    cluster.renew_lease("me", &|| None).await.unwrap();
    tokio::time::advance(Duration::from_secs(14)).await;
    *version.lock().unwrap() = "8";
    assert_eq!(cluster.renew_lease("me", &|| None).await.unwrap().remaining, Duration::from_secs(15));
    // The same answers, asked by their holder: renewed, not acquired.
    let lease = cluster.renew_lease("other", &|| None).await.unwrap();
    assert_eq!(lease.holder, "other");
    let asked = server.last();
    assert_eq!(asked.body["spec"]["acquireTime"], "2020-01-01T00:00:00.000000Z");
    assert_eq!(asked.body["spec"]["leaseTransitions"], 4);
}

#[tokio::test]
async fn whoever_loses_the_race_for_the_lease_is_told_so() {
    let server = Server::replies([
        Reply::Json(200, lease_json("7", "", 1)),
        status(409, "Conflict", "the object has been modified"),
    ]);
    assert!(matches!(server.cluster().renew_lease("me", &|| None).await.unwrap_err(), Error::Conflict(_)));
}

#[tokio::test]
async fn the_lease_is_given_back_by_its_holder_only() {
    let server = Server::new(|_| Reply::Json(200, lease_json("7", "me", 15)));
    let cluster = server.cluster();
    cluster.release_lease("you").await.unwrap();
    assert_eq!(server.last().method, "GET");
    cluster.release_lease("me").await.unwrap();
    assert_eq!(server.last().method, "PUT");
    assert_eq!(server.last().body["spec"]["holderIdentity"], "");
    assert_eq!(server.last().body["spec"]["leaseDurationSeconds"], 1);
}

// The watches.

fn list(version: &str, rest: &str, items: &[Value]) -> Reply {
    Reply::Json(
        200,
        json!({ "kind": "List", "metadata": { "resourceVersion": version, "continue": rest }, "items": items }),
    )
}

fn pod_json(name: &str) -> Value {
    json!({ "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": "3" }, "spec": { "containers": [] } })
}

/// What of facts tests look at.
fn said(fact: &Fact) -> String {
    match fact {
        Fact::VolumeSeen(volume) => format!("volume {}", volume.name),
        Fact::Withheld(kind) => format!("withheld {kind:?}"),
        Fact::PodSeen(pod) => format!("pod {}", pod.key.name),
        Fact::PodGone(uid) => format!("gone {uid}"),
        Fact::ClassSeen(class) => format!("class {}", class.reference),
        Fact::ClassGone(class) => format!("gone {class}"),
        Fact::ClaimSeen(claim) => {
            format!("claim {} {}", claim.name, claim.broken.as_ref().map_or("ok", |broken| &broken.problem))
        }
        Fact::Relisting(kind) => format!("relisting {kind:?}"),
        Fact::Relisted(kind) => format!("relisted {kind:?}"),
        other => format!("{other:?}"),
    }
}

/// The first facts of one kind, from a server on which the other kinds have no objects and no news.
async fn first_facts(cluster: &KubeCluster, kind: Kind, count: usize) -> Vec<String> {
    let is_meant = move |fact: &Fact| match fact {
        Fact::PodSeen(_) | Fact::PodGone(_) => kind == Kind::Pod,
        Fact::ClassSeen(_) | Fact::ClassGone(_) => kind == Kind::NodeClass,
        Fact::ClaimSeen(_) | Fact::ClaimGone(..) => kind == Kind::NodeClaim,
        Fact::Relisting(of) | Fact::Relisted(of) | Fact::Withheld(of) => *of == kind,
        Fact::VolumeSeen(_) | Fact::VolumeGone(_) => kind == Kind::Volume,
        _ => false,
    };
    let facts = cluster.facts().filter(move |fact| futures::future::ready(is_meant(fact)));
    facts.take(count).map(|fact| said(&fact)).collect().await
}

fn quiet(asked: &Asked) -> Reply {
    if asked.path.contains("watch=true") { Reply::Silence } else { list("1", "", &[]) }
}

/// Answers what concerns a plural from the queue and the rest quietly.
fn about(plural: &'static str, replies: impl IntoIterator<Item = Reply>) -> Server {
    let queue = Mutex::new(replies.into_iter().collect::<VecDeque<_>>());
    Server::new(move |asked| {
        if asked.path.contains(&format!("/{plural}?")) {
            queue.lock().unwrap().pop_front().unwrap_or(Reply::Silence)
        } else {
            quiet(asked)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_watch_lists_by_pages_then_follows_and_heals_after_a_gap() {
    let event = |kind: &str, object: Value| json!({ "type": kind, "object": object });
    let server = about(
        "pods",
        [
            list("9", "next", &[pod_json("a"), pod_json("b")]),
            list("9", "", &[pod_json("c")]),
            Reply::Lines(vec![
                event("MODIFIED", pod_json("a")),
                event("DELETED", pod_json("b")),
                event(
                    "BOOKMARK",
                    json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": "20", "annotations": {} } }),
                ),
                event(
                    "ERROR",
                    json!({ "kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version", "status": "Failure" }),
                ),
            ]),
            list("30", "", &[pod_json("c")]),
        ],
    );
    let cluster = server.cluster();
    let facts = first_facts(&cluster, Kind::Pod, 10).await;
    assert_eq!(
        facts,
        [
            "relisting Pod",
            "pod a",
            "pod b",
            "pod c",
            "relisted Pod",
            "pod a",
            "gone b",
            "relisting Pod",
            "pod c",
            "relisted Pod",
        ]
    );
    let paths: Vec<_> =
        server.asked().into_iter().map(|asked| asked.path).filter(|path| path.contains("/pods?")).collect();
    assert!(paths[0].contains("limit=2") && paths[1].contains("continue=next"), "{paths:?}");
    assert!(paths[2].contains("resourceVersion=9") && paths[2].contains("allowWatchBookmarks=true"), "{paths:?}");
    assert_eq!(cluster.counts().of("list", "pods"), 2);
    assert!(cluster.health().troubles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_named_and_the_others_are_seen() {
    let server = about("pods", [list("1", "", &[json!({ "metadata": {}, "spec": {} }), pod_json("a")])]);
    let cluster = server.cluster();
    assert_eq!(first_facts(&cluster, Kind::Pod, 3).await, ["relisting Pod", "pod a", "relisted Pod"]);
    assert!(cluster.health().troubles().is_empty(), "the watch works");
    let unreadable = cluster.health().unreadable_objects();
    assert_eq!(unreadable["Pod without a name"], "metadata.name: is missing; give the object a name");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_allowed_says_so_and_goes_on_trying() {
    let forbidden = status(403, "Forbidden", "pods is forbidden: User \"x\" cannot list resource \"pods\"");
    let server = about("pods", [forbidden.clone(), forbidden, list("1", "", &[pod_json("a")])]);
    let cluster = server.cluster();
    let facts = first_facts(&cluster, Kind::Pod, 3).await;
    assert_eq!(facts, ["relisting Pod", "relisting Pod", "relisting Pod"]);
    let troubles = cluster.health().troubles();
    assert!(troubles[&Kind::Pod].ends_with(r#"apiGroups [""], resources ["pods"], verbs ["list"]"#), "{troubles:?}");
    assert_eq!(cluster.permissions().missing(), [("list", "", "pods")]);
    let facts = first_facts(&cluster, Kind::Pod, 3).await;
    assert_eq!(facts, ["relisting Pod", "pod a", "relisted Pod"]);
    assert!(cluster.health().troubles().is_empty());
    assert!(cluster.permissions().missing().is_empty());
}

#[tokio::test(start_paused = true)]
async fn watches_are_back_soon_after_a_long_outage() {
    let away = std::iter::repeat_n(Reply::Refused, 12);
    let server = about("pods", away.chain([list("1", "", &[pod_json("a")])]));
    let began = Instant::now();
    let facts = first_facts(&server.cluster(), Kind::Pod, 15).await;
    assert_eq!(facts[13..], ["pod a", "relisted Pod"]);
    // 0.5 s, 1 s, 2 s, 4 s, then every 5 s.
    assert_eq!(began.elapsed().as_millis() / 100, 475);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_has_just_come_back_is_not_believed_to_know_its_roles() {
    let forbidden = || status(403, "Forbidden", "User \"joiner\" cannot list resource \"nodeclaims\"");
    let server = Server::replies([Reply::Refused, forbidden(), forbidden()]);
    let cluster = server.cluster();
    assert!(matches!(cluster.list_claims().await, Err(Error::Temporary(_))));
    assert!(matches!(cluster.list_claims().await, Err(Error::Forbidden { .. })));
    assert!(cluster.permissions().missing().is_empty());
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(matches!(cluster.list_claims().await, Err(Error::Forbidden { .. })));
    assert_eq!(cluster.permissions().missing(), [("list", "karpenter.sh", "nodeclaims")]);
}

#[tokio::test(start_paused = true)]
async fn volumes_that_may_not_be_seen_are_said_to_be_withheld() {
    let forbidden = status(403, "Forbidden", "persistentvolumes is forbidden");
    let volume = json!({ "metadata": { "name": "pv", "uid": "pv", "resourceVersion": "3" }, "spec": { "nfs": {} } });
    let server = about("persistentvolumes", [forbidden, list("1", "", &[volume])]);
    let cluster = server.cluster();
    let facts = first_facts(&cluster, Kind::Volume, 5).await;
    assert_eq!(facts, ["relisting Volume", "withheld Volume", "relisting Volume", "volume pv", "relisted Volume"]);
    assert!(cluster.permissions().missing().is_empty(), "given by now");
}

/// Rights that are gone for a moment are given back by a new list: a watch that goes on where it was would say nothing.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_after_a_list_begins_anew() {
    let volume = |name: &str| json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "3" }, "spec": { "nfs": {} } });
    let forbidden = status(403, "Forbidden", "User \"joiner\" cannot watch resource \"persistentvolumes\"");
    let server = about("persistentvolumes", [list("1", "", &[volume("a")]), forbidden, list("2", "", &[volume("b")])]);
    let facts = first_facts(&server.cluster(), Kind::Volume, 7).await;
    assert_eq!(facts[..3], ["relisting Volume", "volume a", "relisted Volume"]);
    assert_eq!(facts[3..], ["withheld Volume", "relisting Volume", "volume b", "relisted Volume"]);
}

#[tokio::test(start_paused = true)]
async fn nodeclasses_that_may_not_be_listed_are_said_to_be_withheld() {
    let forbidden = status(403, "Forbidden", "User \"joiner\" cannot list resource \"kwoknodeclasses\"");
    let class = json!({ "metadata": { "name": "a", "resourceVersion": "1" } });
    let server = about("kwoknodeclasses", [forbidden, list("1", "", &[class])]);
    let facts = first_facts(&server.cluster(), Kind::NodeClass, 4).await;
    assert_eq!(facts, ["withheld NodeClass", "relisting NodeClass", "class KWOKNodeClass/a", "relisted NodeClass"]);
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_nodeclaim_does_not_hide_the_others() {
    let mut broken = claim_json("broken");
    broken["spec"]["requirements"] = json!({ "key": "x" });
    let server = about("nodeclaims", [list("1", "", &[broken, claim_json("fine")])]);
    let facts = first_facts(&server.cluster(), Kind::NodeClaim, 4).await;
    assert!(facts[1].starts_with("claim broken spec.requirements: invalid type"), "{facts:?}");
    assert_eq!(facts[2], "claim fine ok");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_nodeclaim_says_which_of_its_name_it_was() {
    let end = json!({ "type": "DELETED", "object": claim_json("a") });
    let server = about("nodeclaims", [list("1", "", &[claim_json("a")]), Reply::Lines(vec![end])]);
    let facts = first_facts(&server.cluster(), Kind::NodeClaim, 4).await;
    assert_eq!(facts[3], "ClaimGone(ClaimName(a), ClaimUid(uid-a))");
}

#[tokio::test(start_paused = true)]
async fn the_nodeclaims_of_another_autoscaler_are_not_seen_and_are_listed() {
    let mut foreign = claim_json("foreign");
    foreign["spec"]["nodeClassRef"]["kind"] = json!("EC2NodeClass");
    let server = about("nodeclaims", [list("1", "", &[foreign.clone(), claim_json("ours")])]);
    let facts = first_facts(&server.cluster(), Kind::NodeClaim, 3).await;
    assert_eq!(facts[1], "claim ours ok", "{facts:?}");

    let both = json!({ "metadata": {}, "items": [foreign, claim_json("ours")] });
    let listed = Server::replies([Reply::Json(200, both)]).cluster().list_claims().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|claim| claim.name.as_str()).collect();
    assert_eq!(listed, ["foreign", "ours"], "what another autoscaler has is nobody's otherwise");
}

#[tokio::test(start_paused = true)]
async fn several_kinds_of_nodeclass_are_told_as_one() {
    let class = |name: &str| json!({ "metadata": { "name": name, "resourceVersion": "1" } });
    let server = Server::new(move |asked| {
        let is_watch = asked.path.contains("watch=true");
        match asked.path.as_str() {
            path if path.contains("/kwoknodeclasses?") && !is_watch => list("1", "", &[class("a")]),
            path if path.contains("/othernodeclasses?") && !is_watch => list("1", "", &[class("b")]),
            _ => quiet(asked),
        }
    });
    let mut options = options();
    options.classes.push(ClassKind::of::<Value>("other.example", "v1", "OtherNodeClass", "othernodeclasses"));
    let cluster = KubeCluster::new(server.client(), options);
    let facts = first_facts(&cluster, Kind::NodeClass, 4).await;
    assert_eq!(facts, ["relisting NodeClass", "class KWOKNodeClass/a", "class OtherNodeClass/b", "relisted NodeClass"]);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_nodeclasses_has_listed_them_all() {
    let server = Server::new(quiet);
    let cluster = KubeCluster::new(server.client(), Options { classes: Vec::new(), ..options() });
    assert_eq!(first_facts(&cluster, Kind::NodeClass, 2).await, ["relisting NodeClass", "relisted NodeClass"]);
}

// The check at start.

fn api(asked: &Asked, kwok: bool) -> Reply {
    let resources = |names: &[&str]| {
        let list: Vec<_> = names
            .iter()
            .map(|n| json!({ "name": n, "singularName": "", "namespaced": false, "kind": "X", "verbs": [] }))
            .collect();
        Reply::Json(200, json!({ "kind": "APIResourceList", "groupVersion": "x/v1", "resources": list }))
    };
    match asked.path.as_str() {
        "/version" => Reply::Json(200, json!({ "gitVersion": "v1.36.3", "major": "1", "minor": "36" })),
        "/apis/karpenter.sh/v1" => resources(&["nodepools", "nodepools/status", "nodeclaims"]),
        "/apis/karpenter.kwok.sh/v1alpha1" if kwok => resources(&["kwoknodeclasses"]),
        _ => Reply::Plain(404, None, "404 page not found"),
    }
}

#[tokio::test]
async fn the_check_names_what_is_missing_and_the_command_that_mends_it() {
    assert_eq!(Server::new(|asked| api(asked, true)).cluster().check().await.unwrap(), "v1.36.3");
    let error = Server::new(|asked| api(asked, false)).cluster().check().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cluster lacks the definitions of kwoknodeclasses.karpenter.kwok.sh/v1alpha1; apply them with `joiner crds | kubectl apply -f -`"
    );
    let error = Server::new(|_| Reply::Refused).cluster().check().await.unwrap_err();
    assert!(error.to_string().contains("check KUBECONFIG"), "{error}");
    let of = |minor: &'static str| {
        Server::new(move |asked: &Asked| match asked.path.as_str() {
            "/version" => {
                Reply::Json(200, json!({ "gitVersion": format!("v1.{minor}.2"), "major": "1", "minor": minor }))
            }
            _ => api(asked, true),
        })
    };
    assert_eq!(
        of("29").cluster().check().await.unwrap_err().to_string(),
        "the API server is v1.29.2, and joiner needs Kubernetes 1.30 or later; upgrade the control plane first"
    );
    assert!(of("30+").cluster().check().await.is_ok(), "as some providers write it");
    assert!(include_str!("../../charts/joiner/Chart.yaml").contains("kubeVersion: '>=1.30"), "the chart says the same");
}
