//! From arguments and variables to a [`Command`].

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, ValueEnum};

use super::flags::{
    Cli, ClusterFlag, ExplainFlags, Flags, IGNORED, Input, OUTSCALE, OutscaleFlags, PROCESS, PlanFlags, RunFlags,
    SimulateFlags, Sub,
};
use super::settings::{
    Cloud, Cluster, Command, Explain, Faults, LeaderElection, OutscaleSettings, Plan, Run, Settings, Simulate, Trace,
    TraceFormat, World,
};
use super::values;

/// The command line as it is documented: the flags of `flags`, with the truth values taking `--x` and `--x=true|false`.
pub(super) fn documented() -> clap::Command {
    let plain = Cli::command().mut_subcommands(|command| {
        command.mut_args(|arg| {
            if is::<bool>(&arg) {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true").hide_possible_values(true)
            } else {
                arg
            }
            .hide_env_values(true)
        })
    });
    // A rehearsal is given the flags of a process to ignore, so that one set of arguments serves both; its help need not list them.
    let hidden = |command: clap::Command, but: &'static str| {
        command.mut_args(|arg| {
            let idle = matches!(arg.get_help_heading(), Some(PROCESS | IGNORED)) && arg.get_id() != but;
            arg.hide(idle)
        })
    };
    plain
        .mut_subcommand("simulate", |command| {
            hidden(command, "log_level").mut_args(|arg| {
                let idle = arg.get_help_heading() == Some(OUTSCALE);
                if idle { arg.hide(true) } else { arg }
            })
        })
        .mut_subcommand("plan", |command| hidden(command, "kubeconfig"))
        .mut_subcommand("explain", |command| hidden(command, "kubeconfig"))
}

/// Reads the arguments (without the program's name) and the variables that `env` knows.
///
/// The error is one message that names what was given and what is accepted.
pub fn parse(args: impl IntoIterator<Item = String>, env: impl Fn(&str) -> Option<String>) -> Result<Command, String> {
    let documented = documented();
    let mut args = with_command(args.into_iter().collect(), &documented)?;
    let name = args.first().cloned().unwrap_or_default();
    let mut warnings = Vec::new();
    if let Some(command) = documented.find_subcommand(&name) {
        args = args.into_iter().map(|arg| go_style(arg, command)).collect();
        let from_env = variables(command, &env, &mut warnings)?;
        // Flags override flags before them, so what the variables say goes first.
        args.splice(1..1, from_env);
    }
    // clap is not to look at the process's variables: a test's have been read above.
    let deaf = documented.clone().mut_subcommands(|command| command.mut_args(|arg| arg.env(None::<&'static str>)));
    let matches = match deaf.try_get_matches_from(with_name(&args)) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp) => {
            return Ok(Command::Print(help(documented, &args)));
        }
        Err(error) => return Err(message(&error)),
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|error| message(&error))?;
    match cli.command {
        Sub::Run(flags) => run(*flags, warnings),
        Sub::Simulate(flags) => simulate(*flags, warnings),
        Sub::Plan(flags) => {
            let PlanFlags { input, report } = *flags;
            Ok(Command::Plan(Box::new(plan(input, report, warnings)?)))
        }
        Sub::Explain(flags) => {
            let ExplainFlags { subject, name, namespace, url, input } = *flags;
            let plan = plan(input, None, warnings)?;
            Ok(Command::Explain(Box::new(Explain { plan, subject, name, namespace, url })))
        }
        Sub::Fake(fake) => Ok(Command::Fake(fake)),
        Sub::Crds => Ok(Command::Crds),
        Sub::Version => Ok(Command::Version),
    }
}

/// Puts `run` in front of flags that follow no command, and takes the usual words for help and version.
fn with_command(mut args: Vec<String>, documented: &clap::Command) -> Result<Vec<String>, String> {
    match args.first().map_or("", String::as_str) {
        "-h" | "--help" | "-help" | "help" => return Ok(vec!["--help".to_owned()]),
        "-V" | "--version" | "-version" => return Ok(vec!["version".to_owned()]),
        command if documented.find_subcommand(command).is_some() => {}
        flag if flag.is_empty() || flag.starts_with('-') => args.insert(0, "run".to_owned()),
        word => {
            return Err(format!(
                "{word:?} is no command of joiner; run, simulate, plan, explain, fake, crds, version and help are"
            ));
        }
    }
    Ok(args)
}

/// The arguments as clap wants them, with the program's name in front.
fn with_name(args: &[String]) -> impl Iterator<Item = &str> {
    std::iter::once("joiner").chain(args.iter().map(String::as_str))
}

/// Gives a flag in Go's style (`-log-level=debug`) its second dash.
fn go_style(arg: String, command: &clap::Command) -> String {
    let name = arg.strip_prefix('-').map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
    let known = |name: &str| name == "help" || command.get_arguments().any(|arg| arg.get_long() == Some(name));
    if name.is_some_and(known) { format!("-{arg}") } else { arg }
}

/// The variables that are set, as flags. What cannot be read is a warning where Karpenter falls back, and else an error.
fn variables(
    command: &clap::Command,
    env: &impl Fn(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for arg in command.get_arguments() {
        let (Some(variable), Some(long)) = (arg.get_env().and_then(OsStr::to_str), arg.get_long()) else { continue };
        let Some(value) = env(variable).filter(|value| !value.is_empty()) else { continue };
        let written = match values::truth(&value) {
            Some(on) if is::<bool>(arg) => on.to_string(),
            _ => value.clone(),
        };
        let flag = format!("--{long}={written}");
        let alone = clap::Command::new("joiner").no_binary_name(true).arg(arg.clone().env(None::<&'static str>));
        match alone.try_get_matches_from([&flag]) {
            Ok(_) => flags.push(flag),
            Err(error) if falls_back(arg) => {
                let default =
                    arg.get_default_values().iter().map(|d| d.to_string_lossy()).collect::<Vec<_>>().join(",");
                let accepted = if is::<bool>(arg) { values::TRUTH.to_owned() } else { accepted(&error) };
                warnings.push(format!("variable {variable} is {value:?}: {accepted}; taking the default {default}"));
            }
            Err(error) => return Err(format!("variable {variable} is {value:?}: {}", accepted(&error))),
        }
    }
    Ok(flags)
}

/// Whether Karpenter takes the default when a variable of this type cannot be read.
fn falls_back(arg: &Arg) -> bool {
    is::<bool>(arg) || is::<u16>(arg) || is::<u32>(arg) || is::<i64>(arg) || is::<std::time::Duration>(arg)
}

/// Whether the values of a flag have a type.
fn is<T: Clone + Send + Sync + 'static>(arg: &Arg) -> bool {
    let typed: ValueParser = (|_: &str| -> Result<T, String> { Err(String::new()) }).into();
    arg.get_value_parser().type_id() == typed.type_id()
}

/// What a flag accepts, out of clap's complaint.
fn accepted(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(words)) => format!("{} is accepted", words.join(" or ")),
        _ => message(error),
    }
}

/// clap's complaint without its first word and its advice.
fn message(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.replace("\n\nFor more information, try '--help'.", "").trim_end().to_owned()
}

/// The help text, with the names of the variables.
fn help(documented: clap::Command, args: &[String]) -> String {
    // Variables were put in front as flags; they do not matter to the text.
    match documented.try_get_matches_from(with_name(args)) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    }
}

