//! What several kinds share: taints, requirements, class references, quantities and conditions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::api::schema;

/// Declares a string enumeration that also carries values it does not know.
///
/// The schema admits the listed values only, but an object stored under an older or a newer schema may hold
/// another one. Refusing to parse it would hide the whole object (and, in a list, all its neighbours), so
/// the text is kept and validation speaks about it.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A value that no schema of today admits, kept as it was written.
            #[serde(untagged)]
            Other(String),
        }

        impl $name {
            /// The values the schema admits, in the schema's order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($variant)),+];

            /// The value as it is written in a manifest.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                    Self::Other(text) => text,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": Self::NAMES })
            }
        }
    };
}
pub(super) use open_enum;

open_enum! {
    /// How a requirement's key relates to its values.
    Operator {
        /// The label has one of the values.
        In,
        /// The label has none of the values, or is absent.
        NotIn,
        /// The label is present.
        Exists,
        /// The label is absent.
        DoesNotExist,
        /// The label is an integer above the value.
        Gt,
        /// The label is an integer below the value.
        Lt,
        /// The label is an integer not below the value; Karpenter's addition to the Kubernetes operators.
        Gte,
        /// The label is an integer not above the value; Karpenter's addition to the Kubernetes operators.
        Lte,
    }
}

open_enum! {
    /// What a taint does to a pod that does not tolerate it.
    TaintEffect {
        /// New pods stay away.
        NoSchedule,
        /// New pods stay away if they can.
        PreferNoSchedule,
        /// New pods stay away and running pods are evicted.
        NoExecute,
    }
}

/// Whether a condition holds. A text that is none of the three reads as `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody has found out yet.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

/// One condition of an object's status. Its schema differs by kind: see the `conditions` fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is said to hold, such as `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The `metadata.generation` this was judged on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed; one-second resolution.
    pub last_transition_time: Time,
    /// Why, in one CamelCase word. May be empty on NodeClaims written long ago.
    #[serde(default)]
    pub reason: String,
    /// Why, for a person. May be empty.
    #[serde(default)]
    pub message: String,
}

/// A Kubernetes quantity as it was written: `500m`, `1Gi`, `4`. Not parsed here.
///
/// Manifests may write an integer instead of a text; the API server keeps it so.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl Quantity {
    /// The quantity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Quantity {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity: a text such as \"500m\" or \"1Gi\", or an integer")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    // The API server knows this marker; `crds.rs` adds the `anyOf` that goes with it, which the rewriting
    // of kube's derive would take for an enumeration.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "pattern": schema::QUANTITY })
    }
}

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// A taint that a node carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The taint's key, a qualified name.
    #[schemars(length(min = 1), regex(pattern = schema::QUALIFIED_NAME))]
    pub key: String,
    /// The taint's value; leave it out rather than empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What the taint does to pods that do not tolerate it.
    pub effect: TaintEffect,
    /// When the taint was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::date_time")]
    pub time_added: Option<Time>,
}

/// One demand on a node's labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label's key.
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED_NAME))]
    pub key: String,
    /// How the key relates to the values.
    pub operator: Operator,
    /// The values: at least one for `In`, one integer for `Gt`, `Lt`, `Gte` and `Lte`, none for `Exists` and
    /// `DoesNotExist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::requirement_values")]
    pub values: Vec<String>,
    /// How many different values the chosen instance types must span. Alpha; not on NodeOverlays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::min_values")]
    pub min_values: Option<i32>,
}

/// Points to the NodeClass that says how machines are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassRef {
    /// The API group of the NodeClass, without a version.
    #[schemars(regex(pattern = "^[^/]*$"), extend("x-kubernetes-validations" = schema::not_empty("group")))]
    pub group: String,
    /// The kind of the NodeClass.
    #[schemars(extend("x-kubernetes-validations" = schema::not_empty("kind")))]
    pub kind: String,
    /// The name of the NodeClass.
    #[schemars(extend("x-kubernetes-validations" = schema::not_empty("name")))]
    pub name: String,
}
