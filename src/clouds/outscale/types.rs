//! Which VM types a NodeClass offers, judged: names that nobody knows are told with the nearest that somebody does, and what is left out with its
//! reason.

use std::collections::BTreeSet;

use crate::api::classes::outscale::OutscaleNodeClassSpec;

use super::catalogue::{self, Selection};
use super::found::Fault;
use super::market::Offer;
use super::vm_type::{Performance, VmType, custom_family, is_custom_family};

/// The most names that a message tells.
const NAMED: usize = 20;
/// How alike a name must be to what was written to be the one that was meant (Jaro-Winkler similarity; one is the same).
const ALIKE: f64 = 0.8;

/// Whether the class offers anything that can be had at a known price, and what it does not offer for want of one.
pub(super) fn judged(spec: &OutscaleNodeClassSpec, offer: &Offer) -> Result<String, Fault> {
    let selection = Selection::of(spec);
    // Before the API has told its types, a name that is not known yet may be one of them.
    if !offer.listed.is_empty()
        && let Some(problem) = misspelt(&selection, offer)
    {
        return Err(Fault::new("UnknownTypes", problem));
    }
    let source = &offer.prices.source;
    let admitted = catalogue::admitted(spec, &offer.listed, &offer.prices);
    let is_unpriced = |kind: &&VmType| offer.prices.of(kind, false).is_none();
    let unpriced: Vec<&str> = admitted.iter().filter(is_unpriced).map(|kind| kind.name.as_str()).collect();
    let unnamed = catalogue::unnamed_gpus(spec, &offer.listed);
    let unnamed = (!unnamed.is_empty()).then(|| {
        format!(
            "not offered unless spec.vmTypes.names names them, as their machines allocate flexible GPUs to the account: {}",
            listed(unnamed.iter().map(|kind| kind.name.as_str()))
        )
    });
    let dedicated = catalogue::dedicated_gpus(spec, &offer.listed);
    let dedicated = (!dedicated.is_empty()).then(|| {
        format!(
            "not offered, as machines with GPUs cannot have hardware of their own: {}; leave spec.placement.tenancy out",
            listed(dedicated.iter().map(|kind| kind.name.as_str()))
        )
    });
    let unsold = unsold(&selection, offer);
    if unpriced.len() == admitted.len() {
        let reasons: Vec<String> = unnamed.into_iter().chain(dedicated).chain(unsold).collect();
        let message = if admitted.is_empty() && !reasons.is_empty() {
            reasons.join("; ")
        } else {
            format!(
                "none of the types has a price in the {source}; name other families or performances, or give prices with --outscale-prices"
            )
        };
        return Err(Fault::new("NoTypes", format!("spec.vmTypes: {message}")));
    }
    let unpriced = (!unpriced.is_empty()).then(|| {
        format!(
            "not offered, as they or their GPUs have no price in the {source}: {}; give it with --outscale-prices (gpuModels says which GPU a family has)",
            listed(unpriced)
        )
    });
    let told: Vec<String> = unnamed.into_iter().chain(dedicated).chain(unsold).chain(unpriced).collect();
    Ok(told.join("; "))
}

/// The first word of the class that is the name of nothing, with its field and with what there is.
fn misspelt(selection: &Selection, offer: &Offer) -> Option<String> {
    let fixed: Vec<VmType> = offer.listed.iter().filter_map(VmType::fixed).collect();
    let custom: BTreeSet<String> =
        offer.prices.generations().map(|(generation, _)| custom_family(generation)).collect();
    let families: BTreeSet<&str> =
        fixed.iter().map(|kind| kind.family.as_str()).chain(custom.iter().map(String::as_str)).collect();
    let names: BTreeSet<&str> = offer.listed.iter().map(|row| row.vm_type_name.as_str()).collect();
    let performances = Performance::ALL.map(Performance::as_str).into();
    let problem = |field: &str, word: &str, what: &str, known: &BTreeSet<&str>, there: &str| {
        let meant =
            nearest(word, known.iter().copied()).map(|meant| format!(" (is {meant} meant?)")).unwrap_or_default();
        format!("spec.vmTypes.{field}: {word:?} is no {what}{meant}; there are {there}")
    };
    // A custom family of which nothing has a price is a family all the same.
    let is_family = |word: &str| families.contains(word) || is_custom_family(word);
    let is_name = |word: &str| names.contains(word) || VmType::parse(word).is_some();
    let family = selection.families.iter().find(|word| !is_family(word));
    let name = selection.names.iter().find(|word| !is_name(word));
    let performance = selection.performances.iter().find(|word| Performance::read(word).is_none());
    let all = |known: &BTreeSet<&str>| listed(known.iter().copied());
    family
        .map(|word| problem("families", word, "family of VM types", &families, &all(&families)))
        .or_else(|| {
            let there = format!("custom types such as tinav7.c4r8p1, and {}", all(&names));
            name.map(|word| problem("names", word, "VM type", &names, &there))
        })
        .or_else(|| {
            performance.map(|word| problem("performances", word, "performance", &performances, &all(&performances)))
        })
}

/// The name that was probably meant.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = known.into_iter().map(|name| (strsim::jaro_winkler(word, name), name));
    let nearest = likeness.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some(nearest).filter(|(alike, _)| *alike >= ALIKE).map(|(_, name)| name)
}

/// Custom types that the class wants at a performance at which nobody sells them.
fn unsold(selection: &Selection, offer: &Offer) -> Option<String> {
    let sold: BTreeSet<(String, Performance)> =
        offer.prices.generations().map(|(generation, performance)| (custom_family(generation), performance)).collect();
    let customs = selection.families.iter().filter(|family| is_custom_family(family));
    let wanted = customs.flat_map(|family| {
        selection.performances.iter().filter_map(|word| Some((family.clone(), Performance::read(word)?)))
    });
    let words = |(family, performance): &(String, Performance)| format!("{family} {}", performance.as_str());
    let lacking: Vec<String> = wanted.filter(|wanted| !sold.contains(wanted)).map(|wanted| words(&wanted)).collect();
    if lacking.is_empty() || selection.is_usual {
        return None;
    }
    let there: Vec<String> = sold.iter().map(words).collect();
    let source = &offer.prices.source;
    Some(format!(
        "families and performances without a price in the {source}: {}; there are {}; correct spec.vmTypes, or give prices with --outscale-prices",
        lacking.join(", "),
        there.join(", ")
    ))
}

/// Names for a message, not too many of them.
fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
