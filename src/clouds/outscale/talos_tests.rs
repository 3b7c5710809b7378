//! Configurations of Talos: what is refused, and what a machine gets.

use super::*;
use crate::core::facts::Effect;

const WORKER: &str = r#"
version: v1alpha1
machine:
  type: worker
  token: mmmmmm.0123456789abcdef
  ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCm1hY2hpbmUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=, key: "" }
  kubelet:
    image: ghcr.io/siderolabs/kubelet:v1.34.1
    extraArgs: { rotate-server-certificates: "true", register-with-taints: "boot=1:NoSchedule" }
  nodeLabels: { tier: "on" }
  install: { disk: /dev/sda }
  network: { interfaces: [{ interface: eth0, mtu: 9001 }] }
cluster:
  id: aWQ=
  secret: c2VjcmV0
  token: cccccc.0123456789abcdef
  ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmNsdXN0ZXIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=, key: "" }
  controlPlane: { endpoint: "https://10.0.0.2:6443" }
  network: { cni: { name: none }, dnsDomain: cluster.local }
  proxy: { disabled: true }
---
apiVersion: v1alpha1
kind: WatchdogTimerConfig
device: /dev/watchdog0
"#;

/// The template of a Secret's text alone, or what is wrong with it.
fn read(text: &str) -> Result<Template, Vec<String>> {
    let of_secret = |wrong: Wrong| {
        assert_eq!(wrong.field, None, "{wrong:?}");
        wrong.what
    };
    Template::read(text, &Talos::default(), None).map_err(|all| all.into_iter().map(of_secret).collect())
}

/// What is wrong, each fault behind its field, as messages have it.
fn faults(text: &str, talos: &Talos) -> Vec<String> {
    let wrong = Template::read(text, talos, None).unwrap_err().into_iter();
    wrong.map(|Wrong { field, what }| format!("{}: {what}", field.as_deref().unwrap_or("Secret"))).collect()
}

/// The template of [`WORKER`] with a merge patch in it.
fn patched(patch: &Value) -> Result<Template, Vec<Wrong>> {
    Template::read(WORKER, &patches(&[&patch.to_string()]), None)
}

fn patches(all: &[&str]) -> Talos {
    Talos { patches: all.iter().map(|patch| (*patch).to_owned()).collect(), ..Talos::default() }
}

/// Asserts that a patch of [`WORKER`] is refused for this fault alone.
#[track_caller]
fn refused(patch: &Value, fault: &str) {
    let Err(wrong) = patched(patch) else { panic!("{patch} is taken") };
    assert!(wrong.len() == 1 && wrong[0].what.starts_with(fault), "{wrong:?} for {patch}");
    assert_eq!(wrong[0].field.as_deref(), Some("spec.talos.patches[0]"), "{wrong:?}");
}

fn own_labels() -> Labels {
    [
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.sh/capacity-type", "on-demand"),
        ("topology.kubernetes.io/zone", "eu-west-2a"),
        ("node-role.kubernetes.io/worker", "x"),
        ("node-restriction.kubernetes.io/team", "a"),
        ("kubernetes.io/hostname", "h"),
        ("app.kubernetes.io/name", "x"),
        ("example.org/empty", ""),
        ("yes", "no"),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .into()
}

fn made_out(template: &Template) -> Documents {
    let taints =
        [Taint { value: "a".into(), ..Taint::new("team", Effect::NoSchedule) }, Taint::new("start", Effect::NoExecute)];
    let text = template.made_out_for(Own { claim: "default-abcde", labels: &own_labels(), taints: &taints });
    Documents::read(&text).unwrap()
}

#[test]
fn a_machine_gets_its_labels_and_taints_and_everything_else_as_it_was() {
    let Documents { main, others } = made_out(&read(WORKER).unwrap());
    assert_eq!(
        main["machine"]["kubelet"]["extraArgs"],
        json!({
            "rotate-server-certificates": "true",
            "register-with-taints": "boot=1:NoSchedule,team=a:NoSchedule,start=:NoExecute,karpenter.sh/unregistered=:NoExecute",
        })
    );
    assert_eq!(
        main["machine"]["nodeLabels"],
        json!({
            "tier": "on", "yes": "no", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand",
            "topology.kubernetes.io/zone": "eu-west-2a",
        })
    );
    assert_eq!(main["cluster"]["externalCloudProvider"]["enabled"], true);
    assert_eq!(
        others,
        [json!({ "apiVersion": "v1alpha1", "kind": "WatchdogTimerConfig", "device": "/dev/watchdog0" })]
    );
    let mut rest = main;
    for (pointer, field) in [
        ("/machine/kubelet/extraArgs", "register-with-taints"),
        ("/machine", "nodeLabels"),
        ("/cluster", "externalCloudProvider"),
    ] {
        rest.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field);
    }
    let mut original = Documents::read(WORKER).unwrap().main;
    original.pointer_mut("/machine/kubelet/extraArgs").unwrap().as_object_mut().unwrap().remove("register-with-taints");
    original["machine"].as_object_mut().unwrap().remove("nodeLabels");
    assert_eq!(rest, original);
}

