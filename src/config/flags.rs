//! Every flag with its variable, default and meaning. The doc comments are what `--help` and the README print.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction::Set;
use clap::{Args, Parser, Subcommand};

use crate::core::facts::TopologySpread;

use super::fake::Fake;
use super::gates::FeatureGates;
use super::settings::{
    Cloud, LogLevel, LogOutput, MinValuesPolicy, Nominate, Output, PreferencePolicy, Progress, Signature, Subject,
};
use super::{spreads, values};

/// Gives a Kubernetes cluster the nodes that its pending pods need, and looks after each until its machine is gone.
#[derive(Parser, Debug)]
#[command(
    name = "joiner",
    args_override_self = true,
    disable_help_subcommand = true,
    after_help = "Without a command, joiner runs: `joiner --log-level=debug` is `joiner run --log-level=debug`."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Sub,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(super) enum Sub {
    /// Look after a cluster until told to stop.
    Run(Box<RunFlags>),
    /// Rehearse a scenario or a trace in simulated time, and say what it would have bought and cost.
    Simulate(Box<SimulateFlags>),
    /// Say what would be bought for the pods in manifests or in a cluster, at what price, and how far from the best possible that is.
    /// Nothing is written.
    Plan(Box<PlanFlags>),
    /// Say why a pod found no place, or why a NodeClaim is as it is.
    Explain(Box<ExplainFlags>),
    /// Serve a stand-in for a cloud's API on this machine, to rehearse with.
    Fake(Fake),
    /// Print the custom resource definitions as YAML, for `kubectl apply --server-side -f -`.
    Crds,
    /// Print the version.
    Version,
}

#[derive(Args, Debug)]
pub(super) struct RunFlags {
    /// The cluster to look after: `kubeconfig`, or `simulated` for one in memory. Default: the cluster that joiner runs in, else
    /// the kubeconfig
    #[arg(long, env = "JOINER_CLUSTER", value_name = "CLUSTER", value_enum, help_heading = WORLD)]
    pub(super) cluster: Option<ClusterFlag>,

    /// Where machines come from: `kwok` (nodes without machines), `outscale` (3DS OUTSCALE) or `simulated`. Default: `kwok`; `simulated` in a simulated cluster
    #[arg(long, env = "JOINER_CLOUD", value_name = "CLOUD", value_enum, help_heading = WORLD)]
    pub(super) cloud: Option<Cloud>,

    /// Write nothing to the cluster and change nothing in the cloud: log what would be created or deleted, and why. With `--cloud outscale`
    #[arg(long, env = "DRY_RUN", value_name = "BOOL", default_value = "false", action = Set, help_heading = WORLD)]
    pub(super) dry_run: bool,

    /// What happens in a simulated cluster
    #[arg(value_name = "SCENARIO.yaml", help_heading = WORLD)]
    pub(super) scenario: Option<PathBuf>,

    /// Pods to create at once in a simulated cluster
    #[arg(long, value_name = "N", help_heading = WORLD)]
    pub(super) pods: Option<u32>,

    #[command(flatten)]
    pub(super) settings: Flags,
}

/// Heading of the flags that choose a world.
const WORLD: &str = "Cluster and cloud";

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum ClusterFlag {
    Kubeconfig,
    Simulated,
}

#[derive(Args, Debug)]
pub(super) struct SimulateFlags {
    /// What is to happen
    #[arg(value_name = "SCENARIO.yaml", help_heading = REHEARSAL)]
    pub(super) scenario: Option<PathBuf>,

    /// A recorded day instead: its format (`openb`: the pod list of Alibaba's openb traces) and its file
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE.csv"], help_heading = REHEARSAL)]
    pub(super) trace: Option<Vec<String>>,

    /// Seed of all chance, in place of the scenario's (1 where it names none); the same seed gives the same outcome, byte for byte
    #[arg(long, value_name = "N", help_heading = REHEARSAL)]
    pub(super) seed: Option<u64>,

    /// Write the outcome as a page with charts
    #[arg(long, value_name = "FILE.html", help_heading = REHEARSAL)]
    pub(super) report: Option<PathBuf>,

