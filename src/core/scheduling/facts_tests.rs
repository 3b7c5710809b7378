//! Reasons are few, and each says something of its own.

use super::{fewest, smallest};
use crate::core::facts::{Effect, Taint};
use crate::core::scheduling::Reason;

fn taint(pool: &str) -> Reason {
    Reason::Taint { pool: pool.into(), taint: Taint::new("gpu", Effect::NoSchedule) }
}

#[test]
fn what_many_pools_say_alike_is_said_once() {
    let pools = ["a", "b", "c", "d", "e", "f"];
    let all = smallest(pools.iter().map(|pool| taint(pool)).chain([Reason::NoCatalog { pool: "z".into() }]).collect());
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].to_string().starts_with("NodePool a, b, c, d and 2 others has the taint gpu"), "{}", all[0]);
}

#[test]
fn a_constraint_between_pods_speaks_for_the_pools_that_it_closes() {
    let spread = Reason::Spread { key: "zone".into(), max_skew: 1, min_domains: 0, counts: vec![("a".into(), 1)] };
    let all = smallest(vec![Reason::Topology { pool: "a".into() }, spread.clone(), taint("b")]);
    assert_eq!(all, [spread, taint("b")]);
    assert_eq!(smallest(vec![Reason::Topology { pool: "a".into() }]).len(), 1, "alone it has to be said");
}

#[test]
fn where_no_pool_admits_the_pod_the_pools_speak_first() {
    let spread = Reason::Spread { key: "zone".into(), max_skew: 1, min_domains: 0, counts: vec![("a".into(), 1)] };
    assert_eq!(smallest(vec![spread.clone(), taint("b"), taint("a")]).last(), Some(&spread));
    assert_eq!(smallest(vec![spread.clone()]), [spread], "where there are no pools it is all there is to say");
}

#[test]
fn the_fewest_conditions_are_those_that_are_enough_alone_or_a_set_of_which_none_may_stay() {
    let all = ['a', 'b', 'c'];
    let lacks = |kept: &[char], some: &[char]| some.iter().all(|one| !kept.contains(one));
    assert_eq!(fewest(&all, |kept| lacks(kept, &['b'])), Some(vec!['b']));
    assert_eq!(fewest(&all, |kept| lacks(kept, &['a']) || lacks(kept, &['c'])), Some(vec!['a', 'c']));
    assert_eq!(fewest(&all, |kept| lacks(kept, &['a', 'c'])), Some(vec!['a', 'c']));
    assert_eq!(fewest(&all, |_| true), Some(vec![]), "it is possible as it is");
    assert_eq!(fewest(&all, |_| false), None, "they are not in the way");
}
