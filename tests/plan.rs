//! `joiner plan` and `joiner explain` from outside: the contract of their output, whatever the solver chooses.

#[path = "common/shared.rs"]
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use shared::shared;

/// Runs joiner with arguments and standard input, and without the variables of whoever runs the tests.
fn joiner(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_joiner"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("joiner can be started");
    // Whoever does not read its input closes it.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("joiner ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The plan for manifests on standard input, and what was said beside it.
fn plan(input: &str) -> (Value, String) {
    let output = joiner(&["plan", "-f", "-", "-o", "json"], input);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (serde_json::from_slice(&output.stdout).expect("JSON"), text(&output.stderr))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn word(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Where each pod went, and how often it was mentioned.
fn places(plan: &Value) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut put = |pod: &Value, place: &str| places.entry(word(pod).to_owned()).or_default().push(place.to_owned());
    for (kind, name) in [("nodeClaims", "name"), ("existing", "node")] {
        for place in list(&plan[kind]) {
            for pod in list(&place["pods"]) {
                put(pod, word(&place[name]));
            }
        }
    }
    for one in list(&plan["unschedulable"]) {
        put(&one["pod"], "nowhere");
    }
    places
}

fn reasons(plan: &Value, pod: &str) -> String {
    let one = list(&plan["unschedulable"]).iter().find(|one| one["pod"] == pod).expect("the pod has no place");
    let reasons = list(&one["reasons"]);
    assert!(!reasons.is_empty(), "{pod} has no reason");
    reasons.iter().map(word).collect::<Vec<_>>().join("\n")
}

const POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
";

/// A pod of half a core, with further lines of its spec.
fn pod(name: &str, more: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  containers: [{{name: c, image: pause, resources: {{requests: {{cpu: 500m, memory: 512Mi}}}}}}]\n{more}\n"
    )
}

#[test]
fn the_example_is_planned_by_the_contract() {
    let output = joiner(&["plan", "-f", "examples/plan", "-o", "json"], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let fields: BTreeSet<&str> = plan.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, BTreeSet::from(["existing", "lowerBound", "nodeClaims", "price", "seconds", "unschedulable"]));
    let claims = plan["nodeClaims"].as_array().unwrap();
    let fields: BTreeSet<&str> = claims[0].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["capacityType", "instanceTypes", "labels", "name", "nodePool", "pods", "price", "zone"];
    assert_eq!(fields, BTreeSet::from(expected));

    let places = places(&plan);
    assert!(places.values().all(|places| places.len() == 1), "{places:?}");
    let expected: BTreeSet<String> = (0..12)
        .map(|at| format!("default/web-{at}"))
        .chain((0..3).map(|at| format!("default/db-{at}")))
        .chain((0..8).map(|at| format!("default/nightly-{at}")))
        .chain(["default/report".to_owned(), "default/giant".to_owned()])
        .collect();
    assert_eq!(places.keys().cloned().collect::<BTreeSet<_>>(), expected);
    assert!(reasons(&plan, "default/report").contains("example.com/team"), "{}", reasons(&plan, "default/report"));
    assert!(reasons(&plan, "default/giant").contains("cpu"), "{}", reasons(&plan, "default/giant"));
    assert_eq!(plan["unschedulable"].as_array().unwrap().len(), 2);

    let sum: f64 = claims.iter().map(|claim| claim["price"].as_f64().unwrap()).sum();
    let (price, bound) = (plan["price"].as_f64().unwrap(), plan["lowerBound"].as_f64().unwrap());
    assert!((sum - price).abs() < 1e-9 && bound > 0.0 && bound <= price, "{sum} {price} {bound}");
    let web =
        claims.iter().find(|claim| claim["pods"].as_array().unwrap().iter().any(|pod| pod == "default/web-0")).unwrap();
    assert_eq!(web["labels"]["example.com/team"], "shop", "the pool leaves the team open, and the pods choose: {web}");
    assert_eq!(web["zone"].as_array().unwrap().len(), 1, "a spread pod's zone is settled: {web}");
    let databases = claims.iter().filter(|claim| claim["nodePool"] == "steady");
    for database in databases {
        assert_eq!(database["capacityType"], serde_json::json!(["on-demand"]), "{database}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_whatever_the_order_of_the_files() {
    let run = |files: [&str; 2]| {
        let output = joiner(&["plan", "-f", files[0], "-f", files[1], "-o", "json"], "");
        let mut plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        plan["seconds"] = 0.into();
        plan.to_string()
    };
    let (one, other) = ("examples/plan/nodepools.yaml", "examples/plan/workloads.yaml");
    assert_eq!(run([one, other]), run([other, one]));
}

#[test]
fn pods_that_a_deployment_has_already_count() {
    let deployment = |hash: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 3\n  selector: {{matchLabels: {{app: web}}}}\n  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c, image: pause, resources: {{requests: {{cpu: 500m}}}}}}]}}}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web-0, labels: {{app: web, pod-template-hash: {hash}}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-{hash}, uid: u, controller: true}}]}}\nspec: {{nodeName: there, containers: [{{name: c, image: pause, resources: {{requests: {{cpu: 500m}}}}}}]}}\nstatus: {{phase: Running}}\n"
        )
    };
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: there, labels: {kubernetes.io/hostname: there}}\nstatus: {capacity: {cpu: '1100m', memory: 4Gi, pods: '10'}, allocatable: {cpu: '1100m', memory: 4Gi, pods: '10'}}\n";
    let (plan, _) = plan(&format!("{POOL}{node}{}", deployment("5f8c")));
    let places = places(&plan);
    assert_eq!(places.keys().map(String::as_str).collect::<Vec<_>>(), ["default/web-1", "default/web-2"], "{plan}");
    // One of the two fits beside the one that runs, the other needs a node.
    assert_eq!(plan["existing"][0]["node"], "there", "{plan}");
    assert_eq!(plan["nodeClaims"].as_array().unwrap().len(), 1, "{plan}");
}

