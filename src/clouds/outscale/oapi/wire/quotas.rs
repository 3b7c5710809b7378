//! How much the account may have.

use super::envelope::ResponseContext;

requests! {
    /// Lists quotas.
    ReadQuotas {
        /// Which.
        filters: Option<QuotaFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which quotas; each list means any of it, an empty one all.
    QuotaFilters {
        /// Groups: `Compute`, ...
        collections: Vec<String>,
        /// Names.
        quota_names: Vec<String>,
        /// `global`, or the ID of a Net.
        quota_types: Vec<String>,
        /// Short descriptions.
        short_descriptions: Vec<String>,
    }
}

answers! {
    /// Quotas.
    TheQuotas {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The quotas, by what they are for.
        quota_types: Vec<QuotasOfType>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// The quotas of the account or of one Net.
    QuotasOfType {
        /// `global`, or the ID of a Net.
        quota_type: String,
        /// The quotas.
        quotas: Vec<Quota>,
    }

    /// A quota.
    Quota {
        /// Owner.
        account_id: Option<String>,
        /// For people.
        description: Option<String>,
        /// The most.
        max_value: Option<i64>,
        /// Name: `vm_limit`, ...
        name: String,
        /// Group: `Compute`, ...
        quota_collection: Option<String>,
        /// For people in a hurry.
        short_description: Option<String>,
        /// How much of it is used.
        used_value: Option<i64>,
    }
}
