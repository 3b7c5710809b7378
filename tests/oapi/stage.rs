//! joiner's own actors over the stand-in for Outscale's API. What Talos and the cloud controller manager would do is played here, by what they have to
//! go by: user data and tags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use jiff::Timestamp;
use joiner::actors::runtime::Clock;
use joiner::actors::{Joiner, Parts, Settings};
use joiner::clouds::outscale::oapi::wire::{State, Vm};
use joiner::clouds::outscale::oapi::{Client, Options, Transport};
use joiner::clouds::outscale::{self, Outscale, SecretError, Secrets, VmType};
use joiner::cluster::DryRun;
use joiner::cluster::convert::ShapeStore;
use joiner::core::facts::{Condition, Effect, Node, Status, Taint};
use joiner::core::ids::{NodeName, NodeUid, ProviderId};
use joiner::core::labels::{self, Labels};
use joiner::core::resources::Resources;
use joiner::sim::oapi::{Account, Fake};
use joiner::sim::{Seed, SimCluster, World, WorldConfig, read_scenario};
use serde_json::Value;

const WORKER: &str = r#"
version: v1alpha1
machine: { type: worker, token: mmmmmm.0123456789abcdef, ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCm1hY2hpbmUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= } }
cluster: { token: cccccc.0123456789abcdef, ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmNsdXN0ZXIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= }, controlPlane: { endpoint: "https://10.0.0.2:6443" } }
"#;

struct OneSecret;

impl Secrets for OneSecret {
    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>> {
        async { Ok([("worker.yaml".to_owned(), WORKER.into())].into()) }.boxed()
    }
}

/// A cluster, an API, and what stands between them.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) fake: Fake,
    pub(crate) clock: Clock,
}

pub(crate) fn scene(seed: u64) -> Scene {
    let clock = Clock::simulated(Timestamp::from_second(1_800_000_000).unwrap());
    let world = World::new(WorldConfig::usual(seed, Arc::new(move || clock.now())));
    let fake = Fake::new(Account::sample(), Arc::new(move || clock.now()), Seed(seed));
    // The API may or may not make tags of what the user data say: the worse case.
    fake.conduct(|conduct| conduct.reads_section = false);
    Scene { world, fake, clock }
}

impl Scene {
    pub(crate) fn joiner(&self) -> Joiner {
        self.joiner_over(Arc::new(self.fake.clone()), 0)
    }

    /// A joiner whose calls go this way. No two lives may give two NodeClaims one name.
    pub(crate) fn joiner_over(&self, transport: Arc<dyn Transport>, life: u64) -> Joiner {
        self.joiner_with(self.cloud(transport, false), life)
    }

    /// A joiner with this cloud.
    pub(crate) fn joiner_with(&self, cloud: Arc<Outscale>, life: u64) -> Joiner {
        let settings = Settings { name_salt: life << 32, identity: format!("joiner_{life}"), ..Settings::default() };
        let cluster = Arc::new(self.world.cluster.clone());
        Joiner::start(Parts { cluster, cloud, settings, clock: self.clock })
    }

    /// A joiner that only looks, as `joiner run --dry-run` wires it.
    pub(crate) fn looking(&self) -> Joiner {
        let clock = self.clock;
        let cluster = DryRun::new(Arc::new(self.world.cluster.clone()), Arc::new(move || clock.now()));
        let settings = Settings { leader_election: false, ..Settings::default() };
        let cloud = self.cloud(Arc::new(self.fake.clone()), true);
        Joiner::start(Parts { cluster: Arc::new(cluster), cloud, settings, clock })
    }

    pub(crate) fn cloud(&self, transport: Arc<dyn Transport>, dry_run: bool) -> Arc<Outscale> {
        self.cloud_of("demo", transport, dry_run)
    }

    /// The cloud for a cluster of this name.
    pub(crate) fn cloud_of(&self, cluster: &str, transport: Arc<dyn Transport>, dry_run: bool) -> Arc<Outscale> {
        let clock = self.clock;
        let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
        let client = Client::new(access, transport, Options::new(Arc::new(move || clock.now())));
        let settings = outscale::Settings {
            cluster: cluster.to_owned(),
            cluster_id: format!("{cluster}-id"),
            prices: None,
            memory_overhead: 75,
            dry_run,
        };
        Arc::new(Outscale::new(Arc::new(client), Arc::new(OneSecret), settings).unwrap())
    }

