//! What our schemas admit and refuse, found by running them: patterns, bounds and CEL rules.
//!
//! Each case is also put to Karpenter's own definitions, where they are at hand: the verdicts must agree.

#[path = "common/shared.rs"]
mod shared;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use joiner::api::crds;
use joiner::api::definition::Definition;
use joiner::api::validation::Fault;
use serde_json::{Value, json};

use shared::shared;

/// Definitions under test, ours first and then, if at hand, Karpenter's.
struct Gate {
    definitions: Vec<Definition>,
}

impl Gate {
    fn open(name: &str, file: &str) -> Self {
        let mut definitions = vec![own(name)];
        if let Some(path) = shared(&format!("karpenter/crds/{file}")) {
            let text = std::fs::read_to_string(path).expect("the file is text");
            definitions.push(Definition::of(&serde_saphyr::from_str(&text).expect("the file is YAML")));
        }
        Self { definitions }
    }

    /// Whether an object may be created, or changed from an old one.
    fn admits(&self, object: &Value, old: Option<&Value>) -> bool {
        let verdicts: Vec<_> = self.definitions.iter().map(|definition| definition.faults(object, old)).collect();
        let agreed = verdicts.windows(2).all(|pair| pair[0].is_empty() == pair[1].is_empty());
        assert!(agreed, "ours and Karpenter's disagree on {object:#}: {verdicts:#?}");
        verdicts[0].is_empty()
    }

    #[track_caller]
    fn admit(&self, objects: &[Value]) {
        for object in objects {
            assert!(self.admits(object, None), "refused: {object} for {:?}", self.definitions[0].faults(object, None));
        }
    }

    #[track_caller]
    fn refuse(&self, objects: &[Value]) {
        for object in objects {
            assert!(!self.admits(object, None), "admitted: {object}");
        }
    }
}

static POOLS: LazyLock<Gate> = LazyLock::new(|| Gate::open("nodepools.karpenter.sh", "karpenter.sh_nodepools.yaml"));
static CLAIMS: LazyLock<Gate> = LazyLock::new(|| Gate::open("nodeclaims.karpenter.sh", "karpenter.sh_nodeclaims.yaml"));
static OVERLAYS: LazyLock<Gate> =
    LazyLock::new(|| Gate::open("nodeoverlays.karpenter.sh", "karpenter.sh_nodeoverlays.yaml"));

/// Lays the fields of `with` over `base`, at any depth.
fn over(mut base: Value, with: &Value) -> Value {
    match (&mut base, with) {
        (Value::Object(fields), Value::Object(with)) => {
            for (key, value) in with {
                let old = fields.remove(key).unwrap_or(Value::Null);
                fields.insert(key.clone(), over(old, value));
            }
            base
        }
        _ => with.clone(),
    }
}

fn template(with: &Value) -> Value {
    let base = json!({ "requirements": [], "nodeClassRef": { "group": "g", "kind": "K", "name": "n" } });
    pool(&json!({ "template": { "spec": over(base, with) } }))
}

fn pool(with: &Value) -> Value {
    let base = json!({ "template": { "spec": {
        "requirements": [], "nodeClassRef": { "group": "g", "kind": "K", "name": "n" } } } });
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "p" }, "spec": over(base, with) })
}

fn claim(with: &Value) -> Value {
    let base = json!({ "requirements": [], "nodeClassRef": { "group": "g", "kind": "K", "name": "n" } });
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "c" }, "spec": over(base, with) })
}

fn overlay(with: &Value) -> Value {
    let spec = over(json!({ "requirements": [] }), with);
    json!({ "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": "o" }, "spec": spec })
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "requirements": [{ "key": key, "operator": operator, "values": values }] })
}

/// Puts one list of requirements to the three kinds that have them; the verdicts for pool, claim, overlay.
#[track_caller]
fn requirements(list: &Value, expected: [bool; 3]) {
    let verdicts =
        [POOLS.admits(&template(list), None), CLAIMS.admits(&claim(list), None), OVERLAYS.admits(&overlay(list), None)];
    assert_eq!(verdicts, expected, "{list}");
}

