//! The Helm chart in `charts/joiner`: it carries our definitions, it says nothing that joiner does not understand, and it can be rendered.
//! The Dockerfile, whose image it runs, agrees with it and with Cargo.toml.

#[allow(dead_code, reason = "of the control plane only helm is needed")]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/joiner")
}

fn read(name: &str) -> String {
    fs::read_to_string(chart().join(name)).expect(name)
}

#[test]
fn the_definitions_are_those_that_joiner_prints() {
    let remedy = "run `joiner crds > charts/joiner/crds/crds.yaml`";
    assert_eq!(fs::read_dir(chart().join("crds")).expect("there are definitions").count(), 1, "{remedy}");
    assert!(read("crds/crds.yaml") == joiner::api::crds::yaml(), "charts/joiner/crds is out of date: {remedy}");
}

#[test]
fn every_variable_of_the_deployment_is_a_setting() {
    let settings = joiner::config::table();
    // Written out, or given to `joiner.variables`.
    let pattern = Regex::new(r#"(?:- name: |\n +")([A-Z_]+)\b"#).expect("it is a pattern");
    let deployment = read("templates/deployment.yaml");
    let variables: BTreeSet<&str> = pattern.captures_iter(&deployment).map(|found| found.extract::<1>().1[0]).collect();
    let unknown: Vec<_> = variables.iter().filter(|name| !settings.contains(&format!("`{name}`"))).collect();
    assert_eq!(unknown, Vec::<&&str>::new());
    assert!(["POD_NAME", "LOG_LEVEL", "BATCH_MAX_DURATION", "DRY_RUN"].iter().all(|name| variables.contains(name)));
}

#[test]
fn the_chart_has_the_feature_gates_and_defaults_of_joiner() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("values.yaml is YAML");
    let gates = values["settings"]["featureGates"].as_object().expect("there are gates");
    let text = |(name, on): (&String, &Value)| {
        let (first, rest) = name.split_at(1);
        format!("{}{rest}={on}", first.to_uppercase())
    };
    let ours: BTreeSet<String> = gates.iter().map(text).collect();
    let default = joiner::config::table();
    let default = default.split("`--feature-gates GATES` | `FEATURE_GATES` | `").nth(1).expect("there is such a flag");
    let default = default.split('`').next().unwrap_or_default();
    assert_eq!(ours, default.split(", ").map(str::to_owned).collect());
    for (value, variable) in [
        ("batchMaxDuration", "BATCH_MAX_DURATION"),
        ("batchIdleDuration", "BATCH_IDLE_DURATION"),
        ("preferencePolicy", "PREFERENCE_POLICY"),
        ("minValuesPolicy", "MIN_VALUES_POLICY"),
        ("nominate", "JOINER_NOMINATE"),
        ("kubeClientQps", "KUBE_CLIENT_QPS"),
        ("kubeClientBurst", "KUBE_CLIENT_BURST"),
        ("disableClusterStateObservability", "DISABLE_CLUSTER_STATE_OBSERVABILITY"),
        ("ignoreDRARequests", "IGNORE_DRA_REQUESTS"),
        ("legacyNodeRepair", "LEGACY_NODE_REPAIR"),
    ] {
        let written = values["settings"][value].to_string();
        let row = format!("`{variable}` | `{}` |", written.trim_matches('"'));
        assert!(joiner::config::table().contains(&row), "{value}: {written} is not joiner's default");
    }
}

#[test]
fn the_schema_knows_every_value_and_no_other() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("values.yaml is YAML");
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("the schema is JSON");
    compare("", &values, &schema);
}

#[test]
fn the_chart_takes_what_joiner_takes_of_a_hypervisors_part() {
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("the schema is JSON");
    let part = &schema["properties"]["outscale"]["properties"]["vmMemoryOverheadPercent"];
    let most = part["maximum"].as_f64().expect("there is a maximum");
    let is_taken = |part: f64| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_joiner"))
            .args(["plan", "--vm-memory-overhead-percent", &part.to_string(), "-f", "/nonexistent"])
            .env_clear()
            .output()
            .expect("joiner can be started");
        !String::from_utf8_lossy(&output.stderr).contains("a part from 0 to")
    };
    assert!(is_taken(most) && !is_taken(most + 0.01));
    assert_eq!(part["minimum"], 0);
}

