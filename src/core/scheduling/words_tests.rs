//! Amounts are written as people write them.

use super::super::reason::Reason;
use super::amount_text;

#[test]
fn amounts_are_readable() {
    let text = |name: &str, milli| amount_text(&name.into(), milli);
    assert_eq!(text("cpu", 400_100), "400.1 cpu");
    assert_eq!(text("cpu", 100), "100m cpu");
    assert_eq!(text("cpu", 2000), "2 cpu");
    assert_eq!(text("hugepages-2Mi", 4_194_304_000), "4Mi hugepages-2Mi");
    assert_eq!(text("memory", 3_221_225_472_000), "3072Mi memory");
    assert_eq!(text("nvidia.com/gpu", 8000), "8 nvidia.com/gpu");
    // 1Ei, and whatever else is beyond what is counted.
    assert_eq!(text("memory", i64::MAX), "more than 8Pi memory");
    assert_eq!(text("cpu", i64::MAX), "more than 9223372036854775 cpu");
    assert_eq!(text("memory", i64::MAX - 1), "8796093022Mi memory");
}

#[test]
fn a_spread_that_wants_more_domains_than_there_are_says_so() {
    let counts = || ["a", "b"].map(|zone| (zone.into(), 1)).to_vec();
    let spread = |min_domains| Reason::Spread { key: "zone".into(), max_skew: 1, min_domains, counts: counts() };
    assert!(spread(3).to_string().ends_with("; would fit with a lower minDomains, a higher maxSkew, or more domains"));
    assert!(!spread(2).to_string().contains("minDomains"), "so many there are");
}

#[test]
fn no_new_node_has_a_name_that_somebody_asks_for() {
    let (key, wanted, offered) = ("kubernetes.io/hostname".into(), "In [n1]".into(), "DoesNotExist".into());
    let text = Reason::Requirement { pool: "a".into(), key, wanted, offered }.to_string();
    assert!(
        text.starts_with("NodePool a names each of its new nodes anew, but the pod wants") && !text.contains("agreed"),
        "{text}"
    );
}