#[test]
fn texts_that_yaml_takes_for_something_else_stay_texts() {
    for text in [
        "yes",
        "on",
        "1e3",
        "0x10",
        "null",
        "~",
        "08",
        "1_000",
        "12:30:45",
        "- a",
        "{x",
        "a: b",
        "#x",
        "",
        " x ",
        "line\nline",
        "🦀",
        "=",
        "!x",
        "*x",
        "&x",
        "1.0",
        ".5",
        "+1",
        "@x",
    ] {
        let template = patched(&json!({ "machine": { "sysctls": { "k": text, text: "v" } } })).unwrap();
        let Documents { main, .. } = made_out(&template);
        assert_eq!(main["machine"]["sysctls"], json!({ "k": text, text: "v" }), "{text:?}");
    }
}

#[test]
fn numbers_and_words_reach_talos_as_they_were_written() {
    let file = "machine:\n  files: [{ path: /var/x, permissions: 0o644, op: create, content: a }]\n";
    let talos = patches(&[file]);
    let text = WORKER
        .replace("  kubelet:\n", "  sysctls: { a: 1.10, b: 0644, c: '0644' }\n  kubelet:\n    registerWithFQDN: yes\n");
    let template = Template::read(&text, &talos, None).unwrap();
    assert!(template.registers_with_fqdn());
    let made = template.made_out_for(Own { claim: "a", labels: &Labels::new(), taints: &[] });
    for line in ["permissions: 0o644", "registerWithFQDN: true", "a: 1.10", "b: 0644", "c: \"0644\""] {
        assert!(made.lines().any(|there| there.trim() == line), "{line}: {made}");
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_field_and_remedy() {
    for (patch, fault) in [
        (json!({ "machine": { "type": "controlplane" } }), "machine.type: must be worker"),
        (json!({ "machine": { "token": null } }), "machine.token: is missing"),
        (json!({ "machine": { "ca": null } }), "machine.ca.crt: is missing"),
        (json!({ "cluster": { "token": "" } }), "cluster.token: is missing"),
        (json!({ "cluster": { "ca": { "crt": 5 } } }), "cluster.ca.crt: is missing"),
        (json!({ "cluster": { "ca": { "key": "a2V5" } } }), "cluster.ca.key: is a secret of the control plane"),
        (json!({ "cluster": { "controlPlane": null } }), "cluster.controlPlane.endpoint: must be a URL"),
        (
            json!({ "cluster": { "externalCloudProvider": { "enabled": false } } }),
            "cluster.externalCloudProvider.enabled: must be true",
        ),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "provider-id": "x" } } } }),
            "machine.kubelet.extraArgs.provider-id: cannot be set",
        ),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "register-with-taints": 5 } } } }),
            "machine.kubelet.extraArgs.register-with-taints: is neither",
        ),
        (json!({ "machine": { "nodeTaints": { "a": "b:NoSchedule" } } }), "machine.nodeTaints: the API server refuses"),
        (
            json!({ "machine": { "network": { "hostname": "one" } } }),
            "machine.network.hostname: would give all machines one name",
        ),
        (json!({ "machine": { "nodeLabels": "x" } }), "machine.nodeLabels: is no map"),
    ] {
        refused(&patch, fault);
    }
    for (text, fault) in [
        ("", "has no document with version: v1alpha1"),
        ("just text", "document 1: is no machine configuration"),
        ("a: [", "document 1: cannot be read"),
        ("version: v1\n", "document 1: is no machine configuration"),
        ("version: v1alpha1\n---\nversion: v1alpha1\n", "document 2: is a second machine configuration"),
    ] {
        let faults = read(text).unwrap_err();
        assert!(faults[0].starts_with(fault), "{faults:?} for {text:?}");
    }
    for (document, fault) in [
        ("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: one", "HostnameConfig.hostname: "),
        ("kind: VolumeConfig\nname: STATE", "VolumeConfig STATE: has no apiVersion"),
        (
            "apiVersion: v1alpha1\nkind: KubeNodeConfig",
            "KubeNodeConfig: Talos does not take it beside machine.nodeLabels",
        ),
        ("apiVersion: v1alpha1\nkind: KubeletConfig", "KubeletConfig: Talos does not take it beside machine.kubelet"),
    ] {
        let faults = read(&format!("{WORKER}---\n{document}\n")).unwrap_err();
        assert!(faults[0].starts_with(fault), "{faults:?}");
    }
}

