//! A joiner that looks after a real cluster: its client, its cloud, its name.

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;

use crate::actors::runtime::Clock;
use crate::actors::{self, Parts};
use crate::clouds::kwok::Kwok;
use crate::clouds::outscale::{self, KubeSecrets, Secrets};
use crate::clouds::{Cloud, catalog, kwok};
use crate::cluster::{self, ClientFrom, DryRun, KubeCluster, Options, RequestCounts};
use crate::config::{self, Cluster, Run, Settings};
use crate::manifests;

use super::rehearsal;

/// A client of the cluster that was named.
async fn client(settings: &Settings, cluster: &Cluster) -> Result<Client> {
    let from = match (cluster, settings.kubeconfig.as_slice()) {
        (_, paths @ [_, ..]) => ClientFrom::Files(paths),
        (Cluster::Kubeconfig, []) => ClientFrom::Kubeconfig,
        (Cluster::Found | Cluster::Simulated(_), []) => ClientFrom::Found,
    };
    Ok(KubeCluster::client(from).await?)
}

/// What of a cluster is watched, whatever is done with it.
fn options(settings: &Settings, cloud: config::Cloud, clock: Clock) -> Options {
    let mut options = Options::new(Arc::new(move || clock.now()));
    (options.classes, options.restricted_domains, options.label_keys) = match cloud {
        config::Cloud::Outscale => {
            (vec![manifests::outscale_class()], vec![outscale::CLASS_GROUP], outscale::LABEL_KEYS.to_vec())
        }
        config::Cloud::Kwok | config::Cloud::Simulated => {
            (vec![manifests::kwok_class()], vec![kwok::CLASS_GROUP], catalog::KWOK_LABEL_KEYS.to_vec())
        }
    };
    options.groups = !settings.default_spreads.is_empty();
    options.overlays = settings.gates.node_overlay;
    options.buffers = settings.gates.capacity_buffer;
    options.qps = f64::from(settings.kube_client_qps);
    options.burst = settings.kube_client_burst;
    options
}

/// The cluster alone, to look at.
pub(super) async fn cluster(
    settings: &Settings,
    (cluster, cloud): (&Cluster, config::Cloud),
    clock: Clock,
) -> Result<KubeCluster> {
    let client = client(settings, cluster).await?;
    let cluster = KubeCluster::new(client, options(settings, cloud, clock));
    cluster.check().await?;
    Ok(cluster)
}

/// The Secrets of joiner's namespace in the cluster that is found.
pub(super) async fn secrets(settings: &Settings) -> Result<Arc<dyn Secrets>> {
    let client = client(settings, &Cluster::Found).await?;
    Ok(Arc::new(KubeSecrets::new(client, &namespace(None))))
}

/// Connects to the cluster, and checks that it can be worked with. Beside the parts come the counts of its requests.
pub(super) async fn connect(run: &Run, clock: Clock) -> Result<(Parts, Arc<RequestCounts>)> {
    let settings = &run.settings;
    let client = client(settings, &run.cluster).await?;
    let cloud: Arc<dyn Cloud> = match run.cloud {
        config::Cloud::Kwok => Arc::new(Kwok::new(client.clone(), rehearsal::instance_types(settings)?)),
        config::Cloud::Outscale => {
            let secrets: Arc<dyn Secrets> = Arc::new(KubeSecrets::new(client.clone(), &namespace(None)));
            Arc::new(super::outscale::cloud(settings, (Arc::clone(&secrets), secrets), clock, run.dry_run).await?)
        }
        config::Cloud::Simulated => anyhow::bail!(
            "--cloud simulated has machines in memory only; it goes with --cluster simulated, a real cluster needs --cloud kwok"
        ),
    };
    let identity = identity(settings);
    let mut options = options(settings, run.cloud, clock);
    options.instance.clone_from(&identity);
    if let Some(election) = &settings.leader_election {
        options.lease_name.clone_from(&election.name);
        options.lease_namespace = namespace(election.namespace.as_deref());
    }
    let lease_name = options.lease_name.clone();
    let cluster = KubeCluster::new(client, options);
    let version = cluster.check().await?;
    tracing::info!(version, cloud = cloud.name(), "connected to the cluster");
    let counts = cluster.counts();
    let cluster: Arc<dyn cluster::Cluster> = Arc::new(cluster);
    let cluster: Arc<dyn cluster::Cluster> =
        if run.dry_run { Arc::new(DryRun::new(cluster, Arc::new(move || clock.now()))) } else { cluster };
    let actors = actors_settings(settings);
    let settings = actors::Settings {
        lease_name,
        // A dry run acts on nothing, and must not keep those from acting who do.
        leader_election: actors.leader_election && !run.dry_run,
        identity,
        // Two joiners, or two lives of one, must not give two NodeClaims the same name.
        name_salt: u64::from(std::process::id())
            ^ u64::try_from(clock.now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or(0),
        ..actors
    };
    Ok((Parts { cluster, cloud, settings, clock }, counts))
}

/// What of the settings the actors are told.
pub(super) fn actors_settings(settings: &Settings) -> actors::Settings {
    actors::Settings {
        batch_idle: settings.batch_idle,
        batch_max: settings.batch_max,
        leader_election: settings.leader_election.is_some(),
        respect_preferences: settings.preference_policy == config::PreferencePolicy::Respect,
        repair: match (settings.gates.node_repair, settings.legacy_node_repair) {
            (false, _) => actors::NodeRepair::Off,
            (true, false) => actors::NodeRepair::Disruption,
            (true, true) => actors::NodeRepair::Legacy,
        },
        lower_min_values: settings.min_values_policy == config::MinValuesPolicy::BestEffort,
        default_spreads: settings.default_spreads.clone(),
        features: actors::Features {
            node_overlay: settings.gates.node_overlay,
            static_capacity: settings.gates.static_capacity,
            capacity_buffer: settings.gates.capacity_buffer,
            dynamic_resources: !settings.ignore_dra_requests,
        },
        nominate: match settings.nominate {
            config::Nominate::All => actors::Nominate::All,
            config::Nominate::Contested => actors::Nominate::Contested,
            config::Nominate::None => actors::Nominate::None,
        },
        ..actors::Settings::default()
    }
}

/// Name in the lease: that of the pod or host, and something that tells two lives apart.
fn identity(settings: &Settings) -> String {
    let host = || std::fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned());
    let name = settings.pod_name.clone().or_else(host).filter(|name| !name.is_empty());
    format!("{}_{}", name.unwrap_or_else(|| "joiner".to_owned()), std::process::id())
}

/// Namespace of the lease: as told, else the pod's own, else Karpenter's.
fn namespace(told: Option<&str>) -> String {
    let own = || std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok();
    told.map(str::to_owned).or_else(own).unwrap_or_else(|| "kube-system".to_owned())
}

/// Waits for SIGTERM or Ctrl-C.
pub(super) async fn signal() -> Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
