//! Promises are counted from zero, and once for an object.

use super::*;

fn broken(object: &str) -> Broken {
    Broken { promise: Invariant::BudgetsHold, object: object.to_owned(), what: "it is".to_owned() }
}

#[test]
fn each_promise_that_is_watched_is_counted_from_zero_and_once_for_an_object() {
    let promises = Promises::default();
    assert!(promises.counts().eq(Invariant::WATCHED.map(|promise| (promise, 0))));
    for object in ["pod a", "pod a", "pod b"] {
        promises.broken(broken(object));
    }
    let counts: Vec<_> = promises.counts().filter(|(_, times)| *times > 0).collect();
    assert_eq!(counts, [(Invariant::BudgetsHold, 2)]);
}
