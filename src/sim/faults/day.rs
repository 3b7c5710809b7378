//! A day in a cluster, drawn from the seed: deployments that grow and shrink in waves, jobs, budgets, and at the end nothing.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::cluster::convert::ShapeStore;
use crate::core::facts::InstanceType;
use crate::core::ids::ObjectKey;
use crate::manifests::{Admission, Invalid, Object, read_object};
use crate::sim::scenario::{Act, Step};
use crate::sim::seed::{self, Seed};

/// When faults stop.
pub const CALM: Duration = Duration::from_hours(20);
/// When everything is deleted; whatever was to settle has settled.
pub const EMPTYING: Duration = Duration::from_hours(22);
/// When the day is over, and nothing may be left.
pub const END: Duration = Duration::from_hours(24);
/// When users last change what they want.
const LAST_WAVE: Duration = Duration::from_hours(19);

/// Cores of the machines that the day's NodePools buy: small ones, so that few pods make many nodes.
const CORES: [i64; 2] = [2, 4];
/// Cores of an average node that pods can use.
const USABLE: f64 = 3.0;

/// A day.
#[derive(Clone, Debug)]
pub struct Day {
    /// What users do.
    pub steps: Vec<Step>,
    /// When operators delete NodeClaims whose nodes are empty.
    pub sweeps: Vec<Duration>,
    /// How many nodes the pods of its highest wave need, about.
    pub peak: u64,
}

/// A workload of the day.
struct App {
    kind: &'static str,
    name: String,
    cores: f64,
}

impl Day {
    /// Draws a day.
    pub fn draw(seed: Seed) -> Result<Self, Invalid> {
        let mut rng = seed.stream("day");
        // As many days between 50 and 158 nodes as between 158 and 500.
        let peak = 50.0 * 10_f64.powf(rng.f64());
        let mut objects = pools(&mut rng);
        let mut last = vec![("NodePool", "general"), ("NodePool", "batch")];
        if rng.bool() {
            objects.push(daemons());
            last.push(("DaemonSet", "agent"));
        }
        let mut apps = Vec::new();
        let mut volumes = seed.stream("day's volumes");
        for number in 0..rng.usize(3..=7) {
            let (app, mut manifests) = app(&mut rng, number);
            if app.kind == "StatefulSet" || volumes.u32(..4) == 0 {
                with_volume(&mut manifests[0]);
            }
            apps.push(app);
            objects.extend(manifests);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 50 and 500")]
        let nodes = peak.round() as u64;
        let mut day = Self { steps: vec![apply(Duration::ZERO, &objects)?], sweeps: Vec::new(), peak: nodes };
        day.waves(&mut rng, &apps, peak);
        day.jobs(&mut rng)?;
        for app in &apps {
            let act = Act::Delete { kind: app.kind.to_owned(), key: ObjectKey::new("default", app.name.as_str()) };
            day.steps.push(Step { at: EMPTYING, act });
        }
        for (kind, name) in last {
            let act = Act::Delete { kind: kind.to_owned(), key: ObjectKey::new("kube-system", name) };
            day.steps.push(Step { at: EMPTYING, act });
        }
        day.steps.sort_by_key(|step| step.at);
        day.sweeps.sort();
        Ok(day)
    }

    /// The moments at which much is under way.
    pub fn busy(&self) -> Vec<Duration> {
        self.steps.iter().map(|step| step.at).chain(self.sweeps.iter().copied()).filter(|at| *at < CALM).collect()
    }

    /// What of a catalogue the day's NodePools can buy. The others only cost time to look at.
    pub fn catalogue(all: Vec<InstanceType>) -> Vec<InstanceType> {
        let wanted = |kind: &InstanceType| {
            CORES.contains(&(kind.capacity.get(&"cpu".into()) / 1_000)) && kind.name.as_str().ends_with("amd64-linux")
        };
        all.into_iter().filter(wanted).collect()
    }

    /// Demand rises and falls: one wave is the highest, the others are parts of it.
    fn waves(&mut self, rng: &mut Rng, apps: &[App], peak: f64) {
        let waves = rng.u32(2..=4);
        let highest = rng.u32(..waves);
        let length = LAST_WAVE / waves;
        for wave in 0..waves {
            let height = if wave == highest { 1.0 } else { 0.1 + 0.5 * rng.f64() };
            let from = length * wave + seed::between(rng, (Duration::ZERO, length / 4));
            let until = from + length / 4 + seed::between(rng, (Duration::ZERO, length / 3));
            let shares: Vec<f64> = apps.iter().map(|_| 0.1 + rng.f64()).collect();
            let total: f64 = shares.iter().sum();
            for (app, share) in apps.iter().zip(&shares) {
                let replicas = (peak * height * USABLE * share / total / app.cores).ceil();
                self.scale(app, from + seed::between(rng, (Duration::ZERO, Duration::from_mins(5))), replicas);
                let rest = (replicas * 0.4 * rng.f64()).floor();
                self.scale(app, until + seed::between(rng, (Duration::ZERO, Duration::from_mins(5))), rest);
            }
            self.sweeps.push(until + seed::between(rng, (Duration::from_mins(6), Duration::from_mins(20))));
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number of pods")]
    fn scale(&mut self, app: &App, at: Duration, replicas: f64) {
        let key = ObjectKey::new("default", app.name.as_str());
        let act = Act::Scale { kind: app.kind.to_owned(), key, replicas: replicas as u64 };
        self.steps.push(Step { at, act });
    }

    fn jobs(&mut self, rng: &mut Rng) -> Result<(), Invalid> {
        for number in 0..rng.u32(..=5) {
            let at = seed::between(rng, (Duration::from_mins(1), LAST_WAVE));
            let name = format!("job-{number}");
            let (parallelism, minutes) = (rng.u32(2..=20), rng.u32(3..=40));
            let mut template = template(&name, 0.5 + rng.f64());
            template["metadata"]["annotations"] = json!({"sim.joiner.dev/run-for": format!("{minutes}m")});
            let spec =
                json!({"parallelism": parallelism, "completions": parallelism * rng.u32(1..=2), "template": template});
            let job = json!({"apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": name, "namespace": "default"}, "spec": spec});
            self.steps.push(apply(at, &[job])?);
            let act = Act::Delete { kind: "Job".to_owned(), key: ObjectKey::new("default", name.as_str()) };
            self.steps.push(Step { at: EMPTYING, act });
        }
        Ok(())
    }
}

fn apply(at: Duration, manifests: &[Value]) -> Result<Step, Invalid> {
    let shapes = ShapeStore::new();
    let objects = manifests.iter().map(|manifest| read_object(manifest, &shapes, &Admission::default()));
    let objects: Vec<Object> = objects.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    Ok(Step { at, act: Act::Apply(objects) })
}

/// The classes and two NodePools: one whose drains are polite without end, one with a deadline.
fn pools(rng: &mut Rng) -> Vec<Value> {
    let class =
        json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}});
    let mut pool = |name: &str, grace: Option<u32>| {
        let expire = if rng.bool() { format!("{}h", rng.u32(4..=12)) } else { "Never".to_owned() };
        let mut spec = json!({
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            ],
            "expireAfter": expire,
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        });
        if let Some(minutes) = grace {
            spec["terminationGracePeriod"] = json!(format!("{minutes}m"));
        }
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": spec}}})
    };
    let (general, batch) = (pool("general", None), pool("batch", Some(10)));
    let storage = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "zonal"},
        "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"});
    vec![class, storage, general, batch]
}

