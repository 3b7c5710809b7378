//! Numbers as people read them.

use super::*;

#[test]
fn counts_have_their_thousands_apart() {
    assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([counted(1, "node"), counted(2000, "node")], ["1 node", "2,000 nodes"]);
}

#[test]
fn money_has_cents_and_more_where_they_say_nothing() {
    assert_eq!([0.0, 0.0312, 0.1, 1234.567, -2.5].map(dollars), ["$0.00", "$0.0312", "$0.10", "$1,234.57", "-$2.50"]);
}

#[test]
fn spans_are_as_exact_as_they_are_short() {
    assert_eq!(
        [0.0, 0.44, 52.4, 61.0, 3600.0, 22_359.0, 86_400.0, 100_000.0].map(span),
        ["0s", "0.4s", "52s", "1m 1s", "1h", "6h 12m", "1d", "1d 3h 46m"]
    );
}

#[test]
fn memory_is_in_binary_units() {
    assert_eq!(
        [512.0, 1024.0, 100_663_296.0, 1.5 * 1024f64.powi(4)].map(bytes),
        ["512 B", "1.0 KiB", "96.0 MiB", "1.5 TiB"]
    );
}

#[test]
fn a_share_of_nothing_is_no_number() {
    assert_eq!([percent(97.0, 100.0), percent(0.0, 0.0)], ["97 %", "–"]);
}
