//! What the account has before anything is launched.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::clouds::outscale::oapi::wire::{
    BsuToCreate, Catalog, CatalogEntry, FlexibleGpuModel, Image, ImageDevice, Keypair, SecurityGroup, Snapshot, Subnet,
    Subregion, VmType,
};
use crate::clouds::outscale::oapi::{Access, AccessError, Dialect, Endpoint, Keys, SecretKey};

/// An account of the fake: whoever may call, and what there is.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its ID.
    pub id: String,
    /// Access keys with their secrets.
    pub keys: BTreeMap<String, SecretKey>,
    /// Actions that a policy denies.
    pub denied: BTreeSet<String>,
    /// The region.
    pub region: String,
    /// Its subregions.
    pub subregions: Vec<Subregion>,
    /// Subnets.
    pub subnets: Vec<Subnet>,
    /// Security groups.
    pub security_groups: Vec<SecurityGroup>,
    /// Images.
    pub images: Vec<Image>,
    /// Snapshots of volumes.
    pub snapshots: Vec<Snapshot>,
    /// Keypairs.
    pub keypairs: Vec<Keypair>,
    /// Fixed VM types.
    pub vm_types: Vec<VmType>,
    /// Models of flexible GPUs.
    pub gpus: Vec<FlexibleGpuModel>,
    /// Prices for everybody.
    pub catalog: Catalog,
    /// Prices of this account, where somebody has negotiated some.
    pub own_catalog: Option<Catalog>,
    /// How much it may have.
    pub quotas: Quotas,
}

/// How much an account may have. The names of cores and memory in the real API are not known outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quotas {
    /// VMs (`vm_limit`).
    pub vms: u32,
    /// Cores of all VMs (`core_limit`).
    pub cores: u32,
    /// Memory of all VMs in GiB (`memory_limit`).
    pub memory: u32,
    /// Tags of one resource. It is not listed with the others, as it counts nothing of the account.
    pub tags: u32,
}

/// Processor generation, performance class, and the price of a core an hour in EUR: rows of the public price list of eu-west-2 (2025-26).
const CORES: [(u32, u32, f64); 6] =
    [(5, 1, 0.04), (5, 2, 0.035), (6, 1, 0.04), (6, 2, 0.035), (7, 1, 0.043), (7, 2, 0.038)];
/// The price of a GiB of memory an hour in EUR, from the same list.
const MEMORY: f64 = 0.005;
/// The price of a GPU an hour in EUR while it is attached, and while it is only allocated: figures of the order of the same list's.
const GPU: [(&str, f64); 2] = [("Gpu:attach:nvidia-p6", 0.75), ("Gpu:allocate:nvidia-p6", 0.55)];
/// A tenth of what own hardware costs on top, from the same list's shape: a tenth more.
const DEDICATED: f64 = 0.01;
/// Name, cores, GiB and GPUs of fixed types.
const FIXED: [(&str, u32, f64, u32); 9] = [
    ("t2.small", 1, 2.0, 0),
    ("t2.medium", 2, 4.0, 0),
    ("t2.large", 2, 8.0, 0),
    ("m4.large", 2, 8.0, 0),
    ("m4.xlarge", 4, 16.0, 0),
    ("m4.2xlarge", 8, 33.0, 0),
    ("c4.large", 2, 4.0, 0),
    ("c4.xlarge", 4, 8.0, 0),
    ("p6.large", 8, 60.0, 1),
];

impl Account {
    /// The region of the sample.
    pub const REGION: &'static str = "eu-west-2";
    /// The access key of the sample.
    pub const ACCESS_KEY: &'static str = "FAKEACCESSKEY0123456";
    /// Its secret: it opens nothing but a fake.
    pub const SECRET_KEY: &'static str = "FAKESECRETKEY0123456FAKESECRETKEY0123456";
    /// The image of the sample.
    pub const IMAGE: &'static str = "ami-00000001";
    /// The snapshot that the sample's image is made of.
    pub const SNAPSHOT: &'static str = "snap-00000001";
    /// The security group of the sample.
    pub const GROUP: &'static str = "sg-00000001";
    /// The keypair of the sample.
    pub const KEYPAIR: &'static str = "rehearsal";

