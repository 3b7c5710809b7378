//! Names of custom types, and fixed types as the API lists them.

use super::*;

fn listed(name: &str, cores: u32, gib: f64) -> Listed {
    Listed { vm_type_name: name.to_owned(), vcore_count: Some(cores), memory_size: Some(gib), ..Listed::default() }
}

#[test]
fn names_of_custom_types_say_everything() {
    let parsed = VmType::parse("tinav7.c4r8p1").unwrap();
    assert_eq!((parsed.generation, parsed.cores, parsed.memory_mib), (Some(7), 4, 8192));
    assert_eq!((parsed.performance, parsed.family.as_str()), (Performance::Highest, "tinav7"));
    assert_eq!(VmType::parse("tinav6.c2r3").unwrap().name, "tinav6.c2r3p2");
    for performance in Performance::ALL {
        let made = VmType::custom(12, 48, 100, performance);
        assert_eq!(VmType::parse(&made.name), Some(made));
    }
}

#[test]
fn what_is_no_custom_type_is_not_taken_for_one() {
    for name in [
        "tina.c4r8",
        "tinav.c4r8",
        "tinav6",
        "tinav6.c4",
        "tinav6.r8c4",
        "tinav6.c0r8",
        "tinav6.c4r0",
        "tinav6.c4r8p4",
        "tinav6.c4r8p",
        "tinav6.c4r8p12",
        "tinav-6.c4r8",
        "tinav6.c+4r8",
        "tinav6.c04r8",
        "tinav6.c4r8p1x",
        "m5.large",
        "inference7-l40.medium",
        "",
        "tinav6.c99999999999r8",
    ] {
        assert_eq!(VmType::parse(name), None, "{name}");
    }
}

#[test]
fn fixed_types_get_generation_and_performance_of_their_family() {
    let c4 = VmType::fixed(&listed("c4.large", 2, 4.0)).unwrap();
    assert_eq!((c4.generation, c4.performance, c4.memory_mib), (Some(4), Performance::Highest, 4096));
    let t2 = VmType::fixed(&listed("t2.nano", 1, 0.5)).unwrap();
    assert_eq!((t2.performance, t2.memory_mib), (Performance::Medium, 512));
    let strange = VmType::fixed(&Listed { gpu: Some(1), ..listed("inference7-l40.medium", 22, 128.0) }).unwrap();
    assert_eq!((strange.family.as_str(), strange.generation, strange.gpus), ("inference7-l40", Some(7), 1));
    assert_eq!(strange.performance, Performance::Highest, "GPUs go with no other");
    let strange = VmType::fixed(&listed("strange.medium", 22, 128.0)).unwrap();
    assert_eq!((strange.generation, strange.performance), (None, Performance::High));
    for broken in [listed("", 2, 4.0), listed("x.y", 0, 4.0), listed("x.y", 2, f64::NAN), Listed::default()] {
        assert_eq!(VmType::fixed(&broken), None);
    }
}

#[test]
fn a_performance_that_was_left_out_is_high() {
    assert!(VmType::same("tinav6.c4r8", "tinav6.c4r8p2"));
    assert!(VmType::same("m5.large", "m5.large"));
    assert!(!VmType::same("tinav6.c4r8", "tinav6.c4r8p1"));
    assert!(!VmType::same("m5.large", "tinav6.c4r8p1"));
}
