//! What machines cost: read from a price list of Outscale's API, with a dated list for when none can be had, and a file that wins over both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::oapi::wire::CatalogEntry;
use super::vm_type::{Performance, VmType, inference};

/// Hours in a month, by which Outscale's monthly prices are turned into hourly ones.
const HOURS_A_MONTH: f64 = 730.0;
/// What a price may be off the usual one at the level of its list; beyond that somebody has made a mistake, and a plan would follow it.
const PLAUSIBLE: f64 = 10.0;
/// A usual vCore in EUR: `CustomCore:v6-p2` in eu-west-2.
const USUAL_CORE: f64 = 0.035;
/// A usual GiB in EUR: `CustomRam` in eu-west-2.
const USUAL_GIB: f64 = 0.005;
/// By what the row of own hardware is multiplied to be the part that comes on top of a price (as Outscale's osc-cost reads it).
const SURPLUS_UNIT: f64 = 10.0;
/// GPU models of the families that carry them (Outscale's list of types). Families of the form `inference7-h100` name theirs.
const GPU_MODELS: [(&str, &str); 3] = [("p100", "nvidia-p100"), ("p3", "nvidia-v100"), ("p6", "nvidia-p6")];

/// Prices per hour, without tax, in the currency of their list. A list does not say which that is, so none is converted: prices are compared with those of the
/// same list alone.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prices {
    /// Where they come from, for people: which list of which endpoint, a file, or the built-in list with its date.
    pub source: String,
    /// What makes plans at these prices doubtful and what to do about it, for people.
    pub doubt: Option<String>,
    /// A vCore by generation and performance.
    cores: BTreeMap<(u32, Performance), f64>,
    /// A GiB of memory.
    gib: f64,
    /// What a GPU adds, by model.
    gpus: BTreeMap<String, f64>,
    /// GPU models of types and families, as a file says.
    models: BTreeMap<String, String>,
    /// Whole types, where the list has them or a file says so.
    types: BTreeMap<String, f64>,
    /// By what own hardware is dearer than shared.
    dedicated: f64,
}

/// Why prices cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{source_name}: {field}: {problem}")]
pub struct PriceError {
    /// File or endpoint.
    pub source_name: String,
    /// Row or field.
    pub field: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// A price file: what it does not mention stays as the catalogue has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    /// As of when, for people.
    #[serde(default)]
    date: Option<String>,
    /// `v6-p2`: price of a vCore.
    #[serde(default)]
    cores: BTreeMap<String, f64>,
    /// Price of a GiB of memory.
    #[serde(default)]
    gib: Option<f64>,
    /// Price of a GPU by model.
    #[serde(default)]
    gpus: BTreeMap<String, f64>,
    /// GPU model of a type or of a family of types: `g3` has `nvidia-m60`.
    #[serde(default)]
    gpu_models: BTreeMap<String, String>,
    /// Price of whole types.
    #[serde(default)]
    types: BTreeMap<String, f64>,
}

impl Prices {
    /// The list that is built in: what Outscale's public test data said of eu-west-2 at the turn of 2025 to 2026, in EUR. Core prices that were not
    /// there are not made up: such types are not offered until the catalogue can be read.
    pub fn built_in() -> Self {
        use Performance::{High, Highest};
        let cores = [((5, Highest), 0.04), ((5, High), 0.035), ((6, High), USUAL_CORE), ((7, Highest), 0.043)];
        Self {
            source: "built-in list (eu-west-2, January 2026)".to_owned(),
            cores: cores.into(),
            gib: USUAL_GIB,
            dedicated: 1.1,
            ..Self::default()
        }
    }

