//! Reads instance types from a file in the format of Karpenter's KWOK provider: a JSON array of name, architecture, operating systems,
//! resources and offerings.
//!
//! Files in the wild name one type once per operating system, and 32-bit variants beside 64-bit ones: entries of one name are merged. Offerings whose
//! machines have more or less than their type says (`CapacityOverride`, `OverheadOverride`) make further types of the same name.

use std::collections::BTreeMap;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::Value;

use crate::core::facts::{InstanceType, Offering};
use crate::core::labels;
use crate::core::quantity::Quantity;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

use super::build::{Words, instance_type};
use super::entry::{Amount, Entry, EntryOffering};

/// Why a file of instance types cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {place}{problem}")]
pub struct CatalogError {
    /// The file.
    pub file: String,
    /// Entry (index and name) and field, with a colon at its end; empty when the file as a whole is meant.
    pub place: String,
    /// What is wrong, and how to mend it.
    pub problem: String,
}

/// Reads a file of instance types.
pub fn read_file(path: &Path) -> Result<Vec<InstanceType>, CatalogError> {
    let file = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| CatalogError {
        file: file.clone(),
        place: String::new(),
        problem: format!("cannot be read ({error}); give the path of a readable JSON file of instance types"),
    })?;
    read(&file, &bytes)
}

/// Reads instance types from the content of a file; `file` names it in errors. They keep the file's order.
pub fn read(file: &str, bytes: &[u8]) -> Result<Vec<InstanceType>, CatalogError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let entries: Vec<Entry> = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let (place, remedy) = if path == "." || path == "?" {
            (String::new(), "a file of instance types is a JSON array of objects with name, architecture, operatingSystems, resources and offerings")
        } else {
            (format!("{}: ", located(&path, bytes)), "correct this field")
        };
        CatalogError { file: file.to_owned(), place, problem: format!("{}; {remedy}", error.inner()) }
    })?;
    json.end().map_err(|error| CatalogError {
        file: file.to_owned(),
        place: String::new(),
        problem: format!("{error}; end the file after the array of instance types"),
    })?;
    let mut reader = Reader { words: Words::default(), merged: IndexMap::with_capacity(entries.len()) };
    for (at, entry) in entries.into_iter().enumerate() {
        let name = entry.name.clone().unwrap_or_default();
        reader.take(at, entry).map_err(|(field, problem)| CatalogError {
            file: file.to_owned(),
            place: format!("entry {at} ({name:?}), {field}: "),
            problem,
        })?;
    }
    if reader.merged.is_empty() {
        return Err(CatalogError {
            file: file.to_owned(),
            place: String::new(),
            problem: "has no instance types; give at least one".to_owned(),
        });
    }
    Ok(reader.finish())
}

/// A path such as `[12].offerings[0].price` with the name of its entry put in.
fn located(path: &str, bytes: &[u8]) -> String {
    let index = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let Some((at, field)) = index.and_then(|(at, field)| Some((at.parse::<usize>().ok()?, field))) else {
        return path.to_owned();
    };
    let name = serde_json::from_slice::<Value>(bytes).ok().and_then(|all| {
        let (_, name) = all.get(at)?.as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case("name"))?;
        name.as_str().map(str::to_owned)
    });
    format!("entry {at} ({:?}), {}", name.unwrap_or_default(), field.trim_start_matches('.'))
}

/// A field and what is wrong with it.
type Fault = (String, String);

/// An instance type under construction.
struct Draft {
    architecture: &'static str,
    systems: Vec<String>,
    capacity: Resources,
    offerings: Vec<Sold>,
    first: usize,
}

/// An offering, and what machines of it have and keep instead of what their type says.
#[derive(PartialEq)]
struct Sold {
    offering: Offering,
    capacity: Resources,
    overhead: Resources,
}

struct Reader {
    words: Words,
    merged: IndexMap<String, Draft>,
}