#[test]
fn what_is_wrong_is_named_and_the_others_are_planned() {
    let spread = |key: &str, skew: i32| {
        format!(
            "  topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: {skew}, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: x}}}}}}]"
        )
    };
    let affinity = |app: &str| {
        format!(
            "  affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: topology.kubernetes.io/zone, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
        )
    };
    let contradictory = "  nodeSelector: {kubernetes.io/arch: arm64}\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}]}}}";
    let input = [
        POOL.to_owned(),
        pod("good", ""),
        pod("quantity", "").replace("512Mi", "1.5.2Gi"),
        pod("nokey", &spread("example.com/nobody-has-this", 1)),
        pod("negative", &spread("topology.kubernetes.io/zone", -1)),
        pod("torn", contradictory),
        pod("hen", &affinity("egg")),
        pod("egg", &affinity("hen")),
        pod("gated", "  schedulingGates: [{name: example.com/wait}]"),
        "---\na: [1\n".to_owned(),
        "---\nkind: NodeOverlay\nmetadata: {name: cheaper}\nspec: {requirements: [], price: \"1\"}\n".to_owned(),
    ];
    let (plan, said) = plan(&input.concat());
    let places = places(&plan);
    assert_ne!(places["default/good"], ["nowhere"], "{plan}");
    assert_eq!(places.len(), 8, "{places:?}");
    for (pod, parts) in [
        ("quantity", &["spec.containers[0].resources.requests", "1.5.2Gi"][..]),
        ("nokey", &["example.com/nobody-has-this", "would fit"]),
        ("negative", &["spec.topologySpreadConstraints[0].maxSkew", "-1", "write a whole number from 1"]),
        ("torn", &["kubernetes.io/arch", "change one of them"]),
        ("hen", &["affinity", "topology.kubernetes.io/zone"]),
        ("egg", &["affinity", "topology.kubernetes.io/zone"]),
        ("gated", &["example.com/wait"]),
    ] {
        let reasons = reasons(&plan, &format!("default/{pod}"));
        assert!(parts.iter().all(|part| reasons.contains(part)), "{pod}: {reasons}");
    }
    assert!(said.contains("standard input: document 3: Pod quantity: "), "{said}");
    assert!(said.contains("is not YAML"), "{said}");
    assert!(said.contains("NodeOverlay cheaper: has no effect, the feature is off"), "{said}");
}

