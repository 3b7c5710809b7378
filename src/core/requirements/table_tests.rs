//! Karpenter's table of intersections, and the other behaviours of its suite of requirements that the laws in `tests.rs` do not spell out.

use super::{Operator, Requirement, Requirements, ValueSet};
use crate::core::labels::{self, is_well_known};

/// Every pair of the sets that Karpenter's suite tries, written `Operator values`, and what both have in common.
const TABLE: &str = "
    Exists & Exists = Exists
    Exists & DoesNotExist = DoesNotExist
    Exists & In A = In [A]
    Exists & In B = In [B]
    Exists & In A B = In [A B]
    Exists & In 1 = In [1]
    Exists & In 9 = In [9]
    Exists & In 1 9 = In [1 9]
    Exists & NotIn A = NotIn [A]
    Exists & NotIn 1 2 = NotIn [1 2]
    Exists & Gt 1 = Exists >=2
    Exists & Gt 9 = Exists >=10
    Exists & Lt 1 = Exists <=0
    Exists & Lt 9 = Exists <=8
    DoesNotExist & DoesNotExist = DoesNotExist
    DoesNotExist & In A = DoesNotExist
    DoesNotExist & In B = DoesNotExist
    DoesNotExist & In A B = DoesNotExist
    DoesNotExist & In 1 = DoesNotExist
    DoesNotExist & In 9 = DoesNotExist
    DoesNotExist & In 1 9 = DoesNotExist
    DoesNotExist & NotIn A = DoesNotExist
    DoesNotExist & NotIn 1 2 = DoesNotExist
    DoesNotExist & Gt 1 = DoesNotExist
    DoesNotExist & Gt 9 = DoesNotExist
    DoesNotExist & Lt 1 = DoesNotExist
    DoesNotExist & Lt 9 = DoesNotExist
    In A & In A = In [A]
    In A & In B = DoesNotExist
    In A & In A B = In [A]
    In A & In 1 = DoesNotExist
    In A & In 9 = DoesNotExist
    In A & In 1 9 = DoesNotExist
    In A & NotIn A = DoesNotExist
    In A & NotIn 1 2 = In [A]
    In A & Gt 1 = DoesNotExist
    In A & Gt 9 = DoesNotExist
    In A & Lt 1 = DoesNotExist
    In A & Lt 9 = DoesNotExist
    In B & In B = In [B]
    In B & In A B = In [B]
    In B & In 1 = DoesNotExist
    In B & In 9 = DoesNotExist
    In B & In 1 9 = DoesNotExist
    In B & NotIn A = In [B]
    In B & NotIn 1 2 = In [B]
    In B & Gt 1 = DoesNotExist
    In B & Gt 9 = DoesNotExist
    In B & Lt 1 = DoesNotExist
    In B & Lt 9 = DoesNotExist
    In A B & In A B = In [A B]
    In A B & In 1 = DoesNotExist
    In A B & In 9 = DoesNotExist
    In A B & In 1 9 = DoesNotExist
    In A B & NotIn A = In [B]
    In A B & NotIn 1 2 = In [A B]
    In A B & Gt 1 = DoesNotExist
    In A B & Gt 9 = DoesNotExist
    In A B & Lt 1 = DoesNotExist
    In A B & Lt 9 = DoesNotExist
    In 1 & In 1 = In [1]
    In 1 & In 9 = DoesNotExist
    In 1 & In 1 9 = In [1]
    In 1 & NotIn A = In [1]
    In 1 & NotIn 1 2 = DoesNotExist
    In 1 & Gt 1 = DoesNotExist
    In 1 & Gt 9 = DoesNotExist
    In 1 & Lt 1 = DoesNotExist
    In 1 & Lt 9 = In [1]
    In 9 & In 9 = In [9]
    In 9 & In 1 9 = In [9]
    In 9 & NotIn A = In [9]
    In 9 & NotIn 1 2 = In [9]
    In 9 & Gt 1 = In [9]
    In 9 & Gt 9 = DoesNotExist
    In 9 & Lt 1 = DoesNotExist
    In 9 & Lt 9 = DoesNotExist
    In 1 9 & In 1 9 = In [1 9]
    In 1 9 & NotIn A = In [1 9]
    In 1 9 & NotIn 1 2 = In [9]
    In 1 9 & Gt 1 = In [9]
    In 1 9 & Gt 9 = DoesNotExist
    In 1 9 & Lt 1 = DoesNotExist
    In 1 9 & Lt 9 = In [1]
    NotIn A & NotIn A = NotIn [A]
    NotIn A & NotIn 1 2 = NotIn [1 2 A]
    NotIn A & Gt 1 = Exists >=2
    NotIn A & Gt 9 = Exists >=10
    NotIn A & Lt 1 = Exists <=0
    NotIn A & Lt 9 = Exists <=8
    NotIn 1 2 & NotIn 1 2 = NotIn [1 2]
    NotIn 1 2 & Gt 1 = NotIn [2] >=2
    NotIn 1 2 & Gt 9 = Exists >=10
    NotIn 1 2 & Lt 1 = Exists <=0
    NotIn 1 2 & Lt 9 = NotIn [1 2] <=8
    Gt 1 & Gt 1 = Exists >=2
    Gt 1 & Gt 9 = Exists >=10
    Gt 1 & Lt 1 = DoesNotExist
    Gt 1 & Lt 9 = Exists >=2 <=8
    Gt 9 & Gt 9 = Exists >=10
    Gt 9 & Lt 1 = DoesNotExist
    Gt 9 & Lt 9 = DoesNotExist
    Lt 1 & Lt 1 = Exists <=0
    Lt 1 & Lt 9 = Exists <=0
    Lt 9 & Lt 9 = Exists <=8
