//! Instance-type files as upstream ships them, and what becomes of wrong ones.

use serde_json::{Value, json};

use super::*;
use crate::core::facts::InstanceType;
use crate::core::labels;
use crate::shared_data::shared;

/// An instance-type file of upstream's, where it is at hand.
fn upstreams(file: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(shared(&format!("karpenter/{file}"))?).unwrap())
}

fn values<'a>(instance_type: &'a InstanceType, key: &str) -> Vec<&'a str> {
    let requirement = instance_type.requirements.iter().find(|r| &*r.key == key).unwrap();
    requirement.values.iter().map(|value| &**value).collect()
}

#[test]
fn the_generated_catalogue_is_the_one_that_upstream_ships() {
    let Some(bytes) = upstreams("kwok_instance_types.json") else { return };
    let shipped = read("kwok_instance_types.json", &bytes).unwrap();
    let ours = generated();
    assert_eq!((ours.len(), shipped.len()), (144, 144));
    // Upstream's file holds two types whose prices were summed with another rounding than those of their siblings (they differ
    // in the sixteenth digit); everything else is equal to the bit.
    let odd = ["c-48x-arm64-windows", "c-192x-arm64-linux"];
    for (ours, shipped) in ours.into_iter().zip(shipped) {
        let mut ours = ours;
        if odd.contains(&ours.name.as_str()) {
            for (ours, shipped) in ours.offerings.iter_mut().zip(&shipped.offerings) {
                assert!((ours.price / shipped.price - 1.0).abs() < 4e-16);
                ours.price = shipped.price;
            }
        }
        assert_eq!(ours, shipped);
    }
}

#[test]
fn generated_types_carry_kwok_labels_and_overhead() {
    let all = generated();
    let last = all.iter().find(|t| t.name.as_str() == "m-256x-arm64-windows").unwrap();
    assert_eq!(values(last, INSTANCE_SIZE), ["256"]);
    assert_eq!(values(last, INSTANCE_FAMILY), ["m"]);
    assert_eq!(values(last, INSTANCE_CPU), ["256"]);
    assert_eq!(values(last, INSTANCE_MEMORY), ["2Ti"]);
    assert_eq!(values(last, labels::ZONE).len(), 4);
    assert_eq!(last.allocatable().get(&"cpu".into()), 255_900);
    assert_eq!(last.capacity.get(&"pods".into()), 1_024_000);
}

#[test]
fn types_named_once_per_operating_system_become_one() {
    let Some(bytes) = upstreams("aws_instance_types.json") else { return };
    let all = read("aws_instance_types.json", &bytes).unwrap();
    assert_eq!(all.len(), 853);
    let find = |name: &str| all.iter().find(|t| t.name.as_str() == name).unwrap();
    let m5 = find("m5.2xlarge");
    assert_eq!(values(m5, labels::ARCH), ["amd64"]);
    let mut systems = values(m5, labels::OS);
    systems.sort_unstable();
    assert_eq!(systems, ["linux", "windows"]);
    assert_eq!((values(m5, INSTANCE_SIZE), values(m5, INSTANCE_FAMILY)), (vec!["2xlarge"], vec!["m5"]));
    assert_eq!(m5.offerings.len(), 8);
    // 32-bit beside 64-bit: the latter stays.
    assert_eq!(values(find("t1.micro"), labels::ARCH), ["amd64"]);
    assert!(all.iter().all(|t| t.offerings.iter().all(|o| o.available && o.zone().is_some())));
}

#[test]
fn extended_resources_are_kept() {
    let Some(bytes) = upstreams("aws_gpu_instance_types.json") else { return };
    let all = read("aws_gpu_instance_types.json", &bytes).unwrap();
    assert!(all.iter().any(|t| t.capacity.get(&"nvidia.com/gpu".into()) == 8000));
}

fn entry() -> Value {
    json!({
        "NAME": "big", "Architecture": "x86_64", "operatingsystems": ["linux"],
        "Resources": { "cpu": 4, "memory": "16Gi" },
        "offerings": [{ "price": 1, "requirements": [
            { "Key": "karpenter.sh/capacity-type", "Operator": "In", "Values": ["spot"] },
            { "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"] },
        ] }],
    })
}

fn read_value(value: &Value) -> Result<Vec<InstanceType>, CatalogError> {
    read("types.json", value.to_string().as_bytes())
}

