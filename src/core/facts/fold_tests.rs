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
    assert_eq!(fold.take_news().landed, Landed { planned: 1, ..Landed::default() });
}

#[test]
fn equal_pods_change_places() {
    let mut fold = plan(&[("x", "a"), ("y", "b")]);
    see(&mut fold, "x", Some("node-b"));
    assert_eq!(planned(&fold), ["y>a"], "y gets the place that x has left");
    let news = fold.take_news();
    assert_eq!(news.landed, Landed { planned: 1, ..Landed::default() });
    assert!(news.claims.contains(&ClaimName::from("a")), "a has somebody to nominate");
}

#[test]
fn pods_of_two_kinds_that_request_the_same_change_places_too() {
    let mut fold = plan(&[("x", "a")]);
    let mut other = pod("y", None);
    let mut shape = (*other.shape).clone();
    shape.labels.insert("app".into(), "other".into());
    other.shape = Arc::new(shape);
    fold.fold(Fact::PodSeen(Arc::new(other)));
    fold.planned(&"b".into(), vec!["y".into()]);
    see(&mut fold, "x", Some("node-b"));
    assert_eq!(planned(&fold), ["y>a"]);
    assert_eq!(fold.take_news().landed, Landed { exchanged: 1, ..Landed::default() });
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
    see(&mut fold, "x", Some("node-a"));
    assert_eq!(fold.snapshot().denominated.len(), 0);
}

#[test]
fn a_pod_that_takes_room_that_was_left_is_elsewhere() {
    let mut fold = plan(&[("x", "a")]);
    see(&mut fold, "x", Some("node-b"));
    assert_eq!(planned(&fold), Vec::<String>::new());
    assert_eq!(fold.take_news().landed, Landed { elsewhere: 1, ..Landed::default() });
}

/// A pod that kube-scheduler has not looked at.
fn young(name: &str) -> Fact {
    let mut young = pod(name, None);
    (young.unjudged, young.unschedulable) = (true, false);
    Fact::PodSeen(Arc::new(young))
}

#[test]
fn a_pod_that_kube_scheduler_has_not_looked_at_is_undecided() {
    let mut fold = Fold::default();
    fold.fold(young("x"));
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (1, 0));
    let came = fold.snapshot().arrival(&"x".into());
    assert!(came.is_some());
    fold.fold(young("y"));
    let news = fold.take_news();
    assert!(news.arrivals && !news.pending, "a burst goes on, but nobody needs a node yet");
    see(&mut fold, "x", None);
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (1, 1));
    assert_eq!(fold.snapshot().arrival(&"x".into()), came, "it keeps its place in the order of arrival");
    let news = fold.take_news();
    assert!(news.pending && !news.arrivals, "it needs a node, and was there before");
}

#[test]
fn a_pod_of_another_scheduler_waits_for_that_one_until_it_says_that_the_pod_fits_nowhere() {
    let mut fold = Fold::default();
    let mut other = pod("x", None);
    other.shape = Arc::new(PodShape { scheduler: Some("other".into()), ..(*other.shape).clone() });
    (other.unjudged, other.unschedulable) = (true, false);
    fold.fold(Fact::PodSeen(Arc::new(other.clone())));
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (0, 0), "it is not planned");
    let news = fold.take_news();
    assert!(!news.arrivals && !news.pending);
    // As with Karpenter: whoever schedules it, a node is what it needs.
    (other.unjudged, other.unschedulable) = (false, true);
    fold.fold(Fact::PodSeen(Arc::new(other)));
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (0, 1));
}

#[test]
fn it_is_known_when_kube_scheduler_last_weighed_nodes_for_a_pod_that_waits() {
    let mut fold = plan(&[]);
    let mut early = pod("x", None);
    early.unjudged = true;
    fold.fold(Fact::PodSeen(Arc::new(early)));
    assert_eq!((fold.snapshot().undecided.len(), fold.snapshot().pending.len()), (0, 1), "it needs a node");
    let weighed = |fold: &Fold| fold.snapshot().weighed.get(&PodUid::from("x")).copied();
    assert_eq!(weighed(&fold), None, "it was refused for want of any node");
    see(&mut fold, "x", None);
    let first = weighed(&fold);
    assert_eq!(first, Some(fold.snapshot().epoch));
    see(&mut fold, "x", None);
    assert_eq!(weighed(&fold), first, "nothing says that it was tried again");
    for nominated in [Some("node-a"), None] {
        let mut seen = pod("x", None);
        seen.nominated = nominated.map(Into::into);
        fold.fold(Fact::PodSeen(Arc::new(seen)));
    }
    assert_eq!(weighed(&fold), Some(fold.snapshot().epoch), "a nomination goes when it is tried in vain");
    see(&mut fold, "x", Some("node-a"));
    assert_eq!(weighed(&fold), None);
}