#[test]
fn requirement_keys() {
    requirements(&requirement("karpenter.sh/nodepool", "Exists", &[]), [false, true, true]);
    for key in ["karpenter.sh/other", "foo.karpenter.sh/x", "mykarpenter.sh/x", "kubernetes.io/hostname", "a b", ""] {
        requirements(&requirement(key, "Exists", &[]), [false; 3]);
    }
    for key in
        ["karpenter.sh/capacity-type", "node-restriction.kubernetes.io/x", "kops.k8s.io/x", "kubernetes.io/x", "plain"]
    {
        requirements(&requirement(key, "Exists", &[]), [true; 3]);
    }
    requirements(&requirement(&"k".repeat(316), "Exists", &[]), [true; 3]);
    requirements(&requirement(&"k".repeat(317), "Exists", &[]), [false; 3]);
}

#[test]
fn requirement_values() {
    requirements(&requirement("k", "In", &[]), [false; 3]);
    requirements(&requirement("k", "NotIn", &[]), [true, true, false]);
    for values in [&["-1"][..], &["1", "2"], &["x"], &[]] {
        for operator in ["Gt", "Lt", "Gte", "Lte"] {
            requirements(&requirement("k", operator, values), [false; 3]);
        }
    }
    requirements(&requirement("k", "Gte", &["0"]), [true; 3]);
    requirements(&requirement("k", "In", &["bad value!"]), [true; 3]);
    requirements(&requirement("k", "Like", &["a"]), [false; 3]);
    requirements(&json!({ "requirements": [{ "key": "k", "operator": "In" }] }), [false; 3]);
    requirements(&json!({ "requirements": [] }), [true; 3]);
    requirements(&json!({ "requirements": null }), [false; 3]);
    let many = |count| json!({ "requirements": vec![json!({ "key": "k", "operator": "Exists" }); count] });
    requirements(&many(100), [true; 3]);
    requirements(&many(101), [false; 3]);
    let least = |operator: &str, values: &[&str], least: i64| {
        let item = json!({ "key": "k", "operator": operator, "values": values, "minValues": least });
        json!({ "requirements": [item] })
    };
    // A NodeOverlay has no minValues: an unknown field, which is dropped.
    requirements(&least("In", &["a"], 2), [false, false, true]);
    requirements(&least("In", &["a", "b"], 2), [true; 3]);
    requirements(&least("Exists", &[], 2), [true; 3]);
    requirements(&least("Exists", &[], 51), [false, false, true]);
}

#[test]
fn taints_and_durations_of_pools_and_claims() {
    let taint = |with: Value| json!({ "taints": [over(json!({ "key": "k", "effect": "NoSchedule" }), &with)] });
    let admitted = [
        taint(json!({})),
        taint(json!({ "value": "v", "timeAdded": "2026-01-01T00:00:00Z" })),
        json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }, { "key": "k", "effect": "NoExecute" }] }),
        json!({ "taints": [{ "key": "k", "effect": "NoSchedule" }, { "key": "k", "effect": "NoSchedule" }] }),
        json!({ "expireAfter": "1h30m5s", "terminationGracePeriod": "5m" }),
        json!({ "expireAfter": "Never" }),
    ];
    let refused = [
        taint(json!({ "value": "" })),
        taint(json!({ "key": "" })),
        taint(json!({ "effect": "Never" })),
        json!({ "startupTaints": [{ "key": "k" }] }),
        json!({ "expireAfter": "-1s" }),
        json!({ "expireAfter": "1hr" }),
        json!({ "expireAfter": "1.5h" }),
        json!({ "expireAfter": "" }),
        json!({ "terminationGracePeriod": "Never" }),
        json!({ "nodeClassRef": { "group": "" } }),
        json!({ "nodeClassRef": { "group": "g/v1" } }),
        json!({ "nodeClassRef": { "name": "" } }),
    ];
    POOLS.admit(&admitted.each_ref().map(template));
    CLAIMS.admit(&admitted.each_ref().map(claim));
    POOLS.refuse(&refused.each_ref().map(template));
    CLAIMS.refuse(&refused.each_ref().map(claim));
}