";

fn requirement(text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let operator = words.next().and_then(Operator::parse).expect("the table names operators");
    Requirement::new("k", operator, words)
}

fn set(text: &str) -> ValueSet {
    ValueSet::from_written(&requirement(text))
}

/// The sets of the table.
fn all() -> Vec<&'static str> {
    let mut all: Vec<&str> = TABLE.lines().filter_map(|line| line.split_once(" & ")).map(|(a, _)| a.trim()).collect();
    all.dedup();
    all
}

#[test]
fn the_table_of_intersections_holds_from_both_sides() {
    let mut seen = 0;
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (pair, both) = line.split_once(" = ").unwrap();
        let (a, b) = pair.split_once(" & ").unwrap();
        assert_eq!(set(a).intersection(&set(b)).to_string(), both, "{a} and {b}");
        assert_eq!(set(b).intersection(&set(a)).to_string(), both, "{b} and {a}");
        seen += 1;
    }
    assert_eq!((seen, all().len()), (105, 14));
}

#[test]
fn min_values_of_one_side_are_kept_and_of_two_the_larger() {
    let with = |text, least| set(text).with_min_values(least);
    for (a, b) in all().into_iter().flat_map(|a| all().into_iter().map(move |b| (a, b))) {
        for (left, right, both) in [(Some(2), None, Some(2)), (None, Some(3), Some(3)), (Some(2), Some(3), Some(3))] {
            assert_eq!(with(a, left).intersection(&with(b, right)).min_values(), both, "{a} and {b}");
        }
    }
}

#[test]
fn each_operator_has_the_values_that_it_says() {
    let probes = ["A", "B", "1", "2", "9"];
    let has = |text| probes.into_iter().filter(|value| set(text).has(value)).collect::<Vec<_>>().join(" ");
    for (text, values) in [
        ("Exists", "A B 1 2 9"),
        ("DoesNotExist", ""),
        ("In A", "A"),
        ("In A B", "A B"),
        ("In 1 9", "1 9"),
        ("NotIn A", "B 1 2 9"),
        ("NotIn 1 2", "A B 9"),
        ("Gt 1", "2 9"),
        ("Gt 9", ""),
        ("Lt 1", ""),
        ("Lt 9", "1 2"),
        ("Gte 2", "2 9"),
        ("Lte 2", "1 2"),
    ] {
        assert_eq!(has(text), values, "{text}");
    }
}

