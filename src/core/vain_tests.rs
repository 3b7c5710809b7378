//! Which nodes are not bought for pods that have got enough of them in vain.

use super::*;
use crate::core::facts::samples::{pod, ready_pool, serving, serving_node};
use crate::core::facts::{Fact, Fold};
use crate::core::ids::NodeName;
use crate::core::statics;

/// So many nodes that serve, named `node-0` and so on, with their NodeClaims `claim-0` and so on, and the pods `a` and `b` that wait.
fn cluster(nodes: usize) -> Fold {
    let mut fold = Fold::default();
    for number in 0..nodes {
        let (mut claim, mut node) = (serving(), serving_node());
        claim.name = format!("claim-{number}").as_str().into();
        claim.provider_id = Some(format!("sim://{number}").as_str().into());
        node.name = format!("node-{number}").as_str().into();
        node.provider_id.clone_from(&claim.provider_id);
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    for name in ["a", "b"] {
        fold.fold(Fact::PodSeen(Arc::new(pod(name, None))));
    }
    fold
}

/// A plan with a NodeClaim for each group of pods, at 1 USD per hour each.
fn plan(groups: &[&[&str]]) -> Plan {
    let claim = |pods: &&[&str]| PlannedClaim {
        draft: statics::draft(&ready_pool(), "new".into(), |_| false),
        pods: pods.iter().map(|name| Arc::new(pod(name, None))).collect(),
        instance_types: Arc::from([]),
        price: 1.0,
    };
    let claims: Vec<PlannedClaim> = groups.iter().map(claim).collect();
    Plan { price: claims.len() as f64, claims, ..Plan::default() }
}

/// What is left of a plan: how many NodeClaims, and who is refused and why.
fn left(bought: &Bought, fold: &Fold, groups: &[&[&str]]) -> (usize, Vec<String>) {
    let mut plan = plan(groups);
    bought.withhold(&mut plan, fold.snapshot());
    assert!((plan.claims.len() as f64 - plan.price).abs() < 1e-9, "what is withheld costs nothing");
    let refused = plan.refused.iter().map(|refusal| format!("{}: {}", refusal.pod, refusal.reasons[0]));
    (plan.claims.len(), refused.collect())
}

/// Two NodeClaims for the pod `a`.
fn twice() -> Bought {
    let mut bought = Bought::default();
    bought.note(&"claim-0".into(), &[Arc::new(pod("a", None))]);
    bought.note(&"claim-1".into(), &[Arc::new(pod("a", None))]);
    bought
}

#[test]
fn no_third_node_is_bought_for_a_pod_while_two_stand_empty() {
    let (claims, refused) = left(&twice(), &cluster(2), &[&["a"]]);
    assert_eq!((claims, refused.len()), (0, 1));
    assert!(
        refused[0].starts_with("a: ") && refused[0].contains("node-0") && refused[0].contains("node-1"),
        "{refused:?}"
    );
    assert_eq!(left(&twice(), &cluster(1), &[&["a"]]).0, 1, "one of them is gone");
}

#[test]
fn what_others_need_is_bought() {
    assert_eq!(left(&twice(), &cluster(2), &[&["a"], &["b"]]).0, 1);
    assert_eq!(left(&twice(), &cluster(2), &[&["a", "b"]]).0, 1);
}

#[test]
fn a_node_that_is_in_use_or_does_not_serve_was_not_bought_in_vain() {
    let mut used = cluster(2);
    used.fold(Fact::PodSeen(Arc::new(pod("other", Some("node-1")))));
    assert_eq!(left(&twice(), &used, &[&["a"]]).0, 1);
    let mut cordoned = cluster(2);
    let mut node = (**cordoned.snapshot().nodes.get(&NodeName::from("node-1")).unwrap()).clone();
    node.cordoned = true;
    cordoned.fold(Fact::NodeSeen(Arc::new(node)));
    assert_eq!(left(&twice(), &cordoned, &[&["a"]]).0, 1);
}

#[test]
fn pods_that_are_bound_or_gone_are_forgotten() {
    let mut bought = twice();
    bought.forget(cluster(2).snapshot());
    assert_eq!(bought.0.len(), 1);
    bought.forget(Fold::default().snapshot());
    assert_eq!(bought.0.len(), 0);
}

#[test]
fn what_the_api_server_refused_is_not_remembered() {
    let (fold, mut bought) = (cluster(1), twice());
    bought.note(&"refused".into(), &[Arc::new(pod("b", None))]);
    bought.forget(fold.snapshot());
    let remembered: Vec<_> = bought.0.into_values().flatten().collect();
    assert_eq!(remembered, ["claim-0".into()], "claim-1 and the refused one are not there");
}

#[test]
fn no_node_is_bought_for_pods_that_went_while_the_plan_was_made() {
    let mut plan = plan(&[&["a", "gone"], &["gone"]]);
    drop_unwanted(&mut plan, |pod| *pod == pod_uid("a"));
    assert_eq!((plan.claims.len(), plan.claims[0].pods.len()), (1, 2));
    assert!((plan.price - 1.0).abs() < 1e-9);
}

fn pod_uid(name: &str) -> PodUid {
    pod(name, None).uid
}