#[test]
fn template_labels() {
    let labels = |labels: Value| pool(&json!({ "template": { "metadata": { "labels": labels } } }));
    POOLS.admit(&[
        labels(json!({ "a": "", "karpenter.sh/capacity-type": "spot", "kubernetes.io/x": "y" })),
        pool(&json!({ "template": { "metadata": { "annotations": { "karpenter.sh/any": "what ever" } } } })),
    ]);
    POOLS.refuse(&[
        labels(json!({ "karpenter.sh/nodepool": "p" })),
        labels(json!({ "kubernetes.io/hostname": "h" })),
        labels(json!({ "x.karpenter.sh/y": "z" })),
        labels(json!({ "a": "bad value!" })),
        labels(json!({ "a": "v".repeat(64) })),
        labels((0..101).map(|n| (format!("l{n}"), json!("v"))).collect()),
    ]);
}

#[test]
fn budgets() {
    let budget = |with: Value| pool(&json!({ "disruption": { "budgets": [with] } }));
    let timed =
        |schedule: &str, duration: &str| budget(json!({ "nodes": "1", "schedule": schedule, "duration": duration }));
    POOLS.admit(&[
        pool(&json!({})),
        pool(&json!({ "disruption": { "budgets": [] } })),
        budget(json!({})),
        budget(json!({ "nodes": "1000" })),
        budget(json!({ "nodes": "100%", "reasons": ["Drifted", "Unhealthy"] })),
        timed("@daily", "1h30m0s"),
        timed("@dailyX", "8h"),
        timed("0 9 * * 1-5", "30m"),
        timed("0 9 * * 1-5 2030", "30m"),
    ]);
    POOLS.refuse(&[
        budget(json!({ "nodes": "101%" })),
        budget(json!({ "nodes": "-1" })),
        budget(json!({ "nodes": 5 })),
        budget(json!({ "nodes": "1", "reasons": ["Whim"] })),
        budget(json!({ "nodes": "1", "schedule": "@daily" })),
        budget(json!({ "nodes": "1", "duration": "1h" })),
        timed("* * * *", "1h"),
        timed("@daily", "90s"),
        timed("@daily", "30m1h"),
        pool(&json!({ "disruption": { "budgets": vec![json!({ "nodes": "1" }); 51] } })),
        pool(&json!({ "disruption": { "consolidationPolicy": "whenEmpty" } })),
        pool(&json!({ "disruption": { "consolidateAfter": "soon" } })),
    ]);
}

#[test]
fn static_pools_and_numbers() {
    POOLS.admit(&[
        pool(&json!({ "weight": 100, "limits": { "cpu": "10", "memory": "1Gi", "nodes": 3 } })),
        pool(&json!({ "replicas": 0 })),
        pool(&json!({ "replicas": 3, "limits": { "nodes": "5" } })),
        pool(&json!({ "replicas": 3, "limits": {} })),
    ]);
    POOLS.refuse(&[
        pool(&json!({ "weight": 0 })),
        pool(&json!({ "weight": 101 })),
        pool(&json!({ "replicas": -1 })),
        pool(&json!({ "replicas": 3, "weight": 1 })),
        pool(&json!({ "replicas": 3, "limits": { "cpu": "1" } })),
        pool(&json!({ "limits": { "cpu": "1Zi" } })),
        json!({ "metadata": { "name": "p" } }),
    ]);
}

