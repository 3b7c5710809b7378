//! `joiner run`: looks after a cluster until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::actors::Joiner;
use crate::actors::runtime::Clock;
use crate::admin::{self, Ports, Sources};
use crate::config::{Cluster, Run, Settings};
use crate::telemetry::metrics;

use super::{embedded, health, live, speech};

/// How long writes under way may take to end after SIGTERM: well below the 30 s after which a kubelet kills.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs until SIGTERM or Ctrl-C. `live_bytes` says how much memory the allocator has handed out.
pub fn run(run: Run, live_bytes: fn() -> u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(run.settings.threads.get())
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let clock = Clock::machine();
    runtime.block_on(async move {
        let exporter = speech::set_up(&run.settings, matches!(run.cluster, Cluster::Simulated(_)), clock)?;
        if let Cluster::Simulated(world) = &run.cluster {
            return embedded::run(&run.settings, world, exporter, clock, live_bytes).await;
        }
        let (parts, counts) = live::connect(&run, clock).await?;
        let ports = open(&run.settings).await?;
        let joiner = Joiner::start(parts);
        let mut sources = sources(&run.settings, &joiner, exporter, live_bytes);
        sources.samplers.push(Arc::new(move |samples| {
            for ((verb, resource), requests) in counts.all() {
                samples.api_requests(verb, &resource, requests);
            }
        }));
        serve(joiner, sources, ports).await
    })
}

/// Opens the ports. It is done before the actors start: whoever cannot start must not take the lease from those who can.
pub(super) async fn open(settings: &Settings) -> Result<Ports> {
    let config =
        admin::Config { host: None, health_port: settings.health_probe_port, metrics_port: settings.metrics_port };
    Ok(admin::open(config).await?)
}

/// Serves probes, metrics and the actor page until a signal comes, and then stops in good order.
pub(super) async fn serve(joiner: Joiner, sources: Sources, ports: Ports) -> Result<()> {
    let admin = ports.serve(sources);
    tracing::info!(metrics = %admin.metrics, probes = %admin.health, "serving; the live tree of actors is at /actors");
    let signal = live::signal().await?;
    tracing::info!(signal, "stopping: no new write begins");
    if !joiner.stop(PATIENCE).await {
        tracing::warn!("some writes had not ended; their outcome will be found by the next joiner");
    }
    admin.stop(Duration::from_secs(1)).await;
    tracing::info!("stopped");
    Ok(())
}

/// What is shown of a joiner.
pub(super) fn sources(
    settings: &Settings,
    joiner: &Joiner,
    exporter: metrics::Exporter,
    live_bytes: fn() -> u64,
) -> Sources {
    let (boards, clock) = (joiner.boards().clone(), joiner.house().clock);
    let mut samplers: Vec<admin::Sampler> = vec![Arc::new(move |samples| {
        metrics::sample_process(samples, live_bytes());
        samples.build_info(env!("CARGO_PKG_VERSION"), option_env!("JOINER_COMMIT").unwrap_or_default());
    })];
    let (observed, kinds) = (boards.clone(), joiner.class_kinds());
    let managed = kinds.clone();
    samplers.push(Arc::new(move |samples| {
        let (snapshot, catalog) = (observed.snapshot(), observed.catalog());
        metrics::sample_catalog(samples, &catalog);
        metrics::sample_costs(samples, &snapshot, &catalog);
        metrics::sample_budgets(samples, &snapshot, &kinds, clock.now());
    }));
    if settings.cluster_state_observability {
        samplers.push(Arc::new(move |samples| {
            let snapshot = boards.snapshot();
            metrics::sample_pods(samples, &snapshot, &boards.waits(), clock.now());
            metrics::sample_nodes(samples, &snapshot, clock.now());
            metrics::sample_pools(samples, &snapshot, &managed);
            metrics::sample_conditions(samples, &snapshot, clock.now());
        }));
    }
    let explainer = super::why::explainer(joiner);
    let (alive, ready) = (vec![health::stirring(joiner)], vec![health::listed(joiner)]);
    Sources { house: joiner.house().clone(), exporter, samplers, alive, ready, explainer }
}
