//! Tags of resources.

use serde::{Deserialize, Serialize};

use super::envelope::ResponseContext;

/// A tag, as it is set and as it stands on a resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ResourceTag {
    /// 1 to 255 characters.
    pub key: String,
    /// 0 to 255 characters.
    #[serde(default)]
    pub value: String,
}

impl ResourceTag {
    /// A tag.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into() }
    }
}

requests! {
    /// Sets tags; those that exist are overwritten.
    CreateTags {
        /// The resources.
        resource_ids: Vec<String>,
        /// The tags, each for every resource.
        tags: Vec<ResourceTag>,
    }

    /// Takes tags off.
    DeleteTags {
        /// The resources.
        resource_ids: Vec<String>,
        /// The tags.
        tags: Vec<ResourceTag>,
    }

    /// Lists tags.
    ReadTags {
        /// Which.
        filters: Option<TagFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which tags; each list means any of it, an empty one all.
    TagFilters {
        /// Keys.
        keys: Vec<String>,
        /// IDs of resources.
        resource_ids: Vec<String>,
        /// Kinds of resource: `vm`, `subnet`, ...
        resource_types: Vec<String>,
        /// Values.
        values: Vec<String>,
    }
}

answers! {
    /// Tags.
    TheTags {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The tags.
        tags: Vec<Tag>,
    }

    /// A tag with what it stands on.
    Tag {
        /// Key.
        key: String,
        /// The resource.
        resource_id: String,
        /// The kind of resource.
        resource_type: String,
        /// Value.
        value: Option<String>,
    }
}
