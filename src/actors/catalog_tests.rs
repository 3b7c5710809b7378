//! Whose offerings close when something is sold out.

use super::*;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

fn class(name: &str) -> ClassRef {
    ClassRef { group: "karpenter.outscale.com".into(), kind: "OutscaleNodeClass".into(), name: name.into() }
}

fn types() -> Types {
    let offering = |zone: &str| Offering {
        requirements: vec![
            Requirement::new(labels::CAPACITY_TYPE, Operator::In, [labels::ON_DEMAND]),
            Requirement::new(labels::ZONE, Operator::In, [zone]),
        ],
        price: 1.0,
        available: true,
        reservation_capacity: None,
    };
    let kind = |name: &str| InstanceType {
        name: name.into(),
        requirements: Vec::new(),
        capacity: Resources::new(),
        overhead: Resources::new(),
        attach_limits: BTreeMap::new(),
        offerings: vec![offering("a"), offering("b")],
    };
    Arc::new(["small", "large"].map(kind).map(Arc::new).into())
}

#[test]
fn a_shortage_of_one_nodeclass_closes_no_offering_of_another() {
    let lost = |class: Option<ClassRef>, kind: &str, zone: &str| SoldOut {
        class,
        instance_type: kind.into(),
        zone: Some(zone.into()),
        capacity_type: labels::ON_DEMAND.into(),
    };
    let all =
        [lost(None, "small", "a"), lost(Some(class("own")), "small", "b"), lost(Some(class("own")), "large", "a")];
    let sold_out: BTreeMap<SoldOut, Instant> = all.into_iter().map(|offering| (offering, Instant::now())).collect();
    let closed = |name: &str| {
        let left = less_sold_out(&types(), &class(name), &sold_out);
        let offerings = left.iter().flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)));
        let closed = offerings.filter(|(_, offering)| !offering.available);
        closed.map(|(kind, offering)| format!("{} {}", kind.name, offering.zone().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(closed("other"), ["small a"]);
    assert_eq!(closed("own"), ["small a", "small b", "large a"]);
    let types = types();
    let own = [(lost(Some(class("own")), "small", "a"), Instant::now())].into();
    assert!(Arc::ptr_eq(&less_sold_out(&types, &class("other"), &own), &types), "nothing of its list has changed");
}
