//! Who finds the domain full when the turn comes.

use super::super::tests::build::*;
use super::super::{mingled, out_of_turn, solve};
use super::Turns;
use crate::core::labels::{CAPACITY_TYPE, ZONE};

#[test]
fn every_constraint_on_domains_is_looked_at() {
    let app = [("app", "web")];
    let mut web = shape(500, 512);
    web.labels = labels(&app);
    web.spreads = vec![spread(ZONE, 5, &app), spread(CAPACITY_TYPE, 1, &app)];
    let scene = Scene::new().with_pods(pods("web", 12, &web));
    let problem = scene.problem();
    let plan = solve(&problem);
    let turns = Turns::new(&problem);
    assert_eq!((turns.late(&plan), out_of_turn(&problem, &plan)), (0, 0));
    // Those that come first all at one capacity type: the second constraint is the one that they break.
    let mut seats: Vec<(usize, usize)> = Vec::new();
    let spot_first = |at: &usize| pinned(&plan, *at, CAPACITY_TYPE) != Some("spot");
    let mut order: Vec<usize> = (0..plan.claims.len()).collect();
    order.sort_by_key(|at| (spot_first(at), *at));
    for at in order {
        seats.extend((0..plan.claims[at].pods.len()).map(|pod| (at, pod)));
    }
    let mut wrong = plan.clone();
    for ((claim, at), pod) in seats.into_iter().zip(&scene.pods) {
        wrong.claims[claim].pods[at] = pod.clone();
    }
    assert!(turns.late(&wrong) > 0);
    assert_eq!(turns.late(&wrong), out_of_turn(&problem, &wrong));
    let kept = turns.kept(wrong.clone());
    assert!(turns.late(&kept) <= turns.late(&wrong));
    assert_eq!(out_of_turn(&problem, &mingled(&problem, plan)), 0);
}
