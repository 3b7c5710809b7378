//! What can be bought, and for how much.

use super::envelope::ResponseContext;
use super::shapes::Field;

requests! {
    /// Lists the fixed VM types. Needs no keys; types of one's own making (`tina...`) are not among them.
    ReadVmTypes {
        /// Which.
        filters: Option<VmTypeFilters>,
        /// Where the last page ended.
        next_page_token: Option<String>,
        /// 1 to 1000.
        results_per_page: Option<u32>,
    }

    /// Which VM types; each list means any of it, an empty one all.
    VmTypeFilters {
        /// How many GPUs.
        gpus: Vec<u32>,
        /// How much memory in GiB.
        memory_sizes: Vec<f64>,
        /// How many cores.
        vcore_counts: Vec<u32>,
        /// Names.
        vm_type_names: Vec<String>,
    }

    /// Lists the prices of the account.
    ReadCatalog {}

    /// Lists the prices of the region. Needs no keys.
    ReadPublicCatalog {}

    /// Asks for one price.
    ReadUnitPrice {
        /// `RunInstances-OD`, ...
        operation: String,
        /// `TinaOS-FCU`, ...
        service: String,
        /// `BoxUsage:tinav6.c4r8p2`, ...
        #[serde(rename = "Type")]
        kind: String,
    }

    /// Lists the models of flexible GPUs. Needs no keys.
    ReadFlexibleGpuCatalog {}
}

answers! {
    /// VM types.
    TheVmTypes {
        /// Where the next page begins, if there is one.
        next_page_token: Option<String>,
        /// The request's ID.
        response_context: ResponseContext,
        /// The types.
        vm_types: Vec<VmType>,
    }

    /// A fixed VM type.
    VmType {
        /// Whether its volumes have a path of their own.
        bsu_optimized: Option<bool>,
        /// Kind of its ephemeral disks.
        ephemerals_type: Option<String>,
        /// Interfaces.
        eth: Option<u32>,
        /// GPUs.
        gpu: Option<u32>,
        /// Private addresses on one interface.
        max_private_ips: Option<u32>,
        /// Memory in GiB.
        memory_size: Option<f64>,
        /// Cores.
        vcore_count: Option<u32>,
        /// Name.
        vm_type_name: String,
        /// Ephemeral disks.
        volume_count: Option<u32>,
        /// Size of one in GiB.
        volume_size: Option<u32>,
    }

    /// Prices.
    TheCatalog {
        /// The prices.
        catalog: Catalog,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// The rows of a price list.
    Catalog {
        /// The rows.
        entries: Vec<CatalogEntry>,
    }

    /// A row of a price list.
    CatalogEntry {
        /// `compute`, ...
        category: Option<String>,
        /// `PER_MONTH`, ...
        flags: Option<String>,
        /// `RunInstances-OD`, ...
        operation: Option<String>,
        /// `TinaOS-FCU`, ...
        service: Option<String>,
        /// Where.
        subregion_name: Option<String>,
        /// For people.
        title: Option<String>,
        /// `CustomCore:v6-p2`, ...
        #[serde(rename = "Type")]
        kind: Option<String>,
        /// In the account's currency, which no row names; tax excluded.
        unit_price: Option<f64>,
    }

    /// One price.
    TheUnitPrice {
        /// The request's ID.
        response_context: ResponseContext,
        /// The price.
        unit_price_entry: Option<UnitPriceEntry>,
    }

    /// One price.
    UnitPriceEntry {
        /// `EUR`, ...
        currency: Option<String>,
        /// As asked.
        operation: Option<String>,
        /// As asked.
        service: Option<String>,
        /// As asked.
        #[serde(rename = "Type")]
        kind: Option<String>,
        /// `PER_HOUR`, ...
        unit: Option<String>,
        /// How much.
        unit_price: Option<f64>,
    }

    /// Models of flexible GPUs.
    TheFlexibleGpuCatalog {
        /// The models.
        flexible_gpu_catalog: Vec<FlexibleGpuModel>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// A model of flexible GPU.
    FlexibleGpuModel {
        /// Processor generations that it goes with.
        generations: Vec<String>,
        /// The most cores of a VM with it.
        max_cpu: Option<u32>,
        /// The most memory in GiB of a VM with it.
        max_ram: Option<u32>,
        /// `nvidia-p6`, ...
        model_name: String,
        /// Its own memory in MiB.
        #[serde(rename = "VRam")]
        v_ram: Option<u32>,
    }
}

impl Field for Catalog {
    fn is_unset(&self) -> bool {
        false
    }
}