/// Holds the names of a map against those that its schema allows.
fn compare(path: &str, values: &Value, schema: &Value) {
    let (Some(values), Some(properties)) = (values.as_object(), schema["properties"].as_object()) else { return };
    assert_eq!(schema["additionalProperties"], false, "{path} lets misspelt names through");
    // `global` is helm's own; what is Karpenter's alone has a comment, and no value here.
    let is_ours = |(name, schema): &(&String, &Value)| *name != "global" && schema.get("$comment").is_none();
    let allowed: BTreeSet<_> = properties.iter().filter(is_ours).map(|(name, _)| name).collect();
    assert_eq!(values.keys().collect::<BTreeSet<_>>(), allowed, "{path}");
    for (name, value) in values {
        compare(&format!("{path}.{name}"), value, &properties[name]);
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn helm_lints_and_renders_every_file_of_values() {
    let chart = chart();
    let chart = chart.to_str().expect("the repository has a plain name");
    let mut rendered = 0;
    for file in fs::read_dir(format!("{chart}/ci")).expect("there are values to try") {
        let path = file.expect("it can be listed").path();
        let values = path.to_str().expect("the repository has a plain name");
        let linted = common::controlplane::helm(&["lint", "--strict", chart, "--values", values]);
        let objects = linted.and_then(|_| template(&["--values", values, WITH_MONITORS]));
        for object in objects.unwrap_or_else(|error| panic!("{values}: {error}")) {
            assert!(object["metadata"]["labels"]["app.kubernetes.io/instance"] == "joiner", "{values}: {object}");
            if values.ends_with("/outscale.yaml") && object["kind"] == "Deployment" {
                assert_eq!(object["spec"]["replicas"], 1, "each replica of a dry run would say the same");
            }
        }
        rendered += 1;
    }
    assert!(rendered >= 3);
    let refused = render(&json!({"settings": {"batchIdleDurations": "1s"}}));
    assert!(refused.expect_err("there is no such value").contains("batchIdleDurations"));
}

/// For helm without a cluster: the cluster has the Prometheus operator.
const WITH_MONITORS: &str = "--api-versions=monitoring.coreos.com/v1";

/// What helm makes of the chart, or why it does not.
fn template(args: &[&str]) -> Result<Vec<Value>, String> {
    let chart = chart();
    let chart = chart.to_str().expect("the repository has a plain name");
    let args = [&["template", "joiner", chart, "--namespace", "autoscaling"][..], args].concat();
    // The command, which names all values, is no part of the reason.
    let reason = |error: String| error.rsplit(": exit status: 1: ").next().unwrap_or_default().to_owned();
    let text = common::controlplane::helm(&args).map_err(reason)?;
    let parts = text.split("\n---").filter(|part| !part.trim().is_empty());
    Ok(parts.map(|part| serde_saphyr::from_str(part.trim_start_matches("---")).expect("helm renders YAML")).collect())
}

/// The same with these values, in a cluster that has the Prometheus operator.
fn render(values: &Value) -> Result<Vec<Value>, String> {
    let values = values.as_object().expect("values are a map");
    let values: Vec<String> = values.iter().map(|(name, value)| format!("--set-json={name}={value}")).collect();
    template(&values.iter().map(String::as_str).chain([WITH_MONITORS]).collect::<Vec<_>>())
}

/// The only object of a kind that these values make.
#[track_caller]
fn rendered(kind: &str, values: &Value) -> Value {
    let objects = render(values).expect("helm takes these values");
    let mut found = objects.into_iter().filter(|object| object["kind"] == kind);
    let object = found.next().expect(kind);
    assert_eq!(found.next(), None, "{values}: there is more than one {kind}");
    object
}

/// The pod of joiner's Deployment with these values.
#[track_caller]
fn pod(values: &Value) -> Value {
    rendered("Deployment", values)["spec"]["template"]["spec"].take()
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn terms_that_have_a_selector_keep_it_and_others_get_that_of_joiners_pods() {
    let theirs = json!({"matchLabels": {"app": "other"}});
    let ours = json!({"matchLabels": {"app.kubernetes.io/name": "joiner", "app.kubernetes.io/instance": "joiner"}});
    let terms = json!([{"topologyKey": "zone", "labelSelector": theirs}, {"topologyKey": "host"}]);
    let pod = pod(&json!({
        "topologySpreadConstraints": terms,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    }));
    let required = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    for terms in [&pod["topologySpreadConstraints"], required] {
        assert_eq!((&terms[0]["labelSelector"], &terms[1]["labelSelector"]), (&theirs, &ours));
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn sidecars_get_their_own_mounts_those_of_joiner_and_those_of_sidecars() {
    let mount = |name: &&str| json!({"name": name, "mountPath": format!("/{name}")});
    let mounts = |names: &[&str]| -> Value { names.iter().map(mount).collect() };
    let containers_with = |shared: Value| {
        let sidecars = json!([{"name": "proxy", "volumeMounts": mounts(&["own"])}, {"name": "plain"}]);
        let extra = mounts(&["extra"]);
        let controller =
            json!({"extraVolumeMounts": extra, "sidecarVolumeMounts": shared, "sidecarContainer": sidecars});
        pod(&json!({ "controller": controller }))["containers"].take()
    };
    let containers = containers_with(mounts(&["shared"]));
    assert_eq!(containers[0]["volumeMounts"], mounts(&["extra"]));
    assert_eq!(containers[1]["volumeMounts"], mounts(&["own", "extra", "shared"]));
    assert_eq!(containers[2]["volumeMounts"], mounts(&["extra", "shared"]));
    assert_eq!(containers_with(Value::Null)[2]["volumeMounts"], mounts(&["extra"]));
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn settings_that_are_null_are_the_defaults() {
    let others = |values: Value| -> Vec<Value> {
        let objects = render(&values).unwrap_or_else(|error| panic!("{values}: {error}"));
        objects.into_iter().filter(|object| object["kind"] != "Deployment").collect()
    };
    for (values, gone) in [
        (json!({"settings": null}), "BATCH_MAX_DURATION"),
        (json!({"settings": {"featureGates": null}}), "FEATURE_GATES"),
        (json!({"settings": {"kubeClientQps": null}}), "KUBE_CLIENT_QPS"),
    ] {
        let has = |values: &Value| {
            let pod = pod(values);
            let variables = pod["containers"][0]["env"].as_array().expect("there are variables");
            variables.iter().any(|variable| variable["name"] == gone)
        };
        // Without the variable, joiner has the default that the chart has as well.
        assert!(has(&json!({})) && !has(&values), "{values}");
        assert_eq!(others(values), others(json!({})));
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn whatever_is_null_is_left_out_or_refused_by_its_name() {
    let defaults: Value = serde_saphyr::from_str(&read("values.yaml")).expect("values.yaml is YAML");
    let mut paths = Vec::new();
    collect_paths(&mut paths, &[], &defaults);
    for path in paths {
        let mut values = json!({
            "cloud": "outscale",
            "outscale": {"clusterName": "demo", "keysSecret": "keys"},
            "serviceMonitor": {"enabled": true},
            "controller": {"sidecarContainer": [{"name": "proxy"}]},
        });
        let mut place = &mut values;
        for name in &path {
            place = &mut place[name];
        }
        *place = Value::Null;
        match render(&values) {
            Ok(objects) => {
                let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("there is one");
                let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array();
                let mut empty =
                    variables.expect("there are variables").iter().filter(|one| one.get("value") == Some(&Value::Null));
                assert_eq!(empty.next(), None, "{path:?}");
            }
            Err(why) => {
                // What the schema and the templates refuse in words begins otherwise.
                let is_named = path.last().is_some_and(|name| why.contains(*name));
                assert!(is_named && !why.contains("Error: template:"), "{path:?}: {why}");
            }
        }
    }
}

/// The paths of all values, those of maps among them.
fn collect_paths<'a>(paths: &mut Vec<Vec<&'a str>>, path: &[&'a str], values: &'a Value) {
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = [path, &[name.as_str()]].concat();
        collect_paths(paths, &path, value);
        paths.push(path);
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn an_image_without_a_name_is_joiners_own() {
    let image = |image: Value| pod(&json!({"controller": {"image": image}}))["containers"][0]["image"].take();
    let ours = format!("joiner:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(image(json!({})), ours);
    assert_eq!(image(json!({"repository": "", "tag": "", "digest": ""})), ours);
    assert_eq!(image(json!({"repository": "here/joiner", "tag": "1"})), "here/joiner:1");
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn a_service_monitor_is_left_out_where_the_cluster_does_not_know_the_kind() {
    let monitors = |args: &[&str]| {
        let objects = template(args).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        objects.iter().filter(|object| object["kind"] == "ServiceMonitor").count()
    };
    let enabled = "--set=serviceMonitor.enabled=true";
    assert_eq!((monitors(&[enabled]), monitors(&[enabled, WITH_MONITORS]), monitors(&[WITH_MONITORS])), (0, 1, 0));
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn what_karpenters_chart_says_of_pods_service_and_monitor_holds() {
    let profile = json!({"type": "Localhost", "localhostProfile": "joiner.json"});
    let security =
        json!({"appArmorProfile": profile, "seLinuxOptions": {"type": "joiner_t"}, "seccompProfile": profile});
    let first = json!([{"name": "wait", "image": "wait"}]);
    let values = json!({
        "schedulerName": "another",
        "initContainers": first,
        "controller": {"containerName": "joiner", "securityContext": security},
        "logErrorOutputPaths": ["stderr", "/errors"],
        "service": {"annotations": {"a": "b"}},
        "serviceMonitor": {
            "enabled": true, "sampleLimit": 5_000_000, "endpointConfig": {"interval": "15s"},
            "relabelings": [{"action": "keep"}], "metricRelabelings": [{"action": "drop"}],
        },
    });
    let pod = pod(&values);
    assert_eq!((&pod["schedulerName"], &pod["initContainers"]), (&json!("another"), &first));
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "joiner");
    for (name, said) in security.as_object().expect("it is a map") {
        assert_eq!(container["securityContext"][name], *said, "{name}");
    }
    assert_eq!(container["securityContext"]["runAsNonRoot"], true, "what is not said stays");
    let variable = |name: &str| {
        let mut variables = container["env"].as_array().expect("there are variables").iter();
        variables.find(|variable| variable["name"] == name).unwrap_or_else(|| panic!("there is no {name}"))
    };
    assert_eq!(variable("CPU_REQUESTS")["valueFrom"]["resourceFieldRef"]["containerName"], "joiner");
    assert_eq!(variable("LOG_ERROR_OUTPUT_PATHS")["value"], "stderr,/errors");
    assert_eq!(rendered("Service", &values)["metadata"]["annotations"], json!({"a": "b"}));
    let monitor = &rendered("ServiceMonitor", &values)["spec"];
    assert_eq!(monitor["sampleLimit"], 5_000_000);
    let endpoint = json!({
        "port": "http-metrics", "path": "/metrics", "interval": "15s",
        "relabelings": [{"action": "keep"}], "metricRelabelings": [{"action": "drop"}],
    });
    assert_eq!(monitor["endpoints"], json!([endpoint]));
}

/// What only Karpenter has, by its name below `settings`: its default there, and what there is instead.
fn foreign_settings() -> serde_json::Map<String, Value> {
    serde_saphyr::from_str(&read("karpenter-settings.yaml")).expect("it is a map in YAML")
}

#[test]
fn the_schema_and_the_readme_have_what_only_karpenter_has() {
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("the schema is JSON");
    let settings = schema["properties"]["settings"]["properties"].as_object().expect("there are settings");
    let marked = settings.iter().filter(|(_, schema)| schema["$comment"] == "karpenter-settings.yaml");
    let foreign = foreign_settings();
    assert_eq!(marked.map(|(name, _)| name).collect::<BTreeSet<_>>(), foreign.keys().collect());
    let readme = read("README.md");
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("values.yaml is YAML");
    for (name, setting) in &foreign {
        assert!(readme.contains(&format!("`settings.{name}`")), "the chart's README does not speak of settings.{name}");
        let ours = format!("outscale.{name} ");
        let is_told = setting["instead"].as_str().is_some_and(|instead| instead.contains(&ours));
        assert_eq!(is_told, values["outscale"].get(name).is_some(), "settings.{name}: {setting}");
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn what_only_karpenter_has_is_refused_with_a_remedy_when_it_says_something() {
    let settings = |value: &dyn Fn(&Value) -> Value| {
        let all = foreign_settings().into_iter().map(|(name, setting)| (name, value(&setting)));
        let all: serde_json::Map<_, _> = all.collect();
        json!({ "settings": all })
    };
    let defaults = settings(&|setting| setting["default"].clone());
    for silent in [defaults, settings(&|_| json!("")), settings(&|_| Value::Null)] {
        render(&silent).unwrap_or_else(|error| panic!("{silent}: {error}"));
    }
    let refused = render(&settings(&|_| json!("something"))).expect_err("all of them say something");
    for (name, setting) in foreign_settings() {
        let instead = setting["instead"].as_str().expect("there is a remedy");
        assert!(
            refused.contains(&format!("settings.{name} is Karpenter's and for AWS, remove it: {instead}\n")),
            "{refused}"
        );
    }
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn the_default_values_of_karpenters_charts_carry_over() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chart");
    let file = |name: &str| format!("--values={}", folder.join(name).display());
    let deployed = |args: &[&str]| {
        let objects = template(args).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        objects.into_iter().find(|object| object["kind"] == "Deployment").expect("there is one")["spec"].take()
    };
    let kwok = deployed(&[&file("karpenter-kwok.yaml")]);
    let image = |deployed: &Value| deployed["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!((&kwok["replicas"], image(&kwok)), (&json!(1), json!(concat!("joiner:", env!("CARGO_PKG_VERSION")))));
    // Nobody wants to run Karpenter with joiner's settings: the image is all that has to be said.
    let aws = file("karpenter-aws.yaml");
    let refused = template(&[&aws]).expect_err("the image is Karpenter's");
    assert!(refused.contains("controller.image is Karpenter's") && !refused.contains("settings."), "{refused}");
    let aws =
        deployed(&[&aws, r#"--set-json=controller.image={"repository": "here/joiner", "tag": "", "digest": ""}"#]);
    assert_eq!((&aws["replicas"], image(&aws)), (&json!(2), json!(concat!("here/joiner:", env!("CARGO_PKG_VERSION")))));
    assert_eq!(aws["template"]["spec"]["dnsPolicy"], "ClusterFirst");
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn devices_may_be_listed_only_where_they_are_waited_for() {
    let rules = |settings: Value| {
        let objects = render(&json!({ "settings": settings })).expect("helm takes these values");
        let rules =
            objects.iter().filter(|object| object["kind"] == "ClusterRole").filter_map(|role| role["rules"].as_array());
        let of_devices = rules.flatten().filter(|rule| rule["apiGroups"] == json!(["resource.k8s.io"])).cloned();
        of_devices.collect::<Vec<_>>()
    };
    assert!(rules(json!({})).is_empty());
    let waits = json!({ "apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"] });
    assert_eq!(rules(json!({ "ignoreDRARequests": false })), [waits]);
}

#[test]
#[ignore = "needs helm: tests/controlplane"]
fn the_pod_is_hardened_watched_and_spread() {
    let deployment = rendered("Deployment", &json!({}));
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "system-cluster-critical");
    assert_eq!(pod["securityContext"], json!({"fsGroup": 65532}));
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selector = json!({"matchLabels": labels});
    assert_eq!(deployment["spec"]["selector"], selector);
    let spread = json!([{
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector,
    }]);
    assert_eq!(pod["topologySpreadConstraints"], spread);
    let affinity = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]},
        ]}},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector},
        ]},
    });
    assert_eq!(pod["affinity"], affinity);
    let container = &pod["containers"][0];
    let security = json!({
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "runAsNonRoot": true,
        "readOnlyRootFilesystem": true,
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert_eq!(container["securityContext"], security);
    let ports = json!([
        {"name": "http-metrics", "containerPort": 8080, "protocol": "TCP"},
        {"name": "http", "containerPort": 8081, "protocol": "TCP"},
    ]);
    assert_eq!(container["ports"], ports);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "http"}), "{probe}");
    }
    let limits = &container["resources"]["limits"];
    assert!(limits["memory"].is_string() && limits.get("cpu").is_none(), "{limits}");
    assert_eq!(rendered("PodDisruptionBudget", &json!({}))["spec"], json!({"maxUnavailable": 1, "selector": selector}));
    let service = rendered("Service", &json!({}));
    assert_eq!((&service["spec"]["type"], &service["spec"]["selector"]), (&json!("ClusterIP"), labels));
    let port = json!({"name": "http-metrics", "port": 8080, "targetPort": "http-metrics", "protocol": "TCP"});
    assert_eq!(service["spec"]["ports"], json!([port]));
    let monitor = rendered("ServiceMonitor", &json!({"serviceMonitor": {"enabled": true}}));
    let watched = json!({
        "namespaceSelector": {"matchNames": ["autoscaling"]},
        "selector": selector,
        "endpoints": [{"port": "http-metrics", "path": "/metrics"}],
    });
    assert_eq!(monitor["spec"], watched);
}

/// What a line of the Dockerfile has in a group of a pattern.
#[track_caller]
fn dockerfile(pattern: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Dockerfile");
    let text = fs::read_to_string(file).expect("there is a Dockerfile");
    let found = Regex::new(&format!("(?m)^{pattern}")).expect("it is a pattern").captures(&text);
    found.expect(pattern)[1].to_owned()
}

#[test]
fn the_image_is_built_by_a_compiler_and_in_a_profile_that_there_are() {
    let version = |text: &str| text.split('.').map(|part| part.parse().expect(text)).collect::<Vec<u32>>();
    let compiler = version(&dockerfile(r"FROM rust:([0-9.]+)-alpine AS build$"));
    assert!(compiler >= version(env!("CARGO_PKG_RUST_VERSION")), "the Dockerfile's Rust is too old: {compiler:?}");
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("Cargo.toml");
    let profile = dockerfile(".* cargo build --profile ([a-z]+) --locked --bin joiner ");
    assert!(manifest.contains(&format!("\n[profile.{profile}]\n")), "there is no profile {profile}");
    assert_eq!(dockerfile(".* cp target/([a-z]+)/joiner "), profile, "what is copied is what was built");
}

#[test]
fn the_image_has_the_user_and_the_ports_that_the_chart_says() {
    let deployment = read("templates/deployment.yaml");
    let user = dockerfile("USER ([0-9]+:[0-9]+)$");
    let (user, group) = user.split_once(':').expect("there is a group");
    for line in [format!("runAsUser: {user}\n"), format!("runAsGroup: {group}\n")] {
        assert!(deployment.contains(&line), "the Deployment does not say {line}");
    }
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("values.yaml is YAML");
    let ports = ["metrics", "healthProbe"].map(|port| values["controller"][port]["port"].to_string());
    assert_eq!(dockerfile("EXPOSE (.*)$"), ports.join(" "));
}
