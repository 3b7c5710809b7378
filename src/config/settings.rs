//! What the flags and variables come to: typed, validated, and with the sentinels of the command line gone.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::core::facts::TopologySpread;

use super::fake::Fake;
use super::gates::FeatureGates;

/// What joiner was asked to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Look after a cluster.
    Run(Box<Run>),
    /// Rehearse in simulated time.
    Simulate(Box<Simulate>),
    /// Say what would be bought.
    Plan(Box<Plan>),
    /// Say why something was decided.
    Explain(Box<Explain>),
    /// Serve a stand-in for a cloud's API.
    Fake(Fake),
    /// Print the custom resource definitions.
    Crds,
    /// Print the version.
    Version,
    /// Print this text (help that was asked for) and end well.
    Print(String),
}

/// `joiner run`.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Everything else.
    pub settings: Settings,
    /// The cluster to look after.
    pub cluster: Cluster,
    /// Where machines come from.
    pub cloud: Cloud,
    /// Whether nothing is to be written to the cluster or changed in the cloud: what would happen is said.
    pub dry_run: bool,
}

/// Which cluster to look after.
#[derive(Clone, PartialEq, Debug)]
pub enum Cluster {
    /// The one that the process runs in, else the kubeconfig's.
    Found,
    /// The kubeconfig's, wherever the process runs.
    Kubeconfig,
    /// One in memory.
    Simulated(World),
}

/// What happens in a simulated cluster that is looked after in real time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// A scenario to play.
    pub scenario: Option<PathBuf>,
    /// Pods to create at once.
    pub pods: Option<u32>,
}

/// A cloud that machines come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Cloud {
    /// Nodes without machines.
    Kwok,
    /// Machines in memory.
    Simulated,
    /// 3DS OUTSCALE.
    Outscale,
}

/// `joiner simulate`. At least one of `scenario`, `trace` and `faults` is there.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulate {
    /// Everything else.
    pub settings: Settings,
    /// A scenario to play.
    pub scenario: Option<PathBuf>,
    /// A recorded day to play.
    pub trace: Option<Trace>,
    /// Seed of all chance; nothing means the scenario's own.
    pub seed: Option<u64>,
    /// Where to write the page with charts.
    pub report: Option<PathBuf>,
    /// How to print the outcome.
    pub output: Output,
    /// When to show a progress bar.
    pub progress: Progress,
    /// When to stop, in simulated time from the start.
    pub until: Option<Duration>,
    /// Play days of trouble instead.
    pub faults: Option<Faults>,
}

/// Days of trouble.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Which faults there are, as written.
    pub profile: String,
    /// First and last seed; nothing means the one seed of [`Simulate::seed`], told in full.
    pub seeds: Option<(u64, u64)>,
}

/// `joiner plan`.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Everything else.
    pub settings: Settings,
    /// Files and directories with manifests, `-` for standard input; none means the cluster of the kubeconfig.
    pub files: Vec<PathBuf>,
    /// A recorded day, all pods of which are planned at once.
    pub trace: Option<Trace>,
    /// So many mixed pods.
    pub pods: Option<usize>,
    /// Whose instance types and prices count.
    pub cloud: Cloud,
    /// How to print the plan.
    pub output: Output,
    /// Where to write the page.
    pub report: Option<PathBuf>,
}

/// `joiner explain`.
#[derive(Clone, PartialEq, Debug)]
pub struct Explain {
    /// What to plan anew with; its `report` is nothing.
    pub plan: Plan,
    /// What to explain.
    pub subject: Subject,
    /// Its name.
    pub name: String,
    /// Namespace of the pod, if told.
    pub namespace: Option<String>,
    /// Where a running joiner shows its metrics: asked when there is nothing to plan anew with.
    pub url: String,
}

/// What can be explained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Subject {
    /// Where a pod was placed, or why nowhere.
    Pod,
    /// Why a NodeClaim is of this pool, size and types.
    #[value(name = "nodeclaim")]
    NodeClaim,
}

/// A recorded day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Its format.
    pub format: TraceFormat,
    /// Its file.
    pub file: PathBuf,
}

/// Formats of recorded days.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TraceFormat {
    /// The pod list of Alibaba's openb GPU cluster, as CSV.
    Openb,
}

/// How an outcome is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// When a progress bar is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Progress {
    /// On a terminal.
    Auto,
    /// Always; as lines where there is no terminal.
    Always,
    /// Never.
    Never,
}

/// Whether what pods merely prefer counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PreferencePolicy {
    /// It is tried first.
    #[default]
    #[value(name = "Respect")]
    Respect,
    /// It is left out.
    #[value(name = "Ignore")]
    Ignore,
}

/// Whether `minValues` must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum MinValuesPolicy {
    /// It must.
    #[default]
    #[value(name = "Strict")]
    Strict,
    /// It may be lowered to place a pod.
    #[value(name = "BestEffort")]
    BestEffort,
}