    /// Reads a catalogue, in whatever currency it is. Rows that are not plausible beside the others are left out and named beside the prices; a catalogue
    /// without memory or cores is none.
    pub fn read(source: &str, entries: &[CatalogEntry]) -> Result<(Self, Vec<String>), PriceError> {
        let rows: Vec<Row<'_>> = entries.iter().filter_map(Row::of).collect();
        let level = level(rows.iter().filter_map(|row| Some((row.price, row.usual()?)))).unwrap_or(1.0);
        let mut prices = Self { source: format!("{source}{}", told(level)), dedicated: 1.1, ..Self::default() };
        let (mut left_out, mut waiting) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let Row { kind, operation, price } = row;
            let mut judged = |usual: f64| {
                let fine = is_plausible(price, usual * level);
                if !fine {
                    left_out.push(format!("{kind}: {price} is no plausible price per hour"));
                }
                fine
            };
            if operation == "RunInstances-OD" {
                if let Some(core) = kind.strip_prefix("CustomCore:").and_then(core_key) {
                    if judged(USUAL_CORE) {
                        prices.cores.insert(core, price);
                    }
                } else if kind == "CustomRam" {
                    if judged(USUAL_GIB) {
                        prices.gib = price;
                    }
                } else if let Some(name) = kind.strip_prefix("BoxUsage:") {
                    let usual = VmType::parse(name).map(|kind| usual(&kind));
                    if judged(usual.unwrap_or(1.0)) {
                        prices.types.insert(name.to_owned(), price);
                    }
                }
            }
            // It is written as a tenth of the part that comes on top.
            if operation == "RunInstances" && kind == "DedicatedInstanceSurplus" {
                if (0.0..1.0).contains(&price) {
                    prices.dedicated = SURPLUS_UNIT.mul_add(price, 1.0);
                } else {
                    left_out.push(format!("{kind}: {price} is no plausible surplus"));
                }
            }
            if price > 0.0 && price.is_finite() {
                // A machine's GPUs are attached. What one costs that waits for a machine counts where nothing else is said.
                if let Some(model) = kind.strip_prefix("Gpu:attach:") {
                    prices.gpus.insert(model.to_owned(), price);
                } else if let Some(model) = kind.strip_prefix("Gpu:allocate:") {
                    waiting.insert(model.to_owned(), price);
                }
            }
        }
        for (model, price) in waiting {
            prices.gpus.entry(model).or_insert(price);
        }
        if prices.cores.is_empty() || prices.gib <= 0.0 {
            return Err(PriceError {
                source_name: source.to_owned(),
                field: "Catalog.Entries".to_owned(),
                problem: format!(
                    "{} rows without prices of vCores (CustomCore:v6-p2) or memory (CustomRam); what was known stays in use",
                    entries.len()
                ),
            });
        }
        Ok((prices, left_out))
    }

    /// How high these prices are, as multiples of those usual in EUR.
    fn level(&self) -> f64 {
        let cores = self.cores.values().map(|price| (*price, USUAL_CORE));
        level(cores.chain([(self.gib, USUAL_GIB)])).unwrap_or(1.0)
    }

    /// Lays the prices of a file over these. They are taken as they are; that they look like those of another currency is a doubt.
    pub fn overridden(mut self, path: &Path) -> Result<Self, PriceError> {
        let name = path.display().to_string();
        let wrong =
            |field: &str, problem: String| PriceError { source_name: name.clone(), field: field.to_owned(), problem };
        let text = std::fs::read(path)
            .map_err(|error| wrong("file", format!("cannot be read ({error}); name a readable JSON file")))?;
        let file: File = serde_json::from_slice(&text).map_err(|error| {
            wrong("file", format!("{error}; date, cores, gib, gpus, gpuModels and types are understood"))
        })?;
        let positive = |field: String, price: f64| {
            if price.is_finite() && price > 0.0 {
                Ok(price)
            } else {
                Err(wrong(&field, format!("{price} is no price; write a positive number per hour")))
            }
        };
        self.doubt = self.doubt_of(&file, &name);
        for (key, price) in file.cores {
            let core = core_key(&key).ok_or_else(|| {
                wrong(&format!("cores.{key}"), "write generation and performance as v6-p2".to_owned())
            })?;
            self.cores.insert(core, positive(format!("cores.{key}"), price)?);
        }
        if let Some(price) = file.gib {
            self.gib = positive("gib".to_owned(), price)?;
        }
        for (model, price) in file.gpus {
            let price = positive(format!("gpus.{model}"), price)?;
            self.gpus.insert(model, price);
        }
        self.models.extend(file.gpu_models);
        for (kind, price) in file.types {
            let price = positive(format!("types.{kind}"), price)?;
            self.types.insert(kind, price);
        }
        let date = file.date.map(|date| format!(" of {date}")).unwrap_or_default();
        self.source = format!("{}, overridden by {name}{date}", self.source);
        Ok(self)
    }

    /// What makes it doubtful that a file's prices are in the currency of these, before they are laid over them.
    fn doubt_of(&self, file: &File, name: &str) -> Option<String> {
        let types = file.types.iter().filter_map(|(kind, price)| Some((*price, usual(&VmType::parse(kind)?))));
        let cores = file.cores.values().map(|price| (*price, USUAL_CORE));
        let of_file = level(cores.chain(file.gib.map(|price| (price, USUAL_GIB))).chain(types))?;
        let times = of_file / self.level();
        (!is_plausible(times, 1.0)).then(|| {
            format!(
                "the prices of {name} are about {} times as high as those of the {}, as if in another currency, and are not converted; write them in that \
                 of the list",
                rounded(times),
                self.source
            )
        })
    }

    /// What a machine of a type costs an hour; nothing when the list does not say.
    pub fn of(&self, kind: &VmType, dedicated: bool) -> Option<f64> {
        let factor = if dedicated { self.dedicated } else { 1.0 };
        if let Some(price) = self.types.get(&kind.name) {
            return Some(price * factor);
        }
        let core = self.cores.get(&(kind.generation?, kind.performance))?;
        let gib = kind.memory_mib as f64 / 1024.0;
        let mut price = f64::from(kind.cores).mul_add(*core, gib * self.gib) * factor;
        if kind.gpus > 0 {
            price += f64::from(kind.gpus) * self.gpus.get(&*self.gpu_model(kind)?)?;
        }
        Some(price)
    }

    /// Which GPUs a type has: as a file says, or as its family does.
    fn gpu_model(&self, kind: &VmType) -> Option<Cow<'_, str>> {
        let told = self.models.get(&kind.name).or_else(|| self.models.get(&kind.family));
        if let Some(told) = told {
            return Some(Cow::Borrowed(told));
        }
        let known = GPU_MODELS.iter().find(|(family, _)| *family == kind.family);
        let by_name = || inference(&kind.family).map(|(_, model)| Cow::Owned(format!("nvidia-{model}")));
        known.map(|(_, model)| Cow::Borrowed(*model)).or_else(by_name)
    }

    /// Generations of custom types that can be priced.
    pub fn generations(&self) -> impl Iterator<Item = (u32, Performance)> {
        self.cores.keys().copied()
    }
}

