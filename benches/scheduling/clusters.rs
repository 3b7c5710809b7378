//! Larger worlds: a catalogue of AWS's size, Deployments, pods that are all different, a cluster that is full, and a recorded burst.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use joiner::clouds::catalog::read_file;
use joiner::core::facts::{Catalog, InstanceType, Node, Offering, Pod, PodPhase, PodShape, Snapshot};
use joiner::core::ids::{NodeName, PodUid};
use joiner::core::labels::{self, Labels};
use joiner::core::resources::Resources;

use crate::upstream::{Draws, empty_cluster, one, pod, selector, shared, spread, term};

/// Zones of the catalogue.
const ZONES: [&str; 4] = ["zone-a", "zone-b", "zone-c", "zone-d"];

/// 1,724 instance types with 13,792 offerings, as many as AWS has in one region: families of 2, 4 and 8 GiB per core in several
/// generations and sizes, on demand and as spot.
pub(crate) fn aws_size() -> Vec<Arc<InstanceType>> {
    let sizes = [1, 2, 4, 8, 16, 32, 48, 64, 96];
    (0..1_724)
        .map(|at: usize| {
            let cores = sizes[at % sizes.len()];
            let family = at / sizes.len();
            let per_core = [2, 4, 8][family % 3];
            let generation = i64::try_from(family / 3).expect("few families");
            let name = format!("f{family:03}.{cores}");
            let memory = (per_core * cores) << 30;
            let arch = if family.is_multiple_of(4) { "arm64" } else { "amd64" };
            let base = cores as f64 * (0.02 + 0.006 * per_core as f64) * (1.0 + 0.004 * generation as f64);
            let offerings = ["on-demand", "spot"]
                .into_iter()
                .flat_map(|kind| ZONES.into_iter().enumerate().map(move |(zone, name)| (kind, zone, name)))
                .map(|(kind, zone, name)| Offering {
                    requirements: vec![one(labels::ZONE, &[name]), one(labels::CAPACITY_TYPE, &[kind])],
                    price: if kind == "spot" { base * (0.35 + 0.03 * ((at + zone) % 7) as f64) } else { base },
                    available: true,
                    reservation_capacity: None,
                })
                .collect();
            let requirements = vec![
                one(labels::INSTANCE_TYPE, &[&name]),
                one(labels::ARCH, &[arch]),
                one(labels::OS, &["linux"]),
                one(labels::ZONE, &ZONES),
                one(labels::CAPACITY_TYPE, &["on-demand", "spot"]),
            ];
            Arc::new(InstanceType {
                name: name.as_str().into(),
                requirements,
                capacity: Resources::new()
                    .with("cpu", cores * 1000)
                    .with("memory", memory * 1000)
                    .with("pods", 110_000),
                overhead: Resources::new().with("cpu", 100).with("memory", (100 << 20) * 1000),
                attach_limits: std::collections::BTreeMap::new(),
                offerings,
            })
        })
        .collect()
}

/// AWS's own catalogue of one region as Karpenter's authors recorded it: 1,724 instance types with 13,792 offerings. Nothing when it is absent.
pub(crate) fn aws() -> Option<Vec<Arc<InstanceType>>> {
    let types = read_file(&crate::shared_data::shared("karpenter/aws_instance_types.json")?).ok()?;
    Some(types.into_iter().map(Arc::new).collect())
}

/// The shape of one of many Deployments: a fifth spread over zones, a tenth apart from themselves, a tenth bound to an architecture.
fn deployment(which: usize, draws: &mut Draws) -> PodShape {
    let mut shape = PodShape::plain(draws.requests());
    let app = format!("app-{which}");
    shape.labels.insert("app".into(), app.as_str().into());
    match which % 10 {
        0 | 1 => {
            let mut over_zones = spread(labels::ZONE, "");
            over_zones.selector = Some(selector("app", &app));
            shape.spreads.push(over_zones);
        }
        2 if which % 20 == 2 => shape
            .preferred_anti_affinity
            .push(joiner::core::facts::Weighted { weight: 1, term: term(labels::HOSTNAME, "app", &app) }),
        3 => {
            shape.node_selector.insert(labels::ARCH.into(), "amd64".into());
        }
        _ => {}
    }
    shape
}

/// `count` pods in 200 Deployments.
pub(crate) fn deployments(count: usize) -> Vec<Arc<Pod>> {
    let mut draws = Draws(7);
    let shapes: Vec<Arc<PodShape>> = (0..200).map(|which| Arc::new(deployment(which, &mut draws))).collect();
    (0..count).map(|at| pod(at, Arc::clone(&shapes[at * 7 % 200]))).collect()
}

/// `count` pods of which no two ask for the same.
pub(crate) fn distinct(count: usize) -> Vec<Arc<Pod>> {
    let mut draws = Draws(9);
    (0..count)
        .map(|at| {
            let own = i64::try_from(at).expect("few pods");
            let mut requests = draws.requests();
            requests.add(&Resources::new().with("cpu", own % 100).with("memory", (own << 10) * 1000));
            let mut shape = PodShape::plain(requests);
            shape.labels.insert("app".into(), format!("app-{}", at % 500).as_str().into());
            pod(at, Arc::new(shape))
        })
        .collect()
}

