//! A load for first looks and measurements: mixed pods in Deployments, as teams that size autoscalers use them.

use serde_json::{Value, json};

/// Most replicas of one Deployment.
const REPLICAS: usize = 200;

/// One kind of pod in the mix.
struct Part {
    name: &'static str,
    /// Share of the pods, in percent.
    percent: usize,
    cpu: &'static str,
    memory: &'static str,
    /// Topology key and skew of a required spread constraint.
    spread: Option<(&'static str, i32)>,
}

/// The mix: small ones, zonal services, hosts' neighbours, and a few that are large in CPU or memory.
const MIX: [Part; 6] = [
    Part { name: "small", percent: 35, cpu: "100m", memory: "128Mi", spread: None },
    Part { name: "zonal", percent: 25, cpu: "500m", memory: "512Mi", spread: Some(("topology.kubernetes.io/zone", 1)) },
    Part { name: "spread", percent: 15, cpu: "1", memory: "2Gi", spread: Some(("kubernetes.io/hostname", 3)) },
    Part { name: "memory", percent: 10, cpu: "500m", memory: "4Gi", spread: None },
    Part { name: "cpu", percent: 10, cpu: "2", memory: "1Gi", spread: None },
    Part { name: "large", percent: 5, cpu: "4", memory: "8Gi", spread: None },
];

/// So many mixed pods, as manifests of Deployments of at most 200 replicas.
pub fn mixed(pods: usize) -> Vec<Value> {
    let mut deployments = Vec::new();
    let mut left = pods;
    for (at, part) in MIX.iter().enumerate() {
        let share = if at + 1 == MIX.len() { left } else { (pods * part.percent / 100).min(left) };
        left -= share;
        for (number, first) in (0..share).step_by(REPLICAS).enumerate() {
            deployments.push(deployment(part, number, REPLICAS.min(share - first)));
        }
    }
    deployments
}

fn deployment(part: &Part, number: usize, replicas: usize) -> Value {
    let name = format!("{}-{number}", part.name);
    let mut pod = json!({
        "containers": [{
            "name": "main",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": part.cpu, "memory": part.memory}},
        }],
    });
    if let Some((key, skew)) = part.spread {
        pod["topologySpreadConstraints"] = json!([{
            "topologyKey": key,
            "maxSkew": skew,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": name}},
        }]);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    })
}