#[test]
fn keys_are_read_without_regard_to_case_and_pods_have_a_default() {
    let all = read_value(&json!([entry()])).unwrap();
    assert_eq!(all[0].name.as_str(), "big");
    assert_eq!(all[0].capacity.get(&"pods".into()), 110_000);
    assert_eq!(values(&all[0], INSTANCE_FAMILY), ["b"]);
    assert_eq!(values(&all[0], INSTANCE_SIZE), ["4"]);
}

#[test]
fn offerings_that_depend_on_the_system_say_for_which_they_are() {
    let mut windows = entry();
    windows["operatingsystems"] = json!(["windows"]);
    windows["offerings"][0]["price"] = json!(2);
    let all = read_value(&json!([entry(), windows])).unwrap();
    assert_eq!(all.len(), 1);
    let by_system: Vec<_> =
        all[0].offerings.iter().map(|o| (o.value(labels::OS).unwrap().to_string(), o.price)).collect();
    assert_eq!(by_system, [("linux".to_owned(), 1.0), ("windows".to_owned(), 2.0)]);
}

#[test]
fn offerings_with_resources_of_their_own_are_the_type_in_another_size() {
    let mut two = entry();
    let mut large = two["offerings"][0].clone();
    large["CapacityOverride"] = json!({ "example.com/gpu": 2, "memory": "64Gi" });
    large["overheadoverride"] = json!({ "cpu": "1" });
    two["offerings"].as_array_mut().unwrap().push(large.clone());
    let all = read_value(&json!([two])).unwrap();
    let [base, other] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&base.name, base.offerings.len(), other.offerings.len()), (&other.name, 1, 1));
    assert_eq!(base.capacity, read_value(&json!([entry()])).unwrap()[0].capacity);
    let has = |name: &str| other.capacity.get(&name.into());
    assert_eq!(
        (has("example.com/gpu"), has("memory"), has("cpu")),
        (2000, (64 << 30) * 1000, base.capacity.get(&"cpu".into()))
    );
    assert_eq!((base.overhead.get(&"cpu".into()), other.overhead.get(&"cpu".into())), (100, 1000));
    two["offerings"][1]["CapacityOverride"]["memory"] = json!("much");
    let error = read_value(&json!([two])).unwrap_err().to_string();
    assert!(error.contains("offerings[1].CapacityOverride.memory: \"much\" is not a quantity"), "{error}");
}

#[test]
fn errors_name_file_entry_field_and_remedy() {
    for (pointer, wrong, message) in [
        (
            "/offerings/0/price",
            json!("cheap"),
            "types.json: entry 1 (\"big\"), offerings[0].price: invalid type: string \"cheap\", expected f64",
        ),
        ("/offerings/0/price", json!(-1), "types.json: entry 1 (\"big\"), offerings[0].Price: -1 is no price"),
        ("/offerings/0/price", Value::Null, "offerings[0].Price: is missing; give a price"),
        (
            "/offerings/0/requirements/1/operator",
            json!("Near"),
            "offerings[0].Requirements[1].operator: \"Near\" is no operator",
        ),
        (
            "/offerings/0/requirements/1/values",
            json!([]),
            "offerings[0].Requirements: does not state topology.kubernetes.io/zone",
        ),
        ("/offerings", json!([]), "offerings: is empty"),
        ("/Resources/memory", json!("16 GB"), "resources.memory: \"16 GB\" is not a quantity"),
        ("/Resources", json!({ "cpu": "1" }), "resources.memory: is missing; add it"),
        ("/Architecture", json!("sparc"), "architecture: \"sparc\" is unknown; write amd64"),
        ("/Architecture", json!("arm64"), "architecture: differs from entry 0 of the same name"),
        ("/Resources/cpu", json!(5), "resources: differ from entry 0 of the same name"),
        ("/operatingsystems", json!([]), "operatingSystems: is missing; add it"),
    ] {
        let mut second = entry();
        *second.pointer_mut(pointer).unwrap() = wrong;
        let error = read_value(&json!([entry(), second])).unwrap_err().to_string();
        assert!(error.starts_with("types.json: entry 1 (\"big\"), "), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_file_that_is_none_says_what_is_wanted() {
    for content in ["", "{}", "[1", "[] 1"] {
        let error = read("types.json", content.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("types.json: "), "{error}");
    }
    assert!(read("types.json", b"[]").unwrap_err().to_string().contains("has no instance types"));
    let error = read_file(std::path::Path::new("no/such/file.json")).unwrap_err().to_string();
    assert!(error.starts_with("no/such/file.json: cannot be read"), "{error}");
}