    /// How to print the outcome
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table, help_heading = REHEARSAL)]
    pub(super) output: Output,

    /// A progress bar on stderr: `auto` shows it on a terminal only
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Progress::Auto, help_heading = REHEARSAL)]
    pub(super) progress: Progress,

    /// Stop after so much simulated time. Default: when nothing more is to happen
    #[arg(long, value_name = "DURATION", value_parser = values::duration, help_heading = REHEARSAL)]
    pub(super) until: Option<Duration>,

    /// Play days of trouble instead, one for each seed, and look whether anything happens that must not: `mixed`, `none`, or kinds of
    /// fault with commas between them, each as often a day as is said behind it (`watch-stale=300`)
    #[arg(long, value_name = "FAULTS", help_heading = REHEARSAL)]
    pub(super) faults: Option<String>,

    /// With `--faults`: the seeds, as `1..10000` (both ends included). Default: the one of `--seed`
    #[arg(long, value_name = "SEEDS", value_parser = values::seeds, help_heading = REHEARSAL)]
    pub(super) seeds: Option<(u64, u64)>,

    #[command(flatten)]
    pub(super) settings: Flags,
}

#[derive(Args, Debug)]
pub(super) struct Input {
    /// Manifests to plan for: a file, a directory, or `-` for standard input; may be repeated. Default: what is in the cluster of the
    /// kubeconfig, which is only read
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1.., help_heading = PLAN)]
    pub(super) filename: Vec<PathBuf>,

    /// Plan also for all pods of a recorded day at once: its format (`openb`) and its file
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE.csv"], help_heading = PLAN)]
    pub(super) trace: Option<Vec<String>>,

    /// Plan also for so many mixed pods
    #[arg(long, value_name = "N", help_heading = PLAN)]
    pub(super) pods: Option<usize>,

    /// Whose instance types and prices count: `kwok`, or `outscale`, whose API is asked and where nothing is changed
    #[arg(long, env = "JOINER_CLOUD", value_name = "CLOUD", value_enum, hide_possible_values = true, default_value_t = Cloud::Kwok, help_heading = PLAN)]
    pub(super) cloud: Cloud,

    /// How to print the answer
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table, help_heading = PLAN)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) settings: Flags,
}

#[derive(Args, Debug)]
pub(super) struct PlanFlags {
    #[command(flatten)]
    pub(super) input: Input,

    /// Write the plan as a page: nodes with their pods, the price against its lower bound, and what was refused
    #[arg(long, value_name = "FILE.html", help_heading = PLAN)]
    pub(super) report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct ExplainFlags {
    /// What to explain
    #[arg(value_name = "KIND", value_enum, help_heading = EXPLAIN)]
    pub(super) subject: Subject,

    /// Its name; that of a pod may be NAMESPACE/NAME
    #[arg(value_name = "NAME", help_heading = EXPLAIN)]
    pub(super) name: String,

    /// Namespace of the pod. Default: the only one that has a pod of this name
    #[arg(short, long, value_name = "NAMESPACE", help_heading = EXPLAIN)]
    pub(super) namespace: Option<String>,

    /// The running joiner to ask, unless files, a trace or a number of pods say what to plan for: where its metrics are
    #[arg(long, env = "JOINER_URL", value_name = "URL", default_value = "http://127.0.0.1:8080", help_heading = EXPLAIN)]
    pub(super) url: String,

    #[command(flatten)]
    pub(super) input: Input,
}

/// Heading of the flags that a process needs and a rehearsal does not.
pub(super) const PROCESS: &str = "Process";

/// Heading of the flags that only Karpenter needs.
pub(super) const IGNORED: &str = "Accepted for compatibility, and ignored";

/// Heading of the flags of a rehearsal.
pub(super) const REHEARSAL: &str = "Rehearsal";

/// Heading of the flags of a plan.
pub(super) const PLAN: &str = "Plan";

/// Heading of the flags of an explanation.
pub(super) const EXPLAIN: &str = "Explanation";

/// The settings that `run`, `simulate`, `plan` and `explain` share.
#[derive(Args, Debug)]
pub(super) struct Flags {
    #[command(flatten)]
    pub(super) decisions: Decisions,
    #[command(flatten)]
    pub(super) outscale: OutscaleFlags,
    #[command(flatten)]
    pub(super) service: Service,
    #[command(flatten)]
    pub(super) ignored: Ignored,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Decisions")]
pub(super) struct Decisions {
    /// Longest time over which pending pods are gathered before nodes are planned for them
    #[arg(long, env, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub(super) batch_max_duration: Duration,

