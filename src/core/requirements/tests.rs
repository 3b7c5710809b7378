//! The algebra's laws, and the cases that people care about by name.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Operator, Requirement, Requirements, ValueSet};
use crate::core::labels::{self, Labels};

fn set(operator: Operator, values: &[&str]) -> ValueSet {
    ValueSet::from_written(&Requirement::new("k", operator, values.iter().copied()))
}

/// Values on which two sets are compared: words, integers, and integers at the edges.
const PROBES: [&str; 14] =
    ["", "A", "B", "-1", "0", "1", "2", "5", "8", "9", "10", "9223372036854775807", "-9223372036854775808", "x9"];

fn any_set() -> impl Strategy<Value = ValueSet> {
    let values = || prop::collection::vec(proptest::sample::select(&PROBES[..]), 0..4);
    let bound = || proptest::sample::select(&["-1", "0", "1", "5", "9", "9223372036854775807"][..]);
    let one = prop_oneof![
        values().prop_map(ValueSet::of),
        values().prop_map(ValueSet::except),
        Just(ValueSet::any()),
        Just(ValueSet::none()),
        bound().prop_map(|n| set(Operator::Gt, &[n])),
        bound().prop_map(|n| set(Operator::Lt, &[n])),
        bound().prop_map(|n| set(Operator::Gte, &[n])),
        bound().prop_map(|n| set(Operator::Lte, &[n])),
    ];
    let least = prop::option::of(1..5_u32);
    (prop::collection::vec(one, 1..4), least)
        .prop_map(|(all, least)| all.into_iter().reduce(|a, b| a.intersection(&b)).unwrap().with_min_values(least))
}

fn any_requirements() -> impl Strategy<Value = Requirements> {
    prop::collection::vec((proptest::sample::select(&["a", "b", labels::ZONE][..]), any_set()), 0..4).prop_map(|all| {
        let mut requirements = Requirements::new();
        for (key, set) in all {
            requirements.add(&Arc::from(key), &set);
        }
        requirements
    })
}

fn any_labels() -> impl Strategy<Value = Labels> {
    const KEYS: [&str; 4] = ["a", "b", "failure-domain.beta.kubernetes.io/zone", "unasked"];
    let label = (proptest::sample::select(&KEYS[..]), proptest::sample::select(&PROBES[..]));
    prop::collection::vec(label, 0..4)
        .prop_map(|all| all.into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))).collect())
}

proptest! {
    #[test]
    fn labels_are_admitted_like_the_sets_they_make(asks in any_requirements(), labels in any_labels()) {
        prop_assert_eq!(asks.admits(&labels), Requirements::from_labels(&labels).compatible(&asks, |_| false).is_ok());
    }

    #[test]
    fn intersection_commutes(a in any_set(), b in any_set()) {
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
    }

    #[test]
    fn intersection_associates(a in any_set(), b in any_set(), c in any_set()) {
        prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
    }

    #[test]
    fn intersection_is_idempotent(a in any_set()) {
        prop_assert_eq!(a.intersection(&a), a);
    }

    #[test]
    fn a_value_is_in_both_or_not_in_the_intersection(a in any_set(), b in any_set()) {
        for value in PROBES {
            prop_assert_eq!(a.intersection(&b).has(value), a.has(value) && b.has(value), "{:?}", value);
        }
    }

    #[test]
    fn intersects_when_the_intersection_has_something(a in any_set(), b in any_set()) {
        prop_assert_eq!(a.has_intersection(&b), !a.intersection(&b).is_empty());
    }

    #[test]
    fn concrete_is_a_member(a in any_set()) {
        match a.concrete() {
            Some(value) => prop_assert!(a.has(&value), "{:?}", value),
            None => prop_assert!(a.is_empty()),
        }
    }

    #[test]
    fn written_form_says_the_same(a in any_set()) {
        let mut back = Requirements::new();
        for line in a.to_written(&"k".into()) {
            back.add(&line.key, &ValueSet::from_written(&line));
        }
        prop_assert_eq!(back.get("k"), Some(&a));
    }

    /// What is incompatible stays so when either side is narrowed.
    #[test]
    fn compatible_is_monotone(a in any_requirements(), b in any_requirements(), more in any_requirements()) {
        let mut wanted = b.clone();
        wanted.add_all(&more);
        if a.compatible(&wanted, labels::is_well_known).is_ok() {
            // A wish for absence is met by a key that is unknown: taking a wish away never hurts, unless it made "must be there" into
            // "must not be there".
            let weaker = b.iter().all(|(key, set)| set.allows_absence() || !wanted.get(key).unwrap().allows_absence());
            prop_assert!(!weaker || a.compatible(&b, labels::is_well_known).is_ok());
        }
    }
}

