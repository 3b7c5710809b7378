//! How wire types are declared.

/// What a field is when it says nothing.
pub(super) trait Field {
    /// Whether a request leaves it out.
    fn is_unset(&self) -> bool;

    /// Whether an answer leaves it out: lists are there though they are empty, as the API does it.
    fn is_absent(&self) -> bool {
        self.is_unset()
    }
}

impl<T> Field for Option<T> {
    fn is_unset(&self) -> bool {
        self.is_none()
    }
}

impl<T> Field for Vec<T> {
    fn is_unset(&self) -> bool {
        self.is_empty()
    }

    fn is_absent(&self) -> bool {
        false
    }
}

impl Field for String {
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}

/// Declares types that are sent. Every field may be left out.
macro_rules! requests {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(skip_serializing_if = "crate::clouds::outscale::oapi::wire::shapes::Field::is_unset")]
                pub $field: $type,
            )*
        }
    )*};
}

/// Declares types that are received. Every field may be missing, and unknown ones are skipped.
macro_rules! answers {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(skip_serializing_if = "crate::clouds::outscale::oapi::wire::shapes::Field::is_absent")]
                pub $field: $type,
            )*
        }
    )*};
}

/// Reads a moment; one that cannot be read is none, as no call should fail over it.
pub(super) fn moment<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<jiff::Timestamp>, D::Error> {
    let text: Option<String> = serde::Deserialize::deserialize(from)?;
    Ok(text.and_then(|text| text.parse().ok()))
}