#[test]
fn what_the_api_server_would_write_into_pods_counts_and_what_it_would_refuse_is_named() {
    let classes = "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: heavy}\nhandler: h\noverhead: {podFixed: {cpu: '2'}}\n\
                   ---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l, namespace: default}\nspec: {limits: [{type: Container, defaultRequest: {example.com/gpu: '1'}}]}\n";
    let input = |classes: &str| {
        [
            POOL.to_owned(),
            classes.to_owned(),
            pod("heavy", "  runtimeClassName: heavy"),
            pod("good", "").replace("default", "other").replace("name: good,", "name: good, namespace: other,"),
            pod("Bad", ""),
            pod("slip", "  nodeSelectors: {a: b}").replace("name: slip,", "name: slip, namespace: other,"),
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: other}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template: {metadata: {labels: {app: wbe}}, spec: {containers: [{name: c}]}}\n".to_owned(),
        ]
        .concat()
    };
    let (with, said) = plan(&input(classes));
    assert!(!said.contains("RuntimeClass") && !said.contains("LimitRange"), "{said}");
    assert!(reasons(&with, "default/heavy").contains("example.com/gpu"), "{with}");
    assert!(said.contains("Pod other/slip: spec.nodeSelectors: is no field of a Pod"), "{said}");
    let refused = [
        ("default/Bad", "metadata.name: \"Bad\" is not a DNS name"),
        ("other/web-0", "spec.selector: does not match"),
        ("other/web-1", "spec.selector: does not match"),
    ];
    for (pod, why) in refused {
        assert!(reasons(&with, pod).contains(why), "{pod}: {}", reasons(&with, pod));
    }
    let places = places(&with);
    assert!(["other/good", "other/slip"].iter().all(|pod| places[*pod] != ["nowhere"]), "{places:?}");
    let overhead = classes.split("---\n").nth(1).unwrap();
    let cpu = |classes: &str| plan(&input(classes)).0["price"].as_f64().unwrap();
    assert!(cpu(&format!("---\n{overhead}")) > cpu(""), "the overhead costs");
    assert!(plan(&input("")).1.contains("spec.runtimeClassName: RuntimeClass heavy is not in the files"));
}

#[test]
fn what_a_limit_range_forbids_is_not_planned_and_says_why() {
    let range = "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: shop}\nspec: {limits: [{type: Container, max: {cpu: '2'}}, {type: Pod, max: {cpu: '3'}}]}\n";
    let web = |name: &str, cpu: [&str; 2]| {
        let [a, b] = cpu.map(|cpu| format!("resources: {{requests: {{cpu: {cpu}}}, limits: {{cpu: {cpu}}}}}"));
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  replicas: 1\n  selector: {{matchLabels: {{app: {name}}}}}\n  template: {{metadata: {{labels: {{app: {name}}}}}, spec: {{containers: [{{name: a, image: i, {a}}}, {{name: b, image: i, {b}}}]}}}}\n"
        )
    };
    let input =
        [POOL, range, &web("fine", ["'1'", "'2'"]), &web("large", ["'1'", "'4'"]), &web("many", ["'2'", "'2'"])];
    let (plan, _) = plan(&input.concat());
    assert_ne!(places(&plan)["shop/fine-0"], ["nowhere"]);
    let large = reasons(&plan, "shop/large-0");
    let why = "containers[1].resources.limits[cpu]: a Container has to have a limit, and that of 2 at most by LimitRange small";
    assert!(large.contains(why), "{large}");
    let many = reasons(&plan, "shop/many-0");
    assert!(
        many.contains("limits[cpu]: a Pod has to have a limit, and that of 3 at most by LimitRange small"),
        "{many}"
    );
}

