//! The algebra of alternatives.

use super::*;
use crate::core::labels::{REGION, ZONE};
use crate::core::requirements::Operator;

fn zones(values: &[&str]) -> Vec<Requirement> {
    vec![Requirement::new(ZONE, Operator::In, values.iter().copied())]
}

fn told(all: &[Requirements]) -> Vec<String> {
    let mut all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.sort();
    all
}

fn start() -> Vec<Requirements> {
    vec![Requirements::new()]
}

#[test]
fn alternatives_that_differ_in_one_key_are_one() {
    let all = combined(&start(), &[zones(&["a"]), zones(&["b"]), zones(&["c"])]).unwrap();
    assert_eq!(told(&all), ["topology.kubernetes.io/zone In [a b c]"]);
}

#[test]
fn volumes_meet_where_both_can_be_reached() {
    let first = combined(&start(), &[zones(&["a"]), zones(&["b"])]).unwrap();
    let both = combined(&first, &[zones(&["b"]), zones(&["c"])]).unwrap();
    assert_eq!(told(&both), ["topology.kubernetes.io/zone In [b]"]);
    assert_eq!(combined(&both, &[zones(&["a", "c"])]), Err(Misfit::Apart));
}

#[test]
fn alternatives_that_differ_in_two_keys_stay_apart() {
    let place = |region: &str, zone: &str| {
        let region = Requirement::new(REGION, Operator::In, [region]);
        [vec![region], zones(&[zone])].concat()
    };
    let all = combined(&start(), &[place("north", "n1"), place("south", "s1"), place("north", "n2")]).unwrap();
    assert_eq!(
        told(&all),
        [
            "topology.kubernetes.io/region In [north], topology.kubernetes.io/zone In [n1 n2]",
            "topology.kubernetes.io/region In [south], topology.kubernetes.io/zone In [s1]",
        ]
    );
    let south = combined(&all, &[zones(&["s1", "n9"])]).unwrap();
    assert_eq!(told(&south).len(), 1, "{:?}", told(&south));
}

#[test]
fn an_alternative_without_conditions_is_one() {
    let all = combined(&start(), &[vec![]]).unwrap();
    assert!(all[0].is_empty());
}

#[test]
fn more_alternatives_than_are_tried_are_not_cut_but_said() {
    let rack = |at: usize| {
        let rack = Requirement::new("example.com/rack", Operator::In, [format!("r{at}")]);
        [vec![rack], zones(&[&format!("z{at}")])].concat()
    };
    let racks = |count: usize| (0..count).map(rack).collect::<Vec<_>>();
    assert_eq!(combined(&start(), &racks(MOST_ALTERNATIVES)).unwrap().len(), MOST_ALTERNATIVES);
    assert_eq!(combined(&start(), &racks(MOST_ALTERNATIVES + 1)), Err(Misfit::TooMany));
}