    /// Plays a script with everybody in it.
    pub(crate) async fn play(&self, script: &str) {
        let posed = self.world.cluster.store().nodes().map(|node| node.name.to_string()).collect();
        let machines =
            Machines { cluster: self.world.cluster.clone(), fake: self.fake.clone(), posed, managed: BTreeSet::new() };
        tokio::select! {
            biased;
            () = self.play_without_nodes(script) => {}
            () = machines.run() => {}
        }
    }

    /// Plays a script in which no machine ever becomes a Node.
    pub(crate) async fn play_without_nodes(&self, script: &str) {
        let open = |_: &Path| Ok(script.to_owned());
        let scenario = read_scenario(Path::new("script.yaml"), &ShapeStore::new(), &open).unwrap();
        let players = join_all(self.world.stand_ins().into_iter().map(|(_, player)| player));
        tokio::select! {
            biased;
            () = self.world.play(&scenario.steps, scenario.end) => {}
            _ = players => {}
        }
    }

    pub(crate) fn alive(&self) -> Vec<Vm> {
        self.fake.vms().into_iter().filter(|vm| !vm.state.is_leaving()).collect()
    }

    /// No NodeClaim has two machines, and no machine has none.
    pub(crate) fn check_pairs(&self) -> usize {
        let store = self.world.cluster.store();
        let mut claims: BTreeSet<String> = store.claims().map(|claim| claim.uid.as_str().to_owned()).collect();
        let alive = self.alive();
        for vm in &alive {
            let token = vm.client_token.clone().unwrap_or_default();
            let uid = token.split('.').next().unwrap_or_default();
            assert!(claims.remove(uid), "{} is the second machine of NodeClaim {uid}, or it has none", vm.vm_id);
        }
        assert!(claims.is_empty(), "NodeClaims without machines: {claims:?}");
        alive.len()
    }

    /// The policy that users are told to give joiner's keys allows every action that was called and needs keys.
    pub(crate) fn check_policy(&self) {
        let policy: Value = serde_json::from_str(include_str!("../../examples/outscale/eim-policy.json")).unwrap();
        let allowed = &policy["Statement"][0]["Action"];
        let free = ["ReadVmTypes", "ReadPublicCatalog"];
        for action in self.fake.load().into_keys().filter(|action| !free.contains(action)) {
            let is_allowed = allowed.as_array().unwrap().iter().any(|one| *one == format!("api:{action}"));
            assert!(is_allowed, "eim-policy.json does not allow {action}");
        }
    }
}

/// Talos and the cloud controller manager.
struct Machines {
    cluster: SimCluster,
    fake: Fake,
    posed: BTreeSet<String>,
    /// Nodes that have their provider ID.
    managed: BTreeSet<String>,
}