#[test]
fn what_a_pod_asks_of_nodes_is_held_to_the_rules() {
    let required = |expression: &str| {
        format!(
            "  affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{{{expression}}}]}}]}}}}}}"
        )
    };
    let input = [
        POOL.to_owned(),
        pod("good", ""),
        pod("letters", &required("key: example.com/size, operator: Gt, values: [abc]")),
        pod("empty", &required("key: kubernetes.io/arch, operator: In, values: []")),
        pod("spaced", "  nodeSelector: {kubernetes.io/arch: 'amd 64'}"),
        pod("pinned", "  nodeSelector: {kubernetes.io/hostname: there}"),
    ];
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: there, labels: {kubernetes.io/hostname: there}}\nstatus: {capacity: {cpu: '1200m', memory: 4Gi, pods: '10'}, allocatable: {cpu: '1200m', memory: 4Gi, pods: '10'}}\n";
    let (plan, said) = plan(&(input.concat() + node));
    let term = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: operator";
    for (pod, parts) in [
        ("letters", [term, "Gt needs exactly one value, an integer"]),
        ("empty", [term, "In needs at least one value"]),
        ("spaced", ["spec.nodeSelector[kubernetes.io/arch]: \"amd 64\"", "is not a label value"]),
    ] {
        let reasons = reasons(&plan, &format!("default/{pod}"));
        assert!(parts.iter().all(|part| reasons.contains(part)), "{pod}: {reasons}");
        assert!(said.contains(&format!("Pod {pod}: ")), "{said}");
    }
    let places = places(&plan);
    assert_ne!(places["default/good"], ["nowhere"], "{plan}");
    assert_eq!(places["default/pinned"], ["there"], "labels that only nodes have are nobody's fault: {plan}");
}

/// StorageClass `zonal` for one zone, and a claim that is bound to a volume of another.
const STORAGE: &str = "
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: disk.csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [test-zone-b]}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: old, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}
spec: {volumeName: disk}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  csi: {driver: disk.csi.example.com, volumeHandle: d}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [test-zone-c]}]}]}}
";

/// A StatefulSet of two pods with a volume each.
fn stateful(class: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: db}}}}\n  volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {{storageClassName: {class}}}}}]\n  template: {{metadata: {{labels: {{app: db}}}}, spec: {{containers: [{{name: c, image: pause, resources: {{requests: {{cpu: 500m}}}}}}]}}}}\n"
    )
}

#[test]
fn pods_go_where_their_volumes_are() {
    let mounts = |volume: &str| format!("  volumes: [{{name: v, {volume}}}]");
    let input = [
        POOL.to_owned(),
        STORAGE.to_owned(),
        stateful("zonal"),
        pod("old", &mounts("persistentVolumeClaim: {claimName: old}")),
        pod("brief", &mounts("ephemeral: {volumeClaimTemplate: {spec: {storageClassName: zonal}}}")),
        pod("lost", &mounts("persistentVolumeClaim: {claimName: nobody-made-it}")),
    ];
    let (plan, said) = plan(&input.concat());
    assert_eq!(said, "", "nothing is without effect");
    let zone = |pod: &str| {
        let holds = |claim: &&Value| list(&claim["pods"]).iter().any(|one| one == pod);
        list(&plan["nodeClaims"]).iter().find(holds).expect("the pod has a new node")["zone"].clone()
    };
    for (pod, there) in [
        ("default/db-0", "test-zone-b"),
        ("default/db-1", "test-zone-b"),
        ("default/brief", "test-zone-b"),
        ("default/old", "test-zone-c"),
    ] {
        assert_eq!(zone(pod), serde_json::json!([there]), "{pod}: {plan}");
    }
    let missing = reasons(&plan, "default/lost");
    assert!(missing.contains("PersistentVolumeClaim default/nobody-made-it does not exist"), "{missing}");
}

#[test]
fn a_node_of_the_input_takes_no_more_volumes_than_it_has_slots() {
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: there, labels: {topology.kubernetes.io/zone: test-zone-b}}\nstatus: {capacity: {cpu: '8', memory: 4Gi, pods: '10'}, allocatable: {cpu: '8', memory: 4Gi, pods: '10'}}\n";
    let slots = |count: u32| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {{name: there}}\nspec: {{drivers: [{{name: disk.csi.example.com, nodeID: there, topologyKeys: [], allocatable: {{count: {count}}}}}]}}\n"
        )
    };
    let attached = "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: a}\nspec: {attacher: disk.csi.example.com, nodeName: there, source: {persistentVolumeName: disk}}\nstatus: {attached: true}\n";
    let on_node = |more: &str| {
        let (plan, _) = plan(&format!("{POOL}{STORAGE}{node}{more}{}", stateful("zonal")));
        list(&plan["existing"]).iter().map(|place| list(&place["pods"]).len()).sum::<usize>()
    };
    assert_eq!([on_node(""), on_node(&slots(2)), on_node(&slots(1))], [2, 2, 1]);
    assert_eq!(on_node(&format!("{}{attached}", slots(2))), 1, "what is still attached takes a slot");
}

