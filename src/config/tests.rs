//! The settings as users meet them: defaults, precedence, grammars, and the messages for what cannot be read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::facts::PolicyHonor;

use super::*;

/// Reads a command line in an environment that holds these variables and no others.
fn read(line: &[&str], variables: &[(&str, &str)]) -> Result<Command, String> {
    let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    parse(line.iter().map(|word| (*word).to_owned()), env)
}

fn run(line: &[&str], variables: &[(&str, &str)]) -> Run {
    match read(line, variables) {
        Ok(Command::Run(run)) => *run,
        other => panic!("{line:?} with {variables:?}: {other:?}"),
    }
}

fn settings(line: &[&str], variables: &[(&str, &str)]) -> Settings {
    run(line, variables).settings
}

fn refused(line: &[&str], variables: &[(&str, &str)]) -> String {
    read(line, variables).expect_err("a refusal was expected")
}

#[test]
fn nothing_at_all_runs_with_the_defaults_of_karpenter() {
    let run = run(&[], &[]);
    assert_eq!((run.cluster, run.cloud), (Cluster::Found, Cloud::Kwok));
    let expected = Settings {
        batch_max: Duration::from_secs(10),
        batch_idle: Duration::from_secs(1),
        preference_policy: PreferencePolicy::Respect,
        min_values_policy: MinValuesPolicy::Strict,
        gates: FeatureGates::default(),
        default_spreads: Vec::new(),
        legacy_node_repair: false,
        ignore_dra_requests: true,
        nominate: Nominate::All,
        instance_types: None,
        outscale: OutscaleSettings { memory_overhead: 75, api_rps: 5, ..OutscaleSettings::default() },
        metrics_port: 8080,
        health_probe_port: 8081,
        kube_client_qps: 200,
        kube_client_burst: 300,
        kubeconfig: Vec::new(),
        log_level: LogLevel::Info,
        log_outputs: vec![LogOutput::Stdout],
        leader_election: Some(LeaderElection { name: "karpenter-leader-election".to_owned(), namespace: None }),
        pod_name: None,
        threads: std::num::NonZeroUsize::MIN,
        cluster_state_observability: true,
        warnings: Vec::new(),
    };
    assert_eq!(run.settings, expected);
}

#[test]
fn karpenters_chart_and_suites_are_understood() {
    let settings = settings(
        &[],
        &[
            ("KUBERNETES_MIN_VERSION", "1.19.0-0"),
            ("KARPENTER_SERVICE", "karpenter"),
            ("LOG_LEVEL", "debug"),
            ("METRICS_PORT", "8090"),
            ("HEALTH_PROBE_PORT", "0"),
            ("SYSTEM_NAMESPACE", "kube-system"),
            ("MEMORY_LIMIT", "1073741824"),
            ("CPU_REQUESTS", "1500"),
            ("FEATURE_GATES", "StaticCapacity=true, NodeRepair = 1,ReservedCapacity=f,CapacityBuffer=false"),
            ("BATCH_MAX_DURATION", "1m0.5s"),
            ("BATCH_IDLE_DURATION", "250ms"),
            ("PREFERENCE_POLICY", "Ignore"),
            ("MIN_VALUES_POLICY", "BestEffort"),
            ("LEADER_ELECTION_NAMESPACE", "kube-system"),
            ("POD_NAME", "karpenter-5f"),
            ("LOG_OUTPUT_PATHS", "stderr,/var/log/joiner.log"),
            ("DISABLE_CLUSTER_STATE_OBSERVABILITY", "T"),
            ("IGNORE_DRA_REQUESTS", "1"),
            ("INSTANCE_TYPES_FILE_PATH", "types.json"),
            ("KUBECONFIG", "a/config:b/config"),
        ],
    );
    assert_eq!(settings.warnings, Vec::<String>::new());
    assert_eq!((settings.metrics_port, settings.health_probe_port, settings.threads.get()), (8090, 0, 2));
    assert_eq!(settings.log_level, LogLevel::Debug);
    assert_eq!(settings.log_outputs, [LogOutput::Stderr, LogOutput::File("/var/log/joiner.log".into())]);
    assert_eq!(
        settings.gates,
        FeatureGates { static_capacity: true, node_repair: true, reserved_capacity: false, ..FeatureGates::default() }
    );
    assert_eq!((settings.batch_max, settings.batch_idle), (Duration::from_millis(60_500), Duration::from_millis(250)));
    assert_eq!(settings.preference_policy, PreferencePolicy::Ignore);
    assert_eq!(settings.min_values_policy, MinValuesPolicy::BestEffort);
    assert_eq!(settings.leader_election.and_then(|lease| lease.namespace).as_deref(), Some("kube-system"));
    assert_eq!(settings.pod_name.as_deref(), Some("karpenter-5f"));
    assert!(!settings.cluster_state_observability);
    assert_eq!(settings.instance_types.as_deref(), Some(Path::new("types.json")));
    assert_eq!(settings.kubeconfig, [Path::new("a/config"), Path::new("b/config")]);
}

