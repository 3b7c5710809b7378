//! Which quota is meant, and what it leaves.

use super::*;

/// `tinav6.c4r10p2`.
const SIZE: Size = Size { cores: 4, gib: 10 };

fn quota(name: &str, used: i64, most: i64) -> Quota {
    Quota { name: name.to_owned(), used_value: Some(used), max_value: Some(most), ..Quota::default() }
}

fn told(quotas: &[Quota]) -> String {
    shortage(quotas, SIZE).told
}

#[test]
fn the_quotas_that_the_machine_does_not_fit_into_are_named() {
    let all = [quota("vm_limit", 3, 20), quota("core_limit", 37, 40), quota("memory_limit", 30, 40)];
    assert!(told(&all).starts_with("reached: core_limit (37 of 40 used, 4 needed); ask Outscale"), "{}", told(&all));
    let all = [quota("vm_limit", 20, 20), quota("memory_limit", 31, 40), quota("sg_limit", 5, 5)];
    assert!(
        told(&all).starts_with("reached: vm_limit (20 of 20 used, 1 needed), memory_limit (31 of 40 used, 10 needed);"),
        "{}",
        told(&all)
    );
}

#[test]
fn a_quota_of_something_else_is_named_only_when_nothing_else_can_be_meant() {
    let all = [quota("vm_limit", 1, 20), quota("nic_limit", 5, 5), quota("eip_limit", 0, 5)];
    assert!(told(&all).starts_with("reached: nic_limit (5 of 5 used);"), "{}", told(&all));
    assert!(told(&all[..1]).starts_with("no quota that can be read is reached;"));
    assert!(told(&[]).starts_with("no quota"));
}

#[test]
fn what_is_left_says_which_machines_there_is_room_for() {
    let size = |cores, gib| Size { cores, gib };
    let all = [quota("vm_limit", 3, 20), quota("core_limit", 37, 40), quota("memory_limit", 20, 40)];
    let left = shortage(&all, SIZE).left.unwrap();
    assert!(left.has_room_for(size(3, 20)) && !left.has_room_for(size(3, 21)) && !left.has_room_for(size(4, 1)));
    let left = shortage(&[quota("vm_limit", 20, 20)], SIZE).left.unwrap();
    assert!(!left.has_room_for(size(1, 1)), "no machine is small enough");
    // Of two that count the same, the smaller one counts.
    let left = shortage(&[quota("core_limit", 0, 100), quota("cpu_of_region", 1, 3)], SIZE).left.unwrap();
    assert!(left.has_room_for(size(2, 99)) && !left.has_room_for(size(3, 1)));
    for unknown in [&all[..1], &[quota("nic_limit", 5, 5)], &[]] {
        assert_eq!(shortage(unknown, SIZE).left, None, "{unknown:?}");
    }
    assert!(SIZE.holds(SIZE) && size(4, 11).holds(SIZE) && !size(8, 9).holds(SIZE));
}

#[test]
fn of_machines_that_are_planned_together_those_that_find_no_room_are_counted_and_the_quotas_named() {
    let all = [
        quota("vm_limit", 17, 20),
        quota("core_limit", 30, 40),
        quota("memory_limit", 0, 400),
        quota("nic_limit", 5, 5),
    ];
    assert_eq!(beyond(&all, &[SIZE, SIZE]), None);
    let small = Size { cores: 1, gib: 2 };
    assert_eq!(
        beyond(&all, &[SIZE, SIZE, SIZE, small]).unwrap(),
        "the account's quotas would refuse 1 of 4 machines: vm_limit (17 of 20 used, 4 needed), core_limit (30 of 40 used, 13 needed); \
         ask Outscale for more, or lower spec.limits of NodePools",
        "the third finds no core, and the fourth is small enough for what is left"
    );
    let used_up = [quota("vm_limit", 20, 20)];
    assert!(
        beyond(&used_up, &[small]).unwrap().starts_with("the account's quotas would refuse 1 of 1 machines: vm_limit")
    );
    assert_eq!(beyond(&[], &[small]), None, "what cannot be read is not made up");
}
