//! Small worlds in as few words as it goes, and as the solver gets to see them.

use std::sync::Arc;

use super::super::build::*;
use crate::core::facts::{Effect, HostPort, InstanceType, Pod, Taint, Toleration, TolerationOperator};
use crate::core::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE};
use crate::core::resources::Resources;

pub(super) const APPS: [&str; 2] = ["web", "db"];
/// Zones with nodes to buy, as `ZONES` has them.
pub(super) const HERE: usize = 2;
/// CPU of the one node that is there, in the first zone, and of the pod that may run there.
pub(super) const OLD: i64 = 1000;
pub(super) const RUNNING: i64 = 100;
const TIERS: [&str; 2] = ["gold", "tin"];
pub(super) const ARCHES: [&str; 2] = ["amd64", "arm64"];
const TIER: &str = "example.com/tier";
/// Instance types: name, cores and price.
pub(super) const TYPES: [(&str, i64, f64); 2] = [("small", 2, 0.1), ("large", 4, 0.19)];

/// A pod.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Small {
    pub(super) cpu: i64,
    pub(super) app: usize,
    pub(super) zone: Option<usize>,
    pub(super) tier: Option<usize>,
    pub(super) arch: Option<usize>,
    pub(super) tolerates: bool,
    pub(super) spreads: bool,
    pub(super) port: bool,
    /// Not on a node, or not in a zone, with these.
    pub(super) off_node: Option<usize>,
    pub(super) off_zone: Option<usize>,
    /// In a zone with these.
    pub(super) near: Option<usize>,
    /// On a node with these.
    pub(super) beside: Option<usize>,
}

/// A NodePool.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Site {
    pub(super) weight: i32,
    pub(super) zone: Option<usize>,
    pub(super) tier: Option<usize>,
    pub(super) arch: Option<usize>,
    pub(super) tainted: bool,
    /// Limits: of nodes, and of CPU in whole cores.
    pub(super) nodes: Option<i64>,
    pub(super) cores: Option<i64>,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) pools: Vec<Site>,
    /// Of which app a pod runs on the node that is there, if one does.
    pub(super) running: Option<usize>,
    pub(super) pods: Vec<Small>,
}

fn types() -> Vec<InstanceType> {
    let of_arch = |arch: &'static str| {
        TYPES.map(|(name, cpu, price)| {
            let mut kind = instance_type(&format!("{name}-{arch}"), cpu, 64, price);
            kind.offerings.retain(|offering| offering.zone().is_some_and(|zone| ZONES[..HERE].contains(&&**zone)));
            kind.requirements.retain(|one| &*one.key != ARCH);
            kind.requirements.push(within(ARCH, &[arch]));
            kind
        })
    };
    ARCHES.into_iter().flat_map(of_arch).collect()
}

impl Site {
    fn pool(&self, at: usize) -> crate::core::facts::Pool {
        let mut own = pool(&format!("p{at}"));
        own.weight = self.weight;
        let required = [(ZONE, self.zone.map(|zone| ZONES[zone])), (ARCH, self.arch.map(|arch| ARCHES[arch]))];
        own.template.requirements.push(within(CAPACITY_TYPE, &[ON_DEMAND]));
        for (key, value) in required {
            own.template.requirements.extend(value.map(|value| within(key, &[value])));
        }
        if let Some(tier) = self.tier {
            own.template.labels = labels(&[(TIER, TIERS[tier])]);
        }
        if self.tainted {
            own.template.taints.push(Taint::new("team", Effect::NoSchedule));
        }
        let limits = [("nodes", self.nodes), ("cpu", self.cores)];
        let limits = limits.into_iter().filter_map(|(name, most)| Some((name, most? * 1000)));
        own.limits = limits.fold(Resources::new(), |all, (name, most)| all.with(name, most));
        own
    }
}

impl Small {
    fn pod(&self, at: usize) -> Arc<Pod> {
        let app = |which: usize| [("app", APPS[which])];
        let mut one = shape(self.cpu, 64);
        one.labels = labels(&app(self.app));
        let selected = [
            (ZONE, self.zone.map(|zone| ZONES[zone])),
            (TIER, self.tier.map(|tier| TIERS[tier])),
            (ARCH, self.arch.map(|arch| ARCHES[arch])),
        ];
        let selected: Vec<(&str, &str)> = selected.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        one.node_selector = labels(&selected);
        if self.tolerates {
            let (key, operator) = ("team".into(), TolerationOperator::Exists);
            one.tolerations.push(Toleration { key, operator, value: "".into(), effect: None, seconds: None });
        }
        if self.spreads {
            one.spreads.push(spread(ZONE, 1, &app(self.app)));
        }
        if self.port {
            one.host_ports.push(HostPort { ip: "0.0.0.0".into(), port: 80, protocol: "TCP".into() });
        }
        one.anti_affinity.extend(self.off_node.map(|whom| term(HOSTNAME, &app(whom))));
        one.anti_affinity.extend(self.off_zone.map(|whom| term(ZONE, &app(whom))));
        one.affinity.extend(self.near.map(|whom| term(ZONE, &app(whom))));
        one.affinity.extend(self.beside.map(|whom| term(HOSTNAME, &app(whom))));
        pod(&format!("p{at}"), i64::try_from(at).unwrap(), &one)
    }
}

impl World {
    pub(super) fn scene(&self) -> Scene {
        let mut old = node("old", 1, 64, &[(ZONE, ZONES[0]), (ARCH, ARCHES[0])]);
        old.allocatable = old.allocatable.with("cpu", OLD);
        let mut scene = Scene::default().with_node(old);
        let types = types();
        for (at, site) in self.pools.iter().enumerate() {
            scene = scene.with_pool(site.pool(at), types.clone());
        }
        if let Some(app) = self.running {
            let mut one = shape(RUNNING, 64);
            one.labels = labels(&[("app", APPS[app])]);
            scene = scene.running("running", "old", &one);
        }
        scene.with_pods(self.pods.iter().enumerate().map(|(at, small)| small.pod(at)).collect())
    }
}