#[test]
fn what_may_not_change() {
    let (dynamic, fixed) = (pool(&json!({})), pool(&json!({ "replicas": 3 })));
    let gate = &POOLS;
    assert!(gate.admits(&pool(&json!({ "weight": 3 })), Some(&dynamic)));
    assert!(gate.admits(&pool(&json!({ "replicas": 5 })), Some(&fixed)));
    assert!(!gate.admits(&fixed, Some(&dynamic)));
    assert!(!gate.admits(&dynamic, Some(&fixed)));
    assert!(gate.admits(&template(&json!({ "nodeClassRef": { "name": "other" } })), Some(&dynamic)));
    assert!(!gate.admits(&template(&json!({ "nodeClassRef": { "kind": "Other" } })), Some(&dynamic)));
    assert!(!gate.admits(&template(&json!({ "nodeClassRef": { "group": "other" } })), Some(&dynamic)));
    let old = claim(&json!({ "expireAfter": "720h" }));
    assert!(CLAIMS.admits(&old, Some(&old)));
    assert!(!CLAIMS.admits(&claim(&json!({ "expireAfter": "1h" })), Some(&old)));
}

#[test]
fn prices_and_capacities_of_overlays() {
    let adjustment = |text: &str| overlay(&json!({ "priceAdjustment": text }));
    let price = |text: &str| overlay(&json!({ "price": text }));
    let gate = &OVERLAYS;
    gate.admit(&["+10", "-0.5", "+.5", "-129", "+200.5%", "-99.9%", "-100%"].map(adjustment));
    gate.refuse(&["10", "5%", "-101%", "-100.0%", "-.5%"].map(adjustment));
    gate.admit(&["42", "4.2"].map(price));
    gate.refuse(&["+42", ".5", "42.", "1e3", "42%"].map(price));
    gate.admit(&[overlay(&json!({ "capacity": { "example.com/gpu": 4 }, "weight": 10000 }))]);
    gate.refuse(&[
        overlay(&json!({ "price": "1", "priceAdjustment": "+1" })),
        overlay(&json!({ "capacity": { "cpu": 4 } })),
        overlay(&json!({ "weight": 10001 })),
    ]);
}

#[test]
fn buffers_and_kwok_classes() {
    let buffer = |spec: Value| json!({ "metadata": { "name": "b" }, "spec": spec });
    let gate = Gate::open("capacitybuffers.autoscaling.x-k8s.io", "autoscaling.x-k8s.io_capacitybuffers.yaml");
    gate.admit(&[
        buffer(json!({})),
        buffer(json!({ "podTemplateRef": { "name": "t" }, "replicas": 3 })),
        buffer(json!({ "podTemplateRef": { "name": "t" }, "limits": { "cpu": "4" } })),
        buffer(json!({ "scalableRef": { "kind": "Deployment", "name": "d", "apiGroup": "apps" }, "percentage": 10 })),
    ]);
    gate.refuse(&[
        buffer(json!({ "podTemplateRef": { "name": "t" } })),
        buffer(json!({ "podTemplateRef": { "name": "" }, "replicas": 3 })),
        buffer(
            json!({ "podTemplateRef": { "name": "t" }, "replicas": 3, "scalableRef": { "kind": "D", "name": "d" } }),
        ),
        buffer(json!({ "scalableRef": { "kind": "D" } })),
        buffer(json!({ "replicas": -1 })),
    ]);
    let gate = Gate::open("kwoknodeclasses.karpenter.kwok.sh", "karpenter.kwok.sh_kwoknodeclasses.yaml");
    gate.admit(&[json!({ "metadata": { "name": "k" } }), json!({ "spec": { "nodeRegistrationDelay": "1m30s" } })]);
    gate.refuse(&[json!({ "spec": { "nodeRegistrationDelay": "Never" } })]);
    for definition in &gate.definitions {
        let stored = definition.stored(&json!({ "metadata": { "name": "k" } }));
        assert_eq!(stored["status"]["conditions"][0]["type"], "Ready");
        assert_eq!(stored["status"]["conditions"][0]["status"], "True");
    }
}

