//! How a plan follows what kube-scheduler does.

use std::sync::Arc;

use super::*;
use crate::core::facts::samples::{claim, node, pod};

/// NodeClaims `a` and `b` with a Node each, and pods: names, and the NodeClaims that they are planned for.
fn plan(pods: &[(&str, &str)]) -> Fold {
    let mut fold = Fold::default();
    for name in ["a", "b"] {
        let mut claim = claim();
        (claim.name, claim.uid) = (name.into(), format!("uid-{name}").into());
        claim.provider_id = Some(format!("sim://{name}").into());
        let mut node = node();
        (node.name, node.provider_id) = (format!("node-{name}").into(), claim.provider_id.clone());
        fold.fold(Fact::ClaimSeen(Arc::new(claim)));
        fold.fold(Fact::NodeSeen(Arc::new(node)));
    }
    for (name, claim) in pods {
        see(&mut fold, name, None);
        fold.planned(&(*claim).into(), vec![(*name).into()]);
    }
    fold.take_news();
    fold
}

fn see(fold: &mut Fold, name: &str, node: Option<&str>) {
    let mut seen = pod(name, node);
    if node.is_some() {
        let mut shape = (*seen.shape).clone();
        shape.labels.insert("topology.kubernetes.io/zone".into(), "zone-a".into());
        seen.shape = Arc::new(shape);
    }
    fold.fold(Fact::PodSeen(Arc::new(seen)));
}

/// What is planned, as `pod>claim`.
fn planned(fold: &Fold) -> Vec<String> {
    fold.snapshot().planned.iter().map(|(pod, claim)| format!("{pod}>{claim}")).collect()
}

#[test]
fn a_pod_that_goes_where_it_was_planned_leaves_the_plan() {
    let mut fold = plan(&[("x", "a"), ("y", "b")]);
    see(&mut fold, "x", Some("node-a"));
    assert_eq!(planned(&fold), ["y>b"]);
    assert_eq!(fold.take_news().landed, Landed { planned: 1, elsewhere: 0 });
}

#[test]
fn equal_pods_change_places() {
    let mut fold = plan(&[("x", "a"), ("y", "b")]);
    see(&mut fold, "x", Some("node-b"));
    assert_eq!(planned(&fold), ["y>a"], "y gets the place that x has left");
    let news = fold.take_news();
    assert_eq!(news.landed, Landed { planned: 1, elsewhere: 0 });
    assert!(news.claims.contains(&ClaimName::from("a")), "a has somebody to nominate");
}

#[test]
fn a_pod_that_lost_its_nomination_is_said_so_until_it_is_bound() {
    let mut fold = plan(&[("x", "a")]);
    for nominated in [Some("node-a"), None, Some("node-a"), None] {
        let mut seen = pod("x", None);
        seen.nominated = nominated.map(Into::into);
        fold.fold(Fact::PodSeen(Arc::new(seen)));
    }
    assert_eq!(fold.snapshot().denominated.get(&PodUid::from("x")), Some(&2));
    assert!(fold.take_news().claims.contains(&ClaimName::from("a")), "a may nominate it again");
    see(&mut fold, "x", Some("node-a"));
    assert_eq!(fold.snapshot().denominated.len(), 0);
}

#[test]
fn a_pod_that_takes_room_that_was_left_is_elsewhere() {
    let mut fold = plan(&[("x", "a")]);
    see(&mut fold, "x", Some("node-b"));
    assert_eq!(planned(&fold), Vec::<String>::new());
    assert_eq!(fold.take_news().landed, Landed { planned: 0, elsewhere: 1 });
}

#[test]
fn a_pod_that_kube_scheduler_has_not_looked_at_is_undecided() {
    let mut fold = Fold::default();
    let mut young = pod("x", None);
    (young.unjudged, young.unschedulable) = (true, false);
    fold.fold(Fact::PodSeen(Arc::new(young)));
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (1, 0));
    see(&mut fold, "x", None);
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (0, 1));
}
