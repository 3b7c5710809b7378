//! What a VM is put into: subregions, subnets, security groups; and its keypair.

use super::envelope::ResponseContext;
use super::tags::ResourceTag;

requests! {
    /// Lists subnets.
    ReadSubnets {
        /// Which.
        filters: Option<SubnetFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which subnets; each list means any of it, an empty one all.
    SubnetFilters {
        /// Nets.
        net_ids: Vec<String>,
        /// `pending`, `available`, `deleted`.
        states: Vec<String>,
        /// IDs.
        subnet_ids: Vec<String>,
        /// Subregions.
        subregion_names: Vec<String>,
        /// Keys of tags.
        tag_keys: Vec<String>,
        /// Values of tags.
        tag_values: Vec<String>,
        /// Tags, as `key=value`.
        tags: Vec<String>,
    }

    /// Lists security groups.
    ReadSecurityGroups {
        /// Which.
        filters: Option<SecurityGroupFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which security groups; each list means any of it, an empty one all.
    SecurityGroupFilters {
        /// Nets.
        net_ids: Vec<String>,
        /// IDs.
        security_group_ids: Vec<String>,
        /// Names.
        security_group_names: Vec<String>,
        /// Keys of tags.
        tag_keys: Vec<String>,
        /// Values of tags.
        tag_values: Vec<String>,
        /// Tags, as `key=value`.
        tags: Vec<String>,
    }

    /// Lists the subregions of the region.
    ReadSubregions {
        /// Which.
        filters: Option<SubregionFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which subregions; each list means any of it, an empty one all.
    SubregionFilters {
        /// Regions.
        region_names: Vec<String>,
        /// `available`, ...
        states: Vec<String>,
        /// Names.
        subregion_names: Vec<String>,
    }

    /// Lists keypairs.
    ReadKeypairs {
        /// Which.
        filters: Option<KeypairFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which keypairs; each list means any of it, an empty one all.
    KeypairFilters {
        /// Fingerprints.
        keypair_fingerprints: Vec<String>,
        /// Names.
        keypair_names: Vec<String>,
    }
}

answers! {
    /// Subnets.
    TheSubnets {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The subnets.
        subnets: Vec<Subnet>,
    }

    /// A subnet.
    Subnet {
        /// Addresses that are still free.
        available_ips_count: Option<u32>,
        /// Its addresses (CIDR).
        ip_range: Option<String>,
        /// Whether VMs in it get a public address.
        map_public_ip_on_launch: Option<bool>,
        /// The Net that it is part of.
        net_id: Option<String>,
        /// `pending`, `available`, `deleted`.
        state: Option<String>,
        /// ID.
        subnet_id: String,
        /// Where it is.
        subregion_name: Option<String>,
        /// Tags.
        tags: Vec<ResourceTag>,
    }

    /// Security groups.
    TheSecurityGroups {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The groups.
        security_groups: Vec<SecurityGroup>,
    }

    /// A security group; its rules are left unread.
    SecurityGroup {
        /// Owner.
        account_id: Option<String>,
        /// For people.
        description: Option<String>,
        /// The Net that it is part of; none in the public cloud.
        net_id: Option<String>,
        /// ID.
        security_group_id: String,
        /// Name, unique in its Net.
        security_group_name: Option<String>,
        /// Tags.
        tags: Vec<ResourceTag>,
    }

    /// Subregions.
    TheSubregions {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The subregions.
        subregions: Vec<Subregion>,
    }

    /// A subregion: Kubernetes' zone.
    Subregion {
        /// Where on earth.
        location_code: Option<String>,
        /// Its region.
        region_name: Option<String>,
        /// `available`, ...
        state: Option<String>,
        /// Name.
        subregion_name: String,
    }

    /// Keypairs.
    TheKeypairs {
        /// The keypairs.
        keypairs: Vec<Keypair>,
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// The public half of a keypair.
    Keypair {
        /// Fingerprint.
        keypair_fingerprint: Option<String>,
        /// ID.
        keypair_id: Option<String>,
        /// Name.
        keypair_name: String,
        /// `ssh-rsa`, ...
        keypair_type: Option<String>,
        /// Tags.
        tags: Vec<ResourceTag>,
    }
}