#[test]
fn gt_and_lt_at_the_edges() {
    assert_eq!(set(Operator::Gt, &["9223372036854775807"]), ValueSet::none());
    assert_eq!(set(Operator::Lt, &["-9223372036854775808"]), ValueSet::none());
    assert!(set(Operator::Gte, &["0"]).has("0") && !set(Operator::Gte, &["0"]).has("-1"));
    assert!(set(Operator::Lte, &["0"]).has("0") && !set(Operator::Lte, &["0"]).has("1"));
    assert_eq!(set(Operator::Gte, &["5"]), set(Operator::Gt, &["4"]));
    assert_eq!(set(Operator::Lte, &["5"]), set(Operator::Lt, &["6"]));
    let (gt1, gt9, lt1, lt9) =
        (set(Operator::Gt, &["1"]), set(Operator::Gt, &["9"]), set(Operator::Lt, &["1"]), set(Operator::Lt, &["9"]));
    assert_eq!(gt1.intersection(&lt9).bounds(), (Some(2), Some(8)));
    assert_eq!(gt1.intersection(&lt9).operator(), Operator::Exists);
    assert_eq!(gt9.intersection(&lt1), ValueSet::none());
    assert_eq!(gt1.intersection(&gt9), gt9);
}

#[test]
fn bounds_filter_lists_and_vanish_on_them() {
    let gt1 = set(Operator::Gt, &["1"]);
    assert_eq!(set(Operator::In, &["A"]).intersection(&gt1), ValueSet::none());
    assert_eq!(set(Operator::In, &["1", "9"]).intersection(&gt1), set(Operator::In, &["9"]));
    let not = set(Operator::NotIn, &["1", "2"]);
    assert_eq!(not.intersection(&gt1).values(), ["2".into()]);
    assert_eq!(not.intersection(&set(Operator::Lt, &["9"])).values().len(), 2);
    assert!(
        set(Operator::NotIn, &["2"])
            .intersection(&set(Operator::Gt, &["1"]))
            .intersection(&set(Operator::Lt, &["3"]))
            .is_empty()
    );
}

#[test]
fn exclusions_survive_beside_bounds() {
    let both = set(Operator::NotIn, &["2"]).intersection(&set(Operator::Gt, &["1"]));
    let lines = both.to_written(&"k".into());
    assert_eq!(lines.iter().map(|l| l.operator).collect::<Vec<_>>(), [Operator::Gte, Operator::NotIn]);
}

#[test]
fn the_larger_min_values_wins() {
    let (a, b) = (ValueSet::any().with_min_values(Some(2)), ValueSet::of(["x"]).with_min_values(Some(3)));
    assert_eq!(a.intersection(&b).min_values(), Some(3));
    assert_eq!(a.intersection(&ValueSet::none()).min_values(), Some(2));
}

#[test]
fn texts_are_karpenters() {
    assert_eq!(set(Operator::In, &["b", "a"]).to_string(), "In [a b]");
    assert_eq!(set(Operator::In, &["1", "2", "3", "4", "5", "6", "7"]).to_string(), "In [1 2 3 4 5 and 2 others]");
    assert_eq!(set(Operator::Gt, &["1"]).intersection(&set(Operator::Lt, &["9"])).to_string(), "Exists >=2 <=8");
    assert_eq!(ValueSet::none().with_min_values(Some(2)).to_string(), "DoesNotExist minValues 2");
}

fn labelled(pairs: &[(&str, &str)]) -> Requirements {
    let all: Labels = pairs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect();
    Requirements::from_labels(&all)
}

fn wanted(key: &str, operator: Operator, values: &[&str]) -> Requirements {
    Requirements::from_written(&[Requirement::new(key, operator, values.iter().copied())])
}

#[test]
fn an_unknown_key_suits_only_those_who_can_do_without() {
    let none = Requirements::new();
    for (operator, values, fine) in [
        (Operator::In, &["a"][..], false),
        (Operator::NotIn, &["a"], true),
        (Operator::Exists, &[], false),
        (Operator::DoesNotExist, &[], true),
        (Operator::Gt, &["1"], false),
        (Operator::Lt, &["1"], false),
    ] {
        assert_eq!(
            none.compatible(&wanted("custom", operator, values), labels::is_well_known).is_ok(),
            fine,
            "{operator:?}"
        );
        assert!(
            none.compatible(&wanted(labels::ZONE, operator, values), labels::is_well_known).is_ok(),
            "{operator:?}"
        );
        assert_eq!(none.compatible(&wanted(labels::ZONE, operator, values), |_| false).is_ok(), fine, "{operator:?}");
    }
}

#[test]
fn known_keys_must_share_a_value_or_an_absence() {
    let zone_a = labelled(&[(labels::ZONE, "a")]);
    assert!(zone_a.compatible(&wanted(labels::ZONE, Operator::In, &["a", "b"]), |_| false).is_ok());
    let refused = zone_a.compatible(&wanted(labels::ZONE, Operator::In, &["b"]), |_| false).unwrap_err();
    assert_eq!(refused.to_string(), "topology.kubernetes.io/zone: In [b] is wanted, but In [a] is offered");
    assert!(wanted("k", Operator::DoesNotExist, &[]).intersects(&wanted("k", Operator::NotIn, &["a"])).is_ok());
    assert!(wanted("k", Operator::DoesNotExist, &[]).intersects(&wanted("k", Operator::Exists, &[])).is_err());
}

#[test]
fn deprecated_keys_count_as_their_stable_forms() {
    let old = wanted("failure-domain.beta.kubernetes.io/zone", Operator::In, &["a"]);
    assert!(old.get(labels::ZONE).is_some());
    assert_eq!(labelled(&[("beta.kubernetes.io/arch", "arm64")]).to_string(), "kubernetes.io/arch In [arm64]");
}
