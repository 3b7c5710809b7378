//! The part of the user data that is for the cloud and not for the machine.

use crate::clouds::outscale::oapi::wire::ResourceTag;

const BEGIN: &str = "-----BEGIN OUTSCALE SECTION-----";
const END: &str = "-----END OUTSCALE SECTION-----";

/// The tags that the section asks for.
pub(super) fn tags(user_data: &[u8]) -> Vec<ResourceTag> {
    let text = String::from_utf8_lossy(user_data);
    let mut lines = text.lines();
    if lines.next() != Some(BEGIN) {
        return Vec::new();
    }
    let own = lines.take_while(|line| *line != END);
    let tag = |line: &str| {
        let (key, value) = line.strip_prefix("tags.")?.split_once('=')?;
        Some(ResourceTag::new(key, value))
    };
    own.filter_map(tag).collect()
}