#[test]
fn bounds_read_as_exists_and_an_empty_list_as_does_not_exist() {
    for text in ["Gt 1", "Lt 1", "Gte 1", "Lte 1", "Exists"] {
        assert_eq!(set(text).operator(), Operator::Exists, "{text}");
    }
    assert_eq!(set("In").operator(), Operator::DoesNotExist);
    assert_eq!((set("In A").operator(), set("NotIn A").operator()), (Operator::In, Operator::NotIn));
}

#[test]
fn sizes_count_values_or_what_is_left_of_all() {
    assert_eq!((set("DoesNotExist").size(), set("In A").size(), set("In A B").size()), (0, 1, 2));
    assert_eq!(
        (set("Exists").size(), set("NotIn A").size(), set("NotIn 1 2").size()),
        (u64::MAX, u64::MAX - 1, u64::MAX - 2)
    );
    assert_eq!((set("Gt 1").size(), set("Lt 9").size()), (u64::MAX, u64::MAX), "bounds do not count");
}

#[test]
fn what_is_written_back_says_the_same_in_bounds_that_include_their_ends() {
    let written = |set: ValueSet| {
        let lines = set.to_written(&"k".into());
        lines.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ")
    };
    for (text, back) in [
        ("Exists", "k Exists"),
        ("DoesNotExist", "k DoesNotExist"),
        ("In B A", "k In [A B]"),
        ("NotIn A", "k NotIn [A]"),
        ("Gt 1", "k Gte [2]"),
        ("Lt 9", "k Lte [8]"),
        ("Gte 1", "k Gte [1]"),
        ("Lte 9", "k Lte [9]"),
    ] {
        assert_eq!(written(set(text)), back, "{text}");
    }
    let within = set("Gt 1").intersection(&set("Lt 9")).with_min_values(Some(3));
    assert_eq!(written(within), "k Gte [2] minValues 3, k Lte [8] minValues 3");
}

#[test]
fn the_tighter_of_two_bounds_wins_whichever_way_it_is_written() {
    for (a, b, both) in [
        ("Gt 4", "Gte 4", "Exists >=5"),
        ("Gt 4", "Gte 9", "Exists >=9"),
        ("Lt 4", "Lte 4", "Exists <=3"),
        ("Lt 9", "Lte 4", "Exists <=4"),
    ] {
        assert_eq!(set(a).intersection(&set(b)).to_string(), both);
    }
    assert_eq!((set("Gte 5"), set("Lte 5")), (set("Gt 4"), set("Lt 6")));
}

#[test]
fn sets_are_compatible_when_they_share_a_value_or_can_both_do_without() {
    let of = |text: &str| Requirements::from_written(&[requirement(text)]);
    for (a, b) in all().into_iter().flat_map(|a| all().into_iter().map(move |b| (a, b))) {
        let absent = |text: &str| text.starts_with("NotIn") || text == "DoesNotExist";
        let share = !set(a).intersection(&set(b)).is_empty();
        let fine = of(a).compatible(&of(b), is_well_known).is_ok();
        assert_eq!(fine, share || absent(a) && absent(b), "{a} and {b}");
    }
}

#[test]
fn texts_are_sorted_by_key_and_leave_the_host_out() {
    let lines = [
        Requirement::new("b", Operator::In, ["y", "x"]),
        Requirement::new(labels::HOSTNAME, Operator::In, ["host"]),
        Requirement::new("a", Operator::Exists, [""; 0]),
    ];
    assert_eq!(Requirements::from_written(&lines).to_string(), "a Exists, b In [x y]");
}
