//! The entries of an instance-type file as they travel. Keys are compared without regard to case, as Go's decoder does.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess};

/// A quantity as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Amount(pub(super) String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as \"4\", \"500m\" or \"16Gi\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Declares a struct whose keys are read without regard to case. Every field is an `Option`: what is missing is judged later, where
/// the entry's name is known.
macro_rules! caseless {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $key:literal $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, Default)]
        pub(super) struct $name { $($(#[$field_doc])* pub(super) $field: Option<$kind>,)* }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> de::Visitor<'de> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object with ", $($key, " ",)*))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut all = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            $(if key.eq_ignore_ascii_case($key) {
                                all.$field = map.next_value()?;
                                continue;
                            })*
                            map.next_value::<IgnoredAny>()?;
                        }
                        Ok(all)
                    }
                }
                deserializer.deserialize_map(Visitor)
            }
        }
    )*};
}

caseless! {
    /// An instance type.
    Entry {
        /// Its name.
        name: "name" String,
        /// CPU architecture, in Kubernetes' or in AWS's words.
        architecture: "architecture" String,
        /// Operating systems.
        systems: "operatingSystems" Vec<String>,
        /// What it has.
        resources: "resources" BTreeMap<String, Amount>,
        /// Where and how it can be had.
        offerings: "offerings" Vec<EntryOffering>,
    }
    /// An offering of it.
    EntryOffering {
        /// USD per hour.
        price: "price" f64,
        /// Machines left of a reservation.
        reservation: "reservationCapacity" u32,
        /// What the machine has instead of what its type has, resource by resource.
        capacity: "capacityOverride" BTreeMap<String, Amount>,
        /// The same of what the system keeps.
        overhead: "overheadOverride" BTreeMap<String, Amount>,
        /// Zone and capacity type, and what else there is.
        requirements: "requirements" Vec<EntryRequirement>,
    }
    /// A requirement of an offering.
    EntryRequirement {
        /// Label key.
        key: "key" String,
        /// Operator.
        operator: "operator" String,
        /// Values.
        values: "values" Vec<String>,
    }
}
