//! `joiner plan` with Outscale's prices, and what NodeOverlays make of them.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::account::Account;

const WANTED: &str = r#"
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default }
spec: { containers: [{ name: c, image: c, resources: { requests: { cpu: "1", memory: 1Gi } } }] }
"#;

const OVERLAY: &str = r#"
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: { name: contract }
spec:
  requirements: [{ key: karpenter.outscale.com/instance-cpu, operator: In, values: ["8"] }]
  price: "0.001"
"#;

#[test]
fn a_plan_buys_what_nodeoverlays_make_cheap() {
    let program = Path::new(env!("CARGO_BIN_EXE_joiner"));
    let account = Account::open(program, &[]);
    let plan = |text: &str| {
        let mut command = Command::new(program);
        let nodepool = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/outscale/nodepool.yaml");
        command.args(["plan", "--cloud", "outscale", "--feature-gates", "NodeOverlay=true", "--output", "json"]);
        command.arg("-f").arg(nodepool).args(["-f", "-"]).env_clear().envs(&account.variables);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("joiner can be started");
        child.stdin.take().expect("stdin is piped").write_all(text.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("our own child can be waited for");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert!(plan.is_object(), "{said}");
        plan
    };
    let bought = |plan: &Value| {
        let claim = &plan["nodeClaims"][0];
        (claim["instanceTypes"][0].as_str().unwrap_or_default().to_owned(), claim["price"].as_f64())
    };
    let (kind, price) = bought(&plan(WANTED));
    assert!(kind.starts_with("tinav") && price.is_some_and(|price| price > 0.01), "{kind} {price:?}");
    let overlaid = plan(&[WANTED, OVERLAY].concat());
    let (kind, price) = bought(&overlaid);
    assert!(kind.contains(".c8r") && price == Some(0.001), "{overlaid}");
}

/// A plan over files, with the fake's prices: what came of it, and what was said beside it.
fn plan(account: &Account, keys: &[&str], files: &[&Path]) -> (Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joiner"));
    command.args(["plan", "--cloud", "outscale", "--output", "json"]).args(keys).env_clear();
    if keys.is_empty() {
        command.envs(&account.variables);
    }
    for file in files {
        command.arg("-f").arg(file);
    }
    let output = command.stdin(Stdio::null()).output().expect("joiner can be started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), said)
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

#[test]
fn the_examples_go_together() {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
    let refused: Vec<&str> =
        plan["unschedulable"].as_array().into_iter().flatten().filter_map(|pod| pod["pod"].as_str()).collect();
    assert_eq!(refused, ["default/giant", "default/report"], "{plan:#} {said}");
}

#[test]
fn calls_may_be_signed_in_outscales_own_dialect() {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let signed = |dialect: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joiner"));
        command.args(["plan", "--cloud", "outscale", "--output", "json", "--osc-signature", dialect]).env_clear();
        command.envs(&account.variables).arg("-f").arg(&files[0]).arg("-f").arg(&files[1]).stdin(Stdio::null());
        let output = command.output().expect("joiner can be started");
        (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (plan, said) = signed("osc4");
    let plan: Value = serde_json::from_slice(&plan).unwrap_or_default();
    assert!(plan["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{said}");
    assert!(said.contains("prices are those of the account's price list of http://127.0.0.1:"), "{said}");
    let (plan, said) = signed("osc3");
    assert!(plan.is_empty() && said.contains("aws4, osc4"), "{said}");
}

#[test]
fn the_keys_of_a_plan_may_stand_in_a_secret_among_the_files() {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let word = |name: &str| account.variables[name].as_str();
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: outscale-keys, namespace: kube-system}}\nstringData: {{access_key: {}, secret_key: {}, \
         region: {}, endpoint: \"{}\"}}\n",
        word("OSC_ACCESS_KEY"),
        word("OSC_SECRET_KEY"),
        word("OSC_REGION"),
        word("OSC_ENDPOINT_API")
    );
    let path = std::env::temp_dir().join(format!("joiner-keys-{}.yaml", std::process::id()));
    std::fs::write(&path, secret).expect("there is room");
    let (nodepool, workloads) = (example("outscale/nodepool.yaml"), example("plan/workloads.yaml"));
    let keys = ["--osc-secret", "outscale-keys"];
    let (with, said) = plan(&account, &keys, &[&nodepool, &workloads, &path]);
    let (without, asked) = plan(&account, &keys, &[&nodepool, &workloads]);
    std::fs::remove_file(&path).expect("it is there");
    assert!(with["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{said}");
    assert!(!said.contains(word("OSC_SECRET_KEY")), "{said}");
    assert!(
        without.is_null()
            && asked
                .contains("Secret outscale-keys is in none of the files; correct its name, or name its file with -f"),
        "{asked}"
    );
}

#[test]
fn nothing_is_planned_for_a_nodeclass_whose_permissions_are_missing_and_the_statement_is_told() {
    let flags = ["--deny", "ReadSubnets"];
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &flags);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
    assert_eq!(plan["nodeClaims"], Value::Array(Vec::new()), "{said}");
    let statement = r#"{"Effect":"Allow","Action":["api:ReadSubnets"],"Resource":["*"]}"#;
    assert!(said.contains(statement), "{said}");
    let reasons = plan["unschedulable"][0]["reasons"].as_array().cloned().unwrap_or_default();
    let why: Vec<String> = reasons.iter().map(Value::to_string).collect();
    let is_told =
        |why: &String| why.contains("workers is not ready: SubnetsReady is False: ") && why.contains("api:ReadSubnets");
    assert!(why.iter().any(is_told), "{why:?}");
}

#[test]
fn whoever_may_only_read_can_plan() {
    let flags = ["--deny", "CreateVms", "--deny", "DeleteVms", "--quota", "vms=0"];
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &flags);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
    assert!(plan["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{plan:#} {said}");
    assert!(said.contains("PermissionsReady is False: ") && said.contains("api:CreateVms"), "{said}");
}

#[test]
fn quotas_that_would_refuse_some_of_a_plan_are_named_and_the_plan_is_made_all_the_same() {
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    for (flags, told) in [
        (&["--quota", "vms=0"][..], Some("machines: vm_limit (0 of 0 used, ")),
        (&["--quota", "cores=1"], Some("machines: core_limit (0 of 1 used, ")),
        (&[], None),
    ] {
        let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), flags);
        let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
        assert!(plan["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{plan:#} {said}");
        assert_eq!(said.contains("the account's quotas would refuse"), told.is_some(), "{said}");
        assert!(said.contains(told.unwrap_or_default()), "{said}");
    }
}

#[test]
fn a_nodepool_of_a_zone_without_subnets_is_refused_with_the_zones_that_there_are() {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let text = std::fs::read_to_string(example("outscale/nodepool.yaml")).expect("it is there");
    let zone = "requirements:\n        - { key: topology.kubernetes.io/zone, operator: In, values: [eu-west-2c] }";
    let path = std::env::temp_dir().join(format!("joiner-zone-{}.yaml", std::process::id()));
    std::fs::write(&path, text.replace("requirements:", zone)).expect("there is room");
    let (plan, said) = plan(&account, &[], &[&path, &example("plan/workloads.yaml")]);
    std::fs::remove_file(&path).expect("it is there");
    let why = plan["unschedulable"][0]["reasons"].to_string();
    for part in ["topology.kubernetes.io/zone", "eu-west-2c", "eu-west-2a, eu-west-2b", "spec.subnetIds"] {
        assert!(why.contains(part), "{part}: {why} {said}");
    }
}

#[test]
fn refused_keys_are_told_once_and_with_their_remedy() {
    let mut account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    account.variables.insert("OSC_SECRET_KEY".to_owned(), "wrong".to_owned());
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
    let why = plan["unschedulable"][0]["reasons"].to_string();
    for text in [&why, &said] {
        assert!(
            text.contains("PermissionsReady is False: the API refuses the keys: ")
                && text.contains("check the access key"),
            "{text}"
        );
        assert!(!text.contains("not asked"), "{text}");
    }
}

#[test]
fn an_api_that_cannot_be_reached_is_the_reason_why_nothing_can_be_planned() {
    let mut account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    // It speaks no TLS.
    let plain = account.variables["OSC_ENDPOINT_API"].replace("http://", "https://");
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free");
    for (endpoint, cause) in [
        (format!("http://{nobody}/api/v1"), "Connection refused"),
        ("https://api.nowhere.invalid/api/v1".to_owned(), "dns error"),
        (plain, "corrupt message"),
    ] {
        account.variables.insert("OSC_ENDPOINT_API".to_owned(), endpoint.clone());
        let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
        let why = plan["unschedulable"][0]["reasons"].to_string();
        for text in [&why, &said] {
            for part in
                [&format!("{endpoint} cannot be reached ("), cause, "OSC_REGION", "OSC_ENDPOINT_API", "HTTPS_PROXY"]
            {
                assert!(text.contains(part), "{part} is not in {text}");
            }
            assert!(!text.contains("not asked"), "{text}");
        }
    }
}

#[test]
fn a_machine_configuration_among_the_files_is_judged() {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    let text = std::fs::read_to_string(example("outscale/secrets.yaml")).expect("it is there");
    let path = std::env::temp_dir().join(format!("joiner-configuration-{}.yaml", std::process::id()));
    let with = |secrets: &str| {
        std::fs::write(&path, secrets).expect("there is room");
        plan(&account, &[], &[&files[0], &files[1], &path])
    };
    let (good, said) = with(&text);
    assert!(good["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{said}");
    for (wrong, told) in [
        (text.replace("type: worker", "type: controlplane"), "machine.type"),
        (text.replace("worker.yaml:", "other.yaml:"), "has no key worker.yaml"),
    ] {
        let (bad, said) = with(&wrong);
        assert_eq!(bad["nodeClaims"], Value::Array(Vec::new()), "{said}");
        assert!(said.contains("UserDataReady is False: ") && said.contains(told), "{said}");
    }
    // A name that is in none of the files is told once, and keeps nothing from being planned.
    let (unjudged, said) = with(&text.replace("name: talos-worker", "name: talos-workers"));
    assert!(unjudged["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{said}");
    let told = "spec.talos.secretRef: Secret talos-worker is in none of the files; correct its name, or name its file with -f, to have the \
                machine configuration judged";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    std::fs::remove_file(&path).expect("it is there");
}

/// What is said when beside the example's NodeClass there is a spoilt one of this name, with a NodePool of its own, which nothing is planned for.
fn said_beside(name: &str, spoil: impl FnOnce(String) -> String) -> String {
    let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &[]);
    let text = std::fs::read_to_string(example("outscale/nodepool.yaml")).expect("it is there");
    let other = text.replace("name: workers", &format!("name: {name}")).replace("name: default", "name: other");
    let spoilt = spoil(other.clone());
    assert_ne!(spoilt, other);
    let path = std::env::temp_dir().join(format!("joiner-{name}-{}.yaml", std::process::id()));
    std::fs::write(&path, format!("{text}\n---\n{spoilt}")).expect("there is room");
    let (plan, said) = plan(&account, &[], &[&path, &example("plan/workloads.yaml")]);
    std::fs::remove_file(&path).expect("it is there");
    let pools: Vec<&Value> =
        plan["nodeClaims"].as_array().into_iter().flatten().map(|claim| &claim["nodePool"]).collect();
    assert!(!pools.is_empty() && pools.iter().all(|pool| *pool == "default"), "{plan:#} {said}");
    said
}

#[test]
fn a_nodeclass_that_cannot_be_read_is_told_with_its_field_and_others_go_on() {
    let said = said_beside("broken", |class| {
        class.replace("    secretRef: { name: talos-worker, key: worker.yaml }", "    patches: []")
    });
    assert!(
        said.contains("OutscaleNodeClass/broken") && said.contains("spec.talos.secretRef: is missing; add it"),
        "{said}"
    );
}

#[test]
fn a_clock_that_is_wrong_keeps_nothing_from_being_planned_and_is_said() {
    let files = [example("outscale/nodepool.yaml"), example("plan/workloads.yaml")];
    for (skew, told) in [("-1h", "60 min ahead of the API's"), ("20m", "20 min behind the API's")] {
        let account = Account::open(Path::new(env!("CARGO_BIN_EXE_joiner")), &["--clock-skew", skew]);
        let (plan, said) = plan(&account, &[], &[&files[0], &files[1]]);
        assert!(plan["nodeClaims"].as_array().is_some_and(|claims| !claims.is_empty()), "{plan:#} {said}");
        assert!(
            said.contains("PermissionsReady is True: the clock of this machine is") && said.contains(told),
            "{said}"
        );
    }
}

#[test]
fn a_nodeclass_that_the_api_server_would_refuse_is_told_with_all_that_is_wrong_and_others_go_on() {
    let said = said_beside("refused", |class| {
        class
            .replace("  tags: { team: platform }", "  tags: { OscK8sNodeName: mine }\n  imageId: ami-1")
            .replace("bsu: { volumeSize: 50, volumeType: gp2 }", "bsu: { volumeSize: 2, volumeType: io1 }")
    });
    for told in [
        "OutscaleNodeClass refused: spec: give either imageId or imageSelectorTerms",
        "OutscaleNodeClass refused: spec.imageId: \"ami-1\" does not have the form that it needs",
        "OutscaleNodeClass refused: spec.blockDeviceMappings[0].bsu.volumeSize: 2 is out of bounds; write 4 to 14901",
        "OutscaleNodeClass refused: spec.blockDeviceMappings[0].bsu: iops goes with volumeType io1, and io1 needs it",
        "OutscaleNodeClass refused: spec.tags: tags of the domains karpenter.sh",
    ] {
        assert!(said.contains(told), "{told} is not in {said}");
    }
}
