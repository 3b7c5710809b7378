//! What is remembered, and for how long.

use super::*;
use crate::core::facts::ClaimDraft;
use crate::core::facts::samples::{pod, start};
use crate::core::ids::ClassRef;
use crate::core::resources::Resources;
use crate::core::scheduling::PlannedClaim;

/// A decision about these pods, with this NodeClaim or none.
fn decision(pods: impl IntoIterator<Item = String>, claim: Option<&str>) -> Decision {
    let pods = pods.into_iter().map(|name| Arc::new(pod(&name, None))).collect();
    let draft = |name: &str| ClaimDraft {
        name: name.into(),
        pool: "default".into(),
        pool_uid: "uid".into(),
        labels: Arc::default(),
        annotations: Arc::default(),
        requirements: Arc::default(),
        requests: Resources::new(),
        taints: vec![],
        startup_taints: vec![],
        class: ClassRef { group: "g".into(), kind: "K".into(), name: "n".into() },
        termination_grace: None,
        expire_after: None,
    };
    let planned = |name| PlannedClaim { draft: draft(name), pods: vec![], instance_types: [].into(), price: 1.0 };
    let question = Question {
        at: start(),
        snapshot: Arc::default(),
        catalog: Arc::default(),
        pods,
        settings: Settings::default(),
        label_keys: vec![],
    };
    let plan = Plan { claims: claim.into_iter().map(planned).collect(), ..Plan::default() };
    Decision { question: Arc::new(question), plan: Arc::new(plan) }
}

#[test]
fn the_latest_decision_about_a_pod_is_the_answer() {
    let all =
        Decisions::default().and(decision(["a".into(), "b".into()], Some("c-1"))).and(decision(["b".into()], None));
    assert_eq!(all.about_pod(&"b".into()).map(|known| known.plan.claims.len()), Some(0));
    assert_eq!(all.about_pod(&"a".into()).map(|known| known.plan.claims.len()), Some(1));
    assert!(all.about_pod(&"unknown".into()).is_none());
}

#[test]
fn trying_again_in_vain_displaces_no_nodeclaim() {
    let mut all = Decisions::default().and(decision(["a".into()], Some("c-1")));
    for _ in 0..1000 {
        all = all.and(decision(["refused".into()], None));
    }
    assert!(all.about_claim(&"c-1".into()).is_some());
}

#[test]
fn memory_is_bounded_by_plans_and_by_pods() {
    let mut all = Decisions::default();
    for at in 0..100 {
        all = all.and(decision([format!("p-{at}")], Some(&format!("c-{at}"))));
    }
    let known = (0..100).filter(|at| all.about_claim(&format!("c-{at}").into()).is_some()).collect::<Vec<_>>();
    assert_eq!(known, (100 - PLANS..100).collect::<Vec<_>>());
    let many = decision((0..=PODS).map(|at| format!("many-{at}")), Some("large"));
    let all = all.and(many);
    assert!(all.about_claim(&"large".into()).is_some() && all.about_claim(&"c-99".into()).is_none());
}
