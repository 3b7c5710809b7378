//! Catalogues of classes.

use super::*;
use crate::api::classes::outscale::{BlockDeviceMapping, Bsu, Kubelet, Placement, ResolvedSubnet, VmTypes};

fn listed() -> Vec<wire::VmType> {
    let row = |name: &str, cores, gib, gpu| wire::VmType {
        vm_type_name: name.to_owned(),
        vcore_count: Some(cores),
        memory_size: Some(gib),
        gpu,
        ..wire::VmType::default()
    };
    vec![
        row("c5.large", 2, 4.0, None),
        row("t2.nano", 1, 0.5, None),
        row("p6.large", 4, 16.0, Some(1)),
        row("strange", 2, 4.0, None),
    ]
}

fn status(zones: &[(&str, i64)]) -> OutscaleNodeClassStatus {
    let subnets = zones.iter().map(|(zone, available_ips)| ResolvedSubnet {
        id: format!("subnet-{zone}"),
        zone: (*zone).to_owned(),
        net_id: String::new(),
        available_ips: *available_ips,
    });
    OutscaleNodeClassStatus { subnets: subnets.collect(), ..OutscaleNodeClassStatus::default() }
}

fn offered(spec: &OutscaleNodeClassSpec) -> Vec<InstanceType> {
    let (listed, status, prices) = (listed(), status(&[("eu-west-2a", 9), ("eu-west-2b", 0)]), Prices::built_in());
    let learnt = Learnt::default();
    let (listed, prices) = (&listed, &prices);
    instance_types(&Wanted { spec, status: &status, listed, prices, learnt: &learnt, memory_overhead: 75 })
}

fn types(families: Option<&[&str]>, names: Option<&[&str]>, performances: Option<&[&str]>) -> OutscaleNodeClassSpec {
    let list = |all: Option<&[&str]>| all.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
    let vm_types = VmTypes { families: list(families), names: list(names), performances: list(performances) };
    OutscaleNodeClassSpec { vm_types: Some(vm_types), ..OutscaleNodeClassSpec::default() }
}

fn names(spec: &OutscaleNodeClassSpec) -> Vec<String> {
    offered(spec).into_iter().map(|kind| kind.name.as_str().to_owned()).collect()
}

#[test]
fn a_class_offers_the_families_and_names_that_it_says() {
    // Of the built-in prices, only v6-p2 is of the usual families and performance; machines of 1 GiB hold no pods beside Talos... but they do.
    let usual = names(&OutscaleNodeClassSpec::default());
    assert_eq!(usual.len(), CORES.len() * GIB_PER_CORE.len());
    assert!(usual.iter().all(|name| name.starts_with("tinav6.") && name.ends_with("p2")), "{usual:?}");
    assert_eq!(names(&types(Some(&["c5"]), None, None)), ["c5.large"]);
    assert_eq!(
        names(&types(None, Some(&["tinav7.c6r10p1", "tinav6.c3r5", "c5.large"]), None)),
        ["c5.large", "tinav6.c3r5p2", "tinav7.c6r10p1"]
    );
    let highest = names(&types(Some(&["tinav5", "tinav7"]), None, Some(&["highest"])));
    assert!(highest.len() == 56 && highest.iter().all(|name| name.ends_with("p1")), "{highest:?}");
    // No price, no offer: of its GPU, of its family, of its generation.
    let unpriced = types(Some(&["strange", "tinav8"]), Some(&["tinav9.c1r1p1", "p6.large"]), None);
    assert_eq!(names(&unpriced), Vec::<String>::new());
}

#[test]
fn a_type_with_gpus_is_offered_to_whom_names_it() {
    let admitted = |spec: &OutscaleNodeClassSpec| {
        let all = admitted(spec, &listed(), &Prices::built_in());
        all.into_iter().map(|kind| kind.name).collect::<Vec<_>>()
    };
    let unnamed = |spec: &OutscaleNodeClassSpec| unnamed_gpus(spec, &listed()).len();
    let family = types(Some(&["c5", "p6"]), None, None);
    assert_eq!((admitted(&family), unnamed(&family)), (vec!["c5.large".to_owned()], 1));
    let name = types(Some(&["p6"]), Some(&["p6.large"]), None);
    assert_eq!((admitted(&name), unnamed(&name)), (vec!["p6.large".to_owned()], 0));
    assert_eq!(unnamed(&OutscaleNodeClassSpec::default()), 0);
    // Machines on hardware of their own cannot have any.
    let placement = Placement { tenancy: Some("dedicated".to_owned()), ..Placement::default() };
    let dedicated =
        OutscaleNodeClassSpec { placement: Some(placement), ..types(None, Some(&["p6.large", "c5.large"]), None) };
    assert_eq!((admitted(&dedicated), dedicated_gpus(&dedicated, &listed()).len()), (vec!["c5.large".to_owned()], 1));
    assert_eq!(dedicated_gpus(&name, &listed()).len(), 0);
}

