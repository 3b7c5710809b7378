//! What pods may use of an instance type.

use std::collections::BTreeMap;

use super::*;

fn allocatable(memory: i64, huge: &[(&str, i64)], overhead: i64) -> Resources {
    let mut capacity = Resources::new().with("cpu", 4000).with("memory", memory);
    for (name, milli) in huge {
        capacity.set((*name).into(), *milli);
    }
    let overhead = Resources::new().with("cpu", 100).with("memory", overhead);
    let none = BTreeMap::new();
    let kind = InstanceType {
        name: "m".into(),
        requirements: vec![],
        capacity,
        overhead,
        attach_limits: none,
        offerings: vec![],
    };
    kind.allocatable()
}

#[test]
fn what_the_system_keeps_is_not_for_pods() {
    let room = allocatable(1000, &[], 100);
    assert_eq!((room.get(&ResourceName::Cpu), room.get(&ResourceName::Memory)), (3900, 900));
    assert_eq!(allocatable(1000, &[], 2000).get(&ResourceName::Memory), 0, "never less than nothing");
}

#[test]
fn huge_pages_are_not_memory_any_more() {
    let room = allocatable(1000, &[("hugepages-2Mi", 200), ("hugepages-1Gi", 300)], 100);
    assert_eq!((room.get(&ResourceName::Memory), room.get(&"hugepages-2Mi".into())), (400, 200));
    assert_eq!(allocatable(1000, &[("hugepages-2Mi", 5000)], 100).get(&ResourceName::Memory), 0);
}
