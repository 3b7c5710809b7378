//! Samples of prices.

use std::sync::Arc;

use crate::core::facts::{Claim, Offering, samples};
use crate::core::ids::PoolName;
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

use super::*;

fn is(key: &str, value: &str) -> Requirement {
    Requirement { key: key.into(), operator: Operator::In, values: vec![value.into()], min_values: None }
}

fn offering(zone: &str, capacity_type: &str, price: f64, available: bool) -> Offering {
    let requirements = vec![is(labels::ZONE, zone), is(labels::CAPACITY_TYPE, capacity_type)];
    Offering { requirements, price, available, reservation_capacity: None }
}

fn catalog() -> Catalog {
    let list = Arc::new(vec![Arc::new(InstanceType {
        name: "c-4x".into(),
        requirements: Vec::new(),
        capacity: Resources::new().with("cpu", 4000).with("memory", 8_000_000),
        overhead: Resources::new(),
        attach_limits: std::collections::BTreeMap::new(),
        offerings: vec![offering("a", "spot", 0.25, true), offering("b", "on-demand", 1.0, false)],
    })]);
    let pools = ["one", "two"].map(|pool| (PoolName::from(pool), Arc::clone(&list)));
    Catalog { epoch: 1, pools: pools.into_iter().collect(), ..Catalog::default() }
}

fn claim(name: &str, pool: &str, zone: &str, capacity_type: &str, launched: bool) -> Arc<Claim> {
    let words = [
        (labels::NODEPOOL, pool),
        (labels::INSTANCE_TYPE, "c-4x"),
        (labels::ZONE, zone),
        (labels::CAPACITY_TYPE, capacity_type),
    ];
    Arc::new(Claim {
        name: name.into(),
        uid: name.into(),
        labels: words.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        provider_id: launched.then(|| format!("kwok://{name}").as_str().into()),
        ..samples::claim()
    })
}

fn text(sample: impl FnOnce(&mut Samples)) -> String {
    let mut samples = Samples::new();
    sample(&mut samples);
    let mut text = String::new();
    samples.write(&mut text);
    text
}

#[test]
fn instance_types_that_pools_share_come_once() {
    let text = text(|samples| sample_catalog(samples, &catalog()));
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            r#"karpenter_cloudprovider_instance_type_cpu_cores{instance_type="c-4x"} 4"#,
            r#"karpenter_cloudprovider_instance_type_memory_bytes{instance_type="c-4x"} 8000"#,
            r#"karpenter_cloudprovider_instance_type_offering_available{instance_type="c-4x",capacity_type="on-demand",zone="b"} 0"#,
            r#"karpenter_cloudprovider_instance_type_offering_available{instance_type="c-4x",capacity_type="spot",zone="a"} 1"#,
            r#"karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="c-4x",capacity_type="on-demand",zone="b"} 1"#,
            r#"karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type="c-4x",capacity_type="spot",zone="a"} 0.25"#,
        ]
    );
}

#[test]
fn pools_cost_what_their_machines_cost() {
    let mut snapshot = Snapshot::default();
    for claim in [
        claim("a", "one", "a", "spot", true),
        claim("b", "one", "b", "on-demand", true),
        // Not launched, so not paid.
        claim("c", "one", "a", "spot", false),
        // No longer on sale.
        claim("d", "two", "z", "spot", true),
    ] {
        snapshot.claims.insert(claim.name.clone(), claim);
    }
    let text = text(|samples| sample_costs(samples, &snapshot, &catalog()));
    assert!(text.contains("karpenter_nodepools_cost_total{nodepool=\"one\"} 1.25\n"), "{text}");
    assert!(text.contains("karpenter_nodepools_cost_total{nodepool=\"two\"} 0\n"), "{text}");
    assert!(text.contains("# TYPE karpenter_nodepools_cost_total gauge\n"), "{text}");
}
