//! VM types by name: custom types (`tinav7.c4r8p1`), whose name says all, and fixed families (`c5.large`), whose size the API tells.

use std::fmt;

use super::oapi::wire::VmType as Listed;

/// How much of a core a machine gets, as Outscale sells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Performance {
    /// `p1`.
    Highest,
    /// `p2`; what a name without a performance means.
    High,
    /// `p3`.
    Medium,
}

impl Performance {
    /// All of them, the highest first.
    pub const ALL: [Self; 3] = [Self::Highest, Self::High, Self::Medium];

    /// The API's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::High => "high",
            Self::Medium => "medium",
        }
    }

    /// The number in names and price lists.
    pub fn number(self) -> u8 {
        match self {
            Self::Highest => 1,
            Self::High => 2,
            Self::Medium => 3,
        }
    }

    /// Reads the API's word.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|performance| performance.as_str() == word)
    }

    fn of_number(number: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|performance| performance.number().to_string() == number)
    }
}

/// A VM type.
#[derive(Clone, PartialEq, Debug)]
pub struct VmType {
    /// Name, as the API echoes it.
    pub name: String,
    /// What stands before the dot.
    pub family: String,
    /// Generation of the processors, if it is known.
    pub generation: Option<u32>,
    /// Performance.
    pub performance: Performance,
    /// vCores.
    pub cores: u32,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// GPUs.
    pub gpus: u32,
}

impl fmt::Display for VmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl VmType {
    /// A custom type, with its performance in the name.
    pub fn custom(generation: u32, cores: u32, gib: u32, performance: Performance) -> Self {
        Self {
            name: format!("tinav{generation}.c{cores}r{gib}p{}", performance.number()),
            family: custom_family(generation),
            generation: Some(generation),
            performance,
            cores,
            memory_mib: i64::from(gib) * 1024,
            gpus: 0,
        }
    }

    /// Reads the name of a custom type: `tinav7.c4r8p1`, or without a performance. A name without a generation is none.
    pub fn parse(name: &str) -> Option<Self> {
        let (generation, size) = name.strip_prefix("tinav")?.split_once(".c")?;
        let (cores, rest) = size.split_once('r')?;
        let (gib, performance) = match rest.split_once('p') {
            Some((gib, number)) => (gib, Performance::of_number(number)?),
            None => (rest, Performance::High),
        };
        let custom = Self::custom(number(generation)?, number(cores)?, number(gib)?, performance);
        (custom.cores > 0 && custom.memory_mib > 0).then_some(custom)
    }

    /// A fixed type, as the API lists it; nothing when the row lacks what a machine needs.
    pub fn fixed(listed: &Listed) -> Option<Self> {
        let name = Some(listed.vm_type_name.clone()).filter(|name| !name.is_empty())?;
        let cores = listed.vcore_count.filter(|cores| *cores > 0)?;
        let gib = listed.memory_size.filter(|gib| gib.is_finite() && (0.25..65536.0).contains(gib))?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be below 64 TiB")]
        let memory_mib = (gib * 1024.0).round() as i64;
        let family = name.split_once('.').map_or(name.as_str(), |(family, _)| family).to_owned();
        let known = FAMILIES.iter().find(|(known, ..)| *known == family);
        let known = known.map(|(_, generation, performance)| (*generation, *performance));
        // GPUs go with the highest performance only (Outscale's user guide, "About Flexible GPUs").
        let sold = known.or_else(|| inference(&family).map(|(generation, _)| (generation, Performance::Highest)));
        Some(Self {
            generation: sold.map(|(generation, _)| generation),
            performance: sold.map_or(Performance::High, |(_, performance)| performance),
            family,
            name,
            cores,
            memory_mib,
            gpus: listed.gpu.unwrap_or(0),
        })
    }

    /// Whether two names mean the same type: the API writes a performance that was left out.
    pub fn same(one: &str, other: &str) -> bool {
        one == other || Self::parse(one).is_some_and(|one| Self::parse(other).is_some_and(|other| one == other))
    }
}

/// The family of the custom types of a generation.
pub(super) fn custom_family(generation: u32) -> String {
    format!("tinav{generation}")
}

/// Whether this is the family of custom types of some generation.
pub(super) fn is_custom_family(family: &str) -> bool {
    VmType::parse(&format!("{family}.c1r1")).is_some()
}

/// Generation and GPU model of a family whose name says both: `inference7-h100` (as Outscale's provider for Cluster API checks names of types).
pub(super) fn inference(family: &str) -> Option<(u32, &str)> {
    let (generation, model) = family.strip_prefix("inference")?.split_once('-')?;
    Some((number(generation)?, model)).filter(|(_, model)| !model.is_empty())
}

/// A decimal number as names carry it: digits, without a sign or a leading zero.
fn number(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

/// Generation and performance by which fixed families are sold (Outscale's osc-cost).
const FAMILIES: [(&str, u32, Performance); 35] = {
    use Performance::{High, Highest, Medium};
    [
        ("c1", 1, Highest),
        ("c3", 3, Highest),
        ("c4", 4, Highest),
        ("c5", 5, Highest),
        ("cc1", 1, Highest),
        ("cc2", 2, High),
        ("cr1", 1, High),
        ("g2", 2, Highest),
        ("g3", 3, Highest),
        ("hi1", 3, Highest),
        ("i2", 4, High),
        ("io5", 4, High),
        ("m1", 1, High),
        ("m2", 2, High),
        ("m3", 3, High),
        ("m4", 4, High),
        ("m5", 5, High),
        ("mv3", 4, High),
        ("nv1", 4, High),
        ("nv2", 4, High),
        ("oc1", 1, Highest),
        ("oc2", 2, Highest),
        ("oc5", 4, Highest),
        ("og3", 4, High),
        ("og4", 4, Highest),
        ("om5", 4, High),
        ("os1", 1, High),
        ("os3", 3, High),
        ("p100", 5, Highest),
        ("p3", 5, Highest),
        ("p6", 5, Highest),
        ("r3", 3, High),
        ("r4", 4, High),
        ("t1", 1, Medium),
        ("t2", 2, Medium),
    ]
};

#[cfg(test)]
#[path = "vm_type_tests.rs"]
mod tests;
