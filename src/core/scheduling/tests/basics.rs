//! Packing, pools, limits, daemons, existing nodes.

use super::super::Reason;
use super::build::*;
use crate::core::labels;

#[test]
fn a_pod_gets_the_cheapest_node_that_holds_it() {
    let plan = Scene::new().with_pods(pods("web", 1, &shape(500, 512))).solve();
    assert_eq!(plan.claims.len(), 1);
    let claim = &plan.claims[0];
    assert_eq!(claim.instance_types[0].as_str(), "m-1x");
    assert_eq!(claim.instance_types.len(), 7, "every type that holds the pod is listed");
    assert!((claim.price - 0.033).abs() < 1e-9, "{}", claim.price);
    assert!(claim.draft.name.as_str().starts_with("default-"));
    assert_eq!(claim.draft.labels.get(labels::NODEPOOL).map(|v| &**v), Some("default"));
    assert_eq!(claim.draft.labels.get("karpenter.kwok.sh/kwoknodeclass").map(|v| &**v), Some("default"));
    assert_eq!(claim.draft.annotations.get(labels::NODEPOOL_HASH).map(|v| &**v), Some("12345"));
    assert_eq!(claim.draft.requests, amounts(500, 512).with("pods", 1000));
    assert!(
        claim.draft.requirements.iter().all(|r| !r.key.starts_with("karpenter.sh/reg")),
        "{:?}",
        claim.draft.requirements
    );
}

#[test]
fn many_pods_fill_large_nodes() {
    let plan = Scene::new().with_pods(pods("web", 1000, &shape(500, 512))).solve();
    assert!(plan.refused.is_empty());
    assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 1000);
    // 500 cores at 0.033 a core, and a little for overhead and pods per node.
    assert!(plan.price < 500.0 * 0.033 * 1.03, "{} for {} nodes", plan.price, plan.claims.len());
}

#[test]
fn a_pod_too_large_is_refused_with_the_resource() {
    let plan = Scene::new().with_pods(pods("web", 1, &shape(100_000, 512))).solve();
    assert!(plan.claims.is_empty());
    assert!(matches!(&plan.refused[0].reasons[0], Reason::TooLarge { resource, .. } if resource.as_str() == "cpu"));
}