#[test]
fn a_flag_wins_over_a_variable_and_the_last_flag_over_the_others() {
    let variables = [("METRICS_PORT", "1"), ("FEATURE_GATES", "NodeOverlay=true"), ("LOG_OUTPUT_PATHS", "a,b")];
    let line =
        ["run", "--metrics-port", "2", "--metrics-port=3", "--feature-gates=NodeRepair=true", "--log-output-paths=c,d"];
    let settings = settings(&line, &variables);
    assert_eq!(settings.metrics_port, 3);
    assert!(settings.gates.node_repair && !settings.gates.node_overlay);
    assert_eq!(settings.log_outputs, [LogOutput::File("c".into()), LogOutput::File("d".into())]);
}

#[test]
fn a_number_truth_or_duration_that_cannot_be_read_falls_back_and_is_named() {
    let variables = [
        ("METRICS_PORT", "70000"),
        ("KUBE_CLIENT_QPS", "-5"),
        ("CPU_REQUESTS", "1500m"),
        ("DISABLE_LEADER_ELECTION", "yes"),
        ("BATCH_IDLE_DURATION", "1 s"),
        ("BATCH_MAX_DURATION", "10"),
    ];
    let mut settings = settings(&[], &variables);
    settings.warnings.sort();
    assert_eq!(
        settings.warnings,
        [
            "variable BATCH_IDLE_DURATION is \"1 s\": a duration such as 10s, 1m30s or 500ms is accepted; taking the default 1s",
            "variable BATCH_MAX_DURATION is \"10\": a duration such as 10s, 1m30s or 500ms is accepted; taking the default 10s",
            "variable CPU_REQUESTS is \"1500m\": a whole number is accepted; taking the default 1000",
            "variable DISABLE_LEADER_ELECTION is \"yes\": true, false, 1, 0, t or f is accepted; taking the default false",
            "variable KUBE_CLIENT_QPS is \"-5\": a whole number from 1 to 4294967295 is accepted; taking the default 200",
            "variable METRICS_PORT is \"70000\": a port number from 0 to 65535 is accepted; taking the default 8080",
        ]
    );
    let warnings = settings.warnings.drain(..).count();
    assert_eq!((warnings, settings), (6, self::settings(&[], &[])));
}

#[test]
fn other_variables_that_cannot_be_read_end_the_start() {
    for (variable, value, told) in [
        ("LOG_LEVEL", "warn", "variable LOG_LEVEL is \"warn\": debug, info or error is accepted"),
        ("PREFERENCE_POLICY", "ignore", "variable PREFERENCE_POLICY is \"ignore\": Respect or Ignore is accepted"),
        ("JOINER_NOMINATE", "some", "variable JOINER_NOMINATE is \"some\": all or contested or none is accepted"),
        (
            "FEATURE_GATES",
            "NodeRepair=on",
            "variable FEATURE_GATES is \"NodeRepair=on\": gate NodeRepair has the value \"on\"; true, false, 1, 0, t or f is accepted",
        ),
        ("FEATURE_GATES", "NodeRepair", "variable FEATURE_GATES is \"NodeRepair\": \"NodeRepair\" is not Name=bool"),
        (
            "LOG_OUTPUT_PATHS",
            "stdout,http://x",
            "variable LOG_OUTPUT_PATHS is \"stdout,http://x\": stdout, stderr or the path of a file is accepted",
        ),
    ] {
        assert_eq!(refused(&[], &[(variable, value)]), told);
    }
}

#[test]
fn empty_variables_count_as_not_set() {
    let empty = ["METRICS_PORT", "LOG_LEVEL", "PREFERENCE_POLICY", "LEADER_ELECTION_NAMESPACE", "SCHEDULER_CONFIG"];
    assert_eq!(settings(&[], &empty.map(|name| (name, ""))), settings(&[], &[]));
}

