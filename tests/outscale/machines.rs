//! What becomes of machines without joiner's doing: Talos reads its configuration and registers the Node, the cloud controller manager finds the
//! machine of the Node and says so. Both are played here, by what they have to go by: user data and tags. kwok keeps the kubelets alive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use joiner::clouds::outscale::VmType;
use joiner::clouds::outscale::oapi::wire::{State, UserData, Vm};
use serde_json::{Value, json};

use crate::account::Eye;
use crate::common::kube_api::{KubeApi, NODES, name};

/// The pause between two looks at the account.
const PAUSE: Duration = Duration::from_millis(200);
/// The taint with which kubelets register where a cloud controller manager is.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The players; they stop when this is dropped.
pub(crate) struct Machines {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Machines {
    /// Begins to play. `cluster_id` is what the cloud controller manager was told.
    pub(crate) fn play(eye: Eye, api: KubeApi, cluster_id: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let mut players = Players { eye, api, cluster_id, posed: BTreeSet::new() };
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                players.look();
                thread::sleep(PAUSE);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().is_none_or(|thread| thread.join().is_ok());
        assert!(ended || thread::panicking(), "the players gave up; what they said is above");
    }
}

struct Players {
    eye: Eye,
    api: KubeApi,
    cluster_id: &'static str,
    /// Machines whose kubelet has registered.
    posed: BTreeSet<String>,
}

impl Players {
    fn look(&mut self) {
        let Some(vms) = self.eye.vms() else { return };
        let nodes: BTreeMap<String, Value> = self.api.list(NODES).into_iter().map(|node| (name(&node), node)).collect();
        for vm in vms.iter().filter(|vm| vm.state == State::Running) {
            let node = node_name(vm);
            match nodes.get(&node) {
                Some(there) => self.manage(there, vm),
                // Not while the Node of a machine that had the address before it is still there.
                None if !self.posed.contains(&vm.vm_id) && self.api.create(NODES, &registration(vm, &node)) => {
                    self.posed.insert(vm.vm_id.clone());
                }
                None => {}
            }
        }
    }

    /// The cloud controller manager knows the machine of a Node by two tags, and by nothing else.
    fn manage(&self, node: &Value, vm: &Vm) {
        let has = |key: &str, value: &str| vm.tags.iter().any(|tag| tag.key == key && tag.value == value);
        let is_ours = has(&format!("OscK8sClusterID/{}", self.cluster_id), "owned");
        let is_new = node["spec"]["providerID"].is_null() && node["metadata"]["deletionTimestamp"].is_null();
        if !is_ours || !is_new || !has("OscK8sNodeName", &name(node)) {
            return;
        }
        let zone = vm.placement.as_ref().and_then(|placement| placement.subregion_name.clone());
        let zone = zone.expect("a VM is somewhere");
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let taints: Vec<&Value> = taints.filter(|taint| taint["key"] != UNINITIALIZED).collect();
        let patch = json!({
            "metadata": {
                "resourceVersion": node["metadata"]["resourceVersion"],
                "labels": { "topology.kubernetes.io/zone": zone },
            },
            "spec": { "providerID": format!("aws:///{zone}/{}", vm.vm_id), "taints": taints },
        });
        // Who comes too late comes again.
        self.api.try_patch(&format!("{NODES}/{}", name(node)), &patch);
    }
}

/// The name of a machine's Node, as Talos takes it from the metadata service.
fn node_name(vm: &Vm) -> String {
    format!("ip-{}", vm.private_ip.as_deref().unwrap_or_default().replace('.', "-"))
}

/// What a kubelet registers with: what the machine was told at its birth, and its size.
fn registration(vm: &Vm, name: &str) -> Value {
    let told = vm.user_data.as_ref().and_then(UserData::bytes).expect("every machine is told something");
    let told = String::from_utf8(told).expect("Talos reads UTF-8");
    let (section, yaml) = told.split_once("-----END OUTSCALE SECTION-----\n").expect("it has a section");
    assert!(section.contains("filter_private_section=true"), "Talos would read the section too: {section}");
    let config: Value = serde_saphyr::from_str(yaml).expect("it is YAML");
    let taints = config["machine"]["kubelet"]["extraArgs"]["register-with-taints"].as_str().unwrap_or_default();
    let taints = taints.split(',').filter_map(|taint| {
        let (key, rest) = taint.split_once('=')?;
        let (value, effect) = rest.split_once(':')?;
        Some(json!({ "key": key, "value": value, "effect": effect }))
    });
    let uninitialized = json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" });
    let mut labels = config["machine"]["nodeLabels"].as_object().cloned().unwrap_or_default();
    labels.insert("kubernetes.io/hostname".to_owned(), name.into());
    let kind = vm.vm_type.as_deref().and_then(VmType::parse).expect("it has a type that joiner knows");
    // What the hypervisor keeps, and what the kubelet keeps.
    let memory = kind.memory_mib * 94 / 100;
    let room = |memory: i64, cpu: i64| json!({ "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": "110", "ephemeral-storage": "40Gi" });
    let cpu = i64::from(kind.cores) * 1000;
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels, "annotations": { "kwok.x-k8s.io/node": "fake" } },
        "spec": { "taints": taints.chain([uninitialized]).collect::<Vec<_>>() },
        "status": { "capacity": room(memory, cpu), "allocatable": room(memory - 484, cpu - 50) },
    })
}