/// 5,000 nodes with 100,000 running pods of 200 Deployments, on types of the AWS-size catalogue.
pub(crate) fn full_cluster() -> (Snapshot, Catalog) {
    let types = aws_size();
    let (mut snapshot, catalog) = empty_cluster(types.clone());
    let pods = deployments(100_000);
    let kinds: Vec<&Arc<InstanceType>> =
        types.iter().filter(|kind| kind.capacity.get(&"cpu".into()) == 32_000).take(40).collect();
    for at in 0..5_000_usize {
        let kind = kinds[at % kinds.len()];
        let name = format!("node-{at:04}");
        let mut node_labels = Labels::new();
        for (key, value) in [
            (labels::HOSTNAME, name.as_str()),
            (labels::NODEPOOL, "default"),
            (labels::ZONE, ZONES[at % 4]),
            (labels::CAPACITY_TYPE, "spot"),
            (labels::INSTANCE_TYPE, kind.name.as_str()),
            (labels::ARCH, "amd64"),
            (labels::OS, "linux"),
        ] {
            node_labels.insert(key.into(), value.into());
        }
        let node = Node {
            name: name.as_str().into(),
            uid: format!("uid-{at}").into(),
            created: Timestamp::UNIX_EPOCH,
            deleting: None,
            version: "1".into(),
            labels: node_labels,
            annotations: Labels::new(),
            finalizers: Vec::new(),
            owner_claims: Vec::new(),
            provider_id: None,
            taints: Vec::new(),
            cordoned: false,
            boot_id: None,
            capacity: kind.capacity.clone(),
            allocatable: kind.allocatable(),
            conditions: Vec::new(),
        };
        let name: NodeName = name.as_str().into();
        snapshot.nodes.insert(name.clone(), Arc::new(node));
        let bound = (0..20).map(|which| {
            let mut own = (*pods[at * 20 + which]).clone();
            own.node = Some(name.clone());
            own.phase = PodPhase::Running;
            own.unschedulable = false;
            Arc::new(own)
        });
        for running in bound {
            snapshot.bound.entry(name.clone()).or_default().insert(running.uid.clone());
            snapshot.pods.insert(running.uid.clone(), running);
        }
    }
    (snapshot, catalog)
}

/// The pods that run on a node of the full cluster.
pub(crate) fn running_on(snapshot: &Snapshot, node: &NodeName) -> Vec<Arc<Pod>> {
    snapshot.pods_on(node).cloned().collect()
}

/// Pods that have just come to the full cluster.
pub(crate) fn newcomers(count: usize) -> Vec<Arc<Pod>> {
    let renamed = |old: &Arc<Pod>| {
        let mut own = (**old).clone();
        own.uid = PodUid::from(format!("new-{}", own.uid));
        Arc::new(own)
    };
    deployments(count).iter().map(renamed).collect()
}

/// A pod of the trace: when it came, when it went, and what it asked for.
struct Traced {
    created: i64,
    deleted: i64,
    requests: Resources,
}

fn trace() -> Option<Vec<Traced>> {
    let mut rows = csv::Reader::from_path(crate::shared_data::shared("traces/openb_pod_list_default.csv")?).ok()?;
    let headers = rows.headers().ok()?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name).expect("an openb pod list");
    let [cpu, memory, gpus, created, deleted] =
        ["cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time"].map(column);
    let traced = rows.records().map(|row| {
        let row = row.expect("a row of the trace");
        let number = |at: usize| row[at].trim().trim_end_matches(".0").parse::<i64>().ok();
        let (cpu, memory) = (number(cpu).expect("CPU"), number(memory).expect("memory"));
        let mut requests = Resources::new().with("cpu", cpu).with("memory", (memory << 20) * 1000);
        if let Some(gpus) = number(gpus).filter(|gpus| *gpus > 0) {
            requests.set("nvidia.com/gpu".into(), gpus * 1000);
        }
        let created = number(created).expect("a time");
        Traced { created, deleted: number(deleted).unwrap_or(i64::MAX), requests }
    });
    Some(traced.collect())
}

fn pods_of(traced: &[&Traced]) -> Vec<Arc<Pod>> {
    let mut known = BTreeSet::new();
    traced
        .iter()
        .enumerate()
        .map(|(at, traced)| pod(at, shared(&mut known, PodShape::plain(traced.requests.clone()))))
        .collect()
}

/// The recorded pods that were alive in the busiest minute, or all of them in one burst, GPUs included. Nothing when the trace is absent.
pub(crate) fn recorded(busiest_minute: bool) -> Option<(Snapshot, Catalog, Vec<Arc<Pod>>)> {
    let traced = trace()?;
    let types = read_file(&crate::shared_data::shared("karpenter/aws_gpu_instance_types.json")?).ok()?;
    let (snapshot, catalog) = empty_cluster(types.into_iter().map(Arc::new).collect());
    let all: Vec<&Traced> = traced.iter().collect();
    if !busiest_minute {
        return Some((snapshot, catalog, pods_of(&all)));
    }
    let alive = |minute: i64| {
        let within = move |t: &&&Traced| t.created < (minute + 1) * 60 && t.deleted > minute * 60;
        all.iter().filter(within).copied().collect::<Vec<_>>()
    };
    let minutes: BTreeSet<i64> = all.iter().map(|t| t.created / 60).collect();
    let busiest = minutes.into_iter().max_by_key(|minute| alive(*minute).len())?;
    Some((snapshot, catalog, pods_of(&alive(busiest))))
}