/// Which planned pods are nominated to their nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Nominate {
    /// Every one.
    #[default]
    All,
    /// Those that could lose their place to others.
    Contested,
    /// None.
    None,
}

/// Least severity of log lines. Karpenter has no `warn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What people may want to know.
    Info,
    /// What went wrong.
    Error,
}

impl LogLevel {
    /// Reads a level; an empty word means `info`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "debug" => Ok(Self::Debug),
            "info" | "" => Ok(Self::Info),
            "error" => Ok(Self::Error),
            _ => Err("debug, info or error is accepted".to_owned()),
        }
    }
}

/// A place for log lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogOutput {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The end of a file.
    File(PathBuf),
}

impl LogOutput {
    /// Reads `stdout`, `stderr`, a path or a `file://` URL of this host.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let local = text.strip_prefix("file://").map(|rest| rest.strip_prefix("localhost").unwrap_or(rest));
        match (text.trim(), local) {
            ("stdout", _) => Ok(Self::Stdout),
            ("stderr", _) => Ok(Self::Stderr),
            (_, Some(path)) if path.starts_with('/') => Ok(Self::File(path.into())),
            (path, None) if !path.is_empty() && !path.contains("://") => Ok(Self::File(path.into())),
            _ => Err("stdout, stderr or the path of a file is accepted".to_owned()),
        }
    }
}

/// The lease that decides who acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderElection {
    /// Name of the lease.
    pub name: String,
    /// Its namespace; nothing means the one that the process runs in.
    pub namespace: Option<String>,
}

/// How calls to Outscale's API are signed. No tool of Outscale's lets its user choose, and its SDK for Python refuses profiles with fields that it does
/// not know: so this is a setting of joiner's, and stands in no profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Signature {
    /// AWS' dialect.
    #[default]
    Aws4,
    /// Outscale's own.
    Osc4,
}

/// What the cloud `outscale` is told. Keys, region and endpoint are read as Outscale's own tools read them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutscaleSettings {
    /// Name of the cluster: the machines' mark.
    pub cluster_name: Option<String>,
    /// The cluster as the cloud controller manager knows it; nothing means by its name.
    pub cluster_id: Option<String>,
    /// A Secret with the keys; nothing means variables or a profile.
    pub secret: Option<String>,
    /// How calls are signed.
    pub signature: Signature,
    /// Prices that win over the API's.
    pub prices: Option<PathBuf>,
    /// What a hypervisor keeps of a machine's memory, in thousandths.
    pub memory_overhead: i64,
    /// Calls a second to each action of the API, in the long run.
    pub api_rps: u32,
}

/// All settings but those that only `run` or only `simulate` has.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Longest time over which pending pods are gathered.
    pub batch_max: Duration,
    /// Quiet time that ends the gathering.
    pub batch_idle: Duration,
    /// Whether what pods merely prefer counts.
    pub preference_policy: PreferencePolicy,
    /// Whether `minValues` must hold.
    pub min_values_policy: MinValuesPolicy,
    /// Which optional features are on.
    pub gates: FeatureGates,
    /// Spread constraints of pods that have none; their selectors are open.
    pub default_spreads: Vec<TopologySpread>,
    /// With gate NodeRepair: repair at once, outside of budgets.
    pub legacy_node_repair: bool,
    /// Initialize nodes without waiting for the devices of the drivers that their NodeClaims name.
    pub ignore_dra_requests: bool,
    /// Which planned pods are nominated.
    pub nominate: Nominate,
    /// Instance types of the clouds without machines; nothing means the built-in ones.
    pub instance_types: Option<PathBuf>,
    /// What the cloud `outscale` is told.
    pub outscale: OutscaleSettings,
    /// Port of `/metrics`; zero means any.
    pub metrics_port: u16,
    /// Port of `/healthz` and `/readyz`; zero means any.
    pub health_probe_port: u16,
    /// Requests a second to the API server in the long run.
    pub kube_client_qps: u32,
    /// Requests to the API server at once.
    pub kube_client_burst: u32,
    /// The kubeconfig, in files of which the first to say something counts; none means the usual place.
    pub kubeconfig: Vec<PathBuf>,
    /// Least severity of log lines.
    pub log_level: LogLevel,
    /// Where log lines go.
    pub log_outputs: Vec<LogOutput>,
    /// The lease; nothing means to act without one.
    pub leader_election: Option<LeaderElection>,
    /// Name of joiner's own pod, if told.
    pub pod_name: Option<String>,
    /// Worker threads: one for each core that was asked for or begun.
    pub threads: NonZeroUsize,
    /// Whether metrics of single pods, nodes and NodePools, and metrics and Events of conditions are there.
    pub cluster_state_observability: bool,
    /// What was given but not understood or without effect, one sentence each; to be logged at the start.
    pub warnings: Vec<String>,
}