#[test]
fn a_pool_without_a_type_and_no_pool_at_all_are_reasons() {
    let (none, _) = plan(&pod("lone", ""));
    assert!(reasons(&none, "default/lone").contains("there is no NodePool"), "{none}");
    let narrow = POOL.replace("values: [amd64]", "values: [s390x]");
    let (narrow, said) = plan(&format!("{narrow}{}", pod("lone", "")));
    assert!(reasons(&narrow, "default/lone").contains("NodePool general"), "{narrow}");
    assert!(said.contains("NodePool general has requirements that leave no instance type"), "{said}");
}

#[test]
fn nothing_that_can_be_planned_is_a_failure() {
    let output = joiner(&["plan", "-f", "no/such/file.yaml"], "");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("no/such/file.yaml"), "{}", text(&output.stderr));
}

#[test]
fn node_shapes_and_prices_are_those_of_the_file() {
    let types = r#"[{"name": "small", "offerings": [{"Price": 0.1, "Available": true, "Requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}]}],
        "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "1", "memory": "2Gi", "pods": "10"}}]"#;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("types.json");
    std::fs::write(&file, types).unwrap();
    // A core less 100m holds one pod of half a core; 2 GiB less 10 MiB would hold three.
    let input = format!("{POOL}{}{}", pod("a", ""), pod("b", ""));
    let file = file.to_str().unwrap();
    let output = joiner(&["plan", "-f", "-", "--instance-types", file, "-o", "json"], &input);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = plan["nodeClaims"].as_array().unwrap();
    assert_eq!(claims.len(), 2, "{plan}");
    assert_eq!(
        (&claims[0]["instanceTypes"], &claims[0]["zone"]),
        (&serde_json::json!(["small"]), &serde_json::json!(["z1"]))
    );
    assert!((plan["price"].as_f64().unwrap() - 0.2).abs() < 1e-9);
    assert!((plan["lowerBound"].as_f64().unwrap() - 0.2).abs() < 1e-6, "two whole nodes are needed: {plan}");
}

#[test]
fn a_page_is_complete_in_itself() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan.html");
    let output = joiner(&["plan", "-f", "examples/plan", "--report", page.to_str().unwrap()], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("lower bound"), "{}", text(&output.stdout));
    let page = std::fs::read_to_string(page).unwrap();
    for part in [
        "What would be bought",
        "default/giant",
        "New nodes and their pods",
        "no plan that places the same pods costs less",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    for part in ["<script", "src=", "http://", "https://"] {
        assert!(!page.contains(part), "{part} would have to be fetched");
    }
}

#[test]
fn what_is_wrong_with_the_input_is_on_the_page_and_in_the_json() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.html");
    let args = ["plan", "-f", "-", "-o", "json", "--report", page.to_str().unwrap()];
    let wrong = pod("quantity", "").replace("512Mi", "1.5.2Gi");
    let output = joiner(&args, &format!("{POOL}{wrong}{}---\na: [1\n", pod("good", "")));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notices: Vec<&str> = list(&plan["notices"]).iter().map(word).collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Worth knowing") && page.contains("Pod quantity: "), "{page}");
    assert!(page.contains("is not YAML") && notices[1].contains("is not YAML"), "{notices:?}");
    let told = text(&output.stderr);
    assert!(notices.iter().all(|notice| told.matches(notice).count() == 1), "each is told once: {told}");
}