#[test]
fn flags_that_cannot_be_read_abort_with_one_message() {
    assert_eq!(
        refused(&["--metrics-port=http"], &[]),
        "invalid value 'http' for '--metrics-port <PORT>': a port number from 0 to 65535 is accepted"
    );
    assert_eq!(
        refused(&["--disable-leader-election=1"], &[]),
        "invalid value '1' for '--disable-leader-election[=<BOOL>]'\n  [possible values: true, false]"
    );
    assert!(refused(&["--no-such-flag"], &[]).starts_with("unexpected argument '--no-such-flag' found"));
    assert_eq!(
        refused(&["run", "day.yaml"], &[]),
        "scenario day.yaml goes with a simulated cluster only; add --cluster simulated, or leave it out"
    );
    assert!(refused(&["--pods=3", "--cluster=kubeconfig"], &[]).starts_with("--pods goes with a simulated cluster"));
    assert!(refused(&["--batch-max-duration=-1s"], &[]).contains("a duration such as 10s"));
}

#[test]
fn truth_flags_stand_alone_or_take_a_value() {
    let on = |line: &[&str]| settings(line, &[("ENABLE_PROFILING", "1")]).leader_election.is_none();
    assert!(on(&["--disable-leader-election"]) && on(&["--disable-leader-election=true"]));
    assert!(!on(&["--disable-leader-election=false"]) && !on(&[]));
    // The word after a truth flag is not its value, as in Go.
    let run = run(&["--cluster=simulated", "--disable-leader-election", "day.yaml"], &[]);
    let world = World { scenario: Some("day.yaml".into()), pods: None };
    assert_eq!((run.cluster, run.cloud), (Cluster::Simulated(world), Cloud::Simulated));
}

#[test]
fn one_dash_does_as_in_go() {
    let settings =
        settings(&["-log-level=debug", "-metrics-port", "9", "-legacy-node-repair", "-memory-limit", "-1"], &[]);
    assert_eq!((settings.log_level, settings.metrics_port, settings.legacy_node_repair), (LogLevel::Debug, 9, true));
}

#[test]
fn a_processor_share_of_nothing_means_one_core() {
    let threads = |millicores: &str| settings(&["--cpu-requests", millicores], &[]).threads.get();
    assert_eq!(["-3", "0", "1", "1000", "1001", "4000"].map(threads), [1, 1, 1, 1, 2, 4]);
}

#[test]
fn settings_without_effect_are_named() {
    let warnings =
        settings(&["--feature-gates=Nodrepair=true,TerminateFirstRepair=true", "--ignore-dra-requests=false"], &[])
            .warnings;
    assert_eq!(
        warnings,
        [
            "feature gate Nodrepair is not known and has no effect",
            "feature gate TerminateFirstRepair has no effect without NodeRepair, nor with legacy node repair",
            "IGNORE_DRA_REQUESTS=false: pods with dynamic resource claims are refused all the same; only NodeClaims that name drivers wait for their devices",
        ]
    );
}

#[test]
fn the_documented_gates_are_the_defaults() {
    assert_eq!(FeatureGates::parse(FeatureGates::DEFAULT), Ok(FeatureGates::default()));
    let all_on = FeatureGates::parse(&FeatureGates::DEFAULT.replace("false", "true")).expect("gates");
    assert!(all_on.pod_deletion_cost_management && all_on.terminate_first_drift && all_on.capacity_buffer);
    assert_eq!((all_on.unknown.len(), FeatureGates::DEFAULT.split(',').count()), (0, 9));
}

/// A scheduler configuration with one constraint that has these lines.
fn constraint(lines: &str) -> String {
    format!("podTopologySpread:\n  defaultConstraints:\n  - {}\n", lines.replace(';', "\n    "))
}

#[test]
fn default_constraints_are_read() {
    let good = constraint(
        "maxSkew: 2;topologyKey: topology.kubernetes.io/zone;whenUnsatisfiable: DoNotSchedule;minDomains: 3;nodeTaintsPolicy: Honor",
    );
    let spreads = settings(&[], &[("SCHEDULER_CONFIG", &good)]).default_spreads;
    assert_eq!(spreads.len(), 1);
    assert_eq!(
        (&*spreads[0].key, spreads[0].max_skew, spreads[0].min_domains),
        ("topology.kubernetes.io/zone", 2, Some(3))
    );
    assert!(spreads[0].required && spreads[0].selector.is_none());
    assert_eq!(spreads[0].node_taints_policy, PolicyHonor::Honor);
    for (kind, least) in [("ScheduleAnyway", 3), ("DoNotSchedule", 0)] {
        let lines = format!("maxSkew: 1;topologyKey: zone;whenUnsatisfiable: {kind};minDomains: {least}");
        let spreads = settings(&[], &[("SCHEDULER_CONFIG", &constraint(&lines))]).default_spreads;
        assert_eq!(spreads[0].min_domains, None, "as kube-scheduler does, which takes it");
    }
    let json = r#"{"podTopologySpread": {"defaultConstraints": []}}"#;
    assert!(settings(&["--scheduler-config", json], &[]).default_spreads.is_empty());
}