#[test]
fn what_talos_or_the_api_server_would_not_take_is_refused_before_a_machine_is_told_it() {
    for (patch, fault) in [
        (
            json!({ "machine": { "nodeLabels": { "node-role.kubernetes.io/worker": "" } } }),
            "machine.nodeLabels[node-role.kubernetes.io/worker]: the API server refuses that workers give themselves this label",
        ),
        (
            json!({ "machine": { "nodeLabels": { "a b": "c" } } }),
            r#"machine.nodeLabels[a b]: "a b" is not a qualified name"#,
        ),
        (
            json!({ "machine": { "nodeLabels": { "a": "b c" } } }),
            r#"machine.nodeLabels[a]: "b c" is not a label value"#,
        ),
        (json!({ "machine": { "nodeLabels": { "a": ["b"] } } }), "machine.nodeLabels[a]: is no text"),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "register-with-taints": ["a=b:NoSchedule", "foo"] } } } }),
            r#"machine.kubelet.extraArgs.register-with-taints: "foo" is no taint; write key=value:NoSchedule"#,
        ),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "register-with-taints": "a_=b:NoSchedule" } } } }),
            r#"machine.kubelet.extraArgs.register-with-taints: taint "a_=b:NoSchedule": "a_" is not a qualified name"#,
        ),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "cloud-provider": "" } } } }),
            "machine.kubelet.extraArgs.cloud-provider: must be external",
        ),
        (
            json!({ "machine": { "kubelet": { "extraArgs": { "cloud-provider": "aws" } } } }),
            "machine.kubelet.extraArgs.cloud-provider: must be external",
        ),
        (json!({ "machine": { "ca": { "crt": "c2VjcmV0" } } }), "machine.ca.crt: is no certificate (PEM, in base64)"),
        (json!({ "cluster": { "ca": { "crt": "no base64" } } }), "cluster.ca.crt: is no certificate (PEM, in base64)"),
        (json!({ "machin": {} }), "machin: is no field that Talos knows (is machine meant?); correct or remove it"),
        (
            json!({ "machine": { "nodelabels": { "a": "b" } } }),
            "machine.nodelabels: is no field that Talos knows (is nodeLabels meant?); correct or remove it",
        ),
        (json!({ "cluster": { "endpoint": "x" } }), "cluster.endpoint: is no field that Talos knows"),
    ] {
        refused(&patch, fault);
    }
}

#[test]
fn labels_and_taints_that_a_worker_may_give_itself_are_taken_as_talos_reads_them() {
    let text = "
machine:
  kubelet: { extraArgs: { cloud-provider: external, register-with-taints: ['a:NoExecute,b=1:NoSchedule', 'c=:PreferNoSchedule'] } }
  nodeLabels: { empty: '', number: 1.10, word: yes, node.kubernetes.io/x: a, beta.kubernetes.io/arch: amd64, example.org/nothing: }
";
    let Documents { main, .. } = made_out(&Template::read(WORKER, &patches(&[text]), None).unwrap());
    let taints = main["machine"]["kubelet"]["extraArgs"]["register-with-taints"].as_str().unwrap();
    assert!(taints.starts_with("a:NoExecute,b=1:NoSchedule,c=:PreferNoSchedule,"), "{taints}");
}

#[test]
fn what_talosctl_writes_for_a_worker_is_taken() {
    let written = "
debug: false
persist: true
machine:
  certSANs: []
  kubelet: { defaultRuntimeSeccompProfileEnabled: true, disableManifestsDirectory: true }
  install: { image: 'ghcr.io/siderolabs/installer:v1.12.0', wipe: false }
  registries: {}
  features: { rbac: true, apidCheckExtKeyUsage: true, diskQuotaSupport: true, kubePrism: { enabled: true, port: 7445 } }
cluster:
  clusterName: demo
  discovery: { enabled: true, registries: { kubernetes: { disabled: true }, service: {} } }
";
    assert_eq!(Template::read(WORKER, &patches(&[written]), None).err(), None);
}