impl Reader {
    fn take(&mut self, at: usize, entry: Entry) -> Result<(), Fault> {
        let missing = |field: &str| (field.to_owned(), "is missing; add it".to_owned());
        let name = entry.name.filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?;
        let architecture = entry.architecture.ok_or_else(|| missing("architecture"))?;
        let architecture = kubernetes_architecture(&architecture).ok_or_else(|| {
            ("architecture".to_owned(), format!("{architecture:?} is unknown; write amd64, arm64 or x86_64"))
        })?;
        let systems = entry.systems.filter(|all| !all.is_empty()).ok_or_else(|| missing("operatingSystems"))?;
        let capacity = resources(&entry.resources.ok_or_else(|| missing("resources"))?)?;
        let mut offerings = Vec::new();
        for (at, offering) in entry.offerings.unwrap_or_default().into_iter().enumerate() {
            let field = format!("offerings[{at}]");
            let override_of = |name: &str, amounts: &Option<_>| {
                amounts.as_ref().map_or_else(|| Ok(Resources::new()), |all| quantities(&format!("{field}.{name}"), all))
            };
            let (capacity, overhead) = (
                override_of("CapacityOverride", &offering.capacity)?,
                override_of("OverheadOverride", &offering.overhead)?,
            );
            offerings.push(Sold { offering: self.offering(&field, offering)?, capacity, overhead });
        }
        if offerings.is_empty() {
            return Err((
                "offerings".to_owned(),
                "is empty; give at least one zone and capacity type with a price".to_owned(),
            ));
        }
        let draft = Draft { architecture, systems, capacity, offerings, first: at };
        if let Some(known) = self.merged.get_mut(&name) {
            return merge(known, draft, &mut self.words);
        }
        self.merged.insert(name, draft);
        Ok(())
    }

    fn offering(&mut self, field: &str, offering: EntryOffering) -> Result<Offering, Fault> {
        let price = offering
            .price
            .ok_or_else(|| (format!("{field}.Price"), "is missing; give a price in USD per hour".to_owned()))?;
        if !price.is_finite() || price < 0.0 {
            return Err((format!("{field}.Price"), format!("{price} is no price; give USD per hour, zero or more")));
        }
        let mut requirements = Vec::new();
        for (at, requirement) in offering.requirements.unwrap_or_default().into_iter().enumerate() {
            let field = format!("{field}.Requirements[{at}]");
            let key = requirement
                .key
                .filter(|key| !key.is_empty())
                .ok_or_else(|| (format!("{field}.key"), "is missing; name a label".to_owned()))?;
            let operator = requirement.operator.unwrap_or_else(|| "In".to_owned());
            let operator = Operator::parse(&operator).ok_or_else(|| {
                (
                    format!("{field}.operator"),
                    format!("{operator:?} is no operator; write In, NotIn, Exists or DoesNotExist"),
                )
            })?;
            let values = requirement.values.unwrap_or_default();
            requirements.push(Requirement {
                key: self.words.share(labels::normalized(&key)),
                operator,
                values: values.iter().map(|value| self.words.share(value)).collect(),
                min_values: None,
            });
        }
        let offering = Offering { requirements, price, available: true, reservation_capacity: offering.reservation };
        if offering.is_reserved() && (offering.reservation().is_none() || offering.reservation_capacity.is_none()) {
            return Err((
                field.to_owned(),
                "is reserved capacity that nobody can count; give it ReservationCapacity, and a requirement that names the reservation (a key whose name ends in reservation-id, operator In, one value)".to_owned(),
            ));
        }
        for key in [labels::CAPACITY_TYPE, labels::ZONE] {
            if offering.value(key).is_none() {
                return Err((
                    format!("{field}.Requirements"),
                    format!("does not state {key}; add it with operator In and one value"),
                ));
            }
        }
        Ok(offering)
    }

