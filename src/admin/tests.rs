//! The endpoints as a client sees them, over real sockets, with actors that really live.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::actors::runtime::{
    Behaviour, Clock, Cx, House, Kind, Message, Observations, Operations, Post, Promises, Saboteur, Slot, Supervisor,
    View,
};
use crate::telemetry::metrics::{Exporter, sample_process};

use super::{Check, Config, Error, Explainer, Handle, Sources, Why, open};

impl Message for usize {}
impl Message for u32 {}
impl Message for () {}

/// The parent of so many claims.
struct Parent {
    claims: usize,
    slots: Vec<Slot<u32>>,
}

impl Behaviour for Parent {
    /// *Nudge.* Ends one child.
    type Msg = usize;
    type Args = usize;
    const KIND: Kind = Kind::Claims;

    fn born(claims: &usize, cx: &Cx<usize>) -> Self {
        let mut slots = Vec::new();
        for number in 0..*claims {
            let slot = Slot::empty();
            cx.spawn::<Child>(&format!("default-{number:05}"), number, &slot);
            slot.cast(1);
            slots.push(slot);
        }
        Self { claims: *claims, slots }
    }

    fn handle(&mut self, ended: usize, _: &Cx<usize>) {
        self.slots.remove(ended).stop();
    }

    fn observe(&self, _: Timestamp) -> View {
        View { state: format!("{} claims", self.claims), ..View::default() }
    }
}

/// A claim with a life to show.
struct Child(usize);

impl Behaviour for Child {
    type Msg = u32;
    type Args = usize;
    const KIND: Kind = Kind::Claim;

    fn born(number: &usize, _: &Cx<u32>) -> Self {
        Self(*number)
    }

    fn handle(&mut self, _: u32, _: &Cx<u32>) {}

    fn observe(&self, now: Timestamp) -> View {
        let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
        let launching = self.0.is_multiple_of(10);
        let mistakes = ["one thing", "another"].into_iter().filter(|_| self.0 == 0);
        View {
            state: if launching { "Launching" } else { "Initialized" }.to_owned(),
            waits_for: launching.then(|| "the cloud's answer to Create, attempt 2".to_owned()),
            deadlines: vec![("expires".to_owned(), ago(-720 * 3600)), ("registration timeout".to_owned(), ago(-894))],
            timeline: vec![
                (ago(41), "Launching: c-4x-amd64-linux spot in test-zone-a".to_owned()),
                (ago(38), "Launched: kwok://default-00001".to_owned()),
                (ago(8), "Registered: node default-00001, 7 pods nominated".to_owned()),
                (ago(3), "Initialized".to_owned()),
            ],
            details: [
                ("machine".to_owned(), format!("kwok://default-{:05}", self.0)),
                ("node".to_owned(), format!("default-{:05}", self.0)),
                ("nodepool".to_owned(), "default".to_owned()),
            ]
            .into_iter()
            .chain(mistakes.map(|mistake| ("to be mended".to_owned(), mistake.to_owned())))
            .collect::<Vec<_>>(),
        }
    }
}

/// A singleton that does nothing.
struct Idle;

impl Behaviour for Idle {
    type Msg = ();
    type Args = ();
    const KIND: Kind = Kind::Batcher;

    fn born((): &(), _: &Cx<()>) -> Self {
        Self
    }

    fn handle(&mut self, (): (), _: &Cx<()>) {}

    fn observe(&self, _: Timestamp) -> View {
        View { state: "idle".to_owned(), ..View::default() }
    }
}

fn house() -> House {
    // Nobody holds the lease.
    let leader_until = watch::Sender::new(None);
    House {
        clock: Clock::machine(),
        operations: Operations::new(leader_until.subscribe()),
        observations: Observations::default(),
        promises: Promises::default(),
        saboteur: Saboteur::default(),
    }
}

/// A tree with so many claims, all of them alive.
async fn tree(claims: usize) -> (House, Slot<usize>) {
    let (house, parent, idle) = (house(), Slot::empty(), Slot::empty());
    Supervisor::start(vec![Post::new::<Parent>(&parent, claims), Post::new::<Idle>(&idle, ())], true, &house);
    let handled = |house: &House| house.observations.figures().get(&Kind::Claim).map_or(0, |sum| sum.handled);
    while house.observations.count().len() < 3 || handled(&house) < claims as u64 {
        tokio::task::yield_now().await;
    }
    (house, parent)
}