    /// Pending pods are planned for once no further one has come for this long
    #[arg(long, env, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    pub(super) batch_idle_duration: Duration,

    /// Whether what pods merely prefer is tried first (`Respect`) or left out (`Ignore`)
    #[arg(long, env, value_name = "POLICY", value_enum, default_value_t)]
    pub(super) preference_policy: PreferencePolicy,

    /// Whether a NodePool's `minValues` must hold (`Strict`) or may be lowered to place a pod (`BestEffort`)
    #[arg(long, env, value_name = "POLICY", value_enum, default_value_t)]
    pub(super) min_values_policy: MinValuesPolicy,

    /// Features to turn on or off: `Name=bool,...`. Names that are not listed in the default are ignored, names that are left out
    /// keep their default
    #[arg(long, env, value_name = "GATES", default_value = FeatureGates::DEFAULT, value_parser = FeatureGates::parse)]
    pub(super) feature_gates: FeatureGates,

    /// YAML with the spread constraints of pods that have none of their own (`podTopologySpread.defaultConstraints`); must be what
    /// kube-scheduler is configured with
    #[arg(long, env, value_name = "YAML", default_value = "", value_parser = spreads::parse)]
    pub(super) scheduler_config: Constraints,

    /// Initialize nodes without waiting for the devices of the drivers that their NodeClaims name. Pods with dynamic resource claims are refused
    /// either way: joiner does not allocate devices
    #[arg(long, env, value_name = "BOOL", default_value = "true", action = Set)]
    pub(super) ignore_dra_requests: bool,

    /// With gate NodeRepair: replace broken nodes at once and outside of disruption budgets, as Karpenter did before 1.15
    #[arg(long, env, value_name = "BOOL", default_value = "false", action = Set)]
    pub(super) legacy_node_repair: bool,

    /// Which planned pods get `status.nominatedNodeName`, so that kube-scheduler puts them where they were planned: `all`,
    /// `contested` (those that could lose their place to others) or `none`
    #[arg(long, env = "JOINER_NOMINATE", value_name = "PODS", value_enum, default_value_t)]
    pub(super) nominate: Nominate,