#[test]
fn types_are_described_by_labels_and_sold_where_subnets_have_room() {
    let all = offered(&types(None, Some(&["tinav6.c4r8p2"]), None));
    let [kind] = all.as_slice() else { panic!("{all:?}") };
    let value = |key: &str| {
        kind.requirements
            .iter()
            .find(|r| &*r.key == key)
            .map(|r| r.values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    for (key, wanted) in [
        (labels::INSTANCE_TYPE, "tinav6.c4r8p2"),
        (labels::ARCH, "amd64"),
        (labels::OS, "linux"),
        (labels::ZONE, "eu-west-2a,eu-west-2b"),
        (labels::REGION, "eu-west-2"),
        (labels::CAPACITY_TYPE, "on-demand"),
        (INSTANCE_FAMILY, "tinav6"),
        (INSTANCE_CPU, "4"),
        (INSTANCE_MEMORY, "8192"),
        (INSTANCE_GENERATION, "6"),
        (INSTANCE_PERFORMANCE, "high"),
        (INSTANCE_GPUS, "0"),
    ] {
        assert_eq!(value(key).as_deref(), Some(wanted), "{key}");
    }
    let sold: Vec<(&str, bool, f64)> =
        kind.offerings.iter().map(|o| (&**o.zone().unwrap(), o.available, (o.price * 1e6).round() / 1e6)).collect();
    assert_eq!(sold, [("eu-west-2a", true, 0.18), ("eu-west-2b", false, 0.18)]);
    let dedicated = OutscaleNodeClassSpec {
        placement: Some(Placement { tenancy: Some("dedicated".to_owned()), ..Placement::default() }),
        ..types(None, Some(&["tinav6.c4r8p2"]), None)
    };
    assert!((offered(&dedicated)[0].offerings[0].price - 0.198).abs() < 1e-9);
}

#[test]
fn pods_get_what_hypervisor_talos_and_kubelet_leave() {
    let gib = |amount: i64| amount * 1024 * MIB * 1000;
    let kind = VmType::parse("tinav6.c4r8p2").unwrap();
    let spec = OutscaleNodeClassSpec::default();
    let all = capacity(&kind, &spec, None, 75);
    assert_eq!(all.get(&"memory".into()), (8192 - 8192 * 75 / 1000) * MIB * 1000);
    assert_eq!(
        (all.get(&"cpu".into()), all.get(&"pods".into()), all.get(&"ephemeral-storage".into())),
        (4000, 110_000, gib(47))
    );
    let kept = overhead(&kind, &spec);
    assert_eq!((kept.get(&"cpu".into()), kept.get(&"memory".into())), (50, 484 * MIB * 1000));
    let spec = OutscaleNodeClassSpec {
        block_device_mappings: Some(vec![BlockDeviceMapping {
            device_name: "/dev/sda1".to_owned(),
            bsu: Bsu { volume_size: Some(103), ..Bsu::default() },
        }]),
        kubelet: Some(Kubelet {
            max_pods: Some(40),
            system_reserved: Some([("cpu".to_owned(), "200m".into()), ("pid".to_owned(), "100".into())].into()),
            kube_reserved: Some([("memory".to_owned(), "1Gi".into())].into()),
        }),
        ..OutscaleNodeClassSpec::default()
    };
    let (all, kept) = (capacity(&kind, &spec, None, 0), overhead(&kind, &spec));
    assert_eq!((all.get(&"pods".into()), all.get(&"ephemeral-storage".into())), (40_000, gib(100)));
    assert_eq!((kept.get(&"cpu".into()), kept.get(&"memory".into())), (200, gib(1) + 100 * MIB * 1000));
    assert_eq!((kept.get(&"ephemeral-storage".into()), kept.get(&"pid".into())), (gib(10), 0));
}

#[test]
fn a_region_is_its_subregion_without_the_letter() {
    assert_eq!(
        (region("eu-west-2a"), region("cloudgouv-eu-west-1b"), region("eu-west-2"), region("")),
        ("eu-west-2", "cloudgouv-eu-west-1", "eu-west-2", "")
    );
}