#[test]
fn explain_says_why() {
    let explain = |args: &[&str]| {
        let output = joiner(&[&["explain"], args, &["-f", "examples/plan"]].concat(), "");
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let (fine, said) = explain(&["pod", "giant"]);
    assert!(fine && said.contains("has no place") && said.contains("NodePool general"), "{said}");
    let (fine, said) = explain(&["pod", "default/web-3", "-o", "json"]);
    assert!(fine, "{said}");
    let output = joiner(&["plan", "-f", "examples/plan", "-o", "json"], "");
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = plan["nodeClaims"][0]["name"].as_str().unwrap();
    let (fine, said) = explain(&["nodeclaim", name]);
    assert!(fine && said.contains("instance types hold them"), "{said}");
    let (fine, said) = explain(&["pod", "nobody"]);
    assert!(!fine && said.contains("nobody"), "{said}");
}

#[test]
fn explain_says_what_limits_take_from_a_nodeclaim() {
    let explain = |limits: &str| {
        let pool = POOL.replace("spec:\n  template", &format!("spec:\n  limits: {{{limits}}}\n  template"));
        let input = pool + &pod("one", "") + &pod("two", "  nodeSelector: {topology.kubernetes.io/zone: test-zone-a}");
        let (plan, _) = plan(&input);
        let name = word(&plan["nodeClaims"][0]["name"]).to_owned();
        let output = joiner(&["explain", "nodeclaim", &name, "-f", "-"], &input);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(!explain("").contains("spec.limits"));
    let said = explain("cpu: 4");
    assert!(said.contains("spec.limits of the NodePool leave 4 cpu for it; "), "{said}");
    assert!(
        said.contains("types that would hold the pods have more") && said.contains("its largest type counts"),
        "{said}"
    );
}

/// What each NodePool alone would do for a pod, in the order of their names; `args` are further flags.
fn outcomes(pod: &str, args: &[&str], input: &str) -> Vec<String> {
    let output = joiner(&[&["explain", "pod", pod, "-f", "-", "-o", "json"], args].concat(), input);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    list(&said["choices"]).iter().map(|choice| word(&choice["outcome"]).to_owned()).collect()
}

/// A Node of NodePool `general` with four cores, and a pod `egg` that takes them all.
const FULL_NODE: &str = "
---
apiVersion: v1
kind: Node
metadata: {name: full, labels: {karpenter.sh/nodepool: general, topology.kubernetes.io/zone: test-zone-c}}
status: {capacity: {cpu: '4', memory: 8Gi, pods: '10'}, allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
---
apiVersion: v1
kind: Pod
metadata: {name: egg, labels: {app: egg}}
spec: {nodeName: full, containers: [{name: c, image: pause, resources: {requests: {cpu: '4'}}}]}
status: {phase: Running}
";

#[test]
fn what_a_pool_would_do_alone_agrees_with_what_is_there() {
    // The node that is there has used the limits up.
    let limited = POOL.replace("  template:", "  limits: {cpu: '4'}\n  template:");
    let input = format!("{limited}{FULL_NODE}{}", pod("lone", ""));
    let (plan, _) = plan(&input);
    let reasons = reasons(&plan, "default/lone");
    assert!(reasons.contains("of its limits"), "{reasons}");
    assert_eq!(outcomes("lone", &[], &input), [reasons]);
    // With room on the node there is a place, but not one that the pool would buy.
    let roomy = input.replace("requests: {cpu: '4'}", "requests: {cpu: '1'}");
    let outcome = outcomes("lone", &[], &roomy).concat();
    assert!(outcome.contains("of its limits"), "{outcome}");
    // The pod that runs there is one to be near to.
    let near = "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: egg}}}]}}";
    let outcome = outcomes("hen", &[], &format!("{POOL}{FULL_NODE}{}", pod("hen", near))).concat();
    assert!(outcome.contains("would take it alone"), "{outcome}");
}

#[test]
fn what_a_pool_would_do_alone_heeds_how_it_is_solved() {
    let choosy = POOL.replace("operator: In, values: [amd64]", "operator: Exists, minValues: 3");
    let input = format!("{choosy}{}", pod("lone", ""));
    let outcome = |args: &[&str], input: &str| outcomes("lone", args, input).concat();
    let strict = outcome(&[], &input);
    assert!(strict.contains("minValues") && !strict.contains("would take it alone"), "{strict}");
    let lowered = outcome(&["--min-values-policy", "BestEffort"], &input);
    assert!(lowered.contains("would take it alone"), "{lowered}");
    let wish = "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [m-8x-amd64-linux]}]}}]}}";
    let input = format!("{POOL}{}", pod("lone", wish));
    let (heeded, ignored) = (outcome(&[], &input), outcome(&["--preference-policy", "Ignore"], &input));
    assert!(heeded.contains("m-8x-amd64-linux") && !ignored.contains("m-8x-amd64-linux"), "{heeded}; {ignored}");
}

/// A NodeClaim and its Node with a pod `web` of half a core on it; `going` is further metadata of the NodeClaim, `of_node` of the Node.
fn served(going: &str, of_node: &str) -> String {
    format!(
        "---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-old, labels: {{karpenter.sh/nodepool: general}}{going}}}
spec: {{nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}, requirements: []}}
status: {{providerID: 'kwok://old', capacity: {{cpu: '4', memory: 8Gi, pods: '10'}}, allocatable: {{cpu: '4', memory: 8Gi, pods: '10'}}}}
---
apiVersion: v1
kind: Node
metadata: {{name: old, labels: {{karpenter.sh/nodepool: general}}{of_node}}}
spec: {{providerID: 'kwok://old'}}
status: {{capacity: {{cpu: '4', memory: 8Gi, pods: '10'}}, allocatable: {{cpu: '4', memory: 8Gi, pods: '10'}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, uid: web-uid, labels: {{app: web}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: u, controller: true}}]}}
spec: {{nodeName: old, containers: [{{name: c, image: pause, resources: {{requests: {{cpu: 500m}}}}}}]}}
status: {{phase: Running}}
"
    )
}

#[test]
fn pods_of_nodes_that_go_are_planned_as_far_as_budgets_let_them_go() {
    let at = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [karpenter.sh/termination]";
    let planned = |cluster: &str| {
        let (plan, said) = plan(&format!("{POOL}{cluster}"));
        (places(&plan), said)
    };
    let budget = |spec: &str| {
        format!(
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: web}}\nspec: {{selector: {{matchLabels: {{app: web}}}}, {spec}}}\n"
        )
    };
    assert_eq!(planned(&served("", "")).0, BTreeMap::new(), "the node stays");
    for going in [served(at, ""), served("", at), served(at, at) + &budget("maxUnavailable: 1")] {
        let (places, said) = planned(&going);
        assert_eq!(places.len(), 1, "{places:?}");
        let place = &places["default/web"][0];
        assert!(place.starts_with("general-") && place != "general-old", "{place}");
        assert!(said.contains("1 pods are about to lose their nodes"), "{said}");
    }
    assert_eq!(planned(&(served(at, at) + &budget("maxUnavailable: 0"))).0, BTreeMap::new(), "it cannot leave");
    // In place of a pod that has begun to go its StatefulSet has another, which is planned once.
    let of_set = served(at, at).replace("kind: ReplicaSet, name: web-1", "kind: StatefulSet, name: web");
    let of_set = of_set.replace("uid: web-uid", "uid: web-uid, deletionTimestamp: '2026-01-01T00:00:00Z'");
    let set = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: 500m}}}]}}}\n";
    assert_eq!(planned(&of_set).0.keys().collect::<Vec<_>>(), ["default/web"]);
    assert_eq!(planned(&format!("{of_set}{set}")).0.keys().collect::<Vec<_>>(), ["default/web-0"]);
}