const LOOPBACK: Config = Config { host: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), health_port: 0, metrics_port: 0 };

/// Knows a NodeClaim and all pods, and says what it was asked.
fn echo() -> Explainer {
    Arc::new(|why| {
        let known = match &why {
            Why::NodeClaim(name) if name != "default-1" => Err(format!("there is no NodeClaim {name}")),
            known => Ok(serde_json::json!({ "asked": format!("{known:?}") })),
        };
        std::future::ready(known).boxed()
    })
}

async fn served(house: House, ready: Vec<Check>) -> Handle {
    let sources = Sources {
        house,
        exporter: Exporter::aside().unwrap().1,
        samplers: vec![Arc::new(|samples| sample_process(samples, 12_345))],
        explainer: echo(),
        alive: Vec::new(),
        ready,
    };
    open(LOOPBACK).await.unwrap().serve(sources)
}

/// Status line and headers, and body.
async fn get(address: SocketAddr, path: &str, headers: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.0\r\n{headers}\r\n");
    let exchange = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = tokio::task::spawn_blocking(exchange).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

async fn json(address: SocketAddr, query: &str) -> Value {
    let (head, body) = get(address, &format!("/actors.json?{query}"), "").await;
    assert!(head.contains("200 OK"), "{head}\n{body}");
    serde_json::from_str(&body).unwrap()
}

fn names(page: &Value) -> Vec<&str> {
    page["actors"].as_array().unwrap().iter().map(|actor| actor["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn probes_name_what_is_missing() {
    let synced = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&synced);
    let check =
        Check::new(
            "synced",
            move || {
                if seen.load(Relaxed) { Ok(()) } else { Err("pods have not been listed yet".to_owned()) }
            },
        );
    let handle = served(house(), vec![Check::new("leader", || Ok(())), check]).await;
    let (head, body) = get(handle.health, "/healthz", "").await;
    assert!(head.contains("200 OK"), "{head}");
    assert_eq!(body, "ok\n");
    let (head, body) = get(handle.health, "/readyz", "").await;
    assert!(head.contains("503 Service Unavailable"), "{head}");
    assert_eq!(body, "[-]synced failed: pods have not been listed yet\n");
    let (head, _) = get(handle.health, "/readyz/leader", "").await;
    assert!(head.contains("200 OK"), "{head}");
    synced.store(true, Relaxed);
    let (head, body) = get(handle.health, "/readyz?verbose", "").await;
    assert!(head.contains("200 OK"), "{head}");
    assert_eq!(body, "[+]leader ok\n[+]synced ok\nok\n");
    // Probes are not on the port for metrics, nor the other way round.
    assert!(get(handle.metrics, "/readyz", "").await.0.contains("404"));
    assert!(get(handle.health, "/metrics", "").await.0.contains("404"));
    let health = handle.health;
    assert!(handle.stop(Duration::from_secs(5)).await);
    assert!(TcpStream::connect(health).is_err(), "still listening");
}

#[tokio::test]
async fn a_port_in_use_is_said_with_its_remedy() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let sources = |house| Sources {
        house,
        exporter: Exporter::aside().unwrap().1,
        samplers: Vec::new(),
        explainer: echo(),
        alive: Vec::new(),
        ready: Vec::new(),
    };
    let error: Error = open(Config { metrics_port: port, ..LOOPBACK }).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot listen on 127.0.0.1:{port} for metrics: address in use; set METRICS_PORT / --metrics-port to a free port"
        )
    );
    let error = open(Config { health_port: port, ..LOOPBACK }).await.unwrap_err();
    assert!(error.to_string().contains("for probes") && error.to_string().contains("HEALTH_PROBE_PORT"), "{error}");
    // One port may serve both.
    drop(taken);
    let both = Config { health_port: port, metrics_port: port, ..LOOPBACK };
    let handle = open(both).await.unwrap().serve(sources(house()));
    assert_eq!(handle.health, handle.metrics);
    assert!(get(handle.health, "/readyz", "").await.0.contains("200 OK"));
    assert!(get(handle.health, "/metrics", "").await.0.contains("200 OK"));
}