impl Machines {
    async fn run(mut self) {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let vms = self.fake.vms();
            let running: BTreeMap<String, &Vm> =
                vms.iter().filter(|vm| vm.state == State::Running).map(|vm| (node_name(vm), vm)).collect();
            for (name, vm) in &running {
                if !self.posed.contains(name) && self.pose(name, vm) {
                    self.posed.insert(name.clone());
                }
                if !self.managed.contains(name) && self.manage(name, vm) {
                    self.managed.insert(name.clone());
                }
            }
            for gone in self.posed.iter().filter(|name| !running.contains_key(*name)).cloned().collect::<Vec<_>>() {
                self.posed.remove(&gone);
                self.managed.remove(&gone);
                self.cluster.store().delete_node(&NodeName::from(gone.as_str()), None).ok();
            }
        }
    }

    /// The kubelet registers with what the machine was told. Not while the Node of a machine that had the address before it is still there.
    fn pose(&self, name: &str, vm: &Vm) -> bool {
        let told = String::from_utf8(vm.user_data.as_ref().unwrap().bytes().unwrap()).unwrap();
        let (section, yaml) = told.split_once("-----END OUTSCALE SECTION-----\n").unwrap();
        assert!(section.contains("filter_private_section=true"));
        let config: Value = serde_saphyr::from_str(yaml).unwrap();
        let taints = config["machine"]["kubelet"]["extraArgs"]["register-with-taints"].as_str().unwrap();
        let taints = taints.split(',').map(|taint| {
            let (key, rest) = taint.split_once('=').unwrap();
            let (value, effect) = rest.split_once(':').unwrap();
            Taint { value: value.into(), ..Taint::new(key, Effect::parse(effect).unwrap()) }
        });
        let uninitialized = Taint::new("node.cloudprovider.kubernetes.io/uninitialized", Effect::NoSchedule);
        let mut set: Labels = [(labels::HOSTNAME.into(), name.into())].into();
        for (key, value) in config["machine"]["nodeLabels"].as_object().unwrap() {
            set.insert(key.as_str().into(), value.as_str().unwrap().into());
        }
        let kind = VmType::parse(vm.vm_type.as_deref().unwrap()).unwrap();
        let mib = kind.memory_mib * 94 / 100;
        let room = |mib: i64, cpu: i64| {
            Resources::new()
                .with("cpu", cpu)
                .with("memory", mib * 1024 * 1024 * 1000)
                .with("pods", 110_000)
                .with("ephemeral-storage", 40 * (1_i64 << 30) * 1000)
        };
        let mut store = self.cluster.store();
        let now = store.now();
        let ready = Condition {
            kind: "Ready".into(),
            status: Status::True,
            reason: "KubeletReady".into(),
            message: "".into(),
            since: now,
            generation: 0,
        };
        let node = Node {
            name: name.into(),
            uid: NodeUid::from(""),
            created: now,
            deleting: None,
            version: "".into(),
            labels: set,
            annotations: Labels::new(),
            finalizers: Vec::new(),
            owner_claims: Vec::new(),
            provider_id: None,
            taints: taints.chain([uninitialized]).collect(),
            cordoned: false,
            boot_id: None,
            capacity: room(mib, i64::from(kind.cores) * 1000),
            allocatable: room(mib - 484, i64::from(kind.cores) * 1000 - 50),
            conditions: vec![ready],
        };
        store.create_node(node).is_ok()
    }

    /// The cloud controller manager finds the machine of a Node by two tags, and by nothing else.
    fn manage(&self, name: &str, vm: &Vm) -> bool {
        let has = |key: &str, value: &str| vm.tags.iter().any(|tag| tag.key == key && tag.value == value);
        if !has("OscK8sClusterID/demo-id", "owned") || !has("OscK8sNodeName", name) {
            return false;
        }
        let zone = vm.placement.as_ref().and_then(|placement| placement.subregion_name.clone()).unwrap();
        let mut is_there = false;
        self.cluster.store().update_node(&name.into(), |node| {
            is_there = true;
            if node.provider_id.is_none() {
                node.provider_id = Some(ProviderId::from(format!("aws:///{zone}/{}", vm.vm_id)));
                node.labels.insert(labels::ZONE.into(), zone.as_str().into());
                node.taints.retain(|taint| &*taint.key != "node.cloudprovider.kubernetes.io/uninitialized");
            }
        });
        is_there
    }
}

fn node_name(vm: &Vm) -> String {
    format!("ip-{}", vm.private_ip.as_deref().unwrap_or_default().replace('.', "-"))
}

pub(crate) fn script(types: &str, replicas: usize, cpu: &str, rest: &str) -> String {
    format!(
        r"
apiVersion: karpenter.outscale.com/v1alpha1
kind: OutscaleNodeClass
metadata: {{name: workers}}
spec:
  imageId: {image}
  subnetIds: [subnet-00000001, subnet-00000002]
  securityGroupIds: [{group}]
  vmTypes: {types}
  talos: {{secretRef: {{name: talos}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: general}}
spec:
  template:
    metadata: {{labels: {{tier: web}}}}
    spec:
      requirements: [{{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}]
      nodeClassRef: {{group: karpenter.outscale.com, kind: OutscaleNodeClass, name: workers}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, resources: {{requests: {{cpu: {cpu}, memory: 500Mi}}}}}}]
---
{rest}
",
        image = Account::IMAGE,
        group = Account::GROUP,
    )
}

/// A Deployment of one pod.
pub(crate) fn deployment(name: &str, memory: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: 1, template: {{metadata: {{labels: {{app: {name}}}}}, \
         spec: {{containers: [{{name: c, resources: {{requests: {{cpu: '1', memory: {memory}}}}}}}]}}}}}}}}"
    )
}
