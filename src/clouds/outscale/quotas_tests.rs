//! Which quota is meant.

use super::*;

fn quota(name: &str, used: i64, most: i64) -> Quota {
    Quota { name: name.to_owned(), used_value: Some(used), max_value: Some(most), ..Quota::default() }
}

#[test]
fn the_quotas_that_the_machine_does_not_fit_into_are_named() {
    let kind = VmType::parse("tinav6.c4r10p2");
    let said = |quotas: &[Quota]| told(quotas, kind.as_ref());
    let all = [quota("vm_limit", 3, 20), quota("core_limit", 37, 40), quota("memory_limit", 30, 40)];
    assert!(said(&all).starts_with("reached: core_limit (37 of 40 used, 4 needed); ask Outscale"), "{}", said(&all));
    let all = [quota("vm_limit", 20, 20), quota("memory_limit", 31, 40), quota("sg_limit", 5, 5)];
    assert!(
        said(&all).starts_with("reached: vm_limit (20 of 20 used, 1 needed), memory_limit (31 of 40 used, 10 needed);"),
        "{}",
        said(&all)
    );
}

#[test]
fn a_quota_of_something_else_is_named_only_when_nothing_else_can_be_meant() {
    let all = [quota("vm_limit", 1, 20), quota("nic_limit", 5, 5), quota("eip_limit", 0, 5)];
    assert!(told(&all, None).starts_with("reached: nic_limit (5 of 5 used);"), "{}", told(&all, None));
    assert!(told(&all[..1], None).starts_with("no quota that can be read is reached;"));
    assert!(told(&[], None).starts_with("no quota"));
}