    fn finish(self) -> Vec<InstanceType> {
        let mut words = self.words;
        let mut all = Vec::new();
        for (name, draft) in self.merged {
            let systems: Vec<&str> = draft.systems.iter().map(String::as_str).collect();
            for (capacity, overhead, offerings) in groups(draft.offerings) {
                let mut kind =
                    instance_type(&name, draft.architecture, &systems, draft.capacity.clone(), offerings, &mut words);
                capacity.iter().for_each(|(resource, milli)| kind.capacity.set(resource.clone(), milli));
                overhead.iter().for_each(|(resource, milli)| kind.overhead.set(resource.clone(), milli));
                all.push(kind);
            }
        }
        all
    }
}

/// Offerings of machines that are alike: what they override, and which they are.
fn groups(offerings: Vec<Sold>) -> Vec<(Resources, Resources, Vec<Offering>)> {
    let mut groups: Vec<(Resources, Resources, Vec<Offering>)> = Vec::new();
    for Sold { offering, capacity, overhead } in offerings {
        match groups.iter_mut().find(|group| group.0 == capacity && group.1 == overhead) {
            Some(group) => group.2.push(offering),
            None => groups.push((capacity, overhead, vec![offering])),
        }
    }
    groups
}

/// The architecture in Kubernetes' words.
fn kubernetes_architecture(word: &str) -> Option<&'static str> {
    match word {
        "amd64" | "x86_64" => Some("amd64"),
        "arm64" | "aarch64" => Some("arm64"),
        "386" | "i386" => Some("386"),
        "arm" => Some("arm"),
        "ppc64le" => Some("ppc64le"),
        "s390x" => Some("s390x"),
        "riscv64" => Some("riscv64"),
        _ => None,
    }
}

fn resources(amounts: &BTreeMap<String, Amount>) -> Result<Resources, Fault> {
    let all = quantities("resources", amounts)?;
    for needed in ["cpu", "memory"] {
        if all.mentioned(&needed.into()).is_none() {
            return Err((format!("resources.{needed}"), "is missing; add it".to_owned()));
        }
    }
    Ok(all)
}

fn quantities(field: &str, amounts: &BTreeMap<String, Amount>) -> Result<Resources, Fault> {
    let mut all = Resources::new();
    for (name, amount) in amounts {
        let field = format!("{field}.{name}");
        let quantity = Quantity::parse(&amount.0).map_err(|error| (field.clone(), error.to_string()))?;
        if quantity.is_negative() {
            return Err((field, format!("{} is negative; write zero or more", amount.0)));
        }
        all.set(name.as_str().into(), quantity.milli_down());
    }
    Ok(all)
}

/// Merges a second entry of a name: operating systems add up. Of a 32-bit and a 64-bit variant the latter stays. Where offerings
/// depend on the operating system, each says for which it is.
fn merge(known: &mut Draft, more: Draft, words: &mut Words) -> Result<(), Fault> {
    if known.architecture != more.architecture {
        if more.architecture == "386" {
            return Ok(());
        }
        if known.architecture == "386" {
            *known = Draft { first: known.first, ..more };
            return Ok(());
        }
        let problem = format!("differs from entry {} of the same name; give each its own name", known.first);
        return Err(("architecture".to_owned(), problem));
    }
    if known.capacity != more.capacity {
        let problem = format!("differ from entry {} of the same name; give each its own name", known.first);
        return Err(("resources".to_owned(), problem));
    }
    if known.offerings != more.offerings {
        for_systems(&mut known.offerings, &known.systems, words);
        let mut offerings = more.offerings;
        for_systems(&mut offerings, &more.systems, words);
        known.offerings.extend(offerings);
    }
    for system in more.systems {
        if !known.systems.contains(&system) {
            known.systems.push(system);
        }
    }
    Ok(())
}

/// Says of each offering for which operating systems it is, unless it says so already.
fn for_systems(offerings: &mut [Sold], systems: &[String], words: &mut Words) {
    for Sold { offering, .. } in offerings {
        if offering.requirements.iter().all(|requirement| &*requirement.key != labels::OS) {
            offering.requirements.push(words.is_in(labels::OS, systems.iter().map(String::as_str)));
        }
    }
}
