//! Opens the two ports, serves them, and closes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::actors::runtime::House;
use crate::telemetry::metrics::{Exporter, Samples};

use super::probes::Check;
use super::routes;

/// How often recorded durations are folded into buckets when nobody reads them.
const UPKEEP: Duration = Duration::from_secs(5);

/// Where to listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// On which address; nothing means on all, IPv6 included where there is any.
    pub host: Option<IpAddr>,
    /// Port of `/healthz` and `/readyz` (`HEALTH_PROBE_PORT`); 0 picks a free one.
    pub health_port: u16,
    /// Port of everything else (`METRICS_PORT`); 0 picks a free one. May be the same.
    pub metrics_port: u16,
}

/// Adds samples when `/metrics` is read. Runs on a blocking thread.
pub type Sampler = Arc<dyn Fn(&mut Samples) + Send + Sync>;

/// What somebody wants to know the reasons of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// Where a pod is or will be, or why nowhere.
    Pod {
        /// Its namespace; nothing means the only one that has a pod of this name.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
    /// Why a NodeClaim is of its pool, size and types.
    NodeClaim(String),
}

/// Answers why: with what is shown as JSON, or with a sentence that says why there is no answer.
pub type Explainer = Arc<dyn Fn(Why) -> BoxFuture<'static, Result<serde_json::Value, String>> + Send + Sync>;

/// What is shown.
#[derive(Clone)]
pub struct Sources {
    /// The actors, their clock and their calls.
    pub house: House,
    /// What was recorded.
    pub exporter: Exporter,
    /// What is sampled besides actors and calls: the process, the cluster, the catalog.
    pub samplers: Vec<Sampler>,
    /// Who knows why.
    pub explainer: Explainer,
    /// What must hold for joiner to be alive; the kubelet restarts it otherwise.
    pub alive: Vec<Check>,
    /// What must hold for joiner to be ready.
    pub ready: Vec<Check>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("alive", &self.alive).field("ready", &self.ready).finish_non_exhaustive()
    }
}

/// A port could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {purpose}: {}; set {setting} to a free port", reason(.source))]
pub struct Error {
    /// Where.
    pub address: SocketAddr,
    /// What for: `metrics` or `probes`.
    pub purpose: &'static str,
    /// How to change it.
    pub setting: &'static str,
    /// What the system said.
    pub source: std::io::Error,
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "address in use".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied (ports below 1024 need a privilege)".to_owned(),
        _ => error.to_string(),
    }
}

/// The servers. They run on when this is dropped; [`Handle::stop`] ends them.
#[derive(Debug)]
pub struct Handle {
    /// Where the probes are.
    pub health: SocketAddr,
    /// Where the metrics are.
    pub metrics: SocketAddr,
    stop: watch::Sender<bool>,
    servers: JoinSet<()>,
}

impl Handle {
    /// Takes no new requests, finishes those under way, at most for `patience`. Says whether all were finished.
    pub async fn stop(mut self, patience: Duration) -> bool {
        self.stop.send_replace(true);
        let finished =
            tokio::time::timeout(patience, async { while self.servers.join_next().await.is_some() {} }).await;
        self.servers.abort_all();
        finished.is_ok()
    }
}

/// Ports that are open, and not yet served.
#[derive(Debug)]
pub struct Ports {
    metrics: TcpListener,
    /// Nothing when probes are asked on the same port.
    probes: Option<TcpListener>,
}

/// Opens both ports.
pub async fn open(config: Config) -> Result<Ports, Error> {
    let shared = config.health_port == config.metrics_port && config.metrics_port != 0;
    let metrics = listen(config.host, config.metrics_port, "metrics", "METRICS_PORT / --metrics-port").await?;
    let probes = if shared {
        None
    } else {
        Some(listen(config.host, config.health_port, "probes", "HEALTH_PROBE_PORT / --health-probe-port").await?)
    };
    Ok(Ports { metrics, probes })
}

impl Ports {
    /// Starts to serve.
    pub fn serve(self, sources: Sources) -> Handle {
        let metrics = address(&self.metrics);
        let health = self.probes.as_ref().map_or(metrics, address);
        let stop = watch::Sender::new(false);
        let mut servers = JoinSet::new();
        servers.spawn(upkeep(sources.exporter.clone(), stop.subscribe()));
        let sources = Arc::new(sources);
        let mut routes = routes::metrics(Arc::clone(&sources));
        match self.probes {
            None => routes = routes.merge(routes::probes(sources)),
            Some(probes) => drop(servers.spawn(run(probes, routes::probes(sources), stop.subscribe()))),
        }
        servers.spawn(run(self.metrics, routes, stop.subscribe()));
        Handle { health, metrics, stop, servers }
    }
}

async fn listen(
    host: Option<IpAddr>,
    port: u16,
    purpose: &'static str,
    setting: &'static str,
) -> Result<TcpListener, Error> {
    let first = SocketAddr::new(host.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), port);
    let (address, opened) = match TcpListener::bind(first).await {
        // A machine without IPv6.
        Err(error) if host.is_none() && error.kind() != std::io::ErrorKind::AddrInUse => {
            let second = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
            (second, TcpListener::bind(second).await)
        }
        opened => (first, opened),
    };
    opened.map_err(|source| Error { address, purpose, setting, source })
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a listener that is bound has an address")
}

async fn run(listener: TcpListener, routes: axum::Router, mut stop: watch::Receiver<bool>) {
    let stopped = async move {
        // An error means that the handle is gone without a word: then there is nobody to stop the server.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    // Accepting never ends with an error: axum waits and tries again.
    let _ = axum::serve(listener, routes).with_graceful_shutdown(stopped).await;
}

async fn upkeep(exporter: Exporter, mut stop: watch::Receiver<bool>) {
    loop {
        exporter.upkeep();
        // Time passing is the one reason to go round again.
        if tokio::time::timeout(UPKEEP, stop.changed()).await.is_ok() {
            return;
        }
    }
}
