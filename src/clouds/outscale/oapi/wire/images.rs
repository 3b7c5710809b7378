//! Images (OMIs).

use jiff::Timestamp;

use super::envelope::ResponseContext;
use super::shapes::moment;
use super::tags::ResourceTag;
use super::vms::BsuToCreate;

requests! {
    /// Lists images.
    ReadImages {
        /// Which.
        filters: Option<ImageFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which images; each list means any of it, an empty one all.
    ImageFilters {
        /// Names of accounts that the cloud knows (`Outscale`).
        account_aliases: Vec<String>,
        /// Owners.
        account_ids: Vec<String>,
        /// `i386`, `x86_64`.
        architectures: Vec<String>,
        /// IDs.
        image_ids: Vec<String>,
        /// Names; `*` stands for anything.
        image_names: Vec<String>,
        /// `pending`, `available`, `failed`.
        states: Vec<String>,
        /// Keys of tags.
        tag_keys: Vec<String>,
        /// Values of tags.
        tag_values: Vec<String>,
        /// Tags, as `key=value`.
        tags: Vec<String>,
    }
}

answers! {
    /// Images.
    TheImages {
        /// The images.
        images: Vec<Image>,
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// An image.
    Image {
        /// Name of the owner, if the cloud knows one.
        account_alias: Option<String>,
        /// Owner.
        account_id: Option<String>,
        /// `i386`, `x86_64`.
        architecture: Option<String>,
        /// Its devices.
        block_device_mappings: Vec<ImageDevice>,
        /// `legacy`, `uefi`.
        boot_modes: Vec<String>,
        /// When it was made.
        #[serde(deserialize_with = "moment")]
        creation_date: Option<Timestamp>,
        /// For people.
        description: Option<String>,
        /// ID.
        image_id: String,
        /// Name.
        image_name: Option<String>,
        /// `machine`.
        image_type: Option<String>,
        /// Licences; `0001` is Linux.
        product_codes: Vec<String>,
        /// `/dev/sda1`.
        root_device_name: Option<String>,
        /// `bsu`.
        root_device_type: Option<String>,
        /// `pending`, `available`, `failed`.
        state: Option<String>,
        /// Tags.
        tags: Vec<ResourceTag>,
        /// Whether it wants a virtual TPM.
        tpm_mandatory: Option<bool>,
    }

    /// A device of an image.
    ImageDevice {
        /// What it is made of.
        bsu: Option<BsuToCreate>,
        /// Its name.
        device_name: Option<String>,
        /// Its virtual name.
        virtual_device_name: Option<String>,
    }
}
