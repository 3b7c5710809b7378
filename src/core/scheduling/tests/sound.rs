//! Plans that the check refuses, and what the check takes for an alternative.

use super::super::{Reason, Violation, sound};
use super::build::*;
use crate::core::labels;

#[test]
fn a_daemon_that_contradicts_itself_keeps_nobody_from_a_node() {
    let mut nowhere = shape(900, 64);
    nowhere.node_selector = labels(&[("team", "x")]);
    nowhere.node_affinity.required = vec![vec![within("team", &["y"])]];
    let scene = Scene::new().with_daemon("nowhere", nowhere).with_pods(pods("web", 1, &shape(500, 512)));
    let plan = scene.solve();
    assert_eq!(plan.claims[0].instance_types[0].as_str(), "m-1x", "no room is kept for what can run nowhere");
}

#[test]
fn an_alternative_that_contradicts_itself_opens_no_domain() {
    let mut web = shape(100, 64);
    web.labels = labels(&[("app", "web")]);
    web.node_selector = labels(&[("team", "x")]);
    web.node_affinity.required = vec![vec![within("team", &["y"])], vec![within(labels::ZONE, &["zone-a"])]];
    web.spreads = vec![spread(labels::ZONE, 1, &[("app", "web")])];
    let mut team = pool("team");
    team.template.labels.insert("team".into(), "x".into());
    let elsewhere = node("other", 4000, 4096, &[(labels::ZONE, "zone-b")]);
    let plan = Scene::default().with_pool(team, types()).with_node(elsewhere).with_pods(pods("web", 6, &web)).solve();
    assert!(plan.refused.is_empty(), "kube-scheduler counts zone-a alone: {:?}", plan.refused);
}

#[test]
fn whom_a_broken_rule_is_about_is_refused_and_everybody_else_is_planned() {
    let mut all = pods("web", 3, &shape(500, 512));
    all.extend(pods("odd", 1, &shape(100, 64)));
    let scene = Scene::new().with_pods(all);
    let mut asked = 0;
    let (plan, found) = sound(&scene.problem(), |problem| {
        asked += 1;
        let mut plan = crate::core::scheduling::solve(problem);
        for claim in &mut plan.claims {
            let odd = claim.pods.iter().find(|pod| pod.key.name.starts_with("odd")).cloned();
            claim.pods.extend(odd);
        }
        plan
    });
    assert_eq!(asked, 2);
    assert!(matches!(found.as_slice(), [Violation::Surplus(_), ..]), "{found:?}");
    assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 3);
    let [refusal] = plan.refused.as_slice() else { panic!("{:?}", plan.refused) };
    assert!(matches!(refusal.reasons.as_slice(), [Reason::Distrusted(_)]));
}

#[test]
fn a_solver_that_is_always_wrong_buys_nothing_and_everybody_hears_of_it() {
    let scene = Scene::new().with_pods(pods("web", 3, &shape(500, 512)));
    let (plan, found) = sound(&scene.problem(), |_| crate::core::scheduling::Plan::default());
    assert_eq!((plan.claims.len(), plan.refused.len(), found.len()), (0, 3, 3));
}
