//! Quantities to resource vectors and back.

use std::collections::BTreeMap;

use crate::core::quantity::Quantity;
use crate::core::resources::Resources;

use super::problems::Problems;
use super::wire::Amounts;

/// Reads requests (rounded up to thousandths), noting each amount that cannot be read; `field` is the path of the map.
pub(super) fn requests(field: &str, amounts: Option<&Amounts>, problems: &mut Problems) -> Resources {
    let mut all = Resources::new();
    for (name, amount) in amounts.into_iter().flatten() {
        match Quantity::parse(&amount.0) {
            Ok(quantity) if quantity.is_negative() => {
                problems.note(&format!("{field}.{name}"), format!("{} is negative; write zero or more", amount.0));
            }
            Ok(quantity) => all.set(name.as_str().into(), quantity.milli_up()),
            Err(error) => problems.note(&format!("{field}.{name}"), error),
        }
    }
    all
}

/// Reads capacities (rounded down to thousandths). An amount that cannot be read counts as absent: nothing is planned on it.
pub fn capacity(amounts: Option<&Amounts>) -> Resources {
    amounts
        .into_iter()
        .flatten()
        .filter_map(|(name, amount)| Some((name.as_str().into(), Quantity::parse(&amount.0).ok()?.milli_down())))
        .collect()
}

/// Writes a resource vector as a ResourceList: bytes with binary suffixes, everything else in decimal.
pub fn written(resources: &Resources) -> BTreeMap<String, String> {
    resources.iter().map(|(name, milli)| (name.as_str().to_owned(), name.written(milli).to_string())).collect()
}
