//! User data: what a machine is told at its birth, with the section that Outscale reads itself in front.

use std::collections::BTreeMap;

use crate::api::classes::outscale::Placement;

use super::oapi::wire::UserData;

const BEGIN: &str = "-----BEGIN OUTSCALE SECTION-----\n";
const END: &str = "-----END OUTSCALE SECTION-----\n";

/// Why user data cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unfit {
    /// A tag that would end its line.
    #[error("tag {key:?} cannot stand in user data: neither key nor value may have a line break, and the key no `=`")]
    Tag {
        /// Its key.
        key: String,
    },
    /// Too long.
    #[error(
        "the user data have {length} bytes in base64, the API takes {}; take patches or documents out of the Talos configuration",
        UserData::LONGEST
    )]
    TooLong {
        /// How long it is.
        length: usize,
    },
}

impl Unfit {
    /// The field of the NodeClass that is to be changed.
    pub(super) fn field(&self) -> &'static str {
        match self {
            Self::Tag { .. } => "spec.tags",
            Self::TooLong { .. } => "spec.talos",
        }
    }
}

/// User data: tags and placement for Outscale, then the machine's own configuration. `filter_private_section` hides the first part from the
/// machine, so that Talos reads clean YAML.
pub(super) fn user_data(
    tags: &BTreeMap<String, String>,
    placement: Option<&Placement>,
    configuration: &str,
) -> Result<UserData, Unfit> {
    let mut text = format!("{BEGIN}filter_private_section=true\n");
    for (key, value) in tags {
        if key.contains(['\n', '\r', '=']) || value.contains(['\n', '\r']) {
            return Err(Unfit::Tag { key: key.clone() });
        }
        text.extend(["tags.", key, "=", value, "\n"]);
    }
    let placement = placement.cloned().unwrap_or_default();
    for (key, value) in [
        ("osc.fcu.repulse_server", placement.repulse_server),
        ("osc.fcu.repulse_cluster", placement.repulse_cluster),
        ("osc.fcu.attract_server", placement.attract_server),
        ("osc.fcu.attract_cluster", placement.attract_cluster),
    ] {
        if let Some(value) = value {
            text.extend(["tags.", key, "=", &value, "\n"]);
        }
    }
    text.push_str(END);
    text.push_str(configuration);
    let data = UserData::of(text.as_bytes());
    if data.len() > UserData::LONGEST { Err(Unfit::TooLong { length: data.len() }) } else { Ok(data) }
}

/// What user data that begin with such a section say: the tags, and the machine's own configuration.
pub(super) fn read(text: &str) -> Option<(impl Iterator<Item = (&str, &str)>, &str)> {
    let (section, configuration) = text.strip_prefix(BEGIN)?.split_once(END)?;
    let tags = section.lines().filter_map(|line| line.strip_prefix("tags.")?.split_once('='));
    Some((tags, configuration))
}

#[cfg(test)]
#[path = "birth_tests.rs"]
mod tests;
