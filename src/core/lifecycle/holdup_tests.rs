//! What a drain says that it waits for.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{condition, pod, serving, serving_node, start};
use crate::core::facts::{Claim, Count, DoNotDisrupt, Fact, Fold, Pod, PodBudget, Selector, Status};
use crate::core::ids::ObjectKey;
use crate::core::labels::Labels;
use crate::core::lifecycle::Memory;

/// What is said so many seconds after the drain of a node with these pods began, all but protected ones under a budget where there is one.
fn said(pods: &[Pod], budget: bool, seconds: i64) -> String {
    let mut claim = Claim { deleting: Some(start()), ..serving() };
    claim.conditions.push(condition("Drained", Status::Unknown));
    let mut fold = Fold::default();
    fold.fold(Fact::ClaimSeen(Arc::new(claim.clone())));
    fold.fold(Fact::NodeSeen(Arc::new(serving_node())));
    for pod in pods {
        fold.fold(Fact::PodSeen(Arc::new(pod.clone())));
    }
    if budget {
        fold.fold(Fact::PodBudgetSeen(Arc::new(PodBudget {
            key: ObjectKey::new("default", "web"),
            selector: Some(Selector { labels: Labels::new(), ..Selector::default() }),
            min_available: None,
            max_unavailable: Some(Count::Pods(0)),
            spares_unready: false,
        })));
    }
    let memory = Memory::default();
    of(&Situation::of(&claim, fold.snapshot(), &memory, step::after(start(), seconds)))
}

fn protected(name: &str) -> Pod {
    let mut pod = pod(name, Some("node-1"));
    Arc::make_mut(&mut pod.shape).do_not_disrupt = DoNotDisrupt::Always;
    pod
}

#[test]
fn a_drain_that_takes_its_time_names_annotations_and_budgets_that_hold_it_up() {
    let pods = [protected("a"), pod("b", Some("node-1"))];
    assert_eq!(said(&pods, true, 59), BEGUN, "most drains are over before");
    assert_eq!(
        said(&pods, true, 60),
        "waiting until no pod has to leave any more; pods default/a must not be disrupted (annotation karpenter.sh/do-not-disrupt; take it off, or \
         delete the pods); others go when PodDisruptionBudgets default/web allow it (status.disruptionsAllowed; what refuses since when is said in \
         Events of the Node)"
    );
    assert_eq!(said(&[], true, 60), BEGUN, "nobody is left");
}

#[test]
fn a_drain_says_the_same_however_many_pods_leave_it() {
    let pods: Vec<_> = (0..30).map(|number| pod(&format!("p-{number}"), Some("node-1"))).collect();
    for budget in [false, true] {
        let all = said(&pods, budget, 60);
        assert!((1..30).all(|left| said(&pods[left..], budget, 60 + 10) == all), "or each would be a write: {all}");
    }
}

#[test]
fn what_is_said_of_a_drain_fits_into_a_condition() {
    let pods: Vec<_> = (0..110).map(|number| protected(&format!("{number}-{}", "x".repeat(40)))).collect();
    let said = said(&pods, false, 60);
    assert!(said.contains("and 105 other(s)") && said.chars().count() < 700, "{said}");
}