    /// JSON file with the instance types of the clouds `kwok` and `simulated`. Default: a built-in list
    #[arg(long, env, value_name = "FILE", visible_alias = "instance-types")]
    pub(super) instance_types_file_path: Option<PathBuf>,
}

/// A list of default constraints, as one value of one flag: a plain `Vec` would be a flag that may be repeated.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Constraints(pub(super) Vec<TopologySpread>);

/// A list of outputs, as one value of one flag.
#[derive(Clone, Debug)]
pub(super) struct LogOutputs(pub(super) Vec<LogOutput>);

impl LogOutputs {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(LogOutput::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Heading of the flags of the cloud `outscale`.
pub(super) const OUTSCALE: &str = "Outscale";

#[derive(Args, Debug)]
#[command(next_help_heading = OUTSCALE)]
pub(super) struct OutscaleFlags {
    /// Name of the cluster: machines are marked with it, and looked for by it. Required with `--cloud outscale`
    #[arg(long, env, value_name = "NAME", value_parser = values::mark)]
    pub(super) cluster_name: Option<String>,

    /// ID of the cluster in the tags `OscK8sClusterID/<id>`, by which the cloud controller manager finds its machines. Default: the cluster's name
    #[arg(long, env, value_name = "ID", value_parser = values::mark)]
    pub(super) osc_cluster_id: Option<String>,

    /// Secret in joiner's own namespace with `access_key`, `secret_key`, `region` and, if need be, `endpoint`; where it names no region or endpoint, `OSC_REGION` and `OSC_ENDPOINT_API` do. Default: variables, or a profile
    #[arg(long, env, value_name = "NAME")]
    pub(super) osc_secret: Option<String>,

    /// How calls are signed: `aws4` (as oapi-cli and the SDK for Rust do) or `osc4` (as osc-cli and the SDK for Python do). Outscale's API takes both
    #[arg(long, env, value_name = "DIALECT", default_value = "aws4")]
    pub(super) osc_signature: Signature,

    /// JSON file with prices that win over those of Outscale's price lists: `cores` (`v6-p2`), `gib`, `gpus`, `gpuModels`, `types`, per hour
    #[arg(long, env, value_name = "FILE")]
    pub(super) outscale_prices: Option<PathBuf>,

    /// Part of a machine's memory that its hypervisor keeps
    #[arg(long, env, value_name = "PART", default_value = "0.075", value_parser = values::thousandths)]
    pub(super) vm_memory_overhead_percent: i64,

    /// Calls a second to each action of Outscale's API, in the long run; twice as many at once. joiner slows down by itself where the API refuses
    #[arg(long, env, value_name = "N", default_value_t = 5, value_parser = values::positive)]
    pub(super) osc_api_rps: u32,
}

#[derive(Args, Debug)]
#[command(next_help_heading = PROCESS)]
pub(super) struct Service {
    /// Port of `/metrics` on all interfaces, plain HTTP; 0 takes any free one
    #[arg(long, env, value_name = "PORT", default_value_t = 8080, value_parser = values::port)]
    pub(super) metrics_port: u16,

    /// Port of `/healthz` and `/readyz`; 0 takes any free one
    #[arg(long, env, value_name = "PORT", default_value_t = 8081, value_parser = values::port)]
    pub(super) health_probe_port: u16,

    /// Requests a second to the API server, in the long run
    #[arg(long, env, value_name = "N", default_value_t = 200, value_parser = values::positive)]
    pub(super) kube_client_qps: u32,

    /// Requests to the API server at once
    #[arg(long, env, value_name = "N", default_value_t = 300, value_parser = values::positive)]
    pub(super) kube_client_burst: u32,

    /// Kubeconfig to use outside of a cluster; several files are separated as in PATH. Default: `~/.kube/config`
    #[arg(long, env, value_name = "FILES")]
    pub(super) kubeconfig: Option<OsString>,

    /// Least severity of log lines: `debug`, `info` or `error`
    #[arg(long, env, value_name = "LEVEL", default_value = "info", value_parser = LogLevel::parse)]
    pub(super) log_level: LogLevel,

    /// Where log lines go: `stdout`, `stderr` or files, separated by commas
    #[arg(long, env, value_name = "PATHS", default_value = "stdout", value_parser = LogOutputs::parse)]
    pub(super) log_output_paths: LogOutputs,

    /// Act without holding the lease; only ever with one replica
    #[arg(long, env, value_name = "BOOL", default_value = "false", action = Set)]
    pub(super) disable_leader_election: bool,

    /// Name of the lease
    #[arg(long, env, value_name = "NAME", default_value = "karpenter-leader-election")]
    pub(super) leader_election_name: String,

    /// Namespace of the lease. Default: the namespace that joiner runs in, outside of a cluster `kube-system`
    #[arg(long, env, value_name = "NAMESPACE")]
    pub(super) leader_election_namespace: Option<String>,

    /// Name of joiner's own pod, with which its identity in the lease begins. Default: the host name
    #[arg(long, env, value_name = "NAME")]
    pub(super) pod_name: Option<String>,

    /// CPU that joiner may count on, in thousandths of a core: it gets a worker thread for each core begun. Zero and less mean 1000
    #[arg(long, env, value_name = "MILLICORES", default_value_t = 1000, allow_negative_numbers = true, value_parser = values::integer)]
    pub(super) cpu_requests: i64,

    /// Leave out the metrics of single pods, nodes and NodePools, and those of conditions, with their Events
    #[arg(long, env, value_name = "BOOL", default_value = "false", action = Set)]
    pub(super) disable_cluster_state_observability: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = IGNORED)]
pub(super) struct Ignored {
    /// Ignored: joiner has no garbage collector to limit
    #[arg(long, env, value_name = "BYTES", default_value_t = -1, allow_negative_numbers = true, value_parser = values::integer)]
    pub(super) memory_limit: i64,

    /// Ignored: there are no Go profiles to serve
    #[arg(long, env, value_name = "BOOL", default_value = "false", action = Set)]
    pub(super) enable_profiling: bool,

    /// Ignored: replicas that wait for the lease always watch, so that they can take over at once
    #[arg(long, env, value_name = "BOOL", default_value = "true", action = Set)]
    pub(super) disable_controller_warmup: bool,

    /// Ignored: joiner's logger has no errors of its own to write elsewhere
    #[arg(long, env, value_name = "PATHS", default_value = "stderr")]
    pub(super) log_error_output_paths: String,

    /// Ignored: a leftover of Karpenter's webhooks
    #[arg(long, env, value_name = "NAME", default_value = "")]
    pub(super) karpenter_service: String,
}
