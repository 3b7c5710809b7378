//! NodeOverlays.

use serde_json::Value;

use crate::api::nodeoverlay::{NodeOverlay, NodeOverlaySpec};
use crate::api::validation::{self, CloudLabels};
use crate::core::facts::{Overlay, PriceChange};

use super::problems::{Problems, Unreadable, lenient};
use super::wire::{self, Custom};
use super::{amounts, common};

/// Reads a NodeOverlay from a manifest or an answer of the API server. `cloud` says which labels its users may name.
pub fn read_overlay(value: &Value, cloud: &CloudLabels<'_>) -> Result<Overlay, Unreadable> {
    let (wire, _) = lenient("NodeOverlay", value)?;
    overlay(&wire, cloud)
}

/// Folds a NodeOverlay into a fact; what cannot be read of it, and what runtime validation finds, goes to `errors`.
pub fn overlay(wire: &Custom, cloud: &CloudLabels<'_>) -> Result<Overlay, Unreadable> {
    let meta = &wire.metadata;
    let name = common::name("NodeOverlay", meta)?;
    let mut problems = Problems::default();
    if wire.spec.is_null() {
        problems.note("spec", "is missing; write at least spec.requirements");
    }
    let spec: Option<NodeOverlaySpec> = problems.part("spec", &wire.spec);
    let conditions: Vec<wire::Condition> =
        wire.status.get("conditions").and_then(|list| problems.part("status.conditions", list)).unwrap_or_default();
    let mut read = Overlay {
        name: name.clone(),
        uid: common::uid(meta),
        generation: meta.generation.unwrap_or(0),
        version: common::version(meta),
        created: common::created(meta),
        weight: 0,
        requirements: Vec::new(),
        price: None,
        capacity: crate::core::resources::Resources::new(),
        errors: Vec::new(),
        conditions: common::conditions(Some(&conditions), meta),
    };
    if let Some(spec) = spec {
        let object = NodeOverlay::new(&name, spec);
        for fault in validation::nodeoverlay(&object, cloud) {
            problems.note(&fault.field, fault.remedy);
        }
        let spec = object.spec;
        common::within("spec.weight", spec.weight, 1..=10_000, &mut problems);
        read.weight = spec.weight.unwrap_or(0);
        read.requirements = common::requirements("spec.requirements", &spec.requirements, &mut problems);
        read.price = price(&spec, &mut problems);
        let capacity = spec.capacity.as_ref().map(common::amounts);
        read.capacity = amounts::requests("spec.capacity", capacity.as_ref(), &mut problems);
    }
    read.errors = problems.sentences();
    Ok(read)
}

/// What happens to the price, if anything.
fn price(spec: &NodeOverlaySpec, problems: &mut Problems) -> Option<PriceChange> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match (&spec.price, &spec.price_adjustment) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            problems.note("spec.price", "stands beside spec.priceAdjustment; leave one of them out");
            None
        }
        (Some(text), None) => {
            let price = number(text).filter(|price| *price >= 0.0 && !text.starts_with(['+', '-']));
            if price.is_none() {
                problems.note("spec.price", format!("{text:?} is no price; write USD per hour, such as 0.42"));
            }
            price.map(PriceChange::To)
        }
        (None, Some(text)) => {
            let signed = text.starts_with(['+', '-']).then_some(text.as_str());
            let change = signed.and_then(|text| match text.strip_suffix('%') {
                Some(share) => number(share).map(PriceChange::Percent),
                None => number(text).map(PriceChange::By),
            });
            if change.is_none() {
                let remedy = format!("{text:?} is no change of a price; write for instance +0.05, -0.05, +10% or -10%");
                problems.note("spec.priceAdjustment", remedy);
            }
            change
        }
    }
}