fn run(flags: RunFlags, warnings: Vec<String>) -> Result<Command, String> {
    let RunFlags { settings, cluster, cloud, dry_run, scenario, pods } = flags;
    let simulated = cluster == Some(ClusterFlag::Simulated);
    if !simulated {
        let given =
            [scenario.as_ref().map(|file| format!("scenario {}", file.display())), pods.map(|_| "--pods".to_owned())];
        if let Some(given) = given.into_iter().flatten().next() {
            return Err(format!(
                "{given} goes with a simulated cluster only; add --cluster simulated, or leave it out"
            ));
        }
    }
    let cluster = match cluster {
        None => Cluster::Found,
        Some(ClusterFlag::Kubeconfig) => Cluster::Kubeconfig,
        Some(ClusterFlag::Simulated) => Cluster::Simulated(World { scenario, pods }),
    };
    let cloud = cloud.unwrap_or(if simulated { Cloud::Simulated } else { Cloud::Kwok });
    if cloud == Cloud::Outscale {
        if simulated {
            return Err("--cloud outscale needs a real cluster; leave --cluster simulated out".to_owned());
        }
        named(&settings.outscale)?;
    } else if dry_run {
        return Err(
            "--dry-run goes with --cloud outscale only; `joiner plan` says what would be bought elsewhere".to_owned()
        );
    }
    Ok(Command::Run(Box::new(Run { settings: validated(settings, warnings), cluster, cloud, dry_run })))
}

/// Without the cluster's name nobody could tell whose a machine is.
fn named(flags: &OutscaleFlags) -> Result<(), String> {
    if flags.cluster_name.is_none() {
        return Err("--cloud outscale needs the cluster's name, which becomes its machines' mark; set --cluster-name or CLUSTER_NAME".to_owned());
    }
    Ok(())
}

