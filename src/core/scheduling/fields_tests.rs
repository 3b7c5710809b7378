//! Reasons as data: nothing that the sentence says is lost.

use super::Datum;
use crate::core::facts::{Effect, Taint};
use crate::core::ids::ObjectKey;
use crate::core::scheduling::{Reason, VolumeFault};

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

/// The fields in the order of their names.
fn fields(reason: &Reason) -> Vec<(&'static str, Datum)> {
    reason.fields().into_iter().collect()
}

#[test]
fn a_limit_says_what_is_left_as_kubernetes_writes_amounts() {
    let limit = |resource: &str, left| Reason::Limit { pool: "a".into(), resource: resource.into(), left };
    assert_eq!(fields(&limit("cpu", 1500)), [("left", text("1500m")), ("resource", text("cpu"))]);
    assert_eq!(fields(&limit("memory", 1000 << 31)), [("left", text("2Gi")), ("resource", text("memory"))]);
}

#[test]
fn a_spread_has_a_count_for_each_domain() {
    let counts = vec![("zone-a".into(), 2), ("zone-b".into(), 0)];
    let spread = Reason::Spread { key: "zone".into(), max_skew: 1, min_domains: 0, counts };
    let domains = Datum::Counts(vec![("zone-a".into(), 2), ("zone-b".into(), 0)]);
    let numbers = [("maxSkew", Datum::Number(1)), ("minDomains", Datum::Number(0))];
    assert_eq!(fields(&spread), [[("domains", domains), ("key", text("zone"))], numbers].concat());
}

#[test]
fn what_is_wanted_and_what_is_offered_stand_side_by_side() {
    let (key, wanted, offered) = ("arch".into(), "In [arm64]".into(), "In [amd64]".into());
    let differs = Reason::Requirement { pool: "a".into(), key, wanted, offered };
    assert_eq!(
        fields(&differs),
        [("key", text("arch")), ("offered", text("In [amd64]")), ("wanted", text("In [arm64]"))]
    );
    let taint = Reason::Taint { pool: "a".into(), taint: Taint::new("gpu", Effect::NoSchedule) };
    assert_eq!(fields(&taint), [("effect", text("NoSchedule")), ("key", text("gpu")), ("value", text(""))]);
}

#[test]
fn a_volume_says_its_fault_and_the_objects() {
    let claim = ObjectKey::new("shop", "data");
    let missing = Reason::Volume(VolumeFault::ClassMissing { claim, class: "fast".into() });
    assert_eq!(
        fields(&missing),
        [("claim", text("shop/data")), ("class", text("fast")), ("fault", text("ClassMissing"))]
    );
}
