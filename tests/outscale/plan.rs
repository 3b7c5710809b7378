//! `joiner plan` with Outscale's prices, and what NodeOverlays make of them.

use std::io::Write;
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
