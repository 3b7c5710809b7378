//! Sums and comparisons of amounts.

use super::*;

fn amounts(all: &[(&str, i64)]) -> Resources {
    all.iter().map(|(name, milli)| (ResourceName::from(*name), *milli)).collect()
}

#[test]
fn adding_counts_what_either_side_mentions() {
    let mut sum = amounts(&[("cpu", 1), ("memory", 2)]);
    sum.add(&amounts(&[("memory", 3), ("example.com/gpu", 4)]));
    assert_eq!(sum, amounts(&[("cpu", 1), ("memory", 5), ("example.com/gpu", 4)]));
    sum.add(&amounts(&[("cpu", i64::MAX)]));
    assert_eq!(sum.get(&ResourceName::Cpu), i64::MAX, "too much is the most there is");
}

#[test]
fn what_is_overdrawn_stays_visible() {
    let mut left = amounts(&[("cpu", 1)]);
    left.subtract(&amounts(&[("cpu", 3), ("memory", 2)]));
    assert_eq!(left, amounts(&[("cpu", -2), ("memory", -2)]));
}

#[test]
fn the_larger_of_each_amount_is_kept() {
    let mut most = Resources::new();
    most.raise(&amounts(&[("cpu", 1)]));
    most.raise(&amounts(&[("cpu", 3), ("memory", 2)]));
    most.raise(&amounts(&[("cpu", 2)]));
    assert_eq!(most, amounts(&[("cpu", 3), ("memory", 2)]));
}

#[test]
fn what_is_not_there_is_nothing() {
    let room = amounts(&[("cpu", 2)]);
    assert!(amounts(&[("cpu", 2)]).fits(&room));
    assert!(amounts(&[("example.com/gpu", 0)]).fits(&room), "nothing of what is not there fits");
    assert!(!amounts(&[("cpu", 3)]).fits(&room));
    assert!(!amounts(&[("example.com/gpu", 1)]).fits(&room));
    assert!(Resources::new().fits(&Resources::new()));
}