#[test]
fn defaults_are_filled_in_as_by_karpenter() {
    for definition in &POOLS.definitions {
        let stored = definition.stored(&pool(&json!({})));
        assert_eq!(
            stored["spec"]["disruption"],
            json!({ "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{ "nodes": "10%" }] })
        );
        assert_eq!(stored["spec"]["template"]["spec"]["expireAfter"], "720h");
    }
}

/// What a schema without an original admits and refuses.
fn own(name: &str) -> Definition {
    Definition::of(&crd(name))
}

fn crd(name: &str) -> Value {
    crds::all().into_iter().find(|crd| crd["metadata"]["name"] == name).expect("one of our kinds")
}

fn outscale(change: impl FnOnce(&mut Value)) -> Value {
    let mut class = json!({
        "apiVersion": "karpenter.outscale.com/v1alpha1",
        "kind": "OutscaleNodeClass",
        "metadata": { "name": "workers" },
        "spec": {
            "imageId": "ami-0a1b2c3d",
            "subnetIds": ["subnet-0a1b2c3d"],
            "securityGroupIds": ["sg-0a1b2c3d"],
            "talos": { "secretRef": { "name": "talos-worker" } },
        },
    });
    change(&mut class["spec"]);
    class
}

#[test]
fn an_outscale_class_says_each_thing_once_and_in_outscales_words() {
    let definition = own("outscalenodeclasses.karpenter.outscale.com");
    let good: Vec<Value> = vec![
        outscale(|_| {}),
        outscale(|spec| {
            spec.as_object_mut().expect("a map").remove("imageId");
            spec["imageSelectorTerms"] =
                json!([{ "name": "Talos-*", "owner": "Outscale" }, { "id": "ami-0a1b2c3d" }, { "tags": { "a": "*" } }]);
        }),
        outscale(|spec| {
            spec["vmTypes"] =
                json!({ "families": ["tinav7", "c5"], "names": ["tinav7.c6r10p1"], "performances": ["highest"] });
        }),
        outscale(|spec| {
            spec["blockDeviceMappings"] = json!([
                { "deviceName": "/dev/sda1", "bsu": { "volumeSize": 100, "volumeType": "io1", "iops": 1000 } },
                { "deviceName": "/dev/xvdb" },
            ]);
        }),
        outscale(|spec| spec["tags"] = json!({ "team": "web", "empty": "" })),
        outscale(|spec| {
            spec["kubelet"] = json!({ "maxPods": 50, "systemReserved": { "cpu": "100m", "memory": 1024 } });
        }),
        outscale(|spec| {
            spec["talos"] = json!({ "secretRef": { "name": "x", "key": "y" }, "nodeName": "NodeClaim", "patches": ["a: 1"], "clusterEndpoint": "https://api:6443" });
        }),
        outscale(|spec| spec["placement"] = json!({ "tenancy": "dedicated", "repulseServer": "web" })),
    ];
    for object in good {
        assert_eq!(definition.faults(&object, None), Vec::<Fault>::new(), "{object}");
    }
    let bad: Vec<Value> = vec![
        outscale(|spec| spec["imageId"] = json!("ami-xyz")),
        outscale(|spec| drop(spec.as_object_mut().expect("a map").remove("imageId"))),
        outscale(|spec| spec["imageSelectorTerms"] = json!([{ "name": "x" }])),
        outscale(|spec| {
            spec.as_object_mut().expect("a map").remove("imageId");
            spec["imageSelectorTerms"] = json!([{ "owner": "Outscale" }]);
        }),
        outscale(|spec| spec["subnetIds"] = json!([])),
        outscale(|spec| spec["subnetIds"] = json!(["subnet-1"])),
        outscale(|spec| spec["subnetSelectorTerms"] = json!([{ "tags": { "a": "b" } }])),
        outscale(|spec| spec["securityGroupIds"] = json!(["eg-0a1b2c3d"])),
        outscale(|spec| spec["vmTypes"] = json!({ "performances": ["best"] })),
        outscale(|spec| {
            spec["blockDeviceMappings"] = json!([{ "deviceName": "/dev/sda1" }, { "deviceName": "/dev/sda1" }]);
        }),
        outscale(|spec| {
            spec["blockDeviceMappings"] =
                json!([{ "deviceName": "/dev/sda1", "bsu": { "volumeType": "gp2", "iops": 100 } }]);
        }),
        outscale(|spec| {
            spec["blockDeviceMappings"] = json!([{ "deviceName": "/dev/sda1", "bsu": { "volumeType": "io1" } }]);
        }),
        outscale(|spec| spec["tags"] = json!({ "OscK8sNodeName": "x" })),
        outscale(|spec| spec["tags"] = json!({ "karpenter.sh/managed-by": "x" })),
        outscale(|spec| spec["tags"] = json!({ "": "x" })),
        outscale(|spec| spec["kubelet"] = json!({ "kubeReserved": { "pods": "1" } })),
        outscale(|spec| spec["talos"] = json!({})),
        outscale(|spec| spec["talos"]["nodeName"] = json!("Fqdn")),
        outscale(|spec| spec["talos"]["clusterEndpoint"] = json!("http://api")),
        outscale(|spec| spec["nodeRole"] = json!("controlplane")),
        outscale(|spec| drop(spec.as_object_mut().expect("a map").remove("securityGroupIds"))),
        selecting("imageId", "imageSelectorTerms", json!([{ "id": "ami-0a1b2c3d", "owner": "Outscale" }])),
        selecting("subnetIds", "subnetSelectorTerms", json!([{ "id": "subnet-0a1b2c3d", "tags": { "a": "b" } }])),
        selecting("subnetIds", "subnetSelectorTerms", json!([{ "tags": { "": "b" } }])),
        selecting("securityGroupIds", "securityGroupSelectorTerms", json!([{}])),
        selecting("securityGroupIds", "securityGroupSelectorTerms", json!([{ "id": "sg-0a1b2c3d", "name": "x" }])),
    ];
    let mut said = BTreeSet::new();
    for object in bad {
        let faults = definition.faults(&object, None);
        assert!(!faults.is_empty(), "admitted: {object}");
        assert!(faults.iter().all(|fault| fault.field.starts_with("spec") && !fault.remedy.is_empty()), "{faults:?}");
        said.extend(faults.into_iter().map(|fault| fault.remedy));
    }
    let mut rules = Vec::new();
    messages(&crd("outscalenodeclasses.karpenter.outscale.com"), &mut rules);
    let unsaid: Vec<&String> = rules.iter().filter(|rule| !said.contains(*rule)).collect();
    assert!(rules.len() > 12 && unsaid.is_empty(), "rules that nothing here breaks: {unsaid:?}");
}

/// A class that selects in place of naming.
fn selecting(named: &str, selector: &str, terms: Value) -> Value {
    outscale(|spec| {
        spec.as_object_mut().expect("a map").remove(named);
        spec[selector] = terms;
    })
}

/// What all rules of a definition say, wherever they stand.
fn messages(schema: &Value, into: &mut Vec<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        into.push(rule["message"].as_str().expect("every rule says what is wrong").to_owned());
    }
    let inner = schema.as_object().into_iter().flat_map(|fields| fields.values());
    inner.chain(schema.as_array().into_iter().flatten()).for_each(|inner| messages(inner, into));
}

#[test]
fn the_examples_for_outscale_are_admitted() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/outscale/nodepool.yaml");
    let text = std::fs::read_to_string(path).expect("there is an example");
    let mut kinds = Vec::new();
    for part in text.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(part).expect("the example is YAML");
        let kind = object["kind"].as_str().expect("it has a kind").to_owned();
        let name =
            if kind == "NodePool" { "nodepools.karpenter.sh" } else { "outscalenodeclasses.karpenter.outscale.com" };
        assert_eq!(own(name).faults(&object, None), Vec::<Fault>::new(), "{kind}");
        kinds.push(kind);
    }
    assert_eq!(kinds, ["OutscaleNodeClass", "NodePool"]);
}