fn daemons() -> Value {
    let mut template = template("agent", 0.1);
    template["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}})
}

fn template(name: &str, cores: f64) -> Value {
    let milli = (cores * 1_000.0).round();
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{
            "name": "main",
            "image": "registry.example/app",
            "resources": {"requests": {"cpu": format!("{milli}m"), "memory": format!("{}Mi", (milli * 1.5).round())}},
        }]},
    })
}

/// Gives every pod of a workload a volume of its own: one that stays for the next pod of that name, or goes with the pod.
fn with_volume(workload: &mut Value) {
    let claim = json!({"storageClassName": "zonal", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}}});
    if workload["kind"] == "StatefulSet" {
        workload["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    } else {
        workload["spec"]["template"]["spec"]["volumes"] =
            json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]);
    }
}

/// A Deployment or StatefulSet, with what comes with it.
fn app(rng: &mut Rng, number: usize) -> (App, Vec<Value>) {
    let name = format!("app-{number}");
    let cores = 0.5 + 2.0 * rng.f64();
    let mut template = template(&name, cores);
    let spec = &mut template["spec"];
    spec["terminationGracePeriodSeconds"] = json!(rng.u32(5..=90));
    let labels = json!({"matchLabels": {"app": name}});
    match rng.u32(..6) {
        0 => {
            let key = "topology.kubernetes.io/zone";
            let skew = rng.u32(1..=2);
            spec["topologySpreadConstraints"] = json!([
                {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
            ]);
        }
        1 => spec["nodeSelector"] = json!({"karpenter.sh/nodepool": "batch"}),
        2 => {
            spec["nodeSelector"] = json!({"karpenter.sh/nodepool": "batch"});
            template["metadata"]["annotations"] =
                json!({"karpenter.sh/do-not-disrupt": format!("{}m", rng.u32(5..=40))});
        }
        3 => spec["nodeSelector"] = json!({"karpenter.sh/capacity-type": "on-demand"}),
        _ => {}
    }
    let kind = if rng.u32(..5) == 0 { "StatefulSet" } else { "Deployment" };
    let mut spec = json!({"replicas": 0, "selector": labels, "template": template});
    if kind == "StatefulSet" {
        spec["podManagementPolicy"] = json!("Parallel");
    }
    let meta = json!({"name": name, "namespace": "default"});
    let mut manifests = vec![json!({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec})];
    let budget = match rng.u32(..4) {
        0 => Some(json!({"selector": labels, "maxUnavailable": "25%"})),
        1 => Some(json!({"selector": labels, "maxUnavailable": "10%"})),
        _ => None,
    };
    manifests.extend(
        budget.map(
            |spec| json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}),
        ),
    );
    (App { kind, name, cores }, manifests)
}