#[test]
fn a_fault_is_told_of_whoever_brought_it_in() {
    let without = WORKER.replace("  token: cccccc.0123456789abcdef\n", "");
    let spoilt = ["machine: { type: controlplane }", "machine: { nodeTaints: { a: 'b:NoSchedule' }, type: nothing }"];
    let faults_of = |text: &str, all: &[&str]| {
        let all = faults(text, &patches(all));
        all.iter()
            .filter_map(|fault| Some(fault.split(" must ").next()?.split(" is ").next()?.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        faults_of(&without, &spoilt),
        [
            "spec.talos.patches[0]: machine.type:",
            "Secret: cluster.token:",
            "spec.talos.patches[1]: machine.nodeTaints: the API server refuses taints that workers give themselves; write them into the NodePool",
        ],
        "a patch that leaves a fault as it was has not brought it in"
    );
    // What one patch spoils, another one may mend.
    let mended = [spoilt[0], "machine: { type: worker }", "cluster: { token: x }"];
    assert!(Template::read(&without, &patches(&mended), None).is_ok());
    let endpoint = Some("http://10.0.0.2".to_owned());
    let faults = faults(WORKER, &Talos { cluster_endpoint: endpoint, ..Talos::default() });
    assert!(faults[0].starts_with("spec.talos.clusterEndpoint: cluster.controlPlane.endpoint: must be"), "{faults:?}");
}

#[test]
fn messages_and_debug_texts_show_no_secret() {
    let damaged = WORKER.replace("type: worker", "type: controlplane").replace("ca: {", "ca: {{");
    let said = format!("{:?} {:?} {:?}", read(&damaged), read(WORKER), patched(&json!({ "machine": { "type": "x" } })));
    for secret in ["mmmmmm", "cccccc", "c2VjcmV0", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCm1h"] {
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn a_class_can_patch_endpoint_kubelet_and_all_else() {
    let kubelet = Kubelet {
        max_pods: Some(40),
        system_reserved: Some([("cpu".to_owned(), "100m".into())].into()),
        kube_reserved: None,
    };
    let talos = Talos {
        cluster_endpoint: Some("https://api.example.org:6443".to_owned()),
        patches: vec!["machine: {sysctls: {vm.max_map_count: '262144'}, install: null}".to_owned()],
        ..Talos::default()
    };
    let template = Template::read(WORKER, &talos, Some(&kubelet)).unwrap();
    let Documents { main, .. } = made_out(&template);
    assert_eq!(main["cluster"]["controlPlane"]["endpoint"], "https://api.example.org:6443");
    assert_eq!(
        main["machine"]["kubelet"]["extraConfig"],
        json!({ "maxPods": 40, "systemReserved": { "cpu": "100m" } })
    );
    assert_eq!(main["machine"]["sysctls"], json!({ "vm.max_map_count": "262144" }));
    assert_eq!(main["machine"].get("install"), None);
    let faults = faults(WORKER, &patches(&["[1]", "a: ["]));
    assert!(faults[0].starts_with("spec.talos.patches[0]: is no map"), "{faults:?}");
    assert!(faults[1].starts_with("spec.talos.patches[1]: cannot be read"), "{faults:?}");
}

#[test]
fn nodes_can_be_called_like_their_nodeclaims() {
    let talos = Talos { node_name: Some("NodeClaim".to_owned()), ..Talos::default() };
    let Documents { main, .. } = made_out(&Template::read(WORKER, &talos, None).unwrap());
    assert_eq!(main["machine"]["network"]["hostname"], "default-abcde");
    let with_document = format!("{WORKER}---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n");
    let Documents { main, others } = made_out(&Template::read(&with_document, &talos, None).unwrap());
    assert_eq!(main["machine"]["network"].get("hostname"), None);
    assert_eq!(
        others[1],
        json!({ "apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "default-abcde" })
    );
    let fqdn = Talos { patches: vec!["machine: {kubelet: {registerWithFQDN: true}}".to_owned()], ..talos };
    let faults = faults(WORKER, &fqdn);
    assert!(
        faults[0].starts_with("spec.talos.patches[0]: machine.kubelet.registerWithFQDN: does not go with"),
        "{faults:?}"
    );
}

#[test]
fn the_hash_follows_what_all_machines_share() {
    let hash = |text: &str| read(text).unwrap().hash();
    assert_eq!(hash(WORKER), hash(&format!("# a remark\n{WORKER}\n---\n# nothing\n")));
    assert_ne!(hash(WORKER), hash(&WORKER.replace("v1.34.1", "v1.34.2")));
    assert_ne!(hash(WORKER), hash(&WORKER.replace("watchdog0", "watchdog1")));
    let named = Talos { node_name: Some("NodeClaim".to_owned()), ..Talos::default() };
    assert_ne!(hash(WORKER), Template::read(WORKER, &named, None).unwrap().hash());
}