#[test]
fn a_nodeclaim_goes_when_the_api_server_knows_none() {
    let mut fold = plan(&[("x", "a")]);
    let seen = Arc::clone(&fold.snapshot().claims[&ClaimName::from("a")]);
    fold.take_news();
    fold.no_claim(&"a".into(), &"another".into());
    assert!(fold.snapshot().claims.contains_key(&ClaimName::from("a")), "a namesake is not meant");
    fold.no_claim(&"a".into(), &"uid-a".into());
    assert!(!fold.snapshot().claims.contains_key(&ClaimName::from("a")));
    assert!(fold.take_news().claims.contains(&ClaimName::from("a")), "its actor hears of it");
    fold.fold(Fact::ClaimSeen(seen));
    assert!(
        fold.snapshot().claims.contains_key(&ClaimName::from("a")),
        "an API server that starts may not know the kind"
    );
}

#[test]
fn what_shows_an_earlier_time_brings_no_nodeclaim_back() {
    let mut fold = plan(&[("x", "a")]);
    let old = Arc::clone(&fold.snapshot().claims[&ClaimName::from("a")]);
    let is_there = |fold: &Fold| fold.snapshot().claims.contains_key(&ClaimName::from("a"));
    let list = |fold: &mut Fold, claim: &Arc<Claim>| {
        fold.fold(Fact::Relisting(Kind::NodeClaim));
        fold.fold(Fact::ClaimSeen(Arc::clone(claim)));
        fold.fold(Fact::Relisted(Kind::NodeClaim));
    };
    fold.fold(Fact::ClaimGone("a".into(), "uid-a".into()));
    assert!(!is_there(&fold) && fold.take_news().claims.contains(&ClaimName::from("a")));
    list(&mut fold, &old);
    assert!(!is_there(&fold), "the list is from before its end");
    let mut fold = Fold::with_plans_of(fold.snapshot());
    list(&mut fold, &old);
    assert!(!is_there(&fold), "who begins anew knows it as well");
    let namesake = Arc::new(Claim { uid: "uid-b".into(), ..(*old).clone() });
    list(&mut fold, &namesake);
    assert!(is_there(&fold), "another of its name");
    fold.fold(Fact::ClaimGone("a".into(), "uid-a".into()));
    assert!(is_there(&fold), "the end of the first is told once more");
}

#[test]
fn a_node_that_came_back_with_a_late_answer_goes_when_the_api_server_knows_none() {
    let mut fold = Fold::default();
    let late = Arc::new(node());
    fold.fold(Fact::NodeSeen(Arc::clone(&late)));
    fold.fold(Fact::NodeGone(late.name.clone()));
    fold.fold(Fact::NodeSeen(Arc::clone(&late)));
    fold.no_node(&late.name, &"another".into());
    assert!(fold.snapshot().nodes.contains_key(&late.name), "a namesake is not meant");
    fold.no_node(&late.name, &late.uid);
    assert!(!fold.snapshot().nodes.contains_key(&late.name));
}

#[test]
fn a_provider_id_that_was_copied_by_hand_leads_back_to_its_owner() {
    let mut fold = plan(&[]);
    let claim = |name: &str, id: &str| {
        let mut claim = (*fold.snapshot().claims[&ClaimName::from(name)]).clone();
        claim.provider_id = Some(id.into());
        Fact::ClaimSeen(Arc::new(claim))
    };
    let (copied, corrected) = (claim("b", "sim://a"), claim("b", "sim://b"));
    let touched = |fold: &mut Fold, node: &str| {
        fold.take_news();
        let node = Arc::clone(&fold.snapshot().nodes[&NodeName::from(node)]);
        fold.fold(Fact::NodeSeen(node));
        fold.take_news().claims.into_iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    fold.fold(copied.clone());
    assert_eq!(touched(&mut fold, "node-a"), ["a"]);
    fold.fold(corrected);
    assert_eq!(touched(&mut fold, "node-a"), ["a"]);
    assert_eq!(touched(&mut fold, "node-b"), ["b"]);
    // The owner goes while the other still names its machine.
    fold.fold(copied);
    fold.fold(Fact::ClaimGone("a".into(), "uid-a".into()));
    assert_eq!(touched(&mut fold, "node-a"), ["b"]);
}