#[test]
fn a_node_goes_by_the_name_of_its_nodeclaim_until_it_is_registered() {
    let place = |label: &str| {
        let served = served("", "").replace("name: old, labels: {", &format!("name: old, labels: {{{label}"));
        let (plan, _) = plan(&format!("{POOL}{served}{}", pod("lone", "")));
        places(&plan)["default/lone"].clone()
    };
    assert_eq!(place(""), ["general-old"]);
    assert_eq!(place("karpenter.sh/registered: 'true', "), ["old"]);
}

#[test]
fn the_openb_burst_is_planned_whole() {
    let data = ["traces/openb_pod_list_default.csv", "karpenter/aws_gpu_instance_types.json"].map(shared);
    let [Some(trace), Some(types)] = data else { return };
    let (trace, types) = (trace.to_str().unwrap(), types.to_str().unwrap());
    let any = POOL.replace("{key: kubernetes.io/arch, operator: In, values: [amd64]}", "");
    let args = ["plan", "-f", "-", "--trace", "openb", trace, "--instance-types", types, "-o", "json"];
    let output = joiner(&args, &any);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let places = places(&plan);
    assert_eq!(places.len(), 8152);
    assert!(places.values().all(|places| places.len() == 1 && places[0] != "nowhere"));
    let (price, bound) = (plan["price"].as_f64().unwrap(), plan["lowerBound"].as_f64().unwrap());
    println!(
        "{price:.2} $/h on {} nodes, bound {bound:.2}, {} s",
        plan["nodeClaims"].as_array().unwrap().len(),
        plan["seconds"]
    );
    assert!(bound > 4_000.0 && bound <= price && price < 5_700.0, "{price} against {bound}");
}