#[tokio::test]
async fn metrics_sum_up_actors_and_never_fall() {
    let (house, parent) = tree(3).await;
    let handle = served(house.clone(), Vec::new()).await;
    let (head, body) = get(handle.metrics, "/metrics", "").await;
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    let line = |body: &str, line: &str| assert!(body.lines().any(|other| other == line), "no {line} in\n{body}");
    line(&body, r#"joiner_actors{actor="claim"} 3"#);
    line(&body, r#"joiner_actor_messages_total{actor="claim"} 3"#);
    line(&body, r#"joiner_actor_mailbox_depth{actor="claim"} 0"#);
    line(&body, "joiner_operations_under_way 0");
    line(&body, "go_gc_heap_live_bytes 12345");
    parent.cast(0);
    while house.observations.count().get(&Kind::Claim) != Some(&2) {
        tokio::task::yield_now().await;
    }
    let (_, body) = get(handle.metrics, "/metrics", "").await;
    line(&body, r#"joiner_actors{actor="claim"} 2"#);
    line(&body, r#"joiner_actor_messages_total{actor="claim"} 3"#);
}

#[tokio::test]
async fn an_actor_that_fails_is_counted_once() {
    let (house, idle) = (house(), Slot::empty());
    house.saboteur.strike(Kind::Batcher, 1, 1);
    Supervisor::start(vec![Post::new::<Idle>(&idle, ())], true, &house);
    let batcher = |house: &House| house.observations.figures().get(&Kind::Batcher).copied().unwrap_or_default();
    while batcher(&house).alive == 0 {
        tokio::task::yield_now().await;
    }
    idle.cast(());
    idle.cast(());
    tokio::time::timeout(Duration::from_secs(10), async {
        while batcher(&house).restarts == 0 || batcher(&house).alive == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let figures = batcher(&house);
    assert_eq!((figures.alive, figures.handled, figures.restarts), (1, 1, 1));
}

#[tokio::test]
async fn the_tree_can_be_filtered_folded_and_paged() {
    let (house, _parent) = tree(25).await;
    let handle = served(house, Vec::new()).await;
    let all = json(handle.metrics, "").await;
    // The batcher, without children, stands before the parent of many, although it was born later.
    assert_eq!(names(&all)[..4], ["supervisor", "batcher", "claims", "default-00000"]);
    assert_eq!(all["kinds"]["claim"], 25);
    assert_eq!(all["mayWrite"], false);
    assert!(all.get("states").is_none());
    let claim = &all["actors"][3];
    assert_eq!((claim["depth"].as_u64(), claim["state"].as_str()), (Some(2), Some("Launching")));
    assert_eq!(claim["parent"], all["actors"][2]["id"]);
    // The nearest deadline comes first; the last step lasts until now.
    assert_eq!(claim["deadlines"][0]["what"], "registration timeout");
    // The clock goes on while the question is answered.
    let left = claim["deadlines"][0]["inSeconds"].as_f64().unwrap();
    assert!((left - 894.0).abs() < 1.0, "{left}");
    assert_eq!(claim["timeline"][1]["seconds"], 30.0);
    assert_eq!(claim["timeline"][3]["ongoing"], true);
    assert_eq!(claim["details"]["machine"], "kwok://default-00000");
    let mistakes = ["to be mended", "to be mended (2)"].map(|name| claim["details"][name].as_str());
    assert_eq!(mistakes, [Some("one thing"), Some("another")], "each of two of a name is shown");
    assert_eq!(claim["messagesHandled"], 1);

    let page = json(handle.metrics, "kind=claim&per_page=10&page=3").await;
    assert_eq!(names(&page), ["default-00020", "default-00021", "default-00022", "default-00023", "default-00024"]);
    assert_eq!((page["matching"].as_u64(), page["pages"].as_u64()), (Some(25), Some(3)));
    assert_eq!(json(handle.metrics, "kind=claim&per_page=10&page=99").await["page"], 3);
    assert_eq!(names(&json(handle.metrics, "state=launch").await), ["default-00000", "default-00010", "default-00020"]);
    assert_eq!(names(&json(handle.metrics, "name=0012").await), ["default-00012"]);
    let counted = json(handle.metrics, "kind=claim&states=true&per_page=1").await;
    assert_eq!(counted["states"]["claim"]["Launching"], 3);
    assert_eq!(counted["states"]["claim"]["Initialized"], 22);
    let claims = all["actors"][2]["id"].as_u64().unwrap();
    assert_eq!(names(&json(handle.metrics, &format!("collapse={claims}")).await), ["supervisor", "batcher", "claims"]);
    assert_eq!(names(&json(handle.metrics, &format!("id={claims}&per_page=2")).await), ["claims", "default-00000"]);
    assert_eq!(json(handle.metrics, "id=999999999").await["matching"], 0);

    for (query, word) in [("kind=pod", "there are supervisor, leader"), ("page=0", "page=0"), ("id=x", "id=x")] {
        let (head, body) = get(handle.metrics, &format!("/actors.json?{query}"), "").await;
        assert!(head.contains("400 Bad Request") && body.contains(word), "{head}\n{body}");
    }
}

#[tokio::test]
async fn one_address_serves_people_and_programs() {
    let handle = served(house(), Vec::new()).await;
    let (head, body) = get(handle.metrics, "/actors", "Accept: text/html,*/*\r\n").await;
    assert!(head.contains("text/html") && body.contains("<title>joiner: actors</title>"), "{head}");
    // The page brings everything with it.
    assert!(!body.contains("http://") && !body.contains("https://"));
    let (head, body) = get(handle.metrics, "/actors", "Accept: application/json\r\n").await;
    assert!(head.contains("application/json") && body.starts_with('{'), "{head}");
    assert!(get(handle.metrics, "/actors?format=json", "Accept: text/html\r\n").await.1.starts_with('{'));
    assert!(get(handle.metrics, "/", "").await.1.contains("href=\"/metrics\""));
}

#[tokio::test]
async fn ten_thousand_claims_are_shown_in_pages() {
    let (house, _parent) = tree(10_000).await;
    let handle = served(house, Vec::new()).await;
    for query in ["", "kind=claim&page=50", "kind=claim&state=launching&page=9", "states=true", "per_page=1000"] {
        let began = tokio::time::Instant::now();
        let (head, body) = get(handle.metrics, &format!("/actors.json?{query}"), "").await;
        let took = began.elapsed();
        assert!(head.contains("200 OK"), "{head}");
        println!("/actors.json?{query}: {} bytes in {took:?}", body.len());
        let page: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(page["kinds"]["claim"], 10_000);
        assert_eq!(names(&page).len(), if query.contains("1000") { 1000 } else { 100 });
        assert!(page["actors"].as_array().unwrap().iter().all(|actor| actor["answered"] == true));
        assert!(body.len() < 1100 * names(&page).len(), "{} bytes", body.len());
    }
    let began = tokio::time::Instant::now();
    let (_, body) = get(handle.metrics, "/metrics", "").await;
    println!("/metrics: {} bytes in {:?}", body.len(), began.elapsed());
    assert!(body.contains(r#"joiner_actors{actor="claim"} 10000"#));
}

#[tokio::test]
async fn explanations_have_an_address() {
    let handle = served(house(), Vec::new()).await;
    for (path, asked) in [
        ("/explain/nodeclaim/default-1", r#"NodeClaim("default-1")"#),
        ("/explain/pod/web-1", r#"Pod { namespace: None, name: "web-1" }"#),
        ("/explain/pod/shop/web-1", r#"Pod { namespace: Some("shop"), name: "web-1" }"#),
    ] {
        let (head, body) = get(handle.metrics, path, "").await;
        assert!(head.contains("200 OK") && head.contains("application/json"), "{path}: {head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["asked"], asked);
    }
    let (head, body) = get(handle.metrics, "/explain/nodeclaim/nobody", "").await;
    assert!(head.contains("404"), "{head}");
    assert_eq!(body, "there is no NodeClaim nobody\n");
}