fn simulate(flags: SimulateFlags, warnings: Vec<String>) -> Result<Command, String> {
    let SimulateFlags { settings, scenario, trace, seed, report, output, progress, until, faults, seeds } = flags;
    let trace = recorded(trace.as_deref())?;
    let faults = faults.map(|profile| Faults { profile, seeds });
    if faults.is_none() {
        if scenario.is_none() && trace.is_none() {
            return Err(
                "nothing to simulate; name a SCENARIO.yaml, a trace with --trace openb FILE.csv, or --faults mixed"
                    .to_owned(),
            );
        }
        if seeds.is_some() {
            return Err("--seeds goes with --faults only; add --faults mixed, or name one seed with --seed".to_owned());
        }
    } else {
        let given = [
            (scenario.is_some(), "a scenario"),
            (trace.is_some(), "--trace"),
            (until.is_some(), "--until"),
            (report.is_some(), "--report"),
            (seeds.is_some() && seed.is_some(), "--seed beside --seeds"),
        ];
        if let Some((_, what)) = given.into_iter().find(|(given, _)| *given) {
            return Err(format!("{what} does not go with --faults, which plays days of its own; leave it out"));
        }
    }
    let settings = validated(settings, warnings);
    Ok(Command::Simulate(Box::new(Simulate {
        settings,
        scenario,
        trace,
        seed,
        report,
        output,
        progress,
        until,
        faults,
    })))
}

/// The value of `--trace`.
fn recorded(written: Option<&[String]>) -> Result<Option<Trace>, String> {
    let Some([format, file]) = written else { return Ok(None) };
    let format = TraceFormat::from_str(format, false)
        .map_err(|_| format!("--trace has the format {format:?}; openb is accepted"))?;
    Ok(Some(Trace { format, file: PathBuf::from(file) }))
}

fn plan(input: Input, report: Option<PathBuf>, warnings: Vec<String>) -> Result<Plan, String> {
    let Input { filename, trace, pods, cloud, output, settings } = input;
    let trace = recorded(trace.as_deref())?;
    if cloud == Cloud::Simulated {
        return Err("--cloud simulated has no prices of its own; kwok and outscale are accepted".to_owned());
    }
    Ok(Plan { settings: validated(settings, warnings), files: filename, trace, pods, cloud, output, report })
}

/// Flags as settings; combinations without effect become warnings.
fn validated(flags: Flags, mut warnings: Vec<String>) -> Settings {
    let Flags { decisions, outscale, service, ignored: _ } = flags;
    let gates = decisions.feature_gates;
    for name in &gates.unknown {
        warnings.push(format!("feature gate {name} is not known and has no effect"));
    }
    if gates.terminate_first_repair && (!gates.node_repair || decisions.legacy_node_repair) {
        warnings.push(
            "feature gate TerminateFirstRepair has no effect without NodeRepair, nor with legacy node repair"
                .to_owned(),
        );
    }
    if !decisions.ignore_dra_requests {
        warnings
            .push("IGNORE_DRA_REQUESTS=false: pods with dynamic resource claims are refused all the same; only NodeClaims that name drivers wait for their devices".to_owned());
    }
    let millicores = usize::try_from(service.cpu_requests).ok().filter(|millicores| *millicores > 0).unwrap_or(1000);
    Settings {
        batch_max: decisions.batch_max_duration,
        batch_idle: decisions.batch_idle_duration,
        preference_policy: decisions.preference_policy,
        min_values_policy: decisions.min_values_policy,
        gates,
        default_spreads: decisions.scheduler_config.0,
        legacy_node_repair: decisions.legacy_node_repair,
        ignore_dra_requests: decisions.ignore_dra_requests,
        nominate: decisions.nominate,
        instance_types: decisions.instance_types_file_path,
        outscale: OutscaleSettings {
            cluster_name: outscale.cluster_name,
            cluster_id: outscale.osc_cluster_id,
            secret: outscale.osc_secret,
            signature: outscale.osc_signature,
            prices: outscale.outscale_prices,
            memory_overhead: outscale.vm_memory_overhead_percent,
            api_rps: outscale.osc_api_rps,
        },
        metrics_port: service.metrics_port,
        health_probe_port: service.health_probe_port,
        kube_client_qps: service.kube_client_qps,
        kube_client_burst: service.kube_client_burst,
        kubeconfig: service.kubeconfig.iter().flat_map(std::env::split_paths).collect(),
        log_level: service.log_level,
        log_outputs: service.log_output_paths.0,
        leader_election: (!service.disable_leader_election).then_some(LeaderElection {
            name: service.leader_election_name,
            namespace: service.leader_election_namespace,
        }),
        pod_name: service.pod_name,
        threads: NonZeroUsize::new(millicores.div_ceil(1000)).unwrap_or(NonZeroUsize::MIN),
        cluster_state_observability: !service.disable_cluster_state_observability,
        warnings,
    }
}