/// The plan for the example of optional features, with these gates.
fn plan_of_features(gates: &str) -> (Value, String) {
    let output = joiner(&["plan", "-f", "examples/features", "-o", "json", "--feature-gates", gates], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    (serde_json::from_slice(&output.stdout).expect("JSON"), text(&output.stderr))
}

fn is_placeholder(pod: &str) -> bool {
    pod.starts_with("default/capacity-buffer-web-spare-")
}

#[test]
fn overlays_in_files_change_prices_and_capacity() {
    let (without, said) = plan_of_features("NodeOverlay=false");
    assert!(said.contains("NodeOverlay discount: has no effect, the feature is off"), "{said}");
    assert_eq!(places(&without)["default/signer-0"], ["nowhere"], "no machine has a dongle");
    let (with, said) = plan_of_features("NodeOverlay=true");
    assert!(!said.contains("NodeOverlay"), "{said}");
    let claims = list(&with["nodeClaims"]);
    let of_signer = claims.iter().find(|claim| list(&claim["pods"]).iter().any(|pod| pod == "default/signer-0"));
    let types = list(&of_signer.expect("it has a place")["instanceTypes"]);
    assert_eq!(types, ["m-8x-amd64-linux"]);
    assert!(with["price"].as_f64() < without["price"].as_f64(), "{} {}", with["price"], without["price"]);
    assert!(with["lowerBound"].as_f64() <= with["price"].as_f64());
}

#[test]
fn overlays_in_conflict_are_named_and_the_rest_is_planned() {
    let overlay =
        |name| format!("kind: NodeOverlay\nmetadata: {{name: {name}}}\nspec: {{requirements: [], price: \"1\"}}\n");
    let pool = "kind: NodePool\nmetadata: {name: default}\nspec: {template: {spec: {requirements: [], nodeClassRef: \
                {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}\n";
    let pod = "kind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n";
    let wrong = "kind: NodeOverlay\nmetadata: {name: wrong}\nspec: {requirements: [], priceAdjustment: much}\n";
    let input = [pool, pod, wrong, &overlay("a"), &overlay("b")].join("---\n");
    let output = joiner(&["plan", "-f", "-", "-o", "json", "--feature-gates", "NodeOverlay=true"], &input);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("NodeOverlay a: is not applied") && said.contains("NodeOverlay b"), "{said}");
    assert!(said.contains("NodeOverlay wrong: spec.priceAdjustment"), "{said}");
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(plan["price"].as_f64(), Some(1.0), "the one that holds");
}

#[test]
fn buffers_in_files_get_room_beside_the_real_pods() {
    let (without, said) = plan_of_features("NodeOverlay=true");
    assert!(said.contains("CapacityBuffer default/web-spare: has no effect, the feature is off"), "{said}");
    assert!(!places(&without).keys().any(|pod| is_placeholder(pod)));
    let (with, _) = plan_of_features("NodeOverlay=true,CapacityBuffer=true");
    let all = places(&with);
    let room: Vec<_> = all.iter().filter(|(pod, _)| is_placeholder(pod)).collect();
    assert_eq!(room.len(), 4, "half of eight");
    assert!(room.iter().all(|(_, places)| places.len() == 1 && *places[0] != *"nowhere"), "{room:?}");
    assert_eq!(all.len(), 8 + 1 + 4);
}