#[test]
fn default_constraints_are_strict() {
    let zone = "topologyKey: zone;whenUnsatisfiable: ScheduleAnyway";
    for (config, told) in [
        ("podTopologySpred: {}".to_owned(), "unknown field"),
        ("podTopologySpread: {constraints: []}".to_owned(), "unknown field"),
        (
            constraint(&format!("{zone};maxSkew: 0")),
            "defaultConstraints[0].maxSkew is 0; write a whole number of at least 1",
        ),
        (constraint("maxSkew: 1;whenUnsatisfiable: DoNotSchedule"), "[0].topologyKey: \"\" is not a qualified name"),
        (constraint("maxSkew: 1;topologyKey: zone"), "[0].whenUnsatisfiable is \"\"; write DoNotSchedule"),
        (constraint(&format!("{zone};maxSkew: 1;labelSelector: {{}}")), "[0].labelSelector is not allowed"),
        (constraint(&format!("{zone};maxSkew: 1;matchLabelKeys: [a]")), "[0].matchLabelKeys is not allowed"),
        (constraint(&format!("{zone};maxSkew: one")), "one"),
        (
            format!(
                "{0}  - {1}",
                constraint(&format!("{zone};maxSkew: 1")),
                format!("{zone};maxSkew: 2").replace(';', "\n    ")
            ),
            "defaultConstraints[1] repeats topologyKey zone",
        ),
    ] {
        let message = refused(&[], &[("SCHEDULER_CONFIG", &config)]);
        assert!(message.contains(told), "{message}\nlacks {told}");
    }
}

#[test]
fn rehearsals_are_read() {
    let line = [
        "simulate",
        "day.yaml",
        "--seed",
        "7",
        "--report=out.html",
        "-o",
        "json",
        "--progress=never",
        "--until=24h",
        "--instance-types",
        "types.json",
        "--nominate=all",
    ];
    let Ok(Command::Simulate(simulate)) = read(&line, &[("BATCH_IDLE_DURATION", "2s")]) else { panic!("no rehearsal") };
    assert_eq!(simulate.scenario.as_deref(), Some(Path::new("day.yaml")));
    assert_eq!((simulate.seed, simulate.output, simulate.progress), (Some(7), Output::Json, Progress::Never));
    assert_eq!(simulate.until, Some(Duration::from_hours(24)));
    assert_eq!(simulate.report.as_deref(), Some(Path::new("out.html")));
    assert_eq!(simulate.settings.instance_types.as_deref(), Some(Path::new("types.json")));
    assert_eq!((simulate.settings.nominate, simulate.settings.batch_idle), (Nominate::All, Duration::from_secs(2)));

    let Ok(Command::Simulate(simulate)) = read(&["simulate", "--trace", "openb", "pods.csv"], &[]) else {
        panic!("no rehearsal of a trace")
    };
    let trace = simulate.trace.expect("a trace");
    assert_eq!((trace.format, trace.file), (TraceFormat::Openb, PathBuf::from("pods.csv")));
    assert!(refused(&["simulate"], &[]).starts_with("nothing to simulate; name a SCENARIO.yaml"));
    assert!(refused(&["simulate", "--trace", "azure", "pods.csv"], &[]).contains("openb is accepted"));
}

#[test]
fn the_short_commands_are_read() {
    assert_eq!(read(&["crds"], &[]), Ok(Command::Crds));
    assert_eq!(read(&["version"], &[]), Ok(Command::Version));
    assert_eq!(read(&["--version"], &[]), Ok(Command::Version));
    assert_eq!(
        refused(&["simulat", "day.yaml"], &[]),
        "\"simulat\" is no command of joiner; run, simulate, plan, explain, fake, crds, version and help are"
    );
}

