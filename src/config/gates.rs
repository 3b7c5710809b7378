//! Feature gates: Karpenter's nine, as a value.

use super::values;

/// Which optional features are on.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "nine independent switches, each with a name of its own")]
pub struct FeatureGates {
    /// Nodes with a condition that the cloud calls broken are repaired. Alpha, off.
    pub node_repair: bool,
    /// Reserved capacity is tracked and preferred. Beta, on.
    pub reserved_capacity: bool,
    /// Consolidation may replace a spot node with a spot node. Alpha, off.
    pub spot_to_spot_consolidation: bool,
    /// NodeOverlays change prices and capacity of instance types. Alpha, off.
    pub node_overlay: bool,
    /// NodePools with `replicas` hold a fixed number of nodes. Alpha, off.
    pub static_capacity: bool,
    /// CapacityBuffers keep room for pods to come. Alpha, off.
    pub capacity_buffer: bool,
    /// Drifted nodes may go before their replacements have come. Alpha, off.
    pub terminate_first_drift: bool,
    /// Broken nodes may go before their replacements have come; needs `node_repair`. Alpha, off.
    pub terminate_first_repair: bool,
    /// Pods are annotated with a deletion cost, so that workloads shrink on the nodes that are to go. Alpha, off.
    pub pod_deletion_cost_management: bool,
    /// Names that were given and are not among the nine; they have no effect.
    pub unknown: Vec<String>,
}

impl FeatureGates {
    /// The nine gates with their defaults, as Karpenter 1.15 writes them.
    pub(super) const DEFAULT: &'static str = "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,\
        NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false,TerminateFirstDrift=false,\
        TerminateFirstRepair=false,PodDeletionCostManagement=false";

    /// Reads `Name=bool,...` on top of the defaults. Unknown names are collected; a value that is no truth value is an error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(format!("{:?} is not Name=bool", pair.trim()));
            };
            let (name, value) = (name.trim(), value.trim());
            let on = values::truth(value)
                .ok_or_else(|| format!("gate {name} has the value {value:?}; {}", values::TRUTH))?;
            match gates.gate(name) {
                Some(gate) => *gate = on,
                None => gates.unknown.push(name.to_owned()),
            }
        }
        Ok(gates)
    }

    fn gate(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "NodeRepair" => &mut self.node_repair,
            "ReservedCapacity" => &mut self.reserved_capacity,
            "SpotToSpotConsolidation" => &mut self.spot_to_spot_consolidation,
            "NodeOverlay" => &mut self.node_overlay,
            "StaticCapacity" => &mut self.static_capacity,
            "CapacityBuffer" => &mut self.capacity_buffer,
            "TerminateFirstDrift" => &mut self.terminate_first_drift,
            "TerminateFirstRepair" => &mut self.terminate_first_repair,
            "PodDeletionCostManagement" => &mut self.pod_deletion_cost_management,
            _ => return None,
        })
    }
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
            unknown: Vec::new(),
        }
    }
}