/// A row of a price list that is about VMs.
struct Row<'a> {
    /// `CustomCore:v6-p2`, ...
    kind: &'a str,
    /// `RunInstances-OD`, ...
    operation: &'a str,
    /// Per hour.
    price: f64,
}

impl<'a> Row<'a> {
    fn of(entry: &'a CatalogEntry) -> Option<Self> {
        if entry.service.as_deref() != Some("TinaOS-FCU") {
            return None;
        }
        let is_monthly = entry.flags.as_deref().is_some_and(|flags| flags.contains("PER_MONTH"));
        let hours = if is_monthly { HOURS_A_MONTH } else { 1.0 };
        Some(Self {
            kind: entry.kind.as_deref()?,
            operation: entry.operation.as_deref()?,
            price: entry.unit_price? / hours,
        })
    }

    /// The usual price of what it prices, for vCores and memory.
    fn usual(&self) -> Option<f64> {
        match self.kind {
            _ if self.operation != "RunInstances-OD" => None,
            "CustomRam" => Some(USUAL_GIB),
            kind => kind.strip_prefix("CustomCore:").and_then(core_key).map(|_| USUAL_CORE),
        }
    }
}

/// `v6-p2` as generation and performance.
fn core_key(text: &str) -> Option<(u32, Performance)> {
    let (generation, number) = text.strip_prefix('v')?.split_once("-p")?;
    let performance = Performance::ALL.into_iter().find(|performance| performance.number().to_string() == number)?;
    Some((generation.parse().ok()?, performance))
}

fn is_plausible(price: f64, usual: f64) -> bool {
    price.is_finite() && price > usual / PLAUSIBLE && price < usual * PLAUSIBLE
}

/// How high prices are, as multiples of the usual ones beside them: 1 in EUR, more than 100 in yen. It is the middle one, of two the lesser, so that a mistake
/// does not count; nothing where none is a price.
fn level(prices: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let multiples = prices.map(|(price, usual)| price / usual);
    let mut multiples: Vec<f64> = multiples.filter(|multiple| multiple.is_finite() && *multiple > 0.0).collect();
    multiples.sort_by(f64::total_cmp);
    multiples.get(multiples.len().checked_sub(1)? / 2).copied()
}

/// What is told of a list beside its name: nothing where it may well be in EUR.
fn told(level: f64) -> String {
    if is_plausible(level, 1.0) {
        return String::new();
    }
    format!(
        ", which is in another currency than EUR (about {} times the usual figures of eu-west-2; they are not converted)",
        rounded(level)
    )
}

/// A multiple for people.
fn rounded(multiple: f64) -> String {
    if multiple < 1.0 { format!("{multiple:.4}") } else { format!("{multiple:.0}") }
}

/// What a custom type costs about, in EUR.
fn usual(kind: &VmType) -> f64 {
    f64::from(kind.cores).mul_add(USUAL_CORE, kind.memory_mib as f64 / 1024.0 * USUAL_GIB)
}

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
