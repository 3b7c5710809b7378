//! An instance type made of its parts, with the labels and the overhead that Karpenter's KWOK provider gives it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::facts::{InstanceType, Offering};
use crate::core::ids::InstanceTypeName;
use crate::core::labels;
use crate::core::quantity::{Format, Quantity};
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::{ResourceName, Resources};

/// Size of an instance type: what stands behind the dot of names like AWS's, else the CPU count.
pub const INSTANCE_SIZE: &str = "karpenter.kwok.sh/instance-size";
/// Family of an instance type: what stands before the first dot or dash of its name.
pub const INSTANCE_FAMILY: &str = "karpenter.kwok.sh/instance-family";
/// CPU of an instance type, as a quantity.
pub const INSTANCE_CPU: &str = "karpenter.kwok.sh/instance-cpu";
/// Memory of an instance type, as a quantity.
pub const INSTANCE_MEMORY: &str = "karpenter.kwok.sh/instance-memory";
/// The four of them.
pub const KWOK_LABEL_KEYS: [&str; 4] = [INSTANCE_SIZE, INSTANCE_FAMILY, INSTANCE_CPU, INSTANCE_MEMORY];

/// Pods that a node takes when nothing else is said, in thousandths: Kubernetes' default of 110.
const DEFAULT_PODS: i64 = 110_000;
/// CPU kept for the system, in milli-cores: 100m, as Karpenter's KWOK provider has it.
const OVERHEAD_CPU: i64 = 100;
/// Memory kept for the system, in milli-bytes: 10Mi, as Karpenter's KWOK provider has it.
const OVERHEAD_MEMORY: i64 = 10 * 1024 * 1024 * 1000;

/// Texts that occur over and over, each held once.
#[derive(Default)]
pub(super) struct Words(BTreeSet<Arc<str>>);

impl Words {
    /// The shared form of a text.
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(word) = self.0.get(text) {
            return Arc::clone(word);
        }
        let word: Arc<str> = text.into();
        self.0.insert(Arc::clone(&word));
        word
    }

    /// A requirement of shared texts.
    pub(super) fn is_in<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) -> Requirement {
        Requirement {
            key: self.share(key),
            operator: Operator::In,
            values: values.into_iter().map(|value| self.share(value)).collect(),
            min_values: None,
        }
    }
}

/// Puts an instance type together.
pub(super) fn instance_type(
    name: &str,
    architecture: &str,
    systems: &[&str],
    mut capacity: Resources,
    offerings: Vec<Offering>,
    words: &mut Words,
) -> InstanceType {
    let cpu = Quantity::from_milli(capacity.get(&ResourceName::Cpu), Format::Decimal).to_string();
    let memory = Quantity::from_milli(capacity.get(&ResourceName::Memory), Format::Binary).to_string();
    let offered = |key: &str| -> BTreeSet<Arc<str>> {
        offerings.iter().filter_map(|offering| offering.value(key).cloned()).collect()
    };
    let (zones, capacity_types) = (offered(labels::ZONE), offered(labels::CAPACITY_TYPE));
    let requirements = vec![
        words.is_in(labels::INSTANCE_TYPE, [name]),
        words.is_in(labels::ARCH, [architecture]),
        words.is_in(labels::OS, systems.iter().copied()),
        words.is_in(labels::ZONE, zones.iter().map(|zone| &**zone)),
        words.is_in(labels::CAPACITY_TYPE, capacity_types.iter().map(|kind| &**kind)),
        words.is_in(INSTANCE_SIZE, [size(name).unwrap_or(&cpu)]),
        words.is_in(INSTANCE_FAMILY, [family(name)]),
        words.is_in(INSTANCE_CPU, [cpu.as_str()]),
        words.is_in(INSTANCE_MEMORY, [memory.as_str()]),
    ];
    if capacity.mentioned(&ResourceName::Pods).is_none() {
        capacity.set(ResourceName::Pods, DEFAULT_PODS);
    }
    InstanceType {
        name: InstanceTypeName::from(words.share(name)),
        requirements,
        capacity,
        overhead: Resources::new().with("cpu", OVERHEAD_CPU).with("memory", OVERHEAD_MEMORY),
        // The format has no field for them.
        attach_limits: std::collections::BTreeMap::new(),
        offerings,
    }
}

/// The size in names like AWS's (`m5.2xlarge`); nothing for other names.
fn size(name: &str) -> Option<&str> {
    let (family, size) = name.split_once('.')?;
    let is_word = !family.is_empty() && family.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_xlarge = || size.strip_suffix("xlarge").is_some_and(|count| count.bytes().all(|b| b.is_ascii_digit()));
    let is_size = matches!(size, "nano" | "micro" | "small" | "medium" | "large" | "metal") || is_xlarge();
    (is_word && is_size).then_some(size)
}

/// What stands before the first dot or dash of a name, else its first character.
fn family(name: &str) -> &str {
    match name.split_once(['.', '-']) {
        Some((family, _)) => family,
        None => name.char_indices().nth(1).and_then(|(end, _)| name.get(..end)).unwrap_or(name),
    }
}