#[test]
fn help_names_flags_variables_and_defaults() {
    let help = |line: &[&str]| match read(line, &[("METRICS_PORT", "9")]) {
        Ok(Command::Print(text)) => text,
        other => panic!("{other:?}"),
    };
    let run = help(&["run", "--help"]);
    for part in ["--metrics-port <PORT>", "[env: METRICS_PORT]", "[default: 8080]", "--legacy-node-repair[=<BOOL>]"] {
        assert!(run.contains(part), "{part} is missing in\n{run}");
    }
    assert_eq!(run, help(&["run", "-help"]));
    assert!(run.contains("Usage: joiner run [OPTIONS] [SCENARIO.yaml]"), "{run}");
    let all = help(&["--help"]);
    assert_eq!(all, help(&["help"]));
    let simulate = help(&["simulate", "--help"]);
    assert!(
        simulate.contains("--log-level") && simulate.contains("--nominate") && !simulate.contains("--metrics-port")
    );
    assert!(all.contains("simulate") && all.contains("Without a command, joiner runs"), "{all}");
}

#[test]
fn the_table_in_the_readme_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md at the root of the repository");
    let mut parts = readme.split("<!-- settings -->");
    let (Some(_), Some(shown), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        panic!("README.md must hold the table of settings between two lines <!-- settings -->");
    };
    assert!(shown.trim() == table().trim(), "README.md is out of date; put this between the markers:\n\n{}", table());
}

#[test]
fn every_setting_is_explained() {
    for line in table().lines().filter(|line| line.starts_with("| `")) {
        let cells = line.split(" | ").collect::<Vec<_>>();
        assert_eq!(cells.len(), 4, "{line}");
        assert!(cells[3].len() > 12, "{line}");
    }
}

#[test]
fn durations_are_those_of_go() {
    let read = |text: &str| settings(&["--batch-max-duration", text], &[]).batch_max;
    let micros = ["0", "1us", "1µs", "1ms", "1.5s", "1m", "1h2m3s", "0.5h"].map(|text| read(text).as_micros());
    assert_eq!(micros, [0, 1, 1, 1000, 1_500_000, 60_000_000, 3_723_000_000, 1_800_000_000]);
    for bad in ["", "1", "1h30", "s", "1 s", "1s ago", "PT1S", "1d", "1w", "1min", "1sec", "-1s", "1:30:00", "1h,1m"] {
        let message = refused(&[&format!("--batch-max-duration={bad}")], &[]);
        assert!(message.contains("a duration such as 10s"), "{bad:?}: {message}");
    }
}

#[test]
fn outscale_is_told_whose_machines_are_whose() {
    let told = run(
        &["--cloud=outscale", "--dry-run", "--osc-secret", "keys", "--osc-api-rps", "20"],
        &[("CLUSTER_NAME", "prod"), ("OSC_CLUSTER_ID", "id-1"), ("VM_MEMORY_OVERHEAD_PERCENT", "0.05")],
    );
    assert!(told.dry_run && told.cloud == Cloud::Outscale);
    let outscale = told.settings.outscale;
    assert_eq!((outscale.cluster_name.as_deref(), outscale.cluster_id.as_deref()), (Some("prod"), Some("id-1")));
    assert_eq!((outscale.secret.as_deref(), outscale.memory_overhead), (Some("keys"), 50));
    assert_eq!((outscale.api_rps, outscale.signature), (20, Signature::Aws4));
    let signature = |args: &[&str], env: &[(&str, &str)]| {
        let args: Vec<&str> = ["--cloud=outscale", "--cluster-name=x"].iter().chain(args).copied().collect();
        run(&args, env).settings.outscale.signature
    };
    assert_eq!(signature(&["--osc-signature", "osc4"], &[]), Signature::Osc4);
    assert_eq!(signature(&[], &[("OSC_SIGNATURE", "osc4")]), Signature::Osc4);
    assert!(refused(&["--osc-signature", "osc5"], &[]).contains("aws4, osc4"));
    assert!(refused(&["--osc-api-rps", "0"], &[]).contains("a whole number from 1"));
    assert!(refused(&["--cloud=outscale"], &[]).contains("set --cluster-name or CLUSTER_NAME"));
    assert!(
        refused(&["--cloud=outscale", "--cluster=simulated"], &[("CLUSTER_NAME", "x")])
            .contains("needs a real cluster")
    );
    assert!(refused(&["--dry-run"], &[]).contains("--dry-run goes with --cloud outscale only"));
    assert!(refused(&["--cluster-name", "a b"], &[]).contains("letters, digits"));
    assert!(refused(&["--vm-memory-overhead-percent", "7.5"], &[]).contains("a part from 0 to 0.5"));
    let planned = read(&["plan", "--cloud", "outscale"], &[]);
    assert!(matches!(planned, Ok(Command::Plan(plan)) if plan.cloud == Cloud::Outscale));
    assert!(refused(&["plan", "--cloud", "simulated"], &[]).contains("has no prices of its own"));
}