    /// An account for rehearsals: one Net with a subnet in each of two subregions, a security group, a Talos image, prices, and room for
    /// a thousand VMs and more.
    pub fn sample() -> Self {
        let subregions = ["a", "b"].map(|letter| format!("{}{letter}", Self::REGION));
        Self {
            id: "000000000001".to_owned(),
            keys: [(Self::ACCESS_KEY.to_owned(), SecretKey::new(Self::SECRET_KEY))].into(),
            denied: BTreeSet::new(),
            region: Self::REGION.to_owned(),
            subregions: subregions.iter().map(|name| subregion(name)).collect(),
            subnets: vec![subnet(1, "10.0.0.0/19", &subregions[0]), subnet(2, "10.0.32.0/19", &subregions[1])],
            security_groups: vec![SecurityGroup {
                description: Some("Nodes".to_owned()),
                net_id: Some("vpc-00000001".to_owned()),
                security_group_id: Self::GROUP.to_owned(),
                security_group_name: Some("nodes".to_owned()),
                ..SecurityGroup::default()
            }],
            images: vec![image(Self::IMAGE, "Talos-v1.11.5")],
            snapshots: vec![Snapshot {
                snapshot_id: Self::SNAPSHOT.to_owned(),
                state: Some("completed".to_owned()),
                volume_size: Some(10),
            }],
            keypairs: vec![Keypair { keypair_name: Self::KEYPAIR.to_owned(), ..Keypair::default() }],
            vm_types: FIXED.iter().map(|(name, cores, memory, gpus)| fixed(name, *cores, *memory, *gpus)).collect(),
            gpus: vec![FlexibleGpuModel {
                generations: vec!["v5".to_owned()],
                max_cpu: Some(80),
                max_ram: Some(512),
                model_name: "nvidia-p6".to_owned(),
                v_ram: Some(16_384),
            }],
            catalog: Catalog { entries: prices(Self::REGION) },
            own_catalog: None,
            // So many tags somebody's account was said to have (terraform-provider-outscale, issue 68).
            quotas: Quotas { vms: 2_000, cores: 16_000, memory: 128_000, tags: 20 },
        }
    }

    /// What a client needs to reach it at an address.
    pub fn access(&self, endpoint: &str) -> Result<Access, AccessError> {
        let (access_key, secret_key) = self.keys.iter().next().map_or_else(
            || (String::new(), SecretKey::new("")),
            |(access_key, secret_key)| (access_key.clone(), secret_key.clone()),
        );
        Ok(Access {
            keys: Keys { access_key, secret_key },
            region: self.region.clone(),
            endpoint: Endpoint::parse(endpoint)?,
            dialect: Dialect::default(),
            client_certificate: None,
        })
    }
}

fn subregion(name: &str) -> Subregion {
    Subregion {
        location_code: Some("PAR1".to_owned()),
        region_name: Some(Account::REGION.to_owned()),
        state: Some("available".to_owned()),
        subregion_name: name.to_owned(),
    }
}

fn subnet(number: u32, range: &str, subregion: &str) -> Subnet {
    Subnet {
        available_ips_count: None,
        ip_range: Some(range.to_owned()),
        map_public_ip_on_launch: Some(false),
        net_id: Some("vpc-00000001".to_owned()),
        state: Some("available".to_owned()),
        subnet_id: format!("subnet-{number:08x}"),
        subregion_name: Some(subregion.to_owned()),
        tags: Vec::new(),
    }
}

fn image(id: &str, name: &str) -> Image {
    let root = BsuToCreate {
        delete_on_vm_deletion: Some(true),
        snapshot_id: Some(Account::SNAPSHOT.to_owned()),
        volume_size: Some(10),
        volume_type: Some("standard".to_owned()),
        iops: None,
    };
    Image {
        account_id: Some("000000000001".to_owned()),
        architecture: Some("x86_64".to_owned()),
        block_device_mappings: vec![ImageDevice {
            bsu: Some(root),
            device_name: Some("/dev/sda1".to_owned()),
            virtual_device_name: None,
        }],
        boot_modes: vec!["legacy".to_owned()],
        creation_date: Some(Timestamp::UNIX_EPOCH),
        image_id: id.to_owned(),
        image_name: Some(name.to_owned()),
        image_type: Some("machine".to_owned()),
        product_codes: vec!["0001".to_owned()],
        root_device_name: Some("/dev/sda1".to_owned()),
        root_device_type: Some("bsu".to_owned()),
        state: Some("available".to_owned()),
        ..Image::default()
    }
}

fn fixed(name: &str, cores: u32, memory: f64, gpus: u32) -> VmType {
    VmType {
        bsu_optimized: Some(false),
        gpu: Some(gpus).filter(|gpus| *gpus > 0),
        max_private_ips: Some(6),
        memory_size: Some(memory),
        vcore_count: Some(cores),
        vm_type_name: name.to_owned(),
        volume_count: Some(0),
        ..VmType::default()
    }
}

fn prices(region: &str) -> Vec<CatalogEntry> {
    let row = |kind: String, price: f64| CatalogEntry {
        category: Some("compute".to_owned()),
        operation: Some("RunInstances-OD".to_owned()),
        service: Some("TinaOS-FCU".to_owned()),
        subregion_name: Some(region.to_owned()),
        title: Some(format!("Price of {kind}")),
        kind: Some(kind),
        unit_price: Some(price),
        flags: None,
    };
    let cores = CORES
        .iter()
        .map(|(generation, performance, price)| row(format!("CustomCore:v{generation}-p{performance}"), *price));
    let surplus = CatalogEntry {
        operation: Some("RunInstances".to_owned()),
        ..row("DedicatedInstanceSurplus".to_owned(), DEDICATED)
    };
    let gpus = GPU.iter().map(|(kind, price)| CatalogEntry {
        operation: Some("AllocateGpu".to_owned()),
        ..row((*kind).to_owned(), *price)
    });
    cores.chain([row("CustomRam".to_owned(), MEMORY), surplus]).chain(gpus).collect()
}
